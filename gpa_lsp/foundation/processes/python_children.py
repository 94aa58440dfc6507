"""Python processes: the one place that says how they are started.

Python looks for modules in the folder it is started in first of all, with ``-m`` and with ``-c``, and so does everything built on them
(:mod:`multiprocessing` with ``-c``, so we do without it). That folder is a workspace, whose ``ctypes.py`` would be run. So every child is told not to
(``-P``), and what it inherits names no folder that depends on where it is; its own children inherit both. Children that need the standard library
alone are kept from the environment and from installed packages, too (``-I -S``), and start in a third of the time.

When a user types ``python -m gpa_lsp`` in a folder, Python itself looks there before any line of ours runs (from then on nothing does, see
``__main__.py``). The program ``gpa-lsp`` does not look there, nor does ``python -P -m gpa_lsp``, which is what editors start.
"""

import contextlib
import os
import pickle
import struct
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.search_paths import clean_environment

# What goes through the pipes between a supervisor and its worker: messages, pickled, with their length in front.
#
# Both ends are this package, run by the same interpreter. What a job and its result are is the business of those who ask and those who answer.

_HEADER = struct.Struct("<Q")
_MOST_BYTES = 1 << 31


class Job(Struct, frozen=True, kw_only=True):
    """Work to do."""

    content: bytes  # pickled by itself, so that one that cannot be read costs its own answer only
    beat_s: float  # how often the worker says that it is alive while it is at it


class Beat(Struct, frozen=True):
    """The worker is alive: said by a thread that has nothing else to do."""


class Step(Struct, frozen=True, kw_only=True):
    """The progress of a worker: ``done`` of ``total`` steps, and the step it is doing."""

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
    """The next message; ``read`` gives at most so many bytes of the pipe, and none at its end.

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


# The environment's way to say ``-P``: it reaches children whose command line others write
_SAFE_PATH = "PYTHONSAFEPATH"


class PythonChild(NamedTuple):
    """The command that starts a Python process."""

    words: tuple[str, ...]  # program and arguments
    environment: dict[str, str]  # what it is run with


def isolate_module(module: str, *arguments: str) -> PythonChild:
    """A process that runs a module of ours, with the libraries that this process has.

    Not ``-I``: what is installed for one user, or is reached by ``PYTHONPATH`` as on clusters, would not be found.
    """
    return PythonChild(
        (sys.executable, "-P", "-m", module, *arguments), {**clean_environment(os.environ), _SAFE_PATH: "1"}
    )


def ask_apart(module: str, question: object) -> object:
    """Ask a process of its own that goes to its end also where this one is killed, for work that others share; it has limits of its own. The module
    is one of ours, which answers by :func:`answer_apart`.

    Raises:
        OSError: it cannot be started.
        EOFError: it ended without an answer.
    """
    child = isolate_module(module)
    process = subprocess.Popen(
        child.words, env=child.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )
    said, _ = process.communicate(pack(question))
    return read_message(BytesIO(said).read)


def answer_apart(answer: Callable[[Any], object]) -> None:
    """Answer the one question that comes on standard input, whether or not the answer is still waited for."""
    try:
        question = read_message(sys.stdin.buffer.read)
    except EOFError:
        return  # the process that would ask was ended first
    found = pack(answer(question))
    with contextlib.suppress(OSError):
        sys.stdout.buffer.write(found)
        sys.stdout.buffer.flush()


def isolate_script(script: Path, *arguments: str) -> PythonChild:
    """A process that runs a file which needs the standard library alone. It hands on the environment, which it does not look at itself."""
    return PythonChild((sys.executable, "-I", "-S", str(script), *arguments), dict(os.environ))


def isolate_code(code: str) -> PythonChild:
    """A process that runs a few lines which need the standard library alone."""
    return PythonChild((sys.executable, "-I", "-S", "-c", code), clean_environment(os.environ))
