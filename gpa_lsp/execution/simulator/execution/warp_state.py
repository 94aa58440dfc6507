"""Warps at work: their registers, :class:`WarpState`; the lanes that execute an instruction, :class:`Lanes`; the paths of lanes, :class:`Paths`;
and barriers of blocks, :class:`BlockBarriers`.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES, pack_lanes
from gpa_lsp.foundation.records import ColumnRecord

_PREDICATES = 8
_KINDS = 5

Column = npt.NDArray[Any]  # A value for each lane [k, 32], for each warp [k, 1], or one for all [1, 1]
Warps = npt.NDArray[np.int64] | slice


class Lanes:
    """Lanes that execute an instruction.

    Attributes:
        warps: their numbers, or a slice for all of them.
        mask: bool[k, 32], the lanes.
    """

    __slots__ = ("is_slice", "mask", "warps")

    def __init__(self, warps: Warps, mask: npt.NDArray[np.bool_]) -> None:
        self.warps = warps
        self.mask = mask
        self.is_slice = isinstance(warps, slice)

    @property
    def bits(self) -> npt.NDArray[np.uint32]:
        """uint32[k], lane i as bit i."""
        found: npt.NDArray[np.uint32] = pack_lanes(self.mask)
        return found


class WarpState:
    """Registers of w warps.

    What an instruction wrote whose arithmetic is not known, and what was computed from it, is marked: a value that is marked decides nothing.

    Args:
        warps: how many.
        registers: general ones of a thread.

    Attributes:
        count: of warps.
        registers: uint32[r, w, 32].
        uniform: uint32[64 or more, w, 1].
        predicates: bool[8, w, 32]; the last one is true.
        uniform_predicates: bool[8, w, 1]; the last one is true.
        barriers: uint32[16, w, 32], the lanes that each lane waits for at a convergence barrier.
        are_barriers_left: some lane has said that it is waited for no longer, so that those who wait already may wait for fewer.
        alive: bool[w, 32], lanes that have not exited.
        unknown: uint32[resource, w], by resource number, the lanes in which it has no known value; of uniform ones all or none.
        has_unknown: whether any is.
        tainted: of each resource, whether it is unknown anywhere.
    """

    def __init__(self, warps: int, registers: int) -> None:
        self.count = warps
        self.registers: npt.NDArray[np.uint32] = np.zeros(
            (min(max(registers, 1) + 8, 255), warps, WARP_LANES), np.uint32
        )
        self.uniform: npt.NDArray[np.uint32] = np.zeros((255, warps, 1), np.uint32)
        self.predicates: npt.NDArray[np.bool_] = np.zeros((_PREDICATES, warps, WARP_LANES), np.bool_)
        self.uniform_predicates: npt.NDArray[np.bool_] = np.zeros((_PREDICATES, warps, 1), np.bool_)
        self.predicates[-1] = True
        self.uniform_predicates[-1] = True
        self.barriers: npt.NDArray[np.uint32] = np.zeros((16, warps, WARP_LANES), np.uint32)
        self.are_barriers_left = False
        self.alive: npt.NDArray[np.bool_] = np.zeros((warps, WARP_LANES), np.bool_)
        self.unknown: npt.NDArray[np.uint32] = np.zeros((_KINDS << 8, warps), np.uint32)
        self.has_unknown = False
        self.tainted = bytearray(_KINDS << 8)

    def find_unknown(self, resources: Sequence[int], lanes: Lanes) -> npt.NDArray[np.uint32]:
        """uint32[k], lanes that execute in which any of some resources has no known value."""
        if not resources:
            return np.zeros(len(lanes.mask), np.uint32)
        found: npt.NDArray[np.uint32] = np.bitwise_or.reduce(self.unknown[list(resources)][:, lanes.warps], axis=0)
        return found & lanes.bits


# Where lanes are

BLOCKED = 1 << 30  # The row of a warp that cannot go on

Bits = int
CallStack = tuple[int, ...]
Masks = npt.NDArray[np.bool_]
Place = tuple[int | None, int]  # Where lanes wait: at a convergence barrier, or in front of a row


class Path(ColumnRecord, frozen=True):
    """Some lanes of a warp that go together."""

    row: int  # where they go on
    bits: Bits  # which lanes
    stack: CallStack  # rows to return to, innermost last
    barrier: int | None = None  # number of the convergence barrier they wait at; None where they do not
    awaited: Bits = 0  # lanes they wait for; 0 where they do not wait

    @property
    def place(self) -> Place:
        """Key of the place where they wait."""
        return self.barrier, self.row if self.barrier is None else -1


class Paths:
    """The paths of w warps.

    One path of a warp runs until it ends or has to wait; then the next one does, as the hardware does where nothing makes it yield.

    Args:
        state: registers.
        masks: uint32[w], lanes that start.

    Attributes:
        rows: int64[w], where the running path is; :data:`BLOCKED` where none runs.
        masks: bool[w, 32], its lanes.
        stacks: its calls.
    """

    def __init__(self, state: WarpState, masks: npt.NDArray[np.bool_]) -> None:
        self._state = state
        self.rows: npt.NDArray[np.int64] = np.zeros(state.count, np.int64)
        self.masks: npt.NDArray[np.bool_] = masks.copy()
        self.stacks: list[CallStack] = [()] * state.count
        self._pending: list[list[Path]] = [[] for _ in range(state.count)]
        self._waiting: list[dict[Place, list[Path]]] = [{} for _ in range(state.count)]

    def divide(self, warps: npt.NDArray[np.int64], whole: Masks, taken: Masks, target: int, following: int) -> None:
        """Two paths out of one, in some warps: those that do not jump go first.

        Args:
            warps: int64[k].
            whole: bool[k, 32], lanes of their paths.
            taken: bool[k, 32], of them, those that jump.
        """
        self.rows[warps] = following
        self.masks[warps] = whole & ~taken
        for warp, bits in zip(warps.tolist(), pack_lanes(taken).tolist(), strict=True):
            self._pending[warp].append(Path(target, bits, self.stacks[warp]))

    def resume(self, warp: int, path: Path) -> None:
        """A path may go on."""
        self._pending[warp].append(path)
        if self.rows[warp] == BLOCKED:
            self.switch(warp)

    def wait(self, warp: int, path: Path) -> None:
        """The running path waits for other lanes of its warp."""
        self._waiting[warp].setdefault(path.place, []).append(path)
        self.switch(warp)

    def switch(self, warp: int) -> None:
        """The running path has ended or waits: another one goes on."""
        if self._waiting[warp]:
            self._release(warp)
        if not self._pending[warp]:
            self.rows[warp] = BLOCKED
            self.masks[warp] = False
            return
        self.go_on(warp, self._pending[warp].pop())

    def part_into(self, warp: int, paths: Iterable[Path]) -> None:
        """The running path becomes several: the first of those that have lanes runs, the others wait for their turn."""
        first, *others = (path for path in paths if path.bits)
        for path in others:
            self.resume(warp, path)
        self.go_on(warp, first)

    def go_on(self, warp: int, path: Path) -> None:
        """A path runs."""
        self.rows[warp] = path.row
        self.masks[warp] = spread(path.bits)
        self.stacks[warp] = path.stack

    def drop(self, warp: int) -> None:
        """Stop all paths of a warp."""
        self._pending[warp].clear()
        self._waiting[warp].clear()
        self.rows[warp] = BLOCKED
        self.masks[warp] = False

    def _release(self, warp: int) -> None:
        """Release waiting paths whose lanes are all there."""
        alive = gather(self._state.alive[warp])
        while self._waiting[warp] and self._release_one(warp, alive):
            pass

    def _release_one(self, warp: int, alive: Bits) -> bool:
        """Release one place whose lanes are all there; whether there was one."""
        waiting = self._waiting[warp]
        for place, paths in waiting.items():
            missing = alive
            for path in paths:
                missing &= ~path.bits
            for path in paths:
                awaited = self._find_awaited(warp, path)
                if awaited & missing:
                    continue
                wanted = awaited & alive | path.bits
                bits = 0
                left = []
                for one in paths:
                    if one.bits & wanted:
                        bits |= one.bits
                    else:
                        left.append(one)
                if left:
                    waiting[place] = left
                else:
                    del waiting[place]
                self._pending[warp].append(Path(path.row, bits, path.stack))
                return True
        return False

    def _find_awaited(self, warp: int, path: Path) -> Bits:
        if path.barrier is None or not self._state.are_barriers_left:
            return path.awaited
        lanes = self._state.barriers[path.barrier][warp][spread(path.bits)]
        return int(np.bitwise_or.reduce(lanes)) if len(lanes) else 0

    def part(self) -> bool:
        """Let paths at convergence barriers go on without the others, where none else can; whether there are any.

        They need not meet there: it only lets them go on together. Others may wait for them at a barrier of the warp or the block.
        """
        found = False
        for warp, waiting in enumerate(self._waiting):
            parted = [path for paths in waiting.values() for path in paths if path.barrier is not None]
            for place in {path.place for path in parted}:
                del waiting[place]
            for path in parted:
                self.resume(warp, Path(path.row, path.bits, path.stack))
                found = True
        return found

    def waiting_row(self, warp: int) -> int | None:
        """The row behind which lanes of a warp wait; None where none does."""
        paths = next(iter(self._waiting[warp].values()), None)
        return paths[0].row - 1 if paths else None


_PLACES = np.arange(WARP_LANES, dtype=np.uint32)


@lru_cache(maxsize=4096)
def spread(bits: Bits) -> npt.NDArray[np.bool_]:
    """bool[32] of a mask, to be read only."""
    return (np.uint32(bits) >> _PLACES & np.uint32(1)).astype(np.bool_)


def gather(mask: npt.NDArray[np.bool_]) -> Bits:
    """The mask of bool[32]."""
    return int.from_bytes(np.packbits(mask, bitorder="little").tobytes(), "little")


class _Gathering(Struct):
    """Warps that have come to one barrier of one block."""

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
        """Note that a path has come; it goes on when the others have. Where it waits, its warp must be switched."""
        key = int(self._blocks[warp]), number
        gathering = self._gatherings.setdefault(key, _Gathering(expected, []))
        gathering.expected = max(gathering.expected, expected)
        # Warps count as a whole where a number of threads is expected.
        gathering.lanes += WARP_LANES if expected else path.bits.bit_count()
        gathering.holds += holds
        if waits:
            gathering.waiting.append((warp, path))

    def release(self, blocks: npt.NDArray[np.int64]) -> None:
        """Release barriers of some blocks that all lanes have reached."""
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
