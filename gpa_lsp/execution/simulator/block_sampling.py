"""Which blocks of a grid stand for which others: :func:`choose_blocks`, :func:`weigh_blocks`."""

from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import prod

Grid = tuple[int, int, int]


def choose_blocks(grid: Grid, most: int) -> tuple[int, ...]:
    """Blocks spread over a grid: of corners, edges and its inside some each, so that what ends early at an edge is seen.

    Args:
        most: how many at most, and at least one.

    >>> choose_blocks((3, 1, 1), 8)
    (0, 1, 2)
    >>> choose_blocks((100, 1, 1), 4)
    (0, 49, 50, 99)
    """
    count = prod(grid)
    if count <= most:
        return tuple(range(count))
    kinds = [_list_kinds(size) for size in grid]
    corners = [x + grid[0] * (y + grid[1] * z) for x, y, z in product(*([one[0] for one in axis] for axis in kinds))]
    chosen = set(sorted(corners)[:most])
    left = most - len(chosen)
    # The rest is spread evenly over all, past those that are chosen already.
    steps = max(left + 1, 1)
    for place in range(1, steps):
        chosen.add(place * (count - 1) // steps)
    return tuple(sorted(chosen))


def _list_kinds(size: int) -> list[tuple[int, int]]:
    """(a block, how many it stands for) along one axis: its first, its last, and one in between."""
    if size <= 2:
        return [(place, 1) for place in range(size)]
    return [(0, 1), (size - 1, 1), (size // 2, size - 2)]


def weigh_blocks(grid: Grid, blocks: Sequence[int]) -> list[float]:
    """How many blocks of the grid each of some stands for: those at the same sides of it, where there are any, else all alike.

    >>> weigh_blocks((100, 1, 1), (0, 33, 66, 99))
    [1.0, 49.0, 49.0, 1.0]
    >>> weigh_blocks((100, 1, 1), (5, 6))
    [50.0, 50.0]
    """
    places = [_find_place(grid, block) for block in blocks]
    seen = Counter(places)
    sizes = {
        place: prod(count for _, count in kinds)
        for place, kinds in (
            (tuple(_side(one[0], size) for one, size in zip(kinds, grid, strict=True)), kinds)
            for kinds in product(*map(_list_kinds, grid))
        )
    }
    if set(seen) != set(sizes):
        return [prod(grid) / len(blocks)] * len(blocks)
    return [sizes[place] / seen[place] for place in places]


def _find_place(grid: Grid, block: int) -> tuple[int, ...]:
    x, rest = block % grid[0], block // grid[0]
    return tuple(_side(at, size) for at, size in zip((x, rest % grid[1], rest // grid[1]), grid, strict=True))


def _side(at: int, size: int) -> int:
    """0 for the first, 2 for the last, 1 for those in between."""
    return 0 if at == 0 else 2 if at == size - 1 else 1
