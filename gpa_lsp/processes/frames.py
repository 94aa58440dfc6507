"""What goes through the pipes between a supervisor and its worker: messages, pickled, with their length in front.

Both ends are this package, run by the same interpreter. What a job and its result are is the business of those who ask and those who answer.
"""

import pickle
import struct
from collections.abc import Callable

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes

_HEADER = struct.Struct("<Q")
_MOST_BYTES = 1 << 31


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work to do.

    Attributes:
        content: pickled by itself, so that one that cannot be read costs its own answer only.
        beat_s: how often the worker says that it is alive while it is at it.
    """

    content: bytes
    beat_s: float


@dataclass(frozen=True, slots=True)
class Beat:
    """The worker is alive: said by a thread that has nothing else to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """How far a worker is with its job: ``done`` of ``total`` steps, and what is being done."""

    words: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last message of a job.

    Attributes:
        result: of the job.
        failure: why there is none, a sentence without its subject; empty where there is one.
        own_bytes: memory the worker holds after it and shares with no other; 0 when unknown.
    """

    result: object = None
    failure: str = ""
    own_bytes: int = 0


def pack(message: object) -> bytes:
    """A message as it goes through a pipe."""
    body = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    return _HEADER.pack(len(body)) + body


def read_message(read: Callable[[int], bytes]) -> object:
    """The next message.

    Args:
        read: at most so many bytes of the pipe; none at its end.

    Raises:
        EOFError: the other end is gone.
        ValueError: it is none of ours.
    """
    (length,) = _HEADER.unpack(_read_all(read, _HEADER.size))
    if length > _MOST_BYTES:
        raise ValueError(f"a message of {format_bytes(length)}")
    return pickle.loads(_read_all(read, length))


def _read_all(read: Callable[[int], bytes], count: int) -> bytes:
    found = read(count)
    if len(found) == count:
        return found
    parts = bytearray(found)
    while found and len(parts) < count:
        found = read(count - len(parts))
        parts += found
    if len(parts) < count:
        raise EOFError
    return bytes(parts)
