"""Traces out of folders of Parquet files, one piece at a time."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path
from typing import Any

from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.prediction.trace_files.arrow import (
    load_pyarrow,
    read_accesses,
    read_blocks,
    read_branches,
    read_entries,
)
from gpa_lsp.execution.prediction.trace_files.head import TraceHead, read_head
from gpa_lsp.execution.prediction.trace_files.write import (
    ACCESSES_NAME,
    BLOCKS_NAME,
    BRANCHES_NAME,
    ENTRIES_NAME,
    NAMES,
)
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.regular_files import open_regular_file

MAX_PIECE_ROWS = 1 << 28  # Row groups that say they are longer are refused before they are read

_REMEDY = "trace the kernel again with gpa-lsp trace"


def read_pieces(folder: Path) -> Iterator[Trace]:
    """The pieces of a trace, in the order they were written.

    Args:
        folder: what :class:`~gpa_lsp.execution.prediction.trace_files.write.TraceWriter` wrote.

    Raises:
        InputError: a file is missing, damaged, or does not go with the others.
        MissingToolError: pyarrow is not installed.
    """
    head = read_head(folder)
    with ExitStack() as stack:
        files = {name: stack.enter_context(_open(folder / name)) for name in NAMES}
        for name, file in files.items():
            if file.num_row_groups != head.pieces:
                message = f"holds {file.num_row_groups} pieces, not {head.pieces}"
                raise InputError(message, path=folder / name, remedy=_REMEDY)
        for number in range(head.pieces):
            yield _read_piece(head, folder, files, number)


def _open(path: Path) -> Any:
    pyarrow, parquet = load_pyarrow()
    try:
        stream, _ = open_regular_file(path)  # a pipe would never end
        stream.close()
        return parquet.ParquetFile(path)
    except (OSError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(f"cannot be read: {_fold(error)}", path=path, remedy=_REMEDY) from error


def _read_piece(head: TraceHead, folder: Path, files: dict[str, Any], number: int) -> Trace:
    def read(name: str, take: Callable[[Any], Any]) -> Any:
        return _read_group(folder / name, files[name], number, take)

    accesses = read(ACCESSES_NAME, read_accesses)
    branches = read(BRANCHES_NAME, read_branches)
    entries = read(ENTRIES_NAME, read_entries)
    traced = read(BLOCKS_NAME, read_blocks)
    blocks = {
        ACCESSES_NAME: accesses.block,
        BRANCHES_NAME: branches.block,
        ENTRIES_NAME: entries.block,
        BLOCKS_NAME: traced,
    }
    for name, column in blocks.items():
        if len(column) and int(column.max()) >= prod(head.grid):
            message = (
                f"names block {format_count(int(column.max()))} of {format_count(prod(head.grid))}, counted from 0"
            )
            raise InputError(message, path=folder / name, place=f"piece {number}", remedy=_REMEDY)
    for name, rows in ((ACCESSES_NAME, accesses), (BRANCHES_NAME, branches)):
        if len(rows) and int(rows.instruction.max()) >= len(head.instructions):
            message = f"names instruction {int(rows.instruction.max())} of {len(head.instructions)}"
            raise InputError(message, path=folder / name, place=f"piece {number}", remedy=_REMEDY)
    return Trace(
        kernel=head.kernel,
        grid=head.grid,
        block_threads=head.block_threads,
        instructions=head.instructions,
        buffers=head.buffers,
        accesses=accesses,
        branches=branches,
        entries=entries,
        traced_blocks=traced,
        is_complete=head.is_complete,
        origin=head.origin,
    )


def _read_group(path: Path, file: Any, number: int, take: Callable[[Any], Any]) -> Any:
    pyarrow, _ = load_pyarrow()
    place = f"piece {number}"
    rows = file.metadata.row_group(number).num_rows
    if rows > MAX_PIECE_ROWS:
        raise InputError(f"claims {format_count(rows)} rows", path=path, place=place, remedy=_REMEDY)
    try:
        return take(file.read_row_group(number))
    except InputError as error:
        raise InputError(error.message, path=path, place=f"{place}, {error.place}", remedy=error.remedy) from error
    except (OSError, KeyError, ValueError, pyarrow.ArrowException) as error:
        raise InputError(f"is damaged: {_fold(error)}", path=path, place=place, remedy=_REMEDY) from error


def _fold(error: Exception) -> str:
    """What pyarrow says, on one line."""
    return " ".join(str(error).split())
