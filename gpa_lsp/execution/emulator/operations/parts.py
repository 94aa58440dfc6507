"""Registers that hold several values: :func:`by_parts`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.execution.emulator.operations.modifiers import over_lanes

Function = Callable[..., Any]


def by_parts(function: Function, part: "np.dtype[Any] | type[np.generic]") -> Function:
    """Let a function of lanes work on the parts of registers."""

    def evaluate(*sources: Any) -> Any:
        whole = sources[0].dtype
        result = function(*(np.ascontiguousarray(source).view(part) for source in sources))
        return result.view(whole)

    return over_lanes(evaluate)
