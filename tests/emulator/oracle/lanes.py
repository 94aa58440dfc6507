"""Functions of lanes for parts of registers, and with Python's integers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.semantics.model import find_limits

Function = Callable[..., Any]


def by_parts(function: Function, part: "np.dtype[Any] | type[np.generic]") -> Function:
    """Let a function of lanes work on the parts of registers."""
    return lambda *sources: function(*(np.ascontiguousarray(one).view(part) for one in sources)).view(sources[0].dtype)


def wrap(values: Any, kind: ScalarType) -> Any:
    """Python's integers in a type; what does not fit is cut off."""
    dtype = kind.natural_dtype
    return (values & ((1 << 8 * dtype.itemsize) - 1)).astype(f"u{dtype.itemsize}").view(dtype)


def exactly(function: Function, kind: ScalarType, *, clamps: bool = False) -> Function:
    """Compute with Python's integers; what does not fit a type is cut off, or clamped."""
    least, most = find_limits(kind)

    def evaluate(*sources: Any) -> Any:
        found = function(*(one.astype(object) for one in sources))
        return wrap(np.minimum(np.maximum(found, least), most) if clamps else found, kind)

    return evaluate
