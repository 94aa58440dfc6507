"""What do the memory accesses move, and how much of it is not needed? Sectors, wavefronts and local memory, by line."""

import numpy as np

from gpa_lsp.diagnosis.analyses.access.columns import AccessColumns, Transfers, read_accesses
from gpa_lsp.diagnosis.analyses.access.findings import (
    build_totals,
    build_width_table,
    find_conflicts,
    find_excess_sectors,
    find_local_traffic,
    find_narrow_accesses,
    find_unused_bytes,
)
from gpa_lsp.diagnosis.analyses.access.hit_rates import build_hit_rates
from gpa_lsp.diagnosis.analyses.access.lines import (
    LineTransfers,
    build_global_table,
    build_shared_table,
    describe_excess,
    sum_transfers,
)
from gpa_lsp.diagnosis.analyses.answers import MOST_MARKS, Answer, Finding, LineMark, Missing, Table, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.line_sums import (
    InlinedRows,
    LineIndex,
    find_inlined,
    index_lines,
    mark_callers,
    mark_lines,
)
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import Sentence, count, join, percent, say, size
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES

_NAME = "memory_access"
_TITLE = "How memory is accessed"
_SECTION = "SourceCounters"


def _answer(facts: KernelFacts) -> Answer:
    columns = read_accesses(facts)
    index = index_lines(facts)
    inlined = find_inlined(facts, index)
    findings: list[Finding] = []
    tables: list[Table] = []
    marks: list[LineMark] = []
    for transfers, name, find in (
        (columns.global_transfers, "global", find_excess_sectors),
        (columns.shared_transfers, "shared", find_conflicts),
    ):
        if transfers is None or not transfers.actual.any():
            continue
        lines = sum_transfers(columns, transfers, index)
        findings += find(facts, columns, transfers, index, lines)
        tables.append(_build_table(name, facts, columns, index, lines))
        marks += _mark_excess(name, facts, transfers, inlined, lines)
    findings += [
        *find_unused_bytes(facts),
        *find_local_traffic(facts, columns, index),
        *find_narrow_accesses(facts, columns),
    ]
    marks += _mark_local(facts, columns, inlined)
    hit_rates = build_hit_rates(facts)
    totals = build_totals(columns)
    tables = [*([totals] if totals else []), *tables, *build_width_table(columns), *([hit_rates] if hit_rates else [])]
    order = list(Weight)
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(columns),
        findings=tuple(sorted(findings, key=lambda one: -order.index(one.weight))),
        tables=tuple(tables),
        marks=tuple(sorted(marks, key=lambda mark: -(mark.share_ratio or 0.0))[:MOST_MARKS]),
        missing=_list_missing(columns, has_rates=hit_rates is not None),
        is_known=bool(tables),
    )


def _build_table(
    name: str, facts: KernelFacts, columns: AccessColumns, index: LineIndex, lines: LineTransfers
) -> Table:
    if name == "global":
        return build_global_table(columns, index, lines, facts.rows.mnemonic)
    return build_shared_table(index, lines, facts.rows.mnemonic)


def _mark_excess(
    name: str, facts: KernelFacts, transfers: Transfers, inlined: InlinedRows, lines: LineTransfers
) -> tuple[LineMark, ...]:
    measure = f"excess {name} {transfers.unit}"
    marks = mark_lines(
        facts,
        inlined.inner,
        transfers.excess,
        measure=measure,
        quantity=Quantity.COUNT,
        describe=lambda line: describe_excess(lines, line, transfers.unit),
    )
    return (*marks, *mark_callers(facts, inlined, transfers.excess, measure=measure, quantity=Quantity.COUNT))


def _mark_local(facts: KernelFacts, columns: AccessColumns, inlined: InlinedRows) -> tuple[LineMark, ...]:
    if columns.local_sectors is None:
        return ()
    sums = inlined.inner.sum_by_line(columns.local_sectors)
    measure = "local memory sectors"
    marks = mark_lines(
        facts,
        inlined.inner,
        columns.local_sectors,
        measure=measure,
        quantity=Quantity.COUNT,
        describe=lambda line: say(
            "{moved} of local memory (spilled registers or thread-private arrays)",
            moved=size(sums[line] * SECTOR_BYTES),
        ),
    )
    return (*marks, *mark_callers(facts, inlined, columns.local_sectors, measure=measure, quantity=Quantity.COUNT))


def _summarise(columns: AccessColumns) -> Sentence:
    parts = []
    for transfers, name in ((columns.global_transfers, "global"), (columns.shared_transfers, "shared")):
        if transfers is not None and transfers.actual.any():
            parts.append(_describe_total(transfers, name))
    if columns.local_sectors is not None and columns.local_sectors.any():
        parts.append(say("{sectors} of local memory", sectors=count(int(np.sum(columns.local_sectors)), "sector")))
    if parts:
        return say("The accesses move {parts}.", parts=join(parts, "; "))
    if columns.global_transfers is None and columns.shared_transfers is None:
        return say("Unknown: the counters of memory accesses by instruction were not collected.")
    return say("Nothing is moved to or from global, shared or local memory.")


def _describe_total(transfers: Transfers, name: str) -> Sentence:
    total, ideal = int(transfers.actual.sum()), int(transfers.ideal.sum())
    moved = say("{moved} of {name} memory", moved=count(total, transfers.unit[:-1]), name=name)
    if total == ideal:
        return say("{moved}, the minimum", moved=moved)
    return say(
        "{moved} where {ideal} would suffice ({excess} excess)",
        moved=moved,
        ideal=count(ideal),
        excess=percent(transfers.excess_ratio),
    )


def _list_missing(columns: AccessColumns, *, has_rates: bool) -> tuple[Missing, ...]:
    missing = []
    if columns.global_transfers is None:
        names = ("memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal")
        missing.append(lack("sectors of global memory by line", *names, section=_SECTION, needs_all=True))
    if columns.shared_transfers is None:
        names = ("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal")
        missing.append(lack("wavefronts of shared memory by line", *names, section=_SECTION, needs_all=True))
    if columns.local_sectors is None:
        missing.append(lack("local memory by line", "memory_l2_theoretical_sectors_local", section=_SECTION))
    if columns.executions is None:
        missing.append(lack("how often each access is executed", "inst_executed", section=_SECTION))
    if columns.threads is None:
        missing.append(lack("bytes requested per sector", "thread_inst_executed_true", section=_SECTION))
    if not has_rates:
        missing.append(
            lack(
                "hit rates",
                "l1tex__t_sector_hit_rate.pct",
                "lts__t_sector_hit_rate.pct",
                section="MemoryWorkloadAnalysis",
            )
        )
    return tuple(missing)


ANALYSIS = Analysis(name=_NAME, order=80, answer=_answer)
