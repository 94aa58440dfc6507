"""A parsed PTX module: :class:`PtxModule` of functions of instructions. Written by the parser, read by everything else of the emulator.

Registers are numbered per function (*slots*); labels and branch targets are indexes into the function's instructions. Directives are not
instructions. Source: PTX ISA 9.0.
"""

from dataclasses import field
from enum import IntEnum

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.locations import InlineChain
from gpa_lsp.ptx.scalar_types import ScalarType


class Space(IntEnum):
    """A state space; the numbers stand in traces and never change."""

    GENERIC = 0
    GLOBAL = 1
    SHARED = 2
    LOCAL = 3
    CONST = 4
    PARAM = 5
    TEXTURE = 6


@dataclass(frozen=True, slots=True)
class Register:
    """A register of the function.

    Attributes:
        slot: index into :attr:`PtxFunction.registers`.
        is_negated: ``!%p`` as a source, or ``-%r`` of a video instruction.
        selector: the part of it a video instruction uses: ``b0`` … ``b3``, ``h0``, ``h1``, or several (``b3210``); empty for all of it.
    """

    slot: int
    is_negated: bool = False
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Immediate:
    """A literal.

    Attributes:
        value: an integer, or the exact value of a floating-point literal.
        bits: of a literal that gives its bits (``0f3F800000``, ``0d…``); None for others. A NaN's payload is only here.
        width_bits: 32 or 64 where ``bits`` is given; None otherwise.
    """

    value: int | float
    bits: int | None = None
    width_bits: int | None = None


@dataclass(frozen=True, slots=True)
class SpecialRegister:
    """``%tid.x``, ``%laneid``, ``%clock64`` …

    Attributes:
        name: without ``%`` and component, e.g. ``tid``.
        component: ``x``, ``y``, ``z`` or ``w`` of a register that is a vector; empty for others.
    """

    name: str
    component: str = ""


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address of a variable or function.

    Attributes:
        name: as written.
        offset_bytes: added to it.
    """

    name: str
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Address:
    """A memory operand ``[base + offset]``.

    Attributes:
        base: a register, a variable's name, or None for an absolute address.
        offset_bytes: added to it.
    """

    base: "Register | Symbol | None"
    offset_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Vector:
    """``{%f1, %f2}``; None stands for ``_``, a result that is dropped.

    Attributes:
        elements: registers, literals, or None.
    """

    elements: "tuple[Operand | None, ...]"


@dataclass(frozen=True, slots=True)
class Pair:
    """``%r1|%p1``: two results of one instruction, or ``%p1|%p2``.

    Attributes:
        first: None for ``_``.
        second: None for ``_``.
    """

    first: "Register | None"
    second: "Register | None"


@dataclass(frozen=True, slots=True)
class TextureAddress:
    """``[handle, {coordinates}]`` of texture and surface instructions.

    Attributes:
        handle: a register or a variable.
        sampler: of the separate mode; None in the unified mode.
        coordinates: as written.
    """

    handle: "Register | Symbol"
    sampler: "Register | Symbol | None"
    coordinates: "tuple[Operand, ...]"


Operand = Register | Immediate | SpecialRegister | Symbol | Address | Vector | Pair | TextureAddress


@dataclass(frozen=True, slots=True)
class Guard:
    """``@%p`` or ``@!%p`` before an instruction.

    Attributes:
        slot: of the predicate.
        is_negated: True for ``!``.
    """

    slot: int
    is_negated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallDetails:
    """What a ``call`` says beyond its operands.

    Attributes:
        callee: name of the function called directly; None for an indirect call.
        pointer: register that holds the function's address; None for a direct call.
        results: parameter variables of the caller (``.param`` in its body) or registers that take what is returned.
        arguments: those that are passed.
        possible: names of functions an indirect call can reach (``.calltargets``), or those of its prototype; empty when unknown.
    """

    callee: str | None
    pointer: Register | None
    results: tuple[Operand, ...]
    arguments: tuple[Operand, ...]
    possible: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxInstruction:
    """One instruction.

    Attributes:
        index: its place in :attr:`PtxFunction.instructions`.
        opcode: the first word, e.g. ``mad``.
        suffixes: all words behind it in order, without dots, types included: ``("lo", "s32")``, ``("global", "nc", "v4", "f32")``.
        types: those suffixes that are types, in order: ``cvt.rn.f32.s32`` has (F32, S32).
        destinations: results, in the order written; empty for stores, branches and barriers, for ``call``, and where the result is dropped (``_``).
        sources: what it reads, in the order written; a store's address comes first. Branch targets are not operands, and those of a ``call``
            stand in ``call`` alone.
        guard: None when it is executed by all.
        target: index of the instruction a ``bra`` goes to; None for all others.
        targets: of a ``brx.idx``, in the order of its table.
        call: None but for ``call``.
        text: as written, without guard, label and semicolon, blanks folded; cut at 400 characters.
        text_line: 1-based line of the PTX text.
        chain: source line with its inline chain, innermost first, from ``.loc``; None where no line is given (line 0).
        column: 1-based, of the innermost place; 0 where the compiler gave none.
    """

    index: int
    opcode: str
    suffixes: tuple[str, ...]
    types: tuple[ScalarType, ...]
    destinations: tuple[Operand, ...]
    sources: tuple[Operand, ...]
    guard: Guard | None
    target: int | None = None
    targets: tuple[int, ...] = ()
    call: CallDetails | None = None
    text: str
    text_line: int
    chain: InlineChain | None
    column: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxVariable:
    """A variable of any space.

    Attributes:
        name: as written.
        space: where it lives.
        type: of its elements; B8 for structures.
        count: elements, 0 for an array without a size (``extern .shared``).
        alignment_bytes: as declared, else that of the type.
        offset_bytes: from the start of its function's parameters, local frame or shared memory, laid out by the parser in the order declared;
            of module-level variables: from the start of the module's variables of that space. Dynamic shared memory (``extern``) comes after
            all static shared memory.
        initial: bytes it starts with, as far as they are listed: at most ``size_bytes``, what lies behind them is zero. None for zeros (shared
            memory: undefined).
        initial_symbols: (offset in bytes, name, added bytes) of addresses of other variables and functions within ``initial``; eight bytes each.
        is_extern: declared here, defined elsewhere.
        is_texture: a ``.texref``, ``.samplerref`` or ``.surfref``.
        is_pointer: a kernel's parameter that is marked as a pointer (``.ptr``).
    """

    name: str
    space: Space
    type: ScalarType
    count: int
    alignment_bytes: int
    offset_bytes: int = 0
    initial: bytes | None = field(default=None, repr=False)
    initial_symbols: tuple[tuple[int, str, int], ...] = ()
    is_extern: bool = False
    is_texture: bool = False
    is_pointer: bool = False

    @property
    def size_bytes(self) -> int:
        """Of the whole variable."""
        return self.type.bytes * self.count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class PtxFunction:
    """A kernel or device function, told from others by identity.

    Attributes:
        name: as written, mangled.
        is_entry: a kernel.
        parameters: in order.
        returns: what a device function returns, in order.
        registers: type of each slot; those that are declared but never named have none.
        register_names: name of each slot, with ``%``.
        instructions: in order of the text; empty for a function that is only declared.
        locals: variables in local memory; offsets from the thread's frame of this function.
        shared: static shared memory declared inside the function or, for a kernel, used by it and by the device functions it can reach, and
            the dynamic array (``is_extern``, count 0) last. A device function's own list gives no offsets: they are those of the kernel's list.
        call_parameters: ``.param`` variables declared in the body, for calls; those of call sequences that follow one another share their bytes.
            A name declared again with another shape or place is told apart by ``#2``, ``#3`` … behind it, in the operands too.
        local_bytes: size of the local frame, aligned.
        max_threads: ``.maxntid`` multiplied out; None when not given.
        required_threads: ``.reqntid`` as x, y, z; None when not given.
        cluster_blocks: ``.reqnctapercluster`` multiplied out; None when not given.
        line: where the function begins in its source; None when unknown.
    """

    name: str
    is_entry: bool
    parameters: tuple[PtxVariable, ...]
    returns: tuple[PtxVariable, ...]
    registers: tuple[ScalarType, ...]
    register_names: tuple[str, ...] = field(repr=False)
    instructions: tuple[PtxInstruction, ...] = field(repr=False)
    locals: tuple[PtxVariable, ...] = ()
    shared: tuple[PtxVariable, ...] = ()
    call_parameters: tuple[PtxVariable, ...] = ()
    local_bytes: int = 0
    max_threads: int | None = None
    required_threads: tuple[int, int, int] | None = None
    cluster_blocks: int | None = None
    line: InlineChain | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, weakref_slot=True)
class PtxModule:
    """One PTX text, told from others by identity.

    Attributes:
        name: for messages: the source's or the file's name.
        version: of the ISA, e.g. (9, 0).
        target: e.g. ``sm_80``.
        files: number of ``.file`` → path as written.
        functions: by name; declarations without a body included.
        variables: of module level (global, constant, shared, texture references), by name.
        text: the whole PTX.
    """

    name: str
    version: tuple[int, int]
    target: str
    files: dict[int, str]
    functions: dict[str, PtxFunction] = field(repr=False)
    variables: dict[str, PtxVariable] = field(repr=False)
    text: str = field(repr=False)

    @property
    def entries(self) -> tuple[PtxFunction, ...]:
        """Its kernels, in order of the text."""
        return tuple(function for function in self.functions.values() if function.is_entry)
