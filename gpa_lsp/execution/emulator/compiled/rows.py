"""Rows of a trace that the core gathered: :class:`CoreRows`."""

import ctypes
from typing import Any

import numpy as np

from gpa_lsp.execution.emulator.compiled.model import CoreMachine, Rows
from gpa_lsp.execution.emulator.engine.fragments import Batch
from gpa_lsp.execution.emulator.engine.tracing import split_ids
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.trace import Accesses, Branches, Entries
from gpa_lsp.foundation.native.shared_library import Core

_WORD = np.dtype("<u4")
_BYTE = np.dtype("u1")
_ADDRESS = np.dtype("<u8")
_ACCESSES, _BRANCHES, _ENTRIES = range(3)
_NOT_COUNTED = -1  # By no number: the executions are given, or there are none
_NAMES = ("warp", "instruction", "execution", "mask", "other", "bytes", "space", "addresses")


class _Column:
    """A column that the core gathered; its memory is given back when nobody looks at it any more.

    Args:
        core: whose memory it is.
        address: of it; 0 for none.
    """

    def __init__(self, core: Core, address: int) -> None:
        self._core = core
        self._address = address

    def __del__(self) -> None:
        """Nobody looks at it."""
        self._core.free(self._address)


class _Columns:
    """The columns of some rows.

    Args:
        core: whose memory they are.
        rows: the rows.
    """

    def __init__(self, core: Core, rows: Rows) -> None:
        self._count = rows.count
        self._address_count = rows.address_count
        self._owned = {name: _Column(core, getattr(rows, name) or 0) for name in _NAMES}
        self._addresses = {name: getattr(rows, name) for name in _NAMES}

    def read(self, name: str, dtype: "np.dtype[Any]" = _WORD) -> "np.ndarray[Any, Any]":
        """One column, not copied."""
        count = self._address_count if name == "addresses" else self._count
        if count == 0:
            return np.zeros(0, dtype)
        memory: Any = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(self._addresses[name])
        memory.owner = self._owned[name]
        return np.frombuffer(memory, dtype)


class CoreRows:
    """What the core and the steps beside it recorded of one batch.

    Args:
        core: the core.
        machine: what it works on.
    """

    def __init__(self, core: Core, machine: CoreMachine) -> None:
        self._core = core
        self._machine = machine
        self._place = np.frombuffer(memoryview(machine).cast("B"), np.uint8)

    @property
    def held_bytes(self) -> int:
        """Of all rows."""
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
        kind = _ACCESSES if taken is None else _BRANCHES
        self._append(kind, (ids, masks, taken, executions), (number, counted, size_bytes, space), given)

    def append_entries(self, ids: Value, masks: Value, basic_block: int) -> None:
        """Add entries of a basic block.

        Raises:
            MemoryError: there is no memory for them.
        """
        none = np.zeros(len(ids), np.uint32)
        self._append(_ENTRIES, (ids, masks, none, none), (basic_block, _NOT_COUNTED, 0, 0), np.zeros(0))

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
        columns = [_Columns(self._core, rows) for rows in (machine.accesses, machine.branches, machine.entries)]
        self._core.call("forget_rows", self._place)
        return _build_accesses(batch, columns[0]), _build_branches(batch, columns[1]), _build_entries(batch, columns[2])

    def __del__(self) -> None:
        """Rows that nobody took are freed."""
        self._core.call("free_rows", self._place)


def _build_accesses(batch: Batch, rows: _Columns) -> Accesses:
    block, warp = split_ids(batch, rows.read("warp").astype(np.int64))
    masks = rows.read("mask")
    first = np.zeros(len(masks), np.uint64)
    if len(masks):
        first[1:] = np.cumsum(np.bitwise_count(masks[:-1]), dtype=np.uint64)
    return Accesses(
        block=block,
        warp=warp,
        instruction=rows.read("instruction"),
        execution=rows.read("execution"),
        lane_mask=masks,
        bytes=rows.read("bytes", _BYTE),
        space=rows.read("space", _BYTE),
        first_address=first,
        addresses=rows.read("addresses", _ADDRESS),
    )


def _build_branches(batch: Batch, rows: _Columns) -> Branches:
    block, warp = split_ids(batch, rows.read("warp").astype(np.int64))
    return Branches(
        block=block,
        warp=warp,
        instruction=rows.read("instruction"),
        execution=rows.read("execution"),
        active_mask=rows.read("mask"),
        taken_mask=rows.read("other"),
    )


def _build_entries(batch: Batch, rows: _Columns) -> Entries:
    block, warp = split_ids(batch, rows.read("warp").astype(np.int64))
    return Entries(block=block, warp=warp, basic_block=rows.read("instruction"), lane_mask=rows.read("mask"))
