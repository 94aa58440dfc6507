"""The written invariants of a profile, one broken at a time."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.profile.model import (
    Device,
    Launch,
    LoadedFunction,
    Metric,
    Module,
    Profile,
    StallSamples,
)
from gpa_lsp.profile.read import check_profile

_SAMPLES = StallSamples(
    addresses=np.array([16, 32], np.uint64),
    reasons=("drain", "wait"),
    all_samples=np.array([[1, 2], [3, 4]], np.int64),
    latency_samples=np.array([[1, 0], [3, 4]], np.int64),
)
_LAUNCH = Launch(
    index=0,
    mangled_name="k",
    plain_name="",
    demangled_name="",
    module_id=1,
    grid=(1, 1, 1),
    block=(32, 1, 1),
    device=Device(name=None, compute_capability=None, sm_count=None, sm_clock_hz=None),
    created_unix_s=None,
    context_id=None,
    stream_id=None,
    metrics={"smsp__pcsamp_sample_count": Metric(name="smsp__pcsamp_sample_count", value=10)},
    samples=_SAMPLES,
    samples_truncated=False,
)
_MODULE = Module(module_id=1, image=None, compute_capability=None, functions=(LoadedFunction(name="k", address=16),))


def _messages(launch: Launch, module: Module = _MODULE) -> list[str]:
    profile = Profile(path=None, format_name="test", tool_version=None, modules={1: module}, launches=(launch,))
    return [problem.message for problem in check_profile(profile)]


def test_a_sound_profile_has_no_problems() -> None:
    assert _messages(_LAUNCH) == []
    assert _messages(replace(_LAUNCH, samples=None, module_id=None)) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"addresses": np.array([32, 16], np.uint64)}, "not ascending and unique"),
        ({"addresses": np.array([16, 16], np.uint64)}, "not ascending and unique"),
        ({"addresses": np.array([16], np.uint64)}, "one row per address and one column per reason"),
        ({"reasons": ("wait", "drain")}, "not sorted and unique"),
        ({"all_samples": np.array([[0, 2], [4, 4]], np.int64)}, "1 counts of not-issued samples exceed"),
        ({"latency_samples": np.array([[-1, 0], [3, 4]], np.int64)}, "negative sample counts"),
        ({"all_samples": np.array([[1, 2], [3, 5]], np.int64)}, "add up to 11, the profiler counted 10"),
    ],
)
def test_broken_samples(change: dict[str, object], message: str) -> None:
    messages = _messages(replace(_LAUNCH, samples=replace(_SAMPLES, **change)))  # type: ignore[arg-type]
    assert len(messages) == 1
    assert message in messages[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"index": 3}, "numbered 3"),
        ({"module_id": 9}, "holds no module 9"),
        ({"function_addresses": (32, 16)}, "not ascending and unique"),
    ],
)
def test_broken_launches(change: dict[str, object], message: str) -> None:
    messages = _messages(replace(_LAUNCH, **change))  # type: ignore[arg-type]
    assert len(messages) == 1
    assert message in messages[0]


def test_broken_modules() -> None:
    functions = (LoadedFunction(name="b", address=32), LoadedFunction(name="a", address=16))
    assert _messages(_LAUNCH, replace(_MODULE, module_id=2, functions=functions)) == [
        "the module is filed under another id than its own (2)",
        "the functions are not in ascending order of their load addresses",
    ]
