"""Counters of simulated instructions are those that a profiler takes, and lead to advice."""

import json
from pathlib import Path

import pytest

from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import simulate_code
from gpa_lsp.execution.simulator.profile_document import count_instructions, make_document
from gpa_lsp.profile.ncu.samples import read_instruction_counts
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.pipeline import analyse

SOURCE = """\
__global__ void columns(const float *in, float *out, int rows)
{
    __shared__ float tile[32 * 32];
    const int row = threadIdx.x;
    tile[row * 32] = in[row * 32 + blockIdx.x];
    __syncthreads();
    out[blockIdx.x * 32 + row] = tile[row * 32] + rows;
}
"""
LAUNCH = """\
[[launch]]
kernel = "columns"
grid = 32
block = 32
arguments = [
    { name = "in", type = "float", count = 1024 },
    { name = "out", type = "float", count = 1024 },
    { name = "rows", type = "int", value = 32 },
]
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    path = tmp_path / "columns.cu"
    path.write_text(SOURCE)
    (tmp_path / "columns.launch.toml").write_text(LAUNCH)
    return path


def test_counters_are_those_of_the_accesses(source: Path) -> None:
    (launch,) = simulate_code(source, compute_capability=(8, 0)).launches
    rows = launch.kernel.rows
    counts = count_instructions(rows, launch.walk)
    opcode = {text.split(".")[0].split()[0]: row for row, text in enumerate(rows.texts) if "@" not in text}
    load, store = opcode["LDG"], opcode["STG"]
    assert [int(counts["inst_executed"][row]) for row in (load, store)] == [32, 32]
    assert [int(counts["thread_inst_executed_true"][row]) for row in (load, store)] == [1024, 1024]
    sectors, ideal = "memory_l2_theoretical_sectors_global", "memory_l2_theoretical_sectors_global_ideal"
    assert [int(counts[sectors][row]) for row in (load, store)] == [1024, 128]
    assert [int(counts[ideal][row]) for row in (load, store)] == [128, 128]
    assert [int(counts["memory_l1_tag_requests_global"][row]) for row in (load, store)] == [1024, 32]
    waves = "memory_l1_wavefronts_shared"
    assert [int(counts[waves][opcode[one]]) for one in ("LDS", "STS")] == [1024, 1024]
    assert [int(counts[f"{waves}_ideal"][opcode[one]]) for one in ("LDS", "STS")] == [32, 32]
    assert not counts["memory_l2_theoretical_sectors_local"].any()


def test_a_simulated_profile_is_advised_from_its_accesses(source: Path, tmp_path: Path) -> None:
    simulation = simulate_code(source, compute_capability=(8, 0))
    path = tmp_path / "columns.simulated.gpa-profile.json"
    path.write_text(json.dumps(make_document(simulation.launches, (), {str(source): SOURCE})))
    (kernel,) = analyse([path]).kernels
    assert kernel.embedded_sources == {str(source): SOURCE}
    assert kernel.analyses is not None
    marks = {(mark.line, str(mark.text)) for answer in kernel.analyses.answers for mark in answer.marks}
    assert any(line == 5 and "32 sectors per access where 4 would suffice" in text for line, text in marks)
    assert any(line == 7 and "wavefronts" in text for line, text in marks)


@pytest.mark.parametrize(
    ("report", "described"),
    [
        ("ncu/rtx3070_daxpy_2022.3.ncu-rep", "NVIDIA.manual_nvtx.1.daxpy_kernel"),
        ("simulation/rtx5090_reduction_2026.2.ncu-rep", "hzchenxiaobin.leetgpu_reduction_full.0.reduction_kernel"),
    ],
)
def test_counters_are_those_that_the_profiler_took(report: str, described: str, corpus: Path) -> None:
    launches = corpus / "simulation" / f"{described}.launch.toml"
    if not launches.is_file() or not (corpus / report).is_file():
        pytest.skip("the corpus has no launches to simulate")
    (one,) = simulate_code(corpus / report, launches=LaunchChoice(path=launches)).launches
    measured = next(
        launch for launch in read_profile(corpus / report).launches if launch.mangled_name == one.kernel.mangled_name
    )
    compared = 0
    for name, counts in count_instructions(one.kernel.rows, one.walk).items():
        found = read_instruction_counts(measured.metrics, name)
        if found is not None:
            assert sorted(counts[counts > 0].tolist()) == sorted(found[1][found[1] > 0].tolist()), name
            compared += 1
    assert compared >= 6
