"""Who sets the scoreboard that an instruction waits for, and who waits for the one it sets, whether they were sampled or not.

A scoreboard is a counter: a second setter does not take the place of the first, and whoever waits for it waits for both. A wait for the result of
an instruction also releases the scoreboard of its operands, which must have been read by then.

Ways go through the function the instruction is in; calls are stepped over.
"""

from collections.abc import Iterator
from weakref import WeakKeyDictionary

from msgspec import Struct

from gpa_lsp.code.binary.model import NO_BARRIER
from gpa_lsp.diagnosis.blame.barriers import SCOREBOARD_COUNT, SCOREBOARDS_OF, find_dependency_barriers
from gpa_lsp.report.code_index import CodeIndex, index_code
from gpa_lsp.report.model import KernelCode, KernelReport

MOST_STEPS = 8_000  # Instructions looked at for one answer, which takes milliseconds


class FoundPartners(Struct, frozen=True, kw_only=True):
    """An answer."""

    rows: tuple[int, ...]  # ascending
    is_complete: bool  # False where :data:`MOST_STEPS` were too few


def list_awaited(kernel: KernelReport, row: int) -> tuple[int, ...]:
    """The scoreboards that an instruction waits for, by its mask or (DEPBAR) by its operands, if only for some of their setters."""
    if kernel.code is None:
        mask = int(kernel.instructions.wait_mask[row])
    else:
        traffic = _read_traffic(kernel, kernel.code)
        mask = traffic.masks[row] | traffic.partly.get(row, 0)
    return SCOREBOARDS_OF[mask]


def list_set(kernel: KernelReport, row: int) -> tuple[int, ...]:
    """The scoreboards that an instruction sets: that of its result, then that of its operands."""
    columns = kernel.instructions
    barriers = (int(columns.write_barrier[row]), int(columns.read_barrier[row]))
    return tuple(dict.fromkeys(barrier for barrier in barriers if barrier < SCOREBOARD_COUNT))


def find_setters(kernel: KernelReport, row: int, scoreboard: int) -> FoundPartners:
    """The instructions whose scoreboard one waits for; nothing where the code is not known."""
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
    """The instructions that wait for the scoreboard that one sets, the first on every way; nothing where the code is not known."""
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
    """What every instruction does to scoreboards, as lists."""

    writes: list[int]  # the scoreboard released when the result is written; 7 for none
    reads: list[int]  # the one released when the operands are read
    masks: list[int]  # scoreboards that are at zero once the instruction issues, as bits
    partly: dict[int, int]  # DEPBAR → scoreboards it waits for until few enough are left, as bits

    def holds(self, row: int, scoreboard: int, released: int) -> bool:
        """Whether an instruction can still hold a scoreboard behind waits for some others."""
        if self.writes[row] == scoreboard:
            return True
        return self.reads[row] == scoreboard and not released >> self.writes[row] & 1

    def list_releasing(self, row: int, scoreboard: int) -> int:
        """The scoreboards, as bits, for one of which to wait is enough."""
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
