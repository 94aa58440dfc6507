"""A kernel as the core executes it: :class:`CompiledKernel`, built once per launch by :func:`compile_kernel`."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.execution.emulator.compiled.frames import FrameLayout
from gpa_lsp.execution.emulator.compiled.instructions import lower_instruction
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, Operation
from gpa_lsp.execution.emulator.compiled.model import (
    ATOMIC,
    LANES,
    MOST_ELEMENTS,
    OPERATION,
    PYTHON,
    SEGMENT,
    End,
    list_codes,
)
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, Closing, ClosingKind, Segment, Step
from gpa_lsp.execution.emulator.engine.lives import find_lives
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.foundation.native.shared_library import Core, find_core
from gpa_lsp.foundation.records import ColumnRecord

_MOST_LANE_BYTES = 1 << 14  # A frame of more is left to the numpy engine, which forgets what is dead
# Of the operations of a kernel that calls functions: where more are the numpy engine's, it is faster at all of them
_MOST_STEPS = 0.15
# Fields of operations that say -1 where there is none
_NONE = frozenset({"guard", "result", "other_result", "combination", "region"})
PRODUCT = "multiply_matrices"  # The operation whose registers stand in a table of constants
# What the names of operations begin with that look at other lanes
EXCHANGES = ("shfl_", "vote_", "activemask", PRODUCT)
_ENDS = {
    ClosingKind.JUMP: End.JUMP,
    ClosingKind.BRANCH: End.BRANCH,
    ClosingKind.BARRIER: End.BARRIER,
    ClosingKind.GATE: End.GATE,
}


class CompiledKernel(ColumnRecord, frozen=True, kw_only=True):
    """A kernel's operations and segments."""

    core: Core  # executes them
    bound: BoundFunction  # the kernel as the numpy engine has it
    frames: FrameLayout  # where its registers lie
    operations: npt.NDArray[Any]  # of all segments, one after the other; the core notes in them where lanes went last
    steps: dict[int, tuple[Step, ...]]  # what the numpy engine does in place of an operation, by its number
    segments: tuple[Segment, ...]  # in the order in which they are run
    table: npt.NDArray[Any]  # the same, for the core
    calls: bool  # the numpy engine executes functions for it
    is_written_first: bool  # no lane reads a register that it has not written, its own or another's
    is_ordered: bool  # what threads find in memory may depend on which others run beside them, as what atomic operations return does


def compile_kernel(machine: Machine) -> CompiledKernel | None:
    """The kernel of a launch; None where the numpy engine executes all of it: there is no core, or little for it to do, or frames are too large."""
    core = find_core()
    function = machine.kernel
    if core is None:
        return None
    bound = machine.get_function(function.name)
    frames = FrameLayout(function, bound, find_blocks(function), find_lives(function))
    if frames.frame_bytes > _MOST_LANE_BYTES * LANES:
        return None
    lowering = Lowering(machine, function, frames, list_codes(core))
    kernel = _Compiler(core, bound, lowering).compile()
    steps = np.count_nonzero(kernel.operations["code"] == PYTHON)
    return None if kernel.calls and steps > _MOST_STEPS * len(kernel.operations) else kernel


def _tabulate(operations: list[Operation]) -> npt.NDArray[Any]:
    """Operations as the core reads them, and one more, so that there is a first one."""
    table = np.zeros(len(operations) + 1, OPERATION)
    for name in OPERATION.names or () if operations else ():
        default = [-1] * (2 * MOST_ELEMENTS) if name == "places" else -1 if name in _NONE else 0
        table[name][: len(operations)] = [one.get(name, default) for one in operations]
    return table


class _Compiler:
    def __init__(self, core: Core, bound: BoundFunction, lowering: Lowering) -> None:
        self._core = core
        self._bound = bound
        self._lowering = lowering
        self._segments = sorted(bound.segments, key=lambda one: one.order)
        self._numbers = {id(segment): number for number, segment in enumerate(self._segments)}
        self._operations: list[Operation] = []
        self._steps: dict[int, tuple[Step, ...]] = {}

    def compile(self) -> CompiledKernel:
        """All segments."""
        table = np.zeros(len(self._segments), SEGMENT)
        for row, segment in zip(table, self._segments, strict=True):
            self._compile_segment(row, segment)
        calls = any(one.call is not None for one in self._lowering.machine.kernel.instructions)
        return CompiledKernel(
            core=self._core,
            bound=self._bound,
            frames=self._lowering.frames,
            operations=_tabulate(self._operations),
            steps=self._steps,
            segments=tuple(self._segments),
            table=table,
            calls=calls,
            is_written_first=not calls and self._is_written_first(),
            is_ordered=calls
            or any(one["code"] in (PYTHON, ATOMIC) or one.get("is_strong") for one in self._operations),
        )

    def _is_written_first(self) -> bool:
        """Whether the core does all of it, no register is read before it is written, and no lane reads those of others."""
        exchanges = {code for name, code in list_codes(self._core).items() if name.startswith(EXCHANGES)}
        codes = {one["code"] for one in self._operations}
        return not self._bound.segments[0].live_in and PYTHON not in codes and codes.isdisjoint(exchanges)

    def _compile_segment(self, row: Any, segment: Segment) -> None:
        row["first"] = len(self._operations)
        row["size"], row["is_polling"] = segment.size, segment.is_polling
        row["enters_block"] = -1 if segment.enters_block is None else segment.enters_block
        is_known = self._close(row, segment.closing)
        for place, (instruction, steps) in enumerate(segment.parts):
            if (
                is_known
                and place == len(segment.parts) - 1
                and instruction is not None
                and self._ends(segment, instruction)
            ):
                break
            operations = None if instruction is None else lower_instruction(self._lowering, instruction)
            if operations is not None:
                for number, operation in enumerate(operations, len(self._operations)):
                    if operation["code"] >= PYTHON:  # what may be left to the numpy engine after all
                        self._steps[number] = steps
                self._operations.extend(operations)
            elif steps:
                self._add_steps(steps, instruction)
        row["last"] = len(self._operations)

    def _ends(self, segment: Segment, instruction: PtxInstruction) -> bool:
        """Whether an instruction is the one that ends the segment: then its end says all."""
        closing = segment.closing
        return closing is not None and instruction.opcode in ("bra", "exit", "ret", "bar", "barrier")

    def _add_steps(self, steps: tuple[Step, ...], instruction: PtxInstruction | None) -> None:
        number = len(self._operations)
        operation: Operation = {"code": PYTHON}
        if instruction is not None:
            operation["instruction"] = self._lowering.machine.first_statics[self._bound.name] + instruction.index
        self._operations.append(operation)
        self._steps[number] = steps

    def _close(self, row: Any, closing: Closing | None) -> bool:
        """Whether the core knows how the segment ends."""
        if closing is None:
            return False
        row["instruction"] = row["number_of_execution"] = max(closing.static, 0)
        row["taken"], row["fallen"] = self._number(closing.taken), self._number(closing.fallen)
        if closing.guard is not None:
            place = self._lowering.frames.find(closing.guard)
            if place is None or place < 0:
                return False
            row["predicate"], row["is_negated"], row["counts"] = place, closing.is_negated, 1
        row["end"] = _ENDS.get(closing.kind, End.EXIT if closing.guard is None else End.GUARDED_EXIT)
        return True

    def _number(self, segment: Segment | None) -> int:
        return -1 if segment is None else self._numbers[id(segment)]
