"""Steps that machine code executes, one after the other until one that it cannot: :class:`CompiledSteps`."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary import model
from gpa_lsp.execution.emulator.semantics import floats, words
from gpa_lsp.execution.simulator.execution import lane_values, memory_spaces, walk_model, walk_steps
from gpa_lsp.execution.simulator.execution.binding import Segment
from gpa_lsp.execution.simulator.execution.lane_values import NUMBERS, read_value_functions
from gpa_lsp.execution.simulator.execution.lowering import tabulate
from gpa_lsp.execution.simulator.execution.memory_spaces import GLOBAL_BASE, MemorySpace, MemorySpaces
from gpa_lsp.execution.simulator.execution.recording import NoteRoom, Recorder
from gpa_lsp.execution.simulator.execution.walk_model import CoreWalk
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, Lanes, WarpState
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR
from gpa_lsp.foundation.machine_code.build import Code, load_module
from gpa_lsp.foundation.machine_code.translate import translate


@cache
def load_walk() -> Code:
    """The functions of :mod:`walk_steps`."""
    sources = (walk_steps, walk_model, lane_values, floats, words, memory_spaces, model)
    texts = [Path(str(one.__file__)).read_text(encoding="utf-8") for one in sources]
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


class CompiledSteps:
    """Executes steps of some warps.

    Args:
        state: their registers.
        spaces: their memories.
        recorder: notes what they execute.
    """

    def __init__(self, state: WarpState, spaces: MemorySpaces, recorder: Recorder) -> None:
        self._state, self._spaces, self._recorder = state, spaces, recorder
        self._noted = NoteRoom(state.count)
        self._numbers = np.arange(state.count, dtype=np.int64)
        self._bits = np.empty((2, state.count), np.uint32)
        self._values = np.empty((2, state.count, WARP_LANES), np.uint64)
        self._tables: dict[int, tuple[npt.NDArray[Any], npt.NDArray[np.int32]]] = {}
        self._walk: Any = CoreWalk.c_type(global_base=GLOBAL_BASE, local_sector=LOCAL_SECTOR)
        self._address = np.frombuffer(memoryview(self._walk).cast("B"), np.uint8)
        self._tainted = np.frombuffer(state.tainted, np.uint8)
        self._describe()
        recorder.take_noted = self._take_noted

    def _describe(self) -> None:
        walk, state, noted = self._walk, self._state, self._noted
        given = {
            "registers": state.registers,
            "uniform": state.uniform,
            "predicates": state.predicates,
            "uniform_predicates": state.uniform_predicates,
            "unknown": state.unknown,
            "tainted": self._tainted,
            "lengths": self._recorder.lengths,
            "shared_starts": self._spaces.shared_starts,
            "sectors": noted.sectors,
            "bits": self._bits[0],
            "unknown_bits": self._bits[1],
            "results": self._values[0],
            "places": self._values[1],
            "functions": find_functions(),
        }
        given |= dict(zip(("guard_warp", "guard_place", "guard_bits"), noted.guards, strict=True))
        names = ("access_warp", "access_place", "access_passes", "access_sectors")
        given |= dict(zip(names, noted.accesses, strict=True))
        for name, column in given.items():
            setattr(walk, name, column.ctypes.data)
        walk.warps, walk.keeps_walks = state.count, int(self._recorder.keeps_walks)
        walk.shared_bytes, walk.local_bytes = self._spaces.shared_bytes, self._spaces.local_bytes
        walk.access_room, walk.guard_room = noted.accesses.shape[1], noted.guards.shape[1]
        walk.sector_room = len(noted.sectors)
        for space in MemorySpace:
            data = self._spaces.memory(space).data
            walk.memories[space].data, walk.memories[space].size = data.ctypes.data, len(data)

    def run(self, segment: Segment, place: int, lanes: Lanes) -> int:
        """Execute steps of a segment from a place on; where it stops. The step there is left to numpy, whatever it makes of it."""
        walk, state = self._walk, self._state
        table, resources = self._find_table(segment)
        warps = self._numbers if lanes.is_slice else np.ascontiguousarray(lanes.warps, np.int64)
        if 2 * max(walk.guard_count, walk.access_count) > walk.access_room or 2 * walk.sector_count > walk.sector_room:
            self._take_noted()
        walk.resources, walk.has_unknown = resources.ctypes.data, int(state.has_unknown)
        for space in MemorySpace:
            unknown = self._spaces.memory(space).unknown
            walk.memories[space].unknown = None if unknown is None else unknown.ctypes.data
        bits = lanes.bits
        walk.chosen, walk.whole, walk.count = warps.ctypes.data, bits.ctypes.data, len(warps)
        stop = load_walk().call("walk_steps", self._address, table, place, len(segment.steps))
        state.has_unknown = bool(walk.has_unknown)
        return stop

    def _find_table(self, segment: Segment) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
        found = self._tables.get(segment.first)
        if found is None:
            found = self._tables[segment.first] = tabulate([one.lowered or {} for one in segment.steps])
        return found

    def _take_noted(self) -> None:
        """What was noted goes to the recorder."""
        walk, noted = self._walk, self._noted
        guards, accesses = noted.guards[:, : walk.guard_count], noted.accesses[:, : walk.access_count]
        self._recorder.add_noted(guards, accesses, noted.sectors[: walk.sector_count])
        walk.guard_count = walk.access_count = walk.sector_count = 0
