"""Races and reads of nothing in shared memory: :class:`SharedChecks` keeps a shadow of every word."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Access
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.fragments import Batch, Fragment
from gpa_lsp.execution.emulator.engine.geometry import STAMP_THREAD_SHIFT, WarpSet
from gpa_lsp.execution.emulator.engine.values import Value
from gpa_lsp.execution.emulator.model import FaultKind

Lanes = npt.NDArray[np.int64]
_SHADOWS = 5  # What the core compares a unit with, what nobody wrote first
# A stamp, int64: when (counted in accesses), who (thread in its block), with which instruction, and whether it was strong.
_STRONG = np.int64(1)
_INSTRUCTION_SHIFT = 1
_INSTRUCTION_BITS = STAMP_THREAD_SHIFT - _INSTRUCTION_SHIFT
_THREAD_SHIFT = STAMP_THREAD_SHIFT
_THREAD_BITS = 10
_TIME_SHIFT = _THREAD_SHIFT + _THREAD_BITS
_THREAD_MASK = (1 << _THREAD_BITS) - 1
_INSTRUCTION_MASK = (1 << _INSTRUCTION_BITS) - 1


class SharedChecks:
    """Who touched each unit of shared memory last, since which barrier.

    Per unit (a word of four bytes, or one byte in kernels that access less than words) stamps are kept: of the last write (and, when several
    lanes write with one instruction, of the lowest of them), of the first read since the last barrier, and of a later read by a thread of
    another warp. Two accesses of one unit by different threads, at least one of them a write, not both strong (atomic, volatile, relaxed …),
    and with no barrier between them, are a race: between warps ``SHARED_RACE``, within a warp ``WARP_RACE`` when the warp did not synchronise
    either. Reads by several threads of the writer's own warp are represented by the first one.

    Args:
        batch: whose shared memory.
        unit_bytes: 4, or 1.
        faults: where races are noted.
    """

    def __init__(self, batch: Batch, unit_bytes: int, faults: FaultLog) -> None:
        self._batch = batch
        self._faults = faults
        self._shift = unit_bytes.bit_length() - 1
        units = max(len(batch.numbers) * batch.geometry.shared_stride_bytes >> self._shift, 1)
        self._writes: npt.NDArray[np.int64] = np.zeros(units, np.int64)
        self._reads: npt.NDArray[np.int64] = np.zeros(units, np.int64)
        self._others: npt.NDArray[np.int64] = np.zeros(units, np.int64)
        self._losers: npt.NDArray[np.int64] = np.zeros(0, np.int64)
        self._is_written: npt.NDArray[np.bool_] = np.zeros(units, np.bool_)
        self._unwritten = units
        self._time = 1
        self._block_since: npt.NDArray[np.int64] = np.zeros(len(batch.numbers), np.int64)
        self._warp_since: npt.NDArray[np.int64] = np.zeros(len(batch.root.ids), np.int64)
        self._warps_met = False
        self._oldest = 0  # no stamp below it is in any block's barrier interval
        self._in_step = True  # all blocks passed their last barrier together
        self._has_writes = False  # since all blocks passed a barrier together
        self._has_reads = False
        self._has_losers = False

    @property
    def unit_shift(self) -> int:
        """A unit has so many bytes, as a power of two."""
        return self._shift

    def list_shadows(self) -> dict[str, npt.NDArray[Any]]:
        """The stamps of all units, and of what passed barriers, by name: who works on them instead changes them in place."""
        if len(self._losers) == 0:
            self._losers = np.zeros_like(self._writes)
        return {
            "writes": self._writes,
            "reads": self._reads,
            "others": self._others,
            "losers": self._losers,
            "is_written": self._is_written,
            "block_since": self._block_since,
            "warp_since": self._warp_since,
        }

    def tell(self) -> tuple[int, ...]:
        """Everything beside the shadows, for who goes on with them."""
        return (
            self._time,
            self._unwritten,
            self._warps_met,
            self._oldest,
            self._in_step,
            self._has_writes,
            self._has_reads,
            self._has_losers,
        )

    def learn(self, *told: int) -> None:
        """Go on from what :meth:`tell` told, and what came of it."""
        time, unwritten, warps_met, oldest, in_step, has_writes, has_reads, has_losers = told
        self._time, self._unwritten, self._oldest = time, unwritten, oldest
        self._warps_met, self._in_step = bool(warps_met), bool(in_step)
        self._has_writes, self._has_reads, self._has_losers = bool(has_writes), bool(has_reads), bool(has_losers)

    def pass_barrier(self, slots: "npt.NDArray[np.bool_] | None") -> None:
        """Threads of some blocks (bool[k]; None for all) met."""
        self._time += 1
        now = self._time << _TIME_SHIFT
        if slots is None or slots.all():
            self._block_since[:] = now
            self._has_writes = self._has_reads = self._has_losers = False
        else:
            self._block_since[slots] = now
        self._oldest = int(self._block_since.min())
        self._in_step = int(self._block_since.max()) == self._oldest
        if self._unwritten:
            self._unwritten = len(self._is_written) - int(np.count_nonzero(self._is_written))

    def pass_warp_barrier(self, fragment: Fragment) -> None:
        """Lanes of warps met."""
        self._time += 1
        self._warp_since[fragment.warps.ids] = self._time << _TIME_SHIFT
        self._warps_met = True

    def check_load(self, access: Access, fragment: Fragment, index: Any, mask: Value) -> None:
        """A load is about to happen.

        Args:
            index: int64[n], in elements of the access.
            mask: bool[n]; None for all.
        """
        if mask is not None and not mask.any():
            return
        for unit in self._list_units(access, index):
            if self._unwritten:
                self._check_written(access, fragment, unit, mask)
            shadows = [self._writes] if self._has_writes else []
            if self._has_losers and shadows:
                shadows.append(self._losers)
            for shadow in shadows:
                found = shadow.take(unit, mode="wrap")
                if self._is_recent(found, mask):
                    self._compare(access, fragment, found, mask, is_write=False)
            self._note_reads(self._next_stamp(access), fragment.warps, unit, mask)

    def check_store(self, access: Access, fragment: Fragment, index: Any, mask: Value) -> None:
        """A store or atomic access is about to happen, see :meth:`check_load`."""
        if mask is not None and not mask.any():
            return
        for unit in self._list_units(access, index):
            shadows = [self._writes] if self._has_writes else []
            if self._has_losers:
                shadows.append(self._losers)
            if self._has_reads:
                shadows += [self._reads, self._others]
            for shadow in shadows:
                found = shadow.take(unit, mode="wrap")
                if self._is_recent(found, mask):
                    self._compare(access, fragment, found, mask, is_write=True)
            stamps = fragment.warps.column("stamp") + self._next_stamp(access)
            where = unit if mask is None else unit[mask]
            self._note_writes(where, stamps if mask is None else stamps[mask])
            if self._unwritten:
                self._is_written[where] = True
        self._has_writes = True

    def _note_writes(self, where: Any, stamps: Any) -> None:
        """The highest lane's stamp stays; of the lanes it wins against, the lowest one's is kept too."""
        self._writes[where] = stamps
        lost = self._writes.take(where, mode="wrap") != stamps
        if not lost.any():
            return
        if len(self._losers) == 0:
            self._losers = np.zeros_like(self._writes)
        self._losers[where[lost][::-1]] = stamps[lost][::-1]
        self._has_losers = True

    def _is_recent(self, found: Any, mask: Value) -> bool:
        """Whether any stamp may be of a barrier interval that still lasts."""
        highest = int(found.max() if mask is None else found[mask].max())
        return highest >= self._oldest and highest > 0

    def report_suspects(self, access: Access, number: int, lanes: Lanes, stamps: Lanes) -> None:
        """Note lanes that read what nobody wrote, or race with those that left stamps.

        Args:
            lanes: int64[k] of the batch.
            stamps: int64[k].
        """
        warps = self._batch.root
        if number % _SHADOWS == 0:
            message = "the word was never written; shared memory starts uninitialized"
            if self._faults.is_known(FaultKind.UNINITIALISED, access.instruction):
                return
            self._faults.add_lanes(FaultKind.UNINITIALISED, message, warps, lanes, instruction=access.instruction)
            return
        threads, who = warps.column("thread")[lanes], stamps >> _THREAD_SHIFT & _THREAD_MASK
        within = who >> 5 == threads >> 5
        verb = "reads" if access.kind is AccessKind.LOAD else "writes"
        for kind, chosen in ((FaultKind.SHARED_RACE, ~within), (FaultKind.WARP_RACE, within)):
            places = np.flatnonzero(chosen)
            if len(places) == 0:
                continue
            first = places[0]
            other = int(stamps[first]) >> _INSTRUCTION_SHIFT & _INSTRUCTION_MASK
            between = "no barrier" if kind is FaultKind.SHARED_RACE else "no __syncwarp"
            message = f"thread {threads[first]} {verb} what thread {who[first]} accessed before, with {between} between"
            self._faults.add_lanes(kind, message, warps, lanes[places], instruction=access.instruction, other=other)

    def report_lost(self, access: Access, _: int, lanes: Lanes, stamps: Lanes) -> None:
        """Note lanes that stored something else than what is there now, with the instruction of the stamps: see :meth:`report_suspects`."""
        within = (stamps >> _THREAD_SHIFT & _THREAD_MASK) >> 5 == self._batch.root.column("thread")[lanes] >> 5
        message, static = "threads store different values to the same address with one instruction", access.instruction
        for kind, chosen in ((FaultKind.SHARED_RACE, ~within), (FaultKind.WARP_RACE, within)):
            self._faults.add_lanes(kind, message, self._batch.root, lanes[chosen], instruction=static, other=static)

    def _list_units(self, access: Access, index: Any) -> list[Any]:
        """Units each lane touches, one array after the other."""
        count = max(access.bytes >> self._shift, 1)
        first = self._unit_of(access, index)
        return [first if place == 0 else first + place for place in range(count)]

    def _unit_of(self, access: Access, index: Any) -> Any:
        if access.shift == self._shift:
            return index
        distance = access.shift - self._shift
        return index << distance if distance > 0 else index >> -distance

    def _threads(self, fragment: Fragment) -> Any:
        return fragment.warps.column("thread")

    def _next_stamp(self, access: Access) -> np.int64:
        """A stamp without its thread."""
        self._time += 1
        low = (access.instruction & _INSTRUCTION_MASK) << _INSTRUCTION_SHIFT | int(access.is_strong)
        return np.int64((self._time << _TIME_SHIFT) | low)

    def _check_written(self, access: Access, fragment: Fragment, unit: Any, mask: Value) -> None:
        written = self._is_written.take(unit, mode="wrap")
        if written.all() or self._faults.is_known(FaultKind.UNINITIALISED, access.instruction):
            return
        nothing = ~written if mask is None else ~written & mask
        message = "the word was never written; shared memory starts uninitialized"
        self._faults.add_lanes(
            FaultKind.UNINITIALISED, message, fragment.warps, np.flatnonzero(nothing), instruction=access.instruction
        )

    def _note_reads(self, stamp: np.int64, warps: WarpSet, unit: Any, mask: Value) -> None:
        stamps = warps.column("stamp") + stamp
        before = self._reads.take(unit, mode="wrap")
        since = self._oldest if self._in_step else np.repeat(self._block_since[warps.slots()], 32)
        fresh = (before < since) | (before == 0)
        if mask is not None:
            fresh &= mask
        self._has_reads = True
        if fresh.all():
            self._reads[unit] = stamps  # the highest lane
            self._others[unit[::-1]] = stamps[::-1]  # the lowest one: written backwards, the first one stays
            return
        self._reads[unit[fresh]] = stamps[fresh]
        self._others[unit[fresh][::-1]] = stamps[fresh][::-1]
        first = self._reads.take(unit, mode="wrap")
        foreign = (first ^ stamps) >> (_THREAD_SHIFT + 5) & (_THREAD_MASK >> 5) != 0
        if mask is not None:
            foreign &= mask
        self._others[unit[foreign]] = stamps[foreign]

    def _compare(self, access: Access, fragment: Fragment, found: Any, mask: Value, *, is_write: bool) -> None:
        """Note races of lanes with those that made the stamps."""
        warps = fragment.warps
        threads = self._threads(fragment)
        since = np.repeat(self._block_since[warps.slots()], 32)
        who = (found >> _THREAD_SHIFT) & _THREAD_MASK
        races = (found >= since) & (found != 0) & (who != threads)
        if mask is not None:
            races &= mask
        if access.is_strong:
            races &= (found & _STRONG) == 0
        if not races.any():
            return
        within = (who >> 5) == (threads >> 5)
        if self._warps_met:
            races &= ~within | (found >= np.repeat(self._warp_since[warps.ids], 32))
        for kind, chosen in ((FaultKind.SHARED_RACE, races & ~within), (FaultKind.WARP_RACE, races & within)):
            lanes = np.flatnonzero(chosen)
            if len(lanes) == 0:
                continue
            other = int(found[lanes[0]]) >> _INSTRUCTION_SHIFT & _INSTRUCTION_MASK
            between = "no barrier" if kind is FaultKind.SHARED_RACE else "no __syncwarp"
            verb = "writes" if is_write else "reads"
            message = f"thread {int(threads[lanes[0]])} {verb} what thread {int(who[lanes[0]])} accessed before, with {between} between"
            self._faults.add_lanes(kind, message, warps, lanes, instruction=access.instruction, other=other)
