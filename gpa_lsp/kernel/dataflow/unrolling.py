"""Loops as the compiler left them: how many copies of the body one turn holds, and how many turns there are.

Copies are looked for in three ways, because a compiler weaves them into each other: every line's work occurs a multiple of so many times; the
counter advances by so many; accesses through one address lie at evenly spaced offsets, or the opcodes themselves repeat.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from math import gcd

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import MemorySpace, Opcode, Pipe
from gpa_lsp.kernel.dataflow.accesses import find_address
from gpa_lsp.kernel.dataflow.loop_counters import find_counter_step
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes

_ACCESSED = frozenset(
    {MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.SHARED, MemorySpace.TEXTURE, MemorySpace.SURFACE}
)
_WORK_PIPES = frozenset({Pipe.FP16, Pipe.FP64, Pipe.TENSOR, Pipe.XU})
_ARITHMETIC_PIPES = _WORK_PIPES | {Pipe.ALU, Pipe.FMA}
_FLOAT_OPCODES = frozenset({"FADD", "FMUL", "FFMA", "FADD2", "FMUL2", "FFMA2", "FADD32I", "FMUL32I", "FFMA32I"})

# Share of a body's work that must occur in multiples of the number of copies; the rest may have been hoisted, or be of one copy only
LEAST_REPEATED = 0.85

# The same for all arithmetic, which includes the counter itself and addresses that copies share
LEAST_ARITHMETIC = 0.75

_TELLING_COPIES = 8  # From so many copies of every line's work on, chance is no explanation

_MOST_COUNTS = 64  # Distinct counts whose divisors are tried

_GRAM = 4  # Opcodes in a row whose recurrence proposes a period

_PERIODS_TRIED = 4


class Evidence(Enum):
    """What tells that a body was copied."""

    NONE = "none"
    COUNTER = "counter"  # The counter advances by as many (or a multiple)
    OFFSETS = "offsets"  # Accesses through one address lie at that many evenly spaced offsets
    SEQUENCE = "sequence"  # The opcodes repeat that many times
    LINES = "lines"  # Only that every line's work occurs that often


class Unrolling(Struct, frozen=True, kw_only=True):
    """How a loop's body was copied."""

    copies: int  # iterations of the source's loop in one turn; 1 when it was not unrolled, or nothing tells
    evidence: Evidence  # what tells
    repeats: int  # how often every line's work occurs in one turn: ``copies``, times the iterations of inner loops that were unrolled whole
    # by how much the counter advances each turn; None when it is not a constant, or there is no counter
    counter_step: int | None
    instructions: int  # of the loop's own code, inner loops left out


def find_unrolling(kernel: KernelRows, scope: int) -> Unrolling:
    """How a loop's body was copied; inner loops are not looked into.

    Args:
        kernel: its rows.
        scope: number of a loop in :func:`~gpa_lsp.kernel.scopes.find_scopes`.
    """
    known = kernel.once(_find_known_loops)
    if scope not in known:
        known[scope] = _find_unrolling(kernel, scope)
    return known[scope]


def _find_known_loops(_kernel: KernelRows) -> dict[int, Unrolling]:
    return {}


def _find_unrolling(kernel: KernelRows, scope: int) -> Unrolling:
    rows = np.flatnonzero(find_scopes(kernel).innermost == scope).tolist()
    step = find_counter_step(kernel, scope)
    repeats = find_common_factor(_count_by_line(kernel, rows, is_work))
    if step:
        # A loop over integers alone has no work that stands out; with a counter its arithmetic tells enough.
        repeats = max(repeats, find_common_factor(_count_by_line(kernel, rows, _is_arithmetic), LEAST_ARITHMETIC))
        copies, evidence = gcd(repeats, step), Evidence.COUNTER
    else:
        copies, evidence = _confirm(kernel, rows, repeats)
    return Unrolling(
        copies=copies,
        evidence=evidence if copies > 1 else Evidence.NONE,
        repeats=repeats,
        counter_step=step,
        instructions=len(rows),
    )


def _confirm(kernel: KernelRows, rows: Sequence[int], copies: int) -> tuple[int, Evidence]:
    """The number of copies where no counter says it: what offsets or the sequence of opcodes bear out."""
    if copies == 1:
        return 1, Evidence.NONE
    spaced = gcd(copies, _count_even_offsets(kernel, rows))
    if spaced > 1:
        return spaced, Evidence.OFFSETS
    repeated = gcd(copies, find_repetition([kernel.mnemonic(row) for row in rows]).copies)
    if repeated > 1:
        return repeated, Evidence.SEQUENCE
    return (copies, Evidence.LINES) if copies >= _TELLING_COPIES else (1, Evidence.NONE)


def _count_by_line(kernel: KernelRows, rows: Sequence[int], is_counted: Callable[[Opcode], bool]) -> list[int]:
    """How often each line of some rows of one function has each opcode of a kind; one line where lines are not known."""
    if not rows:
        return []
    first = rows[0] - kernel.index_of(rows[0])
    lines = kernel.function_of(rows[0]).chain_index[np.array(rows) - first].tolist()
    opcodes = map(kernel.opcode, rows)
    counter = Counter((line, one.name) for line, one in zip(lines, opcodes, strict=True) if is_counted(one))
    return list(counter.values())


def _is_arithmetic(opcode: Opcode) -> bool:
    return opcode.access is None and opcode.pipe in _ARITHMETIC_PIPES


def is_work(opcode: Opcode) -> bool:
    """Whether an opcode is what a loop is for, and not how it is done: accesses and floating point, no addresses, counters and branches.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> is_work(describe_mnemonic("FFMA")), is_work(describe_mnemonic("IADD3")), is_work(describe_mnemonic("LDC"))
    (True, False, False)
    """
    if opcode.access is not None:
        return opcode.memory in _ACCESSED
    return opcode.pipe in _WORK_PIPES or opcode.name in _FLOAT_OPCODES


def find_common_factor(counts: Sequence[int], least: float = LEAST_REPEATED) -> int:
    """The largest number that divides the counts that make up at least a share ``least`` of their sum; 1 when there is no other.

    >>> find_common_factor([8, 4, 4]), find_common_factor([8, 4, 1]), find_common_factor([64, 64, 32, 3])
    (4, 4, 32)
    >>> find_common_factor([8, 8, 1, 1, 1]), find_common_factor([])
    (1, 1)
    """
    weight = Counter[int]()
    for count in counts:
        weight[count] += count
    total = sum(weight.values())
    if not total:
        return 1
    divisors = {
        divisor for count, _ in weight.most_common(_MOST_COUNTS) for divisor in list_divisors(count) if divisor > 1
    }
    for divisor in sorted(divisors, reverse=True):
        if sum(part for count, part in weight.items() if _is_multiple(count, divisor)) >= least * total:
            return divisor
    return 1


def _is_multiple(count: int, divisor: int) -> bool:
    """Whether a count is a multiple of a divisor, but for a copy in fifty that was simplified away."""
    return min(count % divisor, -count % divisor) <= count // 50 and count * 2 > divisor


def list_divisors(number: int) -> list[int]:
    """The divisors of a positive number, in no order.

    >>> sorted(list_divisors(12))
    [1, 2, 3, 4, 6, 12]
    """
    small = [one for one in range(1, int(number**0.5) + 1) if number % one == 0]
    return [*small, *(number // one for one in small if one * one != number)]


def _count_even_offsets(kernel: KernelRows, rows: Iterable[int]) -> int:
    """How many evenly spaced offsets accesses of one opcode use through one address; the most of any address, 1 when there is none."""
    offsets: dict[tuple[str, str], set[int]] = {}
    for row in rows:
        opcode = kernel.opcode(row)
        if opcode.access is None or opcode.memory not in _ACCESSED:
            continue
        address = find_address(kernel.texts[row])
        if address is not None:
            offsets.setdefault((kernel.mnemonic(row), address[0]), set()).add(address[1])
    return max((len(found) for found in offsets.values() if _is_even(sorted(found))), default=1)


def _is_even(offsets: Sequence[int]) -> bool:
    """Whether all neighbours are equally far apart."""
    return len(set(np.diff(offsets).tolist())) <= 1


class Repetition(Struct, frozen=True, kw_only=True):
    """A part of a sequence that repeats at once."""

    start: int  # where it begins
    period: int  # length of what repeats; 0 when nothing does
    copies: int  # how often it is there, whole ones; 1 when nothing repeats

    @property
    def length(self) -> int:
        """Of all copies."""
        return self.period * self.copies


def find_repetition(sequence: Sequence[str]) -> Repetition:
    """The longest stretch of a sequence that consists of equal parts of at least four elements.

    Time is linear: periods are proposed by the distances between equal runs of four, and only the most frequent distances are tried.

    >>> find_repetition("LLFF LLFF LLFF B".replace(" ", "")).copies
    3
    >>> find_repetition("ABCDEFGHIJ")
    Repetition(start=0, period=0, copies=1)
    """
    numbers = {element: number for number, element in enumerate(dict.fromkeys(sequence))}
    elements = np.array([numbers[element] for element in sequence], dtype=np.int64)
    best = Repetition(start=0, period=0, copies=1)
    for period in _propose_periods(elements):
        start, equal = _find_longest_run(elements[period:] == elements[:-period])
        copies = equal // period + 1
        if copies > 1 and copies * period > best.length:
            best = Repetition(start=start, period=period, copies=copies)
    return best


def _propose_periods(elements: npt.NDArray[np.int64]) -> list[int]:
    last: dict[tuple[int, ...], int] = {}
    distances = Counter[int]()
    listed = elements.tolist()
    for place in range(len(listed) - _GRAM + 1):
        gram = tuple(listed[place : place + _GRAM])
        if gram in last and place - last[gram] >= _GRAM:
            distances[place - last[gram]] += 1
        if gram not in last or place - last[gram] >= _GRAM:
            last[gram] = place
    return [distance for distance, _ in distances.most_common(_PERIODS_TRIED)]


def _find_longest_run(flags: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of true flags."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    if not len(edges):
        return 0, 0
    starts, ends = edges[::2], edges[1::2]
    longest = int(np.argmax(ends - starts))
    return int(starts[longest]), int(ends[longest] - starts[longest])
