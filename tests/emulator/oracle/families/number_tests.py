"""``testp`` and ``copysign``.

Source: PTX ISA 9.0, sections 9.7.3.1 and 9.7.3.2.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_type
from tests.emulator.oracle.model import Family, LaneOperation, same_types

S = ScalarType


def _is_normal(a: Any) -> Any:
    """Whether a number is neither subnormal, infinite nor NaN; zeros count as normal."""
    return np.logical_and(np.logical_not(_is_subnormal(a)), np.isfinite(a))


def _is_subnormal(a: Any) -> Any:
    magnitude = np.abs(a)
    return np.logical_and(magnitude < np.finfo(a.dtype).smallest_normal, magnitude > a.dtype.type(0))


_TESTS: dict[str, Callable[[Any], Any]] = {
    "finite": np.isfinite,
    "infinite": np.isinf,
    "number": lambda a: np.equal(a, a),
    "notanumber": np.isnan,
    "normal": _is_normal,
    "subnormal": _is_subnormal,
}


def bind(instruction: PtxInstruction) -> LaneOperation | None:
    """Bind a test of a number's class, or a copy of a sign."""
    kind = find_type(instruction)
    if kind is None or kind not in (S.F32, S.F64):
        return None
    if instruction.opcode == "copysign":  # copysign d, a, b: b with the sign of a
        return same_types(lambda a, b: np.copysign(b, a), kind, 2)
    for word in instruction.suffixes:
        if word in _TESTS:
            return LaneOperation(evaluate=_TESTS[word], source_types=(kind,), result_types=(S.PRED,))
    return None


FAMILY = Family(opcodes=("testp", "copysign"), bind=bind)
