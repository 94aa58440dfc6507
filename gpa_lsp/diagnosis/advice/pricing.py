"""From matches to :class:`~gpa_lsp.diagnosis.advice.model.Advice`: shares, estimates with interval and bound, the regions that are shown.

An estimate is the published formula's value, of the part of the run in which SMs work, cut at a bound; its interval is that of the sample
counts, sent through the same formula. Every kind of advice is bounded by the memory: a faster kernel moves the same bytes in less time, and the
busiest level sustains only so much (:mod:`gpa_lsp.diagnosis.advice.roofs`), unless the change lessens the traffic itself.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.bounds import Bound, cut_speedup, explain_cut, find_peak_roof, find_roof, find_sm_roof
from gpa_lsp.diagnosis.advice.estimators import (
    MOST_HIDING,
    count_hidden,
    dilute_speedup,
    estimate_elimination,
    estimate_hiding,
    estimate_idle,
    estimate_parallel,
    fit_issue_ratio,
    measure_range,
)
from gpa_lsp.diagnosis.advice.limiter_rules import forbids
from gpa_lsp.diagnosis.advice.matches import (
    EliminationMatch,
    EliminationRegion,
    HidingMatch,
    HidingRegion,
    IdleMatch,
    ParallelMatch,
)
from gpa_lsp.diagnosis.advice.memory_parallelism import OVERLAP_REACH, WAITING, bound_overlap, find_nearest_level
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
from gpa_lsp.diagnosis.advice.reliefs import Reliefs
from gpa_lsp.diagnosis.advice.residency import bound_issue_rate, count_stalled, measure_sampled_part
from gpa_lsp.diagnosis.advice.unit_pricing import LOW_REACH, UnitMatch, estimate_units, is_relieved, widen
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.figures import Share, measure_share, sum_known
from gpa_lsp.foundation.prose import Sentence, count, factor, number, percent, say
from gpa_lsp.kernel.scopes import Scope

MatchedRegion = EliminationRegion | HidingRegion

_WHOLE_RUN = 0.98  # From this part of the run on the samples are taken to speak for all of it, and nothing is said


class Label(Struct, frozen=True, kw_only=True):
    """What an optimizer is called; the fields of :class:`~gpa_lsp.diagnosis.advice.model.Advice` of the same names, and what it relieves."""

    optimizer: str
    title: str
    category: Category
    group: str
    reliefs: Reliefs


class _Estimate(Struct, frozen=True, kw_only=True):
    """What all of a match would gain, and why."""

    speedup: Speedup
    reasons: tuple[Sentence, ...]
    cut: Speedup  # The same as the bounds left it, before its range was widened


def price_elimination(subject: Subject, label: Label, match: EliminationMatch) -> Advice | Silence:
    """Price stalls that a change would remove: GPA Equation 2, below the memory roof.

    Where latency samples are unknown, the interval of a change that keeps its instructions begins with no gain: all of the waits could have been
    hidden by other warps' issues.
    """
    if match.leaves is not None and is_relieved(find_limiter(subject), match.leaves):
        return _price_relief(subject, label, match, match.leaves)
    if subject.total_samples == 0:
        message = say("it takes no work from what limits the kernel, and what else it gains only samples tell")
        return Silence(optimizer=label.optimizer, stage=SilenceStage.NO_SAMPLES, message=message)
    total, lost = subject.total_samples, subject.dropped_samples
    part = measure_sampled_part(subject)
    reliefs = label.reliefs.relieve(match.relieves)
    roof = (
        *find_roof(subject, match.relieves),
        *(find_sm_roof(subject) if match.keeps_instructions else find_peak_roof(subject, label.reliefs)),
    )

    def cut(samples: float, latency: float | None) -> Speedup:
        found = measure_range(samples, total, lost)
        least = measure_range(latency or 0.0, total, lost).low if match.keeps_instructions else found.low
        published = estimate_elimination(total, found.count)
        low, estimate, most = (
            dilute_speedup(estimate_elimination(total, gone), part) for gone in (least, found.count, found.high)
        )
        all_gone = Bound(speedup=most, reason=say("no more than the matched stalls can go"))
        return cut_speedup((min(low, estimate), estimate, most), published, (all_gone, *roof))

    matched = sum(region.samples for region in match.regions)
    whole = cut(matched, sum_known(region.latency_samples for region in match.regions))
    hidden = (
        (say("how many of them other warps hid is unknown"),)
        if match.keeps_instructions and not subject.kernel.is_split
        else ()
    )
    removed = say("Equation 2: {matched} of {total} would go", matched=count(matched), total=count(total, "sample"))
    reasons = (removed, *hidden, *_explain_sampling(subject, part))
    priced = [
        (region, widen(subject, reliefs, cut(region.samples, region.latency_samples))) for region in match.regions
    ]
    speedup = widen(subject, reliefs, whole)
    found = _finish(subject, label, match, _Estimate(speedup=speedup, reasons=reasons, cut=whole), priced)
    is_kept = match.leaves is not None and find_limiter(subject).unit in match.leaves
    return replace(found, relieves_limiter=False) if is_kept and not isinstance(found, Silence) else found


def _price_relief(
    subject: Subject, label: Label, match: EliminationMatch, leaves: Mapping[str, float]
) -> Advice | Silence:
    """The same where a unit limits the kernel: by its work, of which a region has the share that it has of the matched samples."""
    whole = estimate_units(subject, leaves, match.reach, likely=match.likely)
    assert whole is not None  # there is a limiter
    matched = sum(region.weight for region in match.regions)

    def share(region: EliminationRegion) -> Speedup:
        part = region.weight / matched if matched else 0.0
        estimate, low, high = (
            min(whole.bound, 1 / (1 - part * (1 - 1 / max(1.0, one))))
            for one in (whole.estimate, whole.low, whole.high)
        )
        return replace(whole, estimate=estimate, low=low, high=high)

    reasons = (say("priced by the work that stays for {unit}", unit=find_limiter(subject).unit),)
    priced = [(region, share(region)) for region in match.regions]
    found = _finish(subject, label, match, _Estimate(speedup=whole, reasons=reasons, cut=whole), priced)
    return found if isinstance(found, Silence) else replace(found, relieves_limiter=True)


def price_hiding(subject: Subject, label: Label, match: HidingMatch) -> Advice | Silence:
    """Price latency that rearranged code could fill: GPA Equations 4 and 5, no active sample used twice.

    Where too few loads in flight are what limits the kernel, the estimate goes on towards what these allow
    (:mod:`gpa_lsp.diagnosis.advice.memory_parallelism`), beyond what issuing cycles can fill; the published formula stays as it is.

    The same instructions and the same traffic remain, so the SMs' busiest unit bounds the gain as the memory does. ``uncapped`` of the whole is
    Equation 5 added up over the regions as GPA's code does it: T / (T − min(A, Σ min(A_l, M_l^L))).
    """
    total, lost = subject.total_samples, subject.dropped_samples
    part = measure_sampled_part(subject)
    roof = (*find_roof(subject), *find_sm_roof(subject))

    def cut(hidden: float, active: float, published: float) -> Speedup:
        found = measure_range(hidden, total, lost)
        values = tuple(
            dilute_speedup(estimate_hiding(total, samples, samples), part)
            for samples in (found.low, found.count, found.high)
        )
        most_active = measure_range(active, total, lost).high
        bounds = (
            Bound(speedup=MOST_HIDING, reason=say("hiding latency gains at most 2× (GPA, Theorem V.1)")),
            Bound(
                speedup=dilute_speedup(estimate_hiding(total, most_active, most_active), part),
                reason=say("only {active} of issuing cycles can fill the stalls", active=count(active, "sample")),
            ),
            *roof,
        )
        return cut_speedup(values, published, bounds)

    def price_region(region: HidingRegion) -> Speedup:
        hidden = min(region.active_samples, region.latency_samples)
        alone = widen(subject, label.reliefs, cut(hidden, region.active_samples, _hide(total, hidden)))
        return _raise_to_overlap(alone, bound_overlap(subject, match.overlap * _count_waits(region)))

    singly = sum(min(region.active_samples, region.latency_samples) for region in match.regions)
    hidden = min(match.active_samples, _hide_nested(subject, match.regions))
    whole = cut(hidden, match.active_samples, _hide(total, min(match.active_samples, singly)))
    latency = sum(region.latency_samples for region in match.regions)
    reasons = (
        say(
            "Equation 5: {hidden} of {total} can be hidden ({latency} matched not-issued, {active} of issuing cycles)",
            hidden=count(hidden),
            total=count(total, "sample"),
            latency=count(latency),
            active=count(match.active_samples),
        ),
        *_explain_sampling(subject, part),
    )
    priced = [(region, price_region(region)) for region in match.regions]
    speedup = widen(subject, label.reliefs, whole)
    overlapped = bound_overlap(subject, match.overlap * sum(_count_waits(region) for region in match.regions))
    if overlapped is not None and overlapped > speedup.estimate:
        speedup = _raise_to_overlap(speedup, overlapped)
        reasons = (*reasons, _explain_overlap(subject, overlapped))
    return _finish(subject, label, match, _Estimate(speedup=speedup, reasons=reasons, cut=whole), priced)


def _count_waits(region: HidingRegion) -> float:
    """Samples of a region that wait for global memory."""
    spots = [spot for spot in region.hotspots if spot.latency_samples]
    every = sum(spot.known_latency_samples for spot in spots)
    waits = sum(spot.known_latency_samples for spot in spots if spot.reason == WAITING)
    return region.latency_samples * waits / every if every else 0.0


def _raise_to_overlap(speedup: Speedup, overlapped: float | None) -> Speedup:
    """Half of the way to what more loads in flight gain, where that is more."""
    if overlapped is None or overlapped <= speedup.estimate:
        return speedup
    estimate = speedup.estimate * (overlapped / speedup.estimate) ** OVERLAP_REACH
    return replace(speedup, estimate=estimate, high=max(speedup.high, overlapped), bound=max(speedup.bound, overlapped))


def _explain_overlap(subject: Subject, overlapped: float) -> Sentence:
    nearest = find_nearest_level(subject)
    assert nearest is not None  # there is an overlap
    return say(
        "{label} is {busy} busy: with more loads in flight up to {overlapped} is possible (Little's law)",
        label=nearest.label,
        busy=percent(nearest.busy_ratio),
        overlapped=factor(overlapped),
    )


def price_parallel(subject: Subject, label: Label, match: ParallelMatch) -> Advice | Silence:
    """Price another number of blocks or threads: GPA Equations 6 to 10, below the match's bound and what memory and SMs sustain.

    The range begins with no gain, since that warps are independent and lose nothing by the change is the model's hope. It also holds what the
    equations give when fitted to the measured issue rate instead of the issued samples: with many samples the
    model's own doubt is the larger one. What counts as matched are the kernel's latency samples: the cycles without issue that other warps could
    use. Where neither the issue rate nor they are known, the interval holds what every rate that is possible gives, and all stalled samples count.
    """
    total = subject.total_samples
    issued = measure_range(match.issue_ratio * total, total, subject.dropped_samples)
    rates = bound_issue_rate(subject)
    fitted = [fit_issue_ratio(min(1.0, rate), match.warps_per_scheduler) for rate in rates]

    part = measure_sampled_part(subject)

    def estimate(issue_ratio: float) -> float:
        return estimate_parallel(
            issue_ratio=issue_ratio,
            warps=match.warps_per_scheduler,
            new_warps=match.new_warps_per_scheduler,
            scales_warps=match.scales_warps,
            factor=match.factor,
        )

    published = estimate(match.issue_ratio)
    ratios = (match.issue_ratio, *((issued.low / total, issued.high / total) if total else ()), *fitted)
    ends = tuple(dilute_speedup(max(1.0, estimate(ratio)), part) for ratio in ratios)
    bound = Bound(speedup=match.bound, reason=match.bound_reason)
    speedup = cut_speedup(
        (min(ends), ends[0], max(ends)), published, (bound, *find_roof(subject), *find_sm_roof(subject))
    )
    speedup = replace(speedup, low=1.0)
    latency = (
        count_stalled(subject) if subject.rows.latency_samples is None else int(subject.rows.latency_samples.sum())
    )
    equation = "Equations 6 to 10" if match.scales_warps else "Equations 7 to 9"
    issued_part = say("{issued} of {total} issued", issued=percent(match.issue_ratio), total=count(total, "sample"))
    if not total:
        issued_part = say("which issue in {issued} of their time", issued=percent(match.issue_ratio))
    reasons = (
        say(
            "{equation}: from {old} to {new} warps per scheduler, {issued}",
            equation=equation,
            old=number(match.warps_per_scheduler),
            new=number(match.new_warps_per_scheduler),
            issued=issued_part,
        ),
        *_explain_rates(rates),
        *_explain_sampling(subject, part),
    )
    whole, known = (
        _Estimate(speedup=speedup, reasons=reasons, cut=speedup),
        None if subject.rows.latency_samples is None or not total else latency,
    )
    share = measure_share(latency, total, subject.dropped_samples)
    return _finish_kernel(subject, label, match, whole, share=share, latency=known)


def price_idle(subject: Subject, label: Label, match: IdleMatch) -> Advice | Silence:
    """Price hardware that has nothing to do, by the time it takes, below the match's bound and the memory roof. The range begins at half the gain.

    No samples count as matched: idle hardware has none, and the figures are counters.
    """
    saved = (match.saved_ratio_low, match.saved_ratio, match.saved_ratio_high)
    values = tuple(estimate_idle(ratio) for ratio in saved)
    bound = Bound(speedup=match.bound, reason=match.bound_reason)
    speedup = cut_speedup(values, values[1], (bound, *find_roof(subject), *find_peak_roof(subject, label.reliefs)))
    speedup = replace(speedup, low=min(speedup.low, 1 + (speedup.estimate - 1) * LOW_REACH))
    reasons = (say("{saved} of the run time would go", saved=percent(match.saved_ratio)),)
    whole = _Estimate(speedup=speedup, reasons=reasons, cut=speedup)
    share = measure_share(0, subject.total_samples)
    return _finish_kernel(subject, label, match, whole, share=share, latency=0)


def price_units(subject: Subject, label: Label, match: UnitMatch) -> Advice | Silence:
    """Price a change by what it leaves for each unit (:mod:`gpa_lsp.diagnosis.advice.unit_pricing`)."""
    speedup = estimate_units(subject, match.leaves, match.reach, match.most, match.likely)
    if speedup is None:
        message = say("the utilization of the units was not collected")
        return Silence(optimizer=label.optimizer, stage=SilenceStage.NO_METRICS, message=message)
    matched = sum(region.samples for region in match.regions)
    regions = tuple(
        _show(subject, region, speedup)
        for region in match.regions[:MOST_REGIONS]
        if region.weight > 0 and _has_place(subject, region)
    )
    return Advice(
        optimizer=label.optimizer,
        title=label.title,
        category=label.category,
        group=label.group,
        speedup=speedup,
        share=_share(subject, matched),
        matched_samples=matched,
        matched_latency_samples=sum_known(region.latency_samples for region in match.regions),
        scope=regions[0].scope if regions else subject.scopes.scopes[0],
        regions=regions,
        hint=match.hint,
        caveats=match.caveats,
        reasons=match.reasons,
        # What leaves the limiter its work does not relieve it; what takes some, where that is what the change is for.
        relieves_limiter=None if not match.leaves or is_relieved(find_limiter(subject), match.leaves) else False,
    )


def _explain_rates(rates: tuple[float, float]) -> tuple[Sentence, ...]:
    """A clause where how often schedulers issue is unknown."""
    if rates[0] == rates[1]:
        return ()
    least, most = map(percent, rates)
    return (
        say(
            "schedulers issue in {least} to {most} of their cycles, as far as the profile says", least=least, most=most
        ),
    )


def _explain_sampling(subject: Subject, part: float) -> tuple[Sentence, ...]:
    """Clauses where the samples speak for clearly less than the whole run, and where some of them were lost."""
    clauses = []
    if part <= _WHOLE_RUN:
        clauses.append(say("SMs are active for {part} of the run, and only that part speeds up", part=percent(part)))
    if subject.dropped_samples:
        dropped = count(subject.dropped_samples, "dropped sample")
        clauses.append(say("the interval allows for {dropped}, which could be of any instruction", dropped=dropped))
    return tuple(clauses)


def _hide(total: int, hidden: float) -> float:
    found = measure_range(hidden, total).count
    return estimate_hiding(total, found, found)


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
    whole: _Estimate,
    priced: Sequence[tuple[MatchedRegion, Speedup]],
) -> Advice | Silence:
    matched = sum(region.samples for region, _ in priced)
    placed = [(region, one) for region, one in priced if region.weight > 0 and _has_place(subject, region)]
    if not placed:
        samples = count(matched, "matched sample")
        message = say("{samples}, all in code that the profile does not hold", samples=samples)
        return Silence(optimizer=label.optimizer, stage=SilenceStage.NO_PLACE, message=message)
    if (gated := _gate(subject, label, whole.cut)) is not None:
        return gated
    # Below a roof regions gain alike; the published value still tells them apart.
    placed.sort(key=lambda pair: (-pair[1].uncapped, -pair[0].weight, pair[0].scope.row))
    regions = tuple(_show(subject, region, one) for region, one in placed[:MOST_REGIONS])
    return Advice(
        optimizer=label.optimizer,
        title=label.title,
        category=label.category,
        group=label.group,
        speedup=whole.speedup,
        share=_share(subject, matched),
        matched_samples=matched,
        matched_latency_samples=sum_known(region.latency_samples for region, _ in priced),
        scope=regions[0].scope,
        regions=regions,
        hint=match.hint,
        caveats=match.caveats,
        reasons=(
            *match.reasons,
            *whole.reasons,
            *explain_cut(whole.cut),
            *_explain_spread(regions, len(priced), matched),
        ),
    )


def _name_loops(subject: Subject, spot: Hotspot) -> Hotspot:
    """The hotspot with the loops its def and its use are in."""

    def find(row: int) -> Scope | None:
        loop = subject.scopes.loop_of(row)
        return subject.scopes.scopes[loop] if loop >= 0 else None

    return replace(spot, def_loop=find(spot.def_row), use_loop=None if spot.use_row is None else find(spot.use_row))


def _finish_kernel(
    subject: Subject,
    label: Label,
    match: ParallelMatch | IdleMatch,
    whole: _Estimate,
    *,
    share: Share,
    latency: int | None,
) -> Advice | Silence:
    if (gated := _gate(subject, label, whole.cut)) is not None:
        return gated
    return Advice(
        optimizer=label.optimizer,
        title=label.title,
        category=label.category,
        group=label.group,
        speedup=whole.speedup,
        share=share,
        matched_samples=share.part_samples,
        matched_latency_samples=latency,
        scope=match.scope,
        regions=(),
        hint=match.hint,
        caveats=match.caveats,
        reasons=(*match.reasons, *whole.reasons, *explain_cut(whole.cut)),
    )


def _gate(subject: Subject, label: Label, speedup: Speedup) -> Silence | None:
    """Silence where a bound leaves nothing of a gain that the formula promises."""
    if speedup.bound >= LEAST_SPEEDUP or not explain_cut(speedup) or speedup.uncapped < LEAST_SPEEDUP:
        return None
    published = factor(speedup.uncapped)
    message = say("{published} by the formula alone, but {why}", published=published, why=speedup.bound_reason)
    by = "limiter" if forbids(find_limiter(subject), label.reliefs) else ""
    return Silence(optimizer=label.optimizer, stage=SilenceStage.GATED, message=message, contradicted_by=by)


def _has_place(subject: Subject, region: MatchedRegion) -> bool:
    """Whether there is a line or an instruction to show."""
    return region.scope.file is not None or subject.rows.function_of(region.scope.row).instructions is not None


def _show(subject: Subject, region: MatchedRegion, speedup: Speedup) -> Region:
    ranked = sorted(region.hotspots, key=lambda spot: (-spot.samples, spot.def_row))[:MOST_REGIONS]
    hotspots = tuple(_name_loops(subject, spot) for spot in ranked)
    return Region(
        scope=region.scope,
        matched_samples=region.samples,
        matched_latency_samples=region.latency_samples,
        share=_share(subject, region.samples),
        speedup=speedup,
        density=min(1.0, sum(spot.samples for spot in hotspots) / region.samples) if region.samples else 0.0,
        hotspots=hotspots,
        hint=region.hint,
    )


def _share(subject: Subject, samples: float) -> Share:
    """The share of apportioned samples; Wilson's interval needs whole ones."""
    total = subject.total_samples
    return measure_share(min(max(round(samples), 0), total), total, subject.dropped_samples)


def _explain_spread(regions: Sequence[Region], places: int, matched: float) -> tuple[Sentence, ...]:
    if len(regions) == places or not matched:
        return ()
    held = sum(region.matched_samples for region in regions)
    return (
        say(
            "the {shown} of {places} places shown hold {held} of the matched samples",
            shown=count(len(regions)),
            places=count(places),
            held=percent(held / matched),
        ),
    )
