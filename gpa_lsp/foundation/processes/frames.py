"""What goes through the pipes between a supervisor and its worker: messages, pickled, with their length in front.

Both ends are this package, run by the same interpreter. What a job and its result are is the business of those who ask and those who answer.
"""

import pickle
import struct
from collections.abc import Callable

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_bytes

_HEADER = struct.Struct("<Q")
_MOST_BYTES = 1 << 31


class Job(Struct, frozen=True, kw_only=True):
    """Work to do."""

    content: bytes  # pickled by itself, so that one that cannot be read costs its own answer only
    beat_s: float  # how often the worker says that it is alive while it is at it


class Beat(Struct, frozen=True):
    """The worker is alive: said by a thread that has nothing else to do."""


class Step(Struct, frozen=True, kw_only=True):
    """How far a worker is with its job: ``done`` of ``total`` steps, and what is being done."""

    words: str
    done: int
    total: int


class Answer(Struct, frozen=True, kw_only=True):
    """The last message of a job."""

    result: object = None  # of the job
    failure: str = ""  # why there is none, a sentence without its subject; empty where there is one
    own_bytes: int = 0  # memory the worker holds after it and shares with no other; 0 when unknown


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
