"""Rounds of reading due profiles: several at a time, those of open sources first, identical files once."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.editor.protocol.profile_reader import (
    FilesFound,
    KernelRead,
    PastFound,
    ProfileEnd,
    ProfileFailed,
    ProfileJob,
    ProfileMessage,
    ProfileRead,
)
from gpa_lsp.editor.snapshot import LoadedProfile, MeasuredKernel
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.errors import InputError, ToolError
from gpa_lsp.foundation.files import Stamp, open_regular_file, read_stamp
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import Patience, WorkerKind, WorkerLostError
from gpa_lsp.foundation.processes.worker import read_own_bytes
from gpa_lsp.foundation.work_time import count_cores
from gpa_lsp.report.measured_files import MeasuredFile
from gpa_lsp.report.source_paths import parse_compiled_path

_MOST_PROCESSES = 4  # More would take memory and cores from what the person at the keyboard does beside

_SILENCE_LIMIT_S = 600.0  # A profile of which nothing is heard for so long hangs, although its process is alive

# Long enough to stay from one measurement of a series to the next; then the memory goes back to the system
_IDLE_S = 30.0

# Of a process' own memory after a profile, beside what it shares with others. One that had to read a huge profile does not give all of it back.
_MOST_IDLE_BYTES = 160 << 20

# For this server and the processes together. The more profiles it holds, the fewer processes read others beside it; two at least.
_MOST_READING_BYTES = 400 << 20

_COMMON_BYTES = 88 << 20  # What a process takes with the disassemblers it starts


class ProfileReaders:
    """Processes that are started when there is something to read and that nobody else is free for, and that go away when there is nothing more.

    Args:
        most: at work at one time; None for as many as this process may use cores, four at most. Where memory is short it is fewer.
        patience: when a process is given up.
    """

    def __init__(self, most: int | None = None, *, patience: Patience | None = None) -> None:
        self._most = most or max(1, min(_MOST_PROCESSES, count_cores()))
        self._kind = WorkerKind(
            module="gpa_lsp.editor.protocol.profile_reader",
            title="analysis process",
            idle_s=_IDLE_S,
            most_own_bytes=_MOST_IDLE_BYTES,
            patience=patience or Patience(),
        )
        self._free: list[AsyncWorker] = []
        self._all: list[AsyncWorker] = []

    @property
    def most(self) -> int:
        """Number of readers that may work now."""
        room = (_MOST_READING_BYTES - read_own_bytes()) // _COMMON_BYTES
        return min(self._most, max(2, room))

    async def read(self, job: ProfileJob, take: Callable[[ProfileMessage], None]) -> ProfileEnd:
        """Read a profile. Cancelling the task that waits for it kills the process that reads it, and no other one.

        Raises:
            ToolError: the process died, or hangs.
        """
        if not self._free:
            self._free = [AsyncWorker(self._kind)]
            self._all += self._free
        process = self._free.pop()  # the one that was used last: it is warm, and the others get their time to go away
        try:
            end = await process.do(job, limit_s=_SILENCE_LIMIT_S, tell=take, is_per_message=True)
        finally:
            self._free.append(process)
        if sum(one.process_id is not None for one in self._all) > self.most:
            await process.leave()
        assert isinstance(end, ProfileRead | ProfileFailed)
        return end

    async def leave(self) -> None:
        """End all processes."""
        for process in self._all:
            await process.leave()


_UNRANKED = 1 << 30


class LoadingQueue(Struct):
    """The files from one moment without work to the next.

    A file waits, is read, or stands aside until the file it is a copy of was read.
    """

    done: int = 0  # files that are through
    _stamps: dict[Path, Stamp] = field(default_factory=dict)
    _waiting: dict[Path, None] = field(default_factory=dict)
    _ratios: dict[Path, float] = field(default_factory=dict)
    _copies: dict[Path, list[Path]] = field(default_factory=dict)
    _ranks: dict[Path, int] = field(default_factory=dict)

    def update(self, due: Iterable[Path], found: Mapping[Path, Stamp]) -> tuple[Path, ...]:
        """Take in what a look at the workspace found."""
        wanted = set(due)
        for path in [path for path in self._stamps if path not in wanted and path not in self._ratios]:
            self._forget(path)
        new = tuple(path for path in due if path not in self._stamps)
        for path in wanted - self._ratios.keys():
            self._stamps[path] = found[path]
        self._waiting.update(dict.fromkeys(new))
        return new

    def rank(self, ranks: Mapping[Path, int]) -> None:
        """Files that come before the others, the smallest number first."""
        self._ranks = dict(ranks)

    def pick(self) -> Path | None:
        """The file that is next; it waits no more. None when none waits."""
        path = min(self._waiting, key=self._order, default=None)
        if path is not None:
            del self._waiting[path]
        return path

    def _order(self, path: Path) -> tuple[int, int, Path]:
        return self._ranks.get(path, _UNRANKED), -self._stamps[path].modified_ns, path

    def begin(self, path: Path) -> None:
        """A picked file is being read."""
        self._ratios[path] = 0.0

    def set_aside(self, path: Path, original: Path) -> None:
        """A picked file is a copy of one that is being read."""
        self._copies.setdefault(original, []).append(path)

    def put_back(self, path: Path) -> None:
        """A file waits again."""
        self._waiting[path] = None

    def advance(self, path: Path, ratio: float) -> None:
        """Note the share of a file that was read, 0 to 1."""
        self._ratios[path] = ratio

    def finish(self, path: Path) -> tuple[Path, ...]:
        """A file is through; the copies that waited for it, which neither wait nor are read now."""
        self.done += 1
        copies = self._copies.pop(path, [])
        self._forget(path)
        return tuple(copies)

    def _forget(self, path: Path) -> None:
        self._stamps.pop(path, None)
        self._waiting.pop(path, None)
        self._ratios.pop(path, None)
        self._ranks.pop(path, None)
        for copies in self._copies.values():
            if path in copies:
                copies.remove(path)

    def stamp(self, path: Path) -> Stamp:
        """Return the stamp of a file when it was found."""
        return self._stamps[path]

    @property
    def waiting(self) -> tuple[Path, ...]:
        """Files nobody reads yet, in order."""
        return tuple(sorted(self._waiting, key=self._order))

    @property
    def left(self) -> Mapping[Path, Stamp]:
        """All files that are not through."""
        return self._stamps

    @property
    def total(self) -> int:
        """All files, those that are through included."""
        return self.done + len(self._stamps)

    @property
    def ratio(self) -> float:
        """Share of all files that is done, 0 to 1."""
        return (self.done + sum(self._ratios.values())) / self.total if self.total else 1.0


_MOST_SOURCES = 4  # Of the files that are open, so many that were opened last

_MOST_BYTES = 256 << 20  # Looked through for names, newest profiles first; that takes a tenth of a second

_PIECE_BYTES = 1 << 20


def rank_profiles(profiles: Iterable[Path], sources: Sequence[str]) -> Mapping[Path, int]:
    """Rank profiles by the open sources they are about, as far as that can be told without reading them. Blocks on the file system.

    A report names the files its code was compiled from as plain bytes. One that names none may at least be called like the source.
    """
    wanted = sources[:_MOST_SOURCES]
    names = [os.fsencode(os.path.basename(source)) for source in wanted]  # noqa: PTH119
    ranks: dict[Path, int] = {}
    left = _MOST_BYTES
    for profile in profiles if names else ():
        found: set[int] = set()
        if left > 0:
            found, looked = _find_names(profile, names, left)
            left -= looked
        ordered = [2 * number for number in found]
        ordered += [2 * number + 1 for number, source in enumerate(wanted) if _is_called_alike(profile, source)]
        if ordered:
            ranks[profile] = min(ordered)
    return ranks


def _find_names(profile: Path, names: Sequence[bytes], most: int) -> tuple[set[int], int]:
    """The numbers of the names a file holds, and how many bytes were looked at."""
    longest = max(map(len, names))
    found: set[int] = set()
    looked = 0
    tail = b""
    try:
        stream, _ = open_regular_file(profile)
        with stream:
            while looked < most and 0 not in found and (piece := stream.read(_PIECE_BYTES)):
                looked += len(piece)
                text = tail + piece
                found |= {number for number, name in enumerate(names) if number not in found and name in text}
                tail = text[-longest:]
    except (InputError, OSError):
        pass  # whoever reads it will say what is wrong
    return found, looked


def _is_called_alike(profile: Path, source: str) -> bool:
    """Whether one is named after the other.

    >>> _is_called_alike(Path("saxpy-2.ncu-rep"), "/src/saxpy.cu"), _is_called_alike(Path("a.ncu-rep"), "/src/saxpy.cu")
    (True, False)
    """
    return profile.name.casefold().startswith(Path(source).stem.casefold())


logger = logging.getLogger(__name__)


class Shelf(Protocol):
    """Keeper of the profiles that were read."""

    def find(self, path: Path) -> LoadedProfile | None:
        """A profile that was read."""
        ...

    def put(self, profile: LoadedProfile, stamp: Stamp) -> None:
        """A profile was read while it had this stamp."""
        ...

    def put_part(self, path: Path, make: Callable[[], LoadedProfile]) -> None:
        """Some kernels of a profile were read; ``make`` gives the profile as far as it is known."""
        ...

    def fail(self, path: Path, stamp: Stamp, reason: str) -> None:
        """A profile could not be read."""
        ...

    def report(self, text: str, ratio: float) -> None:
        """Report the progress of all files, 0 to 1."""
        ...

    def end_round(self) -> None:
        """Handle the end of a round."""
        ...


class LoadingRound:
    """Reads what is due, in as many lanes as there are readers, each with one profile at a time.

    Args:
        shelf: takes what was read.
        readers: read it.
        make_job: says how a profile is to be read.
        sources: local paths somebody looks at, the one that matters most first.
    """

    def __init__(
        self, shelf: Shelf, readers: ProfileReaders, make_job: Callable[[Path], ProfileJob], sources: Sequence[str]
    ) -> None:
        self._shelf = shelf
        self._readers = readers
        self._make_job = make_job
        self._sources = tuple(sources)
        self._queue = LoadingQueue()
        self._identical = IdenticalFiles()
        self._lanes: set[asyncio.Task[None]] = set()
        self._picking = asyncio.Lock()
        self._is_ranked = False
        self._is_cancelled = False

    def update(self, due: Iterable[Path], found: Mapping[Path, Stamp]) -> None:
        """Take in what a look at the workspace found; see :meth:`LoadingQueue.update`."""
        if self._queue.update(due, found):
            self._is_ranked = False
            self._open_lanes()

    def put_first(self, sources: Sequence[str]) -> None:
        """Read what is about these sources before the rest."""
        self._sources, self._is_ranked = tuple(sources), False

    def cancel(self) -> Mapping[Path, Stamp]:
        """Stop; what was not read."""
        self._is_cancelled = True
        for lane in self._lanes:
            lane.cancel()
        return self._queue.left

    def describe(self) -> str:
        """Describe how much of the round was done."""
        return f"{self._count()} profiles read"

    def _open_lanes(self) -> None:
        for _ in range(min(self._readers.most, len(self._queue.waiting)) - len(self._lanes)):
            lane = asyncio.create_task(self._run_lane())
            self._lanes.add(lane)
            lane.add_done_callback(self._close_lane)

    def _close_lane(self, lane: "asyncio.Task[None]") -> None:
        self._lanes.discard(lane)
        if self._is_cancelled:
            return
        if not lane.cancelled() and (error := lane.exception()) is not None:
            logger.error("reading profiles failed", exc_info=error)
        elif self._queue.waiting:  # found in this moment
            self._open_lanes()
        if not self._lanes:
            self._shelf.end_round()

    async def _run_lane(self) -> None:
        while len(self._lanes) <= self._readers.most and (path := await self._pick()) is not None:
            await self._read(path)

    async def _pick(self) -> Path | None:
        """The next file to read; one that holds the same as another one is not read."""
        queue, identical = self._queue, self._identical
        async with self._picking:
            await self._rank()
            while (path := queue.pick()) is not None:
                stamp = queue.stamp(path)
                original = await self._find_original(path, stamp)
                if path not in queue.left:
                    continue  # gone meanwhile
                if original is not None and original in queue.left:
                    queue.set_aside(path, original)
                elif original is None or not await self._share(original, path):
                    queue.begin(path)
                    identical.add(path, stamp)
                    return path
        return None

    async def _rank(self) -> None:
        waiting, sources = self._queue.waiting, self._sources
        if not self._is_ranked and sources and len(waiting) > 1:
            self._queue.rank(await call_in_thread(lambda: rank_profiles(waiting, sources)))
        self._is_ranked = True

    async def _find_original(self, path: Path, stamp: Stamp) -> Path | None:
        if not self._identical.may_have(stamp):
            return None
        return await call_in_thread(lambda: self._identical.find(path, stamp))

    async def _share(self, original: Path, copy: Path) -> bool:
        """Take for a file what was read of another one that holds the same; False where it has to be read itself."""
        queue, stamp = self._queue, self._queue.stamp(copy)
        written_ns = await call_in_thread(lambda: self._identical.find_time(original, stamp))
        profile = self._shelf.find(original)
        if profile is None or written_ns is None or copy not in queue.left:
            return False
        shared = share_profile(profile, copy, is_same_time=written_ns == stamp.modified_ns)
        if shared is None:
            return False
        queue.finish(copy)
        self._shelf.put(shared, stamp)
        self._shelf.report(self._count(), queue.ratio)
        return True

    async def _read(self, path: Path) -> None:
        queue, stamp = self._queue, self._queue.stamp(path)
        files: dict[str, MeasuredFile] = {}
        kernels: list[MeasuredKernel] = []

        def make() -> LoadedProfile:
            return LoadedProfile(path=path, files=dict(files), kernels=tuple(kernels))

        def take(message: ProfileMessage) -> None:
            if isinstance(message, FilesFound):
                files.update({file.compiled_path: file for file in message.files})
            elif isinstance(message, KernelRead):
                kernels.append(message.kernel)
                if message.is_early:
                    self._shelf.put_part(path, make)
            elif isinstance(message, PastFound):
                kernels[message.number] = replace(kernels[message.number], history=message.history)
            else:
                queue.advance(path, message.done / message.total if message.total else 0.0)
                self._shelf.report(self._describe_step(path, message), queue.ratio)

        def forget() -> None:
            files.clear()
            kernels.clear()

        end = await self._read_with(path, take, forget)
        copies = queue.finish(path)
        if isinstance(end, ProfileFailed):
            self._identical.remove(path, stamp)
            self._shelf.fail(path, stamp, end.reason)
        else:
            for remark in end.remarks:
                logger.info("%s", remark)
            kernels.sort(key=lambda kernel: kernel.report.rank)
            self._shelf.put(replace(make(), size_bytes=end.size_bytes), stamp)
        for copy in copies:
            if copy in queue.left and not await self._share(path, copy):
                queue.put_back(copy)
        self._open_lanes()

    async def _read_with(
        self, path: Path, take: Callable[[ProfileMessage], None], forget: Callable[[], None]
    ) -> ProfileEnd:
        try:
            try:
                return await self._readers.read(self._make_job(path), take)
            except WorkerLostError as error:
                logger.warning("%s: %s; it is read again", path, error)
            forget()
            return await self._readers.read(self._make_job(path), take)
        except Exception as error:
            if not isinstance(error, ToolError | ConnectionError):
                logger.exception("reading a profile failed")
            return ProfileFailed(profile=path, reason=f"{path}: {error}")

    def _count(self) -> str:
        return f"{self._queue.done} of {self._queue.total}"

    def _describe_step(self, path: Path, step: Step) -> str:
        words = step.words if path.name in step.words else f"{path.name}: {step.words}"
        return words if self._queue.total == 1 else f"{self._count()}: {words}"


class _Original(Struct):
    """A file that is read."""

    path: Path  # the file
    stamp: Stamp  # what it looked like when it was found
    digest: bytes | None = None  # of what it holds; None as long as no other file is as long


class IdenticalFiles:
    """Knows the files that are read, and finds out whether another one holds the same as one of them. Only files of one length are looked into."""

    def __init__(self) -> None:
        self._originals: dict[int, dict[Path, _Original]] = {}

    def add(self, path: Path, stamp: Stamp) -> None:
        """Note a file that is read."""
        self._originals.setdefault(stamp.size_bytes, {})[path] = _Original(path, stamp)

    def remove(self, path: Path, stamp: Stamp) -> None:
        """Forget a file that could not be read."""
        self._originals[stamp.size_bytes].pop(path, None)

    def may_have(self, stamp: Stamp) -> bool:
        """Whether it is worth looking into a file."""
        return bool(self._originals.get(stamp.size_bytes))

    def find(self, path: Path, stamp: Stamp) -> Path | None:
        """The file that is read and holds the same; None when there is none. Blocks on the file system: call it off the event loop."""
        digest = _digest(path, stamp)
        for original in tuple(self._originals.get(stamp.size_bytes, {}).values()):
            if digest is not None and original.digest is None:
                original.digest = _digest(original.path, original.stamp)
            if digest is not None and original.digest == digest:
                return original.path
        return None

    def find_time(self, path: Path, stamp: Stamp) -> int | None:
        """Find the modification time of a file when it was read, in ns since 1970; None when it was written to since.

        Blocks on the file system.
        """
        original = self._originals[stamp.size_bytes].get(path)
        return original.stamp.modified_ns if original is not None and read_stamp(path) == original.stamp else None


def _digest(path: Path, stamp: Stamp) -> bytes | None:
    """Hash of what a file holds; None where it cannot be read or has changed."""
    try:
        stream, _ = open_regular_file(path)
        with stream:
            digest = hashlib.sha256()
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
    except (InputError, OSError):
        return None
    return digest.digest() if read_stamp(path) == stamp else None


def share_profile(profile: LoadedProfile, path: Path, *, is_same_time: bool) -> LoadedProfile | None:
    """The profile another file is that holds the same; None when it has to be read, because it is not read in the same way.

    Kernels are told apart by where they lie when nothing says where their source is, and were measured when their file was written when nothing
    says when they were measured.
    """
    is_same_folder = path.parent == profile.path.parent
    for kernel in profile.kernels:
        body = kernel.body[0] if kernel.body is not None else ""
        has_home = body in profile.files or parse_compiled_path(body).anchor != ""
        if not (is_same_folder or has_home) or not (is_same_time or kernel.report.measured_unix_s is not None):
            return None
    kernels = tuple(replace(kernel, report=replace(kernel.report, profile_path=path)) for kernel in profile.kernels)
    return replace(profile, path=path, kernels=kernels)
