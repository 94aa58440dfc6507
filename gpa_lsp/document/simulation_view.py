"""VIEW: simulated or estimated launches: their times and main stall reasons."""

from collections.abc import Iterator, Sequence

from gpa_lsp.document.blocks import Block, Item, Items, Paragraph, Part, tabulate
from gpa_lsp.document.layout import Style, flexible, left, right
from gpa_lsp.execution.hybrid.estimate import PaperEstimate, TracedCode
from gpa_lsp.execution.prediction.simulation import EstimatedLaunch
from gpa_lsp.execution.simulator.profile_document import DocumentLaunch
from gpa_lsp.execution.simulator.reasons import REASONS
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_duration_ns, format_number, format_percent
from gpa_lsp.kernel.names import shorten_name

_MOST_REASONS = 4

# Below the title of a page that holds both
COMPARISON_LEAD = (
    "What the profiler sampled beside what the model says of the same code, as shares of the samples of either side"
)


def build_simulation(launches: Sequence[DocumentLaunch]) -> list[Paragraph]:
    """One line per launch."""
    return [Paragraph(text=((_describe_launch(one), Style.PLAIN),)) for one in launches]


def _describe_launch(one: DocumentLaunch) -> str:
    totals = one.simulated.all_samples.sum(axis=0).tolist()
    every = max(1, sum(totals))
    ranked = sorted(zip(totals, REASONS, strict=True), reverse=True)[:_MOST_REASONS]
    reasons = ", ".join(f"{reason} {format_percent(count / every)}" for count, reason in ranked if count)
    return f"{shorten_name(one.name)} on {one.machine.name}: {one.time}; {reasons}"


def build_estimates(estimates: Sequence[EstimatedLaunch], *, has_trace: bool) -> list[Block]:
    """One part per launch.

    Args:
        estimates: of the hybrid framework.
        has_trace: with the trace by basic block, the bounds of its loops, and the misses of its branches.
    """
    return [
        Part(
            title=f"{shorten_name(one.name)} on {one.machine.name}",
            style=Style.TITLE,
            blocks=[
                *(Paragraph(text=text) for text in _describe_estimate(one.estimate)),
                *(_build_trace(one.estimate) if has_trace else ()),
            ],
        )
        for one in estimates
    ]


def _describe_estimate(found: PaperEstimate) -> Iterator[str]:
    hits = (
        "no memory transactions"
        if found.hit_ratio is None
        else f"{format_percent(found.hit_ratio)} of transactions hit"
    )
    yield f"{format_count(round(found.cycles))} cycles, {format_duration_ns(found.duration_ns)} (estimated by Equation 8 of the paper)"
    yield (
        f"{format_count_of(found.blocks_per_sm, 'block')} a round in {format_count(round(found.round_cycles))} cycles, "
        f"{format_number(found.trace_length)} operations a warp, {hits}"
    )
    yield f"the busiest is {found.busiest.value}, for {format_percent(found.busiest_ratio)} of a round"
    if found.is_executed:
        yield "loops, branches and addresses follow the data that is described"
    if found.turns[0] < found.turns[1]:
        traced, every = map(format_count, found.turns)
        yield f"{traced} of {every} iterations of the outer loops were traced: the others are taken to cost as much"
    if found.assumed_branches:
        yield f"{format_count_of(found.assumed_branches, 'branch')} on data taken both ways"
    if found.unknown_ratio:
        yield f"the addresses of {format_percent(found.unknown_ratio)} of transactions are in the data: taken to miss"


def _build_trace(found: PaperEstimate) -> Iterator[Block]:
    def list_kinds(one: TracedCode) -> str:
        return ", ".join(f"{format_count(count)} {kind.value}" for kind, count in one.operations.items()) or "none"

    yield tabulate(
        found.code,
        [
            (left("lines"), lambda one: "none" if one.lines is None else "–".join(map(str, dict.fromkeys(one.lines)))),
            (right("visits"), lambda one: format_count(one.visits)),
            (right("warps"), lambda one: format_count(one.warps)),
            (flexible("operations of each visit"), list_kinds),
        ],
        "Trace, by basic block",
    )
    yield Items(items=[Item(text=text) for text in (*_list_loops(found), *_list_branches(found))])


def _list_loops(found: PaperEstimate) -> Iterator[str]:
    for loop in found.loops:
        bound = format_count(loop.least) + (f" to {format_count(loop.most)}" if loop.most > loop.least else "")
        yield f"loop, {_name_lines(loop.lines)}: bound {bound}{', as given' if loop.is_given else ''}"


def _list_branches(found: PaperEstimate) -> Iterator[str]:
    for branch in found.branches:
        jumps, passes = (format_count(branch.visits - one) for one in (branch.jumping, branch.passing))
        assumed = ", taken both ways as it depends on data" if branch.is_assumed else ""
        visits = format_count_of(branch.visits, "visit")
        yield f"branch, {_name_lines(branch.lines)}: of {visits} by warps {jumps} miss the jump and {passes} what follows{assumed}"


def _name_lines(lines: tuple[int, int] | None) -> str:
    if lines is None:
        return "no line"
    first, last = lines
    return f"line {first}" if first == last else f"lines {first} to {last}"
