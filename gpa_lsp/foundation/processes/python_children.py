"""Python processes of ours: the one place that says how they are started.

Python looks for modules in the folder it is started in first of all, with ``-m`` and with ``-c``, and so does everything built on them
(:mod:`multiprocessing` with ``-c``, so we do without it). That folder is a workspace, whose ``ctypes.py`` would be run. So every child is told not to
(``-P``), and what it inherits names no folder that depends on where it is; its own children inherit both. Children that need the standard library
alone are kept from the environment and from installed packages, too (``-I -S``), and start in a third of the time.

When somebody types ``python -m gpa_lsp`` in a folder, Python itself looks there before any line of ours runs (from then on nothing does, see
``__main__.py``). The program ``gpa-lsp`` does not look there, nor does ``python -P -m gpa_lsp``, which is what editors start.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from gpa_lsp.foundation.processes.frames import pack, read_message
from gpa_lsp.foundation.processes.search_paths import clean_environment

# The environment's way to say ``-P``: it reaches children whose command line others write
_SAFE_PATH = "PYTHONSAFEPATH"


class PythonChild(NamedTuple):
    """How a Python process is started."""

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
    """Ask a process of its own that goes to its end also where this one is killed, for work that others share; it has limits of its own.

    Args:
        module: of ours, which answers by :func:`answer_apart`.

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
    """Answer the one question that comes on standard input; that nobody waits for the answer any more does not matter."""
    found = pack(answer(read_message(sys.stdin.buffer.read)))
    with contextlib.suppress(OSError):
        sys.stdout.buffer.write(found)
        sys.stdout.buffer.flush()


def isolate_script(script: Path, *arguments: str) -> PythonChild:
    """A process that runs a file which needs the standard library alone. It hands on the environment, which it does not look at itself."""
    return PythonChild((sys.executable, "-I", "-S", str(script), *arguments), dict(os.environ))


def isolate_code(code: str) -> PythonChild:
    """A process that runs a few lines which need the standard library alone."""
    return PythonChild((sys.executable, "-I", "-S", "-c", code), clean_environment(os.environ))
