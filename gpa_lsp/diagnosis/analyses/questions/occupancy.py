"""Question: how many warps fit on an SM, how many were resident, what limits them, and what would more of them gain?"""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Chart,
    Finding,
    Missing,
    Table,
    Weight,
    know_nothing,
    list_columns,
)
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.model import Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.occupancy import (
    ACHIEVED,
    DYNAMIC_SHARED,
    THEORETICAL,
    LaunchShape,
    OccupancyGap,
    find_launch_occupancy,
    list_compared_launches,
    measure_gap,
    measure_resident_warps,
    read_code_shape,
    read_launch_shape,
)
from gpa_lsp.diagnosis.analyses.occupancy_tables import (
    describe_free_room,
    describe_steps_up,
    tabulate_block_sizes,
    tabulate_carveouts,
    tabulate_limits,
    tabulate_registers,
    tabulate_shared_memory,
)
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.roofline.counts import find_device_dram_ceiling
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.prose import (
    NOTHING,
    Sentence,
    capitalize,
    count,
    factor,
    join,
    list_of,
    number,
    percent,
    say,
    size,
)
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, OccupancyLimit, find_occupancy
from gpa_lsp.profile.model import Launch

# A gap of less than this part of what fits is not worth a word; Nsight Compute's rule takes ten points, too
SMALL_GAP_RATIO = 0.1

# Ours: starting a block takes some hundred cycles (in published reports 300 to 700 where nothing else is missing), a tenth of this
SHORT_BLOCK_CYCLES = 5_000


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


def judge_worth(
    subject: Subject, resident_warps: float | None, most_warps: float, limiter: Limiter
) -> tuple[Finding, bool, bool]:
    """Judge more warps: a finding on their worth, whether they help, and whether that could be measured.

    ``resident_warps``: of one scheduler, on average while its SM is active; None when unknown.
    """
    most = limiter.most_speedup
    if most is not None:
        gain = say("More warps would gain at most {most}", most=factor(most))
        if most < _NO_GAIN:
            gain = say("More warps cannot help")
        text = say("{gain}: {verdict}", gain=gain, verdict=limiter.verdict)
        return Finding(text=text, share_ratio=1 / most), False, True
    target = _find_target(subject, resident_warps)
    if target is None or resident_warps is None:
        text = say("Unknown whether more warps would help: the profile has neither samples nor issue rates.")
        return Finding(text=text), False, False
    return *_compare(subject, resident_warps, most_warps, target, limiter), True


def estimate_needed_warps(subject: Subject, resident_warps: float | None) -> float | None:
    """Warps with which a scheduler would issue in every cycle: the cycles between two instructions of a warp, without those lost to other warps.

    These cycles are resident warps over the issue rate, or else all samples over those that issued; the share of samples of warps that were ready and
    not selected goes off, because these stalls grow with the number of warps. Returns None where neither was measured.
    """
    total = subject.total_samples
    issue_ratio = subject.metric("smsp__issue_active.avg.per_cycle_active")
    if resident_warps and issue_ratio:
        interval_cycles = resident_warps / issue_ratio
    else:
        selected = subject.rows.count_reason("selected")
        if not selected:
            return None
        interval_cycles = total / selected
    return (
        interval_cycles * (1 - _measure_not_selected(subject)) if interval_cycles < _LONGEST_INTERVAL_CYCLES else None
    )


def _compare(
    subject: Subject, resident: float, most: float, target: tuple[float, Sentence], limiter: Limiter
) -> tuple[Finding, bool]:
    """Warps there are, and that would be needed; whether more help is said where the limiter leaves that open."""
    is_open = limiter.kind in (LimiterKind.LATENCY, LimiterKind.UNKNOWN)
    needed, purpose = target
    needs = say(
        "At the current latencies a scheduler needs about {needed} to {purpose} (Little's law) and has {resident}.",
        needed=number(needed, "warp"),
        purpose=purpose,
        resident=number(resident),
    )
    ready = _measure_ready(subject)
    if needed < _WORTH_GAIN * resident or ready or not is_open:
        text = join([needs, ready, NOTHING if is_open else limiter.verdict])
        return Finding(text=text), False
    if needed <= most:
        helps = say("More warps help, and so do more independent instructions per warp.")
    else:
        helps = say(
            "It holds at most {most}: occupancy alone cannot hide the latency; more independent instructions per warp or shorter latencies must "
            "help.",
            most=count(most),
        )
    return Finding(text=join([needs, helps]), weight=Weight.HIGH), True


def _find_target(subject: Subject, resident_warps: float | None) -> tuple[float, Sentence] | None:
    """The fewest warps that use something up, and what; None where nothing was measured.

    Work grows with the warps as long as their latency stays what it is, so a ceiling is reached by resident warps · what it sustains / what is used.
    """
    targets = []
    by_issue = estimate_needed_warps(subject, resident_warps)
    if by_issue is not None:
        targets.append((by_issue, say("issue in every cycle")))
    if resident_warps:
        targets += [
            (resident_warps * sustained / used, say("saturate {name}", name=name))
            for name, used, sustained in _list_roofs(subject)
            if used > 0
        ]
    return min(targets, key=lambda target: target[0], default=None)


def _list_roofs(subject: Subject) -> list[tuple[str, float, float]]:
    """Bandwidths and peaks of arithmetic with the share that is used and that can be.

    Of the longest launch by the roofline, nearest first, or else what the counters say of DRAM; the issue ceiling is not among them.

    A unit that is fuller than any ceiling comes first: behind it more warps only queue.
    """
    roofline, launch = subject.roofline, subject.longest
    placed = (
        None if roofline is None else roofline.find_launch(None if launch is None else launch.index) or roofline.whole
    )
    if placed is not None:
        unit = placed.tighter_unit
        busiest = [] if unit is None else [(f"the peak of {unit.phrase}", unit.share_ratio, unit.ceiling_ratio)]
        return busiest + [
            (f"the {roof.name}", roof.share_ratio, roof.ceiling_ratio)
            for roof in placed.roofs
            if roof.level is not None or roof.kind is not None
        ]
    used_percent = subject.metric(
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
        "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
    )
    if used_percent is None:
        return []
    ceiling = find_device_dram_ceiling(subject.kernel.device)
    return [("the DRAM bandwidth", used_percent / 100, ceiling)]


def _measure_not_selected(subject: Subject) -> float:
    """The share of the samples in which the warp was ready, and another one issued; 0 without samples."""
    return subject.share_of(subject.rows.count_reason("not_selected")) or 0.0


def _measure_ready(subject: Subject) -> Sentence:
    """The share of the samples in which a warp could have issued and another did, where it is large."""
    ready = _measure_not_selected(subject)
    if ready < ENOUGH_READY_RATIO:
        return NOTHING
    return say("In {share} of the samples the warp was ready and not selected.", share=percent(ready))


def answer_from_code(subject: Subject) -> Answer:
    """Answer for code without a launch: occupancy of all block sizes, with its registers and static shared memory."""
    architecture = subject.architecture
    function = subject.kernel.functions[0].function if subject.kernel.functions else None
    block = None if architecture is None else read_code_shape(architecture, function)
    if architecture is None or block is None:
        why = (
            "the architecture is unknown"
            if architecture is None
            else "the code does not say how many registers it uses"
        )
        return _know_nothing(Missing(what="occupancy", why=say(why)))
    table, chart = tabulate_block_sizes(architecture, block, None, is_current=False)
    best = max(int(row[2] or 0) for row in table.rows)
    sizes = [say("{threads}", threads=count(int(row[0] or 0))) for row in table.rows if row[2] == best]
    return Answer(
        summary=say(
            "With {registers} per thread and {shared} of static shared memory at most {best} of {most} fit on an SM, in blocks of {sizes} threads.",
            registers=count(block.registers_per_thread, "register"),
            shared=size(block.shared_bytes),
            best=count(best),
            most=count(architecture.occupancy.max_warps_per_sm.value, "warp"),
            sizes=list_of(sizes, last="or"),
        ),
        tables=(table,),
        charts=(chart,),
        missing=(Missing(what="the size of a block and its dynamic shared memory", why=say("nothing was launched")),),
    )


def answer_from_counters(subject: Subject) -> Answer:
    """Answer by the report's own occupancy counters, where the rules cannot be applied."""
    theoretical, achieved = subject.metric(THEORETICAL), read_achieved(subject)
    if subject.architecture is None:
        why = say("there is no table of compute capability {capability}", capability=_say_capability(subject))
    else:
        why = say("the profile does not state the registers, shared memory and threads of a block, or states nonsense")
    missing = Missing(what="what limits the occupancy", why=why)
    if theoretical is None and achieved is None:
        return _know_nothing(missing, lack("occupancy", THEORETICAL, ACHIEVED, section="Occupancy", needs_all=True))
    parts = []
    if theoretical is not None:
        parts.append(say("{share} of an SM's warps fit", share=percent(theoretical / 100)))
    if achieved is not None:
        parts.append(say("{share} were resident on average", share=percent(achieved)))
    ratio = None if theoretical is None else theoretical / 100
    return Answer(
        summary=capitalize(say("{parts}, by the profiler's counters.", parts=join(parts, ", and "))),
        bars=draw_bars(ratio, achieved),
        missing=(missing,),
    )


def _know_nothing(*missing: Missing) -> Answer:
    return know_nothing(say("Occupancy is unknown: {why}.", why=missing[0].why), *missing)


def draw_bars(theoretical: float | None, achieved: float | None) -> tuple[Bar, ...]:
    """Draw theoretical and achieved occupancy; parts of the warps of an SM, None where unknown."""
    bars = []
    if theoretical is not None:
        bars.append(Bar(label="theoretical", ratio=min(1.0, theoretical)))
    if achieved is not None:
        ceiling = 1.0 if theoretical is None else min(1.0, theoretical)
        bars.append(Bar(label="achieved", ratio=achieved, ceiling_ratio=ceiling))
    return tuple(bars)


def read_achieved(subject: Subject) -> float | None:
    """Resident warps of those an SM can have, on average while it is active; None when not collected."""
    percent = subject.metric(ACHIEVED)
    return None if percent is None else min(1.0, percent / 100)


def _say_capability(subject: Subject) -> str:
    capability = subject.kernel.device.compute_capability
    return "unknown" if capability is None else f"{capability[0]}.{capability[1]}"


_MOST_LAUNCHES = 50

# Below this share of the warps that fit, something else than room is missing; Nsight Compute's rule for the tail takes the same figure
RESIDENT_SHARE = 0.8


class _Standing(Struct, frozen=True, kw_only=True):
    """Occupancy of the longest launch; ``achieved_ratio`` is None when not collected, ``gap`` where it cannot be explained."""

    architecture: Architecture
    shape: LaunchShape
    block: BlockShape
    occupancy: Occupancy
    achieved_ratio: float | None
    gap: OccupancyGap | None
    worth: tuple[Finding, bool, bool]


def answer_occupancy(subject: Subject) -> Answer:
    """Theoretical and achieved occupancy of the longest launch, their limits, and what would change them."""
    architecture, launch = subject.architecture, subject.longest
    if launch is None:
        return answer_from_code(subject)
    if architecture is None:
        return answer_from_counters(subject)
    shape = read_launch_shape(subject, launch)
    occupancy = find_launch_occupancy(architecture, shape, launch)
    if shape.block is None or occupancy is None:
        return answer_from_counters(subject)
    achieved = read_achieved(subject)
    standing = _Standing(
        architecture=architecture,
        shape=shape,
        block=shape.block,
        occupancy=occupancy,
        achieved_ratio=achieved,
        gap=_measure_gap(subject, shape, occupancy, achieved),
        worth=_judge(subject, architecture),
    )
    tables, charts = _tabulate(standing)
    missing = []
    if not standing.worth[2]:
        metrics = ("smsp__issue_active.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active")
        missing.append(lack("the warps that hide the latency", *metrics, section="SchedulerStats", needs_all=True))
    if shape.dynamic_bytes is None:
        missing.append(lack("the shared memory given at launch (taken as none)", DYNAMIC_SHARED, section="LaunchStats"))
    if achieved is None:
        missing.append(lack("the warps that were resident", ACHIEVED, section="Occupancy"))
    return Answer(
        summary=_summarise(standing),
        findings=tuple(_list_findings(standing)),
        bars=draw_bars(occupancy.ratio, achieved),
        tables=(*tables, *_tabulate_launches(subject, architecture)),
        charts=charts,
        missing=tuple(missing),
    )


def _summarise(standing: _Standing) -> Sentence:
    occupancy, achieved = standing.occupancy, standing.achieved_ratio
    most = occupancy.max_warps_per_sm
    if not occupancy.blocks_per_sm:
        return say("Not even one block fits on an SM: {limits}.", limits=list_of(occupancy.limiters))
    resident = NOTHING
    if achieved is not None:
        warps = number(achieved * most)
        resident = say("; {warps} were resident on average ({share})", warps=warps, share=percent(achieved))
    return say(
        "{held} of {most} fit on an SM ({share}), {limits}{resident}.",
        held=count(occupancy.warps_per_sm),
        most=count(most, "warp"),
        share=percent(occupancy.ratio),
        limits=_say_limits(standing),
        resident=resident,
    )


def _say_limits(standing: _Standing) -> Sentence:
    """The limiters; shared memory apart where only the carve-out makes it one."""
    limiters = standing.occupancy.limiters
    if not limiters:
        return say("the maximum")
    without_carveout = find_occupancy(standing.architecture, standing.block).limiters
    is_set = OccupancyLimit.SHARED_MEMORY in limiters and OccupancyLimit.SHARED_MEMORY not in without_carveout
    names = [limiter.value for limiter in limiters if not (is_set and limiter is OccupancyLimit.SHARED_MEMORY)]
    if is_set:
        names.append("shared memory under the carve-out as set")
    return say("limited by {names}", names=list_of(names))


def _list_findings(standing: _Standing) -> Iterator[Finding]:
    occupancy, gap = standing.occupancy, standing.gap
    finding, can_help, _ = standing.worth
    if not occupancy.blocks_per_sm:
        return
    yield finding
    if gap is not None:
        yield describe_gap(gap)
    clusters = _describe_clusters(standing.shape, occupancy)
    if clusters is not None:
        yield clusters
    if occupancy.limiters:
        # Room for more warps is of use only where the room there is is used.
        is_full = gap is None or gap.ratio <= 1 - RESIDENT_SHARE
        weight = Weight.HIGH if can_help and is_full else Weight.PLAIN
        is_small = gap is not None and gap.grid_warps > 0
        remark = say("The grid has no blocks to make use of it.") if is_small else NOTHING
        yield from describe_steps_up(standing.architecture, standing.block, occupancy, weight, remark)
    room = describe_free_room(standing.architecture, standing.block, occupancy)
    if room is not None:
        yield room


def _measure_gap(
    subject: Subject, shape: LaunchShape, occupancy: Occupancy, achieved_ratio: float | None
) -> OccupancyGap | None:
    if achieved_ratio is None or not occupancy.blocks_per_sm:
        return None
    resident = achieved_ratio * occupancy.max_warps_per_sm
    return measure_gap(shape, occupancy, resident, subject.metric("sm__cycles_active.avg"))


def _describe_clusters(shape: LaunchShape, occupancy: Occupancy) -> Finding | None:
    """Whether thread block clusters, whose blocks must lie in one GPC, leave room unused; None without clusters."""
    if shape.cluster_blocks is None:
        return None
    fit = shape.most_clustered_blocks
    head = say("Blocks come in clusters of {blocks}", blocks=count(shape.cluster_blocks))
    if fit is None or shape.sm_count is None:
        return Finding(text=say("{head}; how many fit on the GPU was not collected.", head=head))
    alone = occupancy.blocks_per_sm * shape.sm_count
    if fit >= alone:
        all_fit = say(
            "{head}, which limits nothing: all {alone} that fit can be in clusters.",
            head=head,
            alone=count(alone, "block"),
        )
        return Finding(text=all_fit)
    return Finding(
        text=say(
            "{head}, of which {clusters} fit: {blocks} instead of {alone} without clusters.",
            head=head,
            clusters=count(shape.most_clusters),
            blocks=count(fit, "block"),
            alone=count(alone),
        ),
        weight=Weight.HIGH,
        remedy=say("Smaller clusters leave fewer SMs of a GPC without blocks."),
        share_ratio=1 - fit / alone,
    )


def _judge(subject: Subject, architecture: Architecture) -> tuple[Finding, bool, bool]:
    most = architecture.occupancy.max_warps_per_sm.value / architecture.sm.sub_partitions_per_sm.value
    resident = measure_resident_warps(subject, architecture)
    return judge_worth(subject, None if resident is None else min(resident, most), most, find_limiter(subject))


def _tabulate(standing: _Standing) -> tuple[tuple[Table, ...], tuple[Chart, ...]]:
    architecture, block, occupancy = standing.architecture, standing.block, standing.occupancy
    carveout = occupancy.carveout_bytes
    sizes = tabulate_block_sizes(architecture, block, carveout, dynamic_bytes=standing.shape.dynamic_bytes or 0)
    others = (
        tabulate_registers(architecture, block, carveout),
        tabulate_shared_memory(architecture, block, carveout),
    )
    carveouts = tabulate_carveouts(architecture, block, occupancy)
    tables = [tabulate_limits(architecture, block, occupancy), sizes[0], *(table for table, _ in others)]
    if carveouts is not None:
        tables.append(carveouts)
    return tuple(tables), (sizes[1], *(chart for _, chart in others))


def _tabulate_launches(subject: Subject, architecture: Architecture) -> tuple[Table, ...]:
    """The launches that differ in what they ask for; nothing where all ask for the same."""
    found: dict[tuple[object, ...], tuple[Launch, int]] = {}
    launches, note = list_compared_launches(subject)
    for launch in launches:
        shape = read_launch_shape(subject, launch)
        key = (shape.block, shape.carveout_bytes)
        first, times = found.get(key, (launch, 0))
        found[key] = (first, times + 1)
    if len(found) < 2:
        return ()
    rows = []
    for launch, times in list(found.values())[:_MOST_LAUNCHES]:
        shape = read_launch_shape(subject, launch)
        occupancy = find_launch_occupancy(architecture, shape, launch)
        if shape.block is None or occupancy is None:
            continue
        achieved = launch.read_number(ACHIEVED)
        rows.append(
            (
                shape.block.threads,
                shape.block.registers_per_thread,
                shape.block.shared_bytes,
                times,
                occupancy.ratio,
                None if achieved is None else achieved / 100,
            )
        )
    columns = list_columns(
        "threads per block [count] | registers per thread [count] | shared memory per block [bytes] | "
        "launches [count] | theoretical [ratio] | achieved by the first [ratio]"
    )
    return (Table(title="Launches that differ", columns=columns, rows=tuple(rows), note=note),)


ANALYSIS = Analysis(name="occupancy", title="Occupancy", order=30, answer=answer_occupancy)
