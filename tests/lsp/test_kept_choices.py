"""Choices for a workspace are there in the next session, even where files on the disk are damaged."""

from pathlib import Path

import pytest

from gpa_lsp.editor.protocol.kept_choices import SCHEMA, KeptChoices


def open_choices(file: Path, root: Path | None) -> KeptChoices:
    choices = KeptChoices(file)
    choices.configure(() if root is None else (root,))
    return choices


def test_every_workspace_has_its_own_choice(tmp_path: Path) -> None:
    file = tmp_path / "data" / "choices.json"
    one, other = open_choices(file, tmp_path / "one"), open_choices(file, tmp_path / "other")
    assert one.read_names("columns") is None
    one.keep_names("columns", ("share", "line"))
    other.keep_names("columns", ())
    one.keep_names("event", ("wait",))
    again = open_choices(file, tmp_path / "one")
    assert (again.read_names("columns"), again.read_names("event")) == (("share", "line"), ("wait",))
    assert open_choices(file, tmp_path / "other").read_names("columns") == ()
    assert open_choices(file, None).read_names("columns") is None
    again.keep_names("columns", None)
    assert (one.read_names("columns"), one.read_names("event")) == (None, ("wait",))


def test_links_lead_to_the_same_workspace(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    file = tmp_path / "choices.json"
    open_choices(file, tmp_path / "real").keep_names("columns", ("share",))
    assert open_choices(file, tmp_path / "link").read_names("columns") == ("share",)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema": "gpa-lsp/choices/1"}', b'{"schema": "gpa-lsp/choices/1", "workspaces": []}',
        b'{"schema": "another", "workspaces": {}}', b"[" * 100_000, b" " * (2 << 20),
        b'{"schema": "gpa-lsp/choices/1", "workspaces": {"/w": 3, "": {"columns": "share"}}}',
    ],
)  # fmt: skip
def test_a_file_that_makes_no_sense_is_no_choice(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "choices.json"
    file.write_bytes(content)
    choices = open_choices(file, None)
    assert choices.read_names("columns") is None
    choices.keep_names("columns", ("share",))
    assert choices.read_names("columns") == ("share",)
    assert SCHEMA in file.read_text()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a folder")
    choices = open_choices(tmp_path / "data" / "choices.json", tmp_path)
    choices.keep_names("columns", ("share",))
    assert choices.read_names("columns") is None


def test_old_workspaces_are_forgotten(tmp_path: Path) -> None:
    file = tmp_path / "choices.json"
    for number in range(505):
        open_choices(file, tmp_path / str(number)).keep_names("columns", (f"c{number}",))
    assert open_choices(file, tmp_path / "4").read_names("columns") is None
    assert open_choices(file, tmp_path / "504").read_names("columns") == ("c504",)
