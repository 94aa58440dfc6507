"""Files that appear whole or not at all: no reader meets half of one, and what was there stays when writing fails."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

# characters of the target's name in the name of the unfinished file, so that a long name stays within what file systems allow
_NAME_CHARACTERS = 40


@contextmanager
def atomic_write(
    target: Path, *, encoding: str | None = "utf-8", errors: str = "strict", mode: int | None = None
) -> Iterator[IO[Any]]:
    r"""Open a file beside ``target`` that takes its place when the block ends well, and vanishes when it does not.

    Devices and pipes, which cannot be replaced, are written to as they are.

    Args:
        target: in a folder that is there. A file that is there already keeps its permissions; of a link, the file it leads to is replaced.
        encoding: of a text, whose lines end in ``\n`` on every system; None for bytes.
        errors: what becomes of characters that the encoding lacks.
        mode: permissions the file gets, whatever was there; None keeps those it has, or gives those of the mask.

    Raises:
        OSError: it cannot be written.
    """
    real = Path(os.path.realpath(target))
    found = _read_status(real)
    if found is not None and not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        with _open_stream(os.open(real, os.O_WRONLY), encoding, errors) as stream:
            yield stream
        return
    import tempfile  # most processes that import this write nothing

    handle, name = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:_NAME_CHARACTERS]}.", suffix=".part")
    beside = Path(name)
    try:
        with _open_stream(handle, encoding, errors) as stream:
            yield stream
        if mode is None:
            mode = found.st_mode & 0o777 if found is not None else 0o666 & ~_read_umask()
        beside.chmod(mode)
        beside.replace(real)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _open_stream(handle: int, encoding: str | None, errors: str) -> IO[Any]:
    if encoding is None:
        return os.fdopen(handle, "wb")
    return os.fdopen(handle, "w", encoding=encoding, errors=errors, newline="\n")


def _read_status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except OSError:
        return None


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
