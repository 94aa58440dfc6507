"""Native JSON profiles, ``gpa-lsp/profile/2`` and the version before (described in :mod:`gpa_lsp.profile.native`)."""

from pathlib import Path

from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.native import FORMAT, FORMAT_FAMILY, SUFFIX
from gpa_lsp.profile.readers import Reader


def _recognises(head: bytes, path: Path) -> bool:
    is_object = head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{")
    return is_object and (FORMAT_FAMILY.encode() in head or path.name.endswith(SUFFIX))


def _read(path: Path) -> Profile:
    from gpa_lsp.profile.native.parse import read_native  # only when such a file is read

    return read_native(path)


READER = Reader(name=FORMAT, description="gpa-lsp profile", suffixes=(SUFFIX,), recognises=_recognises, read=_read)
