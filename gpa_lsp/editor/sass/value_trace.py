"""The value of an operand, followed through a SASS document: where it is written and read, as places in the text."""

from collections.abc import Iterator

from msgspec import Struct

from gpa_lsp.editor.model import Position, Range
from gpa_lsp.editor.sass.jumps import span_instruction
from gpa_lsp.editor.sass.model import SassView
from gpa_lsp.editor.sass.operand_values import OperandValue, find_mentions, find_value
from gpa_lsp.report.code_queries import find_defs, find_web
from gpa_lsp.report.model import KernelCode


class PointedOperand(Struct, frozen=True, kw_only=True):
    """What a cursor points at."""

    row: int  # the instruction
    column: int  # characters of its text before the cursor; negative in front of it
    value: OperandValue | None  # the operand; None where the cursor is on none


class Mention(Struct, frozen=True, kw_only=True):
    """Where a value is written or read."""

    row: int  # the instruction
    start: int  # characters of its text before the place
    end: int  # characters before what follows it
    is_written: bool  # it is written there; read otherwise


def point_at(view: SassView, position: Position) -> PointedOperand | None:
    """What is at a place of a document; None on lines without an instruction."""
    document = view.document
    row = document.find_row(position.line + 1)
    if row is None:
        return None
    column = view.positions.read_column(position) - document.instruction_column
    text = document.shown.kernel.report.instructions.texts[row]
    value = find_value(text, column) if 0 <= column <= len(text) else None
    return PointedOperand(row=row, column=column, value=value)


def find_definitions(view: SassView, row: int, value: OperandValue) -> list[Mention]:
    """Where the value of an operand comes from, in the order of rows; what an instruction writes comes from itself.

    Empty where it comes from before the kernel, or nobody knows.
    """
    if value.is_written and not value.is_read:
        return [Mention(row=row, start=value.start, end=value.end, is_written=True)]
    code = view.document.shown.kernel.report.code
    if code is None:
        return []
    found: dict[Mention, None] = {}
    past_calls: set[int] = set()
    for resource in _list_asked(code, row, value, is_written=False):
        answer = find_defs(code, row, resource)
        past_calls.update(answer.past_calls)
        for other in answer.rows:
            found.update(dict.fromkeys(_mention(view, other, resource, is_written=True)))
    if not found:  # a call that is not followed may have written it
        found.update(
            (Mention(row=call, start=0, end=_length(view, call), is_written=True), None) for call in past_calls
        )
    return sorted(found, key=lambda mention: (mention.row, mention.start))


def find_mentions_of(view: SassView, row: int, value: OperandValue) -> list[Mention]:
    """Every place that writes or reads the value of an operand, or what is mixed up with it, in the order of the text."""
    own = Mention(row=row, start=value.start, end=value.end, is_written=value.is_written)
    code = view.document.shown.kernel.report.code
    if code is None:
        return [own]
    found: dict[Mention, None] = {own: None}
    is_written = value.is_written and not value.is_read
    for resource in _list_asked(code, row, value, is_written=is_written):
        web = find_web(code, row, resource, is_written=is_written)
        for rows, written in ((web.defs, True), (web.uses, False)):
            for other in rows:
                found.update(dict.fromkeys(_mention(view, other, resource, is_written=written)))
    return sorted(found, key=lambda mention: (mention.row, mention.start))


def span_mention(view: SassView, mention: Mention) -> Range:
    """The place of a mention."""
    return span_instruction(view, mention.row, mention.start, mention.end)


def _list_asked(code: KernelCode, row: int, value: OperandValue, *, is_written: bool) -> list[int]:
    """The resources of an operand that its instruction really reads, or writes: of a file of predicates, those of the mask."""
    used = (code.writes if is_written else code.reads).of(row)
    return [resource for resource in value.resources if resource in used]


def _mention(view: SassView, row: int, resource: int, *, is_written: bool) -> Iterator[Mention]:
    """Where an instruction names a resource; the whole instruction where only its encoding does."""
    text = view.document.shown.kernel.report.instructions.texts[row]
    named = find_mentions(text, resource, is_written=is_written)
    for value in named:
        yield Mention(row=row, start=value.start, end=value.end, is_written=is_written)
    if not named:
        yield Mention(row=row, start=0, end=len(text), is_written=is_written)


def _length(view: SassView, row: int) -> int:
    return len(view.document.shown.kernel.report.instructions.texts[row])
