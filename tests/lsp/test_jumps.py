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
