"""What decoding a device image produces: a :class:`Cubin` of :class:`Function`\\ s, their :class:`Instructions` and their :class:`LineTable`\\ s.

Containers are read whole and cheaply; instructions and lines are decoded per function, on demand. Everything per instruction is a numpy
column, because one function can have a hundred thousand of them.
"""

from collections.abc import Mapping
from dataclasses import field
from enum import IntEnum
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.basis.shared_facts import SharedFacts

INSTRUCTION_BYTES = 16
"""Size of one instruction from compute capability 7.0 on."""


class ResourceKind(IntEnum):
    """What an instruction can read or write; the high byte of a *resource number*."""

    REGISTER = 0
    """General register R0..R254 (RZ is not a resource)."""
    UNIFORM_REGISTER = 1
    """UR0.. (URZ is not a resource)."""
    PREDICATE = 2
    """P0..P6 (PT is not a resource)."""
    UNIFORM_PREDICATE = 3
    """UP0..UP6 (UPT is not a resource)."""
    CONVERGENCE_BARRIER = 4
    """B0..B15, the divergence barriers of BSSY, BSYNC, BREAK and WARPSYNC."""


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
    """What an instruction does to control flow."""

    NONE = 0
    """Falls through."""
    BRANCH = 1
    """Jumps to ``target``; with a guard it may fall through."""
    INDIRECT_BRANCH = 2
    """Jumps through a register; the targets are in :attr:`Function.indirect_branch_targets` when known."""
    CALL = 3
    """Calls ``target`` (same section) or the symbol of its relocation, and comes back."""
    INDIRECT_CALL = 4
    """Calls through a register and comes back."""
    RETURN = 5
    """Leaves the function (RET)."""
    EXIT = 6
    """Ends the thread (EXIT, KILL); with a guard it may fall through."""
    BARRIER_SET = 7
    """BSSY: names ``target`` as the reconvergence point of a convergence barrier, and falls through."""
    BARRIER_WAIT = 8
    """BSYNC: waits at a convergence barrier, then falls through."""
    TRAP = 9
    """BPT.TRAP and its like: does not come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlCodes:
    """The scheduling bits 105..125 of each instruction, as columns (all uint8[n]).

    Attributes:
        stall_cycles: 0..15, cycles until the warp's next instruction may issue.
        yield_flag: 1 when the scheduler may switch to another warp (encoded bit 0).
        write_barrier: scoreboard 0..5 released when the result is written; 7 = none.
        read_barrier: scoreboard 0..5 released when the operands are read; 7 = none.
        wait_mask: bit b set = waits for scoreboard b before issue.
        reuse: bit s set = operand slot s is kept in the reuse cache.

    Source: bit positions checked against every instruction of 58 cubins per architecture, sm_70 to sm_120.
    """

    stall_cycles: npt.NDArray[np.uint8]
    yield_flag: npt.NDArray[np.uint8]
    write_barrier: npt.NDArray[np.uint8]
    read_barrier: npt.NDArray[np.uint8]
    wait_mask: npt.NDArray[np.uint8]
    reuse: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceLists:
    """One list of resource numbers per instruction, in compressed rows.

    Attributes:
        starts: int32[n + 1]; the list of instruction i is ``numbers[starts[i]:starts[i + 1]]``.
        numbers: int16[m], resource numbers (:func:`encode_resource`), ascending and unique within one instruction.
    """

    starts: npt.NDArray[np.int32]
    numbers: npt.NDArray[np.int16]

    def of(self, index: int) -> tuple[int, ...]:
        """The resource numbers of instruction ``index``."""
        return tuple(self.numbers[self.starts[index] : self.starts[index + 1]].tolist())

    def split(self) -> list[tuple[int, ...]]:
        """The resource numbers of every instruction, for loops over many."""
        starts, numbers = self.starts.tolist(), self.numbers.tolist()
        return [tuple(numbers[first:last]) for first, last in pairwise(starts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Instruction:
    """One instruction, as an object for hovers, listings and tests; loops over many use the columns.

    Attributes:
        pc_offset: bytes from the section's start.
        guard: the guard as written (``@!P0``), or None.
        opcode: the bare opcode, e.g. ``LDG``.
        modifiers: e.g. ``("E", "64")``.
        operands: as written, in order.
        text: guard, opcode and operands as one string.
        reads: resource numbers read, guard and implicit ones included.
        writes: resource numbers written.
        stall_cycles: see :class:`ControlCodes` for it and the other control fields.
        write_barrier: None when none is set.
        read_barrier: None when none is set.
        wait_barriers: scoreboards waited for, ascending.
        target: pc offset of the branch, call or reconvergence target in the same section; None when there is none.
    """

    pc_offset: int
    guard: str | None
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]
    text: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    stall_cycles: int
    yield_flag: bool
    write_barrier: int | None
    read_barrier: int | None
    wait_barriers: tuple[int, ...]
    reuse: int
    flow: Flow
    target: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Instructions:
    """The n instructions of one function section, in address order, as columns.

    Attributes:
        pc_offsets: int64[n], 0, 16, 32, … .
        mnemonics: distinct opcodes with modifiers, e.g. ``LDG.E.64``.
        mnemonic_index: int32[n] into ``mnemonics``.
        texts: n strings, guard + opcode + operands, without the final semicolon; branch targets are section offsets in hexadecimal.
        guard: int16[n], resource number of the guard predicate, -1 when unguarded (or guarded by PT).
        guard_negated: bool[n].
        control: scheduling bits.
        reads: resources read, including guard, address pairs, wide operands and implicit ones.
        writes: resources written.
        flow: uint8[n] of :class:`Flow`.
        target: int64[n], pc offset of the target in this section, -1 when none or elsewhere.
    """

    pc_offsets: npt.NDArray[np.int64]
    mnemonics: tuple[str, ...]
    mnemonic_index: npt.NDArray[np.int32]
    texts: tuple[str, ...]
    guard: npt.NDArray[np.int16]
    guard_negated: npt.NDArray[np.bool_]
    control: ControlCodes
    reads: ResourceLists
    writes: ResourceLists
    flow: npt.NDArray[np.uint8]
    target: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineTable:
    """Which source line, through which inlined calls, each address of one function came from.

    Attributes:
        row_offsets: int64[r], ascending pc offsets at which a new row starts; a row holds until the next one.
        row_chain: int32[r] into ``chains``; -1 = from here on no line is known.
        chains: distinct inline chains, innermost frame first.
    """

    row_offsets: npt.NDArray[np.int64]
    row_chain: npt.NDArray[np.int32]
    chains: tuple[InlineChain, ...]

    def chain_index(self, pc_offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Index into ``chains`` for each pc offset, int32 of the same shape; -1 where no line is known."""
        if len(self.row_offsets) == 0:
            return np.full(pc_offsets.shape, -1, dtype=np.int32)
        row = np.searchsorted(self.row_offsets, pc_offsets, side="right") - 1
        found = self.row_chain[np.maximum(row, 0)]
        return np.where(row >= 0, found, np.int32(-1)).astype(np.int32)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubFunction:
    """A local function inside another function's section (a division slow path, a recursive device function).

    Attributes:
        name: mangled symbol name, e.g. ``$_Z4kernPf$_Z3recfi``.
        start_offset: first byte in the section.
        size_bytes: as the symbol says; may be 0 in damaged images.
    """

    name: str
    start_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """One ``.text.<name>`` section, not yet disassembled.

    Attributes:
        name: mangled name. Unique within the image: where linking left several local functions of one name (the slow paths of divisions),
            the later ones have ``@`` and their section index appended.
        is_entry: a ``__global__`` kernel (STO_CUDA_ENTRY), not a device function.
        symbol_index: of its STT_FUNC symbol in ``.symtab``; None when the symbol is missing.
        section_index: of its section.
        image: the image the function lies in; shared, not copied, because images reach 50 MB.
        code_start: offset of the section in the image.
        size_bytes: size of the section, a multiple of 16 (a ragged tail is cut).
        registers: per thread (EIATTR 0x2f, or sh_info in older images); None when not stored.
        barriers: CTA barriers used; None when not stored.
        frame_bytes: stack frame of this function; None when not stored.
        stack_bytes: minimum stack of the call tree; None when unknown (recursion, indirect calls) or not stored.
        shared_static_bytes: size of ``.nv.shared.<name>`` (from sm_90 on it includes 1,024 reserved bytes); 0 when there is none.
        sub_functions: local functions in the section, by offset.
        indirect_branch_targets: pc offset of each BRX → pc offsets it can reach (EIATTR 0x34).
        call_symbols: pc offset → symbol name, for instructions whose target is given by a relocation (calls into other sections).
    """

    name: str
    is_entry: bool
    symbol_index: int | None
    section_index: int
    image: bytes = field(repr=False)
    code_start: int
    size_bytes: int
    registers: int | None
    barriers: int | None
    frame_bytes: int | None
    stack_bytes: int | None
    shared_static_bytes: int
    sub_functions: tuple[SubFunction, ...]
    indirect_branch_targets: Mapping[int, tuple[int, ...]]
    call_symbols: Mapping[int, str]

    @property
    def code(self) -> bytes:
        """The section's bytes, a fresh copy."""
        return self.image[self.code_start : self.code_start + self.size_bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndirectCalls:
    """Calls through pointers to functions of one prototype: any of the callers may reach any of the callees.

    Attributes:
        callers: mangled names of the functions that call through such a pointer.
        callees: mangled names of the functions of that prototype whose address is taken.
    """

    callers: tuple[str, ...]
    callees: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cubin(SharedFacts):
    """A device image for one architecture.

    Attributes:
        path: the file it came from (the container, for embedded images); None for bytes from elsewhere.
        sm: architecture number from the ELF flags, e.g. 90 for sm_90; 0 when the flags do not say.
        is_relocatable: ET_REL (compiled with -rdc), not linked.
        sha256: hexadecimal digest of the image.
        image: the ELF bytes.
        functions: mangled name → function, in section order.
        calls: (caller, callee) pairs of names of direct calls from ``.nv.callgraph``; callees may be outside the image, and sub-functions
            are not in it.
        indirect_calls: who may call whom through pointers, one entry per prototype.
        has_lines: there is a ``.debug_line``.
        has_ptx_lines: there is a ``.nv_debug_line_sass`` with its PTX.
        debug_functions: mangled names of those compiled for a debugger (nvcc -G): without optimization.
    """

    path: Path | None
    sm: int
    is_relocatable: bool
    sha256: str
    image: bytes = field(repr=False)
    functions: Mapping[str, Function]
    calls: tuple[tuple[str, str], ...]
    indirect_calls: tuple[IndirectCalls, ...] = ()
    has_lines: bool
    has_ptx_lines: bool
    debug_functions: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStamp:
    """A source file at the time of its compilation.

    Attributes:
        size_bytes: its length.
        modified_unix_s: its modification time; None when not written.

    Source: DWARF 2, section 6.2.4, the third and fourth field of a file entry.
    """

    size_bytes: int
    modified_unix_s: int | None
