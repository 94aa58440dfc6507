"""Mapping of the lines of a measured text to the text the editor holds now.

Compilers count lines in the text they were given; the person goes on typing. A line keeps its measurement as long as it can be found again,
in the same order, with the same words; lines that were changed lose theirs.

The method is Bram Cohen's patience diff: equal lines at both ends are paired, then lines that occur exactly once in both texts, in their longest
common order, and then the gaps between those. It needs O(n log n) steps per level, also on texts that have nothing in common, so it can
run between two keystrokes.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

# Over both texts. Real ones need a handful; one can be made that needs as many as it has lines, and its lines are gone after these.
_MOST_PASSES = 50

_LINE_END = re.compile(r"\r\n|\n|\r")


def split_lines(text: str) -> tuple[str, ...]:
    r"""The lines of a document without their ends, as the protocol counts them.

    Not ``str.splitlines``: that also splits at form feeds and Unicode separators, which stand in real sources and end no line there.

    >>> split_lines("a\x0cb\r\nc\n")
    ('a\x0cb', 'c', '')
    """
    return tuple(_LINE_END.split(text) if "\r" in text else text.split("\n"))


class LineMap(Struct, frozen=True, kw_only=True):
    """The current lines of measured lines."""

    # per measured line (the first one is at index 0) its 1-based line now, or 0 when it is gone
    current_lines: tuple[int, ...]
    unchanged: bool  # both texts are the same but for white space at line ends and indentation

    def find_current(self, measured_line: int) -> int | None:
        """Present number (1-based) of a measured line (1-based); None when it is gone or never existed."""
        if not 1 <= measured_line <= len(self.current_lines):
            return None
        return self.current_lines[measured_line - 1] or None


def map_lines(measured: Sequence[str], current: Sequence[str]) -> LineMap:
    """Pair the lines of two texts. White space around a line does not count: indenting code does not change what it does.

    >>> map_lines(["a", "b", "c"], ["new", "a", "B", "  c"]).current_lines
    (2, 0, 4)
    """
    old, new = _strip_measured(tuple(measured)), [line.strip() for line in current]
    if old == new:
        return LineMap(current_lines=tuple(range(1, len(old) + 1)), unchanged=True)
    found = [0] * len(old)
    gaps = [(0, len(old), 0, len(new))]
    left = _MOST_PASSES * (len(old) + len(new))
    while gaps and left > 0:
        gap = gaps.pop()
        left -= gap[1] - gap[0] + gap[3] - gap[2]
        gaps.extend(_pair_gap(old, new, gap, found))
    return LineMap(current_lines=tuple(found), unchanged=False)


@lru_cache(maxsize=8)
def _strip_measured(lines: tuple[str, ...]) -> list[str]:
    """Stripped lines, cached: the measured text is compared after each keystroke."""
    return [line.strip() for line in lines]


def map_edited_lines(before: Sequence[str], after: Sequence[str]) -> tuple[int, ...]:
    """Map lines as :func:`map_lines`, and pair edited lines in order where a gap has equally many on both sides; 0 for gone.

    For comparing two measurements, where the person wants to know what the edit did to the line; not for showing one that was made before it.

    >>> map_edited_lines(["a", "b", "c"], ["new", "a", "B", "c"])
    (2, 3, 4)
    """
    found = list(map_lines(before, after).current_lines)
    start, last = 0, 0
    for index in range(len(found) + 1):
        partner = found[index] if index < len(found) else len(after) + 1
        if not partner:
            continue
        if partner - last - 1 == index - start:
            found[start:index] = range(last + 1, partner)
        start, last = index + 1, partner
    return tuple(found)


def map_edited_texts(before: str, after: str) -> tuple[int, ...]:
    """Map the lines of two texts as :func:`map_edited_lines`."""
    return map_edited_lines(split_lines(before), split_lines(after))


_Gap = tuple[int, int, int, int]  # Half-open: first and last old line, first and last new line


def _pair_gap(old: list[str], new: list[str], gap: _Gap, found: list[int]) -> list[_Gap]:
    """Pair lines in a gap; return the smaller gaps that remain."""
    old_start, old_end, new_start, new_end = gap
    equal = _count_equal(old[old_start:old_end], new[new_start:new_end])
    found[old_start : old_start + equal] = range(new_start + 1, new_start + 1 + equal)
    old_start, new_start = old_start + equal, new_start + equal
    equal = _count_equal(old[old_start:old_end][::-1], new[new_start:new_end][::-1])
    old_end, new_end = old_end - equal, new_end - equal
    found[old_end : old_end + equal] = range(new_end + 1, new_end + 1 + equal)
    if old_start == old_end or new_start == new_end:
        return []
    anchors = _find_anchors(old, new, (old_start, old_end, new_start, new_end))
    gaps: list[_Gap] = []
    for old_line, new_line in anchors:
        found[old_line] = new_line + 1
        gaps.append((old_start, old_line, new_start, new_line))
        old_start, new_start = old_line + 1, new_line + 1
    if anchors:
        gaps.append((old_start, old_end, new_start, new_end))
    return gaps


def _count_equal(old: list[str], new: list[str]) -> int:
    """Number of equal lines at the beginning, by comparing growing slices: a keystroke leaves thousands unchanged.

    >>> _count_equal(["a", "b", "c"], ["a", "b", "x"]), _count_equal(["a"], []), _count_equal(["a"] * 9, ["a"] * 7)
    (2, 0, 7)
    """
    equal, most = 0, min(len(old), len(new))
    step = 1
    while equal < most and step:
        end = min(equal + step, most)
        if old[equal:end] == new[equal:end]:
            equal, step = end, 2 * step
        else:
            step = (end - equal) // 2
    return equal


def _find_anchors(old: list[str], new: list[str], gap: _Gap) -> list[tuple[int, int]]:
    """Pairs of lines that occur once on either side of the gap, in the longest order both share."""
    unique_old = _find_unique(old, gap[0], gap[1])
    unique_new = _find_unique(new, gap[2], gap[3])
    pairs = [(line, unique_new[text]) for text, line in unique_old.items() if text in unique_new]
    return _find_longest_ascent(pairs)


def _find_unique(lines: list[str], start: int, end: int) -> dict[str, int]:
    """Text → index of the lines that occur once in ``[start, end)``, in order."""
    seen: dict[str, int] = {}
    repeated: set[str] = set()
    for index in range(start, end):
        if seen.setdefault(lines[index], index) != index:
            repeated.add(lines[index])
    return {text: index for text, index in seen.items() if text and text not in repeated}


def _find_longest_ascent(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest subsequence whose second numbers ascend; the first ones ascend already.

    >>> _find_longest_ascent([(0, 5), (1, 2), (2, 3)])
    [(1, 2), (2, 3)]
    """
    tails: list[int] = []
    tail_pairs: list[int] = []
    previous: list[int | None] = []
    for index, (_, value) in enumerate(pairs):
        length = bisect_left(tails, value)
        previous.append(tail_pairs[length - 1] if length else None)
        if length == len(tails):
            tails.append(value)
            tail_pairs.append(index)
        else:
            tails[length] = value
            tail_pairs[length] = index
    ascent: list[tuple[int, int]] = []
    last = tail_pairs[-1] if tail_pairs else None
    while last is not None:
        ascent.append(pairs[last])
        last = previous[last]
    return ascent[::-1]
