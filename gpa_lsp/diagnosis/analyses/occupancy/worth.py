"""What more resident warps would be worth: little where a unit is the limiter already, and how many would hide the latency elsewhere.

Little's law: warps in flight = rate · latency. A scheduler that is to issue in every cycle needs as many warps as there are cycles between two
instructions of one warp, as long as these cycles do not become more; fewer are enough where a bandwidth is used up before. Occupancy is no goal
of its own: independent instructions within a warp hide latency just as well.

Source: V. Volkov, "Better Performance at Lower Occupancy", GTC 2010, and "Understanding Latency Hiding on GPUs", UCB/EECS-2016-143, chapter 4.
"""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Finding, Missing, Weight
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.occupancy.launch import LaunchShape, read_amount
from gpa_lsp.diagnosis.analyses.roofline_model import Roofline
from gpa_lsp.foundation.prose import NOTHING, Sentence, count, factor, join, number, percent, say
from gpa_lsp.gpu.arch.occupancy import Occupancy
from gpa_lsp.gpu.device.model import find_dram_ceiling

# Between the warps that fit and those that were resident: how many a small grid, the last wave and the rest cost.
#
# ``sm__warps_active`` counts only cycles in which the SM has a warp, so that SMs without any work do not count here (the analysis of the load
# does). Expected are, for a grid of B blocks of w warps on S SMs with room for b blocks each, if all blocks take equally long:
#
# * where not even one wave is there (B < S·b): w · B / min(B, S), the warps of the SMs that have any;
# * else, with n whole waves and a rest of t blocks, which lie on min(t, S) SMs: w · B / (n·S + min(t, S)).
#
# What is missing beyond that is time in which places stand empty: between the end of a block and the start of the next one, at the launch, and
# behind warps that end before their block does. By Little's law a block is resident for (resident blocks · cycles · S) / B cycles, which turns the
# rest into cycles per block.

# A gap of less than this part of what fits is not worth a word; Nsight Compute's rule takes ten points, too
SMALL_GAP_RATIO = 0.1

# Ours: starting a block takes some hundred cycles (in published reports 300 to 700 where nothing else is missing), a tenth of this
SHORT_BLOCK_CYCLES = 5_000


class OccupancyGap(Struct, frozen=True, kw_only=True):
    """Warps of an SM on average while it is active, from what fits down to what was measured."""

    fitting_warps: int  # by the rules
    offered_warps: float  # with this many blocks in the grid; at most ``fitting_warps``
    expected_warps: float  # with the last wave; at most ``offered_warps``
    resident_warps: float  # as measured
    block_cycles: float | None  # how long a block is resident; None where the active cycles were not collected
    # how long its slot stays empty, per block; None where the active cycles were not collected
    empty_cycles: float | None

    @property
    def ratio(self) -> float:
        """Missing of what fits, 0..1."""
        return max(0.0, 1 - self.resident_warps / self.fitting_warps)

    @property
    def grid_warps(self) -> float:
        """Missing because the grid has no more blocks."""
        return self.fitting_warps - self.offered_warps

    @property
    def tail_warps(self) -> float:
        """Missing because of the last wave."""
        return self.offered_warps - self.expected_warps

    @property
    def other_warps(self) -> float:
        """Missing beyond that."""
        return max(0.0, self.expected_warps - self.resident_warps)


def measure_gap(
    shape: LaunchShape, occupancy: Occupancy, resident_warps: float, active_cycles: float | None
) -> OccupancyGap | None:
    """The gap and its parts.

    Args:
        active_cycles: of an SM, on average over all SMs; None when not collected.

    Returns:
        None where the grid or the number of SMs is unknown, or nothing fits.

    >>> from gpa_lsp.gpu.arch.lookup import find_architecture
    >>> from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
    >>> block = BlockShape(threads=256, registers_per_thread=32, shared_bytes=0)
    >>> fitting = find_occupancy(find_architecture((8, 0)), block)
    >>> gap = measure_gap(LaunchShape(block=block, grid_blocks=1000, sm_count=100), fitting, 50.0, 5000.0)
    >>> gap.fitting_warps, gap.offered_warps, gap.expected_warps, gap.block_cycles, gap.empty_cycles
    (64, 64.0, 40.0, 3125.0, 0.0)
    """
    capacity = shape.find_capacity(occupancy)
    blocks, sms = shape.grid_blocks, shape.sm_count
    if capacity is None or not blocks or sms is None or resident_warps <= 0:
        return None
    warps = occupancy.warps_per_block
    held = capacity / sms
    offered = warps * min(held, blocks / min(blocks, sms))
    whole, rest = divmod(blocks, capacity)
    expected = min(offered, warps * blocks / (whole * sms + min(rest, sms)))
    block_cycles = empty_cycles = None
    if active_cycles is not None:
        block_cycles = resident_warps / warps * active_cycles * sms / blocks
        empty_cycles = max(0.0, block_cycles * (expected / resident_warps - 1))
    return OccupancyGap(
        fitting_warps=occupancy.warps_per_sm,
        offered_warps=offered,
        expected_warps=expected,
        resident_warps=resident_warps,
        block_cycles=block_cycles,
        empty_cycles=empty_cycles,
    )


def describe_gap(gap: OccupancyGap) -> Finding:
    """The gap for people, with its largest part first."""
    resident, fitting = number(gap.resident_warps), count(gap.fitting_warps, "warp")
    if gap.resident_warps >= gap.fitting_warps:
        return Finding(text=say("All {fitting} that fit are resident on average.", fitting=fitting), weight=Weight.GOOD)
    if gap.ratio < SMALL_GAP_RATIO:
        text = say(
            "{resident} of the {fitting} that fit are resident on average: nearly all.",
            resident=resident,
            fitting=fitting,
        )
        return Finding(text=text, weight=Weight.GOOD)
    parts = sorted(
        (
            (gap.grid_warps, say("because the grid has no more blocks"), "More blocks, each with less to do."),
            (
                gap.tail_warps,
                say("because of the tail, which does not fill the SMs"),
                "A grid of whole waves, or smaller blocks.",
            ),
            (gap.other_warps, _explain_rest(gap), _remedy_rest(gap)),
        ),
        key=lambda part: -part[0],
    )
    told = [
        say("{warps} are missing {why}", warps=number(warps), why=why)
        for warps, why, _ in parts
        if warps >= 0.05 * gap.fitting_warps
    ]
    text = say(
        "{resident} of the {fitting} that fit are resident on average. {missing}.",
        resident=resident,
        fitting=fitting,
        missing=join(told, "; "),
    )
    return Finding(text=text, remedy=say(parts[0][2]))


def _explain_rest(gap: OccupancyGap) -> Sentence:
    if gap.block_cycles is None or gap.empty_cycles is None:
        return say("because blocks start and end, or warps end before their block")
    measured = say(
        "a block runs for {run}, and its slot is empty for {empty}",
        run=count(gap.block_cycles, "cycle"),
        empty=count(gap.empty_cycles),
    )
    if gap.block_cycles < SHORT_BLOCK_CYCLES:
        return say("because blocks are short ({measured})", measured=measured)
    return say("because blocks or their warps take unequally long, or start late ({measured})", measured=measured)


def _remedy_rest(gap: OccupancyGap) -> str:
    if gap.block_cycles is not None and gap.block_cycles < SHORT_BLOCK_CYCLES:
        return "Fewer blocks with more work each (a grid-stride loop), so that starting them matters less."
    return "Even out the work of blocks and of the warps within them."


# From this share of samples of warps that were ready and not selected on it is worth telling. Ours.
ENOUGH_READY_RATIO = 0.2

_NO_GAIN = 1.005  # Below this factor nothing is to be gained

_WORTH_GAIN = 1.1  # Times the resident warps, from which on more are called for. Ours.

# Between two instructions of a warp, on average; a launch with more does nothing but stall, or its counters make no sense
_LONGEST_INTERVAL_CYCLES = 1e6


class Verdict(Struct, frozen=True, kw_only=True):
    """What limits the kernel, as far as it bears on warps."""

    sentence: Sentence  # the limiter's; empty where it is unknown
    # where a unit surely limits the kernel, what is to be had without less work for it; None elsewhere
    most_speedup: float | None
    is_open: bool  # latency limits the kernel, or nobody knows what does


class Worth(Struct, frozen=True, kw_only=True):
    """What more warps would be worth."""

    # False where a unit surely limits the kernel, True where latency does and there are too few; None when neither is known
    can_help: bool | None
    finding: Finding  # the same for people
    missing: tuple[Missing, ...] = ()  # what was not measured


_RoofUse = tuple[
    str, float, float
]  # A bandwidth or a peak of arithmetic, the share of it that is used, and the share that can be


def judge_worth(facts: KernelFacts, resident_warps: float | None, most_warps: float, verdict: Verdict) -> Worth:
    """What more warps would be worth.

    Args:
        resident_warps: of one scheduler, on average while its SM is active; None when unknown.
    """
    issue = read_amount(facts, "smsp__issue_active.avg.per_cycle_active")
    roofs = _list_roofs(facts)
    target = _find_target(facts, resident_warps, issue, roofs)
    if verdict.most_speedup is not None:
        gain = say("More warps would gain at most {most}", most=factor(verdict.most_speedup))
        if verdict.most_speedup < _NO_GAIN:
            gain = say("More warps cannot help")
        finding = Finding(
            text=say("{gain}: {verdict}", gain=gain, verdict=verdict.sentence), share_ratio=1 / verdict.most_speedup
        )
        return Worth(can_help=False, finding=finding)
    if target is None or resident_warps is None:
        metrics = ("smsp__issue_active.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active")
        return Worth(
            can_help=None,
            finding=Finding(
                text=say("Unknown whether more warps would help: the profile has neither samples nor issue rates.")
            ),
            missing=(lack("the warps that hide the latency", *metrics, section="SchedulerStats", needs_all=True),),
        )
    return _compare(facts, resident_warps, most_warps, target, verdict)


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


def _compare(
    facts: KernelFacts, resident: float, most: float, target: tuple[float, Sentence], verdict: Verdict
) -> Worth:
    """Warps there are, and that would be needed; whether more help is said where the limiter leaves that open."""
    needed, purpose = target
    needs = say(
        "At the current latencies a scheduler needs about {needed} to {purpose} (Little's law) and has {resident}.",
        needed=number(needed, "warp"),
        purpose=purpose,
        resident=number(resident),
    )
    ready = _measure_ready(facts)
    if needed < _WORTH_GAIN * resident or ready or not verdict.is_open:
        text = join([needs, ready, NOTHING if verdict.is_open else verdict.sentence])
        return Worth(can_help=None, finding=Finding(text=text))
    if needed <= most:
        helps = say("More warps help, and so do more independent instructions per warp.")
    else:
        helps = say(
            "It holds at most {most}: occupancy alone cannot hide the latency; more independent instructions per warp or shorter latencies must "
            "help.",
            most=count(most),
        )
    finding = Finding(text=join([needs, helps]), weight=Weight.HIGH)
    return Worth(can_help=True, finding=finding)


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
            (resident_warps * sustained / used, say("saturate {name}", name=name))
            for name, used, sustained in roofs
            if used > 0
        ]
    return min(targets, key=lambda target: target[0], default=None)


def _list_roofs(facts: KernelFacts) -> list[_RoofUse]:
    """Of the longest launch by the roofline, nearest first, or else what the counters say of DRAM; the issue ceiling is not among them.

    A unit that is fuller than any ceiling comes first: behind it more warps only queue.
    """
    placed = _find_placed(facts)
    if placed is not None:
        unit = placed.tighter_unit
        busiest = [] if unit is None else [(f"the peak of {unit.phrase}", unit.share_ratio, unit.ceiling_ratio)]
        return busiest + [
            (f"the {roof.name}", roof.share_ratio, roof.ceiling_ratio)
            for roof in placed.roofs
            if roof.level is not None or roof.kind is not None
        ]
    used_percent = read_amount(
        facts,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
    )
    if used_percent is None:
        return []
    ceiling = find_dram_ceiling(facts.kernel.device.attributes.get("device__attribute_global_memory_bus_width"))
    return [("the DRAM bandwidth", used_percent / 100, ceiling)]


def _find_placed(facts: KernelFacts) -> Roofline | None:
    """Where the longest launch stands, or else all together; None without a roofline."""
    if facts.roofline is None:
        return None
    return facts.roofline.find_launch(None if facts.longest is None else facts.longest.index) or facts.roofline.whole


def _measure_ready(facts: KernelFacts) -> Sentence:
    """The share of the samples in which a warp could have issued and another did, where it is large."""
    total = facts.kernel.total_samples
    ready = facts.rows.count_reason("not_selected") / total if total else 0.0
    if ready < ENOUGH_READY_RATIO:
        return NOTHING
    return say("In {share} of the samples the warp was ready and not selected.", share=percent(ready))
