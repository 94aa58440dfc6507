"""What the server and its worker process say to each other.

In a module of its own: what the worker defined itself would be called ``__main__`` there and something else here, and could not be unpickled.
"""

import pickle
import struct
from dataclasses import dataclass
from pathlib import Path

from gpa_lsp.lsp.session import MeasuredFile, MeasuredKernel

FRAME_HEADER = struct.Struct("<Q")
"""In front of every message: its length in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to read.

    Attributes:
        profiles: in this order.
        roots: workspace folders sources are looked for in.
        path_mappings: as in the settings.
        blamer: how causes are found.
        keeps_history: remember what was measured, and compare with what was.
    """

    profiles: tuple[Path, ...]
    roots: tuple[Path, ...]
    path_mappings: tuple[tuple[str, str], ...]
    blamer: str = "scoreboard"
    keeps_history: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a profile is: ``done`` of ``total`` steps, and what is being done."""

    profile: Path
    step: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesFound:
    """A profile's sources on this machine; comes before its kernels."""

    profile: Path
    files: tuple[MeasuredFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRead:
    """One kernel. Kernels come one by one so that the server never unpickles for long between two requests."""

    profile: Path
    kernel: MeasuredKernel


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileRead:
    """The end of a profile: everything of it was sent.

    Attributes:
        profile: which.
        remarks: what was in doubt, a line each, for the log.
        size_bytes: of all its messages: what keeping it costs, in proportion.
    """

    profile: Path
    remarks: tuple[str, ...]
    size_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileFailed:
    """The end of a profile that could not be read; ``reason`` is a line for people."""

    profile: Path
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a process that stays is with its job: ``done`` of ``total`` steps, and what is being done."""

    words: str
    done: int
    total: int


Message = Progress | FilesFound | KernelRead | ProfileRead | ProfileFailed


def pack(message: object) -> bytes:
    """A message as it goes through the pipe."""
    body = pickle.dumps(message, protocol=5)
    return FRAME_HEADER.pack(len(body)) + body
