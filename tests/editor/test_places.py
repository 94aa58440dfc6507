"""Measured places on this machine: in open documents, in files as they are now, and never in files nobody allowed us to read."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import Location, Position, Range
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from gpa_lsp.editor.lines import places as places_module
from gpa_lsp.editor.lines.places import PlaceFinder, name_file
from gpa_lsp.editor.lines.positions import Positions
from gpa_lsp.editor.settings import UnverifiedChoice
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import find_files
from gpa_lsp.report.model import Report
from gpa_lsp.report.source_paths import SourceLocator
from tests.editor.edits import ENCODINGS, TEXTS, make_units
from tests.editor.views import LISTING, SOURCE, make_profile, make_snapshot
from tests.report_builder import build_kernel


def show(folder: Path, text: str | None = SOURCE, **changes: object) -> VisibleKernel:
    """A kernel measured on ``saxpy.cu`` of a folder."""
    profile = make_profile(build_kernel(LISTING, name="saxpy"), folder=str(folder), texts={"saxpy.cu": text})
    files = {path: replace(file, **changes) for path, file in profile.files.items()}  # type: ignore[arg-type]
    (shown,) = make_snapshot(replace(profile, files=files)).visible
    return shown


def find(finder: PlaceFinder, shown: VisibleKernel, line: int) -> int | None:
    """The line now."""
    location = finder.locate(shown, ("saxpy.cu", line))
    return None if location is None else location.range.start.line + 1


@pytest.fixture
def finder() -> PlaceFinder:
    """Finder of places with no document open."""
    return PlaceFinder(make_units("utf-16"), lambda local_path: None)


def test_a_closed_file_is_read_as_it_is_now(finder: PlaceFinder, tmp_path: Path) -> None:
    source = tmp_path / "saxpy.cu"
    source.write_text("// é\n" + SOURCE.replace("2 * x", "3 * x"))
    shown = show(tmp_path)
    assert [find(finder, shown, line) for line in (4, 5, 6, 7, 8, 99, 0, -1)] == [5, None, 7, 8, 9, None, None, None]
    location = finder.locate(shown, ("saxpy.cu", 4))
    assert location is not None and location.uri == source.as_uri()
    assert location.range == Range(Position(4, 4), Position(4, 24))
    source.write_text(SOURCE)
    os.utime(source, (1, 1))
    assert find(finder, shown, 5) == 5
    source.unlink()
    assert find(finder, shown, 5) is None


def test_an_open_document_comes_first(tmp_path: Path) -> None:
    shown = show(tmp_path)
    opened = _Opened(shown, "// one\n// two\n" + SOURCE)
    finder = PlaceFinder(make_units("utf-16"), lambda local_path: opened)
    assert find(finder, shown, 5) == 7
    location = finder.locate(shown, ("saxpy.cu", 5))
    assert location is not None and location.uri == "untitled:as the client writes it"


class _Opened:
    uri = "untitled:as the client writes it"

    def __init__(self, shown: VisibleKernel, text: str) -> None:
        from gpa_lsp.editor.lines.finder import LineFinder

        del shown
        self.positions = Positions(lines=split_lines(text), units=make_units("utf-16"))
        self.finder = LineFinder(self.positions.lines)


@pytest.mark.parametrize("text", [SOURCE, None])
def test_a_file_outside_is_never_opened(
    finder: PlaceFinder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    (tmp_path / "saxpy.cu").write_text("moved\n" + SOURCE)
    opened: list[Path] = []
    monkeypatch.setattr(places_module, "open_regular_file", opened.append)
    location = finder.locate(show(tmp_path, text, is_outside=True), ("saxpy.cu", 5))
    assert location == Location(uri=(tmp_path / "saxpy.cu").as_uri(), range=Range(Position(4, 0), Position(4, 0)))
    doubtful = show(tmp_path, text, is_outside=True, is_verified=False)
    assert finder.locate(doubtful, ("saxpy.cu", 5)) == location
    hiding = PlaceFinder(PositionCodec(), lambda local_path: None, UnverifiedChoice.NONE)
    assert hiding.locate(doubtful, ("saxpy.cu", 5)) is None
    assert opened == []


def test_what_a_profile_has_of_a_file_outside_does_not_open_it(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "saxpy.cu"
    outside.parent.mkdir()
    outside.write_text(SOURCE)
    (tmp_path / "work").mkdir()
    listing = LISTING.replace("saxpy.cu", str(outside))
    kernel = build_kernel(listing, name="saxpy", sources={str(outside): SOURCE})
    (file,) = find_files(
        Report(problems=(), kernels=(kernel,)), SourceLocator([tmp_path / "work"], is_confined=True), 0
    )
    assert file.is_outside and file.lines == split_lines(SOURCE)
    (file,) = find_files(Report(problems=(), kernels=(kernel,)), SourceLocator([tmp_path], is_confined=True), 0)
    assert not file.is_outside


def test_what_is_no_file_is_nowhere(finder: PlaceFinder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "saxpy.cu")  # opening it as a file would wait for ever
    shown = show(tmp_path)
    assert find(finder, shown, 5) is None
    (tmp_path / "saxpy.cu").unlink()
    (tmp_path / "saxpy.cu").mkdir()
    assert find(finder, shown, 5) is None
    (tmp_path / "saxpy.cu").rmdir()
    with (tmp_path / "saxpy.cu").open("wb") as large:
        large.truncate(9 << 20)
    assert find(finder, shown, 5) is None


def test_few_large_files_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places_module, "_MAX_KEPT_BYTES", 3 * len(SOURCE))
    finder = PlaceFinder(make_units("utf-16"), lambda local_path: None)
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "saxpy.cu").write_text(SOURCE)
        assert find(finder, show(folder), 5) == 5
    assert list(finder._closed) == [str(tmp_path / str(number) / "saxpy.cu") for number in (7, 8, 9)]


def test_another_profiles_file_is_nowhere(finder: PlaceFinder, tmp_path: Path) -> None:
    assert finder.locate(show(tmp_path), ("other.cu", 5)) is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/a/b/k.cu", "k.cu"),
        ("C:\\src\\k.cu", "k.cu"),
        ("k.cu", "k.cu"),
        ("/a/", ""),
        ("/a/evil\x1b[2J\n.cu", r"evil\x1b[2J\n.cu"),
        ("/a/" + "x" * 10**6 + ".cu", "…" + "x" * 96 + ".cu"),
    ],
)
def test_names_of_files_are_short_and_plain(path: str, name: str) -> None:
    assert name_file(path) == name


@given(TEXTS, st.sampled_from(sorted(ENCODINGS)))
def test_columns_there_and_back(text: str, encoding: str) -> None:
    positions = Positions(lines=split_lines(text), units=make_units(encoding))
    for number, line in enumerate(positions.lines, start=1):
        for column in range(len(line) + 1):
            place = positions.find_place(number, column)
            assert place == Position(number - 1, sum(map(ENCODINGS[encoding], line[:column])))
            assert positions.read_column(place) == column
        assert positions.find_place(number, len(line) + 9) == positions.find_place(number, len(line))
        assert positions.read_column(Position(number - 1, 10**6)) == len(line)
    assert positions.read_column(Position(len(positions.lines), 3)) == 0


@given(TEXTS, st.sampled_from(sorted(ENCODINGS)), st.integers(0, 60))
def test_a_column_inside_a_character_is_behind_it(text: str, encoding: str, units: int) -> None:
    positions = Positions(lines=split_lines(text), units=make_units(encoding))
    line = positions.lines[0]
    widths = [sum(map(ENCODINGS[encoding], line[:column])) for column in range(len(line) + 1)]
    expected = next((column for column, width in enumerate(widths) if width >= units), len(line))
    assert positions.read_column(Position(0, units)) == expected
