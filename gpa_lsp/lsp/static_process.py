"""The server's end of the process that compiles."""

from gpa_lsp.lsp.static_results import StaticJob, StaticResult
from gpa_lsp.lsp.staying_process import StayingProcess

_GRACE_S = 30.0
"""What is looked at after the compiler's own limit may take this long."""


class StaticProcess(StayingProcess):
    """Compiles sources and looks at their code."""

    def __init__(self) -> None:
        super().__init__("gpa_lsp.lsp.static_worker", "static analysis process")

    async def examine(self, job: StaticJob) -> StaticResult:
        """The result of a job; see :meth:`StayingProcess.do`.

        Raises:
            ToolError: the process died, or hangs.
        """
        result = await self.do(job, limit_s=job.limit_s + _GRACE_S)
        assert isinstance(result, StaticResult)
        return result
