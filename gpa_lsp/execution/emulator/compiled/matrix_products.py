"""``mma`` and ``wmma.mma`` as operations of the core: :func:`lower_product`.

Source: PTX ISA 9.0, section 9.7.14; of ``mma.m8n8k4`` of halves section 9.7.14.5.1. Sparse and block-scaled forms are not supported.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.lane_operations import LaneFunction
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered
from gpa_lsp.execution.emulator.compiled.matrices import MOST_NUMBERS
from gpa_lsp.execution.emulator.engine.binder import flatten
from gpa_lsp.execution.emulator.operations.matrix_layouts import (
    Fragment,
    MatrixProduct,
    Types,
    find_product,
    find_shape,
    find_types,
)
from gpa_lsp.execution.emulator.operations.matrix_numbers import BITS

S = ScalarType
_FACTORS = frozenset({S.U8, S.S8, S.U4, S.S4, S.B1})
_MOST_ELEMENTS = 4096  # Of one matrix of integers, as the core has room for: bits of A in m16n8k256
_FORMATS = {
    S.F16: "F16", S.BF16: "BF16", S.TF32: "TF32", S.F32: "SINGLE", S.F64: "DOUBLE", S.E4M3: "E4M3", S.E5M2: "E5M2",
}  # fmt: skip
_INTEGERS = LaneFunction(0, "multiply_matrices(a, view(b, s32), frame, machine.constants, written)", "", True)
Product = tuple[
    LaneFunction, list[int], tuple[int, ...]
]  # What is done, how, and how many registers A, B, C and D have


def lower_product(lowering: Lowering) -> None:
    """``mma`` and ``wmma.mma``.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    product = describe_product(instruction)
    if product is None:
        raise NotLowered
    function, numbers, (a, b, c, d) = product
    operands = [flatten((operand,)) for operand in (*instruction.destinations, *instruction.sources)]
    if [len(operand) for operand in operands] != [d, a, b, c]:
        raise NotLowered
    size = 8 if "u64" in function.value else 4
    places = [lowering.place_exactly(element, size) for operand in operands for element in operand]
    if min(places[:d]) < 0:
        raise NotLowered
    frames = lowering.frames
    lowering.emit(function, a=frames.table(numbers), b=frames.table(places), result=-1)


def describe_product(instruction: PtxInstruction) -> Product | None:
    """A dense product; None for other instructions and forms that are not supported."""
    types = find_types(instruction)
    if types is not None and instruction.opcode == "mma" and types[1] is S.F16 and find_shape(instruction) == (8, 8, 4):
        return _describe_quads(instruction, types)
    product = find_product(instruction)
    if product is None:
        return None
    if product.types[0] is S.S32:
        sizes = [one.rows * one.columns for one in product.fragments]
        is_known = product.types[3] is S.S32 and set(product.types[1:3]) <= _FACTORS and max(sizes) <= _MOST_ELEMENTS
        return (_INTEGERS, _describe_integers(product), product.registers) if is_known else None
    if not set(product.types) <= _FORMATS.keys() or (S.F64 in product.types and len(set(product.types)) > 1):
        return None
    a, b, c = product.fragments
    if max(32 * one.elements for one in product.fragments) > MOST_NUMBERS:
        return None
    holders = [_list_holders(one) for one in (a, b, c)]
    places = c.places.reshape(32, c.elements).T.reshape(-1)
    shape = (a.rows, b.columns, a.columns, a.rows)
    return _name_floats(product.types), _join(shape, product.registers, *holders, places), product.registers


def _name_floats(types: Types) -> LaneFunction:
    word = "u64" if types[0] is S.F64 else "u32"
    formats = ", ".join(_FORMATS[one] for one in types)
    return LaneFunction(
        0, f"multiply_floats(a, view(b, s32), frame, machine.constants, written, {word}, {formats})", "", True
    )


def _join(shape: tuple[int, ...], registers: tuple[int, ...], *parts: "npt.NDArray[Any]") -> list[int]:
    """The product as :class:`~gpa_lsp.execution.emulator.compiled.matrices.FloatLayout` has it."""
    return [*shape, *registers, *(number for part in parts for number in part.reshape(-1).tolist())]


def _list_holders(fragment: Fragment) -> "npt.NDArray[np.int64]":
    """Where the elements lie, row by row: 32 · element + lane."""
    lane, element = np.divmod(fragment.holders, fragment.elements)
    found: npt.NDArray[np.int64] = 32 * element + lane
    return found


def _describe_integers(product: MatrixProduct) -> list[int]:
    """The product as :class:`~gpa_lsp.execution.emulator.compiled.matrices.Layout` has it."""
    a, b, c = product.fragments
    factors = product.types[1:3]
    is_of_bits = factors[0] is S.B1
    return [
        a.rows, b.columns, a.columns, *product.registers, *(BITS[kind] for kind in factors), *(kind.is_signed for kind in factors),
        product.is_clamped and not is_of_bits, is_of_bits and not product.joins_by_and,
        *_list_elements(a, factors[0]), *_list_elements(b.turned, factors[1]), *_list_elements(c, S.S32),
        *c.places.reshape(32, c.elements).T.reshape(-1).tolist(),
    ]  # fmt: skip


def _list_elements(fragment: Fragment, kind: ScalarType) -> list[int]:
    """Where the elements lie, row by row: 1024 · register + 32 · lane + bit."""
    lane, element = np.divmod(fragment.holders, fragment.elements)
    register, bit = np.divmod(element * BITS[kind], 32)
    found: list[int] = (1024 * register + 32 * lane + bit).tolist()
    return found


# ``mma.m8n8k4`` of halves: four products by the four quad pairs of a warp. Lanes 4q … 4q+3 and 16+4q … 16+4q+3 work on product q.

_LANES = np.arange(32)
_QUAD = (_LANES % 16 // 4)[:, None]
_LOW = (_LANES % 4)[:, None]
_HIGH = np.where(_LANES < 16, 0, 4)[:, None]


def _place_factor(*, along_lane: bool) -> "npt.NDArray[np.int64]":
    """Of each lane's elements of A, counted by rows of the four matrices, 8 × 4; of B: turned. A row per lane, or a column per lane."""
    elements = np.arange(4)[None, :]
    row, column = (_LOW + _HIGH, elements) if along_lane else (elements + _HIGH, _LOW)
    found: npt.NDArray[np.int64] = 32 * _QUAD + 4 * row + column
    return found


def _place_sum(kind: ScalarType) -> "npt.NDArray[np.int64]":
    """Of each lane's elements of C and D, 8 × 8."""
    element, lane = np.arange(8)[None, :], _LANES[:, None]
    row, column = _LOW + _HIGH, element
    if kind is S.F32:
        row, column = (lane & 1) + (element & 2) + _HIGH, (element & 4) + (lane & 2) + (element & 1)
    found: npt.NDArray[np.int64] = 64 * _QUAD + 8 * row + column
    return found


def _turn(places: "npt.NDArray[np.int64]") -> "npt.NDArray[np.int64]":
    """Which of 32 · element + lane holds each."""
    holders = np.empty(places.size, np.int64)
    holders[places] = 32 * np.arange(places.shape[1])[None, :] + _LANES[:, None]
    return holders


def _describe_quads(instruction: PtxInstruction, types: Types) -> Product | None:
    """``mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype``."""
    layouts = [word for word in instruction.suffixes if word in ("row", "col")]
    result, _, right, addend = types
    sums = {S.F16: 4, S.F32: 8}
    if len(layouts) != 2 or right is not S.F16 or result not in sums or addend not in sums:
        return None
    counts = [len(source.elements) if isinstance(source, Vector) else 1 for source in instruction.sources]
    if counts != [2, 2, sums[addend]]:
        return None
    left = _turn(_place_factor(along_lane=layouts[0] == "row"))
    by_columns = _turn(_place_factor(along_lane=layouts[1] == "col"))
    by_rows = by_columns.reshape(4, 8, 4).transpose(0, 2, 1)
    registers = (2, 2, sums[addend], sums[result])
    numbers = _join((32, 8, 4, 8), registers, left, by_rows, _turn(_place_sum(addend)), _place_sum(result).T)
    return _name_floats(types), numbers, registers
