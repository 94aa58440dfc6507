"""Def-use chains of instructions as a call hierarchy."""

from typing import Any

import pytest
from lsprotocol.types import CallHierarchyItem
from msgspec.structs import replace

from gpa_lsp.editor.jumps import list_chain, list_incoming, list_outgoing
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.sass import chains
from gpa_lsp.editor.sass.library import SassView
from tests.editor.sass.cursors import put_cursor, read_places
from tests.editor.sass.documents import LOOP, SOURCES, find_line, write_report
from tests.editor.sessions import Session
from tests.editor.views import make_profile


def start(text: str = LOOP, **changes: Any) -> tuple[Session, SassView]:
    """A session with the document open."""
    session = Session(make_profile(replace(write_report(text), **changes), texts=SOURCES), {})
    uri = session.sass.find_uri(session.snapshot.visible[0])
    document = session.sass.make(uri)
    assert document is not None
    session.sass.open(uri, document.text)
    view = session.sass.view(uri)
    assert view is not None
    return session, view


def prepare(view: SassView, marked: str) -> CallHierarchyItem | None:
    return chains.prepare(view, read_line(put_cursor(view, marked)))


def test_a_stalled_instruction_is_called_by_its_cause_and_back() -> None:
    session, view = start()
    item = prepare(view, "FF^MA")
    assert item is not None
    assert (item.name, item.detail) == ("/*0030*/ FFMA R0, R2, R3, R0", "84 % of kernel")
    (call,) = list_incoming(session, item.data)
    assert (call.from_.name, call.from_.detail) == (
        "/*0020*/ LDG.E R2, [R4.64]",
        "80 % · 80 samples of long_scoreboard through R2",
    )
    assert read_places(view, call.from_ranges) == ["0020 R2"]
    (back,) = list_outgoing(session, call.from_.data)
    assert back.to.name == item.name and read_places(view, back.from_ranges) == ["0020 R2"]


def test_where_nothing_was_blamed_registers_speak() -> None:
    session, view = start()
    item = prepare(view, "STG^.E")
    assert item is not None
    (call,) = list_incoming(session, item.data)
    assert (call.from_.name, call.from_.detail) == ("/*0030*/ FFMA R0, R2, R3, R0", "writes R0")
    move = prepare(view, "^MOV")
    assert move is not None
    (use,) = list_outgoing(session, move.data)
    assert (use.to.name, use.to.detail) == ("/*0030*/ FFMA R0, R2, R3, R0", "reads R0")
    assert list_incoming(session, move.data) == []


def test_without_code_there_are_no_registers() -> None:
    session, view = start(code=None, blame=None)
    item = prepare(view, "STG^.E")
    assert item is not None and list_incoming(session, item.data) == [] == list_outgoing(session, item.data)


def test_lines_without_an_instruction_are_no_items() -> None:
    _, view = start()
    assert prepare(view, "// lo^op") is None


@pytest.mark.parametrize(
    "data",
    [
        None, 1, "sass", [], {}, {"kind": "sass"}, {"kind": "sass", "uri": 1, "row": 0}, {"kind": "other"},
        {"kind": "sass", "uri": "gpa-sass:///other.nvsass", "row": 0}, {"kind": "source"},
        {"kind": "sass", "uri": "URI", "row": -1}, {"kind": "sass", "uri": "URI", "row": 8},
        {"kind": "sass", "uri": "URI", "row": True}, {"kind": "sass", "uri": "URI", "row": 1.5},
        {"kind": "source", "kernel": [], "file": {}, "line": "x"},
    ],
)  # fmt: skip
def test_data_that_is_none_of_ours_leads_nowhere(data: Any) -> None:
    session, view = start()
    if isinstance(data, dict) and data.get("uri") == "URI":
        data = {**data, "uri": view.document.uri}
    assert list_incoming(session, data) is None and list_outgoing(session, data) is None


def test_a_closed_document_leads_nowhere() -> None:
    session, view = start()
    item = prepare(view, "FF^MA")
    assert item is not None
    session.sass.close(view.document.uri)
    assert list_incoming(session, item.data) is None


def test_the_command_finds_the_same_steps() -> None:
    session, view = start()
    uri, line = view.document.uri, find_line(view.document, "FFMA")
    (step,) = list_chain(session, uri, line, is_incoming=True)
    assert (step.item.name, step.ratio) == ("/*0020*/ LDG.E R2, [R4.64]", 0.8)
    assert [one.item.name for one in list_chain(session, uri, line - 3, is_incoming=False)] == []
    assert list_chain(session, uri, 1, is_incoming=True) == []
