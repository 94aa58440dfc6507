"""Nsight Compute reports: ``.ncu-rep``, its predecessor ``.nsight-cuprof-report``, and compressed ones (``.ncu-repz``)."""

from contextlib import AbstractContextManager
from pathlib import Path

from gpa_lsp.profile.model import OpenedProfile, Profile
from gpa_lsp.profile.ncu import REPORT_MAGIC, find_compression
from gpa_lsp.profile.readers import Reader

_SUFFIXES = (".ncu-rep", ".ncu-repz", ".nsight-cuprof-report")


def _recognises(head: bytes, path: Path) -> bool:
    # zlib's two magic bytes may begin a text file: they count under a report's name only.
    is_compressed = find_compression(head) not in (None, "zlib")
    return head.startswith(REPORT_MAGIC) or is_compressed or path.name.endswith(_SUFFIXES)


def _read(path: Path) -> Profile:
    from gpa_lsp.profile.ncu.report import read_report  # loads protobuf: only when a report is read

    return read_report(path)


def _open(path: Path, is_known_sound: bool) -> AbstractContextManager[OpenedProfile | None]:
    from gpa_lsp.profile.ncu.report import open_report

    return open_report(path, is_known_sound=is_known_sound)


READER = Reader(
    name="ncu-report",
    description="Nsight Compute report",
    suffixes=_SUFFIXES,
    recognises=_recognises,
    read=_read,
    open=_open,
)
