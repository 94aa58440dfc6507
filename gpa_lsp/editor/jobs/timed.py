"""JOB timed: how long the described launches of saved sources take on the GPU of this computer, once the user has agreed.

A process that stays and holds a GPU's context runs them. Nothing is asked and nothing appears where there is no GPU; the status line says so.
"""

import asyncio
from pathlib import Path
from typing import Any

from gpa_lsp.editor.jobs.background_job import BackgroundJob, Site, list_sources
from gpa_lsp.editor.jobs.predicted import Predictions
from gpa_lsp.editor.permission import Display, Permission, find_workspace
from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.editor.timed.view import LookJob, LookResult, SampleJob, SampleResult, TimedJob, TimedResult, make_state
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.supervision import WorkerKind
from gpa_lsp.gpu.device.cuda_driver import is_driver_installed
from gpa_lsp.profile.collect.explain import ask_to_time

_SHOWN = ("gpa-lsp", "profile", "--launches", "*.launch.toml")  # What is confirmed: how it would be run in a shell


def _make_kind(title: str, idle_s: float) -> WorkerKind:
    """A CUDA context reserves more address space than any limit would allow; what the process holds itself is looked at after each job."""
    module = "gpa_lsp.editor.timed.worker"
    return WorkerKind(module=module, title=title, niceness=0, memory_bytes=0, most_own_bytes=2 << 30, idle_s=idle_s)


class LaunchTimes(BackgroundJob[str, PredictedJob]):
    """Times described launches of open sources when they are saved, and then samples one launch more of each.

    Args:
        site: the session.
        predictions: know which texts a source and its description have now, and where they may be run.
        display: asks the user, and tells them.
    """

    process_kind = _make_kind("timing process", 300.0)

    def __init__(self, site: Site, predictions: Predictions, display: Display, *args: Any) -> None:
        super().__init__(site, *args)
        self._predictions, self._display = predictions, display
        self._permission = Permission(display, None, lambda workspace, *_: ask_to_time(workspace, self._gpu.gpu))
        # What a save cuts short here does not cost the context of the other process.
        self._sampler = AsyncWorker(_make_kind("sampling process", 30.0))
        self._gpu = LookResult()
        self._unsampled = ""

    @property
    def is_wanted(self) -> bool:
        """Whether launches are timed: a command of the user's that measures comes first."""
        now = self.settings
        has_command = now.profile_command is not None and now.profiles_on_save
        return now.times_on_save and now.emulates and not has_command

    def saved(self, local_path: str) -> None:
        """A source was saved, or the description of its launches."""
        for source in list_sources(self.site.documents, local_path):
            self.request(source)

    def closed(self, local_path: str) -> None:
        """Forget a source's times."""
        self.drop_request(local_path)
        self.site.documents.note(local_path, timed=None)

    def forget(self) -> None:
        """Show no times."""
        self.site.documents.forget("timed")

    async def make(self, key: str) -> PredictedJob | None:
        """The texts as they are now; None where the source is not open, or nothing of it may be run."""
        return await self._predictions.make_job(key)

    async def serve(self, key: str, job: PredictedJob) -> None:
        """Time it, where launches are described, there is a GPU, and the user agrees."""
        if not job.launches_text:
            self.site.documents.note(key, timed=None)
            return
        workspace = find_workspace(self.scope.roots, job.path)
        if not await self._find_gpu() or workspace is None:
            return
        if not await self._permission.is_given(workspace, None, _SHOWN, is_explicit=False):
            return
        if await self.make(key) != job:  # the answer has taken its time
            self.request(key)
        elif not self.is_due(key):
            self._permission.use()
            await self._time(key, job)

    async def _find_gpu(self) -> str:
        """The name of the GPU, looked for once; empty where there is none."""
        if not self._gpu.gpu and not self._gpu.reason:
            found: LookResult | None = LookResult(reason="no NVIDIA driver is installed")
            if await call_in_thread(is_driver_installed):
                found = await self.do(LookJob(), limit_s=LookJob().most_s)
            self._gpu = found or self._gpu
            if found is not None and not found.gpu:
                self._display.explain(f"launches are not timed here: {found.reason}")
        return self._gpu.gpu

    async def _time(self, source: str, base: PredictedJob) -> None:
        bar = self._display.start_progress(f"Timing {base.path.name}", self.cancel)
        bar.report("timing launches", None)
        words, job = "cancelled", TimedJob(base=base, kept=self.name_file(base.path, "timings"))
        try:
            result: TimedResult | None = await self.do(job, limit_s=job.most_s)
            if result is None or not self.may_run:
                return
            words = self._take(source, result)
            if result.times and not self._unsampled and not self.is_due(source):
                bar.report("taking samples", None)
                await self._sample(job.kept, self.name_file(base.path, "timed.gpa-profile.json"))
        finally:
            bar.end(words)

    def _take(self, source: str, result: TimedResult) -> str:
        """Show it; how it ended, in a few words."""
        for problem in result.problems:
            self._display.log(f"{source}: {problem}")
        if not result.times:
            self._display.log(f"{source}: not timed: {result.failure}")
            self._display.show_times(f"not timed: {result.failure}")
            return "failed"
        state = make_state(result, self.site.documents.find_findings(source).timed)
        self.site.documents.note(source, timed=state)
        self.site.refresh()
        self._display.show_times("; ".join(f"{one.time.name} {one.words}" for one in state.changes))
        return "timed"

    async def _sample(self, kept: Path, target: Path) -> None:
        job = SampleJob(kept=kept, target=target)
        result: SampleResult | None = await self.do(job, limit_s=job.most_s, process=self._sampler)
        if result is None or not self.may_run:
            return
        if result.samples:
            self.site.include(target)
        else:  # said once, and not tried again
            self._unsampled = result.reason
            self._display.log(f"launches are timed, not sampled: {result.reason}")
            self._display.explain(f"launches are timed, not sampled: {result.reason}")

    async def leave(self) -> None:
        """End everything."""
        await asyncio.gather(super().leave(), self._sampler.leave())
