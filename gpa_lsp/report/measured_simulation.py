"""A kernel as it was measured beside the same as it was simulated: :func:`compare_simulated`. For people who doubt the model, and for us.

Shares are of each side's own samples. The overlap of two lists of shares is what both have in common: the sum of the smaller ones, 1 where they are
equal.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer, Column, Finding, Table
from gpa_lsp.diagnosis.analyses.limiter.model import Limiter
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, duration, list_of, percent, say
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.model import InstructionColumns, KernelReport

_Key = TypeVar("_Key", bound=Hashable)

_MOST_LINES = 30
_MOST_REASONS = 12
_MOST_ON_LINE = 4
_MOST_DIFFERENT = 3
_LEAST_DIFFERENCE = 0.02
_LEAST_RATIO = 0.005  # Of the samples, on either side: less is not listed

_ANALYSIS = "simulation"
_NOT_KNOWN = "unknown."  # In place of a verdict, which is a sentence


class SidePair(Struct, frozen=True, kw_only=True):
    """A share of the samples on either side, 0..1."""

    measured: float
    simulated: float


class LinePair(Struct, frozen=True, kw_only=True):
    """One line of a source."""

    file: str | None  # as compiled; None for code without lines
    line: int | None  # 1-based; None in the same case
    total: SidePair  # its own samples, of the kernel's
    by_reason: Mapping[str, SidePair]  # stall reason → the same, largest on either side first

    @property
    def place(self) -> str:
        """For people: the file's name and the line."""
        if self.file is None:
            return "code without lines"
        return f"{self.file.replace(chr(92), '/').rpartition('/')[2]}:{self.line}"


class SimulatedComparison(Struct, frozen=True, kw_only=True):
    """A kernel on both sides."""

    name: str  # of the kernel, for people
    measured_ns: float | None  # a launch of the shape that was simulated; None when unknown
    simulated_ns: float | None  # the simulated launch; None when unknown
    reasons: Mapping[str, SidePair]  # stall reason → shares, largest on either side first
    lines: tuple[LinePair, ...]  # largest on either side first
    reason_overlap: float  # of the stall reasons
    line_overlap: float  # of the lines
    instruction_overlap: float  # of the instructions
    has_same_line: bool  # the hottest line is the same
    has_same_instruction: bool  # the hottest instruction is the same
    measured_limiter: Limiter | None  # None when unknown
    simulated_limiter: Limiter | None  # None when unknown
    measured_samples: int  # that the measured shares are of
    simulated_samples: int  # that the simulated shares are of
    other_launches: int = 0  # measured launches of other shapes, whose samples are among the measured ones


def compare_simulated(
    measured: Sequence[KernelReport], simulated: Sequence[KernelReport]
) -> tuple[SimulatedComparison, ...]:
    """Kernels that are on both sides and have samples there, in the order of the simulated ones."""
    known = {one.mangled_name: one for one in reversed(measured) if one.total_samples and not one.is_simulated}
    return tuple(
        _compare(known[one.mangled_name], one) for one in simulated if one.mangled_name in known and one.total_samples
    )


def _compare(measured: KernelReport, simulated: KernelReport) -> SimulatedComparison:
    instructions = _pair(_share_instructions(measured.instructions), _share_instructions(simulated.instructions))
    lines = _pair_lines(measured, simulated)
    of_lines = {(one.file, one.line): one.total for one in lines}
    reasons = _pair(_share_reasons(measured), _share_reasons(simulated))
    shape = (simulated.configuration.grid, simulated.configuration.block)
    alike = [one for one in measured.launches if (one.configuration.grid, one.configuration.block) == shape]
    times = [one.duration_ns for one in alike if one.duration_ns is not None]
    return SimulatedComparison(
        name=shorten_name(simulated.name),
        measured_ns=sum(times) / len(times) if times else None,
        simulated_ns=simulated.duration_ns,
        reasons=reasons,
        lines=lines,
        reason_overlap=find_overlap(reasons.values()),
        line_overlap=find_overlap(of_lines.values()),
        instruction_overlap=find_overlap(instructions.values()),
        has_same_line=_agrees(of_lines),
        has_same_instruction=_agrees(instructions),
        measured_limiter=measured.limiter,
        simulated_limiter=simulated.limiter,
        measured_samples=measured.total_samples,
        simulated_samples=simulated.total_samples,
        other_launches=len(measured.launches) - len(alike),
    )


def find_overlap(pairs: Iterable[SidePair]) -> float:
    """What both sides have in common.

    >>> find_overlap([SidePair(measured=0.75, simulated=0.5), SidePair(measured=0.25, simulated=0.5)])
    0.75
    """
    return sum(min(one.measured, one.simulated) for one in pairs)


def _agrees(pairs: Mapping[_Key, SidePair]) -> bool:
    """Both sides have most of the same."""
    if not pairs:
        return False
    return max(pairs, key=lambda key: pairs[key].measured) == max(pairs, key=lambda key: pairs[key].simulated)


def _pair(measured: Mapping[_Key, float], simulated: Mapping[_Key, float]) -> dict[_Key, SidePair]:
    keys = dict.fromkeys((*measured, *simulated))
    pairs = {key: SidePair(measured=measured.get(key, 0.0), simulated=simulated.get(key, 0.0)) for key in keys}
    return dict(sorted(pairs.items(), key=lambda item: -max(item[1].measured, item[1].simulated)))


def _share_reasons(kernel: KernelReport) -> dict[str, float]:
    return {reason: one.all_samples / kernel.total_samples for reason, one in kernel.by_reason.items()}


def _share_instructions(columns: InstructionColumns) -> dict[tuple[str, int], float]:
    """(section, offset) → share; both sides have the same code."""
    sums = columns.all_samples.sum(axis=1)
    total = max(1, int(sums.sum()))
    return {
        (columns.functions[int(columns.function_index[row])], int(columns.pc_offsets[row])): int(sums[row]) / total
        for row in np.flatnonzero(sums).tolist()
    }


def _pair_lines(measured: KernelReport, simulated: KernelReport) -> tuple[LinePair, ...]:
    sides = [_share_lines(one) for one in (measured, simulated)]
    found = []
    for key, total in _pair(
        *({place: sum(shares.values()) for place, shares in side.items()} for side in sides)
    ).items():
        by_reason = _pair(*(side.get(key, {}) for side in sides))
        found.append(LinePair(file=key[0], line=key[1], total=total, by_reason=by_reason))
    return tuple(found)


def _share_lines(kernel: KernelReport) -> dict[tuple[str | None, int | None], dict[str, float]]:
    """(file, line) → stall reason → share of its own samples; code without lines of all functions together."""
    found: dict[tuple[str | None, int | None], dict[str, float]] = {}
    for row in kernel.lines:
        shares = found.setdefault((row.file, row.line), {})
        for reason, one in row.by_reason.items():
            shares[reason] = shares.get(reason, 0.0) + one.all_samples / kernel.total_samples
    return {place: shares for place, shares in found.items() if shares}


def answer_overview(found: Sequence[SimulatedComparison]) -> Answer:
    """Several kernels, those that took longest first."""
    ordered = sorted(found, key=lambda one: -(one.measured_ns or 0.0))
    columns = (
        Column(name="kernel"),
        *(Column(name=name, quantity=Quantity.NS) for name in ("measured", "simulated")),
        *(Column(name=name, quantity=Quantity.RATIO) for name in ("same reason", "same line", "same instruction")),
    )
    rows = tuple(
        (
            one.name,
            one.measured_ns,
            one.simulated_ns,
            one.reason_overlap,
            one.line_overlap,
            one.instruction_overlap,
        )
        for one in ordered
    )
    lines = sum(one.has_same_line for one in found)
    return Answer(
        analysis=_ANALYSIS,
        title="Measured and simulated",
        summary=say(
            "{kernels} on both sides; of {lines} the hottest line is the same.",
            kernels=count(len(found), "kernel"),
            lines=count(lines),
        ),
        tables=(Table(title="Kernels", columns=columns, rows=rows),),
    )


def answer_comparison(found: SimulatedComparison) -> Answer:
    """Both sides as tables."""
    return Answer(
        analysis=_ANALYSIS,
        title=f"{found.name}: measured and simulated",
        summary=_summarise(found),
        findings=tuple(Finding(text=text) for text in _list_findings(found) if text),
        tables=(_tabulate_reasons(found), _tabulate_lines(found)),
    )


def _summarise(found: SimulatedComparison) -> Sentence:
    return say(
        "{reasons} of the samples have the same stall reason on both sides, {lines} are on the same line, {instructions} at the same instruction.",
        reasons=percent(found.reason_overlap),
        lines=percent(found.line_overlap),
        instructions=percent(found.instruction_overlap),
    )


def _list_findings(found: SimulatedComparison) -> tuple[Sentence, ...]:
    return (
        _describe_times(found),
        _describe_hottest(found),
        _describe_differences(found),
        _describe_limiters(found.measured_limiter, found.simulated_limiter),
        say(
            "Shares are of each side's own samples: {measured} measured, {simulated} simulated.",
            measured=count(found.measured_samples),
            simulated=count(found.simulated_samples),
        ),
        say(
            "The measured samples include those of {others} with another shape.",
            others=count(found.other_launches, "launch"),
        )
        if found.other_launches
        else NOTHING,
    )


def _describe_hottest(found: SimulatedComparison) -> Sentence:
    """Lines by their names; of instructions, whether it is the same."""
    if not found.lines:
        return NOTHING
    measured = max(found.lines, key=lambda one: one.total.measured)
    simulated = max(found.lines, key=lambda one: one.total.simulated)
    if found.has_same_line:
        said = say("The hottest line is {line} on both sides", line=measured.place)
    else:
        said = say(
            "The hottest line is {measured} as measured and {simulated} as simulated",
            measured=measured.place,
            simulated=simulated.place,
        )
    same = "is" if found.has_same_instruction else "is not"
    return say("{lines}; the hottest instruction {same} the same.", lines=said, same=same)


def _describe_times(found: SimulatedComparison) -> Sentence:
    if not found.measured_ns or found.simulated_ns is None:
        return NOTHING
    change = found.simulated_ns / found.measured_ns - 1
    return say(
        "It took {measured} and was simulated to take {simulated}, {change} {direction}.",
        measured=duration(found.measured_ns),
        simulated=duration(found.simulated_ns),
        change=percent(abs(change)),
        direction="more" if change >= 0 else "less",
    )


def _describe_differences(found: SimulatedComparison) -> Sentence:
    """Where both sides are furthest apart."""
    pairs = [(line.place, reason, pair) for line in found.lines for reason, pair in line.by_reason.items()]
    pairs.sort(key=lambda one: -abs(one[2].measured - one[2].simulated))
    named = [
        say(
            "{reason} on {place} ({measured} measured, {simulated} simulated)",
            reason=reason,
            place=place,
            measured=percent(pair.measured),
            simulated=percent(pair.simulated),
        )
        for place, reason, pair in pairs[:_MOST_DIFFERENT]
        if abs(pair.measured - pair.simulated) >= _LEAST_DIFFERENCE
    ]
    if not named:
        return NOTHING
    return say("They are furthest apart in {places}.", places=list_of(named))


def _describe_limiters(measured: Limiter | None, simulated: Limiter | None) -> Sentence:
    names = [_NOT_KNOWN if one is None else one.verdict or _NOT_KNOWN for one in (measured, simulated)]
    return say("What limits it, measured: {measured} Simulated: {simulated}", measured=names[0], simulated=names[1])


def _tabulate_reasons(found: SimulatedComparison) -> Table:
    columns = (Column(name="stall reason"), *_SIDES)
    rows = [
        (reason, one.measured, one.simulated)
        for reason, one in list(found.reasons.items())[:_MOST_REASONS]
        if max(one.measured, one.simulated) >= _LEAST_RATIO
    ]
    return Table(title="Warp states", columns=columns, rows=tuple(rows))


_SIDES = (Column(name="measured", quantity=Quantity.RATIO), Column(name="simulated", quantity=Quantity.RATIO))


def _tabulate_lines(found: SimulatedComparison) -> Table:
    """A row for each line, and one for each of its largest stall reasons."""
    rows: list[tuple[str, str, float, float]] = []
    for one in found.lines[:_MOST_LINES]:
        if max(one.total.measured, one.total.simulated) < _LEAST_RATIO:
            break
        rows.append((one.place, "all", one.total.measured, one.total.simulated))
        rows += [
            ("", reason, pair.measured, pair.simulated)
            for reason, pair in list(one.by_reason.items())[:_MOST_ON_LINE]
            if max(pair.measured, pair.simulated) >= _LEAST_RATIO
        ]
    columns = (Column(name="line"), Column(name="stall reason"), *_SIDES)
    return Table(title="Source lines", columns=columns, rows=tuple(rows))
