"""A measured source of which nobody has a copy: what the client had of that very state of the file stands in for it, and nothing else does."""

import os
from pathlib import Path

from lsprotocol.types import TextDocumentContentChangeWholeDocument
from msgspec.structs import replace

from gpa_lsp.editor.settings import Settings, UnverifiedChoice
from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.foundation.files import read_stamp
from tests.editor.sessions import Session
from tests.editor.views import make_profile, make_snapshot
from tests.report_builder import build_kernel

MEASURED = "a;\nb;\nc;\n"
EDITED = "new;\na;\nb;\nc;\n"


def write(file: Path, text: str, *, seconds: int) -> None:
    file.write_text(text)
    os.utime(file, (seconds, seconds))


def load(file: Path) -> LoadedProfile:
    """A profile that says something of line 2, loaded while the file is as it is."""
    kernel = build_kernel(f"{file.name}:2  X  ; wait=9", name="k")
    profile = make_profile(kernel, texts={file.name: None}, folder=str(file.parent))
    files = {path: replace(one, stamp=read_stamp(one.local_path)) for path, one in profile.files.items()}
    return replace(profile, files=files)


def list_hot(session: Session, file: Path) -> list[int]:
    view = session.view(file.as_uri())
    assert view is not None
    return list(view.hot_lines)


def test_opened_as_it_was_measured_lines_are_followed(tmp_path: Path) -> None:
    file = tmp_path / "far.cuh"
    write(file, MEASURED, seconds=1000)
    session = Session(load(file), {str(file): MEASURED})
    assert list_hot(session, file) == [2]


def test_opened_after_another_program_changed_it_there_are_no_numbers(tmp_path: Path) -> None:
    file = tmp_path / "far.cuh"
    write(file, MEASURED, seconds=1000)
    profile = load(file)
    write(file, EDITED, seconds=2000)
    session = Session(profile, {str(file): EDITED})
    assert list_hot(session, file) == []
    view = session.view(file.as_uri())
    assert view is not None
    assert all(anchor.is_withheld for anchor in view.anchors)
    (found,) = session.documents.find_unverified()
    assert (found.local_path, found.profile, found.is_shown) == (str(file), "profile.ncu-rep", False)


def test_who_wants_doubtful_numbers_gets_them(tmp_path: Path) -> None:
    file = tmp_path / "far.cuh"
    write(file, MEASURED, seconds=1000)
    profile = load(file)
    write(file, EDITED, seconds=2000)
    session = Session(profile, {str(file): EDITED}, settings=Settings(unverified_lines=UnverifiedChoice.ALL))
    assert list_hot(session, file) == [2]


def test_unsaved_changes_an_editor_has_kept_are_not_what_was_measured(tmp_path: Path) -> None:
    file = tmp_path / "far.cuh"
    write(file, MEASURED, seconds=1000)
    session = Session(load(file), {str(file): EDITED})
    assert list_hot(session, file) == []


def test_measured_again_after_a_save_the_saved_text_counts(tmp_path: Path) -> None:
    file = tmp_path / "far.cuh"
    write(file, MEASURED, seconds=1000)
    session = Session(load(file), {str(file): MEASURED})
    uri = file.as_uri()
    session.documents.change(uri, [TextDocumentContentChangeWholeDocument(text=EDITED)], 2)
    assert list_hot(session, file) == [3]
    write(file, EDITED, seconds=2000)
    session.documents.save(uri)
    assert list_hot(session, file) == [3]  # the older measurement is of the text before
    session.documents.take(make_snapshot(load(file)), Settings())
    assert list_hot(session, file) == [2]


def test_an_editor_may_add_the_last_line_end(tmp_path: Path) -> None:
    file = tmp_path / "far.cuh"
    write(file, MEASURED.removesuffix("\n"), seconds=1000)
    session = Session(load(file), {str(file): MEASURED})
    assert list_hot(session, file) == [2]
