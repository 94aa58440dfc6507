"""How far a loop should be unrolled, which of its waits that would hide, or why it would not."""

import math
from collections import Counter

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.diagnosis.advice.instruction_caches import find_instruction_caches
from gpa_lsp.diagnosis.advice.naming import describe_scope
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.prose import Sentence, count, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.reordering.slack import Hold, SlackFinder, TurnSlack
from gpa_lsp.kernel.dataflow.unrolling import TurnCount, Unrolling, count_turns, find_unrolling

# A loop that makes fewer is not worth unrolling. GPA does not look at them; its largest over-estimate (bfs, 1.59 for 1.12) is here.
_FEWEST_ITERATIONS = 4.0

_MOST_COPIES = 16
_LEAST_GAIN_RATIO = 0.001  # Of all samples: loops that lose less are not worth a line

# Why a wait is left out: a list that is walked, a running sum
RECURRENCE = say("each iteration needs the result of the one before")


class UnrollPlan(ColumnRecord, frozen=True, kw_only=True):
    """What unrolling a loop would do."""

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
    """What to do about a loop, or why nothing: one clause that begins with the loop."""
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
    """Why copies would not overlap; None when they would. A register that is reused is no obstacle: each copy has its own."""
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
