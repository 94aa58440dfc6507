"""Worker process that runs NVRTC: :class:`NvrtcJob` in, :class:`NvrtcAnswer` out.

NVRTC runs in a process of its own because what it compiles is whatever stands in an editor: templates without end fill the memory or never
come back, and a compiler that crashes takes its process along. The process stays between compilations, since loading the library takes ten
times as long as a small kernel.
"""

import os
import time
from functools import cache
from typing import Any

from msgspec import Struct

from gpa_lsp.foundation.processes.worker import Tell, Work

GREET = "greet"  # The job that asks what NVRTC there is


class NvrtcJob(Struct, frozen=True, kw_only=True):
    """One compilation."""

    source: bytes  # the text; no NUL in it
    name: str  # the file the line table names
    options: tuple[str, ...]  # as for ``nvrtcCompileProgram``
    headers: tuple[tuple[str, str], ...] = ()  # (name in the ``#include``, text) of headers that are on no disk
    expressions: tuple[str, ...] = ()  # kernel templates to instantiate, e.g. ``scale<float>``.
    limit_s: float  # seconds it may take


class NvrtcAnswer(Struct, frozen=True, kw_only=True):
    """Result of a compilation."""

    error: str | None  # name of its error, e.g. ``NVRTC_ERROR_COMPILATION``; None when all went well.
    log: str  # its own words and the assembler's
    ptx: bytes | None  # the PTX; None when there is none
    cubin: bytes | None  # the image; None when there is none
    seconds: float  # wall time


class NvrtcGreeting(Struct, frozen=True, kw_only=True):
    """Installed NVRTC: the answer to :data:`GREET`."""

    version: tuple[int, int] | None  # of NVRTC; None when it cannot be loaded
    architectures: tuple[int, ...] = ()  # numbers it compiles for, ascending, e.g. 75, 80.
    reason: str = ""  # why it cannot be loaded; empty when it can


def _do(job: object, tell: Tell) -> object:
    nvrtc, greeting = _load()
    return _compile(nvrtc, job) if isinstance(job, NvrtcJob) else greeting


@cache
def _load() -> tuple[Any, NvrtcGreeting]:
    try:
        from cuda.bindings import nvrtc  # an optional dependency

        _, major, minor = nvrtc.nvrtcVersion()  # the library itself is looked for at the first call
        _, count = nvrtc.nvrtcGetNumSupportedArchs()
        _, architectures = nvrtc.nvrtcGetSupportedArchs()
    except (ImportError, RuntimeError, OSError) as error:
        return None, NvrtcGreeting(version=None, reason=f"{type(error).__name__}: {error}")
    known = tuple(sorted(int(one) for one in architectures[: int(count)]))
    return nvrtc, NvrtcGreeting(version=(int(major), int(minor)), architectures=known)


def _compile(nvrtc: Any, job: NvrtcJob) -> NvrtcAnswer:
    begin = time.process_time()
    names = [name.encode() for name, _ in job.headers]
    texts = [text.encode() for _, text in job.headers]
    failed, program = nvrtc.nvrtcCreateProgram(job.source, os.fsencode(job.name), len(names), texts, names)
    if int(failed) != 0:
        return NvrtcAnswer(error=failed.name, log="", ptx=None, cubin=None, seconds=time.process_time() - begin)
    try:
        error = _run(nvrtc, program, job)
        log = _read(nvrtc, program, "ProgramLog") or b""
        return NvrtcAnswer(
            error=error,
            log=log.decode("utf-8", "replace"),
            ptx=_read(nvrtc, program, "PTX") if error is None else None,
            cubin=_read(nvrtc, program, "CUBIN") if error is None else None,
            seconds=time.process_time() - begin,
        )
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _run(nvrtc: Any, program: Any, job: NvrtcJob) -> str | None:
    """The name of the error; None when there is none."""
    for expression in job.expressions:
        failed = nvrtc.nvrtcAddNameExpression(program, expression.encode())[0]
        if int(failed) != 0:
            return str(failed.name)
    options = [os.fsencode(option) for option in job.options]
    failed = nvrtc.nvrtcCompileProgram(program, len(options), options)[0]
    return str(failed.name) if int(failed) != 0 else None


def _read(nvrtc: Any, program: Any, what: str) -> bytes | None:
    failed, size = getattr(nvrtc, f"nvrtcGet{what}Size")(program)
    if int(failed) != 0 or int(size) == 0:
        return None
    content = b" " * int(size)
    failed = getattr(nvrtc, f"nvrtcGet{what}")(program, content)[0]
    if int(failed) != 0:
        return None
    return content if what == "CUBIN" else content.rstrip(b"\0")


WORK = Work(do=_do, prepare=_load)
