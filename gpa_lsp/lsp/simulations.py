"""Simulated launches of open sources, from the editor's events to the profiles that are read like measured ones."""

import hashlib
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.predicted.results import PredictedJob
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.simulated.results import SimulationResult
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.lsp.client import Client
from gpa_lsp.lsp.launch_descriptions import DESCRIPTION_SUFFIX, find_description
from gpa_lsp.lsp.loader import ProfileLoader, ProgressDisplay
from gpa_lsp.lsp.predictions import Predictions
from gpa_lsp.lsp.simulation_schedule import SimulationProcess, SimulationSchedule

logger = logging.getLogger(__name__)

_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_MOST_NAME = 60
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

    def configure(self, settings: Settings, *, is_trusted: bool) -> None:
        """Take settings, and whether the user trusts the workspace; without trust nothing that was simulated is shown."""
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
            uri: of the source, or of its description.
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
        if result.words:
            self._loader.include(result.job.target)
        source = result.job.base.path
        for problem in result.problems:
            logger.info("%s: %s", source, problem)
        if not is_asked:
            if result.failure:
                logger.info("%s: not simulated: %s", source, result.failure)
            return
        if result.failure:
            self._client.warn(f"not simulated: {result.failure}")
            return
        measured = {
            one.kernel.report.mangled_name
            for one in self._read_snapshot().visible
            if not one.kernel.report.is_simulated
        }
        stay = f"; {_MEASURED_STAY}" if measured & set(result.kernels) else ""
        self._client.inform(f"simulated {'; '.join(result.words)}{stay}")

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        return self._client.start_progress(title, cancel)
