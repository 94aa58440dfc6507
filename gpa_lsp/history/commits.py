"""Which commit was checked out when something was measured, from git's own log of that; git itself is not run.

The log is what `git reflog` prints. It is private to a working tree, so that linked ones and submodules have theirs; a measurement from before its
first entry (a clone that came later) belongs to no commit anybody knows.

Source: git, "gitrepository-layout" (gitfile, logs/HEAD), and "git-reflog".
"""

import os
import re
import stat
from functools import lru_cache
from pathlib import Path

from gpa_lsp.basis.file_stamps import Stamp, read_stamp
from gpa_lsp.basis.lazy_dataclass import dataclass
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
    except OSError:
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
            text = _read_end(found, _MOST_LINK_BYTES).decode("utf-8", "surrogateescape")
        except (OSError, ValueError):
            return None
        target = text.partition("\n")[0].removeprefix("gitdir: ").rstrip("\r")
        return folder / target if text.startswith("gitdir: ") and "\0" not in target else None
    return None


@lru_cache(maxsize=8)
def _read_log(log: Path, stamp: Stamp) -> tuple[_Entry, ...]:
    """The entries of a log, oldest first: of a state of the file, since a profile has many kernels."""
    del stamp
    found = (_ENTRY.fullmatch(line) for line in _read_end(log, _MOST_LOG_BYTES).split(b"\n"))
    return tuple(
        _Entry(
            digest=entry[1].decode("ascii"), begun_s=int(entry[2]), message=(entry[3] or b"").decode("utf-8", "replace")
        )
        for entry in found
        if entry is not None
    )


def _read_end(path: Path, most_bytes: int) -> bytes:
    """The end of a file, opened without blocking: nothing of what is no regular file, such as a pipe without a writer.

    Raises:
        OSError: it cannot be read.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            return b""
        os.lseek(descriptor, max(0, facts.st_size - most_bytes), os.SEEK_SET)
        return os.read(descriptor, most_bytes)
    finally:
        os.close(descriptor)


def _find_subject(entries: tuple[_Entry, ...], digest: str) -> str:
    """The first line of a commit's message, where it was made in this working tree."""
    for entry in reversed(entries):
        found = _SUBJECT.fullmatch(entry.message) if entry.digest == digest else None
        if found is not None:
            return found[1][:_MOST_SUBJECT_CHARS]
    return ""
