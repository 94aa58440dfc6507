"""Recording what warps access and how they branch: :class:`Tracer`."""

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.engine.fragments import Batch, Fragment, Frame
from gpa_lsp.execution.emulator.engine.geometry import Value, find_active_rows, pack_lanes
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.model import Accesses, Branches, Buffer, Entries, Trace, TraceSettings

_MOST_PATHS = 1 << 12
# Beyond this, instructions keep their number without a chain of calls
_MOST_INSTRUCTIONS = 1 << 16
_INSTRUCTION_BYTES = 512

# Calls, innermost first, and the number of each instruction that was reached by them
_Path = tuple[tuple[int, ...], dict[int, int]]


class CallPaths:
    """Numbers of instructions in called functions, one per chain of calls.

    A call that is on the chain already is not put on it again, so that recursion, however deep, is one loop of it.

    Args:
        instructions: all static instructions, by index.
        meter: counts the memory.
    """

    def __init__(self, instructions: tuple[StaticInstruction, ...], meter: Meter) -> None:
        self._instructions = instructions
        self._meter = meter
        self._further: list[StaticInstruction] = []
        self._paths: dict[tuple[int, ...], _Path] = {}
        self._frames: dict[Frame, _Path] = {}
        self._listed = instructions

    def number(self, frame: Frame, static: int) -> int:
        """The number of an instruction as it is reached in a frame; the kernel's own keep theirs.

        Raises:
            BudgetReached: there is no memory for another one.
        """
        if frame.parent is None:
            return static
        found = self._frames.get(frame)
        if found is None:
            calls = _list_calls(frame)
            found = self._paths.get(calls)
            if found is None:
                if len(self._paths) >= _MOST_PATHS:
                    return static
                found = self._paths[calls] = (calls, {})
            self._frames[frame] = found
        path, numbers = found
        number = numbers.get(static)
        if number is None:
            if len(self._further) >= _MOST_INSTRUCTIONS:
                return static
            self._meter.hold(_INSTRUCTION_BYTES, "the trace")
            number = numbers[static] = len(self._instructions) + len(self._further)
            self._further.append(replace(self._instructions[static], index=number, calls=path, same_as=static))
        return number

    def list_instructions(self) -> tuple[StaticInstruction, ...]:
        """All static instructions, then those reached by calls in the order in which they were; a later list begins with an earlier one."""
        if len(self._listed) < len(self._instructions) + len(self._further):
            self._listed = (*self._instructions, *self._further)
        return self._listed


def _list_calls(frame: Frame) -> tuple[int, ...]:
    """The calls that lead to a frame, innermost first."""
    calls = []
    while frame.parent is not None:
        calls.append(frame.call_instruction)
        frame = frame.parent
    path: list[int] = []
    for call in reversed(calls):
        if call in path:
            del path[path.index(call) + 1 :]
        else:
            path.append(call)
    return tuple(reversed(path))


_METERED_AT_ONCE = 1 << 20


class GatheredRows(Protocol):
    """Rows of one batch, gathered by the core."""

    @property
    def held_bytes(self) -> int:
        """Bytes of all rows."""
        ...

    def append(
        self,
        ids: Value,
        masks: Value,
        number: int,
        *,
        taken: Value = None,
        size_bytes: int = 0,
        space: int = 0,
        addresses: Value = None,
    ) -> None:
        """Add accesses; or branches, where lanes that jumped are given."""
        ...

    def take(self, batch: Batch) -> tuple[Accesses, Branches, Entries]:
        """Take all rows; none are left."""
        ...


class Tracer:
    """Gathers the rows of one batch after the other.

    Attributes:
        settings: what is recorded.
        held_bytes: of the rows gathered and not yet taken.
        metered_bytes: of these, the bytes that were metered.
        limit_bytes: rows beyond it are dropped.
        is_complete: False once rows were dropped for want of room.
        is_cut: True once rows were dropped because there are enough of their instruction.
    """

    def __init__(self, settings: TraceSettings, meter: Meter, instructions: tuple[StaticInstruction, ...]) -> None:
        self.settings = settings
        self.held_bytes = 0
        self.is_complete = True
        self.is_cut = False
        self.limit_bytes = meter.budget.trace_bytes
        self._meter = meter
        self._paths = CallPaths(instructions, meter)
        self.metered_bytes = 0
        self._rows: GatheredRows | None = None

    def gather_in(self, rows: "GatheredRows") -> None:
        """Set where the rows of the next batch are gathered; rows recorded here are added to them."""
        self._rows = rows

    def number_instructions(self, frame: Frame, statics: Iterable[int]) -> tuple[int, ...]:
        """The numbers of instructions as a frame reaches them.

        Raises:
            BudgetReached: there is no memory for them.
        """
        return tuple(self._paths.number(frame, static) for static in statics)

    @property
    def number_count(self) -> int:
        """Number of numbered instructions."""
        return len(self._paths.list_instructions())

    def record_branch(self, fragment: Fragment, static: int, jumped: Value) -> None:
        """Record a conditional branch.

        Args:
            jumped: bool[n], lanes that jump.
        """
        if not self.settings.branches or not self._has_room():
            return
        ids, masks = self._list_active(fragment)
        taken = pack_lanes(np.ascontiguousarray(jumped))
        if fragment.mask is not None:
            taken = taken[find_active_rows(fragment.mask)]
        assert self._rows is not None
        self._rows.append(ids, masks, self._paths.number(fragment.frame, static), taken=taken)
        self.held_bytes = self._rows.held_bytes

    def take(self, batch: Batch, *, kernel: str, buffers: tuple[Buffer, ...]) -> Trace:
        """Take the rows of one batch as a piece of a trace."""
        rows, self._rows = self._rows, None
        assert rows is not None
        accesses, branches, entries = rows.take(batch)
        piece = Trace(
            kernel=kernel,
            grid=batch.geometry.grid,
            block_threads=batch.geometry.block,
            instructions=self._paths.list_instructions(),
            buffers=buffers,
            accesses=accesses,
            branches=branches,
            entries=entries,
            traced_blocks=np.sort(batch.numbers),
            is_complete=self.is_complete and not self.is_cut,
            most_executions=self.settings.most_executions if self.is_cut and self.is_complete else None,
        )
        self._meter.release(self.metered_bytes)
        self.metered_bytes = self.held_bytes = 0
        return piece

    def _has_room(self) -> bool:
        """Whether there is room for another row; the bytes of rows are metered in steps."""
        if self.held_bytes < self.limit_bytes:
            if self.held_bytes - self.metered_bytes > _METERED_AT_ONCE:
                self._meter.hold(self.held_bytes - self.metered_bytes, "the trace")
                self.metered_bytes = self.held_bytes
            return True
        self.is_complete = False
        return False

    def _list_active(self, fragment: Fragment) -> tuple[Value, Value]:
        """Numbers of the warps with a lane, and their lanes."""
        masks = pack_lanes(fragment.active())
        rows = np.flatnonzero(masks)
        return fragment.warps.ids[rows], masks[rows]


def split_ids(batch: Batch, ids: Any) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint16]]:
    """Block and warp of each row, by the numbers of warps in the batch."""
    slots, warps = np.divmod(ids, batch.geometry.warps_per_block)
    return batch.numbers[slots], warps.astype(np.uint16)
