"""Times of described launches, on save: a process that stays and holds a GPU's context runs them, once the user has agreed.

Nothing is asked and nothing appears where there is no GPU; the status line says so.
"""

import asyncio
import hashlib
import logging
import re
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.editor.protocol.measure_on_save import Asker, Permission, find_workspace
from gpa_lsp.editor.protocol.predictions import Predictions
from gpa_lsp.editor.protocol.source_scope import DESCRIPTION_SUFFIX, find_description
from gpa_lsp.editor.protocol.threads import call_in_thread
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.timed.results import Job, LookJob, LookResult, SampleJob, SampleResult, TimedJob, TimedResult
from gpa_lsp.editor.timed.view import TimedState, make_state
from gpa_lsp.foundation.processes.async_worker import AsyncWorker, attend
from gpa_lsp.foundation.processes.supervision import WorkerKind
from gpa_lsp.gpu.device.cuda_driver import is_driver_installed
from gpa_lsp.profile.collect.allowance import Allowance
from gpa_lsp.profile.collect.explain import ask_to_time

logger = logging.getLogger(__name__)

_SHOWN = ("gpa-lsp", "profile", "--launches", "*.launch.toml")  # What is confirmed: how it would be run in a shell

# What is out of date may still end by itself within this time: that costs less than a process without a context
_PATIENCE_S = 1.0

_IDLE_S, _SAMPLER_IDLE_S = 300.0, 30.0
_MOST_OWN_BYTES = 2 << 30
_MOST_NAME = 60
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


def _make_process(title: str, idle_s: float) -> AsyncWorker:
    """A CUDA context below it reserves more address space than any limit would allow; what it holds itself is looked at after each job."""
    return AsyncWorker(
        WorkerKind(
            module="gpa_lsp.editor.timed.worker",
            title=title,
            niceness=0,
            memory_bytes=0,
            most_own_bytes=_MOST_OWN_BYTES,
            idle_s=idle_s,
        )
    )


class TimingAudience(Asker, Protocol):
    """What this needs of the server. All of it is called on the event loop."""

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins; ``cancel`` ends it."""
        ...

    def log(self, text: str) -> None:
        """Add lines to the output channel."""
        ...

    def show_times(self, text: str) -> None:
        """What was timed last, for the status line."""
        ...

    def explain(self, detail: str) -> None:
        """What is not done here, and why, for whoever looks closer at the status line."""
        ...


class LaunchTimes:
    """Times the described launches of open sources when they are saved.

    Args:
        audience: asks and is told.
        documents: what is open.
        predictions: know which texts a source and its description have now, and where they may be run.
        make_folder: for profiles that go with the session.
        include: reads a profile and shows it.
        refresh: lets the client ask again for what it shows.
        allowance: what the user has confirmed before; None for the user's own file.
    """

    def __init__(
        self,
        audience: TimingAudience,
        documents: Documents,
        predictions: Predictions,
        *,
        make_folder: Callable[[], Path],
        include: Callable[[Path], None],
        refresh: Callable[[], None],
        allowance: Allowance | None = None,
    ) -> None:
        self._audience, self._documents, self._predictions = audience, documents, predictions
        self._make_folder, self._include, self._refresh = make_folder, include, refresh
        self._permission = Permission(audience, allowance, self._word_question)
        self._process = _make_process("timing process", _IDLE_S)
        """Compiles and times; a process of its own below it holds the context, and ends with it."""
        self._sampler = _make_process("sampling process", _SAMPLER_IDLE_S)
        """Another one: what a save cuts short does not cost the context."""
        self._settings = Settings()
        self._roots: tuple[Path, ...] = ()
        self._is_allowed = False
        self._states: dict[str, TimedState] = {}
        self._wanted: dict[str, None] = {}
        self._gpu: LookResult | None = None
        self._unsampled = ""
        self._work: asyncio.Task[None] | None = None
        self._current: tuple[PredictedJob, asyncio.Task[object]] | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._has_left = False

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; where nothing may be run (any more) work ends."""
        self._settings, self._roots = settings, tuple(roots)
        has_command = settings.profile_command is not None and settings.profiles_on_save
        self._is_allowed = is_trusted and settings.times_on_save and settings.emulates and not has_command
        if not self._is_allowed:
            self.cancel()
            for source in list(self._states):
                self._forget(source)

    @property
    def is_timing(self) -> bool:
        """Launches run."""
        return self._current is not None

    def saved(self, uri: str) -> None:
        """A document was saved: a source, or the description of one that is open."""
        path = self._documents.find_local_path(uri)
        if path is None or not self._is_allowed or self._has_left:
            return
        if path.endswith(DESCRIPTION_SUFFIX):
            sources = [one for one in self._documents.list_open() if not one.endswith(DESCRIPTION_SUFFIX)]
            for source in (one for one in sources if find_description(one) == path):
                self._request(source)
        else:
            self._request(path)

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        path = self._documents.find_local_path(uri)
        if path is not None:
            self._wanted.pop(path, None)
            self._states.pop(path, None)

    def cancel(self) -> None:
        """End what goes on, if anything."""
        self._wanted.clear()
        if self._current is not None:
            self._current[1].cancel()

    async def leave(self) -> None:
        """End everything."""
        self._has_left = True
        self.cancel()
        for task in (self._work, *self._checks):
            if task is not None:
                task.cancel()
        await asyncio.gather(self._process.leave(), self._sampler.leave())

    def _forget(self, source: str) -> None:
        if self._states.pop(source, None) is not None:
            self._documents.take_timed(source, None)

    # When

    def _request(self, source: str) -> None:
        self._wanted.pop(source, None)
        self._wanted[source] = None  # the latest one comes first
        loop = asyncio.get_running_loop()
        if self._current is not None:
            loop.call_later(_PATIENCE_S, self._give_up, *self._current)
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._work_off())

    def _give_up(self, base: PredictedJob, task: "asyncio.Task[object]") -> None:
        """Another save waits: what runs ends, unless it is of the same texts."""
        check = asyncio.get_running_loop().create_task(self._check(base, task))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _check(self, base: PredictedJob, task: "asyncio.Task[object]") -> None:
        if not task.done() and await self._predictions.make_job(str(base.path)) != base:
            task.cancel()

    async def _work_off(self) -> None:
        while self._wanted and self._is_allowed and not self._has_left:
            source, _ = self._wanted.popitem()
            try:
                await self._serve(source)
            except Exception:
                logger.exception("timing the launches of %s failed", source)

    async def _serve(self, source: str) -> None:
        base = await self._predictions.make_job(source)
        if base is None or not base.launches_text:
            self._forget(source)
            return
        gpu = await self._look(base)
        workspace = find_workspace(self._roots, base.path)
        if not gpu or workspace is None:
            return
        if not await self._permission.is_given(workspace, None, _SHOWN, is_explicit=False):
            return
        base = await self._predictions.make_job(source)  # the answer may have taken its time
        if base is not None and base.launches_text and source not in self._wanted:
            self._permission.use()
            await self._time(source, base)

    def _word_question(self, workspace: Path, build: object, profile: object) -> str | None:
        del build, profile
        return ask_to_time(workspace, "" if self._gpu is None else self._gpu.gpu)

    # What

    async def _look(self, base: PredictedJob) -> str:
        """The name of the GPU; looked for once."""
        if self._gpu is None:
            found: object = LookResult(reason="no NVIDIA driver is installed")
            if await call_in_thread(is_driver_installed):
                found = await self._do(base, LookJob())
            if not isinstance(found, LookResult):
                return ""
            self._gpu = found
            if not found.gpu:
                self._audience.explain(f"launches are not timed here: {found.reason}")
        return self._gpu.gpu

    async def _time(self, source: str, base: PredictedJob) -> None:
        display = self._audience.start_progress(f"Timing {base.path.name}", self.cancel)
        display.report("timing launches", None)
        words, job = "cancelled", TimedJob(base=base, kept=self._choose_file(base, "timings"))
        try:
            result = await self._do(base, job)
            if isinstance(result, TimedResult) and not self._has_left:
                words = self._take(source, result)
                if result.times and not self._unsampled and source not in self._wanted:
                    display.report("taking samples", None)
                    sampling = SampleJob(kept=job.kept, target=self._choose_file(base, "timed.gpa-profile.json"))
                    self._take_samples(await self._do(base, sampling), sampling)
        finally:
            display.end(words)

    def _take(self, source: str, result: TimedResult) -> str:
        """Show it; how it ended, in a few words."""
        for problem in result.problems:
            self._audience.log(f"{result.job.base.path}: {problem}")
        if not result.times:
            self._audience.log(f"{result.job.base.path}: not timed: {result.failure}")
            self._audience.show_times(f"not timed: {result.failure}")
            return "failed"
        state = make_state(result, self._states.get(source))
        self._states[source] = state
        self._documents.take_timed(source, state)
        self._refresh()
        self._audience.show_times("; ".join(f"{one.time.name} {one.words}" for one in state.changes))
        return "timed"

    def _choose_file(self, base: PredictedJob, suffix: str) -> Path:
        """One that goes with the session."""
        key = hashlib.blake2b(str(base.path).encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()
        name = _UNSAFE.sub("_", base.path.stem)[:_MOST_NAME]
        return self._make_folder() / f"{name}-{key}.{suffix}"

    def _take_samples(self, result: object, job: SampleJob) -> None:
        if self._has_left or not isinstance(result, SampleResult):
            return
        if result.samples:
            self._include(job.target)
        else:  # said once, and not tried again
            self._unsampled = result.reason
            self._audience.log(f"launches are timed, not sampled: {result.reason}")
            self._audience.explain(f"launches are timed, not sampled: {result.reason}")

    async def _do(self, base: PredictedJob, job: Job) -> object:
        """The result of a job; None when it was given up or failed."""
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(self._ask(job))
        self._current = (base, task)
        try:
            return await attend(task, base.path)
        finally:
            self._current = None

    def _ask(self, job: Job) -> Coroutine[Any, Any, object]:
        process = self._sampler if isinstance(job, SampleJob) else self._process
        return process.do(job, limit_s=job.most_s)
