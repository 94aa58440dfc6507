"""The SM executes whatever is drawn in the same time as before, to the last bit."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.program import Kind, OpcodeCourse, RegisterReads, SassProgram
from gpa_lsp.execution.simulator.reasons import REASONS, SmRun
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.execution.simulator.warp_walk import BlockStream
from tests.simulator.sm_notation import ALU, EXIT, LOAD, make_block, make_model, make_program

_COURSES = (
    ALU,
    LOAD,
    OpcodeCourse(pipe=2, interval=1.0),
    OpcodeCourse(pipe=0),
    OpcodeCourse(kind=Kind.LOAD, unit=0, is_lg=True, is_long=True, latency=39.0, uses_l1=False),
    OpcodeCourse(kind=Kind.LOAD, unit=0, is_lg=True, is_long=True, latency=39.0, is_async=True),
    OpcodeCourse(kind=Kind.STORE, unit=0, is_lg=True, is_long=True, latency=33.0),
    OpcodeCourse(kind=Kind.REDUCTION, unit=0, is_lg=True, is_long=True, latency=33.0),
    OpcodeCourse(kind=Kind.REDUCTION, unit=0, interval=3.0, is_lg=True, is_long=True, latency=33.0),
    OpcodeCourse(kind=Kind.ATOMIC, unit=0, interval=3.0, is_lg=True, is_long=True, latency=33.0, uses_l1=False),
    OpcodeCourse(kind=Kind.SHARED, unit=0, latency=23.0),
    OpcodeCourse(kind=Kind.SPECIAL, unit=1, latency=18.0, interval=4.0),
    OpcodeCourse(kind=Kind.SPECIAL, unit=2, latency=25.0, interval=2.0, is_shared_unit=True),
    OpcodeCourse(kind=Kind.SPECIAL, unit=3, latency=40.0, interval=16.0, throttle=REASONS.index("tex_throttle")),
    OpcodeCourse(kind=Kind.BARRIER),
    OpcodeCourse(kind=Kind.BARRIER, defers=True),
    OpcodeCourse(kind=Kind.BRANCH),
    OpcodeCourse(kind=Kind.MEMBAR),
    OpcodeCourse(kind=Kind.ASYNC_FENCE, is_long=True, latency=20.0),
    OpcodeCourse(kind=Kind.RETURN),
    OpcodeCourse(kind=Kind.CONVERGE),
)


def draw_program(random: np.random.Generator) -> SassProgram:
    """Some rows of any kind with any control codes."""
    count = int(random.integers(5, 60))
    courses = [_COURSES[number] for number in random.integers(0, len(_COURSES), count)]

    def code() -> dict[str, int]:
        boards = {name: int(random.integers(-1, 6)) for name in ("write", "read")}
        return {
            "stall": int(random.integers(1, 16)),
            "yields": int(random.integers(0, 2)),
            "wait": int(random.integers(0, 64)) & int(random.integers(0, 64)),
            **boards,
        }

    program = make_program(*[(course, code()) for course in courses])
    waits = random.random(count) < 0.1
    return replace(
        program,
        depbar_board=[int(random.integers(0, 6)) if one else -1 for one in waits],
        depbar_left=[int(random.integers(0, 4)) if one else -1 for one in waits],
        has_depbar=bool(waits.any()),
        fetch_line=(np.arange(count) // int(random.integers(1, 9))).tolist(),
        constant_line=[int(one) for one in random.integers(-3, 4, count).clip(-1)],
        register_reads=[draw_reads(random) for _ in range(count)],
    )


def draw_reads(random: np.random.Generator) -> RegisterReads:
    """Reads of up to four registers for each operand, of few, so that some are kept for those that follow."""
    counts = random.integers(0, 5, 3) * (random.random(3) < 0.7)
    first, count = np.where(counts, random.integers(0, 8, 3), -1).tolist(), counts.tolist()
    kept = (random.random(3) < 0.5).tolist()
    return RegisterReads(
        first=(first[0], first[1], first[2]), count=(count[0], count[1], count[2]), kept=(kept[0], kept[1], kept[2])
    )


def draw_block(random: np.random.Generator, program: SassProgram, warps: int) -> BlockStream:
    """Warps that execute rows of a program with jumps. A barrier opens for those that have not ended."""
    rows: list[int] = []
    starts = [0]
    count = len(program.kind)
    for _ in range(warps):
        row = int(random.integers(0, count))
        for _ in range(int(random.integers(1, 80))):
            rows.append(row)
            row = row + 1 if random.random() < 0.8 and row + 1 < count else int(random.integers(0, count))
        starts.append(len(rows))
    counts = random.integers(0, 9, len(rows))
    ends = np.cumsum(counts)
    return BlockStream(
        starts=np.array(starts, np.int64),
        rows=np.array(rows, np.int32),
        passes=random.integers(0, 5, len(rows)).astype(np.int32),
        lines=random.integers(0, 5, len(rows)).astype(np.int32),
        masked=random.integers(0, 3, len(rows)).astype(np.int32),
        first_sector=ends - counts,
        last_sector=ends,
        sectors=random.integers(0, 2000, int(ends[-1])).astype(np.int64),
        is_private=random.random(int(ends[-1])) < 0.5,
        weights=random.choice([1.0, 2.5, 7.0], len(rows)),
    )


def draw_model(random: np.random.Generator) -> SmModel:
    """An SM with small caches and queues, so that they run full."""
    return make_model(
        l1_lines=int(random.choice([0, 3, 64])),
        l1_tags_per_cycle=float(random.choice([0, 4])),
        l2_hit_ratio=float(random.random()),
        written_back_ratio=float(random.choice([0.0, 0.3, 1.0])),
        atomic_cycles=float(random.choice([1.0, 1.1, 70.5])),
        block_interval_cycles=float(random.choice([0.0, 11.5])),
        warp_start_cycles=float(random.choice([0.0, 17.0])),
        code_first_cycles=300.0,
        code_near_cycles=20.0,
        code_stream_cycles=2.5,
        code_cache_lines=int(random.integers(1, 6)),
        code_prefetch_lines=int(random.integers(0, 3)),
        miss_queue_instructions=int(random.integers(1, 20)),
        store_queue_instructions=int(random.integers(1, 20)),
        mio_queue_instructions=int(random.integers(1, 6)),
        lg_queue_instructions=int(random.integers(1, 6)),
        operand_window_cycles=float(random.integers(1, 6)),
        bank_registers_per_cycle=float(random.integers(1, 3)),
    )


def draw_run(seed: int) -> SmRun:
    """Some blocks on some SM."""
    random = np.random.default_rng(seed)
    program, model = draw_program(random), draw_model(random)
    streams = [draw_block(random, program, int(random.integers(1, 12))) for _ in range(int(random.integers(1, 4)))]
    blocks = [
        replace(streams[number % len(streams)], repetition=number) for number in range(int(random.integers(1, 9)))
    ]
    resident, most = int(random.integers(1, 6)), int(random.choice([150, 100_000]))
    return simulate_sm(program, model, blocks, resident, most)


def describe(run: SmRun) -> list[object]:
    """Figures to look at, and a digest of all."""
    digest = hashlib.sha256(repr((run.dilation, run.is_cut)).encode())
    for one in run.moments:
        digest.update(repr((one.time, one.blocks_done, one.moved)).encode())
        digest.update(one.all_cycles.tobytes() + one.idle_cycles.tobytes())
    return [run.issued, run.moments[-1].time, digest.hexdigest()[:16]]


_KNOWN = json.loads(Path(__file__).with_name("drawn_runs.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("seed", range(len(_KNOWN)))
def test_whatever_is_executed_takes_the_same_time(seed: int) -> None:
    assert describe(draw_run(seed)) == _KNOWN[seed]


def test_memory_grows_with_the_lines_that_are_touched() -> None:
    program = make_program((LOAD, {"write": 0}), (EXIT, {"stall": 5, "wait": 1}))
    blocks = [make_block(program, warps=8, sectors=32, first=number << 12) for number in range(200)]
    run = simulate_sm(program, make_model(), blocks, 6, 1_000_000)
    assert run.moments[-1].moved[:2] == (200 * 8 * 32 * 32, 200 * 8 * 32 * 32)


def test_a_warp_that_executes_nothing_is_none() -> None:
    program = make_program((ALU, {}), (EXIT, {"stall": 5}))
    block = make_block(program, warps=2)
    run = simulate_sm(program, make_model(), [replace(block, starts=np.array([0, 0, 2, 4]))], 1, 100)
    assert (run.issued, run.is_cut) == (4, False)
