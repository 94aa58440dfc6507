"""One SM in the compiled core: :func:`run_compiled`. Bit for bit what :mod:`~gpa_lsp.execution.simulator.streaming_multiprocessor` does."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.accounts import Moment, SmRun
from gpa_lsp.execution.simulator.instruction_supply import FAR_LINES
from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.program import SassProgram
from gpa_lsp.execution.simulator.reasons import REASON_COUNT
from gpa_lsp.execution.simulator.register_ports import OPERANDS
from gpa_lsp.execution.simulator.streams import BlockStream
from gpa_lsp.foundation.native.shared_library import find_core

_SAME = (
    "kind", "pipe", "unit", "is_lg", "throttle", "is_long", "uses_l1", "is_shared_unit", "is_async",
)  # fmt: skip
_CODES = ("write_board", "read_board", "wait_mask", "depbar_board", "depbar_left", "fetch_line")
_READS = ("first", "count", "kept")
# A row of a program as the core reads it: columns of :class:`~gpa_lsp.execution.simulator.program.SassProgram`, lines and gates numbered from 0
ROW = np.dtype(
    [
        *((name, np.float64) for name in ("interval", "latency", "stall")),
        *((name, np.int32) for name in (*_SAME, "gate", *_CODES, "constant", "far_constant")),
        *((name, np.int32, OPERANDS) for name in _READS),
    ],
    align=True,
)
MODEL = SmModel.__struct_fields__  # What the core is told of an SM, all of it as float64

_MOST_MOMENTS, _MOVED = 3, 5
_COLUMNS = {
    "rows": np.int32, "passes": np.int32, "lines": np.int32, "first_sector": np.int64, "last_sector": np.int64, "weights": np.float64,
    "sectors": np.int64, "is_private": np.bool_,
}  # fmt: skip


def run_compiled(
    program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int, most_issues: int
) -> SmRun | None:
    """What :func:`~gpa_lsp.execution.simulator.streaming_multiprocessor.simulate_sm` gives; None where there is no core, or it cannot do it."""
    core = find_core()
    if core is None or not blocks:
        return None
    rows = _tabulate(program)
    figures = np.array([getattr(model, name) for name in MODEL], dtype=np.float64)
    table, starts, columns = _join_streams(blocks)
    counts = (len(rows), len(columns[0]), len(columns[6]), len(starts) - 1, len(blocks), min(resident, len(blocks)))
    sizes = np.array([*counts, most_issues, ROW.itemsize, figures.nbytes], dtype=np.int64)
    totals = np.zeros(4)
    sums = np.zeros((_MOST_MOMENTS, 2 + _MOVED))
    cycles = np.zeros((_MOST_MOMENTS, 2, (len(rows) + 1) * REASON_COUNT))
    marked = core.call("simulate_blocks", sizes, rows, figures, table, starts, *columns, totals, sums, cycles)
    if marked < 0:
        return None
    weighted, plain, issued, done = totals.tolist()
    return SmRun(
        moments=tuple(
            Moment(time=time, blocks_done=int(ended), all_cycles=every, idle_cycles=idle, moved=tuple(moved))
            for (time, ended, *moved), (every, idle) in zip(sums[:marked].tolist(), cycles, strict=False)
        ),
        dilation=weighted / plain if plain else 1.0,
        issued=int(issued),
        is_cut=done < len(blocks),
    )


def _tabulate(program: SassProgram) -> "npt.NDArray[np.void]":
    """The program as rows of :data:`ROW`."""
    table = np.zeros(len(program.kind), ROW)
    for name in ("interval", "latency", "stall", *_SAME, *_CODES):
        table[name] = getattr(program, name)
    table["gate"] = np.unique(program.gate, return_inverse=True)[1]
    for name in _READS:
        table[name] = [getattr(one, name) for one in program.register_reads]
    lines = np.array(program.constant_line, dtype=np.int64)
    table["constant"] = _number_lines(lines)
    table["far_constant"] = _number_lines(np.where(lines < 0, -1, lines // FAR_LINES))
    return table


def _number_lines(lines: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Lines numbered from 0; -1 stays what it is."""
    known, numbers = np.unique(lines, return_inverse=True)
    found: npt.NDArray[np.int64] = numbers - (1 if len(known) and known[0] < 0 else 0)
    return found


def _join_streams(
    blocks: Sequence[BlockStream],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[npt.NDArray[Any]]]:
    """What blocks execute, each stream once: int64[blocks, 3] with the first warp, warps and shift of each; where warps begin; and the columns."""
    streams = {id(one.rows): one for one in blocks}
    table = np.zeros((len(blocks), 3), np.int64)
    starts, parts = [], []
    placed: dict[int, int] = {}
    executions = sectors = warps = 0
    for key, one in streams.items():
        placed[key] = warps
        starts.append(one.starts + executions)
        moved = {"first_sector": one.first_sector + sectors, "last_sector": one.last_sector + sectors}
        parts.append([moved.get(name, getattr(one, name)) for name in _COLUMNS])
        warps += len(one.starts)
        executions += len(one.rows)
        sectors += len(one.sectors)
    for number, one in enumerate(blocks):
        table[number] = placed[id(one.rows)], len(one.starts) - 1, one.shift
    columns: list[npt.NDArray[Any]] = [
        np.concatenate(column).astype(dtype, copy=False)
        for column, dtype in zip(zip(*parts, strict=True), _COLUMNS.values(), strict=True)
    ]
    return table, np.concatenate(starts).astype(np.int64, copy=False), columns
