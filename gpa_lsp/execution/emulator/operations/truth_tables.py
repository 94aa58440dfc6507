"""Boolean functions of three inputs as the fewest numpy calls: :func:`build_lop3`."""

from collections.abc import Callable
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

Function = Callable[..., Any]

_A, _B, _C = 0xF0, 0xCC, 0xAA  # Truth tables of the inputs themselves, as the PTX ISA numbers them

# Functions of two inputs by truth table (bit ``2*y + z``): their cost in calls, and they themselves
_PAIRS: dict[int, tuple[int, Callable[[Any, Any], Any]]] = {
    0x0: (0, lambda y, z: np.bitwise_xor(y, y)),
    0x1: (2, lambda y, z: np.invert(np.bitwise_or(y, z))),
    0x2: (2, lambda y, z: np.bitwise_and(np.invert(y), z)),
    0x3: (1, lambda y, z: np.invert(y)),
    0x4: (2, lambda y, z: np.bitwise_and(y, np.invert(z))),
    0x5: (1, lambda y, z: np.invert(z)),
    0x6: (1, np.bitwise_xor),
    0x7: (2, lambda y, z: np.invert(np.bitwise_and(y, z))),
    0x8: (1, np.bitwise_and),
    0x9: (2, lambda y, z: np.invert(np.bitwise_xor(y, z))),
    0xA: (0, lambda y, z: z),
    0xB: (2, lambda y, z: np.bitwise_or(np.invert(y), z)),
    0xC: (0, lambda y, z: y),
    0xD: (2, lambda y, z: np.bitwise_or(y, np.invert(z))),
    0xE: (1, np.bitwise_or),
    0xF: (0, lambda y, z: np.invert(np.bitwise_xor(y, y))),
}


@cache
def build_lop3(table: int) -> Function:
    """Build the function of a ``lop3`` truth table.

    One input x is taken out: f = f0 ^ (x & (f0 ^ f1)), where f0 and f1 are f at x = 0 and x = 1, functions of two inputs. The input that
    gives the cheapest form is chosen.
    """
    best: tuple[int, Function] | None = None
    for order in permutations(range(3)):
        cost, function = _take_out(table, order)
        if best is None or cost < best[0]:
            best = cost, function
    assert best is not None
    return best[1]


def _take_out(table: int, order: tuple[int, ...]) -> tuple[int, Function]:
    """Cost and function with the input ``order[0]`` taken out; the other two follow."""
    x, y, z = order
    low = _restrict(table, order, value=0)
    high = _restrict(table, order, value=1)
    low_cost, low_function = _PAIRS[low]
    if low == high:
        return low_cost, lambda *inputs: low_function(inputs[y], inputs[z])
    if low == 0:
        high_cost, high_function = _PAIRS[high]
        if high == 0xF:
            return 0, lambda *inputs: inputs[x]
        return high_cost + 1, lambda *inputs: np.bitwise_and(inputs[x], high_function(inputs[y], inputs[z]))
    if high == 0xF:
        return low_cost + 1, lambda *inputs: np.bitwise_or(inputs[x], low_function(inputs[y], inputs[z]))
    if low ^ high == 0xF:
        return low_cost + 1, lambda *inputs: np.bitwise_xor(inputs[x], low_function(inputs[y], inputs[z]))
    flip_cost, flip = _PAIRS[low ^ high]

    def evaluate(*inputs: Any) -> Any:
        part = np.bitwise_and(inputs[x], flip(inputs[y], inputs[z]))
        return np.bitwise_xor(low_function(inputs[y], inputs[z]), part)

    return low_cost + flip_cost + 2, evaluate


def _restrict(table: int, order: tuple[int, ...], *, value: int) -> int:
    """Truth table of the other two inputs when the first in order has a value."""
    x, y, z = order
    result = 0
    for first in (0, 1):
        for second in (0, 1):
            bits = [0, 0, 0]
            bits[x], bits[y], bits[z] = value, first, second
            if table >> (4 * bits[0] + 2 * bits[1] + bits[2]) & 1:
                result |= 1 << (2 * first + second)
    return result
