"""Findings on a program's allocations, by source line, for editors: :func:`list_source_allocations`."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.document.program_view import describe_finding, quote_uses
from gpa_lsp.execution.programs.call_paths import list_own_frames
from gpa_lsp.execution.programs.model import AllocationFinding, AllocationSite, FindingKind, HostPath, ProgramRun
from gpa_lsp.foundation.files import make_stamp, read_bounded
from gpa_lsp.profile.model import HostFrame
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import MeasuredFile, find_doubt
from gpa_lsp.report.saved.kept_allocations import AllocationNote, AllocationPlace, SourceAllocations

_MOST_SOURCE_BYTES = 2 << 20
_MOST_NOTES = 200  # Of one source
_MOST_CALLERS = 3
_OF_COPIES = frozenset({FindingKind.NEVER_READ, FindingKind.UNCHANGED})


def list_source_allocations(run: ProgramRun, folder: Path) -> list[SourceAllocations]:
    """Findings of a run on the lines of its allocations and copies, per source found here; none where allocations were not judged.

    Args:
        run: the program.
        folder: relative paths are below it.
    """
    if run.memory.unjudged:
        return []
    notes: dict[str, list[AllocationNote]] = {}
    for site in run.memory.sites:
        for path in (site.path, *(one.path for one in site.copies)):
            for frame in list_own_frames(path)[:1]:
                notes.setdefault(_find_file(frame, folder), [])
        for finding in site.findings:
            for file, note in _place(site, finding, folder):
                notes.setdefault(file, []).append(note)
    found = (_make(file, told, run) for file, told in notes.items())
    return [one for one in found if one is not None]


def _place(site: AllocationSite, finding: AllocationFinding, folder: Path) -> Iterator[tuple[str, AllocationNote]]:
    """A finding and its file: of a copy its own line where that is known, else the line of the allocation."""
    allocated = list_own_frames(site.path)
    copied = list_own_frames(finding.path) if finding.kind in _OF_COPIES else []
    own = copied or allocated
    if not own:
        return
    related: list[AllocationPlace] = []
    if copied:
        related += _relate(allocated[:1], "allocated here", folder)
    elif finding.kind in (FindingKind.EARLY, FindingKind.LATE):
        word = "first" if finding.kind is FindingKind.EARLY else "last"
        related += _relate(list_own_frames(finding.path, finding.kernel)[:1], f"{word} use", folder)
    related += _relate(own[1 : 1 + _MOST_CALLERS], "called from here", folder)
    file = _find_file(own[0], folder)
    # other lines are places beside the words: they move with edits
    words = " ".join([*quote_uses(site), describe_finding(replace(finding, path=()))])
    line = own[0].line or 1
    size_bytes, kind = finding.size_bytes, finding.kind.value
    yield file, AllocationNote(line=line, kind=kind, words=words, size_bytes=size_bytes, related=tuple(related))


def _relate(frames: "HostPath | list[HostFrame]", words: str, folder: Path) -> Iterator[AllocationPlace]:
    for frame in frames:
        yield _find_file(frame, folder), frame.line or 1, words


def _find_file(frame: HostFrame, folder: Path) -> str:
    return os.path.realpath(folder / (frame.file or ""))


def _make(file: str, notes: list[AllocationNote], run: ProgramRun) -> SourceAllocations | None:
    """Notes of one source; None where the file cannot be read."""
    try:
        text = read_bounded(Path(file), _MOST_SOURCE_BYTES).decode("utf-8", "replace")
        status = Path(file).stat()
    except OSError:
        return None
    doubt = find_doubt(status, run.built_ns, None)
    source = MeasuredFile(
        compiled_path=file,
        local_path=file,
        lines=split_lines(text),
        is_verified=doubt is None,
        doubt=doubt,
        stamp=make_stamp(status),
    )
    notes.sort(key=lambda one: (-one.size_bytes, one.line))
    return SourceAllocations(file=source, machine=run.machine, notes=tuple(dict.fromkeys(notes[:_MOST_NOTES])))
