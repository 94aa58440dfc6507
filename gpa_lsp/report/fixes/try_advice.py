"""Trials of the fixes of a report's advice, where its sources are on this machine as they were measured: :func:`try_advice`.

An edit that the compiler makes the same code of gains nothing, whatever an estimate says; and one that the simulator finds no faster has no number.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP, Advice, KernelAdvice, Silence, SilenceStage
from gpa_lsp.diagnosis.analyses.model import Limiter
from gpa_lsp.diagnosis.rewrites.find import find_rewrites
from gpa_lsp.execution.launches.read_launches import find_launch_file
from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.files import read_bounded, read_stamp
from gpa_lsp.foundation.prose import factor, say
from gpa_lsp.report.fixes.jobs import Question, list_questions, make_fix_job
from gpa_lsp.report.fixes.results import (
    UNKNOWN,
    FixJob,
    FixState,
    FixVerdict,
    LaunchedJob,
    LaunchedQuestion,
    add_launched,
)
from gpa_lsp.report.fixes.trials import compare_launches, try_fix
from gpa_lsp.report.line_map import split_lines
from gpa_lsp.report.measured_files import find_files
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.source_paths import SourceLocator

_SAME_CODE = say("compiled: the code does not change")
_NO_FASTER = say("simulated: the edit is no faster")


class TriedFix(Struct, frozen=True, kw_only=True):
    """One edit that follows a piece of advice at one place (:attr:`~gpa_lsp.diagnosis.rewrites.model.Rewrite.is_remedy`)."""

    question: Question  # the place
    verdict: FixVerdict  # what became of it


def hold_to_witnesses(kernel: KernelReport, tried: Sequence[TriedFix]) -> KernelReport:
    """A kernel whose advice is corrected by the results of its edits.

    Advice is withdrawn when every place of it has an edit, and all of them compile to the code that is there; it is then among what would not help.
    Other advice quotes its first edit that changes the code, and has no number where the simulator finds none of them faster.

    Args:
        kernel: as it was advised.
        tried: edits for its advice, in the order they would be offered. Advice without any stays as it is.
    """
    contexts = tuple(replace(one, advice=_hold(one.advice, one.limiter, tried)) for one in kernel.contexts)
    return replace(kernel, advice=_hold(kernel.advice, kernel.limiter, tried), contexts=contexts)


def _hold(advice: KernelAdvice | None, limiter: Limiter | None, tried: Sequence[TriedFix]) -> KernelAdvice | None:
    if advice is None:
        return None
    kept: list[Advice] = []
    silences = list(advice.silences)
    for one in advice.advice:
        mine = [fix for fix in tried if fix.question.advice.optimizer == one.optimizer]
        if _is_without_effect(one, mine):
            silences.append(Silence(optimizer=one.optimizer, stage=SilenceStage.GATED, message=_SAME_CODE))
        else:
            kept.append(_quote(one, [fix.verdict for fix in mine if fix.verdict.state is FixState.CHANGED]))
    if tuple(kept) == advice.advice:
        return advice
    from gpa_lsp.diagnosis.advice.advise import decide  # it imports every optimizer

    kept.sort(key=lambda one: one.speedup.doubt == _NO_FASTER)
    silences.sort(key=lambda one: one.optimizer)
    return decide(replace(advice, advice=tuple(kept), silences=tuple(silences)), limiter)


def _is_without_effect(advice: Advice, tried: Sequence[TriedFix]) -> bool:
    scopes = [fix.question.region.scope for fix in tried if fix.question.region is not None]
    is_whole = bool(tried) and all(region.scope in scopes for region in advice.regions)
    return is_whole and all(fix.verdict.state is FixState.SAME for fix in tried)


def _quote(advice: Advice, changed: Sequence[FixVerdict]) -> Advice:
    if not changed:
        return advice
    words, gain = changed[0].words, changed[0].simulated_speedup
    witness = say("compiled: {words}", words=words)
    if gain is not None:  # first: a narrow terminal cuts the rest
        witness = say("simulated {gain}, compiled: {words}", gain=factor(gain), words=words)
    found = replace(advice, witness=witness)
    simulated = [one.simulated_speedup for one in changed if one.simulated_speedup is not None]
    if len(simulated) < len(changed) or max(simulated) >= LEAST_SPEEDUP:
        return found
    return replace(found, speedup=replace(advice.speedup, estimate=max(simulated), doubt=_NO_FASTER))


MOST_KERNELS = 5  # Kernels whose advice is tried, those of most time

MOST_FIXES = 6  # Edits tried per kernel, those of the best advice

_COMPILED_ALONE = ".cu"  # Sources that can be compiled by themselves; headers are compiled with what includes them
_LIMIT_S = 30.0  # For the compiler, each time; processor time
_SIMULATION_S = 5.0  # For executing the blocks of one version
_MEMORY_BYTES = 4 << 30
_MOST_SOURCE_BYTES = 16 << 20

# What is tried, how many are done, how many there are
Progress = Callable[[str, int, int], None]


def try_advice(report: Report, locator: SourceLocator, progress: Progress | None = None) -> Report:
    """A report whose advice is corrected by compiling its edits, and by simulating them where launches are described.

    Nothing of the program is run. Sources that may have changed since they were measured are left alone.

    Args:
        report: advised; of its kernels the first :data:`MOST_KERNELS` are tried, of each the first :data:`MOST_FIXES` edits.
        locator: finds sources on this machine.
    """
    trials = [list(_list_trials(kernel, locator)) for kernel in report.kernels[:MOST_KERNELS]]
    jobs = list(dict.fromkeys(job for mine in trials for _, job in mine[:MOST_FIXES]))
    verdicts: dict[FixJob, FixVerdict] = {}
    for number, job in enumerate(jobs):
        if progress is not None:
            progress(f"compiling an edit of {job.path.name}", number, len(jobs))
        verdicts[job] = _try(job)
    held = [
        hold_to_witnesses(kernel, [TriedFix(question=one, verdict=verdicts.get(job, UNKNOWN)) for one, job in mine])
        for kernel, mine in zip(report.kernels, trials, strict=False)
    ]
    kernels = (*held, *report.kernels[len(held) :])
    return replace(report, kernels=kernels, problems=(*report.problems, *_explain(tuple(verdicts.values()))))


def _explain(verdicts: Sequence[FixVerdict]) -> Iterator[Problem]:
    """Problem that says why nothing was compiled."""
    if not verdicts:
        message = "nothing was compiled: no advice has an edit of a source (.cu) that is here as it was measured"
        yield Problem.note(message)
    elif all(one.state is FixState.UNKNOWN for one in verdicts):
        yield Problem.error(" ".join(verdicts[0].details).rstrip("."))


def _list_trials(kernel: KernelReport, locator: SourceLocator) -> Iterator[tuple[Question, FixJob]]:
    """Edits for a kernel's advice, best advice first."""
    texts = dict(_read_sources(kernel, locator))
    for question in list_questions(kernel):
        for path, (local_path, text) in texts.items():
            lines = [place.line for place in question.lines if place.file == path]
            for rewrite in (
                find_rewrites(local_path, text, lines, question.context) if lines or not question.lines else ()
            ):
                if rewrite.is_remedy:
                    yield (
                        question,
                        make_fix_job(
                            kernel,
                            rewrite.edits,
                            path=local_path,
                            text=text,
                            lines=lines,
                            roots=(),
                            architecture=None,
                            limit_s=_LIMIT_S,
                        ),
                    )


def _read_sources(kernel: KernelReport, locator: SourceLocator) -> Iterator[tuple[str, tuple[str, str]]]:
    """Path as compiled → local path and text, of unchanged sources that can be compiled by themselves."""
    path = kernel.profile_path
    stamp = None if path is None else read_stamp(path)
    modified_ns = 0 if stamp is None else stamp.modified_ns
    for file in find_files(Report(problems=(), kernels=(kernel,)), locator, modified_ns):
        local_path = Path(file.local_path)
        if not file.is_verified or file.is_outside or local_path.suffix.lower() != _COMPILED_ALONE:
            continue
        try:
            text = read_bounded(local_path, _MOST_SOURCE_BYTES).decode("utf-8", "surrogateescape")
        except OSError:
            continue
        if split_lines(text) == file.lines:
            yield file.compiled_path, (file.local_path, text)


def _try(job: FixJob) -> FixVerdict:
    """Verdict of the compiler, and of the simulator where the code changes and launches are described."""
    verdict = try_fix(job)
    described = find_launch_file(job.path) if verdict.state is FixState.CHANGED else None
    if described is None:
        return verdict
    launched = LaunchedJob(
        base=job,
        question=LaunchedQuestion.CYCLES,
        launches_path=described,
        launches_text=None,
        machine=None,
        seconds=_SIMULATION_S,
        memory_bytes=_MEMORY_BYTES,
    )
    return add_launched(verdict, compare_launches(launched))
