"""Results of the core as numpy sees them: registers of lanes (:class:`LaneRegisters`), rows of a trace (:class:`CoreRows`)."""

import ctypes
from collections.abc import Callable
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
    EXECUTION,
    INSTRUCTION,
    LANES,
    MASK,
    OTHER,
    SPACE,
    WARP,
)
from gpa_lsp.execution.emulator.engine.fragments import Batch
from gpa_lsp.execution.emulator.engine.geometry import Value
from gpa_lsp.execution.emulator.engine.tracing import split_ids
from gpa_lsp.execution.emulator.model import Accesses, Branches, Entries


class LaneRegisters:
    """The registers of some warps in one call: read from their frames, and written back when the lanes go on.

    Args:
        frames: gives uint8[warps of the batch, bytes]; they move when they grow.
        layout: of the function's own.
        base: where those of the call begin.
        rows: the warps.
    """

    __slots__ = ("_base", "_changed", "_frames", "_layout", "_rows", "_values")

    def __init__(
        self,
        frames: Callable[[], npt.NDArray[np.uint8]],
        layout: FrameLayout,
        base: int,
        rows: Value,
    ) -> None:
        self._frames = frames
        self._layout = layout
        self._base = base
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

    def turn_to(self, rows: Value) -> "LaneRegisters":
        """Registers of other warps."""
        return LaneRegisters(self._frames, self._layout, self._base, rows)

    def copy(self) -> "LaneRegisters":
        """A copy, pending changes included."""
        other = self.turn_to(self._rows)
        other._values = dict(self._values)
        other._changed = set(self._changed)
        return other

    def write_back(self, mask: Value) -> None:
        """Write pending changes into the frames.

        Args:
            mask: bool[n], of these lanes; None for all.
        """
        for slot in self._changed:
            place = self._layout.find(slot)
            if place is None:
                continue
            dtype = self._layout.dtype(slot)
            value = self._values[slot]
            size = dtype.itemsize * LANES
            lanes = len(self._rows) * LANES
            spread = np.ascontiguousarray(np.broadcast_to(value, (lanes,)))
            if mask is not None:
                spread = np.where(mask, spread.view(dtype), self._read(slot))
            begin = self._base + place
            self._frames()[self._rows, begin : begin + size] = spread.view(np.uint8).reshape(-1, size)
        self._changed.clear()

    def _read(self, slot: int) -> Value:
        place = self._layout.find(slot)
        dtype = self._layout.dtype(slot)
        if place is None:  # it holds nothing beyond an instruction
            return dtype.type(0)
        begin = self._base + place
        rows = self._frames()[self._rows, begin : begin + dtype.itemsize * LANES]
        return np.ascontiguousarray(rows).view(dtype).reshape(-1)


_WORD = np.dtype("<u4")
_BYTE = np.dtype("u1")
_ADDRESS = np.dtype("<u8")
_ADDRESSES = COLUMNS  # after the columns of rows


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
        """Free the column."""
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
    """Rows of a trace that the core recorded in one batch, and numpy of jumps by a table.

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
        taken: Value = None,
        size_bytes: int = 0,
        space: int = 0,
        addresses: Value = None,
    ) -> None:
        """Add accesses; or branches, where lanes that jumped are given.

        Raises:
            MemoryError: there is no memory for them.
        """
        kind = ACCESSES if taken is None else BRANCHES
        warps = np.ascontiguousarray(ids, np.int64)
        columns = [np.ascontiguousarray(masks if one is None else one, np.uint32) for one in (masks, taken)]
        given = np.ascontiguousarray(np.zeros(0) if addresses is None else addresses, np.uint64)
        numbers = (number, size_bytes, space)
        if not self._core.has_done(
            "append_rows", self._place, kind, warps, *columns, len(warps), *numbers, given, len(given)
        ):
            raise MemoryError

    def take(self, batch: Batch) -> tuple[Accesses, Branches, Entries]:
        """Take all rows; none are left."""
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
