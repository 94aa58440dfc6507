"""Process that reads profiles (:class:`ProfileReader`): its job, and the messages in which a profile comes piece by piece."""

import gc
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.editor.snapshot import MeasuredKernel, measure_kernel
from gpa_lsp.foundation.errors import GpaError, ProblemSeverity
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.worker import Tell, Work
from gpa_lsp.report.history.model import KernelHistory
from gpa_lsp.report.measured_files import MeasuredFile, find_files, know_nothing

if TYPE_CHECKING:
    from gpa_lsp.report.history.past import KernelMemory
    from gpa_lsp.report.model import KernelReport, Report
    from gpa_lsp.report.source_paths import SourceLocator


class ProfileJob(Struct, frozen=True, kw_only=True):
    """Profile to read."""

    profile: Path  # the file
    roots: tuple[Path, ...]  # workspace folders sources are looked for in
    path_mappings: tuple[tuple[str, str], ...]  # as in the settings
    keeps_history: bool = False  # remember what was measured, and compare with what was
    may_ask_git: bool = False  # what a source held when it was measured; not in a workspace that is not trusted


class FilesFound(Struct, frozen=True, kw_only=True):
    """A profile's sources on this machine; comes before the kernels that are written in them, and says all of them in the end."""

    profile: Path
    files: tuple[MeasuredFile, ...]


class KernelRead(Struct, frozen=True, kw_only=True):
    """One kernel. Kernels come one by one so that the server never unpickles for long between two requests."""

    profile: Path  # where it is from
    kernel: MeasuredKernel  # what was measured
    is_early: bool = False  # others of the profile are still being judged, so that it may be shown before them


class PastFound(Struct, frozen=True, kw_only=True):
    """Change since earlier measurements of a kernel that was sent before all were judged."""

    profile: Path  # which
    number: int  # how many of its kernels were sent before
    history: KernelHistory  # what changed


class ProfileRead(Struct, frozen=True, kw_only=True):
    """The end of a profile: everything of it was sent."""

    profile: Path  # which
    remarks: tuple[str, ...]  # what was in doubt, a line each, for the log
    size_bytes: int = 0  # of all its messages: what keeping it costs, in proportion


class ProfileFailed(Struct, frozen=True, kw_only=True):
    """The end of a profile that could not be read; ``reason`` is a line for people."""

    profile: Path
    reason: str


ProfileMessage = Step | FilesFound | KernelRead | PastFound  # What is told of a profile before its end

ProfileEnd = ProfileRead | ProfileFailed


_EARLY_S = 1.0  # A profile that takes longer is shown kernel by kernel

_FEWEST_EARLY = 8  # Kernels; those of a profile with fewer come together

_LOOK_AGAIN_S = 10.0  # Where sources lie is found out again after this time, while one profile is read after the other


class _EarlyKernels:
    """Sends kernels of a profile that takes long as they are judged; those of any other one come together, when all is known of them.

    Args:
        profile: the file.
        modified_ns: when it was written.
        send: sends a message.
        find: finds the sources of some kernels.

    Attributes:
        size_bytes: of what was sent.
    """

    def __init__(
        self, profile: Path, modified_ns: int, send: Tell, find: "Callable[[Report], tuple[MeasuredFile, ...]]"
    ) -> None:
        self.size_bytes = 0
        self._profile = profile
        self._modified_ns = modified_ns
        self._send = send
        self._find = find
        self._begun_s = time.monotonic()
        self._measured: dict[int, MeasuredKernel] = {}
        self._waiting: list[KernelReport] = []
        self._numbers: dict[int, int] = {}
        self._known_files: set[str] = set()
        self._files: dict[str, MeasuredFile] = {}

    def take(self, kernel: "KernelReport") -> None:
        """A kernel was judged."""
        self._waiting.append(kernel)
        is_long = time.monotonic() - self._begun_s >= _EARLY_S
        if not is_long or len(self._waiting) + len(self._numbers) < _FEWEST_EARLY:
            return
        from gpa_lsp.report.model import Report

        new = [one for one in self._waiting if not self._known_files.issuperset(row.file or "" for row in one.lines)]
        if new:
            self._known_files.update(row.file or "" for one in new for row in one.lines)
            self.send_files(self._find(Report(problems=(), kernels=tuple(new))))
        for one in self._waiting:
            self._numbers[id(one)] = len(self._numbers)
            self.size_bytes += self._send(KernelRead(profile=self._profile, kernel=self._credit(one), is_early=True))
        self._waiting.clear()

    def send_files(self, files: tuple[MeasuredFile, ...]) -> None:
        """Sources were found."""
        self._files.update((file.compiled_path, file) for file in files)
        self.size_bytes += self._send(FilesFound(profile=self._profile, files=files))

    def _credit(self, kernel: "KernelReport") -> MeasuredKernel:
        """Kernel as it is shown: with the cost of its callees on the lines that call them."""
        from gpa_lsp.editor.lines.callees import credit_callers

        return credit_callers(self.measure(kernel), self._files)

    def measure(self, kernel: "KernelReport") -> MeasuredKernel:
        """Return what the server keeps of a kernel."""
        if id(kernel) not in self._measured:
            self._measured[id(kernel)] = measure_kernel(kernel, self._modified_ns)
        return self._measured[id(kernel)]

    def complete(self, kernel: "KernelReport", past: KernelHistory | None) -> None:
        """All is known of a kernel: send it, or what was not known when it was sent."""
        number = self._numbers.get(id(kernel))
        if number is None:
            whole = replace(self._credit(kernel), history=past)
            self.size_bytes += self._send(KernelRead(profile=self._profile, kernel=whole))
        elif past is not None:
            self.size_bytes += self._send(PastFound(profile=self._profile, number=number, history=past))


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
        from gpa_lsp.editor.lines.finder import judge_fit
        from gpa_lsp.gpu.device.roofs_file import KeptRoofs
        from gpa_lsp.report.committed_texts import CommittedTexts
        from gpa_lsp.report.history.recording import describe_surroundings
        from gpa_lsp.report.pipeline import analyse

        profile, memory, locator = job.profile, self._find_memory(job), self._find_locator(job)

        def tell(step: str, done: int, total: int) -> None:
            send(Step(words=step, done=done, total=total))

        modified_ns = profile.stat().st_mtime_ns
        find_copy = memory.find_source if memory is not None else know_nothing
        committed = CommittedTexts(is_asked=job.may_ask_git)

        def find(report: "Report") -> tuple[MeasuredFile, ...]:
            return judge_fit(find_files(report, locator, modified_ns, find_copy, committed.find), report.kernels)

        early = _EarlyKernels(profile, modified_ns, send, find)
        report = analyse([profile], locator=locator, roofs=KeptRoofs(), progress=tell, take=early.take)
        failures = [problem for problem in report.problems if problem.severity is ProblemSeverity.ERROR]
        if failures and not report.kernels:
            return ProfileFailed(profile=profile, reason=str(failures[0]))
        read_ns = time.time_ns()
        files = find(report)
        early.send_files(files)
        measured = [early.measure(kernel) for kernel in report.kernels]
        pasts: Sequence[KernelHistory | None] = [None] * len(measured)
        if memory is not None:  # all together: instances of one template must not be taken for each other's past
            told = [
                describe_surroundings(
                    one.report, files, one.causes, measured_ns=one.measured_ns, roots=job.roots, read_ns=read_ns
                )
                for one in measured
            ]
            pasts = memory.remember_all(list(zip(report.kernels, told, strict=True)))
        for kernel, past in zip(report.kernels, pasts, strict=True):
            early.complete(kernel, past)
        remarks = (*map(str, report.problems), *self._list_new_problems())
        return ProfileRead(profile=profile, remarks=remarks, size_bytes=early.size_bytes)

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
        from gpa_lsp.report.history.past import KernelMemory

        if job.keeps_history and self._memory is None:
            self._memory, self._told_problems = KernelMemory(), 0
        return self._memory if job.keeps_history else None

    def _list_new_problems(self) -> list[str]:
        """Problems of the history that were not reported yet."""
        problems = () if self._memory is None else self._memory.problems
        new = [str(problem) for problem in problems[self._told_problems :]]
        self._told_problems = len(problems)
        return new


def _order_roots(roots: tuple[Path, ...], profile: Path) -> tuple[Path, ...]:
    """The folder a profile lies in comes first: of two checkouts of one project, that one was measured."""
    return tuple(sorted(roots, key=lambda root: not profile.is_relative_to(root)))


def _prepare() -> None:
    from gpa_lsp.report import (  # noqa: F401
        kernel_lines,
        measured_files,
        pipeline,
    )

    gc.freeze()  # modules stay: looking at them for garbage takes longer than reading a small profile


def _explain(job: ProfileJob, reason: str) -> ProfileFailed:
    return ProfileFailed(profile=job.profile, reason=f"{job.profile}: {reason}")


_READER = ProfileReader()
WORK = Work(do=_READER.read, prepare=_prepare, explain=_explain, rest=_READER.rest)
