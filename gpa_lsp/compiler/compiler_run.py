"""One run of a compiler's program: bounded in time, memory, files and output, and gone with all it started when it is not wanted any more."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpa_lsp.compiler.leash import KILLED, LET_GO, NOT_STARTED, TIMED_OUT
from gpa_lsp.errors import ToolError

MOST_OUTPUT_BYTES = 4 << 20
_LARGEST_FILE_BYTES = 2 << 30
_POLL_S = 0.02
_END_LIMIT_S = 5.0
"""A leash that has not ended so long after it should have is killed."""

_NEEDED_VARIABLES = ("SYSTEMROOT", "SYSTEMDRIVE")
"""Without the first, Windows starts no Python."""
_LEASH = Path(__file__).with_name("leash.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLimits:
    """What a run may take.

    Attributes:
        limit_s: seconds.
        memory_limit_bytes: address space of each process.
        is_cancelled: asked again and again; True ends the run.
        largest_file_bytes: of each file it writes.
    """

    limit_s: float
    memory_limit_bytes: int
    is_cancelled: Callable[[], bool] | None = None
    largest_file_bytes: int = _LARGEST_FILE_BYTES


def run_compiler(
    name: str, command: Sequence[str], *, folder: Path, environment: Mapping[str, str], limits: RunLimits
) -> tuple[bool, str]:
    """Run a program.

    Args:
        name: of it, for errors.
        command: program and arguments; no shell looks at them here (nvcc itself does, see :mod:`gpa_lsp.compiler.nvcc_command`).
        folder: it runs in.
        environment: it runs with; what the system itself needs is added.
        limits: of it.

    Returns:
        Whether it ended well, and what it printed, both streams together; beyond :data:`MOST_OUTPUT_BYTES` nothing is kept.

    Raises:
        ToolError: it could not be started, did not end in time, was cancelled, or was killed (as for want of memory).
    """
    words = [str(limits.limit_s), str(limits.memory_limit_bytes), str(limits.largest_file_bytes), *command]
    try:
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_LEASH), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env={**_list_needed(), **environment},
            start_new_session=True,
        )
    except OSError as error:
        raise ToolError(name, f"it cannot be started: {error.strerror or error}") from error
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(process, limits, done), daemon=True)
    watch.start()
    try:
        output = _read(process)
        status = process.wait()
    finally:
        done.set()
        watch.join()
        _let_go(process)
        if process.stdout is not None:
            process.stdout.close()
        process.wait()
    return _judge(name, status, output, limits)


def _list_needed() -> dict[str, str]:
    return {name: os.environ[name] for name in _NEEDED_VARIABLES if name in os.environ}


def _read(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    kept = bytearray()
    while piece := process.stdout.read1(1 << 16):  # type: ignore[attr-defined]
        kept += piece[: max(0, MOST_OUTPUT_BYTES - len(kept))]
    return kept.decode("utf-8", "replace")


def _watch(process: subprocess.Popen[bytes], limits: RunLimits, done: threading.Event) -> None:
    waited_s = 0.0
    while not done.wait(_POLL_S):
        waited_s += _POLL_S
        if limits.is_cancelled is not None and limits.is_cancelled():
            _let_go(process)
            break
        if waited_s > limits.limit_s + _END_LIMIT_S:
            break
    if not done.wait(_END_LIMIT_S):
        process.kill()


def _let_go(process: subprocess.Popen[bytes]) -> None:
    """Close the leash's standard input, which is its signal to end everything."""
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _judge(name: str, status: int, output: str, limits: RunLimits) -> tuple[bool, str]:
    tail = output[-2000:]
    if status == LET_GO:
        raise ToolError(name, "it was cancelled", output=tail)
    if status == TIMED_OUT or (status < 0 and not output):
        raise ToolError(name, f"it did not end within {limits.limit_s:.0f} s", output=tail)
    if status == NOT_STARTED:
        raise ToolError(name, f"it cannot be started: {tail.strip()}", output=tail)
    if status == KILLED or status < 0:
        raise ToolError(name, "it was killed, perhaps for want of memory", output=tail)
    return status == 0, output
