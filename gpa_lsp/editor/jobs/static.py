"""JOB static: what the code of open sources says. When they are opened and saved, their text is compiled and looked at."""

import logging
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.editor.jobs.background_job import BackgroundJob, Site
from gpa_lsp.editor.static.view import StaticJob, StaticResult, take_result
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.supervision import WorkerKind

logger = logging.getLogger(__name__)

_GRACE_S = 30.0  # What is looked at after the compiler's own limit may take this long


class StaticFindings(BackgroundJob[str, StaticJob]):
    """Compiles open sources of a trusted workspace: with our own compiler, and flags from a list.

    Args:
        site: the session.
        compiled: told each result, after it is shown.
    """

    process_kind = WorkerKind(module="gpa_lsp.editor.static.worker", title="static analysis process")

    def __init__(
        self, site: Site, compiled: Callable[[StaticResult], None], process: AsyncWorker | None = None
    ) -> None:
        super().__init__(site, process)
        self._compiled = compiled

    @property
    def is_wanted(self) -> bool:
        """Whether sources are compiled."""
        return self.settings.compiles_sources

    def list_conditions(self) -> tuple[object, ...]:
        """Settings of compiling."""
        return (self.settings.static_architecture, self.settings.static_timeout_s)

    def opened(self, local_path: str) -> None:
        """A source was opened, or saved."""
        if self.may_serve(local_path):
            self.request(local_path)

    def closed(self, local_path: str) -> None:
        """Forget a source."""
        self.drop(local_path)
        self.site.documents.note(local_path, statics=None)

    def forget(self) -> None:
        """Say nothing of any code."""
        self.site.documents.forget("statics")

    async def make(self, key: str) -> StaticJob | None:
        """The text as the editor holds it."""
        text = self.site.documents.read_open(key)
        if text is None:
            return None
        return StaticJob(
            path=Path(key),
            text=text,
            roots=self.scope.real_roots,
            architecture=self.settings.static_architecture,
            limit_s=self.settings.static_timeout_s,
        )

    async def serve(self, key: str, job: StaticJob) -> None:
        """Show what the code says."""
        result: StaticResult | None = await self.do(job, limit_s=job.limit_s + _GRACE_S)
        if result is None or not self.may_run or self.site.documents.read_open(key) is None:
            return
        self.done[key] = job
        for remark in (*result.remarks, result.failure):
            if remark:
                logger.info("%s: %s", key, remark)
        known = self.site.documents.find_findings(key).statics
        self.site.documents.note(key, statics=take_result(known, result))
        self.site.refresh()
        self._compiled(result)
