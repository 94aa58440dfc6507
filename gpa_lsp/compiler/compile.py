"""A source → PTX, cubin and messages: which flags, which compiler, what is left out."""

import os
from collections.abc import Callable
from pathlib import Path

from gpa_lsp.compiler.job import CompileJob
from gpa_lsp.compiler.model import CompiledUnit, CompilerFlags
from gpa_lsp.compiler.nvrtc import compile_with_nvrtc
from gpa_lsp.compiler.settings import DEFAULT_COMPUTE_CAPABILITY, DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.compiler.source_text import read_source


def compile_source(
    path: Path,
    *,
    text: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    flags: CompilerFlags | None = None,
    settings: CompileSettings = DEFAULT_SETTINGS,
    is_cancelled: Callable[[], bool] | None = None,
) -> CompiledUnit:
    """Compile a CUDA C++ source for one architecture; nothing of it, nor of its project, is run.

    Args:
        path: the source; line tables and messages name it.
        text: what an editor holds of it; None to read the file.
        compute_capability: to compile for; None for the newest that the flags ask for, else 8.0.
        flags: from :func:`gpa_lsp.compiler.project.find_flags` or by hand; None to look for the project's own.
        settings: which compiler, and limits.
        is_cancelled: asked every few milliseconds while a compiler runs; True ends it.

    Returns:
        The unit. A source with errors gives one without code, and its messages say why.

    Raises:
        InputError: the source cannot be read, or the compiler does not know the architecture.
        MissingToolError: no compiler is installed.
        ToolError: the compiler crashed, did not end in time, or was cancelled.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: line tables name the file as the editor does
    content = read_source(path, text)
    if flags is None:
        flags = CompilerFlags(directory=path.parent)
    if compute_capability is None:
        compute_capability = (
            flags.compute_capabilities[-1] if flags.compute_capabilities else DEFAULT_COMPUTE_CAPABILITY
        )
    job = CompileJob(
        path=path,
        content=content,
        compute_capability=compute_capability,
        flags=flags,
        settings=settings,
        is_cancelled=is_cancelled,
    )
    return compile_with_nvrtc(job)
