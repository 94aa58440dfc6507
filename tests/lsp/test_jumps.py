"""Nonsense for commands that jump from a line; where they lead stands in ``editor/scenes/chains.md``, how in ``test_source_client.py``."""

from typing import Any

import pytest

from gpa_lsp.editor.protocol.commands import load_commands
from gpa_lsp.editor.protocol.plain_json import ArgumentsError
from gpa_lsp.editor.source.chains import list_incoming, list_outgoing
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


def open_all() -> Session:
    return Session(PROFILE, {"/project/saxpy.cu": SOURCE, "/project/scale.h": "a\nb\n"})


def run(name: str, desk: Session, *arguments: Any) -> Any:
    return load_commands()[f"gpaLsp.{name}"](desk, arguments)


@pytest.mark.parametrize("arguments", [(), (URI,), (URI, "5"), (None, 5), (URI, -1), (URI, 5, "sideways"), ([], {})])
def test_senseless_arguments_are_refused(arguments: tuple[Any, ...]) -> None:
    session = open_all()
    names = ["findChain", *(() if arguments[2:] else ("findCauses", "findVictims", "findLinked", "goToCause"))]
    for name in names:
        with pytest.raises(ArgumentsError):
            run(name, session, *arguments)


@pytest.mark.parametrize(
    "data",
    [None, "text", 3, [], {}, {"kind": "sass"}, {"kind": "source", "kernel": "other", "file": "saxpy.cu", "line": 5},
     {"kind": "source", "kernel": "_Z5saxpyPfS_", "file": ["saxpy.cu"], "line": {}},
     {"kind": "source", "kernel": "_Z5saxpyPfS_", "file": "saxpy.cu", "line": 500}],
)  # fmt: skip
def test_an_item_that_is_none_of_ours_has_no_calls(data: object) -> None:
    assert list_incoming(open_all(), data) is None and list_outgoing(open_all(), data) is None


NOT_HERE = ["this line is not on this machine, or was edited since it was measured"]


def list_shown(session: Session) -> list[tuple[str, int]]:
    """Scheme and 1-based line of the places the client was led to."""
    return [(one.uri.partition(":")[0], one.range.start.line + 1) for one in session.locations]


@pytest.mark.parametrize(
    ("line", "shown", "told"),
    [
        (4, [], ["this line is not known to be stalled on another one"]),
        (5, [("file", 4)], []),
        (6, [("file", 5)], []),
        (7, [("gpa-sass", 20)], []),  # its cause is on the line itself: its instruction
    ],
)
def test_the_way_to_the_cause(line: int, shown: list[tuple[str, int]], told: list[str]) -> None:
    session = open_all()
    jump = run("goToCause", session, URI, line - 1)
    assert (list_shown(session), session.messages) == (shown, told)
    found = run("findCauses", open_all(), URI, line - 1)
    assert jump == (found[0] if found else None), "the first that is listed is where it leads"


@pytest.mark.parametrize(
    ("arguments", "shown", "told"),
    [
        (("saxpy.cu", 5), [("file", 5)], []),
        (("scale.h", 2), [("file", 2)], []),
        (("saxpy.cu", 500), [], NOT_HERE),
        (("nothing.cu", 3), [], NOT_HERE),
    ],
)
def test_a_place_of_a_page_is_shown(arguments: tuple[str, int], shown: list[tuple[str, int]], told: list[str]) -> None:
    session = open_all()
    location = run("openPlace", session, *arguments)
    assert (list_shown(session), session.messages, location is None) == (shown, told, not shown)


@pytest.mark.parametrize("line", [0, -1, True, 2.0, "5", None, 1 << 31])
def test_a_place_without_a_line_is_refused(line: object) -> None:
    with pytest.raises(ArgumentsError):
        run("openPlace", open_all(), "saxpy.cu", line)
    assert run("openPlace", open_all(), "saxpy.cu", (1 << 31) - 1) is None


@pytest.mark.parametrize(
    ("arguments", "row", "told"),
    [
        ((URI, 4), 13, ""),
        ((URI, 1), 1, ""),  # the line of the kernel's head: its document
        ((URI, 0), 0, "line"),
        (("_Z5saxpyPfS_",), 1, ""),
        (("_Zother",), 0, "kernel"),
        (("gpa-sass:///other.nvsass", 3), 0, "line"),
    ],
)
def test_the_way_to_instructions(arguments: tuple[Any, ...], row: int, told: str) -> None:
    session = open_all()
    location = run("openSass", session, *arguments)
    assert list_shown(session) == ([("gpa-sass", row)] if row else []) and (location is None) is not bool(row)
    assert session.messages == ([f"no loaded profile has instructions of this {told}"] if told else [])


def test_a_line_of_a_sass_document_is_itself() -> None:
    session = open_all()
    uri = session.sass.find_uri(session.snapshot.visible[0])
    run("openSass", session, uri, 3)
    assert [(one.uri, one.range.start.line) for one in session.locations] == [(uri, 3)]
    assert run("readDocument", session, uri)["languageId"] == "nvsass" and run("readDocument", session, URI) is None


def test_a_chain_goes_both_ways() -> None:
    ways = {way: run("findChain", open_all(), URI, 5, way) for way in ("incoming", "outgoing")}
    assert {way: [one["item"]["name"] for one in found] for way, found in ways.items()} == {
        "incoming": ["line 5: y[i] = 2 * x[i] + y[i];"],
        "outgoing": ["line 7: }"],
    }
    assert all(one["ratio"] > 0 and one["text"] for found in ways.values() for one in found)
