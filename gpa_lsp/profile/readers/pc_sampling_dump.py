"""Files that CUPTI's utility library for PC sampling writes (described in :mod:`gpa_lsp.profile.pc_sampling`)."""

from pathlib import Path

from gpa_lsp.profile.model import Profile
from gpa_lsp.profile.pc_sampling import BUFFER_HEADER_BYTES, FORMAT, HEADER_BYTES, IDENTIFIER, SUFFIX
from gpa_lsp.profile.readers import Reader

_PLACE = HEADER_BYTES + BUFFER_HEADER_BYTES + 4


def _recognises(head: bytes, path: Path) -> bool:
    return head[_PLACE : _PLACE + len(IDENTIFIER)] == IDENTIFIER or path.name.endswith(SUFFIX)


def _read(path: Path) -> Profile:
    from gpa_lsp.profile.pc_sampling.parse import read_pc_samples  # only when such a file is read

    return read_pc_samples(path)


READER = Reader(name=FORMAT, description="PC samples of CUPTI", suffixes=(SUFFIX,), recognises=_recognises, read=_read)
