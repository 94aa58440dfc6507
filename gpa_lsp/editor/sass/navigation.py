"""From what is under a cursor to where it comes from and goes to.

From an operand to the instructions that wrote it, and to every place that writes or reads its value; from a branch to its target, and from a target
to all that goes there; from anything else of an instruction to its stall's causes.
"""

from gpa_lsp.editor.model import Highlight, HighlightKind, Location, Position
from gpa_lsp.editor.sass.jumps import locate_row
from gpa_lsp.editor.sass.model import SassView
from gpa_lsp.editor.sass.targets import find_target, list_origins
from gpa_lsp.editor.sass.value_trace import PointedOperand, find_definitions, find_mentions_of, point_at, span_mention
from gpa_lsp.report.pairs import join_by_instruction, list_causes
from gpa_lsp.report.scoreboard_queries import find_setters, find_waiters, list_awaited, list_set

_LEAST_RATIO = 0.1  # Of the samples an instruction waits: causes with less are not worth a choice, but the first one


def find_definition(view: SassView, position: Position) -> list[Location] | None:
    """The definitions of what is under the cursor."""
    pointed = point_at(view, position)
    if pointed is None:
        return None
    value = pointed.value
    if value is not None:
        target = find_target(view.document, pointed.row, value)
        if target is not None:
            return [locate_row(view, target)]
        if value.resources:
            mentions = find_definitions(view, pointed.row, value)
            uri = view.document.uri
            return [Location(uri=uri, range=span_mention(view, mention)) for mention in mentions] or None
    return _find_causes(view, pointed.row) or None


def _find_causes(view: SassView, row: int) -> list[Location]:
    """The instructions that one waits for mostly, most samples first."""
    others = join_by_instruction(list_causes(view.document.shown.kernel.report, row))
    least = _LEAST_RATIO * sum(samples for samples, _ in others)
    return [
        locate_row(view, pair.row) for place, (samples, pair) in enumerate(others) if place == 0 or samples >= least
    ]


def find_references(view: SassView, position: Position, *, with_declarations: bool) -> list[Location] | None:
    """The references of what is under the cursor, in the order of the text; those that write a value are its declarations."""
    pointed = point_at(view, position)
    if pointed is None:
        return None
    if pointed.value is not None and pointed.value.resources:
        uri = view.document.uri
        return [
            Location(uri=uri, range=span_mention(view, mention))
            for mention in find_mentions_of(view, pointed.row, pointed.value)
            if with_declarations or not mention.is_written
        ]
    target = _find_meant_target(view, pointed)
    rows = list_origins(view.document, target)
    if not rows:
        return None
    return [locate_row(view, row) for row in ([target, *rows] if with_declarations else rows)]


def find_highlights(view: SassView, position: Position) -> list[Highlight] | None:
    """Where the value under the cursor is written and read; on a target, where it is and who goes there; elsewhere, partners behind scoreboards."""
    pointed = point_at(view, position)
    if pointed is None:
        return None
    if pointed.value is not None and pointed.value.resources:
        return [
            Highlight(
                range=span_mention(view, mention),
                kind=HighlightKind.WRITE if mention.is_written else HighlightKind.READ,
            )
            for mention in find_mentions_of(view, pointed.row, pointed.value)
        ]
    target = _find_meant_target(view, pointed)
    origins = list_origins(view.document, target)
    if origins:
        return [_highlight(view, row, HighlightKind.TEXT) for row in (target, *origins)]
    return _highlight_partners(view, pointed.row) if pointed.value is None else None


def _highlight_partners(view: SassView, row: int) -> list[Highlight] | None:
    """An instruction with those whose scoreboards it waits for, as writes, and those that wait for its own, as reads."""
    report = view.document.shown.kernel.report
    setters = {one for awaited in list_awaited(report, row) for one in find_setters(report, row, awaited).rows}
    waiters = {one for given in list_set(report, row) for one in find_waiters(report, row, given).rows}
    if not setters and not waiters:
        return None
    kinds = dict.fromkeys(waiters, HighlightKind.READ)
    kinds.update(dict.fromkeys(setters, HighlightKind.WRITE))
    kinds[row] = HighlightKind.TEXT
    return [_highlight(view, one, kinds[one]) for one in sorted(kinds)]


def _highlight(view: SassView, row: int, kind: HighlightKind) -> Highlight:
    return Highlight(range=locate_row(view, row).range, kind=kind)


def _find_meant_target(view: SassView, pointed: PointedOperand) -> int:
    """The target that is pointed at; elsewhere the instruction itself, which may be one."""
    target = None if pointed.value is None else find_target(view.document, pointed.row, pointed.value)
    return pointed.row if target is None else target
