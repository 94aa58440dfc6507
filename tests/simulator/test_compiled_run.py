"""The SM in the compiled core and in Python: equal to the last bit, whatever it executes."""

import re

import numpy as np
import pytest
from msgspec.structs import fields, replace

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.program import Kind, OpcodeCourse, RegisterReads, SassProgram
from gpa_lsp.execution.simulator.reasons import REASONS
from gpa_lsp.execution.simulator.streaming_multiprocessor import (
    MODEL,
    ROW,
    run_compiled,
    simulate_sm,
    simulate_sm_plainly,
)
from gpa_lsp.execution.simulator.streams import BlockStream
from gpa_lsp.foundation.native.shared_library import SOURCES, VARIABLE, find_core
from tests.simulator.sm_notation import ALU, EXIT, LOAD, make_block, make_model, make_program


@pytest.fixture(autouse=True)
def core(compiled_core: None) -> None:
    """Skip where numpy is all there is."""
    if find_core() is None:
        pytest.skip("there is no compiled core")


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
    """Up to four registers for each operand, of few, so that some are kept for those that follow."""
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


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_executed_takes_the_same_time(seed: int) -> None:
    random = np.random.default_rng(seed)
    program, model = draw_program(random), draw_model(random)
    streams = [draw_block(random, program, int(random.integers(1, 12))) for _ in range(int(random.integers(1, 4)))]
    blocks = [
        replace(streams[number % len(streams)], repetition=number) for number in range(int(random.integers(1, 9)))
    ]
    resident, most = int(random.integers(1, 6)), int(random.choice([150, 100_000]))
    compiled = run_compiled(program, model, blocks, resident, most)
    plain = simulate_sm_plainly(program, model, blocks, resident, most)
    assert compiled is not None
    assert compiled.issued > 0
    for name in ("dilation", "issued", "is_cut"):
        assert getattr(compiled, name) == getattr(plain, name)
    for one, other in zip(compiled.moments, plain.moments, strict=True):
        assert (one.time, one.blocks_done, one.moved) == (other.time, other.blocks_done, other.moved)
        assert one.all_cycles.tobytes() == other.all_cycles.tobytes()
        assert one.idle_cycles.tobytes() == other.idle_cycles.tobytes()


def test_what_leads_nowhere_is_left_to_python() -> None:
    program = make_program((LOAD, {"write": 0}), (EXIT, {"stall": 5}))
    block = make_block(program, warps=2)
    model = make_model()
    assert run_compiled(program, model, [block], 1, 100) is not None
    beyond = replace(block, rows=block.rows + 1)
    assert run_compiled(program, model, [beyond], 1, 100) is None
    outside = replace(block, last_sector=block.last_sector + 10**9)
    assert run_compiled(program, model, [outside], 1, 100) is None
    assert run_compiled(program, model, [replace(block, starts=block.starts * 9)], 1, 100) is None
    assert run_compiled(program, make_model(mio_queue_instructions=0), [block], 1, 100) is None
    assert run_compiled(program, model, [], 1, 100) is None
    odd = replace(program, write_board=[6, -1])
    assert run_compiled(odd, model, [block], 1, 100) is None
    many = replace(program, register_reads=[RegisterReads(first=(0, -1, -1), count=(5, 0, 0)), RegisterReads()])
    assert run_compiled(many, model, [block], 1, 100) is None


def test_a_variable_leaves_it_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    program = make_program((ALU, {}), (EXIT, {"stall": 5}))
    blocks = [make_block(program, warps=1)]
    assert run_compiled(program, make_model(), blocks, 1, 100) is None
    assert simulate_sm(program, make_model(), blocks, 1, 100).issued == 2


def test_both_sides_know_the_same_columns() -> None:
    header = (SOURCES / "multiprocessor.h").read_text(encoding="utf-8")
    model = header.partition("typedef struct {")[2].partition("} Model;")[0]
    assert tuple(re.findall(r"double (\w+);", model)) == MODEL == tuple(one.name for one in fields(SmModel))
    row = header.partition("} Model;")[2].partition("typedef struct {")[2].partition("} Row;")[0]
    listed = re.sub(r"/\*.*?\*/|double|int32_t|[\s;]", lambda found: "," if found[0] == ";" else "", row)
    assert listed.strip(",").split(",") == [name + "[OPERANDS]" * len(ROW[name].shape) for name in ROW.names or ()]
    kinds = re.search(r"enum \{\s*(FIXED.*?)\}", header, re.DOTALL)
    assert kinds is not None
    named = [one.strip().removesuffix("_WAIT") for one in kinds[1].split(",")]
    assert named[:-1] == [one.name for one in sorted(Kind)]
    reasons = re.search(r"enum \{\s*(SELECTED.*?)\}", header, re.DOTALL)
    assert reasons is not None
    assert [one.strip().lower() for one in reasons[1].split(",")] == list(REASONS)
