"""Products with tiles in registers are long enough to need all that is done about time: what a user gets of one of everyday size."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.prediction.model import DEFAULT_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from tests.patience import LIMIT_S
from tests.prediction.kernels import NVRTC

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

SIZE = 1024
TILE = 128
SOURCE = """\
#define TILE 128
#define DEPTH 8
__global__ void __launch_bounds__(256) product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n)
{
    __shared__ float left[DEPTH][TILE], right[DEPTH][TILE];
    const float* rows = a + blockIdx.y * TILE * n;
    const float* columns = b + blockIdx.x * TILE;
    int x = threadIdx.x % 16 * 8, y = threadIdx.x / 16 * 8;
    float sums[8][8] = {};
    for (int k = 0; k < n; k += DEPTH) {
        int row = threadIdx.x / 2, first = threadIdx.x % 2 * 4;
        float4 part = *(const float4*)(rows + row * n + k + first);
        left[first][row] = part.x, left[first + 1][row] = part.y, left[first + 2][row] = part.z, left[first + 3][row] = part.w;
        *(float4*)&right[threadIdx.x / 32][threadIdx.x % 32 * 4] =
            *(const float4*)(columns + (k + threadIdx.x / 32) * n + threadIdx.x % 32 * 4);
        __syncthreads();
        for (int d = 0; d < DEPTH; ++d)
            for (int i = 0; i < 8; ++i)
                for (int j = 0; j < 8; ++j)
                    sums[i][j] += left[d][y + i] * right[d][x + j];
        __syncthreads();
    }
    for (int i = 0; i < 8; ++i)
        for (int j = 0; j < 8; ++j)
            c[(blockIdx.y * TILE + y + i) * n + blockIdx.x * TILE + x + j] = sums[i][j];
}
"""
ARRAYS = "".join(f'{{ name = "{name}", type = "float", count = {SIZE * SIZE} }}, ' for name in "abc")
LAUNCH = f"""\
[[launch]]
kernel = "product"
grid = [{SIZE // TILE}, {SIZE // TILE}]
block = 256
arguments = [{ARRAYS}{{ name = "n", type = "int", value = {SIZE} }}]
"""


def test_a_register_tiled_product_gets_volumes_and_a_time(tmp_path: Path) -> None:
    """The usual limits are kept, but for the time: other tests may need the processor as well."""
    source = tmp_path / "product.cu"
    source.write_text(SOURCE)
    source.with_name("product.launch.toml").write_text(LAUNCH)
    budget = replace(DEFAULT_PREDICTION.budget, seconds=LIMIT_S)
    settings = replace(DEFAULT_PREDICTION, budget=budget)
    (kernel,) = predict_code(source, settings=settings, compile_settings=NVRTC).kernels
    assert {fault.kind for fault in kernel.faults} <= {FaultKind.TRACE_BUDGET}
    volumes = kernel.volumes
    assert volumes is not None
    loaded = volumes.volumes.l2_load * volumes.update_count
    assert loaded == pytest.approx(4 * 2 * SIZE**3 / TILE, rel=0.01), "a block loads its rows and its columns once"
    shortest_ns = 2 * SIZE**3 / 19.5e12 * 1e9
    assert volumes.duration_ns is not None and shortest_ns <= volumes.duration_ns < 10 * shortest_ns
