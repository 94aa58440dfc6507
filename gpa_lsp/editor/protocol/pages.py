"""The report as a page of HTML: written into a file of the session's own, and opened by the editor or, where that cannot, by a browser."""

import asyncio
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec.structs
from lsprotocol import types

from gpa_lsp.editor.protocol.client import Client
from gpa_lsp.editor.protocol.page_writer import PageJob, PageWritten
from gpa_lsp.editor.protocol.profile_reader import ProfileJob
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.threads import call_in_thread
from gpa_lsp.foundation.errors import GpaError, MissingToolError
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.processes.async_worker import AsyncWorker
from gpa_lsp.foundation.processes.supervision import WorkerKind

if TYPE_CHECKING:
    from gpa_lsp.report.history.model import TimeCourse
    from gpa_lsp.report.model import KernelReport

_NAME = "report.html"

_WRITER = WorkerKind(module="gpa_lsp.editor.protocol.page_writer", title="page process", idle_s=30.0)
_LIMIT_S = 600.0  # A report of many kernels that nobody analysed before takes minutes


class Pages:
    """Writes and shows the page of a session.

    Args:
        client: the editor.
        is_left_to_client: it shows pages of HTML itself.
    """

    def __init__(self, client: Client, *, is_left_to_client: bool = False) -> None:
        self._client = client
        self._is_left_to_client = is_left_to_client
        self._turn = asyncio.Lock()
        self._writer = AsyncWorker(_WRITER)

    async def write(self, kernels: Sequence[VisibleKernel]) -> Path:
        """The page of some kernels, in their order; one after the other, and never on the event loop, because a large one takes seconds.

        Raises:
            GpaError: a part of it is not installed.
            OSError: it cannot be written.
        """
        async with self._turn:
            path = self._client.make_folder() / _NAME
            await call_in_thread(lambda: write_page(kernels, path))
            return path

    async def write_profile(self, job: ProfileJob) -> tuple[Path, tuple[str, ...]]:
        """The page of one profile, whether it is in the workspace or not.

        Raises:
            GpaError: the profile cannot be read, or the process died.
        """
        name = hashlib.sha256(str(job.profile).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        path = self._client.make_folder() / f"report-{name}.html"
        written = await self._writer.do(PageJob(profile=job, target=path), limit_s=_LIMIT_S)
        assert isinstance(written, PageWritten)
        if written.failure:
            raise GpaError(written.failure)
        return path, written.kernels

    async def leave(self) -> None:
        """End the process that writes."""
        await self._writer.leave()

    def show(self, path: Path, place: str) -> dict[str, str]:
        """Let whatever shows HTML open it, unless the client does that itself.

        Args:
            place: a fragment with its ``#``; empty for the beginning.

        Returns:
            ``uri`` of the file, and the ``place``.
        """
        if not self._is_left_to_client and self._client.can("window.show_document.support"):
            params = types.ShowDocumentParams(uri=path.as_uri() + place, external=True)
            self._client.start(self._client.ask(types.WINDOW_SHOW_DOCUMENT, params))
        elif not self._is_left_to_client:
            self._client.inform(f"the report is in {path}")
        return {"uri": path.as_uri(), "place": place}


def write_page(kernels: Sequence[VisibleKernel], path: Path) -> None:
    """Write the page; replaces what is there as a whole.

    Raises:
        MissingToolError: a library that only pages need is not installed.
        OSError: the file cannot be written.
    """
    try:  # it needs numpy, and what not everybody has who edits
        from gpa_lsp.document.html_report.page import render_html_report
    except ImportError as error:
        name = error.name or "a library"
        raise MissingToolError(name, needed_for="the report's page", install="pip install gpa-lsp") from error
    from gpa_lsp.report.model import Report

    report = Report(problems=(), kernels=tuple(restore_sources(shown) for shown in kernels))
    with atomic_write(path, errors="backslashreplace") as stream:
        stream.write(render_html_report(report, courses=_list_courses(kernels)))


def _list_courses(kernels: Sequence[VisibleKernel]) -> "dict[int, TimeCourse]":
    """Courses by position of the kernel, for those with earlier runs."""
    pasts = enumerate(shown.kernel.history for shown in kernels)
    return {position: past.course for position, past in pasts if past is not None and past.course is not None}


def restore_sources(shown: VisibleKernel) -> "KernelReport":
    """A kernel's report with the sources that were measured, which the session keeps beside it; files that have changed since have none."""
    report = shown.kernel.report
    wanted = {row.file for row in report.lines}
    texts = {
        path: "\n".join(file.lines) + "\n"
        for path, file in shown.profile.files.items()
        if path in wanted and file.lines is not None and file.is_verified and not file.is_outside
    }
    return msgspec.structs.replace(report, embedded_sources={**report.embedded_sources, **texts})
