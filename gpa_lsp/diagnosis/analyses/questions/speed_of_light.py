"""Which part of the GPU is busiest? The profiler's throughputs taken apart, with what can be recomputed beside what it stored."""

from collections.abc import Iterator, Sequence

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Column, Finding, Table, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import Confidence, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.roofline.instructions import count_launch
from gpa_lsp.diagnosis.analyses.roofline.throughput import Basis, Breakdown, read_breakdown
from gpa_lsp.diagnosis.analyses.roofline.throughput_names import MEMORY_THROUGHPUT, SM_THROUGHPUT
from gpa_lsp.diagnosis.analyses.roofline.totals import read_span
from gpa_lsp.diagnosis.analyses.roofline.unit_names import describe_unit
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, join, percent, say
from gpa_lsp.gpu.device.find import find_machine

_NAME = "speed_of_light"
_TITLE = "Busiest units"
_SECTION = "SpeedOfLight"

# A recomputed share further from the stored one than both of these is said to be
APART_RATIO, APART_POINTS = 0.02, 0.001

MOST_BARS = 5  # Bars of each throughput

# What follows from a verdict that is sure
_REMEDIES = {
    LimiterKind.UNIT: say("Only less work for that unit makes the kernel faster."),
    LimiterKind.LATENCY: say(
        "More independent instructions in each warp, or more warps; the stalls tell which latency."
    ),
    LimiterKind.PARALLELISM: say("More blocks, of even length, so that every SM has work to the end."),
}

_TITLES = {SM_THROUGHPUT: "Compute", MEMORY_THROUGHPUT: "Memory"}


def _answer(facts: KernelFacts) -> Answer:
    breakdowns = list(_read_breakdowns(facts))
    known = [one for one in breakdowns if one.busiest is not None]
    if not known:
        return Answer(
            analysis=_NAME,
            title=_TITLE,
            summary=_quote(find_limiter(facts)),
            missing=(
                lack(
                    "throughputs and their parts",
                    *(f"breakdown:{metric}.avg.pct_of_peak_sustained_elapsed" for metric in _TITLES),
                    section=_SECTION,
                    needs_all=True,
                ),
            ),
            is_known=False,
        )
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(known),
        findings=tuple(_list_findings(known, find_limiter(facts))),
        bars=tuple(bar for one in known for bar in _list_bars(one)),
        tables=tuple(_build_table(one) for one in known),
    )


def _quote(limiter: Limiter) -> Sentence:
    """What is known of the units where the profiler's throughputs are not."""
    if limiter.kind is LimiterKind.UNKNOWN:
        return say("Unknown: the profiler's throughputs were not collected.")
    return join([limiter.verdict, say("The profiler's throughputs were not collected.")])


def _read_breakdowns(facts: KernelFacts) -> Iterator[Breakdown]:
    launch = facts.longest
    span = None if launch is None else read_span(launch)
    # Not the roofline's machine: that may have measured roofs, and the stored shares are of the theoretical ones.
    machine = None if launch is None else find_machine(launch.device, facts.architecture, launch)
    if launch is None or span is None or machine is None:
        return
    launches = sum(one.failure is None for one in facts.kernel.launches)
    basis = Basis(
        launch=launch,
        span=span,
        machine=machine,
        architecture=facts.architecture,
        executions=count_launch(facts.kernel, launch, launches),
    )
    for metric in _TITLES:
        breakdown = read_breakdown(metric, basis)
        if breakdown is not None:
            yield breakdown


def _find_ratio(breakdown: Breakdown) -> float:
    """The throughput: as stored, else its busiest member."""
    if breakdown.stored_ratio is not None:
        return breakdown.stored_ratio
    return (breakdown.busiest.ratio or 0.0) if breakdown.busiest is not None else 0.0


def _summarise(breakdowns: Sequence[Breakdown]) -> Sentence:
    parts = [
        say(
            "{throughput} at {share} of its peak ({unit})",
            throughput=_TITLES[one.metric].lower(),
            share=percent(_find_ratio(one)),
            unit=describe_unit(one.busiest.metric) if one.busiest is not None else "unknown",
        )
        for one in breakdowns
    ]
    return say("{parts}.", parts=capitalize(join(parts, ", ")))


def _list_findings(breakdowns: Sequence[Breakdown], limiter: Limiter) -> Iterator[Finding]:
    highest = max(breakdowns, key=_find_ratio)
    unit = "" if highest.busiest is None else describe_unit(highest.busiest.metric)
    share = percent(_find_ratio(highest))
    is_said = unit.lower() in limiter.verdict.lower() and str(share) in limiter.verdict
    busiest = (
        NOTHING if is_said else say("The profiler's busiest unit: {unit}, {share} of its peak.", unit=unit, share=share)
    )
    is_sure = limiter.confidence is Confidence.SURE
    yield Finding(
        text=join([limiter.verdict, busiest]),
        weight=Weight.HIGH if is_sure or limiter.kind is LimiterKind.LATENCY else Weight.PLAIN,
        remedy=_REMEDIES.get(limiter.kind, NOTHING) if is_sure else NOTHING,
    )
    yield from _list_differences(breakdowns)


def _list_differences(breakdowns: Sequence[Breakdown]) -> Iterator[Finding]:
    """Where our own count and the profiler's differ, neither is to be trusted blindly."""
    for one in breakdowns:
        for member in one.members:
            stored, own = member.stored_ratio, member.own_ratio
            if stored is None or own is None:
                continue
            if abs(stored - own) > max(APART_RATIO * stored, APART_POINTS):
                yield Finding(
                    text=say(
                        "{unit}: the profiler stored {stored}, its counts give {own}. Counters from different passes of the kernel can differ.",
                        unit=describe_unit(member.metric),
                        stored=percent(stored),
                        own=percent(own),
                    )
                )


def _list_bars(breakdown: Breakdown) -> Iterator[Bar]:
    for member in breakdown.members[:MOST_BARS]:
        if member.ratio:
            yield Bar(
                label=describe_unit(member.metric),
                ratio=min(1.0, member.ratio),
                words=say(_TITLES[breakdown.metric].lower()),
            )


def _build_table(breakdown: Breakdown) -> Table:
    return Table(
        title=f"{_TITLES[breakdown.metric]} throughput",
        columns=(
            Column(name="Unit"),
            Column(name="Of its peak", quantity=Quantity.RATIO),
            Column(name="Recomputed", quantity=Quantity.RATIO),
            Column(name="Metric"),
        ),
        rows=tuple(
            (describe_unit(member.metric), member.stored_ratio, member.own_ratio, member.metric)
            for member in breakdown.members
        ),
        note=say("The throughput is the largest of these. Recomputed: from counts, peaks and cycles."),
    )


ANALYSIS = Analysis(name=_NAME, order=20, answer=_answer)
