"""The server's end of the process that predicts."""

from collections.abc import Callable
from typing import TypeVar

from gpa_lsp.lsp.predicted_results import (
    PageJob,
    PageResult,
    PredictedJob,
    PredictedResult,
    TemplateJob,
    TemplateResult,
    TrialsJob,
    TrialsResult,
)
from gpa_lsp.lsp.staying_process import StayingProcess
from gpa_lsp.lsp.worker_messages import Step

Tell = Callable[[Step], None]
_Result = TypeVar("_Result", PredictedResult, TrialsResult, PageResult, TemplateResult)


class PredictedProcess(StayingProcess):
    """Emulates sources, looks for launch configurations, and writes pages and descriptions."""

    def __init__(self) -> None:
        super().__init__("gpa_lsp.lsp.predicted_worker", "prediction process")

    async def predict(self, job: PredictedJob, tell: Tell | None = None) -> PredictedResult:
        """The prediction.

        Raises:
            ToolError: the process died, or hangs; so do the others.
        """
        return _check(await self.do(job, limit_s=job.most_s, tell=tell), PredictedResult)

    async def find_trials(self, job: TrialsJob) -> TrialsResult:
        """Launch configurations that are worth a try."""
        return _check(await self.do(job, limit_s=job.base.most_s + 4 * job.seconds), TrialsResult)

    async def write_page(self, job: PageJob) -> PageResult:
        """A page of HTML."""
        return _check(await self.do(job, limit_s=2 * job.base.most_s), PageResult)

    async def write_template(self, job: TemplateJob) -> TemplateResult:
        """A description to begin with."""
        return _check(await self.do(job, limit_s=job.base.most_s), TemplateResult)


def _check(result: object, kind: type[_Result]) -> _Result:
    assert isinstance(result, kind)
    return result
