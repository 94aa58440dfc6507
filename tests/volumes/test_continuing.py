"""Volumes from the first executions of each access, held against those from all of them."""

from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import fields, replace

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation, Sampling, SamplingKind, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.volumes.devices import find_device
from gpa_lsp.execution.volumes.expressions import KernelAccesses
from gpa_lsp.execution.volumes.from_trace import find_launch_shape, list_fewest_probe_blocks, recover_expressions
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.execution.volumes.trace_sampling import Continuation, continue_trace
from tests.bench.emulating import build_launch, floats, number
from tests.emulator.kernels.compiling import compile_ptx

_SOURCE = r"""
extern "C" __global__ void product(int m, int n, float *s, const float *d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float a = 0;
    for (int k = 0; k < n; k++)
        a += d[y * n + k] * d[k * n + x];
    s[y * n + x] = a;
}
extern "C" __global__ void rows(int m, int n, float *s, const float *d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    for (int j = 0; j < m; j++) {
        float a = 0;
        for (int k = 0; k < n; k++)
            a += d[j * n + k] * d[x * n + k];
        s[x * m + j] = a;
    }
}
extern "C" __global__ void staged(int m, int n, float *s, const float *d)
{
    __shared__ float t[256];
    int x = blockIdx.x * 256 + threadIdx.x;
    float a = 0;
    for (int k = 0; k < n; k++) {
        t[threadIdx.x] = d[k * m + x];
        __syncthreads();
        a += t[threadIdx.x * 2 % 256];
        __syncthreads();
    }
    s[x] = a;
}
extern "C" __global__ void drawn(int m, int n, float *s, const float *d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned r = x * 977u;
    float a = 0;
    for (int k = 0; k < n; k++) {
        r = r * 1664525u + 1013904223u;
        a += d[(r >> 8) % m];
    }
    s[x] = a;
}
extern "C" __global__ void again(int m, int n, float *s, const float *d)
{
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    float a = 0;
    for (int j = 0; j < m; j++)
        for (int k = 0; k < n; k++)
            a += d[k] * j;
    s[x] = a;
}
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> PtxModule:
    source = tmp_path_factory.mktemp("continuing") / "kernels.cu"
    source.write_text(_SOURCE, encoding="utf-8")
    return parse_ptx(compile_ptx(Path(source), 80), name="kernels.cu")


def describe(kernel: str, m: int, n: int, *, grid: tuple[int, int], threads: int, words: int) -> LaunchDescription:
    arguments = number("m", m), number("n", n), floats("s", 1 << 20), floats("d", words)
    return build_launch(kernel, grid, (threads, 1), *arguments)


def trace(module: PtxModule, launch: LaunchDescription, most: int | None) -> Emulation:
    probed = Sampling(kind=SamplingKind.CHOSEN, blocks=list_fewest_probe_blocks(launch.grid))
    settings = TraceSettings(branches=False, most_executions=most)
    return emulate(module, launch, sampling=probed, trace=settings, check_races=False)


def recover(run: Emulation) -> KernelAccesses:
    assert run.trace is not None
    found = continue_trace(run.trace, run.counts.lane_executions, len(run.executed_blocks))
    assert found is not None and run.is_complete
    assert bool((found.ratios == 1).all()) == run.trace.is_complete
    continuation = None if run.trace.is_complete else found
    return recover_expressions(run.trace, flops_per_thread=1.0, ratios=found.ratios, continuation=continuation)


def measure(kernel: KernelAccesses, launch: LaunchDescription) -> dict[str, float]:
    device = find_device("A100")
    shape = find_launch_shape(kernel, launch.block, launch.grid)
    found = predict_volumes(kernel, shape, device, registers=32, shared_bytes=0).volumes
    return {one.name: getattr(found, one.name) for one in fields(found)}


LAUNCHES = [
    describe("product", 512, 512, grid=(2, 8), threads=256, words=512 * 512),
    describe("rows", 200, 256, grid=(4, 1), threads=64, words=256 * 256),
    describe("staged", 2048, 1000, grid=(8, 1), threads=256, words=2048 * 1000),
]


@pytest.mark.parametrize("most", [96, 300])
@pytest.mark.parametrize("launch", LAUNCHES, ids=lambda launch: launch.kernel)
def test_loops_that_go_on_as_they_began_give_what_the_whole_trace_gives(
    module: PtxModule, launch: LaunchDescription, most: int
) -> None:
    whole, cut = recover(trace(module, launch, None)), recover(trace(module, launch, most))
    assert cut.accesses == whole.accesses and cut.sampled == whole.sampled == ()
    assert cut.shared_cycles_per_warp == pytest.approx(whole.shared_cycles_per_warp, rel=0.01)
    assert measure(cut, launch) == measure(whole, launch)


def test_what_is_drawn_from_an_array_touches_less_and_less_of_it_that_is_new(module: PtxModule) -> None:
    launch = describe("drawn", 1 << 16, 1500, grid=(4, 1), threads=256, words=1 << 16)
    whole, cut = (measure(recover(trace(module, launch, most)), launch) for most in (None, 512))
    assert cut["l1_load"] == pytest.approx(whole["l1_load"], rel=0.01)
    for name in ("l2_load_compulsory", "l2_load_capacity", "dram_load_footprint"):
        assert cut[name] == pytest.approx(whole[name], rel=0.05), name


def test_a_loop_that_would_leave_its_array_is_counted_and_not_followed(module: PtxModule) -> None:
    launch = describe("again", 6, 3000, grid=(4, 1), threads=64, words=3000)
    kernel = recover(trace(module, launch, 256))
    assert {one.array for one in kernel.sampled} == {1}
    assert {str(one.why) for one in kernel.sampled} == {"its loops do not go on as they began"}
    assert sum(one.executions for one in kernel.sampled) == 6 * 3000
    loaded = sum(one.read.block_sectors for one in kernel.sampled if one.read is not None)
    assert loaded <= 3000 * 4 / 32 + 1  # there is no more of the array
    assert any("first 256 of a warp" in str(note) for note in kernel.notes)


def test_a_trace_that_lacks_an_access_is_not_continued(module: PtxModule) -> None:
    run = trace(module, LAUNCHES[0], 96)
    assert run.trace is not None
    rows = run.trace.accesses
    stored = rows.instruction == rows.instruction.max()
    columns = {name: getattr(rows, name)[~stored] for name in rows.__slots__ if name != "addresses"}
    without = replace(run.trace, accesses=replace(rows, **columns))
    counted, blocks = run.counts.lane_executions, len(run.executed_blocks)
    assert continue_trace(run.trace, counted, blocks) is not None
    assert continue_trace(without, counted, blocks) is None
    assert continue_trace(replace(run.trace, most_executions=None), counted, blocks) is None
    assert continue_trace(run.trace, counted, 0) is None


def test_the_outermost_loop_is_the_one_that_goes_on() -> None:
    found = Continuation(most_executions=8, ratios=np.array([1.0, 12.5]))
    assert found.lengthen(0, (4, 2), 8) == (4, 2) and found.lengthen(1, (4, 2), 8) == (4, 25)
    assert found.lengthen(1, (8,), 8) == (100,) and found.lengthen(1, (3, 3), 8) == (3, 33)
