"""Any sound profile, and a way to compare two that counts NaN as equal to itself."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.profile.model import (
    Aggregate,
    Device,
    FocusMetric,
    HostFrame,
    Launch,
    LoadedFunction,
    Metric,
    Module,
    Profile,
    RuleMessage,
    RuleResult,
    RuleSpeedup,
    RuleTable,
    RuleTableColumn,
    Sampling,
    SourceMarker,
    StallSamples,
)

TEXT = st.text(st.characters(codec="utf-8"), max_size=8)
NAME = st.text("abk_Z0", min_size=1, max_size=5)
NATURAL = st.integers(0, 2**40)
ADDRESS = st.integers(0, 2**64 - 1)
FLOAT = st.floats(width=64)
SCALAR = st.one_of(st.integers(-(2**63), 2**64 - 1), FLOAT, TEXT)
KIND = st.sampled_from(["ok", "info", "warning", "error", "optimization"])


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def tuples_of(strategy: st.SearchStrategy[Any], max_size: int = 3) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(strategy, max_size=max_size).map(tuple)


FUNCTIONS = st.lists(
    st.builds(LoadedFunction, name=NAME, address=ADDRESS, symbol_index=optional(NATURAL)),
    max_size=4,
    unique_by=lambda function: (function.address, function.name),
).map(lambda functions: tuple(sorted(functions, key=lambda function: (function.address, function.name))))


def _build_modules(ids: list[int], contents: list[Module]) -> dict[int, Module]:
    from msgspec.structs import replace

    return {module_id: replace(module, module_id=module_id) for module_id, module in zip(ids, contents, strict=False)}


MODULE = st.builds(
    Module,
    module_id=st.just(0),
    image=optional(st.binary(max_size=20).map(lambda tail: b"\x7fELF" + tail)),
    compute_capability=optional(st.tuples(st.integers(0, 99), st.integers(0, 9))),
    functions=FUNCTIONS,
    sources=st.dictionaries(TEXT, TEXT, max_size=2),
)
MODULES = st.builds(
    _build_modules, st.lists(NATURAL, max_size=3, unique=True), st.lists(MODULE, min_size=3, max_size=3)
)

RULE = st.builds(
    RuleResult,
    identifier=TEXT,
    name=TEXT,
    section=TEXT,
    messages=tuples_of(st.builds(RuleMessage, kind=KIND, title=TEXT, text=TEXT)),
    speedups=tuples_of(st.builds(RuleSpeedup, percent=FLOAT, is_global=st.booleans())),
    focus_metrics=tuples_of(st.builds(FocusMetric, name=TEXT, value=FLOAT, severity=NATURAL, advice=TEXT)),
    markers=tuples_of(
        st.builds(
            SourceMarker,
            address=optional(ADDRESS),
            file=optional(TEXT),
            line=optional(NATURAL),
            text=TEXT,
            kind=KIND,
        )
    ),
    source_metrics=tuples_of(TEXT),
    tables=tuples_of(
        st.builds(
            RuleTable,
            title=TEXT,
            description=TEXT,
            columns=tuples_of(st.builds(RuleTableColumn, name=TEXT, values=tuples_of(st.one_of(FLOAT, TEXT)))),
        ),
        max_size=1,
    ),
)
DEVICE = st.builds(
    Device,
    name=optional(TEXT),
    compute_capability=optional(st.tuples(st.integers(0, 99), st.integers(0, 9))),
    sm_count=optional(NATURAL),
    sm_clock_hz=optional(FLOAT),
    attributes=st.dictionaries(TEXT, SCALAR, max_size=3),
)
FRAME = st.builds(
    HostFrame,
    function=optional(TEXT),
    module=optional(TEXT),
    file=optional(TEXT),
    line=optional(NATURAL),
    address=optional(ADDRESS),
)


SAMPLING = st.builds(
    Sampling,
    period_cycles=optional(st.integers(1, 2**53 - 1)),
    dropped_samples=optional(NATURAL),
    foreign_samples=optional(NATURAL),
    total_samples=optional(NATURAL),
)


@st.composite
def build_metrics(draw: st.DrawFn) -> dict[str, Metric]:
    metrics = {}
    for name in draw(st.lists(TEXT, max_size=3, unique=True)):
        instances = draw(st.lists(st.tuples(st.one_of(ADDRESS, TEXT), SCALAR), max_size=3))
        metrics[name] = Metric(
            name=name,
            value=draw(optional(SCALAR)),
            instance_ids=tuple(identifier for identifier, _ in instances),
            instance_values=tuple(value for _, value in instances),
            over_time=draw(st.booleans()),
        )
    return metrics


@st.composite
def build_samples(draw: st.DrawFn, functions: tuple[LoadedFunction, ...]) -> StallSamples:
    inside = [
        st.builds(lambda base, offset: min(base + offset, 2**64 - 1), st.just(function.address), st.integers(0, 4096))
        for function in functions
    ]
    addresses = sorted(draw(st.sets(st.one_of(ADDRESS, *inside), max_size=4)))
    reasons = tuple(sorted(draw(st.sets(TEXT, max_size=3))))
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
    dim3 = st.tuples(*[st.integers(0, 2**31 - 1)] * 3)
    return Launch(
        index=index,
        mangled_name=draw(st.one_of(NAME, *(st.just(function.name) for function in functions))),
        plain_name=draw(TEXT),
        demangled_name=draw(TEXT),
        module_id=module_id,
        grid=draw(optional(dim3)),
        block=draw(optional(dim3)),
        device=draw(DEVICE),
        created_unix_s=draw(optional(NATURAL)),
        context_id=draw(optional(NATURAL)),
        stream_id=draw(optional(NATURAL)),
        metrics=draw(build_metrics()),
        samples=draw(optional(build_samples(functions))),
        samples_truncated=draw(st.booleans()),
        function_addresses=tuple(sorted(draw(st.sets(ADDRESS, max_size=3)))),
        nvtx_ranges=draw(tuples_of(TEXT)),
        call_stack=draw(tuples_of(FRAME)),
        rules=draw(tuples_of(RULE, max_size=1)),
        failure=draw(optional(TEXT)),
        sampling=draw(SAMPLING),
        aggregate=draw(optional(st.builds(Aggregate, launches=optional(st.integers(1, 2**40))))),
    )


@st.composite
def build_profile(draw: st.DrawFn) -> Profile:
    modules = draw(MODULES)
    count = draw(st.integers(0, 2))
    problem = st.builds(
        Problem,
        severity=st.sampled_from(ProblemSeverity),
        message=TEXT,
        place=optional(TEXT),
        remedy=optional(TEXT),
        kernel=optional(TEXT),
    )
    return Profile(
        path=None,
        format_name="gpa-lsp/profile/2",
        tool_version=draw(optional(TEXT)),
        modules=modules,
        launches=tuple(draw(build_launch(index, modules)) for index in range(count)),
        problems=draw(tuples_of(problem)),
        sampling=draw(SAMPLING),
        samples_truncated=draw(st.booleans()),
    )


def describe(profile: Profile) -> str:
    """Everything of a profile but its path, as text two equal profiles share."""
    from msgspec.structs import replace

    problems = tuple(replace(problem, path=None) for problem in profile.problems)
    launches = []
    for launch in profile.launches:
        samples = launch.samples
        columns = (
            None
            if samples is None
            else (
                samples.addresses.tolist(),
                samples.reasons,
                samples.all_samples.tolist(),
                None if samples.latency_samples is None else samples.latency_samples.tolist(),
            )
        )
        launches.append((replace(launch, samples=None, metrics=dict(launch.metrics)), columns))
    return repr(replace(profile, path=None, launches=(), problems=problems)) + repr(launches)
