"""A decoded device image: a :class:`Cubin` of :class:`Function` records, their :class:`Instructions` and their :class:`LineTable` records.

Containers are read whole and cheaply; instructions and lines are decoded per function, on demand. Everything per instruction is a numpy
column, because one function can have a hundred thousand of them.
"""

from collections.abc import Mapping
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.records import ColumnRecord, SharedFacts

INSTRUCTION_BYTES = 16  # Size of one instruction from compute capability 7.0 on
NO_BARRIER = 7  # The value of :attr:`ControlCodes.write_barrier` and ``read_barrier`` that means none


class ResourceKind(IntEnum):
    """A register file; the high byte of a *resource number*."""

    REGISTER = 0  # General register R0..R254 (RZ is not a resource)
    UNIFORM_REGISTER = 1  # UR0.. (URZ is not a resource).
    PREDICATE = 2  # P0..P6 (PT is not a resource)
    UNIFORM_PREDICATE = 3  # UP0..UP6 (UPT is not a resource)
    CONVERGENCE_BARRIER = 4  # B0..B15, the divergence barriers of BSSY, BSYNC, BREAK and WARPSYNC


PREDICATE_KINDS = (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE)
WHOLE_FILES = {"PR": ResourceKind.PREDICATE, "UPR": ResourceKind.UNIFORM_PREDICATE}  # All predicates, as an operand


def encode_resource(kind: ResourceKind, index: int) -> int:
    """The resource number, ``kind * 256 + index``.

    >>> encode_resource(ResourceKind.PREDICATE, 3)
    515
    """
    return int(kind) << 8 | index


def name_resource(number: int) -> str:
    """The name a listing uses.

    >>> name_resource(515), name_resource(7), name_resource(0x104)
    ('P3', 'R7', 'UR4')
    """
    return ("R", "UR", "P", "UP", "B")[number >> 8] + str(number & 0xFF)


class Flow(IntEnum):
    """Effect of an instruction on control flow."""

    NONE = 0  # Falls through
    BRANCH = 1  # Jumps to ``target``; with a guard it may fall through
    # Jumps through a register; the targets are in :attr:`Function.indirect_branch_targets` when known
    INDIRECT_BRANCH = 2
    CALL = 3  # Calls ``target`` (same section) or the symbol of its relocation, and comes back
    INDIRECT_CALL = 4  # Calls through a register and comes back
    RETURN = 5  # Leaves the function (RET)
    EXIT = 6  # Ends the thread (EXIT, KILL); with a guard it may fall through
    BARRIER_SET = 7  # BSSY: names ``target`` as the reconvergence point of a convergence barrier, and falls through
    BARRIER_WAIT = 8  # BSYNC: waits at a convergence barrier, then falls through
    TRAP = 9  # BPT.TRAP and its like: does not come back


class ControlCodes(ColumnRecord, frozen=True, kw_only=True):
    """The scheduling bits 105..125 of each instruction, as columns (all uint8[n]).

    Source: bit positions checked against every instruction of 58 cubins per architecture, sm_70 to sm_120.
    """

    stall_cycles: npt.NDArray[np.uint8]  # 0..15, cycles until the warp's next instruction may issue
    yield_flag: npt.NDArray[np.uint8]  # 1 when the scheduler may switch to another warp (encoded bit 0)
    write_barrier: npt.NDArray[np.uint8]  # scoreboard 0..5 released when the result is written; 7 = none
    read_barrier: npt.NDArray[np.uint8]  # scoreboard 0..5 released when the operands are read; 7 = none
    wait_mask: npt.NDArray[np.uint8]  # bit b set = waits for scoreboard b before issue
    reuse: npt.NDArray[np.uint8]  # bit s set = operand slot s is kept in the reuse cache


class ResourceLists(ColumnRecord, frozen=True, kw_only=True):
    """One list of resource numbers per instruction, in compressed rows."""

    starts: npt.NDArray[np.int32]  # int32[n + 1]; the list of instruction i is ``numbers[starts[i]:starts[i + 1]]``
    # int16[m], resource numbers (:func:`encode_resource`), ascending and unique within one instruction
    numbers: npt.NDArray[np.int16]

    def of(self, index: int) -> tuple[int, ...]:
        """The resource numbers of instruction ``index``."""
        return tuple(self.numbers[self.starts[index] : self.starts[index + 1]].tolist())

    def split(self) -> list[tuple[int, ...]]:
        """The resource numbers of every instruction, for loops over many."""
        starts, numbers = self.starts.tolist(), self.numbers.tolist()
        return [tuple(numbers[first:last]) for first, last in pairwise(starts)]


class Instructions(ColumnRecord, frozen=True, kw_only=True):
    """The n instructions of one function section, in address order, as columns."""

    pc_offsets: npt.NDArray[np.int64]  # int64[n], 0, 16, 32, …
    mnemonics: tuple[str, ...]  # distinct opcodes with modifiers, e.g. ``LDG.E.64``.
    mnemonic_index: npt.NDArray[np.int32]  # int32[n] into ``mnemonics``
    # n strings, guard + opcode + operands, without the final semicolon; branch targets are section offsets in hexadecimal
    texts: tuple[str, ...]
    # int16[n], resource number of the guard predicate, -1 when unguarded (or guarded by PT)
    guard: npt.NDArray[np.int16]
    guard_negated: npt.NDArray[np.bool_]  # bool[n]
    control: ControlCodes  # scheduling bits
    reads: ResourceLists  # resources read, including guard, address pairs, wide operands and implicit ones
    writes: ResourceLists  # resources written
    flow: npt.NDArray[np.uint8]  # uint8[n] of :class:`Flow`
    target: npt.NDArray[np.int64]  # int64[n], pc offset of the target in this section, -1 when none or elsewhere

    def __len__(self) -> int:
        return len(self.texts)


class LineTable(ColumnRecord, frozen=True, kw_only=True):
    """The source line, and the inlined calls it came through, of each address of one function."""

    # int64[r], ascending pc offsets at which a new row starts; a row holds until the next one
    row_offsets: npt.NDArray[np.int64]
    row_chain: npt.NDArray[np.int32]  # int32[r] into ``chains``; -1 = from here on no line is known
    chains: tuple[InlineChain, ...]  # distinct inline chains, innermost frame first

    def chain_index(self, pc_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Index into ``chains`` for each pc offset, int32 of the same shape; -1 where no line is known."""
        if len(self.row_offsets) == 0:
            return np.full(pc_offsets.shape, -1, dtype=np.int32)
        row = np.searchsorted(self.row_offsets, pc_offsets, side="right") - 1
        found = self.row_chain[np.maximum(row, 0)]
        return np.where(row >= 0, found, np.int32(-1)).astype(np.int32)


class SubFunction(Struct, frozen=True, kw_only=True):
    """A local function inside another function's section (a division slow path, a recursive device function)."""

    name: str  # mangled symbol name, e.g. ``$_Z4kernPf$_Z3recfi``.
    start_offset: int  # first byte in the section
    size_bytes: int  # as the symbol says; may be 0 in damaged images


class Function(Struct, frozen=True, kw_only=True):
    """One ``.text.<name>`` section, not yet disassembled."""

    # mangled name. Unique within the image: where linking left several local functions of one name (the slow paths of divisions), the later ones have
    # ``@`` and their section index appended.
    name: str
    is_entry: bool  # a ``__global__`` kernel (STO_CUDA_ENTRY), not a device function
    symbol_index: int | None  # of its STT_FUNC symbol in ``.symtab``; None when the symbol is missing
    section_index: int  # of its section
    image: bytes  # the image the function lies in; shared, not copied, because images reach 50 MB
    code_start: int  # offset of the section in the image
    size_bytes: int  # size of the section, a multiple of 16 (a ragged tail is cut)
    registers: int | None  # per thread (EIATTR 0x2f, or sh_info in older images); None when not stored
    barriers: int | None  # CTA barriers used; None when not stored
    frame_bytes: int | None  # stack frame of this function; None when not stored
    # minimum stack of the call tree; None when unknown (recursion, indirect calls) or not stored
    stack_bytes: int | None
    # size of ``.nv.shared.<name>`` (from sm_90 on it includes 1,024 reserved bytes); 0 when there is none
    shared_static_bytes: int
    sub_functions: tuple[SubFunction, ...]  # local functions in the section, by offset
    # pc offset of each BRX → pc offsets it can reach (EIATTR 0x34)
    indirect_branch_targets: Mapping[int, tuple[int, ...]]
    # pc offset → symbol name, for instructions whose target is given by a relocation (calls into other sections)
    call_symbols: Mapping[int, str]

    @property
    def code(self) -> bytes:
        """The section's bytes, a fresh copy."""
        return self.image[self.code_start : self.code_start + self.size_bytes]


class Cubin(Struct, SharedFacts, frozen=True, kw_only=True, dict=True, weakref=True):
    """A device image for one architecture."""

    path: Path | None  # the file it came from (the container, for embedded images); None for bytes from elsewhere
    sm: int  # architecture number from the ELF flags, e.g. 90 for sm_90; 0 when the flags do not say.
    sha256: str  # hexadecimal digest of the image
    image: bytes  # the ELF bytes
    functions: Mapping[str, Function]  # mangled name → function, in section order
    # (caller, callee) pairs of names of direct calls from ``.nv.callgraph``; callees may be outside the image, and sub-functions are not in it
    calls: tuple[tuple[str, str], ...]
    # mangled names, one pair per prototype: functions that call through a pointer to one of it, and those of it whose address is taken. Any of the
    # former may reach any of the latter.
    indirect_calls: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = ()
    has_lines: bool  # there is a ``.debug_line``
    has_ptx_lines: bool  # there is a ``.nv_debug_line_sass`` with its PTX
    # mangled names of those compiled for a debugger (nvcc -G): without optimization
    debug_functions: frozenset[str] = frozenset()
