"""The server against JSON-RPC and the protocol's versions: what is answered, what is refused, and what is left unanswered."""

import inspect
import io
import json
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.agents import server as server_module
from gpa_lsp.agents.answers import Answers
from gpa_lsp.agents.server import MOST_LINE_BYTES, STATELESS_VERSION, VERSIONS, NoAnswerError, Pipes, Questions, Server
from gpa_lsp.agents.tools import TOOLS
from gpa_lsp.foundation.errors import InputError
from tests.patience import LIMIT_S

CLIENT = {"capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def begin(version: str = VERSIONS[-1]) -> dict[str, Any]:
    return ask("initialize", 0, protocolVersion=version, **CLIENT)


def ask(method: str, request_id: object = 1, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def stateless(method: str, version: object = STATELESS_VERSION, **params: object) -> dict[str, Any]:
    name = "io.modelcontextprotocol/"
    meta = {f"{name}protocolVersion": version, f"{name}clientInfo": {}, f"{name}clientCapabilities": {}}
    return ask(method, 1, _meta=meta, **params)


def talk(*messages: object, folder: Path = Path("/nonexistent")) -> list[Any]:
    """Replies of a server to messages, or to lines as they are."""
    lines = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in messages)
    said = io.BytesIO()
    Server(folder, Pipes(io.BytesIO(lines), said)).run()
    return [json.loads(line) for line in said.getvalue().splitlines()]


def read_code(message: Any) -> tuple[object, int]:
    return message["id"], message["error"]["code"]


@pytest.mark.parametrize(("wanted", "spoken"), [*zip(VERSIONS, VERSIONS, strict=True), ("1999-01-01", VERSIONS[-1])])
def test_the_version_of_the_client_is_spoken_where_it_is_known(wanted: str, spoken: str) -> None:
    (greeting,) = talk(begin(wanted))
    assert greeting["id"] == 0 and greeting["result"]["protocolVersion"] == spoken
    assert set(greeting["result"]["capabilities"]) == {"tools", "resources"}


def test_what_was_not_declared_is_no_method() -> None:
    for method in ("prompts/list", "logging/setLevel", "completion/complete", "resources/subscribe", "", "x" * 10**5):
        _, answer = talk(begin(), ask(method))
        assert read_code(answer) == (1, -32601) and len(json.dumps(answer)) < 500


def test_nothing_but_a_ping_comes_before_the_beginning() -> None:
    assert [read_code(one) for one in talk(ask("tools/list"), ask("tools/call", 2, name="sass"))] == [
        (1, -32600),
        (2, -32600),
    ]
    assert talk(ask("ping")) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"garbage\n", (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping"\n', (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}\n', (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": -Infinity}}\n', (None, -32700)),
        (b"[" * 200_000 + b"\n", (None, -32700)),
        (b'{"a":' * 200_000 + b"\n", (None, -32700)),
        (b'{"jsonrpc": "2.0", "id": ' + b"9" * 10_000 + b', "method": "ping"}\n', (None, -32700)),
        (b"\xff\xfe\n", (None, -32700)),
        (b'"' + b"x" * MOST_LINE_BYTES + b'"\n', (None, -32700)),
        (b"5\n", (None, -32600)),
        (b"null\n", (None, -32600)),
        (b"[]\n", (None, -32600)),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]\n', (None, -32600)),
        (b'{"id": 1, "method": "ping"}\n', (1, -32600)),
        (b'{"jsonrpc": "1.0", "id": "a", "method": "ping"}\n', ("a", -32600)),
        (b'{"jsonrpc": "2.0", "id": 1}\n', (1, -32600)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}\n', (1, -32600)),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}\n', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}\n', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}\n', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": [1], "method": "ping"}\n', (None, -32600)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": [1]}\n', (1, -32602)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "initialize"}\n', (1, -32602)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"cursor": "2"}}\n', (1, -32602)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}\n', (1, -32602)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}\n', (1, -32602)),
        (
            b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "sass", "arguments": []}}\n',
            (1, -32602),
        ),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": 5}}\n', (1, -32602)),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "gpa://x"}}\n', (1, -32002)),
    ],
)
def test_what_is_wrong_gets_its_code_and_the_next_request_its_answer(line: bytes, code: tuple[object, int]) -> None:
    _, wrong, right = talk(begin(), line, ask("ping", "next"))
    assert read_code(wrong) == code and len(json.dumps(wrong)) < 500
    assert right == {"jsonrpc": "2.0", "id": "next", "result": {}}


def test_answers_and_notifications_stay_unanswered() -> None:
    silent = [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "notifications/unknown", "params": {"x": 1}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": [1]}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]},
        b"\n",
        b"  \r\n",
    ]
    assert [one["id"] for one in talk(begin(), *silent, ask("ping", 7))] == [0, 7]


def test_a_line_of_several_messages_is_answered_by_one() -> None:
    call = ask("tools/call", 2, name="think")
    told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    _, answers = talk(begin("2025-03-26"), [ask("ping"), call, told, 5])
    assert sorted(one["id"] for one in answers if one["id"]) == [1, 2] and len(answers) == 3
    (greeting,) = talk(begin("2025-03-26"), [told, told])
    assert greeting["id"] == 0, "notifications alone get no answer"


def test_ids_go_back_as_they_came() -> None:
    for request_id in ("", "a\u2028b", "\ud800", "ü", 0, -5, 2**70):
        assert talk(ask("ping", request_id))[0]["id"] == request_id


def test_a_line_may_end_with_the_input_or_after_a_return() -> None:
    assert (
        talk(json.dumps(ask("ping")).encode()) == talk(json.dumps(ask("ping")).encode() + b"\r\n") == talk(ask("ping"))
    )


def test_requests_without_a_beginning_are_answered_in_their_version() -> None:
    (found,) = talk(stateless("server/discover"))
    assert found["result"]["supportedVersions"] == [STATELESS_VERSION] and found["result"]["resultType"] == "complete"
    (listed,) = talk(stateless("tools/list"))
    assert listed["result"]["cacheScope"] == "private" and len(listed["result"]["tools"]) == len(TOOLS)
    (called,) = talk(stateless("tools/call", name="think"))
    assert called["result"]["isError"] and "ttlMs" not in called["result"]
    refused = talk(stateless("tools/list", "2099-01-01"), stateless("tools/list", 5), stateless("ping"))
    assert [one["error"]["code"] for one in refused] == [-32022, -32602, -32601]
    assert refused[0]["error"]["data"] == {"supported": [STATELESS_VERSION], "requested": "2099-01-01"}
    half = stateless("tools/list")
    del half["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert read_code(talk(half)[0]) == (1, -32602)
    assert read_code(talk(stateless("resources/read", uri="gpa://x"))[0]) == (1, -32602)


class HeldQuestions(Questions):
    """Answers when it is allowed to."""

    begun = threading.Event()
    allowed = threading.Event()

    def ask(self, tool: str, arguments: Any) -> str:
        self.begun.set()
        assert self.allowed.wait(LIMIT_S)
        return tool


def test_what_is_cancelled_is_not_answered_and_a_ping_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "Questions", HeldQuestions)
    monkeypatch.setattr(HeldQuestions, "begun", threading.Event())
    monkeypatch.setattr(HeldQuestions, "allowed", threading.Event())

    def send() -> Iterator[bytes]:
        yield encode(begin())
        for number in (1, 2, 3):
            yield encode(ask("tools/call", number, name="sass"))
        assert HeldQuestions.begun.wait(LIMIT_S)
        for number in (1, 2):
            yield encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
        yield encode(ask("ping", "while"))
        HeldQuestions.allowed.set()

    said = io.BytesIO()
    Server(Path("/nonexistent"), Lines(send(), said)).run()
    assert [json.loads(line)["id"] for line in said.getvalue().splitlines()] == [0, "while", 3]


def test_who_asks_without_end_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "Questions", HeldQuestions)
    monkeypatch.setattr(server_module, "_MOST_WAITING", 3)
    monkeypatch.setattr(HeldQuestions, "begun", threading.Event())
    monkeypatch.setattr(HeldQuestions, "allowed", threading.Event())

    def send() -> Iterator[bytes]:
        yield encode(begin())
        yield encode(ask("tools/call", 1, name="sass"))
        assert HeldQuestions.begun.wait(LIMIT_S)
        for number in range(2, 7):
            yield encode(ask("tools/call", number, name="sass"))
        HeldQuestions.allowed.set()

    said = io.BytesIO()
    Server(Path("/nonexistent"), Lines(send(), said)).run()
    answers = {one["id"]: one for one in map(json.loads, said.getvalue().splitlines())}
    assert [number for number in range(1, 7) if "error" in answers[number]] == [5, 6]
    assert "too many" in answers[5]["error"]["message"]


class Lines(Pipes):
    """Lines that are made while they are read."""

    def __init__(self, lines: Iterator[bytes], writing: io.BytesIO) -> None:
        super().__init__(io.BytesIO(), writing)
        self._lines = lines

    def read_lines(self) -> Iterator[bytes | None]:
        yield from self._lines


def encode(message: object) -> bytes:
    return json.dumps(message).encode()


def test_a_defect_of_ours_costs_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise ZeroDivisionError("of nobody's business")

    monkeypatch.setattr(Questions, "ask", fail)
    _, broken, well = talk(begin(), ask("tools/call", 1, name="sass"), ask("resources/templates/list", 2))
    answers = {one["id"]: one for one in (broken, well)}
    assert read_code(answers[1]) == (1, -32603) and "ZeroDivisionError" in answers[1]["error"]["message"]
    assert "nobody" not in json.dumps(broken) and "result" in answers[2]


def test_tools_are_the_questions_there_are() -> None:
    for tool in TOOLS:
        parameters = list(inspect.signature(getattr(Answers, tool.name)).parameters.values())[1:]
        assert [one.name for one in parameters] == [one.name for one in tool.arguments], tool.name
        for parameter, argument in zip(parameters, tool.arguments, strict=True):
            assert (parameter.default is inspect.Parameter.empty) == argument.is_required
            assert argument.is_required or parameter.default == argument.default
            assert (parameter.annotation in (str, str | None)) == (argument.type == "string")


def test_numbers_may_be_written_as_agents_write_them(tmp_path: Path) -> None:
    _, *answers = talk(
        begin(),
        *(ask("tools/call", value, name="list_kernels", arguments={"start": 0}) for value in (1, 2)),
        *(ask("tools/call", 3, name="list_kernels", arguments={"start": value}) for value in ("0", 0.0)),
        *(
            ask("tools/call", 4, name="list_kernels", arguments={"start": value})
            for value in (True, None, 1.5, "x", [])
        ),
        folder=tmp_path,
    )
    assert [one["result"]["isError"] for one in answers] == [False] * 4 + [True] * 5


@pytest.mark.parametrize("where", ["here", "away"])
def test_paths_are_named_from_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    told = f"{folder}/a.cu, {folder}, {folder}-2/b.cu, /x{folder}/c.cu"

    def answer(*_: object, **__: object) -> str:
        if where == "away":
            raise InputError(told)
        return told

    monkeypatch.setattr(Answers, "list_kernels", answer)
    if where == "here":
        assert Questions(folder).ask("list_kernels", {}) == f"a.cu, {folder}, {folder}-2/b.cu, /x{folder}/c.cu"
    else:
        with pytest.raises(NoAnswerError) as error:
            Questions(folder).ask("list_kernels", {})
        assert str(error.value) == f"a.cu, this folder, {folder}-2/b.cu, /x{folder}/c.cu"
    monkeypatch.setattr(Answers, "list_kernels", lambda *_, **__: "/etc/a and a/b")
    assert Questions(Path("/")).ask("list_kernels", {}) == "/etc/a and a/b"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
METHODS = [
    "initialize",
    "tools/call",
    "tools/list",
    "resources/read",
    "ping",
    "server/discover",
    "notifications/cancelled",
]


@given(
    st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0") | JSON, "method": st.sampled_from(METHODS) | JSON},
        optional={"id": st.integers() | st.text() | JSON, "params": JSON},
    )
    | JSON
)
def test_whatever_comes_gets_one_answer_at_most(message: Any) -> None:
    answers = talk(begin("2025-03-26"), message, ask("ping", "last"))
    assert len(answers) in (2, 3) and answers[0]["id"] == 0
    assert any(one["id"] == "last" for one in answers if isinstance(one, dict))


def test_a_client_that_does_not_read_any_more_ends_it(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "gpa_lsp", "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write(json.dumps(begin()).encode() + b"\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.stdout.close()
        try:
            for number in range(100):
                process.stdin.write(json.dumps(ask("ping", number)).encode() + b"\n")
                process.stdin.flush()
        except BrokenPipeError:
            pass
        assert process.wait(LIMIT_S) == 0, "though more could come"
        assert process.stderr.read() == b""
        with suppress(BrokenPipeError):  # what could not be written is still in the buffer
            process.stdin.close()


def test_it_starts_within_twice_of_help(tmp_path: Path) -> None:
    messages = b"".join(json.dumps(one).encode() + b"\n" for one in (begin(), ask("tools/list")))
    program = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run([sys.executable, '-m', 'gpa_lsp', *sys.argv[1:]], stdin=sys.stdin, capture_output=True)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime if done.stdout else 'silent')\n"
    )

    def measure(argument: str) -> float:
        done = subprocess.run(
            [sys.executable, "-c", program, argument], input=messages, capture_output=True, check=True
        )
        return float(done.stdout)

    times = {argument: [measure(argument) for _ in range(5)] for argument in ("--help", "mcp")}
    assert statistics.median(times["mcp"]) <= 2 * statistics.median(times["--help"]), times
