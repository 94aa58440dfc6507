"""The process that reads profiles for the server: ``python -P -m gpa_lsp.lsp.worker``.

A job comes in on stdin, messages go out on stdout, both pickled with their length in front. The process ends with its job, when the server
closes its stdin (also by dying), and takes the tools it started with it.

A process and not a pool: a running job can only be cancelled by killing it, which breaks ``concurrent.futures`` pools; its memory goes back
to the system when the job is done; and stdin is a death watch that works on every platform, even when the server is killed.
"""

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from gpa_lsp.errors import GpaError, ProblemSeverity
from gpa_lsp.lsp.worker_messages import (
    FRAME_HEADER,
    FilesFound,
    Job,
    KernelRead,
    Message,
    ProfileFailed,
    ProfileRead,
    Progress,
    pack,
)

if TYPE_CHECKING:
    from gpa_lsp.history.model import KernelHistory
    from gpa_lsp.history.remember import KernelMemory
    from gpa_lsp.report.source_paths import SourceLocator


Send = Callable[[Message], int]
"""Sends a message; how many bytes it has."""

MOST_MEMORY_BYTES = 8 << 30
"""Address space of this process and of each tool it starts: a profile that needs more is refused, and the machine stays usable."""


def run_job(job: Job, send: Send) -> None:
    """Read the profiles of a job one after the other; whatever is wrong with one of them does not keep the next from being read."""
    from gpa_lsp.history.remember import KernelMemory
    from gpa_lsp.report.source_paths import SourceLocator

    locators: dict[tuple[Path, ...], SourceLocator] = {}
    with contextlib.ExitStack() as stack:
        memory = stack.enter_context(KernelMemory()) if job.keeps_history else None
        for profile in job.profiles:
            roots = _order_roots(job.roots, profile)
            locator = locators.setdefault(roots, SourceLocator(roots, job.path_mappings, is_confined=True))
            _read_one(_Reading(job=job, profile=profile, locator=locator, memory=memory), send)


def _order_roots(roots: tuple[Path, ...], profile: Path) -> tuple[Path, ...]:
    """The folder a profile lies in comes first: of two checkouts of one project, that one was measured."""
    return tuple(sorted(roots, key=lambda root: not profile.is_relative_to(root)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A profile and what is needed to read it; without a memory nothing is remembered."""

    job: Job
    profile: Path
    locator: "SourceLocator"
    memory: "KernelMemory | None"


def _read_one(reading: _Reading, send: Send) -> None:
    profile = reading.profile
    try:
        _read_profile(reading, send)
    except GpaError as error:
        send(ProfileFailed(profile=profile, reason=str(error)))
    except MemoryError:
        send(ProfileFailed(profile=profile, reason=f"{profile}: there is not enough memory to read it"))
    except Exception as error:  # a bug of ours in one profile must not hide the others
        sys.excepthook(*sys.exc_info())
        send(
            ProfileFailed(
                profile=profile,
                reason=f"{profile}: internal error ({type(error).__name__}: {error}); please report it",
            )
        )


def _read_profile(reading: _Reading, send: Send) -> None:
    from gpa_lsp.lsp.measuring import find_files, forget_copies, measure_kernel
    from gpa_lsp.lsp.remembering import describe_surroundings
    from gpa_lsp.machine.kept_roofs import KeptRoofs
    from gpa_lsp.pipeline import analyse

    profile, memory = reading.profile, reading.memory

    def tell(step: str, done: int, total: int) -> None:
        send(Progress(profile=profile, step=step, done=done, total=total))

    modified_ns = profile.stat().st_mtime_ns
    roofs = KeptRoofs()
    report = analyse([profile], locator=reading.locator, blamer=reading.job.blamer, roofs=roofs, progress=tell)
    failures = [problem for problem in report.problems if problem.severity is ProblemSeverity.ERROR]
    if failures and not report.kernels:
        send(ProfileFailed(profile=profile, reason=str(failures[0])))
        return
    find_copy = memory.find_source if memory is not None else forget_copies
    read_ns = time.time_ns()
    files = find_files(report, reading.locator, modified_ns, find_copy)
    size_bytes = send(FilesFound(profile=profile, files=files))
    measured = [measure_kernel(kernel, modified_ns) for kernel in report.kernels]
    pasts: Sequence[KernelHistory | None] = [None] * len(measured)
    if memory is not None:  # all together: instances of one template must not be taken for each other's past
        told = [describe_surroundings(one, files, roots=reading.job.roots, read_ns=read_ns) for one in measured]
        pasts = memory.remember_all(list(zip(report.kernels, told, strict=True)))
    for kernel, past in zip(measured, pasts, strict=True):
        size_bytes += send(KernelRead(profile=profile, kernel=replace(kernel, history=past)))
    remarks = [str(problem) for problem in report.problems]
    if memory is not None and profile == reading.job.profiles[-1]:
        remarks.extend(str(problem) for problem in memory.problems)
    send(ProfileRead(profile=profile, remarks=tuple(remarks), size_bytes=size_bytes))


def _die_with_parent() -> NoReturn:
    """Wait until the server closes our stdin, which it only does by ending, and end too."""
    with contextlib.suppress(OSError):
        os.read(0, 1)
    end_with_group()


def end_with_group() -> NoReturn:
    """End this process and the tools it started."""
    if os.name == "posix" and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # nvdisasm is in our group
    os._exit(1)


def limit_memory() -> None:
    """Where the system can: elsewhere what is read is bounded by its readers alone."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MOST_MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MOST_MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def main(arguments: Sequence[str] = ()) -> int:
    """Read the job from stdin and do it."""
    del arguments
    wire = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints by mistake goes to the log, not between the messages
    (length,) = FRAME_HEADER.unpack(_read_exactly(FRAME_HEADER.size))
    job = pickle.loads(_read_exactly(length))
    threading.Thread(target=_die_with_parent, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)  # typing comes first
    limit_memory()

    def send(message: Message) -> int:
        frame = pack(message)
        wire.write(frame)
        wire.flush()
        return len(frame)

    run_job(job, send)
    wire.close()
    return 0


def _read_exactly(count: int) -> bytes:
    """From the descriptor itself: a buffered stdin would be locked by the death watch when the interpreter ends."""
    parts = b""
    while len(parts) < count:
        part = os.read(0, count - len(parts))
        if not part:
            raise SystemExit(1)
        parts += part
    return parts


if __name__ == "__main__":
    raise SystemExit(main())
