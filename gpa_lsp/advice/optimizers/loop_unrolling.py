"""Loops in which every turn waits for its own results, while other turns could be under way."""

from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gpa_lsp.advice.blamed_stalls import build_hotspots
from gpa_lsp.advice.dependency_stalls import (
    EVERY_DEPENDENCE,
    VARIABLE_LATENCY,
    find_dependency_edges,
    find_loops,
    sum_active,
)
from gpa_lsp.advice.matches import HidingMatch, HidingRegion
from gpa_lsp.advice.model import Category, Hotspot, Silence, SilenceStage
from gpa_lsp.advice.optimizers import HidingOptimizer
from gpa_lsp.advice.source_words import describe_place, describe_scope
from gpa_lsp.advice.subject import Subject
from gpa_lsp.advice.unroll_plans import RECURRENCE, UnrollPlan, plan_unrolling
from gpa_lsp.dataflow.reordering.slack import SlackFinder
from gpa_lsp.sources.languages import find_language

_UNROLL_OFF = ("#pragma unroll 1", "#pragma nounroll", "#pragma unroll(1)")
_LINES_ABOVE = 3
_TELLING_RATIO = 0.01
"""Of all samples: from here on a chain from turn to turn is worth a word."""


class LoopUnrolling(HidingOptimizer):
    """Several copies of a loop's body in one turn wait for their results together instead of one after the other.

    Matched: latency of memory and execution dependences whose def and use every turn of the same loop passes, unless each turn needs a result
    of the turn before (a list that is walked, a sum), a loaded value decides whether there is a next one, or a barrier keeps the turns apart:
    such turns follow each other however many copies there are. N copies where there were n leave n waits of N, so M^L counts by 1 − n/N. A is
    that of the loop and the loops in it (Equation 5).
    Silent where the loop makes fewer than four iterations or was unrolled already.

    Source: GPA section V-A, Table II (Loop Unrolling) and section VI-B on its over-estimates.
    """

    name: ClassVar[str] = "loop_unrolling"
    title: ClassVar[str] = "Unroll a loop"
    category: ClassVar[Category] = Category.CODE
    group: ClassVar[str] = "latency"

    def match(self, subject: Subject) -> HidingMatch | Silence:
        """Find loops whose turns could overlap."""
        if not subject.rows.has_code:
            return self.silent(SilenceStage.NO_CODE, "the code could not be disassembled")
        edges = find_dependency_edges(subject, EVERY_DEPENDENCE)
        every = subject.blame.edges
        loops = find_loops(subject.scopes, every.def_row[edges])
        inside = (loops >= 0) & (loops == find_loops(subject.scopes, every.use_row[edges]))
        if not inside.any():
            message = f"none of the {len(edges)} dependences that warps wait for lies within one loop"
            return self.silent(SilenceStage.NOT_MATCHED, message)
        edges, loops = edges[inside], loops[inside]
        finder = SlackFinder(subject.rows)
        plans: list[UnrollPlan] = []
        refusals: list[tuple[float, str]] = []
        for scope in np.unique(loops).tolist():
            planned = plan_unrolling(subject, finder, scope, edges[loops == scope])
            if isinstance(planned, UnrollPlan):
                plans.append(planned)
            else:
                refusals.append((float(subject.known_edge_latency_samples[edges[loops == scope]].sum()), planned))
        if not plans:
            _, message = max(refusals)
            return self.silent(SilenceStage.GATED, message)
        regions = tuple(_build_region(subject, plan) for plan in plans)
        return HidingMatch(
            regions=regions,
            active_samples=sum_active(subject.scopes, [plan.scope for plan in plans]),
            hint="Let one turn work on several iterations: their loads are issued together and their latencies pass at the same time.",
            caveats=_list_caveats(subject, plans, regions),
            reasons=_list_reasons(plans),
        )


def _build_region(subject: Subject, plan: UnrollPlan) -> HidingRegion:
    edges = subject.blame.edges
    hotspots = build_hotspots(subject, plan.kept, np.ones(len(plan.kept)))
    waits_left = plan.unrolling.copies / plan.copies
    return HidingRegion(
        scope=subject.scopes.scopes[plan.scope],
        samples=float(edges.all_samples[plan.kept].sum()),
        latency_samples=float(subject.known_edge_latency_samples[plan.kept].sum()) * (1.0 - waits_left),
        active_samples=float(subject.scopes.active_samples[plan.scope]),
        hotspots=hotspots,
        hint=_write_hint(subject, plan, hotspots),
    )


def _write_hint(subject: Subject, plan: UnrollPlan, hotspots: Sequence[Hotspot]) -> str:
    scope = subject.scopes.scopes[plan.scope]
    where = describe_scope(subject, scope)
    latency = sum(hotspot.known_latency_samples for hotspot in hotspots)
    active = max(float(subject.scopes.active_samples[plan.scope]), 1.0)
    sentences = [
        f"Unroll {where} by {plan.copies}{_write_directive(subject, plan)}: {_describe_turns(plan)}, and waits "
        f"{latency / active:.1f} times as long as it issues, most of it for {describe_place(subject, hotspots[0].def_row)}."
    ]
    if plan.orders:
        row, _ = plan.orders.most_common(1)[0]
        how = "say so with `__restrict__`" if _is_cuda(scope.file) else "tell the compiler so"
        sentences.append(
            f"The copies overlap only if {describe_place(subject, row)} cannot change what is loaded: {how}, or load for all copies before the "
            f"first store."
        )
    return " ".join(sentences)


def _describe_turns(plan: UnrollPlan) -> str:
    one = f"a turn holds {plan.unrolling.copies} iterations" if plan.unrolling.copies > 1 else "a turn is one iteration"
    if plan.turns is None:
        return one
    least = "at least " if plan.turns.is_least else "about " if not plan.turns.is_exact else ""
    return f"it makes {least}{plan.turns.mean:,.0f} turns each time it is entered, {one}"


def _write_directive(subject: Subject, plan: UnrollPlan) -> str:
    """How the source's language says it; what now forbids it, where that is to be seen."""
    scope = subject.scopes.scopes[plan.scope]
    if scope.file is None or scope.line is None or not _is_cuda(scope.file):
        return ""
    for line in range(scope.line, max(scope.line - _LINES_ABOVE, 0), -1):
        text = subject.source_line(scope.file, line)
        if text is not None and text.startswith(_UNROLL_OFF):
            return f", with `#pragma unroll {plan.copies}` in place of `{text}` in line {line}"
    return f" (`#pragma unroll {plan.copies}` before it)"


def _is_cuda(file: str | None) -> bool:
    language = find_language(file) if file is not None else None
    return language is not None and language.name == "cuda"


def _list_caveats(subject: Subject, plans: Sequence[UnrollPlan], regions: Sequence[HidingRegion]) -> tuple[str, ...]:
    best = max(range(len(plans)), key=lambda index: regions[index].latency_samples)
    caveats = [_write_registers(subject, plans[best], regions[best].hotspots)]
    if any(plan.orders for plan in plans):
        caveats.append(
            "Whether the memory may overlap cannot be seen here; telling the compiler that it does not when it does gives wrong results."
        )
    if sum(plan.dropped[RECURRENCE] for plan in plans) >= _TELLING_RATIO * subject.total_samples:
        caveats.append(
            "A sum that every iteration adds to stays a chain; several partial sums break it, and change the order in which floats are added."
        )
    caveats.append(
        "A loop whose number of iterations is no multiple of the copies needs the rest done apart; the compiler adds that."
    )
    return tuple(caveats)


def _write_registers(subject: Subject, plan: UnrollPlan, hotspots: Sequence[Hotspot]) -> str:
    """What the copies cost in registers, against what a thread has."""
    defs = {hotspot.def_row for hotspot in hotspots if hotspot.category in VARIABLE_LATENCY}
    each = sum(_count_results(subject, row) for row in defs)
    more = round(each * (plan.copies / plan.unrolling.copies - 1))
    architecture = subject.kernel.architecture
    limit = architecture.occupancy.max_registers_per_thread.value if architecture is not None else 255
    present = subject.launch.registers_per_thread if subject.launch is not None else None
    cost = f"{plan.copies} copies keep {f'about {more} more' if more else 'more'} registers alive"
    if present is None:
        return f"{cost}."
    if present + more > limit:
        return f"{cost}; with the present {present} that exceeds the {limit} a thread can have, and would spill: take fewer copies."
    return f"{cost}, on top of {present} of {limit}; fewer warps may fit on a multiprocessor."


def _count_results(subject: Subject, row: int) -> int:
    instructions = subject.rows.function_of(row).instructions
    return 0 if instructions is None else len(instructions.writes.of(subject.rows.index_of(row)))


def _list_reasons(plans: Sequence[UnrollPlan]) -> tuple[str, ...]:
    reasons = ["latency of dependences within one turn; of N copies' waits one is left"]
    dropped: Counter[str] = Counter()
    for plan in plans:
        dropped.update(plan.dropped)
    reasons += [f"left out: {samples:,} samples, because {reason}" for reason, samples in dropped.most_common()]
    if any(plan.turns is not None and not plan.turns.is_exact for plan in plans):
        reasons.append("turns are estimated from issue samples")
    return tuple(reasons)


OPTIMIZER = LoopUnrolling()
