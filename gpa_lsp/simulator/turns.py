"""The steady state of loops: of many turns some are simulated and stand for the rest: :func:`keep_turns`."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass

_FIRST_TURNS, _LAST_TURNS = 2, 1
"""Of a loop, turns that stand for themselves alone."""
_FEWEST_TURNS = 4
"""Of a loop, turns that are kept beside them."""
_MOST_LOOPS = 8
"""Levels and places of loops that are shortened one after the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reduction:
    """How much was left out.

    Attributes:
        executions: warp instructions of a block.
        kept: of them, those that are simulated.
    """

    executions: int
    kept: int

    @property
    def left_out(self) -> float:
        """Share of the executions that others stand for."""
        return 1 - self.kept / self.executions if self.executions else 0.0


def keep_turns(rows: npt.NDArray[np.int32], share: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
    """Which executions of a warp to simulate, and how many each stands for.

    Args:
        rows: the warp's executions.
        share: of them that should be kept; 1 keeps all.
    """
    indexes = np.arange(len(rows), dtype=np.int64)
    weights = np.ones(len(rows))
    target = len(rows) * share
    for _ in range(_MOST_LOOPS):
        if len(indexes) <= target:
            break
        kept = _shorten(rows[indexes], weights, target / len(indexes))
        if kept is None:
            break
        chosen, weights = kept
        indexes = indexes[chosen]
    return indexes, weights


def _shorten(
    rows: npt.NDArray[np.int32], weights: npt.NDArray[np.float64], share: float
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]] | None:
    """Shorten the loop that most executions belong to; None where none is long enough."""
    found = _find_loop(rows)
    if found is None:
        return None
    first, last = found
    heads = np.flatnonzero(rows == first)
    inside = (rows >= first) & (rows <= last)
    outside_before = np.cumsum(~inside)
    entry = outside_before[heads]  # heads of one entry have the same count of executions outside before them
    weights = weights.copy()
    keep = np.ones(len(rows), dtype=bool)
    changed = False
    bounds = np.flatnonzero(np.diff(entry)) + 1
    for group in np.split(heads, bounds):
        turns = len(group)
        wanted = max(_FEWEST_TURNS, int(turns * share))
        if turns <= wanted + _FIRST_TURNS + _LAST_TURNS:
            continue
        low, high = group[_FIRST_TURNS], group[_FIRST_TURNS + wanted]
        end = group[turns - _LAST_TURNS]
        weights[low:high] *= (turns - _FIRST_TURNS - _LAST_TURNS) / wanted
        keep[high:end] = False
        changed = True
    if not changed:
        return None
    chosen = np.flatnonzero(keep)
    return chosen, weights[chosen]


def _find_loop(rows: npt.NDArray[np.int32]) -> tuple[int, int] | None:
    """First and last row of the loop with most executions in turns that can be left out."""
    back = np.flatnonzero(rows[1:] <= rows[:-1])
    best, best_count = None, 0
    pairs, counts = np.unique(np.stack([rows[back + 1], rows[back]]), axis=1, return_counts=True)
    for (first, last), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        if count < _FIRST_TURNS + _LAST_TURNS + _FEWEST_TURNS:
            continue
        heads = int(np.count_nonzero(rows == first))
        covered = int(np.count_nonzero((rows >= first) & (rows <= last)))
        entries = max(1, heads - count)
        spare = 1 - min(1.0, entries * (_FIRST_TURNS + _LAST_TURNS + _FEWEST_TURNS) / max(1, heads))
        if covered * spare > best_count:
            best, best_count = (int(first), int(last)), covered * spare
    return best
