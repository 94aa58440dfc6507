"""The two halves of a 64-bit value as one dependency: an address whose halves two instructions write is waited for once.

Source: GPA section VI-C names them as the reason for the low coverage of the bfs benchmark, where they count as two.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence


def join_halves(
    sources: Mapping[int, Sequence[int]], pairs: Iterable[tuple[int, int]], is_far_memory: Callable[[int], bool]
) -> dict[int, int]:
    """Which sources of one use are one dependency.

    Defs of the low half and of the high half are matched in address order, where there are several of each: one pair per path. A load and
    an instruction that is none stay apart, because they stall under different reasons.

    Args:
        sources: def → resources of it that the use uses.
        pairs: (low, high) resources of the 64-bit values that the use reads.
        is_far_memory: whether a def accesses memory other than shared memory.

    Returns:
        Def → the def that stands for its dependency: the one with the highest address; itself where it is alone.

    >>> join_halves({3: (4,), 5: (5,), 8: (9,)}, [(4, 5)], lambda row: False)
    {3: 5, 5: 5, 8: 8}
    """
    stands_for = {definition: definition for definition in sources}
    if len(sources) == 1:
        return stands_for
    for low, high in pairs:
        lows = {definition for definition, resources in sources.items() if low in resources}
        highs = {definition for definition, resources in sources.items() if high in resources}
        for one, other in zip(sorted(lows - highs), sorted(highs - lows), strict=False):
            if is_far_memory(one) == is_far_memory(other):
                _join(stands_for, one, other)
    return {definition: _find(stands_for, definition) for definition in sources}


def _join(stands_for: dict[int, int], one: int, other: int) -> None:
    first, second = sorted((_find(stands_for, one), _find(stands_for, other)))
    stands_for[first] = second


def _find(stands_for: Mapping[int, int], definition: int) -> int:
    while stands_for[definition] != definition:
        definition = stands_for[definition]
    return definition
