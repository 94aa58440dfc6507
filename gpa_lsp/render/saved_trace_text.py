"""What a kept trace shows, as text."""

from collections.abc import Iterator
from math import prod
from pathlib import Path

from gpa_lsp.basis.numbers import format_count, format_count_of, format_dim3
from gpa_lsp.prediction.saved_trace import SavedTrace
from gpa_lsp.render.answer_text import render_answer
from gpa_lsp.render.layout import EMPTY_LINE, Line, Style, text_line, wrap
from gpa_lsp.render.prediction_text import MOST_LINES, render_accesses, render_problem


def render_saved_trace(
    saved: SavedTrace, width: int | None = None, *, max_rows: int | None = None, folder: Path | None = None
) -> Iterator[Line]:
    """Its answers, and its lines.

    Args:
        saved: what to show.
        width: characters per line; None for as many as it takes.
        max_rows: longest table; None for a few lines each.
        folder: paths below it are shown relative to it.
    """
    yield text_line(saved.short_name, Style.TITLE)
    if saved.short_name != saved.name:
        yield from wrap(saved.name, width, style=Style.DIM)
    yield from wrap(describe_saved_trace(saved), width)
    for problem in saved.problems:
        yield from render_problem(problem, width)
    for answer in saved.answers:
        yield EMPTY_LINE
        yield from render_answer(answer, None, None, width, max_rows=max_rows)
    if saved.accesses:
        yield EMPTY_LINE
        yield from render_accesses(saved.accesses, width, MOST_LINES if max_rows is None else max_rows, folder)


def describe_saved_trace(saved: SavedTrace) -> str:
    """The launch, how much of it was traced, and for which GPU."""
    text = (
        f"grid {format_dim3(saved.grid)}, block {format_dim3(saved.block)}; {'a' if saved.is_complete else 'an incomplete'} trace ({saved.origin}) "
        f"of {format_count(saved.traced_blocks)} of {format_count_of(prod(saved.grid), 'block')}"
    )
    return f"{text}; predicted for the {saved.machine}" if saved.machine else text
