"""What a gate says, as text, as rows of JSON and as annotations of GitHub."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from gpa_lsp.document.gate_words import describe_missing, describe_result, describe_row, name_gate_kernels
from gpa_lsp.document.github import make_command
from gpa_lsp.document.layout import Line, Style, hang
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.kernel.names import demangle
from gpa_lsp.report.gate.model import GateResult, GateRow, Outcome

_STYLES = {Outcome.EXCEEDED: Style.ERROR, Outcome.KEPT: Style.DIM}


def render_gate(result: GateResult, places: PlaceNames, width: int | None = None) -> Iterator[Line]:
    """The verdict, then what exceeds a budget, then the rest.

    Args:
        result: what to show.
        places: how sources are shown.
        width: characters per line; None for as many as it takes.
    """
    names = name_gate_kernels(result)
    yield from hang(((describe_result(result), Style.ERROR if result.has_failed else Style.TITLE),), width)
    for row in (*result.exceeded, *(row for row in result.rows if row.outcome is not Outcome.EXCEEDED)):
        place = show_place(row, places) if row.outcome is Outcome.EXCEEDED else ""
        text = describe_row(row, names[row.kernel.name])
        style = _STYLES.get(row.outcome, Style.WARNING)
        yield from hang(((f"  {place}: " if place else "  ", Style.PATH), (text, style)), width)
    for _, text in describe_missing(result, names):
        yield from hang(((f"  {text}", Style.NOTE),), width)


def show_place(row: GateRow, places: PlaceNames) -> str:
    """``file:line``; empty where no line is known."""
    if row.line is None or row.kernel.report is None:
        return ""
    return places.show_line(row.kernel.report, row.line.file, row.line.line)


def render_gate_github(result: GateResult, places: PlaceNames) -> Iterator[str]:
    """One command per budget that was not kept or not judged, and per kernel that is on one side only."""
    names = name_gate_kernels(result)
    for row in result.rows:
        if row.outcome is Outcome.KEPT:
            continue
        properties: dict[str, str] = {}
        if row.line is not None and row.kernel.report is not None:
            shown = places.show_file(row.kernel.report, row.line.file)
            properties = {"file": PurePath(shown).as_posix(), "line": str(max(1, row.line.line))}
        title = f"GPU gate: {row.budget.metric.words}"
        is_error = row.outcome is Outcome.EXCEEDED or (
            row.outcome is Outcome.UNKNOWN and result.budgets.fails_on_missing
        )
        text = describe_row(row, names[row.kernel.name])
        yield make_command("error" if is_error else "notice", text, {**properties, "title": title})
    for _, text in describe_missing(result, names):
        yield make_command("error" if result.budgets.fails_on_missing else "notice", text, {"title": "GPU gate"})


def make_gate_document(result: GateResult, places: PlaceNames) -> dict[str, Any]:
    """The result as JSON: ``gpa-lsp/gate/1``."""
    names = name_gate_kernels(result)
    return {
        "schema": "gpa-lsp/gate/1",
        "failed": result.has_failed,
        "configuration": result.budgets.source or None,
        "rows": [
            {
                "kernel": row.kernel.mangled_name,
                "name": demangle(row.kernel.name),
                "metric": row.budget.metric.value,
                "limit": row.budget.text,
                "outcome": row.outcome.name.lower(),
                "origin": None if row.origin is None else row.origin.name.lower(),
                "unit": row.time.unit if row.time is not None else row.budget.metric.quantity.value,
                "before": row.before,
                "after": row.after,
                "bound": row.bound,
                "file": None if row.line is None else row.line.file,
                "line": None if row.line is None else row.line.line,
                "place": show_place(row, places) or None,
                "message": describe_row(row, names[row.kernel.name]),
            }
            for row in result.rows
        ],
        "new": [one.mangled_name for one in result.new],
        "gone": [one.mangled_name for one in result.gone],
    }
