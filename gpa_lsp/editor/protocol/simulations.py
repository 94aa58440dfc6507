"""Simulated launches of open sources, from the editor's events to the profiles that are read like measured ones."""

import asyncio
import hashlib
import logging
import os
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel
from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.late_progress import LateProgress
from gpa_lsp.editor.protocol.loader import ProfileLoader, ProgressDisplay
from gpa_lsp.editor.protocol.predictions import Predictions
from gpa_lsp.editor.protocol.source_scope import DESCRIPTION_SUFFIX, find_description
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.simulated.results import ComparisonJob, ComparisonResult, SimulationJob, SimulationResult
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.processes.async_worker import AsyncWorker, attend
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import WorkerKind

logger = logging.getLogger(__name__)

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_NAME = 60
_ON_COMMAND_LINE, _IN_EDITOR = "with --machine", "in gpaLsp.emulation.machine"
_MEASURED_STAY = "measured numbers stay on the lines"


class SimulationProcess(AsyncWorker):
    """Simulates launches; another one than those that compile and emulate, which never wait for it."""

    def __init__(self) -> None:
        super().__init__(
            WorkerKind(module="gpa_lsp.editor.simulated.worker", title="simulation process", niceness=10, idle_s=120.0)
        )

    async def simulate(self, job: SimulationJob, tell: Callable[[Step], object] | None = None) -> SimulationResult:
        """What became of a job.

        Raises:
            ToolError: the process died, or hangs.
        """
        result: SimulationResult = await self.do(job, limit_s=job.most_s, tell=tell)
        return result

    async def compare(self, job: ComparisonJob, tell: Callable[[Step], object] | None = None) -> ComparisonResult:
        """What became of a page; after what is being simulated.

        Raises:
            ToolError: the process died, or hangs.
        """
        result: ComparisonResult = await self.do(job, limit_s=job.most_s, tell=tell)
        return result


class Simulations:
    """What sources were simulated to do. Their profiles go with the session.

    Args:
        documents: what is open.
        client: the editor.
        predictions: know which texts a source and its description have now, and where they may be emulated.
        loader: reads the profiles.
        read_snapshot: what is shown now.
        process: does the work; None for one of its own.
    """

    def __init__(
        self,
        documents: Documents,
        client: Client,
        predictions: Predictions,
        loader: ProfileLoader,
        *,
        read_snapshot: Callable[[], Snapshot],
        process: SimulationProcess | None = None,
    ) -> None:
        self._documents, self._client = documents, client
        self._predictions, self._loader, self._read_snapshot = predictions, loader, read_snapshot
        self._schedule = SimulationSchedule(self, process)
        self._settings, self._may_simulate = Settings(), False

    def configure(self, settings: Settings, *, is_trusted: bool) -> None:
        """Take settings, and whether the user trusts the workspace; without trust nothing that was simulated is shown."""
        self._settings, self._may_simulate = settings, is_trusted and settings.emulates
        self._schedule.configure(settings, is_trusted=is_trusted)
        if not is_trusted or not settings.emulates:
            self._loader.exclude_all()

    def saved(self, uri: str) -> None:
        """A document was saved: a source, or the description of one that is open."""
        path = self._documents.find_local_path(uri)
        if path is None:
            return
        if path.endswith(DESCRIPTION_SUFFIX):
            self.described(Path(path))
        else:
            self._schedule.saved(path)

    def described(self, description: Path) -> None:
        """A description was written."""
        path = os.path.realpath(description)
        for source in self._documents.list_open():
            if not source.endswith(DESCRIPTION_SUFFIX) and find_description(source) == path:
                self._schedule.saved(source)

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        path = self._documents.find_local_path(uri)
        if path is not None:
            self._schedule.closed(path)

    async def simulate(self, uri: str, kernel: str | None) -> bool:
        """Somebody asks for it; False where nothing of it may be emulated.

        Args:
            kernel: mangled name; None for all that are described.
        """
        path = self._documents.find_local_path(uri)
        if path is not None and path.endswith(DESCRIPTION_SUFFIX):
            path = next((one for one in self._documents.list_open() if find_description(one) == path), path)
        base = None if path is None else await self.make_job(path)
        if path is None or base is None:
            return False
        self._schedule.simulate_now(path, kernel)
        return True

    async def compare(self, shown: VisibleKernel) -> Path:
        """The page of a measured kernel beside the same as it is simulated.

        Raises:
            GpaError: it cannot be simulated, with the reason.
            OSError: the page cannot be written.
        """
        if not self._may_simulate:
            raise GpaError("the workspace is not trusted, or gpaLsp.emulation.enable is off")
        if shown.kernel.report.is_simulated:
            raise GpaError(f"{shown.name} was simulated, and nothing of it was measured")
        launches = self._find_description(shown)
        if launches is None:
            raise GpaError(explain_undescribed_kernel(shown.name))
        folder, kernel = self._client.make_folder(), shown.kernel.report.mangled_name
        key = hashlib.blake2b(
            f"{shown.profile.path}\0{kernel}".encode("utf-8", "surrogatepass"), digest_size=6
        ).hexdigest()
        page = folder / f"comparison-{key}.html"
        job = ComparisonJob(
            profile=shown.profile.path,
            kernel=kernel,
            launches=launches,
            page=page,
            simulated=folder / f"comparison-{key}.gpa-profile.json",
            machine=self._settings.emulation_machine,
            seconds=ASKED_S,
            memory_bytes=self._settings.emulation_memory_bytes,
        )
        result = await self._schedule.compare(job)
        if result.failure:
            raise GpaError(_word_remedy(result.failure))
        return page

    def _find_description(self, shown: VisibleKernel) -> Path | None:
        """What describes its launches: beside its source, where people write it, or beside its report."""
        body = shown.kernel.body
        file = None if body is None else shown.profile.files.get(body[0])
        beside = [str(shown.profile.path)] if file is None else [file.local_path, str(shown.profile.path)]
        places = map(Path, map(find_description, beside))
        return next((one for one in places if one.is_file()), None)

    async def leave(self) -> None:
        """End everything."""
        await self._schedule.leave()

    # What the schedule asks and tells

    async def make_job(self, local_path: str) -> PredictedJob | None:
        """The texts as they are now."""
        return await self._predictions.make_job(local_path)

    def choose_target(self, local_path: str, kernel: str | None) -> Path:
        """In a file that goes with the session."""
        key = hashlib.blake2b(f"{local_path}\0{kernel or ''}".encode("utf-8", "surrogatepass"), digest_size=6)
        name = _UNSAFE.sub("_", Path(local_path).stem)[:_MOST_NAME]
        return self._client.make_folder() / f"{name}-{key.hexdigest()}.simulated.gpa-profile.json"

    def is_measured(self, local_path: str) -> bool:
        """Every kernel that is shown of it was measured, and there is one."""
        shown = self._read_snapshot().by_file.get(local_path, ())
        return bool(shown) and not any(one.kernel.report.is_simulated for one in shown)

    def take_simulated(self, result: SimulationResult, *, is_asked: bool) -> None:
        """A profile was written, or nothing could be simulated: whoever asked is told, and else the log."""
        source = result.job.base.path
        if result.words:
            self._loader.include(result.job.target)
            self._documents.take_unsimulated(str(source), "")
        for problem in result.problems:
            logger.info("%s: %s", source, problem)
        if not is_asked:
            if result.failure:
                logger.info("%s: not simulated: %s", source, result.failure)
            return
        if result.failure:
            self._client.warn(f"not simulated: {_word_remedy(result.failure)}")
            return
        measured = {
            one.kernel.report.mangled_name
            for one in self._read_snapshot().visible
            if not one.kernel.report.is_simulated
        }
        stay = f"; {_MEASURED_STAY}" if measured & set(result.kernels) else ""
        self._client.inform(f"simulated {'; '.join(result.words)}{stay}")

    def take_skipped(self, local_path: str, seconds: float) -> None:
        """Say why there are no simulated numbers; those of the text before are not shown beside what is new."""
        self._loader.exclude(self.choose_target(local_path, None))
        words = f"not simulated on save: it took {format_seconds(seconds)}; click to simulate"
        self._documents.take_unsimulated(local_path, words)

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        return self._client.start_progress(title, cancel)


def _word_remedy(failure: str) -> str:
    """What helps, in an editor.

    >>> _word_remedy("the GPU is not known; name one with --machine")
    'the GPU is not known; name one in gpaLsp.emulation.machine'
    """
    return failure.replace(_ON_COMMAND_LINE, _IN_EDITOR)


# When described launches are simulated: on request, and on save where that is known to be quick, or is
# not known yet.
#
# Knows nothing of the protocol; the server is its :class:`SimulationAudience`.

ASKED_S = 20.0  # For executing the blocks of a requested launch

_LONGEST_PAUSE = 16  # saves between two tries

_GIVEN_UP = "it was given up"

# A job whose texts are out of date may still end by itself within this time: that costs less than a process that starts cold
_PATIENCE_S = 1.0


class SimulationAudience(Protocol):
    """What this needs of the server. All of it is called on the event loop."""

    async def make_job(self, local_path: str) -> PredictedJob | None:
        """The texts as they are now; None when the source is not open, or nothing of it may be emulated."""
        ...

    def choose_target(self, local_path: str, kernel: str | None) -> Path:
        """Where the profile is written."""
        ...

    def is_measured(self, local_path: str) -> bool:
        """What is shown of it was measured, all of it."""
        ...

    def take_simulated(self, result: SimulationResult, *, is_asked: bool) -> None:
        """There is a new result: show it."""
        ...

    def take_skipped(self, local_path: str, seconds: float) -> None:
        """A save was not simulated, because that took so many seconds before: what is shown is of another text."""
        ...

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        ...


class _Request(Struct, frozen=True, kw_only=True):
    """What is to be simulated of a source: all that is described, or one requested kernel."""

    kernel: str | None = None
    is_asked: bool = False


class _Took(Struct, frozen=True, kw_only=True):
    """How long the launches of a description took to simulate, and how many saves are left that do not try again."""

    launches_text: str
    seconds: float
    pause: int
    left: int


class SimulationSchedule:
    """Keeps simulated profiles of open sources in step with what is saved.

    A source is simulated where it may be emulated. On save it is where its launches took no longer before than the user allows. Launches that turn
    out to be slow are tried again after one save, then after two, four and more, on request, or when they are described again.

    Args:
        audience: asks and is told.
        process: does the work; None for one of its own.
    """

    def __init__(self, audience: SimulationAudience, process: SimulationProcess | None = None) -> None:
        self._audience = audience
        self._process = process
        self._settings = Settings()
        self._wanted: dict[str, _Request] = {}
        self._took: dict[str, _Took] = {}
        self._done: dict[str, PredictedJob] = {}
        self._work: asyncio.Task[None] | None = None
        self._current: tuple[PredictedJob, asyncio.Task[object]] | None = None
        self._checks: set[asyncio.Task[None]] = set()
        self._comparisons: set[asyncio.Task[ComparisonResult]] = set()
        self._has_left = False

    def configure(self, settings: Settings, *, is_trusted: bool) -> None:
        """Take settings, and whether the user trusts the workspace; where nothing may be emulated (any more) work ends."""
        self._settings = settings
        if not is_trusted or not settings.emulates:
            self._stop()

    def saved(self, local_path: str) -> None:
        """A source was saved, or the description of its launches."""
        if self._settings.simulates_on_save and not self._has_left:
            known = self._wanted.get(local_path)
            self._request(local_path, known if known is not None and known.is_asked else _Request())

    def simulate_now(self, local_path: str, kernel: str | None) -> None:
        """Somebody asks for it.

        Args:
            kernel: mangled name; None for all that are described.
        """
        if not self._has_left:
            self._request(local_path, _Request(kernel=kernel, is_asked=True))

    async def compare(self, job: ComparisonJob) -> ComparisonResult:
        """Put a measured kernel beside the same as it is simulated."""
        task = asyncio.get_running_loop().create_task(self._compare(job))
        self._comparisons.add(task)
        task.add_done_callback(self._comparisons.discard)
        return await attend(task, job.profile) or ComparisonResult(failure=_GIVEN_UP)

    def closed(self, local_path: str) -> None:
        """A file was closed: what was asked of it is not wanted any more."""
        self._wanted.pop(local_path, None)
        self._done.pop(local_path, None)
        if self._current is not None and str(self._current[0].path) == local_path:
            self._current[1].cancel()

    async def leave(self) -> None:
        """End everything."""
        self._has_left = True
        self._stop()
        for task in (self._work, *self._checks):
            if task is not None:
                task.cancel()
        if self._process is not None:
            await self._process.leave()

    def _stop(self) -> None:
        self._wanted.clear()
        self._done.clear()
        if self._current is not None:
            self._current[1].cancel()
        for task in self._comparisons:
            task.cancel()

    def _request(self, local_path: str, request: _Request) -> None:
        self._wanted.pop(local_path, None)
        self._wanted[local_path] = request  # the latest one comes first
        loop = asyncio.get_running_loop()
        if self._current is not None and str(self._current[0].path) == local_path:
            loop.call_later(_PATIENCE_S, self._check, *self._current)
        if self._work is None or self._work.done():
            self._work = loop.create_task(self._work_off())

    def _check(self, base: PredictedJob, task: "asyncio.Task[object]") -> None:
        """Give work up whose texts are out of date by now."""
        check = asyncio.get_running_loop().create_task(self._give_up(base, task))
        self._checks.add(check)
        check.add_done_callback(self._checks.discard)

    async def _give_up(self, base: PredictedJob, task: "asyncio.Task[object]") -> None:
        if not task.done() and await self._audience.make_job(str(base.path)) != base:
            task.cancel()

    async def _work_off(self) -> None:
        while self._wanted and not self._has_left:
            local_path, request = self._wanted.popitem()
            base = await self._audience.make_job(local_path)
            if base is not None and (request.is_asked or self._is_due(local_path, base)):
                await self._simulate(local_path, base, request)

    def _is_due(self, local_path: str, base: PredictedJob) -> bool:
        """Whether a save simulates it."""
        if not base.launches_text or self._done.get(local_path) == base or self._audience.is_measured(local_path):
            return False
        took = self._took.get(local_path)
        if took is None or took.launches_text != base.launches_text or took.seconds <= self._settings.simulation_s:
            return True
        if not took.left:
            return True
        self._took[local_path] = replace(took, left=took.left - 1)
        self._audience.take_skipped(local_path, took.seconds)
        return False

    async def _simulate(self, local_path: str, base: PredictedJob, request: _Request) -> None:
        job = SimulationJob(
            base=base,
            kernel=request.kernel,
            target=self._audience.choose_target(local_path, request.kernel),
            seconds=ASKED_S if request.is_asked else self._settings.simulation_s,
            total_seconds=None if request.is_asked else self._settings.simulation_s,
        )
        result = await self._attend(base, self._run(job))
        if isinstance(result, SimulationResult):
            if request.kernel is None and not result.failure:
                self._note_time(local_path, base.launches_text, result.seconds)
            if request.kernel is None:
                self._done[local_path] = base
        elif request.is_asked:
            result = SimulationResult(job=job, failure=_GIVEN_UP)
        if isinstance(result, SimulationResult) and not self._has_left:
            self._audience.take_simulated(result, is_asked=request.is_asked)

    def _note_time(self, local_path: str, launches_text: str, seconds: float) -> None:
        """Keep how long it took; as long as it is too long, tries become rarer."""
        before = self._took.get(local_path)
        is_again = (
            before is not None
            and before.launches_text == launches_text
            and before.seconds > self._settings.simulation_s
        )
        pause = min(2 * before.pause, _LONGEST_PAUSE) if is_again and before is not None else 1
        self._took[local_path] = _Took(launches_text=launches_text, seconds=seconds, pause=pause, left=pause)

    def _find_process(self) -> SimulationProcess:
        if self._process is None:
            self._process = SimulationProcess()
        return self._process

    async def _compare(self, job: ComparisonJob) -> ComparisonResult:
        progress = LateProgress(self._audience.start_progress, f"Simulating {job.profile.name}")
        try:
            return await self._find_process().compare(job, progress.take)
        finally:
            progress.end()

    async def _run(self, job: SimulationJob) -> SimulationResult:
        progress = LateProgress(self._audience.start_progress, f"Simulating {job.base.path.name}")
        try:
            return await self._find_process().simulate(job, progress.take)
        finally:
            progress.end()

    async def _attend(self, base: PredictedJob, work: Coroutine[Any, Any, object]) -> object:
        """The result of some work; None when that was given up or failed."""
        task: asyncio.Task[object] = asyncio.get_running_loop().create_task(work)
        self._current = (base, task)
        try:
            return await attend(task, base.path)
        finally:
            self._current = None
