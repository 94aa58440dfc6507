"""Races on shared memory and reads of uninitialized words: :class:`SharedChecks` keeps a shadow of every word, and reports what the core finds."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.compiled.core_functions import Core
from gpa_lsp.execution.emulator.compiled.shared_watch import (
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


class SharedChecks:
    """Shadow of shared memory: the last accesses of each unit, with the barriers between them.

    Per unit (a word of four bytes, or one byte in kernels that access less than words) stamps are kept: of the last write (and, when several
    lanes write with one instruction, of the lowest of them), of the first read since the last barrier, and of a later read by a thread of
    another warp. Two accesses of one unit by different threads, at least one of them a write, not both strong (atomic, volatile, relaxed …),
    and with no barrier between them, are a race: between warps ``SHARED_RACE``, within a warp ``WARP_RACE`` when the warp did not synchronise
    either. Reads by several threads of the writer's own warp are represented by the first one.

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
            "warp_since": np.zeros(len(self._warps.ids), np.int64),
        }
        for name, array in self._kept.items():
            setattr(machine, name, array.ctypes.data)

    def pass_barrier(self, slots: npt.NDArray[np.bool_]) -> None:
        """Threads of some blocks met: bool[k]."""
        self._core.call("pass_blocks", self._place, np.ascontiguousarray(slots).view(np.uint8))

    def pass_warp_barrier(self, fragment: Fragment) -> None:
        """Lanes of warps met."""
        masks = np.zeros(len(self._warps.ids), np.uint32)
        masks[fragment.warps.ids] = 1
        self._core.call("pass_warps", self._place, masks)

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
            between = "no barrier" if kind is FaultKind.SHARED_RACE else "no __syncwarp"
            message = f"thread {own} {verb} what thread {other} accessed before, with {between} between"
            static = stamp >> 1 & INSTRUCTION_MASK
            self._faults.add_lanes(
                kind, message, self._warps, lanes[chosen], instruction=access.instruction, other=static
            )

    def _part(self, lanes: Lanes, stamps: Lanes) -> tuple[tuple[FaultKind, Lanes], ...]:
        """Places of the lanes that conflict with threads of other warps, and with threads of their own warp."""
        within = (stamps >> THREAD_SHIFT & THREAD_MASK) >> 5 == self._threads(lanes) >> 5
        return (FaultKind.SHARED_RACE, np.flatnonzero(~within)), (FaultKind.WARP_RACE, np.flatnonzero(within))

    def _threads(self, lanes: Lanes) -> Lanes:
        threads: Lanes = self._warps.column("thread")[lanes]
        return threads
