"""How the stalls of an instruction are divided among the dependencies that are left.

Source: GPA section IV, "Attribute stalls", Equation 1 (Figure 4d).
"""

from collections.abc import Iterable, Sequence

UNSEEN_ISSUES_SAMPLES = 0.5
"""What an instruction counts that no sample saw issue: between none, which would acquit it, and one, which would have been seen.

GPA's own code takes 32 sampled cycles, one issue of a warp's worth, which is as little beside any sample.
"""


def apportion(
    issue_counts: Sequence[float], path_lengths: Sequence[int], dependencies: Sequence[int]
) -> tuple[float, ...]:
    """The share of each source in the stalls of one use: issues times 1 / path length, as ratios of their sums.

    Args:
        path_lengths: instructions on the longest path from each source to the use, at least 1.

    The published example: a load that issued twice as often as another, twice as far away, causes half of the stalls.

    >>> apportion([2.0, 1.0], [8, 4], [0, 1])
    (0.5, 0.5)
    >>> apportion([1.0, 1.0, 1.0], [1, 1, 1], [0, 0, 1])
    (0.25, 0.25, 0.5)
    """
    sizes: dict[int, int] = {}
    for dependency in dependencies:
        sizes[dependency] = sizes.get(dependency, 0) + 1
    weights = [
        max(issues, UNSEEN_ISSUES_SAMPLES) / length / sizes[dependency]
        for issues, length, dependency in zip(issue_counts, path_lengths, dependencies, strict=True)
    ]
    total = sum(weights)
    return tuple(weight / total for weight in weights)


def count_waits(issues: float, use_issues: float) -> float:
    """How often one instruction is waited for by another, at most: as often as either issues.

    A use that never issued bounds nothing: its samples are of another run, or show where a branch fell through.
    """
    return issues if issues < use_issues or not use_issues else use_issues


def weigh_groups(
    groups: Sequence[int], blocks: Sequence[int], issue_counts: Sequence[float], use_issues: float
) -> dict[int, float]:
    """The part of each group of causes in one wait, by how often it is waited for there.

    The causes of a group that are in one basic block issue together; those in different blocks count each for itself.

    Returns:
        Group → ratio; they add up to one. Even parts where nothing issued.

    Two loads in front of a loop of 64 iterations behind one counter, and one in the loop behind another:

    >>> parts = weigh_groups([0, 0, 1], [0, 0, 1], [1.0, 1.0, 64.0], 64.0)
    >>> [round(part, 3) for part in parts.values()]
    [0.015, 0.985]
    """
    of_block: dict[tuple[int, int], float] = {}
    for group, block, issues in zip(groups, blocks, issue_counts, strict=True):
        of_block[group, block] = max(of_block.get((group, block), 0.0), count_waits(issues, use_issues))
    weights = dict.fromkeys(groups, 0.0)
    for (group, _), often in of_block.items():
        weights[group] = count_waits(weights[group] + often, use_issues)
    return dict(zip(weights, divide(weights.values()), strict=True))


def divide(weights: Iterable[float]) -> list[float]:
    """Each weight's part of all; even parts where none weighs anything.

    >>> divide([1.0, 3.0]), divide([0.0, 0.0])
    ([0.25, 0.75], [0.5, 0.5])
    """
    listed = list(weights)
    total = sum(listed)
    return [one / total for one in listed] if total > 0 else [1 / len(listed)] * len(listed)
