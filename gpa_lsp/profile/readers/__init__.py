"""The catalogue of profile formats: one file per format; each defines ``READER``.

A reader module must be cheap to import (it is loaded to look at a file's head); what is heavy it imports when it reads.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.profile.model import OpenedProfile, Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """One profile format.

    Attributes:
        name: the format's name, as in :attr:`Profile.format_name`.
        description: what people call it, for messages.
        suffixes: file name endings by which such files are found in a workspace; content decides, not the suffix.
        recognises: whether a file with this head (its first bytes, up to ``regular_files.HEAD_BYTES``) and this name is to be read by this reader.
        read: reads the file; raises :class:`~gpa_lsp.basis.errors.InputError` when it cannot be used.
        open: opens the file, for whoever wants some of its launches before the others; gives None where it has to be read as a whole, as one that is
            damaged somewhere. None for a format that is always read as a whole. It is told whether somebody opened the file before and got it.
    """

    name: str
    description: str
    suffixes: tuple[str, ...]
    recognises: Callable[[bytes, Path], bool]
    read: Callable[[Path], Profile]
    open: Callable[[Path, bool], AbstractContextManager[OpenedProfile | None]] | None = None
