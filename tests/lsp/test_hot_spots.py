"""The hottest lines, and symbols of the workspace."""

from typing import Any

import pytest
from lsprotocol import types

from gpa_lsp.editor.hot_spots import list_hot_spots
from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.features.outlines import answer_workspace_symbol
from gpa_lsp.editor.settings import Settings
from tests.editor.sessions import Session
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=10 wait=10
    saxpy.cu:5                      LDG.E R2, [R4.64]       ; lg_throttle=6 selected=4
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=60
    saxpy.cu:7                      STG.E [R4.64], R2       ; wait=10
"""
BLAME = "2 <- 1  long_scoreboard memory_global R2"
URI = "file:///project/saxpy.cu"


def make_kernel(name: str = "saxpy(float*)", **more: Any) -> Any:
    return build_kernel(LISTING, name=name, mangled_name=name, blame=BLAME, **more)


PROFILE = make_profile(make_kernel(), texts={"saxpy.cu": SOURCE, "scale.h": "a\nreturn 2 * x;\n"})
OPENED = {"/project/saxpy.cu": SOURCE, "/project/scale.h": "a\nreturn 2 * x;\n"}


def spots(session: Session, uri: str | None = None) -> list[tuple[str, int, str, str]]:
    return [
        (location.uri.rpartition("/")[2], mark.line, mark.kind.value, mark.text)
        for location, mark in list_hot_spots(session, uri)
    ]


def test_the_hottest_lines_come_first_by_what_they_suffer_or_cause() -> None:
    assert spots(Session(PROFILE, OPENED)) == [
        ("saxpy.cu", 5, "causes", "causes 66 %, mostly long_scoreboard · y[i] = 2 * x[i] + y[i];"),
        ("saxpy.cu", 6, "suffers", "60 % of samples, mostly long_scoreboard · y[i] = scale(y[i]);"),
        ("scale.h", 2, "suffers", "60 % of samples, mostly long_scoreboard · return 2 * x;"),
        ("saxpy.cu", 4, "suffers", "20 % of samples, mostly wait · int i = threadIdx.x;"),
        ("saxpy.cu", 7, "suffers", "10 % of samples, mostly wait · }"),
    ]


def test_one_document_can_be_asked_for_by_any_spelling() -> None:
    session = Session(PROFILE, OPENED)
    assert [line for _, line, _, _ in spots(session, "file:///project/scale.h")] == [2]
    closed = Session(PROFILE, {"/project/saxpy.cu": SOURCE})
    assert [file for file, *_ in spots(closed, URI)] == ["saxpy.cu"] * 4
    assert spots(session, "file:///elsewhere/saxpy.cu") == []


def test_a_line_stands_for_the_librarys_that_is_inlined_there() -> None:
    header = "cub/block/scale.cuh"
    kernel = build_kernel(LISTING.replace("scale.h", header), name="saxpy(float*)", blame=BLAME)
    text = "a\nreturn 2 * x;\n"
    profile = make_profile(kernel, texts={"saxpy.cu": SOURCE, header: text})
    session = Session(profile, {**OPENED, f"/project/{header}": text})
    assert [(file, line) for file, line, _, _ in spots(session)] == [("saxpy.cu", line) for line in (5, 6, 4, 7)]
    assert [line for _, line, _, _ in spots(session, f"file:///project/{header}")] == [2], (
        "who opens the header sees it"
    )


def test_the_users_threshold_counts() -> None:
    session = Session(PROFILE, OPENED, settings=Settings(min_share_ratio=0.5))
    assert [line for _, line, _, _ in spots(session, URI)] == [5, 6]


def test_lines_are_where_they_are_now_and_edited_ones_are_left_out() -> None:
    session = Session(PROFILE, {"/project/saxpy.cu": "// new\n" + SOURCE.replace("scale(", "twice(")})
    assert [line for _, line, _, _ in spots(session, URI)] == [6, 5, 8]


def test_in_a_sass_document_they_are_its_instructions() -> None:
    session = Session(PROFILE, OPENED)
    uri = session.sass.find_uri(session.snapshot.visible[0])
    assert list_hot_spots(session, uri) == []  # its text is not open
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    found = list_hot_spots(session, uri)
    assert [(document.find_row(mark.line), mark.kind.value) for _, mark in found] == [
        (1, "causes"), (2, "suffers"), (0, "suffers"), (3, "suffers"),
    ]  # fmt: skip
    assert found[1][1].text.startswith("60 % long_scoreboard · /*") and found[1][1].text.endswith("*/ FMUL")
    assert found[0][1].text.startswith("causes 60 % · /*")
    span = found[0][0].range
    text = document.lines[span.start.line][span.start.character : span.end.character]
    assert text == "LDG.E R2, [R4.64]"


def test_a_line_of_several_kernels_is_listed_once_by_the_one_it_is_hottest_in() -> None:
    cold = build_kernel("saxpy.cu:5  X  ; barrier=3\nsaxpy.cu:4  X  ; wait=97", name="cold", mangled_name="cold")
    session = Session(make_profile(make_kernel(), cold), {"/project/saxpy.cu": SOURCE})
    found = {mark.line: mark.kernel for _, mark in list_hot_spots(session)}
    assert found == {4: "cold", 5: "saxpy", 6: "saxpy", 7: "saxpy"}


def test_the_command_answers_with_plain_json() -> None:
    session = Session(PROFILE, OPENED)
    command = load_commands()["gpaLsp.listHotSpots"]
    first = command(session, (URI,))[0]
    assert {key: first[key] for key in ("uri", "kernel", "kind")} == {"uri": URI, "kernel": "saxpy", "kind": "causes"}
    assert round(first["ratio"], 2) == 0.66
    assert len(command(session, ())) == 5
    assert len(command(session, (None,))) == 5


def symbols(session: Session, query: str) -> list[types.WorkspaceSymbol]:
    found = answer_workspace_symbol(session, types.WorkspaceSymbolParams(query=query))
    assert found is not None
    return found


def test_kernels_are_found_by_a_part_of_their_name() -> None:
    profile = make_profile(make_kernel("saxpy(float*)"), make_kernel("void ns::Reduce<4>(int)", durations_ns=(9e6,)))
    session = Session(profile)
    assert [found.name for found in symbols(session, "")] == ["ns::Reduce<4> · 9.00 ms", "saxpy · 6.19 ms"]
    assert [found.name for found in symbols(session, "reduce")] == ["ns::Reduce<4> · 9.00 ms"]
    assert [found.name for found in symbols(session, "sXp")] == ["saxpy · 6.19 ms"]
    assert symbols(session, "nothing like it") == []
    assert {found.container_name for found in symbols(session, "")} == {"profile.ncu-rep"}


@pytest.mark.parametrize(
    ("opened", "line"),
    [(SOURCE, 2), ("// new\n" + SOURCE, 3)],
)
def test_a_kernel_is_where_its_definition_is(opened: str, line: int) -> None:
    (found,) = symbols(Session(PROFILE, {"/project/saxpy.cu": opened}), "saxpy")
    assert isinstance(found.location, types.Location)
    assert (found.location.uri, found.location.range.start.line + 1) == (URI, line)


def test_a_kernel_without_a_source_here_is_its_sass() -> None:
    (found,) = symbols(Session(make_profile(make_kernel(), texts={})), "saxpy")
    assert found.location.uri.startswith("gpa-sass:///saxpy.")
