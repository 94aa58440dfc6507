"""SASS documents on the wire: found, read, opened, asked about."""

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.conftest import StartClient, write_profile
from tests.lsp.raw_client import RawClient

LISTING = """
    saxpy.cu:4  S2R R0, SR_TID.X        ; selected=10 wait=10/5
    saxpy.cu:5  LDG.E R2, [R4.64]       ; long_scoreboard=60/50 selected=4
    saxpy.cu:5  FMUL R2, R2, R3         ; long_scoreboard=30/30
    saxpy.cu:7  EXIT                    ; selected=1
"""


def execute(client: RawClient, name: str, *arguments: Any) -> Any:
    return client.request("workspace/executeCommand", {"command": f"gpaLsp.{name}", "arguments": list(arguments)})


def ask(client: RawClient, method: str, uri: str, **more: Any) -> Any:
    return client.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, **more})


@pytest.fixture
def opened(start_client: StartClient, workspace: Path) -> tuple[RawClient, str, str, str]:
    """A client with a source and its kernel's document open; both URIs, and the document's text."""
    write_profile(workspace / "saxpy.ncu-rep", LISTING, "name saxpy(float*, float*)")
    client = start_client()
    client.settings = {"pollSeconds": 0.1}
    client.initialize(workspace)
    source = client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(source)
    (kernel,) = execute(client, "listKernels")
    document = execute(client, "readDocument", kernel["sassUri"])
    item = {"uri": kernel["sassUri"], "languageId": document["languageId"], "version": 1, "text": document["text"]}
    client.notify("textDocument/didOpen", {"textDocument": item})
    assert kernel["location"]["uri"] == source
    return client, source, kernel["sassUri"], document["text"]


def test_everything_about_a_document_is_answered(opened: tuple[RawClient, str, str, str]) -> None:
    client, _, uri, text = opened
    assert client.request("workspace/textDocumentContent", {"uri": uri})["text"] == text
    tokens = ask(client, "semanticTokens/full", uri)["data"]
    assert len(tokens) > 100 and len(tokens) % 5 == 0
    folds = ask(client, "foldingRange", uri)
    assert [fold["kind"] for fold in folds] == ["comment", "region"]
    (function,) = ask(client, "documentSymbol", uri)
    assert (function["name"], function["detail"]) == ("saxpy", "100 % · long_scoreboard")
    span = {"start": {"line": 0, "character": 0}, "end": {"line": 1000, "character": 0}}
    assert ask(client, "inlayHint", uri, range=span) == []  # the listing has no blame


def test_source_and_instructions_lead_to_each_other(opened: tuple[RawClient, str, str, str]) -> None:
    client, source, uri, text = opened
    (link,) = execute(client, "findLinked", source, 4)
    assert (link["uri"], link["kernel"]) == (uri, "saxpy")
    line = link["primary"]["start"]["line"]
    assert "LDG.E R2" in text.split("\n")[line]
    (back,) = execute(client, "findLinked", uri, line)
    assert (back["uri"], back["primary"]["start"]["line"]) == (source, 4)
    assert execute(client, "openSass", source, 4) == {"uri": uri, "range": link["primary"]}
    (shown,) = (one["params"] for one in client.requests if one["method"] == "window/showDocument")
    assert (shown["uri"], shown["selection"], shown["takeFocus"]) == (uri, link["primary"], True)
