"""What more resident warps would be worth: nothing where bandwidth or the schedulers are busy already, and how many would hide the latency.

Little's law: warps in flight = rate · latency. A scheduler that is to issue in every cycle needs as many warps as there are cycles between two
instructions of one warp, as long as these cycles do not become more; fewer are enough where a bandwidth is used up before. Occupancy is no goal
of its own: independent instructions within a warp hide latency just as well.

Source: V. Volkov, "Better Performance at Lower Occupancy", GTC 2010, and "Understanding Latency Hiding on GPUs", UCB/EECS-2016-143, chapter 4.
"""

from gpa_lsp.analyses.answers import Finding, Missing, Weight
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.analyses.occupancy.launch import read_amount
from gpa_lsp.analyses.roofline_model import Roofline
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import NOTHING, Sentence, count, join, number, percent, say
from gpa_lsp.device.model import find_dram_ceiling

NEAR_ROOF_RATIO = 0.85
"""From this part of what a ceiling sustains on the kernel counts as being at it; with the ceilings of DRAM that is 0.72 to 0.81 of the peak, about
where Nsight Compute calls a kernel bound by bandwidth (0.8)."""

BUSY_ISSUE_RATIO = 0.8
"""A scheduler that issues in this part of its cycles is busy (Nsight Compute's rule for issue slots takes the same figure)."""

ENOUGH_READY_RATIO = 0.2
"""From this share of samples of warps that were ready and not selected on there are enough warps. Ours."""


_LONGEST_INTERVAL_CYCLES = 1e6
"""Between two instructions of a warp, on average; a launch with more does nothing but stall, or its counters make no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worth:
    """What more warps would be worth.

    Attributes:
        can_help: False where something else than latency holds the kernel up; None when unknown.
        finding: the same for people.
        needed_warps: of one scheduler, to issue in every cycle or to use up a bandwidth, at the latencies there are; None when unknown.
        missing: what was not measured.
    """

    can_help: bool | None
    finding: Finding
    needed_warps: float | None
    missing: tuple[Missing, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _RoofUse:
    """A bandwidth or a peak of arithmetic, the share of it that is used, the share that can be, and what helps where it is used up."""

    name: str
    share_ratio: float
    sustained_ratio: float
    remedy: Sentence


def judge_worth(facts: KernelFacts, resident_warps: float | None, most_warps: float) -> Worth:
    """What more warps would be worth.

    Args:
        facts: of the kernel.
        resident_warps: of one scheduler, on average while its SM is active; None when unknown.
        most_warps: that one scheduler can have on this architecture.
    """
    issue = read_amount(facts, "smsp__issue_active.avg.per_cycle_active")
    roofs = _list_roofs(facts)
    target = _find_target(facts, resident_warps, issue, roofs)
    needed = None if target is None else target[0]
    obstacle = _find_used_up(roofs) or _find_busy_schedulers(facts, issue)
    if obstacle is not None:
        return Worth(can_help=False, finding=obstacle, needed_warps=needed)
    if target is None or resident_warps is None:
        metrics = ("smsp__issue_active.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active")
        return Worth(
            can_help=None,
            finding=Finding(
                text=say("Unknown whether more warps would help: the profile has neither samples nor issue rates.")
            ),
            needed_warps=None,
            missing=(lack("the warps that hide the latency", *metrics, section="SchedulerStats", needs_all=True),),
        )
    return _compare(resident_warps, most_warps, *target)


def estimate_needed_warps(facts: KernelFacts, resident_warps: float | None, issue_ratio: float | None) -> float | None:
    """Warps with which a scheduler would issue in every cycle: the cycles between two instructions of a warp, without those lost to other warps.

    These cycles are resident warps over the issue rate, or else all samples over those that issued; the share of samples of warps that were
    ready and not selected goes off, because these stalls grow with the number of warps.

    Returns:
        None where neither was measured.
    """
    total = facts.kernel.total_samples
    if resident_warps and issue_ratio:
        interval_cycles = resident_warps / issue_ratio
    else:
        selected = facts.rows.count_reason("selected")
        if not selected:
            return None
        interval_cycles = total / selected
    not_selected = facts.rows.count_reason("not_selected") / total if total else 0.0
    return interval_cycles * (1 - not_selected) if interval_cycles < _LONGEST_INTERVAL_CYCLES else None


def _compare(resident: float, most: float, needed: float, purpose: Sentence) -> Worth:
    """Warps there are, and that would be needed."""
    if resident >= needed:
        text = say(
            "A scheduler needs about {needed} to {purpose} and has {resident}: more would not help.",
            needed=number(needed, "warp"),
            purpose=purpose,
            resident=number(resident),
        )
        return Worth(can_help=False, finding=Finding(text=text), needed_warps=needed)
    needs = say(
        "At the current latencies a scheduler needs about {needed} to {purpose} (Little's law) and has {resident}.",
        needed=number(needed, "warp"),
        purpose=purpose,
        resident=number(resident),
    )
    if needed <= most:
        helps = say("More warps help, and so do more independent instructions per warp.")
    else:
        helps = say(
            "It holds at most {most}: occupancy alone cannot hide the latency; more independent instructions per warp or shorter latencies must "
            "help.",
            most=count(most),
        )
    finding = Finding(text=join([needs, helps]), weight=Weight.HIGH)
    return Worth(can_help=True, finding=finding, needed_warps=needed)


def _find_target(
    facts: KernelFacts, resident_warps: float | None, issue_ratio: float | None, roofs: list[_RoofUse]
) -> tuple[float, Sentence] | None:
    """The fewest warps that use something up, and what; None where nothing was measured.

    Work grows with the warps as long as their latency stays what it is, so a ceiling is reached by resident warps · what it sustains / what is used.
    """
    targets = []
    by_issue = estimate_needed_warps(facts, resident_warps, issue_ratio)
    if by_issue is not None:
        targets.append((by_issue, say("issue in every cycle")))
    if resident_warps:
        targets += [
            (resident_warps * use.sustained_ratio / use.share_ratio, say("saturate {name}", name=use.name))
            for use in roofs
            if use.share_ratio > 0
        ]
    return min(targets, key=lambda target: target[0], default=None)


def _list_roofs(facts: KernelFacts) -> list[_RoofUse]:
    """Of the longest launch by the roofline, nearest first, or else what the counters say of DRAM; the issue ceiling is not among them.

    A unit that is fuller than any ceiling comes first: behind it more warps only queue.
    """
    placed = _find_placed(facts)
    if placed is not None:
        unit = placed.tighter_unit
        busiest = (
            [
                _RoofUse(
                    name=f"the peak of {unit.phrase}",
                    share_ratio=unit.share_ratio,
                    sustained_ratio=unit.ceiling_ratio,
                    remedy=say("Asking less of it would."),
                )
            ]
            if unit is not None
            else []
        )
        return busiest + [
            _RoofUse(
                name=f"the {roof.name}",
                share_ratio=roof.share_ratio,
                sustained_ratio=roof.ceiling_ratio,
                remedy=say("Fewer bytes would." if roof.level is not None else "Cheaper or fewer operations would."),
            )
            for roof in placed.roofs
            if roof.level is not None or roof.kind is not None
        ]
    percent = read_amount(
        facts,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
    )
    if percent is None:
        return []
    ceiling = find_dram_ceiling(facts.kernel.device.attributes.get("device__attribute_global_memory_bus_width"))
    name, remedy = "the DRAM bandwidth", say("Fewer bytes would.")
    return [_RoofUse(name=name, share_ratio=percent / 100, sustained_ratio=ceiling, remedy=remedy)]


def _find_placed(facts: KernelFacts) -> Roofline | None:
    """Where the longest launch stands, or else all together; None without a roofline."""
    if facts.roofline is None:
        return None
    index = None if facts.longest is None else facts.longest.index
    own = (one for one in facts.roofline.launches if one.launch_index == index)
    return next(own, facts.roofline.whole)


def _find_used_up(roofs: list[_RoofUse]) -> Finding | None:
    for use in roofs:
        if use.sustained_ratio > 0 and use.share_ratio / use.sustained_ratio >= NEAR_ROOF_RATIO:
            sustained = NOTHING
            if use.sustained_ratio < 1:
                sustained = say(" (about {most} is sustainable)", most=percent(use.sustained_ratio))
            return Finding(
                text=say(
                    "More warps cannot help: {share} of {name} is used{sustained}. {change}",
                    share=percent(use.share_ratio),
                    name=use.name,
                    sustained=sustained,
                    change=use.remedy,
                ),
                share_ratio=min(1.0, use.share_ratio),
            )
    return None


def _find_busy_schedulers(facts: KernelFacts, issue_ratio: float | None) -> Finding | None:
    if issue_ratio is not None and issue_ratio >= BUSY_ISSUE_RATIO:
        text = say(
            "More warps cannot help: the schedulers already issue in {share} of their cycles.",
            share=percent(issue_ratio),
        )
        return Finding(text=text, share_ratio=min(1.0, issue_ratio))
    total = facts.kernel.total_samples
    ready = facts.rows.count_reason("not_selected") / total if total else 0.0
    if ready < ENOUGH_READY_RATIO:
        return None
    text = say(
        "More warps would hardly help: in {share} of the samples the warp was ready and not selected.",
        share=percent(ready),
    )
    return Finding(text=text, share_ratio=ready)
