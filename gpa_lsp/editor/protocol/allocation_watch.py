"""Looks again and again what emulated runs found of the allocations in open sources, and has it shown. Runs nothing."""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from gpa_lsp.editor.documents import Documents
from gpa_lsp.editor.threads import call_in_thread
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
