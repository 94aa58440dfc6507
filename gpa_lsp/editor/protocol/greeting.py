"""The answer to ``initialize``, said from memory while the server is still being imported.

The protocol's five hundred classes take twice as long to import as numpy. What the server says it can do depends on nothing but its own files, the
client's capabilities and the client's options, so an answer that was given once is kept, and given again before anything is imported. The server
still handles the request when it is there: it compares its own answer with what was said, and what differs is said right the next time.
"""

import hashlib
import importlib.util
import json
import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder, identify_program

_LOG = logging.getLogger(__name__)

_LIMIT_BYTES = 1 << 20
_LONGEST_HEADER_BYTES = 8192
_LONGEST_REQUEST_BYTES = 1 << 20

# The members of the params that change nothing in the answer, and what they must be for the server to take the request
_SHAPES: Mapping[str, tuple[type, ...]] = {
    "processId": (int, type(None)),
    "clientInfo": (dict, type(None)),
    "locale": (str, type(None)),
    "rootPath": (str, type(None)),
    "rootUri": (str, type(None)),
    "trace": (str, type(None)),
    "workDoneToken": (str, int, type(None)),
}


class Greeting:
    """The first exchange with a client.

    Args:
        stream: the client's messages.
        write: takes the bytes of an answer.

    Attributes:
        heard: what was read from the stream, for the server to read again.
    """

    def __init__(self, stream: BinaryIO, write: Callable[[bytes], None]) -> None:
        self.heard = b""
        self._said: Any = None
        self._key: str | None = None
        self._files = KeptFiles(find_cache_folder() / "greetings", limit_bytes=_LIMIT_BYTES)
        request = self._hear(stream)
        self._key = None if request is None else _make_key(request["params"])
        kept = None if self._key is None else self._files.load(self._key)
        if request is None or kept is None:
            return
        try:
            self._said = json.loads(kept)
        except ValueError:
            return
        body = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": self._said}).encode()
        write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def settle(self, answer: Any) -> bool:
        """The server's own answer, as JSON, is ready."""
        if answer != self._said:
            if self._said is not None:
                _LOG.error("the server can do something else than was said at first; restart it")
            if self._key is not None:
                self._files.store(self._key, json.dumps(answer).encode())
                self._files.trim()
        return self._said is not None

    def _hear(self, stream: BinaryIO) -> Any:
        """The first message if it is a sound request to initialize; None for everything else, which is for the server to refuse."""
        length = 0
        while (line := stream.readline(_LONGEST_HEADER_BYTES)).strip() and len(self.heard) < _LONGEST_HEADER_BYTES:
            self.heard += line
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length" and value.strip().isdigit():
                length = int(value)
        self.heard += line
        if not 0 < length <= _LONGEST_REQUEST_BYTES:
            return None
        body = stream.read(length)
        self.heard += body
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            return None
        return message if _is_sound(message) else None


def greet(stream: BinaryIO) -> Greeting:
    """Hear the client's first message, and answer it on standard output if the answer is known."""
    return Greeting(stream, _write_all)


def _write_all(answer: bytes) -> None:
    while answer:
        answer = answer[os.write(1, answer) :]


def _is_sound(message: Any) -> bool:
    """Whether the server will take the request, as far as it does not depend on what the answer depends on."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0" or message.get("method") != "initialize":
        return False
    params, message_id = message.get("params"), message.get("id")
    if not isinstance(params, dict) or not isinstance(message_id, int | str) or isinstance(message_id, bool):
        return False
    folders = params.get("workspaceFolders") or []
    return all(isinstance(params.get(name), kinds) for name, kinds in _SHAPES.items()) and (
        isinstance(folders, list)
        and all(
            isinstance(one, dict) and all(isinstance(one.get(name), str) for name in ("uri", "name")) for one in folders
        )
    )


def _make_key(params: Mapping[str, Any]) -> str | None:
    program = identify_program()
    if program is None:
        return None
    ours = {name: value for name, value in params.items() if name not in _SHAPES and name != "workspaceFolders"}
    parts = [program, *(_identify_package(name) for name in ("pygls", "lsprotocol")), ours]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _identify_package(name: str) -> str:
    """A text that changes with a package of others."""
    spec = importlib.util.find_spec(name)
    try:
        facts = Path(spec.origin).stat() if spec is not None and spec.origin is not None else None
    except OSError:
        facts = None
    return f"{facts.st_size}.{facts.st_mtime_ns}" if facts is not None else "none"
