"""Measurements by the line they stand on now, made into objects for those lines only that are asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.editor.lines.index import CauseEntry, HotEntry, LineTable, MeasuredText, ValueEntry, order_entry
from gpa_lsp.report.measured_files import MeasuredFile

_Entry = TypeVar("_Entry", HotEntry, CauseEntry, ValueEntry)
_Line = TypeVar("_Line")


class PlacedLines(Mapping[int, tuple[_Line, ...]], Generic[_Entry, _Line]):
    """Current line → what kernels say of it, largest share first; lines in ascending order.

    Args:
        texts: what was measured.
        pick: of a text, what is wanted.
        finder: maps measured lines to the document's.
        make: (entry, whether other lines were edited since) → what is said of the line.
    """

    def __init__(
        self,
        texts: Sequence[MeasuredText],
        pick: Callable[[MeasuredText], LineTable[_Entry]],
        finder: LineFinder,
        make: Callable[[_Entry, bool], _Line],
    ) -> None:
        self._finder = finder
        self._make: Callable[[_Entry, bool], _Line] = make
        self._made: dict[int, tuple[_Line, ...]] = {}
        self._lines: tuple[int, ...] | None = None
        self._parts: list[tuple[MeasuredFile, LineTable[_Entry], Mapping[int, int]]] = [
            (text.file, pick(text), finder.map_back(text.file)) for text in texts
        ]

    def __getitem__(self, line: int) -> tuple[_Line, ...]:
        known = self._made.get(line)
        if known is None:
            known = self._made[line] = tuple(self._build(line))
        if not known:
            raise KeyError(line)
        return known

    def __contains__(self, line: object) -> bool:
        return isinstance(line, int) and any(
            measured_of.get(line) in table.by_line for _, table, measured_of in self._parts
        )

    def __iter__(self) -> Iterator[int]:
        return iter(self._list_lines())

    def __len__(self) -> int:
        return len(self._list_lines())

    def find_top(self, line: int) -> _Line | None:
        """What the kernel with the largest share says of a line, and nothing is made for the others; None for a line without measurements."""
        tops = [
            (entries[0], file)
            for file, table, measured_of in self._parts
            if (entries := table.by_line.get(measured_of.get(line, 0), ()))
        ]
        top = min(tops, key=lambda one: order_entry(one[0]), default=None)
        return None if top is None else self._make(top[0], self._finder.is_edited(top[1]))

    def list_above(self, least_ratio: float) -> list[int]:
        """Lines of which some kernel has at least a share, ascending; nothing is made for the others."""
        found: set[int] = set()
        for file, table, _ in self._parts:
            found.update(
                line for measured in table.list_above(least_ratio) if (line := self._finder.find(file, measured))
            )
        return sorted(found)

    def measure_above(self, least_ratio: float) -> dict[int, float]:
        """The same lines with the largest share that some kernel has of each."""
        found: dict[int, float] = {}
        for file, table, _ in self._parts:
            for measured in table.list_above(least_ratio):
                line = self._finder.find(file, measured)
                if line:
                    found[line] = max(found.get(line, 0.0), table.by_line[measured][0].share_ratio)
        return found

    def list_leading(self) -> frozenset[int]:
        """Lines that are among the hottest of some kernel, however little that is."""
        return frozenset(
            line
            for file, table, _ in self._parts
            for measured in table.leading
            if (line := self._finder.find(file, measured))
        )

    def list_tops(self, least_ratio: float) -> list[tuple[int, _Line]]:
        """The same lines, each with what the kernel with the largest share says of it."""
        found = ((line, self.find_top(line)) for line in self.list_above(least_ratio))
        return [(line, top) for line, top in found if top is not None]

    def _list_lines(self) -> tuple[int, ...]:
        if self._lines is None:
            self._lines = tuple(
                sorted(
                    {
                        line
                        for _, table, measured_of in self._parts
                        for line, measured in measured_of.items()
                        if measured in table.by_line
                    }
                )
            )
        return self._lines

    def _build(self, line: int) -> Iterator[_Line]:
        """One text's entries are in order; those of several have to be put in order first."""
        found: list[tuple[_Entry, bool]] = []
        for file, table, measured_of in self._parts:
            entries = table.by_line.get(measured_of.get(line, 0), ())
            is_edited = bool(entries) and self._finder.is_edited(file)
            found.extend((entry, is_edited) for entry in entries)
        if len(self._parts) > 1:
            found.sort(key=lambda one: order_entry(one[0]))
        return (self._make(entry, is_edited) for entry, is_edited in found)
