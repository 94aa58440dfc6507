"""Catalogue of profile formats: one file per format; each defines ``READER``.

A reader module must be cheap to import (it is loaded to look at a file's head); what is heavy it imports when it reads.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from msgspec import Struct

from gpa_lsp.profile.model import OpenedProfile, Profile


class Reader(Struct, frozen=True, kw_only=True):
    """One profile format."""

    name: str  # the format's name, as in :attr:`Profile.format_name`
    description: str  # what people call it, for messages
    # file name endings by which such files are found in a workspace; content decides, not the suffix
    suffixes: tuple[str, ...]
    # whether a file with this head (its first bytes, up to ``files.HEAD_BYTES``) and this name is to be read by this reader
    recognises: Callable[[bytes, Path], bool]
    # reads the file; raises :class:`~gpa_lsp.foundation.errors.InputError` when it cannot be used
    read: Callable[[Path], Profile]
    # opens the file, to read some launches before the others; gives None if it has to be read as a whole, as one that is damaged somewhere. Its flag
    # says that the file was opened before and found sound. None for a format that is always read as a whole.
    open: Callable[[Path, bool], AbstractContextManager[OpenedProfile | None]] | None = None
