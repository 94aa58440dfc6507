"""Races on shared memory and reads of uninitialized words: :class:`SharedChecks` keeps a shadow of every word, and reports what the core finds."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.core_functions import Core
from gpa_lsp.execution.emulator.compiled.shared_watch import (
    BLOCK_SHIFT,
    INSTRUCTION_MASK,
    SHADOWS,
    THREAD_MASK,
    THREAD_SHIFT,
    UNWRITTEN,
)
from gpa_lsp.execution.emulator.engine.faults import Access, FaultLog
from gpa_lsp.execution.emulator.engine.fragments import Batch, Fragment
from gpa_lsp.execution.emulator.model import FaultKind

Lanes = npt.NDArray[np.int64]
_BETWEEN = {
    FaultKind.CLUSTER_RACE: "no barrier of the cluster",
    FaultKind.SHARED_RACE: "no barrier",
    FaultKind.WARP_RACE: "no __syncwarp",
}


class SharedChecks:
    """Shadow of shared memory: the last accesses of each unit, with the barriers between them.

    Per unit (a word of four bytes, or one byte in kernels that access less than words) stamps are kept: of the last write (and, when several
    lanes write with one instruction, of the lowest of them), of the first read since the last barrier, and of a later read by a thread of
    another warp. Two accesses of one unit by different threads, at least one of them a write, not both strong (atomic, volatile, relaxed …),
    and with no barrier between them, are a race: between warps ``SHARED_RACE``, within a warp ``WARP_RACE`` when the warp did not synchronise
    either. Reads by several threads of the writer's own warp are represented by the first one. Threads of different blocks of a cluster
    (``CLUSTER_RACE``) need a barrier of the cluster between them, and so do an access to another block and the beginning and end of that one.

    Args:
        batch: whose shared memory.
        unit_bytes: 4, or 1.
        faults: where races are noted.
        core: compares accesses with the shadow.
        machine: what it works on.
        stamps: uint64, where it writes the stamps that lanes conflict with.
    """

    def __init__(
        self,
        batch: Batch,
        unit_bytes: int,
        faults: FaultLog,
        core: Core,
        *,
        machine: Any,
        stamps: npt.NDArray[np.uint64],
    ) -> None:
        self._warps = batch.root
        self._faults = faults
        self._core = core
        self._place = np.frombuffer(memoryview(machine).cast("B"), np.uint8)
        self._stamps = stamps[: self._warps.lanes].view(np.int64)
        machine.checks, machine.unit_shift = 1, unit_bytes.bit_length() - 1
        units = max(len(batch.numbers) * batch.geometry.shared_stride_bytes // unit_bytes, 1)
        machine.units = machine.unwritten = units
        machine.time = machine.in_step = 1
        self._kept: dict[str, npt.NDArray[Any]] = {
            name: np.zeros(units, np.int64) for name in ("writes", "reads", "others", "losers")
        }
        self._kept |= {
            "is_written": np.zeros(units, np.uint8),
            "block_since": np.zeros(len(batch.numbers), np.int64),
            **{
                name: np.zeros(len(batch.numbers), np.int64)
                for name in ("cluster_since", "first_remote", "last_remote")
            },
            "warp_since": np.zeros(len(self._warps.ids), np.int64),
        }
        for name, array in self._kept.items():
            setattr(machine, name, array.ctypes.data)

    def pass_barrier(self, slots: npt.NDArray[np.bool_], *, is_of_cluster: bool = False) -> None:
        """Threads of some blocks met, those of each block or of each cluster: bool[k]."""
        self._core.call("pass_blocks", self._place, np.ascontiguousarray(slots).view(np.uint8), int(is_of_cluster))

    def pass_warp_barrier(self, fragment: Fragment) -> None:
        """Lanes of warps met."""
        masks = np.zeros(len(self._warps.ids), np.uint32)
        masks[fragment.warps.ids] = 1
        self._core.call("pass_warps", self._place, masks)

    def finish(self) -> None:
        """Report accesses to other blocks of a cluster that may not have begun, or may have ended: no barrier of the cluster was between."""
        last, since = self._kept["last_remote"], self._kept["cluster_since"]
        for stamps, which in ((self._kept["first_remote"], "started"), (np.where(last > since, last, 0), "ended")):
            for slot in np.flatnonzero(stamps).tolist():
                has = "may not have started" if which == "started" else "may have ended"
                rank = slot % self._warps.blocks.geometry.cluster_blocks
                self._faults.add(
                    FaultKind.CLUSTER_RACE,
                    f"block {rank} of the cluster, whose shared memory this accesses, {has}: no barrier of the cluster is between",
                    instruction=int(stamps[slot]) >> 1 & INSTRUCTION_MASK,
                    block=int(self._warps.blocks.numbers[slot]),
                )

    def report_suspects(self, access: Access) -> None:
        """Report lanes that are about to read an uninitialized word, or race."""

        def report(number: int, lanes: Lanes, stamps: Lanes) -> None:
            if number % SHADOWS == UNWRITTEN:
                self._report_unwritten(access, lanes)
            else:
                self._report_races(access, lanes, stamps)

        self._list_found("find_suspects", report)

    def report_lost(self, access: Access) -> None:
        """Report lanes whose stored value another lane overwrote with the same instruction."""

        def report(_: int, lanes: Lanes, stamps: Lanes) -> None:
            message = "threads store different values to the same address with one instruction"
            for kind, chosen in self._part(lanes, stamps):
                self._faults.add_lanes(
                    kind, message, self._warps, lanes[chosen], instruction=access.instruction, other=access.instruction
                )

        self._list_found("find_lost", report)

    def _list_found(self, name: str, report: Callable[[int, Lanes, Lanes], None]) -> None:
        """Report the lanes that the core finds, set by set: number of the set, int64[k] lanes of the batch, and the stamps they conflict with."""
        for number in count():
            found = self._core.call(name, self._place, number)
            if found < 0:
                return
            if found:
                lanes = np.flatnonzero(self._stamps)
                report(number, lanes, self._stamps[lanes])

    def _report_unwritten(self, access: Access, lanes: Lanes) -> None:
        message = "the word was never written; shared memory starts uninitialized"
        if not self._faults.is_known(FaultKind.UNINITIALISED, access.instruction):
            self._faults.add_lanes(FaultKind.UNINITIALISED, message, self._warps, lanes, instruction=access.instruction)

    def _report_races(self, access: Access, lanes: Lanes, stamps: Lanes) -> None:
        verb = "reads" if access.kind is AccessKind.LOAD else "writes"
        for kind, chosen in self._part(lanes, stamps):
            if len(chosen) == 0:
                continue
            stamp = int(stamps[chosen[0]])
            own, other = int(self._threads(lanes)[chosen[0]]), stamp >> THREAD_SHIFT & THREAD_MASK
            of_block = f" of block {other >> BLOCK_SHIFT} of the cluster" if kind is FaultKind.CLUSTER_RACE else ""
            own, other = own % (1 << BLOCK_SHIFT), other % (1 << BLOCK_SHIFT)
            message = (
                f"thread {own} {verb} what thread {other}{of_block} accessed before, with {_BETWEEN[kind]} between"
            )
            static = stamp >> 1 & INSTRUCTION_MASK
            self._faults.add_lanes(
                kind, message, self._warps, lanes[chosen], instruction=access.instruction, other=static
            )

    def _part(self, lanes: Lanes, stamps: Lanes) -> tuple[tuple[FaultKind, Lanes], ...]:
        """Places of the lanes that conflict with threads of other blocks, of other warps, and of their own warp."""
        apart = (stamps >> THREAD_SHIFT & THREAD_MASK) ^ self._threads(lanes)
        kinds = (FaultKind.CLUSTER_RACE, FaultKind.SHARED_RACE, FaultKind.WARP_RACE)
        chosen = apart >> BLOCK_SHIFT != 0, (apart >> BLOCK_SHIFT == 0) & (apart >> 5 != 0), apart >> 5 == 0
        return tuple(zip(kinds, map(np.flatnonzero, chosen), strict=True))

    def _threads(self, lanes: Lanes) -> Lanes:
        """Threads in their blocks, and above them the ranks of the blocks, as stamps have them."""
        ranks = np.broadcast_to(self._warps.column("cluster_ctarank"), (self._warps.lanes,))[lanes].astype(np.int64)
        threads: Lanes = self._warps.column("thread")[lanes] + (ranks << BLOCK_SHIFT)
        return threads
