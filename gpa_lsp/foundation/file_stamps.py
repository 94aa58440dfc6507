"""What a file looked like: :class:`Stamp`."""

import os
from pathlib import Path

from msgspec import Struct


class Stamp(Struct, frozen=True, kw_only=True):
    """What a file looked like: two equal stamps mean the same content."""

    size_bytes: int  # length
    modified_ns: int  # modification time since 1970
    inode: int  # tells a file from another one renamed into its place


def read_stamp(path: str | Path) -> Stamp | None:
    """A file's stamp; None when it is gone or no regular file (a pipe would block its reader for ever)."""
    try:
        status = Path(path).stat()
    except OSError:
        return None
    if status.st_mode & 0o170000 != 0o100000:
        return None
    return make_stamp(status)


def make_stamp(status: os.stat_result) -> Stamp:
    """The stamp in a file's status."""
    return Stamp(size_bytes=status.st_size, modified_ns=status.st_mtime_ns, inode=status.st_ino)
