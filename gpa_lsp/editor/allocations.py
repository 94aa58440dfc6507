"""What an emulated run found of a document's allocations, on the lines as they are now."""

from collections.abc import Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.lines.finder import LineFinder
from gpa_lsp.report.saved.kept_allocations import AllocationNote, AllocationPlace, SourceAllocations


class PlacedAllocations(Struct, frozen=True, kw_only=True):
    """The findings on a document."""

    notes: Mapping[
        int, tuple[AllocationNote, ...]
    ]  # current line → findings, largest first; their other places are where they are now
    machine: str  # the GPU that the program saw
    doubt: str  # why the lines may not be those, as the rest of a sentence about the source; empty where they are

    @property
    def origin(self) -> str:
        """Where the findings come from, and how far the lines can be trusted."""
        return f"from an emulated run on {self.machine}" + (f"; the source {self.doubt}" if self.doubt else "")


def place_allocations(found: SourceAllocations, finder: LineFinder) -> PlacedAllocations:
    """Put findings on lines; those whose line was edited are left out."""
    notes: dict[int, list[AllocationNote]] = {}
    for note in found.notes:
        line = finder.find(found.file, note.line)
        if line is not None:
            related = tuple(_follow(note, found, finder))
            notes.setdefault(line, []).append(replace(note, line=line, related=related))
    return PlacedAllocations(
        notes={line: tuple(told) for line, told in notes.items()},
        machine=found.machine,
        doubt=found.file.describe_doubt(),
    )


def _follow(note: AllocationNote, found: SourceAllocations, finder: LineFinder) -> Iterator[AllocationPlace]:
    for path, line, words in note.related:
        now = finder.find(found.file, line) if path == found.file.local_path else line
        if now is not None:
            yield path, now, words
