"""Which commit was checked out when something was measured, from git's own log of that; git itself is not run.

The log is what `git reflog` prints. It is private to a working tree, so that linked ones and submodules have theirs; a measurement from before its
first entry (a clone that came later) belongs to no commit anybody knows.

Source: git, "gitrepository-layout" (gitfile, logs/HEAD), and "git-reflog".
"""

import re
from functools import lru_cache
from pathlib import Path

from gpa_lsp.basis.errors import InputError
from gpa_lsp.basis.file_stamps import Stamp, read_stamp
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.profile.opening import open_regular_file
from gpa_lsp.report.time_course import Commit

_MOST_FOLDERS = 64
_MOST_LINK_BYTES = 4096
_MOST_LOG_BYTES = 1 << 20
"""Of the end of the log: thousands of entries."""

_MOST_SUBJECT_CHARS = 120
_SECOND_NS = 1_000_000_000

_ENTRY = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t\n]*? (\d{1,12}) [-+]\d{4}(?:\t([^\n]*))?")
_SUBJECT = re.compile(r"(?:commit(?: \([a-z]+\))?|cherry-pick|rebase(?: -i)? \((?:pick|reword)\)): (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """What became the checked out commit.

    Attributes:
        digest: of the commit.
        begun_s: since when, since 1970.
        message: what git did.
    """

    digest: str
    begun_s: int
    message: str


def find_commit(path: Path, measured_ns: int) -> Commit | None:
    """What was checked out in the working tree of a file or folder at a moment.

    Args:
        path: absolute; it need not be there any more.
        measured_ns: since 1970.

    Returns:
        None outside of working trees, and where the log does not reach back that far.
    """
    folder = _find_repository(path)
    if folder is None:
        return None
    log = folder / "logs" / "HEAD"
    stamp = read_stamp(log)
    if stamp is None:
        return None
    try:
        entries = _read_log(log, stamp)
    except (OSError, InputError):
        return None
    measured_s = measured_ns // _SECOND_NS
    entry = next((one for one in reversed(entries) if one.begun_s <= measured_s), None)
    if entry is None or not entry.digest.strip("0"):
        return None
    return Commit(digest=entry.digest, subject=_find_subject(entries, entry.digest))


def _find_repository(path: Path) -> Path | None:
    """The folder git keeps of the working tree: ``.git``, or where a file of that name says it is."""
    for folder in (path, *path.parents)[:_MOST_FOLDERS]:
        found = folder / ".git"
        try:
            if found.is_dir():
                return found
            if not found.exists():
                continue
            stream, _ = open_regular_file(found)
            with stream:
                text = stream.read(_MOST_LINK_BYTES).decode("utf-8", "surrogateescape")
        except (OSError, InputError, ValueError):
            return None
        target = text.partition("\n")[0].removeprefix("gitdir: ").rstrip("\r")
        return folder / target if text.startswith("gitdir: ") and "\0" not in target else None
    return None


@lru_cache(maxsize=8)
def _read_log(log: Path, stamp: Stamp) -> tuple[_Entry, ...]:
    """The entries of a log, oldest first: of a state of the file, since a profile has many kernels."""
    stream, _ = open_regular_file(log)
    with stream:
        stream.seek(max(0, stamp.size_bytes - _MOST_LOG_BYTES))
        found = (_ENTRY.fullmatch(line) for line in stream.read(_MOST_LOG_BYTES).split(b"\n"))
    return tuple(
        _Entry(
            digest=entry[1].decode("ascii"), begun_s=int(entry[2]), message=(entry[3] or b"").decode("utf-8", "replace")
        )
        for entry in found
        if entry is not None
    )


def _find_subject(entries: tuple[_Entry, ...], digest: str) -> str:
    """The first line of a commit's message, where it was made in this working tree."""
    for entry in reversed(entries):
        found = _SUBJECT.fullmatch(entry.message) if entry.digest == digest else None
        if found is not None:
            return found[1][:_MOST_SUBJECT_CHARS]
    return ""
