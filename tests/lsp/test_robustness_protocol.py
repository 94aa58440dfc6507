"""The order of the protocol and the shape of its messages: what is out of order is refused, what cannot be read is passed over."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editor.views import LISTING, SOURCE
from tests.lsp.conftest import LISTINGS, StartClient, make_ancient, write_profile
from tests.lsp.hostile_params import URIS, nest
from tests.lsp.raw_client import RawClient
from tests.patience import LIMIT_S

INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
PARSE_ERROR = -32700
NOT_INITIALIZED = -32002
CANCELLED = -32800

NOWHERE = {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}}


def ready(client: RawClient, workspace: Path) -> str:
    return client.open_measured(workspace)


class Met:
    """A server in order, for tests that leave it so."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.source = folder / "saxpy.cu"
        self.source.write_text(SOURCE)
        make_ancient(self.source)
        write_profile(folder / "saxpy.ncu-rep", LISTING, "name saxpy(float*, float*)")
        self.client = RawClient(environment=LISTINGS)
        self.uri = ready(self.client, folder)

    def open_again(self) -> None:
        self.client.close(self.uri)
        self.client.forget()
        self.client.open(self.source)
        self.client.wait_for_diagnostics(self.uri)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Met]:
    met = Met(tmp_path_factory.mktemp("protocol") / "work")
    with met.client:
        yield met
        assert met.client.shut_down() == 0


@pytest.fixture
def met(shared: Met) -> Iterator[Met]:
    """The shared server, which has to be in order afterwards."""
    shared.client._responses.clear()
    yield shared
    shared.open_again()
    assert "long_scoreboard" in shared.client.read_hover(shared.uri, 5)
    assert shared.client._responses == {}


def fail(client: RawClient, method: str, params: Any) -> int:
    """The code of the error a request is answered with."""
    return int(client.request_whole(method, params)["error"]["code"])


def send_raw(client: RawClient, data: bytes) -> None:
    assert client.process.stdin is not None
    client.process.stdin.write(data)
    client.process.stdin.flush()


def wait_for_id(client: RawClient, message_id: Any) -> dict[str, Any]:
    with client._arrived:
        assert client._arrived.wait_for(lambda: message_id in client._responses, LIMIT_S), client.errors
        return client._responses.pop(message_id)


def test_what_comes_before_initialize_is_refused(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    assert fail(client, "textDocument/hover", NOWHERE) == NOT_INITIALIZED
    assert fail(client, "workspace/executeCommand", {"command": "gpaLsp.reload"}) == NOT_INITIALIZED
    assert fail(client, "shutdown", None) == NOT_INITIALIZED
    client.open(workspace / "saxpy.cu")
    client.notify("initialized", {})
    for params in (None, {}, {"processId": "x", "rootUri": 3, "capabilities": None}, {"capabilities": 3}):
        assert fail(client, "initialize", params) == INVALID_PARAMS  # and can be made good
    uri = ready(client, workspace)
    assert "long_scoreboard" in client.read_hover(uri, 5)
    assert client.shut_down() == 0


def test_a_second_initialize_changes_nothing(met: Met, tmp_path: Path) -> None:
    client = met.client
    before = len(list_questions(client))
    again = {"processId": None, "rootUri": tmp_path.as_uri(), "capabilities": {}}
    assert fail(client, "initialize", again) == INVALID_REQUEST
    client.notify("initialized", {})
    client.notify("initialized", {})
    assert "long_scoreboard" in client.read_hover(met.uri, 5)
    assert len(list_questions(client)) == before  # it does not start again


def test_after_shutdown_there_is_only_exit(start_client: StartClient, workspace: Path) -> None:
    client = start_client()
    uri = ready(client, workspace)
    assert client.request("shutdown", None) is None
    assert (
        fail(client, "textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 4, "character": 0}})
        == INVALID_REQUEST
    )
    assert fail(client, "shutdown", None) == INVALID_REQUEST
    assert fail(client, "initialize", {"processId": None, "rootUri": None, "capabilities": {}}) == INVALID_REQUEST
    client.change(uri, 2, "")
    client.notify("exit", None)
    assert client.process.wait(LIMIT_S) == 0


def test_exit_is_obeyed_at_any_time(start_client: StartClient) -> None:
    client = start_client()
    client.send(id=1, method="exit")  # no request, whatever its id says
    assert client.process.wait(LIMIT_S) == 1


def test_senseless_folders_and_options_do_not_keep_the_server_from_starting(
    start_client: StartClient, workspace: Path
) -> None:
    options = {"minShare": nest(900), "client": nest(300), "profileGlobs": ["[z-a]", "[", "**" * 99]}
    client = start_client(settings={"profileGlobs": ["[", "[z-a].x", "~nobody/*.x", "*a" * 99, "**/*.ncu-rep"]})
    folders = [{"uri": uri, "name": "x"} for uri in URIS] + [{"uri": workspace.as_uri(), "name": "work"}]
    client.initialize(None, rootUri="file://[", rootPath="//x", workspaceFolders=folders, initializationOptions=options)
    uri = client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(uri)
    assert "long_scoreboard" in client.read_hover(uri, 5)
    assert "Traceback" not in client.errors


def test_cancelling_what_cannot_be_cancelled(start_client: StartClient, workspace: Path) -> None:
    client = start_client(answers=False)
    client.initialize(workspace)
    client.wait_for_request("workspace/configuration")
    question = client.requests[0]["id"]
    for one in (question, 1, 999, "x", -1, None, 1.5, [], {}):
        client.notify("$/cancelRequest", {"id": one})
    client.send(id=question, result=[{"minShare": 50}])  # its question was not the client's to cancel
    uri = client.open(workspace / "saxpy.cu")
    assert len(client.wait_for_diagnostics(uri)) == 1


def test_answers_to_nothing_and_answers_that_come_late(start_client: StartClient, workspace: Path) -> None:
    client = start_client(answers=False)
    client.initialize(workspace, {"workspace": {"configuration": True}})
    client.wait_for_request("workspace/configuration")
    uri = client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(uri)  # the server has stopped waiting
    for _ in range(2):
        client.send(id=client.requests[0]["id"], result=[{"minShare": 50}])
    for one in (1, "x", None, 1.5, [], {}):
        client.send(id=one, result=None)
        client.send(id=one, error={"code": 1, "message": "x"})
    assert "long_scoreboard" in client.read_hover(uri, 5)
    assert "Traceback" not in client.errors


def test_a_request_that_is_cancelled_is_answered_once(met: Met) -> None:
    client, uri = met.client, met.uri
    for number in range(50):
        name = f"pin {number}"
        client.send(id=name, method="workspace/executeCommand", params={"command": "gpaLsp.pinBaseline"})
        client.notify("$/cancelRequest", {"id": name})
        answer = wait_for_id(client, name)
        assert answer.get("error", {"code": CANCELLED})["code"] == CANCELLED
    assert "long_scoreboard" in client.read_hover(uri, 5)
    assert not [one for one in client._responses if str(one).startswith("pin")]


def test_messages_that_are_none(met: Met) -> None:
    client, uri = met.client, met.uri
    for body, code in (
        (b"[]", INVALID_REQUEST),
        (b'[{"jsonrpc": "2.0", "id": 5, "method": "shutdown"}]', INVALID_REQUEST),
        (b"3", INVALID_REQUEST),
        (b"{}", INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": null, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": true, "method": "shutdown"}', INVALID_REQUEST),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "shutdown"}', INVALID_REQUEST),
        (b'{"id": null, "method": "shutdown"', PARSE_ERROR),
        (b"\xff\xfe", PARSE_ERROR),
        (b"[" * 100_000, PARSE_ERROR),
    ):
        client.send_bytes(body)
        assert wait_for_id(client, None)["error"]["code"] == code, body
    for message, code in (
        ({"id": "a", "method": 3}, INVALID_REQUEST),
        ({"id": "b", "method": "no/such"}, METHOD_NOT_FOUND),
        ({"id": "c", "method": "$/nothing"}, METHOD_NOT_FOUND),
        ({"id": "d", "method": "textDocument/didOpen", "params": {}}, INVALID_PARAMS),
        ({"id": "e", "method": "textDocument/hover", "params": []}, INVALID_PARAMS),
    ):
        client.send(**message)
        assert wait_for_id(client, message["id"])["error"]["code"] == code, message
    client.notify("$/unknown", {"x": nest(50)})
    client.send(method="textDocument/hover", params=NOWHERE)  # a request without an id
    assert "long_scoreboard" in client.read_hover(uri, 5)
    assert client._responses == {}


FRAMES = {
    "another spelling": b"content-length:%d\r\n\r\n%s",
    "other headers": b"X-Thing: 1\r\nContent-Length: %d\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n%s",
    "line feeds alone": b"Content-Length: %d\n\n%s",
    "garbage before": b"\x00\xff garbage\r\n\r\nGET / HTTP/1.1\r\n\r\nContent-Length: x\r\n\r\nContent-Length: %d\r\n\r\n%s",
    "a very long line before": b"x" * 100_000 + b"\r\nContent-Length: %d\r\n\r\n%s",
    "a negative length before": b"Content-Length: -5\r\n\r\nContent-Length: 0\r\n\r\nContent-Length: %d\r\n\r\n%s",
    "rest of a message before": b'"rest": "of a message"}Content-Length: %d\r\n\r\n%s',
    "a message that is shorter than it says before": b"Content-Length: 6\r\n\r\n{}\r\n{}Content-Length: %d\r\n\r\n%s",
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_headers_are_found_again(met: Met, frame: bytes) -> None:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": "found", "method": "workspace/symbol", "params": {"query": "x"}}
    ).encode()
    send_raw(met.client, frame % (len(body), body))
    assert "result" in wait_for_id(met.client, "found")
    met.client._responses.pop(None, None)  # to what was no message


def test_a_message_longer_than_it_says_costs_only_itself(met: Met) -> None:
    client, uri = met.client, met.uri
    body = json.dumps(
        {"jsonrpc": "2.0", "id": "cut", "method": "workspace/symbol", "params": {"query": "x" * 500}}
    ).encode()
    send_raw(client, b"Content-Length: %d\r\n\r\n%s" % (len(body) - 40, body))
    assert wait_for_id(client, "cut")["error"]["code"] == PARSE_ERROR
    assert "long_scoreboard" in client.read_hover(uri, 5)


def test_a_message_shorter_than_it_says_costs_itself_and_the_next(met: Met) -> None:
    client, uri = met.client, met.uri
    body = json.dumps(
        {"jsonrpc": "2.0", "id": "short", "method": "workspace/symbol", "params": {"query": "x"}}
    ).encode()
    send_raw(client, b"Content-Length: %d\r\n\r\n%s" % (len(body) + 40, body))
    client.send(id="next", method="workspace/symbol", params={"query": "x"})
    client.send(id="next but one", method="workspace/symbol", params={"query": "x"})
    assert "result" in wait_for_id(client, "next but one")
    assert wait_for_id(client, "short")["error"]["code"] == PARSE_ERROR
    assert "long_scoreboard" in client.read_hover(uri, 5)


@pytest.mark.parametrize(
    "header", [b"Content-Length: 99999999999999\r\n\r\n", b"Content-Length: 100\r\n\r\n{", b"Content-Len"]
)
def test_who_announces_more_than_comes_is_left(start_client: StartClient, workspace: Path, header: bytes) -> None:
    client = start_client()
    client.initialize(workspace)
    send_raw(client, header)
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(LIMIT_S) == 1
    assert "MemoryError" not in client.errors


def test_a_change_nobody_understands_takes_the_annotations_back(met: Met) -> None:
    """The client has another text than the server now: numbers would stand on wrong lines."""
    client, uri = met.client, met.uri
    client.forget()
    edit = {"range": {"start": {"line": -1, "character": 0}, "end": {"line": 1, "character": 0}}, "text": ""}
    client.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]})
    client.wait_for_diagnostics(uri, lambda items: items == [])
    assert client.hover(uri, 5) is None
    client.change(uri, 3, "int x;\n")
    assert client.hover(uri, 5) is None
    client.open(met.source)
    assert len(client.wait_for_diagnostics(uri)) == 3
    assert "long_scoreboard" in client.read_hover(uri, 5)


def test_a_position_beyond_all_lines_is_the_end(met: Met) -> None:
    """Editors that mean "to the end" say the largest number they have."""
    client, uri = met.client, met.uri
    client.forget()
    edit = {
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 2**32 - 1, "character": 2**53}},
        "text": "int x;\n",
    }
    client.notify("textDocument/didChange", {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [edit]})
    client.wait_for_diagnostics(uri, lambda items: items == [])
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 2**32 - 1, "character": 0}}
    (hint,) = client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole})
    assert hint["label"] == "edited since"
    client.change(uri, 3, met.source.read_text())
    assert len(client.request("textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole})) == 3


def test_a_document_opened_twice_is_opened_anew(met: Met) -> None:
    client, uri = met.client, met.uri
    client.forget()
    client.open(met.source, "int x;\n")  # without having been closed
    client.wait_for_diagnostics(uri, lambda items: items == [])


class DeafClient(RawClient):
    """A client that does not read the server's log."""

    def _read_errors(self) -> None:
        return


def test_a_log_nobody_reads_stops_nothing(workspace: Path) -> None:
    with DeafClient(environment=LISTINGS) as client:
        uri = ready(client, workspace)
        for _ in range(300):
            client.send_bytes(b"{")  # each is worth a traceback of pygls'
        assert "long_scoreboard" in client.read_hover(uri, 5)
        assert client.shut_down() == 0


SENSELESS_SETTINGS = [
    None, 3, "x", [], True, nest(300), {"": None}, {"profile": []}, {"profile": {"command": {"a": 1}}},
    {"profile": {"command": ["\0"] * 3}}, {"profile.command": nest(900)},
    {"pathMappings": {"\0": "\0", "/a": "\ud800"}}, {"pathMappings": {"": "/", "a": ""}},
    {"profileGlobs": ["\0", "\ud800", "/" * 4000, "~/*"]}, {"minShare": -1}, {"minShare": 1e308}, {"minShare": 10**400},
    {"minShare": 2**70}, {"unverifiedLines": {}}, {"diagnostics": "x"},
    {"profileGlobs": ["**/*.ncu-rep"], "pathMappings": {}},
]  # fmt: skip
"""The last ones make good what was taken of the others."""


def test_settings_that_make_no_sense_stop_nothing(start_client: StartClient, workspace: Path) -> None:
    client = start_client()  # of its own: the log of the shared one tells of the tests before
    uri = ready(client, workspace)
    client.requests.clear()
    for number, settings in enumerate(SENSELESS_SETTINGS, start=1):
        client.settings = settings
        client.notify("workspace/didChangeConfiguration", {"settings": None})
        with client._arrived:
            asked = client._arrived.wait_for(lambda: len(list_questions(client)) >= number, LIMIT_S)  # noqa: B023
        assert asked, settings
        client.request("workspace/symbol", {"query": "x"})
    assert "Error" not in client.errors
    assert [text for text in client.messages() if "failed" in text] == []
    client.close(uri)
    client.forget()
    client.open(workspace / "saxpy.cu")
    client.wait_for_diagnostics(uri)
    assert "long_scoreboard" in client.read_hover(uri, 5)
    assert client.shut_down() == 0


def list_questions(client: RawClient) -> list[Any]:
    return [request for request in client.requests if request["method"] == "workspace/configuration"]
