"""Barriers as what ends segments: :class:`BlockBarrier` and :class:`WarpBarrier`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.emulator.engine.fragments import Fragment
from gpa_lsp.emulator.engine.segments import Segment
from gpa_lsp.emulator.engine.values import U32, Value, find_active_rows, pack_lanes
from gpa_lsp.emulator.operations.warp_group_products import GROUP_WARPS

if TYPE_CHECKING:
    from gpa_lsp.emulator.engine.scheduler import Scheduler

_BARRIERS = 16
_ALL_LANES = np.uint32(0xFFFF_FFFF)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockBarrier:
    """A ``bar`` or ``barrier`` instruction.

    Attributes:
        static: number of the instruction.
        following: where lanes go on.
        number: slot of the barrier's number, 32 bits.
        threads: slot of the number of threads it waits for; None for all of the block.
        reduction: ``popc``, ``and``, ``or``; empty for others.
        predicate: slot of what is reduced; None likewise.
        result: slot of the result; None likewise.
        waits: False for ``bar.arrive``.
        is_aligned: all threads of a warp must come to the same instruction.
        is_bypassed: whether there is a way around it to instructions that are also executed after it; threads that end without having come
            to it took that way, or left the kernel early (and count as arrived).
    """

    static: int
    following: Segment
    number: int
    threads: int | None
    reduction: str = ""
    predicate: int | None = None
    result: int | None = None
    waits: bool = True
    is_aligned: bool = True
    is_bypassed: Callable[[], bool] = lambda: False

    def arrive(self, scheduler: "Scheduler", fragment: Fragment) -> None:
        """What ends the segment before the barrier."""
        barriers = scheduler.barriers
        number, threads = self._read(fragment)
        batch = fragment.batch
        is_plain = number is not None and self.threads is None and self.waits and not self.reduction
        if is_plain and fragment.count == batch.live_count and not barriers.has_arrived(number or 0):
            barriers.note_passing(self)
            scheduler.go(fragment, self.following)
            return
        if number is None:
            self._part(scheduler, fragment)
            return
        if not self.waits:
            barriers.add_arrivals(number, fragment)
            scheduler.go(fragment, self.following)
            return
        fragment.segment = self.following
        barriers.park(self, fragment, number, threads)

    def _read(self, fragment: Fragment) -> tuple[int | None, int | None]:
        number = fragment.registers[self.number]
        if number.ndim:
            seen = number[fragment.active()]
            if (seen != seen[0]).any():
                return None, None
            number = seen[0]
        threads = None
        if self.threads is not None:
            wanted = fragment.registers[self.threads]
            threads = int(wanted[fragment.active()].max() if wanted.ndim else wanted)
        return int(number) % _BARRIERS, threads

    def _part(self, scheduler: "Scheduler", fragment: Fragment) -> None:
        """Lanes that come to different barriers with one instruction."""
        numbers = fragment.registers[self.number]
        active = fragment.active()
        for number in np.unique(numbers[active]):
            where = active & (numbers == number)
            part = fragment.narrow(where, int(np.count_nonzero(where)))
            part.registers[self.number] = number
            self.arrive(scheduler, part)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarpBarrier:
    """A gate before ``bar.warp.sync`` and other instructions with a member mask: lanes named in it wait for each other.

    Attributes:
        static: number of the instruction.
        following: where lanes go on.
        members: slot of the mask, 32 bits.
        guard: slot of the instruction's guard; only lanes where it is true take part. None without one.
        is_sync: ``bar.warp.sync``: lanes may come to different instructions.
        is_of_group: ``wgmma``: all lanes of the four warps of a warp group wait for each other.
    """

    static: int
    following: Segment
    members: int
    guard: int | None
    is_sync: bool
    is_of_group: bool = False

    def arrive(self, scheduler: "Scheduler", fragment: Fragment) -> None:
        """What ends the segment before the gate."""
        fragment.segment = self.following
        if self.guard is None and fragment.mask is None and not self.is_of_group:
            scheduler.barriers.note_warps(fragment)
            scheduler.go(fragment, self.following)
            return
        have = pack_lanes(fragment.active())
        if not self.find_missing(fragment, have).any():
            scheduler.barriers.note_warps(fragment)
            scheduler.go(fragment, self.following)
            return
        scheduler.barriers.park_at_gate(self, fragment)

    def find_missing(self, fragment: Fragment, have: Value) -> Value:
        """Lanes each warp still waits for: uint32[w]; those that exited are not waited for, but by a warp group.

        A warp that waits for another one of its group waits for all lanes.

        Args:
            fragment: who waits.
            have: uint32[w], lanes of its warps that are here.
        """
        active = fragment.active()
        if self.guard is not None:
            active = active & fragment.registers[self.guard]
        members = fragment.registers[self.members]
        if not members.ndim and self.guard is None:
            needed: Any = np.uint32(members)
        else:
            wanted = np.where(active, members.view(U32), np.uint32(0))
            needed = np.bitwise_or.reduce(wanted.reshape(-1, 32), axis=1)
        batch = fragment.batch
        live = pack_lanes(batch.live.reshape(-1, 32)[fragment.warps.ids].reshape(-1))
        here = find_active_rows(np.ascontiguousarray(active))
        missing = np.where(here, needed & live & ~have, np.uint32(0))
        if self.is_of_group:
            missing[here & ~_find_whole_groups(fragment, pack_lanes(active))] = _ALL_LANES
        return missing

    def describe_missing(self, missing: Value) -> str:
        """What keeps a warp waiting for ever, as a sentence; ``missing`` is what :meth:`find_missing` gives, not all of it 0."""
        if self.is_of_group:
            return "not all lanes of the four warps of its warp group ever come to it"
        return f"lanes 0x{int(missing[missing != 0][0]):08x} of the warp never come to it"


def _find_whole_groups(fragment: Fragment, have: Value) -> npt.NDArray[np.bool_]:
    """bool[w], warps of groups of four whose lanes are all there; ``have`` tells the lanes of each warp: uint32[w]."""
    geometry = fragment.batch.geometry
    groups = -(-geometry.warps_per_block // GROUP_WARPS)
    slot, rank = np.divmod(fragment.warps.ids, geometry.warps_per_block)
    present = np.zeros((len(fragment.batch.blocks), groups * GROUP_WARPS), np.uint32)
    present[slot, rank] = have
    whole = (present.reshape(-1, groups, GROUP_WARPS) == _ALL_LANES).all(axis=2)
    of_warp: npt.NDArray[np.bool_] = whole[slot, rank // GROUP_WARPS]
    return of_warp
