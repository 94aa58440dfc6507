"""Real reports against totals that an independent reader and NVIDIA's command-line viewer counted."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpa_lsp.profile.model import Launch, Profile
from gpa_lsp.profile.read import read_profile
from tests.conftest import find_corpus

pytestmark = pytest.mark.corpus
FOLDER = find_corpus()
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected_samples.json").read_text()) if FOLDER else {}


@cache
def _read(part: str) -> Profile:
    """The report whose name has a part."""
    if FOLDER is None:
        pytest.skip("the corpus of real reports is not at hand (set GPA_LSP_CORPUS)")
    return read_profile(FOLDER / "ncu" / next(name for name in EXPECTED if part in name))


def _find_kernel_address(profile: Profile, launch: Launch) -> int | None:
    """The address of a kernel's first instruction: by its name in the module; older reports have one address per launch, without names."""
    functions = profile.modules[launch.module_id].functions
    if not functions and len(launch.function_addresses) == 1:
        return launch.function_addresses[0]
    named = [found.address for found in functions if found.name == launch.mangled_name]
    return next(iter([address for address in named if address in launch.function_addresses] or named), None)


@pytest.mark.parametrize("name", EXPECTED)
def test_launches_and_samples(corpus: Path, name: str) -> None:
    assert {path.name for path in (corpus / "ncu").iterdir()} == set(EXPECTED)
    assert len(EXPECTED) == 13
    profile = _read(name)
    assert profile.problems == ()
    for launch, expected in zip(profile.launches, EXPECTED[name], strict=True):
        assert launch.mangled_name == expected["mangled"]
        assert [list(launch.grid), list(launch.block)] == [expected["grid"], expected["block"]]
        assert _count(launch, latency=False) == expected["all"]
        assert _count(launch, latency=True) == expected["not_issued"]
        assert (0 if launch.samples is None else len(launch.samples.addresses)) == expected["sampled_pcs"]
        assert launch.samples_truncated == ("saturated" in name)
        assert all(len(metric.instance_ids) == len(metric.instance_values) for metric in launch.metrics.values())
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


@pytest.mark.parametrize("name", EXPECTED)
def test_every_module_has_its_image_and_every_kernel_its_address(name: str) -> None:
    profile = _read(name)
    for launch in profile.launches:
        module = profile.modules[launch.module_id]
        assert module.image.startswith(b"\x7fELF")
        assert module.compute_capability == launch.device.compute_capability
        if launch.failure is None:
            address = _find_kernel_address(profile, launch)
            assert address in launch.function_addresses
            assert address in launch.metrics["inst_executed"].instance_ids


def test_callees_are_sampled_below_their_kernel() -> None:
    profile = _read("miniweather_baseline")
    launch = profile.launches[2]
    assert len(launch.function_addresses) == 3
    below = launch.samples.addresses < np.uint64(_find_kernel_address(profile, launch))
    assert int(launch.samples.all_samples[below].sum()) == 118_134


def test_host_context_and_sources() -> None:
    daxpy = _read("daxpy").launches
    assert [one.nvtx_ranges for one in daxpy] == [("run_test", n) for n in ("init_data", "daxpy", "check_results")]
    ends = ["__libc_start_call_main", "__libc_start_main", "_start"]
    assert [frame.function for frame in daxpy[1].call_stack][-3:] == ends
    fused = _read("cutlass_sm80")
    assert fused.launches[2].nvtx_ranges == ("Fused-GEMM",)
    assert fused.launches[2].call_stack[2].line == 327
    assert [len(module.sources) > 30 for module in fused.modules.values()] == [True]


def test_rules_speedups_and_markers() -> None:
    launch = _read("rtx5090").launches[0]
    rules = {rule.identifier: rule for rule in launch.rules}
    stall = rules["CPIStall"]
    assert [round(speedup.percent, 2) for speedup in stall.speedups] == [26.2, 26.2]
    assert [message.title for message in stall.messages[:2]] == ["Long Scoreboard Stalls", "Lg Throttle Stalls"]
    assert "@" not in "".join(message.text for rule in launch.rules for message in rule.messages)
    # NVIDIA's own word about an instruction is a check of our totals. Its second share is the reason's not-issued part over all samples there.
    marker = next(marker for marker in stall.markers if marker.address is not None)
    assert marker.text.startswith("This line is responsible for 53.4% of all warp stalls. 79.6% of the stalls")
    samples = launch.samples
    row = int(np.flatnonzero(samples.addresses == np.uint64(marker.address or 0))[0])
    sampled_here = samples.all_samples[row].sum()
    assert round(100 * sampled_here / samples.total_samples, 1) == pytest.approx(53.4)
    scoreboard = samples.latency_samples[row, samples.reasons.index("long_scoreboard")]
    assert round(100 * scoreboard / sampled_here, 1) == pytest.approx(79.6)
