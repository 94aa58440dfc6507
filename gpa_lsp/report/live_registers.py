"""How many registers hold a value that is still needed, at every instruction: where the pressure is highest, and what raises it."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.report.code import KernelCode

# Resource numbers of general registers
_REGISTERS = range(ResourceKind.REGISTER << 8, (ResourceKind.REGISTER + 1) << 8)


def count_live_registers(code: KernelCode) -> npt.NDArray[np.int32]:
    """int32[n], general registers that hold a value somebody reads at an instruction or behind it, and those it writes; -1 without code.

    A guarded write may not happen, so that what was there before stays alive above it.

    Approximation: a function that is called counts its own registers only, and nothing is known to be read behind a return.
    """
    reads = _make_masks(code, is_read=True)
    writes = _make_masks(code, is_read=False)
    is_sure = (code.guard < 0).tolist()
    first, last = code.first_row.tolist(), code.last_row.tolist()
    live = _find_live_at_ends(
        code, [_sum_block(reads, writes, is_sure, *rows) for rows in zip(first, last, strict=True)]
    )
    counts = np.full(len(reads), -1, dtype=np.int32)
    for start, end, at_end in zip(first, last, live, strict=True):
        alive = at_end
        for row in range(end, start - 1, -1):
            counts[row] = (alive | reads[row] | writes[row]).bit_count()
            alive = (alive & ~writes[row] if is_sure[row] else alive) | reads[row]
    return counts


def _make_masks(code: KernelCode, *, is_read: bool) -> list[int]:
    """The general registers an instruction reads, or writes: one bit each. One that never executes does neither."""
    lists = (code.reads if is_read else code.writes).split()
    known: dict[tuple[int, ...], int] = {}
    masks: list[int] = []
    for numbers, is_idle in zip(lists, (code.guard_negated & (code.guard < 0)).tolist(), strict=True):
        mask = known.get(numbers)
        if mask is None:
            mask = known[numbers] = sum(1 << number for number in numbers if number in _REGISTERS)
        masks.append(0 if is_idle else mask)
    return masks


def _sum_block(
    reads: Sequence[int], writes: Sequence[int], is_sure: Sequence[bool], first: int, last: int
) -> tuple[int, int]:
    """What a block reads of what was there before it, and what it overwrites for sure."""
    needed = overwritten = 0
    for row in range(last, first - 1, -1):
        if is_sure[row]:
            overwritten |= writes[row]
            needed &= ~writes[row]
        needed |= reads[row]
    return needed, overwritten


def _find_live_at_ends(code: KernelCode, blocks: Sequence[tuple[int, int]]) -> list[int]:
    """What is alive at the end of each block, by going back along the edges until nothing is added."""
    starts, targets = code.successor_starts.tolist(), code.successors.tolist()
    before: dict[int, list[int]] = defaultdict(list)
    for block in range(len(blocks)):
        for target in targets[starts[block] : starts[block + 1]]:
            before[target].append(block)
    at_end = [0] * len(blocks)
    waiting = list(range(len(blocks)))  # the last one is looked at first: most edges lead down
    is_waiting = [True] * len(blocks)
    while waiting:
        block = waiting.pop()
        is_waiting[block] = False
        needed, overwritten = blocks[block]
        at_start = needed | at_end[block] & ~overwritten
        for source in before[block]:
            if at_start & ~at_end[source]:
                at_end[source] |= at_start
                if not is_waiting[source]:
                    is_waiting[source] = True
                    waiting.append(source)
    return at_end
