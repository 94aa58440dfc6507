"""Comparison of a measured kernel with its simulation: :func:`compare_simulated`.

Shares are of each side's own samples. The overlap of two lists of shares is what both have in common: the sum of the smaller ones, 1 where they are
equal.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer, Finding, Table, list_columns
from gpa_lsp.diagnosis.analyses.model import Limiter
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, duration, list_of, percent, say
from gpa_lsp.kernel.names import shorten_name
from gpa_lsp.report.model import InstructionColumns, KernelReport, LaunchReport

_Key = TypeVar("_Key", bound=Hashable)
_Line = tuple[str | None, int | None]  # File as compiled and line; None for code without lines

SidePair = tuple[float, float]  # Shares of the samples, 0..1: measured and simulated

_MOST_LINES = 30
_MOST_REASONS = 12
_MOST_ON_LINE = 4
_MOST_DIFFERENT = 3
_LEAST_DIFFERENCE = 0.02
_LEAST_RATIO = 0.005  # Of the samples, on either side: less is not listed

_ANALYSIS = "simulation"
_NOT_KNOWN = "unknown."  # In place of a verdict, which is a sentence


class SimulatedComparison(Struct, frozen=True, kw_only=True):
    """A kernel measured and simulated. Shares are ordered by the larger side."""

    measured: KernelReport  # as it was measured
    simulated: KernelReport  # as it was simulated
    reasons: Mapping[str, SidePair]  # stall reason → shares
    lines: Mapping[_Line, SidePair]  # line → shares of its own samples
    line_reasons: Mapping[_Line, Mapping[str, SidePair]]  # line → stall reason → the same
    instructions: Mapping[tuple[str, int], SidePair]  # section and offset → shares; both sides have the same code

    @property
    def name(self) -> str:
        """Short name."""
        return shorten_name(self.simulated.name)

    @property
    def alike(self) -> list[LaunchReport]:
        """Measured launches of the simulated shape; the measured samples also include those of others."""
        shape = _read_shape(self.simulated)
        return [one for one in self.measured.launches if _read_shape(one) == shape]

    @property
    def measured_ns(self) -> float | None:
        """Mean time of a launch of the simulated shape; None when unknown."""
        times = [one.duration_ns for one in self.alike if one.duration_ns is not None]
        return sum(times) / len(times) if times else None


def compare_simulated(
    measured: Sequence[KernelReport], simulated: Sequence[KernelReport]
) -> tuple[SimulatedComparison, ...]:
    """Kernels that are on both sides and have samples there, in the order of the simulated ones."""
    known = {one.mangled_name: one for one in reversed(measured) if one.total_samples and not one.is_simulated}
    return tuple(
        _compare(known[one.mangled_name], one) for one in simulated if one.mangled_name in known and one.total_samples
    )


def _compare(measured: KernelReport, simulated: KernelReport) -> SimulatedComparison:
    sides = [_share_lines(one) for one in (measured, simulated)]
    lines = _pair(*({place: sum(shares.values()) for place, shares in side.items()} for side in sides))
    return SimulatedComparison(
        measured=measured,
        simulated=simulated,
        reasons=_pair(_share_reasons(measured), _share_reasons(simulated)),
        lines=lines,
        line_reasons={place: _pair(*(side.get(place, {}) for side in sides)) for place in lines},
        instructions=_pair(_share_instructions(measured.instructions), _share_instructions(simulated.instructions)),
    )


def _read_shape(one: KernelReport | LaunchReport) -> tuple[object, object]:
    return one.configuration.grid, one.configuration.block


def find_overlap(pairs: Mapping[_Key, SidePair]) -> float:
    """Overlap of both sides: the sum of the smaller shares.

    >>> find_overlap({"wait": (0.75, 0.5), "selected": (0.25, 0.5)})
    0.75
    """
    return sum(map(min, pairs.values()))


def find_hottest(pairs: Mapping[_Key, SidePair]) -> tuple[_Key, _Key] | None:
    """Keys with the largest measured and the largest simulated share; None for no keys."""
    if not pairs:
        return None
    return max(pairs, key=lambda key: pairs[key][0]), max(pairs, key=lambda key: pairs[key][1])


def _agrees(pairs: Mapping[_Key, SidePair]) -> bool:
    """Whether both sides have the same hottest key."""
    hottest = find_hottest(pairs)
    return hottest is not None and hottest[0] == hottest[1]


def _name_line(place: _Line) -> str:
    """``file:line`` without folders."""
    file, line = place
    return "code without lines" if file is None else f"{file.replace(chr(92), '/').rpartition('/')[2]}:{line}"


def _pair(measured: Mapping[_Key, float], simulated: Mapping[_Key, float]) -> dict[_Key, SidePair]:
    pairs = {key: (measured.get(key, 0.0), simulated.get(key, 0.0)) for key in (*measured, *simulated)}
    return dict(sorted(pairs.items(), key=lambda item: -max(item[1])))


def _share_reasons(kernel: KernelReport) -> dict[str, float]:
    return {reason: one.all_samples / kernel.total_samples for reason, one in kernel.by_reason.items()}


def _share_instructions(columns: InstructionColumns) -> dict[tuple[str, int], float]:
    sums = columns.all_samples.sum(axis=1)
    total = max(1, int(sums.sum()))
    return {
        (columns.functions[int(columns.function_index[row])], int(columns.pc_offsets[row])): int(sums[row]) / total
        for row in np.flatnonzero(sums).tolist()
    }


def _share_lines(kernel: KernelReport) -> dict[_Line, dict[str, float]]:
    """Line → stall reason → share of its own samples; code without lines is one line."""
    found: dict[_Line, dict[str, float]] = {}
    for row in kernel.lines:
        shares = found.setdefault((row.file, row.line), {})
        for reason, one in row.by_reason.items():
            shares[reason] = shares.get(reason, 0.0) + one.all_samples / kernel.total_samples
    return {place: shares for place, shares in found.items() if shares}


def answer_overview(found: Sequence[SimulatedComparison]) -> Answer:
    """Summary of several kernels, those that took longest first."""
    ordered = sorted(found, key=lambda one: -(one.measured_ns or 0.0))
    columns = list_columns(
        "kernel | measured [ns] | simulated [ns] | same reason [ratio] | same line [ratio] | same instruction [ratio]"
    )
    rows = tuple(
        (
            one.name,
            one.measured_ns,
            one.simulated.duration_ns,
            find_overlap(one.reasons),
            find_overlap(one.lines),
            find_overlap(one.instructions),
        )
        for one in ordered
    )
    lines = sum(_agrees(one.lines) for one in found)
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
    """Comparison of one kernel as tables."""
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
        reasons=percent(find_overlap(found.reasons)),
        lines=percent(find_overlap(found.lines)),
        instructions=percent(find_overlap(found.instructions)),
    )


def _list_findings(found: SimulatedComparison) -> tuple[Sentence, ...]:
    other_launches = len(found.measured.launches) - len(found.alike)
    return (
        _describe_times(found),
        _describe_hottest(found),
        _describe_differences(found),
        _describe_limiters(found.measured.limiter, found.simulated.limiter),
        say(
            "Shares are of each side's own samples: {measured} measured, {simulated} simulated.",
            measured=count(found.measured.total_samples),
            simulated=count(found.simulated.total_samples),
        ),
        say(
            "The measured samples include those of {others} with another shape.",
            others=count(other_launches, "launch"),
        )
        if other_launches
        else NOTHING,
    )


def _describe_hottest(found: SimulatedComparison) -> Sentence:
    """Hottest lines of both sides, and whether the hottest instruction is the same."""
    hottest = find_hottest(found.lines)
    if hottest is None:
        return NOTHING
    measured, simulated = map(_name_line, hottest)
    if hottest[0] == hottest[1]:
        said = say("The hottest line is {line} on both sides", line=measured)
    else:
        said = say(
            "The hottest line is {measured} as measured and {simulated} as simulated",
            measured=measured,
            simulated=simulated,
        )
    same = "is" if _agrees(found.instructions) else "is not"
    return say("{lines}; the hottest instruction {same} the same.", lines=said, same=same)


def _describe_times(found: SimulatedComparison) -> Sentence:
    measured_ns, simulated_ns = found.measured_ns, found.simulated.duration_ns
    if not measured_ns or simulated_ns is None:
        return NOTHING
    change = simulated_ns / measured_ns - 1
    return say(
        "It took {measured} and was simulated to take {simulated}, {change} {direction}.",
        measured=duration(measured_ns),
        simulated=duration(simulated_ns),
        change=percent(abs(change)),
        direction="more" if change >= 0 else "less",
    )


def _describe_differences(found: SimulatedComparison) -> Sentence:
    """Places with the largest differences between both sides."""
    pairs = [
        (_name_line(place), reason, pair)
        for place, reasons in found.line_reasons.items()
        for reason, pair in reasons.items()
    ]
    pairs.sort(key=lambda one: -abs(one[2][0] - one[2][1]))
    named = [
        say(
            "{reason} on {place} ({measured} measured, {simulated} simulated)",
            reason=reason,
            place=place,
            measured=percent(pair[0]),
            simulated=percent(pair[1]),
        )
        for place, reason, pair in pairs[:_MOST_DIFFERENT]
        if abs(pair[0] - pair[1]) >= _LEAST_DIFFERENCE
    ]
    if not named:
        return NOTHING
    return say("They are furthest apart in {places}.", places=list_of(named))


def _describe_limiters(measured: Limiter | None, simulated: Limiter | None) -> Sentence:
    names = [_NOT_KNOWN if one is None else one.verdict or _NOT_KNOWN for one in (measured, simulated)]
    return say("What limits it, measured: {measured} Simulated: {simulated}", measured=names[0], simulated=names[1])


def _tabulate_reasons(found: SimulatedComparison) -> Table:
    columns = list_columns("stall reason", _SIDES)
    rows = [
        (reason, *pair) for reason, pair in list(found.reasons.items())[:_MOST_REASONS] if max(pair) >= _LEAST_RATIO
    ]
    return Table(title="Warp states", columns=columns, rows=tuple(rows))


_SIDES = "measured [ratio] | simulated [ratio]"


def _tabulate_lines(found: SimulatedComparison) -> Table:
    """A row per line, and one per its largest stall reasons."""
    rows: list[tuple[str, str, float, float]] = []
    for place, total in list(found.lines.items())[:_MOST_LINES]:
        if max(total) < _LEAST_RATIO:
            break
        rows.append((_name_line(place), "all", *total))
        rows += [
            ("", reason, *pair)
            for reason, pair in list(found.line_reasons[place].items())[:_MOST_ON_LINE]
            if max(pair) >= _LEAST_RATIO
        ]
    columns = list_columns("line | stall reason", _SIDES)
    return Table(title="Source lines", columns=columns, rows=tuple(rows))
