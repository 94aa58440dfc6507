"""From one file to its report: read, decode, join, blame, analyse, advise, gather."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache, partial
from pathlib import Path

from gpa_lsp.advice.advise import advise_kernel
from gpa_lsp.analyses.analyse_kernel import analyse_kernel, judge_kernel
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.roofline.place import place_kernel
from gpa_lsp.basis.errors import Problem, ToolError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.containers import find_cubins, recognise_container
from gpa_lsp.blame.blame import blame_kernel
from gpa_lsp.device.kept_roofs import KeptRoofs
from gpa_lsp.pipeline.way import Progress, TakeKernel, Way
from gpa_lsp.profile.model import Launch, LaunchOutline, OpenedProfile, Profile
from gpa_lsp.profile.read import open_profile, read_profile
from gpa_lsp.report.gather import AnalysedKernel, KernelGatherer, assemble_report, gather_report
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.names import list_named
from gpa_lsp.report.profiled_sources import ProfiledSources, SourceQuestion
from gpa_lsp.report.source_paths import SourceLocator
from gpa_lsp.rows.join import join_profile
from gpa_lsp.rows.model import Kernel
from gpa_lsp.rows.unmeasured import list_unmeasured_kernels

MOST_TOGETHER = 64
"""Kernels of a profile that are read, joined and judged together. What a disassembler needs to start is shared among them."""

_PARTS_HERE = 2
_FEWEST_SHARED = 5
"""Parts; another process takes half a second to start, and its results have to be sent."""

_MOST_PROCESSES = 8

_FEWEST_TOGETHER = 8
"""Of the first ones: somebody waits for the longest kernel."""


def judge_file(
    path: Path,
    way: Way,
    sources: ProfiledSources,
    roofs: KeptRoofs | None,
    *,
    progress: Progress | None = None,
    take: TakeKernel | None = None,
) -> tuple[Report, tuple[str, ...]]:
    """Analyse a file.

    Args:
        path: a profile, or a file with device code.
        way: how.
        sources: the texts the kernels were compiled from.
        roofs: finds measured roofs; None puts kernels under theoretical ones.
        progress: told (what, done, total) as the work goes on.
        take: told the kernels with their causes, each when it is judged.

    Returns:
        The report, and the files beside this one that were read, by their paths from its folder.

    Raises:
        GpaError: the file cannot be used.
    """
    if way.blamer is None:
        kernels, problems, other_files = _load(path, way, progress)
        return gather_report([AnalysedKernel(kernel=kernel) for kernel in kernels], problems), other_files
    judge = _Judge(way, sources, roofs, take)
    # Which kernels a name means is known when all are: a whole name wins over a part of one.
    if way.kernel_filter is None and recognise_container(path) is None:
        with open_profile(path) as opened:
            found = None if opened is None else _judge_in_parts(path, opened, way, judge, progress)
        if found is not None:
            return found, ()
    kernels, problems, other_files = _load(path, way, progress)
    return judge.report(kernels, problems, progress), other_files


def _judge_in_parts(
    path: Path, opened: OpenedProfile, way: Way, judge: "_Judge", progress: Progress | None
) -> Report | None:
    """The report of a profile with many kernels, a few of which are in memory at a time; None where it has to be read as a whole.

    The longest are judged here, for somebody waits for them; where many are left, other processes do that.
    """
    parts = _divide(opened.launches)
    done, total = 0, sum(map(len, parts))
    count = min(_MOST_PROCESSES, _count_cores())
    is_shared = count > 1 and len(parts) >= _FEWEST_SHARED
    here = parts[:_PARTS_HERE] if is_shared else parts
    there = parts[len(here) :]
    for part in here:
        if not judge.judge_part(opened, part, way):
            return None  # in which order problems are told is for those to say who see all launches
        done += len(part)
        if progress is not None:
            progress("finding causes", done, total)
    if there:
        from gpa_lsp.processes.worker_pool import (
            run_parts,
        )  # most profiles have few kernels, and it costs start-up time

        tasks = [judge.share(path, part, way) for part in there]
        try:
            for result in run_parts(judge_apart, tasks, count=count, title="analysis process"):
                if result is None:
                    return None
                judge.adopt(result)
                done += len(result.judged)
                if progress is not None:
                    progress("finding causes", done, total)
        except ToolError:
            return None  # what is left is judged here
    return judge.report_judged()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """Some launches of a profile for another process."""

    path: Path
    numbers: Sequence[int]
    way: Way
    locator: SourceLocator | None
    roofs: KeptRoofs | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Result:
    """What another process found: kernels by their first launch, and what its sources were asked."""

    judged: "Mapping[int, _Judged]"
    answers: Mapping[SourceQuestion, str | None]


def judge_apart(task: _Task) -> _Result | None:
    """Judge some kernels in a process for that; None where something is wrong with their launches."""
    status = task.path.stat()
    _, opened = _keep_open(task.path, (status.st_size, status.st_mtime_ns))
    sources = ProfiledSources(task.locator)
    judge = _Judge(task.way, sources, task.roofs, None)
    if opened is None or not judge.judge_part(opened, task.numbers, task.way):
        return None
    return _Result(judged=judge.known, answers=sources.answers)


@lru_cache(maxsize=1)
def _keep_open(path: Path, seen: tuple[int, int]) -> tuple[ExitStack, OpenedProfile | None]:
    """A profile that stays open for further parts of it, as it was seen."""
    del seen
    stack = ExitStack()
    return stack, stack.enter_context(open_profile(path))


def _count_cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _divide(launches: Sequence[LaunchOutline]) -> list[list[int]]:
    """Which launches are read together: all of a kernel, and the longest kernels first.

    >>> longest = [LaunchOutline(index=index, mangled_name=f"k{index % 9}", duration_ns=index) for index in range(18)]
    >>> [len(part) for part in _divide(longest)]
    [16, 2]
    """
    groups: dict[str, list[LaunchOutline]] = {}
    for launch in launches:
        groups.setdefault(launch.mangled_name, []).append(launch)
    ranked = sorted(groups.values(), key=lambda group: -sum(launch.duration_ns or 0.0 for launch in group))
    parts: list[list[int]] = []
    count = _FEWEST_TOGETHER
    while ranked:
        parts.append([launch.index for group in ranked[:count] for launch in group])
        ranked, count = ranked[count:], min(2 * count, MOST_TOGETHER)
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judged:
    report: KernelReport
    problems: tuple[Problem, ...]


class _Judge:
    """Judges kernels, each once.

    Args:
        way: how; with a blamer.
        sources: the texts they were compiled from.
        roofs: finds measured roofs; None puts them under theoretical ones.
        take: told each.

    Attributes:
        known: what was judged, by the kernel's first launch.
    """

    def __init__(self, way: Way, sources: ProfiledSources, roofs: KeptRoofs | None, take: TakeKernel | None) -> None:
        self._way = way
        self._sources = sources
        self._roofs = roofs
        self._take = take
        self._gatherer = KernelGatherer()
        self.known: dict[int, _Judged] = {}

    def judge_part(self, opened: OpenedProfile, numbers: Sequence[int], way: Way) -> bool:
        """Judge the kernels of some launches; False, and nothing judged, where something is wrong with a launch."""
        profile = opened.read(numbers)
        kernels, problems = join_profile(profile, with_text=way.disassemble)
        if problems or profile.problems:
            return False
        for kernel in kernels:
            self.judge(kernel)
        return True

    def share(self, path: Path, numbers: Sequence[int], way: Way) -> _Task:
        """The same for another process."""
        return _Task(path=path, numbers=numbers, way=way, locator=self._sources.locator, roofs=self._roofs)

    def adopt(self, result: _Result) -> None:
        """Take what another process found for what was found here."""
        self._sources.answers.update(result.answers)
        for number, judged in result.judged.items():
            self.known[number] = judged
            if self._roofs is not None:
                self._roofs.find(judged.report.device.name)  # what is wrong with them is told by who looked here
            if self._take is not None:
                self._take(judged.report)

    def judge(self, kernel: Kernel) -> _Judged:
        """The report of a kernel, and the problems met; a kernel is known by its first launch."""
        number = kernel.launches[0].index if kernel.launches else None
        known = None if number is None else self.known.get(number)
        if known is not None:
            return known
        problems: list[Problem] = []
        analysed = _judge_kernel(kernel, self._way, self._sources, self._roofs, problems)
        found = _Judged(report=self._gatherer.gather(analysed), problems=tuple(problems))
        if number is not None:
            self.known[number] = found
        if self._take is not None:
            self._take(found.report)
        return found

    def report(self, kernels: Sequence[Kernel], problems: Sequence[Problem], progress: Progress | None) -> Report:
        """The report of all kernels of a file, in order of their first launches; the longest are judged first."""
        judged: dict[int, _Judged] = {}
        for done, number in enumerate(sorted(range(len(kernels)), key=lambda one: -_measure(kernels[one]))):
            if progress is not None:
                progress("finding causes", done, len(kernels))
            judged[number] = self.judge(kernels[number])
        return _assemble([judged[number] for number in range(len(kernels))], problems)

    def report_judged(self) -> Report:
        """The report of what was judged so far."""
        return _assemble([self.known[number] for number in sorted(self.known)], ())


def _assemble(judged: Sequence[_Judged], problems: Sequence[Problem]) -> Report:
    met = [problem for one in judged for problem in one.problems]
    return assemble_report([one.report for one in judged], [*problems, *met])


def _measure(kernel: Kernel) -> float:
    """How long it took, of what is known."""
    return sum(launch.read_number("gpu__time_duration.sum") or 0.0 for launch in kernel.launches)


def _judge_kernel(
    kernel: Kernel, way: Way, sources: ProfiledSources, roofs: KeptRoofs | None, problems: list[Problem]
) -> AnalysedKernel:
    """Without samples there is nothing to attribute, but questions and counters all the same; without a launch no advice either."""
    assert way.blamer is not None
    moved = blame_kernel(kernel, way.blamer) if kernel.total_samples or kernel.longest_launch is not None else None
    blame = moved if kernel.total_samples else None
    roofline = place_kernel(kernel, None if roofs is None else roofs.find(kernel.device.name))
    facts = KernelFacts(kernel, blame, roofline)
    analyses = analyse_kernel(facts) if way.answers else None
    limiter, doubts = judge_kernel(facts)
    problems.extend((*(analyses.problems if analyses is not None else ()), *doubts))
    if moved is None:
        return AnalysedKernel(kernel=kernel, analyses=analyses, limiter=limiter)
    advice, met = advise_kernel(kernel, moved, sources.reader_for(kernel), roofline, facts)
    problems.extend((*moved.problems, *met))
    return AnalysedKernel(kernel=kernel, blame=blame, advice=advice, analyses=analyses, limiter=limiter)


def _load(path: Path, way: Way, progress: Progress | None) -> tuple[list[Kernel], list[Problem], tuple[str, ...]]:
    if recognise_container(path) is not None:
        kernels, problems = _load_code(path, way)
        return kernels, problems, ()
    profile = read_profile(path)
    found, met = join_profile(
        profile, kernel_filter=_make_filter(profile, way.kernel_filter), with_text=way.disassemble, progress=progress
    )
    return list(found), [*profile.problems, *met], profile.other_files


def _load_code(path: Path, way: Way) -> tuple[list[Kernel], list[Problem]]:
    """The kernels of a cubin, fat binary or program, with nothing measured."""
    kernels: list[Kernel] = []
    problems: list[Problem] = []
    choose = (
        None if way.kernel_filter is None else partial(list_named, way.kernel_filter, list_names=lambda name: (name,))
    )
    for cubin in find_cubins(path):
        found, met = list_unmeasured_kernels(cubin, choose=choose, with_text=way.disassemble)
        kernels.extend(found)
        problems.extend(met)
    return kernels, problems


def _make_filter(profile: Profile, text: str | None) -> Callable[[Launch], bool] | None:
    if text is None:
        return None
    names = dict.fromkeys((launch.mangled_name, launch.display_name) for launch in profile.launches)
    wanted = set(list_named(text, names, lambda one: one))
    return lambda launch: (launch.mangled_name, launch.display_name) in wanted
