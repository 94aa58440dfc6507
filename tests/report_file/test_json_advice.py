"""Advice survives its JSON form exactly, can be read without the rest of the report, and damaged files are refused with a place."""

import json
import math
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import (
    Advice,
    Category,
    Hotspot,
    KernelAdvice,
    Refusal,
    Region,
    Silence,
    SilenceStage,
    Speedup,
    UnitUse,
)
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.figures import measure_share
from gpa_lsp.kernel.scopes import Scope, ScopeKind
from gpa_lsp.report.model import KernelReport
from gpa_lsp.report.saved.store import read_report, write_report
from tests.conftest import examples
from tests.render.advice_examples import make_advised
from tests.report_builder import build_kernel, build_report
from tests.report_file.json_documents import dump, expand, refuse, strict_schema, write

LISTING = """
    k.cu:4                      LDG.E R2, [R4.64]   ; selected=4
    sq@m.h:2 < kernel@k.cu:5    FMUL R2, R2, R2     ; long_scoreboard=60/50 wait=8/4 selected=8
    -                           EXIT                ; drain=20/20
"""

ADVICE = """
    loop_unrolling code 1.5x 1.3-1.7 <=2 uncapped=2.25
        title: Unroll the loop
        group: memory latency
        hint: Unroll it by four.
        caveat: Needs registers.
        caveat: Larger code.
        reason: Equations 4 and 5
        bound: latency hiding at most halves the time
        region loop 0 1.4x to=5 density=0.75
            here: Unroll this one.
            1 <- 0  long_scoreboard=60/50  memory_global R2 12c 1i shared # behind one scoreboard
            1  wait=8/4
        region line 2 1.2x
            2  drain
    block_increase parallel 1.1x
    silence fast_math not_matched: No slow division here.
    silence warp_balance no_metrics: The profile lacks x.
"""


def make_kernel() -> KernelReport:
    return build_kernel(LISTING, advice=ADVICE)


def test_the_promised_fields() -> None:
    kernel = dump(build_report(make_kernel()), is_expanded=True)["kernels"][0]
    advice = kernel["advice"][0]
    assert (advice["optimizer"], advice["title"], advice["category"], advice["group"]) == (
        "loop_unrolling", "Unroll the loop", "code", "memory latency",
    )  # fmt: skip
    assert advice["speedup"] == {
        "estimate": 1.5, "low": 1.3, "high": 1.7, "bound": 2.0, "uncapped": 2.25,
        "bound_reason": "latency hiding at most halves the time", "doubt": "",
    }  # fmt: skip
    assert (advice["matched_samples"], advice["matched_latency_samples"]) == (88, 74)
    assert advice["share"]["ratio"] == 88 / 100
    assert (advice["share"]["part_samples"], advice["share"]["whole_samples"]) == (88, 100)
    assert advice["scope"] == {
        "kind": "loop", "function": "kernel", "row": 0, "pc_offset": 0, "file": "k.cu", "line": 4, "last_line": 5,
    }  # fmt: skip
    assert (advice["hint"], advice["caveats"], advice["reasons"]) == (
        "Unroll it by four.", ["Needs registers.", "Larger code."], ["Equations 4 and 5"],
    )  # fmt: skip
    assert [region["density"] for region in advice["regions"]] == [0.75, 1.0]
    assert [hotspot["samples"] for hotspot in advice["hotspots"]] == [60, 20, 8]
    assert kernel["advice_silences"][1] == {
        "optimizer": "warp_balance", "stage": "no_metrics", "message": "The profile lacks x.",
        "contradicted_by": "",
    }  # fmt: skip


def test_a_hotspot_can_be_read_without_the_rest() -> None:
    kernel = dump(build_report(make_kernel()), is_expanded=True)["kernels"][0]
    hotspot = kernel["advice"][0]["regions"][0]["hotspots"][0]
    assert hotspot == {
        "def": {
            "row": 0, "function": "kernel", "pc_offset": 0, "text": "LDG.E R2, [R4.64]", "file": "k.cu", "line": 4,
            "inline": [{"file": "k.cu", "line": 4, "function": None}], "loop": None,
        },
        "use": {
            "row": 1, "function": "kernel", "pc_offset": 16, "text": "FMUL R2, R2, R2", "file": "m.h", "line": 2,
            "loop": None,
            "inline": [{"file": "m.h", "line": 2, "function": "sq"}, {"file": "k.cu", "line": 5, "function": "kernel"}],
        },
        "reason": "long_scoreboard", "category": "memory_global", "samples": 60, "latency_samples": 50,
        "distance_cycles": 12, "distance_instructions": 1, "operand": "R2", "is_separable": False,
        "note": "behind one scoreboard",
    }  # fmt: skip


@pytest.mark.parametrize("advice", [None, KernelAdvice(advice=(), refusals=()), ADVICE], ids=["none", "empty", "some"])
@pytest.mark.parametrize("indent", [None, 2])
def test_round_trip(advice: Any, indent: int | None, tmp_path: Path) -> None:
    kernel = build_kernel(LISTING, advice=advice)
    path = tmp_path / "r.json"
    write_report(build_report(kernel), path, indent=indent)
    assert read_report(path).kernels[0].advice == kernel.advice
    jsonschema.Draft202012Validator(strict_schema()).validate(json.loads(path.read_text()))


def test_what_has_no_limit_stays_without(tmp_path: Path) -> None:
    kernel = make_kernel()
    assert kernel.advice is not None
    first = kernel.advice.advice[0]
    endless = replace(first, speedup=replace(first.speedup, bound=math.inf, high=math.inf, uncapped=math.inf))
    report = build_report(replace(kernel, advice=KernelAdvice(advice=(endless,), refusals=())))
    assert dump(report)["kernels"][0]["advice"][0]["speedup"]["bound"] is None
    write_report(report, tmp_path / "r.json")
    back = read_report(tmp_path / "r.json").kernels[0].advice
    assert back is not None
    assert back.advice == (endless,)


def test_a_report_without_verdicts_is_read_with_them(tmp_path: Path) -> None:
    kernel = make_advised()
    document = dump(build_report(kernel))
    del document["kernels"][0]["advice_refusals"]
    for one in document["kernels"][0]["advice"]:
        del one["standing"]
    back = read_report(write(tmp_path / "old.json", document)).kernels[0]
    assert back.advice == kernel.advice
    assert back.advice is not None
    assert [one.titles for one in back.advice.refusals or ()] == [("Overlap stores with further work",)]


def test_what_repeats_the_instructions_is_not_believed(tmp_path: Path) -> None:
    document = dump(build_report(make_kernel()))
    advice = document["kernels"][0]["advice"][0]
    advice["regions"][0]["hotspots"][0]["def"]["text"] = "NOP"
    advice["hotspots"] = []
    (back,) = read_report(write(tmp_path / "r.json", document)).kernels
    assert expand(back) == expand(make_kernel())


def test_silences_may_be_missing(tmp_path: Path) -> None:
    document = dump(build_report(make_kernel()))
    del document["kernels"][0]["advice_silences"]
    (back,) = read_report(write(tmp_path / "r.json", document)).kernels
    assert back.advice is not None
    assert (len(back.advice.advice), back.advice.silences) == (2, ())


@pytest.mark.parametrize(
    ("pointer", "value", "place", "words"),
    [
        ("/advice", {}, "/advice", "is an object, not an array"),
        ("/advice/0", 1, "/advice/0", "is a number, not an object"),
        ("/advice/0/optimizer", None, "/advice/0/optimizer", "is null, not a string"),
        ("/advice/0/category", "magic", "/advice/0/category", "not one of code, parallel, binary"),
        ("/advice/0/speedup/estimate", None, "/advice/0/speedup/estimate", "is null, not a number"),
        ("/advice/0/speedup/low", -1, "/advice/0/speedup/low", "is negative"),
        ("/advice/0/speedup/estimate", 50, "/advice/0/speedup", "has low, estimate, high and bound in another order"),
        ("/advice/0/speedup/low", 1e308, "/advice/0/speedup", "has low, estimate, high and bound in another order"),
        ("/advice/0/speedup/bound_reason", ..., "/advice/0/speedup", "lacks the property 'bound_reason'"),
        ("/advice/0/share/part_samples", 101, "/advice/0/share/part_samples", "is 101, outside 0 to 100"),
        ("/advice/0/share/ratio", 1.1, "/advice/0/share/ratio", "is 1.1, outside 0 to 1"),
        ("/advice/0/matched_samples", -2, "/advice/0/matched_samples", "is negative"),
        ("/advice/0/scope/kind", "galaxy", "/advice/0/scope/kind", "not one of kernel, function"),
        ("/advice/0/scope/row", 3, "/advice/0/scope/row", "is 3, outside 0 to 2"),
        ("/advice/0/regions/1/density", 2, "/advice/0/regions/1/density", "outside 0 to 1"),
        ("/advice/0/regions/0/scope/line", "4", "/advice/0/regions/0/scope/line", "a string, not a whole number"),
        ("/advice/0/regions/0/hotspots/0/def", None, "/advice/0/regions/0/hotspots/0/def", "is null, not an object"),
        ("/advice/0/regions/0/hotspots/0/def/row", 3, "/advice/0/regions/0/hotspots/0/def/row", "outside 0 to 2"),
        ("/advice/0/regions/0/hotspots/0/use/row", -1, "/advice/0/regions/0/hotspots/0/use/row", "outside 0 to 2"),
        (
            "/advice/0/regions/0/hotspots/0/category",
            "x",
            "/advice/0/regions/0/hotspots/0/category",
            "not one of memory",
        ),
        ("/advice/0/regions/0/hotspots/0/operand", "Q1", "/advice/0/regions/0/hotspots/0/operand", "no register"),
        ("/advice/0/caveats", "none", "/advice/0/caveats", "a string, not an array"),
        ("/advice_silences/0/stage", "asleep", "/advice_silences/0/stage", "not one of no_samples"),
        ("/advice_silences/0", [], "/advice_silences/0", "is an array, not an object"),
    ],
)
def test_a_wrong_value_is_named_by_its_pointer(
    tmp_path: Path, pointer: str, value: Any, place: str, words: str
) -> None:
    error = refuse(tmp_path, build_report(make_kernel()), [(f"/kernels/0{pointer}", value)])
    assert words in str(error)
    assert error.place == f"/kernels/0{place}"


# Hypothesis: any advice survives.

_texts = st.text(max_size=8)
_amounts = st.floats(0, 1e15)
_rows = st.integers(0, 2)
_shares = st.integers(1, 1 << 40).flatmap(lambda whole: st.builds(measure_share, st.integers(0, whole), st.just(whole)))
_limits = st.floats(0, allow_nan=False)
_distances = st.none() | st.integers(0, 1 << 40)
_speedups = st.tuples(st.floats(0, 1e9), st.floats(0, 1e9), _limits, _limits).flatmap(
    lambda numbers: st.builds(
        Speedup,
        **dict(zip(("low", "estimate", "high", "bound"), map(st.just, sorted(numbers)), strict=True)),
        bound_reason=_texts,
        uncapped=_limits,
    )
)
_scopes = st.builds(
    Scope,
    kind=st.sampled_from(ScopeKind),
    function=_texts,
    row=_rows,
    file=st.none() | _texts,
    line=_distances,
    last_line=_distances,
)
_hotspots = st.builds(
    Hotspot,
    def_row=_rows,
    use_row=st.none() | _rows,
    reason=_texts,
    category=st.none() | st.sampled_from(BlameCategory),
    samples=_amounts,
    latency_samples=_amounts,
    distance_cycles=_distances,
    distance_instructions=_distances,
    resource=st.none() | st.integers(0, 5 * 256 - 1),
    is_separable=st.booleans(),
    note=_texts,
    def_loop=st.none() | _scopes,
    use_loop=st.none() | _scopes,
).map(lambda found: replace(found, use_loop=None) if found.use_row is None else found)
_regions = st.builds(
    Region,
    scope=_scopes,
    matched_samples=_amounts,
    matched_latency_samples=_amounts,
    share=_shares,
    speedup=_speedups,
    density=st.floats(0, 1),
    hotspots=st.lists(_hotspots, max_size=2).map(tuple),
    hint=_texts,
)
_advice = st.builds(
    Advice,
    optimizer=_texts,
    title=_texts,
    category=st.sampled_from(Category),
    group=_texts,
    speedup=_speedups,
    share=_shares,
    matched_samples=_amounts,
    matched_latency_samples=_amounts,
    scope=_scopes,
    regions=st.lists(_regions, max_size=2).map(tuple),
    hint=_texts,
    caveats=st.lists(_texts, max_size=2).map(tuple),
    reasons=st.lists(_texts, max_size=2).map(tuple),
    rank_reason=_texts,
)
_silences = st.builds(Silence, optimizer=_texts, stage=st.sampled_from(SilenceStage), message=_texts)
_units = st.builds(UnitUse, name=_texts, achieved_ratio=st.floats(0, 2), ceiling_ratio=st.floats(0, 1))
_refusals = st.builds(Refusal, why=_texts, titles=st.lists(_texts, max_size=2).map(tuple))

_all_advice = st.builds(
    KernelAdvice,
    advice=st.lists(_advice, max_size=2).map(tuple),
    silences=st.lists(_silences, max_size=2).map(tuple),
    refusals=st.lists(_refusals, max_size=2).map(tuple),
    memory=_texts,
    is_bandwidth_bound=st.booleans(),
    units=st.lists(_units, max_size=3).map(tuple),
)


@examples(60)
@given(advice=_all_advice, is_expanded=st.booleans())
def test_any_advice_survives(tmp_path_factory: pytest.TempPathFactory, advice: KernelAdvice, is_expanded: bool) -> None:
    path = tmp_path_factory.getbasetemp() / "any_advice.json"
    write_report(build_report(build_kernel(LISTING, advice=advice)), path, is_expanded=is_expanded)
    first = path.read_bytes()
    back = read_report(path)
    assert back.kernels[0].advice == advice
    write_report(back, path, is_expanded=is_expanded)
    assert path.read_bytes() == first
    jsonschema.Draft202012Validator(strict_schema()).validate(json.loads(first))
