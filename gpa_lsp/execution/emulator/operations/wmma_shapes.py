"""How many registers the fragments of ``wmma`` have.

Source: PTX ISA 9.0, section 9.7.14.4.1 (matrix fragments for WMMA).
"""

from gpa_lsp.code.ptx.scalar_types import ScalarType

S = ScalarType
Shape = tuple[int, int, int]

_COMMON: frozenset[Shape] = frozenset({(16, 16, 16), (32, 8, 16), (8, 32, 16)})
_SHAPES: dict[ScalarType, frozenset[Shape]] = {
    S.F16: _COMMON,
    S.BF16: _COMMON,
    S.U8: _COMMON,
    S.S8: _COMMON,
    S.TF32: frozenset({(16, 16, 8)}),
    S.F64: frozenset({(8, 8, 4)}),
    S.U4: frozenset({(8, 8, 32)}),
    S.S4: frozenset({(8, 8, 32)}),
    S.B1: frozenset({(8, 8, 128)}),
}
_ELEMENT_BITS = {S.BF16: 16, S.U8: 8, S.S8: 8, S.TF32: 32, S.F64: 64, S.U4: 4, S.S4: 4, S.B1: 1}


def count_registers(name: str, shape: Shape, kind: ScalarType) -> int | None:
    """Registers of a fragment, per lane.

    Args:
        name: ``a``, ``b``, ``c`` or ``d``.

    Returns:
        Their number; None for a shape that does not exist. Of factors in f16 it is always 8, although most of them need fewer.
    """
    rows, columns, depth = shape
    if name in "cd":
        if shape not in frozenset().union(*_SHAPES.values()) or kind not in (S.F16, S.F32, S.F64, S.S32):
            return None
        return rows * columns // 32 // (2 if kind is S.F16 else 1)
    if kind not in _SHAPES or shape not in _SHAPES[kind]:
        return None
    if kind is S.F16:
        return 8
    elements = (rows if name == "a" else columns) * depth // 32
    return elements * _ELEMENT_BITS[kind] // max(32, _ELEMENT_BITS[kind])
