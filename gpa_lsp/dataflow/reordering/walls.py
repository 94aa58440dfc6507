"""What a step of a course cannot pass: barriers, stores that may hit the same place, calls, ways out, and what makes its operands."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from enum import Enum

from gpa_lsp.dataflow.reordering.dependences import WINDOW_STEPS
from gpa_lsp.dataflow.reordering.placement import Track


class Hold(Enum):
    """What keeps a def from being issued still earlier."""

    OPERAND = "operand"
    """An instruction that makes one of its operands."""
    STORE = "store"
    """A store that may write what it reads."""
    BARRIER = "barrier"
    CALL = "call"
    BRANCH = "branch"
    """A way out: what follows may not happen."""
    START = "start"
    """Nothing that stands in the block, or in the loop's turn."""


def find_cut(track: Track, step: int, floor: int, *, is_turn_ahead: bool = False) -> int:
    """The last step before ``step`` that it cannot pass together with what makes its operands; ``floor`` where there is none.

    Barriers and fences stop what they order; calls stop everything. So do ways out of the code, unless a turn is to be anticipated, which
    always means to do something that may turn out not to be needed.
    """
    course = track.course
    lowest = max(floor, step - WINDOW_STEPS - 1)
    walls = course.calls if is_turn_ahead else course.ways_out
    cut = next(_walk_back(walls, step, lowest, len(course)), lowest)
    for passed in _walk_back(course.orders, step, cut, len(course)):
        if track.dependences.depends(step, passed):
            return passed
    return cut


def _walk_back(places: Sequence[int], before: int, after: int, length: int) -> Iterator[int]:
    """The ``places`` between two steps, last first; steps of a second turn are ``length`` farther on."""
    for turn in (length, 0):
        for number in range(bisect_left(places, before - turn) - 1, -1, -1):
            if places[number] + turn <= after:
                return
            yield places[number] + turn


def find_hold(track: Track, step: int, floor: int, cut: int) -> tuple[Hold, int | None]:
    """What a step depends on directly and comes last after ``floor``, or what cuts it off."""
    by_register = max((source for source in track.dependences.sources[step] if source > floor), default=-1)
    by_memory = max((source for source in track.dependences.ordered_after[step] if source > floor), default=-1)
    latest, steps = max(by_register, by_memory), track.course.steps
    if cut > latest and cut > floor and (_is_wall(track, step, cut) or steps[cut % len(steps)].may_leave):
        return name_wall(track, cut), cut
    if latest < 0:
        return Hold.START, None
    return (name_wall(track, by_memory), by_memory) if by_memory > by_register else (Hold.OPERAND, by_register)


def find_order(track: Track, step: int, use: int, cut: int, *, needs_use: bool) -> int | None:
    """The wall or the store after a use that keeps the next turn's def behind it."""
    if cut > use and _is_wall(track, step, cut):
        return cut
    if not needs_use:
        return None
    steps, length = track.course.steps, len(track.course)
    for other in range(step - 1, max(use, step - WINDOW_STEPS - 1), -1):
        if steps[other % length].stores and track.dependences.depends(step, other):
            return other
    return None


def _is_wall(track: Track, step: int, cut: int) -> bool:
    """Whether what was looked at ends at a call or a barrier that a step cannot pass, and not just at the window's end."""
    found = track.course.steps[cut % len(track.course)]
    return found.is_call or (found.is_order and track.dependences.depends(step, cut))


def name_wall(track: Track, step: int) -> Hold:
    """What kind of obstacle a step is."""
    found = track.course.steps[step % len(track.course)]
    if found.is_order:
        return Hold.BARRIER
    if found.is_call:
        return Hold.CALL
    return Hold.BRANCH if found.may_leave else Hold.STORE
