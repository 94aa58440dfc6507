"""Reports appear complete, outside the workspace, and do not pile up."""

import os
import time
from pathlib import Path

import pytest

from gpa_lsp.profile.collect.measured_reports import (
    KEPT_REPORTS,
    choose_output,
    discard_output,
    find_measured_folder,
    find_written,
    keep_report,
)


@pytest.fixture(autouse=True)
def cache_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "my work"
    folder.mkdir()
    return folder


def test_a_report_is_moved_to_where_it_is_looked_for(workspace: Path, tmp_path: Path) -> None:
    output = choose_output(workspace)
    assert output.parent.is_dir()
    assert find_written(output) is None
    assert not output.is_relative_to(find_measured_folder(workspace))
    output.write_bytes(b"NVR\0")
    kept = keep_report(output, workspace)
    assert kept.read_bytes() == b"NVR\0"
    assert kept.parent == find_measured_folder(workspace)
    assert not output.exists()
    assert list(workspace.iterdir()) == []
    assert (tmp_path / "cache").is_dir()


def test_workspaces_have_folders_of_their_own(tmp_path: Path) -> None:
    folders = {find_measured_folder(tmp_path / name / "work") for name in ("a", "b")}
    assert len(folders) == 2


def test_what_versions_append_to_the_name(workspace: Path) -> None:
    for suffix in ("", ".ncu-rep", "z"):
        output = choose_output(workspace)
        output.with_name(output.name + suffix).write_bytes(b"NVR\0")
        written = find_written(output)
        assert written == output.with_name(output.name + suffix)
        kept = keep_report(written, workspace)
        assert kept.name == output.name + ("z" if suffix == "z" else "")


def test_an_empty_report_is_none(workspace: Path) -> None:
    output = choose_output(workspace)
    output.write_bytes(b"")
    assert find_written(output) is None


def test_only_the_last_reports_are_kept(workspace: Path) -> None:
    kept = []
    for number in range(KEPT_REPORTS + 3):
        output = choose_output(workspace)
        output = output.with_name(f"2026{number:04}.ncu-rep")
        output.write_bytes(b"NVR\0")
        kept.append(keep_report(output, workspace))
    assert sorted(find_measured_folder(workspace).iterdir()) == kept[-KEPT_REPORTS:]


def test_what_a_run_that_was_ended_wrote_is_removed(workspace: Path) -> None:
    output, other = choose_output(workspace), choose_output(workspace).with_name("other.ncu-rep")
    for path in (output, output.with_name(output.name + ".tmp"), other):
        path.write_bytes(b"half")
    discard_output(output)
    assert list(output.parent.iterdir()) == [other]


def test_what_was_abandoned_long_ago_is_removed(workspace: Path) -> None:
    old = choose_output(workspace)
    old.write_bytes(b"half")
    last_week_s = time.time() - 7 * 24 * 3600
    os.utime(old, (last_week_s, last_week_s))
    choose_output(workspace)
    assert not old.exists()
