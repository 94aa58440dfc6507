"""What is said once of a trace: its kernel, launch, instructions and arrays, as the JSON file of its folder."""

import json
from math import prod
from pathlib import Path

from msgspec import Struct

from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.execution.emulator.trace import TRACE_FORMAT, Buffer, Trace
from gpa_lsp.foundation.errors import InputError, UnsupportedInputError
from gpa_lsp.foundation.json_records import make_record, read_record
from gpa_lsp.foundation.numbers import format_count, format_dim3
from gpa_lsp.foundation.regular_files import read_bounded
from gpa_lsp.foundation.whole_files import atomic_write

HEAD_NAME = "trace.json"
MAX_HEAD_BYTES = 256 << 20  # Larger ones are refused; it holds one object per static instruction

MAX_BLOCKS = 1 << 32  # columns hold the index of a block in as many bits
MAX_BLOCK_THREADS = 1024

_PREFIX = "gpa-lsp/trace/"
_REMEDY = "trace the kernel again with gpa-lsp trace"


class TraceHead(Struct, frozen=True, kw_only=True):
    """All of a :class:`~gpa_lsp.execution.emulator.trace.Trace` that is not columns."""

    kernel: str  # mangled name
    grid: tuple[int, int, int]  # blocks
    block_threads: tuple[int, int, int]  # threads of a block
    instructions: tuple[StaticInstruction, ...]  # all static instructions
    buffers: tuple[Buffer, ...]  # by ascending base
    origin: str  # what wrote the trace
    is_complete: bool  # no rows were dropped
    pieces: int  # how many pieces the columns are in


def take_head(trace: Trace, *, is_complete: bool, pieces: int) -> TraceHead:
    """The head of a trace of which this is one piece."""
    return TraceHead(
        kernel=trace.kernel,
        grid=trace.grid,
        block_threads=trace.block_threads,
        instructions=trace.instructions,
        buffers=trace.buffers,
        origin=trace.origin,
        is_complete=is_complete,
        pieces=pieces,
    )


def write_head(head: TraceHead, path: Path) -> None:
    """Write it as a file.

    Raises:
        OSError: it cannot be written.
    """
    with atomic_write(path) as stream:
        json.dump({"format": TRACE_FORMAT, **make_record(head)}, stream, separators=(",", ":"))


def read_head(folder: Path) -> TraceHead:
    """Read it.

    Raises:
        UnsupportedInputError: it is of another version.
        InputError: it is missing, or not what it should be.
    """
    path = folder / HEAD_NAME
    try:
        document = json.loads(read_bounded(path, MAX_HEAD_BYTES))
    except OSError as error:
        message = f"cannot be read: {error.strerror or error}"
        raise InputError(message, path=path, remedy="give the folder that gpa-lsp trace wrote") from error
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
