"""The answer of the top-down tree in words, bars and a table."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Column, Finding, Missing, Table, Weight
from gpa_lsp.diagnosis.analyses.decomposition.finding_order import order_findings
from gpa_lsp.diagnosis.analyses.decomposition.issue_slots import IssueSlots
from gpa_lsp.diagnosis.analyses.decomposition.issue_tree import (
    OTHER_REASONS,
    OTHER_SOURCES,
    IssueTree,
    Node,
    build_issue_tree,
)
from gpa_lsp.diagnosis.analyses.facts import KernelFacts, lack
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import NOTHING, Sentence, cycles, factor, join, percent, say
from gpa_lsp.profile.stall_reasons import describe_stall_reason

TITLE = "Where the issue slots go"
# From this part of the slots on, issue is not what to look at. Source: Nsight Compute's rule on stalls has the same threshold.
_WELL_USED_RATIO = 0.8
_NEAR_PEAK_RATIO = 0.8
_OFTEN_IDLE_RATIO = 0.9
_HIGH_RATIO = 0.2
_SHOWN_RATIO = 0.03


def write_tree_answer(facts: KernelFacts, name: str) -> Answer:
    """The answer to :mod:`gpa_lsp.diagnosis.analyses.questions.top_down`."""
    tree = build_issue_tree(facts)
    if tree is None:
        missing = lack(
            "what the warps do",
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
            section="WarpStateStats",
        )
        summary = say("Unknown: neither warp states nor stall samples were collected.")
        return Answer(analysis=name, title=TITLE, summary=summary, missing=(missing,), is_known=False)
    return Answer(
        analysis=name,
        title=TITLE,
        summary=_summarise(tree),
        findings=order_findings(_find(tree)),
        bars=tuple(_draw_bars(tree)),
        tables=(_tabulate(tree, is_split=_is_split(facts)),),
        missing=tuple(_list_missing(facts, tree)),
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


def _is_split(facts: KernelFacts) -> bool:
    """Whether samples taken while nothing was issued are told from the others, or there are none at all."""
    return facts.kernel.is_split or facts.kernel.total_samples == 0


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
        columns=(
            Column(name="level", quantity=Quantity.COUNT),
            Column(name="node"),
            Column(name=f"of the {whole}", quantity=Quantity.RATIO),
            Column(name="of the node above", quantity=Quantity.RATIO),
            Column(name="of the warps' time", quantity=Quantity.RATIO),
            Column(name="cycles per instruction", quantity=Quantity.NUMBER),
            Column(name="suggestion"),
        ),
        rows=tuple(rows),
        note=say("Empty slots are divided by {basis}; the warps' time is by {per}.", basis=basis, per=per),
    )


def _list_missing(facts: KernelFacts, tree: IssueTree) -> Iterator[Missing]:
    if tree.slots is None:
        yield lack("how many issue slots are used", "smsp__issue_active.avg.per_cycle_active", section="SchedulerStats")
    if not tree.time.from_counters:
        name = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
        yield lack("how the warps' time divides, by hardware counters", name, section="WarpStateStats")
    if tree.slots is not None and not _is_split(facts):
        why = say("the profile does not mark not-issued samples")
        yield Missing(what="which stalls leave the slots empty (taken by stalled time)", why=why)
    if facts.kernel.total_samples == 0:
        yield lack("which instructions stall", section="SourceCounters")
