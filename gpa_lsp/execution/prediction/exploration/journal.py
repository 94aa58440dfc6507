"""Journal of an exploration as a file of JSON lines: :class:`Journal`. An exploration that was stopped goes on where it was.

The first line is the subject; each further line is one configuration. Lines are appended as they are known, and a last line that was cut off by a
crash is dropped.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct

from gpa_lsp import __version__
from gpa_lsp.execution.prediction.exploration.model import RankedConfiguration
from gpa_lsp.foundation.errors import InputError, MismatchError
from gpa_lsp.foundation.files import atomic_write, open_regular_file
from gpa_lsp.foundation.json_records import make_record, read_record
from gpa_lsp.foundation.numbers import format_bytes

JOURNAL_FORMAT = "gpa-lsp/exploration/1"
MAX_JOURNAL_BYTES = 1 << 30
MAX_LINE_CHARACTERS = 1 << 16

_REMEDY = "choose another file, or delete this one to start over"


class Subject(Struct, frozen=True, kw_only=True):
    """Subject of an exploration; two with the same subject can be joined."""

    kernel: str  # mangled name
    device: str  # name of the machine
    mode: str  # of the model
    threads: tuple[int, int, int]  # elements in x, y, z
    digest: str  # of the code, the launch's arguments and the model's version, in hex


def digest_texts(*texts: str) -> str:
    """Digest of the texts that decide the results of an exploration, in hex."""
    return hashlib.sha256("\0".join((__version__, *texts)).encode("utf-8", "surrogatepass")).hexdigest()


class Journal:
    """A journal that is open for appending.

    Used as a context manager.

    Args:
        path: made when it is missing, and continued when it is there.
        subject: of the exploration.

    Raises:
        InputError: the file is something else, or cannot be read or written.
        MismatchError: it is about another subject.
    """

    def __init__(self, path: Path, subject: Subject) -> None:
        self._path = path
        self.done: tuple[RankedConfiguration, ...] = ()
        """Configurations that the file held when it was opened."""
        try:
            if path.exists() and not path.is_file():
                raise InputError("is not a regular file", path=path, remedy=_REMEDY)
            size = path.stat().st_size if path.exists() else 0
            kept = self._read(subject, size) if size else 0
            if not kept:
                with atomic_write(path, encoding=None) as stream:
                    stream.write(_write_line({"format": JOURNAL_FORMAT, **make_record(subject)}))
            self._stream = path.open("r+b", buffering=0)
            if kept:
                self._stream.truncate(kept)
            self._end = self._stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise self._fail(error) from error

    def _read(self, subject: Subject, size: int) -> int:
        """Take what is there; returns the bytes of whole lines."""
        if size > MAX_JOURNAL_BYTES:
            raise InputError(f"is larger than {format_bytes(MAX_JOURNAL_BYTES)}", path=self._path, remedy=_REMEDY)
        kept = 0
        done: list[RankedConfiguration] = []
        stream, _ = open_regular_file(self._path)
        with stream:
            for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_CHARACTERS), b""), start=1):
                if not line.endswith(b"\n") and number > 1:
                    break  # cut off while it was written
                value = self._parse(line, number)
                if number == 1:
                    self._check_subject(value, subject)
                else:
                    remedy = f"line {number}: {_REMEDY}"
                    done.append(read_record(value, RankedConfiguration, path=self._path, remedy=remedy))
                kept += len(line)
        self.done = tuple({one.configuration: one for one in done}.values())
        return kept

    def _parse(self, line: bytes, number: int) -> Any:
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(
                "is not a journal of an exploration", path=self._path, place=f"line {number}", remedy=_REMEDY
            ) from error

    def _check_subject(self, value: Any, subject: Subject) -> None:
        if not isinstance(value, dict) or value.get("format") != JOURNAL_FORMAT:
            raise InputError(f"is not {JOURNAL_FORMAT}", path=self._path, place="/format", remedy=_REMEDY)
        found = read_record(value, Subject, path=self._path, remedy=f"line 1: {_REMEDY}")
        if found == subject:
            return
        names = [name for name in Subject.__struct_fields__ if getattr(found, name) != getattr(subject, name)]
        what = names[0] if names != ["digest"] else "code, arguments or model"
        raise MismatchError(f"was made for another {what}", path=self._path, place="line 1", remedy=_REMEDY)

    def add(self, found: Iterable[RankedConfiguration]) -> None:
        """Append configurations; they are on disk when this returns.

        Raises:
            InputError: it cannot be written.
        """
        lines = b"".join(_write_line(make_record(one)) for one in found)
        try:
            written = 0
            while written < len(lines):
                written += self._stream.write(lines[written:])
            os.fsync(self._stream.fileno())
        except OSError as error:
            with contextlib.suppress(OSError):
                self._stream.truncate(self._end)  # removes half a line, which other readers could not read
            raise self._fail(error) from error
        self._end += len(lines)

    def _fail(self, error: OSError) -> InputError:
        return InputError(f"cannot be used: {error.strerror or error}", path=self._path, remedy="choose another file")

    def __enter__(self) -> "Journal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del kind, error, traceback
        self._stream.close()


def _write_line(record: dict[str, Any]) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
