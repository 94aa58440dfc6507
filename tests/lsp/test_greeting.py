"""The answer to initialize, said from memory: the same the server gives, once, and only where it would give it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from gpa_lsp.editor.protocol import greeting
from gpa_lsp.editor.protocol.greeting import Greeting
from gpa_lsp.editor.protocol.wire import IncomingPipe
from gpa_lsp.foundation.kept_files import FOLDER_VARIABLE, KeptFiles
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient

ANSWER = {"capabilities": {"hoverProvider": True}}
PARAMS: dict[str, Any] = {"processId": 1, "rootUri": None, "capabilities": ALL_CAPABILITIES}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "greetings"


def frame(message: Any) -> bytes:
    body = json.dumps(message).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


def request(**changes: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": PARAMS} | changes


def greet(message: Any) -> tuple[Greeting, bytes]:
    said: list[bytes] = []
    stream = message if isinstance(message, bytes) else frame(message)
    return Greeting(io.BytesIO(stream), said.append), b"".join(said)


def teach() -> None:
    first, said = greet(request())
    assert said == b""
    assert not first.settle(ANSWER)


def test_what_was_answered_once_is_answered_at_once() -> None:
    teach()
    again, said = greet(request(id="a"))
    assert said == frame({"jsonrpc": "2.0", "id": "a", "result": ANSWER})
    assert again.settle(ANSWER)


def test_what_the_answer_does_not_depend_on_may_differ() -> None:
    teach()
    folders = [{"uri": "file:///x", "name": "x"}]
    params = PARAMS | {"processId": None, "rootUri": "file:///x", "workspaceFolders": folders, "trace": "off"}
    assert greet(request(params=params))[1] != b""


@pytest.mark.parametrize(
    "change",
    [
        {"params": PARAMS | {"capabilities": {}}},
        {"params": PARAMS | {"initializationOptions": {"client": {"heat": True}}}},
        {"params": PARAMS | {"processId": "one"}},
        {"params": PARAMS | {"workspaceFolders": [{"uri": 3, "name": "x"}]}},
        {"params": PARAMS | {"workspaceFolders": "all"}},
        {"params": []},
        {"id": None},
        {"id": True},
        {"id": [1]},
        {"method": "initialized"},
        {"jsonrpc": "1.0"},
    ],
    ids=str,
)
def test_what_the_server_may_answer_otherwise_is_left_to_it(change: dict[str, Any]) -> None:
    teach()
    assert greet(request(**change))[1] == b""


@pytest.mark.parametrize(
    "stream",
    [
        b"",
        b"\r\n",
        b"Content-Length: 5\r\n\r\nnull",
        b"Content-Length: 4\r\n\r\nnull",
        b"Content-Length: many\r\n\r\n",
        b"Content-Length: 99999999999\r\n\r\n{}",
        b"garbage" * 5000,
        b"Content-Length: 200000\r\n\r\n" + b"[" * 200000,
    ],
    ids=lambda stream: f"{stream[:30]}",
)
def test_the_server_hears_what_was_heard(stream: bytes) -> None:
    teach()
    rest = io.BytesIO(stream + frame(request()))
    one = Greeting(rest, lambda _: None)
    assert one.heard + rest.read() == stream + frame(request())


def test_heard_bytes_come_first() -> None:
    pipe = IncomingPipe(io.BytesIO(b"ody" + frame({})), b"Content-Length: 4\r\n\r\nb")
    assert (pipe.readline(), pipe.readline(), pipe.read(4)) == (b"Content-Length: 4\r\n", b"\r\n", b"body")
    assert (pipe.readline(), pipe.readline(), pipe.read(2)) == (b"Content-Length: 2\r\n", b"\r\n", b"{}")


def test_an_answer_that_is_not_right_any_more_is_right_the_next_time(caplog: pytest.LogCaptureFixture) -> None:
    teach()
    again, _ = greet(request())
    assert again.settle({"capabilities": {}})
    assert "restart" in caplog.text
    assert greet(request())[1] == frame({"jsonrpc": "2.0", "id": 7, "result": {"capabilities": {}}})


@pytest.mark.parametrize("junk", [b"", b"{", b"\xff"])
def test_a_damaged_answer_is_no_answer(cache: Path, junk: bytes) -> None:
    teach()
    (entry,) = cache.iterdir()
    KeptFiles(cache, limit_bytes=1 << 20).store(entry.stem, junk)
    one, said = greet(request())
    assert said == b""
    assert not one.settle(ANSWER)
    assert greet(request())[1] != b""


@pytest.mark.parametrize("identify", ["identify_program", "_identify_package"])
def test_another_program_does_not_say_it(monkeypatch: pytest.MonkeyPatch, identify: str) -> None:
    teach()
    monkeypatch.setattr(greeting, identify, lambda *_: "another")
    assert greet(request())[1] == b""


@pytest.mark.parametrize(
    "capabilities", [ALL_CAPABILITIES, {}, {"general": {"positionEncodings": ["utf-8", "utf-16"]}}], ids=[0, 1, 2]
)
def test_the_second_server_says_what_the_first_said(tmp_path: Path, capabilities: Any, cache: Path) -> None:
    answers = []
    for _ in range(2):
        client = RawClient()
        try:
            answers.append(client.initialize(tmp_path, capabilities))
            assert "error" in client.request_whole("initialize", {"processId": None, "capabilities": {}})
            assert client.shut_down() == 0
            assert client._responses == {}, "nothing was answered twice"
        finally:
            client.kill()
    assert answers[0] == answers[1]
    assert len(list(cache.iterdir())) == 1
