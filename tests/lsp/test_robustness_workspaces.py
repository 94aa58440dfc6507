"""Many folders, many profiles: answers stay right while folders come and go, and neither memory nor the time of an answer grows without end."""

import asyncio
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.editor.protocol import loader as loader_module
from gpa_lsp.editor.protocol.loader import ProfileLoader
from gpa_lsp.editor.protocol.profile_reader import (
    FilesFound,
    KernelRead,
    ProfileEnd,
    ProfileFailed,
    ProfileJob,
    ProfileMessage,
    ProfileRead,
)
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import Snapshot
from tests.collect.processes import measure_peak_bytes
from tests.editor.views import LISTING, SOURCE, make_profile
from tests.lsp import test_loading
from tests.lsp.conftest import LISTINGS, let_look_twice, list_kernels, make_ancient, write_profile
from tests.lsp.raw_client import RawClient
from tests.patience import wait_until, wait_until_so
from tests.report_builder import build_kernel

FOLDERS = 20
ROUNDS = 4


def make_folder(parent: Path, number: int) -> Path:
    folder = parent / f"work {number}"
    folder.mkdir()
    (folder / "saxpy.cu").write_text(SOURCE)
    make_ancient(folder / "saxpy.cu")
    listing = LISTING.replace("60/50", f"{60 + number}/50")
    write_profile(folder / "saxpy.ncu-rep", listing, f"name saxpy{number}(float*)")
    return folder


def wait_for_kernels(client: RawClient, numbers: set[int]) -> None:
    wait_until(lambda: list_kernels(client) == {f"saxpy{number}" for number in numbers})


def test_twenty_folders_come_and_go(tmp_path: Path) -> None:
    chance = random.Random(20)
    folders = [make_folder(tmp_path, number) for number in range(FOLDERS)]
    items = [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]
    there = set(range(FOLDERS))
    with RawClient(environment=LISTINGS) as client:
        client.initialize(None, workspaceFolders=items)
        uris = [client.open(folder / "saxpy.cu") for folder in folders]
        for _ in range(ROUNDS):
            wait_for_kernels(client, there)
            for number in chance.sample(range(FOLDERS), 5):
                if number in there:
                    said = client.read_hover(uris[number], 5)
                    assert f"of the samples of `saxpy{number}` are taken here" in said
                else:
                    assert client.hover(uris[number], 5) is None
            gone = set(chance.sample(sorted(there), min(len(there), chance.randrange(1, 8))))
            came = set(chance.sample(range(FOLDERS), chance.randrange(6))) - there
            there = (there - gone) | came
            event = {"added": [items[number] for number in came], "removed": [items[number] for number in gone]}
            client.notify("workspace/didChangeWorkspaceFolders", {"event": event})
        wait_for_kernels(client, there)
        assert client.messages() == [] and "Traceback" not in client.errors
        peak = measure_peak_bytes(client.process.pid)
        print(f"{FOLDERS} folders: {peak >> 20} MB")
        assert peak < 500 << 20
        assert client.shut_down() == 0


class Audience(test_loading.Audience):
    """Takes its time to show what a loader tells: a hundredth of a second by its own clock, on which nothing else takes any."""

    def __init__(self) -> None:
        super().__init__()
        self.snapshots: list[Snapshot] = []
        self._now_s = 0.0

    def monotonic(self) -> float:
        """Time since an arbitrary start, as from the module ``time``."""
        return self._now_s

    def time_ns(self) -> int:
        """Time of the day, as from the module ``time``."""
        return time.time_ns()

    def take_snapshot(self, snapshot: Snapshot) -> None:
        self._now_s += 0.01
        self.snapshots.append(snapshot)


class Readers:
    """Reads profiles without a process; every third is broken."""

    most = 2

    async def read(self, job: ProfileJob, take: Callable[[ProfileMessage], None]) -> ProfileEnd:
        path = job.profile
        await asyncio.sleep(0)
        if int(path.stem) % 3 == 0:
            return ProfileFailed(profile=path, reason=f"{path.name} is broken")
        loaded = make_profile(build_kernel("saxpy.cu:4  X  ; wait=1", name=path.stem))
        take(FilesFound(profile=path, files=tuple(loaded.files.values())))
        take(KernelRead(profile=path, kernel=loaded.kernels[0]))
        return ProfileRead(profile=path, remarks=(), size_bytes=100)

    async def leave(self) -> None:
        return


async def load(folder: Path, audience: Audience, is_done: Callable[[], bool]) -> None:
    """Let a loader work until something is so."""
    loader = ProfileLoader(audience, Readers())
    loader.configure((folder,), Settings(poll_seconds=0.05, keeps_history=False))
    task = asyncio.create_task(loader.run())
    try:
        await wait_until_so(is_done)
    finally:
        task.cancel()


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    """A folder with 60 different profiles."""
    for number in range(60):
        write_profile(tmp_path / f"{number:02}.ncu-rep", f"{number}")
    return tmp_path


def count(audience: Audience) -> int:
    return len(audience.snapshots[-1].visible) if audience.snapshots else 0


async def test_what_takes_long_to_show_is_shown_seldom(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    audience = Audience()
    monkeypatch.setattr(loader_module, "time", audience)
    await load(profiles, audience, lambda: count(audience) == 40)
    assert 1 <= len(audience.snapshots) < 40  # else it would be one for each
    assert {path.name for path in audience.snapshots[-1].profiles} == {f"{n:02}.ncu-rep" for n in range(60) if n % 3}


async def test_profiles_that_cannot_be_read_are_counted_until_they_are_gone(profiles: Path) -> None:
    audience = Audience()
    await load(profiles, audience, lambda: count(audience) == 40 and len(audience.snapshots[-1].unreadable) == 20)
    snapshot = audience.snapshots[-1]
    gone = next(iter(snapshot.unreadable))
    assert snapshot.with_profiles([replace(next(iter(snapshot.profiles.values())), path=gone)]).unreadable == (
        snapshot.unreadable - {gone}
    )


async def test_complaints_have_an_end(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_module, "_MOST_COMPLAINTS", 5)
    audience = Audience()
    await load(profiles, audience, lambda: count(audience) == 40)
    assert len(audience.warnings) == 6 and "more profiles cannot be read" in audience.warnings[-1]


async def test_the_newest_of_too_many_profiles_are_read(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_module, "_MOST_PROFILES", 9)
    now = time.time()
    names = [f"{number:02}.ncu-rep" for number in (1, 2, 5, 7, 30, 31, 32, 40, 59)]
    for number, name in enumerate(names):
        os.utime(profiles / name, (now - 1000 + number, now - 1000 + number))
    audience = Audience()
    await load(profiles, audience, lambda: count(audience) == 8)
    assert sorted(path.name for path in audience.snapshots[-1].profiles) == [
        name for name in names if name != "30.ncu-rep"
    ]
    (warning, *_) = audience.warnings
    assert "60 profiles" in warning and "the newest 9" in warning


async def test_profiles_that_need_too_much_memory_are_left_out(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest of them."""
    monkeypatch.setattr(loader_module, "MOST_KEPT_BYTES", 1000)
    now = time.time()
    for number in range(60):
        os.utime(profiles / f"{number:02}.ncu-rep", (now - 1000 + number, now - 1000 + number))
    audience = Audience()
    await load(profiles, audience, lambda: any("MiB" in text for text in audience.warnings) and count(audience) == 10)
    assert max(len(snapshot.profiles) for snapshot in audience.snapshots) == 10
    assert (
        sorted(path.name for path in audience.snapshots[-1].profiles)
        == [f"{number:02}.ncu-rep" for number in range(60) if number % 3][-10:]
    )
    (warning,) = (text for text in audience.warnings if "MiB" in text)
    assert "first" in warning and "gpaLsp.profileGlobs" in warning


def test_a_look_at_everything(tmp_path: Path) -> None:
    """Things that only look like profiles hold nothing to find."""
    for number in range(50):
        (tmp_path / f"{number}.ncu-rep").mkdir()
    (tmp_path / "x.ncu-rep").symlink_to(tmp_path / "x.ncu-rep")
    with RawClient(environment=LISTINGS) as client:
        client.initialize(tmp_path, initializationOptions={"client": {"status": True}})
        let_look_twice(client, tmp_path)
        assert list_kernels(client) == {"beat0", "beat1"} and client.messages() == []
