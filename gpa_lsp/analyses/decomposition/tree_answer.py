"""The answer of the top-down tree in words, bars and a table."""

from collections.abc import Iterator

from gpa_lsp.analyses.answers import Answer, Bar, Column, Finding, Missing, Table, Weight
from gpa_lsp.analyses.decomposition.finding_order import order_findings
from gpa_lsp.analyses.decomposition.issue_slots import IssueSlots
from gpa_lsp.analyses.decomposition.issue_tree import OTHER_REASONS, OTHER_SOURCES, IssueTree, Node, build_issue_tree
from gpa_lsp.analyses.facts import KernelFacts, lack
from gpa_lsp.basis.numbers import Cell, Quantity, format_percent
from gpa_lsp.profile.stall_reasons import describe_stall_reason

TITLE = "Where the issue slots go"
_WELL_USED_RATIO = 0.8
"""From this part of the slots on, issue is not what to look at. Source: Nsight Compute's rule on stalls has the same threshold."""
_NEAR_PEAK_RATIO = 0.8
_OFTEN_IDLE_RATIO = 0.9
_HIGH_RATIO = 0.2
_SHOWN_RATIO = 0.03
_FEW_CYCLES = 0.1


def write_tree_answer(facts: KernelFacts, name: str) -> Answer:
    """The answer to :mod:`gpa_lsp.analyses.questions.top_down`."""
    tree = build_issue_tree(facts)
    if tree is None:
        missing = lack(
            "what the warps do",
            "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
            section="WarpStateStats",
        )
        summary = "Unknown: neither warp states nor stall samples were collected."
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


def _summarise(tree: IssueTree) -> str:
    used, lost = tree.nodes[0], tree.nodes[1]
    reasons = [node for node in tree.nodes if node.level == 1 and node.name != OTHER_REASONS]
    what = "issue slots are used" if tree.slots is not None else "the warps' time they issue or could"
    start = (
        f"{format_percent(used.share_ratio)} of the {what}"
        if tree.slots is not None
        else f"In {format_percent(used.share_ratio)} of {what}"
    )
    if not reasons or lost.share_ratio <= 0:
        return f"{start}."
    first = reasons[0]
    return f"{start}; of the rest, {format_percent(first.of_parent_ratio)} is lost to {first.name}."


def _find(tree: IssueTree) -> Iterator[Finding]:
    if tree.slots is not None:
        yield from _find_slots(tree.slots)
    whole = "issue slots are" if tree.slots is not None else "warps' time is"
    children = _list_children(tree)
    for node, below in children:
        if node.share_ratio < _SHOWN_RATIO or node.time is None:
            continue
        said = describe_stall_reason(node.name).description
        named = [child for child in below if child.name != OTHER_SOURCES][:3]
        parts = "; ".join(f"{format_percent(child.of_parent_ratio)} {child.name}" for child in named)
        each = node.time.cycles_per_issue
        cycles = "" if each is None else f", {_write_cycles(each)} cycles for each instruction"
        text = f"{format_percent(node.share_ratio)} of the {whole} lost to {node.name} ({said}{cycles}){': ' + parts if parts else ''}."
        yield Finding(
            text=text,
            weight=Weight.HIGH if node.share_ratio >= _HIGH_RATIO else Weight.PLAIN,
            remedy=node.remedy,
            share_ratio=node.share_ratio,
        )


def _write_cycles(cycles: float) -> str:
    return f"{cycles:,.1f}" if cycles >= _FEW_CYCLES else f"{cycles:.2f}"


def _find_slots(slots: IssueSlots) -> Iterator[Finding]:
    if slots.used_ratio >= _WELL_USED_RATIO:
        text = f"The schedulers issue in {format_percent(slots.used_ratio)} of their cycles: only fewer instructions make this faster."
        yield Finding(
            text=text,
            weight=Weight.GOOD,
            remedy="Do the same work with fewer instructions",
            share_ratio=slots.used_ratio,
        )
    if slots.busiest_ratio is not None and slots.busiest_ratio >= _NEAR_PEAK_RATIO:
        text = (
            f"Filling empty slots gains little: the busiest unit of {slots.busiest_name} is at {format_percent(slots.busiest_ratio)} "
            f"of its peak, so that the same work takes at least {format_percent(slots.busiest_ratio)} of the time."
        )
        yield Finding(text=text, weight=Weight.HIGH, remedy="Do less of what the busiest unit does")
    if slots.active_ratio is not None and slots.active_ratio < _OFTEN_IDLE_RATIO:
        text = f"On average an SM has warps in {format_percent(slots.active_ratio)} of the time only; the other shares are of that part."
        remedy = "Start more blocks, or blocks of more even length"
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
        yield Bar(label=node.name, ratio=node.share_ratio, words=below[0].name if below else "")


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
    basis = "samples taken while nothing was issued" if is_split else "stalled time"
    return Table(
        title="From issue slots to what leaves them empty",
        columns=(
            Column(name="level", quantity=Quantity.COUNT),
            Column(name="node"),
            Column(name=f"of the {whole}", quantity=Quantity.RATIO),
            Column(name="of the node above", quantity=Quantity.RATIO),
            Column(name="of the warps' time", quantity=Quantity.RATIO),
            Column(name="cycles per instruction", quantity=Quantity.NUMBER),
            Column(name="remedy"),
        ),
        rows=tuple(rows),
        note=f"Empty slots are shared out by {basis}; the warps' time is by {per}.",
    )


def _list_missing(facts: KernelFacts, tree: IssueTree) -> Iterator[Missing]:
    if tree.slots is None:
        yield lack("how many issue slots are used", "smsp__issue_active.avg.per_cycle_active", section="SchedulerStats")
    if not tree.time.from_counters:
        name = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
        yield lack("how the warps' time divides by hardware counters", name, section="WarpStateStats")
    if tree.slots is not None and not _is_split(facts):
        why = "the profile does not tell which samples were taken while nothing was issued"
        yield Missing(what="which stalls leave the slots empty (taken by stalled time)", why=why)
    if facts.kernel.total_samples == 0:
        yield lack("which instructions stall", section="SourceCounters")
