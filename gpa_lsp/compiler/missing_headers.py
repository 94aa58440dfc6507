"""Headers that a compiler did not find: which flags were used, where those come from, and what to do."""

import re
from dataclasses import replace

from gpa_lsp.compiler.header_folders import find_cuda_headers
from gpa_lsp.compiler.model import CompiledUnit, CompilerFlags, CompilerMessage

_MISSING = re.compile(
    r'(?:cannot|could not) open source file "([^"]+)"|(?:fatal error: )?(\S[^:]*): No such file or directory|Cannot open include file: \'([^\']+)\''
)
_MOST_FOLDERS = 6
_NO_CUDA_HEADERS = (
    "CUDA's own headers are not installed: pip install nvidia-cuda-runtime nvidia-cuda-cccl, or set CUDA_HOME"
)


def find_missing_header(text: str) -> str | None:
    """The header that a message says is not there; None for any other message.

    >>> find_missing_header('cannot open source file "a/b.h"'), find_missing_header("b.h: No such file or directory"), find_missing_header("x")
    ('a/b.h', 'b.h', None)
    """
    found = _MISSING.search(text)
    return next((one for one in found.groups() if one is not None), None) if found is not None else None


def explain_missing_headers(unit: CompiledUnit, flags: CompilerFlags) -> CompiledUnit:
    """The unit with a remedy behind each message about a header that was not found."""
    if not any(find_missing_header(one.text) for one in unit.messages):
        return unit
    remedy = describe_search(flags)
    if not find_cuda_headers():
        remedy = f"{_NO_CUDA_HEADERS}; {remedy}"
    return replace(unit, messages=tuple(_explain(one, remedy) for one in unit.messages))


def describe_search(flags: CompilerFlags) -> str:
    """Where headers were looked for, and what to do to have them found elsewhere.

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


def _explain(message: CompilerMessage, remedy: str) -> CompilerMessage:
    return replace(message, text=f"{message.text}; {remedy}") if find_missing_header(message.text) else message
