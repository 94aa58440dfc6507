"""What the process that predicts does with its jobs. Nothing of it delays an answer of the server."""

import time
from collections import OrderedDict
from dataclasses import replace

from gpa_lsp.compiler.settings import CompileSettings
from gpa_lsp.emulator.inputs.read_launches import read_launches
from gpa_lsp.emulator.ptx.parse import parse_ptx
from gpa_lsp.errors import GpaError, InputError, Problem
from gpa_lsp.lsp.predicted_facts import (
    list_accesses,
    list_branches,
    list_faults,
    list_launches,
    list_problems,
    make_problem,
)
from gpa_lsp.lsp.predicted_results import (
    Job,
    PageJob,
    PageResult,
    PredictedJob,
    PredictedResult,
    TemplateJob,
    TemplateResult,
    TrialsJob,
    TrialsResult,
)
from gpa_lsp.lsp.predicted_trials import find_trials
from gpa_lsp.lsp.staying_worker import Tell
from gpa_lsp.lsp.worker_messages import Step
from gpa_lsp.prediction.launch_sources import LaunchChoice
from gpa_lsp.prediction.model import SourcePrediction
from gpa_lsp.prediction.predict import match_launches, predict_source
from gpa_lsp.prediction.settings import EDITOR_PREDICTION, PredictionSettings
from gpa_lsp.prediction.templates import write_templates
from gpa_lsp.render.layout import join_lines
from gpa_lsp.render.prediction_text import render_prediction
from gpa_lsp.whole_files import open_whole

_KEPT = 4
"""Predictions, so that a page need not wait for another emulation."""

_TEXT_WIDTH = 120
_LONGEST_PAGE_CHARS = 180_000
_kept: OrderedDict[PredictedJob, SourcePrediction] = OrderedDict()


def warm_up() -> None:
    """Import what the first job needs while nobody waits for it."""
    from gpa_lsp.binary import nvdisasm  # noqa: F401
    from gpa_lsp.compiler import compile as compiling  # noqa: F401
    from gpa_lsp.sources import cuda_arrays  # noqa: F401


def do_job(job: Job, tell: Tell) -> object:
    """The result of a job."""
    if isinstance(job, PredictedJob):
        return _answer(job, tell)
    if isinstance(job, TrialsJob):
        return _look_for_trials(job, tell)
    if isinstance(job, PageJob):
        return _write_page(job, tell)
    return _write_template(job)


def explain(job: Job, reason: str) -> object:
    """The result of a job that failed."""
    if isinstance(job, PredictedJob):
        return PredictedResult(job=job, failure=f"{job.path}: {reason}")
    if isinstance(job, TrialsJob):
        return TrialsResult(job=job.base, remarks=(reason,))
    return PageResult(failure=reason) if isinstance(job, PageJob) else TemplateResult(failure=reason)


def _answer(job: PredictedJob, tell: Tell) -> PredictedResult:
    started_s = time.monotonic()
    try:
        found = predict(job, tell)
        seconds = time.monotonic() - started_s
        return make_result(job, found, seconds)
    except InputError as error:
        seconds = time.monotonic() - started_s
        problem = make_problem(Problem.from_error(error))
        if error.path == job.launches_path:
            problem = replace(problem, described_line=problem.described_line or 1)
        return PredictedResult(job=job, problems=(problem,), seconds=seconds)
    except GpaError as error:
        return PredictedResult(job=job, failure=str(error), seconds=time.monotonic() - started_s)


def predict(job: PredictedJob, tell: Tell) -> SourcePrediction:
    """The prediction of a job, from what is kept where it is.

    Raises:
        GpaError: see :func:`~gpa_lsp.prediction.predict.predict_source`.
    """
    known = _kept.get(job)
    if known is not None:
        _kept.move_to_end(job)
        return known
    found = predict_source(
        job.path,
        text=job.text,
        launches=LaunchChoice(path=job.launches_path, text=job.launches_text),
        compute_capability=job.architecture,
        settings=choose_settings(job),
        compile_settings=choose_compile_settings(job),
        progress=lambda words, done, total: tell(Step(words=words, done=done, total=total)),
    )
    _kept[job] = found
    while len(_kept) > _KEPT:
        _kept.popitem(last=False)
    return found


def choose_settings(job: PredictedJob) -> PredictionSettings:
    """How much a job may cost."""
    budget = replace(
        EDITOR_PREDICTION.budget,
        seconds=job.seconds,
        memory_bytes=job.memory_bytes,
        trace_bytes=min(EDITOR_PREDICTION.budget.trace_bytes, job.memory_bytes // 4),
    )
    return replace(EDITOR_PREDICTION, machine=job.machine, budget=budget, all_seconds=2 * job.seconds)


def choose_compile_settings(job: PredictedJob) -> CompileSettings:
    """The workspace is the innermost folder of the source: its programs are never run."""
    roots = [root for root in job.roots if job.path.is_relative_to(root)]
    workspace = max(roots, key=lambda root: len(root.parts), default=None)
    return CompileSettings(limit_s=job.limit_s, workspace=workspace)


def make_result(job: PredictedJob, found: SourcePrediction, seconds: float) -> PredictedResult:
    """What the server keeps."""
    if found.statics.unit.ptx is None:
        return PredictedResult(job=job, has_failed=True, seconds=seconds)
    return PredictedResult(
        job=job,
        launches=tuple(list_launches(found)),
        accesses=list_accesses(found),
        branches=list_branches(found),
        faults=list_faults(found),
        problems=list_problems(found),
        undescribed=_list_undescribed(job, found),
        page=_render_text(found),
        seconds=seconds,
    )


def _list_undescribed(job: PredictedJob, found: SourcePrediction) -> tuple[str, ...]:
    """By mangled name, which the prediction does not say."""
    module = parse_ptx(found.statics.unit.ptx or "", name=str(job.path))
    problems: list[Problem] = []
    launches = read_launches(job.launches_path, text=job.launches_text)
    described = {one.function.name for one in match_launches(module, launches, None, problems)}
    return tuple(entry.name for entry in module.entries if entry.name not in described)


def _render_text(found: SourcePrediction) -> str:
    """The whole prediction as Markdown that shows as it is written."""
    text = join_lines(render_prediction(found, _TEXT_WIDTH, folder=found.path.parent))
    text = "\n".join(line.replace("```", "'''") for line in text[:_LONGEST_PAGE_CHARS].split("\n"))
    return f"# Predictions for {found.path.name}\n\n**Emulated and predicted**, nothing of it measured.\n\n```text\n{text}\n```\n"


def _look_for_trials(job: TrialsJob, tell: Tell) -> TrialsResult:
    try:
        return find_trials(job, predict(job.base, tell), choose_compile_settings(job.base), tell)
    except GpaError as error:
        return TrialsResult(job=job.base, remarks=(str(error),))


def _write_page(job: PageJob, tell: Tell) -> PageResult:
    from gpa_lsp.render.prediction_page.page import render_prediction_page

    try:
        found = predict(job.base, tell)
        with open_whole(job.target, errors="backslashreplace") as stream:
            stream.write(render_prediction_page(found))
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
            settings=choose_compile_settings(base),
        )
    except GpaError as error:
        return TemplateResult(failure=str(error))
    return TemplateResult(text=text)
