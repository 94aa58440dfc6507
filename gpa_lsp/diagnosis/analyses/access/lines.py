"""Memory accesses by source line: the rows of the tables and the words of the marks."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from gpa_lsp.diagnosis.analyses.access.columns import AccessColumns, Transfers
from gpa_lsp.diagnosis.analyses.access.patterns import Pattern, RequestShape, find_pattern
from gpa_lsp.diagnosis.analyses.answers import Column, Table
from gpa_lsp.diagnosis.analyses.line_sums import LineIndex, rank_lines
from gpa_lsp.foundation.numbers import Cell, Quantity
from gpa_lsp.foundation.prose import Sentence, number, percent, say
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES, WARP_THREADS

MOST_ROWS = 10  # Lines a table shows

Sums = npt.NDArray[np.float64]


class LineTransfers(ColumnRecord, frozen=True, kw_only=True):
    """What the accesses of each of m lines to one memory move."""

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

    def count_requests(self, line: int) -> int | None:
        """Executions of a line's accesses; None when unknown."""
        return None if self.requests is None else round(float(self.requests[line]))

    def times_ideal(self, line: int) -> float | None:
        """How many times the least a line moves; None where the least is nothing."""
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
    """What an access of a line moves, and what would do.

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


def build_global_table(
    columns: AccessColumns, index: LineIndex, lines: LineTransfers, name_access: Callable[[int], str]
) -> Table:
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
        columns=(
            *_list_columns("sectors"),
            Column(name="excess", quantity=Quantity.RATIO),
            Column(name="bytes requested per sector", quantity=Quantity.BYTES),
            Column(name="samples stalled on it", quantity=Quantity.SAMPLES),
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
        columns=(
            *_list_columns("wavefronts"),
            Column(name="n-way conflict", quantity=Quantity.NUMBER),
            Column(name="excess", quantity=Quantity.RATIO),
            Column(name="samples stalled on it", quantity=Quantity.SAMPLES),
        ),
        rows=rows,
    )


def _list_columns(unit: str) -> tuple[Column, ...]:
    """The columns both tables begin with."""
    return (
        Column(name="line"),
        Column(name="heaviest access"),
        Column(name="accesses", quantity=Quantity.COUNT),
        Column(name=f"{unit} per access", quantity=Quantity.NUMBER),
        Column(name="at best", quantity=Quantity.NUMBER),
    )


def _list_cells(
    index: LineIndex, lines: LineTransfers, line: int, name_access: Callable[[int], str]
) -> tuple[Cell, ...]:
    """What a line has in those columns."""
    actual, ideal = lines.per_request(line) or (None, None)
    return (
        str(index.places[line]),
        name_access(int(lines.heaviest[line])),
        lines.count_requests(line),
        actual,
        ideal,
    )


def count_widths(columns: AccessColumns) -> dict[int, int]:
    """Executed accesses (to global, shared and local memory) by the bytes a thread moves; empty without executions."""
    if columns.executions is None:
        return {}
    executed = np.bincount(columns.width_bytes, weights=columns.executions)
    return {width: int(count) for width, count in enumerate(executed) if width > 0 and count > 0}
