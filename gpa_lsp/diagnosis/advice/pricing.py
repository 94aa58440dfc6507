"""Prices of matches (:class:`~gpa_lsp.diagnosis.advice.model.Advice`): shares, estimates with range and bound, the shown regions.

GPA's equations say how long a warp takes after a change; what the change leaves for each unit says how long they need. The estimate is what both
leave of the launch (:mod:`gpa_lsp.diagnosis.advice.launch_time`), its range what the errors of such estimates were (:func:`find_calibration`), and
its bound the unit that needs most of the present time for what stays.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from math import exp, inf, log, sqrt
from pathlib import Path

from msgspec import Struct, convert
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.estimators import (
    MOST_HIDING,
    count_hidden,
    estimate_elimination,
    estimate_hiding,
    estimate_parallel,
)
from gpa_lsp.diagnosis.advice.launch_time import (
    OTHERS,
    LaunchTime,
    count_matched,
    keep_work,
    leave_elimination,
    measure_launch_time,
)
from gpa_lsp.diagnosis.advice.matches import (
    AnyMatch,
    EliminationMatch,
    EliminationRegion,
    HidingMatch,
    HidingRegion,
    IdleMatch,
    Match,
    ParallelMatch,
)
from gpa_lsp.diagnosis.advice.model import (
    LEAST_SPEEDUP,
    MOST_REGIONS,
    Advice,
    Category,
    Hotspot,
    Region,
    Silence,
    SilenceStage,
    Speedup,
)
from gpa_lsp.diagnosis.advice.residency import count_stalled
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Limit, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.figures import Share, measure_share, sum_known
from gpa_lsp.foundation.prose import NOTHING, Sentence, begin_lower, count, duration, factor, number, percent, say
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.kernel.scopes import Scope

MatchedRegion = EliminationRegion | HidingRegion

WAITING = "long_scoreboard"  # What warps that wait for global memory are stalled on
_WHOLE_RUN = 0.98  # From this part of the run on the samples are taken to speak for all of it, and nothing is said
_NO_WORK: Mapping[str, float] = {}
_KEPT = 0.99  # From this part on a unit keeps its work
_MOST_SPEEDUP = 1e3  # No larger number is worth printing
_FEWEST_SAMPLES = 10  # Of a match: with fewer its share is off by a third or more, one standard deviation (1/√n)
WIDEST = 2.5  # High over low of a range that is still a number
NO_GAIN = 1.02  # A range that begins below it can be missed
LEAST_HELD = 0.65  # Of a remedy's simulated edits, the part that its ranges have to hold


class Label(Struct, frozen=True, kw_only=True):
    """Names of an optimizer."""

    name: str  # in snake case, the module's name
    title: str  # a few words for people
    group: str  # name of the alternatives that share samples with it
    category: Category = Category.CODE  # what has to be changed


class Calibration(Struct, frozen=True, kw_only=True):
    """Calibration of a remedy's estimates by simulated edits of families of kernels.

    Of a model's value S, S^middle is expected, and the range ends at S^middle · e^(low · √ln S) and S^middle · e^(high · √ln S): errors add up along
    the way to a large gain, as independent ones do. The ends are those of all remedies together, which hold more of what is left out than a remedy's
    own; builds for debugging, which every family has, have theirs. The simulator's own errors (15 % on kernels it was not made with) and what people
    change along are among them.
    """

    edits: int  # of the remedy, with an estimate
    families: int  # of kernels they are from
    held: float  # part of the edits with a number that such a range held, with their family left out of what it was made of
    low: float  # at most 0
    middle: float  # median of the families' medians, at most 1
    high: float  # at least 0

    def spread(self, model: float) -> tuple[float, float, float]:
        """Low end, estimate and high end for a model's value."""
        estimate, scale = model**self.middle, sqrt(log(model))
        return estimate * exp(self.low * scale), estimate, estimate * exp(self.high * scale)


ALL_REMEDIES = "any"  # In ``calibration.toml``, what edits of all remedies said together


def find_calibration(optimizer: str) -> Calibration:
    """The calibration of a remedy: how often ranges held for it, and where they end; both of all remedies together where it has no own."""
    known = _read_calibrations()
    return convert({**known[ALL_REMEDIES], **known.get(optimizer, {})}, Calibration)


@cache
def _read_calibrations() -> dict[str, dict[str, float]]:
    """Read the table that ``python -m tests.bench.calibrating --write`` writes."""
    return read_own_table(Path(__file__).with_name("calibration.toml"))


def price(subject: Subject, label: Label, match: AnyMatch) -> Advice | Silence:
    """Price a match by the formula of its kind; silence where it gains nothing."""
    if isinstance(match, EliminationMatch):
        return price_elimination(subject, label, match)
    if isinstance(match, HidingMatch):
        return price_hiding(subject, label, match)
    if isinstance(match, ParallelMatch):
        return price_parallel(subject, label, match)
    if isinstance(match, IdleMatch):
        return price_idle(subject, label, match)
    speedup = Speedup(
        estimate=1.0,
        low=1.0,
        high=match.high,
        bound=match.bound,
        bound_reason=match.bound_reason,
        uncapped=1.0,
        doubt=match.doubt,
    )
    return _make_advice(subject, label, match, speedup, share=share_samples(subject, 0))


def price_elimination(subject: Subject, label: Label, match: EliminationMatch) -> Advice | Silence:
    """Price stalls and work that a change would remove.

    Of a warp's time its matched samples go (GPA Equation 2), and the waits in queues of units that have less to do. Without samples a warp's time is
    taken to shrink with the work of the unit that limits the kernel, and a change that leaves that alone is not priced.
    """
    time, total = measure_launch_time(subject), subject.total_samples
    matched = count_matched(subject, match)
    if total:
        gone = say("Equation 2: {matched} of {total} would go", matched=count(matched), total=count(total, "sample"))
        reasons = (gone,) if matched else ()
    elif match.states:
        part = percent(sum(match.states.values()))
        reasons = (say("Equation 2: {part} of the warps' time would go", part=part),)
    elif relieves(find_limiter(subject), match.work):
        reasons = (say("priced by the work that stays for {unit}", unit=find_limiter(subject).unit),)
    else:
        message = say("it takes no work from what limits the kernel, and what else it gains only samples tell")
        return Silence(optimizer=label.name, stage=SilenceStage.NO_SAMPLES, message=message)
    left = leave_elimination(subject, match)
    published = estimate_elimination(total, min(matched, total - 1)) if total else 1 / max(left, 1 / _MOST_SPEEDUP)
    work = match.least or match.work
    speedup = _spread(subject, label, time, left, published=published, work=work, most=match.most, samples=matched)
    return _finish(subject, label, match, speedup, reasons=(*reasons, *_explain_sampling(subject, time)))


def price_hiding(subject: Subject, label: Label, match: HidingMatch) -> Advice | Silence:
    """Price latency that rearranged code could fill: GPA Equations 4 and 5, no active sample used twice.

    Waits for global memory that go because more loads are in flight need no active samples to fill them (Little's law). ``uncapped`` is Equation 5
    added up over the regions as GPA's code does it: T / (T − min(A, Σ min(A_l, M_l^L))).
    """
    time, total = measure_launch_time(subject), subject.total_samples
    singly = sum(min(region.active_samples, region.latency_samples) for region in match.regions)
    hidden = min(match.active_samples, _hide_nested(subject, match.regions), total * (1 - 1 / MOST_HIDING))
    waits = sum(_count_waits(region) for region in match.regions)
    latency = sum(region.latency_samples for region in match.regions)
    overlapped = match.overlap * waits

    def price(hidden: float, waits: float, latency: float, active: float) -> Speedup:
        gone = min(max(hidden, match.overlap * waits), total - 1)
        waiting = (waits / latency if hidden >= match.overlap * waits else 1.0) if latency else 0.0
        shares = {WAITING: gone * waiting / total, OTHERS: gone * (1 - waiting) / total}
        left = time.leave(warp_time=time.leave_latency(shares, match.work), work=match.work)
        found = min(max(active, 0.0), max(total - 1, 0))
        published = estimate_hiding(total, found, found)
        return _spread(subject, label, time, left, published=published, work=match.work, samples=latency)

    def price_alone(region: MatchedRegion) -> Speedup:
        assert isinstance(region, HidingRegion)
        fits = min(region.active_samples, region.latency_samples)
        return price(fits, _count_waits(region), region.latency_samples, fits)

    speedup = price(hidden, waits, latency, min(match.active_samples, singly))
    explained = say(
        "Equation 5: {hidden} of {total} can be hidden ({latency} matched not-issued, {active} of issuing cycles)",
        hidden=count(hidden),
        total=count(total, "sample"),
        latency=count(latency),
        active=count(match.active_samples),
    )
    more = (
        (
            say(
                "{overlapped} of them wait for loads that more loads in flight overlap (Little's law)",
                overlapped=count(overlapped),
            ),
        )
        if overlapped > hidden
        else ()
    )
    reasons = (explained, *more, *_explain_sampling(subject, time))
    return _finish(subject, label, match, speedup, reasons=reasons, price_alone=price_alone)


def price_parallel(subject: Subject, label: Label, match: ParallelMatch) -> Advice | Silence:
    """Price another number of blocks or threads: GPA Equations 6 to 10, below the match's bound and what the units sustain.

    What counts as matched are the kernel's latency samples: the cycles without issue that other warps could use; all stalled samples where they are
    unknown.
    """
    time, total = measure_launch_time(subject), subject.total_samples
    published = estimate_parallel(
        issue_ratio=match.issue_ratio,
        warps=match.warps_per_scheduler,
        new_warps=match.new_warps_per_scheduler,
        scales_warps=match.scales_warps,
        factor=match.factor,
    )
    spread = match.warps_per_scheduler / match.new_warps_per_scheduler if match.scales_warps else 1.0
    left = time.leave(warp_time=spread / max(published, 1 / _MOST_SPEEDUP), spread=spread)
    speedup = _spread(subject, label, time, left, published=published)
    if speedup.bound > match.bound:
        speedup = _cut(speedup, match.bound, match.bound_reason)
    latency = (
        count_stalled(subject) if subject.rows.latency_samples is None else int(subject.rows.latency_samples.sum())
    )
    issued = say("{issued} of {total} issued", issued=percent(match.issue_ratio), total=count(total, "sample"))
    if not total:
        issued = say("which issue in {issued} of their time", issued=percent(match.issue_ratio))
    explained = say(
        "{equation}: from {old} to {new} warps per scheduler, {issued}",
        equation="Equations 6 to 10" if match.scales_warps else "Equations 7 to 9",
        old=number(match.warps_per_scheduler),
        new=number(match.new_warps_per_scheduler),
        issued=issued,
    )
    share = measure_share(latency, total, subject.dropped_samples)
    return _gate(subject, label, speedup) or _make_advice(
        subject,
        label,
        match,
        speedup,
        share=share,
        matched=share.part_samples,
        latency=None if subject.rows.latency_samples is None or not total else latency,
        reasons=(explained, *_explain_sampling(subject, time), *_explain_cut(speedup)),
        relieves_limiter=_starves(subject),
    )


def price_idle(subject: Subject, label: Label, match: IdleMatch) -> Advice | Silence:
    """Price idle hardware by its time. No samples count as matched: idle hardware has none, and the figures are counters."""
    time = measure_launch_time(subject)
    speedup = _spread(subject, label, time, 1 - match.saved_ratio, published=1 / (1 - match.saved_ratio))
    if speedup.bound > match.bound:
        speedup = _cut(speedup, match.bound, match.bound_reason)
    saved = say("{saved} of the run time would go", saved=percent(match.saved_ratio))
    return _gate(subject, label, speedup) or _make_advice(
        subject,
        label,
        match,
        speedup,
        share=measure_share(0, subject.total_samples),
        matched=0,
        latency=0,
        reasons=(saved, *_explain_cut(speedup)),
        relieves_limiter=_starves(subject),
    )


def relieves(limiter: Limiter, work: Mapping[str, float]) -> bool:
    """Whether a change takes work from the unit that limits the kernel, as far as it is worth speaking of."""
    return keep_work(limiter.unit, work) < _KEPT


def describe_unrelieved(limiter: Limiter, limit: Limit) -> Sentence:
    """Explain the limit of a change that leaves a unit all its work."""
    return say(
        "{label}, at {busy}, {which}; this does not relieve it",
        label=limit.label,
        busy=percent(limit.busy_ratio),
        which="is the current limit" if limit.unit == limiter.unit else "becomes the next limit",
    )


def _spread(
    subject: Subject,
    label: Label,
    time: LaunchTime,
    left: float,
    *,
    published: float,
    work: Mapping[str, float] = _NO_WORK,
    most: float = inf,
    samples: float | None = None,
) -> Speedup:
    """An estimate with its range, its bound and what is to be doubted.

    Args:
        left: the part of the launch's time that stays.
        published: the formula's value before any of our clamps.
        work: as in :class:`~gpa_lsp.diagnosis.advice.matches.EliminationMatch`.
        most: what the change itself cannot exceed.
        samples: that were matched; None for changes that match none.
    """
    bound, reason = _find_bound(subject, time, work)
    if most < bound:
        bound, reason = most, say("the change itself saves no more")
    model = min(max(1.0, 1 / max(left, 1 / _MOST_SPEEDUP)), bound)
    few = samples if samples is not None and subject.total_samples and samples < _FEWEST_SAMPLES else None
    if few and published < LEAST_SPEEDUP:
        model = min(model, max(1.0, published))  # A few samples of very many are no evidence of work that goes
    known = find_calibration(label.name)
    low, estimate, high = (min(bound, max(1.0, one)) for one in known.spread(model))
    if few:
        doubt = say("its basis is only {samples}", samples=count(max(1, round(few)), "sample"))
    elif few is not None and not relieves(find_limiter(subject), work):
        doubt = say("priced by the work that goes, not by samples")
    elif known.held < LEAST_HELD:
        part, edits = percent(known.held), count(known.edits, "simulated edit")
        doubt = say("uncertain: such ranges held for {part} of {edits}", part=part, edits=edits)
    else:
        doubt = doubt_range(low, high)
    return Speedup(
        estimate=estimate,
        low=min(low, estimate),
        high=max(high, estimate),
        bound=bound,
        bound_reason=reason,
        uncapped=published,
        doubt=doubt,
    )


def doubt_range(low: float, high: float) -> Sentence:
    """Explain why a range is not worth printing: it is wide, or begins at no gain; empty where it is."""
    if high > WIDEST * low * (1 + 1e-6):
        return say("anything from {low} to {high}", low=factor(low), high=factor(high))
    return say("it may gain next to nothing") if low <= NO_GAIN else NOTHING


def _find_bound(subject: Subject, time: LaunchTime, work: Mapping[str, float]) -> tuple[float, Sentence]:
    """Upper bound of all changes that leave this work, and its reason."""
    unit, least = time.leave_least(work)
    if time.ends_ratio > least:
        taken = subject.metric("gpu__time_duration.sum")
        reason = (
            say("the launch takes {part} of its time to begin and to end", part=percent(time.ends_ratio))
            if taken is None
            else say("the launch takes {time} to begin and to end", time=duration(taken * time.ends_ratio))
        )
        return min(_MOST_SPEEDUP, 1 / time.ends_ratio), reason
    limit = time.limits.get(unit)
    if limit is None:
        return inf, say("no unit is known to be busy")
    kept = keep_work(unit, work)
    reason = (
        describe_unrelieved(find_limiter(subject), limit)
        if kept >= 1
        else say(
            "{label} keeps {kept} of its work, which needs {busy} of the present time",
            label=limit.label,
            kept=percent(kept),
            busy=percent(limit.busy_ratio * kept),
        )
    )
    return min(_MOST_SPEEDUP, max(1.0, 1 / max(least, 1 / _MOST_SPEEDUP))), reason


def _cut(speedup: Speedup, bound: float, reason: Sentence) -> Speedup:
    most = max(1.0, bound)
    low, estimate, high = (min(most, one) for one in (speedup.low, speedup.estimate, speedup.high))
    return replace(speedup, low=low, estimate=estimate, high=high, bound=most, bound_reason=reason)


def _count_waits(region: HidingRegion) -> float:
    """Samples of a region that wait for global memory."""
    spots = [spot for spot in region.hotspots if spot.latency_samples]
    every = sum(spot.known_latency_samples for spot in spots)
    waits = sum(spot.known_latency_samples for spot in spots if spot.reason == WAITING)
    return region.latency_samples * waits / every if every else 0.0


def _explain_sampling(subject: Subject, time: LaunchTime) -> tuple[Sentence, ...]:
    """Clauses where the samples speak for clearly less than the whole run, and where some of them were lost."""
    clauses = []
    if 1 - time.ends_ratio <= _WHOLE_RUN:
        part = percent(1 - time.ends_ratio)
        clauses.append(say("SMs are active for {part} of the run, and only that part speeds up", part=part))
    if subject.dropped_samples:
        clauses.append(say("{n} could be of any instruction", n=count(subject.dropped_samples, "dropped sample")))
    return tuple(clauses)


def _hide_nested(subject: Subject, regions: Sequence[HidingRegion]) -> float:
    """Latency the regions hide together; a region nested in another one draws on the same active samples."""
    tree = subject.scopes
    numbers = {scope: number for number, scope in reversed(list(enumerate(tree.scopes)))}
    # A region that is no scope of the tree (a line, a call) is inside the scope its row is in.
    places = [
        (numbers.get(region.scope, int(tree.innermost[region.scope.row])), region.scope not in numbers)
        for region in regions
    ]
    order = sorted(range(len(regions)), key=lambda index: places[index])
    region_at: dict[int, int] = {}
    parents = []
    for position, index in enumerate(order):
        number, is_inside = places[index]
        around = next((scope for scope in tree.around(number) if scope in region_at), None)
        parents.append(-1 if around is None else region_at[around])
        if not is_inside:
            region_at.setdefault(number, position)
    return count_hidden(
        parents,
        [regions[index].active_samples for index in order],
        [regions[index].latency_samples for index in order],
    )


def _finish(
    subject: Subject,
    label: Label,
    match: EliminationMatch | HidingMatch,
    speedup: Speedup,
    *,
    reasons: tuple[Sentence, ...],
    price_alone: Callable[[MatchedRegion], Speedup] | None = None,
) -> Advice | Silence:
    """An advice of a price.

    Args:
        price_alone: what a region gains by itself; None where regions share the gain by what was matched in each.
    """
    matched = sum(region.samples for region in match.regions)
    latency = sum_known(region.latency_samples for region in match.regions)
    if isinstance(match, EliminationMatch) and match.states:
        matched, latency = matched + sum(match.states.values()) * subject.total_samples, None
    weight = sum(region.weight for region in match.regions)
    placed = [region for region in match.regions if region.weight > 0 and _has_place(subject, region)]
    if match.regions and not placed:
        message = say("{samples}, all in code that the profile does not hold", samples=count(matched, "matched sample"))
        return Silence(optimizer=label.name, stage=SilenceStage.NO_PLACE, message=message)
    if (gated := _gate(subject, label, speedup)) is not None:
        return gated
    placed.sort(key=lambda region: (-region.weight, region.scope.row))
    regions = tuple(
        show_region(
            subject, region, price_alone(region) if price_alone else _share_out(speedup, region.weight / weight)
        )
        for region in placed[:MOST_REGIONS]
    )
    return _make_advice(
        subject,
        label,
        match,
        speedup,
        share=share_samples(subject, matched),
        matched=matched,
        latency=latency,
        regions=regions,
        reasons=(*reasons, *_explain_cut(speedup), *_explain_spread(regions, len(placed), matched)),
        relieves_limiter=find_limiter(subject).kind is LimiterKind.LATENCY
        or relieves(find_limiter(subject), match.work),
    )


def _make_advice(
    subject: Subject,
    label: Label,
    match: Match,
    speedup: Speedup,
    *,
    share: Share,
    matched: float = 0.0,
    latency: float | None = None,
    regions: tuple[Region, ...] = (),
    reasons: tuple[Sentence, ...] = (),
    relieves_limiter: bool | None = None,
) -> Advice:
    return Advice(
        optimizer=label.name,
        title=match.title or label.title,
        category=match.category or label.category,
        group=label.group,
        speedup=speedup,
        share=share,
        matched_samples=matched,
        matched_latency_samples=latency,
        scope=regions[0].scope if regions else subject.scopes.scopes[0],
        regions=regions,
        hint=match.hint,
        caveats=match.caveats,
        reasons=(*match.reasons, *reasons),
        relieves_limiter=relieves_limiter,
    )


def _starves(subject: Subject) -> bool:
    """Whether a kernel has too few warps, or warps that wait: then more of them relieve what limits it."""
    return find_limiter(subject).kind in (LimiterKind.PARALLELISM, LimiterKind.LATENCY)


def _share_out(speedup: Speedup, part: float) -> Speedup:
    """Gain of a part of a change alone: the time that the whole saves, in proportion to its part of what was matched."""
    estimate, low, high, bound, uncapped = (
        one if one == inf else 1 / (1 - part * (1 - 1 / max(1.0, one)))
        for one in (speedup.estimate, speedup.low, speedup.high, speedup.bound, speedup.uncapped)
    )
    return replace(speedup, estimate=estimate, low=low, high=high, bound=max(bound, high), uncapped=uncapped)


def _name_loops(subject: Subject, spot: Hotspot) -> Hotspot:
    """The hotspot with the loops its def and its use are in."""

    def find(row: int) -> Scope | None:
        loop = subject.scopes.loop_of(row)
        return subject.scopes.scopes[loop] if loop >= 0 else None

    return replace(spot, def_loop=find(spot.def_row), use_loop=None if spot.use_row is None else find(spot.use_row))


def _gate(subject: Subject, label: Label, speedup: Speedup) -> Silence | None:
    """Silence where a unit that keeps its work leaves nothing of a gain that the formula promises."""
    if speedup.estimate >= LEAST_SPEEDUP or speedup.uncapped < LEAST_SPEEDUP:
        return None
    limiter = find_limiter(subject)
    first = limiter.find(limiter.unit)
    why = speedup.bound_reason if first is None else describe_unrelieved(limiter, first)
    message = say(
        "{published} by the formula alone, but {why}", published=factor(speedup.uncapped), why=begin_lower(why)
    )
    by = "" if first is None else "limiter"
    return Silence(optimizer=label.name, stage=SilenceStage.GATED, message=message, contradicted_by=by)


def _explain_cut(speedup: Speedup) -> tuple[Sentence, ...]:
    """A clause about what units and queues took away from the published formula's value; empty where it is next to nothing."""
    if speedup.uncapped <= speedup.estimate * LEAST_SPEEDUP:
        return ()
    return (
        say(
            "{published} by the formula alone; {estimate} with the work that units keep",
            published=factor(speedup.uncapped),
            estimate=factor(speedup.estimate),
        ),
    )


def _has_place(subject: Subject, region: MatchedRegion) -> bool:
    """Whether there is a line or an instruction to show."""
    return region.scope.file is not None or subject.rows.function_of(region.scope.row).instructions is not None


def show_region(subject: Subject, region: MatchedRegion, speedup: Speedup) -> Region:
    """A place that was matched, with its hotspots that have most samples, and what changing it alone gains."""
    ranked = sorted(region.hotspots, key=lambda spot: (-spot.samples, spot.def_row))[:MOST_REGIONS]
    hotspots = tuple(_name_loops(subject, spot) for spot in ranked)
    return Region(
        scope=region.scope,
        matched_samples=region.samples,
        matched_latency_samples=region.latency_samples,
        share=share_samples(subject, region.samples),
        speedup=speedup,
        density=min(1.0, sum(spot.samples for spot in hotspots) / region.samples) if region.samples else 0.0,
        hotspots=hotspots,
        hint=region.hint,
    )


def share_samples(subject: Subject, samples: float) -> Share:
    """The share of apportioned samples; Wilson's interval needs whole ones."""
    total = subject.total_samples
    return measure_share(min(max(round(samples), 0), total), total, subject.dropped_samples)


def _explain_spread(regions: Sequence[Region], places: int, matched: float) -> tuple[Sentence, ...]:
    if len(regions) == places or not matched:
        return ()
    return (
        say(
            "the {shown} of {places} places shown hold {held} of the matched samples",
            shown=count(len(regions)),
            places=count(places),
            held=percent(sum(region.matched_samples for region in regions) / matched),
        ),
    )
