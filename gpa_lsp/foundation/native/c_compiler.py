"""Libraries in C: :func:`obtain_library` has one compiled, once per machine.

Compiling is shared work, so it happens in a process of its own (``python -P -m gpa_lsp.foundation.native``): one at a time for each library, by a
lock in the user's cache, and to its end whatever becomes of the job, the command or the server that asked. What fails is kept, too, so that the
same failure is not waited for again; ``gpa-lsp doctor cache --clear`` forgets it.
"""

import contextlib
import hashlib
import os
import platform
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import cast

from msgspec import Struct, field

from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.processes.python_children import ask_apart
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, TimeLimits, run_command

# what all C sources of ours may include
SHARED_HEADERS = tuple(Path(__file__).parent / "sources" / name for name in ("sizes.h", "mapped_memory.h", "images.h"))
SHARED_FLAG = f"-I{SHARED_HEADERS[0].parent}"
_COMPILERS = ("cc", "gcc", "clang")
_LIMIT_S = 120.0  # of processor time; the CUDA runtime takes some seconds, and machines are slow
_MEMORY_BYTES = 4 << 30
_SHOWN_CHARACTERS = 2000
_KEPT_BYTES = 64 << 20
_OUTPUT = "library.so"
_PACKAGE = Path(__file__).parents[2]

Tell = Callable[[str], object]  # Told, in words, what is waited for


class Library(Struct, frozen=True, kw_only=True):
    """The recipe of a library."""

    title: str  # what people call it, such as ``the CUDA runtime``
    needed_for: str  # what cannot be done without it, for messages
    arguments: tuple[str, ...]  # of the compiler: flags and sources. Relative names are those of ``files``.
    # contents by name, put into the folder that the compiler runs in
    files: Mapping[str, bytes] = field(default_factory=dict)
    inputs: tuple[Path, ...] = ()  # other files that decide what comes out, such as headers
    usual_s: int = 0  # processor time it takes, about; 0 where it is not worth telling


def find_c_compiler() -> Path | None:
    """The system's C compiler; None where there is none."""
    return next((found for name in _COMPILERS if (found := find_program(name))), None)


def obtain_library(library: Library, *, tell: Tell | None = None) -> bytes:
    """The content of a library, compiled where it was not before.

    Args:
        library: which.
        tell: told once, where it has to be waited for.

    Raises:
        MissingToolError: there is no compiler.
        ToolError: it could not be compiled, now or before.
    """
    compiler = find_c_compiler()
    if compiler is None:
        raise MissingToolError("cc", needed_for=library.needed_for, install="install gcc or clang")
    key = _digest(library, compiler)
    content = open_libraries().load(key)
    if content is not None:
        return content
    failure = _load_failure(key)
    if failure is None:
        if tell is not None and library.usual_s:
            about = format_count(library.usual_s)
            tell(f"compiling {library.title}, once on this machine: about {about} s of processor time")
        content, failure = _ask_process(library, compiler, key)
        if content is not None:
            return content
        words, _, output = failure.partition("\n")
    else:
        words, _, output = failure.partition("\n")
        words += " before; gpa-lsp doctor cache --clear has it tried again"
    raise ToolError("cc", f"it could not compile {library.title}: {words}", output=output)


def open_libraries() -> KeptFiles:
    """Libraries by digest."""
    return KeptFiles(find_cache_folder() / "libraries", limit_bytes=_KEPT_BYTES)


def open_failures() -> KeptFiles:
    """The kept failures to compile libraries, as text by digest."""
    return KeptFiles(find_cache_folder() / "failed-libraries", limit_bytes=_KEPT_BYTES)


def _load_failure(key: str) -> str | None:
    found = open_failures().load(key)
    return None if found is None else found.decode("utf-8", "replace")


def _digest(library: Library, compiler: Path | None) -> str:
    """A name for everything that decides what comes out: a library of another compiler, or of other sources, is another one."""
    words = f"{library.arguments} {platform.machine()} {compiler}"
    digest = hashlib.sha256(words.replace(str(_PACKAGE), "").encode())  # wherever this package is installed
    if compiler is not None:
        facts = compiler.stat()
        digest.update(f"{facts.st_size} {facts.st_mtime_ns}".encode())
    for name, content in sorted(library.files.items()):
        digest.update(f"{name} {len(content)}".encode() + content)
    sources = [Path(word) for word in library.arguments if word.endswith(".c") and word not in library.files]
    for path in (*sources, *library.inputs):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _ask_process(library: Library, compiler: Path, key: str) -> tuple[bytes | None, str]:
    """Have a process of its own compile it: its content, or why there is none. That process goes on where this one ends."""
    try:
        found = cast(tuple[bytes | None, str], ask_apart("gpa_lsp.foundation.native", (library, compiler, key)))
    except (OSError, EOFError) as error:
        return None, f"its process was ended: {error}"
    return found


def make(question: tuple[Library, Path, str]) -> tuple[bytes | None, str]:
    """Do what :func:`_ask_process` asks for; another process may have done it while this process waited for the lock."""
    library, compiler, key = question
    with _lock(library):
        kept = open_libraries()
        content, failure = kept.load(key), _load_failure(key) or ""
        if content is None and not failure:
            try:
                content, failure = _compile(library, compiler)
            except OSError as error:  # as on a full disk, which says nothing about the next time
                failure = f"{error.filename}: {error.strerror}"
            else:
                (kept if content is not None else open_failures()).store(key, content or failure.encode())
                kept.trim()
    return content, failure


def _compile(library: Library, compiler: Path) -> tuple[bytes | None, str]:
    """The content of a library, or why there is none.

    Raises:
        OSError: a file cannot be written or read.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
            folder = Path(name)
            for file, content in library.files.items():
                (folder / file).write_bytes(content)
            environment = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": name, "LC_ALL": "C"}
            limits = RunLimits(time=TimeLimits.for_work(_LIMIT_S), memory_limit_bytes=_MEMORY_BYTES)
            command = [str(compiler), *library.arguments, "-o", _OUTPUT]
            is_well, output = run_command("cc", command, folder=folder, environment=environment, limits=limits)
            if is_well:
                return (folder / _OUTPUT).read_bytes(), ""
            return None, f"the compiler failed\n{output[-_SHOWN_CHARACTERS:]}"
    except ToolError as error:
        return None, str(error).removeprefix("cc: ")


@contextlib.contextmanager
def _lock(library: Library) -> Iterator[None]:
    """One process at a time for each library; where the cache cannot be written to, each for itself."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl  # not on Windows, where nothing is compiled

            folder = open_libraries().folder
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            name = "".join(filter(str.isalnum, library.title))
            stream = stack.enter_context((folder / f"{name}.lock").open("wb"))
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield
