"""What is said of open sources without a profile: what their code says, and then what emulating it shows."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.lines.positions import UnitCounter
from gpa_lsp.editor.settings import Settings
from gpa_lsp.lsp.client import Client
from gpa_lsp.lsp.predictions import Predictions
from gpa_lsp.lsp.static_findings import StaticFindings


class UnmeasuredSources:
    """Both, in this order.

    Args:
        documents: what is open.
        client: the editor.
        units: counts columns for it.
        refresh: lets it ask again for what it shows.
    """

    def __init__(self, documents: Documents, client: Client, units: UnitCounter, refresh: Callable[[], None]) -> None:
        self.predictions = Predictions(documents, client, units, refresh)
        """What emulating them shows."""
        self._static = StaticFindings(documents, refresh, self.predictions.compiled)

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them."""
        self.predictions.configure(settings, roots, is_trusted=is_trusted)
        self._static.configure(settings, roots, is_trusted=is_trusted)

    def opened(self, uri: str) -> None:
        """A document was opened, or saved."""
        self.predictions.opened(uri)
        self._static.opened(uri)

    def changed(self, uri: str) -> None:
        """A document was edited."""
        self._static.changed(uri)
        self.predictions.changed(uri)

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        self._static.closed(uri)
        self.predictions.closed(uri)

    async def leave(self) -> None:
        """End everything."""
        await self._static.leave()
        await self.predictions.leave()
