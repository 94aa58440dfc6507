"""Static facts of each PTX instruction, such as its access to memory: :func:`list_static_instructions`."""

from collections.abc import Iterable
from enum import IntEnum
from functools import lru_cache

from msgspec import Struct

from gpa_lsp.code.ptx.model import (
    Address,
    Operand,
    PtxFunction,
    PtxInstruction,
    PtxModule,
    PtxVariable,
    Space,
    Symbol,
    Vector,
)
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.records import remembered


@remembered
def list_reachable(module: PtxModule, kernel: str) -> tuple[PtxFunction, ...]:
    """The kernel, then the functions with a body that it can call, directly or not, in order of the text.

    A function whose address is taken counts as called, but for a kernel, which can only be launched.
    Where a call goes through a pointer and nothing says where to, all device functions do.

    >>> from gpa_lsp.code.ptx.parse import parse_ptx
    >>> text = ".version 8.0 .target sm_80 .func a() { ret; } .func b() { call a; ret; } .entry k() { call b; ret; } .func c() { ret; }"
    >>> [function.name for function in list_reachable(parse_ptx(text, name="k"), "k")]
    ['k', 'a', 'b']
    """
    reached = {kernel}
    waiting = [kernel]
    while waiting:
        for name in _list_named(module, module.functions[waiting.pop()]):
            function = module.functions.get(name)
            if function is not None and name not in reached and function.instructions and not function.is_entry:
                reached.add(name)
                waiting.append(name)
    others = (function for name, function in module.functions.items() if name in reached and name != kernel)
    return (module.functions[kernel], *others)


def _list_named(module: PtxModule, function: PtxFunction) -> set[str]:
    """Functions an instruction names or can call."""
    found: set[str] = set()
    lists: dict[int, tuple[str, ...]] = {}
    variables: set[str] = set()
    for instruction in function.instructions:
        call = instruction.call
        if call is None:
            names = set(_list_symbols(instruction.sources))
            found.update(names & module.functions.keys())
            variables.update(names & module.variables.keys())
        elif call.callee is not None:
            found.add(call.callee)
        elif call.possible:
            lists[id(call.possible)] = call.possible
        else:
            found.update(name for name, one in module.functions.items() if not one.is_entry)
    for names_of_list in lists.values():
        found.update(names_of_list)
    for name in variables:
        found.update(symbol for _, symbol, _ in module.variables[name].initial_symbols if symbol in module.functions)
    return found


def _list_symbols(operands: "Iterable[Operand | None]") -> list[str]:
    found = [operand.name for operand in operands if isinstance(operand, Symbol)]
    for operand in operands:
        if isinstance(operand, Vector):
            found.extend(one.name for one in operand.elements if isinstance(one, Symbol))
    return found


class AccessKind(IntEnum):
    """Kind of memory access; the numbers stand in saved traces."""

    LOAD = 0
    STORE = 1
    ATOMIC = 2  # Reads and writes, and gives the old value back
    REDUCTION = 3  # Reads and writes, and gives nothing back


class StaticInstruction(Struct, frozen=True, kw_only=True):
    """An instruction and the facts that hold for each of its executions."""

    # its number in the trace; over all functions of the module, those of the kernel first, then what calls reach, once for each chain of calls
    index: int
    function: str  # name of its function, mangled
    text: str  # as PTX
    kind: AccessKind | None  # None for what is not an access
    space: Space  # as the instruction states it; GENERIC where only its addresses tell
    bytes_per_lane: int  # of all elements of a vector; 0 for what is not an access
    cache_operator: str = ""  # ``ca``, ``cg``, ``cs``, ``lu``, ``cv``, ``wb``, ``wt``; empty when none is given
    chain: InlineChain | None = None  # source line with its inline chain, innermost first; None when there is none
    # 1-based, of its innermost place; 0 where the compiler gave none, and in traces that were saved without
    column: int = 0
    # numbers of the calls that lead to it, innermost first; recursion is not repeated. Empty for what the kernel itself holds, and in another
    # function where the way to it is not known.
    calls: tuple[int, ...] = ()
    same_as: int | None = None  # the instruction this is without regard to its callers; None for those that are


_CACHE_OPERATORS = frozenset({"ca", "cg", "cs", "lu", "cv", "wb", "wt"})
_VECTORS = {"v2": 2, "v4": 4, "v8": 8}
_SPACES = {
    "global": Space.GLOBAL,
    "shared": Space.SHARED,
    "local": Space.LOCAL,
    "const": Space.CONST,
    "param": Space.PARAM,
}
_KINDS = {
    "ld": AccessKind.LOAD, "ldu": AccessKind.LOAD, "st": AccessKind.STORE, "atom": AccessKind.ATOMIC,
    "red": AccessKind.REDUCTION, "tex": AccessKind.LOAD, "tld4": AccessKind.LOAD, "suld": AccessKind.LOAD,
    "sust": AccessKind.STORE, "sured": AccessKind.REDUCTION, "ldmatrix": AccessKind.LOAD,
    "stmatrix": AccessKind.STORE,
}  # fmt: skip
_TEXTURE = frozenset({"tex", "tld4", "suld", "sust", "sured"})
_READ_ONLY = frozenset({"tex", "tld4"})
_MATRIX_ROW_BYTES = 16
_FRAGMENT_REGISTER_BYTES = 4
_BULK_PIECE_BYTES = 16  # of which traces make bulk copies: a request of 32 of them at a time
_MOST_BYTES = 255  # What a trace's column holds


@remembered
def list_static_instructions(module: PtxModule, kernel: str) -> tuple[StaticInstruction, ...]:
    """The instructions of a kernel, then those of the device functions it can reach, numbered through.

    Args:
        module: the module.
        kernel: mangled name.

    ``cp.async`` counts as a load of global memory: the bytes it writes to shared memory are the same. Parameters are no accesses. Of the
    instructions that move matrices (``ldmatrix``, ``wmma.load`` …) the bytes are those of a row, or of one lane's registers. What tensor cores
    read of shared memory by descriptor (``wgmma``) is no access: no lane reads it, and banks serve it in ways that are not documented.
    """
    found: list[StaticInstruction] = []
    for function in list_reachable(module, kernel):
        for instruction in function.instructions:
            found.append(describe_instruction(module, function, instruction, index=len(found)))
    return tuple(found)


def describe_instruction(
    module: PtxModule, function: PtxFunction, instruction: PtxInstruction, *, index: int
) -> StaticInstruction:
    """One instruction under its number in the trace."""
    kind = _find_kind(instruction)
    space = Space.GENERIC if kind is None else _find_space(module, function, instruction)
    if space == Space.PARAM:
        kind = None
    return StaticInstruction(
        index=index,
        function=function.name,
        text=instruction.text,
        kind=kind,
        space=space if kind is not None else Space.GENERIC,
        bytes_per_lane=0 if kind is None else count_bytes_per_lane(instruction),
        cache_operator=next(
            (word for word in instruction.suffixes if kind is not None and word in _CACHE_OPERATORS), ""
        ),
        chain=instruction.chain,
        column=instruction.column,
    )


def _find_kind(instruction: PtxInstruction) -> AccessKind | None:
    opcode, suffixes = instruction.opcode, instruction.suffixes
    if opcode == "wmma":
        return {"load": AccessKind.LOAD, "store": AccessKind.STORE}.get(suffixes[0] if suffixes else "")
    if opcode == "cp" and "bulk" in suffixes:
        return _find_bulk_kind(suffixes)
    if opcode == "cp":
        is_copy = suffixes[:1] == ("async",) and bool(suffixes[1:]) and suffixes[1] in ("ca", "cg")
        return AccessKind.LOAD if is_copy else None
    if opcode == "red" and "async" in suffixes:
        return None
    return _KINDS.get(opcode)


def _find_bulk_kind(suffixes: tuple[str, ...]) -> AccessKind | None:
    """Kind of access that a bulk copy makes of global memory; None where it only moves within shared memory, or copies by a tensor map."""
    spaces = " ".join(word.partition("::")[0] for word in suffixes if word.startswith(("global", "shared")))
    kinds = {"shared global": AccessKind.LOAD, "global shared": AccessKind.STORE}
    return None if "tensor" in suffixes else kinds.get(spaces)


def _find_space(module: PtxModule, function: PtxFunction, instruction: PtxInstruction) -> Space:
    if instruction.opcode in _TEXTURE:
        return Space.TEXTURE
    if instruction.opcode == "cp":
        return Space.GLOBAL
    for word in instruction.suffixes:
        space = _SPACES.get(word.partition("::")[0])
        if space is not None:
            return space
    return _find_space_of_variable(module, function, instruction)


def _find_space_of_variable(module: PtxModule, function: PtxFunction, instruction: PtxInstruction) -> Space:
    """Space of the variable whose address a generic access uses; GENERIC where it uses none."""
    for operand in instruction.sources:
        if isinstance(operand, Address) and isinstance(operand.base, Symbol):
            name = operand.base.name
            declared: tuple[PtxVariable, ...] = (*function.locals, *function.shared, *function.parameters)
            known = module.variables.get(name) or next((one for one in declared if one.name == name), None)
            return Space.GENERIC if known is None else known.space
    return Space.GENERIC


def count_bytes_per_lane(instruction: PtxInstruction) -> int:
    """Bytes each lane reads or writes, of all elements of a vector.

    >>> from gpa_lsp.code.ptx.parse import parse_ptx
    >>> text = ".version 8.0 .target sm_80 .entry k() { .reg .f32 %f<4>; .reg .b64 %rd<1>; ld.global.v2.f32 {%f0, %f1}, [%rd0]; ret; }"
    >>> count_bytes_per_lane(parse_ptx(text, name="k").functions["k"].instructions[0])
    8
    """
    if instruction.opcode in ("ldmatrix", "stmatrix"):
        return _MATRIX_ROW_BYTES
    if instruction.opcode == "cp":
        if "bulk" in instruction.suffixes:
            return _BULK_PIECE_BYTES
        sizes = [getattr(operand, "value", 0) for operand in instruction.sources[2:3]]
        return int(sizes[0]) if sizes and sizes[0] in (4, 8, 16) else 0
    if instruction.opcode == "wmma":
        operands = (*instruction.destinations, *instruction.sources)
        registers = max((len(one.elements) for one in operands if isinstance(one, Vector)), default=1)
        return min(_MOST_BYTES, _FRAGMENT_REGISTER_BYTES * registers)
    if not instruction.types:
        return 0
    elements = next((_VECTORS[word] for word in instruction.suffixes if word in _VECTORS), 1)
    kind = instruction.types[0] if instruction.opcode in _READ_ONLY else instruction.types[-1]
    return min(_MOST_BYTES, elements * kind.bytes)


# Which loads L1 does not keep: :func:`bypasses_l1`. Predicted hits and predicted volumes both ask here.
#
# And which accesses must reach memory each time, since others write or wait meanwhile: :func:`is_strong`,
# :func:`is_read_anew`.

_BYPASSING = frozenset({"cg", "cv"})
_STRONG_WORDS = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})


def bypasses_l1(instruction: StaticInstruction) -> bool:
    """Whether it is a load that L1 does not keep: ``.cg``, ``.cv``, volatile and the other strong ones.

    Loads of local memory are kept whatever they say; of generic ones only the addresses tell that they are local, which the caller looks at.

    >>> text = "ld.volatile.global.f32 %f1, [%rd1]"
    >>> bypasses_l1(
    ...     StaticInstruction(
    ...         index=0, function="k", text=text, kind=AccessKind.LOAD, space=Space.GLOBAL, bytes_per_lane=4
    ...     )
    ... )
    True
    """
    if instruction.kind is not AccessKind.LOAD or instruction.space == Space.LOCAL:
        return False
    return (
        instruction.cache_operator in _BYPASSING
        or is_strong(instruction)
        or instruction.text.startswith("cp.async.bulk")
    )


def is_kept_by_l1(instruction: StaticInstruction) -> bool:
    """Whether it is a load whose lines L1 keeps; an access that states no kind is a load."""
    return instruction.kind in (None, AccessKind.LOAD) and not bypasses_l1(instruction)


def is_strong(instruction: StaticInstruction) -> bool:
    """Whether an access is volatile, relaxed, acquire or release: its value must not be kept from one to the next."""
    return not _STRONG_WORDS.isdisjoint(split_opcode(instruction.text))


def is_read_anew(instruction: StaticInstruction) -> bool:
    """Whether a load is there to see what others wrote meanwhile: a strong one, ``ld.cv`` or ``ld.cg``; copies (``cp.async.cg``) are not."""
    is_past_l1 = instruction.cache_operator in _BYPASSING and split_opcode(instruction.text)[0] == "ld"
    return is_strong(instruction) or is_past_l1


@lru_cache(maxsize=1 << 12)  # analyses ask of each instruction for each piece of a trace
def split_opcode(text: str) -> tuple[str, ...]:
    """Opcode and suffixes: ``ld``, ``volatile``, ``global``, ``f32``."""
    return tuple(text.split(" ", 1)[0].split("."))
