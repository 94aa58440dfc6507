"""Loops in which every iteration is stalled on its own results, while other iterations could be in flight."""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.sources.trees import find_language
from gpa_lsp.diagnosis.advice.code_size import find_instruction_caches
from gpa_lsp.diagnosis.advice.dependency_stalls import (
    EVERY_DEPENDENCE,
    VARIABLE_LATENCY,
    build_hiding_region,
    find_dependency_edges,
    find_loops,
    sum_active,
)
from gpa_lsp.diagnosis.advice.matches import HidingMatch, HidingRegion
from gpa_lsp.diagnosis.advice.model import Hotspot, SilenceStage
from gpa_lsp.diagnosis.advice.naming import describe_place, describe_scope, name_line
from gpa_lsp.diagnosis.advice.optimizers import Found, NotApplicable, Optimizer
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, count, join, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.reordering.slack import Hold, SlackFinder, TurnSlack
from gpa_lsp.kernel.dataflow.unrolling import TurnCount, Unrolling, count_turns, find_unrolling, find_wall

# How far a loop should be unrolled, which of its waits that would hide, or why it would not.

# A loop that makes fewer is not worth unrolling. GPA does not look at them; its largest over-estimate (bfs, 1.59 for 1.12) is here.
_FEWEST_ITERATIONS = 4.0

_MOST_COPIES = 16
_LEAST_GAIN_RATIO = 0.001  # Of all samples: loops that lose less are not worth a line

# Why a wait is left out: a list that is walked, a running sum
RECURRENCE = say("each iteration needs the result of the one before")


class UnrollPlan(ColumnRecord, frozen=True, kw_only=True):
    """Plan for unrolling a loop."""

    scope: int  # number of the loop
    unrolling: Unrolling  # as it is
    turns: TurnCount | None  # as counted; None when unknown
    copies: int  # as proposed
    kept: npt.NDArray[np.int64]  # indices of the edges that copies can hide
    orders: Counter[int]  # rows of stores that a copy's load would have to pass, with their samples
    dropped: Counter[Sentence]  # samples left out by reason


def plan_unrolling(
    subject: Subject, finder: SlackFinder, scope: int, edges: npt.NDArray[np.int64]
) -> UnrollPlan | Sentence:
    """Plan the unrolling of a loop, or say why it is none: one clause that begins with the loop."""
    where = describe_scope(subject, subject.scopes.scopes[scope])
    unrolling = find_unrolling(subject.rows, scope)
    turns = None if subject.blame is None else count_turns(subject.rows, scope, subject.blame.issue_counts.counts)
    iterations = math.inf if turns is None or turns.is_least else turns.mean * unrolling.copies
    if iterations < _FEWEST_ITERATIONS:
        few = number(iterations, "iteration")
        return say("{loop} runs {iterations} per entry, too few to overlap", loop=where, iterations=few)
    size = len(subject.scopes.rows_of(scope))
    room = find_instruction_caches(subject.kernel.architecture).first_bytes // INSTRUCTION_BYTES
    if size * 2 > room:
        return say(
            "{loop} has {size}: unrolled by 2 it would not fit the L0 instruction cache ({room})",
            loop=where,
            size=count(size, "instruction"),
            room=count(room),
        )
    kept, orders, dropped = _sort_out(subject, finder, edges)
    latency = float(subject.known_edge_latency_samples[kept].sum())
    is_small = latency < _LEAST_GAIN_RATIO * subject.total_samples
    if is_small and dropped:
        reason, samples = dropped.most_common(1)[0]
        lost = percent(samples / subject.total_samples)
        return say(
            "{loop} loses {lost} of the samples to dependences, but {reason}", loop=where, lost=lost, reason=reason
        )
    copies = choose_copies(
        present=unrolling.copies,
        iterations=iterations,
        latency_ratio=latency / max(float(subject.scopes.active_samples[scope]), 1.0),
        most=room * unrolling.copies / size,
    )
    if copies <= unrolling.copies:
        return say("{loop} is already unrolled by {factor}", loop=where, factor=count(unrolling.copies))
    if is_small:
        return say(
            "{loop} loses only {lost} of the samples to dependences that unrolling could hide",
            loop=where,
            lost=percent(latency / subject.total_samples),
        )
    wall = find_wall(subject.rows, scope, subject.edges.def_row[kept].tolist())
    if wall is not None:
        return say("{loop} has {wall} in it, before which no load of a later copy is issued", loop=where, wall=wall)
    return UnrollPlan(
        scope=scope, unrolling=unrolling, turns=turns, copies=copies, kept=kept, orders=orders, dropped=dropped
    )


def choose_copies(*, present: int, iterations: float, latency_ratio: float, most: float) -> int:
    """The unroll factor a loop should have: a power of two, as many as fill the latency with their own instructions.

    Returns at most ``present`` where more copies than there are would not help, or not fit. ``latency_ratio``: latency samples by samples in issuing
    cycles of the loop.

    >>> choose_copies(present=1, iterations=64, latency_ratio=5.0, most=80)
    8
    >>> choose_copies(present=1, iterations=6, latency_ratio=5.0, most=80)
    4
    >>> choose_copies(present=4, iterations=64, latency_ratio=1.0, most=6)
    4
    """
    wanted = max(present * (1.0 + latency_ratio), 2.0 * present)
    least = min(float(_MOST_COPIES), iterations, most)
    chosen = 1 << max(math.ceil(math.log2(wanted)), 1)
    while chosen > least and chosen > 1:
        chosen >>= 1
    return chosen


def _sort_out(
    subject: Subject, finder: SlackFinder, edges: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], Counter[int], Counter[Sentence]]:
    """Edges that copies can hide; stores their loads would have to pass; samples of the others by what forbids it."""
    every = subject.edges
    kept: list[int] = []
    orders: Counter[int] = Counter()
    dropped: Counter[Sentence] = Counter()
    turns: dict[tuple[int, int], TurnSlack | None] = {}
    for edge in edges.tolist():
        samples = round(float(every.all_samples[edge]))
        pair = int(every.def_row[edge]), int(every.use_row[edge])
        if pair not in turns:
            turns[pair] = finder.find_next_turn(*pair)
        turn = turns[pair]
        is_reuse = every.category[edge] == BlameCategory.WRITE_AFTER_READ
        obstacle = _find_obstacle(turn, is_reuse=is_reuse)
        if obstacle is not None:
            dropped[obstacle] += samples
            continue
        kept.append(edge)
        if turn is not None and turn.order_row is not None and not is_reuse:
            orders[turn.order_row] += samples
    return np.array(kept, dtype=np.int64), orders, dropped


def _find_obstacle(turn: TurnSlack | None, *, is_reuse: bool) -> Sentence | None:
    """Reason why copies would not overlap; None when they would. A reused register is no obstacle: each copy has its own."""
    if turn is None:
        return say("not every iteration executes these instructions")
    if turn.exit_row is not None:
        return say("a loaded value decides whether the loop goes on")
    if is_reuse:
        return None
    if turn.is_recurrent:
        return RECURRENCE
    if turn.order in (Hold.BARRIER, Hold.CALL):
        return say("a {hold} separates the iterations", hold=turn.order.value)
    return None


_UNROLL_OFF = ("#pragma unroll 1", "#pragma nounroll", "#pragma unroll(1)")
_LINES_ABOVE = 3
_TELLING_RATIO = 0.01  # Of all samples: from here on a chain from iteration to iteration is worth a word
_LEAST_LOSS_RATIO = 0.01  # Of the samples: why a loop that loses less is not unrolled is not worth telling


def match(subject: Subject) -> Found:
    """Several iterations in one pass through an unrolled body wait for their results together instead of one after the other.

    Matched: latency of memory and execution dependences whose def and use every turn of the same loop passes, unless each turn needs a result
    of the turn before (a list that is walked, a sum), a loaded value decides whether there is a next one, or a barrier, a call or a branch keeps
    the turns apart: such turns follow each other however many copies there are. N copies where there were n leave n waits of N, so M^L counts by
    1 − n/N. A is that of the loop and the loops in it (Equation 5).
    Silent where the loop makes fewer than four iterations or was unrolled already.

    Source: GPA section V-A, Table II (Loop Unrolling) and section VI-B on its over-estimates.
    """
    edges = find_dependency_edges(subject, EVERY_DEPENDENCE)
    every = subject.edges
    loops = find_loops(subject.scopes, every.def_row[edges])
    inside = (loops >= 0) & (loops == find_loops(subject.scopes, every.use_row[edges]))
    if not inside.any():
        return say("{stalled}, but none within one loop", stalled=count(len(edges), "stalled dependence"))
    edges, loops = edges[inside], loops[inside]
    finder = SlackFinder(subject.rows)
    plans: list[UnrollPlan] = []
    refusals: list[tuple[float, Sentence]] = []
    for scope in find_distinct(loops).tolist():
        planned = plan_unrolling(subject, finder, scope, edges[loops == scope])
        if isinstance(planned, UnrollPlan):
            plans.append(planned)
        else:
            refusals.append((float(subject.known_edge_latency_samples[edges[loops == scope]].sum()), planned))
    if not plans:
        lost, message = max(refusals)
        stage = SilenceStage.GATED if lost >= _LEAST_LOSS_RATIO * subject.total_samples else SilenceStage.NOT_MATCHED
        return NotApplicable(stage=stage, message=message)
    regions = tuple(_build_region(subject, plan) for plan in plans)
    return HidingMatch(
        regions=regions,
        active_samples=sum_active(subject.scopes, [plan.scope for plan in plans]),
        hint=say(
            "Unroll the loop, so that loads of several iterations are issued together and their latencies overlap."
        ),
        caveats=_list_caveats(subject, plans, regions),
        reasons=_list_reasons(plans),
        overlap=1.0,  # what a plan leaves waiting is not matched
    )


def _build_region(subject: Subject, plan: UnrollPlan) -> HidingRegion:
    part = 1.0 - plan.unrolling.copies / plan.copies
    region = build_hiding_region(subject, plan.scope, plan.kept, part=part)
    return replace(region, hint=_write_hint(subject, plan, region.hotspots))


def _write_hint(subject: Subject, plan: UnrollPlan, hotspots: Sequence[Hotspot]) -> Sentence:
    scope = subject.scopes.scopes[plan.scope]
    latency = sum(hotspot.known_latency_samples for hotspot in hotspots)
    active = max(float(subject.scopes.active_samples[plan.scope]), 1.0)
    sentences = [
        say(
            "Unroll {loop} by {copies}{directive}: {runs}{stalls}, most of them on {place}.",
            loop=describe_scope(subject, scope),
            copies=count(plan.copies),
            directive=_write_directive(subject, plan),
            runs=_describe_iterations(plan),
            stalls=_compare(latency / active),
            place=describe_place(subject, hotspots[0].def_row),
        )
    ]
    if plan.orders:
        row, _ = plan.orders.most_common(1)[0]
        restrict = say("declare the pointers {qualifier}", qualifier=Code(text="__restrict__"))
        sentences.append(
            say(
                "Iterations overlap only if {store} does not alias the loads: {how}, or issue all loads before the first store.",
                store=describe_place(subject, row),
                how=restrict if _is_cuda(scope.file) else "tell the compiler",
            )
        )
    return join(sentences)


def _compare(stalls_per_issue: float) -> Sentence:
    if stalls_per_issue < 1:
        return say("stalls are {share} of issues", share=percent(stalls_per_issue))
    return say("stalls outnumber issues {ratio} : 1", ratio=number(stalls_per_issue))


def _describe_iterations(plan: UnrollPlan) -> Sentence:
    """Say the present unroll factor and the trip count, as the beginning of a clause; empty where the loop has neither."""
    present = plan.unrolling.copies
    unrolled = say("already unrolled by {present}", present=count(present))
    if plan.turns is None:
        return say("{unrolled}; ", unrolled=unrolled) if present > 1 else NOTHING
    least = "at least " if plan.turns.is_least else "about " if not plan.turns.is_exact else ""
    trips = say("{least}{trips}", least=least, trips=count(plan.turns.mean, "trip"))
    return say("{facts}; ", facts=join((unrolled, trips) if present > 1 else (trips,), ", "))


def _write_directive(subject: Subject, plan: UnrollPlan) -> Sentence:
    """Write the unroll directive of the source's language, and what now forbids it where that is visible."""
    scope = subject.scopes.scopes[plan.scope]
    if scope.file is None or scope.line is None or not _is_cuda(scope.file):
        return NOTHING
    pragma = Code(text=f"#pragma unroll {plan.copies}")
    for line in range(scope.line, max(scope.line - _LINES_ABOVE, 0), -1):
        text = subject.source_line(scope.file, line)
        if text is not None and text.startswith(_UNROLL_OFF):
            place = name_line(scope.file, line)
            return say(" ({pragma} in place of {old} at {place})", pragma=pragma, old=Code(text=text), place=place)
    return say(" ({pragma})", pragma=pragma)


def _is_cuda(file: str | None) -> bool:
    language = find_language(file) if file is not None else None
    return language is not None and language.name == "cuda"


def _list_caveats(
    subject: Subject, plans: Sequence[UnrollPlan], regions: Sequence[HidingRegion]
) -> tuple[Sentence, ...]:
    best = max(range(len(plans)), key=lambda index: regions[index].latency_samples)
    caveats = [_write_registers(subject, plans[best], regions[best].hotspots)]
    if any(plan.orders for plan in plans):
        caveats.append(
            say("Whether the memory aliases cannot be seen here; a wrong promise that it does not gives wrong results.")
        )
    if sum(plan.dropped[RECURRENCE] for plan in plans) >= _TELLING_RATIO * subject.total_samples:
        caveats.append(
            say("A running sum stays a chain; partial sums break it, but change the order of float additions.")
        )
    caveats.append(say("The compiler adds a remainder loop for iterations that the unroll factor does not divide."))
    return tuple(caveats)


def _write_registers(subject: Subject, plan: UnrollPlan, hotspots: Sequence[Hotspot]) -> Sentence:
    """Say the cost of the unroll factor in registers, against those of a thread."""
    defs = {hotspot.def_row for hotspot in hotspots if hotspot.category in VARIABLE_LATENCY}
    each = sum(_count_results(subject, row) for row in defs)
    more = round(each * (plan.copies / plan.unrolling.copies - 1))
    architecture = subject.kernel.architecture
    limit = architecture.occupancy.max_registers_per_thread.value if architecture is not None else 255
    present = subject.launch.registers_per_thread if subject.launch is not None else None
    cost = say(
        "Unroll factor {copies} needs {more}",
        copies=count(plan.copies),
        more=say("about {more}", more=count(more, "more register")) if more else "more registers",
    )
    if present is None:
        return say("{cost}.", cost=cost)
    used = say("{cost} ({present} of {limit} in use now)", cost=cost, present=count(present), limit=count(limit))
    if present + more > limit:
        return say("{used} and would spill: choose a smaller one.", used=used)
    return say("{used}, which can lower occupancy.", used=used)


def _count_results(subject: Subject, row: int) -> int:
    instructions = subject.rows.function_of(row).instructions
    return 0 if instructions is None else len(instructions.writes.of(subject.rows.index_of(row)))


def _list_reasons(plans: Sequence[UnrollPlan]) -> tuple[Sentence, ...]:
    reasons = [say("not-issued samples of dependences within an iteration, of which unrolling by N leaves 1/N")]
    dropped: Counter[Sentence] = Counter()
    for plan in plans:
        dropped.update(plan.dropped)
    reasons += [
        say("{samples} left out: {reason}", samples=count(samples, "sample"), reason=reason)
        for reason, samples in dropped.most_common()
    ]
    if any(plan.turns is not None and not plan.turns.is_exact for plan in plans):
        reasons.append(say("iterations are estimated from issue samples"))
    return tuple(reasons)


OPTIMIZER = Optimizer(
    name="loop_unrolling",
    title="Unroll a loop",
    group="latency",
    is_compiled=True,
    needs_split=True,
    find=match,
)
