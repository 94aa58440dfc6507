"""What stands out among the memory accesses of a kernel, as findings, and their totals."""

from collections.abc import Mapping

import numpy as np

from gpa_lsp.diagnosis.analyses.access.columns import AccessColumns, Transfers
from gpa_lsp.diagnosis.analyses.access.lines import LineTransfers, count_widths, describe_access, find_line_pattern
from gpa_lsp.diagnosis.analyses.access.patterns import (
    CONFLICT_REMEDY,
    LEAST_EXCESS,
    LOCAL_REMEDY,
    REMEDIES,
    WIDTH_REMEDY,
    Pattern,
)
from gpa_lsp.diagnosis.analyses.answers import Column, Finding, Table, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, rank_lines
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, join, number, percent, say
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES, WARP_THREADS

_MOST_LINES = 3  # Lines that get a sentence of their own
_MATTERS = 0.1  # From this share of the kernel's samples on, a finding is one of those that hold it up
_BUSY = 0.6  # From this share of its rate on, a memory is busy
_WORTH_NAMING = 0.01  # Local memory with a smaller share of sectors and of samples is not spoken of
_IDLE_BYTES = 16.0  # From fewer bytes asked for per sector on, the sectors are badly used though they are the fewest
_QUEUE = 0.05  # From this share of samples in the queue of memory instructions on, fewer of them help
_NARROW_BYTES = 4
_PERCENT = 100.0

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
    facts: KernelFacts, columns: AccessColumns, transfers: Transfers, index: LineIndex, lines: LineTransfers
) -> list[Finding]:
    """One finding for each of the lines with the largest excess of sectors, or one that says there is none."""
    if transfers.excess_ratio < LEAST_EXCESS and not _any_matters(facts, lines):
        return [_describe_idle_bytes(columns, transfers) or _praise("Global accesses touch", transfers, "sectors")]
    excess = lines.actual - lines.ideal
    findings: list[Finding] = []
    for line in rank_lines(excess, _MOST_LINES):
        pattern = find_line_pattern(columns, transfers, lines, line)
        if pattern is Pattern.NEIGHBOURS or not _is_worth_a_sentence(
            facts, transfers, lines, line, has_any=bool(findings)
        ):
            continue
        text = say(
            "{kind} at {line} touch {access}: {pattern}. {cost}",
            kind=_name_kind(columns, int(lines.heaviest[line])).capitalize(),
            line=index.name_line(line),
            access=describe_access(lines, line, "sectors"),
            pattern=pattern.value,
            cost=_describe_cost(facts, excess[line], transfers, _GLOBAL_UNITS),
        )
        findings.append(_weigh(facts, text, REMEDIES[pattern], lines, line))
    return findings


def find_conflicts(
    facts: KernelFacts, columns: AccessColumns, transfers: Transfers, index: LineIndex, lines: LineTransfers
) -> list[Finding]:
    """One finding for each of the lines with the most bank conflicts, or one that says there are none."""
    if transfers.excess_ratio < LEAST_EXCESS and not _any_matters(facts, lines):
        return [_praise("Shared accesses take", transfers, "wavefronts")]
    excess = lines.actual - lines.ideal
    findings: list[Finding] = []
    for line in rank_lines(excess, _MOST_LINES):
        if lines.excess_ratio(line) < LEAST_EXCESS:
            continue
        if not _is_worth_a_sentence(facts, transfers, lines, line, has_any=bool(findings)):
            continue
        times = lines.times_ideal(line)
        conflict = NOTHING if times is None else say(": a {times}-way bank conflict on average", times=number(times))
        text = say(
            "Shared accesses at {line} take {access}{conflict}. {cost}",
            line=index.name_line(line),
            access=describe_access(lines, line, "wavefronts"),
            conflict=conflict,
            cost=_describe_cost(facts, excess[line], transfers, _SHARED_UNITS),
        )
        is_atomic = columns.is_atomic[lines.heaviest[line]]
        findings.append(_weigh(facts, text, _ATOMIC_REMEDY if is_atomic else CONFLICT_REMEDY, lines, line))
    return findings


def find_unused_bytes(facts: KernelFacts) -> list[Finding]:
    """How many different bytes of the loaded and stored sectors the threads use, where the profiler counted it and it is not most of them."""
    findings: list[Finding] = []
    for kind, metric in (("loads", _LOADED_BYTES), ("stores", _STORED_BYTES)):
        used = facts.metric(metric)
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


def find_local_traffic(facts: KernelFacts, columns: AccessColumns, index: LineIndex) -> list[Finding]:
    """One finding about local memory, naming the lines with most of it; none where there is none."""
    if columns.local_sectors is None or not columns.local_sectors.any():
        return []
    sums = index.sum_by_line(columns.local_sectors)
    total = float(sums.sum())
    whole = total + (float(columns.global_transfers.actual.sum()) if columns.global_transfers is not None else 0.0)
    waits = float(columns.waits[columns.is_local].sum())
    share = waits / facts.kernel.total_samples if facts.kernel.total_samples else None
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


def find_narrow_accesses(facts: KernelFacts, columns: AccessColumns) -> list[Finding]:
    """A finding where warps queue to issue memory instructions and most of them move four bytes a thread or fewer."""
    samples = facts.kernel.total_samples
    queued = facts.rows.count_reason("lg_throttle") / samples if samples else 0.0
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


def build_totals(columns: AccessColumns) -> Table | None:
    """What all accesses of the kernel move; None where nothing is known or nothing is moved."""
    rows: list[tuple[Cell, ...]] = []
    for name, transfers in (("global", columns.global_transfers), ("shared", columns.shared_transfers)):
        if transfers is not None and transfers.actual.any():
            requests = None if transfers.requests is None else int(transfers.requests.sum())
            total, ideal = int(transfers.actual.sum()), int(transfers.ideal.sum())
            rows.append((name, transfers.unit, requests, total, ideal, total - ideal, transfers.excess_ratio))
    if columns.local_sectors is not None and columns.local_sectors.any():
        requests = None if columns.executions is None else int(columns.executions[columns.local_sectors > 0].sum())
        rows.append(("local", "sectors", requests, int(columns.local_sectors.sum()), None, None, None))
    if not rows:
        return None
    return Table(
        title="What is moved",
        columns=(
            Column(name="memory"),
            Column(name="in"),
            Column(name="accesses", quantity=Quantity.COUNT),
            Column(name="moved", quantity=Quantity.COUNT),
            Column(name="at best", quantity=Quantity.COUNT),
            Column(name="excess", quantity=Quantity.COUNT),
            Column(name="share", quantity=Quantity.RATIO),
        ),
        rows=tuple(rows),
        note=say("Before any cache: what the addresses of the threads request. An access is one execution by a warp."),
    )


def build_width_table(columns: AccessColumns) -> tuple[Table, ...]:
    """How wide the executed accesses are; nothing without executions or accesses."""
    widths = count_widths(columns)
    total = sum(widths.values())
    if not total:
        return ()
    return (
        Table(
            title="Width of accesses",
            columns=(
                Column(name="per thread", quantity=Quantity.BYTES),
                Column(name="accesses", quantity=Quantity.COUNT),
                Column(name="share", quantity=Quantity.RATIO),
            ),
            rows=tuple((width, count, count / total) for width, count in widths.items()),
            note=say("Global, shared and local memory."),
        ),
    )


def _any_matters(facts: KernelFacts, lines: LineTransfers) -> bool:
    """A line that many samples are stalled on has excess, though the kernel as a whole has little."""
    samples = facts.kernel.total_samples
    excess = lines.actual - lines.ideal
    has_pattern = excess > LEAST_EXCESS * lines.actual
    return bool(samples and np.any(lines.waits[has_pattern] >= _MATTERS * samples))


def _is_worth_a_sentence(
    facts: KernelFacts, transfers: Transfers, lines: LineTransfers, line: int, *, has_any: bool
) -> bool:
    """It is the first, or its excess or the samples stalled on it are not small."""
    samples = facts.kernel.total_samples
    part = (lines.actual[line] - lines.ideal[line]) / transfers.actual.sum()
    waiting = lines.waits[line] * lines.excess_ratio(line) / samples if samples else 0.0
    return bool(not has_any or part >= LEAST_EXCESS or waiting >= LEAST_EXCESS)


def _describe_idle_bytes(columns: AccessColumns, transfers: Transfers) -> Finding | None:
    """Where the sectors are the fewest for the threads that take part, but these are few: how much of a sector they ask for."""
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


def _weigh(facts: KernelFacts, text: Sentence, remedy: Sentence, lines: LineTransfers, line: int) -> Finding:
    samples = facts.kernel.total_samples
    share = float(lines.waits[line]) / samples if samples else None
    stalled = (
        NOTHING if share is None else say("{share} of the samples are stalled on this line.", share=percent(share))
    )
    matters = share is not None and share * lines.excess_ratio(line) >= _MATTERS
    weight = Weight.HIGH if matters else Weight.PLAIN
    return Finding(text=join([text, stalled]), weight=weight, remedy=remedy, share_ratio=share)


def _describe_cost(facts: KernelFacts, excess: float, transfers: Transfers, units: Mapping[str, str]) -> Sentence:
    """The excess as a part of all transfers, and of the time of the busiest unit that makes them.

    An upper bound of that time, because not every transfer comes as far as that unit.
    """
    part = excess / float(transfers.actual.sum())
    text = say("The excess is {part} of all {unit} of the kernel.", part=percent(part), unit=transfers.unit)
    uses = [(use / _PERCENT, unit) for unit, metric in units.items() if (use := facts.metric(metric)) is not None]
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
