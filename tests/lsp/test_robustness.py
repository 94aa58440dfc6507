"""Every request gets one answer, whatever is in it, and the server goes on as if nothing had been.

The server is the real one with the real pipeline, on two of our own kernels; its client sends what no client sends.
"""

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from lsprotocol import types

from gpa_lsp.editor.protocol.features import RequestFeature, SessionFeature, load_features
from tests.conftest import ROOT, examples
from tests.lsp.conftest import make_ancient, make_old
from tests.lsp.hostile_params import (
    DATA,
    KNOWN_METHODS,
    URIS,
    WORTHLESS,
    Maker,
    list_plain_failures,
    make_arguments,
    nest,
)
from tests.lsp.raw_client import ALL_CAPABILITIES, RawClient
from tests.patience import LIMIT_S, set_limits, wait_until

KERNELS = ("short_def_use", "inline_chain")


def list_own_tracebacks(log: str) -> list[str]:
    """Records of a log with a traceback, but for those pygls writes when a body is no JSON."""
    records = re.split(r"^(?=(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) )", log, flags=re.MULTILINE)
    return [one for one in records if "Traceback" in one and not one.startswith("ERROR pygls.server: Unable to handle")]


class CountingClient(RawClient):
    """A client that counts the answers to each of its requests."""

    def __init__(self, **options: Any) -> None:
        self.answers_by_id: Counter[Any] = Counter()
        super().__init__(**options)

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            assert ("result" in message) != ("error" in message), message
            self.answers_by_id[message["id"]] += 1
        super()._take(message)

    def post(self, method: str, params: Any) -> int:
        """Send a request; its number."""
        message_id = next(self._ids)
        self.send(id=message_id, method=method, params=params)
        return message_id

    def wait_for_answers(self, message_ids: list[Any]) -> list[dict[str, Any]]:
        with self._arrived:
            is_done = self._arrived.wait_for(lambda: all(one in self._responses for one in message_ids), LIMIT_S)
            assert is_done, ([one for one in message_ids if one not in self._responses], self.errors[-2000:])
            return [self._responses.pop(one) for one in message_ids]


def decorate(text: str) -> str:
    """A source with characters of every length before and behind its code, line by line."""
    return re.sub(r"^( *)([^#\s].*)$", "\\1/* é€😀 */ \\2 // ×𝛼\u2028", text, flags=re.MULTILINE)


def make_project(folder: Path) -> Path:
    """A workspace with two kernels of ours and a profile of them, which has the sources as they are there."""
    for kernel in KERNELS:
        shutil.copytree(ROOT / "fixtures" / "kernels" / kernel, folder / "kernels" / kernel)
        (folder / "cubins" / "sm_80").mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "fixtures" / "cubins" / "sm_80" / f"{kernel}_original.cubin", folder / "cubins" / "sm_80")
    profile = json.loads((ROOT / "fixtures" / "example.gpa-profile.json").read_text())
    for module in profile["modules"]:
        module["sources"] = {path: decorate(text) for path, text in module["sources"].items()}
        for path, text in module["sources"].items():
            (folder / path.partition("/fixtures/")[2]).write_text(text, encoding="utf-8")
    for source in folder.glob("kernels/*/*"):
        make_ancient(source)
    (folder / "example.gpa-profile.json").write_text(json.dumps(profile))
    make_old(folder / "example.gpa-profile.json")
    return folder


class Session:
    """A client with sources and SASS documents of a project open."""

    def __init__(self, folder: Path, encoding: str = "utf-16") -> None:
        self.client = CountingClient(environment=set_limits(poll_seconds=3600.0))
        capabilities = {**ALL_CAPABILITIES, "general": {"positionEncodings": [encoding]}}
        asked = {"client": {"heat": True, "status": True, "output": True}}
        result = self.client.initialize(folder, capabilities, initializationOptions=asked)
        self.commands: list[str] = result["capabilities"]["executeCommandProvider"]["commands"]
        self.quiet_commands = [name for name in self.commands if name not in ("gpaLsp.reload", "gpaLsp.setTrust")]
        source = folder / "kernels" / "short_def_use" / "original.cu"
        header = folder / "kernels" / "inline_chain" / "curves.cuh"
        self.source, self.header = self.client.open(source), self.client.open(header)
        self.texts = {path.as_uri(): path.read_text(encoding="utf-8") for path in folder.glob("kernels/*/*.cu*")}
        self.client.wait_for_diagnostics(self.source)
        kernels = self.execute("gpaLsp.listKernels")
        self.sass = [kernel["sassUri"] for kernel in kernels]
        assert len(self.sass) == len(KERNELS)
        for uri in self.sass:
            self.texts[uri] = self.client.open_sass(uri)
        self.uris = (self.source, self.header, *self.sass)
        self.items = [item for uri in self.uris for line in range(60) for item in self.prepare(uri, line)]
        assert {item["data"]["kind"] for item in self.items} >= {"source"} and len(self.items) > 20
        self.healthy = self.take_pulse()
        assert all(self.healthy)

    def prepare(self, uri: str, line: int) -> list[Any]:
        return self.client.ask_at("prepareCallHierarchy", uri, line + 1, 0) or []

    def execute(self, command: str, *arguments: Any) -> Any:
        return self.client.execute(command, *arguments)

    def take_pulse(self) -> list[Any]:
        """Answers that only a server in order gives."""
        return [
            self.client.hover(self.source, 23, 10),
            self.client.hints(self.sass[0]),
            self.client.ask("documentSymbol", self.sass[1]),
            self.execute("gpaLsp.findCauses", self.source, 22),
        ]

    def check(self) -> None:
        """The server is as it was, answered each request once, and has told the user of no failure."""
        assert self.take_pulse() == self.healthy
        assert set(self.client.answers_by_id.values()) == {1}
        assert [text for text in self.client.messages() if "failed" in text or "Traceback" in text] == []
        assert list_own_tracebacks(self.client.errors) == []


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    found = Session(make_project(tmp_path_factory.mktemp("robust") / "project"))
    with found.client:
        yield found
        found.check()
        assert found.client.shut_down() == 0


def list_served() -> list[str]:
    """The requests the server answers with more than that it does not."""
    features = load_features().values()
    asked = [feature.method for feature in features if isinstance(feature, RequestFeature | SessionFeature)]
    return sorted([*asked, types.WORKSPACE_EXECUTE_COMMAND, types.WORKSPACE_TEXT_DOCUMENT_CONTENT])


def test_params_that_are_wrong_for_every_method(session: Session) -> None:
    client = session.client
    served = [method for method in sorted(KNOWN_METHODS) if method != "shutdown"]
    asked = [client.post(method, params) for method in served for params in list_plain_failures()]
    answers = client.wait_for_answers(asked)
    assert sum("error" in answer for answer in answers) > len(asked) / 2
    bare = [f"bare {method}" for method in served]
    for method, name in zip(served, bare, strict=True):
        client.send(id=name, method=method)
    assert all("error" in answer for answer in client.wait_for_answers(bare))
    session.check()


SEEDS = st.integers(0, 2**64 - 1)


@settings(examples(40), suppress_health_check=list(HealthCheck), phases=(Phase.explicit, Phase.generate))
@given(SEEDS)
def test_requests_with_strange_and_spoilt_params(session: Session, seed: int) -> None:
    maker = Maker(random.Random(seed), session.uris, session.items)
    asked = []
    for method in list_served():
        params = maker.make_params(method)
        if method == types.WORKSPACE_EXECUTE_COMMAND:
            params = {"command": maker.chance.choice(session.quiet_commands), "arguments": make_arguments(maker)}
        if maker.chance.random() < 0.5:
            params = maker.spoil(params)
        asked.append(session.client.post(method, params))
    session.client.wait_for_answers(asked)
    assert session.client.process.poll() is None


def test_every_command_with_strange_arguments(session: Session) -> None:
    maker = Maker(random.Random(1), session.uris)
    client = session.client
    for command in session.commands:
        times = 20 if command in session.quiet_commands else 2
        asked = [
            client.post("workspace/executeCommand", {"command": command, "arguments": make_arguments(maker)})
            for _ in range(times)
        ]
        client.wait_for_answers(asked)
    session.execute("gpaLsp.setTrust", True)
    client.wait_for("gpaLsp/status", lambda status: status["state"] == "idle" and status["kernels"] == len(KERNELS))
    wait_until(lambda: session.take_pulse() == session.healthy)


BROKEN_BODIES = {
    "nested too deep": '{"jsonrpc": "2.0", "id": %d, "method": "textDocument/hover", "params": ' + "[" * 200_000,
    "nested and closed": '{"params": ' + "[" * 100_000 + "]" * 100_000 + ', "method": "shutdown", "id": %d}',
    "objects in objects": '{"id": %d, "method": "x", "params": ' + '{"id": 3, "a": ' * 20_000 + "1" + "}" * 20_001,
    "cut off": '{"jsonrpc": "2.0", "id": %d, "method": "textDocument/hover", "params": {"textDocu',
    "no number": '{"jsonrpc": "2.0", "id": %d, "method": "textDocument/hover", "params": {"position": {"line": 1e}}}',
    "too long a number": '{"jsonrpc": "2.0", "id": %d, "method": "x/y", "params": ' + "9" * 10_000 + "}",
    "not a number": '{"jsonrpc": "2.0", "id": %d, "method": "workspace/symbol", "params": {"query": NaN, "x": -Infinity}}',
    "another version": '{"jsonrpc": "3.0", "id": %d, "method": "textDocument/hover"}',
    "a message in a message": '{"jsonrpc": "2.0", "id": %d, "method": "workspace/executeCommand", "params": {"command": "gpaLsp.findCauses", '
    '"arguments": [{"jsonrpc": "2.0", "id": 1, "method": "textDocument/hover", "params": {}}]}}',
    "the same member twice": '{"jsonrpc": "2.0", "id": 1, "id": %d, "method": "textDocument/hover", "params": {}, "params": null}',
}


@pytest.mark.parametrize("body", BROKEN_BODIES.values(), ids=BROKEN_BODIES)
def test_bodies_no_parser_takes(session: Session, body: str) -> None:
    message_id = next(session.client._ids)
    session.client.send_bytes((body % message_id).encode())
    session.client.wait_for_answers([message_id])
    session.check()


def test_strange_notifications_do_no_harm(session: Session) -> None:
    client, chance = session.client, random.Random(2)
    maker = Maker(chance, (*URIS, "file:///somewhere/else.cu"))
    for method, kinds in sorted(types.METHOD_TO_TYPES.items()):
        if hasattr(kinds[0], "id") or method in ("exit", "textDocument/didOpen"):
            continue
        for params in list_plain_failures():
            client.notify(method, params)
        client.send(method=method)
    for uri in URIS:
        edit = {"range": {"start": {"line": 0, "character": 3}, "end": {"line": 9, "character": 0}}, "text": "x"}
        document = {"uri": uri, "version": 2}
        client.open_text(uri, "__global__ void f() {}\n", "cuda")
        client.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [edit]})
        client.save(uri)
        client.post("textDocument/hover", {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}})
        client.close(uri)
    for data in (*DATA, *WORTHLESS, nest(200)):
        client.notify("workspace/didChangeConfiguration", {"settings": data})
        client.notify("$/cancelRequest", {"id": data})
        client.send(id="nothing that was asked", result=data)
        client.send(id=data, error=data)
        client.send(id=data)
        client.send(result=data)
    assert maker.make_params("textDocument/hover")
    client.wait_for("gpaLsp/status", lambda status: status["state"] == "idle" and status["kernels"] == len(KERNELS))
    wait_until(lambda: session.take_pulse() == session.healthy)
