"""Functions of lanes for scalars and for parts of registers."""

from collections.abc import Callable
from typing import Any

import numpy as np


def over_lanes(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function of arrays of one length take scalars too.

    Scalars are spread over the lanes; when all sources are scalars the results are scalars again. For functions that index lanes or look at
    bytes; plain ufuncs need it not.
    """

    def evaluate(*sources: Any) -> Any:
        lanes = None
        for source in sources:
            if type(source) is np.ndarray and source.ndim:
                lanes = len(source)
                break
        if lanes is None:
            return _first(function(*(np.asarray(source).reshape(1) for source in sources)))
        return function(
            *(
                source
                if type(source) is np.ndarray and source.ndim
                else np.full(lanes, source, np.asarray(source).dtype)
                for source in sources
            )
        )

    return evaluate


def _first(results: Any) -> Any:
    """The only lane of one result or of several."""
    return tuple(result[0] for result in results) if isinstance(results, tuple) else results[0]


def by_parts(function: Callable[..., Any], part: "np.dtype[Any] | type[np.generic]") -> Callable[..., Any]:
    """Let a function of lanes work on the parts of registers."""

    def evaluate(*sources: Any) -> Any:
        whole = sources[0].dtype
        result = function(*(np.ascontiguousarray(source).view(part) for source in sources))
        return result.view(whole)

    return over_lanes(evaluate)
