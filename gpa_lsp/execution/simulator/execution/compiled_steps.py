"""Rows of a kernel → steps of machine code, :class:`BoundCode`, which warps execute: :class:`CompiledSteps`."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary import model
from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import MemorySpace as KnownSpace
from gpa_lsp.code.binary.opcodes import Opcode
from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES
from gpa_lsp.execution.emulator.semantics import exchange, floats, words
from gpa_lsp.execution.emulator.semantics import model as meanings
from gpa_lsp.execution.simulator.execution import (
    lane_values,
    memory_spaces,
    walk_accesses,
    walk_model,
    walk_registers,
    walk_steps,
)
from gpa_lsp.execution.simulator.execution.demand import Demand
from gpa_lsp.execution.simulator.execution.lane_values import NUMBERS, read_value_functions
from gpa_lsp.execution.simulator.execution.lowering import Lowering
from gpa_lsp.execution.simulator.execution.memory_spaces import (
    GLOBAL_BASE,
    ConstantBanks,
    MemorySpace,
    MemorySpaces,
    SpecialRegisters,
)
from gpa_lsp.execution.simulator.execution.operand_values import MachineInstruction, read_instruction
from gpa_lsp.execution.simulator.execution.recording import NoteRoom, Recorder
from gpa_lsp.execution.simulator.execution.row_operands import Row, encode_predicate
from gpa_lsp.execution.simulator.execution.walk_model import Code, CoreWalk, Fault, Flag, Stop, tabulate
from gpa_lsp.execution.simulator.execution.warp_state import Lanes, WarpState
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR
from gpa_lsp.foundation.machine_code.build import Code as MachineCode
from gpa_lsp.foundation.machine_code.build import load_module
from gpa_lsp.foundation.machine_code.translate import translate
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.model import KernelRows

_MOVES_CONTROL = frozenset(
    {"BAR", "WARPSYNC", "B2R", "R2B", "KILL", "BPT", "UCGABAR_ARV", "UCGABAR_WAIT", "ENDCOLLECTIVE"}
)
_NO_FLOW = (Flow.NONE, Flow.BARRIER_SET)
_WHY_NOT = {
    KnownSpace.TEXTURE: ": the driver decides how a texture lies in memory, so its sectors are not known",
    KnownSpace.SURFACE: ": the driver decides how a surface lies in memory, so its sectors are not known",
}
_WITHOUT_SECTORS = (KnownSpace.WARP, KnownSpace.CONSTANT, KnownSpace.TENSOR)


class BoundStep(Struct, frozen=True, kw_only=True):
    """An instruction that can be executed."""

    instruction: MachineInstruction  # as written
    lowered: Row  # for machine code; of what moves control, its predicate alone
    refusal: str  # why it cannot be executed at all; empty where it can
    moves_control: bool  # it is executed by the walk itself, too


class Segment(ColumnRecord, frozen=True, kw_only=True):
    """Rows that are executed one after the other."""

    first: int  # row
    steps: tuple[BoundStep, ...]  # all of them
    table: npt.NDArray[Any]  # the same for machine code
    resources: npt.NDArray[np.int32]  # numbers of what they read and write

    @property
    def last(self) -> BoundStep | None:
        """The step that moves control; None where the next row follows."""
        return self.steps[-1] if self.steps[-1].moves_control else None


class BoundCode:
    """The instructions of a kernel and of what it calls, bound when they are first reached.

    Args:
        rows: of the kernel.
        banks: constants.
        specials: special registers of the warps that run.
        demand: what is asked for.
        immediates: those that are put into the code when it is loaded, by row.
        registers: general ones that there is room for.
    """

    def __init__(
        self,
        rows: KernelRows,
        banks: ConstantBanks,
        specials: SpecialRegisters,
        demand: Demand,
        *,
        immediates: Mapping[int, int],
        registers: int,
    ) -> None:
        self.rows = rows
        self._demand = demand
        self._immediates = immediates
        self._lowering = Lowering(banks, registers, specials.numbers)
        self._bound: dict[int, BoundStep] = {}
        self._segments: dict[int, Segment] = {}
        self._flow: Sequence[int] = rows.flow.tolist()
        targets = rows.target_row
        self._leaders = frozenset(targets[targets >= 0].tolist())  # rows that are jumped to

    def find_segment(self, first: int) -> Segment:
        """The rows from one to the next that moves control, or to before the next that is jumped to."""
        found = self._segments.get(first)
        if found is None:
            steps = self._list_steps(first)
            table, resources = tabulate([one.lowered for one in steps])
            found = self._segments[first] = Segment(first=first, steps=tuple(steps), table=table, resources=resources)
        return found

    def _list_steps(self, first: int) -> list[BoundStep]:
        steps: list[BoundStep] = []
        for row in range(first, len(self.rows)):
            if steps and (row in self._leaders or steps[-1].moves_control):
                break
            steps.append(self._bind(row))
        return steps

    def _bind(self, row: int) -> BoundStep:
        found = self._bound.get(row)
        if found is not None:
            return found
        instruction = read_instruction(row, self.rows.texts[row])
        if row in self._immediates and instruction.operands:
            given = hex(self._immediates[row])
            instruction = replace(instruction, operands=(*instruction.operands[:-1], given))
        own: Row = {}
        guard = -1
        if instruction.guard and not (instruction.guard[-1] == "T" and not instruction.is_guard_negated):
            guard = int(self.rows.guard[row])
            name = f"{'!' if instruction.is_guard_negated else ''}{instruction.guard}"
            own = {"guard": encode_predicate(name), "guard_resource": guard}
        moves_control = self._flow[row] not in _NO_FLOW or instruction.opcode in _MOVES_CONTROL
        refusal = ""
        lowered: Row | None = {"code": Code.SKIP} if moves_control else self._lower(instruction)
        if lowered is None:
            refusal = _refuse(instruction, self.rows.opcode(row))
            lowered = {"code": Code.REFUSED if refusal else Code.OPAQUE if self._demand.rows[row] else Code.SKIP}
        reads = [one for one in self.rows.reads.of(row) if one != guard]
        writes = [] if moves_control else self.rows.writes.of(row)
        found = self._bound[row] = BoundStep(
            instruction=instruction,
            lowered={"read": reads, "write": writes, **own, **lowered},
            refusal=refusal,
            moves_control=moves_control,
        )
        return found

    def _lower(self, instruction: MachineInstruction) -> Row | None:
        """Lower an instruction: accesses with whether their values are needed, others not at all where their results are not."""
        row = self._lowering.lower(instruction)
        if row is None:
            return None
        number, code = instruction.row, row["code"]
        asks, stores = self._demand.rows[number], self._demand.stored[number]
        if code < Code.LOAD:
            return row if asks else {"code": Code.SKIP}
        is_asked = {Code.LOAD: asks, Code.STORE: stores, Code.ATOMIC: asks or stores}.get(code, False)
        return row | {"flags": row.get("flags", 0) | (Flag.ASKED if is_asked else 0)}


def _refuse(instruction: MachineInstruction, opcode: Opcode) -> str:
    """Reason why an unknown instruction ends the walk; empty where only its results are unknown."""
    if opcode.memory is not None and opcode.memory not in _WITHOUT_SECTORS:
        why = _WHY_NOT.get(opcode.memory, "")
        return f"{instruction.opcode} is not simulated{why}"
    if not opcode.is_known:
        return f"{instruction.opcode} is no instruction that is known"
    return ""


_OF_SPACES = (Fault.OUTSIDE, Fault.MISALIGNED)
_SOURCES = (
    walk_steps, walk_accesses, walk_registers, walk_model, lane_values, floats, words, exchange, meanings, memory_spaces, model,
)  # fmt: skip


@cache
def load_walk() -> MachineCode:
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
    """A step that some warps cannot execute.

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
        """Hand the notes to the recorder."""
        walk, noted = self._walk, self._noted
        guards, accesses = noted.guards[:, : walk.guard_count], noted.accesses[:, : walk.access_count]
        self._recorder.add_noted(guards, accesses, noted.sectors[: walk.sector_count])
        walk.guard_count = walk.access_count = walk.sector_count = 0
