"""Jumps from an instruction to those it is stalled on, and to those stalled on it; and def-use chains as a call hierarchy: what an instruction waits
for *calls* it, and it calls who waits for it.

Where nothing was blamed on either side, the registers speak: who wrote what it reads, who reads what it writes.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from lsprotocol.types import (
    CallHierarchyIncomingCall,
    CallHierarchyItem,
    CallHierarchyOutgoingCall,
    DocumentHighlight,
    DocumentHighlightKind,
    Location,
    Position,
    Range,
    SymbolKind,
)
from msgspec import Struct

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.editor.model import Jump
from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.sass.operand_spans import OperandValue, find_mentions, find_target, find_value, list_origins
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.foundation.numbers import format_count_of, format_percent
from gpa_lsp.report.code_queries import (
    find_defs,
    find_setters,
    find_uses,
    find_waiters,
    find_web,
    list_awaited,
    list_set,
)
from gpa_lsp.report.model import KernelCode
from gpa_lsp.report.pairs import join_by_instruction, list_causes, list_victims

_MOST_JUMPS = 20  # Nobody chooses among more


def locate_row(view: SassView, row: int) -> Location:
    """The line of an instruction, as the range of its text."""
    return Location(uri=view.document.uri, range=span_instruction(view, row))


def span_instruction(view: SassView, row: int, start: int = 0, end: int | None = None) -> Range:
    """The text of an instruction, or a part of it in characters."""
    line, first, last = view.document.find_place(row)
    return view.positions.find_span(line, first + start, last if end is None else first + end)


def list_jumps(view: SassView, row: int, *, is_cause: bool) -> list[Jump]:
    """List what an instruction is stalled on, or what is stalled on it, most samples first."""
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
    """Describe what connects two instructions, in the words of source lines: ``60 samples of long_scoreboard through R2``."""
    text = f"{format_count_of(round(samples), 'sample')} of {reason}"
    return text if resource is None else f"{text} through {name_resource(resource)}"


class PointedOperand(Struct, frozen=True, kw_only=True):
    """Instruction and operand under a cursor."""

    row: int  # the instruction
    column: int  # characters of its text before the cursor; negative in front of it
    value: OperandValue | None  # the operand; None where the cursor is on none


class Mention(Struct, frozen=True, kw_only=True):
    """Place where a value is written or read."""

    row: int  # the instruction
    start: int  # characters of its text before the place
    end: int  # characters before what follows it
    is_written: bool  # it is written there; read otherwise


def point_at(view: SassView, position: Position) -> PointedOperand | None:
    """Find the instruction and operand at a position; None on lines without an instruction."""
    document = view.document
    row = document.find_row(position.line + 1)
    if row is None:
        return None
    column = view.positions.read_column(position) - document.instruction_column
    text = document.shown.kernel.report.instructions.texts[row]
    value = find_value(text, column) if 0 <= column <= len(text) else None
    return PointedOperand(row=row, column=column, value=value)


def find_definitions(view: SassView, row: int, value: OperandValue) -> list[Mention]:
    """Find the writes that an operand's value comes from, in the order of rows; what an instruction writes comes from itself.

    Empty where it comes from before the kernel, or is unknown.
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
        defs, uses = find_web(code, row, resource, is_written=is_written)
        for rows, written in ((defs, True), (uses, False)):
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
    """Places where an instruction names a resource; the whole instruction where only its encoding does."""
    text = view.document.shown.kernel.report.instructions.texts[row]
    named = find_mentions(text, resource, is_written=is_written)
    for value in named:
        yield Mention(row=row, start=value.start, end=value.end, is_written=is_written)
    if not named:
        yield Mention(row=row, start=0, end=len(text), is_written=is_written)


def _length(view: SassView, row: int) -> int:
    return len(view.document.shown.kernel.report.instructions.texts[row])


# From what is under a cursor to where it comes from and goes to.
#
# From an operand to the instructions that wrote it, and to every place that writes or reads its value; from a branch
# to its target, and from a target to all that goes there; from anything else of an instruction to its stall's causes.

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


def find_highlights(view: SassView, position: Position) -> list[DocumentHighlight] | None:
    """Find the writes and reads of the value under the cursor; on a target, its place and the jumps to it; elsewhere, scoreboard partners."""
    pointed = point_at(view, position)
    if pointed is None:
        return None
    if pointed.value is not None and pointed.value.resources:
        return [
            DocumentHighlight(
                range=span_mention(view, mention),
                kind=DocumentHighlightKind.Write if mention.is_written else DocumentHighlightKind.Read,
            )
            for mention in find_mentions_of(view, pointed.row, pointed.value)
        ]
    target = _find_meant_target(view, pointed)
    origins = list_origins(view.document, target)
    if origins:
        return [_highlight(view, row, DocumentHighlightKind.Text) for row in (target, *origins)]
    return _highlight_partners(view, pointed.row) if pointed.value is None else None


def _highlight_partners(view: SassView, row: int) -> list[DocumentHighlight] | None:
    """An instruction with those whose scoreboards it waits for, as writes, and those that wait for its own, as reads."""
    report = view.document.shown.kernel.report
    setters = {one for awaited in list_awaited(report, row) for one in find_setters(report, row, awaited).rows}
    waiters = {one for given in list_set(report, row) for one in find_waiters(report, row, given).rows}
    if not setters and not waiters:
        return None
    kinds = dict.fromkeys(waiters, DocumentHighlightKind.Read)
    kinds.update(dict.fromkeys(setters, DocumentHighlightKind.Write))
    kinds[row] = DocumentHighlightKind.Text
    return [_highlight(view, one, kinds[one]) for one in sorted(kinds)]


def _highlight(view: SassView, row: int, kind: DocumentHighlightKind) -> DocumentHighlight:
    return DocumentHighlight(range=locate_row(view, row).range, kind=kind)


def _find_meant_target(view: SassView, pointed: PointedOperand) -> int:
    """The target that is pointed at; elsewhere the instruction itself, which may be one."""
    target = None if pointed.value is None else find_target(view.document, pointed.row, pointed.value)
    return pointed.row if target is None else target


KIND = "sass"  # In an item's ``data``: it is one of these

_MOST_STEPS = 50
_LONGEST_NAME = 80


class InstructionStep(Struct, frozen=True, kw_only=True):
    """An instruction one step away."""

    item: CallHierarchyItem  # the instruction
    text: str  # a few words about what connects the two
    ratio: float  # samples of the connection, of the kernel's
    row: int  # the instruction
    resource: int | None  # what connects the two; None when nothing does, or it is unknown


def prepare(view: SassView, line: int) -> CallHierarchyItem | None:
    """The instruction on a 1-based line; None where there is none."""
    row = view.document.find_row(line)
    return None if row is None else make_item(view, row, _describe_own(view, row))


def list_incoming(session: SessionView, data: object) -> list[CallHierarchyIncomingCall] | None:
    """List what an item's instruction is stalled on, most samples first; None for an item of others, or one that is not in the text any more."""
    origin = read_origin(session, data)
    if origin is None:
        return None
    view, row = origin
    return [
        CallHierarchyIncomingCall(from_=step.item, from_ranges=_find_ranges(view, step.row, step.resource))
        for step in list_steps(view, row, is_incoming=True)
    ]


def list_outgoing(session: SessionView, data: object) -> list[CallHierarchyOutgoingCall] | None:
    """List what is stalled on an item's instruction, most samples first; None for an item of others, or one that is not in the text any more."""
    origin = read_origin(session, data)
    if origin is None:
        return None
    view, row = origin
    return [
        CallHierarchyOutgoingCall(to=step.item, from_ranges=_find_ranges(view, row, step.resource))
        for step in list_steps(view, row, is_incoming=False)
    ]


def read_origin(session: SessionView, data: object) -> tuple[SassView, int] | None:
    """The open document and the row of an item's ``data``, which comes from the client."""
    if not isinstance(data, Mapping) or data.get("kind") != KIND:
        return None
    uri, row = data.get("uri"), data.get("row")
    if not isinstance(uri, str) or not isinstance(row, int) or isinstance(row, bool):
        return None
    view = session.sass.view(uri)
    if view is None or not 0 <= row < len(view.document.line_of_row):
        return None
    return view, row


def list_chain(session: SessionView, uri: str, line: int, *, is_incoming: bool) -> list[InstructionStep]:
    """The instructions one step from the one on a line (1-based) of an open SASS document, most samples first."""
    view = session.sass.view(uri)
    row = None if view is None else view.document.find_row(line)
    return [] if view is None or row is None else list_steps(view, row, is_incoming=is_incoming)


def list_steps(view: SassView, row: int, *, is_incoming: bool) -> list[InstructionStep]:
    """The instructions one step away, most samples first."""
    report = view.document.shown.kernel.report
    pairs = list_causes(report, row) if is_incoming else list_victims(report, row)
    if not pairs:
        return _list_by_registers(view, row, is_incoming=is_incoming)
    total = report.total_samples
    steps = []
    for samples, pair in join_by_instruction(pairs)[:_MOST_STEPS]:
        ratio = min(1.0, samples / total) if total else 0.0
        text = f"{format_percent(ratio)} · {describe_tie(samples, pair.reason, pair.resource)}"
        item = make_item(view, pair.row, text)
        steps.append(InstructionStep(item=item, text=text, ratio=ratio, row=pair.row, resource=pair.resource))
    return steps


def _list_by_registers(view: SassView, row: int, *, is_incoming: bool) -> list[InstructionStep]:
    code = view.document.shown.kernel.report.code
    if code is None:
        return []
    find, lists, verb = (find_defs, code.reads, "writes") if is_incoming else (find_uses, code.writes, "reads")
    through: dict[int, list[int]] = {}
    for resource in lists.of(row):
        for other in find(code, row, resource).rows:
            through.setdefault(other, []).append(resource)
    steps = []
    for other in sorted(through)[:_MOST_STEPS]:
        text = f"{verb} {', '.join(name_resource(resource) for resource in through[other])}"
        item = make_item(view, other, text)
        steps.append(InstructionStep(item=item, text=text, ratio=0.0, row=other, resource=through[other][0]))
    return steps


def make_item(view: SassView, row: int, detail: str) -> CallHierarchyItem:
    """An instruction as an item."""
    data: dict[str, Any] = {"kind": KIND, "uri": view.document.uri, "row": row}
    span = span_instruction(view, row)
    return CallHierarchyItem(
        name=_name(view, row),
        kind=SymbolKind.Event,
        uri=view.document.uri,
        range=span,
        selection_range=span,
        detail=detail,
        data=data,
    )


def _name(view: SassView, row: int) -> str:
    """``/*0050*/ FFMA R0, R2, R3, R0``, or what is there instead of code."""
    text = view.document.shown.kernel.report.instructions.texts[row]
    address = name_instruction(view.document, row).partition(" ")[0]
    name = f"{address} {text}" if text else name_instruction(view.document, row)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _describe_own(view: SassView, row: int) -> str:
    """The instruction's own share, and the kernel."""
    shown = view.document.shown
    report = shown.kernel.report
    samples = int(report.instructions.all_samples[row].sum())
    if not samples or not report.total_samples:
        return shown.name
    return f"{format_percent(samples / report.total_samples)} of {shown.name}"


def _find_ranges(view: SassView, row: int, resource: int | None) -> tuple[Range, ...]:
    """Ranges where an instruction writes what connects it with another one; all of it where that is not in the text."""
    text = view.document.shown.kernel.report.instructions.texts[row]
    named = [] if resource is None else find_mentions(text, resource, is_written=True)
    spans = tuple(span_instruction(view, row, value.start, value.end) for value in named)
    return spans or (span_instruction(view, row),)
