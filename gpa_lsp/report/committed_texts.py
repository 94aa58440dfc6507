"""Text of a file at the time of a measurement, from its git repository.

git is asked, and nothing of the repository is run: only the two plumbing commands that look up a commit and print a blob are used, which know no
hooks, filters, pagers, aliases or external diffs; the user's and the system's settings are not read; and no transport is allowed, because a
repository that lacks objects names a program to fetch them with.
"""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.foundation.processes.search_paths import clean_environment, find_program
from gpa_lsp.foundation.processes.watched_command import TimeLimits, run_limited

_LIMITS = TimeLimits.for_work(2.0)
_MOST_BYTES = 8 << 20
_NS_PER_S = 1_000_000_000
_CONTROL = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = (
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "protocol.allow=never",
)


class CommittedTexts:
    """Queries to git; each commit is looked up once.

    Attributes:
        is_asked: git may be asked. In a workspace that is not trusted it is not.
    """

    def __init__(self, *, is_asked: bool = True) -> None:
        self._git = find_program("git") if is_asked else None
        self._commits: dict[tuple[Path, int], str | None] = {}

    def find(self, path: Path, measured_ns: int) -> str | None:
        """Text of a file in the last commit before a time; None without repository, git, such a commit or the file in it.

        Args:
            path: of the file, links resolved.
            measured_ns: since 1970.
        """
        key = (path.parent, measured_ns // _NS_PER_S)
        if self._git is None:
            return None
        if key not in self._commits:
            self._commits[key] = self._find_commit(*key)
        commit = self._commits[key]
        text = None if commit is None else self._ask(path.parent, ["cat-file", "blob", f"{commit}:./{path.name}"])
        return None if text is None else text.decode("utf-8", errors="surrogateescape")

    def _find_commit(self, folder: Path, moment_s: int) -> str | None:
        """Last first-parent commit before a time."""
        found = self._ask(folder, ["rev-list", "-1", "--first-parent", f"--before={moment_s}", "HEAD"])
        commit = "" if found is None else found.decode("ascii", errors="replace").strip()
        return commit if commit.isalnum() else None

    def _ask(self, folder: Path, arguments: Sequence[str]) -> bytes | None:
        """Output of a git command; None where it fails or is too long."""
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        command = [str(self._git), "--no-pager", *settings, *arguments]
        try:
            with run_limited(
                "git",
                command,
                _LIMITS,
                folder=folder,
                output=subprocess.PIPE,
                errors=subprocess.DEVNULL,
                environment=_clean(os.environ),
            ) as process:
                assert process.stdout is not None
                said = process.stdout.read(_MOST_BYTES + 1)
                if len(said) > _MOST_BYTES:
                    process.kill()
        except ToolError:
            return None
        return said if process.returncode == 0 else None


def _clean(environment: Mapping[str, str]) -> dict[str, str]:
    """Environment without variables that redirect git or make it run programs."""
    plain = {name: value for name, value in environment.items() if not name.startswith("GIT_")}
    return {**clean_environment(plain), **_CONTROL}
