"""Traces of executions, as numpy columns: :class:`Trace`. The format is the same from the emulator and from recorders on a GPU.

A row is one *warp-level* access, branch or entry into a basic block. Rows are in the order in which they were executed; rows of one warp are
always in program order, rows of one block in the order in which its warps ran between barriers. Nothing says how blocks interleave: they are
independent.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.foundation.records import ColumnRecord

TRACE_FORMAT = "gpa-lsp/trace/1"  # Name of the format, written into every saved trace; the dtypes below are part of it

MOST_BLOCKS = 1 << 32  # Blocks that have a number in a trace, the first of a grid; those beyond are never executed

# Columns of accesses; see :class:`Accesses`
ACCESS_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "instruction": np.dtype("<u4"),
    "execution": np.dtype("<u4"),
    "lane_mask": np.dtype("<u4"),
    "bytes": np.dtype("u1"),
    "space": np.dtype("u1"),
    "first_address": np.dtype("<u8"),
}

# Columns of branches; see :class:`Branches`
BRANCH_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "instruction": np.dtype("<u4"),
    "execution": np.dtype("<u4"),
    "active_mask": np.dtype("<u4"),
    "taken_mask": np.dtype("<u4"),
}

# Columns of entries into basic blocks; see :class:`Entries`
ENTRY_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "basic_block": np.dtype("<u4"),
    "lane_mask": np.dtype("<u4"),
}


class Buffer(Struct, frozen=True, kw_only=True):
    """An array the kernel was given, or a variable of the module."""

    name: str  # of the argument or variable
    space: Space  # GLOBAL or CONST, TEXTURE
    base: int  # its first virtual address. Buffers are aligned to 512 bytes, as ``cudaMalloc`` aligns to 256 at least.
    size_bytes: int  # of it
    element_bytes: int  # of one element; 1 when unknown
    argument: int | None  # index of the kernel's parameter; None for variables


class Accesses(ColumnRecord, frozen=True, kw_only=True):
    """n warp-level accesses with m lane addresses; see :data:`ACCESS_DTYPES`."""

    block: npt.NDArray[np.uint32]  # uint32[n], linear index of the thread block, x fastest
    warp: npt.NDArray[np.uint16]  # uint16[n], warp within its block
    instruction: npt.NDArray[np.uint32]  # uint32[n], :attr:`StaticInstruction.index`
    # uint32[n], how often this warp had executed this instruction before, with any lanes
    execution: npt.NDArray[np.uint32]
    lane_mask: npt.NDArray[np.uint32]  # uint32[n], lanes that accessed (predicated-off lanes are not in it); never 0
    bytes: npt.NDArray[np.uint8]  # uint8[n], bytes per lane
    # uint8[n], :class:`~gpa_lsp.code.ptx.model.Space`, never GENERIC: resolved by the addresses. An access whose lanes went to several spaces is
    # several rows.
    space: npt.NDArray[np.uint8]
    # uint64[n], index of the row's first address in ``addresses``; the others follow, by ascending lane
    first_address: npt.NDArray[np.uint64]
    # uint64[m], of each active lane's first byte. Global and constant: virtual addresses, see :class:`Buffer`. Shared: bytes from the start of the
    # block's shared memory. Local: bytes from the start of the thread's local memory.
    addresses: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


class Branches(ColumnRecord, frozen=True, kw_only=True):
    """n executions of conditional branches by warps; see :data:`BRANCH_DTYPES`."""

    block: npt.NDArray[np.uint32]  # uint32[n]
    warp: npt.NDArray[np.uint16]  # uint16[n]
    instruction: npt.NDArray[np.uint32]  # uint32[n]
    execution: npt.NDArray[np.uint32]  # uint32[n], as in :class:`Accesses`
    active_mask: npt.NDArray[np.uint32]  # uint32[n], lanes that executed it
    # uint32[n], those of them that jumped. For ``brx.idx`` lanes that left the most common target of their warp.
    taken_mask: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


class Entries(ColumnRecord, frozen=True, kw_only=True):
    """n entries of warps into basic blocks; see :data:`ENTRY_DTYPES`."""

    block: npt.NDArray[np.uint32]  # uint32[n]
    warp: npt.NDArray[np.uint16]  # uint16[n]
    # uint32[n], number of the PTX basic block, over all functions in the order of :class:`StaticInstruction`
    basic_block: npt.NDArray[np.uint32]
    lane_mask: npt.NDArray[np.uint32]  # uint32[n], lanes that entered together

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


class Trace(ColumnRecord, frozen=True, kw_only=True):
    """A trace, or one piece of a longer one (pieces hold whole blocks and are analysed one after the other)."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # blocks in x, y, z
    block_threads: tuple[int, int, int]  # threads of a block in x, y, z
    instructions: tuple[StaticInstruction, ...]  # all static instructions, by index
    buffers: tuple[Buffer, ...]  # by ascending base
    accesses: Accesses  # warp-level accesses
    branches: Branches  # warp-level conditional branches
    entries: Entries  # entries into basic blocks; empty unless they were asked for
    # uint32[k], linear indexes of the blocks that were traced, ascending: a sample, or all
    traced_blocks: npt.NDArray[np.uint32]
    # False when rows were dropped because a limit was reached; what is there is whole blocks or a prefix, and says so
    is_complete: bool = True
    # of an instruction by a warp, as many accesses are there at most, the first ones, and no other row was dropped; None where the trace is complete,
    # or lacks others
    most_executions: int | None = None
    origin: str = "emulated"  # what wrote it: ``emulated``, or a recorder's name


def join_pieces(pieces: Sequence[Trace]) -> Trace:
    """One trace of pieces of different blocks, in order.

    Args:
        pieces: at least one; the instructions of a later one begin with those of an earlier one.
    """
    if len(pieces) == 1:
        return pieces[0]
    every = [piece.accesses for piece in pieces]
    starts = np.cumsum([0, *(len(one.addresses) for one in every[:-1])]).astype(np.uint64)
    accesses = {name: np.concatenate([getattr(one, name) for one in every]) for name in ACCESS_DTYPES}
    accesses["first_address"] = np.concatenate(
        [one.first_address + start for one, start in zip(every, starts, strict=True)]
    )
    branches = {name: np.concatenate([getattr(piece.branches, name) for piece in pieces]) for name in BRANCH_DTYPES}
    entries = {name: np.concatenate([getattr(piece.entries, name) for piece in pieces]) for name in ENTRY_DTYPES}
    cut = {piece.most_executions for piece in pieces if not piece.is_complete}
    return replace(
        pieces[-1],
        accesses=Accesses(**accesses, addresses=np.concatenate([one.addresses for one in every])),
        branches=Branches(**branches),
        entries=Entries(**entries),
        traced_blocks=np.sort(np.concatenate([piece.traced_blocks for piece in pieces])),
        is_complete=all(piece.is_complete for piece in pieces),
        most_executions=cut.pop() if len(cut) == 1 else None,
    )


def keep_blocks(trace: Trace, blocks: Sequence[int]) -> Trace | None:
    """The accesses in some blocks, without branches and entries; None where the trace has none of the blocks."""
    traced = np.intersect1d(trace.traced_blocks, np.array(blocks, dtype=np.int64)).astype(np.uint32)
    if not len(traced):
        return None
    rows = trace.accesses
    kept = np.isin(rows.block, traced)
    ends = np.append(rows.first_address[1:], np.uint64(len(rows.addresses))).astype(np.int64)
    lengths: npt.NDArray[np.int64] = ends - rows.first_address.astype(np.int64)
    columns: dict[str, Any] = {name: getattr(rows, name)[kept] for name in ACCESS_DTYPES}
    columns["first_address"] = (np.cumsum(lengths[kept]) - lengths[kept]).astype(np.uint64)
    return replace(
        trace,
        accesses=Accesses(**columns, addresses=rows.addresses[np.repeat(kept, lengths)]),
        branches=Branches(**{name: np.zeros(0, dtype) for name, dtype in BRANCH_DTYPES.items()}),
        entries=Entries(**{name: np.zeros(0, dtype) for name, dtype in ENTRY_DTYPES.items()}),
        traced_blocks=traced,
    )
