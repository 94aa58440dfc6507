"""The memory accesses of a kernel: which instructions they are, what they move where less would do, and their sums by line."""

from collections.abc import Callable
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.analyses.answers import Table, list_columns
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, rank_lines, sum_waits
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.foundation.prose import NOTHING, Code, Sentence, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    MOVES,
    SECTOR_BYTES,
    WARP_THREADS,
    count_access_bytes,
    mark_accesses,
)

# What memory accesses stall others, or themselves, with
_WAITS = (
    BlameCategory.MEMORY_GLOBAL,
    BlameCategory.MEMORY_LOCAL,
    BlameCategory.EXECUTION_SHARED,
    BlameCategory.MEMORY_THROTTLE,
    BlameCategory.MIO_THROTTLE,
)

Counts = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class Transfers(ColumnRecord, frozen=True, kw_only=True):
    """Sectors or wavefronts that accesses to one memory move, by instruction."""

    unit: str  # ``sectors`` or ``wavefronts``
    actual: Counts  # int64[n]
    ideal: Counts  # int64[n], the least that could do for the threads and widths at hand; at most ``actual``
    # int64[n], executions of the instructions that move anything; None when they were not collected
    requests: Counts | None

    @property
    def excess(self) -> Counts:
        """int64[n], what is moved beyond the least."""
        return self.actual - self.ideal

    @property
    def excess_ratio(self) -> float:
        """Share of the excess in all that is moved, 0..1; 0 where nothing is moved."""
        total = int(self.actual.sum())
        return int(self.excess.sum()) / total if total else 0.0


class AccessColumns(ColumnRecord, frozen=True, kw_only=True):
    """The memory accesses of the n instructions of a kernel."""

    global_transfers: Transfers | None  # sectors of global and generic accesses; None when not collected
    shared_transfers: Transfers | None  # wavefronts of shared accesses; None when not collected
    local_sectors: Counts | None  # int64[n]; None when not collected
    # int64[n], threads whose guard held, of instructions that access memory; None when not collected
    threads: Counts | None
    executions: Counts | None  # int64[n]; None when not collected
    width_bytes: Counts  # int64[n], bytes one thread moves; 0 where nothing is accessed or nothing disassembled
    is_global: Marks  # bool[n], as are all that begin with ``is_``
    is_local: Marks
    is_store: Marks  # stores
    is_atomic: Marks  # atomics and reductions
    waits: npt.NDArray[np.float64]  # float64[n], samples each instruction causes, of the kinds that memory causes


def read_accesses(subject: Subject) -> AccessColumns:
    """The memory accesses of a kernel."""
    executions = subject.read_executions()
    width_bytes = subject.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    moves = width_bytes > 0
    threads = subject.read_counter("thread_executions_true")
    return AccessColumns(
        global_transfers=_read_transfers(subject, "sectors", "global_sectors", executions),
        shared_transfers=_read_transfers(subject, "wavefronts", "shared_wavefronts", executions),
        local_sectors=subject.read_counter("local_sectors"),
        threads=threads if threads is None else np.where(moves, threads, 0),
        executions=executions,
        width_bytes=width_bytes,
        is_global=mark_accesses(subject.rows, GLOBAL_SPACES, MOVES),
        is_local=mark_accesses(subject.rows, (MemorySpace.LOCAL,), MOVES),
        is_store=subject.rows.mark_by_opcode(lambda opcode: opcode.access is Access.STORE),
        is_atomic=subject.rows.mark_by_opcode(lambda opcode: opcode.access in (Access.ATOMIC, Access.REDUCTION)),
        waits=np.where(moves, sum_waits(subject, _WAITS), 0.0),
    )


def _read_transfers(subject: Subject, unit: str, name: str, executions: Counts | None) -> Transfers | None:
    actual, ideal = subject.read_counter(name), subject.read_counter(f"{name}_ideal")
    if actual is None or ideal is None:
        return None
    requests = None if executions is None else np.where(actual > 0, executions, 0)
    return Transfers(unit=unit, actual=actual, ideal=np.minimum(ideal, actual), requests=requests)


LEAST_EXCESS = 0.05  # A smaller share of what is moved beyond the least is no pattern

_OWN_SECTOR = 0.9  # From so many sectors per thread on, threads are taken to touch a sector of their own each
_HALF = 0.45
# In a block 16 threads wide the two rows of a warp may share sectors: half as many sectors as threads, and many times the least, count too. A
# structure of four elements makes four times the least.
_FAR = 6.0
_ONE_MORE = 1.5  # Up to so many sectors beyond the least per access, the start is taken to be misaligned


class Pattern(Enum):
    """Pattern of a warp's addresses in global memory; the values are clauses for people."""

    NEIGHBOURS = "neighbouring threads access neighbouring elements"
    APART = "neighbouring threads are 32 bytes or more apart, so each touches a sector of its own"
    STRIDE = "neighbouring threads are some elements apart"
    MISALIGNED = "the accesses start or end inside a sector"
    UNKNOWN = "the pattern is unknown without executions"
    SCATTERED_ATOMICS = "atomics of one warp go to scattered addresses"


# What helps; empty where nothing has to
REMEDIES = {
    Pattern.NEIGHBOURS: NOTHING,
    Pattern.UNKNOWN: say(
        "Coalesce: let neighbouring threads access neighbouring elements, starting at aligned addresses."
    ),
    Pattern.APART: say(
        "Coalesce: let the fastest thread index run along the fastest array index. Swap the two indices, store the transposed array, replace the "
        "array of structures by a structure of arrays, or stage the tile through shared memory with rows read by whole warps. Where a thread's own "
        "accesses are adjacent, one wide access of up to 16 bytes uses whole sectors too."
    ),
    Pattern.STRIDE: say(
        "Give neighbouring threads neighbouring elements: a structure of arrays instead of an array of structures, or one wide access (64 or 128 "
        "bits) that takes the whole structure."
    ),
    Pattern.MISALIGNED: say(
        "Start each row at a multiple of 32 bytes (128 is best): pad the pitch, allocate with {pitch}, or shift the work so that a warp's first "
        "element is aligned.",
        pitch=Code(text="cudaMallocPitch"),
    ),
    Pattern.SCATTERED_ATOMICS: say(
        "Combine first, in registers of the warp or in shared memory, and issue one atomic per address; sort or bin the keys so that a warp meets "
        "few addresses."
    ),
}

CONFLICT_REMEDY = say(
    "Pad each row of the shared array by one element (or one access width), or swizzle the address bits, so that the threads of a warp hit different "
    "banks; with 64- or 128-bit accesses, let each group of 16 or 8 threads cover all banks."
)
LOCAL_REMEDY = say(
    "Find out whether these are spilled registers or arrays indexed at run time. Against spills: more registers per thread (launch bounds, "
    "{option}), less unrolling, shorter live ranges. For arrays: constant indices (full unrolling), or shared memory.",
    option=Code(text="-maxrregcount"),
)
WIDTH_REMEDY = say(
    "Let a thread take several neighbouring elements in one access (up to 16 bytes, such as {type}): one instruction instead of several.",
    type=Code(text="float4"),
)


class RequestShape(Struct, frozen=True, kw_only=True):
    """One access of a warp, on average over its executions."""

    sectors: float  # it touches
    ideal_sectors: float  # it would touch at best
    threads: float = float(WARP_THREADS)  # that take part
    is_atomic: bool = False  # it is an atomic operation or a reduction

    @property
    def excess_ratio(self) -> float:
        """Share of the sectors beyond the least."""
        return (self.sectors - self.ideal_sectors) / self.sectors if self.sectors > 0 else 0.0


def find_pattern(shape: RequestShape) -> Pattern:
    """The pattern that explains a request's sectors.

    Approximation: averages over executions, so a mixture of patterns gets the name of the average.

    >>> find_pattern(RequestShape(sectors=32, ideal_sectors=4)), find_pattern(RequestShape(sectors=5, ideal_sectors=4))
    (<Pattern.APART: 'neighbouring threads are 32 bytes or more apart, so each touches a sector of its own'>, \
<Pattern.MISALIGNED: 'the accesses start or end inside a sector'>)
    >>> find_pattern(RequestShape(sectors=12, ideal_sectors=4)).name, find_pattern(RequestShape(sectors=4, ideal_sectors=4)).name
    ('STRIDE', 'NEIGHBOURS')
    >>> find_pattern(RequestShape(sectors=16, ideal_sectors=1)).name
    'APART'
    """
    if shape.excess_ratio < LEAST_EXCESS:
        return Pattern.NEIGHBOURS
    if shape.is_atomic:
        return Pattern.SCATTERED_ATOMICS
    is_far = shape.sectors >= _HALF * shape.threads and shape.sectors >= _FAR * shape.ideal_sectors
    if is_far or shape.sectors >= _OWN_SECTOR * shape.threads:
        return Pattern.APART
    if shape.sectors - shape.ideal_sectors <= _ONE_MORE:
        return Pattern.MISALIGNED
    return Pattern.STRIDE


MOST_ROWS = 10  # Lines a table shows

Sums = npt.NDArray[np.float64]


class LineTransfers(ColumnRecord, frozen=True, kw_only=True):
    """Sectors or wavefronts of the accesses of m lines to one memory."""

    requests: Sums | None  # float64[m], executions of its accesses; None when they were not collected
    actual: Sums  # float64[m], sectors or wavefronts
    ideal: Sums  # float64[m], the least
    used_bytes: Sums  # float64[m], bytes of a sector that threads asked for, at most 32; NaN where unknown
    waits: Sums  # float64[m], samples stalled on its accesses
    # int64[m], the access with the largest excess, or with most of all where nothing is too much; -1 without any
    heaviest: npt.NDArray[np.int64]

    def per_request(self, line: int) -> tuple[float, float] | None:
        """Actual and ideal of one access of a line, on average; None when unknown."""
        if self.requests is None or self.requests[line] == 0:
            return None
        return float(self.actual[line] / self.requests[line]), float(self.ideal[line] / self.requests[line])

    def times_ideal(self, line: int) -> float | None:
        """Ratio of what a line moves to the least that would suffice; None where the least is 0."""
        return float(self.actual[line] / self.ideal[line]) if self.ideal[line] > 0 else None

    def excess_ratio(self, line: int) -> float:
        """Share of what a line moves beyond the least."""
        actual = float(self.actual[line])
        return (actual - float(self.ideal[line])) / actual if actual > 0 else 0.0


def sum_transfers(columns: AccessColumns, transfers: Transfers, index: LineIndex) -> LineTransfers:
    """Transfers by line.

    Bytes used are those the threads asked for: where threads ask for the same address they count each, so 32 is what is shown at most.
    """
    moving = transfers.actual > 0
    actual = index.sum_by_line(transfers.actual)
    used = np.full(len(index.places), np.nan)
    if columns.threads is not None:
        asked = index.sum_by_line(np.where(moving, columns.threads * columns.width_bytes, 0))
        np.divide(asked, actual, out=used, where=(actual > 0) & (asked > 0))
    by_excess, by_size = index.find_heaviest(transfers.excess), index.find_heaviest(transfers.actual)
    return LineTransfers(
        requests=None if transfers.requests is None else index.sum_by_line(transfers.requests),
        actual=actual,
        ideal=index.sum_by_line(transfers.ideal),
        used_bytes=np.minimum(used, SECTOR_BYTES),
        waits=index.sum_by_line(np.where(moving, columns.waits, 0.0)),
        heaviest=np.where(by_excess >= 0, by_excess, by_size),
    )


def read_shape(columns: AccessColumns, transfers: Transfers, row: int) -> RequestShape | None:
    """One access of an instruction, on average; None when its executions are not known."""
    if transfers.requests is None or transfers.requests[row] == 0:
        return None
    requests = int(transfers.requests[row])
    threads = WARP_THREADS if columns.threads is None else columns.threads[row] / requests
    return RequestShape(
        sectors=transfers.actual[row] / requests,
        ideal_sectors=transfers.ideal[row] / requests,
        threads=float(threads),
        is_atomic=bool(columns.is_atomic[row]),
    )


def find_line_pattern(columns: AccessColumns, transfers: Transfers, lines: LineTransfers, line: int) -> Pattern:
    """The pattern of the line's heaviest access; where that is not known, the one that says least."""
    shape = read_shape(columns, transfers, int(lines.heaviest[line]))
    return Pattern.UNKNOWN if shape is None else find_pattern(shape)


def describe_access(lines: LineTransfers, line: int, unit: str) -> Sentence:
    """Describe how much an access of a line moves, and how little would suffice.

    Example: ``32 sectors per access where 4 would suffice``, or ``8 times the sectors they need`` where executions are not known.
    """
    one = lines.per_request(line)
    if one is not None:
        return say(
            "{moved} per access where {least} would suffice", moved=number(one[0], unit[:-1]), least=number(one[1])
        )
    times = lines.times_ideal(line)
    if times is None:
        return say("more {unit} than they need", unit=unit)
    return say("{times} times the {unit} they need", times=number(times), unit=unit)


def describe_excess(lines: LineTransfers, line: int, unit: str) -> Sentence:
    """The clause of a mark.

    Example: ``32 sectors per access where 4 would suffice (88 % excess)``.
    """
    return say(
        "{access} ({excess} excess)",
        access=describe_access(lines, line, unit),
        excess=percent(lines.excess_ratio(line)),
    )


def build_global_table(index: LineIndex, lines: LineTransfers, name_access: Callable[[int], str]) -> Table:
    """The lines that move most sectors of global memory."""
    rows: list[tuple[Cell, ...]] = []
    for line in rank_lines(lines.actual, MOST_ROWS):
        used = float(lines.used_bytes[line])
        rows.append(
            (
                *_list_cells(index, lines, line, name_access),
                lines.excess_ratio(line),
                None if np.isnan(used) else used,
                round(float(lines.waits[line])),
            )
        )
    return Table(
        title="Global memory, by line",
        columns=list_columns(
            _name_columns("sectors"),
            "excess [ratio] | bytes requested per sector [bytes] | samples stalled on it [samples]",
        ),
        rows=tuple(rows),
        note=say("A sector has 32 bytes. Threads that request the same address count each, up to 32 bytes per sector."),
    )


def build_shared_table(index: LineIndex, lines: LineTransfers, name_access: Callable[[int], str]) -> Table:
    """The lines with most wavefronts of shared memory; arguments as of :func:`build_global_table`."""
    rows = tuple(
        (
            *_list_cells(index, lines, line, name_access),
            lines.times_ideal(line),
            lines.excess_ratio(line),
            round(float(lines.waits[line])),
        )
        for line in rank_lines(lines.actual, MOST_ROWS)
    )
    return Table(
        title="Shared memory, by line",
        columns=list_columns(
            _name_columns("wavefronts"), "n-way conflict [number] | excess [ratio] | samples stalled on it [samples]"
        ),
        rows=rows,
    )


def _name_columns(unit: str) -> str:
    """The columns both tables begin with."""
    return f"line | heaviest access | accesses [count] | {unit} per access [number] | at best [number]"


def _list_cells(
    index: LineIndex, lines: LineTransfers, line: int, name_access: Callable[[int], str]
) -> tuple[Cell, ...]:
    """Cells of a line in the columns of :func:`_name_columns`."""
    actual, ideal = lines.per_request(line) or (None, None)
    return (
        index.write_line(line),
        name_access(int(lines.heaviest[line])),
        None if lines.requests is None else round(float(lines.requests[line])),
        actual,
        ideal,
    )


def count_widths(columns: AccessColumns) -> dict[int, int]:
    """Executed accesses (to global, shared and local memory) by the bytes a thread moves; empty without executions."""
    if columns.executions is None:
        return {}
    executed = np.bincount(columns.width_bytes, weights=columns.executions)
    return {width: int(count) for width, count in enumerate(executed) if width > 0 and count > 0}
