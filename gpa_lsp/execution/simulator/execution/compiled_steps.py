"""Steps that the compiled core executes, one after the other until one that it cannot: :class:`CompiledSteps`."""

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.binding import BoundCode, Segment
from gpa_lsp.execution.simulator.execution.lowering import STEP, tabulate
from gpa_lsp.execution.simulator.execution.memory_spaces import MemorySpace, MemorySpaces
from gpa_lsp.execution.simulator.execution.recording import NoteRoom, Recorder
from gpa_lsp.execution.simulator.execution.warp_state import WARP_LANES, Lanes, WarpState


def _declare(names: str, kind: Any) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class CoreBytes(ctypes.Structure):
    """A memory, as the core sees it."""

    _fields_ = (*_declare("data unknown", ctypes.c_void_p), ("size", ctypes.c_int64))


class CoreWalk(ctypes.Structure):
    """What the core works on; its sources have the same."""

    _fields_ = (
        *_declare("registers uniform predicates uniform_predicates unknown tainted lengths shared_starts resources", ctypes.c_void_p),
        *_declare("warps has_unknown keeps_walks shared_bytes local_bytes", ctypes.c_int64),
        ("memories", CoreBytes * len(MemorySpace)),
        *_declare("access_warp access_place access_passes access_sectors", ctypes.c_void_p),
        *_declare("access_count access_room", ctypes.c_int64),
        ("sectors", ctypes.c_void_p),
        *_declare("sector_count sector_room", ctypes.c_int64),
        *_declare("guard_warp guard_place guard_bits", ctypes.c_void_p),
        *_declare("guard_count guard_room", ctypes.c_int64),
    )  # fmt: skip


class CompiledSteps:
    """Executes steps of some warps.

    Args:
        code: what they execute; it has a core.
        state: their registers.
        spaces: their memories.
        recorder: notes what they execute.
    """

    def __init__(self, code: BoundCode, state: WarpState, spaces: MemorySpaces, recorder: Recorder) -> None:
        assert code.core is not None  # only then is one made
        self._core, self._state, self._spaces, self._recorder = code.core, state, spaces, recorder
        self._noted = NoteRoom(state.count)
        self._numbers = np.arange(state.count, dtype=np.int64)
        self._room = np.empty((2 + WARP_LANES) * state.count, np.uint32)
        self._tables: dict[int, tuple[npt.NDArray[Any], npt.NDArray[np.int32]]] = {}
        self._walk = CoreWalk()
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
        count = len(segment.steps)
        stop = self._core.call(
            "walk_steps", self._address, table, count, place, warps, lanes.bits, len(warps), self._room, STEP.itemsize
        )
        state.has_unknown = bool(walk.has_unknown)
        return max(stop, place)

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
