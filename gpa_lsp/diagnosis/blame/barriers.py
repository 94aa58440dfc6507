"""What the instructions of a function do to the six scoreboards: set them, wait for them, wait for all but the newest.

A scoreboard is a counter. Setting it counts it up; it is counted down when the result is written (*write barrier*) or when the operands are
read (*read barrier*). So a second setter does not take the place of the first: whoever waits for the scoreboard waits for both. What a
pending setter is released by is its *release class*: the scoreboard it is behind and, for the read barrier of an instruction that also has a
write barrier, that one too, because an instruction whose result is there has read its operands.

Source: blame measured on real reports, barrier model; "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025).
"""

import re
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.sass import instruction_at
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


class PartialWait(NamedTuple):
    """A DEPBAR that lets some stay pending: ``DEPBAR.LE SB0, 0x2``."""

    scoreboard: int  # which
    allowed: int  # how many of its newest setters may stay pending; the operations behind it complete in order


class DependencyBarrier(Struct, frozen=True, kw_only=True):
    """What a DEPBAR waits for, beside its own wait mask."""

    mask: int  # scoreboards that must be at zero
    partial: PartialWait | None  # None without a count, or with the count 0 (then it is in the mask)
    is_guarded: bool  # it may not wait at all


class Setter(NamedTuple):
    """An instruction that sets a scoreboard."""

    row: int  # the instruction
    release_class: int  # see :func:`number_release_class`
    is_read: bool  # by its read barrier

    @property
    def scoreboard(self) -> int:
        """Which scoreboard it is behind."""
        return find_scoreboard(self.release_class)


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
    control = view.control
    waiting = np.flatnonzero(control.wait_mask)
    setting = np.flatnonzero((control.write_barrier < SCOREBOARD_COUNT) | (control.read_barrier < SCOREBOARD_COUNT))
    writes, reads = control.write_barrier[setting].tolist(), control.read_barrier[setting].tolist()
    setters = {
        row: _list_setters(row, write, read) for row, write, read in zip(setting.tolist(), writes, reads, strict=True)
    }
    dependency_barriers = _find_dependency_barriers(view)
    partial = [barrier.partial for barrier in dependency_barriers.values() if barrier.partial is not None]
    return Barriers(
        rows=tuple(sorted({*waiting.tolist(), *setting.tolist(), *map(int, dependency_barriers)})),
        masks=dict(zip(waiting.tolist(), control.wait_mask[waiting].tolist(), strict=True)),
        setters=setters,
        dependency_barriers=dependency_barriers,
        oldest=tuple(
            max((wait.allowed for wait in partial if wait.scoreboard == scoreboard), default=0)
            for scoreboard in range(SCOREBOARD_COUNT)
        ),
    )


def _list_setters(row: int, write: int, read: int) -> tuple[Setter, ...]:
    found = []
    if write < SCOREBOARD_COUNT:
        found.append(Setter(row, number_release_class(write), is_read=False))
    if read < SCOREBOARD_COUNT:
        also = write if write < SCOREBOARD_COUNT and write != read else None
        found.append(Setter(row, number_release_class(read, also), is_read=True))
    return tuple(found)


def _find_dependency_barriers(view: FunctionView) -> dict[int, DependencyBarrier]:
    wanted = [index for index, opcode in enumerate(view.opcodes) if opcode.name == _DEPENDENCY_BARRIER]
    found = {}
    for row in np.flatnonzero(np.isin(view.instructions.mnemonic_index, wanted)).tolist():
        mask, partial = parse_dependency_barrier(instruction_at(view.instructions, row).operands)
        if mask or partial is not None:
            is_guarded = bool(view.instructions.guard[row] >= 0)
            found[row] = DependencyBarrier(mask=mask, partial=partial, is_guarded=is_guarded)
    return found


def parse_dependency_barrier(operands: tuple[str, ...]) -> tuple[int, PartialWait | None]:
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
    return mask, PartialWait(scoreboard, allowed)
