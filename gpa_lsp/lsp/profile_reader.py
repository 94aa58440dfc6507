"""What a worker that reads profiles does."""

import gc
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.basis.errors import GpaError, ProblemSeverity
from gpa_lsp.lsp.profile_messages import FilesFound, KernelRead, ProfileEnd, ProfileFailed, ProfileJob, ProfileRead
from gpa_lsp.processes.frames import Step
from gpa_lsp.processes.worker import Tell, Work

if TYPE_CHECKING:
    from gpa_lsp.history.model import KernelHistory
    from gpa_lsp.history.remember import KernelMemory
    from gpa_lsp.report.source_paths import SourceLocator


_LOOK_AGAIN_S = 10.0
"""Where sources lie is found out again after this time, while one profile is read after the other."""


class ProfileReader:
    """Reads profiles, and keeps from one to the next where sources lie and an open history."""

    def __init__(self) -> None:
        self._locators: dict[tuple[object, ...], SourceLocator] = {}
        self._looked_s = 0.0
        self._memory: KernelMemory | None = None
        self._told_problems = 0

    def read(self, job: ProfileJob, send: Tell) -> ProfileEnd:
        """Read a profile and send what is in it; what is wrong with it is its end."""
        try:
            return self._read(job, send)
        except GpaError as error:
            return ProfileFailed(profile=job.profile, reason=str(error))

    def rest(self) -> None:
        """Let go of the history, and of what may be different after a pause."""
        self._locators.clear()
        if self._memory is not None:
            self._memory.close()
            self._memory = None

    def _read(self, job: ProfileJob, send: Tell) -> ProfileEnd:
        from gpa_lsp.device.kept_roofs import KeptRoofs
        from gpa_lsp.editor.lines.callees import credit_callers
        from gpa_lsp.editor.lines.fit import judge_fit
        from gpa_lsp.editor.snapshot import measure_kernel
        from gpa_lsp.history.recording import describe_surroundings
        from gpa_lsp.pipeline import analyse
        from gpa_lsp.report.committed_texts import CommittedTexts
        from gpa_lsp.report.measured_files import find_files, forget_copies

        profile, memory, locator = job.profile, self._find_memory(job), self._find_locator(job)

        def tell(step: str, done: int, total: int) -> None:
            send(Step(words=step, done=done, total=total))

        modified_ns = profile.stat().st_mtime_ns
        report = analyse([profile], locator=locator, blamer=job.blamer, roofs=KeptRoofs(), progress=tell)
        failures = [problem for problem in report.problems if problem.severity is ProblemSeverity.ERROR]
        if failures and not report.kernels:
            return ProfileFailed(profile=profile, reason=str(failures[0]))
        find_copy = memory.find_source if memory is not None else forget_copies
        read_ns = time.time_ns()
        committed = CommittedTexts(is_asked=job.may_ask_git)
        files = judge_fit(find_files(report, locator, modified_ns, find_copy, committed.find), report.kernels)
        by_path = {file.compiled_path: file for file in files}
        size_bytes = send(FilesFound(profile=profile, files=files))
        measured = [measure_kernel(kernel, modified_ns) for kernel in report.kernels]
        pasts: Sequence[KernelHistory | None] = [None] * len(measured)
        if memory is not None:  # all together: instances of one template must not be taken for each other's past
            told = [
                describe_surroundings(
                    one.report, files, one.causes, measured_ns=one.measured_ns, roots=job.roots, read_ns=read_ns
                )
                for one in measured
            ]
            pasts = memory.remember_all(list(zip(report.kernels, told, strict=True)))
        for kernel, past in zip(measured, pasts, strict=True):
            size_bytes += send(
                KernelRead(profile=profile, kernel=replace(credit_callers(kernel, by_path), history=past))
            )
        remarks = (*map(str, report.problems), *self._list_new_problems())
        return ProfileRead(profile=profile, remarks=remarks, size_bytes=size_bytes)

    def _find_locator(self, job: ProfileJob) -> "SourceLocator":
        from gpa_lsp.report.source_paths import SourceLocator

        now_s = time.monotonic()
        if now_s - self._looked_s > _LOOK_AGAIN_S:
            self._locators.clear()
            self._looked_s = now_s
        roots = _order_roots(job.roots, job.profile)
        key = (roots, job.path_mappings)
        if key not in self._locators:
            self._locators[key] = SourceLocator(roots, job.path_mappings, is_confined=True)
        return self._locators[key]

    def _find_memory(self, job: ProfileJob) -> "KernelMemory | None":
        from gpa_lsp.history.remember import KernelMemory

        if job.keeps_history and self._memory is None:
            self._memory, self._told_problems = KernelMemory(), 0
        return self._memory if job.keeps_history else None

    def _list_new_problems(self) -> list[str]:
        """What is wrong with the history and has not been said."""
        problems = () if self._memory is None else self._memory.problems
        new = [str(problem) for problem in problems[self._told_problems :]]
        self._told_problems = len(problems)
        return new


def _order_roots(roots: tuple[Path, ...], profile: Path) -> tuple[Path, ...]:
    """The folder a profile lies in comes first: of two checkouts of one project, that one was measured."""
    return tuple(sorted(roots, key=lambda root: not profile.is_relative_to(root)))


def _prepare() -> None:
    from gpa_lsp import pipeline  # noqa: F401
    from gpa_lsp.report import kernel_lines, measured_files  # noqa: F401

    gc.freeze()  # modules stay: looking at them for garbage takes longer than reading a small profile


def _explain(job: ProfileJob, reason: str) -> ProfileFailed:
    return ProfileFailed(profile=job.profile, reason=f"{job.profile}: {reason}")


_READER = ProfileReader()
WORK = Work(do=_READER.read, prepare=_prepare, explain=_explain, rest=_READER.rest)
