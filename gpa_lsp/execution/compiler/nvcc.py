"""Whole sources, host code and all, by nvcc: 0.6 to 3 s."""

import re
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.execution.compiler.job import CompileJob
from gpa_lsp.execution.compiler.messages import parse_messages
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerKind, CompilerMessage
from gpa_lsp.execution.compiler.nvcc_command import NvccCommand, prepare_command
from gpa_lsp.execution.compiler.nvcc_location import TOOL, NvccInstallation, build_environment
from gpa_lsp.execution.compiler.source_text import find_text_line
from gpa_lsp.foundation.errors import ProblemSeverity, ToolError, UnsupportedInputError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.foundation.processes.time_limits import TimeLimits
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, run_command

_LARGEST_RESULT_BYTES = 512 << 20
_VERSION = re.compile(r"Cuda compilation tools, release (\d+\.\d+)")
_HEAD_CHARACTERS = 1000
_UNKNOWN_ARCHITECTURE = "Unsupported gpu architecture"


def compile_with_nvcc(job: CompileJob, installation: NvccInstallation) -> CompiledUnit:
    """Compile a source for one architecture.

    Raises:
        ToolError: nvcc crashed, did not end in time, was cancelled, or gave something that is too large.
        UnsupportedInputError: this nvcc does not know the architecture.
    """
    begin_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        command = prepare_command(job, installation.program, folder)
        is_well, output = run_command(
            TOOL,
            command.words,
            folder=folder,
            environment=build_environment(installation, folder),
            limits=RunLimits(
                time=TimeLimits.for_work(job.settings.limit_s),
                memory_limit_bytes=job.settings.memory_limit_bytes,
                is_cancelled=job.is_cancelled,
            ),
        )
        ptx = _read_result(command.ptx) if is_well else None
        cubin = _read_result(command.image) if is_well else None
    if not is_well and _UNKNOWN_ARCHITECTURE in output:
        raise UnsupportedInputError(
            f"nvcc does not compile for {job.target}",
            path=job.path,
            remedy="choose an architecture of the installed CUDA release",
        )
    text = ptx.decode("utf-8", "replace") if ptx is not None else None
    version = _VERSION.search(text[:_HEAD_CHARACTERS]) if text is not None else None
    return CompiledUnit(
        source=job.path,
        kind=CompilerKind.NVCC,
        compiler=f"nvcc {version[1]}" if version else TOOL,
        compute_capability=job.compute_capability,
        ptx=text,
        cubin=cubin,
        messages=_read_messages(job, command, output, folder, is_well),
        seconds=time.perf_counter() - begin_s,
    )


def _read_messages(
    job: CompileJob, command: NvccCommand, output: str, folder: Path, is_well: bool
) -> tuple[CompilerMessage, ...]:
    def find_line(path: Path, line: int) -> str | None:
        return find_text_line(job.content, line) if path == job.path else None

    messages = tuple(_place(one, command, folder) for one in parse_messages(output, find_line=find_line))
    if is_well or any(one.severity is ProblemSeverity.ERROR for one in messages):
        return messages
    words = " ".join(output.split())[-500:]
    text = "nvcc failed" + (f": {words}" if words else " without a message")
    return (*messages, CompilerMessage(severity=ProblemSeverity.ERROR, text=text, path=job.path))


def _place(message: CompilerMessage, command: NvccCommand, folder: Path) -> CompilerMessage:
    """A message about a file behind one of our links is about the file itself; one about our own files has no place."""
    if message.path is None:
        return message
    path = Path(folder, message.path)
    for link, original in command.links.items():
        if path.is_relative_to(link):
            return replace(message, path=original / path.relative_to(link))
    if path.is_relative_to(folder):
        return replace(message, path=None, line=None, column=None)
    return message


def _read_result(path: Path) -> bytes | None:
    try:
        size = path.stat().st_size
        if size > _LARGEST_RESULT_BYTES:
            raise ToolError(TOOL, f"its result has {format_bytes(size)}, more than is read")
        return path.read_bytes() or None
    except OSError:
        return None
