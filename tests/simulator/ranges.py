"""Ranges of measured over simulated times, and whether they hold what was left out."""

from collections.abc import Sequence
from math import exp, log
from pathlib import Path

KNOWN = Path(__file__).with_name("measured_ratios.json")
"""What ``tests.bench.simulated_ranges`` simulated: rows of repository, regime, and measured over simulated time."""

Row = tuple[int, str, float]

FEWEST_REPOSITORIES = 4


def find_range(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Least and most of one regime, wider by how few repositories they are of; None where these are too few."""
    repositories = len({number for number, _, _ in rows})
    if repositories < FEWEST_REPOSITORIES:
        return None
    logs = [log(ratio) for _, _, ratio in rows]
    middle, half = (min(logs) + max(logs)) / 2, (max(logs) - min(logs)) / 2
    half *= (repositories + 1) / (repositories - 1)
    return exp(middle - half), exp(middle + half)


def leave_out(rows: Sequence[Row]) -> tuple[int, int]:
    """Launches that are in the range of the others of their regime, and all that have one; a launch's own repository is not among the others."""
    held = count = 0
    for number, key, ratio in rows:
        found = find_range([row for row in rows if row[0] != number and row[1] == key])
        if found is not None:
            count += 1
            held += found[0] <= ratio <= found[1]
    return held, count
