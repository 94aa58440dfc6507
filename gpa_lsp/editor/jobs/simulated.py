"""JOB simulated: what described launches do on a GPU, cycle by cycle, as profiles that are read like measured ones.

Launches are simulated on request, and on save where that is known to be quick, or is not known yet.
"""

import logging
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.jobs.background_job import BackgroundJob, Site, list_sources
from gpa_lsp.editor.jobs.predicted import Predictions
from gpa_lsp.editor.predicted.results import PredictedJob, SimulationJob, SimulationResult
from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.processes.supervision import WorkerKind

logger = logging.getLogger(__name__)

ASKED_S = 20.0  # For executing the blocks of a requested launch
_LONGEST_PAUSE = 16  # saves between two tries of what took too long
_PROFILE = "simulated.gpa-profile.json"


class _Took(Struct, frozen=True):
    launches_text: str  # the description
    seconds: float  # its launches took
    pause: int  # saves that do not try again, each time twice as many
    left: int  # of these


class Simulations(BackgroundJob[str, PredictedJob]):
    """Simulates described launches of open sources.

    Args:
        site: the session.
        predictions: know which texts a source and its description have now, and where they may be emulated.
    """

    process_kind = WorkerKind(
        module="gpa_lsp.editor.simulated.worker", title="simulation process", niceness=10, idle_s=120.0
    )

    def __init__(self, site: Site, predictions: Predictions, *args: Any) -> None:
        super().__init__(site, *args)
        self._predictions = predictions
        self._asked: dict[str, str | None] = {}  # source → mangled name of a kernel; None for all that are described
        self._took: dict[str, _Took] = {}

    @property
    def is_wanted(self) -> bool:
        """Whether sources may be emulated."""
        return self.settings.emulates

    def saved(self, local_path: str) -> None:
        """A source was saved, or the description of its launches."""
        for source in list_sources(self.site.documents, local_path) if self.settings.simulates_on_save else ():
            self.request(source)

    def closed(self, local_path: str) -> None:
        """Drop the request for a source."""
        self.drop(local_path)
        self.site.documents.note(local_path, unsimulated=None)

    def forget(self) -> None:
        """Show nothing that was simulated."""
        self._asked.clear()
        self.site.exclude(None)

    async def simulate(self, local_path: str, kernel: str | None) -> bool:
        """Request a simulation of a source or description; False where nothing of it may be emulated.

        Args:
            kernel: mangled name; None for all that are described.
        """
        source = next(iter(list_sources(self.site.documents, local_path)), local_path)
        if await self.make(source) is None:
            return False
        self._asked[source] = kernel
        self.request(source)
        return True

    async def make(self, key: str) -> PredictedJob | None:
        """The texts as they are now; None where the source is not open, or nothing of it may be emulated."""
        return await self._predictions.make_job(key)

    def is_done(self, key: str, job: PredictedJob) -> bool:
        """Whether the launches were simulated; explicit requests are served again."""
        return key not in self._asked and super().is_done(key, job)

    async def serve(self, key: str, job: PredictedJob) -> None:
        """Simulate, and show the profile."""
        is_asked, kernel, limit_s = key in self._asked, self._asked.pop(key, None), self.settings.simulation_s
        if not is_asked and not self._is_due(key, job):
            return
        asked = SimulationJob(
            base=job,
            kernel=kernel,
            target=self.name_file(job.path, _PROFILE, kernel or ""),
            seconds=ASKED_S if is_asked else limit_s,
            total_seconds=None if is_asked else limit_s,
        )
        result: SimulationResult | None = await self.do(
            asked, limit_s=asked.most_s, title=f"Simulating {job.path.name}"
        )
        if result is not None and kernel is None:
            self.done[key] = job
            if not result.failure:
                self._note_time(key, job.launches_text, result.seconds)
        if self.may_run and (result is not None or is_asked):
            self._show(result or SimulationResult(job=asked, failure="it was cancelled"), is_asked=is_asked)

    def _is_due(self, source: str, base: PredictedJob) -> bool:
        """Whether a save simulates it; where that took too long before, rarely."""
        shown = self.site.read_snapshot().by_file.get(source, ())
        is_measured = bool(shown) and not any(one.kernel.report.is_simulated for one in shown)
        if not base.launches_text or is_measured:
            return False
        took = self._took.get(source)
        is_slow = took is not None and took.launches_text == base.launches_text and self._is_long(took.seconds)
        if took is None or not is_slow or not took.left:
            return True
        self._took[source] = replace(took, left=took.left - 1)
        self.site.exclude(self.name_file(base.path, _PROFILE))  # of the text before
        words = f"not simulated on save: it took {format_seconds(took.seconds)}; click to simulate"
        self.site.documents.note(source, unsimulated=words)
        return False

    def _is_long(self, seconds: float) -> bool:
        return seconds > self.settings.simulation_s

    def _note_time(self, source: str, launches_text: str, seconds: float) -> None:
        before = self._took.get(source)
        is_again = before is not None and before.launches_text == launches_text and self._is_long(before.seconds)
        pause = min(2 * before.pause, _LONGEST_PAUSE) if before is not None and is_again else 1
        self._took[source] = _Took(launches_text, seconds, pause, pause)

    def _show(self, result: SimulationResult, *, is_asked: bool) -> None:
        """Show the result; failures and words go to the user who asked, or else to the log."""
        source = result.job.base.path
        if result.words:
            self.site.include(result.job.target)
            self.site.documents.note(str(source), unsimulated=None)
        for problem in result.problems:
            logger.info("%s: %s", source, problem)
        if result.failure and is_asked:
            self.site.warn(f"not simulated: {word_remedy(result.failure)}")
        elif result.failure:
            logger.info("%s: not simulated: %s", source, result.failure)
        elif is_asked:
            reports = (one.kernel.report for one in self.site.read_snapshot().visible)
            measured = {one.mangled_name for one in reports if not one.is_simulated}
            stay = "; measured numbers stay on the lines" if measured & set(result.kernels) else ""
            self.site.inform(f"simulated {'; '.join(result.words)}{stay}")


def word_remedy(failure: str) -> str:
    """Replace command-line options in a failure's remedy by the editor's settings.

    >>> word_remedy("the GPU is not known; name one with --machine")
    'the GPU is not known; name one in gpaLsp.emulation.machine'
    """
    return failure.replace("with --machine", "in gpaLsp.emulation.machine")
