"""Looks for profiles again and again, has them read, and hands out snapshots."""

import asyncio
import contextlib
import gc
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from gpa_lsp.errors import GpaError, ToolError
from gpa_lsp.lsp.analysis import analyse_profiles
from gpa_lsp.lsp.discovery import ProfileFinder, Stamp
from gpa_lsp.lsp.past import compare_again
from gpa_lsp.lsp.profile_watch import ProfileWatch
from gpa_lsp.lsp.session import LoadedProfile, MeasuredFile, MeasuredKernel, Snapshot
from gpa_lsp.lsp.settings import Settings
from gpa_lsp.lsp.worker_messages import FilesFound, Job, KernelRead, Message, ProfileFailed, ProfileRead, Progress

logger = logging.getLogger(__name__)

_BATCH = 8
"""Profiles per worker process; between two batches the workspace is looked at again."""

MOST_KEPT_BYTES = 256 << 20
"""Of messages from which the kept profiles were made; objects take about three times that. 100 kernels of 500 instructions have 30 MiB."""

_MOST_PROFILES = 2000
"""Of one session: newer ones replace the others."""

_MOST_COMPLAINTS = 20

_PAUSE_FACTOR = 20
"""The pause between two looks is at least so many times as long as a look, however large the workspace; likewise between showing new profiles."""

Result = TypeVar("Result")


class ProgressDisplay(Protocol):
    """A progress bar of the client's."""

    def report(self, text: str, ratio: float | None) -> None:
        """Show what is being done, and how much of all is done (0 to 1; None when unknown)."""
        ...

    def end(self, text: str) -> None:
        """Take the bar away."""
        ...


class Audience(Protocol):
    """Who hears of what the loader does."""

    def take_snapshot(self, snapshot: Snapshot) -> None:
        """There is a new state of knowledge."""
        ...

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins; ``cancel`` ends it."""
        ...

    def warn(self, text: str) -> None:
        """Something the user must know."""
        ...


@dataclass(slots=True)
class _Arriving:
    """A profile whose messages are coming in."""

    files: Mapping[str, MeasuredFile]
    kernels: list[MeasuredKernel]


class ProfileLoader:
    """Keeps the snapshot in step with the profiles in the workspace.

    Args:
        audience: who hears of it.
    """

    def __init__(self, audience: Audience) -> None:
        self._audience = audience
        self._watch = ProfileWatch()
        self._snapshot = Snapshot()
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._max_depth = 0
        self._finder = ProfileFinder((), ())
        self._wake = asyncio.Event()
        self._analysis: asyncio.Task[None] | None = None
        self._look_s = 0.0
        self._told_unsearched: tuple[str, ...] = ()
        self._has_told_limit = False
        self._has_told_count = False
        self._complaint_count = 0
        self._pending: dict[Path, LoadedProfile] = {}
        self._quiet_until_s = 0.0

    def configure(self, roots: tuple[Path, ...], settings: Settings, *, max_depth: int = 32) -> None:
        """Look in other places, or with other settings; what was read is read again if it would be read differently."""
        read_differently = (roots, _choose_reading(settings)) != (self._roots, _choose_reading(self._settings))
        self._roots, self._settings, self._max_depth = roots, settings, max_depth
        if read_differently:
            self.reload()
        else:
            self._look_afresh()

    def reload(self) -> None:
        """Read every profile again."""
        self.cancel()
        self._watch.forget_all()
        self._complaint_count = 0
        self._look_afresh()

    def _look_afresh(self) -> None:
        self._finder = ProfileFinder(self._roots, self._settings.profile_globs, max_depth=self._max_depth)
        self._wake.set()

    def expect(self, profile: Path) -> None:
        """A profile is complete, whatever its time stamps say: read it now."""
        self._watch.mark_complete(profile)
        self._wake.set()

    def cancel(self) -> None:
        """Stop the reading that goes on, if any."""
        if self._analysis is not None:
            self._analysis.cancel()

    async def run(self) -> None:
        """Look, read, wait, for ever. Cancelling the task ends the worker process."""
        while True:
            self._wake.clear()
            try:
                await self._step()
            except Exception:  # the next look may go better; without it the server would fall silent
                logger.exception("looking for profiles failed")
            pause_s = max(self._settings.poll_seconds, _PAUSE_FACTOR * self._look_s)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._wake.wait()

    async def _step(self) -> None:
        finder = self._finder
        started_s = time.monotonic()
        found = self._choose(await call_in_thread(finder.look))
        self._look_s = time.monotonic() - started_s
        if finder.unsearched != self._told_unsearched:
            self._told_unsearched = finder.unsearched
            for root in finder.unsearched:
                self._audience.warn(
                    f"{root} has too many folders to search all of them for profiles; set gpaLsp.profileGlobs"
                )
        due = self._watch.observe(found, time.time_ns())
        gone = [path for path in self._snapshot.profiles if path not in found]
        if gone:
            self._publish(self._snapshot.without_profiles(gone))
        if due:
            await self._read(due[:_BATCH], found)
            if len(due) <= _BATCH:
                self._publish_pending(found)
            if self._settings.keeps_history and len(due) <= _BATCH and self._has_older():
                await self.look_back()
            gc.freeze()  # what was read stays: looking at all of it for garbage would take a tenth of a second in the middle of an answer
            self._wake.set()

    def _choose(self, found: Mapping[Path, Stamp]) -> Mapping[Path, Stamp]:
        """The newest profiles, where there are more than anybody compares."""
        if len(found) <= _MOST_PROFILES:
            return found
        if not self._has_told_count:
            self._has_told_count = True
            self._audience.warn(
                f"there are {len(found):,} profiles in the workspace, of which the newest {_MOST_PROFILES:,} are read; name fewer of them in "
                "gpaLsp.profileGlobs"
            )
        newest = sorted(found, key=lambda path: (-found[path].modified_ns, path))
        return {path: found[path] for path in newest[:_MOST_PROFILES]}

    def _has_older(self) -> bool:
        """Whether there are measurements that are older than what is shown: what is shown may have been compared before they were read."""
        shown = len(self._snapshot.visible)
        return sum(len(profile.kernels) for profile in self._snapshot.profiles.values()) > shown

    async def look_back(self) -> None:
        """Compare what is shown with its past again."""
        kernels = [shown.kernel for shown in self._snapshot.visible]
        try:
            histories = await call_in_thread(lambda: compare_again(kernels))
        except (GpaError, OSError, ImportError) as error:
            logger.warning("measurements cannot be compared with earlier ones: %s", error)
            return
        if any(histories.get(id(kernel)) != kernel.history for kernel in kernels):
            self._publish(self._snapshot.with_histories(histories))

    async def _read(self, paths: tuple[Path, ...], found: Mapping[Path, Stamp]) -> None:
        """Read some profiles, in a task of its own so that it can be cancelled without ending the loop."""
        self._analysis = asyncio.create_task(self._analyse(paths, found))
        try:
            await self._analysis
        except asyncio.CancelledError:
            if not self._analysis.cancelled() or _is_cancelling():
                self._analysis.cancel()
                raise
        finally:
            self._analysis = None

    async def _analyse(self, paths: tuple[Path, ...], found: Mapping[Path, Stamp]) -> None:
        left = list(paths)
        display = self._audience.start_progress("Reading profiles", lambda: self._set_aside(left, found))
        job = Job(
            profiles=paths,
            roots=self._roots,
            path_mappings=self._settings.path_mappings,
            blamer=self._settings.blamer,
            keeps_history=self._settings.keeps_history,
        )
        arriving: dict[Path, _Arriving] = {}
        try:
            async with aclosing(analyse_profiles(job)) as messages:
                async for message in messages:
                    self._take(message, arriving, found)
                    if isinstance(message, Progress):
                        done = len(paths) - len(left) + (message.done / message.total if message.total else 0.0)
                        display.report(_describe_step(message), done / len(paths))
                    elif isinstance(message, ProfileRead | ProfileFailed):
                        left.remove(message.profile)
        except Exception as error:
            if not isinstance(error, ToolError | ConnectionError):
                logger.exception("reading profiles failed")
            if left:
                self._fail(left[0], found[left[0]], f"{left[0]}: {error}")
        finally:
            display.end(f"{len(paths) - len(left)} of {len(paths)} profiles read")

    def _take(self, message: Message, arriving: dict[Path, _Arriving], found: Mapping[Path, Stamp]) -> None:
        if isinstance(message, FilesFound):
            arriving[message.profile] = _Arriving({file.compiled_path: file for file in message.files}, [])
        elif isinstance(message, KernelRead):
            arriving[message.profile].kernels.append(message.kernel)
        elif isinstance(message, ProfileFailed):
            self._fail(message.profile, found[message.profile], message.reason)
        elif isinstance(message, ProfileRead):
            arrived = arriving.pop(message.profile)
            for remark in message.remarks:
                logger.info("%s", remark)
            self._watch.mark_loaded(message.profile, found[message.profile])
            profile = LoadedProfile(
                path=message.profile,
                files=arrived.files,
                kernels=tuple(arrived.kernels),
                size_bytes=message.size_bytes,
            )
            self._pending[message.profile] = profile
            if time.monotonic() >= self._quiet_until_s:
                self._publish_pending(found)

    def _publish_pending(self, found: Mapping[Path, Stamp]) -> None:
        """Show what was read. Among a thousand profiles that takes half a second, in which nobody is answered: then it is done less often."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        started_s = time.monotonic()
        self._keep(self._snapshot.with_profiles(pending.values()), found)
        now_s = time.monotonic()
        self._quiet_until_s = now_s + _PAUSE_FACTOR * (now_s - started_s)

    def _keep(self, snapshot: Snapshot, found: Mapping[Path, Stamp]) -> None:
        """Publish a snapshot without the oldest profiles that are too many for the memory; they are not read again until they change."""
        total = sum(profile.size_bytes for profile in snapshot.profiles.values())
        oldest = sorted(snapshot.profiles, key=lambda path: (found[path].modified_ns if path in found else 0, path))
        dropped: list[Path] = []
        while total > MOST_KEPT_BYTES and len(dropped) < len(oldest):
            path = oldest[len(dropped)]
            total -= snapshot.profiles[path].size_bytes
            dropped.append(path)
        if dropped and not self._has_told_limit:
            self._has_told_limit = True
            self._audience.warn(
                f"the profiles in the workspace need more than {MOST_KEPT_BYTES >> 20} MiB; the oldest are left out, {dropped[0].name} first. "
                "Name fewer of them in gpaLsp.profileGlobs"
            )
        self._publish(snapshot.without_profiles(dropped) if dropped else snapshot)

    def _fail(self, path: Path, stamp: Stamp, reason: str) -> None:
        if not self._watch.mark_failed(path, stamp, time.time_ns()):
            logger.info("%s; it may still be written to and is tried again", reason)
            return
        self._complain(reason)
        self._pending.pop(path, None)
        if path in self._snapshot.profiles:
            self._publish(self._snapshot.without_profiles([path]))

    def _complain(self, reason: str) -> None:
        """Tell the user, but not a thousand times."""
        self._complaint_count += 1
        if self._complaint_count <= _MOST_COMPLAINTS:
            self._audience.warn(reason)
            return
        logger.warning("%s", reason)
        if self._complaint_count == _MOST_COMPLAINTS + 1:
            self._audience.warn("more profiles cannot be read; the log of the language server names them")

    def _set_aside(self, paths: list[Path], found: Mapping[Path, Stamp]) -> None:
        """The user's cancel: these profiles are not read until they change, or all are reloaded."""
        for path in paths:
            self._watch.mark_loaded(path, found[path])
        self.cancel()

    def _publish(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._audience.take_snapshot(snapshot)


def _choose_reading(settings: Settings) -> tuple[object, ...]:
    """The options that decide how a profile is read."""
    return (settings.path_mappings, settings.blamer, settings.keeps_history)


def _describe_step(progress: Progress) -> str:
    name, step = progress.profile.name, progress.step
    return step if name in step else f"{name}: {step}"


def _is_cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def call_in_thread(function: Callable[[], Result]) -> Result:
    """Run something that blocks on the file system, in a daemon thread: a dead network drive must not keep the server from ending, and
    the threads of an executor are waited for at exit.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def deliver(result: Result | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        try:
            outcome: tuple[Result | None, BaseException | None] = (function(), None)
        except BaseException as error:
            outcome = (None, error)
        with contextlib.suppress(RuntimeError):  # the loop has ended; nobody waits any more
            loop.call_soon_threadsafe(deliver, *outcome)

    threading.Thread(target=run, daemon=True).start()
    return await future
