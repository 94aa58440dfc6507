"""The top-down tree: issue slots, the stalls that leave them empty, and what is behind each.

The root is how many of the schedulers' issue slots were used; the first level shares the empty ones out among the stall reasons, the second each
reason among its sources.

Source: after DrGPU (Hao et al., "DrGPU: A Top-Down Profiler for GPU Applications", ICPE 2023): the tree, the cut at 99 %; the shares of empty
slots by samples that were taken while nothing was issued are ours.
"""

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import (
    Answer,
    Bar,
    Finding,
    Missing,
    Table,
    Weight,
    know_nothing,
    list_columns,
    order_findings,
)
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import LEG_REMEDIES, QUEUEING, MemoryView, view_memory
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import choose_remedy
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import keep_heaviest, split_reason
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import StateTime, WarpTime, read_warp_time
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, Sentence, cycles, factor, join, percent, say
from gpa_lsp.profile.stall_reasons import describe_stall_reason

_SCHEDULERS = 4


class IssueSlots(Struct, frozen=True, kw_only=True):
    """The issue slots of one launch, one per scheduler and active cycle."""

    used_ratio: float  # of the slots, 0..1
    # of the elapsed cycles, those in which an SM held warps, on average; None when not collected
    active_ratio: float | None
    busiest_ratio: float | None  # how close the busiest unit of SMs or memory is to its peak; None when not collected
    busiest_name: str  # which of the two, for people

    @property
    def idle_ratio(self) -> float:
        """Slots without an instruction."""
        return 1 - self.used_ratio


def read_issue_slots(subject: Subject) -> IssueSlots | None:
    """Read the use of issue slots in the longest launch; None when nothing tells.

    ``smsp__issue_active.avg.per_cycle_active`` is the part of active cycles in which a scheduler issued. Without it: instructions per cycle over
    the schedulers of an SM (1 − IPC/4 are idle). Without that: warp-cycles per issue are known from samples, but not how many warps there were,
    so that nothing can be said.

    Source: DrGPU (Hao et al., ICPE 2023), idle share 1 − IPC/4, bounded by the highest speed of light.
    """
    used = _read_used(subject)
    if used is None:
        return None
    units = [
        ("the SMs", subject.metric("sm__throughput.avg.pct_of_peak_sustained_elapsed")),
        ("the memory", subject.metric("gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed")),
    ]
    known = [(percent / 100, name) for name, percent in units if percent is not None]
    busiest, name = max(known, default=(None, ""))
    return IssueSlots(
        used_ratio=min(1.0, used),
        active_ratio=subject.measure_active(),
        busiest_ratio=busiest,
        busiest_name=name,
    )


def _read_used(subject: Subject) -> float | None:
    used = subject.metric("smsp__issue_active.avg.per_cycle_active")
    if used is not None:
        return used
    schedulers = _SCHEDULERS
    if subject.architecture is not None:
        schedulers = subject.architecture.sm.sub_partitions_per_sm.value
    per_cycle = subject.metric("sm__inst_issued.avg.per_cycle_active", "sm__inst_executed.avg.per_cycle_active")
    return None if per_cycle is None else per_cycle / schedulers


# Stall samples from which their shares are trusted more than counters, which do not know when nothing was issued
_FEWEST_SAMPLES = 500
_MOST_SOURCES = 5
_LEAST_SOURCE_RATIO = 0.02
OTHER_REASONS = "other reasons"
OTHER_SOURCES = "others"
_ROUNDING = 1e-6
_LARGER_PART = 0.5


class Node(Struct, frozen=True, kw_only=True):
    """A node of the tree."""

    level: int  # 0 for slots, 1 for reasons, 2 for their sources
    name: str  # for people
    share_ratio: float  # of the whole of the tree: issue slots, or warp-cycles where slots are unknown
    of_parent_ratio: float  # of the node above
    time: StateTime | None = None  # of a reason; None for other nodes
    remedy: Sentence = NOTHING  # empty where there is none


class IssueTree(Struct, frozen=True, kw_only=True):
    """The tree, in the order to be read: each node before its children."""

    nodes: tuple[Node, ...]  # heaviest first among the children of one node; those of one node add up to it
    slots: IssueSlots | None  # None when unknown; shares are then of warp-cycles
    time: WarpTime  # how the warps spend their cycles


def build_issue_tree(subject: Subject) -> IssueTree | None:
    """The tree of a kernel; None when neither counters nor samples tell what its warps did.

    With u of the slots used, 1 − u are empty, and a reason's part of these is its part of the samples that were taken while the scheduler
    issued nothing (``not issued``). Without enough of these it is the reason's part of the cycles in which warps were stalled. Where the slots are
    unknown the root is warp-cycles: stalled ones and the rest.

    Sources of a reason: where the time of long_scoreboard goes in the memory, when that is known; else, and for all others, by
    :func:`~gpa_lsp.diagnosis.analyses.decomposition.stall_split.split_reason`.
    """
    time = read_warp_time(subject)
    if time is None:
        return None
    slots = read_issue_slots(subject)
    lost = time.stalled_ratio if slots is None else slots.idle_ratio
    weights = _weigh_stalls(time) if slots is not None else {one.state.name: one.share_ratio for one in time.stalls}
    total = sum(weights.values())
    names = ("issuing, or ready to", "stalled") if slots is None else ("issue slots used", "issue slots empty")
    nodes = [
        Node(level=0, name=name, share_ratio=ratio, of_parent_ratio=ratio)
        for name, ratio in zip(names, (1 - lost, lost), strict=True)
    ]
    if total > 0 and lost > 0:
        nodes += _build_reasons(subject, time, weights, lost)
    return IssueTree(nodes=tuple(nodes), slots=slots, time=time)


def _weigh_stalls(time: WarpTime) -> dict[str, float]:
    """Reason → its weight among the stalls."""
    enough = _FEWEST_SAMPLES if time.from_counters else 1
    by_latency = {one.state.name: one.latency_share_ratio or 0.0 for one in time.stalls}
    if sum(one.sampled for one in time.stalls) >= enough and sum(by_latency.values()) > 0:
        return by_latency
    return {one.state.name: one.share_ratio for one in time.stalls}


def _build_reasons(subject: Subject, time: WarpTime, weights: dict[str, float], lost: float) -> list[Node]:
    total, kept = sum(weights.values()), keep_heaviest(weights)
    times = {one.state.name: one for one in time.stalls}
    nodes: list[Node] = []
    for name in kept:
        ratio = weights[name] / total
        children = _build_sources(subject, name, ratio * lost)
        remedy = _choose_remedy(children) or times[name].state.remedy
        node = Node(
            level=1, name=name, share_ratio=ratio * lost, of_parent_ratio=ratio, time=times[name], remedy=remedy
        )
        nodes += [node, *_cut(children, node)]
    covered = sum(weights[name] for name in kept)
    if covered < total:
        rest = 1 - covered / total
        nodes.append(Node(level=1, name=OTHER_REASONS, share_ratio=rest * lost, of_parent_ratio=rest))
    return nodes


def _build_sources(subject: Subject, reason: str, share: float) -> list[Node]:
    """The sources of a reason, largest first."""
    parts = _build_memory(view_memory(subject), share) if reason == LONG_SCOREBOARD else []
    if parts:
        return parts
    split = split_reason(subject, reason)
    return [
        _make_source(source.label, share, split.share_of(source), choose_remedy(subject, split, source))
        for source in split.sources
    ]


def _choose_remedy(children: list[Node]) -> Sentence:
    """Choose the remedy of the largest source; of queueing only where it is the larger part, since the legs of the way belong together."""
    if not children:
        return NOTHING
    first = children[0]
    if len(children) > 1 and first.name.startswith(QUEUEING) and first.of_parent_ratio < _LARGER_PART:
        return children[1].remedy
    return first.remedy


def _build_memory(view: MemoryView, share: float) -> list[Node]:
    """The parts of the long-scoreboard time, largest first; empty when they are unknown."""
    if view.split is None:
        return []
    queueing = QUEUEING if view.full_unit is None else f"{QUEUEING} at {view.full_unit.level}"
    parts = sorted(view.split.parts, key=lambda part: -part.share_ratio)
    return [
        _make_source(
            queueing if part.name == QUEUEING else part.name,
            share,
            part.share_ratio,
            view.queueing_remedy if part.name == QUEUEING else LEG_REMEDIES.get(part.name, NOTHING),
        )
        for part in parts
    ]


def _make_source(name: str, share: float, ratio: float, remedy: Sentence) -> Node:
    return Node(level=2, name=name, share_ratio=share * ratio, of_parent_ratio=ratio, remedy=remedy)


def _cut(children: list[Node], parent: Node) -> list[Node]:
    """The first children, and the rest of them as one; remedies that the parent has are not said again."""
    kept = [child for child in children[:_MOST_SOURCES] if child.of_parent_ratio >= _LEAST_SOURCE_RATIO]
    rest = 1 - sum(child.of_parent_ratio for child in kept)
    if kept and rest > _ROUNDING:
        kept.append(_make_source(OTHER_SOURCES, parent.share_ratio, rest, NOTHING))
    return [replace(child, remedy=NOTHING) if child.remedy == parent.remedy else child for child in kept]


# From this part of the slots on, issue is not what to look at. Source: Nsight Compute's rule on stalls has the same threshold.
_WELL_USED_RATIO = 0.8
_NEAR_PEAK_RATIO = 0.8
_OFTEN_IDLE_RATIO = 0.9
_HIGH_RATIO = 0.2
_SHOWN_RATIO = 0.03


def answer(subject: Subject) -> Answer:
    """Answer where the issue slots go."""
    tree = build_issue_tree(subject)
    if tree is None:
        missing = lack(
            "what the warps do",
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
            section="WarpStateStats",
        )
        return know_nothing(say("Unknown: neither warp states nor stall samples were collected."), missing)
    return Answer(
        summary=_summarise(tree),
        findings=order_findings(_find(tree), by_share=True),
        bars=tuple(_draw_bars(tree)),
        tables=(_tabulate(tree, is_split=_is_split(subject)),),
        missing=tuple(_list_missing(subject, tree)),
    )


def _summarise(tree: IssueTree) -> Sentence:
    used, lost = tree.nodes[0], tree.nodes[1]
    reasons = [node for node in tree.nodes if node.level == 1 and node.name != OTHER_REASONS]
    whole = (
        "{used} of the issue slots are used"
        if tree.slots is not None
        else "Warps issue, or could, in {used} of their time"
    )
    start = say(whole, used=percent(used.share_ratio))
    if not reasons or lost.share_ratio <= 0:
        return say("{start}.", start=start)
    return say(
        "{start}; of the rest, {part} is lost to {reason}.",
        start=start,
        part=percent(reasons[0].of_parent_ratio),
        reason=reasons[0].name,
    )


def _find(tree: IssueTree) -> Iterator[Finding]:
    if tree.slots is not None:
        yield from _find_slots(tree.slots)
    whole = "issue slots are" if tree.slots is not None else "warps' time is"
    for node, below in _list_children(tree):
        if node.share_ratio < _SHOWN_RATIO or node.time is None:
            continue
        named = [child for child in below if child.name != OTHER_SOURCES][:3]
        parts = join((say("{part} {name}", part=percent(one.of_parent_ratio), name=one.name) for one in named), "; ")
        each = node.time.cycles_per_issue
        yield Finding(
            text=say(
                "{share} of the {whole} lost to {reason} ({meaning}{each}){parts}.",
                share=percent(node.share_ratio),
                whole=whole,
                reason=node.name,
                meaning=describe_stall_reason(node.name).description,
                each=NOTHING if each is None else say(", {cycles} per instruction", cycles=cycles(each)),
                parts=say(": {parts}", parts=parts) if parts else NOTHING,
            ),
            weight=Weight.HIGH if node.share_ratio >= _HIGH_RATIO else Weight.PLAIN,
            remedy=node.remedy,
            share_ratio=node.share_ratio,
        )


def _find_slots(slots: IssueSlots) -> Iterator[Finding]:
    if slots.used_ratio >= _WELL_USED_RATIO:
        yield Finding(
            text=say(
                "The schedulers issue in {used} of their cycles.",
                used=percent(slots.used_ratio),
            ),
            weight=Weight.GOOD,
            remedy=say("Do the same work with fewer instructions"),
            share_ratio=slots.used_ratio,
        )
    if slots.busiest_ratio is not None and slots.busiest_ratio >= _NEAR_PEAK_RATIO:
        text = say(
            "The busiest unit of {name} is at {share} of its peak: filling empty slots gains at most {most}.",
            name=slots.busiest_name,
            share=percent(slots.busiest_ratio),
            most=factor(max(1.0, 1 / slots.busiest_ratio)),
        )
        yield Finding(text=text, weight=Weight.HIGH, remedy=say("Do less of what the busiest unit does"))
    if slots.active_ratio is not None and slots.active_ratio < _OFTEN_IDLE_RATIO:
        text = say(
            "An SM has warps only {active} of the time on average; the other shares are of that part.",
            active=percent(slots.active_ratio),
        )
        remedy = say("Launch more blocks, or blocks of more even length")
        yield Finding(text=text, weight=Weight.HIGH, remedy=remedy, share_ratio=1 - slots.active_ratio)


def _list_children(tree: IssueTree) -> list[tuple[Node, list[Node]]]:
    """Every reason with its sources."""
    found: list[tuple[Node, list[Node]]] = []
    for node in tree.nodes:
        if node.level == 1:
            found.append((node, []))
        elif node.level == 2:
            found[-1][1].append(node)
    return found


def _draw_bars(tree: IssueTree) -> Iterator[Bar]:
    yield Bar(label=tree.nodes[0].name, ratio=tree.nodes[0].share_ratio)
    for node, below in _list_children(tree):
        yield Bar(
            label=node.name, ratio=node.share_ratio, words=say("{name}", name=below[0].name) if below else NOTHING
        )


def _is_split(subject: Subject) -> bool:
    """Whether samples taken while nothing was issued are told from the others, or there are none at all."""
    return subject.kernel.is_split or subject.total_samples == 0


def _tabulate(tree: IssueTree, *, is_split: bool) -> Table:
    whole = "issue slots" if tree.slots is not None else "warps' time"
    rows: list[tuple[Cell, ...]] = [
        (
            node.level,
            node.name,
            node.share_ratio,
            node.of_parent_ratio,
            None if node.time is None else node.time.share_ratio,
            None if node.time is None else node.time.cycles_per_issue,
            node.remedy,
        )
        for node in tree.nodes
    ]
    per = "counters of the longest launch" if tree.time.from_counters else "samples of all launches"
    basis = "not-issued samples" if is_split else "stalled time"
    return Table(
        title="From issue slots to what leaves them empty",
        columns=list_columns(
            f"level [count] | node | of the {whole} [ratio] | of the node above [ratio] | "
            f"of the warps' time [ratio] | cycles per instruction [number] | suggestion"
        ),
        rows=tuple(rows),
        note=say("Empty slots are divided by {basis}; the warps' time is by {per}.", basis=basis, per=per),
    )


def _list_missing(subject: Subject, tree: IssueTree) -> Iterator[Missing]:
    if tree.slots is None:
        yield lack("how many issue slots are used", "smsp__issue_active.avg.per_cycle_active", section="SchedulerStats")
    if not tree.time.from_counters:
        name = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
        yield lack("how the warps' time divides, by hardware counters", name, section="WarpStateStats")
    if tree.slots is not None and not _is_split(subject):
        why = say("the profile does not mark not-issued samples")
        yield Missing(what="which stalls leave the slots empty (taken by stalled time)", why=why)
    if subject.total_samples == 0:
        yield lack("which instructions stall", section="SourceCounters")


ANALYSIS = Analysis(name="top_down", title="Where the issue slots go", order=50, answer=answer)
