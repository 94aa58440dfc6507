"""What the code of open documents says, from the editor's events to what is shown of it."""

from collections.abc import Callable, Sequence
from pathlib import Path

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.static.results import StaticResult
from gpa_lsp.lsp.compile_schedule import CompileSchedule


class StaticFindings:
    """What compiling sources found, for what shows it.

    Args:
        documents: what is open.
        refresh: lets the client ask again for what it shows.
        tell: told each result, after it is shown.
    """

    def __init__(self, documents: Documents, refresh: Callable[[], None], tell: Callable[[StaticResult], None]) -> None:
        self._documents = documents
        self._refresh = refresh
        self._tell_result = tell
        self._schedule = CompileSchedule(self)

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; without trust nothing is compiled and nothing is said."""
        if not settings.compiles_sources or not is_trusted:
            self._documents.forget_statics()
        self._schedule.configure(settings, roots, self._documents.list_open(), is_trusted=is_trusted)

    def opened(self, uri: str) -> None:
        """A document was opened, or saved."""
        self._tell(uri, self._schedule.opened)

    def changed(self, uri: str) -> None:
        """A document was edited."""
        self._tell(uri, self._schedule.changed)

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        self._tell(uri, self._schedule.closed)

    async def leave(self) -> None:
        """End everything."""
        await self._schedule.leave()

    def _tell(self, uri: str, tell: Callable[[str], None]) -> None:
        local_path = self._documents.find_local_path(uri)
        if local_path is not None:
            tell(local_path)

    # What the schedule asks and tells

    def read_open(self, local_path: str) -> str | None:
        """The text of an open file."""
        return self._documents.read_open(local_path)

    def take_static(self, result: StaticResult) -> None:
        """A source was compiled: show what its code says."""
        self._documents.take_static(result)
        self._refresh()
        self._tell_result(result)
