"""Registers that hold several values: :func:`by_parts`."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.emulator.operations.modifiers import over_lanes

Function = Callable[..., Any]


def by_parts(function: Function, part: "np.dtype[Any] | type[np.generic]") -> Function:
    """Let a function of lanes work on the parts of registers.

    Args:
        function: takes arrays of the parts of all lanes, those of one lane side by side, lowest first; gives one such array.
        part: dtype of a part; operands are unsigned integers of several times its size.

    Returns:
        A function of whole registers, arrays or scalars, that gives whole registers.
    """

    def evaluate(*sources: Any) -> Any:
        whole = sources[0].dtype
        result = function(*(np.ascontiguousarray(source).view(part) for source in sources))
        return result.view(whole)

    return over_lanes(evaluate)
