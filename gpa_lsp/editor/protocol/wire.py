"""pygls with fixes: every request gets one response, edits are ours to apply, and a client that does not read does not stop the server.

The only module that speaks pygls. Each method that overrides one of pygls' begins with what pygls 2 does; ``tests/lsp/test_pygls.py`` shows that it
still does so, and fails where it does not any more: then the override goes.
"""

import io
import json
import logging
import os
import queue
import re
import signal
import threading
import uuid
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, BinaryIO

from lsprotocol import types
from pygls.exceptions import JsonRpcException, JsonRpcInvalidParams, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, default_converter, lsp_method
from pygls.protocol.json_rpc import JsonRPCResponseMessage
from pygls.uris import to_fs_path

logger = logging.getLogger(__name__)

_LONGEST_NAME = 100
_LARGEST_NUMBER = (1 << 31) - 1

# Of messages the client has not read. One that is so far behind will not come back, and memory is not ours to waste on it.
MOST_WAITING_BYTES = 64 << 20


def make_converter() -> Any:
    """pygls' converter takes ``true`` and 2.5 for numbers of a line, and refuses 5.0. For this one a position behind the largest line there can be
    means the end, as editors use it; a negative one means nothing.
    """
    converter = default_converter()  # type: ignore[no-untyped-call]
    converter.register_structure_hook(types.Position, lambda data, _: _read_position(data))
    return converter


def _read_position(data: Any) -> types.Position:
    line, character = data["line"], data["character"]
    for number in (line, character):
        if isinstance(number, bool) or not isinstance(number, int | float) or number != int(number):
            raise ValueError("a position has whole numbers")
    return types.Position(line=min(int(line), _LARGEST_NUMBER), character=min(int(character), _LARGEST_NUMBER))


# Of a message to the client: one that is larger is a mistake, or made from a profile that is meant to do harm
MOST_BODY_BYTES = 16 << 20


class Protocol(LanguageServerProtocol):
    """pygls' protocol. Every request gets one response, whatever is in it; what comes before ``initialize`` or after ``shutdown`` is refused, as the
    Language Server Protocol has it.
    """

    # Changes what the server says it can do, before it is said
    amend: Callable[[types.ServerCapabilities], None] | None = None

    # Told the URI of a document whose change could not be read: nobody knows its text any more
    lose: Callable[[str], None] | None = None

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        self._asked: set[int | str] = set()
        self._is_initialized = False
        self._has_started = False

    def structure_message(self, data: dict[str, Any]) -> Any:
        """pygls reads every object within a message as a message, and drops what it cannot read unanswered. Only whole messages are read here, by
        :meth:`handle_message`.
        """
        return data

    def handle_message(self, message: Any) -> None:
        """pygls handles requests before ``initialize``, and answers none after ``shutdown`` and none that is no message of JSON-RPC 2.0.
        This one takes a message as JSON, and answers each request.
        """
        if not isinstance(message, dict) or message.get("jsonrpc") != self.VERSION:
            self._refuse(message, types.ErrorCodes.InvalidRequest, "this is no message of JSON-RPC 2.0")
        elif "method" not in message:
            self._take_response(message)
        elif not isinstance(message["method"], str) or not _is_id(message.get("id", 0)):
            self._refuse(message, types.ErrorCodes.InvalidRequest, "the message has no sound method or id")
        elif self._is_welcome(message):
            self._take(message)

    def _is_welcome(self, message: dict[str, Any]) -> bool:
        """Whether it is time for a message, and there is somebody to handle it; a request that is refused is answered."""
        method = message["method"]
        if method == types.EXIT:
            return True
        if not self._is_initialized and method != types.INITIALIZE:
            self._refuse(message, types.ErrorCodes.ServerNotInitialized, "the server is not initialized")
        elif self._shutdown:
            self._refuse(message, types.ErrorCodes.InvalidRequest, "the server was shut down")
        elif self._is_initialized and method == types.INITIALIZE:
            self._refuse(message, types.ErrorCodes.InvalidRequest, "the server is initialized already")
        elif self._has_started and method == types.INITIALIZED:
            self._refuse(message, types.ErrorCodes.InvalidRequest, "the server has started already")
        elif (
            method not in self.fm.builtin_features and method not in self.fm.features and method != types.CANCEL_REQUEST
        ):
            self._refuse(message, types.ErrorCodes.MethodNotFound, f"{method[:_LONGEST_NAME]} is not served")
        else:
            return True
        return False

    def _refuse(self, message: Any, code: types.ErrorCodes, reason: str) -> None:
        """Answer what asks for an answer."""
        logger.debug("refused: %s", reason)
        is_message = isinstance(message, dict)
        if is_message and "id" not in message and "method" in message:
            return
        message_id = message.get("id") if is_message else None
        error = {"code": code.value, "message": reason}
        self._send_data({"jsonrpc": self.VERSION, "id": message_id if _is_id(message_id) else None, "error": error})

    def _take(self, message: dict[str, Any]) -> None:
        self._has_started |= message["method"] == types.INITIALIZED
        kind: Any = self.get_message_type(message["method"])
        try:
            structured = self._converter.structure(message, kind) if _is_of_kind(message, kind) else None
        except Exception:  # whatever the converter makes of what no client should send
            structured = None
        if structured is None:
            self._refuse(message, types.ErrorCodes.InvalidParams, f"the params of {message['method']} cannot be read")
            if message["method"] == types.TEXT_DOCUMENT_DID_CHANGE and self.lose is not None:
                self.lose(_find_uri(message))
            return
        super().handle_message(structured)

    def _take_response(self, message: dict[str, Any]) -> None:
        """The client's answer to a question of ours; one that comes too late, or to none, is passed over."""
        message_id = message.get("id")
        if not _is_id(message_id) or message_id not in self._asked:
            logger.debug("an answer to nothing that was asked: %r", message_id)
            return
        kind = types.ResponseErrorMessage if "error" in message else self._result_types.get(message_id)
        try:
            structured = self._converter.structure(message, kind or JsonRPCResponseMessage)
        except Exception:
            unreadable = JsonRpcInvalidParams("the answer cannot be read").to_response_error()
            self._handle_response(message_id, error=unreadable)
            return
        super().handle_message(structured)

    def send_request(
        self, method: str, params: Any = None, callback: Callable[[Any], None] | None = None, msg_id: Any = None
    ) -> Future[Any]:
        """pygls keeps what it asked until an answer comes, also when nothing waits for that any more. Here it is forgotten."""
        message_id = str(uuid.uuid4()) if msg_id is None else msg_id
        self._asked.add(message_id)
        future = super().send_request(method, params, callback, message_id)
        future.add_done_callback(lambda _: self._forget(message_id))
        return future

    def _forget(self, message_id: int | str) -> None:
        self._asked.discard(message_id)
        self._request_futures.pop(message_id, None)
        self._result_types.pop(message_id, None)

    def _execute_handler(self, msg_id: Any, handler: Any, callback: Any, args: Any = None, kwargs: Any = None) -> None:
        """pygls keeps the future of each handler of a notification for good. Here it goes when it is done."""
        super()._execute_handler(msg_id, handler, callback, args, kwargs)
        future = self._request_futures.get(msg_id)

        def forget(done: Any) -> None:
            if self._request_futures.get(msg_id) is done:
                del self._request_futures[msg_id]

        if future is not None:
            future.add_done_callback(forget)

    def _handle_cancel_notification(self, msg_id: int | str) -> None:
        """pygls lets a client cancel what the server asked. Here it cancels its own requests alone."""
        if _is_id(msg_id) and msg_id in self._request_futures and msg_id not in self._asked:
            super()._handle_cancel_notification(msg_id)

    def _send_response(self, msg_id: Any, result: Any = None, error: types.ResponseError | None = None) -> None:
        """pygls sends tracebacks to the client. Here they stand in the log alone."""
        if error is not None:
            error.data = None
        super()._send_response(msg_id, result, error)

    def _send_data(self, data: Any) -> None:
        """pygls sends nothing in place of a result that it cannot write, and NaN, which is no JSON. Here the request is answered with an error."""
        if self.writer is None:
            return
        try:
            body = json.dumps(data, default=self._serialize_message, allow_nan=False)
            if len(body) > MOST_BODY_BYTES:
                raise OverflowError(f"{len(body)} bytes are more than any editor takes")
        except Exception as error:
            logger.exception("a message cannot be written")
            message_id = getattr(data, "id", None)
            if message_id is None or hasattr(data, "method"):
                return
            internal = {
                "code": types.ErrorCodes.InternalError.value,
                "message": f"the result cannot be written: {error}",
            }
            body = json.dumps({"jsonrpc": self.VERSION, "id": message_id, "error": internal})
        self.writer.write(f"Content-Length: {len(body)}\r\n\r\n{body}".encode(self.CHARSET))

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """pygls takes any root, fails where it is no path, and offers what it derives from the features alone."""
        if params.root_uri is not None and read_path(params.root_uri) is None:
            params.root_uri = None
        if params.root_path is not None and read_path(f"file://{params.root_path}") is None:
            params.root_path = None
        result = yield from super().lsp_initialize(params)
        if self.amend is not None:
            self.amend(result.capabilities)
        self._is_initialized = True
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        """pygls keeps the text of each document, by its own counting of columns. Texts are kept by ``document_sync`` alone."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        """pygls fails at a change of a document that was not opened, before the feature is told."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        """pygls forgets the text that it kept; there is none."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_CLOSE, params)

    @lsp_method(types.SHUTDOWN)
    def lsp_shutdown(self, *args: Any) -> Generator[Any, Any, None]:
        """pygls walks through the table of requests while those that it cancels leave it, and fails when two are pending."""
        yield from self._pass_on(types.SHUTDOWN, args[0] if args else None)
        for message_id, future in list(self._request_futures.items()):
            if message_id != self.msg_id and not future.done():
                future.cancel()
        self._shutdown = True

    def _pass_on(self, method: str, params: Any) -> Generator[Any, Any, None]:
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, (params,), None


def make_refusal(reason: str) -> JsonRpcInvalidParams:
    """Make the exception by which a handler has its request answered with an error of the client's."""
    return JsonRpcInvalidParams(reason)


def _tell_refusal(record: logging.LogRecord) -> bool:
    """pygls writes a traceback for each request that a handler refuses, as if that were a fault of ours: a sentence will do."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, JsonRpcInvalidParams):
        record.exc_info, record.msg, record.args = None, "a request was refused: %s", (error.message,)
        record.levelno, record.levelname = logging.INFO, "INFO"
    return True


logging.getLogger("pygls.protocol.json_rpc").addFilter(_tell_refusal)


def _is_id(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def _is_of_kind(message: dict[str, Any], kind: Any) -> bool:
    """Whether it is a request where the protocol has one, and else a notification; "exit" is obeyed in any form."""
    return kind is not None and (hasattr(kind, "id") == ("id" in message) or message["method"] == types.EXIT)


def _find_uri(message: dict[str, Any]) -> str:
    """The document of a message that could not be read; empty when it names none."""
    value: Any = message
    for name in ("params", "textDocument", "uri"):
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


class IncomingPipe:
    """The way from the client. pygls reads headers in one spelling, and loses its way for good after a message of another length than it said; this
    finds back to the headers.

    Args:
        stream: the client's messages.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.body = b""
        """Body of the last message."""

    def readline(self) -> bytes:
        """The next header, in the one spelling pygls knows; empty at the end, and when the beginning of the next message cannot be told."""
        line = self._stream.readline(_LONGEST_HEADER_BYTES)
        match = _LENGTH.search(line)
        if match is None:
            return line
        length = int(match[1])
        if length > MOST_MESSAGE_BYTES:
            logger.error("the client announced a message of %d bytes; leaving", length)
            return b""
        return b"Content-Length: %d\r\n" % length

    def read(self, count: int) -> bytes:
        """A message's body; shorter when the client is gone."""
        self.body = self._stream.read(count)
        return self.body


class PyglsServer(LanguageServer):
    """pygls' server with errors in the log: features report their own to the user, and a client's protocol errors are none of the user's."""

    incoming: IncomingPipe | None = None  # Where messages come from

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """pygls shows errors to the user, and leaves a request that is no JSON unanswered. Here they are logged, and it is answered."""
        logger.error("%s: %s", source.__name__, error)
        if source is JsonRpcException and self.incoming is not None:
            reason = {"code": types.ErrorCodes.ParseError.value, "message": f"this is no JSON: {str(error)[:200]}"}
            message_id = find_request_id(self.incoming.body)
            self.protocol._send_data({"jsonrpc": self.protocol.VERSION, "id": message_id, "error": reason})


class OutgoingPipe(io.RawIOBase):
    """The way to the client: writes return at once, and a thread of its own does the waiting.

    pygls writes from the event loop. With a client that has stopped reading the pipe is full, and the loop would stand still: no run of the
    user's command could be ended, no end of the client noticed.

    Args:
        descriptor: of the pipe; it is ours from now on.
        give_up: called once, from the thread, when the client is gone or too far behind.
    """

    def __init__(self, descriptor: int, give_up: Callable[[], None]) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._give_up = give_up
        self._waiting: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._lock = threading.Lock()
        self._is_lost = False
        self._thread = threading.Thread(target=self._send, daemon=True, name="to the client")
        self._thread.start()

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Send bytes, in order, some time."""
        body = bytes(data)
        with self._lock:
            self._waiting_bytes += len(body)
            is_too_far_behind = self._waiting_bytes > MOST_WAITING_BYTES and not self._is_lost
            if self._is_lost or is_too_far_behind:
                self._waiting_bytes -= len(body)
            else:
                self._waiting.put(body)
        if is_too_far_behind:
            logger.error("the client has not read %d bytes; leaving", MOST_WAITING_BYTES)
            self._lose()
        return len(body)

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Send what is left, for a moment, and close."""
        if not self.closed:
            self._waiting.put(None)
            self._thread.join(timeout=0.5)
        super().close()

    def _lose(self) -> None:
        with self._lock:
            if self._is_lost:
                return
            self._is_lost = True
        self._give_up()

    def _send(self) -> None:
        try:
            while (body := self._waiting.get()) is not None:
                view = memoryview(body)
                while view:
                    view = view[os.write(self._descriptor, view) :]
                with self._lock:
                    self._waiting_bytes -= len(body)
        except OSError as error:
            logger.info("the client is gone: %s", error)
            self._lose()
        finally:
            os.close(self._descriptor)


def claim_stdout() -> OutgoingPipe:
    """The wire; whatever else prints from now on goes to the log."""
    wire = os.dup(1)
    os.dup2(2, 1)
    return OutgoingPipe(wire, give_up=_leave_at_once)


def _leave_at_once() -> None:
    """The client is gone, or as good as: end like at the end of its messages, which also ends what was started for it."""
    signal.raise_signal(signal.SIGTERM)


# No message is as long; a header that announces more is wrong, and where the next message begins is not known any more
MOST_MESSAGE_BYTES = 1 << 30

_LONGEST_HEADER_BYTES = 8192

# At the end of a line: behind a message that was longer than it said, its rest and the next header stand on one
_LENGTH = re.compile(rb"Content-Length[ \t]*:[ \t]*(\d{1,18})[ \t]*\r?\n\Z", re.IGNORECASE)

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[{]|[\]}]|[:,]|[^\s"\[\]{}:,]+', re.DOTALL)


def find_request_id(body: bytes) -> int | str | None:
    """The ``id`` of a request that could not be read, so that it can be answered all the same; None for what is no request.

    Works on what no parser takes: nested a million deep, cut off, or with a member that is no JSON.

    >>> find_request_id(b'{"jsonrpc": "2.0", "id": 7, "method": "x", "params": {"id": 8, "a": [[[')
    7
    >>> find_request_id(b'{"id": 7, "result": [}')
    """
    members: dict[bytes, bytes] = {}
    depth, key, is_value = 0, b"", False
    for match in _TOKEN.finditer(body):
        token = match[0]
        if depth == 1 and token == b":":
            is_value = True
            continue
        if depth == 1 and is_value:
            members.setdefault(key, token)
            is_value = False
        elif depth == 1 and token.startswith(b'"'):
            key = token
        depth += (token in (b"[", b"{")) - (token in (b"]", b"}"))
    found = members.get(b'"id"', b"")
    if b'"method"' not in members:
        return None
    if re.fullmatch(rb"-?\d{1,15}", found):
        return int(found)
    return found[1:-1].decode(errors="replace") if found.startswith(b'"') and b"\\" not in found else None


_LOCAL_HOST = "//localhost/"


def read_path(uri: str) -> str | None:
    """The absolute path of a ``file:`` URI; None for everything else, and for what can be no path on this system.

    >>> read_path("file:///tmp/a%20b.cu")
    '/tmp/a b.cu'
    >>> [read_path(uri) for uri in ("untitled:x", "file:///a%00b", "file://[", "file:relative", "file:///\\ud800")]
    [None, None, None, None, None]
    """
    try:
        path = to_fs_path(uri)
        if path is None or "\0" in path:
            return None
        if os.name == "posix" and path.startswith("//"):  # a host: its files are not ours to look for
            path = path[len(_LOCAL_HOST) - 1 :] if path.startswith(_LOCAL_HOST) else ""
        os.fsencode(path)
    except ValueError:
        return None
    return path if os.path.isabs(path) else None  # noqa: PTH117 - a Path could not be made of every text
