"""Starlight's Table 1: bottlenecks, what is suggested against them, which stalls count, and where that takes the kernel on the roofline chart.

The paper does not say which stalls belong to which row; ``starlight.toml`` does, with a reason each.
Starlight multiplies the measured rate by the speedup (Equation 4) and looks at no ceiling. Here the arrow ends at the
ceiling, and the uncapped value is told beside it.
"""

from collections.abc import Iterable, Iterator
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct, convert

from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.diagnosis.analyses.answers import Movement
from gpa_lsp.diagnosis.analyses.line_sums import index_lines
from gpa_lsp.diagnosis.analyses.model import KernelRoofline, Point
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Amount, Sentence, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind

SUGGESTIONS_TITLE = "Starlight's suggestions"
OUR_ADVICE = "our advice"  # Heading of the column that names our optimizers for the same change, separated by ``, ``
NAMES_BETWEEN = ", "


class Bottleneck(Enum):
    """A row of Table 1; the values are keys of the data."""

    LATENCY = "latency"
    MEMORY = "memory"
    RESOURCES = "resources"
    SYNCHRONISATION = "synchronisation"
    LOW_INTENSITY = "low_intensity"  # The roofline's row: no stall feeds it


# How a suggestion moves the kernel's point on the chart (Table 1, last column): more operations per second with the same bytes, that and more per
# byte, or more per byte alone
Direction = Literal["up", "up_right", "right"]


class WaiterKind(Enum):
    """Kind of instruction that a stall was sampled at."""

    MEMORY = "memory"
    OTHER = "other"
    UNKNOWN = "unknown"  # Without a disassembly, or with an unknown opcode


class Part(StrEnum):
    """Part of the samples outside the rows of Table 1; the values are names for people."""

    OPERATION = "issued"  # N_op
    NONE = "not attributed"  # A stall that no row is about


class Row(Struct, frozen=True, kw_only=True):
    """A row of Table 1."""

    bottleneck: Bottleneck  # which
    title: str  # as the paper names it
    direction: Direction  # how its remedies move the kernel


class Suggestion(Struct, frozen=True, kw_only=True):
    """One suggestion of Table 1."""

    bottleneck: Bottleneck  # its row
    title: str  # in our words
    counterparts: tuple[str, ...]  # names of our optimizers for the same remedy, the nearest first
    nearest: str = ""  # how they differ from it, one clause; empty where they do not
    halves_bytes: bool = False  # it makes values smaller, which is reckoned per halving
    narrows_type: bool = False  # the operations become those of a narrower type


class Feed(Struct, frozen=True, kw_only=True):
    """Rule that assigns samples of one stall reason to a row or part."""

    reason: str  # Nsight Compute's spelling
    kind: WaiterKind | None = None  # of the waiting instruction; None for any
    bottleneck: str  # of a row; or ``operation`` or ``none``
    because: str  # why, one clause

    @property
    def target(self) -> Bottleneck | Part:
        """Row or part."""
        parts = {"operation": Part.OPERATION, "none": Part.NONE}
        return parts[self.bottleneck] if self.bottleneck in parts else Bottleneck(self.bottleneck)


class _Table(Struct, frozen=True, kw_only=True):
    """``starlight.toml``."""

    bottlenecks: tuple[Row, ...]
    suggestions: tuple[Suggestion, ...]
    feeds: tuple[Feed, ...]


@cache
def _read_table() -> _Table:
    return convert(read_own_table(Path(__file__).with_suffix(".toml")), _Table)


def list_rows() -> tuple[Row, ...]:
    """The rows of Table 1, in its order."""
    return _read_table().bottlenecks


def list_suggestions() -> tuple[Suggestion, ...]:
    """The suggestions of Table 1, in its order."""
    return _read_table().suggestions


def list_feeds() -> tuple[Feed, ...]:
    """List the rules of stall reasons, in the order of the table."""
    return _read_table().feeds


def find_row(bottleneck: Bottleneck) -> Row:
    """The row of a bottleneck."""
    return next(row for row in list_rows() if row.bottleneck is bottleneck)


def find_target(reason: str, kind: WaiterKind) -> Bottleneck | Part:
    """Row or part that a sample of a reason, at an instruction of a kind, counts for; unknown reasons are not attributed.

    >>> find_target("mio_throttle", WaiterKind.MEMORY), find_target("selected", WaiterKind.OTHER)
    (<Bottleneck.MEMORY: 'memory'>, <Part.OPERATION: 'issued'>)
    """
    found = (feed.target for feed in list_feeds() if feed.reason == reason and feed.kind in (None, kind))
    return next(found, Part.NONE)


def classify_waiter(opcode: Opcode | None) -> WaiterKind:
    """The kind of an instruction by the facts of its opcode; exchanges between lanes are no memory accesses.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> [classify_waiter(describe_mnemonic(name)).value for name in ("LDS", "MUFU.RCP", "SHFL.BFLY", "FROB")]
    ['memory', 'other', 'other', 'unknown']
    """
    if opcode is None or not opcode.is_known:
        return WaiterKind.UNKNOWN
    is_access = opcode.memory is not None and opcode.memory is not MemorySpace.WARP and opcode.access is not None
    return WaiterKind.MEMORY if is_access else WaiterKind.OTHER


_LONGEST_NAME = 40  # Characters of a mangled name that are written

_TARGETS: tuple[Bottleneck | Part, ...] = (*Part, *Bottleneck)
_KINDS = tuple(WaiterKind)


class LineSamples(Struct, frozen=True, kw_only=True):
    """The samples of one source line, or of one instruction that has none."""

    line: SourceLine | None  # None for an instruction without a line
    place: Sentence  # the same in words; for an instruction without a line its offset, and its function where that is not the kernel
    operations: int  # N_op
    stalls: dict[Bottleneck, int]  # N by row of Table 1; rows without a sample are missing
    unattributed: int  # stalls that no row is about

    @property
    def all_stalls(self) -> int:
        """N_stall."""
        return self.unattributed + sum(self.stalls.values())

    @property
    def samples(self) -> int:
        """N_op + N_stall."""
        return self.operations + self.all_stalls


class LineCounts(ColumnRecord, frozen=True, kw_only=True):
    """The samples of a kernel, by line and target; m lines."""

    counts: npt.NDArray[np.int64]  # int64[m, t], samples by line and target (parts, then the rows of Table 1)
    hottest: npt.NDArray[np.int64]  # int64[m], the row of each line's instruction with most samples
    lines: tuple[SourceLine | None, ...]  # of each row in ``hottest``; None for an instruction without one
    _subject: Subject

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def total(self) -> int:
        """T: all samples of the kernel."""
        return int(self.counts.sum())

    def count(self, target: Bottleneck | Part) -> int:
        """Samples of all lines that count as something."""
        return int(self.counts[:, _TARGETS.index(target)].sum())

    def describe(self, number: int) -> LineSamples:
        """One line."""
        by_target = dict(zip(_TARGETS, self.counts[number].tolist(), strict=True))
        row = int(self.hottest[number])
        function = self._subject.rows.function_of(row)
        pc_offset = int(self._subject.rows.pc_offsets[row])
        is_own = function is self._subject.kernel.functions[0]
        return LineSamples(
            line=self.lines[number],
            place=self._name_place(self.lines[number], pc_offset, "" if is_own else function.name),
            operations=by_target[Part.OPERATION],
            stalls={one: by_target[one] for one in Bottleneck if by_target[one]},
            unattributed=by_target[Part.NONE],
        )

    def _name_place(self, line: SourceLine | None, pc_offset: int, function: str) -> Sentence:
        if line is not None:
            return say("{place}", place=index_lines(self._subject).make_place(line.file, line.line))
        of = f" of {function[:_LONGEST_NAME]}" if function else ""
        return say("instruction {offset}{of}", offset=f"{pc_offset:#x}", of=of)

    def find_heavy(self, bottleneck: Bottleneck, least: float) -> Iterator[LineSamples]:
        """Lines with at least so many stalls of one row of Table 1."""
        for number in np.flatnonzero(self.counts[:, _TARGETS.index(bottleneck)] >= max(least, 1)).tolist():
            yield self.describe(number)


def count_lines(subject: Subject) -> LineCounts:
    """The samples of a kernel by line (by instruction where there is no line); all of them are there."""
    samples = subject.rows.all_samples
    rows = np.flatnonzero(samples.sum(axis=1)) if samples.size else np.zeros(0, dtype=np.int64)
    keys, first, group = np.unique(subject.rows.own_lines[rows], return_index=True, return_inverse=True)
    by_row = _count_targets(subject, rows)
    counts = np.zeros((len(keys), len(_TARGETS)), dtype=np.int64)
    np.add.at(counts, group, by_row)
    # Ascending samples within each line, so that the last one written is the hottest.
    hottest = rows[first]
    order = np.argsort(by_row.sum(axis=1), kind="stable")
    hottest[group[order]] = rows[order]
    places = map(subject.rows.place, hottest.tolist())
    lines = tuple(place if place is not None and place.line > 0 else None for place in places)
    return LineCounts(counts=counts, hottest=hottest, lines=lines, _subject=subject)


def _count_targets(subject: Subject, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[m, t]: samples of each row by target."""
    counted = np.zeros((len(rows), len(_TARGETS)), dtype=np.int64)
    if not len(rows):
        return counted
    unknown = _KINDS.index(WaiterKind.UNKNOWN)
    kinds = subject.rows.spread_by_mnemonic(_number_kind, unknown)[rows]
    taken = subject.rows.all_samples[rows]
    for number, kind in enumerate(_KINDS):
        at = kinds == number
        for column, reason in enumerate(subject.kernel.reasons):
            counted[at, _TARGETS.index(find_target(reason, kind))] += taken[at, column]
    return counted


def _number_kind(mnemonic: str) -> int:
    return _KINDS.index(classify_waiter(describe_mnemonic(mnemonic)))


# Starlight's Equations 2 to 4, as published: what part of the run a line takes, what resolving its stalls gains, and what rate that makes.
#
# N_op of a line are its samples in which the warp issued an instruction (``selected``), and N_stall all its other samples: the paper counts
# operations and stalls by sampling alone, and every sample is one or the other, so that both together are all samples T. Equation 3 then reads
# T / (T − M), which is GPA's Equation 2 of the same M. Two things it leaves out, and GPA does not: that stalls can be hidden behind other warps
# (no bound by the samples in which something was issued), and that a stalled instruction suffers from another one (no def-use).
#
# Source: A. Zeni et al., "Starlight: A kernel optimizer for GPU processing", section 4.4.


def measure_line_share(operations: float, stalls: float, total: float) -> float:
    """Equation 2: the part of the run that a line takes, 0..1 (the paper writes percent).

    Raises:
        ValueError: a negative count, or more in the line than there is.

    >>> measure_line_share(20, 180, 1000)
    0.2
    """
    _check(operations, stalls, operations + stalls, total)
    return (operations + stalls) / total


def estimate_line_speedup(total: float, removed: float) -> float:
    """Equation 3: run time before by run time after, when the stalls of one kind are gone from a line, S = T / (T − N).

    Raises:
        ValueError: a negative count, or not less than the total: nothing would be left to run.

    >>> estimate_line_speedup(1000, 200)
    1.25
    """
    _check(removed, 0, removed, total)
    if removed >= total:
        raise ValueError(f"of {total} samples {removed} cannot go: nothing would be left")
    return total / (total - removed)


def estimate_new_rate(speedup: float, rate_per_s: float) -> float:
    """Equation 4: the rate of operations after a change that leaves their number as it is, in operations per second.

    >>> estimate_new_rate(1.25, 800e9)
    1000000000000.0
    """
    return speedup * rate_per_s


def _check(first: float, second: float, part: float, total: float) -> None:
    if first < 0 or second < 0 or part > total or total <= 0:
        raise ValueError(f"{part} of {total} samples is no part of them")


_OUTERMOST_FIRST = (MemoryLevel.DRAM, MemoryLevel.L2, MemoryLevel.L1, MemoryLevel.SHARED)
# Type → one of half its size (TF32 is stored in four bytes)
_NARROWER = {
    OperationKind.FP64: OperationKind.FP32,
    OperationKind.FP32: OperationKind.FP16,
    OperationKind.TENSOR_FP64: OperationKind.TENSOR_TF32,
    OperationKind.TENSOR_TF32: OperationKind.TENSOR_FP16,
    OperationKind.TENSOR_FP16: OperationKind.TENSOR_FP8,
    OperationKind.TENSOR_BF16: OperationKind.TENSOR_FP8,
    OperationKind.TENSOR_FP8: OperationKind.TENSOR_FP4,
}


class Position(Struct, frozen=True, kw_only=True):
    """Position of a kernel on the chart: its dominant type over the level whose ceiling is lowest for it."""

    point: Point  # of that type and level
    others: tuple[Point, ...]  # points of the same type over the other levels
    peak_ops_per_s: float | None  # of the type; None when unknown
    bytes_per_s: float | None  # bandwidth of the level; None when unknown
    machine: Machine  # for other types

    @property
    def kind(self) -> OperationKind:
        """The dominant type."""
        return self.point.kind

    @property
    def roof_ops_per_s(self) -> float | None:
        """Attainable rate with the bytes as they are, the lowest over all levels; None when no ceiling is known."""
        known = [one.attainable_ops_per_s for one in (self.point, *self.others) if one.attainable_ops_per_s is not None]
        return min(known, default=None)


class Outcome(Struct, frozen=True, kw_only=True):
    """Effect of a suggestion on the kernel's rate."""

    movement: Movement  # the arrow
    uncapped_ops_per_s: float  # Equation 4, above any ceiling; for a movement to the right the rate as it is
    words: Sentence  # the movement in words and numbers, one clause


def make_rate(rate_per_s: float, kind: OperationKind) -> Amount:
    """Operations of a kind per second.

    >>> str(make_rate(1.2345e12, OperationKind.FP32)), str(make_rate(8e8, OperationKind.INT32))
    ('1.23 TFLOP/s', '800 MIOP/s')
    """
    return Amount(value=rate_per_s, quantity=Quantity(f"{kind.operation}/s"))


def make_intensity(intensity: float) -> Amount:
    """Operations per byte."""
    return Amount(value=intensity, quantity=Quantity.OPS_PER_BYTE)


def find_position(roofline: KernelRoofline | None) -> Position | None:
    """Find a kernel's position; None where no operation was counted or no level was measured."""
    whole = None if roofline is None else roofline.whole
    if roofline is None or whole is None or whole.dominant is None:
        return None
    points = [point for point in whole.points if point.kind is whole.dominant and point.intensity > 0]
    if not points:
        return None

    def rank(point: Point) -> tuple[float, int]:
        attainable = point.attainable_ops_per_s
        return (float("inf") if attainable is None else attainable, _OUTERMOST_FIRST.index(point.level))

    lowest = min(points, key=rank)
    peak, bandwidth = roofline.machine.find_peak(whole.dominant), roofline.machine.find_bandwidth(lowest.level)
    return Position(
        point=lowest,
        others=tuple(point for point in points if point is not lowest),
        peak_ops_per_s=None if peak is None else peak.ops_per_s,
        bytes_per_s=None if bandwidth is None else bandwidth.bytes_per_s,
        machine=roofline.machine,
    )


def move(position: Position, direction: Direction, speedup: float, label: str) -> Outcome:
    """The movement of a remedy that makes the kernel faster: up, or up and to the right.

    With the bytes unchanged the lowest ceiling over all levels ends the arrow. Where bytes are saved, Starlight does not say how many: the arrow
    goes as far to the right as the new rate demands under the level's bandwidth, and only the peak ends it.
    """
    point, kind = position.point, position.kind
    uncapped = estimate_new_rate(speedup, point.achieved_ops_per_s)
    saves_bytes = direction == "up_right"
    roof = position.peak_ops_per_s if saves_bytes else position.roof_ops_per_s
    # A point may lie a little above its ceiling, since its counters were taken in several passes.
    rate = uncapped if roof is None else max(point.achieved_ops_per_s, min(uncapped, roof))
    needed = 0.0 if not saves_bytes or not position.bytes_per_s else rate / position.bytes_per_s
    intensity = max(point.intensity, needed)
    words = say(
        "up from {old} to {new} {path}{uncapped}",
        old=make_rate(point.achieved_ops_per_s, kind),
        new=make_rate(rate, kind),
        path=_describe_path(position, intensity, roof),
        uncapped=say(", Equation 4 alone gives {rate}", rate=make_rate(uncapped, kind)) if uncapped > rate else NOTHING,
    )
    return Outcome(movement=_draw(point, intensity, rate, label), uncapped_ops_per_s=uncapped, words=words)


def _describe_path(position: Position, intensity: float, roof: float | None) -> Sentence:
    """Describe how far to the right an arrow goes, and what ends it: the peak, or without a move to the right the lowest ceiling."""
    point = position.point
    if intensity > point.intensity:
        return say(
            "and right from {old} to at least {new}, so that {level} can follow; the peak is {peak}",
            old=make_intensity(point.intensity),
            new=make_intensity(intensity),
            level=point.level,
            peak=_name_rate(roof, position.kind),
        )
    return say(
        "at {intensity} of {level}; the ceiling there is {ceiling}",
        intensity=make_intensity(point.intensity),
        level=point.level,
        ceiling=_name_rate(position.roof_ops_per_s, position.kind),
    )


def _name_rate(rate_per_s: float | None, kind: OperationKind) -> Amount | str:
    return "unknown" if rate_per_s is None else make_rate(rate_per_s, kind)


def move_right(position: Position, label: str, *, is_narrower: bool) -> Outcome | None:
    """The movement when every value takes half the bytes: twice the intensity at every level, at the rate as it is.

    Returns None where there is no narrower type.
    """
    point, kind = position.point, position.kind
    then = _NARROWER.get(kind) if is_narrower else kind
    if then is None:
        return None
    peak = position.machine.find_peak(then)
    peak_ops_per_s = None if peak is None else peak.ops_per_s
    intensity = 2 * point.intensity
    slope = None if position.bytes_per_s is None else position.bytes_per_s * intensity
    ceiling = say("; the ceiling there is unknown")
    if slope is not None and peak_ops_per_s is not None:
        now = point.attainable_ops_per_s
        ceiling = say(
            ", where the ceiling{type} is {then}{now}",
            type=f" for {then}" if then is not kind else "",
            then=make_rate(min(slope, peak_ops_per_s), then),
            now=NOTHING if now is None else say(" instead of {now}", now=make_rate(now, kind)),
        )
    words = say(
        "right: half the bytes double the intensity to {intensity}{ceiling}",
        intensity=make_intensity(intensity),
        ceiling=ceiling,
    )
    movement = _draw(point, intensity, point.achieved_ops_per_s, label)
    return Outcome(movement=movement, uncapped_ops_per_s=point.achieved_ops_per_s, words=words)


def _draw(point: Point, intensity: float, rate: float, label: str) -> Movement:
    return Movement(
        kind=point.kind,
        level=point.level,
        from_intensity=point.intensity,
        from_ops_per_s=point.achieved_ops_per_s,
        to_intensity=intensity,
        to_ops_per_s=rate,
        label=label,
    )


LEAST_SPEEDUP = 1.01  # A line that gains less is not shown; the advisor's own threshold


class LineEstimate(Struct, frozen=True, kw_only=True):
    """One bottleneck of one line."""

    line: LineSamples  # its samples
    row: Row  # of Table 1
    removed: int  # N of Equation 3, samples
    share_ratio: float  # Equation 2, of the whole line
    speedup: float  # Equation 3
    outcome: Outcome | None  # Equation 4 and the movement on the chart; None where the kernel has no place on it


def estimate_lines(lines: LineCounts, position: Position | None) -> tuple[LineEstimate, ...]:
    """Every bottleneck of every line that gains at least :data:`LEAST_SPEEDUP`, largest speedup first.

    Stalls that are all samples of the kernel have no speedup (nothing would be left to run), and are left out.
    """
    total = lines.total
    least = total * (1 - 1 / LEAST_SPEEDUP)
    found = [
        _estimate(line, bottleneck, total, position)
        for bottleneck in Bottleneck
        for line in lines.find_heavy(bottleneck, least)
        if line.stalls[bottleneck] < total
    ]
    return tuple(sorted(found, key=lambda one: (-one.speedup, -one.share_ratio, one.line.place)))


def find_hottest(estimates: Iterable[LineEstimate], bottleneck: Bottleneck) -> LineEstimate | None:
    """The line on which a bottleneck gains most; None where it gains on none."""
    return next((one for one in estimates if one.row.bottleneck is bottleneck), None)


def _estimate(line: LineSamples, bottleneck: Bottleneck, total: int, position: Position | None) -> LineEstimate:
    row, removed = find_row(bottleneck), line.stalls[bottleneck]
    speedup = estimate_line_speedup(total, removed)
    label = f"{row.title.lower()}, {line.place}"
    return LineEstimate(
        line=line,
        row=row,
        removed=removed,
        share_ratio=measure_line_share(line.operations, line.all_stalls, total),
        speedup=speedup,
        outcome=None if position is None else move(position, row.direction, speedup, label),
    )
