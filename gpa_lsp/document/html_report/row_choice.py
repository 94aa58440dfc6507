"""Which instructions of a large kernel stand in the page: the hot ones with their surroundings."""

import numpy as np
import numpy.typing as npt

BLOCK_ROWS = 64  # Rows that are kept or left out together, so that what is shown can be read

MOST_ROWS = 20_000  # Of one kernel

MOST_ROWS_OF_PAGE = 200_000  # Of all kernels: about 5 MB


def choose_rows(samples: npt.NDArray[np.int64], most: int) -> npt.NDArray[np.int64]:
    """The rows to show, ascending: all of them, or the blocks with most samples; of blocks with equally many the first.

    Args:
        samples: int64[n], per row.
        most: rows to keep at most, rounded up to a whole block.

    Returns:
        int64[m], m at most ``most`` rounded up to blocks.

    >>> choose_rows(np.array([0] * 64 + [9] + [0] * 63 + [1] * 64), 128).tolist() == list(range(64, 192))
    True
    """
    count = len(samples)
    if count <= most:
        return np.arange(count, dtype=np.int64)
    blocks = -(-count // BLOCK_ROWS)
    sums = np.bincount(np.arange(count) // BLOCK_ROWS, weights=samples, minlength=blocks)
    kept = np.sort(np.argsort(-sums, kind="stable")[: -(-most // BLOCK_ROWS)])
    rows = (kept[:, None] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).reshape(-1)
    return rows[rows < count].astype(np.int64)


def share_rows(counts: list[int], most: int = MOST_ROWS_OF_PAGE) -> list[int]:
    """How many rows each kernel may show, so that all together keep within a page: small kernels whole, the large ones equally many.

    Args:
        most: of all kernels together; a kernel gets at least one block.

    >>> share_rows([100, 5000, 9000], most=6100)
    [100, 3000, 3000]
    """
    limits = [0] * len(counts)
    left, waiting = most, len(counts)
    for number in sorted(range(len(counts)), key=lambda one: counts[one]):
        fair = max(BLOCK_ROWS, left // waiting)
        limits[number] = min(counts[number], fair, MOST_ROWS)
        left = max(0, left - limits[number])
        waiting -= 1
    return limits
