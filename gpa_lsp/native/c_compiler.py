"""The system's C compiler, which makes libraries of sources of ours: :func:`compile_library`."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.basis.errors import MissingToolError, ToolError
from gpa_lsp.processes.search_paths import find_program
from gpa_lsp.processes.watched_command import TEMPORARY, RunLimits, run_command

_COMPILERS = ("cc", "gcc", "clang")
_LIMIT_S = 60.0
_MEMORY_BYTES = 4 << 30
_SHOWN_CHARACTERS = 2000


def find_c_compiler() -> Path | None:
    """What libraries are compiled with; None where there is nothing."""
    return next((found for name in _COMPILERS if (found := find_program(name))), None)


def compile_library(compiler: Path | None, arguments: Sequence[str], library: Path, *, needed_for: str) -> None:
    """Compile and link one library.

    Args:
        compiler: of :func:`find_c_compiler`.
        arguments: flags and sources.
        library: what is written.
        needed_for: what cannot be done without a compiler, for the message.

    Raises:
        MissingToolError: there is no compiler.
        ToolError: it failed.
    """
    if compiler is None:
        raise MissingToolError("cc", needed_for=needed_for, install="install gcc or clang")
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": str(folder), "LC_ALL": "C"}
        limits = RunLimits(limit_s=_LIMIT_S, memory_limit_bytes=_MEMORY_BYTES)
        command = [str(compiler), *arguments, "-o", str(library)]
        is_well, output = run_command("cc", command, folder=folder, environment=environment, limits=limits)
        if not is_well:
            raise ToolError("cc", f"it could not compile {library.name}", output=output[-_SHOWN_CHARACTERS:])
