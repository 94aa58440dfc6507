"""A parsed PTX module: :class:`PtxModule` of functions of instructions. Written by the parser, read by everything else of the emulator.

Registers are numbered per function (*slots*); labels and branch targets are indexes into the function's instructions. Directives are not
instructions. Source: PTX ISA 9.0.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from enum import IntEnum

from msgspec import Struct

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.records import SharedFacts


class Space(IntEnum):
    """A state space; the numbers stand in traces and never change."""

    GENERIC = 0
    GLOBAL = 1
    SHARED = 2
    LOCAL = 3
    CONST = 4
    PARAM = 5
    TEXTURE = 6


class Register(Struct, frozen=True):
    """A register of the function."""

    slot: int  # index into :attr:`PtxFunction.registers`
    is_negated: bool = False  # ``!%p`` as a source, or ``-%r`` of a video instruction
    # the part of it a video instruction uses: ``b0`` … ``b3``, ``h0``, ``h1``, or several (``b3210``); empty for all of it
    selector: str = ""


class Immediate(Struct, frozen=True):
    """A literal."""

    value: int | float  # an integer, or the exact value of a floating-point literal
    # of a literal that gives its bits (``0f3F800000``, ``0d…``); None for others. A NaN's payload is only here.
    bits: int | None = None
    width_bits: int | None = None  # 32 or 64 where ``bits`` is given; None otherwise


class SpecialRegister(Struct, frozen=True):
    """``%tid.x``, ``%laneid``, ``%clock64`` …"""

    name: str  # without ``%`` and component, e.g. ``tid``.
    component: str = ""  # ``x``, ``y``, ``z`` or ``w`` of a register that is a vector; empty for others


class Symbol(Struct, frozen=True):
    """The address of a variable or function."""

    name: str  # as written
    offset_bytes: int = 0  # added to it


class Address(Struct, frozen=True):
    """A memory operand ``[base + offset]``."""

    base: "Register | Symbol | None"  # a register, a variable's name, or None for an absolute address
    offset_bytes: int = 0  # added to it


class Vector(Struct, frozen=True):
    """``{%f1, %f2}``; None stands for ``_``, a result that is dropped."""

    elements: "tuple[Operand | None, ...]"  # registers, literals, or None


class Pair(Struct, frozen=True):
    """``%r1|%p1``: two results of one instruction, or ``%p1|%p2``."""

    first: "Register | None"  # None for ``_``
    second: "Register | None"  # None for ``_``


class TextureAddress(Struct, frozen=True):
    """``[handle, {coordinates}]`` of texture and surface instructions."""

    handle: "Register | Symbol"  # a register or a variable
    sampler: "Register | Symbol | None"  # of the separate mode; None in the unified mode
    coordinates: "tuple[Operand, ...]"  # as written


Operand = Register | Immediate | SpecialRegister | Symbol | Address | Vector | Pair | TextureAddress


class CallDetails(Struct, frozen=True, kw_only=True):
    """Callee and arguments of a ``call``."""

    callee: str | None  # name of the function called directly; None for an indirect call
    pointer: Register | None  # register that holds the function's address; None for a direct call
    # parameter variables of the caller (``.param`` in its body) or registers that take what is returned
    results: tuple[Operand, ...]
    arguments: tuple[Operand, ...]  # those that are passed
    # names of functions an indirect call can reach (``.calltargets``), or those of its prototype; empty when unknown
    possible: tuple[str, ...] = ()


class PtxInstruction(Struct, frozen=True, kw_only=True):
    """One instruction."""

    index: int  # its place in :attr:`PtxFunction.instructions`
    opcode: str  # the first word, e.g. ``mad``.
    # all words behind it in order, without dots, types included: ``("lo", "s32")``, ``("global", "nc", "v4", "f32")``
    suffixes: tuple[str, ...]
    types: tuple[ScalarType, ...]  # those suffixes that are types, in order: ``cvt.rn.f32.s32`` has (F32, S32)
    # results, in the order written; empty for stores, branches and barriers, for ``call``, and where the result is dropped (``_``)
    destinations: tuple[Operand, ...]
    # what it reads, in the order written; a store's address comes first. Branch targets are not operands, and those of a ``call`` stand in ``call``
    # alone.
    sources: tuple[Operand, ...]
    guard: Register | None  # None when it is executed by all
    target: int | None = None  # index of the instruction a ``bra`` goes to; None for all others
    targets: tuple[int, ...] = ()  # of a ``brx.idx``, in the order of its table
    call: CallDetails | None = None  # None but for ``call``
    text: str  # as written, without guard, label and semicolon, blanks folded; cut at 400 characters
    text_line: int  # 1-based line of the PTX text
    # source line with its inline chain, innermost first, from ``.loc``; None where no line is given (line 0)
    chain: InlineChain | None
    column: int = 0  # 1-based, of the innermost place; 0 where the compiler gave none


class PtxVariable(Struct, frozen=True, kw_only=True):
    """A variable of any space."""

    name: str  # as written
    space: Space  # where it lives
    type: ScalarType  # of its elements; B8 for structures
    count: int  # elements, 0 for an array without a size (``extern .shared``)
    alignment_bytes: int  # as declared, else that of the type
    # from the start of its function's parameters, local frame or shared memory, laid out by the parser in the order declared; of module-level
    # variables: from the start of the module's variables of that space. Dynamic shared memory (``extern``) comes after all static shared memory.
    offset_bytes: int = 0
    # bytes it starts with, as far as they are listed: at most ``size_bytes``, what lies behind them is zero. None for zeros (shared memory:
    # undefined).
    initial: bytes | None = None
    # (offset in bytes, name, added bytes) of addresses of other variables and functions within ``initial``; eight bytes each
    initial_symbols: tuple[tuple[int, str, int], ...] = ()
    is_extern: bool = False  # declared here, defined elsewhere
    is_texture: bool = False  # a ``.texref``, ``.samplerref`` or ``.surfref``
    is_pointer: bool = False  # a kernel's parameter that is marked as a pointer (``.ptr``)

    @property
    def size_bytes(self) -> int:
        """Size of the whole variable."""
        return self.type.bytes * self.count


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class PtxFunction(SharedFacts):
    """A kernel or device function, told from others by identity."""

    name: str  # as written, mangled
    is_entry: bool  # a kernel
    parameters: tuple[PtxVariable, ...]  # in order
    returns: tuple[PtxVariable, ...]  # what a device function returns, in order
    registers: tuple[ScalarType, ...]  # type of each slot; those that are declared but never named have none
    register_names: tuple[str, ...] = dataclasses.field(repr=False)  # name of each slot, with ``%``
    # in order of the text; empty for a function that is only declared
    instructions: tuple[PtxInstruction, ...] = dataclasses.field(repr=False)
    locals: tuple[PtxVariable, ...] = ()  # variables in local memory; offsets from the thread's frame of this function
    # static shared memory declared inside the function or, for a kernel, used by it and by the device functions it can reach, and the dynamic array
    # (``is_extern``, count 0) last. A device function's own list gives no offsets: they are those of the kernel's list.
    shared: tuple[PtxVariable, ...] = ()
    # ``.param`` variables declared in the body, for calls; those of call sequences that follow one another share their bytes. A name declared again
    # with another shape or place is told apart by ``#2``, ``#3`` … behind it, in the operands too.
    call_parameters: tuple[PtxVariable, ...] = ()
    local_bytes: int = 0  # size of the local frame, aligned
    max_threads: int | None = None  # ``.maxntid`` multiplied out; None when not given
    required_threads: tuple[int, int, int] | None = None  # ``.reqntid`` as x, y, z; None when not given
    cluster: tuple[int, int, int] | None = None  # ``.reqnctapercluster``, blocks, as x, y, z; None when not given
    counts_clusters: bool = False  # ``.blocksareclusters``: the grid is one of clusters
    line: InlineChain | None = None  # where the function begins in its source; None when unknown


class PtxModule(Struct, SharedFacts, frozen=True, kw_only=True, eq=False, dict=True, weakref=True):
    """One PTX text, told from others by identity."""

    name: str  # for messages: the source's or the file's name
    version: tuple[int, int]  # of the ISA, e.g. (9, 0).
    target: str  # e.g. ``sm_80``.
    files: dict[int, str]  # number of ``.file`` → path as written
    functions: dict[str, PtxFunction]  # by name; declarations without a body included
    variables: dict[str, PtxVariable]  # of module level (global, constant, shared, texture references), by name
    text: str  # the whole PTX

    @property
    def entries(self) -> tuple[PtxFunction, ...]:
        """The kernels, in order of the text."""
        return tuple(function for function in self.functions.values() if function.is_entry)


def list_reads(instruction: PtxInstruction) -> tuple[int, ...]:
    """Slots that are read, the guard's and those of addresses among the results included; some may come twice."""
    found = list(_list_slots(instruction.sources))
    if instruction.guard is not None:
        found.append(instruction.guard.slot)
    for operand in instruction.destinations:
        # An asynchronous product of matrices adds to its results.
        if isinstance(operand, Address | TextureAddress) or instruction.opcode == "wgmma":
            found.extend(_list_slots((operand,)))
    if instruction.call is not None:
        found.extend(_list_slots(instruction.call.arguments))
        if instruction.call.pointer is not None:
            found.append(instruction.call.pointer.slot)
    return tuple(found)


def list_writes(instruction: PtxInstruction) -> tuple[int, ...]:
    """Slots that are written, where the guard holds."""
    results = instruction.destinations if instruction.call is None else instruction.call.results
    return tuple(_list_slots(one for one in results if not isinstance(one, Address | TextureAddress)))


def _list_slots(operands: "Iterable[Operand | None]") -> Iterator[int]:
    for operand in operands:
        if isinstance(operand, Register):
            yield operand.slot
        elif isinstance(operand, Address):
            if isinstance(operand.base, Register):
                yield operand.base.slot
        elif isinstance(operand, Vector):
            yield from _list_slots(operand.elements)
        elif isinstance(operand, Pair):
            yield from _list_slots((operand.first, operand.second))
        elif isinstance(operand, TextureAddress):
            yield from _list_slots((operand.handle, operand.sampler, *operand.coordinates))
