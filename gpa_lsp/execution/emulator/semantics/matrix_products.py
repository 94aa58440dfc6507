"""Products of matrices of a warp, ``mma`` and ``wmma.mma`` (:func:`describe_product`), and of warp groups, ``wgmma.mma_async``: their forms
(:func:`read_group_product`), and as the core does them (:func:`describe_group_product`).

Sparse and block-scaled forms are not supported.

A matrix in shared memory, given by a descriptor, is read in units of 16 bytes. Along the depth of the product it has 32 bytes: two units side by
side for each line (a row of A, a column of B) where neighbours along the depth stand side by side (*K-major*); else, for elements of 16 bits,
16 units, each of eight elements along the other side (*MN-major*). :func:`~gpa_lsp.execution.emulator.compiled.matrices.find_unit` tells where
they stand.

Source: PTX ISA 9.0, section 9.7.14, of ``mma.m8n8k4`` of halves section 9.7.14.5.1; of warp groups sections 9.7.15.5.1.2.1 (strides, canonical
layouts) and 9.7.15.5.2 (shapes, types and operands).
"""

import re
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Immediate, Operand, PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.matrix_layouts import (
    BITS,
    Fragment,
    MatrixProduct,
    Types,
    find_product,
    find_shape,
    find_types,
    left_fragment,
    sum_fragment,
)

S = ScalarType
_FACTORS = frozenset({S.U8, S.S8, S.U4, S.S4, S.B1})
# Room of the core for one matrix: integer elements (bits of A in m16n8k256); floating-point numbers, each as often as lanes hold it
MOST_ELEMENTS, MOST_NUMBERS = 4096, 1024
_FORMATS = {
    S.F16: "F16", S.BF16: "BF16", S.TF32: "TF32", S.F32: "SINGLE", S.F64: "DOUBLE", S.E4M3: "E4M3", S.E5M2: "E5M2",
}  # fmt: skip


class Product(Struct, frozen=True, kw_only=True):
    """A dense product, as the core does it."""

    numbers: list[int]  # the shape, and where elements lie: see :mod:`~gpa_lsp.execution.emulator.compiled.matrices`
    registers: tuple[int, ...]  # how many A, B, C and D have
    formats: tuple[str, ...] = ()  # of D, A, B and C; none of integers

    @property
    def register_bytes(self) -> int:
        """Bytes of each register."""
        return 8 if "DOUBLE" in self.formats else 4


def describe_product(instruction: PtxInstruction) -> Product | None:
    """A dense product; None for other instructions and forms that are not supported."""
    types = find_types(instruction)
    if types is not None and instruction.opcode == "mma" and types[1] is S.F16 and find_shape(instruction) == (8, 8, 4):
        return _describe_quads(instruction, types)
    product = find_product(instruction)
    return None if product is None else describe_matrices(product)


def describe_matrices(product: MatrixProduct) -> Product | None:
    """A product of matrices in fragments; None for types that are not supported."""
    if product.types[0] is S.S32:
        sizes = [one.rows * one.columns for one in product.fragments]
        is_known = product.types[3] is S.S32 and set(product.types[1:3]) <= _FACTORS and max(sizes) <= MOST_ELEMENTS
        return Product(numbers=_describe_integers(product), registers=product.registers) if is_known else None
    if not set(product.types) <= _FORMATS.keys() or (S.F64 in product.types and len(set(product.types)) > 1):
        return None
    a, b, c = product.fragments
    if max(32 * one.elements for one in product.fragments) > MOST_NUMBERS:
        return None
    holders = [_list_holders(one) for one in (a, b, c)]
    places = c.places.reshape(32, c.elements).T.reshape(-1)
    shape = (a.rows, b.columns, a.columns, a.rows)
    return _describe_floats(product.types, product.registers, shape, *holders, places)


def _describe_floats(
    types: Types, registers: tuple[int, ...], shape: tuple[int, ...], *parts: "npt.NDArray[Any]"
) -> Product:
    """The product as :class:`~gpa_lsp.execution.emulator.compiled.matrices.FloatLayout` has it."""
    numbers = [*shape, *registers, *(number for part in parts for number in part.reshape(-1).tolist())]
    return Product(numbers=numbers, registers=registers, formats=tuple(_FORMATS[one] for one in types))


def _list_holders(fragment: Fragment) -> "npt.NDArray[np.int64]":
    """Places of the elements, row by row: 32 · element + lane."""
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
    """Places of the elements, row by row: 1024 · register + 32 · lane + bit."""
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
    """Numbers of each lane's elements of A, by rows of the four 8 × 4 matrices; of B, transposed. A row per lane, or a column per lane."""
    elements = np.arange(4)[None, :]
    row, column = (_LOW + _HIGH, elements) if along_lane else (elements + _HIGH, _LOW)
    found: npt.NDArray[np.int64] = 32 * _QUAD + 4 * row + column
    return found


def _place_sum(kind: ScalarType) -> "npt.NDArray[np.int64]":
    """Numbers of each lane's elements of C and D, by rows of the four 8 × 8 matrices."""
    element, lane = np.arange(8)[None, :], _LANES[:, None]
    row, column = _LOW + _HIGH, element
    if kind is S.F32:
        row, column = (lane & 1) + (element & 2) + _HIGH, (element & 4) + (lane & 2) + (element & 1)
    found: npt.NDArray[np.int64] = 64 * _QUAD + 8 * row + column
    return found


def _turn(places: "npt.NDArray[np.int64]") -> "npt.NDArray[np.int64]":
    """Place, 32 · element + lane, that holds each number."""
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
    sums_of = _turn(_place_sum(addend)), _place_sum(result).T
    return _describe_floats(types, registers, (32, 8, 4, 8), left, by_rows, *sums_of)


WARP_ROWS = 16  # Rows of A and D that belong to each of the four warps
LINE_BYTES = 32  # A row of A, or a column of B: the depth is as many elements as this holds
UNITS_AT_ONCE = 32  # Read by the lanes of a warp, two words of 64 bits each
_MOST_COLUMNS = 32  # Of D, worked on at once
_LEFT_REGISTERS = 4

_SHAPE = re.compile(r"m64n(\d{1,3})k(\d{1,3})", re.ASCII)
# By type of A: those of B, and of D
_FLOATS: dict[ScalarType, tuple[frozenset[ScalarType], frozenset[ScalarType]]] = {
    S.F16: (frozenset({S.F16}), frozenset({S.F16, S.F32})),
    S.BF16: (frozenset({S.BF16}), frozenset({S.F32})),
    S.TF32: (frozenset({S.TF32}), frozenset({S.F32})),
    S.E4M3: (frozenset({S.E4M3, S.E5M2}), frozenset({S.F16, S.F32})),
    S.E5M2: (frozenset({S.E4M3, S.E5M2}), frozenset({S.F16, S.F32})),
}
# By type of A: those of B. D is of S32.
_INTEGERS: dict[ScalarType, frozenset[ScalarType]] = {
    S.S8: frozenset({S.S8, S.U8}),
    S.U8: frozenset({S.S8, S.U8}),
    S.B1: frozenset({S.B1}),
}


class GroupProduct(Struct, frozen=True, kw_only=True):
    """D = ±A · B (+ D): D of 64 rows, A of 64 rows and B of ``depth`` rows."""

    columns: int  # of B and D
    depth: int  # columns of A
    result: ScalarType  # type of D
    left: ScalarType  # type of A
    right: ScalarType  # type of B
    clamps: bool  # sums of integers are kept within 32 bits
    is_negated: bool  # one of A and B is negated, and the other is not
    left_is_vector: bool  # A stands in registers
    # in memory, neighbours of a column of A stand side by side, and not those of a row (*M-major*)
    left_is_turned: bool
    # in memory, neighbours of a row of B stand side by side, and not those of a column (*N-major*)
    right_is_turned: bool

    @property
    def result_registers(self) -> int:
        """Registers of D per lane."""
        return self.columns // 2 * BITS[self.result] // 32

    @property
    def parts(self) -> list[range]:
        """Columns that are worked on at once."""
        most = min(_MOST_COLUMNS, MOST_ELEMENTS // self.depth)
        return [range(first, min(first + most, self.columns)) for first in range(0, self.columns, most)]


def is_group_product(instruction: PtxInstruction) -> bool:
    """Whether a ``wgmma`` multiplies; the others begin, commit and wait."""
    return instruction.suffixes[:1] == ("mma_async",)


def read_group_product(instruction: PtxInstruction) -> GroupProduct | None:
    """Take a ``wgmma.mma_async`` apart: D is its destination; A, B, the predicate that keeps D, then signs and turns are its sources.

    Returns:
        None for a form that is not supported (sparse matrices), or that does not exist.
    """
    words, types = instruction.suffixes, instruction.types
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    if shape is None or "sp" in words or len(types) != 3 or len(instruction.sources) < 3:
        return None
    result, left, right = types
    columns, depth = int(shape[1]), int(shape[2])
    if not _fits(result, left, right) or not _has_shape(columns, depth, left) or (left is S.B1 and "and" not in words):
        return None
    factor = instruction.sources[0]
    is_vector = isinstance(factor, Vector)
    choices = _read_choices(instruction.sources[3:], left, is_vector=is_vector)
    if choices is None or (isinstance(factor, Vector) and len(factor.elements) != _LEFT_REGISTERS):
        return None
    is_negated, left_is_turned, right_is_turned = choices
    return GroupProduct(
        columns=columns,
        depth=depth,
        result=result,
        left=left,
        right=right,
        clamps="satfinite" in words,
        is_negated=is_negated,
        left_is_vector=is_vector,
        left_is_turned=left_is_turned,
        right_is_turned=right_is_turned,
    )


def _fits(result: ScalarType, left: ScalarType, right: ScalarType) -> bool:
    if left in _FLOATS:
        rights, results = _FLOATS[left]
        return right in rights and result in results
    return left in _INTEGERS and right in _INTEGERS[left] and result is S.S32


def _has_shape(columns: int, depth: int, left: ScalarType) -> bool:
    """Multiples of 8 columns up to 256; of integers above 32 those of 16 alone."""
    step = 16 if left in _INTEGERS and columns > 32 else 8
    return 8 <= columns <= 256 and columns % step == 0 and depth * BITS[left] == 8 * LINE_BYTES


def _read_choices(
    operands: tuple[Operand, ...], left: ScalarType, *, is_vector: bool
) -> tuple[bool, bool, bool] | None:
    """Whether the product is negated, A is turned, and B is turned; None when the literals are not those of the form."""
    values = [operand.value if isinstance(operand, Immediate) else None for operand in operands]
    if left in _INTEGERS:
        return (False, False, False) if not values else None
    turns = (1 if is_vector else 2) if BITS[left] == 16 else 0
    if len(values) != 2 + turns or not {*values[:2]} <= {1, -1} or not {*values[2:]} <= {0, 1}:
        return None
    is_negated = values[0] != values[1]
    left_is_turned = turns == 2 and values[2] == 1
    return is_negated, left_is_turned, turns > 0 and values[-1] == 1


def describe_group_product(product: GroupProduct, columns: int) -> Product:
    """The product of a warp for so many columns of D, next to each other.

    A factor in memory stands in registers as the lanes read it: lane l unit l, then l + 32 and so on, of each first the lower word of 64 bits.
    """
    types = product.result, product.left, product.right, product.result
    left = left_fragment(WARP_ROWS, product.depth, 32 // BITS[product.left])
    if not product.left_is_vector:
        left = _unit_fragment(WARP_ROWS, product.left, is_turned=product.left_is_turned)
    right = _unit_fragment(columns, product.right, is_turned=product.right_is_turned).turned
    fragments = left, right, sum_fragment(WARP_ROWS, columns)
    found = describe_matrices(
        MatrixProduct(types=types, fragments=fragments, is_clamped=product.clamps, joins_by_and=True)
    )
    assert found is not None
    return found


def _unit_fragment(lines: int, kind: ScalarType, *, is_turned: bool) -> Fragment:
    """A matrix in memory of some lines, in words of 32 bits: 32 halves of the lanes' words of 64 bits make a register."""
    bits = BITS[kind]
    loads, left_over = divmod(2 * lines, UNITS_AT_ONCE)
    registers = np.arange(4 * (loads + (left_over > 0)))[None, :, None]
    word = registers % 2 * 32 + np.arange(32)[:, None, None]
    unit = registers // 4 * UNITS_AT_ONCE + word // 2
    unit = np.where(unit < 2 * lines, unit, unit - left_over)  # the last lanes read what others do
    bit = registers % 4 // 2 * 64 + word % 2 * 32 + np.arange(0, 32, bits)[None, None, :]
    if is_turned:
        line, step = unit // 16 * 8 + bit // bits, unit % 16 + 0 * bit
    else:
        line, step = unit // 2 + 0 * bit, (unit % 2 * 128 + bit) // bits
    row, column = (one.reshape(32, -1) for one in (line, step))
    return Fragment(rows=lines, columns=8 * LINE_BYTES // bits, row=row, column=column)
