"""Products of matrices of a warp, ``mma`` and ``wmma.mma``: :func:`describe_product`.

Source: PTX ISA 9.0, section 9.7.14; of ``mma.m8n8k4`` of halves section 9.7.14.5.1. Sparse and block-scaled forms are not supported.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.matrix_layouts import (
    BITS,
    Fragment,
    MatrixProduct,
    Types,
    find_product,
    find_shape,
    find_types,
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
