"""Traces drawn by lot: rows of all kinds in no order, and few kinds again and again."""

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.model import Trace
from tests.traces.written_traces import BASE, TraceWriter, make_buffer, make_instruction

KINDS = (
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


def read_lanes(trace: Trace, row: int) -> dict[int, int]:
    """Address by lane of a row."""
    rows, first = trace.accesses, int(trace.accesses.first_address[row])
    lanes = [lane for lane in range(32) if int(rows.lane_mask[row]) >> lane & 1]
    return dict(zip(lanes, rows.addresses[first : first + len(lanes)].tolist(), strict=True))


def write_random(random: np.random.Generator, first_block: int = 0) -> Trace:
    """Rows in no order that warps would keep, with all kinds of masks; some addresses in no array, some requests in several."""
    instructions = tuple(
        make_instruction(index, kind, space, width, text=text) for index, (kind, space, width, text) in enumerate(KINDS)
    )
    writer = TraceWriter(instructions, _BUFFERS, grid=(12, 1, 1), block_threads=(96, 1, 1))
    for _ in range(int(random.integers(1, 400))):
        number = int(random.integers(len(KINDS)))
        _, space, width, _ = KINDS[number]
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
        for index, (kind, space, width, text) in enumerate(KINDS[:6])
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
