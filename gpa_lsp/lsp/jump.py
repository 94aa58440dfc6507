"""A place to go to, and how it is written as plain JSON (``editors/PROTOCOL.md``)."""

from typing import Any

from lsprotocol import types

from gpa_lsp.basis.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Jump:
    """Where a stall comes from, or where it is suffered.

    Attributes:
        location: the whole text of the line.
        text: a few words about it, for a list to choose from.
        ratio: of the kernel's samples, 0 to 1.
        samples: of the pair.
        sass: the causing (suffering) instruction in the kernel's SASS document; None when it is not known.
    """

    location: types.Location
    text: str
    ratio: float
    samples: float
    sass: types.Location | None = None


def encode_jump(jump: Jump) -> dict[str, Any]:
    """A jump as plain JSON.

    >>> start = types.Position(line=4, character=2)
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

    >>> start = types.Position(line=4, character=2)
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
