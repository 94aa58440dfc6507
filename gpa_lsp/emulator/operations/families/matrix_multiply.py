"""``mma.sync`` and ``wmma.mma``: D = A · B + C by a warp.

Products of f64 are fused with C one by one, in the order of the depth. Products of narrower numbers are exact in double precision; they are summed
there, in no particular order (all but always exactly), then C is added, and the result is rounded once, to nearest. Integers are exact, modulo
2^32 or clamped. Tensor cores cut intermediate sums off in ways NVIDIA does not document; results differ from
theirs in the last bits. Sparse and block-scaled forms are not supported.

Source: PTX ISA 9.0, section 9.7.14.
"""

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.emulator.operations.matrix_layouts import (
    Fragment,
    left_fragment,
    plain_fragment,
    right_fragment,
    sum_fragment,
)
from gpa_lsp.emulator.operations.matrix_numbers import BITS, pack, register_type, unpack
from gpa_lsp.emulator.operations.matrix_products import (
    multiply_bits,
    multiply_doubles,
    multiply_floats,
    multiply_integers,
)
from gpa_lsp.emulator.operations.model import Family, WarpOperation
from gpa_lsp.emulator.operations.volta_matrices import bind_volta
from gpa_lsp.emulator.operations.wmma_shapes import count_registers
from gpa_lsp.ptx.model import PtxInstruction, Vector
from gpa_lsp.ptx.scalar_types import ScalarType

S = ScalarType
_SHAPE = re.compile(r"m(\d{1,3})n(\d{1,3})k(\d{1,3})", re.ASCII)
_ACCUMULATORS = frozenset({S.F16, S.F32, S.F64, S.S32})
_FLOATS = frozenset({S.F16, S.BF16, S.TF32, S.F64, S.E4M3, S.E5M2})


def bind(instruction: PtxInstruction) -> WarpOperation | None:
    """Bind a dense matrix product."""
    words = instruction.suffixes
    if instruction.opcode == "wmma" and words[:1] != ("mma",):
        return None
    if any(word.startswith(("sp", "kind::mx", "block_scale")) for word in words):
        return None
    shape = next((match for word in words if (match := _SHAPE.fullmatch(word))), None)
    types = _find_types(instruction)
    if shape is None or types is None or len(instruction.sources) != 3:
        return None
    rows, columns, depth = (int(part) for part in shape.groups())
    if instruction.opcode == "wmma":
        return _bind_wmma(instruction, (rows, columns, depth), types)
    if (rows, columns, depth) == (8, 8, 4) and types[1] is S.F16:
        return bind_volta(instruction, types)
    return _bind_mma(instruction, (rows, columns, depth), types)


Types = tuple[ScalarType, ScalarType, ScalarType, ScalarType]


def _find_types(instruction: PtxInstruction) -> Types | None:
    """Of D, A, B and C. ``wmma`` of halves names D and C alone."""
    types = instruction.types
    if instruction.opcode == "wmma" and len(types) == 2:
        types = (types[0], S.F16, S.F16, types[1])
    if len(types) != 4 or not {types[0], types[3]} <= _ACCUMULATORS or not {types[1], types[2]} <= BITS.keys():
        return None
    if types[0] is S.S32:
        return (types[0], types[1], types[2], types[3]) if types[1] not in _FLOATS else None
    return (types[0], types[1], types[2], types[3]) if {types[1], types[2]} <= _FLOATS else None


def _bind_mma(instruction: PtxInstruction, shape: tuple[int, int, int], types: Types) -> WarpOperation | None:
    rows, columns, depth = shape
    per_register = max(1, 32 // BITS[types[1]])
    if rows not in (8, 16) or columns != 8 or depth % (4 * per_register) or BITS[types[1]] != BITS[types[2]]:
        return None
    fragments = (
        left_fragment(rows, depth, per_register),
        right_fragment(depth, columns, per_register),
        sum_fragment(rows, columns),
    )
    return build_product(instruction, types, fragments)


def _bind_wmma(instruction: PtxInstruction, shape: tuple[int, int, int], types: Types) -> WarpOperation | None:
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
    return build_product(instruction, types, (fragments[0], fragments[1], fragments[2]))


def build_product(
    instruction: PtxInstruction, types: Types, fragments: tuple[Fragment, Fragment, Fragment]
) -> WarpOperation | None:
    """Build the product of matrices in fragments.

    Args:
        instruction: with the vectors A, B and C as sources.
        types: of D, A, B and C.
        fragments: of A, B, and C and D.
    """
    result, left, right, addend = types
    counts = [
        fragment.elements * BITS[kind] // max(32, BITS[kind])
        for fragment, kind in zip(fragments, types[1:], strict=True)
    ]
    written = [len(source.elements) if isinstance(source, Vector) else 1 for source in instruction.sources]
    if counts != written:
        return None
    combine = _find_product(instruction, types)
    a_end, b_end = counts[0], counts[0] + counts[1]
    results = fragments[2].elements * BITS[result] // max(32, BITS[result])

    def evaluate(active: Any, *sources: Any) -> Any:
        registers = [np.broadcast_to(source, active.shape) for source in sources]
        a = fragments[0].gather(unpack(np.stack(registers[:a_end], -1), left))
        b = fragments[1].gather(unpack(np.stack(registers[a_end:b_end], -1), right))
        c = fragments[2].gather(unpack(np.stack(registers[b_end:], -1), addend))
        packed = pack(fragments[2].scatter(combine(a, b, c)), result)
        return tuple(packed[..., index] for index in range(packed.shape[-1])) if results > 1 else packed[..., 0]

    return WarpOperation(
        evaluate=evaluate,
        source_types=(
            *(register_type(left),) * counts[0],
            *(register_type(right),) * counts[1],
            *(register_type(addend),) * counts[2],
        ),
        result_types=(register_type(result),) * results,
    )


def _find_product(instruction: PtxInstruction, types: Types) -> Callable[[Any, Any, Any], Any]:
    words = instruction.suffixes
    if types[1] is S.B1:
        joins = np.bitwise_and if "and" in words else np.bitwise_xor
        return lambda a, b, c: multiply_bits(a, b, c, joins)
    if types[0] is S.S32:
        clamps = "satfinite" in words
        return lambda a, b, c: multiply_integers(a, b, c, clamps=clamps)
    return multiply_doubles if types[0] is S.F64 else multiply_floats


FAMILY = Family(opcodes=("mma", "wmma"), bind=bind)
