"""One SM that is simulated, as arrays that compiled loops change: :class:`Sm`, made by :func:`open_sm`."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.program import BANKS, OPERANDS, PIPES, SUB_CORES, UNITS, Kind, SassProgram
from gpa_lsp.execution.simulator.reasons import REASON_COUNT
from gpa_lsp.execution.simulator.warp_walk import LINE_SECTORS, BlockStream

Array = npt.NDArray[Any]
Row = Any  # Of a structured array

SCOREBOARDS = 6
MOST_SEGMENTS = 8  # Reasons that a warp waits for between two issues
LG = UNITS  # Number of the queue of global and local memory, behind those of the units
MOVED = 5  # Totals of a moment, see :class:`~gpa_lsp.execution.simulator.reasons.Moment`
MOST_MOMENTS = 3
MOST_LEFT = 63  # Of what a DEPBAR lets be outstanding
FAR_LINES = 4  # Lines of the constant cache that come from further away together
_FEWEST_LINES = 1 << 12

MODEL = np.dtype([(name, np.float64) for name in SmModel.__struct_fields__])

_SAME = ("kind", "pipe", "unit", "is_lg", "throttle", "is_long", "uses_l1", "is_shared_unit", "is_async",
         "defers", "computes", "yields", "write_board", "read_board", "wait_mask", "depbar_board", "depbar_left")  # fmt: skip
_READS = ("first", "count", "kept")
# A row of :class:`~gpa_lsp.execution.simulator.program.SassProgram`; lines and gates are numbered from 0
ROW = np.dtype(
    [
        *((name, np.float64) for name in ("interval", "latency", "stall")),
        *((name, np.int64) for name in (*_SAME, "gate", "fetch_line", "constant", "far_constant")),
        *((name, np.int64, OPERANDS) for name in _READS),
    ],
    align=True,
)

# An execution of :class:`~gpa_lsp.execution.simulator.warp_walk.BlockStream`
EXECUTION = np.dtype(
    [("row", np.int64), ("passes", np.int64), ("lines", np.int64), ("masked", np.int64),
     ("weight", np.float64),
     ("first_sector", np.int64), ("last_sector", np.int64)],
    align=True,
)  # fmt: skip

BLOCK = np.dtype([("first_warp", np.int64), ("warps", np.int64), ("shift", np.int64)])

_TIMES = ("weighted", "plain", "last_start", "latest_end", "last", "accept_free", "data_free", "tag_free", "port_free", "store_free",
          "write_back_free", "l2_free", "dram_free", "reads_until", "hits_due", "l2_bytes", "dram_bytes", "tag_cycles",
          "data_cycles")  # fmt: skip
_COUNTS = ("begun", "done", "issued", "warps", "next_sub_core", "steps", "starts", "free_places", "moments", "has_code",
           "leaving_first", "leaving_end", "misses_first", "misses_end", "l1_lines", "lines", "merged_first",
           "merged_last", "merged_warp")  # fmt: skip
STATE = np.dtype(
    [
        *((name, np.float64) for name in _TIMES),
        *((name, np.int64) for name in _COUNTS),
        ("following", np.float64, SUB_CORES),
        ("shared_free", np.float64, UNITS),
    ],
    align=True,
)

CORE = np.dtype(
    [
        *((name, np.int64) for name in ("issues", "last", "waiting", "eligible", "near_lines")),
        ("pipe_free", np.float64, PIPES),
        ("unit_free", np.float64, UNITS),
        ("entered", np.float64, UNITS),
        ("first", np.int64, UNITS + 1),
        ("count", np.int64, UNITS + 1),
        ("port_free", np.float64, BANKS),
        ("kept", np.int64, OPERANDS * BANKS),
    ],
    align=True,
)

WARP = np.dtype(
    [
        *((name, np.float64) for name in ("ready", "arrived", "store_done", "async_done", "issued_at", "opens")),
        *((name, np.int64) for name in ("yielded", "defers", "is_parked", "number", "position", "stop", "shift")),
        *((name, np.int64) for name in ("issues_seen", "place", "sub_core", "fetched_line", "segments")),
        ("boards", np.float64, SCOREBOARDS),
        ("is_long", np.int64, SCOREBOARDS),
        ("outstanding", np.int64, SCOREBOARDS),
        ("reason", np.int64, MOST_SEGMENTS),
        ("until", np.float64, MOST_SEGMENTS),
    ],
    align=True,
)

HELD = np.dtype([("end", np.float64), ("left", np.int64), ("arrived", np.int64)])
GATE = np.dtype([("until", np.float64), ("step", np.int64), ("reason", np.int64)])
GATES = PIPES + 2 * UNITS
LINE = np.dtype([("key", np.int64), ("slot", np.int64), ("seen", np.int64)])
L1 = np.dtype([("ready", np.float64, LINE_SECTORS), ("line", np.int64), ("known", np.int64)], align=True)


class Sm(NamedTuple):
    """An SM and what it executes. Warps and blocks that are held have places of their own, by number and slot."""

    model: Row  # MODEL
    state: Row  # STATE
    cores: Array  # CORE[sub-cores]
    rows: Array  # ROW[rows]
    blocks: Array  # BLOCK[blocks]
    starts: Array  # int64[warps + 1]
    executions: Array  # EXECUTION[n]
    sectors: Array  # int64[m], twice the number, plus one for what the block alone touches
    warps: Array  # WARP[resident blocks x warps of a block]
    held: Array  # HELD[resident blocks]
    free_places: Array  # int64[resident blocks], of ``held``
    block_starts: Array  # float64[blocks], descending: when blocks may begin
    waiting: Array  # int64[sub-cores, warps], those that wait, the one that is ready first last
    eligible: Array  # int64[sub-cores, warps], those whose operands are there
    arrived: Array  # int64[resident blocks, warps of a block], those that have come to a barrier
    outstanding: Array  # float64[warps, scoreboards, most that a DEPBAR may leave], ascending
    gates: Array  # GATE[gates]
    queues: Array  # float64[sub-cores, units + 1, instructions]
    leaving: Array  # float64[issues], when stores under way leave
    misses: Array  # float64[issues], when loads under way end
    near: Array  # float64[sub-cores, lines of code], when they were there; -1 for none
    near_links: Array  # int64[sub-cores, 2, lines of code + 1], see :func:`append`
    code: Array  # float64[lines of code and those fetched ahead]; -1 for none
    constants: Array  # float64[2, lines of constants], near and far; -1 for none
    l1: Array  # L1[lines that it holds]
    l1_links: Array  # int64[2, lines that it holds + 1]
    heads: Array  # int64[power of 2], places in ``lines`` by hash; -1 for none
    lines: Array  # LINE[room], lines of memory by first appearance
    # float64[room, sectors + 1], until when atomic operations hold a sector, and the slice of the line; no rows without atomic operations
    atomics: Array
    most_new: int  # lines of memory that all sub-cores can come to at once
    cycles: Array  # float64[2, (rows + 1) x reasons], all and idle ones
    sums: Array  # float64[moments, 2 + MOVED]
    marked: Array  # float64[moments, 2, (rows + 1) x reasons]


def open_sm(program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int, most_issues: int) -> Sm:
    """The SM before its first block begins."""
    rows = _tabulate(program, int(model.code_prefetch_lines))
    table, starts, executions, sectors = _join_streams(blocks)
    most_warps, count = int(table["warps"].max()), len(rows)
    held, issues = most_warps * resident, min(most_issues, int(sum(len(one.rows) for one in blocks))) + SUB_CORES
    lines, left = int(rows["fetch_line"].max()) + 1, int(rows["depbar_left"].max()) + 1
    cores, l1 = np.zeros(SUB_CORES, CORE), int(model.l1_lines)
    cores["last"] = cores["kept"] = -1
    most_new = SUB_CORES * int((executions["last_sector"] - executions["first_sector"]).max())
    room = max(_FEWEST_LINES, 2 * most_new)
    return Sm(
        model=np.array([tuple(getattr(model, name) for name in SmModel.__struct_fields__)], MODEL)[0],
        state=np.zeros(1, STATE)[0],
        cores=cores,
        rows=rows,
        blocks=table,
        starts=starts,
        executions=executions,
        sectors=sectors,
        warps=np.zeros(held, WARP),
        held=np.zeros(resident, HELD),
        free_places=np.zeros(resident, np.int64),
        block_starts=np.zeros(len(blocks)),
        waiting=np.zeros((SUB_CORES, held), np.int64),
        eligible=np.zeros((SUB_CORES, held), np.int64),
        arrived=np.zeros((resident, most_warps), np.int64),
        outstanding=np.zeros((held if program.has_depbar else 0, SCOREBOARDS, max(1, left))),
        gates=np.zeros(GATES, GATE),
        queues=np.zeros((SUB_CORES, UNITS + 1, max(model.mio_queue_instructions, model.lg_queue_instructions))),
        leaving=np.empty(issues),
        misses=np.empty(issues),
        near=np.full((SUB_CORES, lines), -1.0),
        near_links=np.full((SUB_CORES, 2, lines + 1), lines, np.int64),
        code=np.full(lines + int(model.code_prefetch_lines), -1.0),
        constants=np.full((2, int(rows["constant"].max()) + 1), -1.0),
        l1=np.zeros(l1, L1),
        l1_links=np.full((2, l1 + 1), l1, np.int64),
        heads=np.full(_double(room), -1),
        lines=np.zeros(room, LINE),
        atomics=np.zeros((room if np.isin(rows["kind"], (Kind.ATOMIC, Kind.REDUCTION)).any() else 0, LINE_SECTORS + 1)),
        most_new=most_new,
        cycles=np.zeros((2, (count + 1) * REASON_COUNT)),
        sums=np.zeros((MOST_MOMENTS, 2 + MOVED)),
        marked=np.zeros((MOST_MOMENTS, 2, (count + 1) * REASON_COUNT)),
    )


def _double(room: int) -> int:
    """The least power of two that is at least twice ``room``."""
    return 1 << (2 * room - 1).bit_length()


def widen(sm: Sm) -> Sm:
    """The same SM with room for twice as many lines of memory; their heads are to be filled again."""
    room = 2 * len(sm.lines)
    lines, atomics = np.zeros(room, LINE), np.zeros((room if len(sm.atomics) else 0, LINE_SECTORS + 1))
    lines[: len(sm.lines)] = sm.lines
    atomics[: len(sm.atomics)] = sm.atomics
    return sm._replace(lines=lines, atomics=atomics, heads=np.full(_double(room), -1))


def _tabulate(program: SassProgram, ahead: int) -> Array:
    """The program as rows of :data:`ROW`; gaps in its lines of code are as wide as what is fetched ahead tells apart."""
    table = np.zeros(len(program.kind), ROW)
    for name in ("interval", "latency", "stall", *_SAME):
        table[name] = getattr(program, name)
    table["depbar_left"] = np.minimum(table["depbar_left"], MOST_LEFT)
    table["gate"] = np.array(program.gate) + PIPES
    for name in _READS:
        table[name] = [getattr(one, name) for one in program.register_reads]
    known, number = np.unique(program.fetch_line, return_inverse=True)
    table["fetch_line"] = np.minimum(np.diff(known, prepend=known[:1]), ahead + 2).cumsum()[number]
    lines = np.array(program.constant_line, dtype=np.int64)
    table["constant"] = _number(lines)
    table["far_constant"] = _number(np.where(lines < 0, -1, lines // FAR_LINES))
    return table


def _number(lines: Array) -> Array:
    """Lines numbered from 0; -1 stays what it is."""
    known, numbers = np.unique(lines, return_inverse=True)
    found: Array = numbers - (1 if known[0] < 0 else 0)
    return found


def _join_streams(blocks: Sequence[BlockStream]) -> tuple[Array, Array, Array, Array]:
    """The blocks, the first executions of their warps, the executions, and the sectors of these; each stream once."""
    table = np.zeros(len(blocks), BLOCK)
    starts, parts, sectors = [], [], []
    placed: dict[int, tuple[int, int]] = {}
    executed = touched = warps = 0
    for number, one in enumerate(blocks):
        if id(one.rows) not in placed:
            own = np.unique(one.starts)  # a warp without executions is none
            placed[id(one.rows)] = warps, len(own) - 1
            part = np.zeros(len(one.rows), EXECUTION)
            part["row"], part["weight"] = one.rows, one.weights
            part["passes"], part["lines"], part["masked"] = one.passes, one.lines, one.masked
            part["first_sector"], part["last_sector"] = one.first_sector + touched, one.last_sector + touched
            starts.append(own + executed)
            parts.append(part)
            sectors.append(2 * one.sectors + one.is_private)
            warps, executed, touched = warps + len(own), executed + len(part), touched + len(one.sectors)
        table[number] = (*placed[id(one.rows)], one.shift)
    return table, np.concatenate(starts), np.concatenate(parts), np.concatenate(sectors)
