"""What the core gives back: lanes as the numpy engine sees them (:class:`LaneFragment`), rows of a trace (:class:`CoreRows`)."""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.compiled.core_functions import Core
from gpa_lsp.execution.emulator.compiled.lowering import FrameLayout
from gpa_lsp.execution.emulator.compiled.model import (
    ACCESSES,
    BRANCHES,
    BYTES,
    COLUMNS,
    ENTRIES,
    EXECUTION,
    INSTRUCTION,
    LANES,
    MASK,
    OTHER,
    SPACE,
    WARP,
)
from gpa_lsp.execution.emulator.engine.fragments import Batch, Fragment, Frame, Link, Segment
from gpa_lsp.execution.emulator.engine.geometry import WarpSet
from gpa_lsp.execution.emulator.engine.tracing import split_ids
from gpa_lsp.execution.emulator.engine.values import Value, pack_lanes
from gpa_lsp.execution.emulator.trace import Accesses, Branches, Entries

Masks = npt.NDArray[np.uint32]


class LaneRegisters:
    """The registers of some warps: read from their frames, and written back when the lanes go on.

    Args:
        layout: of the frames.
        template: what a register holds that has no place.
        frames: uint8[warps, bytes], of the whole batch.
        rows: the warps.
    """

    __slots__ = ("_changed", "_frames", "_layout", "_rows", "_template", "_values")

    def __init__(self, layout: FrameLayout, template: list[Value], frames: npt.NDArray[np.uint8], rows: Any) -> None:
        self._layout = layout
        self._template = template
        self._frames = frames
        self._rows = rows
        self._values: dict[int, Value] = {}
        self._changed: set[int] = set()

    def __getitem__(self, slot: int) -> Value:
        """The value of a register over the warps."""
        found = self._values.get(slot)
        if found is None:
            found = self._values[slot] = self._read(slot)
        return found

    def __setitem__(self, slot: int, value: Value) -> None:
        """Give a register another value."""
        self._values[slot] = value
        self._changed.add(slot)

    def turn_to(self, rows: Any) -> "LaneRegisters":
        """Those of other warps."""
        return LaneRegisters(self._layout, self._template, self._frames, rows)

    def copy(self) -> "LaneRegisters":
        """The same, with what was changed."""
        other = self.turn_to(self._rows)
        other._values = dict(self._values)
        other._changed = set(self._changed)
        return other

    def write_back(self, mask: Value) -> None:
        """Put what was changed into the frames.

        Args:
            mask: bool[n], of these lanes; None for all.
        """
        for slot in self._changed:
            place = self._layout.find(slot)
            if place is None or place < 0:
                continue
            dtype = self._layout.dtype(slot)
            value = self._values[slot]
            size = dtype.itemsize * LANES
            lanes = len(self._rows) * LANES
            spread = np.ascontiguousarray(np.broadcast_to(value, (lanes,)))
            if mask is not None:
                spread = np.where(mask, spread.view(dtype), self._read(slot))
            self._frames[self._rows, place : place + size] = spread.view(np.uint8).reshape(-1, size)
        self._changed.clear()

    def _read(self, slot: int) -> Value:
        place = self._layout.find(slot)
        if place is None or place < 0:
            return self._template[slot]
        dtype = self._layout.dtype(slot)
        rows = self._frames[self._rows, place : place + dtype.itemsize * LANES]
        return np.ascontiguousarray(rows).view(dtype).reshape(-1)


class LaneFragment(Fragment):
    """Lanes that stand at one place, whose registers lie in frames. Its warp set has the warps with a lane of it, and no others."""

    __slots__ = ()

    def narrow(self, mask: Value, count: int, segment: Segment | None = None) -> "LaneFragment":
        """A fragment of some of its lanes, over the same warps."""
        whole = count == self.warps.lanes
        child = LaneFragment(
            batch=self.batch,
            warps=self.warps,
            mask=None if whole else np.ascontiguousarray(mask),
            count=count,
            registers=self.registers.copy(),
            callers=(),
            frame=self.frame,
            link=None,
        )
        child.segment = self.segment if segment is None else segment
        return child

    def merge_all(self, fragments: list[Fragment]) -> Fragment:
        """Their lanes together; their registers are written back first."""
        if len(fragments) == 1:
            return self
        masks = np.zeros(len(self.batch.root.ids), np.uint32)
        for one in fragments:
            write_back(one)
            masks[one.warps.ids] |= pack_lanes(one.active())
        registers: Any = self.registers
        merged = build_fragment(self.batch, self.frame, masks, registers)
        merged.segment = self.segment
        return merged


def write_back(fragment: Fragment) -> None:
    """Put what a fragment's lanes changed into their frames."""
    registers: Any = fragment.registers
    registers.write_back(fragment.mask)


def build_fragment(batch: Batch, frame: Frame, masks: Masks, known: LaneRegisters) -> LaneFragment:
    """The fragment of some lanes.

    Args:
        masks: uint32[warps of the batch], at least one lane.
    """
    rows = np.flatnonzero(masks)
    whole = len(rows) == len(masks)
    warps = batch.root if whole else WarpSet(batch, batch.root.ids[rows])
    chosen = masks[rows]
    count = int(np.bitwise_count(chosen).sum())
    mask = None
    if count != len(rows) * LANES:
        mask = np.unpackbits(chosen.astype("<u4").view(np.uint8), bitorder="little").view(np.bool_)
    registers: Any = known.turn_to(rows)
    return LaneFragment(
        batch=batch, warps=warps, mask=mask, count=count, registers=registers, callers=(), frame=frame, link=None
    )


def detach(fragment: LaneFragment) -> Fragment:
    """The same lanes, of which frames of the core know no more: their registers are those of a function that they have entered."""
    warps, root = fragment.warps, fragment.batch.root
    link = None if warps is root else Link(root, warps.ids, [], [[] for _ in fragment.levels], None)
    apart = Fragment(
        batch=fragment.batch,
        warps=warps,
        mask=fragment.mask,
        count=fragment.count,
        registers=fragment.registers,
        callers=fragment.callers,
        frame=fragment.frame,
        link=link,
    )
    apart.segment = fragment.segment
    return apart


_WORD = np.dtype("<u4")
_BYTE = np.dtype("u1")
_ADDRESS = np.dtype("<u8")
_NOT_COUNTED = -1  # By no number: the executions are given, or there are none
_ADDRESSES = COLUMNS  # beside the columns of rows


class _Column:
    """A column that the core gathered; its memory is freed with its last reference.

    Args:
        core: whose memory it is.
        address: of it; 0 for none.
    """

    def __init__(self, core: Core, address: int) -> None:
        self._core = core
        self._address = address

    def __del__(self) -> None:
        """Nobody looks at it."""
        if self._address:
            self._core.call("free_column", ctypes.c_void_p(self._address))


class _Columns:
    """The columns of some rows.

    Args:
        core: whose memory they are.
        rows: the rows.
    """

    def __init__(self, core: Core, rows: Any) -> None:
        self._count = rows.count
        self._address_count = rows.address_count
        self._addresses = [address or 0 for address in (*rows.columns, rows.addresses)]
        self._owned = [_Column(core, address) for address in self._addresses]

    def read(self, column: int, dtype: "np.dtype[Any]" = _WORD) -> "np.ndarray[Any, Any]":
        """One column, not copied."""
        count = self._address_count if column == _ADDRESSES else self._count
        if count == 0:
            return np.zeros(0, dtype)
        memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(self._addresses[column])
        memory.owner = self._owned[column]
        return np.frombuffer(memory, dtype)


class CoreRows:
    """What the core and the steps beside it recorded of one batch.

    Args:
        core: the core.
        machine: what it works on.
    """

    def __init__(self, core: Core, machine: Any) -> None:
        self._core = core
        self._machine = machine
        self._place = np.frombuffer(memoryview(machine).cast("B"), np.uint8)

    @property
    def held_bytes(self) -> int:
        """Bytes of all rows."""
        return int(self._machine.held_bytes)

    def append(
        self,
        ids: Value,
        masks: Value,
        number: int,
        *,
        executions: Value = None,
        taken: Value = None,
        size_bytes: int = 0,
        space: int = 0,
        addresses: Value = None,
    ) -> None:
        """Add accesses; or branches, where lanes that jumped are given. The core counts their executions where these are not given.

        Raises:
            MemoryError: there is no memory for them.
        """
        given = np.zeros(0) if addresses is None else addresses
        counted = number if executions is None else _NOT_COUNTED
        kind = ACCESSES if taken is None else BRANCHES
        self._append(kind, (ids, masks, taken, executions), (number, counted, size_bytes, space), given)

    def append_entries(self, ids: Value, masks: Value, basic_block: int) -> None:
        """Add entries of a basic block.

        Raises:
            MemoryError: there is no memory for them.
        """
        none = np.zeros(len(ids), np.uint32)
        self._append(ENTRIES, (ids, masks, none, none), (basic_block, _NOT_COUNTED, 0, 0), np.zeros(0))

    def _append(self, kind: int, columns: tuple[Value, ...], numbers: tuple[int, ...], addresses: Value) -> None:
        warps = np.ascontiguousarray(columns[0], np.int64)
        others = [np.ascontiguousarray(columns[1] if one is None else one, np.uint32) for one in columns[1:]]
        given = np.ascontiguousarray(addresses, np.uint64)
        if not self._core.has_done(
            "append_rows", self._place, kind, warps, *others, len(warps), *numbers, given, len(given)
        ):
            raise MemoryError

    def take(self, batch: Batch) -> tuple[Accesses, Branches, Entries]:
        """All of them, and forget them."""
        machine = self._machine
        columns = [_Columns(self._core, rows) for rows in machine.rows]
        self._core.call("forget_rows", self._place)
        return _build_accesses(batch, columns[0]), _build_branches(batch, columns[1]), _build_entries(batch, columns[2])

    def __del__(self) -> None:
        """Free the rows that were not taken."""
        self._core.call("free_rows", self._place)


def _build_accesses(batch: Batch, rows: _Columns) -> Accesses:
    block, warp = split_ids(batch, rows.read(WARP).astype(np.int64))
    masks = rows.read(MASK)
    first = np.zeros(len(masks), np.uint64)
    if len(masks):
        first[1:] = np.cumsum(np.bitwise_count(masks[:-1]), dtype=np.uint64)
    return Accesses(
        block=block,
        warp=warp,
        instruction=rows.read(INSTRUCTION),
        execution=rows.read(EXECUTION),
        lane_mask=masks,
        bytes=rows.read(BYTES, _BYTE),
        space=rows.read(SPACE, _BYTE),
        first_address=first,
        addresses=rows.read(_ADDRESSES, _ADDRESS),
    )


def _build_branches(batch: Batch, rows: _Columns) -> Branches:
    block, warp = split_ids(batch, rows.read(WARP).astype(np.int64))
    return Branches(
        block=block,
        warp=warp,
        instruction=rows.read(INSTRUCTION),
        execution=rows.read(EXECUTION),
        active_mask=rows.read(MASK),
        taken_mask=rows.read(OTHER),
    )


def _build_entries(batch: Batch, rows: _Columns) -> Entries:
    block, warp = split_ids(batch, rows.read(WARP).astype(np.int64))
    return Entries(block=block, warp=warp, basic_block=rows.read(INSTRUCTION), lane_mask=rows.read(MASK))
