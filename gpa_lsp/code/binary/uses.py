"""Registers, predicates and convergence barriers that one instruction reads and writes.

An opcode's facts (how many results, how wide each operand) and the kinds of the operands written give a *plan*: per operand, whether it is
read or written and how many registers it stands for. Plans are kept per mnemonic and shape, so most instructions cost a few look-ups.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from functools import lru_cache, partial
from typing import NamedTuple

from gpa_lsp.code.binary.model import WHOLE_FILES, ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import BarrierUse, Opcode

KIND_OF_PREFIX = {
    "R": ResourceKind.REGISTER,
    "UR": ResourceKind.UNIFORM_REGISTER,
    "P": ResourceKind.PREDICATE,
    "UP": ResourceKind.UNIFORM_PREDICATE,
    "B": ResourceKind.CONVERGENCE_BARRIER,
}
# Registers of each file; a group that would go beyond is cut there
FILE_SIZES = {
    ResourceKind.REGISTER: 255,
    ResourceKind.UNIFORM_REGISTER: 255,
    ResourceKind.PREDICATE: 7,
    ResourceKind.UNIFORM_PREDICATE: 7,
    ResourceKind.CONVERGENCE_BARRIER: 16,
}
_WIDTH_OF_SUFFIX = {"64": 2, "U32": 1, "32": 1, "F32": 1, "F32x2": 2}
_RESOURCE = re.compile(r"(?<![\w.])(UR|UP|R|P|B)(\d{1,3})(?!\w)\|?((?:\.\w+)*)")
_PREDICATE = re.compile(r"!?U?P[0-6T]")
_CONVERGENCE_BARRIER = re.compile(r"B\d{1,2}")
_OFFSET = re.compile(r"\+-?0x[0-9a-f]+\]\Z")
_SIGNS = "-|~!"
_PAIR_PREFIXES = ("desc[", "cx[")  # The uniform register in their first bracket is a 64-bit handle
_ADDRESS_PREFIXES = ("[", "desc[")
_LABEL_PREFIX = "`"
_MAY_NAME_A_RESOURCE = frozenset("RPB")


class OperandKind(StrEnum):
    """Kind of an operand, as far as roles and widths depend on it; values are single letters, so that they join to a shape."""

    REGISTER = "r"  # A register, or another value that is no address: a constant, an immediate, a name
    ADDRESS = "a"  # An address in memory, in brackets
    # Another value with brackets: a constant, perhaps with an index, a descriptor, an address in tensor memory
    INDIRECT = "i"
    PREDICATE = "p"
    CONVERGENCE_BARRIER = "b"


class RegisterGroup(NamedTuple):
    """A register in an operand and how many it stands for."""

    kind: ResourceKind  # which file it is in
    first: int  # index of the first register
    width: int | None  # registers in the group, when the text says; None when the opcode does


class Operand(NamedTuple):
    """One operand."""

    kind: OperandKind  # what it is
    groups: tuple[RegisterGroup, ...]  # registers it names, in the order of the text
    # the resource numbers it stands for, by the opcode's width, as far as they have been asked for
    expanded: dict[int, tuple[int, ...]]

    def expand(self, width: int) -> tuple[int, ...]:
        """The resource numbers it stands for when the opcode's width is ``width``; cut at the end of the register file."""
        numbers = self.expanded.get(width)
        if numbers is None:
            numbers = self.expanded[width] = tuple(
                encode_resource(group.kind, index)
                for group in self.groups
                for index in range(group.first, min(group.first + (group.width or width), FILE_SIZES[group.kind]))
            )
        return numbers


class OperandTable(dict[str, Operand]):
    """Operands already parsed, by their text; looking up another one parses it. Addresses that differ only in their offset share one."""

    def __missing__(self, token: str) -> Operand:
        if not _MAY_NAME_A_RESOURCE.intersection(token):
            operand = Operand(_find_kind(token), (), {})
        else:
            without_offset = _OFFSET.sub("]", token) if token.endswith("]") else token
            operand = parse_operand(token) if without_offset == token else self[without_offset]
        self[token] = operand
        return operand


@lru_cache(maxsize=8192)
def parse_operand(token: str) -> Operand:
    """Find the registers in one operand.

    >>> parse_operand("desc[UR4][R2.64+0x10]").expand(1)
    (260, 261, 2, 3)
    >>> parse_operand("-|R7.reuse|").expand(2)
    (7, 8)
    >>> parse_operand("!PT").kind
    <OperandKind.PREDICATE: 'p'>
    """
    return Operand(_find_kind(token), tuple(group for _, _, group in find_registers(token)), {})


def find_registers(token: str) -> tuple[tuple[int, int, RegisterGroup], ...]:
    """(start, end, register group) of each register name in an operand, suffixes left out.

    Zero registers and always-true predicates are none.

    >>> [(start, end, group.first, group.width) for start, end, group in find_registers("[R2.64+UR14]")]
    [(1, 3, 2, 2), (7, 11, 14, None)]
    """
    if token.startswith(_LABEL_PREFIX):
        return ()
    found = [
        (match.start(1), match.end(2), RegisterGroup(KIND_OF_PREFIX[match[1]], int(match[2]), _find_width(match[3])))
        for match in _RESOURCE.finditer(token)
        if int(match[2]) < FILE_SIZES[KIND_OF_PREFIX[match[1]]]
    ]
    if found and token.lstrip(_SIGNS).startswith(_PAIR_PREFIXES):
        start, end, first = found[0]
        if first.kind == ResourceKind.UNIFORM_REGISTER:
            found[0] = (start, end, first._replace(width=2))
    return tuple(found)


def _find_kind(token: str) -> OperandKind:
    if _PREDICATE.fullmatch(token):
        return OperandKind.PREDICATE
    if _CONVERGENCE_BARRIER.fullmatch(token):
        return OperandKind.CONVERGENCE_BARRIER
    if token.startswith(_ADDRESS_PREFIXES):
        return OperandKind.ADDRESS
    return OperandKind.INDIRECT if "[" in token else OperandKind.REGISTER


def _find_width(suffixes: str) -> int | None:
    if not suffixes:
        return None
    return next((_WIDTH_OF_SUFFIX[one] for one in suffixes.split(".") if one in _WIDTH_OF_SUFFIX), None)


# Source: all measured against nvdisasm's register life ranges on cubins of sm_75 to sm_120 (see ``tests/binary/test_def_use_oracle.py``).

_DATA_REGISTERS = {
    "64": 2, "96": 3, "128": 4, "256": 4, "F64": 2, "U64": 2, "S64": 2,
    "F32x2": 2, "F32x4": 4, "F16x4": 2, "F16x8": 4, "BF16x4": 2, "BF16x8": 4,
}  # fmt: skip
_DIMENSIONS = {
    "1D": 1, "1D_BUFFER": 1, "2D": 2, "3D": 3, "CUBE": 3, "1D_ARRAY": 2, "2D_ARRAY": 3, "ARRAY_1D": 2, "ARRAY_2D": 3, "ARRAY_CUBE": 4,
}  # fmt: skip
_GMMA_SHAPE = re.compile(r"64x(\d+)x\d+")
# Registers per repetition of a tensor memory access; the other shapes take one
_TENSOR_SHAPES = {"16dp128bit": 2, "16dp256bit": 4}
_REPETITIONS = re.compile(r"x(\d+)")
_HEXADECIMAL = re.compile(r"0x[0-9a-f]+")
_ALL_COMPONENTS = 0xF
_ALL_WORDS = 0xFF
_ALL_CHANNELS = "RGBA"
_FIVE_COORDINATES = {"GATHER4", "SCATTER4"}
_RANK = re.compile(r"([1-5])D")
_DESCRIPTOR = "gdesc["
_TENSOR_ADDRESS = "tmem["
# Of a product in tensor memory: two factors, the sum, the tensor memory it is kept in, the instruction descriptor
_TENSOR_PRODUCT_OPERANDS = 5
_QUERY = "TEX_HEADER"
_QUERY_OF_LEVEL = "TEX_HEADER_DIMENSION"
_FIRST_SOURCE = 2
# Arguments besides the coordinates, by the modifier that asks for them (B: the handle is in a register)
_TEXTURE_ARGUMENTS = {"B": 1, "LL": 1, "LB": 1, "AOFFI": 1, "DC": 1, "MS": 1, "LC": 1, "PTP": 2}


def depends_on_text(widths: Sequence[int | str]) -> bool:
    """Whether more than the mnemonic and the kinds of the operands decides."""
    return bool(widths) and widths[0] in _WHOLE_LAWS


def read_mask(token: str, *, otherwise: int) -> int:
    """The number an operand is, if it is a hexadecimal one.

    >>> read_mask("0xb", otherwise=15), read_mask("R4", otherwise=15)
    (11, 15)
    """
    return int(token, 16) if _HEXADECIMAL.fullmatch(token) else otherwise


def expand_widths(widths: Sequence[int | str], modifiers: Sequence[str], values: Sequence[str]) -> tuple[int, ...]:
    """Turn the widths of an opcode into one number per value operand.

    >>> expand_widths(("data", 2), ("E", "128"), ("R4", "[R2.64]"))
    (4, 2)
    """
    if widths and widths[0] in _WHOLE_LAWS:
        expanded = _WHOLE_LAWS[str(widths[0])](modifiers, values)
    else:
        expanded = tuple(one if isinstance(one, int) else _OPERAND_LAWS[one](modifiers) for one in widths)
    return expanded[: len(values)] + (1,) * (len(values) - len(expanded))


def _count_data(modifiers: Sequence[str]) -> int:
    """Registers of a memory access: one per started 32 bits."""
    return next((_DATA_REGISTERS[one] for one in modifiers if one in _DATA_REGISTERS), 1)


def _count_data_pair(modifiers: Sequence[str]) -> int:
    """Registers of a value to compare with and one to store, side by side."""
    return 2 * _count_data(modifiers)


def _count_texels(modifiers: Sequence[str]) -> int:
    """Registers of a surface access: one per component where it is formatted (.P), else by size."""
    if "P" not in modifiers:
        return _count_data(modifiers)
    return next((len(one) for one in modifiers if set(one) <= set(_ALL_CHANNELS) and one != "B"), len(_ALL_CHANNELS))


def _count_coordinates(modifiers: Sequence[str]) -> int:
    """Registers of a surface address: one per dimension, one for the array index unless that is uniform (.UAI)."""
    kind = next((one for one in modifiers if one in _DIMENSIONS), "1D")
    return _DIMENSIONS[kind] - ("UAI" in modifiers and kind.endswith("ARRAY"))


def _expand_gmma(modifiers: Sequence[str], values: Sequence[str]) -> tuple[int, ...]:
    """Warp group products: 64 x N results over 128 threads; the first factor in four registers or, like the second, in shared memory."""
    shape = next((index for index, one in enumerate(modifiers) if _GMMA_SHAPE.fullmatch(one)), None)
    if shape is None:
        return ()
    columns = int(modifiers[shape].split("x")[1])
    accumulator = columns // 4 if modifiers[shape + 1 : shape + 2] == ["F16"] else columns // 2
    if len(values) > 1 and values[1].startswith(_DESCRIPTOR):
        return (accumulator, 4, accumulator)
    return (accumulator, 4, 4, accumulator)


def _expand_texture(
    modifiers: Sequence[str], values: Sequence[str], *, gradient: bool = False, gather: bool = False
) -> tuple[int, ...]:
    """Texture fetches: (second results, first results, coordinates, [further arguments], [uniform handle, …], geometry, [components]).

    A result that is not needed is RZ. The arguments of short fetches are packed two by two (.SCR).
    """
    geometry = next((index for index, one in enumerate(values) if one in _DIMENSIONS or one.startswith(_QUERY)), None)
    if geometry is None or geometry < _FIRST_SOURCE:
        return ()
    second, first = _count_components(modifiers, values[geometry + 1 :])
    kind = values[geometry]
    dimensions = _DIMENSIONS.get(kind, 1)
    further = sum(_TEXTURE_ARGUMENTS.get(one, 0) for one in modifiers)
    if gather:  # the first letter is the component to gather, not a handle
        further -= next((one for one in modifiers if one in _ALL_CHANNELS), "") == "B"
    if gradient:
        coordinates, further = dimensions + further, 2 * (dimensions - kind.startswith("ARRAY"))
    elif kind.startswith(_QUERY):
        coordinates = max(further + (kind == _QUERY_OF_LEVEL), 1)
    elif "SCR" in modifiers:
        coordinates = 1 if dimensions + further <= 2 else 2
        further += dimensions - coordinates
    else:
        coordinates = dimensions
    arguments = (coordinates, max(further, 1)) if values[_FIRST_SOURCE + 1].startswith("R") else (coordinates,)
    return (second, first, *arguments, *(2 for _ in values[_FIRST_SOURCE + len(arguments) :]))


def _count_components(modifiers: Sequence[str], after_geometry: Sequence[str]) -> tuple[int, int]:
    """Registers of the second and the first result of a fetch, from its mask of components."""
    components = _ALL_COMPONENTS
    if after_geometry:
        components = read_mask(after_geometry[-1], otherwise=_ALL_COMPONENTS) & _ALL_COMPONENTS
    count = components.bit_count()
    second, first = max(count - 2, 1), max(min(count, 2), 1)
    return ((second + 1) // 2, (first + 1) // 2) if "F16" in modifiers else (second, first)


def _count_tensor_memory(modifiers: Sequence[str]) -> int:
    """Registers of a tensor memory access: of its shape, times its repetitions."""
    repetitions = next((int(match[1]) for one in modifiers if (match := _REPETITIONS.fullmatch(one))), 1)
    return repetitions * next((_TENSOR_SHAPES[one] for one in modifiers if one in _TENSOR_SHAPES), 1)


def _count_tensor_arguments(modifiers: Sequence[str], *, further: int) -> int:
    """Registers of a bulk tensor access: its coordinates, and ``further`` addresses in shared memory (data, barrier)."""
    if any(one in _FIVE_COORDINATES for one in modifiers):
        return 5 + further
    return further + next((int(match[1]) for one in modifiers if (match := _RANK.fullmatch(one))), 1)


def _expand_tensor_product(modifiers: Sequence[str], values: Sequence[str]) -> tuple[int, ...]:
    """Products in tensor memory: descriptors take two registers, tensor memory addresses one, the last operand a mask or two scales."""
    widths = [2 if one.startswith(_DESCRIPTOR) else 1 for one in values]
    if len(values) > _TENSOR_PRODUCT_OPERANDS:
        is_mask = not values[_TENSOR_PRODUCT_OPERANDS].startswith(_TENSOR_ADDRESS) and "WS" not in modifiers
        widths[_TENSOR_PRODUCT_OPERANDS] = (8 if "2CTA" in modifiers else 4) if is_mask else 2
    return tuple(widths)


def _expand_masked_load(modifiers: Sequence[str], values: Sequence[str]) -> tuple[int, ...]:
    """A 256-bit load: (upper results, lower results, address, [mask of the eight words, of which the present ones lie side by side])."""
    mask = read_mask(values[-1] if values else "", otherwise=_ALL_WORDS)
    return ((mask >> 4 & 0xF).bit_count(), (mask & 0xF).bit_count(), _count_address(modifiers))


def _expand_masked_store(modifiers: Sequence[str], values: Sequence[str]) -> tuple[int, ...]:
    """A 256-bit store: (address, lower data, upper data, [mask of the eight words])."""
    upper, lower, address = _expand_masked_load(modifiers, values)
    return (address, lower, upper)


def _count_address(modifiers: Sequence[str]) -> int:
    """Registers of a global address: a pair where the access is extended (.E), as in all 64-bit code."""
    return 2 if "E" in modifiers else 1


_OPERAND_LAWS: dict[str, Callable[[Sequence[str]], int]] = {
    "address": _count_address,
    "data": _count_data,
    "data pair": _count_data_pair,
    "surface": _count_coordinates,
    "texels": _count_texels,
    "tensor memory": _count_tensor_memory,
    "tensor load": partial(_count_tensor_arguments, further=2),
    "tensor store": partial(_count_tensor_arguments, further=1),
    "tensor prefetch": partial(_count_tensor_arguments, further=0),
}
_WHOLE_LAWS: dict[str, Callable[[Sequence[str], Sequence[str]], tuple[int, ...]]] = {
    "gmma": _expand_gmma,
    "masked load": _expand_masked_load,
    "masked store": _expand_masked_store,
    "tensor product": _expand_tensor_product,
    "texture": _expand_texture,
    "texture gather": partial(_expand_texture, gather=True),
    "texture gradient": partial(_expand_texture, gradient=True),
}


_PREDICATE_COUNT = 7
_ALL_PREDICATES = (1 << _PREDICATE_COUNT) - 1


# Resource numbers an instruction reads and writes, in the order of its operands, perhaps more than once; the guard is not among them
Uses = tuple[list[int], list[int]]


class OperandRole(NamedTuple):
    """Access of an instruction to one of its operands."""

    is_read: bool  # it reads it; addresses and masks it reads from or writes to among them
    is_written: bool  # it writes it
    width: int  # registers that each register of the operand stands for, where the text does not say


_Plan = tuple[OperandRole, ...]


class UseFinder:
    """Finds uses, remembering operands and plans; meant for one pass over some functions: it grows with their texts."""

    __slots__ = ("_plans", "operands")

    def __init__(self) -> None:
        self.operands = OperandTable()
        self._plans: dict[str, _Plan] = {}

    def find(self, mnemonic: str, opcode: Opcode, tokens: Sequence[str]) -> Uses:
        """Resources that an instruction reads and writes.

        Args:
            mnemonic: opcode with modifiers.
            opcode: its facts.
            tokens: its operands, as written.

        >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
        >>> UseFinder().find("IMAD.WIDE", describe_mnemonic("IMAD.WIDE"), ("R4", "R3", "R4", "R8"))
        ([3, 4, 8, 9], [4, 5])
        """
        table = self.operands
        operands = [table[token] for token in tokens]
        shape = mnemonic + " " + "".join([operand[0] for operand in operands])
        plan = self._plans.get(shape)
        if plan is None:
            plan = _make_plan(mnemonic, opcode, tokens, operands)
            if not depends_on_text(opcode.widths):
                self._plans[shape] = plan
        reads: list[int] = []
        writes: list[int] = []
        for operand, (is_read, is_written, width) in zip(operands, plan, strict=True):
            if operand[1]:
                numbers = operand[2].get(width) or operand.expand(width)
                if is_read:
                    reads += numbers
                if is_written:
                    writes += numbers
        if opcode.predicate_mask is not None:
            (reads if opcode.predicate_mask == "read" else writes).extend(_expand_mask(tokens))
        return reads, writes

    def find_written(self, mnemonic: str, opcode: Opcode, tokens: Sequence[str]) -> tuple[bool, ...]:
        """Whether each operand of an instruction is a result.

        >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
        >>> UseFinder().find_written("IADD3", describe_mnemonic("IADD3"), ("R4", "P1", "R3", "R4", "RZ"))
        (True, True, False, False, False)
        """
        operands = [self.operands[token] for token in tokens]
        return tuple(role.is_written for role in _make_plan(mnemonic, opcode, tokens, operands))


def find_roles(mnemonic: str, opcode: Opcode, tokens: Sequence[str]) -> tuple[OperandRole, ...]:
    """Role of each operand of an instruction.

    Args:
        mnemonic: opcode with modifiers.
        opcode: its facts.
        tokens: its operands, as written.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> [(role.is_written, role.width) for role in find_roles("LDG.E.64", describe_mnemonic("LDG.E.64"), ("R2", "[R4.64]"))]
    [(True, 2), (False, 2)]
    """
    table = OperandTable()
    return _make_plan(mnemonic, opcode, tokens, [table[token] for token in tokens])


def _make_plan(mnemonic: str, opcode: Opcode, tokens: Sequence[str], operands: Sequence[Operand]) -> _Plan:
    widths = iter(_find_widths(mnemonic, opcode, tokens, operands))
    results_left = opcode.results
    predicates_left = opcode.predicate_results
    plan: list[OperandRole] = []
    for position, operand in enumerate(operands):
        if operand.kind == OperandKind.PREDICATE:
            plan.append(OperandRole(predicates_left <= 0, predicates_left > 0, 1))
            predicates_left -= 1
        elif operand.kind == OperandKind.CONVERGENCE_BARRIER:
            role = _find_barrier_role(opcode.barrier, position)
            plan.append(role)
            if role.is_written and not role.is_read:  # the barrier is the result
                results_left = 0
        elif results_left > 0 and operand.kind == OperandKind.REGISTER:
            plan.append(OperandRole(False, True, next(widths)))
            results_left -= 1
        else:
            plan.append(OperandRole(True, False, next(widths)))
            results_left = predicates_left = 0
    return tuple(plan)


def _find_widths(mnemonic: str, opcode: Opcode, tokens: Sequence[str], operands: Sequence[Operand]) -> tuple[int, ...]:
    """Registers per value operand; a result that the text leaves out before an address is accounted for."""
    kinds = (OperandKind.PREDICATE, OperandKind.CONVERGENCE_BARRIER)
    values = [
        (token, operand.kind) for token, operand in zip(tokens, operands, strict=True) if operand.kind not in kinds
    ]
    names = [token for token, _ in values]
    modifiers = mnemonic.split(".")[1:]
    if opcode.results and values and values[0][1] == OperandKind.ADDRESS:
        return expand_widths(opcode.widths, modifiers, ["", *names])[1:]
    return expand_widths(opcode.widths, modifiers, names)


def _find_barrier_role(use: BarrierUse | None, position: int) -> OperandRole:
    is_both = use == "both"
    is_written = is_both or use == "write" or (use == "position" and position == 0)
    return OperandRole(is_both or not is_written, is_written, 1)


def _expand_mask(tokens: Sequence[str]) -> Iterable[int]:
    """The predicates a mask names; all of them when it is in a register."""
    kind = next((WHOLE_FILES[token] for token in tokens if token in WHOLE_FILES), None)
    if kind is None:
        return ()
    mask = read_mask(tokens[-1], otherwise=_ALL_PREDICATES)
    return (encode_resource(kind, index) for index in range(_PREDICATE_COUNT) if mask >> index & 1)
