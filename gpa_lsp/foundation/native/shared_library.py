"""The compiled core: :func:`find_core` gives its functions, or None where numpy does the work.

Only :func:`prepare_core` has it compiled, for the processor at work: work that needs it asks for that before it begins. Everything else uses it
where it is there already. Whoever calls a function of it has the same in numpy beside it: a function that cannot do what it is asked for (no memory,
an index that leads nowhere) says so, and numpy does it, or says what is wrong.
"""

import ctypes
import hashlib
import logging
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.native.c_compiler import (
    Library,
    Tell,
    find_c_compiler,
    find_failure,
    load_library,
    obtain_library,
)
from gpa_lsp.foundation.processes.watched_command import TEMPORARY

if TYPE_CHECKING:
    import numpy as np  # the server has the core compiled, and does without

_LOG = logging.getLogger(__name__)

# ``0`` in this variable of the environment leaves all to numpy; ``interpreter`` leaves kernels that run for long to the core as it is
VARIABLE = "GPA_LSP_COMPILED_CORE"

SOURCES = Path(__file__).parent / "sources"
# Nothing that lets a compiler round otherwise than it is written
_FLAGS = (
    "-std=gnu11",
    "-O3",
    "-ffp-contract=off",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
)

# No result depends on these two, and no trap or error is looked at; loops over lanes become vector instructions with them
_VECTORISING = ("-fno-math-errno", "-fno-trapping-math")

_FAILED = -1
_USUAL_S = 15
_WITHOUT = "numpy emulates and analyses, which is slower: %s"


class Core:
    """The functions of a loaded library.

    Args:
        library: it.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._functions: dict[str, Any] = {}

    def call(self, name: str, *arguments: "np.ndarray[Any, Any] | int | None") -> int:
        """Call a function.

        Args:
            name: of it.
            arguments: contiguous arrays of the types it is written for, integers, and None for no array.

        Returns:
            What it gives; -1 where it could not do it.
        """
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._library, name)
            function.restype = ctypes.c_int64
        return int(function(*[_convert(one) for one in arguments]))

    def free(self, address: int) -> None:
        """Give memory back that the library handed out."""
        if address:
            self._library.free_column(ctypes.c_void_p(address))

    def has_done(self, name: str, *arguments: "np.ndarray[Any, Any] | int | None") -> bool:
        """Call a function, and see whether it could do it."""
        return self.call(name, *arguments) != _FAILED


def _convert(argument: "np.ndarray[Any, Any] | int | None") -> Any:
    if argument is None:
        return None
    array = getattr(argument, "ctypes", None)
    return ctypes.c_int64(argument) if array is None else ctypes.c_void_p(array.data)  # type: ignore[arg-type]


class _Finder:
    """Looks for the core."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_found = self._is_prepared = False
        self._core: Core | None = None

    def find(self) -> Core | None:
        """It, where it was compiled; looked for once."""
        if not self._is_found:
            with self._lock:
                if not self._is_found:
                    self._take(load_library(describe_library()) if os.name == "posix" else None)
        return self._core

    def prepare(self, tell: Tell) -> None:
        """Have it compiled; what becomes of that is told."""
        if self.find() is not None:
            return
        with self._lock:
            if self._core is None and os.name == "posix" and not self._is_prepared:
                self._is_prepared = True
                try:
                    self._take(obtain_library(describe_library(), tell=tell))
                except GpaError as error:
                    tell(_WITHOUT % str(error).splitlines()[0])

    def _take(self, content: bytes | None) -> None:
        self._core = None if content is None else Core(_open(content, "core"))
        self._is_found = True


_FINDER = _Finder()


def find_core() -> Core | None:
    """The core; None where it was not compiled yet, cannot be, or is not wanted."""
    return _FINDER.find() if is_core_wanted() else None


def prepare_core(tell: Tell = _LOG.warning) -> None:
    """Have the core compiled where it was not yet, and wait for it.

    Args:
        tell: told what is waited for (standard error, where nobody takes the log), and why there is no core where it cannot be compiled.
    """
    if is_core_wanted():
        _FINDER.prepare(tell)


def build_core() -> None:
    """Have the core compiled where it was not yet, without loading it. That it cannot be is logged."""
    if is_core_wanted() and os.name == "posix":
        try:
            obtain_library(describe_library())
        except GpaError as error:
            _LOG.warning(_WITHOUT, str(error).splitlines()[0])


def is_core_wanted() -> bool:
    """Whether the environment leaves anything to the core."""
    return os.environ.get(VARIABLE) != "0"


def describe_core() -> str:
    """Why there is no core and will be none, a clause; empty where there is one, or is one with the first emulation."""
    if not is_core_wanted():
        return f"{VARIABLE}=0"
    if os.name != "posix":
        return "only on Linux and macOS"
    if _FINDER.find() is not None:
        return ""
    if find_c_compiler() is None:
        return "there is no C compiler"
    failure = find_failure(describe_library())
    return "" if failure is None else f"it could not be compiled: {failure.splitlines()[0]}"


def may_translate() -> bool:
    """Whether kernels that run for long may be written in C, too."""
    return os.environ.get(VARIABLE) != "interpreter"


def open_source(text: str, *, needed_for: str) -> ctypes.CDLL:
    """Compile and load one source that includes headers of ours; one that was compiled before is kept.

    Args:
        text: of the source.
        needed_for: what cannot be done without a compiler, for the message.

    Raises:
        GpaError: it cannot be compiled.
        OSError: it cannot be loaded.
    """
    headers = tuple(sorted(SOURCES.glob("*.h")))
    library = Library(
        title="a kernel that runs for long",
        needed_for=needed_for,
        arguments=(*_FLAGS, *_VECTORISING, "-I", str(SOURCES), *_tune(), "source.c", "-lm"),
        files={"source.c": text.encode()},
        inputs=headers,
    )
    return _open(obtain_library(library), "pieces")


def describe_library() -> Library:
    """How the core is compiled."""
    sources = tuple(str(one) for one in sorted(SOURCES.glob("*.c")))
    return Library(
        title="the emulator's core",
        needed_for="a faster emulator",
        arguments=(*_FLAGS, *_tune(), *sources, "-lm"),
        inputs=tuple(sorted(SOURCES.glob("*.h"))),
        usual_s=_USUAL_S,
    )


def _tune() -> tuple[str, ...]:
    """Flags for the processor at work, which is named so that each kind has a library of its own in a cache that several machines share."""
    processor = _describe_processor()
    return ("-march=native", f"-DPROCESSOR={hashlib.sha256(processor.encode()).hexdigest()}") if processor else ()


def _open(content: bytes, kind: str) -> ctypes.CDLL:
    """Load a library from a file that nobody else can have changed."""
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        path = Path(name) / f"{kind}.so"
        path.write_bytes(content)
        return ctypes.CDLL(str(path))


def _describe_processor() -> str:
    """What the processor can do, so that a cache that several machines share has a library for each kind; empty where it is not known."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")
