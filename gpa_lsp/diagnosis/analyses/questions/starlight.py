"""What Starlight would suggest: its Table 1 with line share, speedup and new rate, to be set beside our own advice."""

from collections.abc import Sequence

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, Missing, Movement, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.starlight.decision import OCCUPANCY, Check, Decision, decide
from gpa_lsp.diagnosis.analyses.starlight.movement import LineEstimate, estimate_lines, make_rate
from gpa_lsp.diagnosis.analyses.starlight.suggestions import (
    Bottleneck,
    LineCounts,
    count_lines,
    list_rows,
    list_suggestions,
)
from gpa_lsp.diagnosis.analyses.starlight.tables import build_tables, list_halvings
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, factor, join, percent, say

MOST_FINDINGS = 5  # Lines told in sentences

LABEL = "Starlight's estimate, not ours: nothing bounds it by what can hide a stall, and its lines are the stalled ones, not the causes"


def answer_starlight(facts: KernelFacts) -> Answer:
    """Starlight's decision tree, suggestions and estimates for one kernel."""
    lines, decision = count_lines(facts), decide(facts)
    if not len(lines) and decision.is_memory_bound is None:
        summary = say("Unknown: there are neither samples nor a roofline of this kernel.")
        missing = (_lack_samples(), *decision.missing)
        return Answer(summary=summary, missing=missing, is_known=False)
    estimates = estimate_lines(lines, decision.position)
    missing_samples = () if len(lines) else (_lack_samples(),)
    return Answer(
        summary=_summarise(decision, estimates, has_samples=len(lines) > 0),
        findings=(
            _tell_verdict(decision, find_limiter(facts)),
            *_tell_halvings(decision),
            *_tell_checks(decision, find_limiter(facts)),
            *(_tell_line(one) for one in estimates[:MOST_FINDINGS]),
        ),
        bars=_draw_parts(lines),
        tables=build_tables(lines, estimates, decision),
        missing=(*missing_samples, *decision.missing),
        movements=_list_movements(decision, estimates),
    )


def _lack_samples() -> Missing:
    return lack("stalls by line", section="SourceCounters")


def _summarise(decision: Decision, estimates: Sequence[LineEstimate], *, has_samples: bool) -> Sentence:
    side = {True: "on the memory side", False: "on the compute side", None: "on an unknown side"}[
        decision.is_memory_bound
    ]
    if not has_samples:
        found = say("there are no samples to find lines by")
    elif not estimates:
        found = say("no stall of a line is worth a change")
    else:
        best = estimates[0]
        found = say(
            "{place} gains most: {speedup} without its stalls of {reason}",
            place=best.line.place,
            speedup=factor(best.speedup),
            reason=best.row.title.lower(),
        )
    return say("By Starlight's table the kernel is {side}, and {found}. {label}.", side=side, found=found, label=LABEL)


def _tell_verdict(decision: Decision, limiter: Limiter) -> Finding:
    """The side that Starlight's rule puts the kernel on, and what limits it."""
    return Finding(text=join([say("By Starlight's rule: {verdict}.", verdict=decision.verdict), limiter.verdict]))


def _tell_halvings(decision: Decision) -> list[Finding]:
    """The row of low intensity, which the tree turns to where the kernel is memory-bound."""
    if not decision.is_memory_bound:
        return []
    # A kernel far below its ceiling gains nothing from a higher one, whatever the table says.
    weight = Weight.PLAIN if decision.is_far else Weight.HIGH
    return [
        Finding(
            text=say("{title}: the point moves {outcome}.", title=suggestion.title, outcome=outcome.words),
            weight=weight,
        )
        for suggestion, outcome in list_halvings(decision.position)
    ]


def _tell_checks(decision: Decision, limiter: Limiter) -> list[Finding]:
    """Checks that are poor, with the remedies that the limiter leaves open."""
    ratios = {result.check.title: result.ratio for result in decision.results}
    return [
        Finding(
            text=capitalize(say("{title}: {ratio}.", title=check.title, ratio=percent(ratios[check.title]))),
            weight=Weight.HIGH,
            remedy=check.remedy if _is_open(check, limiter) else NOTHING,
        )
        for check in decision.poor
    ]


def _is_open(check: Check, limiter: Limiter) -> bool:
    """Whether the remedy can help: more blocks where no unit surely is the limiter, more warps where latency is."""
    if check.row is not Bottleneck.RESOURCES or limiter.kind in (LimiterKind.LATENCY, LimiterKind.UNKNOWN):
        return True
    return check.title != OCCUPANCY and limiter.most_speedup is None


def _tell_line(one: LineEstimate) -> Finding:
    outcome = NOTHING
    if one.outcome is not None:
        rate = make_rate(one.outcome.uncapped_ops_per_s, one.outcome.movement.kind)
        words = one.outcome.words
        outcome = (
            say(": {movement}", movement=words)
            if str(rate) in words
            else say(", {rate}: {movement}", rate=rate, movement=words)
        )
    text = say(
        "Starlight gives {place} {share} of the run and expects {speedup} without its {stalls} of {reason}{outcome}.",
        place=one.line.place,
        share=percent(one.share_ratio),
        stalls=count(one.removed, "stall"),
        reason=one.row.title.lower(),
        speedup=factor(one.speedup),
        outcome=outcome,
    )
    options = [suggestion.title for suggestion in list_suggestions() if suggestion.bottleneck is one.row.bottleneck]
    return Finding(text=text, remedy=join(options, "; or "), share_ratio=one.share_ratio)


def _draw_parts(lines: LineCounts) -> tuple[Bar, ...]:
    total = lines.total
    counts = [(row.title, lines.count(row.bottleneck)) for row in list_rows()]
    return tuple(
        Bar(label=title, ratio=samples / total, words=say("{samples}", samples=count(samples, "sample")))
        for title, samples in sorted(counts, key=lambda pair: -pair[1])
        if samples
    )


def _list_movements(decision: Decision, estimates: Sequence[LineEstimate]) -> tuple[Movement, ...]:
    """One arrow per row of Table 1: that of the line that gains most; and those of smaller values where the kernel is memory-bound."""
    arrows: list[Movement] = []
    seen: set[Bottleneck] = set()
    for one in estimates:
        if one.outcome is not None and one.row.bottleneck not in seen:
            seen.add(one.row.bottleneck)
            arrows.append(one.outcome.movement)
    if decision.is_memory_bound:
        arrows += [outcome.movement for _, outcome in list_halvings(decision.position)]
    return tuple(arrows)


ANALYSIS = Analysis(name="starlight", title="What Starlight would suggest", order=110, answer=answer_starlight)
