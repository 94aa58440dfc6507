"""Order in which profiles are read, how often equal ones are, and what is said of it; the readers are the test's own."""

import asyncio
import gc
import os
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import cast

import msgspec
import pytest

from gpa_lsp.editor.protocol import loader, loading_round
from gpa_lsp.editor.protocol.loader import ProfileLoader
from gpa_lsp.editor.protocol.loading_round import ProfileReaders, rank_profiles
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
from gpa_lsp.editor.snapshot import LoadedProfile, MeasuredKernel, Snapshot, measure_kernel
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import Patience, WorkerLostError
from gpa_lsp.report.history.model import KernelHistory
from tests.editor.views import LISTING, SOURCE, make_profile
from tests.lsp.conftest import LISTINGS, write_profile
from tests.lsp.loop_waiting import settle
from tests.patience import LIMIT_S, wait_until_so
from tests.report_builder import build_kernel


class Audience:
    """Remembers what a loader tells."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        self.warnings: list[str] = []
        self.bars: list[list[tuple[str, float | None]]] = []
        self.ends: list[str] = []
        self.cancel: Callable[[], None] = lambda: None

    def take_snapshot(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot

    def start_progress(self, title: str, cancel: Callable[[], None]) -> "Audience":
        self.bars.append([])
        self.cancel = cancel
        return self

    def report(self, text: str, ratio: float | None) -> None:
        self.bars[-1].append((text, ratio))

    def end(self, text: str) -> None:
        self.ends.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    @property
    def shown(self) -> set[str]:
        return {path.name for path in self.snapshot.profiles}


class Readers:
    """Reads a profile when the test says so.

    The first line of a profile says when it was measured, in seconds; a dash for one that does not say. ``broken`` is one that cannot be read,
    ``lost`` one whose first reader hangs.
    """

    def __init__(self, most: int = 1) -> None:
        self.most = most
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self._may_go: dict[str, asyncio.Event] = {}
        self._lets_all_go = False

    def let_go(self, name: str = "") -> None:
        """End the reading of one profile; of all, now and in future, without a name."""
        if not name:
            self._lets_all_go = True
        for known in [name] if name else list(self._may_go):
            self._may_go.setdefault(known, asyncio.Event()).set()

    async def read(self, job: ProfileJob, take: Callable[[ProfileMessage], None]) -> ProfileEnd:
        name = job.profile.name
        self.begun.append(name)
        take(Step(words="reading", done=1, total=2))
        for kernel in _make_early(job.profile):
            take(KernelRead(profile=job.profile, kernel=kernel, is_early=True))
        try:
            if not self._lets_all_go:
                await self._may_go.setdefault(name, asyncio.Event()).wait()
            self._may_go.pop(name, None)
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        when = job.profile.read_text().splitlines()[0]
        if when == "lost" and self.begun.count(name) == 1:
            take(KernelRead(profile=job.profile, kernel=_make(job.profile, None).kernels[0]))
            raise WorkerLostError("analysis process", "was stopped or hangs, and was ended")
        if when == "broken":
            return ProfileFailed(profile=job.profile, reason=f"{job.profile}: broken")
        loaded = _make(job.profile, None if when in ("-", "lost") else int(when))
        take(FilesFound(profile=job.profile, files=tuple(loaded.files.values())))
        for kernel in loaded.kernels:
            take(KernelRead(profile=job.profile, kernel=kernel))
        return ProfileRead(profile=job.profile, remarks=(), size_bytes=100)

    async def leave(self) -> None:
        return


def _make_early(path: Path) -> tuple[MeasuredKernel, ...]:
    """The kernels that are judged before a profile is read as a whole: one of each name behind ``early`` on its second line."""
    words = path.read_text().splitlines()[1:2]
    names = words[0].split()[1:] if words and words[0].startswith("early") else []
    kernels = [build_kernel("saxpy.cu:9  X  ; wait=1", name=name, profile_path=str(path)) for name in names]
    return tuple(measure_kernel(kernel, path.stat().st_mtime_ns) for kernel in kernels)


def _make(path: Path, measured_unix_s: int | None) -> LoadedProfile:
    kernel = build_kernel("saxpy.cu:4  X  ; wait=1", profile_path=str(path), measured_unix_s=measured_unix_s)
    return make_profile(kernel, modified_ns=path.stat().st_mtime_ns)


class Loading:
    """A loader at work in a folder."""

    def __init__(self, folder: Path, readers: Readers) -> None:
        self.folder = folder
        self._now_s = time.time()
        self.audience = Audience()
        self.readers = readers
        self.loader = ProfileLoader(self.audience, readers)
        self.loader.configure((folder,), Settings(poll_seconds=0.02, keeps_history=False))
        self._task: asyncio.Task[None] | None = None

    def write(self, name: str, text: str = "1000", *, age_s: float = 3600) -> Path:
        """A profile that was written to some time before this loader was made."""
        path = self.folder / f"{name}.ncu-rep"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        os.utime(path, (self._now_s - age_s,) * 2)
        return path

    def start(self) -> None:
        self._task = asyncio.create_task(self.loader.run())

    async def wait(self, is_so: Callable[[], bool]) -> None:
        await wait_until_so(is_so)

    async def read_all(self) -> list[str]:
        """Let everything be read; what was read in which order."""
        self.readers.let_go()
        await self.wait(lambda: bool(self.audience.ends) and len(self.audience.ends) == len(self.audience.bars))
        return [name.removesuffix(".ncu-rep") for name in self.readers.begun]

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})


@pytest.fixture
async def loading(tmp_path: Path) -> AsyncIterator[Loading]:
    one = Loading(tmp_path, Readers())
    yield one
    await one.stop()


async def test_the_newest_is_read_first(loading: Loading) -> None:
    for age in (50, 30, 40):
        loading.write(f"old {age}", f"1000\n{age}", age_s=age)
    loading.start()
    assert await loading.read_all() == ["old 30", "old 40", "old 50"]


def list_shown(loading: Loading) -> list[str]:
    return sorted(shown.kernel.report.name for shown in loading.audience.snapshot.visible)


async def test_kernels_that_are_judged_are_shown_before_the_others(loading: Loading) -> None:
    loading.write("long", "1000\nearly scan")
    loading.start()
    await loading.wait(lambda: list_shown(loading) == ["scan"])
    assert not loading.audience.ends
    await loading.read_all()
    assert list_shown(loading) == ["kernel", "scan"]


async def test_a_profile_that_is_read_again_is_shown_as_it_was_until_it_is_read(loading: Loading) -> None:
    loading.write("long", "1000", age_s=20)
    loading.start()
    loading.readers.let_go("long.ncu-rep")
    await loading.wait(lambda: list_shown(loading) == ["kernel"])
    loading.write("long", "1000\nearly scan", age_s=10)
    await loading.wait(lambda: loading.readers.begun == ["long.ncu-rep"] * 2)
    assert list_shown(loading) == ["kernel"]
    await loading.read_all()
    assert list_shown(loading) == ["kernel", "scan"]


async def test_the_past_of_what_is_still_being_read_is_looked_at_again(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[list[str]] = []
    past = lambda kernels: compared.append(sorted(one.report.name for one in kernels)) or {}  # noqa: E731
    monkeypatch.setattr(loader, "compare_again", past)
    loading.loader.configure((loading.folder,), Settings(poll_seconds=0.02, keeps_history=True))
    loading.write("long", "1000\nearly scan")
    loading.start()
    await loading.wait(lambda: list_shown(loading) == ["scan"])
    await loading.loader.look_back()
    await loading.read_all()
    await loading.wait(lambda: compared == [["scan"], ["kernel", "scan"]])


@pytest.mark.parametrize("is_past_first", [True, False])
async def test_a_past_and_tried_fixes_that_come_at_once_are_both_kept(
    loading: Loading, monkeypatch: pytest.MonkeyPatch, is_past_first: bool
) -> None:
    loading.write("long", "1000")
    loading.start()
    await loading.read_all()
    (old,) = [shown.kernel for shown in loading.audience.snapshot.visible]
    past, held = cast(KernelHistory, object()), msgspec.structs.replace(old.report, name="held")
    may_end = threading.Event()

    def compare_again(kernels: Sequence[MeasuredKernel]) -> dict[int, KernelHistory]:
        return {id(one): past for one in kernels if is_past_first or may_end.wait(LIMIT_S)}

    def hold_kernel(kernel: MeasuredKernel, fixes: object) -> MeasuredKernel:
        assert not is_past_first or may_end.wait(LIMIT_S)
        return msgspec.structs.replace(kernel, report=held, untried=kernel.origin)

    monkeypatch.setattr(loader, "compare_again", compare_again)
    monkeypatch.setattr(loader, "hold_kernel", hold_kernel)
    ways = loading.loader.look_back(), loading.loader.hold([(old, ())])
    tasks = [asyncio.create_task(way) for way in ways]
    await tasks[0 if is_past_first else 1]
    may_end.set()
    await asyncio.gather(*tasks)
    (new,) = [shown.kernel for shown in loading.audience.snapshot.visible]
    assert new.history is past and new.report is held and new.untried is old.report


async def test_what_somebody_looks_at_is_read_first(loading: Loading) -> None:
    loading.write("newest", "1000\nother.cu", age_s=10)
    loading.write("second", "1000\n/build/src/saxpy.cu\n", age_s=40)
    loading.write("third", "1000\n/build/src/scan.cu\n", age_s=50)
    loading.write("scan-named-after-it", "1000\nno lines", age_s=60)
    loading.loader.put_first(["/src/scan.cu", "/src/saxpy.cu"])
    loading.start()
    assert await loading.read_all() == ["third", "scan-named-after-it", "second", "newest"]


async def test_what_is_opened_while_others_are_read_comes_next(loading: Loading) -> None:
    for number in range(4):
        loading.write(f"{number}", f"1000\nkernel{number}.cu", age_s=10 + number)
    loading.start()
    await loading.wait(lambda: len(loading.readers.begun) == 1)
    loading.loader.put_first(["/src/kernel3.cu"])
    assert await loading.read_all() == ["0", "3", "1", "2"]


async def test_a_profile_that_lies_elsewhere_is_read_once_it_is_included(
    loading: Loading, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "k.simulated.gpa-profile.json"
    elsewhere.write_text("1000")
    here = loading.write("here")
    loading.start()
    assert await loading.read_all() == ["here"]
    loading.loader.include(elsewhere)
    await loading.wait(lambda: set(loading.audience.snapshot.profiles) == {here, elsewhere})
    before = loading.audience.snapshot.profiles[elsewhere]
    elsewhere.write_text("1000000")
    loading.loader.include(elsewhere)
    await loading.wait(lambda: loading.audience.snapshot.profiles[elsewhere] is not before)
    loading.loader.exclude(elsewhere)
    await loading.wait(lambda: set(loading.audience.snapshot.profiles) == {here})


def test_a_name_is_found_across_the_pieces_a_file_is_read_in(tmp_path: Path) -> None:
    path = tmp_path / "a.ncu-rep"
    path.write_bytes(b"x" * ((1 << 20) - 3) + b"saxpy.cu" + b"x" * 100)
    assert rank_profiles([path, tmp_path / "gone", tmp_path], ["/src/saxpy.cu"]) == {path: 0}
    assert rank_profiles([path], ["/src/axpy.cu", "/src/other.cu"]) == {path: 0}
    assert rank_profiles([path], ["/src/other.cu"]) == {} == rank_profiles([path], [])


async def test_as_many_are_read_at_once_as_there_are_readers(loading: Loading) -> None:
    for number in range(5):
        loading.write(f"{number}", f"1000\n{number}", age_s=10 + number)
    loading.readers.most = 2
    loading.start()
    await loading.wait(lambda: len(loading.readers.begun) == 2)
    await settle()
    assert loading.readers.begun == ["0.ncu-rep", "1.ncu-rep"]
    loading.readers.let_go("1.ncu-rep")
    await loading.wait(lambda: len(loading.readers.begun) == 3)
    assert loading.audience.shown == {"1.ncu-rep"}
    await loading.read_all()
    assert len(loading.audience.shown) == 5


async def test_fewer_are_read_at_once_when_memory_gets_short(loading: Loading) -> None:
    for number in range(6):
        loading.write(f"{number}", f"1000\n{number}", age_s=10 + number)
    loading.readers.most = 3
    loading.start()
    await loading.wait(lambda: len(loading.readers.begun) == 3)
    loading.readers.most = 2
    loading.readers.let_go("0.ncu-rep")
    await loading.wait(lambda: loading.audience.shown == {"0.ncu-rep"})
    await settle()
    assert len(loading.readers.begun) == 3
    loading.readers.let_go("1.ncu-rep")
    await loading.wait(lambda: len(loading.readers.begun) == 4)
    await loading.read_all()
    assert len(loading.audience.shown) == 6


@pytest.mark.parametrize(("own_mib", "most"), [(0, 4), (48, 4), (100, 3), (180, 2), (2000, 2)])
def test_how_many_processes_there_are(monkeypatch: pytest.MonkeyPatch, own_mib: int, most: int) -> None:
    monkeypatch.setattr(loading_round, "read_own_bytes", lambda: own_mib << 20)
    monkeypatch.setattr(loading_round, "count_cores", lambda: 64)
    assert ProfileReaders().most == most
    assert ProfileReaders(1).most == 1


async def test_a_process_too_many_goes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in LISTINGS.items():
        monkeypatch.setenv(name, value)
    write_profile(tmp_path / "quick.ncu-rep", LISTING)
    job = ProfileJob(profile=tmp_path / "quick.ncu-rep", roots=(tmp_path,), path_mappings=())
    monkeypatch.setattr(loading_round, "read_own_bytes", lambda: 0)  # the process of the tests may have grown
    readers = ProfileReaders(3)
    try:
        await asyncio.gather(*(readers.read(job, lambda message: None) for _ in range(3)))
        assert sum(process.process_id is not None for process in readers._all) == 3
        monkeypatch.setattr(loading_round, "read_own_bytes", lambda: 1 << 30)
        await readers.read(job, lambda message: None)
        assert sum(process.process_id is not None for process in readers._all) == 2
    finally:
        await readers.leave()


async def test_equal_files_are_read_once(loading: Loading) -> None:
    first = loading.write("first", age_s=10)
    copies = [loading.write(f"copy {number}", age_s=20 + number) for number in range(3)]
    loading.write("as long", "1001", age_s=15)
    loading.readers.most = 2
    loading.start()
    assert await loading.read_all() == ["first", "as long"]
    profiles = loading.audience.snapshot.profiles
    assert set(profiles) == {first, *copies, loading.folder / "as long.ncu-rep"}
    for copy in copies:
        (kernel,) = profiles[copy].kernels
        assert kernel.report.profile_path == copy and profiles[copy].path == copy
        assert kernel.report.instructions is profiles[first].kernels[0].report.instructions
    assert loading.audience.ends == ["5 of 5 profiles read"]
    first.unlink()
    await loading.wait(lambda: first not in loading.audience.snapshot.profiles)
    assert set(copies) < set(loading.audience.snapshot.profiles)


async def test_equal_files_that_do_not_say_when_they_were_measured_are_as_old_as_they_look(loading: Loading) -> None:
    first, other = loading.write("first", "-", age_s=10), loading.write("other", "-", age_s=20)
    twin = loading.write("twin", "-", age_s=20)
    os.utime(twin, ns=(other.stat().st_mtime_ns,) * 2)
    loading.start()
    assert sorted(await loading.read_all()) == ["first", "other", "twin"]
    for path in (first, other, twin):
        (kernel,) = loading.audience.snapshot.profiles[path].kernels
        assert kernel.measured_ns == path.stat().st_mtime_ns


async def test_a_file_that_changes_while_it_is_read_stands_for_no_other(loading: Loading) -> None:
    first, copy = loading.write("first", age_s=10), loading.write("copy", age_s=20)
    loading.readers.most = 2
    loading.start()
    await loading.wait(lambda: loading.loader._round is not None and bool(loading.loader._round._queue._copies))
    loading.write("first", "2000", age_s=5)

    def find_times() -> dict[str, int]:
        profiles = loading.audience.snapshot.profiles
        return {path.name: profile.kernels[0].measured_ns // 10**9 for path, profile in profiles.items()}

    loading.readers.let_go()
    await loading.wait(lambda: find_times() == {first.name: 2000, copy.name: 1000})
    assert loading.readers.begun.count(copy.name) == 1


async def test_equal_files_that_cannot_be_read_are_named_each(loading: Loading) -> None:
    for number in range(3):
        loading.write(f"{number}", "broken", age_s=10 + number)
    loading.start()
    await loading.read_all()
    assert [text.rpartition("/")[2] for text in loading.audience.warnings] == [
        f"{number}.ncu-rep: broken" for number in range(3)
    ]


async def test_what_waits_to_be_shown_is_not_looked_at_for_garbage(
    loading: Loading, monkeypatch: pytest.MonkeyPatch
) -> None:
    freezes: list[int] = []
    monkeypatch.setattr(gc, "freeze", lambda: freezes.append(len(loading.audience.shown)))
    monkeypatch.setattr("gpa_lsp.editor.protocol.loader._QUIET_FACTOR", 1e9)
    for number in range(6):
        loading.write(f"{number}", f"1000\n{number}", age_s=10 + number)
    loading.start()
    await loading.read_all()
    assert freezes.count(1) >= 5, "once for each of those that wait behind the first"


async def test_progress_counts_all_files(loading: Loading) -> None:
    for number in range(3):
        loading.write(f"{number}", f"1000\n{number}", age_s=10 + number)
    loading.start()
    await loading.wait(lambda: len(loading.readers.begun) == 1)
    loading.readers.let_go("0.ncu-rep")
    await loading.wait(lambda: len(loading.readers.begun) == 2)
    assert loading.audience.bars == [[("0 of 3: 0.ncu-rep: reading", 0.5 / 3), ("1 of 3: 1.ncu-rep: reading", 1.5 / 3)]]
    loading.write("3", "1000\n3", age_s=5)  # what the next look finds is added, and is the newest
    await loading.wait(lambda: loading.loader._round is not None and loading.loader._round._queue.total == 4)
    loading.readers.let_go("1.ncu-rep")
    await loading.wait(lambda: len(loading.readers.begun) == 3)
    assert loading.audience.bars[0][-1] == ("2 of 4: 3.ncu-rep: reading", 2.5 / 4)
    await loading.read_all()
    assert loading.audience.ends == ["4 of 4 profiles read"]


async def test_the_users_cancel_sets_aside_what_was_not_read(loading: Loading) -> None:
    for number in range(4):
        loading.write(f"{number}", f"1000\n{number}", age_s=10 + number)
    loading.readers.most = 2
    loading.start()
    await loading.wait(lambda: len(loading.readers.begun) == 2)
    loading.readers.let_go("0.ncu-rep")
    await loading.wait(lambda: len(loading.readers.begun) == 3)
    loading.audience.cancel()
    await loading.wait(lambda: len(loading.readers.cancelled) == 2)
    assert sorted(loading.readers.cancelled) == ["1.ncu-rep", "2.ncu-rep"]
    assert loading.audience.ends == ["1 of 4 profiles read"]
    await settle()
    assert len(loading.audience.bars) == 1 and loading.audience.shown == {"0.ncu-rep"}
    loading.loader.reload()
    await loading.wait(lambda: len(loading.audience.bars) == 2)
    await loading.read_all()
    assert len(loading.audience.shown) == 4


async def test_a_profile_that_goes_away_while_it_waits_is_not_read(loading: Loading) -> None:
    loading.write("first", age_s=10)
    second = loading.write("second", "1001", age_s=20)
    loading.start()
    await loading.wait(lambda: len(loading.readers.begun) == 1)
    second.unlink()
    await loading.wait(lambda: loading.loader._round is not None and loading.loader._round._queue.total == 1)
    assert await loading.read_all() == ["first"]
    assert loading.audience.ends == ["1 of 1 profiles read"]


async def test_a_profile_whose_reader_hangs_is_read_by_another(loading: Loading) -> None:
    loading.write("only", "lost", age_s=60)
    loading.start()
    assert await loading.read_all() == ["only", "only"]
    assert loading.audience.warnings == []
    (profile,) = loading.audience.snapshot.profiles.values()
    assert len(profile.kernels) == 1


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no such signal")
async def test_a_stopped_process_costs_its_profile_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in LISTINGS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "saxpy.cu").write_text(SOURCE)
    write_profile(tmp_path / "slow.ncu-rep", LISTING, "sleep 1000")
    write_profile(tmp_path / "quick.ncu-rep", LISTING, "name saxpy")
    readers = ProfileReaders(1, patience=Patience(look_s=0.02))

    def make_job(name: str) -> ProfileJob:
        return ProfileJob(profile=tmp_path / name, roots=(tmp_path,), path_mappings=())

    begun = asyncio.Event()
    slow = asyncio.create_task(readers.read(make_job("slow.ncu-rep"), lambda message: begun.set()))
    try:
        await asyncio.wait_for(begun.wait(), LIMIT_S)
        (process,) = readers._all
        assert process.process_id is not None
        os.kill(process.process_id, signal.SIGSTOP)
        with pytest.raises(ToolError, match="analysis process: was stopped or hangs"):
            await asyncio.wait_for(slow, LIMIT_S)
        took: list[ProfileMessage] = []
        assert isinstance(await readers.read(make_job("quick.ncu-rep"), took.append), ProfileRead)
        assert [type(message).__name__ for message in took] == ["Step", "FilesFound", "KernelRead"]
    finally:
        await readers.leave()
