"""SASS documents on the wire: found, read, opened, asked about."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartClient, make_workspace, start_clients, write_profile
from tests.lsp.raw_client import RawClient

LISTING = """
    saxpy.cu:4  S2R R0, SR_TID.X        ; selected=10 wait=10/5
    saxpy.cu:5  LDG.E R2, [R4.64]       ; long_scoreboard=60/50 selected=4
    saxpy.cu:5  FMUL R2, R2, R3         ; long_scoreboard=30/30
    saxpy.cu:7  EXIT                    ; selected=1
"""


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, str, str, str]]:
    """A client with a source and its kernel's document open, for all tests that ask; both URIs, and the document's text."""
    workspace = make_workspace(tmp_path_factory.mktemp("lent"))
    write_profile(workspace / "saxpy.ncu-rep", LISTING, "name saxpy(float*, float*)")
    with start_clients() as start:
        client = start()
        source = client.open_measured(workspace)
        (kernel,) = client.execute("listKernels")
        assert kernel["location"]["uri"] == source
        yield client, source, kernel["sassUri"], client.open_sass(kernel["sassUri"])


@pytest.fixture
def opened(lent: tuple[RawClient, str, str, str]) -> Iterator[tuple[RawClient, str, str, str]]:
    """The same for one test, with the usual columns again after it."""
    yield lent
    lent[0].execute("chooseColumns")


def test_everything_about_a_document_is_answered(opened: tuple[RawClient, str, str, str]) -> None:
    client, _, uri, text = opened
    assert client.request("workspace/textDocumentContent", {"uri": uri})["text"] == text
    tokens = client.ask("semanticTokens/full", uri)["data"]
    assert len(tokens) > 100 and len(tokens) % 5 == 0
    folds = client.ask("foldingRange", uri)
    assert [fold["kind"] for fold in folds] == ["comment", "region"]
    (function,) = client.ask("documentSymbol", uri)
    assert (function["name"], function["detail"]) == ("saxpy", "100 % · long_scoreboard")
    assert client.hints(uri) == {}  # the listing has no blame


def test_source_and_instructions_lead_to_each_other(opened: tuple[RawClient, str, str, str]) -> None:
    client, source, uri, text = opened
    (link,) = client.execute("findLinked", source, 4)
    assert (link["uri"], link["kernel"]) == (uri, "saxpy")
    line = link["primary"]["start"]["line"]
    assert "LDG.E R2" in text.split("\n")[line]
    (back,) = client.execute("findLinked", uri, line)
    assert (back["uri"], back["primary"]["start"]["line"]) == (source, 4)
    assert client.execute("openSass", source, 4) == {"uri": uri, "range": link["primary"]}
    (shown,) = (one["params"] for one in client.requests if one["method"] == "window/showDocument")
    assert (shown["uri"], shown["selection"], shown["takeFocus"]) == (uri, link["primary"], True)


def open_document(client: RawClient, uri: str, version: int = 1) -> str:
    """Open a document, or give the server its new text; the text."""
    text = str(client.request("workspace/textDocumentContent", {"uri": uri})["text"])
    if version == 1:
        client.open_text(uri, text, "nvsass")
    else:
        client.change(uri, version, text)
    return text


def read_opcode(line: str) -> str:
    """The opcode on the line of an instruction, with its modifiers."""
    return line.split(" // ", maxsplit=1)[0].rsplit("%", maxsplit=1)[-1].split(maxsplit=1)[0]


@pytest.fixture
def drawn(workspace: Path) -> Path:
    """The workspace with a report of the kernel's own listing. It is written once: documents say when that was."""
    write_profile(workspace / "saxpy.ncu-rep", LISTING, "name saxpy(float*, float*)")
    return workspace


def start_drawing(start_client: StartClient, workspace: Path, **environment: str) -> tuple[RawClient, str]:
    """A client that colours lines, and the document of its kernel."""
    client = start_client(environment)
    client.initialize(workspace, initializationOptions={"client": {"heat": True}})
    client.wait_for_diagnostics(client.open(workspace / "saxpy.cu"))
    (kernel,) = client.execute("listKernels")
    return client, kernel["sassUri"]


def wait_for_heat(client: RawClient, uri: str, version: int) -> dict[int, tuple[str, int]]:
    """The marks of a document's text: line → kind and level."""
    heat = client.wait_for("gpaLsp/heat", lambda params: params["uri"] == uri and params["version"] == version)
    assert heat["stale"] == []
    return {mark["line"]: (mark["kind"], mark["level"]) for mark in heat["marks"]}


def test_heat_is_sent_for_instructions_too(start_client: StartClient, drawn: Path) -> None:
    client, uri = start_drawing(start_client, drawn)
    lines = open_document(client, uri).split("\n")
    marks = wait_for_heat(client, uri, 1)
    assert {read_opcode(lines[line]): mark for line, mark in marks.items()} == {
        "S2R": ("suffers", 4),
        "LDG.E": ("suffers", 7),
        "FMUL": ("suffers", 5),
        "EXIT": ("suffers", 0),
    }
    client.forget()
    client.close(uri)
    assert client.wait_for("gpaLsp/heat", lambda params: params["uri"] == uri)["marks"] == []


def test_columns_that_were_chosen_are_shown_and_kept_for_the_workspace(
    start_client: StartClient, drawn: Path, tmp_path: Path
) -> None:
    home = {"GPA_LSP_DATA_DIR": str(tmp_path / "data")}
    client, uri = start_drawing(start_client, drawn, **home)
    before = open_document(client, uri)
    usual = [column["name"] for column in client.execute("listColumns", uri) if column["isShown"]]
    assert usual == ["share", "line", "reason"]
    wait_for_heat(client, uri, 1)

    assert client.execute("chooseColumns", ["samples", "line", "wait"]) == ["samples", "line", "wait"]
    assert client.wait_for("gpaLsp/documentChanged", bool) == {"uri": uri}
    text = open_document(client, uri, version=2)
    assert "samples" in text and "stalled by" not in text and text != before
    assert len(wait_for_heat(client, uri, 2)) == 4, "what was drawn on the old text is drawn on the new one"
    offered = client.execute("listColumns", uri)
    assert [column["name"] for column in offered if column["isShown"]] == ["samples", "line", "wait"]
    assert [column["isShown"] for column in offered] == sorted((one["isShown"] for one in offered), reverse=True)
    client.shut_down()

    again, _ = start_drawing(start_client, drawn, **home)
    assert open_document(again, uri) == text
    elsewhere = drawn.parent / "elsewhere"
    drawn.rename(elsewhere)
    again.shut_down()
    other, other_uri = start_drawing(start_client, elsewhere, **home)
    assert "stalled by" in open_document(other, other_uri), "another workspace has its own choice"
    assert other.execute("chooseColumns") == usual


@pytest.mark.parametrize("names", [[], [3, None], ["no such column"], [["share"]], ["x" * 5000]])
def test_any_choice_leaves_a_sound_document(opened: tuple[RawClient, str, str, str], names: list[Any]) -> None:
    client, _, uri, _ = opened
    client.execute("chooseColumns", names)
    text = client.request("workspace/textDocumentContent", {"uri": uri})["text"]
    assert "LDG.E R2, [R4.64]" in text
    assert all(column["title"] for column in client.execute("listColumns", uri))


def test_instructions_are_listed_by_a_column(opened: tuple[RawClient, str, str, str]) -> None:
    client, _, uri, text = opened
    found = client.execute("listInstructions", uri)
    assert [(one["value"], one["name"]) for one in found] == [
        ("56 %", "LDG.E R2, [R4.64]"), ("26 %", "FMUL R2, R2, R3"), ("17 %", "S2R R0, SR_TID.X"), ("0.9 %", "EXIT"),
    ]  # fmt: skip
    assert found[0]["detail"] == "line 5 · long_scoreboard"
    assert "LDG.E R2" in text.split("\n")[found[0]["range"]["start"]["line"]]
    assert [one["name"].split()[0] for one in client.execute("listInstructions", uri, "selected")] == [
        "S2R",
        "LDG.E",
        "EXIT",
    ]
    assert client.execute("listInstructions", "gpa-sass:///none.nvsass") == client.execute("listInstructions") == []


def test_source_and_sass_are_tied_line_by_line(opened: tuple[RawClient, str, str, str]) -> None:
    client, source, uri, text = opened
    ties = client.execute("listTies", uri, source)
    assert [(tie["line"], tie["colour"]) for tie in ties] == [(3, 0), (4, 1), (6, 2)]
    (stretch,) = ties[1]["ranges"]
    shown = text.split("\n")[stretch["first"] : stretch["last"] + 1]
    assert [read_opcode(line) for line in shown] == ["LDG.E", "FMUL"]
    assert client.execute("listTies", source, uri) == []
