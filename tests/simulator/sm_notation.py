"""Small programs and blocks for the simulated SM, written by hand."""

import numpy as np
from msgspec.structs import fields

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.program import LSU, NO_READS, Kind, OpcodeCourse, SassProgram
from gpa_lsp.execution.simulator.reasons import REASON_COUNT, REASONS, SmRun
from gpa_lsp.execution.simulator.warp_walk import BlockStream, KernelWalk, WarpWalk
from gpa_lsp.gpu.arch.lookup import find_architecture

ALU = OpcodeCourse(pipe=1, interval=2.0)
FMA = OpcodeCourse(pipe=2)
LOAD = OpcodeCourse(kind=Kind.LOAD, unit=LSU, is_lg=True, is_long=True, latency=33.0)
STORE = OpcodeCourse(kind=Kind.STORE, unit=LSU, is_lg=True, is_long=True, latency=33.0)
SHARED = OpcodeCourse(kind=Kind.SHARED, unit=LSU, latency=23.0)
BARRIER = OpcodeCourse(kind=Kind.BARRIER)
EXIT = OpcodeCourse(kind=Kind.BRANCH)

Row = tuple[OpcodeCourse, dict[str, int]]
"""How it goes, and what its control code says."""


def make_program(*rows: Row) -> SassProgram:
    """A program of rows; a control code has ``stall``, ``yields``, ``write``, ``read`` and ``wait``."""
    courses = [course for course, _ in rows]
    codes = [code for _, code in rows]
    columns = {one.name: [getattr(course, one.name) for course in courses] for one in fields(OpcodeCourse)}
    return SassProgram(
        **columns,
        computes=[one.kind == Kind.FIXED for one in courses],
        gate=[2 * one.unit + one.is_lg if one.unit >= 0 else -1 - one.pipe for one in courses],
        stall=[float(code.get("stall", 1)) for code in codes],
        yields=[bool(code.get("yields", 0)) for code in codes],
        write_board=[code.get("write", -1) for code in codes],
        read_board=[code.get("read", -1) for code in codes],
        wait_mask=[code.get("wait", 0) for code in codes],
        depbar_board=[-1] * len(rows),
        depbar_left=[-1] * len(rows),
        has_depbar=False,
        fetch_line=[0] * len(rows),
        constant_line=[-1] * len(rows),
        register_reads=[NO_READS] * len(rows),
    )


def make_model(**changes: float) -> SmModel:
    """An SM of 8.6 with round figures, whose first instructions are there at once."""
    figures = find_architecture((8, 6)).simulation
    known = {one.name for one in fields(SmModel)}
    values = {one.name: getattr(figures, one.name).value for one in fields(figures) if one.name in known}
    values |= {
        "accept_cycles": 2.0,
        "address_cycles": 4.0,
        "l1_lines": 512,
        "l1_tags_per_cycle": 0.0,
        "l2_bytes_per_cycle": 32.0,
        "store_bytes_per_cycle": 32.0,
        "l2_cycles": 200.0,
        "l2_hit_ratio": 0.0,
        "dram_bytes_per_cycle": 8.0,
        "fetched_bytes": 32.0,
        "dram_cycles": 500.0,
        "written_back_ratio": 0.0,
        "atomic_cycles": 1.0,
        "block_interval_cycles": 0.0,
        "code_first_cycles": 0.0,
        "warp_start_cycles": 0.0,
        "code_near_cycles": 0.0,
        "code_stream_cycles": 0.0,
    }
    return SmModel(**(values | changes))  # type: ignore[arg-type]


def make_block(
    program: SassProgram, *, warps: int, sectors: int = 4, first: int = 0, weight: float = 1.0
) -> BlockStream:
    """A block whose warps execute a program once; each access touches sectors of its own."""
    count = len(program.kind)
    is_memory = [unit == LSU for unit in program.unit]
    touched = [sectors if lg else 0 for lg in program.is_lg]
    rows = list(range(count)) * warps
    ends = []
    total = 0
    for _ in range(warps):
        for one in touched:
            total += one
            ends.append(total)
    return BlockStream(
        starts=np.arange(warps + 1) * count,
        rows=np.array(rows, np.int32),
        passes=np.array([1 if one else 0 for one in is_memory] * warps, np.int32),
        lines=np.array([-(-one // 4) for one in touched] * warps, np.int32),
        masked=np.zeros(len(rows), np.int32),
        first_sector=np.array([end - touched[place % count] for place, end in enumerate(ends)], np.int64),
        last_sector=np.array(ends, np.int64),
        sectors=first + np.arange(total),
        is_private=np.zeros(total, np.bool_),
        weights=np.full(len(rows), weight),
    )


def is_same(one: SmRun, other: SmRun) -> bool:
    """Whether two runs are equal to the last bit."""
    return (one.dilation, one.issued, one.is_cut) == (other.dilation, other.issued, other.is_cut) and all(
        (first.time, first.blocks_done, first.moved) == (second.time, second.blocks_done, second.moved)
        and first.all_cycles.tobytes() == second.all_cycles.tobytes()
        and first.idle_cycles.tobytes() == second.idle_cycles.tobytes()
        for first, second in zip(one.moments, other.moments, strict=True)
    )


def read_cycles(run: SmRun, row: int) -> dict[str, float]:
    """Warp cycles of a row by reason, of the whole run."""
    cycles = run.moments[-1].all_cycles[row * REASON_COUNT : (row + 1) * REASON_COUNT].tolist()
    return {reason: count for reason, count in zip(REASONS, cycles, strict=True) if count}


def sum_cycles(run: SmRun, reason: str) -> float:
    """Warp cycles of a reason, of all rows."""
    return float(run.moments[-1].all_cycles[REASONS.index(reason) :: REASON_COUNT].sum())


def find_share(run: SmRun, reason: str) -> float:
    """Share of a reason in all warp cycles."""
    return sum_cycles(run, reason) / float(run.moments[-1].all_cycles.sum())


def walk_block(block: tuple[int, int, int], *touched: list[int], wavefronts: int = 1) -> WarpWalk:
    """A block of one warp that executes one row after the other, each of which touches these sectors."""
    count = len(touched)
    return WarpWalk(
        block=block,
        warp=0,
        instruction=np.arange(count, dtype=np.int32),
        active=np.full(count, 2**32 - 1, np.uint32),
        wavefronts=np.full(count, wavefronts, np.uint16),
        first_sector=np.cumsum([0, *map(len, touched)], dtype=np.int64),
        sectors=np.array([one for row in touched for one in row], np.int64),
    )


def make_walk(grid: tuple[int, int, int], *walks: WarpWalk, array_sectors: int = 1 << 40) -> KernelWalk:
    """A walk of such blocks over one array, each row of which is executed once by each block of the grid."""
    count = len(walks[0].instruction)
    blocks = float(np.prod(grid))
    return KernelWalk(
        kernel="k",
        grid=grid,
        block_threads=(32, 1, 1),
        shared_bytes=0,
        registers=16,
        walks=walks,
        sampled_blocks=(),
        executed=np.full(count, blocks),
        thread_executed=np.full(count, 32 * blocks),
        extents=np.array([[0, 32 * array_sectors]]),
        not_simulated=(),
    )
