"""One life with one client: :class:`Session`, from its first request until it leaves; and a watch for what is found of allocations meanwhile
(:class:`AllocationWatch`). Knows nothing of how messages come and go.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from lsprotocol import types
from msgspec.structs import replace

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.jobs.background_job import Site
from gpa_lsp.editor.jobs.every_job import Jobs
from gpa_lsp.editor.jobs.verified import VerifiedFixes
from gpa_lsp.editor.lines.places import PlaceFinder
from gpa_lsp.editor.lines.positions import UnitCounter
from gpa_lsp.editor.metrics import USUAL, LineMetric, find_metric
from gpa_lsp.editor.progress import ProgressDisplay
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.document_sync import DocumentSync, Pushes
from gpa_lsp.editor.protocol.features import Feature, LateRegistrations, PushFeature, RequestFeature, withdraw
from gpa_lsp.editor.protocol.kept_choices import KeptChoices
from gpa_lsp.editor.protocol.launch_recording import LaunchRecording
from gpa_lsp.editor.protocol.loader import ProfileLoader, pin_kernels
from gpa_lsp.editor.protocol.pages import Pages
from gpa_lsp.editor.protocol.source_doubts import SourceDoubts
from gpa_lsp.editor.protocol.status import MEASURING, READING, RECORDING, Status
from gpa_lsp.editor.protocol.user_runs import Measuring, OpenQuestion, RunDisplay
from gpa_lsp.editor.protocol.wire import Protocol, read_path
from gpa_lsp.editor.sass.library import SCHEME, SassDocument, SassDocuments, is_sass_uri
from gpa_lsp.editor.settings import Abilities, HeldSettings, Settings, UnverifiedChoice, read_abilities
from gpa_lsp.editor.snapshot import MeasuredKernel, Snapshot, VisibleKernel
from gpa_lsp.editor.source.fixes import OfferedFix, list_tried
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.kernel.names import find_plain_name
from gpa_lsp.profile.collect.explain import describe_result
from gpa_lsp.profile.collect.measured_reports import find_measured_folder
from gpa_lsp.profile.collect.model import RunResult
from gpa_lsp.profile.collect.variables import Command
from gpa_lsp.report.saved.kept_allocations import EntryMark, look_at_allocations

logger = logging.getLogger(__name__)


class AllocationWatch:
    """Keeps what is shown in step with what ``gpa-lsp emulate`` and **Record Launches** keep.

    Args:
        documents: the open sources.
        refresh: lets the client ask again for what it shows.
    """

    def __init__(self, documents: Documents, refresh: Callable[[], None]) -> None:
        self._documents, self._refresh = documents, refresh
        self._marks: dict[str, EntryMark | None] = {}
        self._wake = asyncio.Event()

    def wake(self) -> None:
        """Look now: a source was opened."""
        self._wake.set()

    async def run(self, read_pause_s: Callable[[], float]) -> None:
        """Look, wait, for ever."""
        while True:
            self._wake.clear()
            try:
                await self._look()
            except Exception:  # the next look may go better
                logger.exception("looking for findings about allocations failed")
            try:
                async with asyncio.timeout(read_pause_s()):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def _look(self) -> None:
        paths = self._documents.list_open()
        for path in self._marks.keys() - paths:
            del self._marks[path]
            self._documents.note(path, allocations=None)
        for path in paths:
            mark, found = await call_in_thread(partial(look_at_allocations, path, self._marks.get(path)))
            self._marks[path] = mark
            is_news = found is not None or mark is None  # None: the cache was cleared
            if is_news and found != self._documents.find_findings(path).allocations:
                self._documents.note(path, allocations=found)
                self._refresh()


# Files that hold kernels whether a profile mentions them or not: saving one is worth a measurement
_KERNEL_SUFFIXES = frozenset({".cu", ".cuh", ".cuf"})

_SECTION = "gpaLsp"  # What the settings are called among those of the editor

_MOST_HELD_S = 12.0  # An answer waits for what is read no longer than this; editors give up after 20 s and more

_HELD_LOOK_S = 0.05

_COLUMNS = "sass.columns"  # What the chosen columns of SASS documents are called among the choices that are kept

_METRIC = "metric"  # What the metric on lines is called there

_FOLDER_DEPTH = 32
# Without a workspace folder profiles are looked for beside the document, but not in all of somebody's home
_LONE_FILE_DEPTH = 3


class Session:
    """State of one client: knowledge, views and work in progress.

    Args:
        wire: to the client.
        params: its first request.
        units: counts columns for it.
        list_folders: the URIs of its workspace folders as they are now.
        root: the folder it works in, where it has no workspace folders.
        features: of the server, by name.
        guard: calls what may fail and returns a default should it: (name, function, default).
    """

    def __init__(
        self,
        wire: Protocol,
        params: types.InitializeParams,
        *,
        units: UnitCounter,
        list_folders: Callable[[], Sequence[str]],
        root: Path | None,
        features: Mapping[str, Feature],
        guard: Callable[[str, Callable[[], Any], Any], Any],
    ) -> None:
        self.abilities: Abilities = read_abilities(params.initialization_options)
        """What the client wants."""
        self.snapshot = Snapshot()
        """What is known."""
        self.has_ended = False
        """The client has said that it leaves."""
        self._list_folders, self._root = list_folders, root
        self._lone_folder: Path | None = None
        self._guard = guard
        self.client = Client(wire, params.capabilities)
        self._held = HeldSettings()
        self._settings_sync = SettingsSync(self.client, self._held)
        self._requests = [one for one in features.values() if isinstance(one, RequestFeature)]
        self._registrations = LateRegistrations(self.client, [one for one in self._requests if one.is_conditional])
        push = {name: one for name, one in features.items() if isinstance(one, PushFeature)}
        wanted = {name: one for name, one in push.items() if one.is_wanted(self.abilities)}
        watcher = Pushes(wanted, self.client.notify, guard)
        self.units = units
        self.documents = Documents(units=units, abilities=self.abilities, watcher=watcher)
        """What is open."""
        self.sass = SassDocuments(_build_sass, units, has_links=self.abilities.links)
        """The SASS documents."""
        self.pages = Pages(self.client, is_left_to_client=self.abilities.pages)
        """The report as a page."""
        self._choices = KeptChoices()
        self.doubts = SourceDoubts(
            self.client, self.documents, self._take_choice, is_asked=self.abilities.questions, choices=self._choices
        )
        self._status = Status(self.client.notify if self.abilities.status else None)
        self.question = OpenQuestion(
            self.client, self._status, is_shown=self.abilities.status, is_beside=self.abilities.questions
        )
        self._measuring = Measuring(
            self._make_display(), is_relevant=self._is_worth_measuring, finished=self._take_measurement
        )
        self._recording = LaunchRecording(self._make_display(RECORDING), recorded=self._take_descriptions)
        self.loader = ProfileLoader(self)
        self.jobs = self._make_jobs()
        self._allocations = AllocationWatch(self.documents, self._refresh)
        self._document_sync = DocumentSync(self.documents, self.sass, self.jobs, watcher)
        self._looking: tuple[asyncio.Task[None], ...] = ()
        self._is_configured = asyncio.Event()
        self._settings_sync.begin(params.initialization_options, is_trusted=self.abilities.is_trusted)

    def _make_jobs(self) -> Jobs:
        client = self.client
        site = Site(
            documents=self.documents,
            read_snapshot=lambda: self.snapshot,
            refresh=self._refresh,
            start_progress=client.start_progress,
            make_folder=client.make_folder,
            inform=client.inform,
            warn=client.warn,
            include=self.loader.include,
            exclude=self.loader.exclude,
        )
        return Jobs(site, self._make_display(), may_leave_edits=_may_leave_edits(client), tell=self._take_verdict)

    def _make_display(self, state: str = MEASURING) -> RunDisplay:
        sends_output = self.abilities.output
        return RunDisplay(self.client, self._status, self.question, sends_output=sends_output, state=state)

    # Its life

    def amend(self, capabilities: types.ServerCapabilities) -> None:
        """Add what pygls does not say of us, and take out what is registered later for the documents it is for."""
        withdraw(capabilities, self._registrations.features)
        workspace = capabilities.workspace or types.WorkspaceOptions()
        workspace.text_document_content = types.TextDocumentContentOptions(schemes=[SCHEME])
        capabilities.workspace = workspace

    async def start(self, params: types.InitializedParams) -> None:
        """The client is ready."""
        del params
        await self._settings_sync.fetch()
        self._configure()
        self._is_configured.set()
        self.client.start(self._registrations.update(self._held.current, self.abilities))
        self.client.start(call_in_thread(_warm_up))
        loop = asyncio.get_running_loop()
        watching = self._allocations.run(lambda: self.settings.poll_seconds)
        self._looking = (loop.create_task(self.loader.run()), loop.create_task(watching))

    async def shut_down(self, params: None) -> None:
        """The client's last request."""
        del params
        self.has_ended = True
        for task in self._looking:
            task.cancel()
        await self._measuring.leave()
        await self._recording.leave()
        await self.jobs.leave()
        await self.pages.leave()
        self.client.leave()

    # Settings

    async def change_configuration(self, params: types.DidChangeConfigurationParams) -> None:
        """The user changed settings."""
        await self._settings_sync.change(params.settings)
        self._configure()
        self.client.start(self._registrations.update(self._held.current, self.abilities))
        self.take_snapshot(self.snapshot)

    def change_folders(self, params: types.DidChangeWorkspaceFoldersParams) -> None:
        """Folders came or went."""
        del params
        self._configure()

    def _configure(self) -> None:
        roots, max_depth = choose_roots(self._list_folders(), self._root, self._lone_folder)
        self._choices.configure(roots)
        self._document_sync.folder = roots[0] if roots else None
        self._show_columns(self._choices.read_names(_COLUMNS))
        self._show_metric(find_metric(next(iter(self._choices.read_names(_METRIC) or ()), USUAL.name)))
        measured = (find_measured_folder(root).as_posix() for root in roots)
        globs = tuple(f"{folder}/*{suffix}" for folder in measured for suffix in (".ncu-rep", ".ncu-repz"))
        watched = replace(self._held.current, profile_globs=(*self._held.current.profile_globs, *globs))
        self.loader.configure(roots, watched, max_depth=max_depth, may_ask_git=self._held.is_trusted)
        self.client.start(self.doubts.configure(roots[0] if roots else None))
        self._measuring.configure(self._held.current, roots, is_trusted=self._held.is_trusted)
        self._recording.configure(self._held.current, roots, is_trusted=self._held.is_trusted)
        self.jobs.configure(self._held.current, roots, is_trusted=self._held.is_trusted)

    def _tell_doubts(self) -> None:
        is_decided = self._held.current.unverified_lines is not UnverifiedChoice.FITTING
        self.client.start(self.doubts.tell(is_decided=is_decided))

    def _take_choice(self, choice: UnverifiedChoice) -> None:
        """The user chose what is shown of sources that may have changed."""
        self._held.choose_unverified(choice)
        self.take_snapshot(self.snapshot)

    def show_all_hints(self, is_wanted: bool | None) -> bool:
        """Every hint instead of as many as a screen bears, or the other way round."""
        self._held.show_all_hints(not self.settings.shows_all_hints if is_wanted is None else is_wanted)
        self.take_snapshot(self.snapshot)
        return self.settings.shows_all_hints

    # Measuring

    def save(self, params: types.DidSaveTextDocumentParams) -> None:
        """A document was saved."""
        self._document_sync.save(params.text_document.uri)
        path = read_path(params.text_document.uri)
        if path is not None:
            self._measuring.saved(Path(path), self._choose_kernel(path))

    def _is_worth_measuring(self, file: Path) -> bool:
        is_kernel = file.suffix.lower() in _KERNEL_SUFFIXES and self._measuring.contains(file)
        return is_kernel or os.path.realpath(file) in self.snapshot.by_file

    def _choose_kernel(self, path: str) -> str | None:
        """The longest kernel with lines in a file, by the name its source has; None when none is known."""
        kernels = self.snapshot.by_file.get(os.path.realpath(path), ())
        return find_plain_name(kernels[0].kernel.report.name) if kernels else None

    def _take_descriptions(self, descriptions: Sequence[Path]) -> None:
        for description in descriptions:
            self.jobs.described(description)

    def _take_measurement(self, result: RunResult) -> None:
        has_failed = not (result.is_success or result.is_cancelled)
        self._status.fail(describe_result(result) if has_failed else "")
        if result.report is not None:
            self.loader.expect(result.report)

    # Documents

    def open(self, params: types.DidOpenTextDocumentParams) -> None:
        """A document was opened."""
        path = self._document_sync.open(params.text_document)
        if path is None:
            return
        self._tell_doubts()
        self.loader.put_first(self.documents.list_open()[::-1])
        self._allocations.wake()
        self._look_ahead()
        if self._lone_folder is None:
            self._lone_folder = path.parent
            if self._root is None and not self._list_folders():
                self._configure()

    def change(self, params: types.DidChangeTextDocumentParams) -> None:
        """A document was edited."""
        self._document_sync.change(params.text_document, params.content_changes)

    def close(self, params: types.DidCloseTextDocumentParams) -> None:
        """A document was closed."""
        self._document_sync.close(params.text_document.uri)

    def _take_verdict(self, offered: OfferedFix) -> None:
        """The compiler has said something of a fix: advice promises no more than that."""
        view = self.documents.view(offered.uri)
        if view is not None:
            kernel = offered.fix.shown.kernel.report.mangled_name
            self.client.start(self.loader.hold(list_tried(view, kernel, self.fixes.find_verdicts)))

    def _look_ahead(self) -> None:
        """Try the edits of what the document promises that was opened last."""
        uri = self.documents.newest
        view = None if uri is None else self.documents.view(uri)
        if view is not None:
            self.fixes.look_ahead(view)

    def lose(self, uri: str) -> None:
        """The client changed a document in a way we do not understand: nothing is said of it until it is opened again."""
        logger.warning("a change of %s could not be read; it is left alone until it is opened again", uri)
        self._document_sync.close(uri)

    def read_content(self, params: types.TextDocumentContentParams) -> types.TextDocumentContentResult:
        """The text of a SASS document."""
        document = self._guard("SASS document", lambda: self.sass.make(params.uri), None)
        text = document.text if document is not None else "// No loaded profile has this kernel.\n"
        return types.TextDocumentContentResult(text=text)

    # What the loader tells (its Audience)

    def take_snapshot(self, snapshot: Snapshot) -> None:
        """Show a new snapshot."""
        self.snapshot = snapshot
        self._status.take(snapshot)
        self.jobs.predictions.take_gpu(snapshot.find_gpu())
        self.documents.take(snapshot, self._held.current)
        for uri in self.sass.take(snapshot.visible, self._held.current, self.documents.places):
            self.client.say_changed(uri)
        self._document_sync.tell_of_sass()
        self._tell_doubts()
        self._refresh()
        self._look_ahead()

    def _show_columns(self, names: Sequence[str] | None) -> None:
        for uri in self.sass.choose_columns(names):
            self.client.say_changed(uri)

    def _show_metric(self, metric: LineMetric) -> None:
        if metric == self._held.current.metric:
            return
        self._held.choose_metric(metric)
        self._status.show_metric(metric)
        if self.snapshot.generation:
            self.take_snapshot(self.snapshot)

    def _refresh(self) -> None:
        """Let the client ask again for what it shows."""
        asking = ((one.refresh_method, one.refresh_capability) for one in self._requests)
        self.client.refresh([(method, capability) for method, capability in asking if method])

    def cancel_progress(self, params: types.WorkDoneProgressCancelParams) -> None:
        """The user ended something by its bar."""
        self.client.cancel_progress(params.token)

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        return self._status.watch(READING, self.client.start_progress(title, cancel))

    def warn(self, text: str) -> None:
        """Show a warning."""
        self.client.warn(text)

    # What features and commands may ask and do (its SessionView, and more)

    @property
    def settings(self) -> Settings:
        """The options."""
        return self._held.current

    @property
    def places(self) -> PlaceFinder:
        """Finds measured places."""
        return self.documents.places

    def view(self, uri: str) -> DocumentView | None:
        """The view of an open source."""
        return self.documents.view(uri)

    def can(self, capability: str) -> bool:
        """Whether the client has a capability, named by its place among them."""
        return self.client.can(capability)

    def _is_known(self, uri: str) -> bool:
        path = self.documents.find_local_path(uri)
        return path is None or path in self.snapshot.by_file or self.loader.is_settled

    async def wait_for_profiles(self, uri: str) -> None:
        """Wait until something is known of a document or everything was read, but not for long."""
        end_s = time.monotonic() + _MOST_HELD_S
        while not self._is_known(uri) and not self.has_ended and time.monotonic() < end_s:
            await asyncio.sleep(_HELD_LOOK_S)

    @property
    def fixes(self) -> VerifiedFixes:
        """Verifier of fixes."""
        return self.jobs.fixes

    def choose_columns(self, names: Sequence[str] | None) -> None:
        """Show some columns in SASS documents from now on, in this workspace."""
        self._show_columns(names)
        self._choices.keep_names(_COLUMNS, names)

    def choose_metric(self, metric: LineMetric) -> None:
        """Show a metric on lines from now on, in this workspace."""
        self._show_metric(metric)
        self._choices.keep_names(_METRIC, None if metric == USUAL else (metric.name,))

    def measure(self, uri: str | None) -> bool:
        """Run the user's command for a document, or for none."""
        path = read_path(uri) if uri is not None and not is_sass_uri(uri) else None
        kernel = self._choose_kernel(path) if path is not None else None
        return self._measuring.measure_now(None if path is None else Path(path), kernel)

    async def record_launches(self, uri: str | None, command: Command | None) -> bool:
        """Run a program and record its launches, once the settings are here."""
        await self._is_configured.wait()
        path = read_path(uri) if uri is not None and not is_sass_uri(uri) else None
        self._measuring.stop_asking()  # what the user asks for now comes first
        return self._recording.record_now(None if path is None else Path(path), command)

    def cancel_measuring(self) -> bool:
        """End the run that goes on."""
        was_running = self._measuring.is_running or self._recording.is_running or self.jobs.times.is_process_busy
        self.jobs.times.cancel()
        self._measuring.cancel()
        self._recording.cancel()
        return was_running

    def set_trust(self, is_trusted: bool) -> None:
        """The user trusts the workspace, or does not any more."""
        self._held.set_trust(is_trusted)
        self._configure()

    async def pin(self, kernels: Sequence[MeasuredKernel], *, is_pinned: bool) -> int:
        """Make measurements the baselines of their kernels, or take the baselines away."""
        try:
            count = await call_in_thread(lambda: pin_kernels(kernels, is_pinned=is_pinned))
        except GpaError as error:
            self.client.warn(str(error))
            return 0
        await self.loader.look_back()
        return count


def _build_sass(uri: str, shown: VisibleKernel, columns: Sequence[str] | None) -> SassDocument:
    from gpa_lsp.editor.sass.document import build_document  # needs numpy, which a start must not wait for

    return build_document(uri, shown, columns)


def _warm_up() -> None:
    """Import and read what the first answers need while the first results are being made."""
    from gpa_lsp.code.binary.opcodes import describe_words
    from gpa_lsp.document import markdown, roofline_text  # noqa: F401
    from gpa_lsp.editor.source import actions  # noqa: F401

    describe_words("LDG")  # reads them all


def _may_leave_edits(client: Client) -> bool:
    """The client asks for what an action lacks when it is looked at, and gives back what it was named by."""
    resolved = client.read("text_document.code_action.resolve_support.properties")
    return "edit" in (resolved or ()) and client.can("text_document.code_action.data_support")


class SettingsSync:
    """Hands on what comes, asks for what does not, and complains of values that make no sense.

    Args:
        client: the editor.
        held: the settings as they came to be.
    """

    def __init__(self, client: Client, held: HeldSettings) -> None:
        self.client = client
        self._held = held
        self._complaints: tuple[str, ...] = ()

    def begin(self, initialization_options: object, *, is_trusted: bool) -> None:
        """The first thing the client says."""
        self._complain(self._held.begin(initialization_options, is_trusted=is_trusted))

    async def fetch(self) -> None:
        """Ask a client that can be asked."""
        if not self.client.can("workspace.configuration"):
            return
        item = types.ConfigurationItem(section=_SECTION)
        answer = await self.client.ask(types.WORKSPACE_CONFIGURATION, types.ConfigurationParams(items=[item]))
        if isinstance(answer, list | tuple) and answer:
            self._complain(self._held.take(answer[0], is_whole=True))

    async def change(self, sent: Any) -> None:
        """The client says that something changed: what, or nothing at all."""
        if isinstance(sent, dict) and _SECTION in sent:
            self._complain(self._held.take(sent[_SECTION]))
        else:
            await self.fetch()

    def _complain(self, complaints: tuple[str, ...]) -> None:
        """Warn of what the client did not say the last time: many send their settings at the start, and are asked for them, too."""
        for complaint in complaints:
            if complaint not in self._complaints:
                self.client.warn(complaint)
        self._complaints = complaints


def choose_roots(
    folder_uris: Iterable[str], lone_root: Path | None, lone_folder: Path | None
) -> tuple[tuple[Path, ...], int]:
    """The folders, and how deep profiles are looked for in them.

    >>> roots, depth = choose_roots([], None, Path("/home/me"))
    >>> [root.as_posix() for root in roots], depth
    (['/home/me'], 3)
    """
    folders = (read_path(uri) for uri in folder_uris)
    roots = tuple(Path(folder) for folder in folders if folder is not None)
    if not roots and lone_root is not None:
        roots = (lone_root,)
    if roots:
        return roots, _FOLDER_DEPTH
    return () if lone_folder is None else (lone_folder,), _LONE_FILE_DEPTH
