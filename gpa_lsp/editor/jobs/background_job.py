"""One background job: what it needs, when it is due, its limit, its process, its result, and how it is cancelled.

The machinery stands here once. A definition is a :class:`BackgroundJob` with a few methods: whether it may run (``is_wanted``), what it needs
(``make``), what it does with that (``serve``), and on which events (``opened``, ``saved`` and so on) it asks for work (``request``). Knows nothing of
the protocol; the session is its :class:`Site`.
"""

import asyncio
import hashlib
import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from msgspec import Struct

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.progress import ProgressDisplay, WorkProgress
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.execution.launches import DESCRIPTION_SUFFIX
from gpa_lsp.foundation.files import Stamp, read_bounded, read_stamp
from gpa_lsp.foundation.processes.async_worker import AsyncWorker, attend
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import WorkerKind

logger = logging.getLogger(__name__)

Job = TypeVar("Job")
Key = TypeVar("Key")

_SUFFIXES = frozenset({".cu"})  # Sources that can be compiled by themselves; headers are compiled with their includers
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_NAME = 60
_LARGEST_DESCRIPTION_BYTES = 4 << 20

# Work that is out of date may still end by itself within this time: that costs less than a process that starts cold
_PATIENCE_S = 1.0
_MOMENT_S = 1.0  # Work that takes no longer has no progress bar


class SourceScope(Struct, frozen=True, kw_only=True):
    """Sources that may be worked on: those in the folders of a trusted workspace."""

    roots: tuple[Path, ...] = ()  # folders of the workspace
    is_trusted: bool = False  # the user trusts them

    @property
    def real_roots(self) -> tuple[Path, ...]:
        """The folders, links resolved."""
        return tuple(Path(os.path.realpath(root)) for root in self.roots)

    def contains(self, local_path: str) -> bool:
        """Whether a file, links resolved, is a source that may be worked on."""
        path = Path(os.path.realpath(local_path))
        if not self.is_trusted or path.suffix.lower() not in _SUFFIXES:
            return False
        return any(path.is_relative_to(root) for root in self.real_roots)


class Site(Struct, frozen=True, kw_only=True):
    """Services of the session that jobs use. All of them are called on the event loop."""

    documents: Documents  # what is open
    read_snapshot: Callable[[], Snapshot]  # what profiles say now
    refresh: Callable[[], None]  # lets the client ask again for what it shows
    start_progress: Callable[[str, Callable[[], None]], ProgressDisplay]  # (title, what ends the work) → a bar
    make_folder: Callable[[], Path]  # for files that go with the session
    inform: Callable[[str], None]  # say something the user asked for
    warn: Callable[[str], None]  # say something the user must know
    include: Callable[[Path], None]  # read a profile and show it
    exclude: Callable[[Path | None], None]  # show a profile that was included no more; None for all of them


class BackgroundJob(ABC, Generic[Key, Job]):
    """One kind of work: one piece at a time, and what was asked for last comes first.

    Work whose needs have changed since is given up soon after it is asked for again.

    Args:
        site: the session.
        process: does the work; None for one of its own.
    """

    process_kind: ClassVar[WorkerKind]  # which process does the work

    def __init__(self, site: Site, process: AsyncWorker | None = None) -> None:
        self.site = site
        self.settings, self.scope = Settings(), SourceScope()
        self.done: dict[Key, Job] = {}
        """What was done last."""
        self.was_cancelled = False
        """What was asked of the process last was given up."""
        self._process = process
        self._wanted: dict[Key, None] = {}
        self._timers: dict[Key, asyncio.TimerHandle] = {}
        self._current: tuple[Key, Job, asyncio.Task[Any] | None] | None = None
        self._work: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._has_left = False

    # The definition

    @property
    @abstractmethod
    def is_wanted(self) -> bool:
        """Whether the settings want it."""

    @abstractmethod
    async def make(self, key: Key) -> Job | None:
        """Return the work for a key as it is now; None for nothing."""

    @abstractmethod
    async def serve(self, key: Key, job: Job) -> None:
        """Do it (:meth:`do`), show what came of it, and note it as ``done`` where it need not be done again."""

    def is_done(self, key: Key, job: Job) -> bool:
        """Whether there is nothing to do about it."""
        return self.done.get(key) == job

    def forget(self) -> None:
        """Take back all that is shown: it may not be done any more."""

    def list_conditions(self) -> tuple[object, ...]:
        """Settings by which open sources are worked on again when they change."""
        return ()

    def opened(self, local_path: str) -> None:
        """A document was opened, or saved, or its conditions changed."""

    def saved(self, local_path: str) -> None:
        """A document was saved: a source, or the description of its launches."""

    def changed(self, local_path: str) -> None:
        """A document was edited."""

    def closed(self, local_path: str) -> None:
        """A document is about to be closed."""

    # The machinery

    def configure(self, settings: Settings, scope: SourceScope) -> None:
        """Take settings, workspace folders, and whether the user trusts them; where nothing may be done (any more) work ends."""
        before = (self.scope, self.is_wanted, self.list_conditions())
        self.settings, self.scope = settings, scope
        if not self.may_run:
            self.cancel()
            self.forget()
        elif before != (self.scope, self.is_wanted, self.list_conditions()):
            self.done.clear()
            for path in self.site.documents.list_open():
                self.opened(path)

    @property
    def may_run(self) -> bool:
        """Whether anything is done now."""
        return self.scope.is_trusted and self.is_wanted and not self._has_left

    def may_serve(self, local_path: str) -> bool:
        """Whether a source may be worked on."""
        return self.may_run and self.scope.contains(local_path)

    @property
    def is_working(self) -> bool:
        """Whether something is being done, or requested."""
        return bool(self._wanted or self._timers) or self._current is not None

    @property
    def current(self) -> Key | None:
        """Key of the work in progress; None when idle."""
        return None if self._current is None else self._current[0]

    @property
    def is_process_busy(self) -> bool:
        """The process is at it."""
        return self._current is not None and self._current[2] is not None

    def name_file(self, source: Path, suffix: str, kernel: str = "") -> Path:
        """A file of ours about a source, which goes with the session."""
        key = hashlib.blake2b(f"{source}\0{kernel}".encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        name = _UNSAFE.sub("_", source.stem)[:_MOST_NAME]
        return self.site.make_folder() / f"{name}-{key}.{suffix}"

    @property
    def process(self) -> AsyncWorker:
        """Does the work."""
        if self._process is None:
            self._process = AsyncWorker(self.process_kind)
        return self._process

    def is_due(self, key: Key) -> bool:
        """Whether something is asked for that was not begun yet."""
        return key in self._wanted or key in self._timers

    def request(self, *keys: Key, after_s: float = 0.0) -> None:
        """Ask for work, the first first, now or after a pause."""
        for key in keys:
            self.drop_request(key)
        if not keys or not self.may_run:
            return
        loop = asyncio.get_running_loop()
        if after_s > 0:
            self._timers[keys[0]] = loop.call_later(after_s, self.request, *keys)
            return
        self._wanted.update(dict.fromkeys(reversed(keys)))
        if self.current in keys:
            self.review()
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._work_off())

    def review(self) -> None:
        """Give up after a moment what is being done, should its needs have changed by then."""
        if self._current is not None:
            asyncio.get_running_loop().call_later(_PATIENCE_S, self._review, self._current)

    def _review(self, current: "tuple[Key, Job, asyncio.Task[Any] | None]") -> None:
        if self._current is current:
            self.start(self._give_up(current))

    async def _give_up(self, current: "tuple[Key, Job, asyncio.Task[Any] | None]") -> None:
        key, job, task = current
        if await self.make(key) != job and self._current is current and task is not None:
            task.cancel()

    def drop(self, key: Key) -> None:
        """Give up work on a key, and forget its result."""
        self.drop_request(key)
        self.done.pop(key, None)
        if self.current == key:
            self._cancel_current()

    def drop_requests(self) -> None:
        """Drop every request that has not begun."""
        for key in [*self._wanted, *self._timers]:
            self.drop_request(key)

    def cancel(self) -> None:
        """End what goes on, and all that waits."""
        self.drop_requests()
        self.done.clear()
        self._cancel_current()
        for task in self._tasks:
            task.cancel()

    async def leave(self) -> None:
        """End everything."""
        self._has_left = True
        self.cancel()
        if self._work is not None:
            self._work.cancel()
        if self._process is not None:
            await self._process.leave()

    async def do(self, message: object, *, limit_s: float, title: str = "", process: AsyncWorker | None = None) -> Any:
        """Send a message to the process for the job that is being served; None where that was given up, or failed, which is logged.

        Args:
            limit_s: processor time, after which the process hangs.
            title: of a progress bar, which comes after a moment; empty for none.
            process: another than the job's own.
        """
        assert self._current is not None, "something is served"
        key, job, _ = self._current
        task = asyncio.get_running_loop().create_task(self._ask(message, limit_s, title, process or self.process))
        self._current = (key, job, task)
        try:
            return await attend(task, key)
        finally:
            self._current, self.was_cancelled = (key, job, None), task.cancelled()

    async def do_beside(self, message: object, *, limit_s: float, title: str = "") -> Any:
        """The same of what a person asks for meanwhile; it waits for what is being done."""
        return await attend(self.start(self._ask(message, limit_s, title, self.process)), title)

    async def _ask(self, message: object, limit_s: float, title: str, process: AsyncWorker) -> Any:
        if not title:
            return await process.do(message, limit_s=limit_s)
        task = asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            task.cancel()

        progress = WorkProgress(lambda: self.site.start_progress(title, cancel), "compiling", after_s=_MOMENT_S)

        def take(step: Step) -> None:
            progress.tell(step.words, step.done / step.total if step.total > 1 else None)

        try:
            return await process.do(message, limit_s=limit_s, tell=take)
        finally:
            progress.end("done")

    async def _work_off(self) -> None:
        while self._wanted and self.may_run:
            key, _ = self._wanted.popitem()
            try:
                job = await self.make(key)
                if job is not None and not self.is_done(key, job):
                    self._current = (key, job, None)
                    await self.serve(key, job)
            except Exception:
                logger.exception("%s failed: %s", self.process_kind.title, key)
            finally:
                self._current = None

    def drop_request(self, key: Key) -> None:
        """Drop a request; work that has begun goes on."""
        self._wanted.pop(key, None)
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _cancel_current(self) -> None:
        if self._current is not None and self._current[2] is not None:
            self._current[2].cancel()

    def start(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        """Let something run beside; it ends when nothing may be done any more."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


# What several jobs need: the description of a source's launches


def find_description(source: str) -> str:
    """``/p/kernel.cu`` → ``/p/kernel.launch.toml``, whether it is there or not."""
    path = Path(source)
    return str(path.with_name(path.stem + DESCRIPTION_SUFFIX))


def is_description(local_path: str) -> bool:
    """Whether a file describes launches."""
    return local_path.endswith(DESCRIPTION_SUFFIX)


def list_sources(documents: Documents, local_path: str) -> list[str]:
    """The sources that a file is about: itself, or the open ones whose launches it describes."""
    if not is_description(local_path):
        return [local_path]
    return [one for one in documents.list_open() if not is_description(one) and find_description(one) == local_path]


async def read_description(documents: Documents, source: str) -> tuple[Stamp | None, str]:
    """Read the description of a source's launches, as the editor or else the file holds it, and the file's stamp; empty where it is blank."""
    description = find_description(source)
    open_text = documents.read_open(description)
    if open_text is not None:
        return None, open_text if open_text.strip() else ""
    stamp, text = await call_in_thread(partial(_read_file, description))
    return stamp, text if text.strip() else ""


def _read_file(description: str) -> tuple[Stamp | None, str]:
    """An empty text where there is none, or it cannot be read, which is logged."""
    stamp = read_stamp(description)
    if stamp is None:
        return None, ""
    if stamp.size_bytes > _LARGEST_DESCRIPTION_BYTES:
        logger.warning(
            "%s has more than %s bytes and is ignored: put long arrays into files",
            description,
            _LARGEST_DESCRIPTION_BYTES,
        )
        return stamp, ""
    try:
        return stamp, read_bounded(Path(description), _LARGEST_DESCRIPTION_BYTES).decode("utf-8", "surrogateescape")
    except OSError as error:
        logger.warning("%s cannot be read: %s", description, error.strerror)
        return stamp, ""
