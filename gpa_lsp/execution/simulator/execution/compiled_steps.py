"""Steps of warps by machine code: :class:`CompiledSteps`."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary import model
from gpa_lsp.execution.emulator.semantics import atomics, exchange, floats, words
from gpa_lsp.execution.simulator.execution import (
    lane_values,
    memory_spaces,
    walk_accesses,
    walk_model,
    walk_registers,
    walk_steps,
)
from gpa_lsp.execution.simulator.execution.binding import Segment
from gpa_lsp.execution.simulator.execution.lane_values import NUMBERS, read_value_functions
from gpa_lsp.execution.simulator.execution.memory_spaces import GLOBAL_BASE, MemorySpace, MemorySpaces
from gpa_lsp.execution.simulator.execution.recording import NoteRoom, Recorder
from gpa_lsp.execution.simulator.execution.walk_model import CoreWalk, Fault, Stop
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, Lanes, WarpState
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR
from gpa_lsp.foundation.machine_code.build import Code, load_module
from gpa_lsp.foundation.machine_code.translate import translate

_SOURCES = (
    walk_steps, walk_accesses, walk_registers, walk_model, lane_values, floats, words, atomics, exchange, memory_spaces, model,
)  # fmt: skip


@cache
def load_walk() -> Code:
    """The functions of :mod:`walk_steps`."""
    texts = [Path(str(one.__file__)).read_text(encoding="utf-8") for one in _SOURCES]
    return load_module(
        lambda: translate([walk_steps.walk_steps, *read_value_functions()], name="walk"),
        texts,
        name="walk",
        functions=("walk_steps",),
        level=1,
    )


@cache
def find_functions() -> npt.NDArray[np.uint64]:
    """Addresses of the functions of values, by number."""
    return np.array([load_walk().find_address(f"value_{name}") for name in NUMBERS], np.uint64)


class WalkFaultError(Exception):
    """Some warps cannot execute a step.

    Args:
        reason: a sentence.
        place: of the step in its segment.
        guilty: int64[n], their places among the warps that execute it.
    """

    def __init__(self, reason: str, place: int, guilty: npt.NDArray[np.int64]) -> None:
        super().__init__(reason)
        self.place, self.guilty = place, guilty


class CompiledSteps:
    """Executes steps of some warps.

    Args:
        state: their registers.
        spaces: their memories.
        specials: their special registers, uint32[number, w, 32].
        recorder: notes what they execute.
    """

    def __init__(
        self, state: WarpState, spaces: MemorySpaces, specials: npt.NDArray[np.uint32], recorder: Recorder
    ) -> None:
        self._state, self._spaces, self._recorder = state, spaces, recorder
        self._noted = NoteRoom(state.count)
        self._numbers = np.arange(state.count, dtype=np.int64)
        self._bits = np.zeros((2, state.count), np.uint32)
        self._values = np.empty((3, state.count, WARP_LANES), np.uint64)
        self._places = np.zeros((2, state.count), np.uint8)
        self._walk: Any = CoreWalk.c_type(global_base=GLOBAL_BASE, local_sector=LOCAL_SECTOR)
        self._address = np.frombuffer(memoryview(self._walk).cast("B"), np.uint8)
        self._tainted = np.frombuffer(state.tainted, np.uint8)
        self._specials = specials
        self._describe()
        recorder.take_noted = self._take_noted

    def _describe(self) -> None:
        walk, state, noted = self._walk, self._state, self._noted
        given = {
            "registers": state.registers,
            "uniform": state.uniform,
            "predicates": state.predicates,
            "uniform_predicates": state.uniform_predicates,
            "barriers": state.barriers,
            "specials": self._specials,
            "unknown": state.unknown,
            "tainted": self._tainted,
            "lengths": self._recorder.lengths,
            "shared_starts": self._spaces.shared_starts,
            "sectors": noted.sectors,
            "functions": find_functions(),
        }
        given |= dict(zip(("bits", "unknown_bits"), self._bits, strict=True))
        given |= dict(zip(("results", "places", "targets"), self._values, strict=True))
        given |= dict(zip(("spaces", "faults"), self._places, strict=True))
        given |= dict(zip(("guard_warp", "guard_place", "guard_bits"), noted.guards, strict=True))
        names = ("access_warp", "access_place", "access_passes", "access_sectors")
        given |= dict(zip(names, noted.accesses, strict=True))
        for name, column in given.items():
            setattr(walk, name, column.ctypes.data)
        walk.warps, walk.keeps_walks = state.count, int(self._recorder.keeps_walks)
        walk.shared_bytes, walk.local_bytes = self._spaces.shared_bytes, self._spaces.local_bytes
        walk.access_room, walk.guard_room = noted.accesses.shape[1], noted.guards.shape[1]
        walk.sector_room = len(noted.sectors)
        for number, memory in self._spaces.memories.items():
            walk.memories[number].data, walk.memories[number].size = memory.data.ctypes.data, len(memory.data)
            self._mark(number)

    def _mark(self, number: int) -> None:
        unknown = self._spaces.memories[number].unknown
        self._walk.memories[number].unknown = None if unknown is None else unknown.ctypes.data

    def run(self, segment: Segment, lanes: Lanes) -> npt.NDArray[np.uint32]:
        """Execute the steps of a segment.

        Returns:
            uint32[k], the lanes that executed the last one.

        Raises:
            WalkFaultError: a step cannot be executed; those before it are done.
        """
        walk, state, place = self._walk, self._state, 0
        warps = self._numbers if lanes.is_slice else np.ascontiguousarray(lanes.warps, np.int64)
        bits = lanes.bits
        walk.resources, walk.has_unknown = segment.resources.ctypes.data, int(state.has_unknown)
        walk.chosen, walk.whole, walk.count = warps.ctypes.data, bits.ctypes.data, len(warps)
        walk.stop = Stop.ROOM
        while walk.stop in (Stop.ROOM, Stop.MARKS):
            place = load_walk().call("walk_steps", self._address, segment.table, place, len(segment.steps))
            if walk.stop == Stop.ROOM:
                self._take_noted()
            elif walk.stop == Stop.MARKS:
                self._spaces.memories[walk.unmarked].make_marks()
                self._mark(walk.unmarked)
        state.has_unknown, state.are_barriers_left = bool(walk.has_unknown), bool(walk.are_barriers_left)
        if walk.stop == Stop.FAULT:
            guilty = np.flatnonzero(self._places[1, : len(warps)])
            raise WalkFaultError(self._describe_fault(segment, place, int(guilty[0])), place, guilty)
        return self._bits[0, : len(warps)].copy()

    def _describe_fault(self, segment: Segment, place: int, index: int) -> str:
        fault, step = self._places[1, index], segment.steps[place]
        space = MemorySpace(self._places[0, index]).name.lower() if fault in _OF_SPACES else ""
        owner = "block" if space == "shared" else "thread"
        width = step.lowered.get("width", 0)
        return {
            Fault.GUARD: "its predicate depends on a value that is not known",
            Fault.ADDRESS: "its address depends on a value that is not known",
            Fault.OUTSIDE: f"an access lies outside of the {space} memory of its {owner}",
            Fault.MISALIGNED: f"an access to {space} memory is not aligned to its {width} bytes",
            Fault.SEVERAL: "the lanes of one access go to several memories",
            Fault.REFUSED: step.refusal,
        }[fault]

    def _take_noted(self) -> None:
        """What was noted goes to the recorder."""
        walk, noted = self._walk, self._noted
        guards, accesses = noted.guards[:, : walk.guard_count], noted.accesses[:, : walk.access_count]
        self._recorder.add_noted(guards, accesses, noted.sectors[: walk.sector_count])
        walk.guard_count = walk.access_count = walk.sector_count = 0


_OF_SPACES = (Fault.OUTSIDE, Fault.MISALIGNED)
