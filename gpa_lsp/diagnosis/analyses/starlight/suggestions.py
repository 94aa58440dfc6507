"""Starlight's Table 1 as data: bottlenecks, what is suggested against them, how that moves the kernel on the chart, and which stalls count.

The paper does not say which stalls belong to which row; ``suggestions.toml`` does, with a reason each.
"""

from enum import Enum, StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import tomli
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode


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
