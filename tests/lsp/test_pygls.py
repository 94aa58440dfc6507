"""Behaviour of pygls that ``wire.py`` overrides: a test that fails here says that pygls has changed, and that an override may go."""

import inspect
import json
import math
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInternalError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter

from gpa_lsp.editor.protocol.wire import Protocol, PyglsServer

URI = "file:///x.cu"
PLACE = {"textDocument": {"uri": URI}, "position": {"line": 0, "character": 0}}


class Upstream:
    """A server of pygls' own, initialized."""

    def __init__(self, *, is_initialized: bool = True) -> None:
        self.server = LanguageServer("x", "1")
        self.protocol: LanguageServerProtocol = self.server.protocol
        self.sent: list[dict[str, Any]] = []
        self.protocol.set_writer(self)  # type: ignore[arg-type]
        self.server.feature(types.TEXT_DOCUMENT_HOVER)(lambda params: self.answer())
        self.answer: Callable[[], Any] = lambda: None
        if is_initialized:
            self.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}}, number=0)
            self.sent.clear()

    def write(self, data: bytes) -> None:
        """Take what pygls sends."""
        self.sent.append(json.loads(data.partition(b"\r\n\r\n")[2]))

    def close(self) -> None:
        """Do nothing: there is nothing to close."""

    def take(self, message: dict[str, Any]) -> None:
        """Give pygls a message as it reads one."""
        self.protocol.handle_message(json.loads(json.dumps(message), object_hook=self.protocol.structure_message))

    def ask(self, method: str, params: Any = None, number: int = 7) -> None:
        """Send a request."""
        self.take({"jsonrpc": "2.0", "id": number, "method": method, "params": params})

    def tell(self, method: str, params: Any) -> None:
        """Send a notification."""
        self.take({"jsonrpc": "2.0", "method": method, "params": params})


def read_numbers(*numbers: Any) -> list[Any]:
    found = []
    for number in numbers:
        try:
            found.append(default_converter().structure({"line": number, "character": 0}, types.Position).line)  # type: ignore[no-untyped-call]
        except Exception:
            found.append(None)
    return found


def make_converter() -> None:
    """Numbers of lines are whatever ``int`` makes of them."""
    assert read_numbers(True, 2.5, "3") == [1, 2, 3]


def structure_message() -> None:
    """A request whose params are wrong is not answered, and an object in params that looks like a message is read as one."""
    upstream = Upstream()
    with pytest.raises(JsonRpcException):
        upstream.ask("textDocument/hover", {"position": 1})
    with pytest.raises(JsonRpcException):
        upstream.tell("workspace/didChangeConfiguration", {"settings": {"jsonrpc": "2.0", "method": "initialize"}})
    assert upstream.sent == []


def handle_message() -> None:
    """A request before ``initialize`` is answered as any other; one after ``shutdown``, or of another version, not at all."""
    upstream = Upstream(is_initialized=False)
    upstream.ask("textDocument/hover", PLACE)
    assert upstream.sent.pop()["result"] is None
    upstream.take({"jsonrpc": "1.0", "id": 7, "method": "textDocument/hover", "params": PLACE})
    upstream.protocol._shutdown = True
    upstream.ask("textDocument/hover", PLACE)
    assert upstream.sent == []


def send_request() -> None:
    """Requests are kept although nothing waits for their answers."""
    upstream = Upstream()
    upstream.protocol.send_request(types.WORKSPACE_INLAY_HINT_REFRESH).cancel()
    assert len(upstream.protocol._request_futures) == len(upstream.protocol._result_types) == 1


def _execute_handler() -> None:
    """The future of a notification's handler is kept when it is done."""
    upstream = Upstream()
    for _ in range(3):
        upstream.tell("$/setTrace", {"value": "off"})
    kept = upstream.protocol._request_futures.values()
    assert [future.done() for future in kept] == [True] * 3


def _handle_cancel_notification() -> None:
    """The client cancels a question of the server's."""
    upstream = Upstream()
    asked = upstream.protocol.send_request(types.WORKSPACE_INLAY_HINT_REFRESH)
    upstream.tell("$/cancelRequest", {"id": upstream.sent[0]["id"]})
    assert asked.cancelled()


def _send_response() -> None:
    """An error carries the traceback."""
    upstream = Upstream()
    upstream.answer = lambda: 1 / 0
    upstream.ask("textDocument/hover", PLACE)
    assert "traceback" in upstream.sent[0]["error"]["data"]


def _send_data() -> None:
    """A result that cannot be written is not answered, and NaN is written."""
    upstream = Upstream()
    upstream.answer = lambda: {"what": object()}
    upstream.ask("textDocument/hover", PLACE)
    assert [one["method"] for one in upstream.sent] == ["window/showMessage"], "no response"
    upstream.sent.clear()
    upstream.protocol.notify("x", {"ratio": math.nan})
    assert math.isnan(upstream.sent[0]["params"]["ratio"])


def lsp_initialize() -> None:
    """A root that is no path is no error of the client's."""
    upstream = Upstream(is_initialized=False)
    upstream.ask("initialize", {"processId": None, "rootUri": "file://[", "capabilities": {}})
    assert upstream.sent[0]["error"]["code"] == types.ErrorCodes.InternalError.value


def _open(upstream: Upstream) -> None:
    upstream.tell(
        "textDocument/didOpen", {"textDocument": {"uri": URI, "languageId": "cuda", "version": 1, "text": "one"}}
    )


def lsp_text_document__did_open() -> None:
    """The text is kept."""
    upstream = Upstream()
    _open(upstream)
    assert upstream.protocol.workspace.text_documents[URI].source == "one"


def lsp_text_document__did_change() -> None:
    """The text is kept, and changed."""
    upstream = Upstream()
    _open(upstream)
    changes = {"textDocument": {"uri": URI, "version": 2}, "contentChanges": [{"text": "two"}]}
    upstream.tell("textDocument/didChange", changes)
    assert upstream.protocol.workspace.text_documents[URI].source == "two"


def lsp_text_document__did_close() -> None:
    """The text that was kept is forgotten; nothing can be forgotten that was not opened."""
    upstream = Upstream()
    _open(upstream)
    upstream.tell("textDocument/didClose", {"textDocument": {"uri": URI}})
    assert upstream.protocol.workspace.text_documents == {}


def lsp_shutdown() -> None:
    """Shutting down fails with two requests pending."""
    upstream = Upstream()
    for number in (1, 2):
        upstream.protocol.send_request(types.WORKSPACE_INLAY_HINT_REFRESH, msg_id=number).add_done_callback(
            lambda _, number=number: upstream.protocol._request_futures.pop(number)
        )
    upstream.ask("shutdown")
    assert upstream.sent[-1]["error"]["code"] == types.ErrorCodes.InternalError.value


def report_server_error() -> None:
    """The user is shown what the client did wrong."""
    upstream = Upstream()
    upstream.server.report_server_error(JsonRpcInternalError("no JSON"), JsonRpcException)
    assert [one["method"] for one in upstream.sent] == ["window/showMessage"]


BEHAVIOURS = {
    one.__name__: one
    for one in (
        make_converter,
        structure_message,
        handle_message,
        send_request,
        _execute_handler,
        _handle_cancel_notification,
        _send_response,
        _send_data,
        lsp_initialize,
        lsp_text_document__did_open,
        lsp_text_document__did_change,
        lsp_text_document__did_close,
        lsp_shutdown,
        report_server_error,
    )
}


@pytest.mark.parametrize("name", BEHAVIOURS)
def test_pygls_still_does_it(name: str) -> None:
    BEHAVIOURS[name]()


def list_overrides() -> Iterator[FunctionType]:
    """Methods of ours that stand in the place of pygls' own."""
    for ours in (Protocol, PyglsServer):
        for name, method in vars(ours).items():
            if inspect.isfunction(method) and name != "__init__" and hasattr(ours.__mro__[1], name):
                yield method


def test_each_override_says_what_pygls_does_and_is_shown_to_be_needed() -> None:
    overrides = {method.__name__: inspect.getdoc(method) or "" for method in list_overrides()}
    assert set(overrides) == set(BEHAVIOURS) - {"make_converter"}
    assert [name for name, words in overrides.items() if not words.startswith("pygls ")] == []
