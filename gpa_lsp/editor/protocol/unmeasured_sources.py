"""What is said of open sources without a profile: what their code says, and then what emulating it shows."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.lines.positions import UnitCounter
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.predictions import Predictions
from gpa_lsp.editor.protocol.source_scope import SourceScope
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.static.results import StaticJob, StaticResult
from gpa_lsp.foundation.processes.async_worker import AsyncWorker, attend
from gpa_lsp.foundation.processes.supervision import WorkerKind

# When sources are compiled and looked at: when they are opened and saved, and while they are edited if the user wants that; the latest text counts.
#
# Knows nothing of the protocol; the server is its :class:`CompileAudience`.

logger = logging.getLogger(__name__)

# A job whose text is out of date may still end by itself within this time: that costs less than a process that starts cold
_PATIENCE_S = 1.0


_GRACE_S = 30.0  # What is looked at after the compiler's own limit may take this long


class StaticProcess(AsyncWorker):
    """Compiles sources and looks at their code."""

    def __init__(self) -> None:
        super().__init__(WorkerKind(module="gpa_lsp.editor.static.worker", title="static analysis process"))

    async def examine(self, job: StaticJob) -> StaticResult:
        """The result of a job.

        Raises:
            ToolError: the process died, or hangs.
        """
        result: StaticResult = await self.do(job, limit_s=job.limit_s + _GRACE_S)
        return result


class CompileAudience(Protocol):
    """What this needs of the server. All of it is called on the event loop."""

    def read_open(self, local_path: str) -> str | None:
        """What the editor holds of a file; None when it is not open."""
        ...

    def take_static(self, result: StaticResult) -> None:
        """There is a new result: show it."""
        ...


class CompileSchedule:
    """Keeps what is said of open sources in step with their text.

    A source is compiled only where the user trusts the workspace and only below its folders. What runs is our own compiler, with flags from a list.

    Args:
        audience: asks and is told.
        process: does the work; None for a process of its own.
    """

    def __init__(self, audience: CompileAudience, process: StaticProcess | None = None) -> None:
        self._audience = audience
        self._process = process
        self._settings = Settings()
        self._scope = SourceScope()
        self._wanted: dict[str, None] = {}
        self._done: dict[str, StaticJob] = {}
        self._work: asyncio.Task[None] | None = None
        self._current: tuple[str, asyncio.Task[StaticResult]] | None = None
        self._has_left = False

    def configure(
        self, settings: Settings, roots: Sequence[Path], open_paths: Sequence[str], *, is_trusted: bool
    ) -> None:
        """Take settings, workspace folders, open files, and whether the user trusts them; where nothing may be compiled (any more) work ends."""
        before = self._list_conditions()
        self._settings, self._scope = settings, SourceScope(roots=tuple(roots), is_trusted=is_trusted)
        if not self._may_run:
            self._stop()
        elif before != self._list_conditions():
            for path in open_paths:
                self.opened(path)

    def _list_conditions(self) -> tuple[object, ...]:
        """What decides what is compiled, and how."""
        now = self._settings
        return (
            self._scope,
            now.compiles_sources,
            now.static_architecture,
            now.static_timeout_s,
        )

    @property
    def _may_run(self) -> bool:
        return self._scope.is_trusted and self._settings.compiles_sources and not self._has_left

    def opened(self, local_path: str) -> None:
        """A file was opened, or saved: compile it now, unless that text was compiled last."""
        if self._is_relevant(local_path):
            self._request(local_path)

    def closed(self, local_path: str) -> None:
        """A file was closed: nothing more is to be said of it."""
        self._wanted.pop(local_path, None)
        self._done.pop(local_path, None)
        if self._current is not None and self._current[0] == local_path:
            self._current[1].cancel()

    async def leave(self) -> None:
        """End everything."""
        self._has_left = True
        self._stop()
        if self._work is not None:
            self._work.cancel()
        if self._process is not None:
            await self._process.leave()

    def _is_relevant(self, local_path: str) -> bool:
        return self._may_run and self._scope.contains(local_path)

    def _request(self, local_path: str) -> None:
        self._wanted.pop(local_path, None)
        self._wanted[local_path] = None  # the latest one comes first
        if self._current is not None and self._current[0] == local_path:
            task = self._current[1]
            asyncio.get_running_loop().call_later(_PATIENCE_S, task.cancel)
        if self._work is None or self._work.done():
            self._work = asyncio.get_running_loop().create_task(self._work_off())

    async def _work_off(self) -> None:
        while self._wanted and self._may_run:
            local_path, _ = self._wanted.popitem()
            text = self._audience.read_open(local_path)
            job = None if text is None else self._make_job(local_path, text)
            if job is None or self._done.get(local_path) == job:
                continue
            result = await self._examine(job)
            if result is None or not self._may_run or self._audience.read_open(local_path) is None:
                continue
            self._done[local_path] = job
            for remark in (*result.remarks, result.failure):
                if remark:
                    logger.info("%s: %s", local_path, remark)
            self._audience.take_static(result)

    def _make_job(self, local_path: str, text: str) -> StaticJob:
        return StaticJob(
            path=Path(local_path),
            text=text,
            roots=self._scope.real_roots,
            architecture=self._settings.static_architecture,
            limit_s=self._settings.static_timeout_s,
        )

    async def _examine(self, job: StaticJob) -> StaticResult | None:
        """The result of one text; None when that was given up or failed."""
        if self._process is None:
            self._process = StaticProcess()
        task = asyncio.get_running_loop().create_task(self._process.examine(job))
        self._current = (str(job.path), task)
        try:
            return await attend(task, job.path)
        finally:
            self._current = None

    def _stop(self) -> None:
        self._wanted.clear()
        self._done.clear()
        if self._current is not None:
            self._current[1].cancel()


class StaticFindings:
    """What compiling sources found, for what shows it.

    Args:
        documents: what is open.
        refresh: lets the client ask again for what it shows.
        tell: told each result, after it is shown.
    """

    def __init__(self, documents: Documents, refresh: Callable[[], None], tell: Callable[[StaticResult], None]) -> None:
        self._documents = documents
        self._refresh = refresh
        self._tell_result = tell
        self._schedule = CompileSchedule(self)

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; without trust nothing is compiled and nothing is said."""
        if not settings.compiles_sources or not is_trusted:
            self._documents.forget_statics()
        self._schedule.configure(settings, roots, self._documents.list_open(), is_trusted=is_trusted)

    def opened(self, uri: str) -> None:
        """A document was opened, or saved."""
        self._tell(uri, self._schedule.opened)

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        self._tell(uri, self._schedule.closed)

    async def leave(self) -> None:
        """End everything."""
        await self._schedule.leave()

    def _tell(self, uri: str, tell: Callable[[str], None]) -> None:
        local_path = self._documents.find_local_path(uri)
        if local_path is not None:
            tell(local_path)

    # What the schedule asks and tells

    def read_open(self, local_path: str) -> str | None:
        """The text of an open file."""
        return self._documents.read_open(local_path)

    def take_static(self, result: StaticResult) -> None:
        """A source was compiled: show what its code says."""
        self._documents.take_static(result)
        self._refresh()
        self._tell_result(result)


class UnmeasuredSources:
    """Both, in this order.

    Args:
        documents: what is open.
        client: the editor.
        units: counts columns for it.
        refresh: lets it ask again for what it shows.
    """

    def __init__(self, documents: Documents, client: Client, units: UnitCounter, refresh: Callable[[], None]) -> None:
        self.predictions = Predictions(documents, client, units, refresh)
        """What emulating them shows."""
        self._static = StaticFindings(documents, refresh, self.predictions.compiled)

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them."""
        self.predictions.configure(settings, roots, is_trusted=is_trusted)
        self._static.configure(settings, roots, is_trusted=is_trusted)

    def opened(self, uri: str) -> None:
        """A document was opened, or saved."""
        self.predictions.opened(uri)
        self._static.opened(uri)

    def changed(self, uri: str) -> None:
        """A document was edited."""
        self.predictions.changed(uri)

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        self._static.closed(uri)
        self.predictions.closed(uri)

    async def leave(self) -> None:
        """End everything."""
        await self._static.leave()
        await self.predictions.leave()
