"""Choices that a person made by a command, kept per workspace for every editor until they choose again.

Not a setting: nobody wrote it into a file, and it is not shared with those who work on the same project. Where it cannot be read or written, the
choice holds for as long as the server lives.
"""

import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.profile.collect.allowance import find_allowance_file

_LOG = logging.getLogger(__name__)

SCHEMA = "gpa-lsp/choices/1"

_FILE_NAME = "choices.json"
_MAX_BYTES = 1 << 20
_MOST_WORKSPACES = 500
_MOST_NAMES = 64
_LONGEST_NAME = 100


class KeptChoices:
    """The choices, on disk.

    Args:
        file: where; None for the user's own.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._workspace = ""

    def configure(self, roots: Sequence[Path]) -> None:
        """The folders of the workspace; the first one stands for it."""
        self._workspace = os.path.realpath(roots[0]) if roots else ""

    def read_names(self, choice: str) -> tuple[str, ...] | None:
        """The names that were chosen in this workspace; None where nothing was."""
        chosen = self._read().get(self._workspace, {}).get(choice)
        return check_names(chosen) if isinstance(chosen, list) else None

    def keep_names(self, choice: str, names: Sequence[str] | None) -> None:
        """Remember what was chosen in this workspace; None takes the choice back."""
        known = self._read()
        own = {**known.pop(self._workspace, {}), choice: None if names is None else list(names)}
        known[self._workspace] = {name: value for name, value in own.items() if value is not None}
        latest = dict(list(known.items())[-_MOST_WORKSPACES:])
        file = self._find_file()
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with atomic_write(file) as stream:
                json.dump({"schema": SCHEMA, "workspaces": latest}, stream, indent=1)
        except OSError as error:
            _LOG.warning("%s cannot be written, so that what was chosen is forgotten with the server: %s", file, error)

    def _find_file(self) -> Path:
        if self._file is None:
            self._file = find_allowance_file().with_name(_FILE_NAME)
        return self._file

    def _read(self) -> dict[str, dict[str, Any]]:
        file = self._find_file()
        try:
            if file.stat().st_size > _MAX_BYTES:
                raise ValueError("too large")
            document = json.loads(file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            _LOG.warning("%s is not read: %s", file, error)
            return {}
        if not isinstance(document, dict) or document.get("schema") != SCHEMA:
            return {}
        workspaces = document.get("workspaces")
        if not isinstance(workspaces, dict):
            return {}
        return {name: dict(chosen) for name, chosen in workspaces.items() if isinstance(chosen, dict)}


def check_names(names: Sequence[Any]) -> tuple[str, ...]:
    """Keep the strings among names from a client or a file, each once.

    >>> check_names(["share", 3, "share", "line"])
    ('share', 'line')
    """
    sound = (name for name in names if isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME)
    return tuple(dict.fromkeys(sound))[:_MOST_NAMES]
