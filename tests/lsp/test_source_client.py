"""Sources on the wire: heat, hints with links, jumps, chains, symbols, as clients get and ask for them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editor.views import SOURCE
from tests.lsp.conftest import StartClient, make_ancient, make_workspace, start_clients, write_profile
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient

WRITTEN = """
    B-:R-:W-:-:S04  S2R R0, SR_TID.X    # saxpy.cu:4 | selected=10
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # saxpy.cu:5 | selected=10
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # saxpy.cu:6 | long_scoreboard=80
    B-:R-:W-:-:S05  EXIT
"""


@pytest.fixture
def project(workspace: Path) -> Path:
    return measure(workspace)


def measure(workspace: Path) -> Path:
    """The workspace with a profile that has a cause."""
    write_profile(workspace / "saxpy.ncu-rep", WRITTEN, "name saxpy", "written")
    return workspace


@pytest.fixture(scope="module")
def lent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawClient, str]]:
    """A client of no special abilities, for all tests that only ask, and the URI of the source."""
    with start_clients() as start_client:
        yield start(start_client, measure(make_workspace(tmp_path_factory.mktemp("lent"))))


def start(start_client: StartClient, project: Path, **abilities: bool) -> tuple[RawClient, str]:
    client: RawClient = start_client()
    return client, client.open_measured(project, initializationOptions={"client": abilities})


def wait_for_heat(client: RawClient, accept: Any) -> Any:
    return client.wait_for("gpaLsp/heat", accept)


def test_heat_is_plain_json_and_follows_the_document(start_client: StartClient, project: Path) -> None:
    client, uri = start(start_client, project, heat=True)
    heat = wait_for_heat(client, lambda params: params["marks"])
    assert set(heat) == {"uri", "version", "marks", "stale", "unverified", "simulated"}
    assert (heat["uri"], heat["version"], heat["stale"]) == (uri, 1, [])
    assert [(mark["line"], mark["kind"], mark["level"]) for mark in heat["marks"]] == [
        (3, "suffers", 3), (4, "causes", 8), (5, "suffers", 8),
    ]  # fmt: skip
    assert heat["marks"][1] == {
        "line": 4, "ratio": 0.8944, "level": 8, "kind": "causes", "kernel": "saxpy", "text": "causes 80 %, mostly long_scoreboard",
    }  # fmt: skip
    client.change(uri, 2, "// new\n" + SOURCE.replace("scale(", "twice("))
    heat = wait_for_heat(client, lambda params: params["version"] == 2)
    assert ([mark["line"] for mark in heat["marks"]], heat["stale"]) == ([4, 5], [6])
    client.close(uri)
    assert wait_for_heat(client, lambda params: not params["marks"] and params["version"] is None)["uri"] == uri


def test_clients_that_draw_no_heat_are_not_sent_any(lent: tuple[RawClient, str]) -> None:
    client, uri = lent
    client.hover(uri, 5)
    assert "gpaLsp/heat" not in {notification["method"] for notification in client.notifications}


def test_a_hint_carries_its_link_over_the_wire(lent: tuple[RawClient, str]) -> None:
    client, uri = lent
    link, text = client.hints(uri)[6]
    assert (link["value"], text["value"]) == ("← line 5", " · 80 % samples, long_scoreboard")
    assert link["location"]["uri"] == uri
    assert link["location"]["range"]["start"] == {"line": 4, "character": 4}


def test_the_way_to_the_cause_and_back(lent: tuple[RawClient, str]) -> None:
    client, uri = lent
    (cause,) = client.execute("findCauses", uri, 5)
    assert (cause["uri"], cause["range"]["start"], cause["samples"]) == (uri, {"line": 4, "character": 4}, 80)
    assert set(cause) == {"uri", "range", "text", "ratio", "samples", "sass"}
    (victim,) = client.execute("findVictims", uri, 4)
    assert victim["range"]["start"]["line"] == 5
    document = client.execute("readDocument", cause["sass"]["uri"])["text"].split("\n")
    assert document[cause["sass"]["range"]["start"]["line"]].partition("LDG.E R2, [R4.64]")[1]
    assert client.execute("goToCause", uri, 5) == cause
    shown = client.wait_for_request("window/showDocument")
    assert (shown["uri"], shown["selection"]["start"]["line"]) == (uri, 4)
    assert client.execute("goToCause", uri, 0) is None
    client.wait_for_message("this line is not known to be stalled on another one")
    assert [spot["kind"] for spot in client.execute("listHotSpots", uri)] == ["suffers", "causes", "suffers"]
    assert client.execute("listHotSpots") == client.execute("listHotSpots", uri)


def test_a_chain_is_opened_item_by_item(lent: tuple[RawClient, str]) -> None:
    client, uri = lent
    (item,) = client.ask_at("prepareCallHierarchy", uri, 6, 8)
    assert item["name"] == "line 6: y[i] = scale(y[i]);"
    (call,) = client.request("callHierarchy/incomingCalls", {"item": item})
    assert call["from"]["name"] == "line 5: y[i] = 2 * x[i] + y[i];"
    assert call["fromRanges"] == [call["from"]["range"]]
    (back,) = client.request("callHierarchy/outgoingCalls", {"item": call["from"]})
    assert (back["to"]["name"], back["to"]["data"]) == (item["name"], item["data"])
    assert back["fromRanges"] == [call["from"]["range"]]
    assert client.execute("findChain", uri, 0, "incoming") == []
    (step,) = client.execute("findChain", uri, 5, "incoming")
    assert step["item"] == call["from"]
    assert (step["text"], step["ratio"]) == ("80 % · 80 samples of long_scoreboard through R2", 0.8)
    (onwards,) = client.execute("findChain", uri, 4, "outgoing")
    assert onwards["item"]["range"]["start"]["line"] == 5
    (deeper,) = client.request("callHierarchy/outgoingCalls", {"item": step["item"]})
    assert deeper["to"]["name"] == item["name"]


def test_a_client_with_a_tree_of_its_own_leaves_the_call_hierarchy_of_sources_to_others(
    start_client: StartClient, project: Path
) -> None:
    client, uri = start(start_client, project, callHierarchyTree=True)
    assert client.ask_at("prepareCallHierarchy", uri, 6, 8) is None
    assert len(client.execute("findChain", uri, 5, "incoming")) == 1


def test_kernels_are_symbols(lent: tuple[RawClient, str]) -> None:
    client, uri = lent
    (symbol,) = client.ask("documentSymbol", uri)
    assert (symbol["name"], symbol["selectionRange"]["start"]["line"]) == ("saxpy", 1)
    (found,) = client.request("workspace/symbol", {"query": "sxp"})
    assert found["name"].startswith("saxpy") and found["containerName"] == "saxpy.ncu-rep"
    assert (found["location"]["uri"], found["location"]["range"]["start"]["line"]) == (uri, 1)


def test_columns_are_counted_as_agreed_in_files_that_are_not_open(start_client: StartClient, project: Path) -> None:
    source = project / "saxpy.cu"
    source.write_text(SOURCE.replace("2 * x[i] + y[i];", "2 * x[i] + y[i];  // 𝛼"))
    make_ancient(source)
    client: RawClient = start_client()
    client.initialize(project, {**ALL_CAPABILITIES, "general": {"positionEncodings": ["utf-8"]}})
    client.wait_until_read()
    ranges = {spot["range"]["start"]["line"]: spot["range"] for spot in client.execute("listHotSpots")}
    assert ranges[4]["end"]["character"] == len(source.read_text().splitlines()[4].encode())
