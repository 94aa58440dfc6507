"""Commands that the user has confirmed, by workspace.

A command comes from settings, which may come from a stranger's repository. So nothing runs before the user has confirmed these very words in this
very folder. Confirmations lie in the user's data folder, readable and writable by the user alone.
"""

import contextlib
import hashlib
import json
import logging
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.files import DATA_VARIABLE, atomic_write, find_data_folder
from gpa_lsp.profile.collect.variables import Command

logger = logging.getLogger(__name__)

SCHEMA = "gpa-lsp/allowed/1"

_FILE_NAME = "allowed.json"
_MAX_BYTES = 8 << 20
_MAX_ENTRIES = 1_000
_TRIES = 5


_Words = Annotated[Command, Meta(min_length=1)]


class Allowed(Struct, frozen=True, kw_only=True):
    """A confirmed build and profile command of a workspace."""

    workspace: str  # the folder, links resolved
    build: _Words | None = None  # the command before; None when there is none
    profile: _Words  # the command that measures; both with their variables
    allowed_unix_s: int  # when, in seconds since 1970

    @property
    def digest(self) -> str:
        """Digest of workspace and commands."""
        return make_digest(self.workspace, self.build, self.profile)


def make_digest(workspace: str, build: Command | None, profile: Command) -> str:
    """SHA-256 of a workspace and its commands, encoded unambiguously.

    >>> make_digest("/w", None, ("a b",)) == make_digest("/w", None, ("a", "b"))
    False
    """
    words = [SCHEMA, workspace, list(build) if build is not None else None, list(profile)]
    return hashlib.sha256(json.dumps(words, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()


class Allowance:
    """Confirmations on disk.

    Args:
        file: where; None for the user's own.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.file = file if file is not None else find_allowance_file()

    def is_allowed(self, workspace: Path, build: Command | None, profile: Command) -> bool:
        """Whether the user has confirmed these commands for this workspace."""
        digest = make_digest(_resolve(workspace), build, profile)
        return any(entry.digest == digest for entry in self.list_entries())

    def allow(self, workspace: Path, build: Command | None, profile: Command) -> Allowed:
        """Remember that the user has confirmed a pair.

        Raises:
            InputError: it cannot be written.
        """
        entry = Allowed(workspace=_resolve(workspace), build=build, profile=profile, allowed_unix_s=int(time.time()))
        # If another process writes between our reading and writing, one entry is lost; the next try writes ours again.
        for _ in range(_TRIES):
            others = [known for known in self.list_entries() if known.digest != entry.digest]
            self._write([*others, entry][-_MAX_ENTRIES:])
            if any(known.digest == entry.digest for known in self.list_entries()):
                break
        return entry

    def forget(self, entries: Iterable[Allowed]) -> None:
        """Withdraw confirmations.

        Raises:
            InputError: the rest cannot be written.
        """
        digests = {entry.digest for entry in entries}
        self._write([known for known in self.list_entries() if known.digest not in digests])

    def list_entries(self) -> tuple[Allowed, ...]:
        """All confirmations, oldest first; none if the file is missing, writable by others, or damaged (it is then moved aside)."""
        try:
            status = self.file.stat()
        except OSError:
            return ()
        if os.name == "posix" and (status.st_uid != os.geteuid() or status.st_mode & 0o022):
            logger.warning("%s can be written by others and is not believed; chmod 600 it", self.file)
            return ()
        try:
            if status.st_size > _MAX_BYTES:
                raise ValueError("too large")
            return _read_entries(self.file.read_bytes())
        except OSError as error:
            logger.warning("%s cannot be read: %s", self.file, error)
            return ()
        except (ValueError, RecursionError) as error:
            self._set_aside(error)
            return ()

    def _set_aside(self, error: Exception) -> None:
        logger.warning("%s is damaged (%s) and is set aside; commands have to be confirmed again", self.file, error)
        with contextlib.suppress(OSError):
            self.file.replace(self.file.with_suffix(".damaged.json"))

    def _write(self, entries: Sequence[Allowed]) -> None:
        rows = [{**msgspec.to_builtins(entry), "sha256": entry.digest} for entry in entries]
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with atomic_write(self.file, mode=0o600) as stream:
                json.dump({"schema": SCHEMA, "allowed": rows}, stream, indent=1)
        except OSError as error:
            message = f"cannot be written: {error.strerror or error}"
            raise InputError(message, path=self.file, remedy=f"set {DATA_VARIABLE} to a folder of yours") from error


def find_allowance_file() -> Path:
    """The user's file; it may not exist."""
    return find_data_folder() / _FILE_NAME


def _resolve(workspace: Path) -> str:
    return os.path.realpath(workspace)


class _File(Struct):
    schema: Literal["gpa-lsp/allowed/1"]
    allowed: tuple[Allowed, ...]


def _read_entries(content: bytes) -> tuple[Allowed, ...]:
    """Entries of a file.

    Raises:
        ValueError: it is none, or an entry was changed.
    """
    document = json.loads(content)  # which, unlike msgspec, takes paths that are no UTF-8
    entries = msgspec.convert(document, _File).allowed
    if any(row.get("sha256") != entry.digest for row, entry in zip(document["allowed"], entries, strict=True)):
        raise ValueError("an entry was changed")
    return entries
