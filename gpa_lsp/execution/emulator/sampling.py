"""Which blocks of a grid are executed: :func:`choose_blocks`."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.emulator.model import Sampling, SamplingKind
from gpa_lsp.execution.emulator.trace import MOST_BLOCKS
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count

_MOST_SPREAD = 1 << 24

# Linear indexes, ascending. A range where they are the first ones: grids may have more blocks than memory holds numbers.
Blocks = range | npt.NDArray[np.uint32]


def choose_blocks(block_count: int, sampling: Sampling) -> Blocks:
    """The blocks to execute.

    Raises:
        InputError: a chosen block is not in the grid, or the number of blocks is none.

    >>> choose_blocks(100, Sampling(kind=SamplingKind.SPREAD, count=3)).tolist()
    [0, 50, 99]
    """
    whole_count, block_count = block_count, min(block_count, MOST_BLOCKS)
    if sampling.kind is SamplingKind.CHOSEN:
        found = np.unique(np.array(sampling.blocks, np.int64))
        if len(found) and not 0 <= found[0] <= found[-1] < block_count:
            wrong = found[-1] if found[0] >= 0 else found[0]
            which = "" if whole_count == block_count else f", whose first {format_count(block_count)} can be executed"
            raise InputError(
                f"block {wrong} of a grid of {format_count(whole_count)}{which}",
                remedy=f"choose 0 to {format_count(block_count - 1)}",
            )
        return found.astype(np.uint32)
    if sampling.kind is SamplingKind.ALL:
        return range(block_count)
    if sampling.count < 1:
        raise InputError(f"a sample of {sampling.count} blocks", remedy="say how many, at least 1")
    count = min(sampling.count, block_count)
    if sampling.kind is SamplingKind.WAVE or count == block_count:
        return range(count)
    if count > _MOST_SPREAD:
        raise InputError(
            f"a sample of {format_count(count)} blocks",
            remedy=f"spread at most {format_count(_MOST_SPREAD)}, or take a wave",
        )
    return np.unique(np.round(np.linspace(0, block_count - 1, count)).astype(np.int64)).astype(np.uint32)
