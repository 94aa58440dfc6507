"""Traces ↔ folders of Parquet files, piece by piece: :class:`TraceWriter` writes the pieces of an emulation and keeps none in memory;
:func:`analyse_saved` predicts from a folder, and neither compiles nor executes.

pyarrow is an optional dependency and imported where it is used."""

import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from math import prod
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.execution.accesses.lane_addresses import check_trace, count_lanes
from gpa_lsp.execution.compiler.model import DEFAULT_COMPUTE_CAPABILITY
from gpa_lsp.execution.emulator.model import (
    ACCESS_DTYPES,
    BRANCH_DTYPES,
    ENTRY_DTYPES,
    TRACE_FORMAT,
    Accesses,
    Branches,
    Buffer,
    Entries,
    Trace,
    join_pieces,
    keep_blocks,
)
from gpa_lsp.execution.prediction.static_source import Capability, choose_product, choose_volume_device
from gpa_lsp.execution.traces.ask import TraceAnswerer
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.execution.traces.model import AnalysisSettings, build_trace_context
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.from_trace import list_probe_blocks, predict_traced, recover_expressions
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.foundation.errors import InputError, MissingToolError, Problem, UnsupportedInputError, spare_others
from gpa_lsp.foundation.files import atomic_write, open_regular_file, read_bounded
from gpa_lsp.foundation.json_records import make_record, read_record
from gpa_lsp.foundation.numbers import format_count, format_dim3
from gpa_lsp.gpu.device.products import Product
from gpa_lsp.kernel.names import demangle, shorten_name

# The columns of :mod:`gpa_lsp.execution.emulator.model`; one row group per piece in each file. Blocks are those that were traced.
NAMES = ("accesses.parquet", "branches.parquet", "entries.parquet", "blocks.parquet")
ACCESSES_NAME, BRANCHES_NAME, ENTRIES_NAME, BLOCKS_NAME = NAMES


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
        """Write one row group for a piece, however many rows: the reader takes pieces apart by it."""
        _, parquet = load_pyarrow()
        if name not in self._writers:
            self._writers[name] = parquet.ParquetWriter(_part(self._folder, name), table.schema, compression="zstd")
        self._writers[name].write_table(table, row_group_size=max(1, table.num_rows))

    def _write_head(self, piece: Trace) -> None:
        head = TraceHead(
            kernel=piece.kernel,
            grid=piece.grid,
            block_threads=piece.block_threads,
            instructions=piece.instructions,
            buffers=piece.buffers,
            origin=piece.origin,
            is_complete=self._is_complete,
            pieces=self._pieces,
        )
        with atomic_write(_part(self._folder, HEAD_NAME)) as stream:
            json.dump({"format": TRACE_FORMAT, **make_record(head)}, stream, separators=(",", ":"))

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
                self._write_head(self._last)
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
    """Make the folder, and remove unfinished files of an ended process."""
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


# The column that holds each access's lane addresses as a list; it stands for ``first_address`` and ``addresses`` of :class:`Accesses`
ADDRESSES = "addresses"

BLOCK = "block"  # The one column of the traced blocks


def load_pyarrow() -> tuple[ModuleType, ModuleType]:
    """``pyarrow`` and ``pyarrow.parquet``.

    Raises:
        MissingToolError: it is not installed.
    """
    try:
        import pyarrow  # an optional dependency, and slow to import
        import pyarrow.parquet
    except ImportError as error:
        install = "install gpa-lsp[traces], which brings pyarrow"
        raise MissingToolError("pyarrow", needed_for="keeping traces in files", install=install) from error
    return pyarrow, pyarrow.parquet


def build_accesses_table(accesses: Accesses) -> Any:
    """An Arrow table of the rows, in their order."""
    pyarrow, _ = load_pyarrow()
    columns = {name: getattr(accesses, name) for name in ACCESS_DTYPES if name != "first_address"}
    ends = np.append(accesses.first_address.astype(np.int64), len(accesses.addresses))
    lists = pyarrow.LargeListArray.from_arrays(pyarrow.array(ends), pyarrow.array(accesses.addresses))
    return pyarrow.table({**{name: pyarrow.array(column) for name, column in columns.items()}, ADDRESSES: lists})


def build_table(columns: Branches | Entries) -> Any:
    """An Arrow table of branches or entries, in their order."""
    pyarrow, _ = load_pyarrow()
    names = BRANCH_DTYPES if isinstance(columns, Branches) else ENTRY_DTYPES
    return pyarrow.table({name: pyarrow.array(getattr(columns, name)) for name in names})


def read_accesses(table: Any) -> Accesses:
    """The rows of a table of accesses.

    Raises:
        InputError: a column is missing or of another type, or the addresses are not as many as the masks have lanes; names no file.
    """
    names = {name: dtype for name, dtype in ACCESS_DTYPES.items() if name != "first_address"}
    columns = _read_columns(table, names)
    if ADDRESSES not in table.column_names:
        raise _refuse(ADDRESSES, "the addresses are missing")
    lists = table.column(ADDRESSES).combine_chunks()
    if not hasattr(lists, "offsets") or str(lists.type.value_type) != "uint64" or lists.values.null_count:
        raise _refuse(ADDRESSES, f"holds {lists.type}, or gaps, not lists of uint64")
    offsets = np.asarray(lists.offsets, dtype=np.int64)
    flat = np.asarray(lists.values)[offsets[0] : offsets[-1]] if len(lists) else _NO_ADDRESSES
    firsts = offsets[:-1] - offsets[0] if len(lists) else np.zeros(0, dtype=np.int64)
    lengths = np.diff(offsets) if len(lists) else firsts
    if lists.null_count or not np.array_equal(lengths, count_lanes(columns["lane_mask"])):
        raise _refuse(ADDRESSES, "there are not as many addresses as lanes")
    return Accesses(**columns, first_address=firsts.astype(np.uint64), addresses=flat)


_NO_ADDRESSES = np.zeros(0, dtype=np.uint64)


def _read_columns(table: Any, dtypes: dict[str, "np.dtype[Any]"]) -> dict[str, npt.NDArray[Any]]:
    columns = {}
    for name, dtype in dtypes.items():
        if name not in table.column_names:
            raise _refuse(name, "a column is missing")
        column = table.column(name)
        if column.null_count or str(column.type) != f"uint{8 * dtype.itemsize}":
            message = f"holds {column.type} with {column.null_count} gaps, not uint{8 * dtype.itemsize}"
            raise _refuse(name, message)
        columns[name] = column.to_numpy()
    return columns


def _refuse(column: str, message: str) -> InputError:
    return InputError(message, place=f"column {column}", remedy="trace the kernel again")


HEAD_NAME = "trace.json"
MAX_HEAD_BYTES = 256 << 20  # Larger ones are refused; it holds one object per static instruction

MAX_BLOCKS = 1 << 32  # columns hold the index of a block in as many bits
MAX_BLOCK_THREADS = 1024

_PREFIX = "gpa-lsp/trace/"
_REMEDY = "trace the kernel again with gpa-lsp predict trace"


class TraceHead(Struct, frozen=True, kw_only=True):
    """All of a :class:`~gpa_lsp.execution.emulator.model.Trace` that is not columns."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # blocks
    block_threads: tuple[int, int, int]  # threads of a block
    instructions: tuple[StaticInstruction, ...]  # all static instructions
    buffers: tuple[Buffer, ...]  # by ascending base
    origin: str  # what wrote the trace
    is_complete: bool  # no rows were dropped
    pieces: int  # how many pieces the columns are in


def read_head(folder: Path) -> TraceHead:
    """Read the head of a trace.

    Raises:
        UnsupportedInputError: it is of another version.
        InputError: it is missing, or not what it should be.
    """
    path = folder / HEAD_NAME
    try:
        document = json.loads(read_bounded(path, MAX_HEAD_BYTES))
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise InputError(message, path=path, remedy="give the folder that gpa-lsp predict trace wrote") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"is not JSON: {error}", path=path, remedy=_REMEDY) from error
    written = document.get("format") if isinstance(document, dict) else None
    if written != TRACE_FORMAT:
        if not str(written).startswith(_PREFIX):
            raise InputError(f"is {str(written)[:80]!r}, not a trace", path=path, place="/format", remedy=_REMEDY)
        message = f"is a trace of format {str(written)[:80]!r}; this version reads {TRACE_FORMAT}"
        raise UnsupportedInputError(message, path=path, remedy=_REMEDY)
    head = read_record(document, TraceHead, path=path, remedy=_REMEDY)
    _check_launch(head, path)
    if [one.index for one in head.instructions] != list(range(len(head.instructions))):
        raise InputError("are not numbered from 0 on", path=path, place="/instructions", remedy=_REMEDY)
    for one in head.instructions:
        named = (*one.calls, *(() if one.same_as is None else (one.same_as,)))
        if any(not 0 <= number < one.index for number in named):
            message = f"number {one.index} names one that does not come before it"
            raise InputError(message, path=path, place="/instructions", remedy=_REMEDY)
    return head


def _check_launch(head: TraceHead, path: Path) -> None:
    """See that the sizes of a launch and its arrays are sizes.

    Raises:
        InputError: one is not.
    """
    for name, sizes, most in (
        ("grid", head.grid, MAX_BLOCKS),
        ("block_threads", head.block_threads, MAX_BLOCK_THREADS),
    ):
        if min(sizes) < 1 or prod(sizes) > most:
            message = (
                f"is {format_dim3(sizes)}, not at least 1 in each direction and {format_count(most)} in all at most"
            )
            raise InputError(message, path=path, place=f"/{name}", remedy=_REMEDY)
    for number, buffer in enumerate(head.buffers):
        for name, value in (("base", buffer.base), ("size_bytes", buffer.size_bytes)):
            if value < 0:
                raise InputError(f"is {value}, below 0", path=path, place=f"/buffers/{number}/{name}", remedy=_REMEDY)


MAX_PIECE_ROWS = 1 << 28  # Row groups that say they are longer are refused before they are read


def read_pieces(folder: Path) -> Iterator[Trace]:
    """The pieces of a trace, in the order they were written.

    Args:
        folder: that :class:`TraceWriter` wrote.

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
    branches = read(BRANCHES_NAME, lambda table: Branches(**_read_columns(table, BRANCH_DTYPES)))
    entries = read(ENTRIES_NAME, lambda table: Entries(**_read_columns(table, ENTRY_DTYPES)))
    traced = read(BLOCKS_NAME, lambda table: _read_columns(table, {BLOCK: np.dtype(np.uint32)})[BLOCK])
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
    """Message of pyarrow on one line."""
    return " ".join(str(error).split())


_NOTE = "a trace keeps neither the registers nor the shared memory of a block: occupancy is assumed to be limited by threads alone"


class SavedTrace(Struct, frozen=True, kw_only=True):
    """Answers from a saved trace."""

    folder: Path  # it is in
    mangled_name: str  # of the kernel
    name: str  # for people
    grid: tuple[int, int, int]  # blocks of the launch
    block: tuple[int, int, int]  # threads of a block
    traced_blocks: int  # of the grid
    origin: str  # what wrote the trace
    is_complete: bool  # it has all rows of its blocks
    machine: str  # the GPU that caches and volumes are predicted for; empty for none
    answers: tuple[Answer, ...]  # in the order to be read
    accesses: tuple[AccessLineFact, ...]  # what each line does to memory, by file and line
    branches: tuple[BranchLineFact, ...]  # conditional branches by file and line
    problems: tuple[Problem, ...] = ()  # what could not be done, and why

    @property
    def short_name(self) -> str:
        """Name without result and parameters, short enough for a line."""
        return shorten_name(self.name)


def analyse_saved(
    folder: Path,
    *,
    machine: str | None = None,
    compute_capability: Capability | None = None,
    mode: VolumeMode = VolumeMode.CORRECTED,
    is_paper: bool = False,
) -> SavedTrace:
    """Ask every question about a trace, one piece in memory at a time.

    Args:
        folder: that ``gpa-lsp predict trace`` wrote.
        machine: name of the GPU; None for the first known of the compute capability.
        compute_capability: where no GPU is named; None for 8.0.
        mode: of the volume model.
        is_paper: count by CUDAAdvisor's own definitions as well.

    Raises:
        InputError: it is no trace, damaged, without any piece, or no GPU has the name.
        MissingToolError: pyarrow is not installed.
    """
    head = read_head(folder)
    product = choose_product(machine, compute_capability or DEFAULT_COMPUTE_CAPABILITY)
    capability = compute_capability or DEFAULT_COMPUTE_CAPABILITY if product is None else product.compute_capability
    context = build_trace_context(capability, block_threads=head.block_threads, product=product)
    problems = [Problem.note(_NOTE)]
    answerer = TraceAnswerer(context, AnalysisSettings(), problems, is_paper=is_paper)
    kept: list[Trace] = []
    blocks = list_probe_blocks(head.grid)
    traced_blocks, is_complete = 0, True
    for piece in read_pieces(folder):
        check_trace(piece)
        answerer.add(piece)
        traced_blocks += len(piece.traced_blocks)
        is_complete &= piece.is_complete
        part = keep_blocks(piece, blocks)
        kept += [] if part is None else [part]
    if not head.pieces:
        raise InputError("there is no trace to analyse", path=folder, remedy="trace at least one block")
    shown = answerer.finish()
    volumes = _answer_volumes(head, join_pieces(kept), product, mode, problems) if kept else ()
    return SavedTrace(
        folder=folder,
        mangled_name=head.kernel,
        name=demangle(head.kernel),
        grid=head.grid,
        block=head.block_threads,
        traced_blocks=traced_blocks,
        origin=head.origin,
        is_complete=is_complete,
        machine=context.gpu,
        answers=(*volumes, *shown.answers),
        accesses=shown.accesses,
        branches=shown.branches,
        problems=tuple(problems),
    )


def _answer_volumes(
    head: TraceHead, probe: Trace, product: Product | None, mode: VolumeMode, problems: list[Problem]
) -> tuple[Answer, ...]:
    """Data volumes from the addresses of a few blocks; a trace keeps no arithmetic, so that none limits."""
    device = choose_volume_device(product, mode)
    if isinstance(device, Problem):
        problems.append(device)
        return ()
    with spare_others("predicting data volumes", problems, kernel=head.kernel):
        recovered = recover_expressions(probe)
        return (answer_volumes(predict_traced(recovered, probe, device, mode=mode), recovered),)
    return ()
