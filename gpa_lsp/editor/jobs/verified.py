"""JOB verified fixes: what the compiler, the emulator and the simulator make of fixes, while their lines are looked at."""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.jobs.background_job import BackgroundJob, Site, find_description, read_description
from gpa_lsp.editor.source.fixes import Fix, OfferedFix, list_promised
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
_MOST_WAIT_S = 1.0  # Somebody who takes a fix that is not compiled yet waits no longer than this
_GRACE_S = 30.0
_TELLING = frozenset({FixState.CHANGED, FixState.SAME})  # What advice can be held to
_MOST_TRIED = 6  # Of the fixes at one place, the best ones
_MOST_KEPT = 64
_MOST_EMULATION_S = 3.0  # For a fix; whoever wants more has the prediction

# A fix by its key, and what is asked of its launches; None for whether it compiles, and to what
_Question = tuple[str, LaunchedQuestion | None]


class VerifiedFixes(BackgroundJob[_Question, FixJob]):
    """Tries the fixes of the lines that were asked about last, and keeps what came of it.

    Nothing is tried but what would be compiled on save. When other lines are asked about, or the text changes, what was still to be tried is dropped.

    Args:
        site: the session.
        may_leave_edits: the client asks for the edits of a fix when it is looked at.
        tell: is told of fixes of which something new is known.
    """

    # Another process than that which compiles what is saved, which never waits for a fix
    process_kind = WorkerKind(module="gpa_lsp.report.fixes.trials", title="fix process", niceness=10, idle_s=120.0)

    def __init__(
        self, site: Site, *args: Any, may_leave_edits: bool, tell: Callable[[OfferedFix], None] = lambda offered: None
    ) -> None:
        super().__init__(site, *args)
        self.may_leave_edits = may_leave_edits
        self._tell_of = tell
        self._offered: OrderedDict[str, tuple[OfferedFix, FixJob]] = OrderedDict()
        self._verdicts: OrderedDict[FixJob, FixVerdict] = OrderedDict()
        self._answered: set[tuple[FixJob, LaunchedQuestion]] = set()
        self._watched: list[str] = []
        self._news: dict[str, asyncio.Event] = {}
        self._seen_ahead: tuple[str, list[int]] = ("", [])

    @property
    def is_wanted(self) -> bool:
        """Whether sources are compiled."""
        return self.settings.compiles_sources

    # What features ask

    def offer(self, view: DocumentView, fixes: Sequence[Fix]) -> tuple[OfferedFix, ...]:
        """Fixes that somebody is about to see, with what is known of each; they are tried from now on, and those before them no more."""
        if not self.may_serve(view.local_path):
            return tuple(OfferedFix(key="", uri=view.uri, text=view.text, fix=fix, verdict=UNKNOWN) for fix in fixes)
        jobs = self._make_jobs(view, fixes)
        offered = tuple(self._keep_offered(view, fix, job) for fix, job in zip(fixes, jobs, strict=True))
        self._watch([one.key for one in offered[:_MOST_TRIED]])
        known = [one for one in offered if one.verdict.state in _TELLING and one.fix.shown.kernel.untried is None]
        for one in known[:1]:
            self._tell_of(one)  # the profile was read again
        return offered

    def look_ahead(self, view: DocumentView) -> None:
        """Try the edits that the best advice of a document asks for, unless somebody looks at other ones, or they were tried before."""
        if not self.may_serve(view.local_path) or self.is_working:
            return
        kernels = view.snapshot.by_file.get(view.local_path, ())
        seen = (view.text, [id(shown.kernel.untried or shown.kernel.report) for shown in kernels])
        if seen != self._seen_ahead:
            self._seen_ahead = seen
            fixes = list_promised(view)
            if any(job not in self._verdicts for job in self._make_jobs(view, fixes)):
                self.offer(view, fixes)

    def _make_jobs(self, view: DocumentView, fixes: Sequence[Fix]) -> tuple[FixJob, ...]:
        from gpa_lsp.report.fixes.jobs import make_fix_job  # needs tree-sitter, which a start must not wait for

        return tuple(
            make_fix_job(
                fix.shown.kernel.report,
                fix.rewrite.edits,
                path=view.local_path,
                text=view.text,
                lines=fix.lines,
                roots=self.scope.real_roots,
                architecture=self.settings.static_architecture,
                limit_s=self.settings.static_timeout_s,
            )
            for fix in fixes
        )

    def find_verdicts(self, view: DocumentView, fixes: Sequence[Fix]) -> list[FixVerdict]:
        """Return the current verdicts on fixes, without trying them."""
        return [self._verdicts.get(job, PENDING) for job in self._make_jobs(view, fixes)]

    def _keep_offered(self, view: DocumentView, fix: Fix, job: FixJob) -> OfferedFix:
        words = (view.uri, job.kernel, job.text, job.edited)
        key = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        offered = OfferedFix(key=key, uri=view.uri, text=view.text, fix=fix, verdict=self._verdicts.get(job, PENDING))
        self._offered[key] = offered, job
        self._offered.move_to_end(key)
        if len(self._offered) > _MOST_KEPT:
            self._offered.popitem(last=False)
        return offered

    def find(self, key: str) -> OfferedFix | None:
        """One that was offered, with what is known of it by now; None for one that is forgotten."""
        offered, job = self._offered.get(key, (None, None))
        return None if offered is None or job is None else replace(offered, verdict=self._verdicts.get(job, PENDING))

    async def wait(self, key: str) -> OfferedFix | None:
        """The same when something is known of it, or after a moment."""
        offered = self.find(key)
        if offered is None or offered.verdict is not PENDING or not self.may_run:
            return offered
        self._watch([key, *(one for one in self._watched if one != key)][:_MOST_TRIED], is_waiting=True)
        try:
            await asyncio.wait_for(self._news.setdefault(key, asyncio.Event()).wait(), _MOST_WAIT_S)
        except TimeoutError:
            logger.debug("a fix is not compiled yet")
        return self.find(key)

    # When

    def changed(self, local_path: str) -> None:
        """The fixes of an edited document are others now."""
        if any(str(self._offered[key][1].path) == local_path for key in self._watched if key in self._offered):
            self._watch([])

    closed = changed

    def forget(self) -> None:
        """Offer nothing."""
        self._watched = []
        for known in (self._offered, self._verdicts, self._answered):
            known.clear()

    def _watch(self, keys: list[str], *, is_waiting: bool = False) -> None:
        """Try these, the first one first, and then ask of their launches; and none of those that were to be tried before."""
        if self.is_working and not is_waiting and set(self._watched) == set(keys):
            return
        self._watched = keys
        self.drop_requests()
        questions = [(key, question) for question in (None, *LaunchedQuestion) for key in keys]
        self.request(*questions, after_s=0.0 if is_waiting or self.current is not None else _PAUSE_S)
        self.review()

    # What

    async def make(self, key: _Question) -> FixJob | None:
        """A fix that is watched, and of which that is not known."""
        name, question = key
        job = self._offered[name][1] if name in self._watched and name in self._offered else None
        if job is None or question is None:
            return None if job in self._verdicts else job
        verdict = self._verdicts.get(job)
        is_changed = verdict is not None and verdict.state is FixState.CHANGED
        is_open = is_changed and self.settings.emulates and (job, question) not in self._answered
        return job if is_open else None

    async def serve(self, key: _Question, job: FixJob) -> None:
        """Compile it, or emulate or simulate it where a launch is described."""
        name, question = key
        if question is None:
            verdict: FixVerdict | None = await self.do(job, limit_s=2 * job.limit_s + _GRACE_S)
            if verdict is not None or not self.was_cancelled:
                self._take(job, verdict or UNKNOWN)
        else:
            await self._compare_launches(job, question)
        if name in self._offered:
            self._tell_of(self._offered[name][0])
        news = self._news.pop(name, None)
        if news is not None:
            news.set()

    async def _compare_launches(self, job: FixJob, question: LaunchedQuestion) -> None:
        _, text = await read_description(self.site.documents, str(job.path))
        if not text:
            self._answered.add((job, question))
            return
        launched = LaunchedJob(
            base=job,
            question=question,
            launches_path=Path(find_description(str(job.path))),
            launches_text=text,
            machine=self.settings.emulation_machine,
            seconds=min(self.settings.emulation_s, _MOST_EMULATION_S),
            memory_bytes=self.settings.emulation_memory_bytes,
        )
        limit_s = 2 * (job.limit_s + 6 * launched.seconds) + _GRACE_S
        result: LaunchedResult | None = await self.do(launched, limit_s=limit_s)
        verdict = self._verdicts.get(job)
        if not self.was_cancelled:
            self._answered.add((job, question))
        if result is not None and result.sentence and verdict is not None:
            self._take(job, add_launched(verdict, result))

    def _take(self, job: FixJob, verdict: FixVerdict) -> None:
        self._verdicts[job] = verdict
        if len(self._verdicts) > _MOST_KEPT:
            old, _ = self._verdicts.popitem(last=False)
            self._answered -= {(old, question) for question in LaunchedQuestion}
