"""One basic block's scoreboard traffic: what waits in it for what, what it lets through, and what it leaves pending.

With a partial wait (DEPBAR with a count) it matters how old a setter is: its *age* is the number of later setters of its scoreboard on the
path. Ages of setters from before the block are known only relative to its start, so a block says which ages it lets through.
"""

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Struct, field

from gpa_lsp.diagnosis.blame.barriers import (
    CLASSES_BEHIND,
    CLASSES_RELEASED,
    NO_LIMIT,
    SCOREBOARD_COUNT,
    SCOREBOARDS_OF,
    Barriers,
    DependencyBarrier,
    PartialWait,
    Setter,
)


class Wait(NamedTuple):
    """One scoreboard that an instruction waits for."""

    row: int  # the instruction
    scoreboard: int  # which
    is_dependency_barrier: bool  # it is DEPBAR's own wait, which the next instruction suffers; else that of a wait mask
    setters: tuple[Setter, ...]  # those in the same block, oldest first
    incoming: int  # bits of the release classes whose setters from before the block are waited for
    least_age: int  # they are, if at the block's start they were at least so old,
    age_limit: int  # and younger than this


class BlockScan(Struct, frozen=True, kw_only=True):
    """What a block does to pending setters."""

    released: int  # bits of the release classes of which nothing gets through the block
    passed: tuple[int, ...]  # per scoreboard, setters in the block: what gets through is so much older
    age_limit: tuple[int, ...]  # per scoreboard, what gets through was younger than this at the block's start
    # release class → its setters that are pending at the block's end, oldest first, each with its age there
    left: dict[int, list[tuple[Setter, int]]]
    waits: list[Wait]  # the waits that were asked for
    exposed: int  # bits of the release classes that some of those waits wait for from before the block

    def carry(self, release_class: int, scoreboard: int, age: int, oldest: int) -> int | None:
        """The age at the block's end, at most ``oldest``, of a setter with this age at its start; None when it does not get through."""
        if self.released >> release_class & 1 or age >= self.age_limit[scoreboard]:
            return None
        return min(age + self.passed[scoreboard], oldest)


def scan_block(
    barriers: Barriers, rows: Iterable[int], wanted_masks: set[int], wanted_barriers: set[int], most: int
) -> BlockScan:
    """Go through a block once.

    Args:
        rows: those of its ``rows`` that lie in the block.
        most: setters of one release class that a wait or ``left`` names, the newest ones.

    Approximation: a setter counts for the ages of older ones even if its guard did not hold.
    """
    walk = _Walk(most=most)
    for row in rows:
        mask = barriers.masks.get(row, 0)
        if mask:
            if row in wanted_masks:
                walk.record_mask(row, mask)
            walk.release(mask)
        barrier = barriers.dependency_barriers.get(row)
        if barrier is not None:
            walk.pass_dependency_barrier(row, barrier, is_wanted=row in wanted_barriers)
        for setter in barriers.setters.get(row, ()):
            walk.add(setter)
    return walk.finish()


class _Walk(Struct):
    """A block up to some instruction; pending setters stand beside their number among those of their scoreboard in the block."""

    most: int
    released: int = 0
    passed: list[int] = field(default_factory=lambda: [0] * SCOREBOARD_COUNT)
    age_limit: list[int] = field(default_factory=lambda: [NO_LIMIT] * SCOREBOARD_COUNT)
    pending: dict[int, list[tuple[int, Setter]]] = field(default_factory=dict)
    waits: list[Wait] = field(default_factory=list)
    exposed: int = 0

    def add(self, setter: Setter) -> None:
        scoreboard = setter.scoreboard
        self.pending.setdefault(setter.release_class, []).append((self.passed[scoreboard], setter))
        self.passed[scoreboard] += 1

    def record_mask(self, row: int, mask: int, *, is_dependency_barrier: bool = False) -> None:
        for scoreboard in SCOREBOARDS_OF[mask]:
            self.record(row, PartialWait(scoreboard, 0), is_dependency_barrier=is_dependency_barrier)

    def record(self, row: int, wait: PartialWait, *, is_dependency_barrier: bool) -> None:
        scoreboard, allowed = wait
        behind = CLASSES_BEHIND[1 << scoreboard]
        passed, limit = self.passed[scoreboard], self.age_limit[scoreboard]
        found: list[tuple[int, Setter]] = []
        for release_class, pending in self.pending.items():
            if behind >> release_class & 1:
                newest = pending[-(self.most + allowed) :]
                found += [pair for pair in newest if passed - 1 - pair[0] >= allowed]
        found.sort()
        incoming = behind & ~self.released
        self.exposed |= incoming
        self.waits.append(
            Wait(
                row=row,
                scoreboard=scoreboard,
                is_dependency_barrier=is_dependency_barrier,
                setters=tuple(setter for _, setter in found[-self.most :]),
                incoming=incoming,
                least_age=allowed - passed,
                age_limit=limit,
            )
        )

    def release(self, mask: int) -> None:
        released = CLASSES_RELEASED[mask]
        self.released |= released
        for release_class in [one for one in self.pending if released >> one & 1]:
            del self.pending[release_class]

    def pass_dependency_barrier(self, row: int, barrier: DependencyBarrier, *, is_wanted: bool) -> None:
        if is_wanted:
            self.record_mask(row, barrier.mask, is_dependency_barrier=True)
            if barrier.partial is not None:
                self.record(row, barrier.partial, is_dependency_barrier=True)
        if barrier.is_guarded:
            return
        self.release(barrier.mask)
        if barrier.partial is not None:
            self.release_older(barrier.partial)

    def release_older(self, wait: PartialWait) -> None:
        scoreboard, allowed = wait
        passed = self.passed[scoreboard]
        self.age_limit[scoreboard] = min(self.age_limit[scoreboard], allowed - passed)
        behind = CLASSES_BEHIND[1 << scoreboard]
        for release_class, pending in self.pending.items():
            if behind >> release_class & 1:
                pending[:] = [pair for pair in pending[-allowed:] if passed - 1 - pair[0] < allowed]

    def finish(self) -> BlockScan:
        left = {}
        for release_class, pending in self.pending.items():
            if pending:
                last = self.passed[pending[0][1].scoreboard] - 1
                left[release_class] = [(setter, last - number) for number, setter in pending[-self.most :]]
        return BlockScan(
            released=self.released,
            passed=tuple(self.passed),
            age_limit=tuple(self.age_limit),
            left=left,
            waits=self.waits,
            exposed=self.exposed,
        )
