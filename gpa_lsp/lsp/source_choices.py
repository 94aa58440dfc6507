"""What the user chose about sources that may have changed, by workspace: nobody is asked twice."""

import json
import logging
import os
from pathlib import Path

from gpa_lsp.basis.whole_files import atomic_write
from gpa_lsp.editor.settings import UnverifiedChoice
from gpa_lsp.history.location import find_database

logger = logging.getLogger(__name__)

_FILE_NAME = "sources.json"
_MAX_BYTES = 1 << 20
_MOST_WORKSPACES = 1000


class SourceChoices:
    """Choices on disk, beside the history. Reading and writing block on the file system: call them off the event loop.

    Args:
        file: where; None for the user's own.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file

    def find(self, workspace: Path) -> UnverifiedChoice | None:
        """What was chosen for a workspace; None where nobody was asked, or nothing can be read."""
        chosen = self._read().get(os.path.realpath(workspace))
        try:
            return None if chosen is None else UnverifiedChoice(chosen)
        except ValueError:
            return None

    def keep(self, workspace: Path, choice: UnverifiedChoice) -> None:
        """Remember a choice; where that cannot be done it holds until the server ends."""
        name = os.path.realpath(workspace)
        others = [(known, value) for known, value in self._read().items() if known != name]
        document = dict([*others, (name, choice.value)][-_MOST_WORKSPACES:])
        try:
            file = self._find_file()
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with atomic_write(file) as stream:
                json.dump(document, stream, indent=1)
        except OSError as error:
            logger.warning("what was chosen about sources is not remembered: %s", error)

    def _read(self) -> dict[str, str]:
        try:
            file = self._find_file()
            if file.stat().st_size > _MAX_BYTES:
                return {}
            document = json.loads(file.read_bytes())
        except (OSError, ValueError, RecursionError):
            return {}
        known = document.items() if isinstance(document, dict) else ()
        return {name: value for name, value in known if isinstance(value, str)}

    def _find_file(self) -> Path:
        if self._file is None:
            self._file = find_database().with_name(_FILE_NAME)
        return self._file
