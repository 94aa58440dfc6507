"""Machine instructions that emulated PTX becomes; schedulers and pipes limit kernels that compute with integers."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import pytest

from gpa_lsp.execution.prediction.model import PredictionSettings
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.simulator.program import PIPE_NAMES, read_program
from gpa_lsp.execution.volumes.model import ISSUE_LIMITERS, Limiter, VolumeMode, VolumePrediction
from gpa_lsp.gpu.arch.lookup import find_architecture
from tests.simulator.twins import KERNELS, describe_launch, simulate_fixture

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

MACHINE = "RTX 3080"
HASH = """\
__global__ void hash(unsigned* words, int rounds)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned h = words[i];
    for (int round = 0; round < rounds; round++) {
        h ^= h << 13;
        h ^= h >> 17;
        h ^= (h << 5) + round;
    }
    words[i] = h;
}
"""


def predict(source: Path, description: str, mode: VolumeMode = VolumeMode.CORRECTED) -> VolumePrediction:
    source.with_suffix(".launch.toml").write_text(description)
    machine = MACHINE if mode is VolumeMode.CORRECTED else "A100"
    (kernel,) = predict_code(source, settings=PredictionSettings(machine=machine, mode=mode)).kernels
    assert kernel.volumes is not None
    return kernel.volumes


@cache
def predict_hash(rounds: int, mode: VolumeMode = VolumeMode.CORRECTED) -> VolumePrediction:
    source = Path(mkdtemp()) / "hash.cu"
    source.write_text(HASH)
    words = '{ name = "words", type = "unsigned int", count = 65536, fill = "uniform", low = 1, high = 99 }'
    number = f'{{ name = "rounds", type = "int", value = {rounds} }}'
    launch = f'[[launch]]\nkernel = "hash"\ngrid = [256]\nblock = [256]\narguments = [{words}, {number}]\n'
    return predict(source, launch, mode)


def test_many_operations_on_integers_are_limited_by_the_sm() -> None:
    assert predict_hash(1).limiter is Limiter.DRAM
    found = predict_hash(512)
    assert found.limiter in ISSUE_LIMITERS
    # seven operations a round go to the ALU pipe, at half an instruction per cycle of each of four sub-partitions
    cycles = found.bounds[0].load * 32
    assert 512 * 5 * 2 / 4 <= cycles <= 512 * 10 * 2 / 4


def test_twice_the_rounds_take_twice_the_time_and_bytes_stay() -> None:
    once, twice = predict_hash(512), predict_hash(1024)
    assert once.duration_ns is not None and twice.duration_ns is not None
    assert twice.duration_ns / once.duration_ns == pytest.approx(2.0, rel=0.02)
    assert once.volumes == twice.volumes


FEW = """\
__global__ void few(const float* in, float* out, int n)
{
    __shared__ float tile[1024];
    for (int at = threadIdx.x; at < 1024; at += 128)
        tile[at] = 0.0f;
    __syncthreads();
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n)
        tile[threadIdx.x] = in[i];
    __syncthreads();
    float sum = 0.0f;
    for (int at = threadIdx.x; at < 1024; at += 128)
        sum += tile[at];
    if (i < n)
        out[i] = sum;
}
"""


def test_blocks_without_work_in_global_memory_take_their_time(tmp_path: Path) -> None:
    """Two of 1,728 blocks load and store; all of them clear and add up a tile in shared memory."""
    source = tmp_path / "few.cu"
    source.write_text(FEW)
    arrays = ", ".join(f'{{ name = "{name}", type = "float", count = 256, fill = "zeros" }}' for name in ("in", "out"))
    number = '{ name = "n", type = "int", value = 256 }'
    found = predict(source, f'[[launch]]\nkernel = "few"\ngrid = 1728\nblock = 128\narguments = [{arrays}, {number}]\n')
    loads = {one.limiter: one.load * found.update_count / (1728 * 128) for one in found.bounds}
    assert found.limiter in ISSUE_LIMITERS
    # A warp clears and reads eight rows of the tile, and two blocks store one row more.
    assert loads[Limiter.L1] * 32 == pytest.approx(16, rel=0.01)
    assert 16 <= loads[Limiter.ISSUE] * 32 * 4 <= 128  # instructions of a warp


def test_the_published_model_knows_neither_schedulers_nor_pipes() -> None:
    limiters = {one.limiter for one in predict_hash(512, VolumeMode.PAPER).bounds}
    assert limiters and not limiters & set(ISSUE_LIMITERS)


@pytest.mark.parametrize("name", ["barrier_imbalance", "branch_divergence", "integer_division", "math_functions"])
def test_emulated_instructions_are_nearly_those_of_the_machine_code(name: str, tmp_path: Path) -> None:
    fixture = KERNELS / name / "original.cu"
    source = tmp_path / "fixture.cu"
    source.write_bytes(fixture.read_bytes())
    bounds = {one.limiter: one.load for one in predict(source, describe_launch(fixture)).bounds}
    (simulated,) = simulate_fixture(fixture, MACHINE).launches
    program, walk = read_program(simulated.kernel.rows, find_architecture((8, 6))), simulated.walk
    threads = np.prod(walk.grid) * np.prod(walk.block_threads)
    is_alu = np.array(program.pipe) == PIPE_NAMES.index("alu")
    held = (walk.executed * np.array(program.interval))[is_alu & (np.array(program.unit) < 0)].sum()
    assert bounds[Limiter.ISSUE] * 4 == pytest.approx(walk.executed.sum() / threads, rel=0.12)
    assert bounds[Limiter.ALU] * 4 == pytest.approx(held / threads, rel=0.15)
