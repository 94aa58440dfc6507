"""How many warps fit on an SM, how many were resident, what limits them, and what more of them would be worth."""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Chart, Column, Finding, Missing, Table, Weight, list_columns
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import LimiterKind
from gpa_lsp.diagnosis.analyses.occupancy.launch import (
    ACHIEVED,
    DYNAMIC_SHARED,
    THEORETICAL,
    LaunchShape,
    find_launch_occupancy,
    list_compared_launches,
    read_amount,
    read_code_shape,
    read_launch_shape,
)
from gpa_lsp.diagnosis.analyses.occupancy.tables import (
    describe_free_room,
    describe_steps_up,
    tabulate_block_sizes,
    tabulate_carveouts,
    tabulate_limits,
    tabulate_registers,
    tabulate_shared_memory,
)
from gpa_lsp.diagnosis.analyses.occupancy.worth import (
    OccupancyGap,
    Verdict,
    Worth,
    describe_gap,
    judge_worth,
    measure_gap,
)
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.foundation.numbers import Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, count, join, list_of, number, percent, say, size
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, Occupancy, OccupancyLimit, find_occupancy
from gpa_lsp.profile.model import Launch


def answer_from_code(facts: KernelFacts) -> Answer:
    """Without a launch: what blocks of every size would have, with the registers and the static shared memory of the code."""
    architecture = facts.architecture
    function = facts.kernel.functions[0].function if facts.kernel.functions else None
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


def answer_from_counters(facts: KernelFacts) -> Answer:
    """What the report itself says, where the rules cannot be applied."""
    theoretical, achieved = read_amount(facts, THEORETICAL), read_achieved(facts)
    if facts.architecture is None:
        why = say("there is no table of compute capability {capability}", capability=_say_capability(facts))
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
    return Answer(
        summary=say("Occupancy is unknown: {why}.", why=missing[0].why),
        missing=missing,
        is_known=False,
    )


def draw_bars(theoretical: float | None, achieved: float | None) -> tuple[Bar, ...]:
    """What fits, and what was there; parts of the warps of an SM, None where unknown."""
    bars = []
    if theoretical is not None:
        bars.append(Bar(label="theoretical", ratio=min(1.0, theoretical)))
    if achieved is not None:
        ceiling = 1.0 if theoretical is None else min(1.0, theoretical)
        bars.append(Bar(label="achieved", ratio=achieved, ceiling_ratio=ceiling))
    return tuple(bars)


def read_achieved(facts: KernelFacts) -> float | None:
    """Resident warps of those an SM can have, on average while it is active; None when not collected."""
    percent = read_amount(facts, ACHIEVED)
    return None if percent is None else min(1.0, percent / 100)


def _say_capability(facts: KernelFacts) -> str:
    capability = facts.kernel.device.compute_capability
    return "unknown" if capability is None else f"{capability[0]}.{capability[1]}"


_MOST_LAUNCHES = 50

# Below this share of the warps that fit, something else than room is missing; Nsight Compute's rule for the tail takes the same figure
RESIDENT_SHARE = 0.8


class _Standing(Struct, frozen=True, kw_only=True):
    """Where the longest launch stands; ``achieved_ratio`` is None when not collected, ``gap`` where it cannot be explained."""

    architecture: Architecture
    shape: LaunchShape
    block: BlockShape
    occupancy: Occupancy
    achieved_ratio: float | None
    gap: OccupancyGap | None
    worth: Worth


def answer_occupancy(facts: KernelFacts) -> Answer:
    """Theoretical and achieved occupancy of the longest launch, their limits, and what would change them."""
    architecture, launch = facts.architecture, facts.longest
    if launch is None:
        return answer_from_code(facts)
    if architecture is None:
        return answer_from_counters(facts)
    shape = read_launch_shape(facts, launch)
    occupancy = find_launch_occupancy(architecture, shape, launch)
    if shape.block is None or occupancy is None:
        return answer_from_counters(facts)
    achieved = read_achieved(facts)
    standing = _Standing(
        architecture=architecture,
        shape=shape,
        block=shape.block,
        occupancy=occupancy,
        achieved_ratio=achieved,
        gap=_measure_gap(facts, shape, occupancy, achieved),
        worth=_judge(facts, architecture, achieved),
    )
    tables, charts = _tabulate(standing)
    missing = [*standing.worth.missing]
    if shape.dynamic_bytes is None:
        missing.append(lack("the shared memory given at launch (taken as none)", DYNAMIC_SHARED, section="LaunchStats"))
    if achieved is None:
        missing.append(lack("the warps that were resident", ACHIEVED, section="Occupancy"))
    return Answer(
        summary=_summarise(standing),
        findings=tuple(_list_findings(standing)),
        bars=draw_bars(occupancy.ratio, achieved),
        tables=(*tables, *_tabulate_launches(facts, architecture)),
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
    occupancy, gap, worth = standing.occupancy, standing.gap, standing.worth
    if not occupancy.blocks_per_sm:
        return
    yield worth.finding
    if gap is not None:
        yield describe_gap(gap)
    clusters = _describe_clusters(standing.shape, occupancy)
    if clusters is not None:
        yield clusters
    if occupancy.limiters:
        # Room for more warps is of use only where the room there is is used.
        is_full = gap is None or gap.ratio <= 1 - RESIDENT_SHARE
        weight = Weight.HIGH if worth.can_help and is_full else Weight.PLAIN
        is_small = gap is not None and gap.grid_warps > 0
        remark = say("The grid has no blocks to make use of it.") if is_small else NOTHING
        yield from describe_steps_up(standing.architecture, standing.block, occupancy, weight, remark)
    room = describe_free_room(standing.architecture, standing.block, occupancy)
    if room is not None:
        yield room


def _measure_gap(
    facts: KernelFacts, shape: LaunchShape, occupancy: Occupancy, achieved_ratio: float | None
) -> OccupancyGap | None:
    if achieved_ratio is None or not occupancy.blocks_per_sm:
        return None
    resident = achieved_ratio * occupancy.max_warps_per_sm
    return measure_gap(shape, occupancy, resident, read_amount(facts, "sm__cycles_active.avg"))


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


def _judge(facts: KernelFacts, architecture: Architecture, achieved: float | None) -> Worth:
    schedulers = architecture.sm.sub_partitions_per_sm.value
    most = architecture.occupancy.max_warps_per_sm.value
    resident = read_amount(facts, "smsp__warps_active.avg.per_cycle_active")
    if resident is None and achieved is not None:
        resident = achieved * most / schedulers
    if resident is not None:
        resident = min(resident, most / schedulers)
    limiter = find_limiter(facts)
    verdict = Verdict(
        sentence=limiter.verdict,
        most_speedup=limiter.most_speedup,
        is_open=limiter.kind in (LimiterKind.LATENCY, LimiterKind.UNKNOWN),
    )
    return judge_worth(facts, resident, most / schedulers, verdict)


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


def _tabulate_launches(facts: KernelFacts, architecture: Architecture) -> tuple[Table, ...]:
    """The launches that differ in what they ask for; nothing where all ask for the same."""
    found: dict[tuple[object, ...], tuple[Launch, int]] = {}
    launches, note = list_compared_launches(facts)
    for launch in launches:
        shape = read_launch_shape(facts, launch)
        key = (shape.block, shape.carveout_bytes)
        first, times = found.get(key, (launch, 0))
        found[key] = (first, times + 1)
    if len(found) < 2:
        return ()
    rows = []
    for launch, times in list(found.values())[:_MOST_LAUNCHES]:
        shape = read_launch_shape(facts, launch)
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
    columns = (
        *list_columns("threads per block", "registers per thread", quantity=Quantity.COUNT),
        Column(name="shared memory per block", quantity=Quantity.BYTES),
        Column(name="launches", quantity=Quantity.COUNT),
        *list_columns("theoretical", "achieved by the first", quantity=Quantity.RATIO),
    )
    return (Table(title="Launches that differ", columns=columns, rows=tuple(rows), note=note),)


ANALYSIS = Analysis(name="occupancy", title="Occupancy", order=30, answer=answer_occupancy)
