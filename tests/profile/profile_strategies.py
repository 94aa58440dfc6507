"""Any sound profile, and a way to compare two that counts NaN as equal to itself."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.foundation.errors import Problem
from gpa_lsp.profile.model import (
    Aggregate,
    Launch,
    LoadedFunction,
    Metric,
    Module,
    Profile,
    RuleResult,
    Sampling,
    StallSamples,
)
from tests.strategies import TEXTS, records

NAME = st.text("abk_Z0", min_size=1, max_size=5)
ADDRESS = st.integers(0, 2**64 - 1)
SCALAR = st.integers(-(2**63), 2**64 - 1) | st.floats(width=64) | TEXTS
DIM3 = st.none() | st.tuples(*[st.integers(0, 2**31 - 1)] * 3)
KNOWN: dict[Any, st.SearchStrategy[Any]] = {
    float: st.floats(width=64),
    int | float | str: SCALAR,
    "address": st.none() | ADDRESS,
    "kind": st.sampled_from(["ok", "info", "warning", "error", "optimization"]),
    "compute_capability": st.none() | st.tuples(st.integers(0, 99), st.integers(0, 9)),
}
"""By type or by the name of a field."""

FUNCTIONS = st.lists(
    records(LoadedFunction, name=NAME, address=ADDRESS),
    max_size=4,
    unique_by=lambda function: (function.address, function.name),
).map(lambda functions: tuple(sorted(functions, key=lambda function: (function.address, function.name))))
IMAGES = st.none() | st.binary(max_size=20).map(lambda tail: b"\x7fELF" + tail)
MODULES = st.lists(records(Module, KNOWN, image=IMAGES, functions=FUNCTIONS), max_size=3).map(
    lambda modules: {module.module_id: module for module in modules}
)
SAMPLING = records(
    Sampling, period_cycles=st.none() | st.integers(1, 2**53 - 1), is_simulated=False, unchecked=""
)  # fmt: skip


@st.composite
def build_metrics(draw: st.DrawFn) -> dict[str, Metric]:
    metrics = {}
    for name in draw(st.lists(TEXTS, max_size=3, unique=True)):
        instances = draw(st.lists(st.tuples(ADDRESS | TEXTS, SCALAR), max_size=3))
        ids, amounts = zip(*instances, strict=True) if instances else ((), ())
        metrics[name] = draw(records(Metric, KNOWN, name=name, instance_ids=ids, instance_values=amounts))
    return metrics


@st.composite
def build_samples(draw: st.DrawFn, functions: tuple[LoadedFunction, ...]) -> StallSamples:
    inside = [
        st.builds(lambda base, offset: min(base + offset, 2**64 - 1), st.just(function.address), st.integers(0, 4096))
        for function in functions
    ]
    addresses = sorted(draw(st.sets(st.one_of(ADDRESS, *inside), max_size=4)))
    reasons = tuple(sorted(draw(st.sets(TEXTS, max_size=3))))
    shape = (len(addresses), len(reasons))
    count = st.integers(0, 2**53 - 1)
    all_samples = np.array([draw(count) for _ in range(shape[0] * shape[1])], np.int64).reshape(shape)
    latency_samples = np.array([draw(st.integers(0, int(most))) for most in all_samples.flat], np.int64).reshape(shape)
    is_split = draw(st.booleans()) or not all_samples.any()  # of nothing everything is known
    return StallSamples(
        addresses=np.array(addresses, np.uint64),
        reasons=reasons,
        all_samples=all_samples,
        latency_samples=latency_samples if is_split else None,
    )


@st.composite
def build_launch(draw: st.DrawFn, index: int, modules: dict[int, Module]) -> Launch:
    module_id = draw(st.sampled_from([None, *modules]))
    functions = () if module_id is None else modules[module_id].functions
    launch = records(
        Launch,
        KNOWN,
        index=index,
        mangled_name=st.one_of(NAME, *(st.just(function.name) for function in functions)),
        module_id=module_id,
        grid=DIM3,
        block=DIM3,
        metrics=build_metrics(),
        samples=st.none() | build_samples(functions),
        function_addresses=st.sets(ADDRESS, max_size=3).map(lambda found: tuple(sorted(found))),
        rules=st.lists(records(RuleResult, KNOWN), max_size=1).map(tuple),
        sampling=SAMPLING,
        aggregate=st.none() | records(Aggregate, launches=st.none() | st.integers(1, 2**40)),
    )
    return draw(launch)


@st.composite
def build_profile(draw: st.DrawFn) -> Profile:
    modules = draw(MODULES)
    count = draw(st.integers(0, 2))
    problems = st.lists(records(Problem, path=None, is_passing=False), max_size=3).map(tuple)
    profile = records(
        Profile,
        path=None,
        format_name="gpa-lsp/profile/2",
        modules=st.just(modules),
        launches=st.tuples(*(build_launch(index, modules) for index in range(count))),
        problems=problems,
        other_files=(),
        sampling=SAMPLING,
    )
    return draw(profile)


def describe(profile: Profile) -> str:
    """Text of all of a profile but its path, the same for equal profiles."""
    problems = tuple(replace(problem, path=None) for problem in profile.problems)
    launches = []
    for launch in profile.launches:
        columns = None
        if (samples := launch.samples) is not None:
            tables = (samples.addresses, samples.all_samples, samples.latency_samples)
            columns = (samples.reasons, [None if table is None else table.tolist() for table in tables])
        launches.append((replace(launch, samples=None, metrics=dict(launch.metrics)), columns))
    return repr(replace(profile, path=None, launches=(), problems=problems)) + repr(launches)
