"""The wire in pieces: what waits for a client that does not read, what comes in garbled, what goes out that is no JSON, and the log."""

import gc
import json
import logging
import math
import os
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types

import gpa_lsp.editor.protocol
from gpa_lsp.editor.protocol import wire
from gpa_lsp.editor.protocol.client import make_sentence
from gpa_lsp.editor.protocol.server import MOST_WAITING_RECORDS, PatientHandler, VisibleFormatter
from gpa_lsp.editor.protocol.wire import (
    MOST_MESSAGE_BYTES,
    IncomingPipe,
    OutgoingPipe,
    Protocol,
    PyglsServer,
    find_request_id,
    make_converter,
)
from tests.patience import LIMIT_S, wait_until


class Client:
    """The other end of an outgoing pipe."""

    def __init__(self) -> None:
        self.reader, writer = os.pipe()
        self.losses: list[int] = []
        self.pipe = OutgoingPipe(writer, give_up=lambda: self.losses.append(1))

    def read_all(self) -> bytes:
        with os.fdopen(self.reader, "rb") as stream:
            return stream.read()


@given(st.lists(st.binary(max_size=50_000), max_size=20))
def test_everything_arrives_in_order(bodies: list[bytes]) -> None:
    client = Client()
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.append(client.read_all()))
    reading.start()
    for body in bodies:
        assert client.pipe.write(body) == len(body)
    client.pipe.close()
    reading.join(LIMIT_S)
    assert found == [b"".join(bodies)] and client.losses == []


def test_writing_does_not_wait_for_who_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_WAITING_BYTES", 1 << 20)
    client = Client()
    for _ in range(10):
        client.pipe.write(bytes(100_000))  # more than a pipe holds, less than may wait
    assert client.losses == []
    for _ in range(100):
        client.pipe.write(bytes(100_000))
    assert client.losses == [1]  # once
    assert client.pipe._waiting_bytes <= 1 << 20 and client.pipe._waiting.qsize() <= 11
    client.pipe.close()  # it gives up writing; a test that hangs here has found a close that does not
    assert len(client.read_all()) <= 1 << 20


def test_who_reads_slowly_is_not_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_WAITING_BYTES", 200_000)
    client = Client()
    total = 0
    for _ in range(30):
        client.pipe.write(bytes(100_000))
        while client.pipe._waiting_bytes > 100_000:
            total += len(os.read(client.reader, 30_000))
    assert client.losses == [] and total >= 29 * 100_000 - 200_000
    os.close(client.reader)


def test_who_is_gone_is_left() -> None:
    client = Client()
    os.close(client.reader)
    client.pipe.write(b"x")
    wait_until(lambda: client.losses == [1])
    client.pipe.write(bytes(10**6))
    assert client.pipe._waiting_bytes <= 1
    client.pipe.close()
    assert client.losses == [1]


IDS = st.one_of(st.integers(-(10**12), 10**12), st.text(st.characters(exclude_categories=["Cs"]), max_size=8))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "method", "x"]), inner, max_size=3)
    ),
)


@given(IDS, JSON, st.booleans(), st.integers(0, 40))
def test_the_id_of_a_request_is_found_in_what_is_left_of_it(
    message_id: Any, params: Any, is_first: bool, cut: int
) -> None:
    head = {"jsonrpc": "2.0", "id": message_id, "method": "x/y"}
    message = {**head, "params": params} if is_first else {"params": params, **head}
    body = json.dumps(message, ensure_ascii=False).encode()
    is_plain = isinstance(message_id, int) or (message_id.isprintable() and not set(message_id) & {'"', "\\"})
    if is_plain:
        assert find_request_id(body) == message_id
        assert not is_first or find_request_id(body[: len(body) - min(cut, len(json.dumps(params)))]) == message_id
    else:
        assert find_request_id(body) in (message_id, None)
    assert find_request_id(json.dumps({"jsonrpc": "2.0", "id": message_id, "result": params}).encode()) is None


@given(st.binary(max_size=200))
def test_bytes_that_are_nothing_have_no_id(body: bytes) -> None:
    found = find_request_id(body)
    assert found is None or (b'"id"' in body and b'"method"' in body)


def test_an_id_is_found_in_a_body_without_end() -> None:
    body = b'{"id": 5, "method": "x", "params": ' + b"[" * 10**6
    assert find_request_id(body) == 5


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (b"Content-Length: 5\r\n", b"Content-Length: 5\r\n"),
        (b"content-length:5\n", b"Content-Length: 5\r\n"),
        (b'{"x": 1}Content-Length: 12\r\n', b"Content-Length: 12\r\n"),
        (b"Content-Type: x\r\n", b"Content-Type: x\r\n"),
        (b"\r\n", b"\r\n"),
        (b"Content-Length: five\r\n", b"Content-Length: five\r\n"),
        (b"Content-Length: %d\r\n" % (MOST_MESSAGE_BYTES + 1), b""),
        (b"", b""),
    ],
)
def test_headers_are_read_in_any_spelling(sent: bytes, read: bytes) -> None:
    assert IncomingPipe(BytesIO(sent)).readline() == read


def test_a_line_without_end_is_read_in_pieces() -> None:
    pipe = IncomingPipe(BytesIO(b"x" * 100_000 + b"Content-Length: 5\r\n"))
    lines = [pipe.readline() for _ in range(20)]
    assert b"Content-Length: 5\r\n" in lines and max(map(len, lines)) < 10_000


class Writer:
    """Messages that a protocol writes, as JSON."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    def write(self, data: bytes) -> None:
        header, _, body = data.partition(b"\r\n\r\n")
        assert header == b"Content-Length: %d" % len(body)
        self.sent.append(json.loads(body, parse_constant=pytest.fail))

    def close(self) -> None:
        return


@pytest.fixture
def server() -> tuple[PyglsServer, Writer]:
    """A server of pygls' with our wire, initialized; hovers are whatever ``answer`` on it is."""
    found = PyglsServer("x", "1", protocol_cls=Protocol, converter_factory=make_converter)
    found.feature(types.TEXT_DOCUMENT_HOVER)(lambda params: found.answer())  # type: ignore[attr-defined]
    writer = Writer()
    found.protocol.set_writer(writer)
    params = {"processId": None, "rootUri": None, "capabilities": {}}
    found.protocol.handle_message({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
    assert writer.sent.pop()["result"]["capabilities"]["hoverProvider"] is True
    return found, writer


def ask_for_hover(server: PyglsServer, answer: Callable[[], Any]) -> None:
    server.answer = answer  # type: ignore[attr-defined]
    place = {"textDocument": {"uri": "file:///x"}, "position": {"line": 0, "character": 0}}
    server.protocol.handle_message({"jsonrpc": "2.0", "id": 7, "method": "textDocument/hover", "params": place})


def make_loop() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


UNWRITABLE = {
    "not a number": lambda: {"ratio": math.nan},
    "no JSON": lambda: {"what": object()},
    "without end": lambda: {"text": "x" * (wire.MOST_BODY_BYTES + 1)},
    "in itself": make_loop,
    "failed": lambda: 1 / 0,
}


@pytest.mark.parametrize("answer", UNWRITABLE.values(), ids=UNWRITABLE)
def test_a_result_that_cannot_be_written_is_an_error(
    server: tuple[PyglsServer, Writer], answer: Callable[[], Any]
) -> None:
    ask_for_hover(server[0], answer)
    (sent,) = server[1].sent
    assert sent["id"] == 7 and sent["error"]["code"] == types.ErrorCodes.InternalError.value
    assert "data" not in sent["error"] and "Traceback" not in str(sent)


def test_a_result_is_a_result(server: tuple[PyglsServer, Writer]) -> None:
    ask_for_hover(server[0], lambda: types.Hover(contents="é\ud800"))
    assert server[1].sent == [{"id": 7, "jsonrpc": "2.0", "result": {"contents": "é\ud800"}}]
    ask_for_hover(server[0], lambda: None)
    assert server[1].sent[1] == {"id": 7, "jsonrpc": "2.0", "result": None}


def test_a_notification_that_cannot_be_written_is_left_out(server: tuple[PyglsServer, Writer]) -> None:
    server[0].protocol.notify("gpaLsp/heat", {"ratio": math.inf})
    server[0].protocol.notify("gpaLsp/heat", {"ratio": 1.0})
    assert [one["params"] for one in server[1].sent] == [{"ratio": 1.0}]


def test_questions_nobody_answers_are_forgotten(server: tuple[PyglsServer, Writer]) -> None:
    protocol = server[0].protocol
    assert isinstance(protocol, Protocol)
    for _ in range(100):
        protocol.send_request(types.WORKSPACE_INLAY_HINT_REFRESH).cancel()  # what waiting for an answer does in the end
    late = server[1].sent[0]["id"]
    protocol.handle_message({"jsonrpc": "2.0", "id": late, "result": None})
    assert (protocol._asked, protocol._request_futures, protocol._result_types) == (set(), {}, {})
    asked = protocol.send_request(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=[]))
    protocol.handle_message({"jsonrpc": "2.0", "id": server[1].sent[-1]["id"], "error": {"code": 1, "message": "no"}})
    assert asked.exception() is not None
    assert (protocol._asked, protocol._request_futures, protocol._result_types) == (set(), {}, {})


def test_a_log_nobody_reads_is_cut_short_and_not_waited_for() -> None:
    reader, writer = os.pipe()
    handler = PatientHandler(writer)
    for number in range(3 * MOST_WAITING_RECORDS):
        handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, f"{number} " + "x" * 1000, None, None))
    assert handler._waiting.qsize() <= MOST_WAITING_RECORDS
    handler.close()
    first = os.read(reader, 2000)
    assert first.startswith(b"0 xxx")
    os.close(reader)


def test_a_log_says_what_it_is_told() -> None:
    reader, writer = os.pipe()
    handler = PatientHandler(writer)
    handler.setFormatter(logging.Formatter("%(levelname)s %(message)s"))
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, "é\ud800 %s", ("a",), None))
    handler.handle(logging.LogRecord("x", logging.ERROR, "", 0, "%d", ("no number",), None))
    handler.close()
    handler._thread.join(LIMIT_S)  # whoever leaves does not wait for it so long
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert stream.read() == "ERROR é\\ud800 a\na record of x cannot be written\n".encode()


@given(st.text(max_size=50), st.text(max_size=50))
def test_messages_are_text(one: str, two: str) -> None:
    said = make_sentence(f"{one}[x](command:y)\x1b{two}")
    assert "](" not in said and "\x1b" not in said and "\u202e" not in said
    assert len(make_sentence(one * 1000)) <= 2000
    if one.isascii() and one.isprintable() and "](" not in one:
        assert make_sentence(one) == one


def test_a_message_in_the_log_is_one_line_and_a_trace_is_lines() -> None:
    formatter = VisibleFormatter("%(levelname)s %(name)s: %(message)s")
    try:
        raise ValueError("bad\x1b[2J\u202e")
    except ValueError:
        trace = sys.exc_info()
    record = logging.LogRecord("a", logging.ERROR, __file__, 1, "%s failed", ("k\n# x\x9b\ud800",), trace)
    first, *rest = formatter.format(record).split("\n")
    assert first == "ERROR a: k\\n# x\\x9b\\ud800 failed"
    assert rest[0].startswith("Traceback") and rest[-1] == "ValueError: bad\\x1b[2J\\u202e"


def test_one_module_speaks_pygls() -> None:
    folder = Path(gpa_lsp.editor.protocol.__file__).parent
    found = {path.name for path in folder.rglob("*.py") if re.search(r"^(from|import) pygls", path.read_text(), re.M)}
    assert found == {"wire.py"}


def count_futures() -> int:
    gc.collect()
    return sum(isinstance(one, Future) for one in gc.get_objects())


def test_nothing_is_kept_of_edits_and_of_requests_that_were_cancelled(server: tuple[PyglsServer, Writer]) -> None:
    texts: list[str] = []
    server[0].feature(types.TEXT_DOCUMENT_DID_CHANGE)(lambda params: texts.append(params.content_changes[0].text))
    handle = server[0].protocol.handle_message
    before = count_futures()
    for version in range(200):
        document = {"uri": "file:///x", "version": version}
        changes = {"textDocument": document, "contentChanges": [{"text": str(version)}]}
        handle({"jsonrpc": "2.0", "method": "textDocument/didChange", "params": changes})
        ask_for_hover(server[0], lambda: None)
        handle({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": 7}})
    assert len(texts) == 200
    assert count_futures() == before
