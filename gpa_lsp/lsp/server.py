"""The language server: the client on one side, features and the loader on the other."""

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

from lsprotocol import types
from pygls.workspace import PositionCodec

import gpa_lsp.lsp.commands
import gpa_lsp.lsp.features
from gpa_lsp import __version__
from gpa_lsp.collect.model import RunResult
from gpa_lsp.errors import GpaError
from gpa_lsp.lsp.abilities import Abilities, read_abilities
from gpa_lsp.lsp.commands import Command
from gpa_lsp.lsp.dispatch import Dispatcher
from gpa_lsp.lsp.document_sync import DocumentSync
from gpa_lsp.lsp.document_view import DocumentView
from gpa_lsp.lsp.documents import Documents
from gpa_lsp.lsp.doubts import Doubts
from gpa_lsp.lsp.editor import Editor, Wire
from gpa_lsp.lsp.features import Feature, PushFeature, RequestFeature
from gpa_lsp.lsp.held_settings import HeldSettings
from gpa_lsp.lsp.incoming import IncomingPipe
from gpa_lsp.lsp.late_imports import build_sass, warm_up
from gpa_lsp.lsp.loader import ProfileLoader, ProgressDisplay, call_in_thread
from gpa_lsp.lsp.measure_desk import MeasureDesk, choose_options, watch_measured
from gpa_lsp.lsp.measure_on_save import Measuring
from gpa_lsp.lsp.pages import Pages
from gpa_lsp.lsp.past import pin_kernels
from gpa_lsp.lsp.places import PlaceFinder
from gpa_lsp.lsp.positions import UnitCounter
from gpa_lsp.lsp.predicted_show import PredictedShow
from gpa_lsp.lsp.registrations import LateRegistrations, withdraw
from gpa_lsp.lsp.sass.library import SassDocuments, is_sass_uri
from gpa_lsp.lsp.sass.model import SCHEME
from gpa_lsp.lsp.server_log import start_log
from gpa_lsp.lsp.session import Snapshot, VisibleKernel
from gpa_lsp.lsp.settings import Settings
from gpa_lsp.lsp.settings_sync import SettingsSync
from gpa_lsp.lsp.source_show import SourceShow
from gpa_lsp.lsp.status import READING, Status
from gpa_lsp.lsp.uris import read_path
from gpa_lsp.lsp.wire import Protocol, PyglsServer, claim_stdout, make_converter
from gpa_lsp.lsp.workspace_roots import choose_roots
from gpa_lsp.registry import load_catalogue
from gpa_lsp.report.names import find_plain_name

logger = logging.getLogger(__name__)

_KERNEL_SUFFIXES = frozenset({".cu", ".cuh", ".cuf"})
"""Files that hold kernels whether a profile mentions them or not: saving one is worth a measurement."""


class Server:
    """One session with one client."""

    def __init__(self) -> None:
        self.pygls = PyglsServer(
            "gpa-lsp",
            __version__,
            text_document_sync_kind=types.TextDocumentSyncKind.Incremental,
            protocol_cls=Protocol,
            converter_factory=make_converter,
        )
        protocol = cast(Protocol, self.pygls.protocol)
        protocol.amend, protocol.lose = self._amend, self._lose
        self.was_shut_down = False
        self._features: dict[str, Feature] = load_catalogue(gpa_lsp.lsp.features, "FEATURE", Feature)
        self._snapshot = Snapshot()
        self._held = HeldSettings()
        self._abilities = Abilities()
        self._lone_folder: Path | None = None
        self._lone_root: Path | None = None
        self._dispatcher = Dispatcher(self, self.warn)
        self._editor = self._meet_client(types.ClientCapabilities(), PositionCodec())
        self._loader = ProfileLoader(self)
        self._loading: asyncio.Task[None] | None = None
        self._register()

    def _register(self) -> None:
        for method, handler in (
            (types.INITIALIZE, self._initialize),
            (types.INITIALIZED, self._start),
            (types.SHUTDOWN, self._shut_down),
            (types.TEXT_DOCUMENT_DID_OPEN, self._open),
            (
                types.TEXT_DOCUMENT_DID_CHANGE,
                lambda params: self._document_sync.change(params.text_document, params.content_changes),
            ),
            (types.TEXT_DOCUMENT_DID_CLOSE, lambda params: self._document_sync.close(params.text_document.uri)),
            (types.TEXT_DOCUMENT_DID_SAVE, self._save),
            (types.WORKSPACE_DID_CHANGE_CONFIGURATION, self._change_configuration),
            (types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS, lambda params: self._configure_loader()),
            (types.WINDOW_WORK_DONE_PROGRESS_CANCEL, lambda params: self._editor.cancel_progress(params.token)),
            (types.WORKSPACE_TEXT_DOCUMENT_CONTENT, self._read_content),
        ):
            self.pygls.feature(method)(partial(handler))  # pygls hangs attributes on it, which bound methods refuse
        commands: dict[str, Command] = load_catalogue(gpa_lsp.lsp.commands, "COMMAND", Command)
        self._dispatcher.register(self.pygls, self._features, commands.values())

    # The life of the session

    def _initialize(self, params: types.InitializeParams) -> None:
        self._abilities = read_abilities(params.initialization_options)
        self._editor = self._meet_client(params.capabilities, self.pygls.workspace.position_codec)
        root = self.pygls.workspace.root_path
        if not params.workspace_folders and root is not None:
            self._lone_root = Path(root)
        self._settings_sync.begin(params.initialization_options, is_trusted=self._abilities.is_trusted)

    def _meet_client(self, capabilities: types.ClientCapabilities, units: UnitCounter) -> Editor:
        editor = Editor(cast(Wire, self.pygls.protocol), capabilities)
        push = ((name, one) for name, one in self._features.items() if isinstance(one, PushFeature))
        pushing = {name: feature for name, feature in push if feature.is_wanted(self._abilities)}
        self._documents = Documents(
            units=units,
            abilities=self._abilities,
            push_features=pushing,
            send=editor.notify,
            guard=self._dispatcher.guard,
        )
        self._pages = Pages(editor)
        self._sass = SassDocuments(build_sass, units)
        self._registrations = LateRegistrations(editor, ())
        self._doubts = Doubts(editor.inform)
        self._status = Status(editor.notify if self._abilities.status else None)
        desk = MeasureDesk(editor, self._status, sends_output=self._abilities.output, finished=self._take_measurement)
        self._measuring = Measuring(desk, is_relevant=self._is_worth_measuring)
        self._sources = SourceShow(self._documents, editor, units, self._refresh)
        self._settings_sync = SettingsSync(editor, self._held)
        self._document_sync = DocumentSync(self._documents, self._sass, self._sources)
        return editor

    def _amend(self, capabilities: types.ServerCapabilities) -> None:
        """What pygls does not say of us, and what is better said later, for the documents it is for."""
        conditional = [one for one in self._features.values() if isinstance(one, RequestFeature) and one.is_conditional]
        self._registrations = LateRegistrations(self._editor, conditional)
        withdraw(capabilities, self._registrations.features)
        workspace = capabilities.workspace or types.WorkspaceOptions()
        workspace.text_document_content = types.TextDocumentContentOptions(schemes=[SCHEME])
        capabilities.workspace = workspace

    async def _start(self, params: Any) -> None:
        del params
        await self._settings_sync.fetch()
        self._configure_loader()
        self._editor.start(self._registrations.update(self._held.current, self._abilities))
        self._editor.start(call_in_thread(warm_up))
        self._loading = asyncio.get_running_loop().create_task(self._loader.run())

    async def _shut_down(self, params: Any) -> None:
        del params
        self.was_shut_down = True
        if self._loading is not None:
            self._loading.cancel()
        await self._measuring.leave()
        await self._sources.leave()
        self._editor.leave()

    # Settings

    async def _change_configuration(self, params: types.DidChangeConfigurationParams) -> None:
        await self._settings_sync.change(params.settings)
        self._configure_loader()
        self._editor.start(self._registrations.update(self._held.current, self._abilities))
        self.take_snapshot(self._snapshot)

    def _configure_loader(self) -> None:
        folders = (folder.uri for folder in self.pygls.workspace.folders.values())
        roots, max_depth = choose_roots(folders, self._lone_root, self._lone_folder)
        self._loader.configure(roots, watch_measured(self._held.current, roots), max_depth=max_depth)
        self._measuring.configure(choose_options(self._held.current), roots, is_trusted=self._held.is_trusted)
        self._sources.configure(self._held.current, roots, is_trusted=self._held.is_trusted)

    # Measuring

    def _save(self, params: types.DidSaveTextDocumentParams) -> None:
        self._document_sync.save(params.text_document.uri)
        path = read_path(params.text_document.uri)
        if path is not None:
            self._measuring.saved(Path(path), self._choose_kernel(path))

    def _is_worth_measuring(self, file: Path) -> bool:
        is_kernel = file.suffix.lower() in _KERNEL_SUFFIXES and self._measuring.contains(file)
        return is_kernel or os.path.realpath(file) in self._snapshot.by_file

    def _choose_kernel(self, path: str) -> str | None:
        """The longest kernel with lines in a file, by the name its source has; None when none is known."""
        kernels = self._snapshot.by_file.get(os.path.realpath(path), ())
        return find_plain_name(kernels[0].kernel.report.name) if kernels else None

    def _take_measurement(self, result: RunResult) -> None:
        if result.report is not None:
            self._loader.expect(result.report)

    # Documents

    def _open(self, params: types.DidOpenTextDocumentParams) -> None:
        path = self._document_sync.open(params.text_document)
        if path is None:
            return
        self._doubts.tell(self._documents, self._held.current)
        if self._lone_folder is None:
            self._lone_folder = path.parent
            if not self.pygls.workspace.folders and self._lone_root is None:
                self._configure_loader()

    def _lose(self, uri: str) -> None:
        """The client changed a document in a way we do not understand: nothing is said of it until it is opened again."""
        logger.warning("a change of %s could not be read; it is left alone until it is opened again", uri)
        self._document_sync.close(uri)

    def _read_content(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        document = self._dispatcher.guard("SASS document", lambda: self._sass.make(params.uri), None)
        text = document.text if document is not None else "// No loaded profile has this kernel.\n"
        return types.TextDocumentContentResult(text=text)

    # What the loader tells (its Audience)

    def take_snapshot(self, snapshot: Snapshot) -> None:
        """There is a new state of knowledge: show it."""
        self._snapshot = snapshot
        self._status.take(snapshot)
        self._documents.take(snapshot, self._held.current)
        for uri in self._sass.take(snapshot.visible, self._held.current, self._documents.places):
            self._editor.say_changed(uri)
        self._doubts.tell(self._documents, self._held.current)
        self._refresh()

    def _refresh(self) -> None:
        """Let the client ask again for what it shows."""
        asking = [feature for feature in self._features.values() if isinstance(feature, RequestFeature)]
        self._editor.refresh([(one.refresh_method, one.refresh_capability) for one in asking if one.refresh_method])

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        return self._status.watch(READING, self._editor.start_progress(title, cancel))

    def warn(self, text: str) -> None:
        """Something the user must know."""
        self._editor.warn(text)

    # What features and commands may ask and do (their Desk)

    @property
    def snapshot(self) -> Snapshot:
        """What is known."""
        return self._snapshot

    @property
    def settings(self) -> Settings:
        """The options."""
        return self._held.current

    @property
    def abilities(self) -> Abilities:
        """What the client wants."""
        return self._abilities

    @property
    def places(self) -> PlaceFinder:
        """Finds measured places."""
        return self._documents.places

    @property
    def sass(self) -> SassDocuments:
        """The SASS documents."""
        return self._sass

    def view(self, uri: str) -> DocumentView | None:
        """The view of an open source."""
        return self._documents.view(uri)

    @property
    def pages(self) -> Pages:
        """The report as a page."""
        return self._pages

    @property
    def predictions(self) -> PredictedShow:
        """What was emulated of open sources."""
        return self._sources.predictions

    def reload(self) -> None:
        """Read every profile again."""
        self._loader.reload()

    def show_document(self, title: str, markdown: str) -> None:
        """Open a text in the editor."""
        self._editor.show_document(title, markdown)

    def show_location(self, location: types.Location) -> None:
        """Put the cursor there."""
        self._editor.show_location(location)

    def show_message(self, text: str) -> None:
        """Say a sentence."""
        self._editor.inform(text)

    def measure(self, uri: str | None) -> bool:
        """Run the user's command for a document, or for none."""
        path = read_path(uri) if uri is not None and not is_sass_uri(uri) else None
        kernel = self._choose_kernel(path) if path is not None else None
        self._measuring.measure_now(None if path is None else Path(path), kernel)
        return self._held.is_trusted and self._held.current.profile_command is not None

    def cancel_measuring(self) -> bool:
        """End the run that goes on."""
        was_measuring = self._measuring.is_measuring
        self._measuring.cancel()
        return was_measuring

    def set_trust(self, is_trusted: bool) -> None:
        """The user trusts the workspace, or does not any more."""
        self._held.set_trust(is_trusted)
        self._configure_loader()

    async def pin(self, kernels: Sequence[VisibleKernel], *, is_pinned: bool) -> int:
        """Make the shown measurements of some kernels their baselines, or take the baselines away."""
        measured = [shown.kernel for shown in kernels]
        try:
            count = await call_in_thread(lambda: pin_kernels(measured, is_pinned=is_pinned))
        except GpaError as error:
            self._editor.warn(str(error))
            return 0
        await self._loader.look_back()
        return count


def serve_client() -> int:
    """Serve one client over stdin and stdout until it leaves.

    Returns:
        The process' exit status: 0 after an orderly shutdown, 1 when the client was simply gone.
    """
    start_log()
    server = Server()
    server.pygls.incoming = IncomingPipe(sys.stdin.buffer)
    server.pygls.start_io(stdin=cast(BinaryIO, server.pygls.incoming), stdout=cast(BinaryIO, claim_stdout()))
    return 0 if server.was_shut_down else 1
