"""Products of matrices of small integers or bits: :func:`lower_product_of_matrices`."""

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered
from gpa_lsp.execution.emulator.engine.binder import flatten
from gpa_lsp.execution.emulator.operations.matrix_forms import MatrixProduct, find_product
from gpa_lsp.execution.emulator.operations.matrix_layouts import Fragment
from gpa_lsp.execution.emulator.operations.matrix_numbers import BITS

S = ScalarType
_FACTORS = frozenset({S.U8, S.S8, S.U4, S.S4, S.B1})
_MOST_REGISTERS = 8  # Of one matrix, as the core has room for; none has more
_MOST_ELEMENTS = 4096  # Of one matrix, as the core has room for: bits of A in m16n8k256


def lower_product_of_matrices(lowering: Lowering) -> None:
    """``mma`` and ``wmma.mma``.

    Raises:
        NotLowered: the core does not know its form.
    """
    instruction = lowering.instruction
    product = find_product(instruction)
    if product is None or not _is_known(product):
        raise NotLowered
    operands = [flatten((operand,)) for operand in (*instruction.destinations, *instruction.sources)]
    places = [lowering.place_exactly(element, 4) for operand in operands for element in operand]
    a, b, c, d = product.registers
    if [len(operand) for operand in operands] != [d, a, b, c] or min(places[:d]) < 0:
        raise NotLowered
    frames = lowering.frames
    lowering.emit("multiply_matrices", a=frames.table(_describe(product)), b=frames.table(places))


def _is_known(product: MatrixProduct) -> bool:
    result, left, right, addend = product.types
    sizes = [one.rows * one.columns for one in product.fragments]
    return (
        result is addend is S.S32
        and {left, right} <= _FACTORS
        and max(sizes) <= _MOST_ELEMENTS
        and max(product.registers) <= _MOST_REGISTERS
    )


def _describe(product: MatrixProduct) -> list[int]:
    """The product as ``native/sources/matrices.c`` has it."""
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
