"""Cached findings on the allocations of emulated programs, by source, for editors; the newest run of each source."""

import hashlib
import logging
import os

from msgspec import Struct

from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.packed_records import pack_records, unpack_records
from gpa_lsp.report.measured_files import MeasuredFile

_LOG = logging.getLogger(__name__)

_LIMIT_BYTES = 32 << 20  # Of the folder; an entry holds the text of its source

EntryMark = tuple[int, int]  # as :meth:`~gpa_lsp.foundation.kept_files.KeptFiles.identify` gives it

AllocationPlace = tuple[str, int, str]  # path of this machine, 1-based line, and what it has to do with a note


class AllocationNote(Struct, frozen=True, kw_only=True):
    """One finding about the allocations or copies of a line."""

    line: int  # 1-based, in the text that was compiled
    kind: str  # of the finding, such as ``partly used``
    words: str  # a clause, as ``gpa-lsp emulate`` has it behind the line, without other lines
    size_bytes: int  # of what it is about
    related: tuple[AllocationPlace, ...] = ()  # uses, copies and callers


class SourceAllocations(Struct, frozen=True, kw_only=True):
    """Findings of the newest run of a program on one source."""

    file: MeasuredFile  # the source, as it was when the program ran
    machine: str  # the GPU that the program saw
    notes: tuple[AllocationNote, ...]  # by size, largest first; empty where nothing was found


def open_kept_allocations() -> KeptFiles:
    """The user's cache of findings on allocations."""
    return KeptFiles(find_cache_folder() / "allocations", limit_bytes=_LIMIT_BYTES)


def keep_allocations(found: list[SourceAllocations]) -> None:
    """Store the findings of a run, replacing earlier ones of the same sources."""
    files = open_kept_allocations()
    for one in found:
        files.store(_name(one.file.local_path), pack_records(one))
    files.trim()


def look_at_allocations(local_path: str, known: EntryMark | None) -> tuple[EntryMark | None, SourceAllocations | None]:
    """Read the cached findings of a source, unless they are known already.

    Args:
        local_path: of the source, links resolved.
        known: the first result of that look.

    Returns:
        What tells the entry from other ones, None where there is none; and the entry, None where it was read before or is not sound.
    """
    files, key = open_kept_allocations(), _name(local_path)
    now = files.identify(key)
    content = files.load(key) if now != known else None
    try:
        found = None if content is None else unpack_records(content)
    except Exception as error:  # whatever an entry of another version can lead to
        _LOG.debug("kept allocations of %s are not used: %s", local_path, error)
        return now, None
    return now, found if isinstance(found, SourceAllocations) else None


def _name(local_path: str) -> str:
    return hashlib.sha256(os.fsencode(local_path)).hexdigest()
