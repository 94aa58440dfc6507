"""From one file to its report: read, decode, join, blame, analyse, advise, gather."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpa_lsp.advice.advise import advise_kernel
from gpa_lsp.analyses.analyse_kernel import analyse_kernel, judge_kernel
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.roofline.place import place_kernel
from gpa_lsp.basis.errors import Problem
from gpa_lsp.binary.containers import find_cubins, recognise_container
from gpa_lsp.blame.blame import blame_kernel
from gpa_lsp.device.kept_roofs import KeptRoofs
from gpa_lsp.pipeline.way import Progress, Way
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import read_profile
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import Report
from gpa_lsp.report.names import is_named
from gpa_lsp.report.profiled_sources import ProfiledSources
from gpa_lsp.rows.join import join_profile
from gpa_lsp.rows.model import Kernel
from gpa_lsp.rows.unmeasured import list_unmeasured_kernels


def judge_file(
    path: Path, way: Way, sources: ProfiledSources, roofs: KeptRoofs | None, progress: Progress | None
) -> tuple[Report, tuple[str, ...]]:
    """Analyse a file.

    Args:
        path: a profile, or a file with device code.
        way: how.
        sources: the texts the kernels were compiled from.
        roofs: finds measured roofs; None puts kernels under theoretical ones.
        progress: told (what, done, total) as the work goes on.

    Returns:
        The report, and the files beside this one that were read, by their paths from its folder.

    Raises:
        GpaError: the file cannot be used.
    """
    kernels, problems, other_files = _load(path, way, progress)
    if way.blamer is None:
        return gather_report([AnalysedKernel(kernel=kernel) for kernel in kernels], problems), other_files
    analysed: list[AnalysedKernel] = []
    for number, kernel in enumerate(kernels):
        if progress is not None:
            progress("finding causes", number, len(kernels))
        analysed.append(_judge_kernel(kernel, way.blamer, sources, roofs, problems))
    return gather_report(analysed, problems), other_files


def _judge_kernel(
    kernel: Kernel, blamer: str, sources: ProfiledSources, roofs: KeptRoofs | None, problems: list[Problem]
) -> AnalysedKernel:
    """Without samples there is nothing to attribute, but questions and counters all the same; without a launch no advice either."""
    moved = blame_kernel(kernel, blamer) if kernel.total_samples or kernel.longest_launch is not None else None
    blame = moved if kernel.total_samples else None
    roofline = place_kernel(kernel, None if roofs is None else roofs.find(kernel.device.name))
    facts = KernelFacts(kernel, blame, roofline)
    analyses = analyse_kernel(facts)
    limiter, doubts = judge_kernel(facts)
    problems.extend((*analyses.problems, *doubts))
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
        profile, kernel_filter=_make_filter(way.kernel_filter), with_text=way.disassemble, progress=progress
    )
    return list(found), [*profile.problems, *met], profile.other_files


def _load_code(path: Path, way: Way) -> tuple[list[Kernel], list[Problem]]:
    """The kernels of a cubin, fat binary or program, with nothing measured."""
    kernels: list[Kernel] = []
    problems: list[Problem] = []
    is_wanted = None if way.kernel_filter is None else partial(is_named, way.kernel_filter)
    for cubin in find_cubins(path):
        found, met = list_unmeasured_kernels(cubin, kernel_filter=is_wanted, with_text=way.disassemble)
        kernels.extend(found)
        problems.extend(met)
    return kernels, problems


def _make_filter(text: str | None) -> Callable[[Launch], bool] | None:
    if text is None:
        return None
    return lambda launch: is_named(text, launch.mangled_name, launch.display_name)
