"""Barriers of blocks (:class:`BlockBarrier`), of lanes of a warp (:class:`WarpBarrier`) and of clusters (:class:`ClusterBarrier`)."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import Register
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.fragments import (
    Barrier,
    Batch,
    Dispatcher,
    End,
    Fragment,
    Frame,
    Segment,
    guarded_mask,
)
from gpa_lsp.execution.emulator.engine.geometry import U32, Value, find_active_rows, pack_lanes
from gpa_lsp.execution.emulator.engine.operands import Reader
from gpa_lsp.execution.emulator.model import FaultKind

_BARRIERS = 16
_GROUP_WARPS = 4  # Of a warp group; the rank in its block of the first one is a multiple of it
_ALL_LANES = np.uint32(0xFFFF_FFFF)


class BlockBarrier(Struct, Barrier, frozen=True, kw_only=True):
    """A ``bar`` or ``barrier`` instruction."""

    static: int  # number of the instruction
    following: Segment  # where lanes go on
    number: Reader  # of the barrier's number, 32 bits
    threads: Reader | None  # of the number of threads it waits for; None for all of the block
    reduction: str = ""  # ``popc``, ``and``, ``or``; empty for others
    predicate: Reader | None = None  # of what is reduced; None without a reduction
    result: int | None = None  # slot of the result; None without one
    result_dtype: "np.dtype[Any]" = U32  # of that slot
    waits: bool = True  # False for ``bar.arrive``
    is_aligned: bool = True  # all threads of a warp must come to the same instruction
    # whether there is a way around it to instructions that are also executed after it; threads that end without having come to it took that way, or
    # left the kernel early (and count as arrived)
    is_bypassed: Callable[[], bool] = lambda: False

    def arrive(self, dispatcher: Dispatcher, barriers: "Barriers", fragment: Fragment) -> None:
        """Lanes have come to the barrier; to different ones, if the number is not the same for all."""
        active, numbers = fragment.active(), self.number(fragment)
        found = np.unique(numbers[active] if numbers.ndim else numbers).tolist()
        for number in found:
            part = fragment
            if len(found) > 1:
                where = active & (numbers == number)
                part = fragment.narrow(where, int(np.count_nonzero(where)))
            self._come_to(number % _BARRIERS, dispatcher, barriers, part)

    def _come_to(self, number: int, dispatcher: Dispatcher, barriers: "Barriers", fragment: Fragment) -> None:
        is_plain = self.threads is None and self.waits and not self.reduction
        if is_plain and fragment.count == fragment.batch.live_count and not barriers.has_arrived(number):
            barriers.note_passing(self)
            dispatcher.go(fragment, self.following)
            return
        if not self.waits:
            barriers.add_arrivals(number, fragment)
            dispatcher.go(fragment, self.following)
            return
        threads = None
        if self.threads is not None:
            active = fragment.active()
            threads = int(np.broadcast_to(self.threads(fragment), active.shape)[active].max())
        fragment.segment = self.following
        barriers.park(self, fragment, number, threads)


class WarpBarrier(Struct, Barrier, frozen=True, kw_only=True):
    """A gate before ``bar.warp.sync`` and other instructions with a member mask: lanes named in it wait for each other."""

    static: int  # number of the instruction
    following: Segment  # where lanes go on
    members: Reader  # of the mask, 32 bits
    guard: Register | None  # of the instruction; only lanes where it holds take part. None without one.
    is_sync: bool  # ``bar.warp.sync``: lanes may come to different instructions
    is_of_group: bool = False  # ``wgmma``: all lanes of the four warps of a warp group wait for each other

    def arrive(self, dispatcher: Dispatcher, barriers: "Barriers", fragment: Fragment) -> None:
        """Lanes have come to the gate."""
        fragment.segment = self.following
        if self.guard is None and fragment.mask is None and not self.is_of_group:
            barriers.note_warps(fragment)
            dispatcher.go(fragment, self.following)
            return
        have = pack_lanes(fragment.active())
        if not self.find_missing(fragment, have).any():
            barriers.note_warps(fragment)
            dispatcher.go(fragment, self.following)
            return
        barriers.park_at_gate(self, fragment)

    def find_missing(self, fragment: Fragment, have: Value) -> Value:
        """Lanes that each warp still waits for: uint32[w]; no warp waits for exited lanes, but a warp group does.

        A warp that waits for another one of its group waits for all lanes.

        Args:
            have: uint32[w], lanes of its warps that are here.
        """
        active, members = guarded_mask(fragment, self.guard), self.members(fragment)
        if not members.ndim and self.guard is None:
            needed: Any = members
        else:
            needed = np.bitwise_or.reduce(np.where(active, members, np.uint32(0)).reshape(-1, 32), axis=1)
        batch = fragment.batch
        live = pack_lanes(batch.live.reshape(-1, 32)[fragment.warps.ids].reshape(-1))
        here = find_active_rows(np.ascontiguousarray(active))
        missing = np.where(here, needed & live & ~have, np.uint32(0))
        if self.is_of_group:
            missing[here & ~_find_whole_groups(fragment, pack_lanes(active))] = _ALL_LANES
        return missing

    def describe_missing(self, missing: Value) -> str:
        """Reason why a warp waits forever, a sentence; ``missing`` is the result of :meth:`find_missing`, not all 0."""
        if self.is_of_group:
            return "not all lanes of the four warps of its warp group ever reach it"
        return f"lanes 0x{int(missing[missing != 0][0]):08x} of the warp never reach it"


def _find_whole_groups(fragment: Fragment, have: Value) -> npt.NDArray[np.bool_]:
    """bool[w], warps of groups of four whose lanes are all there; ``have`` tells the lanes of each warp: uint32[w]."""
    geometry = fragment.batch.geometry
    groups = -(-geometry.warps_per_block // _GROUP_WARPS)
    slot, rank = np.divmod(fragment.warps.ids, geometry.warps_per_block)
    present = np.zeros((len(fragment.batch.numbers), groups * _GROUP_WARPS), np.uint32)
    present[slot, rank] = have
    whole = (present.reshape(-1, groups, _GROUP_WARPS) == _ALL_LANES).all(axis=2)
    of_warp: npt.NDArray[np.bool_] = whole[slot, rank // _GROUP_WARPS]
    return of_warp


class ClusterBarrier(Struct, Barrier, frozen=True):
    """A ``barrier.cluster`` instruction: each thread arrives, then waits until all threads of its cluster have arrived or exited.

    Checks take what a thread accesses between its arrival and its wait for ordered, as what is before the arrival is.
    """

    static: int  # number of the instruction
    following: Segment  # where lanes go on
    waits: bool  # False for ``.arrive``

    def arrive(self, dispatcher: Dispatcher, barriers: "Barriers", fragment: Fragment) -> None:
        """Lanes have come to the instruction."""
        barriers.come_to_cluster(self, fragment)
        if self.waits:
            fragment.segment = self.following
            barriers.wait_for_cluster(self, fragment)
        else:
            dispatcher.go(fragment, self.following)


def end_with_barrier(barrier: Barrier) -> End:
    """End of a segment at a barrier."""
    return lambda dispatcher, fragment: dispatcher.meet(barrier, fragment)


class _Parked(Struct):
    barrier: BlockBarrier
    fragment: Fragment
    number: int
    threads: int | None


class Barriers:
    """Waiting lanes of one batch, by barrier.

    Args:
        batch: the batch.
        faults: where wrong use is noted.
    """

    def __init__(self, batch: Batch, faults: FaultLog) -> None:
        self._batch = batch
        self._faults = faults
        self._parked: list[_Parked] = []
        self._gates: list[tuple[WarpBarrier, Fragment]] = []
        self._arrived: dict[int, npt.NDArray[np.int64]] = {}
        self._of_cluster: list[tuple[ClusterBarrier, Fragment]] = []
        # by block the phase of its cluster's barrier, and by lane the phase that it arrived in and has not waited for; -1 for none
        self._phases = np.zeros(len(batch.numbers), np.int64)
        self._arrived_in = np.full(len(batch.live), -1, np.int64)

    def meet(self, dispatcher: Dispatcher, barrier: Barrier, fragment: Fragment) -> None:
        """A fragment has come to a barrier: it goes on, or waits here."""
        assert isinstance(barrier, BlockBarrier | WarpBarrier | ClusterBarrier)
        barrier.arrive(dispatcher, self, fragment)

    @property
    def is_waited_at(self) -> bool:
        """Whether any lane waits."""
        return bool(self._parked or self._gates or self._of_cluster)

    def list_frames(self) -> set[Frame]:
        """Chains of calls with waiting lanes."""
        return {one.fragment.frame for one in self._parked} | {
            one.frame for _, one in (*self._gates, *self._of_cluster)
        }

    @property
    def has_arrivals(self) -> bool:
        """Whether lanes arrived at any barrier without waiting."""
        return bool(self._arrived)

    def has_arrived(self, number: int) -> bool:
        """Whether lanes arrived at a barrier without waiting."""
        return number in self._arrived

    def note_passing(self, barrier: BlockBarrier) -> None:
        """All live lanes of the batch came to a barrier together."""
        batch = self._batch
        if batch.live_count != batch.geometry.threads * len(batch.numbers) and barrier.is_bypassed():
            counts = batch.count_live()
            short = (counts > 0) & (counts < batch.geometry.threads)
            self._report_exited(barrier, np.flatnonzero(short))
        if batch.checks is not None:
            batch.checks.pass_barrier(np.ones(len(batch.numbers), np.bool_))

    def note_warps(self, fragment: Fragment) -> None:
        """Lanes of warps met."""
        if self._batch.checks is not None:
            self._batch.checks.pass_warp_barrier(fragment)

    def add_arrivals(self, number: int, fragment: Fragment) -> None:
        """Lanes came to a barrier and do not wait (``bar.arrive``)."""
        arrived = self._arrived.setdefault(number, np.zeros(len(self._batch.numbers), np.int64))
        np.add.at(arrived, fragment.warps.slots(), _count_threads(fragment))

    def come_to_cluster(self, barrier: ClusterBarrier, fragment: Fragment) -> None:
        """Lanes arrive at the barrier of their cluster, or begin to wait, which those must that arrived and no others."""
        lanes = fragment.warps.column("lane")
        is_wrong = fragment.active() & ((self._arrived_in[lanes] >= 0) != barrier.waits)
        wrong = (
            "waits at the barrier of its cluster without having arrived"
            if barrier.waits
            else "arrives twice without waiting"
        )
        self._faults.add_lanes(
            FaultKind.CLUSTER_BARRIER,
            f"a thread {wrong}",
            fragment.warps,
            np.flatnonzero(is_wrong),
            instruction=barrier.static,
        )
        if not barrier.waits:
            arriving = lanes[fragment.active()]
            self._arrived_in[arriving] = self._phases[arriving // self._batch.geometry.lanes_per_block]

    def wait_for_cluster(self, barrier: ClusterBarrier, fragment: Fragment) -> None:
        """Lanes wait for those of their cluster."""
        self._of_cluster.append((barrier, fragment))

    def _release_clusters(self, dispatcher: Dispatcher, *, force: bool = False) -> bool:
        if not self._of_cluster:
            return False
        batch = self._batch
        per_cluster = batch.geometry.cluster_blocks * batch.geometry.lanes_per_block
        of_lane = np.repeat(self._phases, batch.geometry.lanes_per_block)
        has_come = (self._arrived_in == of_lane).reshape(-1, per_cluster)
        missing = batch.live.reshape(-1, per_cluster) & ~has_come
        is_complete = has_come.any(axis=1) & (force | ~missing.any(axis=1))
        passed = np.repeat(is_complete, batch.geometry.cluster_blocks)
        self._phases += passed
        if batch.checks is not None and passed.any():
            batch.checks.pass_barrier(passed, is_of_cluster=True)
        waiting, self._of_cluster = self._of_cluster, []
        for barrier, fragment in waiting:
            lanes = fragment.warps.column("lane")
            slots = lanes // batch.geometry.lanes_per_block
            mask = fragment.active() & ((self._arrived_in[lanes] < self._phases[slots]) | force)
            if force:
                count = int(
                    np.count_nonzero(missing.reshape(-1, per_cluster)[lanes[fragment.active()][0] // per_cluster])
                )
                message = f"{count} of {per_cluster} threads of the cluster never arrive at its barrier"
                self._faults.add_lanes(
                    FaultKind.DEADLOCK, message, fragment.warps, np.flatnonzero(mask), instruction=barrier.static
                )
            self._arrived_in[lanes[mask]] = -1
            free, left = _part(fragment, mask, int(np.count_nonzero(mask)))
            if free is not None:
                dispatcher.go(free, barrier.following)
            if left is not None:
                self._of_cluster.append((barrier, left))
        return len(self._of_cluster) < len(waiting) or bool(passed.any())

    def park(self, barrier: BlockBarrier, fragment: Fragment, number: int, threads: int | None) -> None:
        """Lanes wait at a barrier."""
        self._parked.append(_Parked(barrier, fragment, number, threads))

    def park_at_gate(self, gate: WarpBarrier, fragment: Fragment) -> None:
        """Lanes wait for others of their warps."""
        self._gates.append((gate, fragment))

    def release(self, dispatcher: Dispatcher, *, force: bool = True) -> bool:
        """Let lanes go on that need wait no more; whether any could.

        Args:
            force: break a deadlock, with a fault, where none could.
        """
        if not self.is_waited_at:
            return False
        if self._release_gates(dispatcher) or self._release_blocks(dispatcher) or self._release_clusters(dispatcher):
            return True
        if force:
            self._break_deadlock(dispatcher)
            return True
        return False

    def _release_gates(self, dispatcher: Dispatcher) -> bool:
        if not self._gates:
            return False
        waiting: dict[tuple[int, int], tuple[WarpBarrier, list[Fragment]]] = {}
        for gate, fragment in self._gates:
            waiting.setdefault((id(gate), id(fragment.frame)), (gate, []))[1].append(fragment)
        merged = [(gate, fragments[0].merge(fragments[1:])) for gate, fragments in waiting.values()]
        present = np.zeros(len(self._batch.root.ids), np.uint32)
        for gate, fragment in merged:
            if gate.is_sync:
                present[fragment.warps.ids] |= pack_lanes(fragment.active())
        self._gates = []
        released = False
        for gate, fragment in merged:
            have = pack_lanes(fragment.active())
            if gate.is_sync:
                have = have | present[fragment.warps.ids]
            missing = gate.find_missing(fragment, have) != 0
            mask = fragment.active() & np.repeat(~missing, 32)
            count = int(np.count_nonzero(mask))
            released |= count > 0
            free, left = _part(fragment, mask, count)
            if free is not None:
                self.note_warps(free)
                dispatcher.go(free, gate.following)
            if left is not None:
                self._gates.append((gate, left))
        return released

    def _release_blocks(self, dispatcher: Dispatcher) -> bool:
        batch = self._batch
        slots = len(batch.numbers)
        live = batch.count_live()
        ready_of: dict[int, npt.NDArray[np.bool_]] = {}
        for number in {parked.number for parked in self._parked}:
            here = [parked for parked in self._parked if parked.number == number]
            arrived = self._arrived.get(number, np.zeros(slots, np.int64)).copy()
            wanted = np.zeros(slots, np.int64)
            counted = np.zeros(slots, np.bool_)
            lanes = np.zeros(slots, np.int64)
            for parked in here:
                of_warp = parked.fragment.warps.slots()
                np.add.at(arrived, of_warp, _count_threads(parked.fragment))
                np.add.at(lanes, of_warp, _count_lanes(parked.fragment))
                present = np.unique(of_warp[find_active_rows(parked.fragment.active())])
                if parked.threads is not None:
                    counted[present] = True
                    wanted[present] = np.maximum(wanted[present], parked.threads)
            ready = (lanes > 0) & np.where(counted, arrived >= wanted, lanes >= live)
            if not ready.any():
                continue
            ready_of[number] = ready
            self._check_release(here, ready & ~counted, lanes)
            if number in self._arrived:
                self._arrived[number] = np.where(ready, 0, self._arrived[number])
        if not ready_of:
            return False
        self._send(dispatcher, ready_of)
        return True

    def _send(self, dispatcher: Dispatcher, ready_of: dict[int, npt.NDArray[np.bool_]]) -> None:
        parked, self._parked = self._parked, []
        for number, ready in ready_of.items():
            self._reduce([one for one in parked if one.number == number], ready)
        if self._batch.checks is not None:
            everyone = self._batch.count_live() == 0
            for ready in ready_of.values():
                everyone |= ready
            self._batch.checks.pass_barrier(everyone)
        for one in parked:
            allowed = ready_of.get(one.number)
            if allowed is None:
                self._parked.append(one)
                continue
            mask = one.fragment.active() & np.repeat(allowed[one.fragment.warps.slots()], 32)
            free, left = _part(one.fragment, mask, int(np.count_nonzero(mask)))
            if free is not None:
                dispatcher.go(free, one.barrier.following)
            if left is not None:
                self._parked.append(_Parked(one.barrier, left, one.number, one.threads))

    def _reduce(self, parked: list[_Parked], ready: npt.NDArray[np.bool_]) -> None:
        """Give lanes the result of ``bar.red``, over all lanes of their block that waited."""
        reducing = [one for one in parked if one.barrier.reduction]
        if not reducing:
            return
        true = np.zeros(len(ready), np.int64)
        total = np.zeros(len(ready), np.int64)
        for one in reducing:
            fragment = one.fragment
            active = fragment.active()
            assert one.barrier.predicate is not None
            holds = active & one.barrier.predicate(fragment)
            of_warp = fragment.warps.slots()
            np.add.at(true, of_warp, np.count_nonzero(holds.reshape(-1, 32), axis=1))
            np.add.at(total, of_warp, np.count_nonzero(active.reshape(-1, 32), axis=1))
        for one in reducing:
            of_lane = np.repeat(one.fragment.warps.slots(), 32)
            results: dict[str, Any] = {
                "popc": true[of_lane].astype(np.uint32),
                "and": (true == total)[of_lane],
                "or": (true > 0)[of_lane],
            }
            if one.barrier.result is not None:
                result = results[one.barrier.reduction].astype(one.barrier.result_dtype)
                one.fragment.registers[one.barrier.result] = result

    def _check_release(self, parked: list[_Parked], ready: npt.NDArray[np.bool_], lanes: npt.NDArray[np.int64]) -> None:
        """Note blocks of which only a part came, or whose threads came to different instructions."""
        aligned = [one for one in parked if one.barrier.is_aligned]
        if not aligned:
            return
        short = ready & (lanes < self._batch.geometry.threads)
        present = np.zeros(len(ready), np.int64)
        statics = sorted({one.barrier.static for one in aligned})
        for static in statics:
            here = np.zeros(len(ready), np.bool_)
            for one in aligned:
                if one.barrier.static == static:
                    here[one.fragment.warps.slots()[find_active_rows(one.fragment.active())]] = True
            present += here
        mixed = np.flatnonzero(ready & (present > 1))
        if len(mixed):
            self._faults.add(
                FaultKind.DIVERGENT_BARRIER,
                "threads of one block wait at different barriers",
                instruction=statics[0],
                other=statics[-1],
                count=len(mixed),
                block=int(self._batch.numbers[mixed[0]]),
            )
            return
        if short.any() and aligned[0].barrier.is_bypassed():
            self._report_exited(aligned[0].barrier, np.flatnonzero(short))

    def _report_exited(self, barrier: BlockBarrier, slots: npt.NDArray[np.int64]) -> None:
        if len(slots):
            batch = self._batch
            threads, live = batch.geometry.threads, int(batch.count_live()[slots[0]])
            self._faults.add(
                FaultKind.DIVERGENT_BARRIER,
                f"{threads - live} of {threads} threads of the block have exited and never reach the barrier",
                instruction=barrier.static,
                count=len(slots),
                block=int(batch.numbers[slots[0]]),
            )

    def _break_deadlock(self, dispatcher: Dispatcher) -> None:
        """Report that no lane can run, and let all go on."""
        places = sorted({one.barrier.static for one in self._parked})
        if self._gates:
            self._open_gates(dispatcher)
            return
        if self._release_clusters(dispatcher, force=True):
            return
        for one in self._parked:
            slot = int(one.fragment.warps.slots()[find_active_rows(one.fragment.active())][0])
            other = next((place for place in places if place != one.barrier.static), None)
            kind = FaultKind.DEADLOCK if one.threads is not None or other is None else FaultKind.DIVERGENT_BARRIER
            what = "the block's other threads wait elsewhere" if other is not None else "too few threads ever reach it"
            self._faults.add(
                kind,
                f"threads wait at the barrier forever: {what}",
                instruction=one.barrier.static,
                other=other,
                count=one.fragment.count,
                block=int(self._batch.numbers[slot]),
            )
        parked, self._parked = self._parked, []
        everyone = np.ones(len(self._batch.numbers), np.bool_)
        self._reduce(parked, everyone)
        self._arrived.clear()
        if self._batch.checks is not None:
            self._batch.checks.pass_barrier(everyone)
        for one in parked:
            dispatcher.go(one.fragment, one.barrier.following)

    def _open_gates(self, dispatcher: Dispatcher) -> None:
        """Report lanes that wait for others of their warp forever, and let them go on."""
        gates, self._gates = self._gates, []
        for gate, fragment in gates:
            missing = gate.find_missing(fragment, pack_lanes(fragment.active()))
            lanes = np.flatnonzero(fragment.active() & np.repeat(missing != 0, 32))
            if len(lanes):
                message = gate.describe_missing(missing)
                self._faults.add_lanes(FaultKind.DEADLOCK, message, fragment.warps, lanes, instruction=gate.static)
            dispatcher.go(fragment, gate.following)


def _part(fragment: Fragment, mask: Value, count: int) -> tuple[Fragment | None, Fragment | None]:
    """The lanes of a mask, and the others; None for no lanes."""
    if count == fragment.count:
        return fragment, None
    if count == 0:
        return None, fragment
    others = fragment.active() & ~mask
    return fragment.narrow(mask, count), fragment.narrow(others, fragment.count - count)


def _count_lanes(fragment: Fragment) -> npt.NDArray[np.int64]:
    """int64[w], active lanes of each warp."""
    counts: npt.NDArray[np.int64] = np.count_nonzero(fragment.active().reshape(-1, 32), axis=1)
    return counts


def _count_threads(fragment: Fragment) -> npt.NDArray[np.int64]:
    """int64[w], threads that count as arrived with each warp: lanes that exited, or never were, come with those that did."""
    live = fragment.batch.live.reshape(-1, 32)[fragment.warps.ids]
    lanes = _count_lanes(fragment)
    return np.where(lanes > 0, lanes + np.count_nonzero(~live, axis=1), 0)
