"""Def-use chains of instructions as a call hierarchy."""

from typing import Any

import pytest
from lsprotocol.types import CallHierarchyItem
from msgspec.structs import replace

from gpa_lsp.editor.jumps import list_chain, list_incoming, list_outgoing
from gpa_lsp.editor.lines.positions import read_line
from gpa_lsp.editor.sass import jumps
from gpa_lsp.editor.sass.library import SassView
from tests.editor.sass.cursors import put_cursor
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
    return jumps.prepare(view, read_line(put_cursor(view, marked)))


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
