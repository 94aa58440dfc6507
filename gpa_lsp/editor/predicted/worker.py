"""Jobs of the process that predicts, so that none of them delays an answer of the server."""

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec.structs import replace

from gpa_lsp.document.blocks import Part
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.prediction_view import build_prediction, build_prediction_page, describe_origin
from gpa_lsp.editor.predicted.results import (
    Job,
    LaunchFact,
    PageJob,
    PageResult,
    PredictedFault,
    PredictedJob,
    PredictedLaunch,
    PredictedProblem,
    PredictedResult,
    TemplateJob,
    TemplateResult,
    TrialsJob,
    TrialsResult,
)
from gpa_lsp.editor.predicted.trials import choose_machine, find_trials
from gpa_lsp.execution.compiler.model import choose_compile_settings
from gpa_lsp.execution.emulator.model import Fault, FaultKind
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.fault_answer import ENDINGS, REMEDIES
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import EDITOR_PREDICTION, KernelPrediction, PredictionSettings, SourcePrediction
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.templates import describe_guesses, write_templates
from gpa_lsp.execution.traces.line_facts import AccessLineFact, BranchLineFact
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.numbers import (
    format_count,
    format_count_of,
    format_dim3,
    format_duration_ns,
)
from gpa_lsp.foundation.ownership import choose_frame, find_frame_in, find_library_frame
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.worker import Tell, Work

_KEPT = 4  # Predictions, so that a page need not wait for another emulation

_LONGEST_PAGE_CHARS = 180_000
_kept: OrderedDict[PredictedJob, SourcePrediction] = OrderedDict()
_PACKAGING = re.compile(r" (?:PCIe|SXM|NVL|HBM|\d+ ?GB).*")
_LINE = re.compile(r"line (\d{1,9})\b")
_MOST_FACTS = 4000
_MOST_FAULTS = 200
_MOST_PROBLEMS = 100

_Fact = TypeVar("_Fact", AccessLineFact, BranchLineFact)


def _warm_up() -> None:
    from gpa_lsp.code.binary import disassembler  # noqa: F401
    from gpa_lsp.code.sources import cuda_declarations  # noqa: F401
    from gpa_lsp.execution.compiler import compile as compiling  # noqa: F401


def do_job(job: Job, tell: Tell) -> object:
    """The result of a job."""
    if isinstance(job, PredictedJob):
        return _answer(job, tell)
    if isinstance(job, TrialsJob):
        return _look_for_trials(job, tell)
    if isinstance(job, PageJob):
        return _write_page(job, tell)
    return _write_template(job)


def _answer(job: PredictedJob, tell: Tell) -> PredictedResult:
    started_s = time.process_time()
    try:
        found = predict(job, tell)
        seconds = time.process_time() - started_s
        return make_result(job, found, seconds)
    except InputError as error:
        return PredictedResult(job=job, problems=(_locate(job, error),), seconds=time.process_time() - started_s)
    except GpaError as error:
        return PredictedResult(job=job, failure=str(error), seconds=time.process_time() - started_s)


def _locate(job: PredictedJob, error: InputError) -> PredictedProblem:
    """An error as a problem; one of the description without a line stands on its first."""
    problem = make_problem(Problem.from_error(error))
    line = problem.described_line or (1 if error.path == job.launches_path else None)
    return replace(problem, described_line=line)


def _check_description(job: PredictedJob) -> tuple[PredictedProblem, ...]:
    """Problems of the description of a source that does not compile."""
    try:
        read_launches(job.launches_path, text=job.launches_text)
    except InputError as error:
        return (_locate(job, error),)
    return ()


def predict(job: PredictedJob, tell: Tell) -> SourcePrediction:
    """The prediction of a job, from what is kept where it is.

    Raises:
        GpaError: see :func:`~gpa_lsp.execution.prediction.predict.predict_code`.
    """
    known = _kept.get(job)
    if known is not None:
        _kept.move_to_end(job)
        return known

    def report(words: str, done: int, total: int) -> None:
        tell(Step(words=words, done=done, total=total))

    found = predict_code(
        job.path,
        text=job.text,
        launches=LaunchChoice(path=job.launches_path, text=job.launches_text),
        compute_capability=job.architecture,
        settings=choose_settings(job),
        compile_settings=choose_compile_settings(job.path, job.roots, job.limit_s),
        progress=report,
    )
    _kept[job] = found
    while len(_kept) > _KEPT:
        _kept.popitem(last=False)
    return found


def choose_settings(job: PredictedJob) -> PredictionSettings:
    """Choose the limits of a job."""
    budget = replace(
        EDITOR_PREDICTION.budget,
        seconds=job.seconds,
        memory_bytes=job.memory_bytes,
        trace_bytes=min(EDITOR_PREDICTION.budget.trace_bytes, job.memory_bytes // 4),
    )
    return replace(EDITOR_PREDICTION, machine=choose_machine(job), budget=budget, all_seconds=2 * job.seconds)


def make_result(job: PredictedJob, found: SourcePrediction, seconds: float) -> PredictedResult:
    """Make the result that the server keeps."""
    if found.statics.unit.ptx is None:
        return PredictedResult(job=job, has_failed=True, problems=_check_description(job), seconds=seconds)
    return PredictedResult(
        job=job,
        launches=tuple(list_launches(found)),
        accesses=list_accesses(found),
        branches=list_branches(found),
        faults=list_faults(found),
        problems=list_problems(found),
        undescribed=found.undescribed,
        page=_render_text(found),
        seconds=seconds,
    )


def _render_text(found: SourcePrediction) -> str:
    """The whole prediction as Markdown."""
    blocks = build_prediction(found, found.path.parent)
    page = Part(title=f"Predictions for {found.path.name}", summary=describe_origin(found), blocks=blocks)
    return "\n".join([*write_markdown([page], level=1), ""])[:_LONGEST_PAGE_CHARS]


def _look_for_trials(job: TrialsJob, tell: Tell) -> TrialsResult:
    try:
        return find_trials(
            job, predict(job.base, tell), choose_compile_settings(job.base.path, job.base.roots, job.base.limit_s), tell
        )
    except GpaError as error:
        return TrialsResult(job=job.base, remarks=(str(error),))


def _write_page(job: PageJob, tell: Tell) -> PageResult:
    from gpa_lsp.document.document_page import render_document_page

    try:
        found = predict(job.base, tell)
        with atomic_write(job.target, errors="backslashreplace") as stream:
            stream.write(render_document_page(*build_prediction_page(found, found.path.parent)))
    except (GpaError, OSError) as error:
        return PageResult(failure=str(error))
    return PageResult()


def _write_template(job: TemplateJob) -> TemplateResult:
    base = job.base
    try:
        text = write_templates(
            base.path,
            text=base.text,
            kernel=job.kernel,
            launches_path=base.launches_path,
            launches_text=base.launches_text,
            compute_capability=base.architecture,
            settings=choose_compile_settings(base.path, base.roots, base.limit_s),
            fits=choose_settings(base),
            told=job.told,
        )
    except GpaError as error:
        return TemplateResult(failure=str(error))
    return TemplateResult(text=text, guessed=describe_guesses(text))


def list_launches(prediction: SourcePrediction) -> Iterator[PredictedLaunch]:
    """The launches in their order."""
    source = str(prediction.path)
    places = {one.statics.mangled_name: one.place for one in prediction.statics.kernels}
    counts: dict[str, int] = {}
    for kernel in prediction.kernels:
        counts[kernel.mangled_name] = counts.get(kernel.mangled_name, 0) + 1
    for kernel in prediction.kernels:
        place = places.get(kernel.mangled_name)
        title = name_launch(kernel) if counts[kernel.mangled_name] > 1 else ""
        yield PredictedLaunch(
            mangled_name=kernel.mangled_name,
            name=kernel.name,
            line=place.line if place is not None and place.file == source else None,
            words=describe_briefly(kernel, title),
            what=_describe_subject(kernel),
            described_line=kernel.launch.line,
            grid=kernel.launch.grid,
            block=kernel.launch.block,
            emulated_ratio=kernel.execution.executed_blocks / max(kernel.execution.grid_blocks, 1),
            limits=_describe_limits(kernel),
        )


def name_launch(kernel: KernelPrediction) -> str:
    """Name a launch so that it differs from others of its kernel."""
    launch = kernel.launch
    if launch.title:
        return f"“{launch.title}”"
    return f"{format_dim3(launch.grid)} blocks of {format_dim3(launch.block)}"


def describe_briefly(kernel: KernelPrediction, title: str) -> str:
    """The words of a lens: what limits it, and how long it takes at least."""
    parts = []
    own = [fault for fault in kernel.faults if fault.kind not in ENDINGS]
    if own:
        parts.append(format_count_of(len(own), "fault"))
    volumes = kernel.volumes
    if volumes is not None:
        if volumes.limiter is not None:
            parts.append(f"limited by {volumes.limiter.value}")
        if volumes.duration_ns is not None:
            machine = _PACKAGING.sub("", kernel.machine)
            parts.append(f"at least {format_duration_ns(volumes.duration_ns)} on {machine}")
    heading = f"predicted{f' {title}' if title else ''}"
    return f"{heading}: {' · '.join(parts)}" if parts else heading


def _describe_limits(kernel: KernelPrediction) -> str:
    """Part of the launch that was emulated; empty where that is all."""
    run = kernel.execution
    is_whole = run.is_complete and run.executed_blocks == run.grid_blocks
    return "" if is_whole else f"emulated {count_blocks(kernel)}"


def count_blocks(kernel: KernelPrediction) -> str:
    """``64 of 1,024 blocks``."""
    run = kernel.execution
    total = format_count_of(run.grid_blocks, "block")
    counted = (
        f"all {total}" if run.executed_blocks == run.grid_blocks else f"{format_count(run.executed_blocks)} of {total}"
    )
    counted = "its block" if run.grid_blocks == run.executed_blocks == 1 else counted
    return counted if run.is_complete else f"{counted}, not to the end"


def _describe_subject(kernel: KernelPrediction) -> str:
    title = f"“{kernel.launch.title}”, " if kernel.launch.title else ""
    machine = f", predicted for the {kernel.machine}" if kernel.machine else ""
    return f"{title}block {format_dim3(kernel.launch.block)}, {count_blocks(kernel)}{machine}"


def list_accesses(prediction: SourcePrediction) -> tuple[LaunchFact[AccessLineFact], ...]:
    """List accesses on lines of the source, most sectors first."""
    found = _list_own(prediction, lambda kernel: kernel.accesses)
    return tuple(sorted(found, key=lambda one: -one.fact.sectors)[:_MOST_FACTS])


def list_branches(prediction: SourcePrediction) -> tuple[LaunchFact[BranchLineFact], ...]:
    """List branches on lines of the source, most executed first."""
    found = _list_own(prediction, lambda kernel: kernel.branches)
    return tuple(sorted(found, key=lambda one: -one.fact.executions)[:_MOST_FACTS])


def _list_own(
    prediction: SourcePrediction, choose: Callable[[KernelPrediction], Iterable[_Fact]]
) -> list[LaunchFact[_Fact]]:
    """The facts of lines of the source itself, with the number of their launch."""
    source = str(prediction.path)
    return [
        LaunchFact(launch=number, fact=fact)
        for number, kernel in enumerate(prediction.kernels)
        for fact in choose(kernel)
        if fact.file == source
    ]


def list_faults(prediction: SourcePrediction) -> tuple[PredictedFault, ...]:
    """List the faults of all launches, those of the program first."""
    source = str(prediction.path)
    found = [(fault, number) for number, kernel in enumerate(prediction.kernels) for fault in kernel.faults]
    found.sort(key=lambda one: one[0].kind in ENDINGS)
    return tuple(_make_fault(fault, number, source) for fault, number in found[:_MOST_FAULTS])


def _make_fault(fault: Fault, launch: int, source: str) -> PredictedFault:
    chain = fault.chain or ()
    own = find_frame_in(chain, source.__eq__)
    named = choose_frame(chain) if chain else None
    inner = find_library_frame(chain) if named is own else named
    other = choose_frame(fault.other_chain) if fault.other_chain else None
    where = "" if fault.block is None else f" First in block {fault.block}"
    if where and fault.thread is not None:
        x, y, z = fault.thread
        where += f", thread ({x}, {y}, {z})"
    times = f" {format_count(fault.count)} times." if fault.count > 1 else ""
    return PredictedFault(
        line=None if own is None else own.line,
        launch=launch,
        kind=fault.kind.value,
        message=f"{fault.message.rstrip('.')}.{times}{f'{where}.' if where else ''}",
        remedy=_make_sentence(REMEDIES.get(fault.kind, "")),
        is_ending=fault.kind in ENDINGS or fault.kind is FaultKind.BAD_LAUNCH,
        place=None if inner is None or inner.line <= 0 else (inner.file, inner.line),
        other=None if other is None or other.line <= 0 else (other.file, other.line),
    )


def _make_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def list_problems(prediction: SourcePrediction) -> tuple[PredictedProblem, ...]:
    """List the problems of the description and of each launch."""
    found = [(problem, None) for problem in prediction.problems]
    own = [(problem, kernel) for kernel in prediction.kernels for problem in kernel.problems]
    return tuple(make_problem(problem, kernel) for problem, kernel in [*found, *own][:_MOST_PROBLEMS])


def make_problem(problem: Problem, kernel: KernelPrediction | None = None) -> PredictedProblem:
    """One without its file, which is the description or the source, as its place tells."""
    remedy = "" if problem.remedy is None else f"; {problem.remedy}"
    name = problem.kernel or (None if kernel is None else kernel.mangled_name)
    line = None if kernel is None else kernel.launch.line
    return PredictedProblem(
        severity=problem.severity,
        message=f"{problem.message}{remedy}",
        described_line=read_line(problem.place) or line,
        kernel=name,
    )


def read_line(place: str | None) -> int | None:
    """The number of ``line 12``; None for other places.

    >>> read_line("line 12"), read_line("offset 0x10"), read_line(None)
    (12, None, None)
    """
    match = _LINE.search(place or "")
    return int(match[1]) if match else None


def _explain(job: Job, reason: str) -> object:
    if isinstance(job, PredictedJob):
        return PredictedResult(job=job, failure=f"{job.path}: {reason}")
    if isinstance(job, TrialsJob):
        return TrialsResult(job=job.base, remarks=(reason,))
    return PageResult(failure=reason) if isinstance(job, PageJob) else TemplateResult(failure=reason)


WORK = Work(do=do_job, prepare=_warm_up, explain=_explain)
