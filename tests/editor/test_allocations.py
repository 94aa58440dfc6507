"""Findings of an emulated run on allocations, on the lines of a document as it is now."""

from pathlib import Path

from lsprotocol.types import DiagnosticSeverity

from gpa_lsp.editor.document_view import DocumentView, OpenDocument, build_view
from gpa_lsp.editor.protocol.session import AllocationWatch
from gpa_lsp.editor.source.diagnostics import list_diagnostics
from gpa_lsp.editor.source.hover import describe_hover
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import Doubt, MeasuredFile
from gpa_lsp.report.saved.kept_allocations import (
    AllocationNote,
    SourceAllocations,
    keep_allocations,
    look_at_allocations,
    open_kept_allocations,
)
from tests.editor.sessions import Session
from tests.editor.views import make_knowledge

SOURCE = """\
int main() {
    cudaMalloc(&wide, n); // allocated
    cudaMemcpy(wide, host, n, cudaMemcpyHostToDevice); // copied
    kernel<<<1, 32>>>(wide);
}
"""
PATH = "/project/app.cu"


def make_found(doubt: Doubt | None = None, path: str = PATH) -> SourceAllocations:
    """Findings on lines 2 and 3 of the source."""
    return SourceAllocations(
        file=MeasuredFile(
            compiled_path=path, local_path=path, lines=split_lines(SOURCE), is_verified=doubt is None, doubt=doubt
        ),
        machine="A100",
        notes=(
            AllocationNote(line=2, kind="partly used", words="`w` partly used: kernels access 1 MiB", size_bytes=9),
            AllocationNote(
                line=3,
                kind="copied and never read",
                words="`w` copied and never read: nothing reads it",
                size_bytes=1,
                related=((path, 2, "allocated here"), ("/project/other.cpp", 7, "called from here")),
            ),
        ),
    )


def view(text: str, found: SourceAllocations) -> DocumentView:
    document = OpenDocument(uri=f"file://{PATH}", local_path=PATH, text=text, saved={}, allocations=found)
    made = build_view(document, make_knowledge())
    assert made is not None
    return made


def test_findings_stand_on_their_lines_with_their_other_places() -> None:
    """Findings are in the list of problems at low severity, and in the hover."""
    partly, copied = list_diagnostics(view(SOURCE, make_found()))
    assert (partly.range.start.line, partly.code) == (1, "emulated partly-used")
    assert partly.severity is DiagnosticSeverity.Information
    assert partly.message == "`w` partly used: kernels access 1 MiB (emulated)"
    places = [(one.location.uri, one.location.range.start.line) for one in copied.related_information or ()]
    assert places == [(f"file://{PATH}", 1), ("file:///project/other.cpp", 6)]
    hover = describe_hover(view(SOURCE, make_found()), 3)
    assert hover is not None and "from an emulated run on A100" in hover
    assert "nothing reads it; allocated here: line 2; called from here: other.cpp:7" in hover
    assert describe_hover(view(SOURCE, make_found()), 4) is None


def test_findings_follow_their_lines_and_go_with_them() -> None:
    """A line that moved keeps its finding; one that was edited has none, nor is it named as another place."""
    (copied,) = list_diagnostics(view("// new\n" + SOURCE.replace("(&wide, n)", "(&wide, m)"), make_found()))
    assert (copied.code, copied.range.start.line) == ("emulated copied-and-never-read", 3)
    assert [one.message for one in copied.related_information or ()] == ["called from here"]
    moved = list_diagnostics(view("\n\n" + SOURCE, make_found()))[1].related_information or ()
    assert moved[0].location.range.start.line == 3


def test_a_source_newer_than_its_program_is_told() -> None:
    """The lines may not be those that were compiled."""
    (first, _) = list_diagnostics(view(SOURCE, make_found(Doubt.SAVED_SINCE)))
    assert first.message.endswith("(emulated; unverified: the source was saved after it was measured)")


def test_the_newest_run_of_a_source_counts(tmp_path: Path) -> None:
    """An entry is read once; another one in its place is read again; a damaged one is none."""
    path = str(tmp_path / "app.cu")
    assert look_at_allocations(path, None) == (None, None)
    keep_allocations([make_found(path=path)])
    mark, found = look_at_allocations(path, None)
    assert found == make_found(path=path)
    assert look_at_allocations(path, mark) == (mark, None)
    keep_allocations([make_found(Doubt.SAVED_SINCE, path=path)])
    assert look_at_allocations(path, mark)[1] == make_found(Doubt.SAVED_SINCE, path=path)
    (entry,) = (one for one in open_kept_allocations().folder.iterdir() if path.encode() in one.read_bytes())
    entry.write_bytes(b"\0" * 40 + entry.read_bytes()[40:])
    assert look_at_allocations(path, mark)[1] is None


async def test_findings_go_with_the_cache_that_holds_them(tmp_path: Path) -> None:
    """Marks of an entry that was cleared are taken back while its source stays open."""
    source = tmp_path / "app.cu"
    source.write_text(SOURCE)
    path = str(source)
    refreshed: list[SourceAllocations | None] = []
    documents = Session(opened={path: SOURCE}).documents
    keep_allocations([make_found(path=path)])
    watch = AllocationWatch(documents, lambda: refreshed.append(documents.find_findings(path).allocations))
    await watch._look()
    open_kept_allocations().clear()
    await watch._look()
    await watch._look()
    assert refreshed == [make_found(path=path), None]
