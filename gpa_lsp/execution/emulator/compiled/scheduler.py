"""Runs one batch in the core: :class:`CompiledScheduler`."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space, SpecialRegister
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.emulator.compiled import translated
from gpa_lsp.execution.emulator.compiled.calls import Calls
from gpa_lsp.execution.emulator.compiled.lanes import CoreRows, LaneRegisters
from gpa_lsp.execution.emulator.compiled.lowering import Report
from gpa_lsp.execution.emulator.compiled.model import ACCESS_CODES, BULK, LANES, CoreMachine, End, Phase, Stop
from gpa_lsp.execution.emulator.compiled.shared_checks import SharedChecks
from gpa_lsp.execution.emulator.compiled.texture_instructions import list_surfaces
from gpa_lsp.execution.emulator.compiled.translated import PieceTable, Translation
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE
from gpa_lsp.execution.emulator.engine.barriers import Barriers
from gpa_lsp.execution.emulator.engine.control import end_lanes
from gpa_lsp.execution.emulator.engine.faults import Access, find_thread
from gpa_lsp.execution.emulator.engine.fragments import Barrier, Batch, Fragment, Segment, build_fragment
from gpa_lsp.execution.emulator.engine.geometry import pack_lanes, unpack_lanes
from gpa_lsp.execution.emulator.engine.meter import BudgetReached
from gpa_lsp.execution.emulator.engine.operands import find_special
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.model import LONGEST_VECTOR

PATIENCE = 256  # Segments with polling loads that may run before lanes that wait for longest get their turn
LEAST_PATIENCE = 8
_QUANTUM = 1 << 18  # Warp instructions after which time and cancellation are looked at: some milliseconds
_GENERIC = (Space.SHARED, Space.LOCAL, Space.GLOBAL)  # Where generic addresses may lead
_ALIGNMENT = 32  # Of frames, in bytes
_POINTER_BYTES = 8
_OF_BLOCKS = frozenset({"ctaid", "clusterid", "smid"})  # Special registers that differ from batch to batch


class CoreColumns:
    """Arrays that batches of the same number of warps share: making them for each batch would take longer than short kernels run.

    Args:
        calls: of the launch.
        warps: of a batch.

    Attributes:
        warps: of a batch.
        frames: uint8[warps, bytes].
        handed: arrays for the core, by the name of its field.
        filled: columns of the frames that are the same in every batch and already written.
    """

    def __init__(self, calls: Calls, warps: int) -> None:
        kernel, machine = calls.kernel, calls.machine
        self.warps = warps
        self._is_whole = machine.geometry.threads % LANES == 0
        self._is_written_first = kernel.is_written_first
        self._zeroed = kernel.root.frames.zeroed
        self.frames = np.zeros((warps, calls.frame_bytes), np.uint8)
        slots, ranks = np.divmod(np.arange(warps, dtype=np.int32), np.int32(machine.geometry.warps_per_block))
        self.handed: dict[str, npt.NDArray[Any]] = {
            "operations": kernel.operations,
            "constants": kernel.constants,
            "addresses": np.zeros(warps * LANES, np.uint64),
            "masks": np.zeros(warps, np.uint32),
            "wrong": np.zeros(warps, np.uint32),
            "done": np.zeros(warps, np.uint32),
            "held": np.zeros(warps, np.uint32),
            "before": np.zeros(LONGEST_VECTOR * warps * LANES, np.uint64),
            "slots": slots,
            "ranks": ranks,
        }
        self._segments: dict[str, npt.NDArray[Any]] = {
            "waiting": np.zeros((0, warps), np.uint32),
            "arrivals": np.zeros(0, np.int64),
            "warp_executions": np.zeros(0, np.int64),
            "lane_executions": np.zeros(0, np.int64),
        }
        self.filled: set[str] = set()

    def begin(self) -> None:
        """Forget the batch before."""
        if self._is_whole:
            if not self._is_written_first:
                self.frames[:, self._zeroed] = 0
        else:  # what lanes without a thread hold may be asked for by others
            self.frames.fill(0)
            self.filled.clear()
        for array in self._segments.values():
            array.fill(0)

    def fit(self, calls: Calls, hold: Callable[[int, str], None]) -> dict[str, npt.NDArray[Any]]:
        """Make room for all calls.

        Args:
            hold: told of bytes that are needed for it.

        Returns:
            Arrays for the core, by the name of its field.
        """
        more = calls.frame_bytes - self.frames.shape[1]
        if more > 0:
            more = -(-max(more, self.frames.shape[1] // 2) // _ALIGNMENT) * _ALIGNMENT
            hold(more * self.warps, "registers of calls")
            self.frames = np.pad(self.frames, ((0, 0), (0, more)))
        for name, array in self._segments.items():
            missing = len(calls.table) - len(array)
            if missing > 0:
                hold(missing * array.strides[0], "lanes that wait in calls")
                self._segments[name] = np.concatenate([array, np.zeros((missing, *array.shape[1:]), array.dtype)])
        return {
            "frames": self.frames,
            "segments": calls.table,
            "order": calls.order,
            "reached": calls.numbers,
            **self._segments,
        }


class CompiledScheduler:
    """Runs one batch.

    The segment that comes first in its function's order is run first, callees before what follows the call, so lanes that parted wait for each
    other where their ways join. Lanes that spin on memory would keep others from running: after some segments with polling loads the
    segment that has been ready longest runs, so that every lane of the batch makes progress.

    Args:
        unit_bytes: the unit in which shared memory is watched; None where it is not.

    Attributes:
        batch: what it runs.
        faults: what went wrong.
        barriers: where lanes wait for others.
    """

    def __init__(
        self,
        calls: Calls,
        batch: Batch,
        columns: CoreColumns,
        translation: Translation | None = None,
        *,
        unit_bytes: int | None = None,
    ) -> None:
        kernel, machine = calls.kernel, calls.machine
        self._translation = translation
        self._table: PieceTable | None = None
        self._at_work = 0
        self._batches: npt.NDArray[np.uint32] = batch.numbers[None]
        self._repeated: npt.NDArray[np.uint32] | None = None
        self._note: Callable[[int], None] = lambda _: None
        self._kernel = kernel
        self._machine = machine
        self.batch = batch
        self.faults = machine.faults
        self.barriers = Barriers(batch, machine.faults)
        self._meter = machine.meter
        self._calls = calls
        self._kept: list[Any] = []
        self._executions: npt.NDArray[np.uint32] = np.zeros((0, len(batch.root.ids)), np.uint32)
        self._core: Any = CoreMachine.c_type()
        self._place = np.frombuffer(memoryview(self._core).cast("B"), np.uint8)
        warps = len(batch.root.ids)
        columns.begin()
        self._columns = columns
        self._current = self._array(np.zeros(warps, np.uint32), "current")
        self._live = self._array(pack_lanes(batch.live).astype(np.uint32), "live")
        self._guarded = self._array(np.zeros(len(machine.instructions), np.int64), "guarded")
        self._prepare(warps)
        machine.read_slot = self._read_slot
        self._checks: SharedChecks | None = None
        if unit_bytes is not None and batch.geometry.shared_bytes:
            stamps = columns.handed["before"]
            self._checks = SharedChecks(
                batch, unit_bytes, machine.faults, kernel.core, machine=self._core, stamps=stamps
            )
        batch.checks = self._checks
        self._take_pieces()

    def _array(self, array: "npt.NDArray[Any]", name: str) -> "npt.NDArray[Any]":
        """Hand an array to the core, and keep it."""
        array = np.ascontiguousarray(array)
        self._kept.append(array)
        setattr(self._core, name, array.ctypes.data)
        return array

    def _prepare(self, warps: int) -> None:
        core, kernel, batch, geometry = self._core, self._kernel, self.batch, self.batch.geometry
        for name, array in self._columns.handed.items():
            self._array(array, name)
        self._array(kernel.core.functions, "functions")
        self._exists = self._array(self._live.copy(), "exists")
        self._array(batch.live, "live_lanes")
        core.warps = warps
        core.blocks, core.threads = len(batch.numbers), geometry.threads
        core.cluster_blocks = geometry.cluster_blocks
        core.live_count, core.patience, core.least_patience = batch.live_count, PATIENCE, LEAST_PATIENCE
        core.executed, core.most_executed = self._meter.warp_instructions, self._meter.budget.warp_instructions
        self._began = self._counted = core.clock = core.executed
        self._prepare_memory()
        self._prepare_trace()
        self._refresh_calls()
        self._fill_columns()

    def _prepare_memory(self) -> None:
        core, memory, arena = self._core, self.batch.memory, self._machine.arena
        self._array(arena.data, "arena")
        core.arena_base = ARENA_BASE
        if arena.marks is not None:
            self._array(arena.marks.words, "word_marks")
            self._array(arena.marks.chunks, "chunk_marks")
        self._refresh_regions()
        self._array(list_surfaces(self._machine.textures), "surfaces")
        core.surface_count = len(self._machine.textures)
        self._array(memory.shared, "shared")
        core.shared_stride, core.shared_bytes = memory.geometry.shared_stride_bytes, memory.geometry.shared_bytes
        self._refresh_local()

    def _refresh_regions(self) -> None:
        arena, core = self._machine.arena, self._core
        self._seen_version, core.region_count = arena.version, len(arena.regions)
        self._regions: dict[str, npt.NDArray[Any]] = {
            "region_bases": np.array([one.base for one in arena.regions], np.uint64),
            "region_bytes": np.array([one.size_bytes for one in arena.regions], np.int64),
            "region_spaces": np.array([int(one.space) for one in arena.regions], np.uint8),
        }
        for name, array in self._regions.items():
            setattr(core, name, array.ctypes.data)

    def _refresh_local(self) -> None:
        self._local = self.batch.memory.local
        self._core.local, self._core.local_stride = self._local.ctypes.data, self.batch.memory.local_stride_bytes

    def _refresh_calls(self) -> None:
        """Make room for all calls there are."""
        calls, core, tracer = self._calls, self._core, self._machine.tracer
        self._seen_calls = calls.version
        self.batch.memory.reserve_local(calls.local_bytes)
        self._refresh_local()
        self._of_calls = self._columns.fit(calls, self.batch.memory.hold)
        if tracer is not None:
            missing = tracer.number_count - len(self._executions)
            if missing > 0:
                more = np.zeros((missing, core.warps), np.uint32)
                self.batch.memory.hold(more.nbytes, "the trace")
                self._executions = np.concatenate([self._executions, more])
            self._of_calls["executions"] = self._executions
        for name, array in self._of_calls.items():
            setattr(core, name, array.ctypes.data)
        core.segment_count, core.frame_bytes = len(calls.table), self._columns.frames.shape[1]

    def _prepare_trace(self) -> None:
        tracer, core = self._machine.tracer, self._core
        if tracer is None:
            return
        core.traces_accesses, core.traces_branches = tracer.settings.accesses, tracer.settings.branches
        core.traces_entries = tracer.settings.entries
        core.left_out_spaces = sum(1 << space for space in tracer.settings.spaces_left_out)
        core.limit_bytes = tracer.limit_bytes
        most = tracer.settings.most_executions
        core.most_executions = np.iinfo(np.int64).max if most is None else most
        tracer.gather_in(CoreRows(self._kernel.core, core))

    def _take_pieces(self, *, is_at_end: bool = False) -> None:
        """Count what was executed, and switch to pieces translated meanwhile."""
        translation = self._translation
        if translation is None or self._table is not None:
            return
        executed = self._core.executed
        is_seen = is_at_end or executed - self._began >= translated.HOT_WARP_INSTRUCTIONS
        translation.count(self._kernel, executed - self._counted, is_seen=is_seen)
        self._counted = executed
        self._table = table = translation.table
        if table is not None:
            self._array(table.functions.copy(), "pieces")  # the core strikes out those that refuse too often
            self._array(table.ends, "piece_ends")

    def _fill_columns(self) -> None:
        """Write the special registers of lanes into the frames, except those that the batch before has left there."""
        root: Any = SimpleNamespace(warps=self.batch.root)  # of a fragment, readers need the warps alone
        columns = self._columns
        for (name, axis), place in self._kernel.root.frames.columns.items():
            if f"{name}.{axis}" in columns.filled:
                continue
            if name not in _OF_BLOCKS:
                columns.filled.add(f"{name}.{axis}")
            read = find_special(SpecialRegister(name, axis), self.batch.geometry)
            value: Any = read(root) if callable(read) else read
            lanes = np.broadcast_to(value, (self.batch.root.lanes,)).reshape(-1, LANES)
            columns.frames[:, place : place + 4 * LANES].view(np.uint32)[:] = lanes

    def run(self) -> None:
        """Run the kernel with all threads of the batch.

        Raises:
            BudgetReached: time, instructions or memory ran out.
            MemoryError: this computer has no more.
        """
        self._send(self._kernel.root.first, self.batch.root.ids, self._live)
        try:
            while self._go_on():
                pass
            if self._checks is not None:
                self._checks.finish()
        finally:
            self._take_counts()

    @property
    def is_repeatable(self) -> bool:
        """Whether other blocks can run in the memory of those that have: nothing is kept of those, and the core can set up all they begin with."""
        batch = self.batch
        columns = {name for name, _ in self._kernel.root.frames.columns}
        return (
            self._machine.tracer is None
            and self._checks is None
            and not batch.memory.local_stride_bytes
            and not self._kernel.calls
            and (self._kernel.is_written_first or batch.geometry.threads % LANES == 0)
            and columns.isdisjoint(_OF_BLOCKS - {"ctaid"})
        )

    def repeat(self, numbers: npt.NDArray[np.uint32], note: Callable[[int], None]) -> None:
        """Run other batches of as many blocks, one after the other.

        Args:
            numbers: uint32[batches, blocks], linear indexes.

        Raises:
            BudgetReached: time, instructions or memory ran out.
            MemoryError: this computer has no more.
        """
        core, frames = self._core, self._kernel.root.frames
        if self._repeated is not None and self._repeated.shape == numbers.shape:
            self._repeated[:] = numbers
        else:
            self._repeated = self._array(numbers, "numbers")
        self._batches = self._repeated
        core.batch, core.last_batch, core.most_patience = -1, len(numbers) - 1, PATIENCE
        core.first_segment = self._kernel.root.first
        core.grid[:] = self.batch.geometry.grid[:2]
        core.block_places[:] = [frames.columns.get(("ctaid", axis), -1) for axis in "xyz"]
        if not self._kernel.is_written_first:
            core.zeroed_first, core.zeroed_bytes = frames.zeroed.start, frames.zeroed.stop - frames.zeroed.start
        self._at_work, self._note = 0, note
        try:
            while self._kernel.core.has_done("begin_next_batch", self._place):
                self._turn()
                while self._go_on():
                    pass
            note(1)
        finally:
            self._take_counts()

    def _turn(self) -> None:
        """Turn to the batch that the core has come to."""
        batch, at_work = self.batch, self._core.batch
        if at_work > self._at_work:
            self._note(at_work - self._at_work)
            self._at_work = at_work
        batch.turn_to(self._batches[at_work])
        batch.live_count = self._core.live_count
        self.barriers = Barriers(batch, self.faults)
        self._push_all()

    def _access(self) -> None:
        """Report the faults of the access at which the core stopped, and let the core do it for the lanes that may."""
        row, handed, call = self._kernel.operations[self._core.operation], self._columns.handed, self._kernel.core.call
        access = _read_access(row)
        handed["done"].fill(0)
        named = Space(int(row["space"]))
        for one in _GENERIC if named is Space.GENERIC else (named,):
            if not call("choose_lanes", self._place, int(one)):
                continue
            lanes = np.flatnonzero(unpack_lanes(handed["wrong"]))
            if len(lanes):
                memory = self.batch.memory if one in (Space.SHARED, Space.LOCAL) else self._machine.arena
                memory.report(access, one, self.batch.root, lanes, handed["addresses"][lanes])
            checks = self._checks if one is Space.SHARED else None
            if checks is not None:
                checks.report_suspects(access)
            if not self._kernel.core.has_done("access_lanes", self._place, int(one)):
                raise MemoryError
            if checks is not None:
                checks.report_lost(access)
        self._note_known(self._core.operation)

    def _copy(self) -> None:
        """Report the faults of the bulk copy at which the core stopped, and let the core do it for the lanes that may."""
        row, handed = self._kernel.operations[self._core.operation], self._columns.handed
        for is_target, field in enumerate(("space", "other_space")):
            if self._kernel.core.call("find_wrong_copies", self._place, is_target):
                kind = AccessKind.STORE if is_target else AccessKind.LOAD
                access, space = Access(instruction=int(row["instruction"]), kind=kind, bytes=16), Space(int(row[field]))
                lanes = np.flatnonzero(unpack_lanes(handed["wrong"]))
                memory = self.batch.memory if space is Space.SHARED else self._machine.arena
                memory.report(access, space, self.batch.root, lanes, handed["addresses"][lanes])
        if not self._kernel.core.has_done("copy_lanes", self._place):
            raise MemoryError

    def _report(self, report: Report) -> None:
        """Report the lanes for which the core found that a number is 0."""
        row, warps = self._kernel.operations[self._core.operation], self.batch.root
        lanes, instruction = np.flatnonzero(unpack_lanes(self._columns.handed["wrong"])), int(row["instruction"])
        if isinstance(report.describe, str):
            self.faults.add_lanes(report.kind, report.describe, warps, lanes, instruction=instruction)
            return
        numbers = self._read_numbers(int(row["b"]))[lanes]
        for number in np.unique(numbers).tolist():
            chosen, message = lanes[numbers == number], report.describe(number)
            self.faults.add_lanes(report.kind, message, warps, chosen, instruction=instruction)

    def _read_numbers(self, place: int) -> npt.NDArray[np.uint64]:
        """Values of all lanes at a place: uint64[n]."""
        if place < 0:
            held = self._kernel.constants[~place : ~place + 8 * LANES].view(np.uint64)
            return np.tile(held, len(self.batch.root.ids))
        begin = self._core.base + place
        return np.ascontiguousarray(self._columns.frames[:, begin : begin + 8 * LANES]).view(np.uint64).reshape(-1)

    def _read_slot(self, slot: int, lane: int) -> int:
        """Address in a register of the kernel for a lane; 0 where the register holds none."""
        frames = self._kernel.root.frames
        place = frames.find(slot)
        if place is None or frames.dtype(slot).itemsize != _POINTER_BYTES:
            return 0
        return int(self._read_numbers(place)[lane])

    def _send(self, number: int, rows: Any, masks: Any) -> None:
        columns = np.ascontiguousarray(rows, np.int64), np.ascontiguousarray(masks, np.uint32)
        self._kernel.core.call("send_lanes", self._place, number, *columns, len(masks))

    def _go_on(self) -> bool:
        """Let the core run, and do what it stopped for; False when all lanes are at their end."""
        core = self._core
        stop = Stop(self._kernel.core.call("run_batches", self._place))
        if core.batch != self._at_work:
            self._turn()
        self._meter.warp_instructions = core.executed
        self.batch.live_count = core.live_count
        tracer = self._machine.tracer
        if core.is_cut_off and tracer is not None:
            tracer.is_complete = False
        if core.is_cut and tracer is not None:
            tracer.is_cut = True
        match stop:
            case Stop.MEMORY:
                raise MemoryError
            case Stop.METER:
                self._meter.hold(core.held_bytes - core.metered_bytes, "the trace")
                core.metered_bytes = core.held_bytes
            case Stop.TIME | Stop.BUDGET:
                self._check_budget()
                self._take_pieces()
            case _:
                if tracer is not None:
                    tracer.held_bytes, tracer.metered_bytes = core.held_bytes, core.metered_bytes
                has_more = self._assist(stop)
                self._push_all()
                return has_more
        return True

    def _assist(self, stop: Stop) -> bool:
        """Do the work that the core stopped for; False when no lane is left."""
        core = self._core
        if stop in (Stop.STEP, Stop.END) and not self._meter.left_seconds:
            self._check_budget()  # the core looks at the time by what it executes, and this may be most of it
        if stop is Stop.IDLE:
            return self.barriers.release(self)
        if stop is Stop.POLLED:
            self.barriers.release(self, force=False)
            core.phase = Phase.ASKED
        elif stop is Stop.STEP:
            if self._kernel.operations[core.operation]["code"] in ACCESS_CODES:
                self._access()
            elif self._kernel.operations[core.operation]["code"] == BULK:
                self._copy()
            else:
                self._report(self._kernel.reports[core.operation])
            core.operation += 1
        elif not self._enter():
            fragment = self._build_fragment()
            core.phase = Phase.NOBODY
            fragment.segment.end(self, fragment)
        return True

    def _enter(self) -> bool:
        """Enter a call that the core reached for the first time; lanes too deep in calls end. False where it did not stop at one."""
        core, calls = self._core, self._calls
        row = calls.table[core.segment]
        if row["end"] != End.JUMP or row["taken"] >= 0:
            return False
        if calls.has_many:
            arrivals = self._of_calls["arrivals"] > 0
            arrivals[core.segment] = True
            calls.forget(arrivals, self.barriers.list_frames())
        if calls.enter(core.segment) is None:
            fragment, most = self._build_fragment(), self._meter.budget.call_depth
            core.phase = Phase.NOBODY
            edge = calls.find_edge(core.segment)
            message = f"calls of {edge.callee} nested more than {most} deep"
            end_lanes(self, fragment, FaultKind.CALL_DEPTH, message, edge.static)
        return True

    def _build_fragment(self) -> Fragment:
        number = self._core.segment
        call = self._calls.find(number)
        compiled, columns = call.compiled, self._columns
        registers = LaneRegisters(lambda: columns.frames, compiled.frames, call.base, np.zeros(0))
        segment = self._calls.find_segment(number)
        return build_fragment(self.batch, call, segment, self._current, registers)

    def _note_known(self, operation: int) -> None:
        """Tell the core that reads of uninitialized words by an instruction were reported: once is enough."""
        row = self._kernel.operations[operation]
        if row["kind"] == AccessKind.LOAD and self.faults.is_known(FaultKind.UNINITIALISED, int(row["instruction"])):
            row["is_known"] = 1

    def _push_all(self) -> None:
        """Hand the core what Python changed."""
        core, batch = self._core, self.batch
        if self._machine.tracer is not None:
            core.metered_bytes = self._machine.tracer.metered_bytes
        core.live_count = batch.live_count
        core.has_parked, core.has_arrivals = self.barriers.is_waited_at, self.barriers.has_arrivals
        if batch.memory.local is not self._local:
            self._refresh_local()
        if self._calls.version != self._seen_calls:
            self._refresh_calls()
        if self._machine.arena.version != self._seen_version:
            self._refresh_regions()

    def _check_budget(self) -> None:
        self._core.quantum = _QUANTUM
        try:
            self._meter.count_instructions(0)
        except BudgetReached as reached:
            fragment = self._build_fragment()
            reached.instruction = find_place(fragment.segment, self._machine.instructions)
            lane = 0 if fragment.mask is None else int(fragment.mask.argmax())
            reached.block, reached.thread = find_thread(fragment.warps, lane)
            raise

    def _take_counts(self) -> None:
        self._meter.warp_instructions = self._core.executed
        self._take_pieces(is_at_end=True)
        tracer = self._machine.tracer
        if tracer is not None:
            tracer.held_bytes, tracer.metered_bytes = self._core.held_bytes, self._core.metered_bytes
        for name in ("warp_executions", "lane_executions"):
            counts = self._of_calls[name]
            for number in np.flatnonzero(counts).tolist():
                segment = self._calls.find_segment(number)
                setattr(segment, name, getattr(segment, name) + int(counts[number]))
            counts.fill(0)
        for static in np.flatnonzero(self._guarded).tolist():
            self._machine.guarded[static] += int(self._guarded[static])
        self._guarded.fill(0)

    def go(self, fragment: Fragment, segment: Segment) -> None:
        """Send a fragment on."""
        fragment.registers.write_back(fragment.mask)
        number = self._calls.find_row(fragment.frame, segment)
        self._send(number, fragment.warps.ids, pack_lanes(fragment.active()))

    def meet(self, barrier: Barrier, fragment: Fragment) -> None:
        """A fragment has come to a barrier."""
        self.barriers.meet(self, barrier, fragment)

    def retire(self, fragment: Fragment) -> None:
        """The lanes of a fragment have exited."""
        masks = pack_lanes(fragment.active())
        self.batch.live_count -= fragment.count
        self._live[fragment.warps.ids] &= ~masks
        rows = self.batch.live.reshape(-1, LANES)
        rows[fragment.warps.ids] &= ~fragment.active().reshape(-1, LANES)


def _read_access(row: Any) -> Access:
    """The access of an operation, for messages."""
    size_bytes = int(row["elements"]) * int(row["element_bytes"])
    return Access(instruction=int(row["instruction"]), kind=AccessKind(int(row["kind"])), bytes=size_bytes)


def find_place(segment: Segment, instructions: tuple[StaticInstruction, ...]) -> int | None:
    """The instruction that tells best where lanes stand: the segment's first access to memory, or its first instruction."""
    accesses = (number for number in segment.instructions if instructions[number].kind is not None)
    return next(accesses, next(iter(segment.instructions), None))


def count_core_bytes(calls: Calls, warps: int) -> int:
    """Bytes of the frames, masks, counts and scratch of a batch."""
    tracer = calls.machine.tracer
    traced = 0 if tracer is None else tracer.number_count
    per_warp = calls.frame_bytes + 4 * (len(calls.table) + traced) + (LONGEST_VECTOR + 1) * 8 * LANES
    return warps * per_warp
