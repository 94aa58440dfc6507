"""A line's stalls and its kernel's ceilings as a small picture for a hover: an SVG that reads on light and on dark ground.

An image in a hover knows nothing of the editor's theme, so every colour has a contrast of at least 3:1 to white and to the usual dark ground.
"""

from collections.abc import Sequence
from html import escape

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_percent
from gpa_lsp.foundation.visible_text import make_visible
from gpa_lsp.profile.stall_reasons import (
    EXECUTION,
    INSTRUCTION_SUPPLY,
    ISSUED,
    MEMORY,
    OTHER,
    SYNCHRONISATION,
    THROTTLE,
    describe_stall_reason,
)

# By group of stall reasons
COLOURS = {
    MEMORY: "#3b82c4",
    EXECUTION: "#b9772e",
    SYNCHRONISATION: "#9a68bd",
    INSTRUCTION_SUPPLY: "#2f948b",
    THROTTLE: "#cf5a56",
    ISSUED: "#5f9440",
    OTHER: "#858585",
}

TEXT_COLOUR = "#808080"

_WIDTH = 360
_MARGIN = 2
_BAR_HEIGHT = 12
_ROW_HEIGHT = 16
_LABEL_WIDTH = 58
_FIGURE_WIDTH = 44
_MOST_PARTS = 5
_MOST_ROOFS = 5
_LONGEST_NAME = 20
_AT_ROOF_RATIO = 0.95  # From this part of what a unit sustains on its bar has the colour of a full queue


class StallPart(Struct, frozen=True, kw_only=True):
    """One reason of a line."""

    reason: str  # stall reason
    ratio: float  # of the kernel's samples, 0 to 1


class RoofBar(Struct, frozen=True, kw_only=True):
    """How busy one unit is."""

    name: str  # of the unit
    achieved_ratio: float  # of its peak
    ceiling_ratio: float  # of its peak, what it sustains; marked by a tick


def draw_stall_picture(parts: Sequence[StallPart], roofs: Sequence[RoofBar]) -> str:
    """The picture as SVG: a stacked bar of the stall reasons with its legend, then a bar for each unit.

    Args:
        parts: largest first; what is beyond the first five is drawn as one.
        roofs: in the order they are drawn, five at most.
    """
    shown = _join_small(parts)
    rows = [*_draw_stack(shown, _MARGIN), *_draw_legend(shown, _MARGIN + _BAR_HEIGHT)]
    top = _MARGIN + (_BAR_HEIGHT + _ROW_HEIGHT * ((len(shown) + 1) // 2) + 6 if shown else 0)
    for position, roof in enumerate(roofs[:_MOST_ROOFS]):
        rows.extend(_draw_roof(roof, top + position * _ROW_HEIGHT))
    height = top + _ROW_HEIGHT * len(roofs[:_MOST_ROOFS]) + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="{TEXT_COLOUR}">{"".join(rows)}</svg>'
    )


def describe_picture(parts: Sequence[StallPart], roofs: Sequence[RoofBar]) -> str:
    """What the picture shows, for those who do not see it.

    >>> describe_picture([StallPart(reason="wait", ratio=0.8)], [RoofBar(name="DRAM", achieved_ratio=0.5, ceiling_ratio=0.85)])
    "stalls of the line, of the kernel's samples: wait 80 %; of their peak: DRAM 50 %"
    """
    stalls = ", ".join(f"{_shorten(part.reason)} {format_percent(part.ratio)}" for part in _join_small(parts))
    units = ", ".join(f"{_shorten(roof.name)} {format_percent(roof.achieved_ratio)}" for roof in roofs[:_MOST_ROOFS])
    return "; ".join(
        text
        for text in (
            f"stalls of the line, of the kernel's samples: {stalls}" * bool(stalls),
            f"of their peak: {units}" * bool(units),
        )
        if text
    )


def _join_small(parts: Sequence[StallPart]) -> list[StallPart]:
    shown = [part for part in parts if part.ratio > 0]
    if len(shown) <= _MOST_PARTS:
        return shown
    rest = sum(part.ratio for part in shown[_MOST_PARTS - 1 :])
    return [*shown[: _MOST_PARTS - 1], StallPart(reason="others", ratio=rest)]


def _draw_stack(parts: Sequence[StallPart], top: int) -> list[str]:
    """All of the bar is the line, whatever it is of the kernel."""
    rows, left = [], 0.0
    whole = sum(max(part.ratio, 0.0) for part in parts)
    for part in parts:
        width = _WIDTH * (max(part.ratio, 0.0) / whole if whole > 0 else 0.0)
        rows.append(_draw_box(left, top, max(width - 1, 0.5), _find_colour(part.reason)))
        left += width
    return rows


def _draw_legend(parts: Sequence[StallPart], top: int) -> list[str]:
    """Two to a row."""
    rows = []
    for position, part in enumerate(parts):
        left = (position % 2) * _WIDTH // 2
        base = top + _ROW_HEIGHT * (position // 2)
        rows.append(f'<rect x="{left}" y="{base + 5}" width="8" height="8" fill="{_find_colour(part.reason)}"/>')
        rows.append(_draw_text(left + 13, base + 13, f"{_shorten(part.reason)} {format_percent(part.ratio)}"))
    return rows


def _draw_roof(roof: RoofBar, top: int) -> list[str]:
    """A frame as wide as the peak, filled as far as was achieved, with a tick at what can be sustained."""
    width = _WIDTH - _LABEL_WIDTH - _FIGURE_WIDTH
    achieved = width * min(max(roof.achieved_ratio, 0.0), 1.0)
    tick = _LABEL_WIDTH + width * min(max(roof.ceiling_ratio, 0.0), 1.0)
    is_at_roof = roof.achieved_ratio >= roof.ceiling_ratio * _AT_ROOF_RATIO
    return [
        _draw_text(0, top + 10, _shorten(roof.name)),
        f'<rect x="{_LABEL_WIDTH}" y="{top}" width="{width}" height="{_BAR_HEIGHT}" fill="none" stroke="{TEXT_COLOUR}"/>',
        _draw_box(_LABEL_WIDTH, top, achieved, COLOURS[THROTTLE if is_at_roof else MEMORY]),
        f'<path d="M{tick:.1f} {top - 1}v{_BAR_HEIGHT + 2}" stroke="{TEXT_COLOUR}" stroke-width="2"/>',
        _draw_text(_WIDTH - _FIGURE_WIDTH + 6, top + 10, format_percent(roof.achieved_ratio)),
    ]


def _draw_box(left: float, top: int, width: float, colour: str) -> str:
    return f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR_HEIGHT}" fill="{colour}"/>'


def _draw_text(left: float, base: int, text: str) -> str:
    return f'<text x="{left}" y="{base}">{escape(make_visible(text))}</text>'


def _find_colour(reason: str) -> str:
    return COLOURS[describe_stall_reason(reason).group]


def _shorten(name: str) -> str:
    """Names come from profiles."""
    plain = make_visible(name)
    return plain if len(plain) <= _LONGEST_NAME else plain[: _LONGEST_NAME - 1] + "…"
