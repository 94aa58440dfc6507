"""Simulated stalls against measured ones, where the corpus of real launches is at hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import SimulationSettings, simulate_code
from gpa_lsp.execution.simulator.profile_document import SIMULATED_METRIC, make_document
from gpa_lsp.profile.read import read_profile

REPORT = "rtx3070_daxpy_2022.3.ncu-rep"
KERNELS = {"init_data_kernel": 0, "daxpy_kernel": 1, "check_results_kernel": 2}
"""Stores alone, a stream, and loads alone."""


@pytest.fixture
def folder(corpus: Path) -> Path:
    found = corpus / "simulation"
    if not found.is_dir():
        pytest.skip("the corpus has no launches to simulate")
    return found


def find_overlap(first: dict[str, float], second: dict[str, float]) -> float:
    sizes = sum(first.values()), sum(second.values())
    keys = first.keys() | second.keys()
    return 1 - sum(abs(first.get(key, 0) / sizes[0] - second.get(key, 0) / sizes[1]) for key in keys) / 2


def count(samples: list[dict[str, Any]]) -> tuple[dict[str, float], dict[str, float]]:
    """Samples by reason, and by instruction."""
    reasons: dict[str, float] = {}
    instructions: dict[str, float] = {}
    for row in samples:
        for reason, counts in row["by_reason"].items():
            reasons[reason] = reasons.get(reason, 0) + counts["all"]
            instructions[row["pc_offset"]] = instructions.get(row["pc_offset"], 0) + counts["all"]
    return reasons, instructions


@pytest.mark.parametrize("name", KERNELS)
def test_reasons_instructions_and_cycles_are_nearly_those_measured(name: str, folder: Path, corpus: Path) -> None:
    truth = json.loads((folder / f"NVIDIA.manual_nvtx.{KERNELS[name]}.{name}.json").read_text())
    described = folder / f"NVIDIA.manual_nvtx.{KERNELS[name]}.{name}.launch.toml"
    simulation = simulate_code(corpus / "ncu" / REPORT, launches=LaunchChoice(path=described))
    assert simulation.problems == ()
    (launch,) = make_document(simulation.launches, ())["launches"]
    reasons, instructions = count(launch["samples"])
    measured = {one["pc"]: float(sum(one.get("samples", {}).values())) for one in truth["instructions"]}
    assert find_overlap(reasons, truth["reasons"]) >= 0.9
    assert find_overlap(instructions, measured) >= 0.88
    assert simulation.launches[0].simulated.cycles == pytest.approx(truth["cycles"], rel=0.12)


def test_the_profile_is_read_like_any_other_and_says_what_it_is(folder: Path, corpus: Path, tmp_path: Path) -> None:
    described = folder / "NVIDIA.manual_nvtx.1.daxpy_kernel.launch.toml"
    simulation = simulate_code(corpus / "ncu" / REPORT, launches=LaunchChoice(path=described))
    path = tmp_path / "simulated.gpa-profile.json"
    path.write_text(json.dumps(make_document(simulation.launches, simulation.problems)))
    profile = read_profile(path)
    (launch,) = profile.launches
    assert launch.read_number(SIMULATED_METRIC) == 1
    assert profile.tool_version == "gpa-lsp simulate"
    assert [one.message.partition(":")[0] for one in profile.problems] == ["simulated, not measured"]
    assert launch.samples is not None and launch.samples.latency_samples is not None
    assert (launch.samples.latency_samples <= launch.samples.all_samples).all()
    assert launch.sampling_period_cycles == 32
    assert (launch.grid, launch.device.name) == ((16384, 1, 1), "NVIDIA GeForce RTX 3070")
    assert launch.read_number("dram__cycles_active.avg.pct_of_peak_sustained_elapsed") == pytest.approx(91, abs=5)
    assert launch.read_number("sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed") == pytest.approx(
        6, abs=0.5
    )
    assert launch.read_number("launch__waves_per_multiprocessor") == pytest.approx(59.4, abs=0.1)
    assert launch.device.attributes["device__attribute_global_memory_bus_width"] == 256


def test_check_bits_among_the_data_are_moved_as_well(corpus: Path, folder: Path) -> None:
    """An A40 checks its memory: DRAM is 91 % busy with three quarters of what it could give."""
    described = folder / "eschnett.profile_7dc4fa5.0.julia_5_11155.launch.toml"
    (launch,) = simulate_code(
        corpus / "ncu" / "a40_julia_relative_2022.4.ncu-rep", launches=LaunchChoice(path=described)
    ).launches
    (found,) = make_document((launch,), ())["launches"]
    assert found["metrics"]["dram__cycles_active.avg.pct_of_peak_sustained_elapsed"] == pytest.approx(91, abs=4)
    assert found["device"]["attributes"]["device__attribute_ecc_enabled"] == 1


def test_another_gpu_takes_another_time(folder: Path, corpus: Path) -> None:
    described = folder / "NVIDIA.manual_nvtx.1.daxpy_kernel.launch.toml"
    times = [
        simulate_code(
            corpus / "ncu" / REPORT, launches=LaunchChoice(path=described), settings=SimulationSettings(machine=machine)
        )
        .launches[0]
        .simulated.duration_ns
        for machine in ("RTX 3070", "RTX 3090")
    ]
    assert times[0] / times[1] == pytest.approx(936 / 448, rel=0.15)
