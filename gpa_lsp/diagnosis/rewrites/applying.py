"""Text edits as an editor applies them."""

from collections.abc import Sequence

from gpa_lsp.diagnosis.rewrites.model import TextEdit, TextPlace


def apply_edits(text: str, edits: Sequence[TextEdit]) -> str:
    r"""The text with edits made.

    Args:
        text: lines end with ``\n`` or ``\r\n``.
        edits: not overlapping; those at one place are made in their order.

    Raises:
        ValueError: they overlap, or are not in the text.

    >>> place = TextPlace(line=2, column=1)
    >>> apply_edits("a\nbc\n", [TextEdit(start=place, end=place, text="-")])
    'a\nb-c\n'
    """
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    parts, position = [], 0
    for edit in sorted(edits, key=lambda one: (one.start, one.end)):
        start, end = (_find_offset(text, starts, place) for place in (edit.start, edit.end))
        if not position <= start <= end:
            raise ValueError(f"{edit} overlaps another edit")
        parts += [text[position:start], edit.text]
        position = end
    return "".join([*parts, text[position:]])


def _find_offset(text: str, starts: Sequence[int], place: TextPlace) -> int:
    if not 1 <= place.line < len(starts):
        raise ValueError(f"{place} is not in the text")
    offset = starts[place.line - 1] + place.column
    if not starts[place.line - 1] <= offset < starts[place.line]:
        raise ValueError(f"{place} is not on its line")
    return min(offset, len(text))
