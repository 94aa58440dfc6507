"""What was executed, as numpy columns: :class:`Trace`. The format does not say what wrote it: an emulator, or a recorder on a GPU.

A row is one *warp-level* access, branch or entry into a basic block. Rows are in the order in which they were executed; rows of one warp are
always in program order, rows of one block in the order in which its warps ran between barriers. Nothing says how blocks interleave: they are
independent.
"""

from collections.abc import Sequence
from dataclasses import field, replace
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.ptx.model import Space

TRACE_FORMAT = "gpa-lsp/trace/1"
"""Name of the format, written into every saved trace; the dtypes below are part of it."""

MOST_BLOCKS = 1 << 32
"""Blocks that have a number in a trace, the first of a grid; those beyond are never executed."""

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
"""Columns of accesses; see :class:`Accesses`."""

BRANCH_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "instruction": np.dtype("<u4"),
    "execution": np.dtype("<u4"),
    "active_mask": np.dtype("<u4"),
    "taken_mask": np.dtype("<u4"),
}
"""Columns of branches; see :class:`Branches`."""

ENTRY_DTYPES: dict[str, "np.dtype[Any]"] = {
    "block": np.dtype("<u4"),
    "warp": np.dtype("<u2"),
    "basic_block": np.dtype("<u4"),
    "lane_mask": np.dtype("<u4"),
}
"""Columns of entries into basic blocks; see :class:`Entries`."""


class AccessKind(IntEnum):
    """What an instruction does to memory; the numbers stand in saved traces."""

    LOAD = 0
    STORE = 1
    ATOMIC = 2
    """Reads and writes, and gives the old value back."""
    REDUCTION = 3
    """Reads and writes, and gives nothing back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticInstruction:
    """What is known of an instruction before it runs.

    Attributes:
        index: its number in the trace; over all functions of the module, those of the kernel first, then what calls reach, once for each
            chain of calls.
        function: name of its function, mangled.
        text: as PTX.
        kind: None for what is not an access.
        space: as the instruction states it; GENERIC where only its addresses tell.
        bytes_per_lane: of all elements of a vector; 0 for what is not an access.
        is_read_only_path: a load through the non-coherent path (``ld.global.nc``, textures).
        cache_operator: ``ca``, ``cg``, ``cs``, ``lu``, ``cv``, ``wb``, ``wt``; empty when none is given.
        chain: source line with its inline chain, innermost first; None when there is none.
        column: 1-based, of its innermost place; 0 where the compiler gave none, and in traces that were saved without.
        calls: numbers of the calls that lead to it, innermost first; recursion is not repeated. Empty for what the kernel itself holds, and
            in another function where the way to it is not known.
        same_as: the instruction this is without regard to its callers; None for those that are.
    """

    index: int
    function: str
    text: str
    kind: AccessKind | None
    space: Space
    bytes_per_lane: int
    is_read_only_path: bool = False
    cache_operator: str = ""
    chain: InlineChain | None = None
    column: int = 0
    calls: tuple[int, ...] = ()
    same_as: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Buffer:
    """An array the kernel was given, or a variable of the module.

    Attributes:
        name: of the argument or variable.
        space: GLOBAL or CONST, TEXTURE.
        base: its first virtual address. Buffers are aligned to 512 bytes, as ``cudaMalloc`` aligns to 256 at least.
        size_bytes: of it.
        element_bytes: of one element; 1 when unknown.
        argument: index of the kernel's parameter; None for variables.
    """

    name: str
    space: Space
    base: int
    size_bytes: int
    element_bytes: int
    argument: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Accesses:
    """n warp-level accesses with m lane addresses; see :data:`ACCESS_DTYPES`.

    Attributes:
        block: uint32[n], linear index of the thread block, x fastest.
        warp: uint16[n], warp within its block.
        instruction: uint32[n], :attr:`StaticInstruction.index`.
        execution: uint32[n], how often this warp had executed this instruction before, with any lanes.
        lane_mask: uint32[n], lanes that accessed (predicated-off lanes are not in it); never 0.
        bytes: uint8[n], bytes per lane.
        space: uint8[n], :class:`~gpa_lsp.ptx.model.Space`, never GENERIC: resolved by the addresses. An access whose lanes went to
            several spaces is several rows.
        first_address: uint64[n], index of the row's first address in ``addresses``; the others follow, by ascending lane.
        addresses: uint64[m], of each active lane's first byte. Global and constant: virtual addresses, see :class:`Buffer`. Shared: bytes from
            the start of the block's shared memory. Local: bytes from the start of the thread's local memory.
    """

    block: npt.NDArray[np.uint32]
    warp: npt.NDArray[np.uint16]
    instruction: npt.NDArray[np.uint32]
    execution: npt.NDArray[np.uint32]
    lane_mask: npt.NDArray[np.uint32]
    bytes: npt.NDArray[np.uint8]
    space: npt.NDArray[np.uint8]
    first_address: npt.NDArray[np.uint64]
    addresses: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Branches:
    """n executions of conditional branches by warps; see :data:`BRANCH_DTYPES`.

    Attributes:
        block: uint32[n].
        warp: uint16[n].
        instruction: uint32[n].
        execution: uint32[n], as in :class:`Accesses`.
        active_mask: uint32[n], lanes that executed it.
        taken_mask: uint32[n], those of them that jumped. For ``brx.idx`` lanes that left the most common target of
            their warp.
    """

    block: npt.NDArray[np.uint32]
    warp: npt.NDArray[np.uint16]
    instruction: npt.NDArray[np.uint32]
    execution: npt.NDArray[np.uint32]
    active_mask: npt.NDArray[np.uint32]
    taken_mask: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """n entries of warps into basic blocks; see :data:`ENTRY_DTYPES`.

    Attributes:
        block: uint32[n].
        warp: uint16[n].
        basic_block: uint32[n], number of the PTX basic block, over all functions in the order of :class:`StaticInstruction`.
        lane_mask: uint32[n], lanes that entered together.
    """

    block: npt.NDArray[np.uint32]
    warp: npt.NDArray[np.uint16]
    basic_block: npt.NDArray[np.uint32]
    lane_mask: npt.NDArray[np.uint32]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.block)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace, or one piece of a longer one (pieces hold whole blocks and are analysed one after the other).

    Attributes:
        kernel: mangled name.
        grid: blocks in x, y, z.
        block_threads: threads of a block in x, y, z.
        instructions: all static instructions, by index.
        buffers: by ascending base.
        accesses: warp-level accesses.
        branches: warp-level conditional branches.
        entries: entries into basic blocks; empty unless they were asked for.
        traced_blocks: uint32[k], linear indexes of the blocks that were traced, ascending: a sample, or all.
        is_complete: False when rows were dropped because a limit was reached; what is there is whole blocks or a prefix, and says so.
        most_executions: of an instruction by a warp, as many accesses are there at most, the first ones, and no other row was dropped; None where
            the trace is complete, or lacks others.
        origin: what wrote it: ``emulated``, or a recorder's name.
    """

    kernel: str
    grid: tuple[int, int, int]
    block_threads: tuple[int, int, int]
    instructions: tuple[StaticInstruction, ...] = field(repr=False)
    buffers: tuple[Buffer, ...]
    accesses: Accesses = field(repr=False)
    branches: Branches = field(repr=False)
    entries: Entries = field(repr=False)
    traced_blocks: npt.NDArray[np.uint32] = field(repr=False)
    is_complete: bool = True
    most_executions: int | None = None
    origin: str = "emulated"


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
