"""Question: what do memory accesses move, and how much of it is not needed? Sectors, wavefronts and local memory, by line."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from gpa_lsp.diagnosis.analyses.access import (
    CONFLICT_REMEDY,
    LEAST_EXCESS,
    LOCAL_REMEDY,
    REMEDIES,
    WIDTH_REMEDY,
    AccessColumns,
    LineTransfers,
    Pattern,
    Transfers,
    build_global_table,
    build_shared_table,
    count_widths,
    describe_access,
    describe_excess,
    find_line_pattern,
    read_accesses,
    sum_transfers,
)
from gpa_lsp.diagnosis.analyses.answers import (
    MOST_MARKS,
    Answer,
    Finding,
    LineMark,
    Missing,
    Table,
    Weight,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, index_lines, mark_with_callers, rank_lines
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, number, percent, say, size
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES, WARP_THREADS

_PERCENT = 100.0


# Kind of access, the metric that counts its sectors, and the one with its hit rate in percent
_KINDS = (
    *(
        (f"L1: {name}", f"l1tex__t_sectors_{unit}.sum", f"l1tex__t_sector_{unit}_hit_rate.pct")
        for name, unit in (
            ("global loads", "pipe_lsu_mem_global_op_ld"),
            ("global stores", "pipe_lsu_mem_global_op_st"),
            ("global atomics", "pipe_lsu_mem_global_op_atom"),
            ("global reductions", "pipe_lsu_mem_global_op_red"),
            ("local loads", "pipe_lsu_mem_local_op_ld"),
            ("local stores", "pipe_lsu_mem_local_op_st"),
        )
    ),
    (
        "L1: textures",
        "l1tex__t_sectors_pipe_tex_mem_texture.sum",
        "l1tex__t_sector_pipe_tex_mem_texture_op_tex_hit_rate.pct",
    ),
    *(
        (f"L1: surface {name}", f"l1tex__t_sectors_{unit}.sum", f"l1tex__t_sector_{unit}_hit_rate.pct")
        for name, unit in (("loads", "pipe_tex_mem_surface_op_ld"), ("stores", "pipe_tex_mem_surface_op_st"))
    ),
    ("L2: all", "lts__t_sectors.sum", "lts__t_sector_hit_rate.pct"),
    ("L2: reads", "lts__t_sectors_op_read.sum", "lts__t_sector_op_read_hit_rate.pct"),
    ("L2: writes", "lts__t_sectors_op_write.sum", "lts__t_sector_op_write_hit_rate.pct"),
)


def build_hit_rates(subject: Subject) -> Table:
    """The table of the longest launch, with the kinds of access it made; without rows when no hit rate was collected.

    A kind without sectors has no hit rate, even where the report has one; a kind whose sectors were not counted keeps its rate. Rates are counted in
    two passes and can exceed 1 by a little; they are shown as 1.
    """
    rows: list[tuple[Cell, ...]] = []
    for name, counter, rate_metric in _KINDS:
        rate, sectors = subject.metric(rate_metric), subject.metric(counter)
        if rate is not None and sectors != 0:
            rows.append((name, None if sectors is None else round(sectors), min(rate / _PERCENT, 1.0)))
    return Table(
        title="Hit rates",
        columns=list_columns("access | sectors [count] | found there [ratio]"),
        rows=tuple(rows),
        note=say(
            "Of the longest launch. A profiler that flushes the caches before each pass shows lower rates than the running program."
        ),
    )


_MOST_LINES = 3  # Lines that get a sentence of their own
_MATTERS = 0.1  # From this share of the kernel's samples on, a finding is one of those that hold it up
_BUSY = 0.6  # From this share of its rate on, a memory is busy
_WORTH_NAMING = 0.01  # Local memory with a smaller share of sectors and of samples is not spoken of
_IDLE_BYTES = 16.0  # From fewer bytes asked for per sector on, the sectors are badly used though they are the fewest
_QUEUE = 0.05  # From this share of samples in the queue of memory instructions on, fewer of them help
_NARROW_BYTES = 4

_LOADED_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"
_STORED_BYTES = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"
_SHARED_UNITS = {
    "The data stage of L1 and shared memory": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"
}
_GLOBAL_UNITS = {"L2": "lts__t_sectors.avg.pct_of_peak_sustained_elapsed", **_SHARED_UNITS}


_ATOMIC_REMEDY = say(
    "Let the threads of a warp update different addresses: combine equal ones in registers first, or privatize into several copies."
)


def find_excess_sectors(
    subject: Subject, columns: AccessColumns, transfers: Transfers, index: LineIndex, lines: LineTransfers
) -> list[Finding]:
    """One finding for each of the lines with the largest excess of sectors, or one that says there is none."""
    if transfers.excess_ratio < LEAST_EXCESS and not _any_matters(subject, lines):
        return [_describe_idle_bytes(columns, transfers) or _praise("Global accesses touch", transfers, "sectors")]
    excess = lines.actual - lines.ideal
    findings: list[Finding] = []
    for line in rank_lines(excess, _MOST_LINES):
        pattern = find_line_pattern(columns, transfers, lines, line)
        if pattern is Pattern.NEIGHBOURS or not _is_worth_a_sentence(
            subject, transfers, lines, line, has_any=bool(findings)
        ):
            continue
        text = say(
            "{kind} at {line} touch {access}: {pattern}. {cost}",
            kind=_name_kind(columns, int(lines.heaviest[line])).capitalize(),
            line=index.name_line(line),
            access=describe_access(lines, line, "sectors"),
            pattern=pattern.value,
            cost=_describe_cost(subject, excess[line], transfers, _GLOBAL_UNITS),
        )
        findings.append(_weigh(subject, text, REMEDIES[pattern], lines, line))
    return findings


def find_conflicts(
    subject: Subject, columns: AccessColumns, transfers: Transfers, index: LineIndex, lines: LineTransfers
) -> list[Finding]:
    """One finding for each of the lines with the most bank conflicts, or one that says there are none."""
    if transfers.excess_ratio < LEAST_EXCESS and not _any_matters(subject, lines):
        return [_praise("Shared accesses take", transfers, "wavefronts")]
    excess = lines.actual - lines.ideal
    findings: list[Finding] = []
    for line in rank_lines(excess, _MOST_LINES):
        if lines.excess_ratio(line) < LEAST_EXCESS:
            continue
        if not _is_worth_a_sentence(subject, transfers, lines, line, has_any=bool(findings)):
            continue
        times = lines.times_ideal(line)
        conflict = NOTHING if times is None else say(": a {times}-way bank conflict on average", times=number(times))
        text = say(
            "Shared accesses at {line} take {access}{conflict}. {cost}",
            line=index.name_line(line),
            access=describe_access(lines, line, "wavefronts"),
            conflict=conflict,
            cost=_describe_cost(subject, excess[line], transfers, _SHARED_UNITS),
        )
        is_atomic = columns.is_atomic[lines.heaviest[line]]
        findings.append(_weigh(subject, text, _ATOMIC_REMEDY if is_atomic else CONFLICT_REMEDY, lines, line))
    return findings


def find_unused_bytes(subject: Subject) -> list[Finding]:
    """Find sectors of which the threads use few bytes, where the profiler counted that."""
    findings: list[Finding] = []
    for kind, metric in (("loads", _LOADED_BYTES), ("stores", _STORED_BYTES)):
        used = subject.metric(metric)
        if used is not None and 0 < used < _IDLE_BYTES:
            findings.append(
                Finding(
                    text=say(
                        "Global {kind} use {used} of the {whole} bytes of each sector on average (each byte counted once).",
                        kind=kind,
                        used=number(used),
                        whole=count(SECTOR_BYTES),
                    ),
                    remedy=say(
                        "Let the threads of a warp use whole sectors: neighbouring elements, or keep what several threads need in shared memory."
                    ),
                )
            )
    return findings


def find_local_traffic(subject: Subject, columns: AccessColumns, index: LineIndex) -> list[Finding]:
    """One finding about local memory, naming the lines with most of it; none where there is none."""
    if columns.local_sectors is None or not columns.local_sectors.any():
        return []
    sums = index.sum_by_line(columns.local_sectors)
    total = float(sums.sum())
    whole = total + (float(columns.global_transfers.actual.sum()) if columns.global_transfers is not None else 0.0)
    share = subject.share_of(float(columns.waits[columns.is_local].sum()))
    if max(total / whole, share or 0.0) < _WORTH_NAMING:
        return []
    return [
        Finding(
            text=say(
                "Local memory takes {sectors}, {share} of local and global traffic together; most at {lines}.",
                sectors=count(total, "sector"),
                share=percent(total / whole),
                lines=index.list_heaviest(sums, _MOST_LINES),
            ),
            weight=Weight.HIGH if share is not None and share >= _MATTERS else Weight.PLAIN,
            remedy=LOCAL_REMEDY,
            share_ratio=share,
        )
    ]


def find_narrow_accesses(subject: Subject, columns: AccessColumns) -> list[Finding]:
    """A finding where warps queue to issue memory instructions and most of them move four bytes a thread or fewer."""
    queued = subject.share_of(subject.rows.count_reason("lg_throttle")) or 0.0
    if queued < _QUEUE or columns.executions is None:
        return []
    is_move = columns.is_global & ~columns.is_atomic
    moves = int(columns.executions[is_move].sum())
    narrow = int(columns.executions[is_move & (columns.width_bytes <= _NARROW_BYTES)].sum())
    if moves == 0 or narrow < moves / 2:
        return []
    return [
        Finding(
            text=say(
                "{narrow} of the global accesses move {width} or fewer per thread, and in {queued} of the samples warps queue to issue memory "
                "instructions.",
                narrow=percent(narrow / moves),
                width=count(_NARROW_BYTES, "byte"),
                queued=percent(queued),
            ),
            weight=Weight.HIGH if queued >= _MATTERS else Weight.PLAIN,
            remedy=WIDTH_REMEDY,
            share_ratio=queued,
        )
    ]


def build_totals(columns: AccessColumns) -> Table:
    """Tabulate what all accesses of the kernel move."""
    rows: list[tuple[Cell, ...]] = []
    for name, transfers in (("global", columns.global_transfers), ("shared", columns.shared_transfers)):
        if transfers is not None and transfers.actual.any():
            requests = None if transfers.requests is None else int(transfers.requests.sum())
            total, ideal = int(transfers.actual.sum()), int(transfers.ideal.sum())
            rows.append((name, transfers.unit, requests, total, ideal, total - ideal, transfers.excess_ratio))
    if columns.local_sectors is not None and columns.local_sectors.any():
        requests = None if columns.executions is None else int(columns.executions[columns.local_sectors > 0].sum())
        rows.append(("local", "sectors", requests, int(columns.local_sectors.sum()), None, None, None))
    return Table(
        title="What is moved",
        columns=list_columns(
            "memory | in | accesses [count] | moved [count] | at best [count] | excess [count] | share [ratio]"
        ),
        rows=tuple(rows),
        note=say("Before any cache: what the addresses of the threads request. An access is one execution by a warp."),
    )


def build_width_table(columns: AccessColumns) -> Table:
    """Tabulate executed accesses by width."""
    widths = count_widths(columns)
    total = sum(widths.values())
    return Table(
        title="Width of accesses",
        columns=list_columns("per thread [bytes] | accesses [count] | share [ratio]"),
        rows=tuple((width, count, count / total) for width, count in widths.items()),
        note=say("Global, shared and local memory."),
    )


def _any_matters(subject: Subject, lines: LineTransfers) -> bool:
    """A line that many samples are stalled on has excess, though the kernel as a whole has little."""
    samples = subject.total_samples
    excess = lines.actual - lines.ideal
    has_pattern = excess > LEAST_EXCESS * lines.actual
    return bool(samples and np.any(lines.waits[has_pattern] >= _MATTERS * samples))


def _is_worth_a_sentence(
    subject: Subject, transfers: Transfers, lines: LineTransfers, line: int, *, has_any: bool
) -> bool:
    """Whether a line is the first one named, or its excess or its stalls are not small."""
    part = (lines.actual[line] - lines.ideal[line]) / transfers.actual.sum()
    waiting = subject.share_of(lines.waits[line] * lines.excess_ratio(line)) or 0.0
    return bool(not has_any or part >= LEAST_EXCESS or waiting >= LEAST_EXCESS)


def _describe_idle_bytes(columns: AccessColumns, transfers: Transfers) -> Finding | None:
    """Describe sectors that are the fewest for the active threads, but badly used because few threads are active; None otherwise."""
    if columns.threads is None or transfers.requests is None:
        return None
    moving = transfers.actual > 0
    asked = np.minimum(columns.threads * columns.width_bytes, transfers.actual * SECTOR_BYTES)
    used_bytes = float(asked[moving].sum()) / float(transfers.actual.sum())
    threads = float(columns.threads[moving].sum()) / max(float(transfers.requests.sum()), 1.0)
    if not 0 < used_bytes < _IDLE_BYTES:
        return None
    return Finding(
        text=say(
            "Global accesses touch as few sectors as their active threads need, but only {threads} of {all} threads are active per access on "
            "average, and they request {used} of the {whole} bytes of each sector.",
            threads=number(threads),
            all=count(WARP_THREADS),
            used=number(used_bytes),
            whole=count(SECTOR_BYTES),
        ),
        remedy=say(
            "Let all threads of a warp take part, on neighbouring elements: larger blocks, or work spread over the warp instead of one thread."
        ),
    )


def _praise(words: str, transfers: Transfers, unit: str) -> Finding:
    share = transfers.excess_ratio
    rest = NOTHING if share == 0 else say(" ({share} excess)", share=percent(share))
    return Finding(
        text=say("{words} about as few {unit} as they can{rest}.", words=words, unit=unit, rest=rest),
        weight=Weight.GOOD,
    )


def _weigh(subject: Subject, text: Sentence, remedy: Sentence, lines: LineTransfers, line: int) -> Finding:
    share = subject.share_of(float(lines.waits[line]))
    stalled = (
        NOTHING if share is None else say("{share} of the samples are stalled on this line.", share=percent(share))
    )
    matters = share is not None and share * lines.excess_ratio(line) >= _MATTERS
    weight = Weight.HIGH if matters else Weight.PLAIN
    return Finding(text=join([text, stalled]), weight=weight, remedy=remedy, share_ratio=share)


def _describe_cost(subject: Subject, excess: float, transfers: Transfers, units: Mapping[str, str]) -> Sentence:
    """The excess as a part of all transfers, and of the time of the busiest unit that makes them.

    An upper bound of that time, because not every transfer comes as far as that unit.
    """
    part = excess / float(transfers.actual.sum())
    text = say("The excess is {part} of all {unit} of the kernel.", part=percent(part), unit=transfers.unit)
    uses = [(use / _PERCENT, unit) for unit, metric in units.items() if (use := subject.metric(metric)) is not None]
    if not uses:
        return text
    ratio, unit = max(uses)
    cost = say(
        "{unit} runs at {ratio} of its rate, at most {own} for the excess.",
        unit=unit,
        ratio=percent(ratio),
        own=percent(ratio * part),
    )
    return join([text, cost, say("It is busy: fewer transfers save time.") if ratio >= _BUSY else NOTHING])


def _name_kind(columns: AccessColumns, row: int) -> str:
    if columns.is_atomic[row]:
        return "atomics"
    if columns.width_bytes[row] == 0:
        return "accesses"
    return "stores" if columns.is_store[row] else "loads"


_SECTION = "SourceCounters"


def _answer(subject: Subject) -> Answer:
    columns = read_accesses(subject)
    index = index_lines(subject)
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
        findings += find(subject, columns, transfers, index, lines)
        build_table = build_global_table if name == "global" else build_shared_table
        tables.append(build_table(index, lines, subject.rows.mnemonic))
        describe = partial(describe_excess, lines, unit=transfers.unit)
        measure = f"excess {name} {transfers.unit}"
        marks += mark_with_callers(subject, index, transfers.excess, measure=measure, describe=describe)
    findings += [
        *find_unused_bytes(subject),
        *find_local_traffic(subject, columns, index),
        *find_narrow_accesses(subject, columns),
    ]
    marks += _mark_local(subject, columns, index)
    hit_rates = build_hit_rates(subject)
    tables = [build_totals(columns), *tables, build_width_table(columns), hit_rates]
    return Answer(
        summary=_summarise(columns),
        findings=order_findings(findings),
        tables=tuple(tables),
        marks=tuple(sorted(marks, key=lambda mark: -(mark.share_ratio or 0.0))[:MOST_MARKS]),
        missing=_list_missing(columns, has_rates=bool(hit_rates.rows)),
        is_known=any(table.rows for table in tables),
    )


def _mark_local(subject: Subject, columns: AccessColumns, index: LineIndex) -> tuple[LineMark, ...]:
    if columns.local_sectors is None:
        return ()
    sums = index.sum_by_line(columns.local_sectors)
    return mark_with_callers(
        subject,
        index,
        columns.local_sectors,
        measure="local memory sectors",
        describe=lambda line: say(
            "{moved} of local memory (spilled registers or thread-private arrays)",
            moved=size(sums[line] * SECTOR_BYTES),
        ),
    )


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
    sectors, wavefronts = "memory_l2_theoretical_sectors_global", "memory_l1_wavefronts_shared"
    missing = [
        lack(what, *names, section=_SECTION, needs_all=len(names) > 1)
        for column, what, *names in (
            (columns.global_transfers, "sectors of global memory by line", sectors, f"{sectors}_ideal"),
            (columns.shared_transfers, "wavefronts of shared memory by line", wavefronts, f"{wavefronts}_ideal"),
            (columns.local_sectors, "local memory by line", "memory_l2_theoretical_sectors_local"),
            (columns.executions, "how often each access is executed", "inst_executed"),
            (columns.threads, "bytes requested per sector", "thread_inst_executed_true"),
        )
        if column is None
    ]
    if not has_rates:
        names = ("l1tex__t_sector_hit_rate.pct", "lts__t_sector_hit_rate.pct")
        missing.append(lack("hit rates", *names, section="MemoryWorkloadAnalysis"))
    return tuple(missing)


ANALYSIS = Analysis(name="memory_access", title="How memory is accessed", order=80, answer=_answer)
