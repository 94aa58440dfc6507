"""Catalogue of the records of compile commands that builds leave behind.

Each member defines ``COMMAND_SOURCES``. Records are only read: no build tool, and no program that a record names, is ever run.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes

LARGEST_RECORD_BYTES = 64 << 20
MOST_COMMANDS = 100_000


class CompileCommand(Struct, frozen=True, kw_only=True):
    """One command of a build."""

    directory: Path  # it runs in, absolute
    words: tuple[str, ...]  # of the command, without the compiler; empty while ``line`` is not split
    file: Path | None  # the source it compiles, absolute; None for flags that hold for every source below ``directory``
    is_cuda: bool = True  # the compiler is one of CUDA C++
    # as a shell would get it; None when ``words`` has it all. Split only when it is needed, because a database may have 100,000.
    line: str | None = None


class CommandSource(Struct, frozen=True, kw_only=True):
    """One kind of record."""

    names: tuple[str, ...]  # of the files, patterns as in :func:`fnmatch.fnmatchcase`; the first that is there is taken
    # gives the commands in such a file. Raises InputError for one that cannot be used.
    read: Callable[[Path], Iterator[CompileCommand]]
    rank: int  # where one folder has several records, the lowest is asked first


def read_record(path: Path) -> str:
    """The text of a record.

    Raises:
        InputError: it cannot be read, or is too large.
    """
    try:
        if not path.is_file():
            raise InputError("this is not a regular file", path=path)
        with path.open("rb") as stream:
            content = stream.read(LARGEST_RECORD_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read ({error})", path=path, remedy="check the permissions") from error
    if len(content) > LARGEST_RECORD_BYTES:
        raise InputError(
            f"it is larger than {format_bytes(LARGEST_RECORD_BYTES)}",
            path=path,
            remedy="remove what does not belong to this project",
        )
    return content.decode("utf-8", "surrogateescape")
