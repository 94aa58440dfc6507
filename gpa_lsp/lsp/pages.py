"""The report as a page of HTML: written into a file of the session's own, and opened by the editor or, where that cannot, by a browser."""

import asyncio
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types

from gpa_lsp.basis.errors import MissingToolError
from gpa_lsp.basis.whole_files import open_whole
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.lsp.client import Client
from gpa_lsp.lsp.threads import call_in_thread

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

_NAME = "report.html"


class Pages:
    """Writes and shows the page of a session.

    Args:
        client: the editor.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._turn = asyncio.Lock()

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

    def show(self, path: Path, place: str) -> None:
        """Let whatever shows HTML open it.

        Args:
            path: as :meth:`write` gave it.
            place: a fragment with its ``#``; empty for the beginning.
        """
        if self._client.can("window.show_document.support"):
            params = types.ShowDocumentParams(uri=path.as_uri() + place, external=True)
            self._client.start(self._client.ask(types.WINDOW_SHOW_DOCUMENT, params))
        else:
            self._client.inform(f"the report is in {path}")


def write_page(kernels: Sequence[VisibleKernel], path: Path) -> None:
    """Write the page; replaces what is there as a whole.

    Raises:
        MissingToolError: a library that only pages need is not installed.
        OSError: the file cannot be written.
    """
    try:  # it needs numpy, and what not everybody has who edits
        from gpa_lsp.render.html_report.page import render_html_report
    except ImportError as error:
        name = error.name or "a library"
        raise MissingToolError(name, needed_for="the report's page", install="pip install gpa-lsp") from error
    from gpa_lsp.report.model import Report

    report = Report(problems=(), kernels=tuple(restore_sources(shown) for shown in kernels))
    with open_whole(path, errors="backslashreplace") as stream:
        stream.write(render_html_report(report))


def restore_sources(shown: VisibleKernel) -> "KernelReport":
    """A kernel's report with the sources that were measured, which the session keeps beside it; files that have changed since have none."""
    report = shown.kernel.report
    wanted = {row.file for row in report.lines}
    texts = {
        path: "\n".join(file.lines) + "\n"
        for path, file in shown.profile.files.items()
        if path in wanted and file.lines is not None and file.is_verified and not file.is_outside
    }
    return dataclasses.replace(report, embedded_sources={**report.embedded_sources, **texts})
