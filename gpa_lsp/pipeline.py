"""The whole flow on one page: profiles in, report out. Computes nothing itself."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gpa_lsp.advice.advise import advise_kernel
from gpa_lsp.analyses.analyse_kernel import analyse_kernel
from gpa_lsp.analyses.roofline.place import place_kernel
from gpa_lsp.binary.containers import find_cubins, recognise_container
from gpa_lsp.blame.blame import DEFAULT_BLAMER, blame_kernel
from gpa_lsp.errors import GpaError, InputError, Problem
from gpa_lsp.kernel.join import join_profile
from gpa_lsp.kernel.model import Kernel
from gpa_lsp.kernel.unmeasured import list_unmeasured_kernels
from gpa_lsp.machine.kept_roofs import KeptRoofs
from gpa_lsp.profile.model import Launch
from gpa_lsp.profile.read import list_suffixes, read_profile
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from gpa_lsp.report.model import Report
from gpa_lsp.report.names import is_named
from gpa_lsp.report.profiled_sources import ProfiledSources
from gpa_lsp.report.source_paths import SourceLocator

Progress = Callable[[str, int, int], None]


def analyse(
    paths: Sequence[Path],
    *,
    kernel_filter: str | None = None,
    disassemble: bool = True,
    blamer: str | None = DEFAULT_BLAMER,
    locator: SourceLocator | None = None,
    roofs: KeptRoofs | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read, decode, join, blame, analyse, advise and gather.

    Args:
        paths: profiles, folders in which profiles are looked for, or files with device code (cubins, fat binaries, programs), whose kernels
            come without samples.
        kernel_filter: keep kernels whose mangled, readable or short name contains this; None keeps all.
        disassemble: also produce instruction texts, which needs nvdisasm.
        blamer: name of the blamer that finds the causes of stalls; None finds none, analyses nothing and gives no advice.
        locator: finds sources on this machine, for hints that name expressions; None uses those in the profile only.
        roofs: finds measured roofs; None puts kernels under theoretical ones.
        progress: told (what, done, total) as the work goes on.

    Returns:
        A report. An input that cannot be used becomes a problem in it, and the others go on.
    """
    problems: list[Problem] = []
    kernels: list[Kernel] = []
    files = _drop_repeated(_list_profiles(paths, problems))
    for number, path in enumerate(files):
        if progress is not None:
            progress(f"reading {path.name}", number, len(files))
        try:
            found, met = _load(path, kernel_filter, disassemble=disassemble, progress=progress)
        except GpaError as error:
            problems.append(Problem.from_error(error.at(path) if isinstance(error, InputError) else error))
            continue
        kernels.extend(found)
        problems.extend(met)
    if blamer is None:
        return gather_report([AnalysedKernel(kernel=kernel) for kernel in kernels], problems)
    means = _Means(blamer=blamer, sources=ProfiledSources(locator), roofs=roofs)
    analysed = _judge(kernels, means, problems, progress)
    return gather_report(analysed, problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Means:
    """What kernels are judged with."""

    blamer: str
    sources: ProfiledSources
    roofs: KeptRoofs | None


def _judge(
    kernels: Sequence[Kernel], means: _Means, problems: list[Problem], progress: Progress | None
) -> list[AnalysedKernel]:
    """Blame, analyse and advise."""
    analysed: list[AnalysedKernel] = []
    for number, kernel in enumerate(kernels):
        if progress is not None:
            progress("finding causes", number, len(kernels))
        analysed.append(_judge_one(kernel, means, problems))
    if means.roofs is not None:
        problems.extend(means.roofs.problems)
    return analysed


def _judge_one(kernel: Kernel, means: _Means, problems: list[Problem]) -> AnalysedKernel:
    """Without samples there is nobody to blame and nothing to price, but there are questions all the same."""
    blame = blame_kernel(kernel, means.blamer) if kernel.total_samples else None
    roofline = place_kernel(kernel, None if means.roofs is None else means.roofs.find(kernel.device.name))
    analyses = analyse_kernel(kernel, blame, roofline)
    problems.extend(analyses.problems)
    if blame is None:
        return AnalysedKernel(kernel=kernel, analyses=analyses)
    advice, met = advise_kernel(kernel, blame, means.sources.reader_for(kernel), roofline)
    problems.extend((*blame.problems, *met))
    return AnalysedKernel(kernel=kernel, blame=blame, advice=advice, analyses=analyses)


def _load(
    path: Path, kernel_filter: str | None, *, disassemble: bool, progress: Progress | None
) -> tuple[list[Kernel], list[Problem]]:
    if recognise_container(path) is not None:
        return _load_code(path, kernel_filter, disassemble=disassemble)
    profile = read_profile(path)
    kernels, problems = join_profile(
        profile, kernel_filter=_make_filter(kernel_filter), with_text=disassemble, progress=progress
    )
    return list(kernels), [*profile.problems, *problems]


def _load_code(path: Path, kernel_filter: str | None, *, disassemble: bool) -> tuple[list[Kernel], list[Problem]]:
    """The kernels of a cubin, fat binary or program, with nothing measured."""
    kernels: list[Kernel] = []
    problems: list[Problem] = []
    is_wanted = None if kernel_filter is None else partial(is_named, kernel_filter)
    for cubin in find_cubins(path):
        found, met = list_unmeasured_kernels(cubin, kernel_filter=is_wanted, with_text=disassemble)
        kernels.extend(found)
        problems.extend(met)
    return kernels, problems


def _make_filter(text: str | None) -> Callable[[Launch], bool] | None:
    if text is None:
        return None
    return lambda launch: is_named(text, launch.mangled_name, launch.display_name)


def _drop_repeated(paths: Iterable[Path]) -> list[Path]:
    """Each file once, whatever its name: a file given twice would count twice."""
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(os.path.realpath(path), path)
    return list(first.values())


def _walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Files of these names in a folder and below it; what cannot be listed, or goes away meanwhile, is passed over."""
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if name.endswith(suffixes) and file.is_file():
                yield file


def _list_profiles(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    suffixes = list_suffixes()
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        found = sorted(_walk(path, suffixes))
        if not found:
            message = "no profile in this folder"
            remedy = f"give a file, or a folder with files ending in {', '.join(suffixes)}"
            problems.append(Problem.from_error(InputError(message, path=path, remedy=remedy)))
        yield from found
