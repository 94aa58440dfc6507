"""Choosing between two values by a predicate, without a branch per lane: :func:`build_select`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.emulator.ptx.scalar_types import ScalarType


def build_select(kind: ScalarType) -> Callable[[Any, Any, Any], Any]:
    """Build ``selp``: a where p, else b.

    Values of four bytes are blended by bits, b ^ ((a ^ b) · p), which costs the same whatever the predicates are; ``np.where`` branches per lane
    and takes four times as long where they are mixed.

    Args:
        kind: U16, U32, U64, F32 or F64.
    """
    if kind is ScalarType.F32:

        def select_f32(a: Any, b: Any, p: Any) -> Any:
            if type(p) is not np.ndarray:
                return a if p else b
            return _blend(a.view(np.uint32), b.view(np.uint32), p).view(np.float32)

        return select_f32
    if kind.bytes == 4:

        def select_u32(a: Any, b: Any, p: Any) -> Any:
            if type(p) is not np.ndarray:
                return a if p else b
            return _blend(a, b, p)

        return select_u32

    def select(a: Any, b: Any, p: Any) -> Any:
        if type(p) is not np.ndarray:
            return a if p else b
        return np.where(p, a, b)

    return select


def _blend(a: Any, b: Any, p: Any) -> Any:
    """Of uint32, with an array of predicates."""
    differing = np.multiply(np.bitwise_xor(a, b), p)
    return np.bitwise_xor(differing, b, out=differing)
