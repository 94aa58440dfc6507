"""Def-use chains of instructions as a call hierarchy."""

from dataclasses import replace
from typing import Any

import pytest
from lsprotocol import types

from gpa_lsp.lsp.abilities import Abilities
from gpa_lsp.lsp.commands.find_chain import list_chain
from gpa_lsp.lsp.features import (
    call_hierarchy_incoming_calls,
    call_hierarchy_outgoing_calls,
    text_document_prepare_call_hierarchy,
)
from gpa_lsp.lsp.protocol_types import make_position
from gpa_lsp.lsp.sass.model import SassView
from gpa_lsp.lsp.settings import Settings
from tests.lsp.sass.cursors import put_cursor, read_places
from tests.lsp.sass.documents import LOOP, SOURCES, find_line, write_report
from tests.lsp.sessions import Session
from tests.lsp.views import make_profile


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


def prepare(view: SassView, marked: str) -> types.CallHierarchyItem | None:
    feature = text_document_prepare_call_hierarchy.FEATURE
    assert feature.answer_sass is not None
    document, place = types.TextDocumentIdentifier(view.document.uri), make_position(put_cursor(view, marked))
    found = feature.answer_sass(view, types.CallHierarchyPrepareParams(document, place))
    return found[0] if found else None


def incoming(session: Session, data: Any) -> Any:
    item = types.CallHierarchyItem(
        name="", kind=types.SymbolKind.Event, uri="", range=NOWHERE, selection_range=NOWHERE, data=data
    )
    return call_hierarchy_incoming_calls.FEATURE.answer(session, types.CallHierarchyIncomingCallsParams(item))


def outgoing(session: Session, data: Any) -> Any:
    item = types.CallHierarchyItem(
        name="", kind=types.SymbolKind.Event, uri="", range=NOWHERE, selection_range=NOWHERE, data=data
    )
    return call_hierarchy_outgoing_calls.FEATURE.answer(session, types.CallHierarchyOutgoingCallsParams(item))


NOWHERE = types.Range(types.Position(0, 0), types.Position(0, 0))


def test_a_stalled_instruction_is_called_by_its_cause_and_back() -> None:
    session, view = start()
    item = prepare(view, "FF^MA")
    assert item is not None
    assert (item.name, item.detail) == ("/*0030*/ FFMA R0, R2, R3, R0", "84.0 % of kernel")
    (call,) = incoming(session, item.data)
    assert (call.from_.name, call.from_.detail) == (
        "/*0020*/ LDG.E R2, [R4.64]",
        "80.0 % · 80 samples long_scoreboard through R2",
    )
    assert read_places(view, call.from_ranges) == ["0020 R2"]
    (back,) = outgoing(session, call.from_.data)
    assert back.to.name == item.name and read_places(view, back.from_ranges) == ["0020 R2"]


def test_where_nothing_was_blamed_registers_speak() -> None:
    session, view = start()
    item = prepare(view, "STG^.E")
    assert item is not None
    (call,) = incoming(session, item.data)
    assert (call.from_.name, call.from_.detail) == ("/*0030*/ FFMA R0, R2, R3, R0", "writes R0")
    move = prepare(view, "^MOV")
    assert move is not None
    (use,) = outgoing(session, move.data)
    assert (use.to.name, use.to.detail) == ("/*0030*/ FFMA R0, R2, R3, R0", "reads R0")
    assert incoming(session, move.data) == []


def test_without_code_there_are_no_registers() -> None:
    session, view = start(code=None, blame=None)
    item = prepare(view, "STG^.E")
    assert item is not None and incoming(session, item.data) == [] == outgoing(session, item.data)


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
    assert incoming(session, data) is None and outgoing(session, data) is None


def test_a_closed_document_leads_nowhere() -> None:
    session, view = start()
    item = prepare(view, "FF^MA")
    assert item is not None
    session.sass.close(view.document.uri)
    assert incoming(session, item.data) is None


def test_the_command_finds_the_same_steps() -> None:
    session, view = start()
    uri, line = view.document.uri, find_line(view.document, "FFMA")
    (step,) = list_chain(session, uri, line, is_incoming=True)
    assert (step.item.name, step.ratio) == ("/*0020*/ LDG.E R2, [R4.64]", 0.8)
    assert [one.item.name for one in list_chain(session, uri, line - 3, is_incoming=False)] == []
    assert list_chain(session, uri, 1, is_incoming=True) == []


def test_clients_with_a_tree_keep_the_hierarchy_of_sources_free() -> None:
    feature = text_document_prepare_call_hierarchy.FEATURE
    assert feature.serves_source(Settings(), Abilities())
    assert not feature.serves_source(Settings(), Abilities(call_hierarchy_tree=True))
