"""The language server: pygls on one side, a session with its client on the other."""

import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from lsprotocol import types

import gpa_lsp.lsp.commands
import gpa_lsp.lsp.features
from gpa_lsp import __version__
from gpa_lsp.basis.catalogue import load_catalogue
from gpa_lsp.lsp.client import Wire
from gpa_lsp.lsp.commands import Command
from gpa_lsp.lsp.dispatch import Dispatcher
from gpa_lsp.lsp.features import Feature
from gpa_lsp.lsp.greeting import Greeting
from gpa_lsp.lsp.incoming import IncomingPipe
from gpa_lsp.lsp.server_log import start_log
from gpa_lsp.lsp.session import Session
from gpa_lsp.lsp.wire import Protocol, PyglsServer, claim_stdout, make_converter


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
        self._features: dict[str, Feature] = load_catalogue(gpa_lsp.lsp.features, "FEATURE", Feature)
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
        commands: dict[str, Command] = load_catalogue(gpa_lsp.lsp.commands, "COMMAND", Command)
        self._dispatcher.register(self.pygls, self._features, commands.values())

    def _pass_on(self, handler: Callable[[Session, Any], Any]) -> Callable[[Any], Any]:
        """What has the session handle a message; pygls asks a function whether it is a coroutine's."""

        async def handle_later(params: Any) -> Any:
            return await handler(self.session, params)

        return handle_later if inspect.iscoroutinefunction(handler) else lambda params: handler(self.session, params)

    def _meet(self, params: types.InitializeParams) -> None:
        """The client's first request."""
        workspace = self.pygls.workspace
        root = None if params.workspace_folders else workspace.root_path
        session = Session(
            cast(Wire, self.protocol),
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


def serve_client(greeting: Greeting) -> int:
    """Serve one client over stdin and stdout until it leaves.

    Args:
        greeting: the first exchange with it.

    Returns:
        The process' exit status: 0 after an orderly shutdown, 1 when the client was simply gone.
    """
    start_log()
    server = Server()
    server.protocol.greeting = greeting
    server.pygls.incoming = IncomingPipe(sys.stdin.buffer, greeting.heard)
    server.pygls.start_io(stdin=cast(BinaryIO, server.pygls.incoming), stdout=cast(BinaryIO, claim_stdout()))
    return 0 if server.was_shut_down else 1
