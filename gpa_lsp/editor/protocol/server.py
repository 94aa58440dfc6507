"""The language server: pygls on one side, a session with its client on the other."""

import contextlib
import inspect
import logging
import os
import queue
import sys
import threading
from collections.abc import Callable, Mapping, MutableMapping
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from lsprotocol import types

from gpa_lsp import __version__
from gpa_lsp.editor.protocol.commands import Command, load_commands
from gpa_lsp.editor.protocol.features import Feature, RequestFeature, SessionFeature, load_features
from gpa_lsp.editor.protocol.plain_json import ArgumentsError
from gpa_lsp.editor.protocol.safe_markdown import make_shown
from gpa_lsp.editor.protocol.session import Session
from gpa_lsp.editor.protocol.wire import IncomingPipe, Protocol, PyglsServer, claim_stdout, make_converter, make_refusal
from gpa_lsp.editor.sass.library import is_sass_uri
from gpa_lsp.foundation.visible_text import make_lines_visible, make_visible

logger = logging.getLogger(__name__)


class Dispatcher:
    """Calls features and commands. One that fails takes no other with it.

    Args:
        find_session: the session, once there is one.
    """

    def __init__(self, find_session: Callable[[], Session]) -> None:
        self._find_session = find_session
        self._broken: set[str] = set()

    def register(self, pygls: PyglsServer, features: Mapping[str, Feature], commands: Mapping[str, Command]) -> None:
        """Have pygls call them."""
        for name, feature in features.items():
            if isinstance(feature, RequestFeature):
                pygls.feature(feature.method, feature.options)(self._make_handler(name, feature))
            elif isinstance(feature, SessionFeature):
                pygls.feature(feature.method, feature.options)(self._make_session_handler(name, feature))
        for name, command in commands.items():
            pygls.command(name)(self._make_command(name, command))

    def _make_handler(self, name: str, feature: RequestFeature[Any, Any]) -> Callable[[Any], Any]:
        """Make the handler of a feature of documents."""

        def answer(params: Any) -> Any:
            session, uri = self._find_session(), params.text_document.uri
            if is_sass_uri(uri):
                sass_view = session.sass.view(uri) if feature.answer_sass is not None else None
                return feature.answer_sass(sass_view, params) if sass_view and feature.answer_sass else None
            if feature.answer is None or not feature.serves_source(session.settings, session.abilities):
                return None
            view = session.view(uri)
            return feature.answer(view, params) if view is not None else None

        return lambda params: self.guard(name, lambda: make_shown(answer(params)), None)

    def hold(
        self, handlers: MutableMapping[str, Any], features: Mapping[str, Feature], can: Callable[[str], bool]
    ) -> None:
        """Have the answers wait that a client would not ask for again."""
        for name, feature in features.items():
            if isinstance(feature, RequestFeature) and feature.is_held and not can(feature.refresh_capability):
                handlers[feature.method] = self._make_held(self._make_handler(name, feature))

    def _make_held(self, answer: Callable[[Any], Any]) -> Callable[[Any], Any]:
        async def answer_later(params: Any) -> Any:
            await self._find_session().wait_for_profiles(params.text_document.uri)
            return answer(params)

        return answer_later

    def _make_session_handler(self, name: str, feature: SessionFeature[Any, Any]) -> Callable[[Any], Any]:
        """Make the handler of a feature of the session."""

        def answer(params: Any) -> Any:
            return self.guard(name, lambda: make_shown(feature.answer(self._find_session(), params)), None)

        async def answer_later(params: Any) -> Any:
            try:
                return make_shown(await feature.answer(self._find_session(), params))
            except Exception:
                return self._tell_broken(name)

        return answer_later if inspect.iscoroutinefunction(feature.answer) else answer

    def _make_command(self, name: str, command: Command) -> Callable[..., Any]:
        """Make the handler of a command."""

        async def run(*arguments: Any) -> Any:
            try:
                result = command(self._find_session(), arguments)
                return make_shown(await result if inspect.isawaitable(result) else result)
            except ArgumentsError as error:
                raise make_refusal(f"{name}: {error}") from error
            except Exception:
                return self._tell_broken(name)

        return run

    def guard(self, name: str, function: Callable[[], Any], default: Any) -> Any:
        """Call something that may fail; it is logged each time and shown once."""
        try:
            return function()
        except Exception:
            self._tell_broken(name)
            return default

    def _tell_broken(self, name: str) -> None:
        """Log the exception that is being handled, and say once that there was one."""
        logger.exception("%s failed", name)
        if name not in self._broken:
            self._broken.add(name)
            self._find_session().client.warn(f"{name} failed; see the log of the language server")


MOST_WAITING_RECORDS = 1000  # Of lines nobody reads. Later ones are dropped.

_LONGEST_RECORD_CHARS = 20_000


class PatientHandler(logging.Handler):
    """Writes records from a thread of its own.

    Args:
        descriptor: where to; it stays the caller's.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._waiting: queue.Queue[bytes | None] = queue.Queue(MOST_WAITING_RECORDS)
        self._thread = threading.Thread(target=self._write, daemon=True, name="log")
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record some time, or never."""
        try:
            text = self.format(record)
        except Exception:  # a record that cannot be formatted is a bug, but none that may stop the server
            text = f"a record of {record.name} cannot be written"
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(f"{text[:_LONGEST_RECORD_CHARS]}\n".encode(errors="backslashreplace"))

    def close(self) -> None:
        """Write what is left, for a moment."""
        with contextlib.suppress(queue.Full):
            self._waiting.put_nowait(None)
            self._thread.join(timeout=0.5)
        super().close()

    def _write(self) -> None:
        with contextlib.suppress(OSError):
            while (line := self._waiting.get()) is not None:
                view = memoryview(line)
                while view:
                    view = view[os.write(self._descriptor, view) :]


class VisibleFormatter(logging.Formatter):
    """A message is one line, whatever it quotes: stderr may be a terminal. Only the trace of an error takes more."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the name that logging calls
        """The line of the message."""
        return make_visible(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """The line, and the trace of an error."""
        return make_lines_visible(super().format(record))


def start_log() -> None:
    """Send warnings and errors to stderr."""
    handler = PatientHandler(2)
    handler.setFormatter(VisibleFormatter("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])


class Server:
    """Hands what the client sends to its session, which begins with its first request: before that, :class:`Protocol` refuses everything else."""

    def __init__(self) -> None:
        self.pygls = PyglsServer(
            "gpa-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
            converter_factory=make_converter,
        )
        self.protocol = cast(Protocol, self.pygls.protocol)
        self._session: Session | None = None
        self._features = load_features()
        self._dispatcher = Dispatcher(lambda: self.session)
        self._register()

    @property
    def session(self) -> Session:
        """The session with the client."""
        assert self._session is not None, "nothing else is taken before the first request"
        return self._session

    @property
    def was_shut_down(self) -> bool:
        """The client left in good order."""
        return self._session is not None and self._session.has_ended

    def _register(self) -> None:
        self.pygls.feature(types.INITIALIZE)(
            partial(self._meet)
        )  # pygls hangs attributes on it, which bound methods refuse
        for method, handler in (
            (types.INITIALIZED, Session.start),
            (types.SHUTDOWN, Session.shut_down),
            (types.TEXT_DOCUMENT_DID_OPEN, Session.open),
            (types.TEXT_DOCUMENT_DID_CHANGE, Session.change),
            (types.TEXT_DOCUMENT_DID_CLOSE, Session.close),
            (types.TEXT_DOCUMENT_DID_SAVE, Session.save),
            (types.WORKSPACE_DID_CHANGE_CONFIGURATION, Session.change_configuration),
            (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, Session.change_folders),
            (types.WINDOW_WORK_DONE_PROGRESS_CANCEL, Session.cancel_progress),
            (types.WORKSPACE_TEXT_DOCUMENT_CONTENT, Session.read_content),
        ):
            self.pygls.feature(method)(self._pass_on(handler))
        self._dispatcher.register(self.pygls, self._features, load_commands())

    def _pass_on(self, handler: Callable[[Session, Any], Any]) -> Callable[[Any], Any]:
        """Make a function that passes a message to the session; pygls asks a function whether it is a coroutine function."""

        async def handle_later(params: Any) -> Any:
            return await handler(self.session, params)

        return handle_later if inspect.iscoroutinefunction(handler) else lambda params: handler(self.session, params)

    def _meet(self, params: types.InitializeParams) -> None:
        """The client's first request."""
        workspace = self.pygls.workspace
        root = None if params.workspace_folders else workspace.root_path
        session = Session(
            self.protocol,
            params,
            units=workspace.position_codec,
            list_folders=lambda: tuple(folder.uri for folder in workspace.folders.values()),
            root=None if root is None else Path(root),
            features=self._features,
            guard=self._dispatcher.guard,
        )
        self.protocol.amend, self.protocol.lose = session.amend, session.lose
        self._session = session
        self._dispatcher.hold(self.protocol.fm.features, self._features, session.can)


def serve_client() -> int:
    """Serve one client over stdin and stdout until it leaves."""
    start_log()
    server = Server()
    server.pygls.incoming = IncomingPipe(sys.stdin.buffer)
    server.pygls.start_io(stdin=cast(BinaryIO, server.pygls.incoming), stdout=cast(BinaryIO, claim_stdout()))
    return 0 if server.was_shut_down else 1
