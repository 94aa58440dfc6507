"""Def-use chains of instructions as a call hierarchy: what an instruction waits for *calls* it, and it calls who waits for it.

Where nothing was blamed on either side, the registers speak: who wrote what it reads, who reads what it writes.
"""

from collections.abc import Mapping
from typing import Any

from lsprotocol.types import CallHierarchyIncomingCall, CallHierarchyItem, CallHierarchyOutgoingCall, Range, SymbolKind
from msgspec import Struct

from gpa_lsp.editor.sass.hints import name_instruction
from gpa_lsp.editor.sass.jumps import describe_tie, span_instruction
from gpa_lsp.editor.sass.library import SassView
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.foundation.numbers import format_percent

KIND = "sass"  # In an item's ``data``: it is one of these

_MOST_STEPS = 50
_LONGEST_NAME = 80


class InstructionStep(Struct, frozen=True, kw_only=True):
    """An instruction one step away."""

    item: CallHierarchyItem  # the instruction
    text: str  # a few words about what connects the two
    ratio: float  # samples of the connection, of the kernel's
    row: int  # the instruction
    resource: int | None  # what connects the two; None when nothing does, or nobody knows


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
    # needs numpy, which the answer to initialize must not wait for
    from gpa_lsp.report.pairs import join_by_instruction, list_causes, list_victims

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
    from gpa_lsp.code.binary.model import name_resource  # imported here because it needs numpy
    from gpa_lsp.report.code_queries import find_defs, find_uses

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
    from gpa_lsp.editor.sass.operand_spans import (
        find_mentions,  # needs numpy, which the answer to initialize must not wait for
    )

    text = view.document.shown.kernel.report.instructions.texts[row]
    named = [] if resource is None else find_mentions(text, resource, is_written=True)
    spans = tuple(span_instruction(view, row, value.start, value.end) for value in named)
    return spans or (span_instruction(view, row),)
