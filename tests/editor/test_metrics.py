"""Lines show one metric of the user's choice: in hints, heat, lenses and lists alike, with its unit, and never 0 for what is unknown."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lsprotocol.types import InlayHint
from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.hot_spots import list_hot_spots
from gpa_lsp.editor.lines.marks import list_marks
from gpa_lsp.editor.metrics import find_metric
from gpa_lsp.editor.model import MarkKind
from gpa_lsp.editor.protocol.commands.shown_values import choose_metric, list_metrics, list_offers
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.source.hints import MOST_CHARS, list_hints
from gpa_lsp.editor.source.lenses import list_lenses
from gpa_lsp.report.model import LoopRow
from tests.editor import predictions
from tests.editor.sessions import Session
from tests.editor.views import CAUSED, SOURCE, make_profile, make_view
from tests.report_builder import build_kernel, parse_rows

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=40 wait=160
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; lg_throttle=60 selected=36
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=600
    saxpy.cu:7                      STG.E [R4.64], R2       ; wait=4
"""
BLAME = "2 <- 1  long_scoreboard memory_global R2"
MEASURED = ("time", "cause", "wait", "executions", "divergence", "sectors")
COUNTERS = {
    "thread_executions": np.array([3200, 1600, -1, 3200]),
    "global_sectors": np.array([-1, 800, -1, 200]),
    "global_sectors_ideal": np.array([-1, 200, -1, 200]),
}


def make_kernel(*, has_counts: bool = True) -> Any:
    rows = [replace(row, executions=100 if has_counts else -1) for row in parse_rows(LISTING, "saxpy")]
    kernel = build_kernel(rows, name="saxpy(float*, float*)", mangled_name="saxpy", blame=BLAME)
    return replace(kernel, code=SimpleNamespace(counters=COUNTERS)) if has_counts else kernel


def view(name: str, *, has_counts: bool = True, **settings: Any) -> DocumentView:
    profile = make_profile(make_kernel(has_counts=has_counts), texts={"saxpy.cu": SOURCE})
    found = make_view(profile, settings=Settings(metric=find_metric(name), **settings))
    assert found is not None
    return found


def read(hint: InlayHint) -> str:
    return hint.label if isinstance(hint.label, str) else "".join(part.value for part in hint.label)


def hints(document: DocumentView) -> dict[int, str]:
    return {hint.position.line + 1: read(hint) for hint in list_hints(document, 1, 99)}


def lens(document: DocumentView) -> str:
    return list_lenses(document)[0].command.title


@pytest.mark.parametrize(
    ("name", "shown", "total"),
    [
        ("time", {4: "22 % of samples", 5: "11 % of samples", 6: "← line 5 · 67 % of samples"}, "900 samples"),
        (
            "cause",
            {4: "causes 18 %", 5: "→ line 6 · causes 73 %"},
            "67 % of samples moved to causes",
        ),
        ("wait", {4: "18 % wait"}, "18 % wait"),
        ("executions", dict.fromkeys((4, 5, 6, 7), "100 warp instructions"), "400 warp instructions"),
        ("divergence", {5: "16 of 32 threads active"}, "26.7 of 32 threads active"),
        ("sectors", {5: "800 sectors, 200 at best", 7: "200 sectors, 200 at best"}, "1,000 sectors, 400 at best"),
    ],
)
def test_hints_and_lenses_name_the_unit(name: str, shown: dict[int, str], total: str) -> None:
    document = view(name)
    assert hints(document) == shown
    assert lens(document).startswith(f"saxpy · {total}")
    assert all(len(text) <= MOST_CHARS for text in shown.values())
    assert all(hint.tooltip for hint in list_hints(document, 1, 99))


def test_a_stall_reason_leads_to_its_cause() -> None:
    document = view("long_scoreboard")
    assert hints(document) == {6: "← line 5 · 67 % long_scoreboard"}
    (hint,) = list_hints(document, 1, 99)
    assert not isinstance(hint.label, str)
    location = hint.label[0].location
    assert location is not None and location.range.start.line == 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usual", ""),
        ("time", "94 % of samples · "),
        ("cause", "causes 86 % · "),
        ("long_scoreboard", "60 % long_scoreboard · "),
        ("executions", ""),
        ("emulated", ""),
    ],
)
def test_lenses_on_loops_follow_the_choice(name: str, value: str) -> None:
    columns = CAUSED.instructions
    inside = np.array([row < 3 for row in range(len(columns))], dtype=np.uint16)
    loop = LoopRow(
        function=columns.functions[0],
        header_pc_offset=int(columns.pc_offsets[0]),
        last_pc_offset=int(columns.pc_offsets[2]),
        depth=1,
        file=None,
        first_line=None,
        last_line=None,
        samples=60,
        latency_samples=None,
    )
    kernel = replace(CAUSED, loops=(loop,), instructions=replace(columns, loop_depths=inside))
    document = make_view(
        make_profile(kernel, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"}),
        settings=Settings(metric=find_metric(name)),
    )
    assert document is not None
    title = list_lenses(document)[-1].command.title
    assert title == f"{value}Move loads earlier 1.36–1.44×"


@pytest.mark.parametrize("name", MEASURED)
def test_heat_follows_the_same_choice(name: str) -> None:
    document = view(name)
    heat = {one.line: one for one in list_marks(document, 0.05)}
    assert heat and set(heat) <= set(hints(document))
    assert {one.kind for one in heat.values()} == {MarkKind.CAUSES if name == "cause" else MarkKind.SUFFERS}
    assert all(0 < one.share_ratio <= 1 for one in heat.values())


@pytest.mark.parametrize("name", ["executions", "divergence", "sectors", "emulated", "predicted"])
def test_what_a_profile_lacks_is_said_and_is_not_0(name: str) -> None:
    document = view(name, has_counts=False)
    assert hints(document) == {} and list_marks(document, 0.0) == ()
    assert lens(document).startswith(f"saxpy · {name}: no")


def test_a_sampled_kernel_without_a_reason_was_never_stalled_by_it() -> None:
    assert hints(view("barrier")) == {}
    assert lens(view("barrier")).startswith("saxpy · 0 % barrier")


def test_lists_of_hot_lines_follow_the_choice() -> None:
    session = Session(make_profile(make_kernel(), texts={"saxpy.cu": SOURCE}))
    session.choose_metric(find_metric("sectors"))
    spots = [(mark.line, mark.text) for _, mark in list_hot_spots(session)]
    assert spots == [
        (5, "800 sectors, 200 at best · y[i] = 2 * x[i] + y[i];"),
        (7, "200 sectors, 200 at best · }"),
    ]


def test_what_can_be_chosen_says_who_lacks_it() -> None:
    other = replace(make_kernel(has_counts=False), name="other(float*)", mangled_name="other")
    session = Session(make_profile(make_kernel(), other, texts={"saxpy.cu": SOURCE}))
    offers = {offer.metric.name: offer for offer in list_offers(session, None)}
    assert list(offers)[:3] == ["usual", "time", "cause"] and list(offers)[-4:-2] == ["long_scoreboard", "wait"]
    assert (offers["sectors"].is_known, offers["time"].lack) == (True, "")
    assert offers["sectors"].lack == "1 kernel of 2 without it (other): not in their profiles"
    assert (offers["emulated"].is_known, offers["emulated"].lack) == (
        False,
        "no launch description",
    )


@pytest.mark.parametrize("arguments", [["no such thing"], ["x" * 5000]])
def test_what_nobody_offers_changes_nothing_but_to_the_usual(arguments: list[Any]) -> None:
    session: Any = Session(make_profile(make_kernel(), texts={"saxpy.cu": SOURCE}))
    session.choose_metric(find_metric("sectors"))
    chosen = choose_metric(session, arguments)
    assert (chosen is None) == (session.settings.metric.name == "sectors")
    assert sum(one["isShown"] for one in list_metrics(session, arguments)) == 1


def test_what_is_emulated_or_predicted_is_marked_so() -> None:
    emulated = predictions.view(metric=find_metric("emulated"))
    assert hints(emulated) == {
        5: "16 sectors/req · 50 % diverge · emulated",
        6: "4 sectors/req · 4 wavefronts/req · emulated",
    }
    assert {one.line: one.text for one in list_marks(emulated, 0.0)} == {
        5: "16 sectors/req · emulated",
        6: "4 wavefronts/req · emulated",
    }
    predicted = predictions.view(metric=find_metric("predicted"))
    assert hints(predicted) == {5: "L1 hits 50 % · predicted", 6: "L1 hits 50 % · predicted"}
    assert [one.share_ratio for one in list_marks(predicted, 0.0)] == [0.5, 0.5]
    assert hints(predictions.view(metric=find_metric("sectors"))) == {}, "nothing emulated stands for what is measured"
