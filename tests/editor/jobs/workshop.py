"""A session for background jobs: what is open in it, what it was told, and a process that answers when a test lets it."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol.types import TextDocumentContentChangeWholeDocument
from msgspec.structs import replace
from pygls.workspace import PositionCodec

from gpa_lsp.editor.document_view import DocumentView
from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.jobs.background_job import BackgroundJob, Site, SourceScope
from gpa_lsp.editor.settings import Abilities, Settings
from gpa_lsp.editor.snapshot import Snapshot
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.supervision import WorkerKind


class Process(AsyncWorker):
    """Remembers what it is asked, and answers when it may.

    Args:
        answer: (message) → the result.
    """

    def __init__(self, answer: Callable[[Any], Any]) -> None:
        super().__init__(WorkerKind(module="none", title="none"))
        self.answer = answer
        self.asked: list[Any] = []
        self.cancelled: list[Any] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.error: Exception | None = None
        self.has_left = False

    async def do(self, job: Any, *, limit_s: float, tell: Any = None, is_per_message: bool = False) -> Any:
        self.asked.append(job)
        if tell is not None:
            tell(Step(words="emulating scale", done=1, total=2))
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.append(job)
            raise
        if self.error is not None:
            raise self.error
        return self.answer(job)

    async def leave(self) -> None:
        self.has_left = True

    def list_asked(self, kind: type) -> list[Any]:
        return [one for one in self.asked if isinstance(one, kind)]


class Bar:
    def __init__(self, title: str, cancel: Callable[[], None]) -> None:
        self.title, self.cancel = title, cancel
        self.reports: list[tuple[str, float | None]] = []
        self.has_ended = False

    def report(self, text: str, ratio: float | None) -> None:
        self.reports.append((text, ratio))

    def end(self, text: str) -> None:
        self.has_ended = True


class _Nobody:
    def changed(self, uri: str, version: int | None, find_view: Callable[[], DocumentView | None]) -> None: ...

    def closed(self, uri: str) -> None: ...


class Workshop:
    """A trusted workspace with one open source.

    Args:
        folder: of the workspace, links resolved.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.documents = Documents(units=PositionCodec(), abilities=Abilities(), watcher=_Nobody())
        self.snapshot = Snapshot()
        self.bars: list[Bar] = []
        self.said: list[str] = []
        self.included: list[Path] = []
        self.excluded: list[Path | None] = []
        self.settings = Settings()
        self.site = Site(
            documents=self.documents,
            read_snapshot=lambda: self.snapshot,
            refresh=lambda: None,
            start_progress=self._start_progress,
            make_folder=lambda: folder,
            inform=self.said.append,
            warn=self.said.append,
            include=self.included.append,
            exclude=self.excluded.append,
        )
        self.path = self.edit("one")

    def _start_progress(self, title: str, cancel: Callable[[], None]) -> Bar:
        self.bars.append(Bar(title, cancel))
        return self.bars[-1]

    def edit(self, text: str, name: str = "k.cu") -> str:
        """Give an open document another text, or open it."""
        path = name if name.startswith("/") else str(self.folder / name)
        if self.documents.find_local_path(path) is None:
            self.documents.open(path, path, text, 1)
        else:
            self.documents.change(path, [TextDocumentContentChangeWholeDocument(text=text)], 2)
        return path

    def configure(self, *jobs: BackgroundJob[Any, Any], is_trusted: bool = True, **changes: object) -> None:
        """Give jobs these settings."""
        self.settings = replace(self.settings, **changes)
        for job in jobs:
            job.configure(self.settings, SourceScope(roots=(self.folder,), is_trusted=is_trusted))
