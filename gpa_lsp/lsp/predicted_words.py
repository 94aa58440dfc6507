"""What the hover of a line says of the emulation: never mixed with what was measured, always under a heading of its own."""

from collections.abc import Iterator

from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.predicted_results import PredictedAccess, PredictedBranch, PredictedFault
from gpa_lsp.lsp.predicted_view import PlacedPredictions
from gpa_lsp.render.numbers import draw_bar, format_count, format_percent
from gpa_lsp.report.names import shorten_name

_MOST_ACCESSES = 6
_MOST_LAUNCHES = 4
_BAR_CELLS = 16
_LEAST_SHARE = 0.005


def describe_predictions(view: DocumentView, line: int) -> str | None:
    """What was emulated of a line (1-based) as Markdown; None for a line without any."""
    predicted = view.predicted
    if predicted is None or not predicted.is_source:
        return None
    accesses, branches = predicted.accesses.get(line, ()), predicted.branches.get(line, ())
    faults = predicted.faults.get(line, ())
    facts: tuple[PredictedAccess | PredictedBranch | PredictedFault, ...] = (*accesses, *branches, *faults)
    launches = sorted({one.launch for one in facts})
    parts = []
    for launch in launches[:_MOST_LAUNCHES]:
        parts.append(_head(predicted, launch))
        parts.extend(f"* {describe_fault(one)}" for one in faults if one.launch == launch)
        own = [one for one in accesses if one.launch == launch]
        for one in own[:_MOST_ACCESSES]:
            parts.extend(_describe_access(one))
        if len(own) > _MOST_ACCESSES:
            parts.append(f"* and {len(own) - _MOST_ACCESSES} more accesses")
        parts.extend(f"* {describe_branch(one)}" for one in branches if one.launch == launch and not one.is_nested)
        parts.append("")
    if len(launches) > _MOST_LAUNCHES:
        parts.append(f"and {len(launches) - _MOST_LAUNCHES} more launches")
    return "\n".join(parts).rstrip() or None


def _head(predicted: PlacedPredictions, launch: int) -> str:
    found = predicted.find_launch(launch)
    return f"**Emulated** · `{shorten_name(found.name)}`, {found.what}\n"


def _describe_access(access: PredictedAccess) -> Iterator[str]:
    pattern = f", {access.pattern}" if access.pattern else ""
    yield f"* {name_access(access)}: **{count_cost(access)}**, {access.ideal:.1f} at best{_count_lines(access)}{pattern};"
    hits = ((access.l1_hit_ratio, "L1"), (access.l2_hit_ratio, "L2"))
    known = [f"{format_percent(ratio)} in {where}" for ratio, where in hits if ratio is not None]
    details = [f"predicted hits {', '.join(known)}"] if known else []
    if access.repeated_ratio >= _LEAST_SHARE:
        details.append(f"{format_percent(access.repeated_ratio)} repeat an earlier one")
    details.append(f"{format_count(access.requests)} requests of {access.lanes_per_request:.1f} lanes")
    if len(access.reuse) == 1:
        details.append(f"reuse: all {access.reuse[0][0]}")
    if access.callers:
        details.append(f"called from {_list_callers(access.callers)}")
    yield f"  {'; '.join(details)}"
    if len(access.reuse) > 1:
        yield from _draw_reuse(access)


def _list_callers(callers: tuple[tuple[str, float], ...]) -> str:
    if len(callers) == 1:
        return f"`{callers[0][0]}`"
    words = [f"`{path}` ({format_percent(ratio)})" for path, ratio in callers]
    others = 1 - sum(ratio for _, ratio in callers)
    return ", ".join([*words, *([f"others ({format_percent(others)})"] if others >= _LEAST_SHARE else [])])


def _draw_reuse(access: PredictedAccess) -> Iterator[str]:
    """Reuse distances in lines of 128 bytes, within a block."""
    width = max(len(words) for words, _ in access.reuse)
    yield ""
    yield "```text"
    for words, ratio in access.reuse:
        yield f"{words.ljust(width)}  {draw_bar(ratio, _BAR_CELLS).ljust(_BAR_CELLS)} {format_percent(ratio)}"
    yield "```"


def name_access(access: PredictedAccess) -> str:
    """``loads of `in```, ``stores of shared memory``."""
    where = ", ".join(f"`{name}`" for name in access.arrays) if access.arrays else f"{access.space} memory"
    return f"{access.kind} of {where}{' in a function called here' if access.is_nested else ''}"


def count_cost(access: PredictedAccess) -> str:
    """``8.0 sectors per request``."""
    return f"{access.cost:.1f} {'wavefronts' if access.is_shared else 'sectors'} per request"


def _count_lines(access: PredictedAccess) -> str:
    return "" if access.is_shared else f", {access.lines_per_request:.1f} lines"


def describe_branch(branch: PredictedBranch) -> str:
    """How often its branches diverge."""
    return (
        f"branches: **{format_percent(branch.divergent_ratio)} diverge**, of {format_count(branch.executions)} executions with "
        f"{branch.lanes_per_execution:.1f} lanes"
    )


def describe_fault(fault: PredictedFault) -> str:
    """What went wrong, where, and what to do."""
    where = "" if fault.place is None else f" (in {_name_file(fault.place[0])}:{fault.place[1]})"
    return f"{fault.kind[0].upper()}{fault.kind[1:]}{where}: {fault.message} {fault.remedy}".rstrip()


def _name_file(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]
