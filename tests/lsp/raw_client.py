"""A client with nothing between the test and the wire: JSON-RPC over the real server's stdin and stdout.

It answers the server's own requests (progress, refresh, configuration) and keeps every notification.
"""

import contextlib
import itertools
import json
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.lsp.forked_servers import SERVER, start_server
from tests.patience import LIMIT_S, wait_until

ALL_CAPABILITIES: dict[str, Any] = {
    "window": {"workDoneProgress": True, "showDocument": {"support": True}},
    "workspace": {
        "configuration": True,
        "inlayHint": {"refreshSupport": True},
        "codeLens": {"refreshSupport": True},
    },
    "textDocument": {
        "semanticTokens": {
            "dynamicRegistration": True,
            "requests": {"full": True},
            "tokenTypes": ["variable"],
            "tokenModifiers": [],
            "formats": ["relative"],
        },
        **{
            name: {"dynamicRegistration": True}
            for name in (
                "definition",
                "references",
                "documentHighlight",
                "foldingRange",
                "callHierarchy",
                "documentSymbol",
            )
        },
    },
    "general": {"positionEncodings": ["utf-16"]},
}

WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 10_000, "character": 0}}
"""The range of any document."""


class RawClient:
    """One server process and the messages to and from it."""

    def __init__(
        self,
        *,
        environment: dict[str, str] | None = None,
        settings: Any = None,
        answers: bool = True,
        module: str = SERVER,
        cwd: Path | None = None,
        python: Path | str = sys.executable,
        is_forked: bool = True,
    ) -> None:
        self.started_s = time.perf_counter()
        self._home = tempfile.TemporaryDirectory(prefix="gpa-lsp-test-", ignore_cleanup_errors=True)
        variables = {**os.environ, "GPA_LSP_DATA_DIR": self._home.name, **(environment or {})}
        words = [str(python), "-P", "-m", *module.split()]
        self.process = start_server(words, variables, cwd, is_forked=is_forked)
        self.settings = settings
        self.answers = answers
        self.replies: dict[str, Callable[[Any], Any]] = {}
        """What to answer to requests of the server's, by method."""
        self.notifications: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.errors = ""
        self._ids = itertools.count(1)
        self._responses: dict[Any, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._outgoing: queue.Queue[bytes] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_errors, daemon=True).start()

    def send_bytes(self, body: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def send(self, **message: Any) -> None:
        self.send_bytes(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def notify(self, method: str, params: Any) -> None:
        self.send(method=method, params=params)

    def request(self, method: str, params: Any) -> Any:
        """The result; raises AssertionError with the error, or when none comes in time."""
        response = self.request_whole(method, params)
        assert "error" not in response, response
        return response["result"]

    def request_whole(self, method: str, params: Any) -> dict[str, Any]:
        message_id = next(self._ids)
        self.send(id=message_id, method=method, params=params)
        with self._arrived:
            assert self._arrived.wait_for(lambda: message_id in self._responses, LIMIT_S), (method, self.errors)
            return self._responses.pop(message_id)

    def initialize(self, folder: Path | None, capabilities: Any = None, **more: Any) -> dict[str, Any]:
        uri = folder.as_uri() if folder is not None else None
        result: dict[str, Any] = self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": "workspace"}] if uri else None,
                "capabilities": ALL_CAPABILITIES if capabilities is None else capabilities,
                **more,
                "initializationOptions": _complete(more.get("initializationOptions")),
            },
        )
        self.notify("initialized", {})
        return result

    def open(self, path: Path, text: str | None = None, language: str = "cuda-cpp") -> str:
        uri = path.as_uri()
        self.open_text(uri, path.read_text() if text is None else text, language)
        return uri

    def open_text(self, uri: str, text: str, language: str) -> None:
        item = {"uri": uri, "languageId": language, "version": 1, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def open_sass(self, uri: str) -> str:
        """Open a SASS document; its text."""
        document = self.execute("readDocument", uri)
        self.open_text(uri, document["text"], document["languageId"])
        return str(document["text"])

    def open_measured(self, folder: Path, **more: Any) -> str:
        """Initialize, open ``saxpy.cu`` and wait for its diagnostics; its URI."""
        self.initialize(folder, **more)
        uri = self.open(folder / "saxpy.cu")
        self.wait_for_diagnostics(uri)
        return uri

    def close(self, uri: str) -> None:
        self.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def configure(self, **settings: Any) -> None:
        """Say which settings are others than they were."""
        self.notify("workspace/didChangeConfiguration", {"settings": {"gpaLsp": settings}})

    def change(self, uri: str, version: int, text: str) -> None:
        self.notify(
            "textDocument/didChange",
            {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]},
        )

    def save(self, uri: str) -> None:
        self.notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def execute(self, command: str, *arguments: Any) -> Any:
        """The result of a command of ours; ``gpaLsp.`` may be left out."""
        name = command if command.startswith("gpaLsp.") else f"gpaLsp.{command}"
        return self.request("workspace/executeCommand", {"command": name, "arguments": list(arguments)})

    def ask(self, method: str, uri: str, **more: Any) -> Any:
        """Ask for something of a document."""
        return self.request(f"textDocument/{method}", {"textDocument": {"uri": uri}, **more})

    def ask_at(self, method: str, uri: str, line: int, character: int = 2) -> Any:
        """Ask for something at a place; lines are counted from 1."""
        return self.ask(method, uri, position={"line": line - 1, "character": character})

    def hover(self, uri: str, line: int, character: int = 2) -> Any:
        return self.ask_at("hover", uri, line, character)

    def read_hover(self, uri: str, line: int) -> str:
        return str(self.hover(uri, line)["contents"]["value"])

    def hints(self, uri: str) -> dict[int, Any]:
        """Line, counted from 1 → label."""
        return {hint["position"]["line"] + 1: hint["label"] for hint in self.ask("inlayHint", uri, range=WHOLE) or ()}

    def hint_texts(self, uri: str) -> dict[int, str]:
        """The same without links."""
        labels = self.hints(uri).items()
        return {line: one if isinstance(one, str) else "".join(part["value"] for part in one) for line, one in labels}

    def actions(self, uri: str, line: int, words: str = "") -> list[Any]:
        """Code actions of a line, counted from 1, whose titles have some words."""
        place = {"line": line - 1, "character": 0}
        found = self.ask("codeAction", uri, range={"start": place, "end": place}, context={"diagnostics": []})
        return [one for one in found or () if words in one["title"]]

    def lenses(self, uri: str) -> list[tuple[int, str]]:
        """Line, counted from 1, and title."""
        found = self.ask("codeLens", uri) or ()
        return [(lens["range"]["start"]["line"] + 1, lens["command"]["title"]) for lens in found]

    def titles(self, uri: str) -> list[str]:
        """Titles of the lenses."""
        return [title for _, title in self.lenses(uri)]

    def wait_for_lens(self, uri: str, words: str) -> str:
        """The first title with some words, as soon as there is one."""

        def find() -> str:
            return next((title for title in self.titles(uri) if words in title), "")

        return wait_until(find, lambda: (words, self.titles(uri), self.errors[-2000:]))

    def questions(self) -> list[str]:
        """Questions that the user was asked."""
        asked = [one for one in self.requests if one["method"] == "window/showMessageRequest"]
        return [one["params"]["message"] for one in asked]

    def wait_for(self, method: str, accept: Any = lambda params: True) -> Any:
        """Params of the first notification of a method, already here or to come, that is accepted."""

        def find() -> Any:
            return next((n for n in self.notifications if n["method"] == method and accept(n["params"])), None)

        with self._arrived:
            assert self._arrived.wait_for(lambda: find() is not None, LIMIT_S), self._explain(method)
            return find()["params"]

    def wait_for_message(self, words: str = "") -> str:
        """The first message to the user with some words."""
        return str(self.wait_for("window/showMessage", lambda params: words in params["message"])["message"])

    def wait_for_heat(self, uri: str) -> Any:
        """The first marks of a document that are any."""
        return self.wait_for("gpaLsp/heat", lambda heat: heat["uri"] == uri and heat["marks"])

    def _explain(self, method: str) -> str:
        methods = [notification["method"] for notification in self.notifications]
        return f"no {method} among {methods[-10:]}; {self.errors[-2000:]}"

    def wait_for_diagnostics(self, uri: str, accept: Any = bool) -> Any:
        params = self.wait_for(
            "textDocument/publishDiagnostics", lambda p: p["uri"] == uri and accept(p["diagnostics"])
        )
        return params["diagnostics"]

    def wait_until_read(self) -> None:
        """Wait until profiles were read, some at least, and none is left. Work that is done at once has no progress bar, but always a state."""

        def find() -> bool:
            states = [n["params"]["state"] for n in self.notifications if n["method"] == "gpaLsp/status"]
            return "reading" in states and "idle" in states[states.index("reading") :]

        with self._arrived:
            assert self._arrived.wait_for(find, LIMIT_S), self._explain("end of reading")

    def forget(self) -> None:
        with self._arrived:
            self.notifications.clear()

    def messages(self) -> list[str]:
        with self._arrived:
            return [n["params"]["message"] for n in self.notifications if n["method"] == "window/showMessage"]

    def shut_down(self) -> int:
        """An orderly end; returns the exit status."""
        self.request("shutdown", None)
        self.notify("exit", None)
        return self.process.wait(LIMIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._home.cleanup()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            with contextlib.suppress(BrokenPipeError):
                stream.close()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        try:
            while (header := stream.readline()) != b"":
                length = int(header.split(b":")[1])
                while stream.readline() not in (b"\r\n", b""):
                    pass
                self._take(json.loads(stream.read(length)))
        except ValueError:
            return  # closed by kill()

    def _take(self, message: dict[str, Any]) -> None:
        if "method" in message and "id" in message and self.answers:
            self._answer(message)
        with self._arrived:
            if "method" not in message:
                self._responses[message.get("id")] = message
            elif "id" in message:
                self.requests.append(message)
            else:
                self.notifications.append(message)
            self._arrived.notify_all()

    def _answer(self, message: dict[str, Any]) -> None:
        results = {
            "workspace/configuration": [self.settings],
            "window/showDocument": {"success": True},
        }
        reply = self.replies.get(message["method"])
        result = reply(message.get("params")) if reply is not None else results.get(message["method"])
        self.send(id=message["id"], result=result)

    def wait_for_request(self, method: str) -> Any:
        def find() -> Any:
            return next((r for r in self.requests if r["method"] == method), None)

        with self._arrived:
            assert self._arrived.wait_for(lambda: find() is not None, LIMIT_S), self._explain(method)
            return find().get("params")

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        try:
            for line in self.process.stderr:
                self.errors += line.decode(errors="replace")
        except ValueError:
            return


def _complete(options: Any) -> Any:
    """Options with which nothing is compiled or emulated unless a test asks for that, since most are about profiles and their sources are no
    programs; and with which the server says what it is doing."""
    off = {"static": {"enable": False}, "emulation": {"enable": False}}
    if options is None:
        options = {}
    if not isinstance(options, dict):
        return options
    client = options.get("client", {})
    return {**off, **options, "client": {"status": True, **client} if isinstance(client, dict) else client}
