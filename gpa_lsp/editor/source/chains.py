"""Def-use chains of source lines as a call hierarchy: what a line waits for *calls* it, and it calls who waits for it.

Each step is one look into the line's pairs, so that cycles (a value carried around a loop) are the client's to open as far as it likes. Lines are
named by where they are now, and remembered in ``data`` by where they were measured.
"""

from collections.abc import Mapping
from typing import Any

from lsprotocol.types import (
    CallHierarchyIncomingCall,
    CallHierarchyItem,
    CallHierarchyOutgoingCall,
    Location,
    SymbolKind,
)
from msgspec import Struct

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.line_words import find_caused_reason, name_line
from gpa_lsp.editor.lines.index import CauseLine
from gpa_lsp.editor.lines.places import Counterpart, Place, PlaceFinder, describe_counterpart, gather_counterparts
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.foundation.numbers import format_percent

KIND = "source"  # In an item's ``data``: it is one of these


class ChainStep(Struct, frozen=True, kw_only=True):
    """A line one step away."""

    item: CallHierarchyItem  # the line
    text: str  # a few words about it
    ratio: float  # samples of the connection, of the kernel's


def prepare(view: DocumentView, line: int) -> CallHierarchyItem | None:
    """A 1-based line, of the kernel it matters most to; None for a line that neither waits nor is waited for."""
    cause = choose_kernel(view, line)
    if cause is None:
        return None
    location = view.places.locate(cause.shown, cause.place)
    return None if location is None else _make_item(cause.shown, cause.place, location, _describe_line(cause))


def choose_kernel(view: DocumentView, line: int) -> CauseLine | None:
    """Choose the kernel that spends the largest share of its samples on pairs of a line."""
    linked = [cause for cause in view.cause_lines.get(line, ()) if cause.causes.waits or cause.causes.waiters]
    return max(linked, key=_weigh, default=None)


def _weigh(cause: CauseLine) -> float:
    blame = cause.causes.blame
    total = cause.shown.kernel.report.total_samples
    return max(blame.waiting_samples, blame.causing_samples) / total if total else 0.0


def list_incoming(session: SessionView, data: object) -> list[CallHierarchyIncomingCall] | None:
    """List what an item's line is stalled on, most samples first; None for an item of others, or one that was measured away."""
    origin = read_origin(session.snapshot, data)
    if origin is None:
        return None
    return [
        CallHierarchyIncomingCall(from_=step.item, from_ranges=(step.item.range,))
        for step in list_steps(session.places, *origin, is_incoming=True)
    ]


def list_outgoing(session: SessionView, data: object) -> list[CallHierarchyOutgoingCall] | None:
    """List what is stalled on an item's line, most samples first; None for an item of others, or one that was measured away."""
    origin = read_origin(session.snapshot, data)
    if origin is None:
        return None
    own = session.places.locate(*origin)
    ranges = () if own is None else (own.range,)
    return [
        CallHierarchyOutgoingCall(to=step.item, from_ranges=ranges)
        for step in list_steps(session.places, *origin, is_incoming=False)
    ]


def read_origin(snapshot: Snapshot, data: object) -> tuple[VisibleKernel, Place] | None:
    """The kernel and line of an item's ``data``, which comes from the client; None when no shown kernel has such a line."""
    if not isinstance(data, Mapping) or data.get("kind") != KIND:
        return None
    name, file, line = data.get("kernel"), data.get("file"), data.get("line")
    if not isinstance(file, str) or not isinstance(line, int):
        return None
    place = (file, line)
    for shown in snapshot.visible:
        if shown.kernel.report.mangled_name == name and place in shown.kernel.causes:
            return shown, place
    return None


def list_steps(places: PlaceFinder, shown: VisibleKernel, place: Place, *, is_incoming: bool) -> list[ChainStep]:
    """The lines one step from a line, most samples first; those that are not on this machine now are left out."""
    causes = shown.kernel.causes.get(place)
    if causes is None:
        return []
    pairs = causes.waits if is_incoming else causes.waiters
    steps = (_make_step(places, shown, counterpart) for counterpart in gather_counterparts(pairs))
    return [step for step in steps if step is not None]


def _make_step(places: PlaceFinder, shown: VisibleKernel, counterpart: Counterpart) -> ChainStep | None:
    location = None if counterpart.place is None else places.locate(shown, counterpart.place)
    if counterpart.place is None or location is None:
        return None
    total = shown.kernel.report.total_samples
    ratio = min(1.0, counterpart.samples / total) if total else 0.0
    text = f"{format_percent(ratio)} · {describe_counterpart(counterpart)}"
    item = _make_item(shown, counterpart.place, location, text)
    return ChainStep(item=item, text=text, ratio=ratio)


def _make_item(shown: VisibleKernel, place: Place, location: Location, detail: str) -> CallHierarchyItem:
    data: dict[str, Any] = {
        "kind": KIND,
        "kernel": shown.kernel.report.mangled_name,
        "file": place[0],
        "line": place[1],
    }
    return CallHierarchyItem(
        name=name_line(shown, place, location.range.start.line + 1),
        kind=SymbolKind.Event,
        uri=location.uri,
        range=location.range,
        selection_range=location.range,
        detail=detail,
        data=data,
    )


def _describe_line(cause: CauseLine) -> str:
    """``waits 41.2 %, causes 3.1 % of saxpy · long_scoreboard``."""
    blame = cause.causes.blame
    total = cause.shown.kernel.report.total_samples or 1
    parts = []
    if blame.waiting_samples:
        parts.append(f"waits {format_percent(blame.waiting_samples / total)}")
    if blame.causing_samples:
        parts.append(f"causes {format_percent(blame.causing_samples / total)}")
    reason = _find_reason(cause)
    return f"{', '.join(parts)} of {cause.shown.name}" + (f" · {reason}" if reason else "")


def _find_reason(cause: CauseLine) -> str | None:
    """Stall reason of what the line does more: waiting or causing."""
    blame = cause.causes.blame
    if blame.waiting_samples >= blame.causing_samples and cause.causes.waits:
        return cause.causes.waits[0].reason
    return find_caused_reason(cause)
