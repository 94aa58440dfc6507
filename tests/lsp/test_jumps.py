"""Jumps from a line to its causes and victims, and the commands that make them."""

from typing import Any

import pytest

from gpa_lsp.editor.jumps import find_causes, find_victims
from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.plain_json import ArgumentsError
from gpa_lsp.editor.snapshot import LoadedProfile
from tests.editor.sessions import Session
from tests.editor.views import SOURCE, make_profile
from tests.report_builder import build_kernel

LISTING = """
    saxpy.cu:4                      S2R R0, SR_TID.X        ; selected=4
    saxpy.cu:5                      LDG.E R2, [R0.64]       ; wait=16 selected=4
    scale.h:2                       FMUL R2, R2, R3         ; long_scoreboard=30
    scale.h:2 < saxpy.cu:6          FMUL R2, R2, R3         ; long_scoreboard=20
    saxpy.cu:7                      STG.E [R4], R2          ; wait=20 long_scoreboard=6
    -                               EXIT                    ; wait=1
"""
BLAME = """
    1 <- 0   wait              execution_arithmetic R0 4c 1i
    2 <- 1   long_scoreboard   memory_global R2 8c 1i
    3 <- 1   long_scoreboard   memory_global R2 8c 1i
    4 <- 3   wait=5            execution_arithmetic R2 4c 1i
    4 <- 5   wait=15           execution_arithmetic R2 4c 1i
    4 <- 1   long_scoreboard   memory_global R2
"""
KERNEL = build_kernel(LISTING, name="saxpy(float*, float*)", mangled_name="_Z5saxpyPfS_", blame=BLAME)
PROFILE = make_profile(KERNEL, texts={"saxpy.cu": SOURCE, "scale.h": "a\nb\n"})
URI = "file:///project/saxpy.cu"


def open_all(profiles: LoadedProfile | list[LoadedProfile] = PROFILE, text: str = SOURCE, **opened: str) -> Session:
    return Session(profiles, {"/project/saxpy.cu": text, "/project/scale.h": "a\nb\n"})


def run(name: str, desk: Session, *arguments: Any) -> Any:
    return load_commands()[f"gpaLsp.{name}"](desk, arguments)


def places(jumps: list[Any]) -> list[tuple[str, int]]:
    return [
        (jump.location.uri.rpartition("/")[2].partition(".")[0], jump.location.range.start.line + 1) for jump in jumps
    ]


def test_the_cause_of_a_line_is_the_one_that_produced_its_operand() -> None:
    (jump,) = find_causes(open_all(), URI, 6)
    assert places([jump]) == [("saxpy", 5)]
    assert jump.text == "line 5 · 20 % · 20 samples of long_scoreboard through R2 · y[i] = 2 * x[i] + y[i];"
    assert (jump.samples, round(jump.ratio, 3)) == (20, 0.198)


def test_the_instruction_itself_is_in_the_sass_document() -> None:
    session = open_all()
    (jump,) = find_causes(session, URI, 6)
    assert jump.sass is not None
    document = session.sass.make(jump.sass.uri)
    assert document is not None
    line = jump.sass.range.start.line + 1
    assert document.find_row(line) == 1
    span = jump.sass.range
    assert document.lines[line - 1][span.start.character : span.end.character] == "LDG.E R2, [R0.64]"


def test_victims_are_the_other_way_round_and_may_be_in_headers() -> None:
    session = open_all()
    found = find_victims(session, URI, 5)
    assert places(found) == [("scale", 2), ("saxpy", 6), ("saxpy", 7)]
    assert [jump.samples for jump in found] == [30, 20, 6]
    sass = found[0].sass
    assert sass is not None
    document = session.sass.make(sass.uri)
    assert document is not None and document.find_row(sass.range.start.line + 1) == 2


def test_from_a_header_the_way_leads_back() -> None:
    assert places(find_causes(open_all(), "file:///project/scale.h", 2)) == [("saxpy", 5)]


def test_a_cause_in_code_without_lines_is_its_instruction() -> None:
    first, second, third = find_causes(open_all(), URI, 7)
    assert places([second, third]) == [("saxpy", 5), ("saxpy", 6)]
    assert first.text == "code without lines · 15 % · 15 samples of wait through R2"
    assert first.location.uri.startswith("gpa-sass:///saxpy.")
    assert first.location == first.sass


def test_a_cause_that_was_edited_away_is_its_instruction() -> None:
    session = open_all(text=SOURCE.replace("2 * x[i]", "3 * x[i]"))
    (jump,) = find_causes(session, URI, 6)
    assert jump.text.startswith("a line edited since · ")
    assert jump.location.uri.startswith("gpa-sass:///saxpy.")


def test_places_that_are_not_on_this_machine_are_left_out() -> None:
    session = open_all(make_profile(KERNEL, texts={"saxpy.cu": SOURCE}))
    assert places(find_victims(session, URI, 5)) == [("saxpy", 6), ("saxpy", 7)]


def test_a_line_that_waits_for_itself_leads_to_itself_and_to_the_instruction() -> None:
    kernel = build_kernel(
        "saxpy.cu:5  LDG.E R2, [R4.64]  ;\nsaxpy.cu:5  IMAD R4, R2, R3, R4  ; long_scoreboard=60",
        name="saxpy",
        blame="1 <- 0  long_scoreboard memory_global R2",
    )
    session = open_all(make_profile(kernel))
    (jump,) = find_causes(session, URI, 5)
    assert places([jump]) == [("saxpy", 5)]
    answer = run("goToCause", session, URI, 4)
    assert answer["range"]["start"]["line"] == 4
    assert session.locations == [jump.sass]


def test_of_several_kernels_the_one_with_most_samples_speaks_for_a_place() -> None:
    kernels = [
        build_kernel(
            f"saxpy.cu:4  LDG.E R2, [R4.64]  ;\nsaxpy.cu:5  FMUL R2, R2, R3  ; long_scoreboard={10 * n}",
            name=f"saxpy<{n}>(float*)",
            mangled_name=f"k{n}",
            blame="1 <- 0  long_scoreboard memory_global R2",
        )
        for n in range(1, 7)
    ]
    (jump,) = find_causes(open_all(make_profile(*kernels)), URI, 5)
    assert jump.samples == 60
    assert "60 samples of long_scoreboard through R2 in saxpy<6>" in jump.text


def test_few_documents_are_made_for_one_answer() -> None:
    kernels = [
        build_kernel(
            f"saxpy.cu:{n}  LDG.E R2, [R4.64]  ;\nsaxpy.cu:7  FMUL R2, R2, R3  ; long_scoreboard={10 * n}",
            name=f"saxpy<{n}>(float*)",
            mangled_name=f"k{n}",
            blame="1 <- 0  long_scoreboard memory_global R2",
        )
        for n in range(1, 7)
    ]
    found = find_causes(open_all(make_profile(*kernels)), URI, 7)
    assert places(found) == [("saxpy", line) for line in (6, 5, 4, 3, 2, 1)]
    assert [jump.sass is not None for jump in found] == [True, True, False, False, False, False]


def test_lines_without_pairs_and_other_documents_lead_nowhere() -> None:
    session = open_all()
    assert find_causes(session, URI, 1) == find_causes(session, URI, 999) == []
    assert find_victims(session, "file:///elsewhere/saxpy.cu", 5) == []
    assert find_causes(open_all(make_profile(build_kernel(LISTING, name="saxpy"))), URI, 6) == []


def test_the_commands_answer_with_plain_json() -> None:
    session = open_all()
    (jump,) = run("findCauses", session, URI, 5)
    assert set(jump) == {"uri", "range", "text", "ratio", "samples", "sass"}
    assert jump["uri"] == URI
    assert jump["range"] == {"start": {"line": 4, "character": 4}, "end": {"line": 4, "character": 27}}
    assert set(jump["sass"]) == {"uri", "range"}
    assert [found["samples"] for found in run("findVictims", session, URI, 4)] == [30, 20, 6]


def test_going_to_the_cause_shows_it() -> None:
    session = open_all()
    answer = run("goToCause", session, URI, 5)
    assert answer["range"]["start"]["line"] == 4
    assert [(shown.uri, shown.range.start.line) for shown in session.locations] == [(URI, 4)]
    assert run("goToCause", session, URI, 0) is None
    assert session.messages == ["this line is not known to be stalled on another one"]


def test_a_chain_is_asked_for_by_direction() -> None:
    session = open_all()
    (incoming,) = run("findChain", session, URI, 5, "incoming")
    assert incoming["item"]["name"] == "line 5: y[i] = 2 * x[i] + y[i];"
    assert set(incoming["item"]) == {"name", "kind", "uri", "range", "selectionRange", "detail", "data"}
    assert incoming["text"] == "20 % · 20 samples of long_scoreboard through R2"
    assert round(incoming["ratio"], 3) == 0.198
    outgoing = run("findChain", session, URI, 5, "outgoing")
    assert [step["item"]["range"]["start"]["line"] for step in outgoing] == [6]
    assert run("findChain", session, URI, 0, "incoming") == []


@pytest.mark.parametrize("arguments", [(), (URI,), (URI, "5"), (None, 5), (URI, -1), (URI, 5, "sideways"), ([], {})])
def test_senseless_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    session = open_all()
    names = ["findChain", *(() if arguments[2:] else ("findCauses", "findVictims", "findLinked", "goToCause"))]
    for name in names:
        with pytest.raises(ArgumentsError):
            run(name, session, *arguments)
