"""The comparisons of ``setp`` and ``set``: :func:`find_comparison`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import as_unsigned
from tests.emulator.oracle.halves import widen
from tests.emulator.oracle.single import flush

Function = Callable[..., Any]
S = ScalarType

_ORDERED: dict[str, Function] = {
    "eq": np.equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED: dict[str, Function] = {"lo": np.less, "ls": np.less_equal, "hi": np.greater, "hs": np.greater_equal}


def _is_ordered(a: Any, b: Any) -> Any:
    """Whether neither is NaN."""
    return np.logical_and(np.equal(a, a), np.equal(b, b))


# Comparisons without ``u`` are false where an operand is NaN, those with it are true
_FLOATS: dict[str, Function] = {
    **_ORDERED,
    "ne": lambda a, b: np.logical_or(np.less(a, b), np.greater(a, b)),
    "equ": lambda a, b: np.logical_not(np.logical_or(np.less(a, b), np.greater(a, b))),
    "neu": np.not_equal,
    "ltu": lambda a, b: np.logical_not(np.greater_equal(a, b)),
    "leu": lambda a, b: np.logical_not(np.greater(a, b)),
    "gtu": lambda a, b: np.logical_not(np.less_equal(a, b)),
    "geu": lambda a, b: np.logical_not(np.less(a, b)),
    "num": _is_ordered,
    "nan": lambda a, b: np.logical_or(np.not_equal(a, a), np.not_equal(b, b)),
}

_INTEGERS: dict[str, Function] = {**_ORDERED, "ne": np.not_equal}

COMBINATIONS: dict[str, Function] = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def find_combination(instruction: PtxInstruction) -> Function | None:
    """The boolean operator that combines the comparison with a further predicate; None when there is none."""
    for word in instruction.suffixes:
        if word in COMBINATIONS:
            return COMBINATIONS[word]
    return None


def find_comparison(instruction: PtxInstruction, kind: ScalarType) -> tuple[Function, ScalarType] | None:
    """Find what ``setp``/``set`` compare with.

    Returns:
        The function of two operands, and the type they arrive in; None for a comparison the type does not have.
    """
    if kind.is_float:
        function = _find_first(instruction, _FLOATS)
        if function is None or kind not in (S.F32, S.F64, S.F16, S.BF16):
            return None
        return prepare_floats(function, kind, flushes="ftz" in instruction.suffixes), kind
    function = _find_first(instruction, _UNSIGNED)
    if function is not None:
        return function, as_unsigned(kind)
    function = _find_first(instruction, _INTEGERS)
    if function is None or kind is S.PRED:
        return None
    needs_sign = kind.is_signed and function not in (np.equal, np.not_equal)
    return function, kind if needs_sign else as_unsigned(kind)


def prepare_floats(function: Function, kind: ScalarType, *, flushes: bool) -> Function:
    """Let a comparison take operands of a floating-point type as they stand in registers."""
    if kind is S.F32 and flushes:
        return lambda a, b: function(flush(a), flush(b))
    if kind in (S.F16, S.BF16):
        to_single = widen(kind, flushes=flushes)
        return lambda a, b: function(to_single(a), to_single(b))
    return function


def _find_first(instruction: PtxInstruction, functions: dict[str, Function]) -> Function | None:
    for word in instruction.suffixes:
        if word in functions:
            return functions[word]
    return None
