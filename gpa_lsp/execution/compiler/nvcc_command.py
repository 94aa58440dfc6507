"""The command line of nvcc, and the text it compiles.

nvcc hands its own command lines to a shell without quoting what is in them: a macro ``$(…)`` in a compile command would be run, and a comma cuts a
value in two. So only plain words stand on its command line. Macros with anything else in their values become ``#define`` lines in front of the
source, headers to include first become ``#include`` lines there, and folders with unusual names are reached through links with usual ones.

Source: nvcc 13.0 and 13.5 ran ``touch`` from ``-DX='$(touch …)'`` and from backquotes.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.job import CompileJob
from gpa_lsp.execution.compiler.source_text import name_in_include, write_shadow
from gpa_lsp.foundation.errors import ToolError

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./+=:@~-]*")
_PLAIN_PATH = re.compile(r"[\w./+=:@~ \\()-]+" if os.name == "nt" else r"[\w./+=:@~ -]+")
_SHADOW = "shadow.cu"
_IMAGE = "device.cubin"
_KEPT = "kept"


class NvccCommand(Struct, frozen=True, kw_only=True):
    """A command and its files, all in one temporary folder."""

    words: tuple[str, ...]  # the command
    image: Path  # where the cubin will be
    ptx: Path  # where the PTX will be
    links: dict[Path, Path]  # link → folder it stands for


def prepare_command(job: CompileJob, program: Path, folder: Path) -> NvccCommand:
    """Write the text that nvcc is to compile into a folder, and its command.

    Raises:
        ToolError: the system's temporary folder has a name that nvcc cannot be given.
    """
    if not _PLAIN_PATH.fullmatch(str(folder)):
        raise ToolError("nvcc", f"the temporary folder has an unusual name, {folder}; set TMPDIR to another")
    flags = job.flags
    has_plain_macros = all(_PLAIN_WORD.fullmatch(macro) for macro in flags.macros)
    links: dict[Path, Path] = {}
    forced = b"".join(_include_first(header, folder, links) for header in flags.forced_includes)
    (folder / _SHADOW).write_bytes(
        write_shadow(job.content, job.path, () if has_plain_macros else flags.macros, first=forced)
    )
    (folder / _KEPT).mkdir()
    image = folder / _IMAGE
    words = [
        str(program),
        "-cubin",
        f"-arch={job.target}",
        "-lineinfo",
        "--keep",
        f"--keep-dir={folder / _KEPT}",
    ]
    words += [f"-std={flags.standard}"] if flags.standard is not None else []
    words += [*flags.optimisation, *flags.language]
    words += [f"-U{macro[1:]}" if macro.startswith("-") else f"-D{macro}" for macro in flags.macros if has_plain_macros]
    for option, folders in (("-I", (*flags.includes, job.path.parent)), ("-isystem=", flags.system_includes)):
        words += [option + name for name in _name_plainly(folders, folder, links)]
    words += ["-x", "cu", str(folder / _SHADOW), "-o", str(image)]
    return NvccCommand(words=tuple(words), image=image, ptx=folder / _KEPT / f"{Path(_SHADOW).stem}.ptx", links=links)


def _include_first(header: Path, temporary: Path, links: dict[Path, Path]) -> bytes:
    """The line that includes a header, through a link where its folder cannot be named there; nothing where it cannot be named at all."""
    name = name_in_include(header)
    if name is None:
        folder = next(_name_plainly((header.parent,), temporary, links), None)
        name = name_in_include(Path(folder, header.name)) if folder is not None else None
    return b"" if name is None else b'#include "' + name + b'"\n'


def _name_plainly(folders: tuple[Path, ...], temporary: Path, links: dict[Path, Path]) -> Iterator[str]:
    """The folders' names, or those of links to them; folders that are not there and cannot be linked are left out."""
    for folder in folders:
        if _PLAIN_PATH.fullmatch(str(folder)):
            yield str(folder)
            continue
        link = temporary / f"include{len(links)}"
        try:
            link.symlink_to(folder, target_is_directory=True)
        except (OSError, ValueError):
            continue
        links[link] = folder
        yield str(link)
