"""Headers that a compiler did not find: searched for in the project, and explained in messages."""

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.execution.compiler.included_files import IncludedFiles, find_cuda_headers, find_included_files
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerFlags
from gpa_lsp.execution.compiler.project import find_project_folder, list_folders_around

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
