"""The process that holds NVRTC: ``python -P -m gpa_lsp.compiler.nvrtc_worker MEMORY_LIMIT_BYTES``.

NVRTC runs in a process of its own because what it compiles is whatever stands in an editor: templates without end fill the memory or never
come back, and a compiler that crashes takes its process along. The process stays between compilations, since loading the library takes ten
times as long as a small kernel; it ends when its standard input does, when a compilation overruns its time, and when nobody has asked for
anything for a while.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from typing import IO, Any

from gpa_lsp.compiler.nvrtc_frames import NvrtcAnswer, NvrtcGreeting, NvrtcJob, read_frame, write_frame

_IDLE_LIMIT_S = 900.0
"""A process that waits holds about 100 MB."""

_ALARM_DELAY_S = 2.0
"""The one that asked ends us when the time is up; the alarm is for when it is gone."""


def main(memory_limit_bytes: int) -> int:
    """Greet, then answer until nobody asks any more."""
    answers, questions = _take_the_pipes()
    _limit_memory(memory_limit_bytes)
    nvrtc, greeting = _load()
    write_frame(answers, greeting)
    if nvrtc is None:
        return 0
    while True:
        idle = threading.Timer(_IDLE_LIMIT_S, os._exit, (0,))
        idle.daemon = True
        idle.start()
        job = read_frame(questions)
        idle.cancel()
        if not isinstance(job, NvrtcJob):
            return 0
        _set_alarm(job.limit_s + _ALARM_DELAY_S)
        answer = _compile(nvrtc, job)
        _set_alarm(0.0)
        write_frame(answers, answer)


def _take_the_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Standard output and input for our own frames; what the library prints goes to nobody."""
    answers = os.fdopen(os.dup(1), "wb")
    questions = os.fdopen(os.dup(0), "rb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    return answers, questions


def _limit_memory(limit_bytes: int) -> None:
    try:
        import resource  # not on Windows
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _set_alarm(seconds: float) -> None:
    """The system ends this process when the time is up, also in the middle of the library; 0 takes it back."""
    if hasattr(signal, "setitimer"):
        signal.setitimer(signal.ITIMER_REAL, seconds)


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
    begin = time.perf_counter()
    names = [name.encode() for name, _ in job.headers]
    texts = [text.encode() for _, text in job.headers]
    failed, program = nvrtc.nvrtcCreateProgram(job.source, os.fsencode(job.name), len(names), texts, names)
    if int(failed) != 0:
        return NvrtcAnswer(error=failed.name, log="", ptx=None, cubin=None, seconds=time.perf_counter() - begin)
    try:
        error = _run(nvrtc, program, job)
        log = _read(nvrtc, program, "ProgramLog") or b""
        return NvrtcAnswer(
            error=error,
            log=log.decode("utf-8", "replace"),
            ptx=_read(nvrtc, program, "PTX") if error is None else None,
            cubin=_read(nvrtc, program, "CUBIN") if error is None else None,
            seconds=time.perf_counter() - begin,
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


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
