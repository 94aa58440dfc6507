"""Files that a source includes, found without a preprocessor: rather too many than too few; and headers that a compiler did not find.

Conditions are not evaluated, so a header counts although it may be skipped; what is named through a macro cannot be followed.
"""

import itertools
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerFlags
from gpa_lsp.execution.compiler.project import find_project_folder, list_folders_around
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.processes.search_paths import list_package_folders

_INCLUDE = re.compile(
    rb'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"([^"\n]{1,1000})"|<([^>\n]{1,1000})>|([^\s"<][^\n]{0,200}))',
    re.MULTILINE,
)
_MOST_FILES = 2000
_LARGEST_HEADER_BYTES = 4 << 20
_MOST_BYTES = 64 << 20


class IncludedFiles(Struct, frozen=True, kw_only=True):
    """Headers that a source includes."""

    headers: dict[Path, bytes]  # path → text of each header of the project's that was found
    spellings: dict[Path, tuple[str, ...]]  # path → the names that ``#include`` lines give it
    # paths that were looked at and are not there; a header that appears at one of them would be taken
    absent: tuple[Path, ...]
    is_whole: bool  # everything could be followed; False where a macro names a header, or where there is too much
    # names in ``#include`` lines that lead to no header of the project, in their order; those of systems and of CUDA among them
    unfound: tuple[str, ...] = ()


def find_included_files(path: Path, content: bytes, flags: CompilerFlags) -> IncludedFiles:
    """Follow the ``#include`` lines of a source; CUDA's own headers and those of the system are not followed.

    Raises:
        InputError: a header is a pipe.
    """
    walk = _Walk(path, flags)
    walk.follow(content, path.parent)
    for header in flags.forced_includes:
        walk.enter(header)
    while walk.pending:
        header = walk.pending.pop()
        walk.follow(walk.headers[header], header.parent)
    return IncludedFiles(
        headers=walk.headers,
        spellings={found: tuple(names) for found, names in walk.spellings.items()},
        absent=tuple(walk.absent),
        is_whole=walk.is_whole,
        unfound=tuple(walk.unfound),
    )


class _Walk:
    """One walk over the headers of a source."""

    def __init__(self, source: Path, flags: CompilerFlags) -> None:
        self.headers: dict[Path, bytes] = {}
        self.spellings: dict[Path, dict[str, None]] = {}
        self.absent: dict[Path, None] = {}
        self.unfound: dict[str, None] = {}
        self.pending: list[Path] = []
        self.is_whole = True
        self._folders = tuple(dict.fromkeys((*flags.includes, *flags.system_includes)))
        self._own_source = source
        self._cuda = find_cuda_headers()
        self._known: dict[Path, bool] = {}
        self._bytes = 0

    def follow(self, text: bytes, folder: Path) -> None:
        for found in _INCLUDE.finditer(text):
            quoted, bracketed, computed = found.groups()
            if computed is not None:
                self.is_whole = self.is_whole and computed.lstrip().startswith(b"//")
                continue
            name = os.fsdecode(quoted or bracketed)
            folders = (folder, *self._folders) if quoted is not None else self._folders
            for one in folders:
                header = Path(os.path.normpath(one / name))
                if self.enter(header):
                    self.spellings.setdefault(header, {})[name] = None
                    break
            else:
                self.unfound[name] = None

    def enter(self, path: Path) -> bool:
        """Add a header; False if it does not exist."""
        if path in self._known or path == self._own_source:
            return self._known.get(path, True)
        if len(self._known) >= _MOST_FILES or self._bytes > _MOST_BYTES:
            self.is_whole = False
            return False
        text = self._read(path)
        self._known[path] = text is not None
        if text is None:
            self.absent[path] = None
            return False
        if not any(path.is_relative_to(folder) for folder in self._cuda):
            self.headers[path] = text
            self.pending.append(path)
            self._bytes += len(text)
        return True

    def _read(self, path: Path) -> bytes | None:
        try:
            if not path.is_file():
                if path.is_fifo() or path.is_socket():  # a compiler would block on it
                    raise InputError("a header is not a regular file", path=path, remedy="replace it by a file")
                return None
            with path.open("rb") as stream:
                text = stream.read(_LARGEST_HEADER_BYTES + 1)
        except (OSError, ValueError):
            return None
        if len(text) > _LARGEST_HEADER_BYTES:
            self.is_whole = False
        return text


_MARK = "cuda_fp16.h"
_LIBRARIES = "cccl"
_TOOLKIT_VARIABLES = ("CUDA_PATH", "CUDA_HOME")
_TOOLKIT_FOLDER = Path("/usr/local/cuda")


@cache
def find_cuda_headers() -> tuple[Path, ...]:
    """Include folders of CUDA's headers, in order; empty if none are installed. Cached.

    Source: the layout of NVIDIA's wheels of CUDA 12 (``nvidia/cuda_runtime/include``) and 13 (``nvidia/cu13/include``), and of the toolkit.
    """
    for folders in _list_candidates():
        found = tuple(dict.fromkeys(folder for folder in folders if folder.is_dir()))
        if any((folder / _MARK).is_file() for folder in found):
            return (*found, *(folder / _LIBRARIES for folder in found if (folder / _LIBRARIES).is_dir()))
    return ()


def _list_candidates() -> Iterator[list[Path]]:
    for root in list_package_folders("nvidia"):
        releases = (path for path in root.glob("cu*/include") if path.parent.name[2:].isdigit())
        for folder in sorted(releases, key=lambda path: int(path.parent.name[2:]), reverse=True):
            yield [folder]
        yield [root / "cuda_runtime" / "include", root / "cuda_cccl" / "include"]
    for variable in _TOOLKIT_VARIABLES:
        if os.environ.get(variable):
            yield [Path(os.environ[variable]) / "include"]
    compiler = find_tool("nvcc")
    if compiler is not None:
        yield [compiler.resolve().parent.parent / "include"]
    yield [_TOOLKIT_FOLDER / "include"]


_MISSING = re.compile(
    r'(?:cannot|could not) open source file "([^"]+)"|(?:fatal error: )?(\S[^:]*): No such file or directory|Cannot open include file: \'([^\']+)\''
)
_MOST_FOLDERS = 6
_SYSTEM_FOLDERS = (Path("/usr/include"), Path("/usr/local/include"))
# Where projects keep headers, below the folders around a source
_USUAL_FOLDERS = (
    "include", "inc", "Include", "common", "Common", "common/inc", "src", "utils", "util", "utilities", "lib",
)  # fmt: skip
_OF_SYSTEMS = re.compile(
    r"(?:assert|complex|ctype|errno|fenv|float|inttypes|limits|locale|malloc|math|memory|pthread|setjmp|signal|std\w+|strings?|time|unistd|wchar"
    r"|windows|sys/\w+)\.h"
)
# Headers that come with CUDA, its libraries and what programs on GPUs are linked with: compilers find them without a flag of the project's.
_OF_LIBRARIES = re.compile(
    r"(?:cu(?:blas|fft|rand|sparse|solver|dnn|tensor|file|pti|da)\w*|cuda|nv\w+|npp\w*|nccl\w*|thrust|cub|cooperative_groups\w*|mma|mpi\w*|omp|hip|sycl|rocm)"
    r"(?:\.h\w*$|/)",
    re.IGNORECASE,
)
_FOLDERS_AROUND = 3
_MOST_ROUNDS = 4
_MOST_SEARCHED = 5000
_SKIPPED = frozenset({"node_modules", "__pycache__", "site-packages"})
_NO_CUDA_HEADERS = (
    "CUDA's own headers are not installed: pip install nvidia-cuda-runtime nvidia-cuda-cccl, or set CUDA_HOME"
)


def find_missing_header(text: str) -> str | None:
    """Header that a message reports missing; None for other messages.

    >>> find_missing_header('cannot open source file "a/b.h"'), find_missing_header("b.h: No such file or directory"), find_missing_header("x")
    ('a/b.h', 'b.h', None)
    """
    found = _MISSING.search(text)
    return next((one for one in found.groups() if one is not None), None) if found is not None else None


def is_surely_missing(header: str, include_line: str, *, has_flags: bool) -> bool:
    """Whether the user's own build would miss the header, too: one of the project, with the project's own flags known.

    >>> is_surely_missing("a/b.h", '#include "a/b.h"', has_flags=True), is_surely_missing("a/b.h", '#include "a/b.h"', has_flags=False)
    (True, False)
    >>> is_surely_missing("mpi.h", "#include <mpi.h>", has_flags=True), is_surely_missing("cublas_v2.h", '#include "cublas_v2.h"', has_flags=True)
    (False, False)
    """
    is_quoted = f'"{header}"' in include_line
    return has_flags and is_quoted and _OF_LIBRARIES.match(header) is None and _OF_SYSTEMS.fullmatch(header) is None


def explain_missing_headers(unit: CompiledUnit, flags: CompilerFlags) -> CompiledUnit:
    """Unit with a remedy appended to each message about a missing header."""
    if not any(find_missing_header(one.text) for one in unit.messages):
        return unit
    remedy = describe_search(flags)
    if not find_cuda_headers():
        remedy = f"{_NO_CUDA_HEADERS}; {remedy}"
    return replace(
        unit,
        messages=tuple(
            replace(one, text=f"{one.text}; {remedy}") if find_missing_header(one.text) else one
            for one in unit.messages
        ),
    )


def include_with_search(path: Path, content: bytes, flags: CompilerFlags) -> tuple[CompilerFlags, IncludedFiles]:
    """Flags and headers of a source; headers that the flags do not lead to are searched for in the project.

    Raises:
        InputError: a header is a pipe.
    """
    included = find_included_files(path, content, flags)
    for _ in range(_MOST_ROUNDS):
        found = {name: folder for name in included.unfound if (folder := _find_folder(path, name)) is not None}
        added = tuple(dict.fromkeys(one for one in found.values() if one not in flags.includes))
        if not added:
            break
        said = (
            f"{name} was found in {os.path.relpath(found[name], path.parent)}; no compile command says where it is"
            for name in found
        )
        flags = replace(flags, includes=(*flags.includes, *added), doubts=(*flags.doubts, *said))
        included = find_included_files(path, content, flags)
    return flags, included


def _find_folder(source: Path, name: str) -> Path | None:
    """Folder below which a project header is found by its name; None for system headers, and if there is none or several."""
    plain = Path(name)
    if "." not in plain.name or plain.is_absolute() or ".." in plain.parts or _OF_SYSTEMS.fullmatch(name):
        return None
    try:
        if any((folder / plain).exists() for folder in (*find_cuda_headers(), *_SYSTEM_FOLDERS)):
            return None
        for folder in itertools.islice(list_folders_around(source), _FOLDERS_AROUND):
            for place in (folder, *(folder / one for one in _USUAL_FOLDERS)):
                if (place / plain).is_file():
                    return place
    except (OSError, ValueError):
        return None
    found = set(_search(find_project_folder(source), plain))
    return found.pop() if len(found) == 1 else None


def _search(project: Path, name: Path) -> Iterator[Path]:
    seen = 0
    for folder, folders, files in os.walk(project):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED and not one.startswith("."))
        seen += len(files) + 1
        if seen > _MOST_SEARCHED:
            return
        parts = Path(folder, name.name).parts
        if name.name in files and parts[-len(name.parts) :] == name.parts:
            yield Path(*parts[: -len(name.parts)])


def describe_search(flags: CompilerFlags) -> str:
    """Folders that were searched for headers, and how to correct them.

    >>> from pathlib import Path
    >>> describe_search(CompilerFlags(directory=Path("/p"), includes=(Path("/p/inc"),), origin="build/compile_commands.json"))[:105]
    "besides the source's own folder, /p/inc were searched, the include folders of build/compile_commands.json"
    """
    folders = (*flags.includes, *flags.system_includes)
    if not flags.origin and not folders:
        return (
            "only the source's own folder was searched, because no compile command of this file was found; add compile_commands.json "
            "(for CMake, -DCMAKE_EXPORT_COMPILE_COMMANDS=ON) or the output of make -n -B in compile.log"
        )
    shown = ", ".join(map(str, folders[:_MOST_FOLDERS])) or "no folders"
    more = f" and {len(folders) - _MOST_FOLDERS} more" if len(folders) > _MOST_FOLDERS else ""
    source = f" of {flags.origin}" if flags.origin else ""
    return f"besides the source's own folder, {shown}{more} were searched, the include folders{source}; build the project once, or correct them"
