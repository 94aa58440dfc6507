"""Files that appear whole or not at all: no reader meets half of one, and what was there stays when writing fails."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def open_whole(target: Path, *, encoding: str | None = "utf-8", errors: str = "strict") -> Iterator[IO[Any]]:
    r"""Open a file beside ``target`` that takes its place when the block ends well, and vanishes when it does not.

    Args:
        target: in a folder that is there. A file that is there already keeps its permissions.
        encoding: of a text, whose lines end in ``\n`` on every system; None for bytes.
        errors: what becomes of what the encoding has not.

    Raises:
        OSError: it cannot be written.
    """
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    beside = Path(name)
    try:
        stream: IO[Any]
        if encoding is None:
            stream = os.fdopen(handle, "wb")
        else:
            stream = os.fdopen(handle, "w", encoding=encoding, errors=errors, newline="\n")
        with stream:
            yield stream
        beside.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_read_umask())
        beside.replace(target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _read_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
