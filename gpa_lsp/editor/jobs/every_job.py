"""All background jobs of a session: they are told of documents and settings together."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.editor.jobs.background_job import BackgroundJob, Site, SourceScope
from gpa_lsp.editor.jobs.predicted import Predictions
from gpa_lsp.editor.jobs.simulated import Simulations
from gpa_lsp.editor.jobs.static import StaticFindings
from gpa_lsp.editor.jobs.timed import LaunchTimes
from gpa_lsp.editor.jobs.verified import VerifiedFixes
from gpa_lsp.editor.permission import Display
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.source.fixes import OfferedFix


class Jobs:
    """The five.

    Args:
        site: the session.
        timing: asks whether launches may run, and tells how long they took.
        may_leave_edits: the client asks for the edits of a fix when it is looked at.
        tell: is told of fixes of which something new is known.
    """

    def __init__(
        self, site: Site, timing: Display, *, may_leave_edits: bool, tell: Callable[[OfferedFix], None]
    ) -> None:
        self._site = site
        self.predictions = Predictions(site)
        self.simulations = Simulations(site, self.predictions)
        self.times = LaunchTimes(site, self.predictions, timing)
        self.fixes = VerifiedFixes(site, may_leave_edits=may_leave_edits, tell=tell)
        static = StaticFindings(site, self.predictions.compiled)
        self._all: tuple[BackgroundJob[Any, Any], ...] = (
            self.predictions,
            static,
            self.simulations,
            self.times,
            self.fixes,
        )

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; without trust nothing is done, and nothing of it shown."""
        scope = SourceScope(roots=tuple(roots), is_trusted=is_trusted)
        for job in self._all:
            job.configure(settings, scope)

    def opened(self, local_path: str) -> None:
        """A document was opened."""
        for job in self._all:
            job.opened(local_path)

    def saved(self, local_path: str) -> None:
        """A document was saved."""
        self.opened(local_path)
        for job in self._all:
            job.saved(local_path)

    def described(self, description: Path) -> None:
        """Take a description that another program wrote."""
        self.predictions.opened(str(description))
        self.simulations.saved(os.path.realpath(description))

    def changed(self, local_path: str) -> None:
        """A document was edited."""
        for job in self._all:
            job.changed(local_path)

    def closed(self, local_path: str) -> None:
        """A document was closed."""
        for job in self._all:
            job.closed(local_path)

    async def leave(self) -> None:
        """End everything."""
        for job in self._all:
            await job.leave()
