"""How evenly the work is divided: waves of blocks and their tail, SMs, schedulers, slices of L2 and channels of DRAM."""

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Missing,
    Weight,
)
from gpa_lsp.diagnosis.analyses.balance.findings import describe_idle_ends, describe_units, describe_waves
from gpa_lsp.diagnosis.analyses.balance.tables import chart_grids, tabulate_units, tabulate_waves
from gpa_lsp.diagnosis.analyses.balance.units import UnitLoad, find_unit, measure_units
from gpa_lsp.diagnosis.analyses.balance.waves import Waves, find_waves
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.occupancy.launch import (
    read_amount,
    read_launch_shape,
)
from gpa_lsp.diagnosis.analyses.occupancy.without_rules import ACHIEVED, THEORETICAL
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, join, number, percent, say

_NAME = "load_balance"
_TITLE = "Load balance"

# Cycles of the launch in the SMs' clock; newest name first
_ELAPSED = ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")

_ORDER = {Weight.HIGH: 0, Weight.PLAIN: 1, Weight.GOOD: 2}


def answer_load_balance(facts: KernelFacts) -> Answer:
    """Waves and balance of the longest launch."""
    launch = facts.longest
    if launch is None:
        return _know_nothing(Missing(what="the load", why=say("nothing was launched")))
    waves = find_waves(facts, launch)
    loads = measure_units(facts)
    elapsed = read_amount(facts, *_ELAPSED)
    mean = read_amount(facts, "sm__cycles_active.avg")
    sms = find_unit(loads, "sm__cycles_active.avg")
    missing = _list_missing(facts, waves, loads, mean)
    if waves is None and not loads and mean is None:
        return _know_nothing(*missing)
    findings = [*describe_units(facts, loads, elapsed)]
    if waves is not None:
        idle = _measure_idle(mean, sms, elapsed)
        findings.insert(0, describe_waves(waves, idle, _measure_empty(facts, idle)))
    ends = describe_idle_ends(elapsed, mean, None if sms is None else sms.most)
    # the mean is that low because of the SMs without a block
    is_told = waves is not None and waves.idle_sms and sms is None
    if ends is not None and not is_told:
        findings.append(ends)
    findings.sort(key=lambda finding: (_ORDER[finding.weight], -(finding.share_ratio or 0.0)))
    tables = [*tabulate_waves(facts, launch, waves), *tabulate_units(loads)]
    return Answer(
        analysis=_NAME,
        title=_TITLE,
        summary=_summarise(waves, mean, sms, elapsed),
        findings=tuple(findings),
        bars=_draw_bars(waves, mean, sms, elapsed),
        tables=tuple(tables),
        charts=() if waves is None else (chart_grids(waves),),
        missing=missing,
    )


def _measure_idle(mean: float | None, sms: UnitLoad | None, elapsed: float | None) -> float | None:
    """Part of the time in which the mean SM had no block: of the busiest SM's, or else at most that of the launch."""
    if sms is not None:
        return sms.idle_ratio
    return None if mean is None or not elapsed else max(0.0, 1 - mean / elapsed)


def _measure_empty(facts: KernelFacts, idle_ratio: float | None) -> float | None:
    """Part of the places for warps that stood empty over that time; None when not collected."""
    achieved, theoretical = read_amount(facts, ACHIEVED), read_amount(facts, THEORETICAL)
    if achieved is None or not theoretical or idle_ratio is None:
        return None
    return max(0.0, 1 - achieved / theoretical * (1 - idle_ratio))


def _summarise(waves: Waves | None, mean: float | None, sms: UnitLoad | None, elapsed: float | None) -> Sentence:
    parts = []
    if waves is not None:
        parts.append(
            say(
                "{blocks} {verb} {waves} of {capacity} ({each} per SM on {sms})",
                blocks=count(waves.blocks, "block"),
                verb="is" if waves.blocks == 1 else "are",
                waves=number(waves.count, "wave"),
                capacity=count(waves.capacity_blocks),
                each=number(waves.capacity_blocks / waves.sm_count),
                sms=count(waves.sm_count, "SM"),
            )
        )
    if mean is not None and elapsed:
        most = NOTHING
        if sms is not None:
            most = say(", the busiest for {share}", share=percent(min(1.0, sms.most / elapsed)))
        active = percent(min(1.0, mean / elapsed))
        parts.append(say("the average SM is active for {active} of the launch{most}", active=active, most=most))
    return say("{parts}.", parts=capitalize(join(parts or [say("only the load of single units is known")], "; ")))


def _draw_bars(waves: Waves | None, mean: float | None, sms: UnitLoad | None, elapsed: float | None) -> tuple[Bar, ...]:
    bars = []
    if mean is not None and elapsed:
        ceiling = 1.0 if sms is None else min(1.0, sms.most / elapsed)
        bars.append(Bar(label="SMs active", ratio=min(1.0, mean / elapsed), ceiling_ratio=ceiling))
    if waves is not None:
        held = count(waves.rounds * waves.capacity_blocks, "block")
        words = say("{blocks} of {held}", blocks=count(waves.blocks), held=held)
        bars.append(Bar(label="waves filled", ratio=waves.efficiency_ratio, words=words))
    return tuple(bars)


def _list_missing(
    facts: KernelFacts, waves: Waves | None, loads: tuple[UnitLoad, ...], mean: float | None
) -> tuple[Missing, ...]:
    missing = []
    if waves is None and facts.longest is not None:
        shape = read_launch_shape(facts, facts.longest)
        if shape.grid_blocks == 0:
            missing.append(Missing(what="waves", why=say("the grid has no blocks")))
        elif shape.grid_blocks is None:
            missing.append(Missing(what="waves", why=say("the profile does not say how many blocks the grid has")))
        else:
            missing.append(
                lack("how many blocks fit at once", "launch__waves_per_multiprocessor", section="LaunchStats")
            )
    if find_unit(loads, "sm__cycles_active.avg") is None:
        names = ("sm__cycles_active.avg", "sm__cycles_active.max", "sm__cycles_active.min")
        what = "how evenly the SMs were busy" if mean is not None else "how long the SMs were busy"
        missing.append(lack(what, *(names[1:] if mean is not None else names), needs_all=True))
    if mean is not None and read_amount(facts, *_ELAPSED) is None:
        missing.append(lack("the cycles of the launch", *_ELAPSED, section="SpeedOfLight"))
    return tuple(missing)


def _know_nothing(*missing: Missing) -> Answer:
    why = missing[0].why or "the profile does not say how many blocks fit at once, nor how long the SMs were busy"
    summary = say("The load is unknown: {why}.", why=why)
    return Answer(analysis=_NAME, title=_TITLE, summary=summary, missing=missing, is_known=False)


ANALYSIS = Analysis(name=_NAME, order=40, answer=answer_load_balance)
