"""Loads issued too late: independent instructions could run while they are in flight."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.blamed_stalls import MOST_SENTENCES, build_hotspots
from gpa_lsp.diagnosis.advice.dependency_stalls import find_dependency_edges
from gpa_lsp.diagnosis.advice.matches import HidingMatch, HidingRegion
from gpa_lsp.diagnosis.advice.model import Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_line, describe_place, describe_scope, locate
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.advice.pricing import WAITING
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, join, say
from gpa_lsp.kernel.dataflow.accesses import is_volatile
from gpa_lsp.kernel.dataflow.reordering.slack import Hold, Slack, SlackFinder, TurnSlack
from gpa_lsp.kernel.scopes import ScopeTree

# Latencies the compiler cannot know when it orders straight code: a hit or a miss
_UNFORESEEN = frozenset({BlameCategory.MEMORY_GLOBAL, BlameCategory.MEMORY_TEXTURE, BlameCategory.MEMORY_CONSTANT})

# Results of shared memory come after a known time, so only what the compiler does not do, to load an iteration ahead, can gain
_CATEGORIES = _UNFORESEEN | {BlameCategory.EXECUTION_SHARED, BlameCategory.EXECUTION_CONSTANT}

_LEAST_GAIN_RATIO = 0.001  # Of all samples: places that could gain less are not worth a line

_OBSTACLES = {
    Hold.STORE: "a store that may write what they read",
    Hold.BARRIER: "a barrier",
    Hold.CALL: "a call",
}


class _Pair(Struct, frozen=True, kw_only=True):
    """A def, its use, and what could stand between them."""

    hotspot: Hotspot  # the pair
    slack: Slack | TurnSlack  # within one pass, or one turn ahead, whichever hides more
    hidden_samples: float  # latency that can fill


def match(subject: Subject) -> Found:
    """A load (or another result of variable latency) that could be issued earlier, or used later.

    Matched: latency of loads, as far as instructions that depend on neither side could really stand between
    (:mod:`gpa_lsp.kernel.dataflow.reordering.slack`): within the loop's turn or the block, or, where that hides less, by issuing the def of the next
    turn before this turn's value is used. A is what those instructions hold, each counted once; a load in flight needs no issuing cycles, so that
    they may wait, too (Little's law). Results whose latency is fixed, or known when the compiler orders straight code, count only where a turn
    ahead helps, which compilers do not do: no source changes the order within straight code.

    Source: GPA section V-A, Table II (Code Reordering); section VI-B, that barriers and dependences made it over-estimate.
    """
    edges = find_dependency_edges(subject, _CATEGORIES)
    addressed = [_has_address(subject, row) for row in subject.edges.def_row[edges].tolist()]
    edges = edges[np.array(addressed, dtype=np.bool_)]
    hotspots = build_hotspots(subject, edges)
    if not hotspots:
        return say("no warp is stalled on a load from a computed address")
    finder = SlackFinder(subject.rows, [(one.def_row, _use_row(one)) for one in hotspots])
    pairs: list[_Pair] = []
    obstacles: Counter[Hold | None] = Counter()
    for hotspot in hotspots:
        found = _find_room(subject, finder, hotspot)
        if isinstance(found, _Pair):
            pairs.append(found)
        else:
            obstacles[found] += 1
    if not pairs:
        return NotApplicable(SilenceStage.GATED, _describe_obstacles(obstacles))
    ahead = any(isinstance(pair.slack, TurnSlack) for pair in pairs)
    return HidingMatch(
        regions=_build_regions(subject, finder, pairs, hotspots),
        active_samples=_count_active(subject, finder, pairs),
        hint=_write_hint(pairs),
        caveats=_list_caveats(
            subject, is_ahead=ahead, is_within=not all(isinstance(one.slack, TurnSlack) for one in pairs)
        ),
        reasons=_list_reasons(pairs, obstacles),
        overlap=1.0,  # what still waits is not matched
    )


def _has_address(subject: Subject, row: int) -> bool:
    """Whether a def reads a general register; a parameter of the kernel is loaded from a fixed place, where the compiler likes."""
    instructions = subject.rows.function_of(row).instructions
    reads = () if instructions is None else instructions.reads.of(subject.rows.index_of(row))
    return any(resource >> 8 == ResourceKind.REGISTER for resource in reads)


def _use_row(hotspot: Hotspot) -> int:
    return hotspot.def_row if hotspot.use_row is None else hotspot.use_row


def _find_room(subject: Subject, finder: SlackFinder, hotspot: Hotspot) -> _Pair | Hold | None:
    """The pair with the slack that hides more; else what is in the way: None for the dependences themselves."""
    use_row = _use_row(hotspot)
    within = finder.find(hotspot.def_row, use_row)
    is_load = subject.rows.opcode(hotspot.def_row).access is Access.LOAD and not is_volatile(
        subject.rows.mnemonic(hotspot.def_row)
    )
    ahead = finder.find_next_turn(hotspot.def_row, use_row) if is_load else None
    candidates: list[Slack | TurnSlack] = []
    if within is not None and hotspot.category in _UNFORESEEN:
        candidates.append(within)
    if ahead is not None and not ahead.is_recurrent and not ahead.needs_use and ahead.order is None:
        candidates.append(ahead)
    # Of two that hide all of it the first: to issue earlier in the same turn is simpler.
    best = max(candidates, key=lambda slack: min(slack.active_samples, hotspot.known_latency_samples), default=None)
    hidden = 0.0 if best is None else min(hotspot.known_latency_samples, best.active_samples)
    if best is not None and hidden > 0:
        if hotspot.reason == WAITING:
            passed = finder.cover([best])
            passed[[hotspot.def_row, use_row]] = False
            hidden = min(hotspot.known_latency_samples, float(subject.rows.all_samples[passed].sum()))
        return _Pair(hotspot=hotspot, slack=best, hidden_samples=hidden)
    if ahead is not None and ahead.order is not None:
        return ahead.order
    return within.hold if within is not None and within.hold in _OBSTACLES else None


def _build_regions(
    subject: Subject, finder: SlackFinder, pairs: Sequence[_Pair], hotspots: Sequence[Hotspot]
) -> tuple[HidingRegion, ...]:
    """One region per innermost scope of the defs. Each wait fills from its own slack; A holds that of the regions inside as well."""
    by_scope: dict[int, list[_Pair]] = {}
    for pair in pairs:
        by_scope.setdefault(int(subject.scopes.innermost[pair.hotspot.def_row]), []).append(pair)
    active = (subject.rows.all_samples - subject.known_latency_samples).sum(axis=1)
    rows = {scope: np.flatnonzero(finder.cover(pair.slack for pair in members)) for scope, members in by_scope.items()}
    nested = _count_nested(subject.scopes, rows, active)
    regions = [
        HidingRegion(
            scope=subject.scopes.scopes[scope],
            samples=sum(pair.hotspot.samples for pair in members),
            latency_samples=min(
                sum(pair.hidden_samples for pair in members),
                _bound_hidden(subject, finder.cover(pair.slack for pair in members), members, hotspots),
            ),
            active_samples=nested[scope],
            hotspots=tuple(pair.hotspot for pair in members),
        )
        for scope, members in by_scope.items()
    ]
    least = min(_LEAST_GAIN_RATIO * subject.total_samples, max(region.latency_samples for region in regions))
    return tuple(
        replace(region, hint=_write_region_hint(subject, members))
        for region, members in zip(regions, by_scope.values(), strict=True)
        if region.latency_samples >= least
    )


def _bound_hidden(
    subject: Subject, covered: npt.NDArray[np.bool_], pairs: Sequence[_Pair], hotspots: Sequence[Hotspot]
) -> float:
    """Most samples that can go of some rows and of the waits of some pairs: the longest wait stays, or the time of everything else.

    Loads on their way at once have one wait together, however it is spread over their uses: none of them hides another.
    """
    moved = {pair.hotspot for pair in pairs}
    waits, end, others = [0.0], -1, float(subject.rows.all_samples[covered].sum())
    for spot in sorted(hotspots, key=lambda one: one.def_row):
        use_row, samples = _use_row(spot), spot.known_latency_samples
        if spot.def_row >= end:
            waits.append(0.0)
        waits[-1] += samples if covered[use_row] or spot in moved else 0.0
        others -= samples if covered[use_row] else 0.0
        end = max(end, use_row)
    return max(0.0, others) + sum(waits) - max(others, *waits)


def _count_nested(
    scopes: ScopeTree, rows: Mapping[int, npt.NDArray[np.int64]], active: npt.NDArray[np.int64]
) -> dict[int, float]:
    """Active samples of each scope's rows and of those of the scopes inside it, each row once.

    Sets are handed outwards, the smaller one added to the larger, so that deep nests stay cheap.
    """
    held: dict[int, set[int]] = {}
    counted: dict[int, float] = {}
    for scope in sorted(rows, reverse=True):
        own = set(rows[scope].tolist())
        inside = held.pop(scope, set())
        small, large = sorted((own, inside), key=len)
        large |= small
        counted[scope] = float(active[list(large)].sum())
        around = next((one for one in scopes.around(scope)[1:] if one in rows), None)
        if around is not None:
            small, large = sorted((held.get(around, set()), large), key=len)
            large |= small
            held[around] = large
    return counted


def _count_active(subject: Subject, finder: SlackFinder, pairs: Sequence[_Pair]) -> float:
    """Samples in issuing cycles of everything that could stand between, each instruction counted once."""
    covered = finder.cover(pair.slack for pair in pairs)
    return float((subject.rows.all_samples[covered] - subject.known_latency_samples[covered]).sum())


def _write_region_hint(subject: Subject, pairs: Sequence[_Pair]) -> Sentence:
    by_place: dict[Sentence, _Pair] = {}
    for pair in sorted(pairs, key=lambda pair: -pair.hidden_samples):
        by_place.setdefault(describe_place(subject, pair.hotspot.def_row), pair)
    moved: dict[Sentence, Sentence] = {}
    return join(
        _write_advance_hint(subject, pair.hotspot, pair.slack)
        if isinstance(pair.slack, TurnSlack)
        else _write_reorder_hint(subject, pair.hotspot, pair.slack, moved)
        for pair in list(by_place.values())[:MOST_SENTENCES]
    )


def _write_reorder_hint(subject: Subject, hotspot: Hotspot, slack: Slack, moved: dict[Sentence, Sentence]) -> Sentence:
    """Say how far a def could move up, or its use down, in one pass through the code."""
    load, use_row = describe_place(subject, hotspot.def_row), _use_row(hotspot)
    above = int(slack.def_track.instructions[slack.above].sum())
    below = int(slack.use_track.instructions[slack.below].sum())
    clauses = []
    if above and slack.earliest_row is not None:
        earlier = say(
            "{load} could issue {above} earlier{earliest}{hold}",
            load=capitalize(load),
            above=count(above, "instruction"),
            earliest=_describe_earliest(subject, hotspot, slack.earliest_row, moved),
            hold=_describe_hold(subject, hotspot, slack),
        )
        clauses.append(earlier)
    if below:
        first = describe_line(subject, slack.use_track.row_of(int(slack.below[0])))
        later = say(
            "{below}{first} could run before {value} is used {place}",
            below=count(below, "instruction"),
            first=say(" (from {line} on)", line=first) if first != describe_line(subject, use_row) else NOTHING,
            value="its value" if clauses else say("the value of {load}", load=load),
            place=locate(subject, use_row),
        )
        clauses.append(later)
    return say("{clauses}.", clauses=join(clauses, "; ")) if clauses else NOTHING


def _write_advance_hint(subject: Subject, hotspot: Hotspot, slack: TurnSlack) -> Sentence:
    """Loading an iteration ahead: what would run meanwhile."""
    distance = hotspot.distance_instructions
    return say(
        "Issue {load} one iteration ahead, into a second variable: its value is used{soon} {place}, and {others} of {loop} need neither.",
        load=describe_place(subject, hotspot.def_row),
        soon=say(" {distance} later", distance=count(distance, "instruction")) if distance is not None else NOTHING,
        place=locate(subject, _use_row(hotspot)),
        others=count(slack.instructions, "instruction"),
        loop=describe_scope(subject, subject.scopes.scopes[int(subject.scopes.innermost[hotspot.def_row])]),
    )


def goes_behind(moved: Mapping[Sentence, Sentence], line: Sentence, own: Sentence) -> bool:
    """Whether a line was said to go before another one, directly or by way of others.

    >>> moved = {say("a"): say("b"), say("b"): say("c")}
    >>> goes_behind(moved, say("a"), say("c")), goes_behind(moved, say("c"), say("a")), goes_behind(moved, say("d"), say("c"))
    (True, False, False)
    """
    seen = set()
    while line in moved and line not in seen:
        seen.add(line)
        line = moved[line]
        if line == own:
            return True
    return False


def _describe_earliest(
    subject: Subject, hotspot: Hotspot, earliest_row: int, moved: dict[Sentence, Sentence]
) -> Sentence:
    line, own = describe_line(subject, earliest_row), describe_line(subject, hotspot.def_row)
    if line == own:
        return NOTHING
    if goes_behind(moved, line, own):
        return say(", together with the load at {line}", line=line)
    moved.setdefault(own, line)
    return say(", before {line}", line=line)


def _describe_hold(subject: Subject, hotspot: Hotspot, slack: Slack) -> Sentence:
    """Say where a def's operands are ready, what has to move along, or what it must stay behind."""
    if slack.hold_row is None:
        return say(" (its operands are ready)")
    line = describe_line(subject, slack.hold_row)
    if slack.hold is not Hold.OPERAND:
        return say(
            " (it must stay behind the {hold} {place})", hold=slack.hold.value, place=locate(subject, slack.hold_row)
        )
    if line == describe_line(subject, hotspot.def_row):
        return NOTHING
    what = "address" if subject.rows.opcode(hotspot.def_row).access is Access.LOAD else "operand"
    is_named = slack.earliest_row is not None and line == describe_line(subject, slack.earliest_row)
    where = NOTHING if is_named else say(" {place}", place=locate(subject, slack.hold_row))
    return say(", along with the computation of its {what}{where}", what=what, where=where)


def _write_hint(pairs: Sequence[_Pair]) -> Sentence:
    best = max(pairs, key=lambda pair: pair.hidden_samples)
    if isinstance(best.slack, TurnSlack):
        return say(
            "Software-pipeline the loop: load what the next iteration needs before this iteration's value is used."
        )
    return say("Issue loads as soon as their addresses are known, and put independent work before their first use.")


def _list_caveats(subject: Subject, *, is_ahead: bool, is_within: bool) -> tuple[Sentence, ...]:
    caveats = []
    if is_ahead:
        caveats.append(say("The load past the last iteration needs a guard or must be harmless."))
    if is_within:
        caveats.append(say("The compiler may have kept this order to save registers: check the new SASS."))
    registers = subject.launch.registers_per_thread if subject.launch is not None else None
    present = say(" ({registers} per thread now)", registers=count(registers)) if registers is not None else NOTHING
    caveats.append(say("A value loaded earlier holds its register longer{present}.", present=present))
    return tuple(caveats)


def _list_reasons(pairs: Sequence[_Pair], obstacles: Counter[Hold | None]) -> tuple[Sentence, ...]:
    covered = say(
        "{pairs} of {total} covered by independent instructions, and counted as far as those reach",
        pairs=count(len(pairs)),
        total=count(len(pairs) + sum(obstacles.values()), "dependence"),
    )
    return (
        (covered, say("left out: {obstacles}", obstacles=_describe_obstacles(obstacles))) if obstacles else (covered,)
    )


def _describe_obstacles(obstacles: Counter[Hold | None]) -> Sentence:
    """Say how many loads are issued as early as possible, and why."""
    known = [
        say("{loads} must stay behind {what}", loads=count(obstacles[hold]), what=what)
        for hold, what in _OBSTACLES.items()
        if obstacles[hold]
    ]
    early = say("{loads} issued as early as operands allow", loads=count(sum(obstacles.values()), "load"))
    return join([early, *known], "; ")


OPTIMIZER = Optimizer(
    name="code_reordering",
    title="Issue loads earlier",
    group="latency",
    needs_split=True,
    find=match,
)
