"""Slack: instructions that could stand between a def and its use, and so run during the def's latency.

GPA lets every active sample of a scope fill a latency. Most of them cannot: the def needs them, they need the def, or a barrier or a store
that may alias keeps the order. The rest is counted here, once for one pass through the code (:meth:`SlackFinder.find`) and once for loops whose
def is issued an iteration ahead (:meth:`SlackFinder.find_next_turn`).

Source: GPA section V-B (Equations 4 and 5) is what this bounds; section VI-B names the over-estimate (barriers between def and use).
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt

from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.reordering.placement import WINDOW_STEPS, Placement, Track, find_placements
from gpa_lsp.kernel.model import KernelRows


class Hold(Enum):
    """Obstacle that keeps a def from being issued still earlier."""

    OPERAND = "operand"  # An instruction that computes one of its operands
    STORE = "store"  # A store that may write what it reads
    BARRIER = "barrier"
    CALL = "call"
    BRANCH = "branch"  # A way out: the code behind it may not be executed
    START = "start"  # Only the start of the block, or of the loop's iteration


class Slack(ColumnRecord, frozen=True, kw_only=True):
    """Instructions that could stand between a def and its use in one pass, and do not yet."""

    def_track: Track  # the track the def is on
    above: npt.NDArray[np.int64]  # int64[a], its steps before the def that the def could pass
    use_track: Track  # the track the use is on
    below: npt.NDArray[np.int64]  # int64[b], its steps after the use that the use could let pass
    active_samples: float  # samples in issuing cycles of all of them
    instructions: int  # their number
    earliest_row: int | None  # row before which the def could be issued; None when it is as early as it can be
    hold: Hold  # obstacle for the def alone (together with the instructions of its operands it may move further)
    hold_row: int | None  # row of the obstacle; None for START


class TurnSlack(ColumnRecord, frozen=True, kw_only=True):
    """Instructions that could run during the latency of a def issued one iteration ahead, beyond those between def and use already."""

    track: Track  # the loop's track
    steps: npt.NDArray[np.int64]  # int64[k], its steps
    active_samples: float  # samples in issuing cycles of all of them
    instructions: int  # their number
    is_recurrent: bool  # each iteration's def needs the def or the use of the one before, through registers (a linked list, a sum)
    needs_use: bool  # each iteration's def must wait for the use of the one before, through registers or memory
    # STORE, BARRIER or CALL after the use that the def must stay behind, where no register makes it wait; None otherwise
    order: Hold | None
    order_row: int | None  # that store, barrier or call; None where ``order`` is
    # a way out of the loop that a loaded value decides: issuing the next iteration's def before it is speculative; None where there is none
    exit_row: int | None
    hold: Hold  # obstacle for the next iteration's def; START when there is none in the iteration
    hold_row: int | None  # row of the obstacle; None for START


class SlackFinder:
    """Finds the slack of pairs of one kernel, in time proportional to the code looked at, and to the window for each pair.

    Args:
    kernel: its rows.
    waits: (def row, use row) of results that warps stalled on. An instruction that needs one of them is not ready before that stall is over,
    so it cannot fill an earlier one.
    """

    def __init__(self, kernel: KernelRows, waits: Iterable[tuple[int, int]] = ()) -> None:
        self._row_count = len(kernel)
        self._placements = find_placements(kernel)
        self._waits: dict[int, list[tuple[int, int]]] = {}
        self._ready: dict[int, npt.NDArray[np.int64]] = {}
        for def_row, use_row in waits:
            source, target = self._placements.find(def_row), self._placements.find(use_row)
            if source is not None and target is not None:
                first = source.step if source.track is target.track else target.step
                self._waits.setdefault(id(target.track), []).append((first, target.step))

    def _keep_ready(self, use: Placement, steps: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The steps that need no result that is waited for at the use or later."""
        waits = self._waits.get(id(use.track))
        if waits is None:
            return steps
        if id(use.track) not in self._ready:
            self._ready[id(use.track)] = _find_ready(use.track, waits)
        return steps[self._ready[id(use.track)][steps] < use.step]

    def find(self, def_row: int, use_row: int) -> Slack | None:
        """The slack of a pair in one pass through the code; None without a disassembly."""
        source, target = self._placements.find(def_row), self._placements.find(use_row)
        if source is None or target is None:
            return None
        cut = find_cut(source.track, source.step, -1)
        above = _list_passed(source, cut)
        if target.track is not source.track:
            below = _list_let_by(target, _list_readers(source, target))
        elif target.step > source.step:
            below = _list_let_by(target, [source.step])
        else:
            # The use is that of the next turn; what stands before it or behind the def is between them already.
            above = above[above > target.step]
            below = _list_let_by(target, [])
            below = np.setdiff1d(below[below < source.step], above, assume_unique=True)
        below = self._keep_ready(target, below)
        hold, holder = find_hold(source.track, source.step, -1, cut)
        return Slack(
            def_track=source.track,
            above=above,
            use_track=target.track,
            below=below,
            active_samples=float(source.track.active_samples[above].sum() + target.track.active_samples[below].sum()),
            instructions=int(source.track.instructions[above].sum() + target.track.instructions[below].sum()),
            earliest_row=source.track.row_of(int(above[0])) if len(above) else None,
            hold=hold,
            hold_row=None if holder is None else _find_holder_row(source.track, holder, hold),
        )

    def find_next_turn(self, def_row: int, use_row: int) -> TurnSlack | None:
        """The slack of a pair when the def is issued one iteration ahead; None unless every iteration of one innermost loop passes both."""
        source, target = self._placements.find(def_row), self._placements.find(use_row)
        if source is None or target is None or source.track is not target.track or not source.track.course.is_loop:
            return None
        track, first = source.track, source.step
        length = len(track.course)
        following = first + length
        use = target.step if target.step > first else target.step + length
        cut = find_cut(track, following, first, is_turn_ahead=True)
        first_open = max(cut, use, following - WINDOW_STEPS - 1) + 1
        steps = track.dependences.list_independent_before(following, first_open) % length
        hold, holder = find_hold(track, following, first, cut)
        by_data = track.dependences.depends_by_data
        is_recurrent = by_data(following, first) or by_data(following, use)
        needs_use = track.dependences.depends(following, use)
        order = None if is_recurrent else find_order(track, following, use, cut, needs_use=needs_use)
        return TurnSlack(
            track=track,
            steps=np.sort(steps),
            active_samples=float(track.active_samples[steps].sum()),
            instructions=int(track.instructions[steps].sum()),
            is_recurrent=is_recurrent,
            needs_use=needs_use,
            order=None if order is None else name_wall(track, order),
            order_row=None if order is None else track.store_row_of(order),
            exit_row=None if track.guessed_exit is None else track.row_of(track.guessed_exit),
            hold=hold,
            hold_row=None if holder is None else _find_holder_row(track, holder, hold),
        )

    def cover(self, slacks: Iterable[Slack | TurnSlack]) -> npt.NDArray[np.bool_]:
        """bool[n] over all rows, the instructions that at least one of some slacks holds."""
        marks: dict[int, tuple[Track, npt.NDArray[np.bool_]]] = {}

        def add(track: Track, steps: npt.NDArray[np.int64]) -> None:
            if id(track) not in marks:
                marks[id(track)] = (track, np.zeros(len(track.course), dtype=np.bool_))
            marks[id(track)][1][steps] = True

        for slack in slacks:
            if isinstance(slack, TurnSlack):
                add(slack.track, slack.steps)
            else:
                add(slack.def_track, slack.above)
                add(slack.use_track, slack.below)
        covered = np.zeros(self._row_count, dtype=np.bool_)
        for track, marked in marks.values():
            covered[track.rows_of(np.flatnonzero(marked))] = True
        return covered


def _list_passed(place: Placement, cut: int) -> npt.NDArray[np.int64]:
    """int64[k], the movable steps after ``cut`` that a def does not depend on, ascending."""
    free = place.track.dependences.list_independent_before(place.step, cut + 1)[::-1]
    return free[place.track.is_movable[free]]


def _list_let_by(place: Placement, others: Sequence[int]) -> npt.NDArray[np.int64]:
    """int64[k], the movable steps after a use, up to the next barrier, call or way out, that depend neither on it nor on ``others``."""
    track, first = place.track, place.step + 1
    end = min(len(track.course), first + WINDOW_STEPS)
    for places in (track.course.ways_out, track.course.orders):
        number = bisect_left(places, first)
        end = min(end, places[number]) if number < len(places) else end
    free = track.dependences.list_independent_after(place.step, end, others)
    free = free[track.is_movable[free]]
    later = [other for other in others if other > place.step]
    return free[~np.isin(free, later)] if later else free


def _find_ready(track: Track, waits: Iterable[tuple[int, int]]) -> npt.NDArray[np.int64]:
    """int64[m], the last step at which a result that a step needs is waited for; -1 for none."""
    length = len(track.course)
    result_at = [-1] * length
    for first, use in waits:
        # The use of the next turn's def comes before it: its value is there.
        result_at[first] = max(result_at[first], use if use >= first else -1)
        result_at[use] = max(result_at[use], use)
    ready: list[int] = []
    after: list[int] = []
    for step in range(length):
        needed = (*track.dependences.sources[step], *track.dependences.ordered_after[step])
        ready.append(max((after[other] for other in needed), default=-1))
        after.append(max(ready[step], result_at[step]))
    return np.maximum(
        np.array(ready, dtype=np.int64), [step if result_at[step] == step else -1 for step in range(length)]
    )


def _list_readers(source: Placement, target: Placement) -> list[int]:
    """Steps after the use, on its track, that read a result of a def on another track."""
    waiting = set(source.track.course.steps[source.step].writes)
    found = []
    farthest = min(len(target.track.course), target.step + WINDOW_STEPS)
    for place in range(target.step + 1, farthest):
        step = target.track.course.steps[place]
        if not waiting:
            break
        if not waiting.isdisjoint(step.reads):
            found.append(place)
        if not step.is_partial:
            waiting.difference_update(step.writes)
    return found


def _find_holder_row(track: Track, step: int, hold: Hold) -> int:
    return track.row_of(step) if hold is Hold.OPERAND else track.store_row_of(step)


def find_cut(track: Track, step: int, floor: int, *, is_turn_ahead: bool = False) -> int:
    """The last step before ``step`` that it cannot pass, even with the instructions of its operands; ``floor`` where there is none.

    Barriers and fences stop the accesses they order; calls stop everything. So do ways out of the code, unless the def is issued an iteration
    ahead, which is always speculative.
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
    """The ``places`` between two steps, last first; steps of a second iteration are ``length`` farther on."""
    for turn in (length, 0):
        for number in range(bisect_left(places, before - turn) - 1, -1, -1):
            if places[number] + turn <= after:
                return
            yield places[number] + turn


def find_hold(track: Track, step: int, floor: int, cut: int) -> tuple[Hold, int | None]:
    """The last obstacle of a step after ``floor``, and its step: a direct dependence, or the cut."""
    by_register = max((source for source in track.dependences.sources[step] if source > floor), default=-1)
    by_memory = max((source for source in track.dependences.ordered_after[step] if source > floor), default=-1)
    latest, steps = max(by_register, by_memory), track.course.steps
    if cut > latest and cut > floor and (_is_wall(track, step, cut) or steps[cut % len(steps)].may_leave):
        return name_wall(track, cut), cut
    if latest < 0:
        return Hold.START, None
    return (name_wall(track, by_memory), by_memory) if by_memory > by_register else (Hold.OPERAND, by_register)


def find_order(track: Track, step: int, use: int, cut: int, *, needs_use: bool) -> int | None:
    """The wall or the store after a use that keeps the next iteration's def behind it."""
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
    """Whether the cut is a call or a barrier that a step cannot pass, and not just the window's end."""
    found = track.course.steps[cut % len(track.course)]
    return found.is_call or (found.is_order and track.dependences.depends(step, cut))


def name_wall(track: Track, step: int) -> Hold:
    """Kind of obstacle that a step is."""
    found = track.course.steps[step % len(track.course)]
    if found.is_order:
        return Hold.BARRIER
    if found.is_call:
        return Hold.CALL
    return Hold.BRANCH if found.may_leave else Hold.STORE
