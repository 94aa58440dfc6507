"""Simulated launches of a source: time that they may take together, and memory that they read."""

import itertools
from pathlib import Path

import pytest

from gpa_lsp.execution.prediction import simulation
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from gpa_lsp.foundation.errors import ProblemSeverity
from tests.prediction.kernels import NVRTC, write_project


def test_launches_for_which_no_time_is_left_are_not_simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    source = write_project(tmp_path)
    every = simulate_code(source, kernel="saxpy", compile_settings=NVRTC)
    assert len(every.launches) == 2
    monkeypatch.setattr(simulation, "work_time", itertools.count().__next__)  # a second passes between two looks
    settings = SimulationSettings(total_seconds=2.5)
    found = simulate_code(source, kernel="saxpy", settings=settings, compile_settings=NVRTC)
    assert len(found.launches) == 1
    assert [(one.severity, one.message.partition(":")[0]) for one in found.problems] == [
        (ProblemSeverity.WARNING, "1 launch not simulated")
    ]
    nothing = simulate_code(
        source, kernel="saxpy", settings=SimulationSettings(total_seconds=0.5), compile_settings=NVRTC
    )
    assert nothing.launches == ()
    assert nothing.problems[-1].severity is ProblemSeverity.ERROR


COUNT = 1 << 18
SUMS = f"""\
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
FROM = f', {{ name = "from", type = "float", count = {COUNT} }}'


@pytest.mark.parametrize(
    ("kernel", "arguments"),
    [
        ("by_argument", FROM),
        ("by_member", f', {{ name = "given", members = [ {FROM.removeprefix(",")} ] }}'),
        ("by_variable", ""),
    ],
)
def test_what_is_read_is_bounded_by_all_arrays_together(kernel: str, arguments: str, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    source = tmp_path / "sums.cu"
    source.write_text(SUMS)
    source.with_suffix(".launch.toml").write_text(
        f'[[launch]]\nkernel = "{kernel}"\ngrid = {COUNT // 256}\nblock = 256\n'
        f'arguments = [{{ name = "sum", type = "float", count = 1 }}{arguments}]\n'
    )
    (launch,) = simulate_code(source, kernel=kernel, compile_settings=NVRTC).launches
    assert launch.simulated.model.l2_hit_ratio < 0.01, "no block reads what another one has read"
