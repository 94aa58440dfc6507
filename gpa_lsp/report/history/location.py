"""Where the history is, and what its file system can do."""

import contextlib
import os
import stat
from pathlib import Path

from gpa_lsp.foundation.errors import InputError

FOLDER_VARIABLE = "GPA_LSP_DATA_DIR"
FILE_NAME = "history.db"

_REMEDY = f"set {FOLDER_VARIABLE} to a folder that can be written, to remember measurements there"

# File systems other machines may write to at the same time
_SHARED_FILE_SYSTEMS = frozenset(
    {
        "9p", "afs", "beegfs", "ceph", "cifs", "drvfs", "fhgfs", "fuse.ceph", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs",
        "lustre", "ncpfs", "nfs", "nfs4", "panfs", "pvfs2", "smb3", "smbfs", "virtiofs", "vboxsf", "wekafs",
    }
)  # fmt: skip


def find_database() -> Path:
    """The user's history: in the folder the environment names, else where the platform keeps data."""
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / FILE_NAME
    from platformdirs import user_data_path  # only where it is needed: it costs start-up time

    return user_data_path("gpa-lsp", appauthor=False) / FILE_NAME


def prepare_file(path: Path) -> None:
    """Make the folder and an empty file that only the user can read, where they are not there yet: sources are private.

    Raises:
        InputError: it cannot be made or written, or something else has its name.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
        descriptor = os.open(path, flags, 0o600)  # SQLite gives the files beside it the same mode
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"measurements are not remembered: {reason}", path=path, remedy=_REMEDY) from None
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise InputError("measurements are not remembered: this is not a file", path=path, remedy=_REMEDY)
        if os.name == "posix" and facts.st_mode & 0o077:
            with contextlib.suppress(OSError):  # another user's, who may have meant it
                os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)


def measure_bytes(path: Path) -> int | None:
    """What a history takes on disk, with what is not yet merged into it; None when there is none."""
    sizes = []
    for file in (path, Path(f"{os.path.realpath(path)}-wal")):
        with contextlib.suppress(OSError):
            sizes.append(file.stat().st_size)
    return sum(sizes) if sizes else None


def is_shared_between_machines(path: Path, mounts: str | None = None) -> bool:
    """Whether other machines may open the file too. A write-ahead log needs shared memory, which they have not.

    Known on Linux only; elsewhere only network shares of Windows are told.

    Args:
        mounts: the text of ``/proc/self/mountinfo``; None reads it.

    Source:
        proc(5), "/proc/pid/mountinfo"; SQLite, "Write-Ahead Logging", disadvantage 1.
    """
    real = os.path.realpath(path)
    if real.startswith(("\\\\", "//")):
        return True
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
        except OSError:
            return False
    best_length, kind = -1, ""
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        parts = fields.split(" ")
        if len(parts) < 5 or not rest:
            continue
        point = _unescape(parts[4])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best_length:  # of several mounts on one point the last one is seen
            best_length, kind = len(point), rest.split(" ", 1)[0]
    return kind in _SHARED_FILE_SYSTEMS


def _unescape(text: str) -> str:
    r"""A mount point as written by the kernel, with octal escapes.

    >>> _unescape(r"/my\040data")
    '/my data'
    """
    for code, character in (("040", " "), ("011", "\t"), ("012", "\n"), ("134", "\\")):
        text = text.replace("\\" + code, character)
    return text
