"""Which matrices ``mma`` and ``wmma.mma`` multiply: :func:`find_product`."""

import re

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction, Vector
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.matrix_layouts import (
    Fragment,
    left_fragment,
    plain_fragment,
    right_fragment,
    sum_fragment,
)
from gpa_lsp.execution.emulator.operations.matrix_numbers import BITS
from gpa_lsp.execution.emulator.operations.wmma_shapes import count_registers

S = ScalarType
_SHAPE = re.compile(r"m(\d{1,3})n(\d{1,3})k(\d{1,3})", re.ASCII)
_ACCUMULATORS = frozenset({S.F16, S.F32, S.F64, S.S32})
_FLOATS = frozenset({S.F16, S.BF16, S.TF32, S.F64, S.E4M3, S.E5M2})


Types = tuple[ScalarType, ScalarType, ScalarType, ScalarType]
Fragments = tuple[Fragment, Fragment, Fragment]


class MatrixProduct(Struct, frozen=True, kw_only=True):
    """A product of matrices in fragments."""

    types: Types  # of D, A, B and C
    fragments: Fragments  # of A, B, and C and D
    is_clamped: bool  # sums of integers do not wrap around
    joins_by_and: bool  # bits are joined by "and", not by "exclusive or"

    @property
    def registers(self) -> tuple[int, ...]:
        """How many a lane holds of A, B, C and D."""
        a, b, c = self.fragments
        d_type, *rest = self.types
        pairs = zip((a, b, c, c), (*rest, d_type), strict=True)
        return tuple(fragment.elements * BITS[kind] // max(32, BITS[kind]) for fragment, kind in pairs)


def find_product(instruction: PtxInstruction) -> MatrixProduct | None:
    """What an instruction multiplies; None for other instructions, forms that are not supported, and the products of quads of Volta."""
    shape, types = find_shape(instruction), find_types(instruction)
    if shape is None or types is None:
        return None
    fragments = _lay_out_wmma(shape, types) if instruction.opcode == "wmma" else _lay_out_mma(shape, types)
    if fragments is None:
        return None
    words = instruction.suffixes
    product = MatrixProduct(
        types=types, fragments=fragments, is_clamped="satfinite" in words, joins_by_and="and" in words
    )
    written = [len(source.elements) if isinstance(source, Vector) else 1 for source in instruction.sources]
    return product if list(product.registers[:3]) == written else None


def find_shape(instruction: PtxInstruction) -> tuple[int, int, int] | None:
    """Rows, columns and depth of a dense product."""
    words = instruction.suffixes
    if instruction.opcode == "wmma" and words[:1] != ("mma",):
        return None
    if any(word.startswith(("sp", "kind::mx", "block_scale")) for word in words) or len(instruction.sources) != 3:
        return None
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    return None if shape is None else (int(shape[1]), int(shape[2]), int(shape[3]))


def find_types(instruction: PtxInstruction) -> Types | None:
    """Of D, A, B and C. ``wmma`` of halves names D and C alone."""
    types = instruction.types
    if instruction.opcode == "wmma" and len(types) == 2:
        types = (types[0], S.F16, S.F16, types[1])
    if len(types) != 4 or not {types[0], types[3]} <= _ACCUMULATORS or not {types[1], types[2]} <= BITS.keys():
        return None
    if types[0] is S.S32:
        return (types[0], types[1], types[2], types[3]) if types[1] not in _FLOATS else None
    return (types[0], types[1], types[2], types[3]) if {types[1], types[2]} <= _FLOATS else None


def _lay_out_mma(shape: tuple[int, int, int], types: Types) -> Fragments | None:
    rows, columns, depth = shape
    per_register = max(1, 32 // BITS[types[1]])
    if rows not in (8, 16) or columns != 8 or depth % (4 * per_register) or BITS[types[1]] != BITS[types[2]]:
        return None
    return (
        left_fragment(rows, depth, per_register),
        right_fragment(depth, columns, per_register),
        sum_fragment(rows, columns),
    )


def _lay_out_wmma(shape: tuple[int, int, int], types: Types) -> Fragments | None:
    rows, columns, depth = shape
    sizes = ((rows, depth, types[1], "a"), (depth, columns, types[2], "b"), (rows, columns, types[3], "c"))
    fragments = []
    for height, width, kind, name in sizes:
        registers = count_registers(name, shape, kind)
        if registers is None:
            return None
        elements = registers * max(1, 32 // BITS[kind])
        by_columns = name == "b" and BITS[kind] < 8
        fragments.append(
            plain_fragment(width, height, elements).turned if by_columns else plain_fragment(height, width, elements)
        )
    return fragments[0], fragments[1], fragments[2]
