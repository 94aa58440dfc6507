"""How the stalls of an instruction are divided among the dependencies that are left.

Source: GPA section IV, "Attribute stalls", Equation 1.
"""

from collections.abc import Sequence

UNSEEN_ISSUES_SAMPLES = 0.5
"""What an instruction counts that no sample saw issue: between none, which would acquit it, and one, which would have been seen.

GPA's own code takes 32 sampled cycles, one issue of a warp's worth, which is likewise little beside any sample.
"""


def apportion(
    issue_counts: Sequence[float], path_lengths: Sequence[int], dependencies: Sequence[int]
) -> tuple[float, ...]:
    """The share of each source in the stalls of one use: issues times 1 / path length, as ratios of their sums.

    Args:
        issue_counts: how often each source issued, in samples.
        path_lengths: instructions on the longest path from each source to the use, at least 1.
        dependencies: which dependency each source belongs to. Sources of one dependency, as the two halves of a 64-bit address, stand for
            one source with the mean of their weights, and divide its share by them.

    Returns:
        Ratios that add up to one, in the order of the sources.

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
