"""The end of the socket that programs talk to: :class:`RuntimeServer`. One launch runs at a time, whoever asked for it."""

import array
import logging
import selectors
import socket
import threading
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.execution.programs.messages import (
    ANSWER_HEAD,
    MOST_REQUEST_BYTES,
    REQUEST_HEAD,
    CudaError,
    MalformedMessage,
    Request,
    parse_hello,
)
from gpa_lsp.execution.programs.session import Session
from gpa_lsp.foundation.errors import GpaError

_LOG = logging.getLogger(__name__)
SOCKET_NAME = "runtime"
MOST_PATH_BYTES = 100  # Of a socket, with some to spare; Linux takes 107
_MOST_PROCESSES = 64
_TICK_S = 0.2
_SILENCE_S = 20.0  # In the middle of a request; then the process is taken for dead
_PIECE_BYTES = 1 << 20


class RuntimeServer:
    """Answers the processes of a program, until it is closed.

    Args:
        folder: private; the socket is made in it.
        open_session: makes the session of a process.

    Attributes:
        path: of the socket.
        sessions: all that there were, in order.
        failures: what went wrong between the two, a sentence each.
    """

    def __init__(self, folder: Path, open_session: Callable[[], Session]) -> None:
        self.path = folder / SOCKET_NAME
        self._open_session = open_session
        self.sessions: list[Session] = []
        self.failures: dict[str, None] = {}
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self.path))
        self._listener.listen(_MOST_PROCESSES)
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="runtime", daemon=True)

    def start(self) -> None:
        """Begin to answer, in a thread."""
        self._thread.start()

    def close(self) -> None:
        """Answer no more. A launch at work is ended."""
        self._is_closing = True
        for session in list(self.sessions):
            session.end_launches()
        self._thread.join()
        self._listener.close()
        for session in self.sessions:
            session.close()

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._is_closing:
                for key, _ in selector.select(_TICK_S):
                    if key.fileobj is self._listener:
                        self._accept(selector)
                        continue
                    session, connection = key.data
                    if not self._answer(session, connection):
                        selector.unregister(connection)
                        connection.close()
                        session.close()
            for key in list(selector.get_map().values()):
                if key.fileobj is not self._listener:
                    key.data[1].close()

    def _accept(self, selector: selectors.BaseSelector) -> None:
        connection, _ = self._listener.accept()
        if sum(not session.is_closed for session in self.sessions) >= _MOST_PROCESSES:
            self._refuse(connection, f"more than {_MOST_PROCESSES} processes asked for the GPU at once")
            return
        connection.settimeout(_SILENCE_S)
        try:
            session = self._open_session()
        except (OSError, ValueError) as error:
            self._refuse(connection, f"no device memory could be made ({error})")
            return
        self.sessions.append(session)
        selector.register(connection, selectors.EVENT_READ, (session, connection))

    def _refuse(self, connection: socket.socket, why: str) -> None:
        self.failures[f"{why}; a process had no GPU"] = None
        connection.close()

    def _answer(self, session: Session, connection: socket.socket) -> bool:
        """One request; False when the process is gone, or speaks another language."""
        try:
            head = _receive(connection, REQUEST_HEAD.size)
            if head is None:
                return False
            request, size = REQUEST_HEAD.unpack(head)
            if size > MOST_REQUEST_BYTES:
                raise MalformedMessage("a request of more than 1 GiB")
            payload = _receive(connection, size)
            if payload is None:
                return False
            if request == Request.HELLO:
                parse_hello(payload)
                facts = session.describe_device().pack()
                connection.sendall(ANSWER_HEAD.pack(CudaError.SUCCESS, len(facts)) + facts)
                files = array.array("i", [session.file])
                connection.sendmsg([b"m"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files.tobytes())])
                return True
            error, answer = session.answer(request, payload)
            connection.sendall(ANSWER_HEAD.pack(error, len(answer)) + answer)
        except OSError:
            return False
        except GpaError as failure:
            self.failures[f"the program and the emulator did not understand each other: {failure}"] = None
            return False
        except Exception as failure:  # a defect of ours costs this process its GPU, not the person the answer
            _LOG.exception("a request of the program failed")
            self.failures[f"the emulator failed ({failure!r}); please report it"] = None
            return False
        return True


def _receive(connection: socket.socket, size: int) -> bytes | None:
    """So many bytes; None when the process is gone before."""
    pieces = []
    while size > 0:
        piece = connection.recv(min(size, _PIECE_BYTES))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
