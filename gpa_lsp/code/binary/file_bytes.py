"""A file that is read piece by piece but can be sliced like bytes."""

from pathlib import Path
from types import TracebackType
from typing import Self

from gpa_lsp.foundation.errors import InputError

_CHUNK_BYTES = 1 << 20


class FileBytes:
    """Slices and searches a file without loading it whole.

    Not a memory map: a program that is rebuilt while it is open would then end this process with a bus error, where reading only comes
    back short.

    Args:
        path: a regular file; others (pipes, devices) could block for ever and are refused.

    Raises:
        InputError: it cannot be read.
    """

    __slots__ = ("_file", "_length", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            if path.exists() and not path.is_file():
                raise InputError("this is not a regular file", path=path, remedy="give the path of a file")
            self._file = path.open("rb", buffering=0)
        except OSError as error:
            raise self._unreadable(error) from error
        self._length = self._file.seek(0, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, piece: slice) -> bytes:
        """The bytes of a slice with a step of 1.

        Raises:
            InputError: the file cannot be read any more.
        """
        start, stop, _ = piece.indices(self._length)
        parts: list[bytes] = []
        try:
            self._file.seek(start)
            while start < stop and (part := self._file.read(stop - start)):
                parts.append(part)
                start += len(part)
        except OSError as error:
            raise self._unreadable(error) from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def find(self, wanted: bytes, start: int, stop: int) -> int:
        """Offset of the first occurrence that lies within ``start`` and ``stop``, -1 when there is none."""
        while start < stop:
            chunk = self[start : min(start + _CHUNK_BYTES, stop)]
            found = chunk.find(wanted)
            if found >= 0:
                return start + found
            if len(chunk) < _CHUNK_BYTES:
                return -1
            start += len(chunk) - len(wanted) + 1
        return -1

    def _unreadable(self, error: OSError) -> InputError:
        return InputError(
            f"the file cannot be read ({error.strerror or error})",
            path=self.path,
            remedy="check the path and the permissions",
        )
