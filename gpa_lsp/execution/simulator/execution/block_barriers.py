"""Barriers of blocks: :class:`BlockBarriers`."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.simulator.execution.paths import Path, Paths
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, WarpState


class _Gathering(Struct):
    """Who has come to one barrier of one block."""

    expected: int  # Lanes that it waits for; 0 for all that are alive
    waiting: list[tuple[int, Path]]
    lanes: int = 0
    holds: int = 0


class BlockBarriers:
    """The barriers of the blocks that run.

    Args:
        state: registers.
        paths: of the warps.
        blocks: int64[w], number of each warp's block among those that run.

    Attributes:
        results: int64[w, 3]: of the last reduction at a barrier, lanes whose predicate held, whether all did, whether any did.
    """

    def __init__(self, state: WarpState, paths: Paths, blocks: npt.NDArray[np.int64]) -> None:
        self._state = state
        self._paths = paths
        self._blocks = blocks
        self._gatherings: dict[tuple[int, int], _Gathering] = {}
        self.results: npt.NDArray[np.int64] = np.zeros((state.count, 3), np.int64)

    def arrive(
        self, warp: int, number: int, path: Path, *, expected: int = 0, holds: int = 0, waits: bool = True
    ) -> None:
        """A path has come, and goes on when the others have. Its warp must be switched where it waits."""
        key = int(self._blocks[warp]), number
        gathering = self._gatherings.setdefault(key, _Gathering(expected, []))
        gathering.expected = max(gathering.expected, expected)
        # Warps count as a whole where a number of threads is expected.
        gathering.lanes += WARP_LANES if expected else path.bits.bit_count()
        gathering.holds += holds
        if waits:
            gathering.waiting.append((warp, path))

    def release(self, blocks: npt.NDArray[np.int64]) -> None:
        """Let go where everybody has come, in some blocks."""
        wanted = set(blocks.tolist())
        ready = {
            key: gathering
            for key, gathering in self._gatherings.items()
            if key[0] in wanted and self._is_complete(key[0], gathering)
        }
        for key, gathering in ready.items():
            del self._gatherings[key]
            result = (gathering.holds, gathering.holds == gathering.lanes, gathering.holds > 0)
            for warp, path in gathering.waiting:
                self.results[warp] = result
                self._paths.resume(warp, path)

    def _is_complete(self, block: int, gathering: _Gathering) -> bool:
        if gathering.expected:
            return gathering.lanes >= gathering.expected
        return gathering.lanes >= int(self._state.alive[self._blocks == block].sum())

    def drop(self, block: int) -> None:
        """Forget a block."""
        for key in [key for key in self._gatherings if key[0] == block]:
            del self._gatherings[key]

    def find_row(self, block: int) -> int | None:
        """The row at which some of a block wait; None where none do."""
        for key, gathering in self._gatherings.items():
            if key[0] == block and gathering.waiting:
                return gathering.waiting[0][1].row - 1
        return None
