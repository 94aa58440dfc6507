"""pygls, mended: what it leaves unanswered is answered, edits are ours to apply, and a client that does not read does not stop the server.

With :mod:`gpa_lsp.lsp.server` the only module that speaks pygls.
"""

import io
import logging
import os
import queue
import signal
import threading
from collections.abc import Callable, Generator
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException, PyglsError
from pygls.lsp.server import LanguageServer
from pygls.protocol import LanguageServerProtocol, lsp_method
from pygls.protocol.json_rpc import JsonRPCNotification

logger = logging.getLogger(__name__)

MOST_WAITING_BYTES = 64 << 20
"""Of messages the client has not read. One that is so far behind will not come back, and memory is not ours to waste on it."""


class Protocol(LanguageServerProtocol):
    """pygls' protocol, which leaves a request with malformed params unanswered and its own requests waiting for ever on a malformed answer."""

    amend: Callable[[types.ServerCapabilities], None] | None = None
    """Changes what the server says it can do, before it is said."""

    def structure_message(self, data: dict[str, Any]) -> Any:
        """A message from its JSON; what cannot be read is answered at once."""
        try:
            return super().structure_message(data)
        except JsonRpcException as error:
            message_id = data.get("id")
            if not isinstance(message_id, int | str):
                raise
            if "method" in data:
                self._send_response(message_id, error=error.to_response_error())
            else:
                self._handle_response(message_id, error=error.to_response_error())
            return JsonRPCNotification(method="$/malformed", jsonrpc=self.VERSION, params=None)

    @lsp_method(types.INITIALIZE)
    def lsp_initialize(self, params: types.InitializeParams) -> Generator[Any, Any, types.InitializeResult]:
        """The first request."""
        result = yield from super().lsp_initialize(params)
        if self.amend is not None:
            self.amend(result.capabilities)
        return result

    @lsp_method(types.TEXT_DOCUMENT_DID_OPEN)
    def lsp_text_document__did_open(self, params: types.DidOpenTextDocumentParams) -> Generator[Any, Any, None]:
        """The texts of documents are kept by us."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_OPEN, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CHANGE)
    def lsp_text_document__did_change(self, params: types.DidChangeTextDocumentParams) -> Generator[Any, Any, None]:
        """The texts of documents are kept by us."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_CHANGE, params)

    @lsp_method(types.TEXT_DOCUMENT_DID_CLOSE)
    def lsp_text_document__did_close(self, params: types.DidCloseTextDocumentParams) -> Generator[Any, Any, None]:
        """The texts of documents are kept by us."""
        yield from self._pass_on(types.TEXT_DOCUMENT_DID_CLOSE, params)

    def _pass_on(self, method: str, params: Any) -> Generator[Any, Any, None]:
        handler = self.fm.features.get(method)
        if handler is not None:
            yield handler, (params,), None


class PyglsServer(LanguageServer):
    """Errors go to the log: the features' own are told to the user, and the client's own mistakes are not the user's."""

    def report_server_error(self, error: Exception, source: type[PyglsError] | type[JsonRpcException]) -> None:
        """Log it."""
        logger.error("%s: %s", source.__name__, error)


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
        """It is."""
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
        """Nothing is held back."""

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
