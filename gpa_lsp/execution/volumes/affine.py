"""Integer coefficients of addresses, solved from examples: :func:`solve_affine`; verified: :func:`gives_all`; and loops: :func:`find_trips`."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from gpa_lsp.execution.volumes.distinct import list_distinct
from gpa_lsp.execution.volumes.groups import Integers

MOST_EXAMPLES = 384  # Rows that coefficients are solved from; all are verified
_LARGEST = float(1 << 52)  # Differences of addresses beyond this are not exact in double precision
MOST_LOOPS = 4


def pick_examples(count: int) -> Integers:
    """Of so many rows those to solve from: the first, the last, and others drawn at random, always the same ones."""
    if count <= MOST_EXAMPLES:
        return np.arange(count, dtype=np.int64)
    return _draw_examples(count)


@lru_cache(maxsize=64)
def _draw_examples(count: int) -> Integers:
    drawn = np.random.default_rng(0).choice(count, size=MOST_EXAMPLES - 2, replace=False)
    examples = list_distinct(np.concatenate([[0, count - 1], drawn]))
    examples.flags.writeable = False
    return examples


def find_independent(columns: Integers) -> list[int]:
    """Columns that tell something the columns before them do not, by modified Gram-Schmidt; a constant column tells nothing.

    Args:
        columns: int64[n, variables].
    """
    centred = columns.astype(np.float64) - columns.mean(axis=0)
    basis: list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]] = []
    kept = []
    for index in range(columns.shape[1]):
        vector = centred[:, index]
        length = float(np.linalg.norm(vector))
        if length == 0.0:
            continue
        for other in basis:
            vector = vector - other * float(other @ vector)
        left = float(np.linalg.norm(vector))
        if left > 1e-7 * length:
            basis.append(vector / left)
            kept.append(index)
    return kept


def solve_affine(columns: Integers, addresses: Integers, kept: Sequence[int]) -> tuple[int, Integers] | None:
    """The constant and the coefficients that come nearest to some addresses, which may give them or not; None when there are none.

    Args:
        columns: int64[n, variables], the value of each variable in each example.
        addresses: int64[n], n ≥ 1.

    >>> rows = np.array([[0, 0], [1, 0], [2, 1], [0, 3]])
    >>> constant, steps = solve_affine(rows, 100 + 8 * rows[:, 0] - 40 * rows[:, 1], [0, 1])
    >>> constant, steps.tolist()
    (100, [8, -40])
    """
    base = int(addresses[0])
    targets = (addresses - base).astype(np.float64)
    if float(np.abs(targets).max()) > _LARGEST:
        return None
    design = np.concatenate([columns[:, list(kept)], np.ones((len(columns), 1), dtype=np.int64)], axis=1)
    solution = np.linalg.lstsq(design.astype(np.float64), targets, rcond=None)[0]
    if not np.all(np.isfinite(solution)) or float(np.abs(solution).max()) > _LARGEST:
        return None
    rounded = np.rint(solution).astype(np.int64)
    steps = np.zeros(columns.shape[1], dtype=np.int64)
    steps[list(kept)] = rounded[:-1]
    return base + int(rounded[-1]), steps


def gives_all(columns: Integers, addresses: Integers, constant: int, steps: Integers) -> bool:
    """Whether a constant and coefficients give every address."""
    # Column by column: numpy multiplies matrices of integers several times slower.
    given = np.full(len(addresses), constant, dtype=np.int64)
    for index in np.flatnonzero(steps).tolist():
        given += columns[:, index] * steps[index]
    return np.array_equal(given, addresses)


def find_trips(addresses: Integers, *, is_cut: bool = False) -> tuple[int, ...] | None:
    """Trips of the loops, innermost first, that one thread's addresses in the order of execution come from; None when they come from none.

    The innermost loop ends where the step changes for the first time; what is left is looked at in the same way.

    Args:
        addresses: int64[n].

    >>> find_trips(np.array([0, 8, 16, 100, 108, 116])), find_trips(np.array([0, 8, 16])), find_trips(np.array([0, 8, 9, 2]))
    ((3, 2), (3,), None)
    >>> find_trips(np.array([0, 8, 16, 100, 108, 116, 200]), is_cut=True)
    (3, 3)
    """
    trips: list[int] = []
    while len(addresses) > 1:
        steps = np.diff(addresses)
        changes = np.flatnonzero(steps != steps[0])
        inner = int(changes[0]) + 1 if len(changes) else len(addresses)
        whole = len(addresses) // inner * inner
        rest = addresses[whole:]
        if inner < 2 or (len(rest) and not is_cut) or len(trips) == MOST_LOOPS:
            return None
        rows = addresses[:whole].reshape(-1, inner)
        if not np.array_equal(np.diff(rows, axis=1), np.broadcast_to(steps[: inner - 1], (len(rows), inner - 1))):
            return None
        if not np.array_equal(np.diff(rest), steps[: max(0, len(rest) - 1)]):
            return None
        trips.append(inner)
        addresses = np.concatenate([rows[:, 0], rest[:1]])
    return tuple(trips)


def split_executions(executions: Integers, trips: Sequence[int]) -> Integers:
    """Counters of nested loops, int64[n, loops], from how often something was executed before; the innermost first.

    >>> split_executions(np.array([0, 1, 2, 5]), (3, 2)).tolist()
    [[0, 0], [1, 0], [2, 0], [2, 1]]
    """
    columns, left = [], executions
    for count in trips[:-1]:
        columns.append(left % count)
        left = left // count
    columns.append(left)
    return np.stack(columns, axis=1)
