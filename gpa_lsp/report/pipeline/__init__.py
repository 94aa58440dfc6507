"""Pipeline: profiles in, report out.

A file that this version analysed before with these options comes from the user's cache; only for others are readers, analyses and advice imported.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gpa_lsp.code.binary.tool_location import find_tool, identify_tool
from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.files import open_regular_file, read_head
from gpa_lsp.foundation.kept_files import identify_program
from gpa_lsp.kernel.names import list_named
from gpa_lsp.report.measured_files import ProfiledSources
from gpa_lsp.report.model import Report
from gpa_lsp.report.pipeline.options import AnalysisOptions, OnKernel, Progress
from gpa_lsp.report.saved.kept_reports import KeptReport, load_kept, open_kept_reports, store_kept
from gpa_lsp.report.source_paths import SourceLocator

if TYPE_CHECKING:
    from gpa_lsp.foundation.kept_files import KeptFiles
    from gpa_lsp.gpu.device.roofs_file import KeptRoofs
    from gpa_lsp.report.model import KernelReport

_KEPT_FORMAT = 5
# larger files are digested only if their header is that of an input: a second of work for each GiB
_PROMPT_BYTES = 64 << 20
# larger ones never are, and so not kept: what reads them reads a part at a time
_MOST_DIGESTED_BYTES = 4 << 30


def load(paths: Sequence[Path], *, kernel_filter: str | None = None, **options: Any) -> Report:
    """Analyse profiles and read saved reports, whichever each path is.

    Args:
        paths: as :func:`analyse` takes them, or reports saved as JSON, which keep the attribution they were saved with.
        kernel_filter: as in :class:`AnalysisOptions`; of several files a whole name wins over a part of one.
        options: for :func:`analyse`.

    Returns:
        One report of all, the kernels that took longest first. An input that cannot be used becomes a problem in it, and the others go on.
    """
    from gpa_lsp.report.saved import is_saved_report

    saved = [path for path in paths if path.is_file() and is_saved_report(path)]
    profiles = [path for path in paths if path not in saved]
    reports = [_read_saved(path) for path in saved]
    if profiles:
        reports.append(analyse(profiles, kernel_filter=kernel_filter, **options))
    kernels = [found for report in reports for found in report.kernels]
    if kernel_filter is not None:
        kernels = list_named(kernel_filter, kernels, lambda one: (one.mangled_name, one.name))
    if len(reports) > 1:
        kernels.sort(key=lambda found: (*found.rank, str(found.profile_path)))
    return Report(problems=tuple(problem for report in reports for problem in report.problems), kernels=tuple(kernels))


def _read_saved(path: Path) -> Report:
    from gpa_lsp.report.saved.store import read_report

    try:
        return read_report(path)
    except GpaError as error:
        return Report(problems=(Problem.from_error(error),), kernels=())


def analyse(
    paths: Sequence[Path],
    *,
    kernel_filter: str | None = None,
    disassemble: bool = True,
    answers: bool = True,
    mode: str | None = DEFAULT_BLAMER,
    locator: SourceLocator | None = None,
    roofs: "KeptRoofs | None" = None,
    progress: Progress | None = None,
    take: OnKernel | None = None,
) -> Report:
    """Read, decode, join, blame, analyse, advise and gather.

    Args:
        paths: profiles, folders in which profiles are looked for, or files with device code (cubins, fat binaries, programs), whose kernels
            come without samples.
        kernel_filter: as in :class:`AnalysisOptions`.
        disassemble: as in :class:`AnalysisOptions`.
        answers: as in :class:`AnalysisOptions`; a report that is kept with them is taken where they are not asked for, too.
        mode: as in :class:`AnalysisOptions`.
        locator: finds sources on this machine, for hints that name expressions; None uses those in the profile only.
        roofs: finds measured roofs; None puts kernels under theoretical ones.
        progress: told (what, done, total) as the work goes on.
        take: told the kernels of files that were not analysed before, one by one, as they will stand in the report.

    Returns:
        A report. An input that cannot be used becomes a problem in it, and the others go on.
    """
    options = AnalysisOptions(kernel_filter=kernel_filter, disassemble=disassemble, answers=answers, mode=mode)
    context = _Context(options=options, locator=locator, roofs=roofs, kept=open_kept_reports())
    problems: list[Problem] = []
    files = _drop_repeated(_list_profiles(paths, problems))
    reports = []
    for number, path in enumerate(files):
        if progress is not None:
            progress(f"reading {path.name}", number, len(files))
        reports.append(_analyse_file(path, context, progress, take))
    roof_problems = roofs.problems if roofs is not None else ()
    kernels = [kernel for report in reports for kernel in report.kernels]
    kernels.sort(key=lambda kernel: (*kernel.rank, str(kernel.profile_path)))
    found = [problem for report in reports for problem in report.problems]
    return Report(problems=(*problems, *found, *roof_problems), kernels=tuple(kernels))


class _Context(Struct, frozen=True, kw_only=True):
    """Settings and services of an analysis."""

    options: AnalysisOptions
    locator: SourceLocator | None
    roofs: "KeptRoofs | None"
    kept: "KeptFiles"


def _analyse_file(
    path: Path, context: _Context, progress: Progress | None = None, take: OnKernel | None = None
) -> Report:
    """Report of one file: cached, or new and cached then."""
    sources = ProfiledSources(context.locator)

    def still_holds(seen: Mapping[Any, Any]) -> bool:
        return all(_ask(question, path, sources, context.roofs) == answer for question, answer in seen.items())

    before = _read_stamp(path)
    holding, without_answers = _make_keys(path, context)
    for key in holding:
        found = load_kept(context.kept, key, still_holds)
        if found is not None:
            return found.rename(path)
    lacking = None if without_answers is None else load_kept(context.kept, without_answers, still_holds)
    from gpa_lsp.report.pipeline.judge import judge_file  # brings the readers, the analyses and the optimizers

    try:
        judged = judge_file(
            path,
            context.options,
            sources,
            context.roofs,
            known=_list_faultless(lacking, path),
            progress=progress,
            take=take,
        )
    except GpaError as error:
        problem = Problem.from_error(error.at(path) if isinstance(error, InputError) else error)
        return Report(problems=(problem,), kernels=())
    report = judged.report
    is_whole = not any(problem.is_passing for problem in report.problems)
    if holding and is_whole and before == _read_stamp(path):
        names = {kernel.device.name for kernel in report.kernels} if context.roofs is not None else set()
        questions: list[tuple[Any, ...]] = [("file", name) for name in judged.other_files]
        questions.extend(("roofs", name) for name in names)
        seen = dict(lacking.seen) if lacking is not None else {}
        seen |= {question: _ask(question, path, sources, context.roofs) for question in questions}
        seen |= {("source", *question): answer for question, answer in sources.answers.items()}
        store_kept(context.kept, holding[0], KeptReport(path=path, seen=seen, report=report), judged.packed)
        if lacking is not None and without_answers is not None:
            context.kept.remove(without_answers)
        context.kept.trim()
    return report


def _list_faultless(kept: KeptReport | None, path: Path) -> tuple["KernelReport", ...]:
    """Kernels of a cached report without answers, if it has no problems that would have to be repeated."""
    if kept is None:
        return ()
    from gpa_lsp.report.gather import assemble_report  # brings what reads profiles

    report = kept.rename(path)
    return report.kernels if assemble_report(report.kernels).problems == report.problems else ()


def _ask(question: tuple[Any, ...], path: Path, sources: ProfiledSources, roofs: "KeptRoofs | None") -> str | None:
    """Digest of an input of an analysis besides its file: a source, measured roofs, or another file."""
    kind, *what = question
    if kind == "source":
        file, measured_unix_s, stamp = what
        return sources.ask((file, measured_unix_s, stamp))
    if kind == "roofs":
        return repr(roofs.find(what[0])) if roofs is not None else None
    return _digest_file(path.parent / what[0])


def _read_stamp(path: Path) -> tuple[int, int] | None:
    """Size and modification time of a file; None where it cannot be read."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def _make_keys(path: Path, context: _Context) -> tuple[tuple[str, ...], str | None]:
    """Cache keys that hold the wanted report, and the key of a report without answers (None where not wanted).

    Nothing where the file cannot be read, or this program cannot be told from another.
    """
    content = _digest_file(path)
    program = identify_program()
    if content is None or program is None:
        return (), None
    options = context.options
    parts: list[object] = [
        _KEPT_FORMAT,
        program,
        sys.version_info[:2],
        content,
        path.suffixes[-2:],  # a format may be told by its ending
        [
            options.kernel_filter,
            options.disassemble,
            options.mode,
            context.locator is not None,
            context.roofs is not None,
        ],
        [identify_tool(find_tool(name)) for name in ("nvdisasm", "cuobjdump")],
    ]
    without, complete = (
        hashlib.sha256(json.dumps([*parts, answers]).encode()).hexdigest() for answers in (False, True)
    )
    return ((complete,), without) if options.answers else ((without, complete), None)


def _digest_file(path: Path) -> str | None:
    """Digest of a file; None where it cannot be read, or is too large and not recognised as input."""
    try:
        stream, size_bytes = open_regular_file(path)
        with stream:
            if size_bytes > _MOST_DIGESTED_BYTES or (size_bytes > _PROMPT_BYTES and not _begins_as_input(path)):
                return None
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, GpaError):
        return None


def _begins_as_input(path: Path) -> bool:
    """Whether a file's first bytes are those of a profile or of device code."""
    from gpa_lsp.code.binary.containers import recognise_container
    from gpa_lsp.profile.read import find_readers

    head = read_head(path)
    return recognise_container(path) is not None or any(one.recognises(head, Path("file")) for one in find_readers())


def _drop_repeated(paths: Iterable[Path]) -> list[Path]:
    """Each file once, by real path: a file given twice would count twice."""
    first: dict[str, Path] = {}
    for path in paths:
        first.setdefault(os.path.realpath(path), path)
    return list(first.values())


def _walk(folder: Path, suffixes: tuple[str, ...]) -> Iterator[Path]:
    """Files with these suffixes in and below a folder; unreadable ones are skipped."""
    for parent, _, names in os.walk(folder):
        for name in names:
            file = Path(parent, name)
            if name.endswith(suffixes) and file.is_file():
                yield file


def _list_profiles(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        from gpa_lsp.profile.read import list_suffixes  # asks the readers

        suffixes = list_suffixes()
        found = sorted(_walk(path, suffixes))
        if not found:
            message = "no profile in this folder"
            remedy = f"give a file, or a folder with files ending in {', '.join(suffixes)}"
            problems.append(Problem.from_error(InputError(message, path=path, remedy=remedy)))
        yield from found
