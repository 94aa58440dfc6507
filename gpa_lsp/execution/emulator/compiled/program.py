"""A kernel as the core executes it: :class:`CompiledKernel`, built once per launch by :func:`compile_kernel`, and its pieces."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxInstruction, Space
from gpa_lsp.execution.emulator.compiled.core_functions import Core, find_core
from gpa_lsp.execution.emulator.compiled.instructions import lower_entry, lower_instruction, lower_landing
from gpa_lsp.execution.emulator.compiled.lane_operations import OPERATIONS
from gpa_lsp.execution.emulator.compiled.lowering import (
    CLOCKS,
    Constants,
    FrameLayout,
    Lowering,
    NotLowered,
    Operation,
    Report,
    reserve_columns,
)
from gpa_lsp.execution.emulator.compiled.model import (
    ATOMIC,
    FUNCTIONS,
    LOAD,
    MOST_FUNCTIONS,
    NOT_ZERO,
    OPERATION,
    SEGMENT,
    STORE,
    End,
)
from gpa_lsp.execution.emulator.engine.control import end_with_fault
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction, CallEdge, ClosingKind, Segment
from gpa_lsp.execution.emulator.engine.layout import find_lives
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.model import LONGEST_VECTOR
from gpa_lsp.foundation.records import ColumnRecord

# Raised by operands that no compiler writes
_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, OverflowError)
# Fields of operations that say -1 where there is none
_NONE = frozenset({"guard", "result", "other_result", "combination", "region"})
_ENDS = {
    ClosingKind.JUMP: End.JUMP,
    ClosingKind.EXIT: End.EXIT,
    ClosingKind.BARRIER: End.BARRIER,
    ClosingKind.GATE: End.GATE,
    ClosingKind.CALL: End.JUMP,
    ClosingKind.RETURN: End.JUMP,
}
_GUARDED_ENDS = {
    ClosingKind.BRANCH: End.BRANCH,
    ClosingKind.EXIT: End.GUARDED_EXIT,
    ClosingKind.CALL: End.PARTING,
    ClosingKind.RETURN: End.PARTING,
}


class CompiledFunction(ColumnRecord, frozen=True, kw_only=True):
    """The kernel, or a function that it may call: its segments are some of those of a :class:`CompiledKernel`, one after the other."""

    bound: BoundFunction  # as it was bound
    frames: FrameLayout  # where its registers lie
    segments: range  # its own among those of the kernel
    first: int  # the one that it begins with


class CompiledKernel(ColumnRecord, frozen=True, kw_only=True):
    """A kernel's operations and segments, and those of the functions that it may call."""

    core: Core  # executes them
    functions: dict[str, CompiledFunction]  # by name, the kernel first
    constants: npt.NDArray[np.uint8]  # of all functions, as the core reads them
    operations: npt.NDArray[Any]  # of all segments, one after the other; the core notes in them where lanes went last
    reports: dict[int, Report]  # of operations that check something, by their numbers
    segments: tuple[Segment, ...]  # of each function those that are run first first
    places: tuple[tuple[float, ...], ...]  # of each segment, in the order in which those of its function are run
    table: npt.NDArray[Any]  # the same for the core; calls and returns lead nowhere: see :mod:`.calls`
    edges: dict[int, CallEdge]  # by the segment that is its entry
    numbers: dict[int, int]  # of segments, by the id of each
    calls: bool  # it calls functions
    is_written_first: bool  # no lane reads a register that it has not written, its own or another's
    is_ordered: bool  # values that threads read from memory may depend on the threads that run together, as results of atomic operations do

    @property
    def root(self) -> CompiledFunction:
        """The kernel itself."""
        return next(iter(self.functions.values()))

    def find_frames(self, segment: Segment) -> FrameLayout:
        """Layout of the registers that a segment works on."""
        return self.functions[segment.function].frames


def compile_kernel(machine: Machine) -> CompiledKernel:
    """The kernel of a launch, with all that it may call."""
    functions = [machine.module.functions[name] for name in (machine.kernel.name, *machine.list_called())]
    bound = {one.name: machine.get_function(one.name) for one in functions}
    constants = Constants()
    frames = {
        one.name: FrameLayout(one, bound[one.name], find_blocks(one), find_lives(one), constants) for one in functions
    }
    reserve_columns(frames[machine.kernel.name], functions, machine.geometry)
    return _Compiler(machine, bound, frames).compile(constants)


def _tabulate(operations: list[Operation]) -> npt.NDArray[Any]:
    """Operations as the core reads them, and one more, so that the table is never empty."""
    table = np.zeros(len(operations) + 1, OPERATION)
    for name in OPERATION.names or () if operations else ():
        default = [-1] * (2 * LONGEST_VECTOR) if name == "places" else -1 if name in _NONE else 0
        table[name][: len(operations)] = [one.get(name, default) for one in operations]
    return table


class _Compiler:
    def __init__(self, machine: Machine, bound: dict[str, BoundFunction], frames: dict[str, FrameLayout]) -> None:
        self._machine = machine
        self._bound = bound
        self._frames = frames
        self._segments: list[Segment] = []
        self._places: list[tuple[float, ...]] = []
        self._operations: list[Operation] = []
        self._reports: dict[int, Report] = {}
        self._functions: dict[str, CompiledFunction] = {}
        self._edges: dict[int, CallEdge] = {}
        for one in bound.values():
            self._list_segments(one)
        self._numbers = {id(segment): number for number, segment in enumerate(self._segments)}
        self._lowering = self._begin(machine.kernel.name)

    def _list_segments(self, bound: BoundFunction) -> None:
        first = len(self._segments)
        own = sorted(bound.segments, key=lambda one: one.order)
        self._segments += own
        self._places += [(one.order,) for one in own]
        for edge in bound.edges:  # Lanes that come back join those behind the call.
            self._edges[len(self._segments)] = edge
            self._segments += [edge.entry, edge.landing]
            self._places += [(edge.site.order, -1), (edge.joined.order - 0.5,)]
        self._functions[bound.name] = CompiledFunction(
            bound=bound,
            frames=self._frames[bound.name],
            segments=range(first, len(self._segments)),
            first=first + own.index(bound.segments[0]),
        )

    def _begin(self, name: str) -> Lowering:
        root = self._frames[self._machine.kernel.name]
        return Lowering(self._machine, self._machine.module.functions[name], self._frames[name], root)

    def compile(self, constants: Constants) -> CompiledKernel:
        """All segments."""
        table = np.zeros(len(self._segments), SEGMENT)
        table["numbers"] = -1
        for one in self._functions.values():
            self._lowering = self._begin(one.bound.name)
            for number in one.segments:
                self._compile_segment(table[number], number)
        calls = len(self._functions) > 1
        core = find_core()
        ordered = {ATOMIC, *map(OPERATIONS.number, CLOCKS.values())}
        atomics = [one for one in self._operations if one["code"] == ATOMIC]
        changes = {one["combination"] - FUNCTIONS for one in atomics if one["combination"] >= FUNCTIONS}
        core.prepare({one["code"] for one in self._operations} | changes)
        return CompiledKernel(
            core=core,
            functions=self._functions,
            constants=constants.build(),
            operations=_tabulate(self._operations),
            reports=self._reports,
            segments=tuple(self._segments),
            places=tuple(self._places),
            table=table,
            edges=self._edges,
            numbers=self._numbers,
            calls=calls,
            is_written_first=not calls and self._is_written_first(),
            is_ordered=any(one["code"] in ordered or one.get("is_strong") for one in self._operations),
        )

    def _is_written_first(self) -> bool:
        """Whether the core does all of it, no register is read before it is written, and no lane reads those of others."""
        live_in = self._bound[self._machine.kernel.name].segments[0].live_in
        return not live_in and not any(one.get("exchanges") for one in self._operations)

    def _compile_segment(self, row: Any, number: int) -> None:
        segment = self._segments[number]
        row["first"], row["is_polling"] = len(self._operations), segment.is_polling
        row["enters_block"] = -1 if segment.enters_block is None else segment.enters_block
        edge = self._edges.get(number)
        if edge is not None:
            row["end"], row["taken"] = End.JUMP, -1
            self._operations += lower_entry(self._lowering, edge, *self._find_callee(edge))
        elif number - 1 in self._edges:
            edge = self._edges[number - 1]
            self._close(row, segment)
            self._operations += lower_landing(self._lowering, edge, *self._find_callee(edge))
        else:
            self._lower_parts(segment)
            self._close(row, segment)
        row["last"], row["size"] = len(self._operations), segment.size

    def _find_callee(self, edge: CallEdge) -> tuple[BoundFunction, FrameLayout]:
        return self._bound[edge.callee], self._frames[edge.callee]

    def _lower_parts(self, segment: Segment) -> None:
        """The operations of a segment; where an instruction is not emulated, the lanes that come to it end."""
        for place, instruction in enumerate(segment.body):
            try:
                operations = lower_instruction(self._lowering, instruction)
            except (NotLowered, *_MALFORMED) as error:
                del segment.body[place:]
                self._refuse(segment, instruction, error)
                return
            for number, operation in enumerate(operations, len(self._operations)):
                if "report" in operation:
                    self._reports[number] = operation["report"]
            self._operations.extend(operations)

    def _refuse(self, segment: Segment, instruction: PtxInstruction, error: Exception) -> None:
        static = self._lowering.first_static + instruction.index
        reason = f" ({error})" if isinstance(error, NotLowered) and str(error) else ""
        segment.instructions = segment.instructions[: segment.instructions.index(static) + 1]
        segment.size, segment.closing = len(segment.instructions), None
        message = f"{instruction.text} is not emulated{reason}"
        segment.end = end_with_fault(FaultKind.UNSUPPORTED, message, static)

    def _close(self, row: Any, segment: Segment) -> None:
        """Say how a segment ends, where the core knows it."""
        closing = segment.closing
        if closing is None:
            return
        row["instruction"] = max(closing.static, 0)
        row["taken"], row["fallen"] = self._number(closing.taken), self._number(closing.fallen)
        if closing.guard is not None:
            row["predicate"] = self._lowering.frames.find(closing.guard)
            row["is_negated"], row["counts"] = closing.is_negated, 1
        row["end"] = (_ENDS if closing.guard is None else _GUARDED_ENDS)[closing.kind]

    def _number(self, segment: Segment | None) -> int:
        return -1 if segment is None else self._numbers[id(segment)]


# Pieces: operations of a kernel that are translated together, :func:`find_pieces`.
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
    """The pieces of all segments, given the regions that their accesses went to so far."""
    fields = OPERATION.names or ()
    operations: list[Operation] = [dict(zip(fields, row, strict=True)) for row in kernel.operations.tolist()]
    for one in operations:
        one["function"] = OPERATIONS.find(one["code"])
    has_products = any(map(_is_product, operations))
    exchanged = {place for one in operations if one["exchanges"] for place in list_read(one)}
    pieces: list[Piece] = []
    for row, segment in zip(kernel.table.tolist(), kernel.segments, strict=True):
        fields_of_segment = dict(zip(kernel.table.dtype.names or (), row, strict=True))
        first, last = fields_of_segment["first"], fields_of_segment["last"]
        cuts = _Cutter(operations, checks_shared=checks_shared).cut(first, last)
        alive = None if has_products else _list_read_behind(kernel, segment, fields_of_segment)
        # Others may read the registers of lanes that need them no more.
        pieces += _build(operations, (first, last), cuts, None if alive is None else alive | exchanged)
    return pieces


def _is_product(operation: Operation) -> bool:
    """Whether the registers of an operation stand in a table of constants."""
    function = operation["function"]
    return function is not None and function.bits == 0


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
    """Places read after each segment; empty where the core does everything, as the operations then tell."""
    rows = [dict(zip(kernel.table.dtype.names or (), row, strict=True)) for row in kernel.table.tolist()]
    if all(row["end"] != End.PYTHON for row in rows):
        return []
    found = (_list_read_behind(kernel, segment, row) for row, segment in zip(rows, kernel.segments, strict=True))
    return [sorted(places) if places is not None else [] for places in found]


class _Cutter:
    """Cuts the operations of a segment into pieces.

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
        if code < MOST_FUNCTIONS:
            return not operation["exchanges"]
        if code == NOT_ZERO:
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
    if closing is None or closing.kind is ClosingKind.RETURN:
        return None
    places = {row["predicate"]} if closing.guard is not None else set()
    frames = kernel.find_frames(segment)
    for following in (closing.taken, closing.fallen):
        if following is not None:
            found = (frames.find(slot) for slot in following.live_in)
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
        if number - 1 not in inside and (operation["code"] >= MOST_FUNCTIONS or _is_product(operation)):
            alive |= everything  # what is read does not stand in the operation
            continue
        if operation["guard"] < 0:
            alive.difference_update(list_written(operation))
        alive.update(list_read(operation))
    return pieces[::-1]
