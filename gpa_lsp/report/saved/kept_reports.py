"""Cached reports of single files, so that what was analysed once is loaded.

An entry is a row of compressed pickles: they keep columns as they are and load ten times as fast as JSON is parsed. They run no code, whoever wrote
them (:mod:`gpa_lsp.foundation.packed_records`), and are read only after the entry's digest was found right (:mod:`gpa_lsp.foundation.kept_files`).

The first says what was looked at beside the file, the second what stands in the report beside its kernels, and each other one holds some kernels:
another process that judged them has written them, and the same bytes come over its pipe and into the entry.
"""

import logging
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.packed_records import pack_records, unpack_records
from gpa_lsp.report.model import KernelReport, Report

_LOG = logging.getLogger(__name__)

LIMIT_BYTES = 256 << 20  # Of the folder of reports. A report of one kernel takes 0.05 to 0.4 MB.

_LARGEST_BYTES = 1 << 30  # An entry that unpacks to more is not loaded

_LENGTH = struct.Struct("<Q")


class KeptReport(Struct, frozen=True, kw_only=True):
    """A cached report."""

    path: Path  # the file it was made from, as it was named then
    # what was looked at beside the file: question → answer. The report holds as long as the answers are the same.
    seen: Mapping[Any, Any]
    report: Report  # of this file alone

    def rename(self, path: Path) -> Report:
        """The report of the same content under another path."""
        if path == self.path:
            return self.report
        kernels = (
            replace(kernel, profile_path=path) if kernel.profile_path == self.path else kernel
            for kernel in self.report.kernels
        )
        return Report(
            problems=tuple(replace(one, path=path) if one.path == self.path else one for one in self.report.problems),
            kernels=tuple(kernels),
        )


def open_kept_reports() -> KeptFiles:
    """The user's cache of reports."""
    return KeptFiles(find_cache_folder() / "reports", limit_bytes=LIMIT_BYTES)


def load_kept(files: KeptFiles, key: str, still_holds: Callable[[Mapping[Any, Any]], bool]) -> KeptReport | None:
    """The report under a key; None where there is none, it is damaged, or its inputs have changed."""
    entry = files.load(key)
    if entry is None:
        return None
    try:
        parts = _unpack_parts(entry)
        seen = next(parts)
        if not still_holds(seen):
            return None
        path, problems, order = next(parts)
        kernels = [kernel for part in parts for kernel in part]
        report = Report(problems=problems, kernels=tuple(kernels[number] for number in order))
        return KeptReport(path=path, seen=seen, report=report) if _is_sound(report) else None
    except Exception as error:  # whatever a damaged entry can lead to: the file is analysed instead
        _LOG.debug("kept report %s is not used: %s", key, error)
        return None


def _unpack_parts(entry: bytes) -> Iterator[Any]:
    left = _LARGEST_BYTES
    start = 0
    while start < len(entry):
        (length,) = _LENGTH.unpack_from(entry, start)
        start += _LENGTH.size + length
        content = zlib.decompressobj().decompress(entry[start - length : start], left)
        left = max(left - len(content), 1)
        yield unpack_records(content)


def _is_sound(report: Report) -> bool:
    """Whether the values have the right types; others would fail only when they are shown."""
    return all(isinstance(one, KernelReport) for one in report.kernels) and all(
        isinstance(one, Problem) for one in report.problems
    )


class PackedKernels(Struct, frozen=True, kw_only=True):
    """Kernels with their packed form."""

    kernels: tuple[KernelReport, ...]  # theirs
    content: bytes  # the same, pickled and compressed

    @classmethod
    def unpack(cls, content: bytes) -> "PackedKernels":
        """Unpack the result of :func:`pack_kernels`."""
        kernels = unpack_records(zlib.decompress(content))
        return cls(kernels=kernels, content=content)


def pack_kernels(kernels: Iterable[KernelReport]) -> bytes:
    """Kernels, pickled and compressed."""
    return _pack(tuple(kernels))


def _pack(part: object) -> bytes:
    return zlib.compress(pack_records(part), 1)


def store_kept(files: KeptFiles, key: str, kept: KeptReport, packed: Sequence[PackedKernels] = ()) -> None:
    """Store a report under a key."""
    known = [kernel for pack in packed for kernel in pack.kernels]
    numbers = {id(kernel): number for number, kernel in enumerate(known)}
    others = [kernel for kernel in kept.report.kernels if id(kernel) not in numbers]
    numbers.update({id(kernel): number for number, kernel in enumerate(others, start=len(known))})
    order = [numbers[id(kernel)] for kernel in kept.report.kernels]
    contents = [_pack(dict(kept.seen)), _pack((kept.path, kept.report.problems, order))]
    contents.extend(pack.content for pack in packed)
    if others:
        contents.append(pack_kernels(others))
    files.store(key, b"".join(part for content in contents for part in (_LENGTH.pack(len(content)), content)))
