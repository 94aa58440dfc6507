"""Records as plain JSON, for commands and notifications of our own (``editors/PROTOCOL.md``)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lsprotocol import types

from gpa_lsp.editor.model import Jump
from gpa_lsp.editor.session_view import SessionView
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel

if TYPE_CHECKING:
    from gpa_lsp.editor.hot_spots import HotSpot
    from gpa_lsp.editor.sass.links import Link


def encode_jump(jump: Jump) -> dict[str, Any]:
    """A jump as plain JSON.

    >>> from lsprotocol.types import Position
    >>> start = Position(line=4, character=2)
    >>> place = types.Location(uri="file:///k.cu", range=types.Range(start=start, end=start))
    >>> sorted(encode_jump(Jump(location=place, text="60 samples", ratio=0.6, samples=60.0)))
    ['range', 'ratio', 'samples', 'sass', 'text', 'uri']
    """
    return {
        **encode_location(jump.location),
        "text": jump.text,
        "ratio": jump.ratio,
        "samples": round(jump.samples),
        "sass": None if jump.sass is None else encode_location(jump.sass),
    }


def encode_location(location: types.Location) -> dict[str, Any]:
    """A location as plain JSON.

    >>> from lsprotocol.types import Position
    >>> start = Position(line=4, character=2)
    >>> encode_location(types.Location(uri="file:///k.cu", range=types.Range(start=start, end=start)))["range"]
    {'start': {'line': 4, 'character': 2}, 'end': {'line': 4, 'character': 2}}
    """
    return {"uri": location.uri, "range": encode_range(location.range)}


def encode_range(span: types.Range) -> dict[str, Any]:
    """A range as plain JSON."""
    return {
        "start": {"line": span.start.line, "character": span.start.character},
        "end": {"line": span.end.line, "character": span.end.character},
    }


def encode_link(link: "Link") -> dict[str, Any]:
    """A link as plain JSON."""
    return {
        "uri": link.uri,
        "ranges": [encode_range(one) for one in link.ranges],
        "primary": encode_range(link.primary),
        "kernel": link.kernel,
        "text": link.text,
    }


def encode_item(item: types.CallHierarchyItem) -> dict[str, Any]:
    """An item as plain JSON, as the protocol has it."""
    return {
        "name": item.name,
        "kind": types.SymbolKind.Event.value,
        "uri": item.uri,
        "range": encode_range(item.range),
        "selectionRange": encode_range(item.range),
        "detail": item.detail,
        "data": item.data,
    }


def encode_spot(spot: "HotSpot") -> dict[str, Any]:
    """A hot spot as plain JSON."""
    location, mark = spot
    return {
        **encode_location(location),
        "ratio": mark.share_ratio,
        "kernel": mark.kernel,
        "kind": mark.kind.value,
        "text": mark.text,
    }


def read_place(arguments: Sequence[Any]) -> tuple[str, int] | None:
    """The document and the 1-based line of ``uri, line``; None when that is not what was sent.

    >>> read_place(["file:///k.cu", 4]), read_place(["file:///k.cu", "4"]), read_place([])
    (('file:///k.cu', 5), None, None)
    """
    if len(arguments) < 2 or not isinstance(arguments[0], str):
        return None
    line = arguments[1]
    if isinstance(line, bool) or not isinstance(line, int) or not 0 <= line < 1 << 31:
        return None
    return arguments[0], line + 1


class ArgumentsError(ValueError):
    """A command was sent arguments that it does not take."""


def need_place(arguments: Sequence[Any]) -> tuple[str, int]:
    """The same for a command that is about a place.

    Raises:
        ArgumentsError: something else was sent.
    """
    place = read_place(arguments)
    if place is None:
        raise ArgumentsError("it takes the URI of a document and the number of a line from 0")
    return place


def read_text(arguments: Sequence[Any], index: int = 0) -> str | None:
    """The argument at a place; None where there is none.

    Raises:
        ArgumentsError: it is no text.
    """
    value = arguments[index] if len(arguments) > index else None
    if value is not None and not isinstance(value, str):
        raise ArgumentsError(f"argument {index + 1} is no text")
    return value


def choose_kernels(snapshot: Snapshot, arguments: Sequence[Any]) -> tuple[VisibleKernel, ...]:
    """The shown kernels a command is about: those with the mangled name that was sent, or all when none was."""
    wanted = read_text(arguments)
    if wanted is None:
        return snapshot.visible
    return tuple(shown for shown in snapshot.visible if shown.kernel.report.mangled_name == wanted)


def find_mangled(session: SessionView, arguments: Sequence[Any]) -> str | None:
    """The mangled name that was sent, or that of the kernel at the place (``uri, line``) that was; None for neither."""
    from gpa_lsp.editor.kernels import find_kernel_at

    place = read_place(arguments)
    if place is None:
        return read_text(arguments)
    shown = find_kernel_at(session, *place)
    return None if shown is None else shown.kernel.report.mangled_name
