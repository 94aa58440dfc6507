"""Files as they are met and made: opened where they are regular, stamped to tell whether they changed, and written whole or not at all."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError

DATA_VARIABLE = "GPA_LSP_DATA_DIR"  # Environment variable that takes the place of the platform's data folder
HEAD_BYTES = 4096  # How much of a file a reader sees when it decides whether it recognises it


def find_data_folder() -> Path:
    """The folder of a user's data: the one the environment names, else the platform's own; it may not exist."""
    chosen = os.environ.get(DATA_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path  # only where it is needed: it costs start-up time

    return user_data_path("gpa-lsp", appauthor=False)


def open_regular_file(path: Path) -> tuple[BufferedReader, int]:
    """Open a regular file for reading.

    The file is opened without blocking and asked what it is afterwards, so a pipe without a writer cannot hang us and nothing can be
    swapped in between.

    Returns:
        The stream at offset 0, which the caller closes, and the file's size in bytes.

    Raises:
        InputError: the file is missing, may not be read, or is not a regular file.
    """
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise InputError("there is no such file", path=path, remedy="check the name") from None
    except PermissionError:
        remedy = "give yourself read permission, or name a file in it if it is a folder"
        raise InputError("may not be read", path=path, remedy=remedy) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"cannot be opened ({reason})", path=path, remedy="check the name") from None
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode):
        return os.fdopen(descriptor, "rb"), found.st_size
    os.close(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise InputError("is a folder", path=path, remedy="name a file in it")
    raise InputError("is not a regular file", path=path, remedy="copy its content to a file and name that")


def read_head(path: Path) -> bytes:
    """The first :data:`HEAD_BYTES` bytes of a regular file.

    Raises:
        InputError: as :func:`open_regular_file`; also when reading fails.
    """
    stream, _ = open_regular_file(path)
    with stream:
        try:
            return stream.read(HEAD_BYTES)
        except OSError as error:
            raise InputError(f"cannot be read ({error.strerror})", path=path, remedy="check the disk") from None


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: it cannot be read, is larger than ``most_bytes``, or is a pipe, a device or a folder.
    """
    try:
        stream, size_bytes = open_regular_file(path)
    except InputError as error:
        raise OSError(errno.EINVAL, error.message) from error
    with stream:
        if size_bytes > most_bytes:
            raise OSError(errno.EFBIG, f"is larger than {most_bytes} bytes")
        return stream.read(most_bytes)


class Stamp(Struct, frozen=True, kw_only=True):
    """The state of a file at one moment: equal stamps mean equal content."""

    size_bytes: int  # length
    modified_ns: int  # modification time since 1970
    inode: int  # tells a file from another one renamed into its place


def read_stamp(path: str | Path) -> Stamp | None:
    """A file's stamp; None when it is gone or no regular file (a pipe would block its reader for ever)."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    return make_stamp(status) if stat.S_ISREG(status.st_mode) else None


def make_stamp(status: os.stat_result) -> Stamp:
    """The stamp in a file's status."""
    return Stamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns, inode=status.st_ino)


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
