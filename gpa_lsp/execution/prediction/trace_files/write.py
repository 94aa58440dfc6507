"""Traces into folders of Parquet files, piece by piece: :class:`TraceWriter` takes what an emulation gives and keeps none of it in memory."""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Any

from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.prediction.trace_files.arrow import BLOCK, build_accesses_table, build_table, load_pyarrow
from gpa_lsp.execution.prediction.trace_files.head import HEAD_NAME, take_head, write_head
from gpa_lsp.foundation.errors import InputError

# The columns of :mod:`gpa_lsp.execution.emulator.trace`; one row group per piece in each file. Blocks are those that were traced.
ACCESSES_NAME, BRANCHES_NAME, ENTRIES_NAME, BLOCKS_NAME = (
    "accesses.parquet",
    "branches.parquet",
    "entries.parquet",
    "blocks.parquet",
)

NAMES = (ACCESSES_NAME, BRANCHES_NAME, ENTRIES_NAME, BLOCKS_NAME)


class TraceWriter:
    """A :class:`~gpa_lsp.execution.emulator.model.TraceSink` that writes.

    Used as a context manager: the files get their names when all of them are written, the head last, so that an error leaves what was there, and
    a folder without a head is a trace that was never finished.

    Args:
        folder: made when it is missing. Files of an earlier trace in it are replaced at the end; a folder that holds other things is refused.

    Raises:
        InputError: the folder cannot be used.
        MissingToolError: pyarrow is not installed.
    """

    def __init__(self, folder: Path) -> None:
        load_pyarrow()
        self._folder = folder
        self._writers: dict[str, Any] = {}
        self._last: Trace | None = None
        self._pieces = 0
        self._is_complete = True
        _prepare(folder)

    def add(self, piece: Trace) -> None:
        """Write one piece.

        Raises:
            InputError: it is of another launch than the first, or cannot be written.
        """
        if self._last is not None and (piece.kernel, piece.grid) != (self._last.kernel, self._last.grid):
            raise InputError("a trace holds one launch, not two", path=self._folder, remedy="use two folders")
        pyarrow, _ = load_pyarrow()
        tables = (
            build_accesses_table(piece.accesses),
            build_table(piece.branches),
            build_table(piece.entries),
            pyarrow.table({BLOCK: pyarrow.array(piece.traced_blocks)}),
        )
        try:
            for name, table in zip(NAMES, tables, strict=True):
                self._write(name, table)
        except OSError as error:
            raise _fail_to_write(self._folder, error) from error
        self._last = piece
        self._pieces += 1
        self._is_complete = self._is_complete and piece.is_complete

    def _write(self, name: str, table: Any) -> None:
        """One row group, however many rows: the reader takes them apart by it."""
        _, parquet = load_pyarrow()
        if name not in self._writers:
            self._writers[name] = parquet.ParquetWriter(_part(self._folder, name), table.schema, compression="zstd")
        self._writers[name].write_table(table, row_group_size=max(1, table.num_rows))

    def __enter__(self) -> "TraceWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        del error, traceback
        try:
            for writer in self._writers.values():
                with contextlib.suppress(OSError) if kind is not None else contextlib.nullcontext():
                    writer.close()
            if kind is None and self._last is not None:
                head = take_head(self._last, is_complete=self._is_complete, pieces=self._pieces)
                write_head(head, _part(self._folder, HEAD_NAME))
                _give_names(self._folder)
        except OSError as failure:
            raise _fail_to_write(self._folder, failure) from failure
        finally:
            with contextlib.suppress(OSError):
                _remove_parts(self._folder)
                self._folder.rmdir()  # only where it is empty: nothing was traced


def _part(folder: Path, name: str) -> Path:
    return folder / f".{name}.part"


def _prepare(folder: Path) -> None:
    """Make the folder; what an ended process left unfinished in it goes."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_parts(folder)
        others = sorted(path.name for path in folder.iterdir() if path.name not in (*NAMES, HEAD_NAME))
    except OSError as error:
        raise _fail_to_write(folder, error) from error
    if others:
        message = f"the folder holds other things ({others[0]})"
        raise InputError(message, path=folder, remedy="choose an empty folder, or one that is not there")


def _give_names(folder: Path) -> None:
    (folder / HEAD_NAME).unlink(missing_ok=True)
    for name in (*NAMES, HEAD_NAME):
        _part(folder, name).replace(folder / name)


def _remove_parts(folder: Path) -> None:
    for name in (*NAMES, HEAD_NAME):
        _part(folder, name).unlink(missing_ok=True)


def _fail_to_write(folder: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written: {error.strerror or error}", path=folder, remedy="choose another folder")
