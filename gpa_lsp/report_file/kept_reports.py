"""Reports of single files in the user's cache, so that what was analysed once is loaded.

An entry is a compressed pickle: it keeps columns as they are and loads ten times as fast as JSON is parsed. It is read by an unpickler that makes
nothing but our own records, enumerations and sentences, paths, and arrays of numpy, so that an entry runs no code, whoever wrote it; and only
after its digest was found right (:mod:`gpa_lsp.basis.kept_files`).
"""

import importlib
import io
import logging
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any

from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.prose import Sentence
from gpa_lsp.report.model import Report

_LOG = logging.getLogger(__name__)

LIMIT_BYTES = 256 << 20
"""Of the folder of reports. A report of one kernel takes 0.05 to 0.4 MB."""

_LARGEST_BYTES = 1 << 30
"""An entry that unpacks to more is not loaded."""

_ARRAY_MODULES = frozenset(
    {"numpy", "numpy._core.numeric", "numpy.core.numeric", "numpy._core.multiarray", "numpy.core.multiarray"}
)
_ARRAY_NAMES = frozenset({"dtype", "ndarray", "_frombuffer", "_reconstruct", "scalar"})
_PATH_NAMES = frozenset({"PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"})


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReport:
    """A report as it is kept.

    Attributes:
        path: the file it was made from, as it was named then.
        seen: what was looked at beside the file: question → answer. The report holds as long as the answers are the same.
        report: of this file alone.
    """

    path: Path
    seen: Mapping[Any, Any]
    report: Report

    def rename(self, path: Path) -> Report:
        """The report of the same content under another name."""
        if path == self.path:
            return self.report
        kernels = (
            replace(kernel, profile_path=path) if kernel.profile_path == self.path else kernel
            for kernel in self.report.kernels
        )
        return Report(
            problems=tuple(self._rename_problem(problem, path) for problem in self.report.problems),
            kernels=tuple(kernels),
        )

    def _rename_problem(self, problem: Problem, path: Path) -> Problem:
        return replace(problem, path=path) if problem.path == self.path else problem


def open_kept_reports() -> KeptFiles:
    """The user's own."""
    return KeptFiles(find_cache_folder() / "reports", limit_bytes=LIMIT_BYTES)


def load_kept(files: KeptFiles, key: str, still_holds: Callable[[Mapping[Any, Any]], bool]) -> KeptReport | None:
    """The report under a key.

    Args:
        files: where reports are kept.
        key: of the file's content and everything else the report depends on.
        still_holds: asked about :attr:`KeptReport.seen`.

    Returns:
        None when there is none, it cannot be used, or what was seen has changed.
    """
    packed = files.load(key)
    if packed is None:
        return None
    try:
        unpack = zlib.decompressobj()
        stream = io.BytesIO(unpack.decompress(packed, _LARGEST_BYTES))
        seen = _RecordUnpickler(stream).load()
        if not still_holds(seen):
            return None
        path, report = _RecordUnpickler(stream).load()
        return KeptReport(path=path, seen=seen, report=report) if isinstance(report, Report) else None
    except Exception as error:  # whatever a damaged entry can lead to: the file is analysed instead
        _LOG.debug("kept report %s is not used: %s", key, error)
        return None


def store_kept(files: KeptFiles, key: str, kept: KeptReport) -> None:
    """Keep a report."""
    stream = io.BytesIO()
    for part in (dict(kept.seen), (kept.path, kept.report)):
        pickle.dump(part, stream, protocol=5)
    files.store(key, zlib.compress(stream.getbuffer(), 1))


class _RecordUnpickler(pickle.Unpickler):
    """Makes plain data only."""

    def find_class(self, module: str, name: str) -> Any:
        """The types an entry may hold.

        Raises:
            pickle.UnpicklingError: it is none of them.
        """
        if module in _ARRAY_MODULES and name in _ARRAY_NAMES:
            return super().find_class(module, name)
        if module in ("pathlib", "pathlib._local") and name in _PATH_NAMES:
            return super().find_class("pathlib", name)
        if module.startswith("gpa_lsp.") and "__" not in module:
            found = getattr(importlib.import_module(module), name, None)
            if isinstance(found, type) and (_is_record(found) or issubclass(found, Enum) or found is Sentence):
                return found
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a report")


def _is_record(found: type) -> bool:
    return "__dataclass_fields__" in found.__dict__ or (issubclass(found, tuple) and hasattr(found, "_fields"))
