"""``mma.sync`` and ``wmma.mma``: D = A · B + C by a warp.

Products of f64 are fused with C one by one, in the order of the depth. Products of narrower numbers are exact in double precision; they are summed
there, in no particular order (all but always exactly), then C is added, and the result is rounded once, to nearest. Integers are exact, modulo
2^32 or clamped. Tensor cores cut intermediate sums off in ways NVIDIA does not document; results differ from
theirs in the last bits. Sparse and block-scaled forms are not supported.

Source: PTX ISA 9.0, section 9.7.14.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.operations.matrix_forms import MatrixProduct, find_product, find_shape, find_types
from gpa_lsp.execution.emulator.operations.matrix_numbers import pack, register_type, unpack
from gpa_lsp.execution.emulator.operations.matrix_products import (
    multiply_bits,
    multiply_doubles,
    multiply_floats,
    multiply_integers,
)
from gpa_lsp.execution.emulator.operations.model import Family, WarpOperation
from gpa_lsp.execution.emulator.operations.volta_matrices import bind_volta

S = ScalarType


def bind(instruction: PtxInstruction) -> WarpOperation | None:
    """Bind a dense matrix product."""
    types = find_types(instruction)
    if types is not None and instruction.opcode == "mma" and types[1] is S.F16 and find_shape(instruction) == (8, 8, 4):
        return bind_volta(instruction, types)
    product = find_product(instruction)
    return None if product is None else _bind_product(product)


def _bind_product(product: MatrixProduct) -> WarpOperation:
    result, left, right, addend = product.types
    fragments, counts = product.fragments, product.registers
    combine = _find_combination(product)
    a_end, b_end, results = counts[0], counts[0] + counts[1], counts[3]

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


def _find_combination(product: MatrixProduct) -> Callable[[Any, Any, Any], Any]:
    result, left = product.types[:2]
    if left is S.B1:
        joins = np.bitwise_and if product.joins_by_and else np.bitwise_xor
        return lambda a, b, c: multiply_bits(a, b, c, joins)
    if result is S.S32:
        return lambda a, b, c: multiply_integers(a, b, c, clamps=product.is_clamped)
    return multiply_doubles if result is S.F64 else multiply_floats


FAMILY = Family(opcodes=("mma", "wmma"), bind=bind)
