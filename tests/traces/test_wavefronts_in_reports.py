"""Emulated wavefronts of shared memory against those that NVIDIA's profiler counted, instruction by instruction."""

import re
from collections import Counter
from collections.abc import Iterator
from math import prod
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.binary.embedded_ptx import read_ptx_line_table, read_ptx_text
from gpa_lsp.code.binary.sass import read_operands
from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.requests import count_wavefronts
from gpa_lsp.execution.accesses.lane_addresses import spread_lanes
from gpa_lsp.execution.emulator.emulate import emulate, find_kernel
from gpa_lsp.execution.emulator.model import Sampling, SamplingKind, Trace, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.profile.read import read_profile

SHARED_ACCESS = re.compile(r"(?P<kind>LDS|STS)(?:\.U)?(?:\.(?P<bits>64|128))?\Z")
KINDS = {"LDS": AccessKind.LOAD, "STS": AccessKind.STORE}
CASES = {
    "rtx3080_gemm_v8_2023.2.ncu-rep": ("AshunFeiyu.gemm_v8_alter.0.gemm", {"LDS.128": 36, "STS.128": 2, "STS": 8}),
    "rtx5090_integrated_gemm_2026.2.ncu-rep": (
        "hzchenxiaobin.week2_day6_integrated_gemm_full.0.gemmIntegrated",
        {"LDS.128": 32, "STS.128": 2},
    ),
}
"""Report → its described launch, and how many shared accesses of each kind its kernel executes."""


def parse_own_ptx(kernel: Kernel) -> PtxModule:
    """The PTX that the kernel's image carries, line by line as its instructions name it."""
    lines = read_ptx_text(kernel.cubin)
    end = next((number for number, line in enumerate(lines) if line.startswith(".section")), len(lines))
    return parse_ptx("\n".join(lines[:end]), name=kernel.name)


def trace_one_block(module: PtxModule, launch: LaunchDescription) -> Trace:
    emulation = emulate(
        module, launch, sampling=Sampling(kind=SamplingKind.SPREAD, count=1), trace=TraceSettings(), check_races=False
    )
    assert emulation.faults == ()
    return emulation.trace


def count_emulated(trace: Trace, instruction: int, width: int, kind: AccessKind) -> tuple[int, int]:
    """Wavefronts and ideal ones of one PTX instruction, if its lanes accessed the whole aligned vector the compiler made of several."""
    rows = np.flatnonzero((trace.accesses.instruction == instruction) & (trace.accesses.space == Space.SHARED))
    addresses, active = spread_lanes(trace.accesses, rows)
    aligned = addresses & np.uint64(~(width - 1) & (2**64 - 1))
    taken, ideal = count_wavefronts(aligned, active, width, np.full(len(rows), kind, dtype=np.int8))
    return int(taken.sum()), int(ideal.sum())


def read_mnemonic(function: FunctionSamples, row: int) -> str:
    return function.instructions.mnemonics[function.instructions.mnemonic_index[row]]


def compare(kernel: Kernel, launch: LaunchDescription) -> Iterator[tuple[str, tuple[int, int], tuple[int, int]]]:
    """Each shared access of a kernel: its mnemonic, what was counted, and what one emulated block makes over the whole grid."""
    module = parse_own_ptx(kernel)
    trace = trace_one_block(module, launch)
    number_of_line = {
        one.text_line: number for number, one in enumerate(find_kernel(module, launch.kernel).instructions)
    }
    function = kernel.functions[0]
    table = read_ptx_line_table(kernel.cubin, kernel.mangled_name)
    lines = table.chain_index(function.pc_offsets)
    counted = np.stack([function.counters["shared_wavefronts"], function.counters["shared_wavefronts_ideal"]], axis=1)
    for row in np.flatnonzero(counted[:, 0] > 0).tolist():
        mnemonic = read_mnemonic(function, row)
        access = SHARED_ACCESS.match(mnemonic)
        if access is None:
            continue
        instruction = number_of_line[table.chains[lines[row]][0].line]
        width = int(access["bits"] or 32) // 8
        taken, ideal = count_emulated(trace, instruction, width, KINDS[access["kind"]])
        blocks = prod(launch.grid)
        yield mnemonic, tuple(counted[row].tolist()), (taken * blocks, ideal * blocks)


@pytest.mark.parametrize("report", CASES)
def test_emulated_wavefronts_are_the_counted_ones(corpus, report):
    folder: Path = corpus / "simulation"
    if not (folder / report).is_file():
        pytest.skip(f"{report} is not at hand")
    name, expected = CASES[report]
    launch = read_launches(folder / f"{name}.launch.toml")[0]
    kernels, _ = join_profile(read_profile(folder / report))
    kernel = next(one for one in kernels if one.mangled_name == launch.kernel)
    found = list(compare(kernel, launch))
    assert Counter(mnemonic for mnemonic, _, _ in found) == expected
    assert [emulated for _, _, emulated in found] == [counted for _, counted, _ in found]


TILE_ADDRESS = re.compile(r"\[(R\d+)(?:\+(0x[0-9a-f]+))?\]\Z")
TILES = {
    "R4": [lane % 8 * 32 for lane in range(32)],
    "R16": [lane // 8 * 256 for lane in range(32)],
}
"""What SASS computes: eight results per thread of one tile, read by column; rows of the other, each read by a quarter of the warp."""


def test_tiles_of_a_kernel_without_ptx(corpus):
    path = corpus / "pairs" / "rtx4090_sgemm_2d_sharedmem_blocking.ncu-rep"
    if not path.is_file():
        pytest.skip(f"{path.name} is not at hand")
    ((kernel,), _) = join_profile(read_profile(path))
    function = kernel.functions[0]
    counted, emulated = [], []
    for row in np.flatnonzero(function.counters["shared_wavefronts"] > 0).tolist():
        if read_mnemonic(function, row) == "LDS.128":
            base, offset = TILE_ADDRESS.match(read_operands(function.instructions.texts[row])[1]).groups()
            lanes = np.array([TILES[base]], dtype=np.uint64) + np.uint64(int(offset or "0", 16))
            kinds = np.array([AccessKind.LOAD], dtype=np.int8)
            passes = count_wavefronts(lanes, np.ones((1, 32), dtype=np.bool_), 16, kinds)
            emulated.append([int(one[0] * function.executions[row]) for one in passes])
            counted.append(
                [int(function.counters[name][row]) for name in ("shared_wavefronts", "shared_wavefronts_ideal")]
            )
    assert len(counted) == 32
    assert emulated == counted
