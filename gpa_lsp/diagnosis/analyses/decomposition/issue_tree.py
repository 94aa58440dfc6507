"""The tree of issue slots: used ones, and empty ones by stall reason and source."""

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.decomposition.instruction_rows import InstructionRows, view_rows
from gpa_lsp.diagnosis.analyses.decomposition.issue_slots import IssueSlots, read_issue_slots
from gpa_lsp.diagnosis.analyses.decomposition.latency_split import QUEUEING
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import BUSY_RATIO, MemoryView, view_memory
from gpa_lsp.diagnosis.analyses.decomposition.memory_words import LEG_REMEDIES, LEVEL_REMEDIES, NOT_BUSY_REMEDY
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import choose_remedy
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import split_reason
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import StateTime, WarpTime, read_warp_time
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD
from gpa_lsp.foundation.prose import NOTHING, Sentence

# Stall samples from which their shares are trusted more than counters, which do not know when nothing was issued
_FEWEST_SAMPLES = 500
_KEPT_RATIO = 0.99
_MOST_REASONS = 8
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


def build_issue_tree(facts: KernelFacts) -> IssueTree | None:
    """The tree of a kernel; None when neither counters nor samples tell what its warps did.

    With u of the slots used, 1 − u are empty, and a reason's part of these is its part of the samples that were taken while the scheduler
    issued nothing (``not issued``). Without enough of these it is the reason's part of the cycles in which warps were stalled. Where the slots are
    unknown the root is warp-cycles: stalled ones and the rest.

    Sources of a reason: where the time of long_scoreboard goes in the memory, when that is known; else, and for all others, by
    :func:`~gpa_lsp.diagnosis.analyses.decomposition.stall_split.split_reason`.
    """
    time = read_warp_time(facts)
    if time is None:
        return None
    slots = read_issue_slots(facts)
    lost = time.stalled_ratio if slots is None else slots.idle_ratio
    weights = _weigh_stalls(time) if slots is not None else {one.state.name: one.share_ratio for one in time.stalls}
    total = sum(weights.values())
    nodes = [
        Node(
            level=0,
            name="issue slots used" if slots is not None else "issuing, or ready to",
            share_ratio=1 - lost,
            of_parent_ratio=1 - lost,
        ),
        Node(
            level=0,
            name="issue slots empty" if slots is not None else "stalled",
            share_ratio=lost,
            of_parent_ratio=lost,
        ),
    ]
    if total > 0 and lost > 0:
        nodes += _build_reasons(facts, time, weights, lost)
    return IssueTree(nodes=tuple(nodes), slots=slots, time=time)


def _weigh_stalls(time: WarpTime) -> dict[str, float]:
    """Reason → its weight among the stalls."""
    enough = _FEWEST_SAMPLES if time.from_counters else 1
    by_latency = {one.state.name: one.latency_share_ratio or 0.0 for one in time.stalls}
    if sum(one.sampled for one in time.stalls) >= enough and sum(by_latency.values()) > 0:
        return by_latency
    return {one.state.name: one.share_ratio for one in time.stalls}


def _build_reasons(facts: KernelFacts, time: WarpTime, weights: dict[str, float], lost: float) -> list[Node]:
    total, covered = sum(weights.values()), 0.0
    times = {one.state.name: one for one in time.stalls}
    rows = view_rows(facts)
    nodes: list[Node] = []
    for name, weight in sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:_MOST_REASONS]:
        if covered >= _KEPT_RATIO * total or weight == 0:
            break
        ratio = weight / total
        covered += weight
        children = _build_sources(facts, name, ratio * lost, rows)
        remedy = _choose_remedy(children) or times[name].state.remedy
        node = Node(
            level=1, name=name, share_ratio=ratio * lost, of_parent_ratio=ratio, time=times[name], remedy=remedy
        )
        nodes += [node, *_cut(children, node)]
    if covered < total:
        rest = 1 - covered / total
        nodes.append(Node(level=1, name=OTHER_REASONS, share_ratio=rest * lost, of_parent_ratio=rest))
    return nodes


def _build_sources(facts: KernelFacts, reason: str, share: float, rows: InstructionRows) -> list[Node]:
    """The sources of a reason, largest first."""
    parts = _build_memory(view_memory(facts), share) if reason == LONG_SCOREBOARD else []
    if parts:
        return parts
    split = split_reason(facts, reason, rows)
    return [
        _make_source(source.label, share, split.share_of(source), choose_remedy(facts, split, source, rows.kinds))
        for source in split.sources
    ]


def _choose_remedy(children: list[Node]) -> Sentence:
    """That of the largest source; of queueing only where it is the larger part, since the legs of the way belong together."""
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
    parts = sorted(view.split.parts, key=lambda part: -part.share_ratio)
    return [
        _make_source(
            _name_queueing(view) if part.name == QUEUEING else part.name,
            share,
            part.share_ratio,
            _find_queueing_remedy(view) if part.name == QUEUEING else LEG_REMEDIES.get(part.name, NOTHING),
        )
        for part in parts
    ]


def _name_queueing(view: MemoryView) -> str:
    busiest = view.busiest
    if busiest is None or busiest.ratio < BUSY_RATIO:
        return QUEUEING
    return f"{QUEUEING} at {busiest.unit.level}"


def _find_queueing_remedy(view: MemoryView) -> Sentence:
    busiest = view.busiest
    if busiest is None:
        return LEG_REMEDIES[QUEUEING]
    return LEVEL_REMEDIES[busiest.unit.level] if busiest.ratio >= BUSY_RATIO else NOT_BUSY_REMEDY


def _make_source(name: str, share: float, ratio: float, remedy: Sentence) -> Node:
    return Node(level=2, name=name, share_ratio=share * ratio, of_parent_ratio=ratio, remedy=remedy)


def _cut(children: list[Node], parent: Node) -> list[Node]:
    """The first children, and the rest of them as one; remedies that the parent has are not said again."""
    kept = [child for child in children[:_MOST_SOURCES] if child.of_parent_ratio >= _LEAST_SOURCE_RATIO]
    rest = 1 - sum(child.of_parent_ratio for child in kept)
    if kept and rest > _ROUNDING:
        kept.append(_make_source(OTHER_SOURCES, parent.share_ratio, rest, NOTHING))
    return [replace(child, remedy=NOTHING) if child.remedy == parent.remedy else child for child in kept]
