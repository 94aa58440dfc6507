"""JOB predicted: what the described launches of open sources do, emulated; then, blocks that are worth a try.

A source is emulated after it was compiled, and when the description of its launches is edited, saved, or written by others. Nothing of it runs on
this machine: it is compiled, and its device code is interpreted.
"""

import asyncio
import logging
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpa_lsp.editor.jobs.background_job import BackgroundJob, find_description, is_description, read_description
from gpa_lsp.editor.predicted.results import PredictedJob, PredictedResult, TrialsJob, TrialsResult
from gpa_lsp.editor.predicted.view import PredictedState, make_state
from gpa_lsp.editor.static.view import StaticResult
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.files import Stamp, read_stamp
from gpa_lsp.foundation.processes.supervision import WorkerKind

logger = logging.getLogger(__name__)

_WAIT_S = 5.0  # So long the compiler's answer is waited for, which is to be shown first
_PAUSE_S = 0.5  # Without an edit of the description before it counts


class Predictions(BackgroundJob[str, PredictedJob]):
    """Emulates open sources of a trusted workspace, in another process than that which compiles, so that static findings never wait for it."""

    process_kind = WorkerKind(module="gpa_lsp.editor.predicted.worker", title="prediction process", niceness=10)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._texts: dict[str, str] = {}  # as they were compiled last
        self._stamps: dict[str, Stamp | None] = {}  # of the descriptions, by the sources that are worked on
        self._measured_on: str | None = None  # GPU of the newest report of the workspace, now or before
        self._polling: asyncio.Task[None] | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether sources are emulated."""
        return self.settings.emulates

    def list_conditions(self) -> tuple[object, ...]:
        """Settings of compiling and emulating."""
        now = self.settings
        launch = (now.emulation_s, now.emulation_memory_bytes, now.emulation_machine, now.exploration_s)
        return (*launch, now.compiles_sources, now.static_architecture, now.static_timeout_s)

    def take_gpu(self, name: str | None) -> None:
        """The newest report of the workspace is of this GPU: what is predicted for another one is predicted again."""
        if name is not None and name != self._measured_on:
            self._measured_on = name
            for source in [*self.done]:
                self.request(source)

    def opened(self, local_path: str) -> None:
        """A file was opened, or saved. A source waits for its compiler's answer; a description counts at once."""
        if is_description(local_path):
            self._consider(local_path, 0.0)
        elif self.may_serve(local_path):
            self._stamps.setdefault(local_path, None)
            self._texts.pop(local_path, None)  # where nobody says that it was compiled, what the editor holds counts
            self.request(local_path, after_s=_WAIT_S if self.settings.compiles_sources else 0.0)
            if self._polling is None or self._polling.done():
                self._polling = self.start(self._poll())

    def compiled(self, result: StaticResult) -> None:
        """A text of a source was compiled: emulate that now, or where it has errors the last that had none."""
        source = str(result.path)
        self.drop_request(source)
        if not result.failure and self.may_serve(source) and source in self._stamps:
            if not result.has_failed:
                self._texts[source] = result.text
            self.request(source)

    def changed(self, local_path: str) -> None:
        """A description counts after a pause. An edit that tries a block is of the description as it was: it is offered no more."""
        if is_description(local_path):
            self._consider(local_path, _PAUSE_S)
            for source, state in self._list_described(local_path):
                if state is not None and state.trials:
                    self._put(source, replace(state, trials=()))

    def closed(self, local_path: str) -> None:
        """Forget a source; use the file again in place of a description."""
        if is_description(local_path):
            self._consider(local_path, 0.0)
            return
        self.drop(local_path)
        self._texts.pop(local_path, None)
        if local_path in self._stamps:
            del self._stamps[local_path]
            self._put(local_path, None)

    def forget(self) -> None:
        """Say nothing of any source."""
        self.site.documents.forget("predicted")
        self._texts.clear()
        self._stamps.clear()

    def _list_described(self, description: str) -> list[tuple[str, PredictedState | None]]:
        sources = [one for one in self._stamps if find_description(one) == description]
        return [(one, self.site.documents.find_findings(one).predicted) for one in sources]

    def _consider(self, description: str, pause_s: float) -> None:
        for source, _ in self._list_described(description):
            self.request(source, after_s=pause_s)

    async def _poll(self) -> None:
        """See descriptions that others write."""
        while self._stamps and self.may_run:
            await asyncio.sleep(self.settings.poll_seconds)
            for source in [*self._stamps]:
                stamp = await call_in_thread(partial(read_stamp, find_description(source)))
                if source in self._stamps and self._stamps[source] != stamp and not self.is_due(source):
                    self._stamps[source] = stamp
                    self.request(source)

    async def make(self, key: str) -> PredictedJob | None:
        """The text that was compiled last, or is open, and the description as it is now; None where the source is not open."""
        text, settings = self.site.documents.read_open(key), self.settings
        if text is None:
            return None
        stamp, launches_text = await read_description(self.site.documents, key)
        if stamp is not None and key in self._stamps:
            self._stamps[key] = stamp
        return PredictedJob(
            path=Path(key),
            text=self._texts.get(key, text),
            launches_path=Path(find_description(key)),
            launches_text=launches_text,
            roots=self.scope.real_roots,
            architecture=settings.static_architecture,
            machine=settings.emulation_machine,
            limit_s=settings.static_timeout_s,
            seconds=settings.emulation_s,
            memory_bytes=settings.emulation_memory_bytes,
            measured_on=self._measured_on,
        )

    async def make_job(self, local_path: str) -> PredictedJob | None:
        """Return the job for a source as the editor holds it now; None where it is not open, or may not be emulated."""
        job = await self.make(local_path) if self.may_serve(local_path) else None
        text = self.site.documents.read_open(local_path)
        return None if job is None or text is None else replace(job, text=text)

    async def serve(self, key: str, job: PredictedJob) -> None:
        """Show what was emulated, and then which blocks are worth a try; without a description, that there is none."""
        result: PredictedResult | None = PredictedResult(job=job)
        if job.launches_text:
            work = self.do(job, limit_s=job.most_s, title=f"Emulating {job.path.name}")
            result, _ = await asyncio.gather(work, call_in_thread(_warm_up))
        if result is None or key not in self._stamps or not self.may_run:
            return
        if result.failure or result.has_failed:
            logger.warning("%s: not emulated: %s", key, result.failure or "it does not compile")
        if not result.failure:  # then what was known stays
            self._put(key, make_state(result, known=self.site.documents.find_findings(key).predicted))
            self.site.refresh()
        if self.is_due(key):
            return  # other blocks are looked for then, even if it turns out to be the same job
        self.done[key] = job
        if self.settings.exploration_s > 0 and result.launches:
            await self._explore(key, job, self.settings.exploration_s)

    async def _explore(self, key: str, job: PredictedJob, seconds: float) -> None:
        work = self.do(TrialsJob(base=job, seconds=seconds), limit_s=job.most_s + 4 * seconds)
        found: TrialsResult | None = await work
        state = self.site.documents.find_findings(key).predicted
        for remark in () if found is None else found.remarks:
            logger.info("%s: %s", key, remark)
        if found is not None and state is not None and state.result.job == job and found.trials:
            self._put(key, replace(state, trials=found.trials))

    def _put(self, source: str, state: PredictedState | None) -> None:
        for path in (source, find_description(source)):
            self.site.documents.note(path, predicted=state)


def _warm_up() -> None:
    """Import what a prediction is unpickled into, while it is being made."""
    from gpa_lsp.execution.traces import line_facts, words  # noqa: F401
