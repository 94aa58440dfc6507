"""The ways of calls that lead to a function, numbered: :func:`number_ways`. A thread goes from one to the next by a table."""

from collections import deque
from collections.abc import Mapping, Sequence

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.ptx.model import CallDetails, PtxFunction, PtxInstruction

UNKNOWN = 1
"""The way of all that is reached in more ways than are told apart."""
_MOST_WAYS = 1 << 12
_MOST_STEPS = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class CallWays:
    """Ways and what leads from one to another.

    Attributes:
        paths: by number, calls from the innermost out, by their static number; None for :data:`UNKNOWN`.
        calls: static number of a call → its number in the table.
        steps: number of the way behind each call of each way, way after way.
    """

    paths: tuple[tuple[int, ...] | None, ...]
    calls: dict[int, int]
    steps: tuple[int, ...]


def number_ways(functions: Sequence[PtxFunction], first_statics: Mapping[str, int]) -> CallWays:
    """Number the ways from the first of the functions to all others; recursion is one loop of it.

    Args:
        functions: a kernel, then what it can reach.
        first_statics: number of each function's first instruction.
    """
    bodies = {function.name: function for function in functions}
    calls = {
        first_statics[function.name] + instruction.index: (function, instruction)
        for function in functions
        for instruction in function.instructions
        if instruction.call is not None and _list_callees(instruction.call, bodies)
    }
    numbers = {static: number for number, static in enumerate(calls)}
    by_function: dict[str, list[tuple[int, PtxInstruction]]] = {}
    for static, (function, instruction) in calls.items():
        by_function.setdefault(function.name, []).append((static, instruction))
    paths: dict[tuple[int, ...], int] = {(): 0}
    listed: list[tuple[int, ...] | None] = [(), None]
    steps: dict[tuple[int, int], int] = {}
    met: set[tuple[tuple[int, ...], str]] = {((), functions[0].name)}
    waiting = deque(met)
    while waiting:
        path, name = waiting.popleft()
        for static, instruction in by_function.get(name, ()):
            following = (*path[: path.index(static)], static) if static in path else (*path, static)
            number = paths.get(following)
            if number is None:
                if len(listed) >= _MOST_WAYS or (len(listed) + 1) * len(calls) > _MOST_STEPS:
                    steps[paths[path], numbers[static]] = UNKNOWN
                    continue
                number = paths[following] = len(listed)
                listed.append(following[::-1])
            steps[paths[path], numbers[static]] = number
            assert instruction.call is not None
            for callee in _list_callees(instruction.call, bodies):
                if (following, callee) not in met:
                    met.add((following, callee))
                    waiting.append((following, callee))
    return CallWays(
        paths=tuple(listed),
        calls=numbers,
        steps=tuple(steps.get((way, call), UNKNOWN) for way in range(len(listed)) for call in range(len(calls))),
    )


def _list_callees(call: CallDetails, bodies: Mapping[str, PtxFunction]) -> list[str]:
    """Functions with a body that a call can reach."""
    if call.callee is not None:
        return [call.callee] if call.callee in bodies else []
    named = [name for name in call.possible if name in bodies]
    return named or [name for name, function in bodies.items() if not function.is_entry]
