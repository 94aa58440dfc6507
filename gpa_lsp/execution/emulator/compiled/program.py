"""A kernel as the core executes it: :class:`CompiledKernel`, built once per launch by :func:`compile_kernel`, and its pieces for C."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxInstruction, Space
from gpa_lsp.execution.emulator.compiled.core_functions import Core, find_core
from gpa_lsp.execution.emulator.compiled.instructions import lower_instruction
from gpa_lsp.execution.emulator.compiled.lane_operations import CODES, EXCHANGES
from gpa_lsp.execution.emulator.compiled.lowering import FrameLayout, Lowering, Operation
from gpa_lsp.execution.emulator.compiled.model import (
    ATOMIC,
    DIVIDE,
    LANES,
    LOAD,
    MOST_ELEMENTS,
    OPERATION,
    PYTHON,
    SEGMENT,
    STORE,
    End,
)
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, Closing, ClosingKind, Segment, Step
from gpa_lsp.execution.emulator.engine.layout import find_lives
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.foundation.records import ColumnRecord

_MOST_LANE_BYTES = 1 << 14  # A frame of more is left to the numpy engine, which forgets what is dead
# Of the operations of a kernel that calls functions: where more are the numpy engine's, it is faster at all of them
_MOST_STEPS = 0.15
# Fields of operations that say -1 where there is none
_NONE = frozenset({"guard", "result", "other_result", "combination", "region"})
PRODUCT = "multiply_matrices"  # The operation whose registers stand in a table of constants
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
    lowering = Lowering(machine, function, frames, CODES)
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
        exchanges = {CODES[name] for name in EXCHANGES}
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


# Which operations of a kernel can be translated together: :func:`find_pieces`.
#
# The core executes an operation by all warps before it turns to the next one, a piece all its operations by one
# warp before the next warp. Pieces end before an access that could tell the difference: one to where another of the
# piece stores, or that stores where another of it loads.

_MOST_APART = 256  # Pairs of accesses of a piece that must go to different regions: each is looked at before it runs
_MOST_OPERATIONS = 128  # Of a piece: compilers take longer for each the more a function has
_IN_REGIONS = frozenset({Space.GENERIC, Space.GLOBAL, Space.CONST, Space.PARAM})


class Piece(Struct, frozen=True, kw_only=True):
    """Operations that are executed together."""

    first: int  # number of the first one
    operations: tuple[Operation, ...]  # all of them
    needed: frozenset[int]  # places written that are read later
    apart: tuple[tuple[int, int], ...]  # accesses, by number, that must go to different regions

    @property
    def end(self) -> int:
        """Number of the first operation behind it."""
        return self.first + len(self.operations)


def find_pieces(kernel: CompiledKernel, *, checks_shared: bool) -> list[Piece]:
    """The pieces of all segments, by what the accesses went to so far."""
    fields = OPERATION.names or ()
    operations: list[Operation] = [dict(zip(fields, row, strict=True)) for row in kernel.operations.tolist()]
    names = list(CODES)
    for one in operations:
        one["name"] = names[one["code"]] if one["code"] < len(names) else ""
    has_products = any(one["name"] == PRODUCT for one in operations)
    exchanged = {place for one in operations if one["name"] in EXCHANGES for place in list_read(one)}
    pieces: list[Piece] = []
    for row, segment in zip(kernel.table.tolist(), kernel.segments, strict=True):
        fields_of_segment = dict(zip(kernel.table.dtype.names or (), row, strict=True))
        first, last = fields_of_segment["first"], fields_of_segment["last"]
        cuts = _Cutter(operations, checks_shared=checks_shared).cut(first, last)
        alive = None if has_products else _list_read_behind(kernel, segment, fields_of_segment)
        # Others may read the registers of lanes that need them no more.
        pieces += _build(operations, (first, last), cuts, None if alive is None else alive | exchanged)
    return pieces


def list_written(operation: Operation) -> list[int]:
    """Places that an operation writes."""
    if operation["code"] == LOAD:
        return [place for place in list(operation["places"])[: operation["elements"]] if place >= 0]
    if operation["code"] == STORE:
        return []
    return [place for place in (operation["result"], operation["other_result"]) if place >= 0]


def list_read(operation: Operation) -> list[int]:
    """Places that an operation reads; more than that where its operands are not all used."""
    found = [operation["guard"], operation["a"], operation["b"], operation["c"]]
    if operation["code"] == STORE:
        found = [operation["guard"], operation["a"], *list(operation["places"])[: operation["elements"]]]
    elif operation["code"] == LOAD:
        found = [operation["guard"], operation["a"]]
    return [place for place in found if place >= 0]


def list_read_by_python(kernel: CompiledKernel) -> list[list[int]]:
    """Places that are read behind segments; none where the core does all, for then the operations say it."""
    rows = [dict(zip(kernel.table.dtype.names or (), row, strict=True)) for row in kernel.table.tolist()]
    if PYTHON not in kernel.operations["code"] and all(row["end"] != End.PYTHON for row in rows):
        return []
    found = (_list_read_behind(kernel, segment, row) for row, segment in zip(rows, kernel.segments, strict=True))
    return [sorted(places) if places is not None else [] for places in found]


class _Cutter:
    """Parts the operations of a segment.

    Args:
        operations: of the kernel.
        checks_shared: as of :func:`find_pieces`.
    """

    def __init__(self, operations: list[Operation], *, checks_shared: bool) -> None:
        self._operations = operations
        self._checks_shared = checks_shared
        self._accesses: list[tuple[int, tuple[int, ...], tuple[int, ...]]] = []
        self._versions: dict[int, int] = {}
        self._apart: list[tuple[int, int]] = []

    def cut(self, first: int, last: int) -> list[tuple[int, int, tuple[tuple[int, int], ...]]]:
        """First and last of each piece, the last excluded, and its accesses that must stay apart."""
        found = []
        begin: int | None = None
        for number in range(first, last):
            operation = self._operations[number]
            if not self._is_known(operation):
                if begin is not None:
                    found.append((begin, number, tuple(self._apart)))
                begin = None
                continue
            if begin is None or number - begin >= _MOST_OPERATIONS or not self._joins(number, operation):
                if begin is not None:
                    found.append((begin, number, tuple(self._apart)))
                begin = number
                self._accesses, self._apart = [], []
                self._joins(number, operation)
            for place in list_written(operation):
                self._versions[place] = self._versions.get(place, 0) + 1
        if begin is not None:
            found.append((begin, last, tuple(self._apart)))
        return found

    def _is_known(self, operation: Operation) -> bool:
        code = operation["code"]
        if code < PYTHON:
            return operation["name"] not in EXCHANGES
        if code == DIVIDE:
            return True
        if code not in (LOAD, STORE) or operation["is_strong"]:
            return False
        return operation["space"] in _IN_REGIONS or (operation["space"] == Space.SHARED and not self._checks_shared)

    def _joins(self, number: int, operation: Operation) -> bool:
        """Whether an operation can be part of the piece; then it is."""
        code, place = operation["code"], operation["a"]
        if code not in (LOAD, STORE):
            return True
        version = self._versions.get(place, 0)
        guard = operation["guard"]
        key = place, version, operation["literal"], operation["element_bytes"], operation["elements"]
        lanes = guard, self._versions.get(guard, 0), operation["is_negated"]
        apart = []
        for other, other_key, other_lanes in self._accesses:
            before = self._operations[other]
            if before["code"] == code == LOAD:
                continue
            if before["code"] == code and key == other_key and (guard < 0 or lanes == other_lanes):
                continue  # all that was stored is stored over
            is_shared = operation["space"] == Space.SHARED
            if is_shared != (before["space"] == Space.SHARED):
                continue
            if is_shared or operation["region"] == before["region"] or min(operation["region"], before["region"]) < 0:
                return False  # or it is unknown
            apart.append((other, number))
        if len(self._apart) + len(apart) > _MOST_APART:
            return False
        self._apart += apart
        self._accesses.append((number, key, lanes))
        return True


def _list_read_behind(kernel: CompiledKernel, segment: Segment, row: Operation) -> set[int] | None:
    closing = segment.closing
    if closing is None or row["end"] == End.PYTHON:
        return None
    places = {row["predicate"]} if closing.guard is not None else set()
    for following in (closing.taken, closing.fallen):
        if following is not None:
            found = (kernel.frames.find(slot) for slot in following.live_in)
            places.update(place for place in found if place is not None and place >= 0)
    return places


def _build(
    operations: list[Operation],
    extent: tuple[int, int],
    cuts: Iterable[tuple[int, int, tuple[tuple[int, int], ...]]],
    behind: set[int] | None,
) -> list[Piece]:
    """Pieces, from the last one to the first, with what is read behind each."""
    first, last = extent
    everything = {place for one in operations[first:last] for place in (*list_written(one), *list_read(one))}
    alive = set(everything) if behind is None else set(behind)
    ends = {end: (begin, apart) for begin, end, apart in cuts}
    inside: range = range(0)
    pieces: list[Piece] = []
    for number in range(last, first - 1, -1):
        if number in ends:
            begin, apart = ends[number]
            inside = range(begin, number)
            chosen = tuple(operations[begin:number])
            written = {place for one in chosen for place in list_written(one)}
            pieces.append(Piece(first=begin, operations=chosen, needed=frozenset(written & alive), apart=apart))
        if number == first:
            break
        operation = operations[number - 1]
        if number - 1 not in inside and (operation["code"] >= PYTHON or operation["name"] == PRODUCT):
            alive |= everything  # what is read does not stand in the operation
            continue
        if operation["guard"] < 0:
            alive.difference_update(list_written(operation))
        alive.update(list_read(operation))
    return pieces[::-1]
