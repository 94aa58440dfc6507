"""What a launch moves, from the blocks that were walked: :func:`find_traffic`."""

from collections import defaultdict
from math import prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.simulator.program import Kind, SassProgram
from gpa_lsp.simulator.warp_walk import LOCAL_BASE, KernelWalk

_SECTOR = 32
_LOCAL_SECTOR = LOCAL_BASE // _SECTOR


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """Bytes of a launch.

    Attributes:
        written: to L2.
        l2_hit_share: of the sectors a block reads first, those that another block has brought into L2.
    """

    written: float
    l2_hit_share: float


def find_traffic(walk: KernelWalk, program: SassProgram, array_bytes: int | None) -> Traffic:
    """The traffic of all blocks, as that of those walked.

    Args:
        walk: some blocks.
        program: its instructions.
        array_bytes: of all arrays the launch is given, which bounds what can be read; None where it is not known.
    """
    kind = np.array(program.kind)
    stores = np.isin(kind, [Kind.STORE, Kind.REDUCTION])
    reads: dict[tuple[int, int, int], list[npt.NDArray[np.int64]]] = defaultdict(list)
    written = 0
    for one in walk.walks:
        counts = np.diff(one.first_sector)
        rows = np.repeat(one.instruction, counts)
        is_store = stores[rows]
        written += int(is_store.sum())
        mine = one.sectors[~is_store]
        reads[one.block].append(mine[mine < _LOCAL_SECTOR])
    blocks = max(1, len(reads))
    grid = prod(walk.grid)
    distinct = [np.unique(np.concatenate(parts)) for parts in reads.values()]
    first_touches = sum(map(len, distinct)) / blocks * grid
    footprint = _estimate_footprint(distinct, grid)
    if array_bytes is not None:
        footprint = min(footprint, array_bytes / _SECTOR)
    share = max(0.0, 1.0 - footprint / first_touches) if first_touches else 0.0
    return Traffic(written=written / blocks * grid * _SECTOR, l2_hit_share=share)


def _estimate_footprint(distinct: list[npt.NDArray[np.int64]], grid: int) -> float:
    """Distinct sectors of the whole grid, from how much blocks have in common: what all share counts once, what none shares grows with the grid."""
    if not distinct:
        return 0.0
    joined, owners = np.unique(np.concatenate(distinct), return_counts=True)
    if len(distinct) == 1:
        return float(len(joined)) * grid
    alone = int((owners == 1).sum()) / len(distinct)
    common = len(joined) - int((owners == 1).sum())
    if grid <= len(distinct):
        return float(len(joined))
    return alone * grid + common * max(1.0, _growth(len(distinct), grid))


def _growth(sampled: int, grid: int) -> float:
    """What several blocks share is taken to be shared along one side of the grid."""
    return (grid / sampled) ** 0.5
