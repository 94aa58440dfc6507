"""Real reports against totals that an independent reader and NVIDIA's command-line viewer counted."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpa_lsp.profile.model import Launch, Profile
from gpa_lsp.profile.read import read_profile
from tests.conftest import find_corpus
from tests.profile.load_addresses import find_kernel_address

_FOLDER = find_corpus()
pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(_FOLDER is None, reason="the corpus of real reports is not at hand (set GPA_LSP_CORPUS)"),
]

_EXPECTED: dict[str, list[dict[str, Any]]] = (
    json.loads((_FOLDER / "expected_samples.json").read_text()) if _FOLDER is not None else {}
)
_PROFILES: dict[str, Profile] = {}


def _read(name: str) -> Profile:
    assert _FOLDER is not None
    if name not in _PROFILES:
        _PROFILES[name] = read_profile(_FOLDER / "ncu" / name)
    return _PROFILES[name]


def test_all_reports_are_expected(corpus: Path) -> None:
    assert {path.name for path in (corpus / "ncu").iterdir()} == set(_EXPECTED)
    assert len(_EXPECTED) == 13


@pytest.mark.parametrize("name", _EXPECTED)
def test_launches_and_samples(name: str) -> None:
    profile = _read(name)
    assert profile.problems == ()
    assert len(profile.launches) == len(_EXPECTED[name])
    for launch, expected in zip(profile.launches, _EXPECTED[name], strict=True):
        assert launch.mangled_name == expected["mangled"]
        assert list(launch.grid) == expected["grid"]
        assert list(launch.block) == expected["block"]
        assert _count(launch, latency=False) == expected["all"]
        assert _count(launch, latency=True) == expected["not_issued"]
        sampled = 0 if launch.samples is None else len(launch.samples.addresses)
        assert sampled == expected["sampled_pcs"]
        _check_metrics(launch, expected)


def _count(launch: Launch, *, latency: bool) -> dict[str, int]:
    if launch.samples is None:
        return {}
    table = launch.samples.latency_samples if latency else launch.samples.all_samples
    return dict(zip(launch.samples.reasons, table.sum(axis=0).tolist(), strict=True))


def _check_metrics(launch: Launch, expected: dict[str, Any]) -> None:
    for metric in (name for name in expected if "__" in name):
        value = launch.metrics[metric].value
        if isinstance(expected[metric], float) and math.isnan(expected[metric]):
            assert isinstance(value, float)
            assert math.isnan(value)
            assert launch.failure is not None
        else:
            assert value == expected[metric]
    if "inst_executed" in expected:
        assert sum(launch.metrics["inst_executed"].instance_values) == expected["inst_executed"]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", _EXPECTED)
def test_every_module_has_its_image_and_every_kernel_its_address(name: str) -> None:
    profile = _read(name)
    for launch in profile.launches:
        assert launch.module_id is not None
        module = profile.modules[launch.module_id]
        assert module.image is not None
        assert module.image.startswith(b"\x7fELF")
        assert module.compute_capability == launch.device.compute_capability
        if launch.failure is not None:
            continue
        address = find_kernel_address(profile, launch)
        assert address in launch.function_addresses
        executed = launch.metrics["inst_executed"].instance_ids
        assert address in executed


@pytest.mark.parametrize("name", _EXPECTED)
def test_every_metric_can_be_decoded(name: str) -> None:
    for launch in _read(name).launches:
        assert all(len(metric.instance_ids) == len(metric.instance_values) for metric in launch.metrics.values())


def test_the_saturated_report_is_the_only_truncated_one() -> None:
    truncated = [name for name in _EXPECTED if any(launch.samples_truncated for launch in _read(name).launches)]
    assert truncated == [name for name in _EXPECTED if "saturated" in name]


def test_callees_are_sampled_below_their_kernel() -> None:
    name = next(name for name in _EXPECTED if "miniweather_baseline" in name)
    launch = _read(name).launches[2]
    base = find_kernel_address(_read(name), launch)
    assert base is not None
    assert launch.samples is not None
    assert len(launch.function_addresses) == 3
    below = launch.samples.all_samples[launch.samples.addresses < np.uint64(base)]
    assert int(below.sum()) == 118_134


def test_host_context_and_sources() -> None:
    daxpy = _read(next(name for name in _EXPECTED if "daxpy" in name)).launches
    assert [launch.nvtx_ranges for launch in daxpy] == [
        ("run_test", "init_data"),
        ("run_test", "daxpy"),
        ("run_test", "check_results"),
    ]
    assert [frame.function for frame in daxpy[1].call_stack][-3:] == [
        "__libc_start_call_main",
        "__libc_start_main",
        "_start",
    ]
    fused = _read(next(name for name in _EXPECTED if "cutlass_sm80" in name))
    assert fused.launches[2].nvtx_ranges == ("Fused-GEMM",)
    assert fused.launches[2].call_stack[2].line == 327
    assert [len(module.sources) > 30 for module in fused.modules.values()] == [True]


def test_rules_speedups_and_markers() -> None:
    launch = _read(next(name for name in _EXPECTED if "rtx5090" in name)).launches[0]
    rules = {rule.identifier: rule for rule in launch.rules}
    stall = rules["CPIStall"]
    assert [round(speedup.percent, 2) for speedup in stall.speedups] == [26.2, 26.2]
    assert [message.title for message in stall.messages[:2]] == ["Long Scoreboard Stalls", "Lg Throttle Stalls"]
    assert "@" not in "".join(message.text for rule in launch.rules for message in rule.messages)
    # NVIDIA's own word about an instruction is a check of our totals. Its second share is the reason's not-issued part over all samples there.
    marker = next(marker for marker in stall.markers if marker.address is not None)
    assert marker.text.startswith("This line is responsible for 53.4% of all warp stalls. 79.6% of the stalls")
    samples = launch.samples
    assert samples is not None
    row = int(np.flatnonzero(samples.addresses == np.uint64(marker.address or 0))[0])
    sampled_here = samples.all_samples[row].sum()
    assert round(100 * sampled_here / samples.total_samples, 1) == pytest.approx(53.4)
    scoreboard = samples.latency_samples[row, samples.reasons.index("long_scoreboard")]
    assert round(100 * scoreboard / sampled_here, 1) == pytest.approx(79.6)
    table = rules["HighPipeUtilization"].tables[0]
    assert [column.name for column in table.columns] == ["Location", "Opcodes", "Executed Instructions"]
    assert table.columns[2].values == (8388608.0, 8192.0, 8192.0)
