"""When fixes are tried: while their lines are looked at. Knows nothing of the protocol."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.late_imports import make_fix_jobs
from gpa_lsp.editor.protocol.source_scope import SourceScope, find_description, read_description
from gpa_lsp.editor.protocol.threads import call_in_thread
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.source.fixes import Fix, list_promised
from gpa_lsp.editor.verified.results import OfferedFix
from gpa_lsp.foundation.processes.async_worker import AsyncWorker, attend
from gpa_lsp.foundation.processes.supervision import WorkerKind
from gpa_lsp.report.fixes.results import (
    PENDING,
    UNKNOWN,
    FixJob,
    FixState,
    FixVerdict,
    LaunchedJob,
    LaunchedQuestion,
    LaunchedResult,
    add_launched,
)

logger = logging.getLogger(__name__)

_PAUSE_S = 0.2  # A cursor that moves on sooner has asked for nothing

# A job nobody waits for any more may still end by itself within this time: that costs less than a process that starts cold
_PATIENCE_S = 1.0

_MOST_WAIT_S = 1.0  # Somebody who takes a fix that is not compiled yet waits no longer than this

_GRACE_S = 30.0
_TELLING = frozenset({FixState.CHANGED, FixState.SAME})  # What advice can be held to
_MOST_TRIED = 6  # Of the fixes at one place, the best ones

_MOST_KEPT = 64
_MOST_EMULATION_S = 3.0  # For a fix; whoever wants more has the prediction


class FixProcess(AsyncWorker):
    """Compiles and emulates fixes; another one than that which compiles what is saved, which never waits for a fix."""

    def __init__(self) -> None:
        kind = WorkerKind(module="gpa_lsp.editor.verified.worker", title="fix process", niceness=10, idle_s=120.0)
        super().__init__(kind)

    async def try_fix(self, job: FixJob) -> FixVerdict:
        """What the compiler makes of a fix.

        Raises:
            ToolError: the process died, or hangs.
        """
        verdict: FixVerdict = await self.do(job, limit_s=2 * job.limit_s + _GRACE_S)
        return verdict

    async def compare_launches(self, job: LaunchedJob) -> LaunchedResult:
        """What its launches do, emulated or simulated.

        Raises:
            ToolError: the process died, or hangs.
        """
        result: LaunchedResult = await self.do(job, limit_s=2 * (job.base.limit_s + 6 * job.seconds) + _GRACE_S)
        return result


class VerifiedFixes:
    """Tries the fixes of the lines that were asked about last, and keeps what came of it.

    Nothing is tried but what :class:`~gpa_lsp.editor.protocol.unmeasured_sources.CompileSchedule` would compile on save: sources of a trusted
    workspace, where
    the user wants them compiled. When other lines are asked about, or the text changes, what was still to be tried is dropped.

    Args:
        read_open: the text of an open file.
        may_leave_edits: the client asks for the edits of a fix when it is looked at.
        tell: is told of fixes of which something new is known.
        process: does the work; None for one of its own.
    """

    def __init__(
        self,
        read_open: Callable[[str], str | None],
        *,
        may_leave_edits: bool,
        tell: Callable[[OfferedFix], None] = lambda offered: None,
        process: FixProcess | None = None,
    ) -> None:
        self.may_leave_edits = may_leave_edits
        self._read_open = read_open
        self._tell_of = tell
        self._process = process
        self._settings, self._scope = Settings(), SourceScope()
        self._offered: OrderedDict[str, OfferedFix] = OrderedDict()
        self._jobs: dict[str, FixJob] = {}
        self._verdicts: OrderedDict[FixJob, FixVerdict] = OrderedDict()
        self._answered: set[tuple[FixJob, LaunchedQuestion]] = set()
        self._watched: dict[str, None] = {}
        self._news: dict[str, asyncio.Event] = {}
        self._work: asyncio.Task[None] | None = None
        self._current: tuple[FixJob, asyncio.Task[FixVerdict] | asyncio.Task[LaunchedResult]] | None = None
        self._has_left = False
        self._seen_ahead: tuple[str, list[int]] = ("", [])

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; where nothing may be compiled (any more) work ends."""
        self._settings, self._scope = settings, SourceScope(roots=tuple(roots), is_trusted=is_trusted)
        if not self._may_run:
            self._stop()

    @property
    def _may_run(self) -> bool:
        return self._scope.is_trusted and self._settings.compiles_sources and not self._has_left

    # What features ask

    def offer(self, view: DocumentView, fixes: Sequence[Fix]) -> tuple[OfferedFix, ...]:
        """Fixes that somebody is about to see, with what is known of each; they are tried from now on, and those before them no more."""
        if not self._may_run or not self._scope.contains(view.local_path):
            return tuple(OfferedFix(key="", uri=view.uri, text=view.text, fix=fix, verdict=UNKNOWN) for fix in fixes)
        jobs = self._make_jobs(view, fixes)
        offered = tuple(self._keep(view, fix, job) for fix, job in zip(fixes, jobs, strict=True))
        self._watch([one.key for one in offered[:_MOST_TRIED]])
        known = [one for one in offered if one.verdict.state in _TELLING and one.fix.shown.kernel.untried is None]
        for one in known[:1]:
            self._tell_of(one)  # the profile was read again
        return offered

    def look_ahead(self, view: DocumentView) -> None:
        """Try the edits that the best advice of a document asks for, unless somebody looks at other ones, or they were tried before."""
        if not self._may_run or not self._scope.contains(view.local_path) or self._is_working:
            return
        kernels = view.snapshot.by_file.get(view.local_path, ())
        seen = (view.text, [id(shown.kernel.untried or shown.kernel.report) for shown in kernels])
        if seen == self._seen_ahead:
            return
        self._seen_ahead = seen
        fixes = list_promised(view)
        if any(job not in self._verdicts for job in self._make_jobs(view, fixes)):
            self.offer(view, fixes)

    def _make_jobs(self, view: DocumentView, fixes: Sequence[Fix]) -> tuple[FixJob, ...]:
        return make_fix_jobs(
            fixes,
            path=view.local_path,
            text=view.text,
            roots=self._scope.real_roots,
            architecture=self._settings.static_architecture,
            limit_s=self._settings.static_timeout_s,
        )

    def find_verdicts(self, view: DocumentView, fixes: Sequence[Fix]) -> list[FixVerdict]:
        """What is known of fixes by now; they are not tried."""
        return [self._verdicts.get(job, PENDING) for job in self._make_jobs(view, fixes)]

    def _keep(self, view: DocumentView, fix: Fix, job: FixJob) -> OfferedFix:
        words = (view.uri, job.kernel, job.text, job.edited)
        key = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        verdict = self._verdicts.get(job, PENDING)
        offered = OfferedFix(key=key, uri=view.uri, text=view.text, fix=fix, verdict=verdict)
        self._offered[key], self._jobs[key] = offered, job
        self._offered.move_to_end(key)
        while len(self._offered) > _MOST_KEPT:
            old, _ = self._offered.popitem(last=False)
            del self._jobs[old]
        return offered

    def find(self, key: str) -> OfferedFix | None:
        """One that was offered, with what is known of it by now; None for one that is forgotten."""
        offered = self._offered.get(key)
        return None if offered is None else replace(offered, verdict=self._verdicts.get(self._jobs[key], PENDING))

    async def wait(self, key: str) -> OfferedFix | None:
        """The same when something is known of it, or after a moment."""
        offered = self.find(key)
        if offered is None or offered.verdict is not PENDING or not self._may_run:
            return offered
        self._watch([key, *(one for one in self._watched if one != key)][:_MOST_TRIED], is_waiting=True)
        news = self._news.setdefault(key, asyncio.Event())
        try:
            await asyncio.wait_for(news.wait(), _MOST_WAIT_S)
        except TimeoutError:
            logger.debug("a fix is not compiled yet")
        return self.find(key)

    # What happens to documents

    def changed(self, local_path: str) -> None:
        """A document was edited, or closed: its fixes are others now."""
        if any(str(self._jobs[key].path) == local_path for key in self._watched if key in self._jobs):
            self._watch(())

    def _stop(self) -> None:
        self._watched = {}
        self._offered.clear()
        self._jobs.clear()
        self._verdicts.clear()
        self._answered.clear()
        if self._current is not None:
            self._current[1].cancel()

    async def leave(self) -> None:
        """End everything."""
        self._has_left = True
        self._stop()
        if self._work is not None:
            self._work.cancel()
        if self._process is not None:
            await self._process.leave()

    # The work

    def _watch(self, keys: Sequence[str], *, is_waiting: bool = False) -> None:
        """Try these, the first one first, and none of those that were to be tried before."""
        before, self._watched = self._watched, dict.fromkeys(keys)
        if self._is_working and not is_waiting and before.keys() == self._watched.keys():
            return
        loop = asyncio.get_running_loop()
        if self._current is not None:
            if not self._is_watched(self._current[0]):
                loop.call_later(_PATIENCE_S, self._give_up, self._current[1])
            return
        if self._work is not None:
            self._work.cancel()  # it pauses, and starts over
        if self._watched:
            self._work = loop.create_task(self._work_off(0.0 if is_waiting else _PAUSE_S))

    @property
    def _is_working(self) -> bool:
        return self._work is not None and not self._work.done()

    def _is_watched(self, job: FixJob) -> bool:
        return any(self._jobs.get(key) == job for key in self._watched)

    def _give_up(self, task: "asyncio.Task[FixVerdict] | asyncio.Task[LaunchedResult]") -> None:
        """End work that nobody has come back to meanwhile."""
        if self._current is not None and self._current[1] is task and not self._is_watched(self._current[0]):
            task.cancel()

    async def _work_off(self, pause_s: float) -> None:
        """Compile every watched fix, then emulate and simulate them."""
        await asyncio.sleep(pause_s)
        while self._may_run:
            jobs = [(key, self._jobs[key]) for key in self._watched if key in self._jobs]
            untried = next((one for one in jobs if one[1] not in self._verdicts), None)
            asked = ((key, job, question) for question in LaunchedQuestion for key, job in jobs)
            changed = next((one for one in asked if self._may_ask(*one[1:])), None)
            if untried is not None:
                await self._try(*untried)
            elif changed is not None:
                await self._ask(*changed)
            else:
                return

    def _may_ask(self, job: FixJob, question: LaunchedQuestion) -> bool:
        verdict = self._verdicts.get(job)
        is_changed = verdict is not None and verdict.state is FixState.CHANGED
        return is_changed and self._settings.emulates and (job, question) not in self._answered

    def _get_process(self) -> FixProcess:
        if self._process is None:
            self._process = FixProcess()
        return self._process

    async def _try(self, key: str, job: FixJob) -> None:
        task = asyncio.get_running_loop().create_task(self._get_process().try_fix(job))
        self._current = (job, task)
        try:
            verdict = await attend(task, job.path)
        finally:
            self._current = None
        if verdict is not None or not task.cancelled():
            self._take(job, verdict or UNKNOWN)
        self._tell(key)

    async def _ask(self, key: str, job: FixJob, question: LaunchedQuestion) -> None:
        """Emulate or simulate it, where a launch is described."""
        launched = await self._make_launched_job(job, question)
        self._answered.add((job, question))
        if launched is None:
            return
        task = asyncio.get_running_loop().create_task(self._get_process().compare_launches(launched))
        self._current = (job, task)
        try:
            result = await attend(task, job.path)
        finally:
            self._current = None
        verdict = self._verdicts.get(job)
        if task.cancelled():
            self._answered.discard((job, question))
        elif result is not None and result.sentence and verdict is not None:
            self._take(job, add_launched(verdict, result))
        self._tell(key)

    def _take(self, job: FixJob, verdict: FixVerdict) -> None:
        self._verdicts[job] = verdict
        while len(self._verdicts) > _MOST_KEPT:
            old, _ = self._verdicts.popitem(last=False)
            self._answered -= {(old, question) for question in LaunchedQuestion}

    def _tell(self, key: str) -> None:
        offered = self._offered.get(key)
        if offered is not None:
            self._tell_of(offered)
        news = self._news.pop(key, None)
        if news is not None:
            news.set()

    async def _make_launched_job(self, job: FixJob, question: LaunchedQuestion) -> LaunchedJob | None:
        description = find_description(str(job.path))
        open_text = self._read_open(description)
        text = open_text or ""
        if open_text is None:
            _, text = await call_in_thread(partial(read_description, description))
        if not text.strip():
            return None
        settings = self._settings
        return LaunchedJob(
            base=job,
            question=question,
            launches_path=Path(description),
            launches_text=text,
            machine=settings.emulation_machine,
            seconds=min(settings.emulation_s, _MOST_EMULATION_S),
            memory_bytes=settings.emulation_memory_bytes,
        )
