"""How much a screen bears: of many lines that have something to say, those that say most."""

from bisect import bisect_left, insort
from collections.abc import Collection, Mapping

SCREEN_LINES = 40  # What a reader has before their eyes


def thin_out(shares: Mapping[int, float], leading: Collection[int], most: int) -> list[int]:
    """Lines of which no screen shows more than so many, the largest shares first.

    >>> thin_out({1: 0.1, 2: 0.3, 3: 0.2, 90: 0.01}, [3], 2), thin_out({1: 0.1, 2: 0.3}, [], 0)
    ([2, 3, 90], [1, 2])
    """
    if not most:
        return sorted({*shares, *leading})
    taken = sorted(leading)
    for line in sorted(shares.keys() - set(leading), key=lambda line: (-shares[line], line)):
        position = bisect_left(taken, line)
        around = [*taken[max(0, position - most) : position], line, *taken[position : position + most]]
        if not any(end - start < SCREEN_LINES for start, end in zip(around, around[most:], strict=False)):
            insort(taken, line)
    return taken
