"""Analysis of one file: read, decode, join, blame, analyse, advise, gather."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import find_cubins, recognise_container
from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.gpa import advise_as_published, join_contexts
from gpa_lsp.diagnosis.advice.launch_contexts import combine_advice
from gpa_lsp.diagnosis.advice.model import KernelAdvice
from gpa_lsp.diagnosis.analyses.analyse_kernel import analyse_kernel, judge_kernel
from gpa_lsp.diagnosis.analyses.model import KernelRoofline
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.analyses.subject import SourceReader, Subject
from gpa_lsp.diagnosis.blame import PAPER
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.foundation.errors import Problem, ToolError
from gpa_lsp.foundation.work_time import count_cores
from gpa_lsp.gpu.device.roofs_file import KeptRoofs
from gpa_lsp.kernel.join import disassemble_ahead, join_profile, list_unmeasured_kernels
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.names import choose_by_name, list_named
from gpa_lsp.kernel.scatter import group_contexts
from gpa_lsp.profile.model import Launch, LaunchOutline, OpenedProfile, Profile
from gpa_lsp.profile.read import open_profile, read_profile
from gpa_lsp.report.gather import AnalysedKernel, assemble_report, gather_kernel, gather_report
from gpa_lsp.report.measured_files import ProfiledSources, SourceQuestion
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline.options import AnalysisOptions, OnKernel, Progress
from gpa_lsp.report.saved.kept_reports import PackedKernels, pack_kernels

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.static_model import StaticFinding

MOST_TOGETHER = 32  # Kernels of a profile that are read, joined and judged together

_PARTS_HERE = 1
_FEWEST_SHARED = 121  # Kernels; another process takes half a second to start, and its results have to be sent

_MOST_PROCESSES = 8

_FEWEST_TOGETHER = 8  # Kernels in the first parts, since a person waits for the longest kernel, and in the last ones

# A part has at most one in so many of the kernels that are left, so that no process works alone for long at the end
_LAST_PARTS = 8


def judge_file(
    path: Path,
    options: AnalysisOptions,
    sources: ProfiledSources,
    roofs: KeptRoofs | None,
    *,
    known: Sequence[KernelReport] = (),
    progress: Progress | None = None,
    take: OnKernel | None = None,
) -> "JudgedFile":
    """Analyse a file; its kernels are placed below measured roofs, or theoretical ones where none are known.

    Raises:
        GpaError: the file cannot be used.
    """
    if options.mode is None:
        kernels, problems, other_files = _load(path, options, progress)
        report = gather_report([AnalysedKernel(kernel=kernel) for kernel in kernels], problems)
        return JudgedFile(report=report, other_files=other_files)
    judge = _Judge(options, sources, roofs, take, known)
    # a filter needs the names of all kernels: a whole name wins over a part of one
    if options.kernel_filter is None and recognise_container(path) is None:
        with open_profile(path) as opened:
            found = None if opened is None else _judge_in_parts(path, opened, judge, progress)
        if found is not None:
            return JudgedFile(report=found, packed=tuple(judge.packed))
    kernels, problems, other_files = _load(path, options, progress)
    return JudgedFile(
        report=judge.report(kernels, problems, progress), other_files=other_files, packed=tuple(judge.packed)
    )


class JudgedFile(Struct, frozen=True, kw_only=True):
    """Result for a file."""

    report: Report  # of all its kernels
    other_files: tuple[str, ...] = ()  # the files beside it that were read, by their paths from its folder
    packed: tuple[PackedKernels, ...] = ()  # kernels that other processes judged, as they came from there


def _judge_in_parts(path: Path, opened: OpenedProfile, judge: "_Judge", progress: Progress | None) -> Report | None:
    """The report of a profile with many kernels, a few of which are in memory at a time; None where it has to be read as a whole.

    Where there are many, other processes judge them; but the longest are judged here meanwhile where somebody waits for those.
    """
    progress = progress or (lambda *_: None)
    done, total = 0, len(opened.launches)
    count = min(_MOST_PROCESSES, count_cores())
    is_shared = count > 1 and len({launch.mangled_name for launch in opened.launches}) >= _FEWEST_SHARED
    parts = _divide(opened.launches, shrinks=is_shared)
    here = parts[: _PARTS_HERE if judge.is_awaited else 0] if is_shared else parts
    for number, part in enumerate(here):
        if number == 1 and judge.options.disassemble:
            _disassemble_parts(opened, here[1:])
        if not judge.judge_part(opened, part):
            return None  # reading all launches at once puts their problems in order
        done += len(part)
        progress("finding causes", done, total)
    if is_shared:
        try:
            for result in _judge_elsewhere(path, opened, parts[len(here) :], judge, count):
                if result is None:
                    return None
                judge.adopt(result)
                done += len(result.numbers)
                progress("finding causes", done, total)
        except ToolError:
            return None  # what is left is judged here
    return judge.report_judged()


def _judge_elsewhere(
    path: Path, opened: OpenedProfile, parts: Sequence[Sequence[int]], judge: "_Judge", count: int
) -> "Iterator[_Result | None]":
    """Results of other processes, as they arrive. While these start, all the code is disassembled.

    Raises:
        ToolError: one of them died.
    """
    from gpa_lsp.foundation.processes.supervision import (
        PartWorkers,  # most profiles have few kernels, and it costs start-up time
    )

    prepare = partial(_open_ahead, path)
    with PartWorkers(judge_apart, count=count, title="analysis process", prepare=prepare) as workers:
        if judge.options.disassemble:
            _disassemble_parts(opened, parts)
        yield from workers.run([judge.share(path, part) for part in parts])


def _disassemble_parts(opened: OpenedProfile, parts: Sequence[Sequence[int]]) -> None:
    """Have the code of some parts disassembled in one run."""
    names = {launch.index: launch.mangled_name for launch in opened.launches}
    disassemble_ahead(opened.read(()), dict.fromkeys(names[number] for part in parts for number in part))


class _Task(Struct, frozen=True, kw_only=True):
    """Launches of a profile for another process, and what is known of their kernels."""

    path: Path
    numbers: Sequence[int]
    options: AnalysisOptions
    locator: bytes  # pickled, so that the process sees that it is the same in all tasks
    roofs: KeptRoofs | None
    known: tuple[KernelReport, ...] = ()


class _Result(Struct, frozen=True, kw_only=True):
    """Result of another process."""

    numbers: tuple[int, ...]  # the first launch of each kernel
    packed: bytes  # the kernels in that order; see :class:`PackedKernels`
    problems: tuple[tuple[Problem, ...], ...]  # of each
    answers: Mapping[SourceQuestion, str | None]  # what the sources were asked


def judge_apart(task: _Task) -> _Result | None:
    """Judge some kernels in a worker process; None where a launch has problems."""
    _, opened = _keep_open(task.path, _read_stamp(task.path))
    sources = _keep_sources(task.path, _read_stamp(task.path), task.locator)
    judge = _Judge(task.options, sources, task.roofs, None, task.known)
    if opened is None or not judge.judge_part(opened, task.numbers):
        return None
    return _Result(
        numbers=tuple(judge.judged),
        packed=pack_kernels(report for report, _ in judge.judged.values()),
        problems=tuple(problems for _, problems in judge.judged.values()),
        answers=sources.answers,
    )


def _open_ahead(path: Path) -> None:
    _keep_open(path, _read_stamp(path))


def _read_stamp(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1)
def _keep_open(path: Path, seen: tuple[int, int]) -> tuple[ExitStack, OpenedProfile | None]:
    """An opened profile, cached for further parts of the same state of the file."""
    del seen
    stack = ExitStack()
    return stack, stack.enter_context(open_profile(path, is_known_sound=True))


@lru_cache(maxsize=1)
def _keep_sources(path: Path, seen: tuple[int, int], locator: bytes) -> ProfiledSources:
    """Sources of one state of a profile, cached for all its parts."""
    del path, seen
    return ProfiledSources(pickle.loads(locator))


def _divide(launches: Sequence[LaunchOutline], *, shrinks: bool = False) -> list[list[int]]:
    """Groups of launches that are read together: whole kernels, longest first, in groups that grow and may shrink at the end.

    >>> twice = [LaunchOutline(index=index, mangled_name=f"k{index % 130}", duration_ns=index) for index in range(260)]
    >>> [len(part) // 2 for part in _divide(twice)]
    [8, 16, 32, 32, 32, 10]
    >>> [len(part) // 2 for part in _divide(twice, shrinks=True)]
    [8, 15, 13, 11, 10, 9, 8, 8, 8, 8, 8, 8, 8, 8]
    """
    groups: dict[str, list[LaunchOutline]] = {}
    for launch in launches:
        groups.setdefault(launch.mangled_name, []).append(launch)
    ranked = sorted(groups.values(), key=lambda group: -sum(launch.duration_ns or 0.0 for launch in group))
    parts: list[list[int]] = []
    most = _FEWEST_TOGETHER
    while ranked:
        count = min(most, max(_FEWEST_TOGETHER, len(ranked) // _LAST_PARTS)) if shrinks else most
        parts.append([launch.index for group in ranked[:count] for launch in group])
        ranked, most = ranked[count:], min(2 * most, MOST_TOGETHER)
    return parts


class _Judge:
    """Judge of kernels, each once; *known* kernels lack only their answers."""

    def __init__(
        self,
        options: AnalysisOptions,
        sources: ProfiledSources,
        roofs: KeptRoofs | None,
        take: OnKernel | None,
        known: Sequence[KernelReport] = (),
    ) -> None:
        self.options = options
        self._sources = sources
        self._roofs = roofs
        self._take = take
        self._known = {one.launches[0].index: one for one in known if one.launches}
        # what was judged, by the kernel's first launch
        self.judged: dict[int, tuple[KernelReport, tuple[Problem, ...]]] = {}
        self.packed: list[PackedKernels] = []  # of these, what other processes judged

    @property
    def is_awaited(self) -> bool:
        """Whether reports of kernels are passed on as they are judged."""
        return self._take is not None

    def judge_part(self, opened: OpenedProfile, numbers: Sequence[int]) -> bool:
        """Judge the kernels of some launches; False, and nothing judged, where something is wrong with a launch."""
        profile = opened.read(numbers)
        kernels, problems = join_profile(profile, with_text=self.options.disassemble)
        if problems or profile.problems:
            return False
        for kernel in kernels:
            self.judge(kernel)
        return True

    def share(self, path: Path, numbers: Sequence[int]) -> _Task:
        """The task of judging some launches in another process."""
        known = tuple(self._known[number] for number in numbers if number in self._known)
        locator = pickle.dumps(self._sources.locator)
        return _Task(path=path, numbers=numbers, options=self.options, locator=locator, roofs=self._roofs, known=known)

    def adopt(self, result: _Result) -> None:
        """Add the results of another process."""
        self._sources.answers.update(result.answers)
        packed = PackedKernels.unpack(result.packed)
        self.packed.append(packed)
        for number, report, problems in zip(result.numbers, packed.kernels, result.problems, strict=True):
            self.judged[number] = (report, problems)
            if self._roofs is not None:
                self._roofs.find(report.device.name)  # collects problems of the roofs in this process
            if self._take is not None:
                self._take(report)

    def judge(self, kernel: Kernel) -> tuple[KernelReport, tuple[Problem, ...]]:
        """Report of a kernel, and problems; cached by its first launch."""
        number = kernel.launches[0].index if kernel.launches else None
        before = None if number is None else self.judged.get(number)
        if before is not None:
            return before
        problems: list[Problem] = []
        known = None if number is None else self._known.get(number)
        if known is None or known.mangled_name != kernel.mangled_name:
            report = gather_kernel(_judge_kernel(kernel, self.options, self._sources, self._roofs, problems))
        else:
            report = _complete(known, kernel, self.options, self._roofs, problems)
        kernel.rows.forget()
        found = report, tuple(problems)
        if number is not None:
            self.judged[number] = found
        if self._take is not None:
            self._take(report)
        return found

    def report(self, kernels: Sequence[Kernel], problems: Sequence[Problem], progress: Progress | None) -> Report:
        """The report of all kernels of a file, in order of their first launches; the longest are judged first."""
        judged = {}
        for done, number in enumerate(sorted(range(len(kernels)), key=lambda one: -_measure(kernels[one]))):
            if progress is not None:
                progress("finding causes", done, len(kernels))
            judged[number] = self.judge(kernels[number])
        return _assemble([judged[number] for number in range(len(kernels))], problems)

    def report_judged(self) -> Report:
        """The report of what was judged so far."""
        return _assemble([self.judged[number] for number in sorted(self.judged)], ())


def _assemble(judged: Sequence[tuple[KernelReport, Sequence[Problem]]], problems: Sequence[Problem]) -> Report:
    met = [problem for _, found in judged for problem in found]
    return assemble_report([report for report, _ in judged], [*problems, *met])


def _measure(kernel: Kernel) -> float:
    """Time of a kernel's launches in ns; unknown times count 0."""
    return sum(launch.read_number("gpu__time_duration.sum") or 0.0 for launch in kernel.launches)


def _judge_kernel(
    kernel: Kernel, options: AnalysisOptions, sources: ProfiledSources, roofs: KeptRoofs | None, problems: list[Problem]
) -> AnalysedKernel:
    """Results for a kernel: attribution needs samples, advice needs a launch, answers and limits need neither."""
    assert options.mode is not None
    read_source = sources.reader_for(kernel)
    contexts = [_look_at_kernel(one, options, roofs, read_source) for one in kernel.contexts]
    subject = _look_at_kernel(kernel, options, roofs, read_source, contexts[0] if contexts else None)
    analyses = analyse_kernel(subject) if options.answers else None
    limiter, doubts = judge_kernel(subject)
    problems.extend((*(analyses.problems if analyses is not None else ()), *doubts))
    found = () if kernel.library or kernel.rows.counts_requests else _read_code(kernel, read_source, problems)
    if subject.blame is None:
        return AnalysedKernel(kernel=kernel, analyses=analyses, limiter=limiter, code_findings=found)
    problems.extend(subject.blame.problems)
    judged = tuple(_judge_context(one, options, problems) for one in contexts)
    return AnalysedKernel(
        kernel=kernel,
        blame=subject.blame if kernel.total_samples else None,
        advice=_advise(subject, judged, options, problems),
        analyses=analyses,
        limiter=limiter,
        code_findings=found,
        contexts=judged,
    )


def _read_code(
    kernel: Kernel, read_source: SourceReader, problems: list[Problem]
) -> "tuple[StaticFinding, ...] | None":
    from gpa_lsp.diagnosis.advice.find_statics import find_access_findings  # most profiles count what it finds

    found, failed = find_access_findings(kernel, read_source)
    problems.extend(failed)
    return found


def _look_at_kernel(
    kernel: Kernel,
    options: AnalysisOptions,
    roofs: KeptRoofs | None,
    read_source: SourceReader | None,
    main: Subject | None = None,
) -> Subject:
    """A kernel with its blame and its place under the roofs."""
    assert options.mode is not None
    is_launched = kernel.total_samples or kernel.longest_launch is not None
    blame = blame_kernel(kernel, options.mode) if is_launched else None
    return Subject(kernel, blame, _place(kernel, roofs), main, read_source)


def _advise(
    subject: Subject, contexts: Sequence[AnalysedKernel], options: AnalysisOptions, problems: list[Problem]
) -> KernelAdvice:
    """Advice on a kernel; with several launch contexts, combined (or on each, as published)."""
    if not contexts:
        advice, met = _ask_optimizers(subject, options)
        problems.extend(met)
        return advice
    if options.mode == PAPER:
        return join_contexts([one.advice for one in contexts if one.advice is not None], subject)
    ratios = [ratio for _, ratio in group_contexts(subject.kernel.launches)]
    parts = [(ratio, one.advice) for ratio, one in zip(ratios, contexts, strict=False) if one.advice is not None]
    return combine_advice(parts, subject)


def _ask_optimizers(subject: Subject, options: AnalysisOptions) -> tuple[KernelAdvice, tuple[Problem, ...]]:
    return advise_as_published(subject) if options.mode == PAPER else advise_kernel(subject)


def _judge_context(subject: Subject, options: AnalysisOptions, problems: list[Problem]) -> AnalysedKernel:
    """Limiter and advice of one launch context."""
    limiter, doubts = judge_kernel(subject)
    advice, met = _ask_optimizers(subject, options)
    problems.extend(one for one in (*doubts, *met) if one not in problems)
    return AnalysedKernel(kernel=subject.kernel, limiter=limiter, advice=advice)


def _complete(
    known: KernelReport, kernel: Kernel, options: AnalysisOptions, roofs: KeptRoofs | None, problems: list[Problem]
) -> KernelReport:
    """A known kernel, completed by its answers."""
    main = kernel.contexts[0] if kernel.contexts else None
    first = None if main is None else _look_at_kernel(main, options, roofs, None)
    analyses = analyse_kernel(Subject(kernel, known.blame, _place(kernel, roofs), first))
    problems.extend(analyses.problems)
    return replace(known, analyses=analyses)


def _place(kernel: Kernel, roofs: KeptRoofs | None) -> KernelRoofline | None:
    return place_kernel(kernel, None if roofs is None else roofs.find(kernel.device.name))


def _load(
    path: Path, options: AnalysisOptions, progress: Progress | None
) -> tuple[list[Kernel], list[Problem], tuple[str, ...]]:
    if recognise_container(path) is not None:
        kernels, problems = _load_code(path, options)
        return kernels, problems, ()
    profile = read_profile(path)
    found, met = join_profile(
        profile,
        kernel_filter=_make_filter(profile, options.kernel_filter),
        with_text=options.disassemble,
        progress=progress,
    )
    return list(found), [*profile.problems, *met], profile.other_files


def _load_code(path: Path, options: AnalysisOptions) -> tuple[list[Kernel], list[Problem]]:
    """Kernels of a cubin, fat binary or program, not measured."""
    kernels: list[Kernel] = []
    problems: list[Problem] = []
    choose = choose_by_name(options.kernel_filter)
    for cubin in find_cubins(path):
        found, met = list_unmeasured_kernels(cubin, choose=choose, with_text=options.disassemble)
        kernels.extend(found)
        problems.extend(met)
    return kernels, problems


def _make_filter(profile: Profile, text: str | None) -> Callable[[Launch], bool] | None:
    if text is None:
        return None
    names = dict.fromkeys((launch.mangled_name, launch.display_name) for launch in profile.launches)
    wanted = set(list_named(text, names, lambda one: one))
    return lambda launch: (launch.mangled_name, launch.display_name) in wanted
