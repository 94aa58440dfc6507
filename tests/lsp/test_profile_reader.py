"""Objects that a process that reads profiles keeps from one to the next, and those that it lets go of."""

import math
import time
from pathlib import Path

import pytest

from gpa_lsp.editor.protocol import profile_reader
from gpa_lsp.editor.protocol.profile_reader import (
    FilesFound,
    KernelRead,
    PastFound,
    ProfileFailed,
    ProfileJob,
    ProfileRead,
    ProfileReader,
)
from gpa_lsp.foundation.processes.python_children import Step
from tests.conftest import ROOT

EXAMPLE = ROOT / "fixtures" / "example.gpa-profile.json"


SOURCE = "kernels/short_def_use/original.cu"
"""Of one of the example's kernels."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace without any source."""
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


class Wire:
    """Takes messages."""

    def __init__(self) -> None:
        self.messages: list[object] = []

    def send(self, message: object) -> int:
        self.messages.append(message)
        return 100

    def list_files(self) -> list[str]:
        return [
            Path(file.local_path).name
            for message in self.messages
            if isinstance(message, FilesFound)
            for file in message.files
        ]


def bring_source(fixtures: Path, root: Path) -> None:
    target = root / SOURCE
    target.parent.mkdir(parents=True)
    target.write_bytes((fixtures / SOURCE).read_bytes())


def read(
    reader: ProfileReader, root: Path, profile: Path = EXAMPLE, *, keeps_history: bool = False
) -> tuple[object, Wire]:
    wire = Wire()
    job = ProfileJob(profile=profile, roots=(root,), path_mappings=(), keeps_history=keeps_history)
    return reader.read(job, wire.send), wire


def test_a_profile_becomes_messages(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_reader, "_EARLY_S", math.inf)
    end, wire = read(ProfileReader(), root)
    kinds = [type(message) for message in wire.messages if not isinstance(message, Step)]
    assert kinds[0] is FilesFound and set(kinds[1:]) == {KernelRead}
    assert isinstance(end, ProfileRead) and end.size_bytes == 100 * len(kinds)


def test_kernels_of_a_profile_that_takes_long_come_as_they_are_judged(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profile_reader, "_EARLY_S", 0.0)
    monkeypatch.setattr(profile_reader, "_FEWEST_EARLY", 1)
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))
    end, wire = read(ProfileReader(), root, keeps_history=True)
    assert isinstance(end, ProfileRead)
    found = [message for message in wire.messages if not isinstance(message, Step)]
    early = [message.kernel for message in found if isinstance(message, KernelRead)]
    assert all(message.is_early for message in found if isinstance(message, KernelRead))
    last_files = max(place for place, message in enumerate(found) if isinstance(message, FilesFound))
    assert not any(isinstance(message, KernelRead) for message in found[last_files:])
    pasts = {message.number: message.history for message in found if isinstance(message, PastFound)}
    assert [pasts[number].run.measurement.key.mangled_name for number in range(len(early))] == [
        kernel.report.mangled_name for kernel in early
    ]
    assert end.size_bytes == 100 * len(found)


def test_what_cannot_be_read_says_so(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ncu-rep"
    broken.write_text("nothing")
    end, _ = read(ProfileReader(), tmp_path, broken)
    assert isinstance(end, ProfileFailed) and "broken.ncu-rep" in end.reason


def test_a_source_that_came_is_found_after_a_rest(root: Path, fixtures: Path) -> None:
    reader = ProfileReader()
    _, wire = read(reader, root)
    assert wire.list_files() == []
    bring_source(fixtures, root)
    reader.rest()
    _, wire = read(reader, root)
    assert wire.list_files() == ["original.cu"]


def test_a_source_that_came_is_found_without_a_rest_before_long(
    root: Path, fixtures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    reader = ProfileReader()
    read(reader, root)
    bring_source(fixtures, root)
    now_s += 60.0
    _, wire = read(reader, root)
    assert wire.list_files() == ["original.cu"]


def test_a_history_that_cannot_be_written_is_said_once(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").write_text("not a folder")
    monkeypatch.setenv("GPA_LSP_DATA_DIR", str(tmp_path / "data"))
    reader = ProfileReader()
    ends = [read(reader, root, keeps_history=True)[0] for _ in range(3)]
    remarks = [[text for text in end.remarks if "remember" in text] for end in ends if isinstance(end, ProfileRead)]
    assert [len(found) for found in remarks] == [1, 0, 0]
