"""Open an input file that may be anything: a folder, a pipe, a device, nothing at all. Only regular files are read."""

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

from gpa_lsp.foundation.errors import InputError

HEAD_BYTES = 4096  # How much of a file a reader sees when it decides whether it recognises it


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
