"""What the user is told about open files whose measurements cannot be shown; each once."""

from collections.abc import Callable

from gpa_lsp.lsp.documents import Documents
from gpa_lsp.lsp.settings import Settings


class Doubts:
    """Remembers what was said.

    Args:
        inform: says a sentence.
    """

    def __init__(self, inform: Callable[[str], None]) -> None:
        self._inform = inform
        self._told: set[str] = set()

    def tell(self, documents: Documents, settings: Settings) -> None:
        """Look at the open documents again."""
        for local_path, compiled_path, profile in documents.find_doubtful():
            self._say(
                compiled_path,
                f"{profile} was measured with {compiled_path}, which is not in this workspace; if {local_path} is "
                "that file, say so in gpaLsp.pathMappings (folder as compiled: folder here)",
            )
        if settings.shows_unverified_lines:
            return
        for local_path, profile in documents.find_unverified():
            self._say(
                local_path,
                f"{local_path} is not what {profile} was measured on, and there is no copy of that: nothing is shown on its lines. Measure "
                "again, record with --import-source yes, or set gpaLsp.showUnverifiedLines",
            )

    def _say(self, about: str, text: str) -> None:
        if about not in self._told:
            self._told.add(about)
            self._inform(text)
