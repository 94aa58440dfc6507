"""Chains of calls: :class:`Calls` gives each one segments of its own, made when lanes first take it."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxInstruction, Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.compiled.model import SEGMENT
from gpa_lsp.execution.emulator.compiled.program import CompiledFunction, CompiledKernel
from gpa_lsp.execution.emulator.engine.fragments import CallEdge, ClosingKind, Frame, Segment
from gpa_lsp.execution.emulator.engine.machine import Machine

_MOST_IDLE = 256  # Calls that are kept before those are forgotten in which no lane is


class Call(Frame):
    """A chain of calls, with segments of its own.

    Args:
        compiled: the function that runs.
        first: number of its first segment.
        parent: the caller; None for the kernel.
        entry: the caller's segment that leads here; -1 for the kernel.
        edge: how it was called; None for the kernel.
        place: of the entry in the order in which segments are run, without its last part.

    Attributes:
        base: where its registers begin in the frames.
    """

    __slots__ = ("base", "compiled", "entry", "first", "parent_call", "place")

    def __init__(
        self,
        compiled: CompiledFunction,
        first: int,
        parent: "Call | None" = None,
        *,
        entry: int = -1,
        edge: CallEdge | None = None,
        place: tuple[float, ...] = (),
    ) -> None:
        super().__init__(compiled.bound, parent, call_instruction=-1 if edge is None else edge.static)
        self.compiled = compiled
        self.first = first
        self.parent_call = parent
        self.entry = entry
        self.place = place
        self.base: int = 0 if parent is None else parent.base + parent.compiled.frames.frame_bytes

    @property
    def end_bytes(self) -> int:
        """End of its registers in the frames."""
        return self.base + self.compiled.frames.frame_bytes

    def number(self, kernel_number: int) -> int:
        """The number of one of its segments, by that among the kernel's."""
        return self.first + kernel_number - self.compiled.segments.start


class Calls:
    """All chains of calls of a launch, and their segments for the core.

    Args:
        kernel: the kernel.
        machine: the launch.

    Attributes:
        kernel: the kernel.
        machine: the launch.
        table: of all segments; those of the kernel come first.
        order: int32[segments], their numbers: those first that are run first.
        numbers: int32, of instructions as calls reach them: see :attr:`.model.SegmentRow.numbers`.
        version: changes with each change of the table.
        frame_bytes: of a frame with room for the deepest call, and for one more.
        local_bytes: that a thread's local memory must have for all calls.
    """

    def __init__(self, kernel: CompiledKernel, machine: Machine) -> None:
        self.kernel = kernel
        self.machine = machine
        self.root = Call(kernel.root, 0)
        own = kernel.root.segments
        self.table = kernel.table[own.start : own.stop].copy()
        self._owners = [self.root] * len(own)
        self._places = list(kernel.places[own.start : own.stop])
        self._free: dict[str, list[int]] = {}
        self._numbers: dict[tuple[int, ...], int] = {}
        self._calls: list[Call] = []
        self._most_calls = _MOST_IDLE
        self.numbers = np.zeros(1, np.int32)
        self.version = 0
        self.frame_bytes = self._find_end(self.root)
        self.local_bytes = self.root.function.local_bytes
        self._sort()

    def find(self, number: int) -> Call:
        """The chain of calls that a segment belongs to."""
        return self._owners[number]

    def find_segment(self, number: int) -> Segment:
        """The kernel's segment that a segment is a copy of."""
        return self.kernel.segments[self._find_number(number)]

    def find_row(self, call: Frame, segment: Segment) -> int:
        """The number of a segment in a chain of calls."""
        assert isinstance(call, Call)
        return call.number(self.kernel.numbers[id(segment)])

    def find_edge(self, number: int) -> CallEdge:
        """The call that a segment is the entry of."""
        return self.kernel.edges[self._find_number(number)]

    def _find_number(self, number: int) -> int:
        call = self._owners[number]
        return number - call.first + call.compiled.segments.start

    def enter(self, number: int) -> Call | None:
        """Make the call that an entry leads to; None where calls would be nested too deeply.

        Args:
            number: of the entry's segment.
        """
        caller, edge = self._owners[number], self.find_edge(number)
        if caller.depth >= self.machine.meter.budget.call_depth:
            return None
        compiled = self.kernel.functions[edge.callee]
        place = self._places[number][:-1]
        call = Call(compiled, self._find_room(compiled), caller, entry=number, edge=edge, place=place)
        self._calls.append(call)
        self._write(call, edge)
        self.table[number]["taken"] = call.number(compiled.first)
        self.frame_bytes = max(self.frame_bytes, self._find_end(call))
        self.local_bytes = max(self.local_bytes, call.local_base + call.function.local_bytes)
        self.version += 1
        self._sort()
        return call

    def _find_end(self, call: Call) -> int:
        """End of the registers of a call and of any function that it calls: arguments are written there before the callee is entered."""
        functions = self.kernel.functions
        most = max((functions[edge.callee].frames.frame_bytes for edge in call.function.edges), default=0)
        return call.end_bytes + most

    def _find_room(self, compiled: CompiledFunction) -> int:
        free, size = self._free.get(compiled.bound.name), len(compiled.segments)
        if free:
            return free.pop()
        first = len(self._owners)
        self.table = np.concatenate([self.table, np.zeros(size, SEGMENT)])
        self._owners += [self.root] * size
        self._places += [()] * size
        return first

    def _write(self, call: Call, edge: CallEdge) -> None:
        """Give a call its segments: copies of the function's, which lead to each other, and back to the caller."""
        own, caller = call.compiled.segments, call.parent_call
        assert caller is not None
        rows = self.kernel.table[own.start : own.stop].copy()
        for name in ("taken", "fallen"):
            rows[name] += np.where(rows[name] >= 0, call.first - own.start, 0).astype(np.int32)
        rows["base"], rows["local_base"] = call.base, call.local_base
        rows["numbers"] = self._number_instructions(call)
        landing = self.find_row(caller, edge.landing)
        for place, segment in enumerate(self.kernel.segments[own.start : own.stop]):
            if segment.closing is not None and segment.closing.kind is ClosingKind.RETURN:
                rows[place]["taken"] = landing
        self.table[call.first : call.first + len(own)] = rows
        for place, number in enumerate(range(call.first, call.first + len(own))):
            self._owners[number] = call
            self._places[number] = (*call.place, *self.kernel.places[own.start + place])

    def _number_instructions(self, call: Call) -> int:
        """Place of the numbers of a call's instructions in :attr:`numbers`, less the first static number; -1 without a trace."""
        machine = self.machine
        if machine.tracer is None:
            return -1
        function = machine.module.functions[call.function.name]
        first = machine.first_statics[function.name]
        recorded = [
            static
            for static, one in enumerate(function.instructions, first)
            if _is_recorded(one, machine.instructions[static])
        ]
        known = dict(zip(recorded, machine.tracer.number_instructions(call, recorded), strict=True))
        numbers = tuple(known.get(static, static) for static in range(first, first + len(function.instructions)))
        begin = self._numbers.get(numbers)
        if begin is None:
            begin = max(
                len(self.numbers), first
            )  # less the first one it must not be negative, which says that there are none
            self._numbers[numbers] = begin
            grown = np.zeros(begin + len(numbers), np.int32)
            grown[: len(self.numbers)] = self.numbers
            grown[begin:] = numbers
            self.numbers = grown
        return begin - first

    def _sort(self) -> None:
        used = sorted(range(len(self._owners)), key=self._places.__getitem__)
        self.order = np.array(used, np.int32)

    @property
    def has_many(self) -> bool:
        """Whether it is time to forget those in which no lane is."""
        return len(self._calls) >= self._most_calls

    def forget(self, waited_for: npt.NDArray[np.bool_], frames: set[Frame]) -> None:
        """Forget calls in which no lane is.

        Args:
            waited_for: bool[segments], where lanes are on their way to.
            frames: where lanes wait for others.
        """
        kept: set[Frame] = {self.root, *frames, *(self._owners[number] for number in np.flatnonzero(waited_for))}
        for one in tuple(kept):
            call: Frame | None = one
            while call is not None:
                kept.add(call)
                call = call.parent
        for one in [one for one in self._calls if one not in kept]:
            assert one.parent_call is not None
            self._free.setdefault(one.function.name, []).append(one.first)
            self.table[one.entry]["taken"] = -1
        self._calls = [one for one in self._calls if one in kept]
        self._most_calls = max(_MOST_IDLE, 2 * len(self._calls))
        self.version += 1


def _is_recorded(instruction: PtxInstruction, static: StaticInstruction) -> bool:
    """Whether a trace may have rows of an instruction: it accesses memory, or lanes part at it."""
    parts = instruction.opcode == "brx" or (instruction.opcode == "bra" and instruction.guard is not None)
    return parts or (static.kind is not None and static.space is not Space.PARAM)
