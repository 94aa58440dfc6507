"""Def-use chains of source lines as a call hierarchy."""

import pytest
from lsprotocol.types import CallHierarchyItem, Position, Range

from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.editor.source.chains import list_incoming, list_outgoing, prepare
from tests.editor.sessions import Session
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=4
    saxpy.cu:5                      LDG.E R2, [R0.64]       ; wait=16 selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=50
    saxpy.cu:7                      STG.E [R4], R2          ; wait=20 long_scoreboard=6
"""
BLAME = """
    1 <- 0   wait              execution_arithmetic R0 4c 1i
    2 <- 1   long_scoreboard   memory_global R2 8c 1i
    3 <- 2   wait              execution_arithmetic R2 4c 1i
    3 <- 1   long_scoreboard   memory_global R2
"""
KERNEL = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_", blame=BLAME)
PROFILE = make_profile(KERNEL, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
URI = "file:///project/saxpy.cu"


def start(line: int, text: str = SOURCE, profile: LoadedProfile = PROFILE) -> tuple[Session, CallHierarchyItem | None]:
    session = Session(profile, {"/project/saxpy.cu": text})
    view = session.view(URI)
    assert view is not None
    return session, prepare(view, line)


def incoming(session: Session, item: CallHierarchyItem) -> list[CallHierarchyItem]:
    calls = list_incoming(session, item.data)
    assert calls is not None
    assert all(call.from_ranges == (call.from_.range,) for call in calls)  # relative to the item they come from
    return [call.from_ for call in calls]


def outgoing(session: Session, item: CallHierarchyItem) -> list[CallHierarchyItem]:
    calls = list_outgoing(session, item.data)
    assert calls is not None
    assert all(call.from_ranges == (item.range,) for call in calls)  # relative to the item that was asked about
    return [call.to for call in calls]


def test_the_item_names_the_line_and_what_it_costs() -> None:
    _, item = start(6)
    assert item is not None
    assert item.name == "line 6: y[i] = scale(y[i]);"
    assert item.detail == "waits 50 %, causes 20 % of saxpy · long_scoreboard"
    assert item.range == Range(Position(5, 4), Position(5, 23))


def test_a_chain_leads_from_the_victim_to_its_causes_and_theirs() -> None:
    session, item = start(7)
    assert item is not None
    first, second = incoming(session, item)
    assert (first.name, first.detail) == ("line 6: y[i] = scale(y[i]);", "20 % · 20 samples of wait through R2")
    assert (second.name, second.detail) == (
        "line 5: y[i] = 2 * x[i] + y[i];",
        "6.0 % · 6 samples of long_scoreboard through R2",
    )
    (load,) = incoming(session, first)
    assert load.name == second.name
    (index,) = incoming(session, load)
    assert index.name == "line 4: int i = threadIdx.x;"
    assert incoming(session, index) == []


def test_the_other_way_leads_from_the_cause_to_its_victims() -> None:
    session, item = start(5)
    assert item is not None
    assert [found.name for found in outgoing(session, item)] == ["line 6: y[i] = scale(y[i]);", "line 7: }"]


def test_lines_are_where_the_edits_moved_them() -> None:
    session, item = start(8, "// new\n" + SOURCE)
    assert item is not None
    assert item.name == "line 8: }"
    assert [found.name.partition(":")[0] for found in incoming(session, item)] == ["line 7", "line 6"]


def test_lines_that_were_edited_away_are_left_out() -> None:
    session, item = start(7, SOURCE.replace("scale(y[i])", "twice(y[i])"))
    assert item is not None
    assert [found.name.partition(":")[0] for found in incoming(session, item)] == ["line 5"]


def test_a_line_that_waits_for_itself_can_be_opened_for_ever() -> None:
    kernel = build_kernel(
        "saxpy.cu:5  LDG.E R2, [R4.64]  ;\nsaxpy.cu:5  IMAD R4, R2, R3, R4  ; long_scoreboard=60",
        name="saxpy",
        blame="1 <- 0  long_scoreboard memory_global R2",
    )
    session, item = start(5, profile=make_profile(kernel))
    for _ in range(3):
        assert item is not None
        (item,) = incoming(session, item)
        assert item.name.startswith("line 5")


def test_a_line_without_pairs_is_no_item() -> None:
    assert start(1)[1] is None
    assert start(99)[1] is None
    unblamed = make_profile(build_kernel(LISTING, name="saxpy"))
    assert start(5, profile=unblamed)[1] is None


@pytest.mark.parametrize(
    "data",
    [None, "text", 3, [], {}, {"kind": "sass"}, {"kind": "source", "kernel": "other", "file": "saxpy.cu", "line": 5},
     {"kind": "source", "kernel": "_Z5saxpyPfS_", "file": ["saxpy.cu"], "line": {}},
     {"kind": "source", "kernel": "_Z5saxpyPfS_", "file": "saxpy.cu", "line": 500}],
)  # fmt: skip
def test_data_that_is_none_of_ours_has_no_calls(data: object) -> None:
    session = Session(PROFILE)
    assert list_incoming(session, data) is None
    assert list_outgoing(session, data) is None
