"""Placement of each instruction of a kernel: its course and the dependences there. Courses are made on first use.

Steps of a course depend on each other through registers and through the order of memory accesses, transitively. Reuse of a register (write after
read, write after write) is no dependence: rewritten code gets other registers. Dependences reach back :data:`WINDOW_STEPS`, so that sets are bit
masks of bounded size and a course takes time in proportion to its length.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.kernel.calls import find_callee
from gpa_lsp.kernel.dataflow.expansions import recognise_routine
from gpa_lsp.kernel.dataflow.reordering.course import (
    SIDE_CODE,
    SPACE_COUNT,
    CalledEffects,
    Course,
    Step,
    build_block_course,
    build_loop_course,
    find_steps,
    find_stored_spaces,
    insert_calls,
    list_instructions,
    summarise_routine,
)
from gpa_lsp.kernel.model import KernelRows

WINDOW_STEPS = 512  # How far a dependence is followed; more instructions than a scheduler of the compiler looks at

_MOST_WRITERS = 8  # Conditional writers of one register that are kept apart

_MASK = (1 << WINDOW_STEPS) - 1


class Dependences(Struct, frozen=True, kw_only=True):
    """Dependences between m steps. Steps of a loop occur twice, for one iteration and for the next: m = 2 × the course's length.

    Masks are relative: of :attr:`ancestors` bit k of step i stands for step i - 1 - k, of :attr:`descendants` for step i + 1 + k.
    """

    sources: tuple[tuple[int, ...], ...]  # m tuples of the steps each depends on directly through registers
    ordered_after: tuple[tuple[int, ...], ...]  # m tuples of the steps each depends on directly through memory
    ancestors: tuple[int, ...]  # m masks of the steps each depends on, directly or not
    data_ancestors: tuple[int, ...]  # m masks of the same through registers alone
    descendants: tuple[int, ...]  # m masks of the steps that depend on each

    def __len__(self) -> int:
        return len(self.sources)

    def depends(self, later: int, earlier: int) -> bool:
        """Whether a step depends on an earlier one."""
        return later > earlier and bool(self.ancestors[later] >> (later - 1 - earlier) & 1)

    def depends_by_data(self, later: int, earlier: int) -> bool:
        """Whether a step depends on an earlier one through registers alone."""
        return later > earlier and bool(self.data_ancestors[later] >> (later - 1 - earlier) & 1)

    def list_independent_before(self, step: int, first: int) -> npt.NDArray[np.int64]:
        """int64[k], the steps from ``first`` up to before ``step`` that it does not depend on, descending."""
        wanted = (1 << max(step - first, 0)) - 1
        return step - 1 - list_bits(wanted & ~self.ancestors[step])

    def list_independent_after(self, step: int, end: int, others: Iterable[int] = ()) -> npt.NDArray[np.int64]:
        """int64[k], the steps after ``step`` up to before ``end`` that depend neither on it nor on ``others``, ascending."""
        dependent = self.descendants[step]
        for other in others:
            gap = step - other
            own = self.descendants[other]
            dependent |= own >> gap if gap >= 0 else own << -gap | 1 << (-gap - 1)
        wanted = (1 << max(end - step - 1, 0)) - 1
        return step + 1 + list_bits(wanted & ~dependent)


def list_bits(mask: int) -> npt.NDArray[np.int64]:
    """int64[k], the numbers of the bits that are set, ascending.

    >>> list_bits(0b10010).tolist()
    [1, 4]
    """
    octets = np.frombuffer(mask.to_bytes((mask.bit_length() + 7) // 8, "little"), dtype=np.uint8)
    return np.flatnonzero(np.unpackbits(octets, bitorder="little")).astype(np.int64)


def find_dependences(course: Course) -> Dependences:
    """The dependences of a course."""
    steps = [*course.steps, *course.steps] if course.is_loop else list(course.steps)
    sources = _link_registers(steps)
    ordered = _link_memory(steps)
    direct = [(*found, *others) for found, others in zip(sources, ordered, strict=True)]
    return Dependences(
        sources=tuple(sources),
        ordered_after=tuple(ordered),
        ancestors=tuple(_close_backwards(direct)),
        data_ancestors=tuple(_close_backwards(sources)),
        descendants=tuple(_close_forwards(direct)),
    )


def _link_registers(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """The steps whose register values each step reads: the last one that certainly wrote a register, and those since that may have."""
    writers: dict[int, tuple[int, ...]] = {}
    found = []
    for place, step in enumerate(steps):
        needed = {writer for resource in step.reads for writer in writers.get(resource, ())}
        if step.blocks and place:
            needed.add(place - 1)  # the branch that decides about side code
        for resource in step.writes:
            if not step.is_partial:
                writers[resource] = (place,)
                continue
            before = writers.get(resource, ())
            needed.update(before[:-_MOST_WRITERS])  # the new one stands for the oldest of very many
            writers[resource] = (*before[-_MOST_WRITERS:], place)
        found.append(tuple(sorted(needed)))
    return found


def _link_memory(steps: Sequence[Step]) -> list[tuple[int, ...]]:
    """The accesses that each step must follow: per space, loads follow the last store, and a store follows the last store and the loads since."""
    last_store = [-1] * SPACE_COUNT
    loads_since: list[list[int]] = [[] for _ in range(SPACE_COUNT)]
    found: list[tuple[int, ...]] = []
    for place, step in enumerate(steps):
        touched = step.loads | step.stores
        if not touched:
            found.append(())
            continue
        needed: set[int] = set()
        for space in range(SPACE_COUNT):
            if not touched >> space & 1:
                continue
            if last_store[space] >= 0:
                needed.add(last_store[space])
            if step.stores >> space & 1:
                needed.update(loads_since[space])
                last_store[space], loads_since[space] = place, []
            else:
                loads_since[space].append(place)
        found.append(tuple(sorted(needed)))
    return found


def _close_backwards(direct: Sequence[Sequence[int]]) -> list[int]:
    closed: list[int] = []
    for place, sources in enumerate(direct):
        mask = 0
        for source in sources:
            gap = place - source
            if gap <= WINDOW_STEPS:
                mask |= closed[source] << gap | 1 << (gap - 1)
        closed.append(mask & _MASK)
    return closed


def _close_forwards(direct: Sequence[Sequence[int]]) -> list[int]:
    closed = [0] * len(direct)
    for place in range(len(direct) - 1, -1, -1):
        own = closed[place] = closed[place] & _MASK
        for source in direct[place]:
            gap = place - source
            if gap <= WINDOW_STEPS:
                closed[source] |= own << gap | 1 << (gap - 1)
    return closed


# Instructions that the loop courses of a function may hold together, per instruction of the function: in a deep nest every level looks at all the
# code inside it once more. Compilers nest less deep.
_WORK_PER_INSTRUCTION = 16


class Track(Struct, frozen=True, kw_only=True, eq=False):
    """A course of m steps with their dependences and samples."""

    course: Course  # the steps
    dependences: Dependences  # between them; of a loop's two iterations
    active_samples: npt.NDArray[np.float64]  # float64[m], samples in issuing cycles
    instructions: npt.NDArray[np.float64]  # float64[m], instructions in each step; more than one for side code
    is_movable: npt.NDArray[np.bool_]  # bool[m]
    first_row: int  # row of the function's first instruction
    graph: FlowGraph  # of the function
    function_steps: tuple[Step, ...]  # of all its instructions
    # the first way out of a loop whose condition depends on a load of the iteration; None without one
    guessed_exit: int | None

    def row_of(self, step: int) -> int:
        """The row of a step's (first) instruction; steps of the next iteration are those of this one."""
        found = self.course.steps[step % len(self.course)]
        if found.instruction == SIDE_CODE:
            return self.first_row + int(list_instructions(self.graph, found.blocks).min())
        return self.first_row + found.instruction

    def store_row_of(self, step: int) -> int:
        """The row of a step that stores or orders accesses; of side code that of the last such instruction in it."""
        found = self.course.steps[step % len(self.course)]
        if found.instruction != SIDE_CODE:
            return self.first_row + found.instruction
        inside: list[int] = list_instructions(self.graph, found.blocks).tolist()
        stores = [index for index in inside if self.function_steps[index].stores or self.function_steps[index].is_call]
        return self.first_row + (stores or inside)[-1]

    def rows_of(self, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """int64[k], the rows of some steps, those in side code included."""
        return self.first_row + self.course.expand(steps, self.graph)


class Placement(Struct, frozen=True):
    """An instruction on its track."""

    track: Track
    step: int


class _FunctionTracks(Struct):
    """The tracks of one function, made when asked for."""

    steps: tuple[Step, ...]
    graph: FlowGraph
    active_samples: npt.NDArray[np.float64]
    first_row: int
    work_left: int
    of_block: dict[int, Track] = field(default_factory=dict)
    of_loop: dict[int, Track | None] = field(default_factory=dict)

    def place(self, index: int) -> Placement:
        block = int(self.graph.block_of_instruction[index])
        loop = int(self.graph.innermost_loop[block])
        track = self._track_of_loop(loop) if loop >= 0 else None
        if track is None or index not in track.course.position:
            track = self._track_of_block(block)
        return Placement(track, track.course.position[index])

    def _track_of_loop(self, loop: int) -> Track | None:
        if loop not in self.of_loop:
            blocks = self.graph.blocks_of_loop(loop)
            size = int((self.graph.last_instruction[blocks] - self.graph.first_instruction[blocks] + 1).sum())
            course = None
            if size <= self.work_left:
                self.work_left -= size
                course = build_loop_course(self.graph, self.steps, loop)
            self.of_loop[loop] = None if course is None else self._lay(course)
        return self.of_loop[loop]

    def _track_of_block(self, block: int) -> Track:
        if block not in self.of_block:
            self.of_block[block] = self._lay(build_block_course(self.graph, self.steps, block))
        return self.of_block[block]

    def _lay(self, course: Course) -> Track:
        dependences = find_dependences(course)
        return Track(
            course=course,
            dependences=dependences,
            active_samples=course.sum_over_steps(self.active_samples, self.graph),
            instructions=course.sum_over_steps(np.ones(len(self.steps)), self.graph),
            is_movable=course.is_movable,
            first_row=self.first_row,
            graph=self.graph,
            function_steps=self.steps,
            guessed_exit=_find_guessed_exit(course, dependences) if course.is_loop else None,
        )


def _find_guessed_exit(course: Course, dependences: Dependences) -> int | None:
    length = len(course)
    for place in course.ways_out:
        if course.steps[place].is_call:
            continue
        needed = place + length - 1 - list_bits(dependences.data_ancestors[place + length])
        if any(course.steps[step].is_load for step in (needed % length).tolist()):
            return place
    return None


def find_placements(kernel: KernelRows) -> "PlacementFinder":
    """The placements of a kernel, made once per kernel."""
    return kernel.once(PlacementFinder)


class PlacementFinder:
    """Places rows of a kernel on tracks. A row in a loop is on the loop's track if every iteration passes it, and on its block's otherwise."""

    def __init__(self, kernel: KernelRows) -> None:
        self._kernel = kernel
        self._tracks: dict[int, _FunctionTracks | None] = {}
        self._placed: dict[int, Placement | None] = {}
        self._steps: dict[int, tuple[Step, ...]] = {}
        self._stored = 0
        for function in kernel.functions:
            if function.instructions is not None:
                self._stored |= find_stored_spaces(function.instructions)

    def find(self, row: int) -> Placement | None:
        """The placement of a row; None without a disassembly."""
        if row not in self._placed:
            self._placed[row] = self._place(row)
        return self._placed[row]

    def _place(self, row: int) -> Placement | None:
        number = int(self._kernel.function_index[row])
        if number not in self._tracks:
            self._tracks[number] = self._open(number)
        tracks = self._tracks[number]
        return None if tracks is None else tracks.place(self._kernel.index_of(row))

    def _open(self, number: int) -> _FunctionTracks | None:
        kernel = self._kernel
        function = kernel.functions[number]
        if function.instructions is None or function.graph is None:
            return None
        first_row = int(kernel.first_rows[number])
        rows = slice(first_row, first_row + len(function.instructions))
        active = kernel.all_samples[rows].sum(axis=1).astype(np.float64)
        # without them only dependences are asked for, not what could fill a latency
        if kernel.latency_samples is not None:
            active -= kernel.latency_samples[rows].sum(axis=1)
        return _FunctionTracks(
            steps=insert_calls(self._find_steps(number), self._summarise_calls(number, function.graph)),
            graph=function.graph,
            active_samples=active,
            first_row=first_row,
            work_left=_WORK_PER_INSTRUCTION * len(function.instructions),
        )

    def _find_steps(self, number: int) -> tuple[Step, ...]:
        """The steps of a function that is disassembled, with opaque calls."""
        if number not in self._steps:
            function = self._kernel.functions[number]
            assert function.instructions is not None and function.graph is not None
            # A caller or callee may have stored before a barrier here; the kernel's own code, without calls, is seen whole.
            stored_elsewhere = self._stored if number or function.graph.calls else 0
            self._steps[number] = find_steps(function.instructions, function.graph, stored_elsewhere)
        return self._steps[number]

    def _summarise_calls(self, number: int, graph: FlowGraph) -> dict[int, CalledEffects]:
        """The calls of the compiler's own routines, which to the source are operations like others; others stay opaque."""
        found: dict[int, CalledEffects] = {}
        known: dict[range, CalledEffects | None] = {}
        for call in graph.calls:
            symbol, rows = find_callee(self._kernel, number, call)
            if not len(rows) or call.is_tail or recognise_routine(symbol) is None:
                continue
            if rows not in known:
                known[rows] = self._summarise(rows)
            effects = known[rows]
            if effects is not None:
                found[call.instruction] = effects
        return found

    def _summarise(self, rows: range) -> CalledEffects | None:
        section = int(self._kernel.function_index[rows.start])
        function = self._kernel.functions[section]
        if function.instructions is None or function.graph is None:
            return None
        first = rows.start - int(self._kernel.first_rows[section])
        steps = self._find_steps(section)[first : first + len(rows)]
        reachable = function.graph.is_reachable[function.graph.block_of_instruction]
        return summarise_routine([step for step in steps if reachable[step.instruction]])
