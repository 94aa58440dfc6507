"""Scoreboard traffic of a function: which instructions set the six scoreboards, and what each wait waits for.

A scoreboard is a counter. Setting it counts it up; it is counted down when the result is written (*write barrier*) or when the operands are
read (*read barrier*). So a second setter does not take the place of the first: what waits for the scoreboard waits for both. What a
pending setter is released by is its *release class*: the scoreboard it is behind and, for the read barrier of an instruction that also has a
write barrier, that one too, because an instruction whose result is there has read its operands.

Source: blame measured on real reports, barrier model; "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct, field

from gpa_lsp.code.binary.model import ControlCodes
from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.code.binary.sass import read_operands
from gpa_lsp.diagnosis.blame.view import FunctionView

SCOREBOARD_COUNT = 6
NO_LIMIT = 1 << 30  # No setter is so old

_CLASSES_PER_SCOREBOARD = SCOREBOARD_COUNT + 1
_DEPENDENCY_BARRIER = "DEPBAR"
_SCOREBOARD = re.compile(r"SB([0-5])\Z")
_COUNT = re.compile(r"0x[0-9a-f]+\Z")
_SCOREBOARD_LIST = re.compile(r"\{([0-5](?:,[0-5])*)\}\Z")


def number_release_class(scoreboard: int, also: int | None = None) -> int:
    """The number of a release class, below 42: behind ``scoreboard``, and released by a wait for ``also`` as well.

    >>> number_release_class(0), number_release_class(2, 5)
    (6, 19)
    """
    return scoreboard * _CLASSES_PER_SCOREBOARD + (SCOREBOARD_COUNT if also is None else also)


def find_scoreboard(release_class: int) -> int:
    """The scoreboard that the setters of a release class are behind.

    >>> find_scoreboard(number_release_class(2, 5))
    2
    """
    return release_class // _CLASSES_PER_SCOREBOARD


def _mask_classes(mask: int, *, with_also: bool) -> int:
    """The release classes behind the scoreboards of a wait mask, as bits; with those that it releases on the way."""
    found = 0
    for scoreboard in range(SCOREBOARD_COUNT):
        for also in range(_CLASSES_PER_SCOREBOARD):
            if mask >> scoreboard & 1 or (with_also and also < SCOREBOARD_COUNT and mask >> also & 1):
                found |= 1 << number_release_class(scoreboard, also)
    return found


# Wait mask → bits of the release classes whose setters it waits for
CLASSES_BEHIND = tuple(_mask_classes(mask, with_also=False) for mask in range(1 << SCOREBOARD_COUNT))

# Wait mask → bits of the release classes that nothing is pending in after the wait
CLASSES_RELEASED = tuple(_mask_classes(mask, with_also=True) for mask in range(1 << SCOREBOARD_COUNT))

# Wait mask → its scoreboards, ascending
SCOREBOARDS_OF = tuple(
    tuple(bit for bit in range(SCOREBOARD_COUNT) if mask >> bit & 1) for mask in range(1 << SCOREBOARD_COUNT)
)


def list_classes(bits: int) -> list[int]:
    """The numbers of the release classes in a set of bits, ascending.

    >>> list_classes(0b101000)
    [3, 5]
    """
    found = []
    while bits:
        lowest = bits & -bits
        found.append(lowest.bit_length() - 1)
        bits ^= lowest
    return found


class DependencyBarrier(NamedTuple):
    """Scoreboards that a DEPBAR waits for, besides its own wait mask."""

    mask: int  # scoreboards that must be at zero
    # of ``DEPBAR.LE SB0, 0x2``: a scoreboard, and how many of its newest setters may stay pending, behind which operations complete in order;
    # None without a count, or with the count 0 (then it is in the mask)
    partial: tuple[int, int] | None
    is_guarded: bool  # it may not wait at all

    @property
    def every(self) -> int:
        """All scoreboards that it waits for, if only for some of their setters."""
        return self.mask if self.partial is None else self.mask | 1 << self.partial[0]


class Setter(NamedTuple):
    """An instruction that sets a scoreboard."""

    row: int  # the instruction
    release_class: int  # see :func:`number_release_class`
    is_read: bool  # by its read barrier


class Barriers(Struct, frozen=True, kw_only=True):
    """The scoreboard traffic of a function."""

    rows: tuple[int, ...]  # instructions that set or wait for any scoreboard, ascending
    masks: dict[int, int]  # instruction → its wait mask, where it has one
    setters: dict[int, tuple[Setter, ...]]  # instruction → what it sets, where it sets any
    dependency_barriers: dict[int, DependencyBarrier]  # DEPBARs that wait for anything
    # per scoreboard, the largest count that a DEPBAR allows; beyond it all ages are alike. 0 where none does.
    oldest: tuple[int, ...]


def read_barriers(view: FunctionView) -> Barriers:
    """Collect what the instructions of a function do to scoreboards. A wait mask counts whether the guard holds or not."""
    control, code = view.control, view.instructions
    waiting = np.flatnonzero(control.wait_mask)
    setters = _find_setters(control)
    dependency_barriers = find_dependency_barriers(code.mnemonics, code.mnemonic_index, code.texts, code.guard)
    partial = [barrier.partial for barrier in dependency_barriers.values() if barrier.partial is not None]
    return Barriers(
        rows=tuple(sorted({*waiting.tolist(), *setters, *dependency_barriers})),
        masks=dict(zip(waiting.tolist(), control.wait_mask[waiting].tolist(), strict=True)),
        setters=setters,
        dependency_barriers=dependency_barriers,
        oldest=tuple(
            max((allowed for waited, allowed in partial if waited == scoreboard), default=0)
            for scoreboard in range(SCOREBOARD_COUNT)
        ),
    )


def _find_setters(control: ControlCodes) -> dict[int, tuple[Setter, ...]]:
    rows = np.flatnonzero((control.write_barrier < SCOREBOARD_COUNT) | (control.read_barrier < SCOREBOARD_COUNT))
    found: dict[int, tuple[Setter, ...]] = {}
    for row, write, read in zip(
        rows.tolist(), control.write_barrier[rows].tolist(), control.read_barrier[rows].tolist(), strict=True
    ):
        has_result = write < SCOREBOARD_COUNT
        setters = (Setter(row, number_release_class(write), is_read=False),) if has_result else ()
        if read < SCOREBOARD_COUNT:
            also = write if has_result and write != read else None
            setters = (*setters, Setter(row, number_release_class(read, also), is_read=True))
        found[row] = setters
    return found


def find_dependency_barriers(
    mnemonics: Sequence[str], index: npt.NDArray[np.int32], texts: Sequence[str], guard: npt.NDArray[np.int16]
) -> dict[int, DependencyBarrier]:
    """The DEPBARs of some code that wait for anything, by row; columns as of :class:`~gpa_lsp.code.binary.model.Instructions`."""
    wanted = [number for number, one in enumerate(mnemonics) if describe_mnemonic(one).name == _DEPENDENCY_BARRIER]
    found = {}
    for row in np.flatnonzero(np.isin(index, wanted)).tolist():
        mask, partial = parse_dependency_barrier(read_operands(texts[row]))
        if mask or partial is not None:
            found[row] = DependencyBarrier(mask, partial, is_guarded=bool(guard[row] >= 0))
    return found


def parse_dependency_barrier(operands: tuple[str, ...]) -> tuple[int, tuple[int, int] | None]:
    """The operands of a DEPBAR: ``SB0, 0x1``, ``SB0, 0x0, {2,1}`` or ``{5,4,3,2,1,0}``.

    Source: every operand bit of the encoding tried in nvdisasm 13.
    """
    mask, scoreboard, allowed = 0, None, 0
    for operand in operands:
        if found := _SCOREBOARD.match(operand):
            scoreboard = int(found[1])
        elif _COUNT.match(operand):
            allowed = int(operand, 16)
        elif found := _SCOREBOARD_LIST.match(operand):
            mask |= sum(1 << int(digit) for digit in found[1].split(","))
    if scoreboard is None:
        return mask, None
    if allowed == 0:
        return mask | 1 << scoreboard, None
    return mask, (scoreboard, allowed)


class Wait(NamedTuple):
    """One scoreboard that an instruction waits for."""

    row: int  # the instruction
    is_dependency_barrier: bool  # it is DEPBAR's own wait, which the next instruction suffers; else that of a wait mask
    setters: list[Setter]  # those in the same block, oldest first
    incoming: int  # bits of the release classes whose setters from before the block are waited for
    least_age: int  # they are, if at the block's start they were at least so old,
    age_limit: int  # and younger than this


class BlockScan(Struct):
    """One basic block's scoreboard traffic: what waits in it for what, what it lets through, and what it leaves pending.

    With a partial wait (DEPBAR with a count) it matters how old a setter is: its *age* is the number of later setters of its scoreboard on
    the path. Ages of setters from before the block are known only relative to its start, so a block says which ages it lets through.

    Approximation: a setter counts for the ages of older ones even if its guard did not hold.
    """

    most: int  # setters of one release class that a wait or ``left`` names, the newest ones
    released: int = 0  # bits of the release classes of which nothing gets through the block
    exposed: int = 0  # bits of the release classes that some wait that was asked for waits for from before the block
    # per scoreboard, setters in the block: what gets through is so much older
    passed: list[int] = field(default_factory=lambda: [0] * SCOREBOARD_COUNT)
    # per scoreboard, what gets through was younger than this at the block's start
    age_limit: list[int] = field(default_factory=lambda: [NO_LIMIT] * SCOREBOARD_COUNT)
    waits: list[Wait] = field(default_factory=list)  # the waits that were asked for
    # release class → its pending setters, oldest first, each behind its number among those of its scoreboard in the block
    pending: dict[int, list[tuple[int, Setter]]] = field(default_factory=dict)

    def carry(self, release_class: int, scoreboard: int, age: int, oldest: int) -> int | None:
        """The age at the block's end, at most ``oldest``, of a setter with this age at its start; None when it does not get through."""
        if self.released >> release_class & 1 or age >= self.age_limit[scoreboard]:
            return None
        return min(age + self.passed[scoreboard], oldest)

    def list_left(self) -> Iterator[tuple[int, list[tuple[Setter, int]]]]:
        """The release classes with setters pending at the block's end, each with its setters, oldest first, and their ages there."""
        for release_class, pending in self.pending.items():
            if pending:
                last = self.passed[find_scoreboard(release_class)] - 1
                yield release_class, [(setter, last - number) for number, setter in pending[-self.most :]]

    def _add(self, setter: Setter) -> None:
        scoreboard = find_scoreboard(setter.release_class)
        self.pending.setdefault(setter.release_class, []).append((self.passed[scoreboard], setter))
        self.passed[scoreboard] += 1

    def _record(self, row: int, wait: tuple[int, int], *, is_dependency_barrier: bool) -> None:
        scoreboard, allowed = wait
        behind = CLASSES_BEHIND[1 << scoreboard]
        passed = self.passed[scoreboard]
        found: list[tuple[int, Setter]] = []
        for release_class, pending in self.pending.items():
            if behind >> release_class & 1:
                newest = pending[-(self.most + allowed) :]
                found += [pair for pair in newest if passed - 1 - pair[0] >= allowed]
        setters = [setter for _, setter in sorted(found)[-self.most :]]
        incoming = behind & ~self.released
        self.exposed |= incoming
        self.waits.append(
            Wait(row, is_dependency_barrier, setters, incoming, allowed - passed, self.age_limit[scoreboard])
        )

    def _record_mask(self, row: int, mask: int, *, is_dependency_barrier: bool = False) -> None:
        for scoreboard in SCOREBOARDS_OF[mask]:
            self._record(row, (scoreboard, 0), is_dependency_barrier=is_dependency_barrier)

    def _release(self, mask: int) -> None:
        released = CLASSES_RELEASED[mask]
        self.released |= released
        for release_class in [one for one in self.pending if released >> one & 1]:
            del self.pending[release_class]

    def _pass_dependency_barrier(self, row: int, barrier: DependencyBarrier, *, is_wanted: bool) -> None:
        if is_wanted:
            self._record_mask(row, barrier.mask, is_dependency_barrier=True)
            if barrier.partial is not None:
                self._record(row, barrier.partial, is_dependency_barrier=True)
        if barrier.is_guarded:
            return
        self._release(barrier.mask)
        if barrier.partial is not None:
            scoreboard, allowed = barrier.partial
            passed = self.passed[scoreboard]
            self.age_limit[scoreboard] = min(self.age_limit[scoreboard], allowed - passed)
            for release_class, pending in self.pending.items():
                if CLASSES_BEHIND[1 << scoreboard] >> release_class & 1:
                    pending[:] = [pair for pair in pending[-allowed:] if passed - 1 - pair[0] < allowed]

    def scan(
        self, barriers: Barriers, rows: Iterable[int], wanted_masks: set[int], wanted_barriers: set[int]
    ) -> "BlockScan":
        """Go through a block once: those of the function's ``barriers.rows`` that lie in it."""
        for row in rows:
            mask = barriers.masks.get(row, 0)
            if mask:
                if row in wanted_masks:
                    self._record_mask(row, mask)
                self._release(mask)
            barrier = barriers.dependency_barriers.get(row)
            if barrier is not None:
                self._pass_dependency_barrier(row, barrier, is_wanted=row in wanted_barriers)
            for setter in barriers.setters.get(row, ()):
                self._add(setter)
        return self
