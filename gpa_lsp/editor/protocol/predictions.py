"""What was predicted of open documents, from the editor's events to what is shown of it."""

import logging
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from lsprotocol import types
from msgspec.structs import replace

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.lines.positions import Positions, UnitCounter
from gpa_lsp.editor.model import Location, Position, Range
from gpa_lsp.editor.predicted.results import PredictedJob, PredictedResult, TrialsResult
from gpa_lsp.editor.predicted.view import PredictedState, make_state
from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.emulation_schedule import EmulationSchedule
from gpa_lsp.editor.protocol.loader import ProgressDisplay
from gpa_lsp.editor.protocol.protocol_types import make_range
from gpa_lsp.editor.settings import Settings
from gpa_lsp.editor.static.results import StaticResult
from gpa_lsp.foundation.errors import ToolError
from gpa_lsp.report.line_map import split_lines


def name_beside(folder_uri: str, path: Path) -> str:
    """The URI of a file in a folder that the client named: it may have come there by a link, and one file must not get two buffers."""
    return f"{folder_uri}/{quote(path.name)}"


def build_append(uri: str, text: str | None, addition: str, units: UnitCounter) -> types.WorkspaceEdit:
    """The edit.

    Args:
        text: what it holds; None for a file that is to be made.
    """
    if text is None:
        document = types.OptionalVersionedTextDocumentIdentifier(uri=uri, version=None)
        start = Position(0, 0)
        insertion = types.TextEdit(range=make_range(Range(start, start)), new_text=addition)
        create = types.CreateFile(uri=uri, options=types.CreateFileOptions(ignore_if_exists=True))
        return types.WorkspaceEdit(
            document_changes=[create, types.TextDocumentEdit(text_document=document, edits=[insertion])]
        )
    end = find_end(text, units)
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    insertion = types.TextEdit(range=make_range(Range(end, end)), new_text=f"{gap}{addition}")
    return types.WorkspaceEdit(changes={uri: [insertion]})


def find_end(text: str, units: UnitCounter) -> Position:
    """The place behind the last character of a text."""
    lines = split_lines(text)
    return Positions(lines=lines, units=units).find_place(len(lines), len(lines[-1]))


async def append_text(
    client: Client, uri: str, text: str | None, addition: str, *, label: str, units: UnitCounter
) -> bool:
    """Let the client make the edit and show the file; where it cannot make files, show what is to be put there.

    Args:
        text: what it holds; None where there is none.
    """
    if not can_edit(client, makes_file=text is None):
        client.show_document(label, f"```toml\n{addition}```\n")
        return False
    params = types.ApplyWorkspaceEditParams(edit=build_append(uri, text, addition, units), label=label)
    answer = await client.ask(types.WORKSPACE_APPLY_EDIT, params, limit_s=None)
    is_applied = bool(getattr(answer, "applied", False))
    if is_applied:
        end = Position(0, 0) if text is None else find_end(text, units)
        client.show_location(Location(uri=uri, range=Range(end, end)))
    return is_applied


def can_edit(client: Client, *, makes_file: bool) -> bool:
    """Whether a client takes such an edit from us. Neovim makes files and does not say that it knows changes of documents, which come with them."""
    kinds = client.read("workspace.workspace_edit.resource_operations") or ()
    return client.can("workspace.apply_edit") and (not makes_file or types.ResourceOperationKind.Create in kinds)


logger = logging.getLogger(__name__)

_TOOL = "prediction"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")


class Predictions:
    """What sources were predicted to do, for what shows it, and for commands.

    Args:
        documents: what is open.
        client: the editor.
        units: counts columns for it.
        refresh: lets the client ask again for what it shows.
    """

    def __init__(self, documents: Documents, client: Client, units: UnitCounter, refresh: Callable[[], None]) -> None:
        self._documents = documents
        self._units = units
        self._client = client
        self._refresh = refresh
        self._states: dict[str, PredictedState] = {}
        self._schedule = EmulationSchedule(self)

    def configure(self, settings: Settings, roots: Sequence[Path], *, is_trusted: bool) -> None:
        """Take settings, workspace folders, and whether the user trusts them; without trust nothing is emulated and nothing is said."""
        if not settings.emulates or not is_trusted:
            for source in list(self._states):
                self._forget(source)
        self._schedule.configure(settings, roots, self._documents.list_open(), is_trusted=is_trusted)

    def take_gpu(self, name: str | None) -> None:
        """The newest report of the workspace is of this GPU."""
        self._schedule.take_gpu(name)

    def opened(self, uri: str) -> None:
        """A document was opened, or saved."""
        path = self._documents.find_local_path(uri)
        if path is None:
            return
        for state in self._states.values():
            if path == state.launches_file.local_path:
                self._documents.take_predicted(path, state)
        self._schedule.opened(path)

    def changed(self, uri: str) -> None:
        """A document was edited. An edit that tries a block is of the description as it was: it is offered no more."""
        path = self._documents.find_local_path(uri)
        if path is None:
            return
        for source, state in list(self._states.items()):
            if path == state.launches_file.local_path and state.trials:
                self._put(source, replace(state, trials=()))
        self._schedule.changed(path)

    def described(self, description: Path) -> None:
        """Something else than the client wrote a description."""
        self._schedule.opened(str(description))

    def closed(self, uri: str) -> None:
        """A document is about to be closed."""
        path = self._documents.find_local_path(uri)
        if path is not None:
            self._forget(path)
            self._schedule.closed(path)

    def compiled(self, result: StaticResult) -> None:
        """A source was compiled, and what its code says is shown."""
        self._schedule.compiled(str(result.path), result.text, has_failed=result.has_failed or bool(result.failure))

    async def leave(self) -> None:
        """End everything."""
        await self._schedule.leave()

    # What commands ask

    def find(self, uri: str) -> PredictedState | None:
        """What was predicted of an open source, or of that which a description belongs to."""
        path = self._documents.find_local_path(uri)
        if path is None:
            return None
        described = (one for one in self._states.values() if one.launches_file.local_path == path)
        return self._states.get(path) or next(described, None)

    async def make_job(self, local_path: str) -> PredictedJob | None:
        """The texts of an open source and of its description as they are now; None where nothing of it may be emulated."""
        return await self._schedule.make_job(local_path)

    async def write_page(self, state: PredictedState) -> Path:
        """The page of a prediction, in a file that goes with the session.

        Raises:
            ToolError: it cannot be written.
        """
        name = _UNSAFE.sub("_", state.result.job.path.stem)[:60]
        path = self._client.make_folder() / f"prediction-{name}.html"
        result = await self._schedule.write_page(state.result.job, path)
        if result.failure:
            raise ToolError(_TOOL, result.failure)
        return path

    async def describe(self, uri: str, kernel: str) -> str:
        """Let the client begin the description of a kernel's launch; what was put into it.

        Raises:
            ToolError: nothing may be compiled, the source does not compile, or the process died.
        """
        path = self._documents.find_local_path(uri)
        found = None if path is None else await self._schedule.write_template(path, kernel)
        if found is None:
            raise ToolError(_TOOL, "the source is not open, or not in a trusted workspace, or emulation.enable is off")
        job, result = found
        if result.failure:
            raise ToolError(_TOOL, result.failure)
        text = self._documents.read_open(str(job.launches_path))
        text = text if text is not None else job.launches_text or None
        target = name_beside(uri.rpartition("/")[0], job.launches_path)
        await append_text(self._client, target, text, result.text, label="Describe a launch", units=self._units)
        return result.text

    # What the schedule asks and tells

    def read_open(self, local_path: str) -> str | None:
        """The text of an open file."""
        return self._documents.read_open(local_path)

    def take_predicted(self, result: PredictedResult) -> None:
        """A source was emulated; one that could not be leaves what was known."""
        if result.failure or result.has_failed:
            logger.warning("%s: not emulated: %s", result.job.path, result.failure or "it does not compile")
            return
        source = str(result.job.path)
        self._put(source, make_state(result, known=self._states.get(source)))
        self._refresh()

    def take_trials(self, result: TrialsResult) -> None:
        """Other blocks were looked for."""
        source = str(result.job.path)
        for remark in result.remarks:
            logger.info("%s: %s", source, remark)
        state = self._states.get(source)
        if state is not None and state.result.job == result.job and result.trials:
            self._put(source, replace(state, trials=result.trials))

    def start_progress(self, title: str, cancel: Callable[[], None]) -> ProgressDisplay:
        """Long work begins."""
        return self._client.start_progress(title, cancel)

    def _put(self, source: str, state: PredictedState) -> None:
        self._states[source] = state
        self._documents.take_predicted(source, state)
        self._documents.take_predicted(state.launches_file.local_path, state)

    def _forget(self, source: str) -> None:
        state = self._states.pop(source, None)
        if state is not None:
            self._documents.take_predicted(source, None)
            self._documents.take_predicted(state.launches_file.local_path, None)
