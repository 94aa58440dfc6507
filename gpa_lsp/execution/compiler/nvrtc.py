"""Device code by NVRTC: in a process that is kept warm, 25 to 60 ms for a kernel."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from gpa_lsp.execution.compiler.device_headers import read_device_headers
from gpa_lsp.execution.compiler.header_folders import find_cuda_headers
from gpa_lsp.execution.compiler.job import CompileJob
from gpa_lsp.execution.compiler.messages import parse_messages
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerKind, CompilerMessage
from gpa_lsp.execution.compiler.nvrtc_processes import PROCESSES
from gpa_lsp.execution.compiler.nvrtc_worker import NvrtcAnswer, NvrtcJob
from gpa_lsp.execution.compiler.source_text import find_text_line
from gpa_lsp.foundation.errors import ProblemSeverity, UnsupportedInputError

_KNOWN_SWITCHES = ("--use_fast_math", "-maxrregcount", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "--restrict",
                   "--extra-device-vectorization", "-Xptxas", "-rdc", "--extensible-whole-program")  # fmt: skip
# Functions that say neither host nor device are compiled for the device; without it NVRTC refuses members of classes and ``constexpr`` functions
_UNANNOTATED = "-default-device"

_LONG_INT64 = "--define-macro=GPA_LSP_LONG_INT64"
_LIMITS = "limits.h"  # nvcc reads it before every source, and old ones count on that
_NVIDIA_LIBRARY = re.compile(
    rb'#[ \t]*include[ \t]*[<"]((?:cuda/|cub/|thrust/|cooperative_groups|cuda_pipeline|cuda_awbarrier|nv/)[^>"\n]*)[>"]'
)
_TWO_INT64 = 'invalid redeclaration of type name "'

NAME_MAP = "__nv_name_map"  # The file NVRTC names in errors about instantiations that it was asked for


class DeviceText(Struct, frozen=True, kw_only=True):
    """What of a source is compiled."""

    content: bytes  # stands in place of the source's text, with the same lines and columns
    expressions: tuple[str, ...] = ()  # kernel templates to instantiate
    # (name in the ``#include``, text) of headers that are taken from here and from nowhere else
    headers: tuple[tuple[str, str], ...] = ()
    folders: tuple[Path, ...] = ()  # searched for headers besides those of the flags
    is_host_left_out: bool = False  # ``content`` has blanks where the source has host code


def compile_with_nvrtc(job: CompileJob, text: DeviceText | None = None) -> CompiledUnit:
    """Compile the device code of a source.

    Args:
        text: the part of it that is compiled; None for all of it.

    Raises:
        MissingToolError: NVRTC is not installed.
        ToolError: it crashed, did not end in time, or was cancelled.
        UnsupportedInputError: this NVRTC does not know the architecture.
    """
    text = text or DeviceText(content=job.content)
    greeting = PROCESSES.greet()
    number = job.compute_capability[0] * 10 + job.compute_capability[1]
    if number not in greeting.architectures:
        known = ", ".join(f"sm_{one}" for one in greeting.architectures)
        version = ".".join(map(str, greeting.version or ()))
        raise UnsupportedInputError(
            f"NVRTC {version} does not compile for {job.target}",
            path=job.path,
            remedy=f"choose one of {known}, or install another release of NVRTC",
        )
    takes_long = os.name != "nt" and not _reads_nvidia_library(job, text)
    answer = _ask(job, text, takes_long=takes_long)
    if takes_long and answer.error is not None and _TWO_INT64 in answer.log:
        answer = _ask(job, text, takes_long=False)
    return _build_unit(job, answer, f"NVRTC {'.'.join(map(str, greeting.version or ()))}", text.is_host_left_out)


def _reads_nvidia_library(job: CompileJob, text: DeviceText) -> bool:
    empty = {name for name, content in text.headers if not content}
    texts = (text.content, *job.included.headers.values())
    return any(
        found[1].decode("utf-8", "replace") not in empty for one in texts for found in _NVIDIA_LIBRARY.finditer(one)
    )


def _ask(job: CompileJob, text: DeviceText, *, takes_long: bool) -> NvrtcAnswer:
    headers = dict((*read_device_headers(), *text.headers))
    return PROCESSES.compile(
        NvrtcJob(
            source=text.content,
            name=str(job.path),
            options=(*_list_options(job, text.folders), *([_LONG_INT64] if takes_long else [])),
            headers=tuple(headers.items()),
            expressions=text.expressions,
            limit_s=job.settings.limit_s,
        ),
        is_cancelled=job.is_cancelled,
    )


def _list_options(job: CompileJob, folders: tuple[Path, ...]) -> Iterator[str]:
    flags = job.flags
    yield f"--gpu-architecture={job.target}"
    yield "-lineinfo"
    if flags.standard is not None:
        yield f"--std={flags.standard}"
    for macro in flags.macros:
        yield f"--undefine-macro={macro[1:]}" if macro.startswith("-") else f"--define-macro={macro}"
    for folder in (*flags.includes, *flags.system_includes, *folders, *find_cuda_headers()):
        yield f"--include-path={folder}"
    yield f"--pre-include={_LIMITS}"
    for header in flags.forced_includes:
        yield f"--pre-include={header}"
    for switch in (*flags.optimisation, *flags.language):
        if switch.partition("=")[0] in _KNOWN_SWITCHES:
            yield switch
    yield _UNANNOTATED


def _build_unit(job: CompileJob, answer: NvrtcAnswer, compiler: str, is_host_left_out: bool) -> CompiledUnit:
    def find_line(path: Path, line: int) -> str | None:
        return find_text_line(job.content, line) if path == job.path else None

    messages = parse_messages(answer.log, find_line=find_line)
    if answer.error is not None and not any(one.severity is ProblemSeverity.ERROR for one in messages):
        words = " ".join(answer.log.split())[:500]
        text = f"{compiler} failed ({answer.error})" + (f": {words}" if words else "")
        messages = (*messages, CompilerMessage(severity=ProblemSeverity.ERROR, text=text, path=job.path))
    return CompiledUnit(
        source=job.path,
        kind=CompilerKind.NVRTC,
        compiler=compiler,
        compute_capability=job.compute_capability,
        ptx=answer.ptx.decode("utf-8", "replace") if answer.ptx is not None else None,
        cubin=answer.cubin,
        messages=messages,
        is_host_left_out=is_host_left_out,
        seconds=answer.seconds,
    )
