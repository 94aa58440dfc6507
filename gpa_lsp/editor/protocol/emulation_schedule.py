"""When sources are emulated: after they were compiled, and when the description of their launches is saved or edited; the latest texts count.

Knows nothing of the protocol; the server is its :class:`EmulationAudience`.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from gpa_lsp.editor.late_imports import warm_up_predictions
from gpa_lsp.editor.predicted.results import (
    PageJob,
    PageResult,
    PredictedJob,
    PredictedResult,
    TemplateJob,
    TemplateResult,
    TrialsJob,
    TrialsResult,
)
from gpa_lsp.editor.protocol.late_progress import LateProgress
from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.editor.protocol.source_scope import DESCRIPTION_SUFFIX, SourceScope, find_description, read_description
from gpa_lsp.editor.protocol.threads import call_in_thread
from gpa_lsp.editor.settings import Settings
from gpa_lsp.foundation.files import Stamp, read_stamp
from gpa_lsp.foundation.processes.async_worker import AsyncWorker, attend
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import WorkerKind

# A job whose texts are out of date may still end by itself within this time: that costs less than a process that starts cold
_PATIENCE_S = 1.0

_WAIT_S = 5.0  # So long the compiler's answer is waited for, which is to be shown first

_PAUSE_S = 0.5  # Without an edit of the description before it counts


class EmulationProcess(AsyncWorker):
    """Emulates sources, looks for launch configurations, and writes pages and descriptions.

    It is another one than that which compiles, so that static findings never wait for an emulation.
    """

    def __init__(self) -> None:
        kind = WorkerKind(module="gpa_lsp.editor.predicted.worker", title="prediction process", niceness=10)
        super().__init__(kind)  # compiling comes first

    async def predict(self, job: PredictedJob, tell: Callable[[Step], object] | None = None) -> PredictedResult:
        """The prediction.

        Raises:
            ToolError: the process died, or hangs; so do the others.
        """
        result: PredictedResult = await self.do(job, limit_s=job.most_s, tell=tell)
        return result

    async def find_trials(self, job: TrialsJob) -> TrialsResult:
        """Launch configurations that are worth a try."""
        result: TrialsResult = await self.do(job, limit_s=job.base.most_s + 4 * job.seconds)
        return result

    async def write_page(self, job: PageJob) -> PageResult:
        """A page of HTML."""
        result: PageResult = await self.do(job, limit_s=2 * job.base.most_s)
        return result

    async def write_template(self, job: TemplateJob) -> TemplateResult:
        """A description to begin with."""
        result: TemplateResult = await self.do(job, limit_s=job.base.most_s)
        return result


class EmulationAudience(Protocol):
    """What this needs of the server. All of it is called on the event loop."""

    def read_open(self, local_path: str) -> str | None:
        """What the editor holds of a file; None when it is not open."""
        ...

    def take_predicted(self, result: PredictedResult) -> None:
        """There is a new result: show it. One whose job has an empty description says that there is none."""
        ...

    def take_trials(self, result: TrialsResult) -> None:
        """Blocks that are worth a try were looked for."""
        ...

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        ...


class EmulationSchedule:
    """Keeps what is predicted of open sources in step with them and with the descriptions of their launches.

    A source is emulated only where the user trusts the workspace and only below its folders. Nothing of it runs on this machine: it is compiled, and
    its device code is interpreted.

    Args:
        audience: asks and is told.
        process: does the work; None for a process of its own.
    """

    def __init__(self, audience: EmulationAudience, process: EmulationProcess | None = None) -> None:
        self._audience = audience
        self._process = process
        self._settings = Settings()
        self._measured_on: str | None = None
        self._scope = SourceScope()
        self._sources: dict[str, Stamp | None] = {}
        self._compiled: dict[str, str] = {}
        self._wanted: dict[str, None] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._done: dict[str, tuple[PredictedJob, float]] = {}
        self._work: asyncio.Task[None] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._current: tuple[PredictedJob, asyncio.Task[object]] | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._has_left = False

    def configure(
        self, settings: Settings, roots: Sequence[Path], open_paths: Sequence[str], *, is_trusted: bool
    ) -> None:
        """Take settings, workspace folders, open files, and whether the user trusts them; where nothing may be emulated (any more) work ends."""
        before = self._list_conditions()
        self._settings, self._scope = settings, SourceScope(roots=tuple(roots), is_trusted=is_trusted)
        if not self.may_run:
            self._stop()
        elif before != self._list_conditions():
            for path in open_paths:
                self.opened(path)

    def take_gpu(self, name: str | None) -> None:
        """The newest report of the workspace is of this GPU: what is predicted for another one is predicted again.

        Where there is none any more, as while reports are read again, it stays the GPU it was.
        """
        if name is None or name == self._measured_on:
            return
        self._measured_on = name
        if self.may_run:
            for source in [*self._done]:
                self._request(source)

    def _list_conditions(self) -> tuple[object, ...]:
        """What decides what is emulated, and how."""
        now = self._settings
        launch = (now.emulation_s, now.emulation_memory_bytes, now.emulation_machine, now.exploration_s)
        compiler = (now.compiles_sources, now.static_architecture, now.static_timeout_s)
        return (self._scope, now.emulates, launch, compiler)

    @property
    def may_run(self) -> bool:
        """Whether anything is emulated now."""
        return self._scope.is_trusted and self._settings.emulates and not self._has_left

    def opened(self, local_path: str) -> None:
        """A file was opened, or saved. A source waits for its compiler's answer; a description counts at once."""
        if local_path.endswith(DESCRIPTION_SUFFIX):
            self._consider(local_path, 0.0)
        elif self._is_relevant(local_path):
            self._sources.setdefault(local_path, None)
            self._request_after(local_path, _WAIT_S if self._settings.compiles_sources else 0.0, self._request_latest)
            if self._polling is None or self._polling.done():
                self._polling = asyncio.get_running_loop().create_task(self._poll())

    def compiled(self, local_path: str, text: str, *, has_failed: bool) -> None:
        """A text of a source was compiled: emulate that now, unless it has errors or was emulated last."""
        self._cancel_timer(local_path)
        if not has_failed and self._is_relevant(local_path) and local_path in self._sources:
            self._compiled[local_path] = text
            self._request(local_path)

    def changed(self, local_path: str) -> None:
        """A file was edited: a description counts after a pause."""
        if local_path.endswith(DESCRIPTION_SUFFIX):
            self._consider(local_path, _PAUSE_S)

    def closed(self, local_path: str) -> None:
        """A file was closed: nothing more is to be said of a source; of a description what the file holds counts again."""
        if local_path.endswith(DESCRIPTION_SUFFIX):
            self._consider(local_path, 0.0)
            return
        self._cancel_timer(local_path)
        for known in (self._sources, self._compiled, self._wanted, self._done):
            known.pop(local_path, None)
        if self._current is not None and str(self._current[0].path) == local_path:
            self._current[1].cancel()

    async def make_job(self, local_path: str) -> PredictedJob | None:
        """What is to be known of a source as the editor holds it now; None where it is not open, or nothing of it may be emulated."""
        job = await self._make_job(local_path) if self._is_relevant(local_path) else None
        text = self._audience.read_open(local_path)
        return None if job is None or text is None else replace(job, text=text)

    async def write_page(self, base: PredictedJob, target: Path) -> PageResult:
        """Let a page be written.

        Raises:
            ToolError: the process died, or hangs.
        """
        return await self._get_process().write_page(PageJob(base=base, target=target))

    async def write_template(self, local_path: str, kernel: str) -> tuple[PredictedJob, TemplateResult] | None:
        """A description of a kernel's launch to begin with, and what it was made for; None where nothing may be compiled.

        Raises:
            ToolError: as above.
        """
        job = await self._make_job(local_path) if self._is_relevant(local_path) else None
        if job is None:
            return None
        return job, await self._get_process().write_template(TemplateJob(base=job, kernel=kernel))

    async def leave(self) -> None:
        """End everything."""
        self._has_left = True
        self._stop()
        for task in (self._work, self._polling, *self._checks):
            if task is not None:
                task.cancel()
        if self._process is not None:
            await self._process.leave()

    def _get_process(self) -> EmulationProcess:
        if self._process is None:
            self._process = EmulationProcess()
        return self._process

    def _is_relevant(self, local_path: str) -> bool:
        return self.may_run and self._scope.contains(local_path)

    def _consider(self, description: str, pause_s: float) -> None:
        for source in self._sources:
            if find_description(source) == description:
                self._request_after(source, pause_s, self._request)

    def _request_after(self, local_path: str, pause_s: float, request: Callable[[str], None]) -> None:
        self._cancel_timer(local_path)
        if not self.may_run:
            return
        if pause_s <= 0:
            request(local_path)
        else:
            self._timers[local_path] = asyncio.get_running_loop().call_later(pause_s, request, local_path)

    def _request_latest(self, local_path: str) -> None:
        """Nobody said that it was compiled: as the editor holds it."""
        self._compiled.pop(local_path, None)
        self._request(local_path)

    def _request(self, local_path: str) -> None:
        self._cancel_timer(local_path)
        self._wanted.pop(local_path, None)
        self._wanted[local_path] = None  # the latest one comes first
        loop = asyncio.get_running_loop()
        if self._current is not None and str(self._current[0].path) == local_path:
            loop.call_later(_PATIENCE_S, self._check, *self._current)
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._work_off())

    def _check(self, job: PredictedJob, task: "asyncio.Task[object]") -> None:
        """Give work up whose texts are out of date by now."""
        check = asyncio.get_running_loop().create_task(self._give_up(job, task))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _give_up(self, job: PredictedJob, task: "asyncio.Task[object]") -> None:
        if not task.done() and await self._make_job(str(job.path)) != job:
            task.cancel()

    async def _work_off(self) -> None:
        while self._wanted and self.may_run:
            local_path, _ = self._wanted.popitem()
            job = await self._make_job(local_path)
            if job is None or self._done.get(local_path) == (job, self._settings.exploration_s):
                continue
            await self._work_on(job)

    async def _work_on(self, job: PredictedJob) -> None:
        local_path = str(job.path)
        result: object = PredictedResult(job=job)
        if job.launches_text:
            result = await self._attend(job, self._predict(job))
        if not isinstance(result, PredictedResult) or not self._may_show(local_path):
            return
        explore_s = self._settings.exploration_s
        self._audience.take_predicted(result)
        if local_path in self._wanted:
            return  # other blocks are looked for then, even if it turns out to be the same job
        self._done[local_path] = (job, explore_s)
        if explore_s > 0 and result.launches:
            trials = await self._attend(job, self._get_process().find_trials(TrialsJob(base=job, seconds=explore_s)))
            if isinstance(trials, TrialsResult) and self._may_show(local_path):
                self._audience.take_trials(trials)

    def _may_show(self, local_path: str) -> bool:
        return self.may_run and local_path in self._sources

    async def _predict(self, job: PredictedJob) -> PredictedResult:
        progress = LateProgress(self._audience.start_progress, f"Emulating {job.path.name}")
        try:
            result, _ = await asyncio.gather(
                self._get_process().predict(job, progress.take), call_in_thread(warm_up_predictions)
            )
            return result
        finally:
            progress.end()

    async def _attend(self, job: PredictedJob, work: Coroutine[Any, Any, object]) -> object:
        """The result of some work; None when that was given up or failed."""
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self._current = (job, task)
        try:
            return await attend(task, job.path)
        finally:
            self._current = None

    async def _make_job(self, local_path: str) -> PredictedJob | None:
        """The job of the texts as they are now: that which was compiled last, or is open; None when the source is not open."""
        open_source = self._audience.read_open(local_path)
        if open_source is None:
            return None
        text = self._compiled.get(local_path, open_source)
        description = find_description(local_path)
        settings = self._settings
        open_text = self._audience.read_open(description)
        launches_text = open_text or ""
        if open_text is None:
            stamp, launches_text = await call_in_thread(partial(read_description, description))
            if local_path in self._sources:
                self._sources[local_path] = stamp
        return PredictedJob(
            path=Path(local_path),
            text=text,
            launches_path=Path(description),
            launches_text=launches_text if launches_text.strip() else "",
            roots=self._scope.real_roots,
            architecture=settings.static_architecture,
            machine=settings.emulation_machine,
            limit_s=settings.static_timeout_s,
            seconds=settings.emulation_s,
            memory_bytes=settings.emulation_memory_bytes,
            measured_on=self._measured_on,
        )

    async def _poll(self) -> None:
        """See descriptions that others write."""
        while self._sources and self.may_run:
            await asyncio.sleep(self._settings.poll_seconds)
            for source, stamp in (await call_in_thread(partial(_read_stamps, tuple(self._sources)))).items():
                is_waiting = source in self._timers or source in self._wanted
                if source in self._sources and self._sources[source] != stamp and not is_waiting:
                    self._sources[source] = stamp
                    self._request(source)

    def _cancel_timer(self, local_path: str) -> None:
        timer = self._timers.pop(local_path, None)
        if timer is not None:
            timer.cancel()

    def _stop(self) -> None:
        for local_path in list(self._timers):
            self._cancel_timer(local_path)
        self._wanted.clear()
        self._done.clear()
        self._sources.clear()
        self._compiled.clear()
        if self._current is not None:
            self._current[1].cancel()


def _read_stamps(sources: Sequence[str]) -> dict[str, Stamp | None]:
    """The stamps of their descriptions; None where there is none."""
    return {source: read_stamp(find_description(source)) for source in sources}
