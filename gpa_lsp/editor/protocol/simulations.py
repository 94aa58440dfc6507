"""Simulated launches of open sources, from the editor's events to the profiles that are read like measured ones."""

import hashlib
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel
from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.launch_descriptions import DESCRIPTION_SUFFIX, find_description
from gpa_lsp.editor.protocol.loader import ProfileLoader, ProgressDisplay
from gpa_lsp.editor.protocol.predictions import Predictions
from gpa_lsp.editor.protocol.simulation_schedule import ASKED_S, SimulationProcess, SimulationSchedule
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.simulated.results import ComparisonJob, SimulationResult
from gpa_lsp.editor.snapshot import Snapshot, VisibleKernel
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_seconds

logger = logging.getLogger(__name__)

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_NAME = 60
_ON_COMMAND_LINE, _IN_EDITOR = "with --machine", "in gpaLsp.emulation.machine"
_MEASURED_STAY = "measured numbers stay on the lines"


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
