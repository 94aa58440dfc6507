"""Places are shown as they are here, and texts of lines only where they can be trusted."""

import os
from pathlib import Path

from gpa_lsp.document.places import PlaceNames
from gpa_lsp.report.source_paths import SourceLocator
from tests.report_builder import build_kernel


def make_places(folder: Path) -> PlaceNames:
    return PlaceNames(SourceLocator([folder]), folder)


def test_shown_relative_absolute_or_as_compiled(tmp_path: Path) -> None:
    kernel = build_kernel()
    inside, outside = tmp_path / "work" / "k.cu", tmp_path / "other" / "k.cu"
    for path in (inside, outside):
        path.parent.mkdir()
        path.write_text("x\n")
    places = make_places(tmp_path / "work")
    assert places.show_line(kernel, str(inside), 3) == "k.cu:3"
    assert places.show_line(kernel, str(outside), 3) == f"{outside}:3"
    assert places.show_line(kernel, "C:\\gone\\j.cu", 3) == "C:\\gone\\j.cu:3"
    assert places.show_line(kernel, str(inside), 0) == "k.cu"


def test_without_a_locator_nothing_is_looked_for(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("x\n")
    places = PlaceNames()
    kernel = build_kernel()
    assert places.show_file(kernel, str(tmp_path / "k.cu")) == str(tmp_path / "k.cu")
    assert places.read_line(kernel, str(tmp_path / "k.cu"), 1) is None


def test_embedded_text_is_believed_first(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("changed\n")
    kernel = build_kernel(sources={str(tmp_path / "k.cu"): "one\n  two\n"})
    places = make_places(tmp_path)
    assert places.read_line(kernel, str(tmp_path / "k.cu"), 2) == "two"
    assert places.read_line(kernel, str(tmp_path / "k.cu"), 3) is None
    assert places.read_line(kernel, str(tmp_path / "k.cu"), 0) is None


def test_a_file_here_is_believed_when_older_than_the_measurement(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text("one\n")
    kernel = build_kernel(measured_unix_s=1_700_000_000)
    os.utime(path, (1_600_000_000, 1_600_000_000))
    assert make_places(tmp_path).read_line(kernel, str(path), 1) == "one"
    os.utime(path, (1_700_000_001, 1_700_000_001))
    assert make_places(tmp_path).read_line(kernel, str(path), 1) is None
    assert make_places(tmp_path).read_line(build_kernel(measured_unix_s=None), str(path), 1) is None
