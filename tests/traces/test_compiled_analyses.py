"""The analyses say the same in the compiled core and in numpy."""

import numpy as np
import pytest
from msgspec import Struct

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.wavefronts import count_wavefronts
from gpa_lsp.execution.emulator.trace import Trace
from gpa_lsp.execution.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.execution.traces.piece_rows import PieceRows
from gpa_lsp.execution.traces.segments import Intervals, list_segments, measure_intervals
from gpa_lsp.execution.volumes import miscounts
from gpa_lsp.foundation.native.shared_library import VARIABLE
from tests.emulator.compiled.comparing import require_core
from tests.traces.analysing import analyse_trace
from tests.traces.written_traces import BASE, TraceWriter, make_buffer, make_instruction


@pytest.fixture(autouse=True)
def core() -> None:
    """Where there is one."""
    require_core()


def _compute(seed: int) -> dict[str, list[object]]:
    """Everything that is computed in two ways, of random columns."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 3000))
    found = {}
    width = random.choice([1, 4, 8, 16], (count, 1)).astype(np.uint64)
    starts = np.sort(random.integers(0, 4096, (count, 32)), axis=1).astype(np.uint64) * width
    intervals = Intervals(starts=starts, bytes=width)
    touched = measure_intervals(intervals)
    found["touched"] = [getattr(touched, name).tolist() for name in touched.__slots__]
    found["segments"] = [[column.tolist() for column in list_segments(intervals, shift)] for shift in (2, 5, 7)]
    for size in (1, 4, 8, 16):
        addresses = random.integers(0, int(random.integers(1, 200)), (200, 32)).astype(np.uint64) * np.uint64(size)
        active = random.random((200, 32)) < random.random()
        kinds = random.integers(0, 4, 200).astype(np.int8)
        found[f"passes of {size}"] = [column.tolist() for column in count_wavefronts(addresses, active, size, kinds)]
    return found


@pytest.mark.parametrize("seed", range(12))
def test_columns_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "0")
    expected = _compute(seed)
    monkeypatch.delenv(VARIABLE)
    assert _compute(seed) == expected


_KINDS = (
    (AccessKind.LOAD, Space.GLOBAL, 4, "ld.global.f32 %f1, [%rd1];"),
    (AccessKind.LOAD, Space.GLOBAL, 16, "ld.global.v4.f32 {%f1}, [%rd1];"),
    (AccessKind.LOAD, Space.GLOBAL, 8, "ld.relaxed.gpu.global.f64 %fd1, [%rd1];"),
    (AccessKind.STORE, Space.GLOBAL, 4, "st.global.f32 [%rd1], %f1;"),
    (AccessKind.ATOMIC, Space.GLOBAL, 4, "atom.global.add.u32 %r1, [%rd1], 1;"),
    (AccessKind.LOAD, Space.TEXTURE, 1, "tex.2d.v4.f32.f32 {%f1}, [texture, {%f1}];"),
    (AccessKind.LOAD, Space.LOCAL, 4, "ld.local.f32 %f1, [%rd1];"),
    (AccessKind.STORE, Space.SHARED, 4, "st.shared.f32 [%r1], %f1;"),
    (AccessKind.LOAD, Space.SHARED, 16, "ld.shared.v4.f32 {%f1}, [%r1];"),
)
_BUFFERS = (make_buffer("a", 4096), make_buffer("b", 1000, BASE + 4096), make_buffer("c", 512, BASE + (1 << 16)))


def write_random(random: np.random.Generator, first_block: int = 0) -> Trace:
    """Rows in no order that warps would keep, with all kinds of masks; some addresses in no array, some requests in several."""
    instructions = tuple(
        make_instruction(index, kind, space, width, text=text)
        for index, (kind, space, width, text) in enumerate(_KINDS)
    )
    writer = TraceWriter(instructions, _BUFFERS, grid=(12, 1, 1), block_threads=(96, 1, 1))
    for _ in range(int(random.integers(1, 400))):
        number = int(random.integers(len(_KINDS)))
        _, space, width, _ = _KINDS[number]
        lanes = np.flatnonzero(random.random(32) < random.choice([0.1, 0.8, 1.0])).tolist() or [5]
        start, step = int(random.integers(0, 60)), int(random.choice([0, 1, 1, 2, -1, 33]))
        places = [
            max(0, start + step * lane) if random.random() < 0.9 else int(random.integers(0, 300)) for lane in lanes
        ]
        far = random.choice([BASE, BASE, BASE + (1 << 16), BASE - 64])
        base = 0 if space in (Space.LOCAL, Space.SHARED) else int(far)
        addresses = {lane: base + width * place for lane, place in zip(lanes, places, strict=True)}
        writer.access(number, addresses, block=first_block + int(random.integers(6)), warp=int(random.integers(3)))
    return writer.finish()


def write_loops(random: np.random.Generator) -> Trace:
    """Few kinds of requests again and again, some of which share lines: what sets of lines are for."""
    instructions = tuple(
        make_instruction(index, kind, space, width, text=text)
        for index, (kind, space, width, text) in enumerate(_KINDS[:6])
    )
    writer = TraceWriter(instructions, _BUFFERS, grid=(4, 1, 1), block_threads=(64, 1, 1))
    lines = [random.permutation(48)[: int(random.integers(1, 33))] for _ in range(5)]
    for _ in range(int(random.integers(200, 600))):
        number, chosen = int(random.integers(len(instructions))), lines[int(random.integers(5))]
        chosen = chosen if random.random() < 0.8 else random.permutation(chosen)[: len(chosen) // 2 + 1]
        offset = (
            int(random.choice([0, 0, 4, 32, 100]))
            // instructions[number].bytes_per_lane
            * instructions[number].bytes_per_lane
        )
        addresses = {lane: BASE + 128 * int(line) + offset for lane, line in enumerate(chosen.tolist())}
        writer.access(number, addresses, block=int(random.integers(2)), warp=int(random.integers(2)))
    return writer.finish()


def _write_down(value: object) -> object:
    """All that a record holds, as lists."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [_write_down(one) for one in value]
    if isinstance(value, Struct):
        return [type(value).__name__, *(_write_down(getattr(value, name)) for name in value.__struct_fields__)]
    return repr(value)


@pytest.mark.parametrize("seed", range(48))
def test_analyses_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of whole traces in one piece or two, also where more was traced than may be looked at."""
    random = np.random.default_rng(seed)
    pieces = [write_random(random, first) for first in (0, 6)[: int(random.integers(1, 3))]]
    if seed % 2:
        pieces = [write_loops(random)]
    settings = AnalysisSettings(
        block_references=int(random.choice([30, 500, 1_000_000, 1_000_000])),
        wave_references=int(random.choice([100, 2_000_000, 2_000_000])),
        footprint_sectors=int(random.choice([100, 1 << 20])),
    )
    context = TraceContext(
        sm_count=int(random.integers(1, 4)),
        blocks_per_sm=int(random.integers(1, 3)),
        l1_bytes=int(random.choice([512, 4096])) if random.random() < 0.9 else None,
        l2_bytes=int(random.choice([512, 4096])) if random.random() < 0.9 else None,
    )

    def analyse() -> object:
        return _write_down(analyse_trace(pieces, context=context, settings=settings))

    monkeypatch.setenv(VARIABLE, "0")
    expected = analyse()
    monkeypatch.delenv(VARIABLE)
    assert analyse() == expected


@pytest.mark.parametrize("seed", range(6))
def test_sectors_of_rows_are_the_same(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_random(np.random.default_rng(seed))
    is_global = np.array([one[1] is Space.GLOBAL for one in _KINDS])

    def count() -> list[int]:
        marks = (is_global, is_global & (np.arange(len(_KINDS)) % 2 == 0))
        return [
            ask(PieceRows(trace), one) for ask in (miscounts.count_touched, miscounts.count_traced) for one in marks
        ]

    monkeypatch.setenv(VARIABLE, "0")
    expected = count()
    monkeypatch.delenv(VARIABLE)
    assert count() == expected
