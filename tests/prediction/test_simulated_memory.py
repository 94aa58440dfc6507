"""Simulated launches read as much from DRAM as their arrays hold, wherever the kernel finds these."""

from pathlib import Path

import pytest

from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from tests.prediction.kernels import NVRTC

COUNT = 1 << 18
SOURCE = f"""\
struct Given {{ const float* from; }};
__device__ float table[{COUNT}];
__device__ void add(float* sum, const float* from)
{{
    float value = from[blockIdx.x * blockDim.x + threadIdx.x];
    if (value > 1.0f) *sum = value;
}}
__global__ void by_argument(float* sum, const float* from) {{ add(sum, from); }}
__global__ void by_member(float* sum, Given given) {{ add(sum, given.from); }}
__global__ void by_variable(float* sum) {{ add(sum, table); }}
"""
FROM = f'{{ name = "from", type = "float", count = {COUNT} }}'
ARGUMENTS = {
    "by_argument": FROM,
    "by_member": f'{{ name = "given", members = [ {FROM} ] }}',
    "by_variable": "",
}


@pytest.mark.parametrize("kernel", ARGUMENTS)
def test_what_is_read_is_bounded_by_every_array(kernel: str, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    source = tmp_path / "sums.cu"
    source.write_text(SOURCE)
    arguments = ", ".join(filter(None, ('{ name = "sum", type = "float", count = 1 }', ARGUMENTS[kernel])))
    source.with_suffix(".launch.toml").write_text(
        f'[[launch]]\nkernel = "{kernel}"\ngrid = {COUNT // 256}\nblock = 256\narguments = [{arguments}]\n'
    )
    settings = SimulationSettings(machine="T4")
    (launch,) = simulate_code(source, kernel=kernel, settings=settings, compile_settings=NVRTC).launches
    assert launch.simulated.model.l2_hit_ratio < 0.01, "no block reads what another one has read"
