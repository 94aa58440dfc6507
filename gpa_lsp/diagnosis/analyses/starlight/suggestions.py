"""Starlight's Table 1 as data: bottlenecks, what is suggested against them, how that moves the kernel on the chart, and which stalls count.

The paper does not say which stalls belong to which row; ``suggestions.toml`` does, with a reason each.
"""

from collections.abc import Iterator
from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tomli
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import index_lines
from gpa_lsp.foundation.locations import SourceLine
from gpa_lsp.foundation.ownership import choose_frame
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.foundation.records import ColumnRecord


class Bottleneck(Enum):
    """A row of Table 1; the values are keys of the data."""

    LATENCY = "latency"
    MEMORY = "memory"
    RESOURCES = "resources"
    SYNCHRONISATION = "synchronisation"
    LOW_INTENSITY = "low_intensity"  # The roofline's row: no stall feeds it


class Direction(Enum):
    """How a suggestion moves the kernel's point on the chart (Table 1, last column)."""

    UP = "up"  # More operations per second with the same bytes
    UP_RIGHT = "up_right"  # More operations per second, and more per byte
    RIGHT = "right"  # More operations per byte


class WaiterKind(Enum):
    """What kind of instruction a stall was sampled at."""

    MEMORY = "memory"
    OTHER = "other"
    UNKNOWN = "unknown"  # Without a disassembly, or with an opcode nobody knows


class Part(StrEnum):
    """What a sample counts as beside the rows of Table 1; the values are names for people."""

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
    counterparts: tuple[str, ...]  # names of our optimizers for the same remedy; empty where there is none
    halves_bytes: bool  # it makes values smaller, which is reckoned per halving
    narrows_type: bool  # the operations become those of a narrower type


class Feed(Struct, frozen=True, kw_only=True):
    """Where samples of one stall reason count."""

    reason: str  # Nsight Compute's spelling
    kind: WaiterKind | None  # of the waiting instruction; None for any
    target: Bottleneck | Part  # row or part
    because: str  # why, one clause


@cache
def list_rows() -> tuple[Row, ...]:
    """The rows of Table 1, in its order."""
    found = _read_table()["bottlenecks"]
    return tuple(
        Row(bottleneck=Bottleneck(key), title=row["title"], direction=Direction(row["movement"]))
        for key, row in found.items()
    )


@cache
def list_suggestions() -> tuple[Suggestion, ...]:
    """The suggestions of Table 1, in its order."""
    return tuple(
        Suggestion(
            bottleneck=Bottleneck(one["bottleneck"]),
            title=one["title"],
            counterparts=tuple(one["counterparts"]),
            halves_bytes=one.get("halves_bytes", False),
            narrows_type=one.get("narrows_type", False),
        )
        for one in _read_table()["suggestions"]
    )


@cache
def list_feeds() -> tuple[Feed, ...]:
    """Where each stall reason counts, in the order of the table."""
    return tuple(
        Feed(
            reason=one["reason"],
            kind=None if one["kind"] == "any" else WaiterKind(one["kind"]),
            target=_find_target(one["bottleneck"]),
            because=one["because"],
        )
        for one in _read_table()["feeds"]
    )


def find_row(bottleneck: Bottleneck) -> Row:
    """The row of a bottleneck."""
    return next(row for row in list_rows() if row.bottleneck is bottleneck)


def find_target(reason: str, kind: WaiterKind) -> Bottleneck | Part:
    """What a sample of a reason, at an instruction of a kind, counts as; a reason nobody knows is not attributed.

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


def _find_target(key: str) -> Bottleneck | Part:
    parts = {"operation": Part.OPERATION, "none": Part.NONE}
    return parts[key] if key in parts else Bottleneck(key)


@cache
def _read_table() -> dict[str, Any]:
    text = Path(__file__).with_name("suggestions.toml").read_text(encoding="utf-8")
    return tomli.loads(text)


_LONGEST_NAME = 40  # Characters of a mangled name that are written

_TARGETS: tuple[Bottleneck | Part, ...] = (*Part, *Bottleneck)
_KINDS = tuple(WaiterKind)


class LineSamples(Struct, frozen=True, kw_only=True):
    """The samples of one source line, or of one instruction that has none."""

    line: SourceLine | None  # None for an instruction without a line
    place: Sentence  # the same in words; for an instruction without a line its offset, and its function where that is not the kernel
    function: str  # mangled name of the section of its instruction with most samples
    pc_offset: int  # that instruction, bytes from the section's start
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
    _facts: KernelFacts

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
        function = self._facts.rows.function_of(row)
        pc_offset = int(function.pc_offsets[self._facts.rows.index_of(row)])
        is_own = function is self._facts.kernel.functions[0]
        return LineSamples(
            line=self.lines[number],
            place=self._name_place(self.lines[number], pc_offset, "" if is_own else function.name),
            function=function.name,
            pc_offset=pc_offset,
            operations=by_target[Part.OPERATION],
            stalls={one: by_target[one] for one in Bottleneck if by_target[one]},
            unattributed=by_target[Part.NONE],
        )

    def _name_place(self, line: SourceLine | None, pc_offset: int, function: str) -> Sentence:
        if line is not None:
            return say("{place}", place=index_lines(self._facts).make_place(line.file, line.line))
        of = f" of {function[:_LONGEST_NAME]}" if function else ""
        return say("instruction {offset}{of}", offset=f"{pc_offset:#x}", of=of)

    def find_heavy(self, bottleneck: Bottleneck, least: float) -> Iterator[LineSamples]:
        """Lines with at least so many stalls of one row of Table 1."""
        for number in np.flatnonzero(self.counts[:, _TARGETS.index(bottleneck)] >= max(least, 1)).tolist():
            yield self.describe(number)


def count_lines(facts: KernelFacts) -> LineCounts:
    """The samples of a kernel by line (by instruction where there is no line); all of them are there."""
    samples = facts.rows.all_samples
    rows = np.flatnonzero(samples.sum(axis=1)) if samples.size else np.zeros(0, dtype=np.int64)
    names, places = _find_lines(facts, rows)
    keys, first, group = np.unique(places, return_index=True, return_inverse=True)
    by_row = _count_targets(facts, rows)
    counts = np.zeros((len(keys), len(_TARGETS)), dtype=np.int64)
    np.add.at(counts, group, by_row)
    # Ascending samples within each line, so that the last one written is the hottest.
    hottest = rows[first]
    order = np.argsort(by_row.sum(axis=1), kind="stable")
    hottest[group[order]] = rows[order]
    lines = tuple(names[key] if key < len(names) else None for key in keys.tolist())
    return LineCounts(counts=counts, hottest=hottest, lines=lines, _facts=facts)


def _count_targets(facts: KernelFacts, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """int64[m, t]: samples of each row by target."""
    counted = np.zeros((len(rows), len(_TARGETS)), dtype=np.int64)
    if not len(rows):
        return counted
    unknown = _KINDS.index(WaiterKind.UNKNOWN)
    kinds = facts.rows.spread_by_mnemonic(_number_kind, unknown)[rows]
    taken = facts.rows.all_samples[rows]
    for number, kind in enumerate(_KINDS):
        at = kinds == number
        for column, reason in enumerate(facts.kernel.reasons):
            counted[at, _TARGETS.index(find_target(reason, kind))] += taken[at, column]
    return counted


def _number_kind(mnemonic: str) -> int:
    return _KINDS.index(classify_waiter(describe_mnemonic(mnemonic)))


def _find_lines(
    facts: KernelFacts, rows: npt.NDArray[np.int64]
) -> tuple[tuple[SourceLine, ...], npt.NDArray[np.int64]]:
    """The kernel's lines, and int64[m]: for each row the number of its line (innermost frame), or a number of its own beyond them."""
    numbers: dict[SourceLine, int] = {}
    lines = [choose_frame(chain).source_line for chain in facts.rows.chains]
    by_chain = [numbers.setdefault(line, len(numbers)) if line.line > 0 else -1 for line in lines]
    # The last entry stands for "no line", which index -1 finds.
    found = np.array([*by_chain, -1], dtype=np.int64)[facts.rows.chain_index[rows]]
    return tuple(numbers), np.where(found < 0, len(numbers) + rows, found)
