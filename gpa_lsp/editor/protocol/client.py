"""The client as an object: what it can do, and how to ask it without ever waiting for an answer that does not come."""

import asyncio
import logging
import tempfile
import uuid
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types

from gpa_lsp.editor.protocol.safe_markdown import defuse, make_shown
from gpa_lsp.editor.protocol.wire import Protocol
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.visible_text import make_visible, shorten

logger = logging.getLogger(__name__)

_ANSWER_LIMIT_S = 5.0  # Some clients never answer some requests; nothing of ours may hang on that


_REFRESH_PAUSE_S = 0.1


_LONGEST_SENTENCE = 2000


def make_sentence(text: str) -> str:
    r"""A message on one line with nothing in it that editors follow: what it quotes comes from anybody, and they make links of ``[a](b)``.

    >>> print(make_sentence("see\x1b\n[here](command:x)"))
    see\x1b\n[here] (command:x)
    """
    plain = make_visible(text).replace("](", "] (")
    return shorten(plain, _LONGEST_SENTENCE)


class Client:
    """One connected client.

    Args:
        wire: sends to it.
        capabilities: what it said it can do.
    """

    def __init__(self, wire: Protocol, capabilities: types.ClientCapabilities) -> None:
        self._wire = wire
        self._capabilities = capabilities
        self._tasks: set[asyncio.Task[Any]] = set()
        self._bars: dict[int | str, ProgressBar] = {}
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._stale: tuple[tuple[str, str], ...] = ()
        self._is_refreshing = False
        self.is_leaving = False
        """The client asked us to shut down: nothing more is sent."""

    def can(self, path: str) -> bool:
        """Whether a capability is set.

        Args:
            path: its place in the client's capabilities, e.g. ``window.work_done_progress``.
        """
        return bool(self.read(path))

    def read(self, path: str) -> Any:
        """A capability; None for one the client says nothing of."""
        value: Any = self._capabilities
        for name in path.split("."):
            value = getattr(value, name, None)
        return value

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        if not self.is_leaving:
            self._wire.notify(method, make_shown(params))

    async def ask(self, method: str, params: Any = None, *, limit_s: float | None = _ANSWER_LIMIT_S) -> Any:
        """Send a request; None when there is no answer in time, or an error.

        Args:
            limit_s: how long to wait; None for as long as a person takes.
        """
        if self.is_leaving:
            return None
        try:
            return await asyncio.wait_for(self._wire.send_request_async(method, make_shown(params)), limit_s)
        except TimeoutError:
            logger.warning("the client did not answer %s", method)
        except Exception as error:
            logger.warning("the client refused %s: %s", method, error)
        return None

    def start(self, work: Coroutine[Any, Any, Any]) -> None:
        """Let something run beside; its errors are logged."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finish)

    def refresh(self, requests: Sequence[tuple[str, str]]) -> None:
        """Let the client ask again for what it shows."""
        self._stale = tuple(requests)
        if not self._is_refreshing:
            self._is_refreshing = True
            self.start(self._refresh())

    async def _refresh(self) -> None:
        """One request at a time and after a pause.

        Neovim 0.12 does not draw new hints when anything makes it redraw between our request and our answer to the hints it then asks for; so
        nothing else may come from us in between.
        """
        while self._stale:
            requests, self._stale = self._stale, ()
            for method, capability in requests:
                if self.can(capability):
                    await asyncio.sleep(_REFRESH_PAUSE_S)
                    await self.ask(method)
        self._is_refreshing = False

    def _finish(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background work failed", exc_info=error)

    def warn(self, text: str) -> None:
        """Tell the user that something is missing."""
        self._show(types.MessageType.Warning, text)

    def inform(self, text: str) -> None:
        """Tell the user something asked for."""
        self._show(types.MessageType.Info, text)

    async def choose(
        self, text: str, actions: Sequence[str], kind: types.MessageType = types.MessageType.Info
    ) -> str | None:
        """Ask the user, however long the answer takes; None where there is none."""
        params = types.ShowMessageRequestParams(
            type=kind,
            message=f"gpa-lsp: {make_sentence(text)}",
            actions=[types.MessageActionItem(title=action) for action in actions],
        )
        answer: Any = await self.ask(types.WINDOW_SHOW_MESSAGE_REQUEST, params, limit_s=None)
        title = getattr(answer, "title", None)
        return title if title in actions else None

    async def ask_for_text(self, text: str, value: str) -> str | None:
        """A line that the user types, however long that takes; None where there is none."""
        answer = await self.ask("gpaLsp/askForText", {"text": make_sentence(text), "value": value}, limit_s=None)
        return answer if isinstance(answer, str) else None

    def _show(self, kind: types.MessageType, text: str) -> None:
        message = f"gpa-lsp: {make_sentence(text)}"
        self.notify(types.WINDOW_SHOW_MESSAGE, types.ShowMessageParams(type=kind, message=message))

    def show_document(self, title: str, markdown: str) -> str:
        """Open a text beside the sources; where the client cannot be asked to, say in which file it is.

        Returns:
            The Markdown as it was shown, for clients that would rather show it themselves.
        """
        text = defuse(markdown)
        name = "".join(character if character.isalnum() or character in "-_." else "_" for character in title)[:80]
        path = self.make_folder() / f"{name}.md"
        with atomic_write(path, errors="replace") as stream:
            stream.write(text)
        if self.can("window.show_document.support"):
            params = types.ShowDocumentParams(uri=path.as_uri(), take_focus=True)
            self.start(self.ask(types.WINDOW_SHOW_DOCUMENT, params))
        else:
            self.inform(f"{title} is in {path}")
        return text

    def make_folder(self) -> Path:
        """A folder for what is shown; it goes with the session."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="gpa-lsp-", ignore_cleanup_errors=True)
        return Path(self._folder.name)

    def show_location(self, location: types.Location) -> None:
        """Put the cursor somewhere; where the client cannot be asked to, say where that is."""
        if self.can("window.show_document.support"):
            params = types.ShowDocumentParams(uri=location.uri, take_focus=True, selection=location.range)
            self.start(self.ask(types.WINDOW_SHOW_DOCUMENT, params))
        else:
            self.inform(f"{location.uri}, line {location.range.start.line + 1}")

    def say_changed(self, uri: str) -> None:
        """One of our own documents has a new text."""
        if self.can("workspace.text_document_content"):
            params = types.TextDocumentContentRefreshParams(uri=uri)
            self.start(self.ask(types.WORKSPACE_TEXT_DOCUMENT_CONTENT_REFRESH, params))
        else:
            self.notify("gpaLsp/documentChanged", {"uri": uri})

    def start_progress(self, title: str, cancel: Callable[[], None]) -> "ProgressBar":
        """Show a progress bar, where the client can."""
        bar = ProgressBar(self, title)
        if self.can("window.work_done_progress"):
            self.start(bar.show(lambda: self._bars.update({bar.token: bar})))
        bar.cancel = cancel
        return bar

    def cancel_progress(self, token: int | str) -> None:
        """The user clicked "cancel"."""
        bar = self._bars.get(token)
        if bar is not None and bar.cancel is not None:
            bar.cancel()

    def drop_progress(self, token: int | str) -> None:
        """The bar is gone."""
        self._bars.pop(token, None)

    def leave(self) -> None:
        """Send nothing more, and clean up."""
        self.is_leaving = True
        for task in self._tasks:
            task.cancel()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None


class ProgressBar:
    """Work done progress; silent until the client has agreed to show it, and altogether when the work is done by then."""

    def __init__(self, client: Client, title: str) -> None:
        self.token: int | str = str(uuid.uuid4())
        self.cancel: Callable[[], None] | None = None
        self._client = client
        self._title = title
        self._is_shown = False
        self._has_ended = False
        self._latest: tuple[str, float | None] | None = None

    async def show(self, register: Callable[[], None]) -> None:
        """Ask the client for a bar."""
        params = types.WorkDoneProgressCreateParams(token=self.token)
        register()
        await self._client.ask(types.WINDOW_WORK_DONE_PROGRESS_CREATE, params)
        if not self._has_ended:
            self._is_shown = True
            self._send(types.WorkDoneProgressBegin(title=self._title, cancellable=True, percentage=0))
            if self._latest is not None:  # it may be the last one for long
                self.report(*self._latest)

    def report(self, text: str, ratio: float | None) -> None:
        """Show what is being done."""
        self._latest = text, ratio
        if self._is_shown:
            percentage = None if ratio is None else max(0, min(100, round(ratio * 100)))
            self._send(types.WorkDoneProgressReport(message=text, percentage=percentage, cancellable=True))

    def end(self, text: str) -> None:
        """Take the bar away."""
        self._has_ended = True
        self._client.drop_progress(self.token)
        if self._is_shown:
            self._is_shown = False
            self._send(types.WorkDoneProgressEnd(message=text))

    def _send(self, value: Any) -> None:
        self._client.notify(types.PROGRESS, types.ProgressParams(token=self.token, value=value))
