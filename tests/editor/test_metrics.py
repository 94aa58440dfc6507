"""Lenses on loops in the metric that a user chose, and what can be chosen; lines are shown in ``scenes/metrics.md``."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.editor.metrics import find_metric
from gpa_lsp.editor.protocol.commands.shown_values import choose_metric, list_metrics, list_offers
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.source.lenses import list_lenses
from gpa_lsp.report.model import LoopRow
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
COUNTERS = {
    "thread_executions": np.array([3200, 1600, -1, 3200]),
    "global_sectors": np.array([-1, 800, -1, 200]),
    "global_sectors_ideal": np.array([-1, 200, -1, 200]),
}


def make_kernel(*, has_counts: bool = True) -> Any:
    rows = [replace(row, executions=100 if has_counts else -1) for row in parse_rows(LISTING, "saxpy")]
    kernel = build_kernel(rows, name="saxpy(float*, float*)", mangled_name="saxpy", blame=BLAME)
    return replace(kernel, code=SimpleNamespace(counters=COUNTERS)) if has_counts else kernel


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
