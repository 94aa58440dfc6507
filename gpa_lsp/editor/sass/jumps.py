"""From an instruction to those it waits for, and to those that wait for it."""

from gpa_lsp.editor.model import Jump, Location, Range
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.model import SassView
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.foundation.numbers import format_count_of, format_percent

_MOST_JUMPS = 20  # Nobody chooses among more


def find_causes(session: SessionView, uri: str, line: int) -> list[Jump]:
    """What the instruction on a line (1-based) of an open SASS document waits for, most samples first."""
    view = session.sass.view(uri)
    row = None if view is None else view.document.find_row(line)
    return [] if view is None or row is None else find_causes_of_row(view, row)


def find_victims(session: SessionView, uri: str, line: int) -> list[Jump]:
    """Who waits for the instruction on a line (1-based) of an open SASS document, most samples first."""
    view = session.sass.view(uri)
    row = None if view is None else view.document.find_row(line)
    return [] if view is None or row is None else find_victims_of_row(view, row)


def find_causes_of_row(view: SassView, row: int) -> list[Jump]:
    """What an instruction waits for, most samples first."""
    return _list_jumps(view, row, is_cause=True)


def find_victims_of_row(view: SassView, row: int) -> list[Jump]:
    """Who waits for an instruction, most samples first."""
    return _list_jumps(view, row, is_cause=False)


def locate_row(view: SassView, row: int) -> Location:
    """The line of an instruction, as the range of its text."""
    return Location(uri=view.document.uri, range=span_instruction(view, row))


def span_instruction(view: SassView, row: int, start: int = 0, end: int | None = None) -> Range:
    """The text of an instruction, or a part of it in characters."""
    line, first, last = view.document.find_place(row)
    return view.positions.find_span(line, first + start, last if end is None else first + end)


def _list_jumps(view: SassView, row: int, *, is_cause: bool) -> list[Jump]:
    # needs numpy, which the answer to initialize must not wait for
    from gpa_lsp.report.pairs import join_by_instruction, list_causes, list_victims

    report = view.document.shown.kernel.report
    pairs = list_causes(report, row) if is_cause else list_victims(report, row)
    total = report.total_samples
    jumps = []
    for samples, pair in join_by_instruction(pairs)[:_MOST_JUMPS]:
        location = locate_row(view, pair.row)
        ratio = min(1.0, samples / total) if total else 0.0
        words = f"{name_instruction(view.document, pair.row)} · {format_percent(ratio)} · "
        words += describe_tie(samples, pair.reason, pair.resource)
        jumps.append(Jump(location=location, text=words, ratio=ratio, samples=samples, sass=location))
    return jumps


def describe_tie(samples: float, reason: str, resource: int | None) -> str:
    """What connects two instructions, in the words of source lines: ``60 samples of long_scoreboard through R2``."""
    from gpa_lsp.code.binary.model import name_resource  # imported here because it needs numpy

    text = f"{format_count_of(round(samples), 'sample')} of {reason}"
    return text if resource is None else f"{text} through {name_resource(resource)}"
