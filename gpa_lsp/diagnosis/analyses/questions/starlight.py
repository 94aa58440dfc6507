"""Question: what would Starlight suggest? Its Table 1 with line share, speedup and new rate, beside our own advice."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Finding,
    Missing,
    Movement,
    Table,
    Weight,
    know_nothing,
    list_columns,
)
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.starlight import (
    NAMES_BETWEEN,
    OUR_ADVICE,
    SUGGESTIONS_TITLE,
    Bottleneck,
    LineCounts,
    LineEstimate,
    Outcome,
    Part,
    Position,
    Suggestion,
    count_lines,
    estimate_lines,
    find_hottest,
    find_position,
    find_row,
    list_rows,
    list_suggestions,
    make_intensity,
    make_rate,
    move_right,
)
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, factor, join, percent, say
from gpa_lsp.kernel.dataflow.accesses import WARP_THREADS

# Starlight's decision tree: what the roofline and a few ratios of the whole kernel say before any line is looked at.
#
# Memory-bound: fewer bytes per operation. Compute-bound and far below the peak: first whether the SMs have enough warps and work, then whether the
# warps are whole. The paper gives no thresholds; those here are ours, each with its reason.
#
# Source: A. Zeni et al., "Starlight: a kernel optimizer for GPU processing", section 4.4; metrics as its public code reads them.

# Below this share of the attainable rate a kernel is far from its ceiling, as Nsight Compute's rule for the bottleneck has it
FAR_RATIO = 0.6

OCCUPANCY = "occupancy"  # The check that more warps are the remedy of

_PERCENT = 100.0


class Check(Struct, frozen=True, kw_only=True):
    """One ratio of the whole kernel."""

    title: str  # what it is
    metric: str  # its aggregate
    scale: float  # the aggregate's value that is all of it
    least_ratio: float  # below this share it counts as poor
    row: Bottleneck  # of Table 1 that is then suggested from
    remedy: Sentence  # what then to do
    section: str  # of the profiler that collects it
    # where the metric itself is missing, it is the part of the launch in which an SM held warps
    is_of_activity: bool = False

    def is_poor(self, ratio: float | None) -> bool:
        """Measured, and below what is taken as enough."""
        return ratio is not None and ratio < self.least_ratio


# In the order of the tree
CHECKS = (
    Check(
        title=OCCUPANCY,
        metric="sm__warps_active.avg.pct_of_peak_sustained_active",
        scale=_PERCENT,
        least_ratio=0.5,  # ours: by GPA's Equation 9 more warps gain ever less
        row=Bottleneck.RESOURCES,
        remedy=say("Raise occupancy: more threads per block, or fewer registers and less shared memory."),
        section="Occupancy",
    ),
    Check(
        title="SM efficiency",
        metric="smsp__cycles_active.avg.pct_of_peak_sustained_elapsed",
        scale=_PERCENT,
        least_ratio=0.8,  # as Nsight Compute's rule for the tail
        row=Bottleneck.RESOURCES,
        remedy=say("Launch more blocks, of even length, so that no SM idles."),
        section="SpeedOfLight",
        is_of_activity=True,
    ),
    Check(
        title="branch efficiency",
        metric="smsp__sass_average_branch_targets_threads_uniform.pct",
        scale=_PERCENT,
        least_ratio=0.8,  # ours
        row=Bottleneck.SYNCHRONISATION,
        remedy=say("Keep the threads of a warp on one side of each branch."),
        section="SourceCounters",
    ),
    Check(
        title="threads predicated on per instruction",
        metric="smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
        scale=float(WARP_THREADS),
        least_ratio=0.75,  # 24 of 32 threads, as Nsight Compute's rule for divergence
        row=Bottleneck.SYNCHRONISATION,
        remedy=say("Fill whole warps: sort or compact the work, and branch per warp or per block."),
        section="WarpStateStats",
    ),
)


class Decision(Struct, frozen=True, kw_only=True):
    """Outcome of the decision tree for a kernel."""

    position: Position | None  # where it stands on the chart; None when unknown
    is_memory_bound: bool | None  # left of the ridge point; None when unknown
    is_far: bool | None  # far below what is attainable; None when unknown
    # the checks, asked in every case, each with the share that was measured, 0..1, None where it was not collected; only a compute-bound kernel far
    # from its ceiling acts on them
    results: tuple[tuple[Check, float | None], ...]
    verdict: Sentence  # a clause
    missing: tuple[Missing, ...]  # what the tree could not ask

    @property
    def asks_checks(self) -> bool:
        """The branch of the tree that acts on the checks."""
        return self.is_memory_bound is False and self.is_far is True

    @property
    def poor(self) -> tuple[Check, ...]:
        """Checks the tree acts on."""
        return tuple(check for check, ratio in self.results if check.is_poor(ratio)) if self.asks_checks else ()


def decide(subject: Subject) -> Decision:
    """Walk the tree."""
    position = find_position(subject.roofline)
    results = tuple((check, _measure(subject, check)) for check in CHECKS)
    missing = [lack(check.title, check.metric, section=check.section) for check, ratio in results if ratio is None]
    is_memory_bound = _is_memory_bound(subject, position)
    if position is None or is_memory_bound is None:
        why = say("no operations or no bytes of this kernel are known")
        missing.insert(0, Missing(what="the kernel's place on the roofline", why=why))
    is_far = _is_far(position)
    return Decision(
        position=position,
        is_memory_bound=is_memory_bound,
        is_far=is_far,
        results=results,
        verdict=_judge(position, is_memory_bound, is_far),
        missing=tuple(missing),
    )


def _measure(subject: Subject, check: Check) -> float | None:
    value = subject.metric(check.metric)
    if value is not None:
        return value / check.scale
    return subject.measure_active() if check.is_of_activity else None


def _is_memory_bound(subject: Subject, position: Position | None) -> bool | None:
    """Whether the kernel lies left of the ridge point; without counted operations, whether its nearest ceiling is of memory; None when unknown."""
    if position is not None and position.point.is_memory_side is not None:
        return position.point.is_memory_side
    whole = None if subject.roofline is None else subject.roofline.whole
    return None if whole is None else whole.is_memory_bound


def _is_far(position: Position | None) -> bool | None:
    roof = None if position is None else position.roof_ops_per_s
    if position is None or roof is None:
        return None
    return position.point.achieved_ops_per_s < FAR_RATIO * roof


def _judge(position: Position | None, is_memory_bound: bool | None, is_far: bool | None) -> Sentence:
    if is_memory_bound is None:
        return say("on which side of the ridge point the kernel lies is unknown")
    side = "on the memory side" if is_memory_bound else "on the compute side"
    if position is None:
        return say("{side} by the nearest ceiling; no operation was counted", side=side)
    point, roof = position.point, position.roof_ops_per_s
    words = say(
        "{side}: {intensity} of {level} is {hand} of the ridge point",
        side=side,
        intensity=make_intensity(point.intensity),
        level=point.level,
        hand="left" if is_memory_bound else "right",
    )
    if roof is None:
        return words
    return say(
        "{words}, and {rate} is {distance} the {ceiling} attainable there",
        words=words,
        rate=make_rate(point.achieved_ops_per_s, position.kind),
        distance="far below" if is_far else "near",
        ceiling=make_rate(roof, position.kind),
    )


MOST_FINDINGS = 5  # Lines told in sentences

LABEL = "Starlight's estimate, not ours: nothing bounds it by what can hide a stall, and its lines are the stalled ones, not the causes"


def answer_starlight(subject: Subject) -> Answer:
    """Starlight's decision tree, suggestions and estimates for one kernel."""
    lines, decision = count_lines(subject), decide(subject)
    if not len(lines) and decision.is_memory_bound is None:
        summary = say("Unknown: there are neither samples nor a roofline of this kernel.")
        return know_nothing(summary, _lack_samples(), *decision.missing)
    estimates = estimate_lines(lines, decision.position)
    missing_samples = () if len(lines) else (_lack_samples(),)
    limiter = find_limiter(subject)
    return Answer(
        summary=_summarise(decision, estimates, has_samples=len(lines) > 0),
        findings=(
            Finding(text=join([say("By Starlight's rule: {verdict}.", verdict=decision.verdict), limiter.verdict])),
            *_tell_halvings(decision),
            *_tell_checks(decision, limiter),
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


def _tell_halvings(decision: Decision) -> list[Finding]:
    """The row of low intensity, which the tree turns to where the kernel is memory-bound."""
    if not decision.is_memory_bound:
        return []
    # A kernel far below its ceiling gains nothing from a higher one, even where the table says so.
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
    ratios = {check.title: ratio for check, ratio in decision.results}
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


MOST_LINES = 10  # Lines shown; what is cut is counted


def build_tables(lines: LineCounts, estimates: Sequence[LineEstimate], decision: Decision) -> tuple[Table, ...]:
    """All tables, in the order to be read."""
    return (
        build_suggestions(lines, estimates, decision),
        *([build_lines(estimates, decision.position)] if estimates else []),
        build_checks(decision),
        *([build_parts(lines)] if len(lines) else []),
    )


def build_suggestions(lines: LineCounts, estimates: Sequence[LineEstimate], decision: Decision) -> Table:
    """Table 1, a row for each suggestion: its stalls, the line on which it gains most, and our optimizers of the same kind."""
    total = lines.total
    rows: list[tuple[Cell, ...]] = []
    for suggestion in list_suggestions():
        hottest = find_hottest(estimates, suggestion.bottleneck)
        rows.append(
            (
                find_row(suggestion.bottleneck).title,
                suggestion.title,
                lines.count(suggestion.bottleneck) / total
                if total and suggestion.bottleneck is not Bottleneck.LOW_INTENSITY
                else None,
                "" if hottest is None else hottest.line.place,
                None if hottest is None else hottest.speedup,
                None if hottest is None or hottest.outcome is None else hottest.outcome.movement.to_ops_per_s,
                _describe_movement(suggestion, hottest, decision),
                NAMES_BETWEEN.join(suggestion.counterparts),
            )
        )
    return Table(
        title=SUGGESTIONS_TITLE,
        columns=list_columns(
            "bottleneck | suggestion | stalls [ratio] | line | speedup there [factor]",
            f"new rate [{name_rate(decision.position)}] | on the chart | {OUR_ADVICE}",
        ),
        rows=tuple(rows),
        note=join(
            [
                say("Suggestions of one bottleneck count the same stalls; do not add their speedups."),
                say("The lines are the stalled ones, not the causes."),
                *(
                    say("{title}: {nearest}.", title=one.title, nearest=one.nearest)
                    for one in list_suggestions()
                    if one.nearest
                ),
            ]
        ),
    )


def build_lines(estimates: Sequence[LineEstimate], position: Position | None) -> Table:
    """The lines that gain most, with the three equations."""
    shown = estimates[:MOST_LINES]
    rest = len(estimates) - len(shown)
    return Table(
        title="Starlight's hot lines",
        columns=list_columns(
            f"line | of the run time (Equation 2) [ratio] | bottleneck | stalls [samples] | "
            f"speedup (Equation 3) [factor] | new rate (Equation 4) [{name_rate(position)}] | below the ceiling [{name_rate(position)}]"
        ),
        rows=tuple(
            (
                one.line.place,
                one.share_ratio,
                one.row.title,
                one.removed,
                one.speedup,
                None if one.outcome is None else one.outcome.uncapped_ops_per_s,
                None if one.outcome is None else one.outcome.movement.to_ops_per_s,
            )
            for one in shown
        ),
        note=say("And {rest} more that gain less.", rest=count(rest)) if rest else NOTHING,
    )


def build_checks(decision: Decision) -> Table:
    """The ratios of the decision tree beside what is taken as enough."""
    return Table(
        title="Starlight's decision tree",
        columns=list_columns("of the whole kernel | measured [ratio] | enough [ratio] | verdict"),
        rows=tuple(
            (
                check.title,
                ratio,
                check.least_ratio,
                "" if ratio is None else "poor" if check.is_poor(ratio) else "enough",
            )
            for check, ratio in decision.results
        ),
        note=NOTHING
        if decision.asks_checks
        else say("The tree acts on these only in a kernel on the compute side, far below its ceiling."),
    )


def build_parts(lines: LineCounts) -> Table:
    """Tabulate the samples by bottleneck; the rows add up to all samples of the kernel."""
    total = lines.total
    counts: list[tuple[str, int]] = [(Part.OPERATION.value, lines.count(Part.OPERATION))]
    counts += [
        (row.title, lines.count(row.bottleneck))
        for row in list_rows()
        if row.bottleneck is not Bottleneck.LOW_INTENSITY
    ]
    counts.append((Part.NONE.value, lines.count(Part.NONE)))
    return Table(
        title="Where the samples count",
        columns=list_columns("as | samples [samples] | share [ratio]"),
        rows=tuple((name, samples, samples / total) for name, samples in counts),
        note=say("Which stalls belong to which bottleneck is our reading; Starlight does not say."),
    )


def list_halvings(position: Position | None) -> Iterator[tuple[Suggestion, Outcome]]:
    """The suggestions that make values smaller, with their movement; those that have one."""
    for suggestion in list_suggestions():
        if suggestion.halves_bytes and position is not None:
            outcome = move_right(position, suggestion.title.lower(), is_narrower=suggestion.narrows_type)
            if outcome is not None:
                yield suggestion, outcome


def name_rate(position: Position | None) -> Quantity:
    """Quantity of this kernel's operation rates."""
    return Quantity.FLOPS_PER_S if position is None else Quantity(f"{position.kind.operation}/s")


def _describe_movement(suggestion: Suggestion, hottest: LineEstimate | None, decision: Decision) -> str:
    if suggestion.bottleneck is not Bottleneck.LOW_INTENSITY:
        return "" if hottest is None or hottest.outcome is None else hottest.outcome.words
    if decision.is_memory_bound is False:
        return "not suggested: on the compute side"
    halvings = {one.title: outcome for one, outcome in list_halvings(decision.position)}
    if suggestion.title in halvings:
        return halvings[suggestion.title].words
    return "" if decision.position is None else f"there is no narrower type than {decision.position.kind}"
