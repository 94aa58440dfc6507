"""The compiled core: :func:`find_core` gives its functions, or None where numpy does the work.

It is compiled when it is first asked for, with the system's compiler and for the processor at work, and kept in the user's cache by a digest of
its sources, flags, compiler and processor. Whoever calls a function of it has the same in numpy beside it: a function that cannot do what it is
asked for (no memory, an index that leads nowhere) says so, and numpy does it, or says what is wrong.
"""

import ctypes
import hashlib
import logging
import os
import platform
import tempfile
import threading
from pathlib import Path
from typing import Any

import numpy as np

from gpa_lsp.basis.errors import GpaError
from gpa_lsp.basis.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.native.c_compiler import compile_library, find_c_compiler
from gpa_lsp.processes.watched_command import TEMPORARY

_LOG = logging.getLogger(__name__)

VARIABLE = "GPA_LSP_COMPILED_CORE"
"""``0`` in this variable of the environment leaves all to numpy; ``interpreter`` leaves kernels that run for long to the core as it is."""

SOURCES = Path(__file__).parent / "sources"
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
"""Nothing that lets a compiler round otherwise than it is written."""

_VECTORISING = ("-fno-math-errno", "-fno-trapping-math")
"""No result depends on these two, and no trap or error is looked at; loops over lanes become vector instructions with them."""

_KEPT_BYTES = 16 << 20
_FAILED = -1


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
    if isinstance(argument, np.ndarray):
        return ctypes.c_void_p(argument.ctypes.data)
    return ctypes.c_int64(argument)


class _Finder:
    """Looks for the core once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_found = False
        self._core: Core | None = None
        self.reason = ""

    def find(self) -> Core | None:
        """It, whatever the environment says now."""
        if not self._is_found:
            with self._lock:
                if not self._is_found:
                    self._core = self._load()
                    self._is_found = True
        return self._core

    def _load(self) -> Core | None:
        if os.name != "posix":
            self.reason = "only on Linux and macOS"
            return None
        try:
            return Core(_open(_build(), "core"))
        except (GpaError, OSError) as error:
            self.reason = str(error)
            _LOG.info("the compiled core is not used: %s", error)
            return None


_FINDER = _Finder()


def find_core() -> Core | None:
    """The core; None where there is none, or where it is not wanted."""
    if os.environ.get(VARIABLE) == "0":
        return None
    return _FINDER.find()


def describe_core() -> str:
    """Why there is no core, a clause; empty where there is one."""
    if os.environ.get(VARIABLE) == "0":
        return f"{VARIABLE}=0"
    return "" if _FINDER.find() is not None else _FINDER.reason


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
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        source = Path(name) / "source.c"
        source.write_text(text, encoding="utf-8")
        flags = (*_FLAGS, *_VECTORISING, "-I", str(SOURCES))
        return _open(_compile([source], flags, text.encode(), kind="pieces", needed_for=needed_for), "pieces")


def _build() -> bytes:
    """The library, compiled where it was not before."""
    sources = sorted(SOURCES.glob("*.c"))
    written = b"".join(source.read_bytes() for source in sources)
    return _compile(sources, _FLAGS, written, kind="core", needed_for="a faster emulator")


def _compile(sources: list[Path], flags: tuple[str, ...], written: bytes, *, kind: str, needed_for: str) -> bytes:
    """A library of some sources, compiled where it was not before.

    Args:
        sources: them.
        flags: they are compiled with.
        written: what stands in them.
        kind: where it is kept.
        needed_for: what cannot be done without a compiler, for the message.
    """
    compiler = find_c_compiler()
    processor = _describe_processor()
    flags = (*flags, "-march=native") if processor else flags
    digest = hashlib.sha256(f"{flags} {compiler} {platform.machine()} {processor}".encode())
    digest.update(written)
    for header in sorted(SOURCES.glob("*.h")):
        digest.update(header.read_bytes())
    kept = KeptFiles(find_cache_folder() / kind, limit_bytes=_KEPT_BYTES)
    content = kept.load(digest.hexdigest())
    if content is None:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
            library = Path(name) / "core.so"
            arguments = [*flags, *(str(one) for one in sources), "-lm"]
            compile_library(compiler, arguments, library, needed_for=needed_for)
            content = library.read_bytes()
        kept.store(digest.hexdigest(), content)
        kept.trim()
    return content


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
