"""Files that hold the same are read once: build folders and results are full of copies."""

import hashlib
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.snapshot import LoadedProfile
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.file_stamps import Stamp, read_stamp
from gpa_lsp.foundation.regular_files import open_regular_file
from gpa_lsp.report.source_paths import parse_compiled_path

_PIECE_BYTES = 1 << 20


class _Original(Struct):
    """A file that is read."""

    path: Path  # the file
    stamp: Stamp  # what it looked like when it was found
    digest: bytes | None = None  # of what it holds; None as long as no other file is as long


class IdenticalFiles:
    """Knows the files that are read, and finds out whether another one holds the same as one of them. Only files of one length are looked into."""

    def __init__(self) -> None:
        self._originals: dict[int, dict[Path, _Original]] = {}

    def add(self, path: Path, stamp: Stamp) -> None:
        """This file is read."""
        self._originals.setdefault(stamp.size_bytes, {})[path] = _Original(path, stamp)

    def remove(self, path: Path, stamp: Stamp) -> None:
        """This file could not be read: it stands for no other one."""
        self._originals[stamp.size_bytes].pop(path, None)

    def may_have(self, stamp: Stamp) -> bool:
        """Whether it is worth looking into a file."""
        return bool(self._originals.get(stamp.size_bytes))

    def find(self, path: Path, stamp: Stamp) -> Path | None:
        """The file that is read and holds the same; None when there is none. Blocks on the file system: call it off the event loop."""
        digest = _digest(path, stamp)
        for original in tuple(self._originals.get(stamp.size_bytes, {}).values()):
            if digest is not None and original.digest is None:
                original.digest = _digest(original.path, original.stamp)
            if digest is not None and original.digest == digest:
                return original.path
        return None

    def find_time(self, path: Path, stamp: Stamp) -> int | None:
        """When a file that was read had been written to last, in ns since 1970; None when it was written to since, and stands for no other one.

        Blocks on the file system.
        """
        original = self._originals[stamp.size_bytes].get(path)
        return original.stamp.modified_ns if original is not None and read_stamp(path) == original.stamp else None


def _digest(path: Path, stamp: Stamp) -> bytes | None:
    """Of what a file holds; None where it cannot be read or has changed."""
    try:
        stream, _ = open_regular_file(path)
        with stream:
            digest = hashlib.sha256()
            while piece := stream.read(_PIECE_BYTES):
                digest.update(piece)
    except (InputError, OSError):
        return None
    return digest.digest() if read_stamp(path) == stamp else None


def share_profile(profile: LoadedProfile, path: Path, *, is_same_time: bool) -> LoadedProfile | None:
    """The profile another file is that holds the same; None when it has to be read, because it is not read in the same way.

    Kernels are told apart by where they lie when nothing says where their source is, and were measured when their file was written when nothing
    says when they were measured.
    """
    is_same_folder = path.parent == profile.path.parent
    for kernel in profile.kernels:
        body = kernel.body[0] if kernel.body is not None else ""
        has_home = body in profile.files or parse_compiled_path(body).anchor != ""
        if not (is_same_folder or has_home) or not (is_same_time or kernel.report.measured_unix_s is not None):
            return None
    kernels = tuple(replace(kernel, report=replace(kernel.report, profile_path=path)) for kernel in profile.kernels)
    return replace(profile, path=path, kernels=kernels)
