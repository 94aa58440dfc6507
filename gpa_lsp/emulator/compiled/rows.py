"""Rows of a trace that the core gathered: :class:`CoreRows`."""

import ctypes
from typing import Any

import numpy as np

from gpa_lsp.emulator.compiled.model import CoreMachine, Rows
from gpa_lsp.emulator.engine.fragments import Batch
from gpa_lsp.emulator.engine.tracing import split_ids
from gpa_lsp.emulator.engine.values import Value
from gpa_lsp.emulator.trace import Accesses, Branches, Entries
from gpa_lsp.native.core import Core

_WORD = np.dtype("<u4")
_BYTE = np.dtype("u1")
_ADDRESS = np.dtype("<u8")


def _read(rows: Rows, name: str, dtype: "np.dtype[Any]" = _WORD) -> "np.ndarray[Any, Any]":
    """A copy of one column."""
    count = rows.address_count if name == "addresses" else rows.count
    if count == 0:
        return np.zeros(0, dtype)
    return np.frombuffer(ctypes.string_at(getattr(rows, name), count * dtype.itemsize), dtype)


class CoreRows:
    """What the core and the steps beside it recorded of one batch.

    Args:
        core: the core.
        machine: what it works on.
    """

    def __init__(self, core: Core, machine: CoreMachine) -> None:
        self._core = core
        self._machine = machine
        self._place = np.frombuffer(machine, np.uint8)

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
        taken: Value = None,
        size_bytes: int = 0,
        space: int = 0,
        addresses: Value = None,
    ) -> None:
        """Add accesses; or branches, where lanes that jumped are given.

        Raises:
            MemoryError: there is no memory for them.
        """
        given = np.ascontiguousarray(np.zeros(0) if addresses is None else addresses, np.uint64)
        warps, active = np.ascontiguousarray(ids, np.int64), np.ascontiguousarray(masks, np.uint32)
        jumped = active if taken is None else np.ascontiguousarray(taken, np.uint32)
        numbers = len(warps), number, number, size_bytes, space
        is_branch = int(taken is not None)
        if not self._core.has_done(
            "append_rows", self._place, is_branch, warps, active, jumped, *numbers, given, len(given)
        ):
            raise MemoryError

    def take(self, batch: Batch) -> tuple[Accesses, Branches, Entries]:
        """All of them, and forget them."""
        machine = self._machine
        found = _build_accesses(batch, machine.accesses), _build_branches(batch, machine.branches)
        entries = _build_entries(batch, machine.entries)
        self._core.call("free_rows", self._place)
        return *found, entries

    def __del__(self) -> None:
        """Rows that nobody took are freed."""
        self._core.call("free_rows", self._place)


def _build_accesses(batch: Batch, rows: Rows) -> Accesses:
    block, warp = split_ids(batch, _read(rows, "warp").astype(np.int64))
    masks = _read(rows, "mask")
    first = np.zeros(len(masks), np.uint64)
    if len(masks):
        first[1:] = np.cumsum(np.bitwise_count(masks[:-1]), dtype=np.uint64)
    return Accesses(
        block=block,
        warp=warp,
        instruction=_read(rows, "instruction"),
        execution=_read(rows, "execution"),
        lane_mask=masks,
        bytes=_read(rows, "bytes", _BYTE),
        space=_read(rows, "space", _BYTE),
        first_address=first,
        addresses=_read(rows, "addresses", _ADDRESS),
    )


def _build_branches(batch: Batch, rows: Rows) -> Branches:
    block, warp = split_ids(batch, _read(rows, "warp").astype(np.int64))
    return Branches(
        block=block,
        warp=warp,
        instruction=_read(rows, "instruction"),
        execution=_read(rows, "execution"),
        active_mask=_read(rows, "mask"),
        taken_mask=_read(rows, "other"),
    )


def _build_entries(batch: Batch, rows: Rows) -> Entries:
    block, warp = split_ids(batch, _read(rows, "warp").astype(np.int64))
    return Entries(
        block=block, warp=warp, basic_block=_read(rows, "instruction"), lane_mask=_read(rows, "mask")
    )
