"""What Starlight would suggest: its Table 1 with line share, speedup and new rate, to be set beside our own advice."""

from collections.abc import Sequence

from gpa_lsp.analyses.answers import Answer, Bar, Finding, Missing, Movement, Weight
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.analyses.questions import Analysis
from gpa_lsp.analyses.starlight.counting import LineCounts, count_lines
from gpa_lsp.analyses.starlight.decision import Decision, decide
from gpa_lsp.analyses.starlight.estimates import LineEstimate, estimate_lines
from gpa_lsp.analyses.starlight.suggestions import Bottleneck, list_rows, list_suggestions
from gpa_lsp.analyses.starlight.tables import build_tables, list_halvings
from gpa_lsp.analyses.starlight.words import say_place, say_rate

MOST_FINDINGS = 5
"""Lines told in sentences."""

LABEL = "Starlight's estimate, not ours: nothing bounds it by what can hide a stall, and its lines are those that wait, not those that cause it"
_NAME = "starlight"
_TITLE = "What Starlight would suggest"


def answer_starlight(facts: KernelFacts) -> Answer:
    """Starlight's decision tree, suggestions and estimates for one kernel."""
    lines, decision = count_lines(facts), decide(facts)
    if not len(lines) and decision.is_memory_bound is None:
        summary = "Unknown: there are neither samples nor a roofline of this kernel."
        missing = (_lack_samples(), *decision.missing)
        return Answer(analysis=_NAME, title=_TITLE, summary=summary, missing=missing, is_known=False)
    estimates = estimate_lines(lines, decision.position)
    missing_samples = () if len(lines) else (_lack_samples(),)
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(decision, estimates, has_samples=len(lines) > 0),
        findings=(
            _tell_verdict(decision),
            *_tell_halvings(decision),
            *_tell_checks(decision),
            *(_tell_line(one) for one in estimates[:MOST_FINDINGS]),
        ),
        bars=_draw_parts(lines),
        tables=build_tables(lines, estimates, decision),
        missing=(*missing_samples, *decision.missing),
        movements=_list_movements(decision, estimates),
    )


def _lack_samples() -> Missing:
    return lack("stalls by line", section="SourceCounters")


def _summarise(decision: Decision, estimates: Sequence[LineEstimate], *, has_samples: bool) -> str:
    side = {True: "memory-bound", False: "compute-bound", None: "of unknown bound"}[decision.is_memory_bound]
    said = f"By Starlight's table the kernel is {side}, and "
    if not has_samples:
        return f"{said}there are no samples to find lines by. {LABEL}."
    if not estimates:
        return f"{said}no stall of a line is worth a change. {LABEL}."
    best = estimates[0]
    return (
        f"{said}most is to be gained at {say_place(best.line)}: {best.speedup:.2f}× without its stalls of "
        f"{best.row.title.lower()}. {LABEL}."
    )


def _tell_verdict(decision: Decision) -> Finding:
    return Finding(text=f"By Starlight's rule: {decision.verdict}.")


def _tell_halvings(decision: Decision) -> list[Finding]:
    """The row of low intensity, which the tree turns to where the kernel is memory-bound."""
    if not decision.is_memory_bound:
        return []
    # A kernel far below its roof gains nothing from a higher one, whatever the table says.
    weight = Weight.PLAIN if decision.is_far else Weight.HIGH
    return [
        Finding(text=f"{suggestion.title}: {outcome.words}.", weight=weight, remedy=suggestion.title)
        for suggestion, outcome in list_halvings(decision.position)
    ]


def _tell_checks(decision: Decision) -> list[Finding]:
    ratios = {result.check.title: result.ratio for result in decision.results}
    return [
        Finding(
            text=f"{check.title[0].upper()}{check.title[1:]} is {100 * (ratios[check.title] or 0.0):.0f} %.",
            weight=Weight.HIGH,
            remedy=check.remedy,
        )
        for check in decision.poor
    ]


def _tell_line(one: LineEstimate) -> Finding:
    place, title = say_place(one.line), one.row.title.lower()
    text = (
        f"{place} takes {100 * one.share_ratio:.1f} % of the run; without its {one.removed:,} stalls of {title} "
        f"Starlight expects {one.speedup:.2f}×"
    )
    if one.outcome is not None:
        rate = say_rate(one.outcome.uncapped_ops_per_s, one.outcome.movement.kind)
        text += f", {rate}: {one.outcome.words}"
    options = [suggestion.title for suggestion in list_suggestions() if suggestion.bottleneck is one.row.bottleneck]
    return Finding(text=f"{text}.", remedy="; or ".join(options), share_ratio=one.share_ratio)


def _draw_parts(lines: LineCounts) -> tuple[Bar, ...]:
    total = lines.total
    counts = [(row.title, lines.count(row.bottleneck)) for row in list_rows()]
    counts = [(title, count) for title, count in counts if count]
    return tuple(
        Bar(label=title, ratio=count / total, words=f"{count:,} samples")
        for title, count in sorted(counts, key=lambda pair: -pair[1])
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


ANALYSIS = Analysis(name=_NAME, order=110, answer=answer_starlight)
