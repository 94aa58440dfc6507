"""Traces: reuse distances of sequences of several shapes, and every analysis of a trace of a matrix product, in references and requests a second.

Usage: ``python -m tests.bench.analysing_traces [--references N] [--requests N]``.
"""

import argparse
import time
import tracemalloc

import numpy as np

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind, StaticInstruction
from gpa_lsp.execution.emulator.trace import ACCESS_DTYPES, Accesses, Branches, Buffer, Entries, Trace
from gpa_lsp.execution.traces.access_sums import AccessAccumulator
from gpa_lsp.execution.traces.ask import answer_questions, list_questions
from gpa_lsp.execution.traces.bank_conflicts import BankAccumulator
from gpa_lsp.execution.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.execution.traces.piece_rows import PieceRows
from gpa_lsp.execution.traces.reuse_distance import measure_distances
from tests.traces.analysing import analyse_trace

_WARPS = 8


def make_sequences(count: int) -> dict[str, np.ndarray]:
    """References by name: spread at random, walked again and again, and near to each other."""
    generator = np.random.default_rng(1)
    place = np.arange(count, dtype=np.int64)
    return {
        "random": generator.integers(0, count // 8, count),
        "walked four times": place % (count // 4),
        "neighbours": place // 8 + generator.integers(0, 64, count),
    }


def make_trace(requests: int) -> Trace:
    """Loads of a row, contiguous, of a column, strided, of shared memory, and stores, in turn; blocks of eight warps."""
    size = 1 << 12
    buffers = tuple(
        Buffer(
            name=name,
            space=Space.GLOBAL,
            base=(1 << 32) * (number + 1),
            size_bytes=size * size * 4,
            element_bytes=4,
            argument=number,
        )
        for number, name in enumerate("abc")
    )
    kinds = (
        (AccessKind.LOAD, Space.GLOBAL),
        (AccessKind.LOAD, Space.GLOBAL),
        (AccessKind.LOAD, Space.SHARED),
        (AccessKind.STORE, Space.GLOBAL),
    )
    instructions = tuple(
        StaticInstruction(index=number, function="f", text="", kind=kind, space=space, bytes_per_lane=4)
        for number, (kind, space) in enumerate(kinds)
    )
    row = np.arange(requests, dtype=np.int64)
    instruction = row % 4
    per_block = max(_WARPS * 4, requests // 64)
    block, warp, step = row // per_block, row // 4 % _WARPS, row % per_block // (4 * _WARPS)
    lane = np.arange(32, dtype=np.int64)
    column = (block * 256 + warp * 32)[:, None] % size + lane
    addresses = np.select(
        [instruction[:, None] == number for number in range(4)],
        [
            buffers[0].base + 4 * (step[:, None] % size * size + column),
            buffers[1].base + 4 * (column * size + step[:, None] % size),
            4 * ((step[:, None] * 33 + lane * 2) % 4096),
            buffers[2].base + 4 * (step[:, None] % size * size + column),
        ],
    )  # fmt: skip
    values = {
        "block": block, "warp": warp, "instruction": instruction, "execution": step, "lane_mask": np.full(requests, 0xFFFFFFFF),
        "bytes": np.full(requests, 4), "space": np.where(instruction == 2, Space.SHARED, Space.GLOBAL), "first_address": row * 32,
    }  # fmt: skip
    none = np.empty(0, dtype=np.uint32)
    return Trace(
        kernel="f",
        grid=(int(block[-1]) + 1, 1, 1),
        block_threads=(32 * _WARPS, 1, 1),
        instructions=instructions,
        buffers=buffers,
        accesses=Accesses(
            **{name: column.astype(ACCESS_DTYPES[name]) for name, column in values.items()},
            addresses=addresses.reshape(-1).astype(np.uint64),
        ),
        branches=Branches(
            block=none, warp=none.astype(np.uint16), instruction=none, execution=none, active_mask=none, taken_mask=none
        ),
        entries=Entries(block=none, warp=none.astype(np.uint16), basic_block=none, lane_mask=none),
        traced_blocks=np.unique(block).astype(np.uint32),
    )


def time_all(references: int, requests: int) -> None:
    """Print the rates."""
    for name, units in make_sequences(references).items():
        groups = np.zeros(references, dtype=np.int64)
        start = time.perf_counter()
        measure_distances(units.astype(np.int64), groups)
        seconds = time.perf_counter() - start
        print(f"reuse distances, {name}: {references / seconds / 1e6:.1f} M references/s")
    AccessAccumulator((), footprint_sectors=0).add(PieceRows(make_trace(64)))  # loops are loaded when first used
    trace = make_trace(requests)
    accesses, banks = AccessAccumulator(trace.buffers, footprint_sectors=1 << 26), BankAccumulator()
    for label, add in (
        ("divergence, patterns and arrays", lambda: accesses.add(PieceRows(trace))),
        ("bank conflicts", lambda: banks.add(PieceRows(trace))),
    ):
        start = time.perf_counter()
        add()
        print(f"{label}: {requests / (time.perf_counter() - start) / 1e6:.2f} M requests/s")
    context = TraceContext(sm_count=8, blocks_per_sm=4, l1_bytes=128 << 10, l2_bytes=4 << 20)
    start = time.perf_counter()
    analyses = analyse_trace(trace, context=context, settings=AnalysisSettings())
    seconds = time.perf_counter() - start
    print(f"everything: {requests:,} requests in {seconds:.2f} s, {requests / seconds / 1e6:.2f} M requests/s")
    list_questions()  # they are imported when first asked
    start = time.perf_counter()
    answer_questions(analyses)
    print(f"questions: {(time.perf_counter() - start) * 1e3:.1f} ms")
    tracemalloc.start()
    analyse_trace(trace, context=context)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    held = trace.accesses.addresses.nbytes + len(trace.accesses) * 32
    print(f"memory: {peak >> 20} MiB at most, beside the {held >> 20} MiB of the trace")


def main() -> None:
    """Parse the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--references", type=int, default=2_000_000)
    parser.add_argument("--requests", type=int, default=1_000_000)
    arguments = parser.parse_args()
    time_all(arguments.references, arguments.requests)


if __name__ == "__main__":
    main()
