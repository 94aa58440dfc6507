"""Reaching definitions and reached uses of one operand, one query at a time.

A value is followed from block to block over every edge of the flow graph, past guarded writes (which may not happen), into the local
functions that are called on the way and out of the one it is in, each time back to where it was called. Blocks in which nothing can happen to it
are passed over along the dominator tree, so a question costs about as much as there are blocks that touch the resource; each is looked at once, and
once more for each local function it was called through.

Assumed: code in other sections, and calls through registers, leave registers alone. That is wrong for results and scratch registers; such calls
are named in the answer (``past_calls``).
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import reduce
from itertools import pairwise
from operator import or_
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import NO_BARRIER, ResourceKind
from gpa_lsp.code.control_flow.graph import solve_backwards
from gpa_lsp.diagnosis.blame.barriers import SCOREBOARD_COUNT, SCOREBOARDS_OF, find_dependency_barriers
from gpa_lsp.foundation.records import PartlyCompared
from gpa_lsp.report.code_index import CodeIndex, index_code
from gpa_lsp.report.model import KernelCode, KernelReport

# Which writes inside one basic block a read can see: guards that cannot hold together are told apart.
#
# Two guards of the same predicate exclude each other as long as nothing writes that predicate between them. So the value of a write is gone
# behind another one under the same guard, nothing from before survives two writes under opposite guards, and a read does not see what was written
# under the guard opposite to its own. What is known of a predicate ends with the block.

UNGUARDED = -1


def scan_back(
    index: CodeIndex, resource: int, row: int, first: int, condition: int = UNGUARDED
) -> tuple[list[int], bool]:
    """Writes of a resource in a block that may reach a row, nearest first, and whether a value from before the block may."""
    writes = index.writes(resource)
    place = bisect_left(writes, row)
    if not place or writes[place - 1] < first:
        return [], True
    seen: list[int] = []
    # under these conditions nothing earlier is seen from these rows on
    covered = {} if condition == UNGUARDED else {condition ^ 1: row}
    while place and writes[place - 1] >= first:
        place -= 1
        write = writes[place]
        under = index.condition[write]
        if under == UNGUARDED:
            seen.append(write)
            return seen, False
        guard = index.guard[write]
        behind, opposite = covered.get(under), covered.get(under ^ 1)
        if behind is None or not _is_kept(index, guard, write, behind):
            seen.append(write)
            if opposite is not None and _is_kept(index, guard, write, opposite):
                return seen, False
        covered[under] = write
    return seen, True


def scan_on(
    index: CodeIndex, resource: int, start: int, last: int, condition: int = UNGUARDED
) -> tuple[list[int], bool]:
    """Reads in a block that may see a value, ascending, and whether it may leave the block: the opposite of :func:`scan_back`."""
    reads, writes = index.reads(resource), index.writes(resource)
    place, end = bisect_right(reads, start), bisect_right(reads, last)
    written, written_end = bisect_right(writes, start), bisect_right(writes, last)
    if written == written_end and condition == UNGUARDED:
        return list(reads[place:end]), True
    seen: list[int] = []
    # under these conditions the value is not there, since these rows
    gone = {} if condition == UNGUARDED else {condition ^ 1: start}
    for write in writes[written:written_end]:
        while place < end and reads[place] <= write:
            if _sees(index, reads[place], gone):
                seen.append(reads[place])
            place += 1
        under = index.condition[write]
        if under == UNGUARDED:
            return seen, False
        opposite = gone.get(under ^ 1)
        if opposite is not None and _is_kept(index, index.guard[write], opposite, write):
            return seen, False
        gone[under] = write
    seen.extend(read for read in reads[place:end] if _sees(index, read, gone))
    return seen, True


def _sees(index: CodeIndex, read: int, gone: dict[int, int]) -> bool:
    since = gone.get(index.condition[read])
    return since is None or not _is_kept(index, index.guard[read], since, read)


def _is_kept(index: CodeIndex, guard: int, start: int, end: int) -> bool:
    """Whether a predicate is the same at two rows of a block, the first of which may write it."""
    writes = index.writes(guard)
    place = bisect_left(writes, start)
    return place == len(writes) or writes[place] >= end


MOST_ROWS = 300  # Answers stop here: nobody reads more

MOST_BLOCKS = 1_000  # An answer looks at no more blocks than this, which takes milliseconds

MOST_BLOCKS_OF_WEB = 400  # All answers of a web together

_TOP = -1  # Not inside a call that the question came through


class FoundRows(PartlyCompared, frozen=True, kw_only=True):
    """Answer to a query about values."""

    UNCOMPARED = ("blocks",)

    rows: tuple[int, ...]  # ascending
    # for definitions: the value may come from before the function, as a parameter. For uses: it may be read after the function returns to where
    # nobody knows.
    is_from_outside: bool
    past_calls: tuple[int, ...]  # rows of calls between here and there whose code is not followed, ascending
    is_complete: bool  # False where :data:`MOST_ROWS` or :data:`MOST_BLOCKS` were too few
    blocks: int = 0  # how many were gone on from


NOTHING = FoundRows(rows=(), is_from_outside=False, past_calls=(), is_complete=True)


def find_defs(code: KernelCode, row: int, resource: int) -> FoundRows:
    """The instructions that may have written what an instruction reads.

    Args:
        code: of the kernel.
        row: the reading instruction.
        resource: number of what it reads.

    Returns:
        Nothing for a row without code.
    """
    index = index_code(code)
    block = index.block_of[row]
    return NOTHING if block < 0 else _Backward(index, resource).answer(row, block)


def find_uses(code: KernelCode, row: int, resource: int) -> FoundRows:
    """The instructions that may read what an instruction writes.

    Args:
        code: of the kernel.
        row: the writing instruction.
        resource: number of what it writes.

    Returns:
        Nothing for a row without code.
    """
    index = index_code(code)
    block = index.block_of[row]
    return NOTHING if block < 0 else _Forward(index, resource).answer(row, block)


def find_web(code: KernelCode, row: int, resource: int, *, is_written: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The web of a value: what would be one variable in a source.

    Definitions that share a use, and uses that share a definition; no more than :data:`MOST_ROWS` and :data:`MOST_BLOCKS_OF_WEB` find.

    Args:
        code: of the kernel.
        row: the instruction.
        resource: number of what is asked about.
        is_written: the value that the instruction writes; else the one it reads.

    Returns:
        The instructions that write it, and those that read it, ascending; one may be both.
    """
    found: dict[tuple[int, bool], None] = {(row, is_written): None}
    waiting = [(row, is_written)]
    blocks = 0
    while waiting and blocks < MOST_BLOCKS_OF_WEB and len(found) < MOST_ROWS:
        at, is_def = waiting.pop()
        answer = (find_uses if is_def else find_defs)(code, at, resource)
        blocks += 1 + answer.blocks
        new = [(other, not is_def) for other in answer.rows if (other, not is_def) not in found]
        found.update(dict.fromkeys(new))
        waiting += new
    return (
        tuple(sorted(one for one, is_def in found if is_def)),
        tuple(sorted(one for one, is_def in found if not is_def)),
    )


class _Walk:
    """Shared parts of both directions. A *mode* is the called procedure in which a block is visited, or ``_TOP``."""

    def __init__(self, index: CodeIndex, resource: int) -> None:
        self.index = index
        self.resource = resource
        self.rows: set[int] = set()
        self.past_calls: set[int] = set()
        self.is_from_outside = False
        self._waiting: list[tuple[int, int]] = []
        self._put: set[tuple[int, int]] = set()
        self._begun: set[tuple[int, int]] = set()
        self._asking: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self._passed: set[int] = set()

    def finish(self) -> FoundRows:
        """Continue until nothing is left, or a limit is reached."""
        blocks = 0
        while self._waiting and len(self.rows) < MOST_ROWS and blocks < MOST_BLOCKS:
            self.step(*self._waiting.pop())
            blocks += 1
        return FoundRows(
            rows=tuple(sorted(self.rows)[:MOST_ROWS]),
            is_from_outside=self.is_from_outside,
            past_calls=tuple(sorted(self.past_calls)),
            is_complete=not self._waiting and len(self.rows) <= MOST_ROWS,
            blocks=blocks,
        )

    def step(self, mode: int, block: int) -> None:
        """Go on from a block."""
        raise NotImplementedError

    def put(self, mode: int, block: int) -> None:
        """Queue a block, once."""
        if (mode, block) not in self._put:
            self._put.add((mode, block))
            self._waiting.append((mode, block))

    def begin(self, mode: int, block: int) -> bool:
        """Whether a block is visited for the first time."""
        if (mode, block) in self._begun:
            return False
        self._begun.add((mode, block))
        return True

    def ask(self, callee: int, mode: int, block: int) -> bool:
        """Remember the block of a call, to continue once the value passes the procedure; return whether the procedure is new."""
        is_new = callee not in self._asking
        self._asking[callee].append((mode, block))
        return is_new

    def is_held_up(self, callee: int, block: int) -> bool:
        """Whether the value must pass a procedure to get past a call, and is not known to."""
        return callee not in self._passed and self.index.guard[self.index.last[block]] < 0

    def let_pass(self, callee: int) -> list[tuple[int, int]]:
        """Mark a procedure as passed by the value; return the calls that continue now."""
        if callee in self._passed:
            return []
        self._passed.add(callee)
        return list(self._asking[callee])


class _Backward(_Walk):
    """Search for definitions. Queued blocks want the value on entry."""

    def answer(self, row: int, block: int) -> FoundRows:
        """See :func:`find_defs`."""
        index = self.index
        rows, is_open = scan_back(index, self.resource, row, index.first[block], index.condition[row])
        self.rows.update(rows)
        if is_open:
            self._enter(_TOP, block)
        return self.finish()

    def step(self, mode: int, block: int) -> None:
        """Visit a block whose value on entry is wanted."""
        if block in self.index.entry_of:
            self._reach_entry(mode, self.index.entry_of[block])
        for before in self.index.predecessors(block):
            self._leave(mode, before)

    def _reach_entry(self, mode: int, procedure: int) -> None:
        index = self.index
        if mode == procedure:
            for caller_mode, caller in self.let_pass(procedure):
                self._pass_block(caller_mode, caller)
        elif mode == _TOP:
            callers = index.callers_of.get(procedure, ())
            for caller in callers:
                self._pass_block(_TOP, caller)
            self.is_from_outside |= not callers or not index.is_local[procedure]

    def _leave(self, mode: int, block: int) -> None:
        """Want the value at the end of a block, after a call there."""
        index = self.index
        if not self.begin(mode, block):
            return
        if block in index.lost_calls:
            self.past_calls.add(index.last[block])
        callee = index.callee_of.get(block)
        if callee is not None and index.may_write(callee, self.resource):
            if self.ask(callee, mode, block):
                for returning in index.returns_of[callee]:
                    self._pass_block(callee, returning)
            if self.is_held_up(callee, block):
                return
        self._pass_block(mode, block)

    def _pass_block(self, mode: int, block: int) -> None:
        """Want the value at the end of a block, before a call there."""
        index = self.index
        rows, is_open = scan_back(index, self.resource, index.last[block] + 1, index.first[block])
        self.rows.update(rows)
        if is_open:
            self._enter(mode, block)

    def _enter(self, mode: int, block: int) -> None:
        self.put(mode, self.index.climb_back(block, self.resource))


class _Forward(_Walk):
    """Search for uses. Queued are blocks the value leaves, and (as complements) blocks it enters by a call."""

    def answer(self, row: int, block: int) -> FoundRows:
        """See :func:`find_uses`."""
        index = self.index
        rows, is_open = scan_on(index, self.resource, row, index.last[block], index.condition[row])
        self.rows.update(rows)
        if is_open:
            self._leave(_TOP, block)
        return self.finish()

    def step(self, mode: int, block: int) -> None:
        """Follow the value where control leaves a block."""
        index = self.index
        if block < 0:
            self._arrive(mode, ~block)
            return
        if block in index.returning:
            self._return(mode, index.procedure_of[block])
        for after in index.successors(block):
            self._arrive(mode, after)

    def _return(self, mode: int, procedure: int) -> None:
        index = self.index
        if mode != _TOP:
            for caller_mode, caller in self.let_pass(mode):
                self.put(caller_mode, caller)
            return
        callers = index.callers_of.get(procedure, ())
        for caller in callers:
            self.put(_TOP, caller)
        self.is_from_outside |= not callers or not index.is_local[procedure]

    def _arrive(self, mode: int, block: int) -> None:
        """Follow the value from the entry of a block."""
        index = self.index
        if not self.begin(mode, block):
            return
        rows, is_open = scan_on(index, self.resource, index.first[block] - 1, index.last[block])
        self.rows.update(rows)
        if is_open:
            self._leave(mode, block)

    def _leave(self, mode: int, block: int) -> None:
        """Follow the value from the end of a block, before a call there."""
        index = self.index
        if block in index.lost_calls:
            self.past_calls.add(index.last[block])
        callee = index.callee_of.get(block)
        if callee is not None and index.may_touch(callee, self.resource):
            if self.ask(callee, mode, block):
                self.put(callee, ~index.entries[callee])
            if self.is_held_up(callee, block):
                return
        self.put(mode, index.climb_on(block, self.resource))


# Resource numbers of general registers
_REGISTERS = range(ResourceKind.REGISTER << 8, (ResourceKind.REGISTER + 1) << 8)


def count_live_registers(code: KernelCode) -> npt.NDArray[np.int32]:
    """int32[n], general registers live at or written by each instruction; -1 without code.

    A guarded write may not happen, so that what was there before stays alive above it.

    Approximation: a function that is called counts its own registers only, and nothing is known to be read behind a return.
    """
    reads = _make_masks(code, is_read=True)
    writes = _make_masks(code, is_read=False)
    is_sure = (code.guard < 0).tolist()
    first, last, starts = code.first_row.tolist(), code.last_row.tolist(), code.successor_starts.tolist()
    successors = [code.successors[one:other].tolist() for one, other in pairwise(starts)]
    blocks = [_sum_block(reads, writes, is_sure, *rows) for rows in zip(first, last, strict=True)]

    def go_back(block: int, after: Sequence[int]) -> int:
        needed, overwritten = blocks[block]
        return needed | reduce(or_, after, 0) & ~overwritten

    live = solve_backwards(successors, go_back, 0)
    counts = np.full(len(reads), -1, dtype=np.int32)
    for start, end, following in zip(first, last, successors, strict=True):
        alive = reduce(or_, (live[block] for block in following), 0)
        for row in range(end, start - 1, -1):
            counts[row] = (alive | reads[row] | writes[row]).bit_count()
            alive = (alive & ~writes[row] if is_sure[row] else alive) | reads[row]
    return counts


def _make_masks(code: KernelCode, *, is_read: bool) -> list[int]:
    """Bit masks of the general registers each instruction reads, or writes; 0 for instructions that never execute."""
    lists = (code.reads if is_read else code.writes).split()
    known: dict[tuple[int, ...], int] = {}
    masks: list[int] = []
    for numbers, is_idle in zip(lists, (code.guard_negated & (code.guard < 0)).tolist(), strict=True):
        mask = known.get(numbers)
        if mask is None:
            mask = known[numbers] = sum(1 << number for number in numbers if number in _REGISTERS)
        masks.append(0 if is_idle else mask)
    return masks


def _sum_block(
    reads: Sequence[int], writes: Sequence[int], is_sure: Sequence[bool], first: int, last: int
) -> tuple[int, int]:
    """Registers that a block reads from before it, and those it certainly overwrites."""
    needed = overwritten = 0
    for row in range(last, first - 1, -1):
        if is_sure[row]:
            overwritten |= writes[row]
            needed &= ~writes[row]
        needed |= reads[row]
    return needed, overwritten


# Who sets the scoreboard that an instruction waits for, and who waits for the one it sets, whether they were sampled or not.
#
# A scoreboard is a counter: a second setter does not take the place of the first, and whoever waits for it waits for both. A wait for the result
# of an instruction also releases the scoreboard of its operands, which must have been read by then.
#
# Ways go through the function the instruction is in; calls are stepped over.

MOST_STEPS = 8_000  # Instructions looked at for one answer, which takes milliseconds


class FoundPartners(Struct, frozen=True, kw_only=True):
    """Answer to a query about scoreboards."""

    rows: tuple[int, ...]  # ascending
    is_complete: bool  # False where :data:`MOST_STEPS` were too few


def list_awaited(kernel: KernelReport, row: int) -> tuple[int, ...]:
    """Scoreboards an instruction waits for, by its mask or (DEPBAR) operands, even if only for some of their setters."""
    if kernel.code is None:
        mask = int(kernel.instructions.wait_mask[row])
    else:
        traffic = _read_traffic(kernel, kernel.code)
        mask = traffic.masks[row] | traffic.partly.get(row, 0)
    return SCOREBOARDS_OF[mask]


def list_set(kernel: KernelReport, row: int) -> tuple[int, ...]:
    """Scoreboards an instruction sets: that of its result, then that of its operands."""
    columns = kernel.instructions
    barriers = (int(columns.write_barrier[row]), int(columns.read_barrier[row]))
    return tuple(dict.fromkeys(barrier for barrier in barriers if barrier < SCOREBOARD_COUNT))


def find_setters(kernel: KernelReport, row: int, scoreboard: int) -> FoundPartners:
    """Instructions that set a scoreboard which *row* waits for; none where the code is unknown."""
    code = kernel.code
    if code is None or code.block_of_row[row] < 0:
        return FoundPartners(rows=(), is_complete=True)
    index, traffic = index_code(code), _read_traffic(kernel, code)
    found: set[int] = set()
    block = index.block_of[row]
    waiting: list[tuple[int, int, int]] = [(block, row - 1, 0)]
    seen: set[tuple[int, int]] = set()
    steps = 0
    while waiting and steps < MOST_STEPS:
        block, last, released = waiting.pop()
        for at in range(last, index.first[block] - 1, -1):
            steps += 1
            if traffic.holds(at, scoreboard, released):
                found.add(at)
            released |= traffic.masks[at]
            if released >> scoreboard & 1:
                break
        else:
            for before in index.predecessors(block):
                if (before, released) not in seen:
                    seen.add((before, released))
                    waiting.append((before, index.last[before], released))
    return FoundPartners(rows=tuple(sorted(found)), is_complete=not waiting)


def find_waiters(kernel: KernelReport, row: int, scoreboard: int) -> FoundPartners:
    """Instructions that wait for the scoreboard set by *row*, the first on each path; none where the code is unknown."""
    code = kernel.code
    if code is None or code.block_of_row[row] < 0:
        return FoundPartners(rows=(), is_complete=True)
    index, traffic = index_code(code), _read_traffic(kernel, code)
    released_by = traffic.list_releasing(row, scoreboard)
    found: set[int] = set()
    waiting = [(index.block_of[row], row + 1)]
    seen: set[int] = set()
    steps = 0
    while waiting and steps < MOST_STEPS:
        block, first = waiting.pop()
        for at in range(first, index.last[block] + 1):
            steps += 1
            mask = traffic.masks[at]
            if (mask | traffic.partly.get(at, 0)) >> scoreboard & 1:
                found.add(at)
            if mask & released_by:
                break
        else:
            waiting.extend(_list_new(index, block, seen))
    return FoundPartners(rows=tuple(sorted(found)), is_complete=not waiting)


def _list_new(index: CodeIndex, block: int, seen: set[int]) -> Iterator[tuple[int, int]]:
    for after in index.successors(block):
        if after not in seen:
            seen.add(after)
            yield after, index.first[after]


class _Traffic(Struct, frozen=True, kw_only=True):
    """Scoreboard operations of every instruction, as lists."""

    writes: list[int]  # the scoreboard released when the result is written; 7 for none
    reads: list[int]  # the one released when the operands are read
    masks: list[int]  # scoreboards that are at zero once the instruction issues, as bits
    partly: dict[int, int]  # DEPBAR → scoreboards it waits for until few enough are left, as bits

    def holds(self, row: int, scoreboard: int, released: int) -> bool:
        """Whether an instruction can still hold a scoreboard after waits for the *released* ones."""
        if self.writes[row] == scoreboard:
            return True
        return self.reads[row] == scoreboard and not released >> self.writes[row] & 1

    def list_releasing(self, row: int, scoreboard: int) -> int:
        """Scoreboards (bits) any one of which suffices to wait for."""
        released_by = 1 << scoreboard
        if self.writes[row] != scoreboard and self.writes[row] != NO_BARRIER:
            released_by |= 1 << self.writes[row]
        return released_by


_known: WeakKeyDictionary[KernelCode, _Traffic] = WeakKeyDictionary()


def _read_traffic(kernel: KernelReport, code: KernelCode) -> _Traffic:
    found = _known.get(code)
    if found is None:
        columns = kernel.instructions
        masks: list[int] = columns.wait_mask.tolist()
        partly: dict[int, int] = {}
        barriers = find_dependency_barriers(code.mnemonics, code.mnemonic_index, columns.texts, code.guard)
        for row, barrier in barriers.items():
            partly[row] = barrier.every
            if not barrier.is_guarded:
                masks[row] |= barrier.mask
        found = _known[code] = _Traffic(
            writes=columns.write_barrier.tolist(), reads=columns.read_barrier.tolist(), masks=masks, partly=partly
        )
    return found
