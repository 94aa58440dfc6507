"""Jobs of the process that simulates, so that none of them delays an answer of the server."""

import json
import time
from collections.abc import Callable

from gpa_lsp.code.binary.linkage_names import find_bare_name
from gpa_lsp.code.sources.host_launches import find_host_launches
from gpa_lsp.editor.predicted.actions import explain_undescribed_kernel
from gpa_lsp.editor.predicted.results import (
    ComparisonJob,
    ComparisonResult,
    PredictedJob,
    SimulationJob,
    SimulationResult,
)
from gpa_lsp.editor.predicted.trials import choose_machine
from gpa_lsp.editor.predicted.worker import choose_settings
from gpa_lsp.execution.compiler.model import choose_compile_settings
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import Simulation, SimulationSettings, simulate_code
from gpa_lsp.execution.prediction.templates import write_templates
from gpa_lsp.execution.simulator.profile_document import DocumentLaunch, make_document
from gpa_lsp.foundation.errors import GpaError, InputError, ProblemSeverity
from gpa_lsp.foundation.files import atomic_write
from gpa_lsp.foundation.processes.python_children import Step
from gpa_lsp.foundation.processes.worker import Tell, Work
from gpa_lsp.kernel.names import demangle, list_named, shorten_name


def _warm_up() -> None:
    from gpa_lsp.code.binary import disassembler  # noqa: F401
    from gpa_lsp.execution.compiler import compile as compiling  # noqa: F401


def do_job(job: SimulationJob | ComparisonJob, tell: Tell) -> SimulationResult | ComparisonResult:
    """The result of a job: a profile is written where anything could be simulated, or the page of a comparison."""
    if isinstance(job, ComparisonJob):
        return _compare(job, tell)
    return _simulate(job, tell)


def _simulate(job: SimulationJob, tell: Tell) -> SimulationResult:
    started_s = time.process_time()
    try:
        found = simulate(job, tell)
        _write_profile(job, found)
    except (GpaError, OSError) as error:
        return SimulationResult(job=job, failure=str(error), seconds=time.process_time() - started_s)
    problems = tuple(str(one) for one in found.problems if one.severity is not ProblemSeverity.NOTE)
    return SimulationResult(
        job=job,
        words=tuple(map(describe_launch, found.launches)),
        kernels=tuple(dict.fromkeys(one.kernel.mangled_name for one in found.launches)),
        problems=problems,
        seconds=time.process_time() - started_s,
        failure="" if found.launches else "; ".join(problems),
    )


def simulate(job: SimulationJob, tell: Tell) -> Simulation:
    """The simulation of a job.

    Raises:
        GpaError: see :func:`~gpa_lsp.execution.prediction.simulation.simulate_code`.
    """
    base = job.base

    return simulate_code(
        base.path,
        kernel=job.kernel,
        launches=LaunchChoice(path=base.launches_path, text=_find_launches_text(base, job.kernel)),
        text=base.text,
        compute_capability=base.architecture,
        settings=SimulationSettings(
            machine=choose_machine(base),
            seconds=job.seconds,
            total_seconds=job.total_seconds,
            memory_bytes=base.memory_bytes,
        ),
        compile_settings=choose_compile_settings(base.path, base.roots, base.limit_s),
        progress=_report_to(tell),
    )


def _find_launches_text(base: PredictedJob, kernel: str | None) -> str:
    """Find the text that describes a kernel's launches; of a kernel without one, a description made from the source's host code.

    Raises:
        InputError: neither says anything.
    """
    described = base.launches_text
    if kernel is None:
        return described
    known = read_launches(base.launches_path, text=described) if described else ()
    if any(list_named(one.kernel, [kernel], lambda name: (name,)) for one in known):
        return described
    if not is_launched(base.path.name, base.text, kernel):
        raise InputError(explain_undescribed_kernel(shorten_name(demangle(kernel))), path=base.path)
    return write_templates(
        base.path,
        text=base.text,
        kernel=kernel,
        launches_path=base.launches_path,
        launches_text=described,
        compute_capability=base.architecture,
        settings=choose_compile_settings(base.path, base.roots, base.limit_s),
        fits=choose_settings(base),
    )


def is_launched(file: str, text: str, kernel: str) -> bool:
    """Host code in a source launches a kernel with a grid and a block that can be read from it."""
    launches = find_host_launches(file, text)
    own = [one for one in launches if one.kernel == find_bare_name(kernel)]
    return any(one.grid is not None and one.block is not None for one in own)


def _write_profile(job: SimulationJob, found: Simulation) -> None:
    """Whole, or not at all; what was simulated before stays where nothing is simulated now."""
    if not found.launches:
        return
    document = make_document(found.launches, found.problems, {str(job.base.path): job.base.text})
    with atomic_write(job.target) as stream:
        stream.write(json.dumps(document) + "\n")


def describe_launch(one: DocumentLaunch) -> str:
    """A few words for the person who asked for it: a long message covers what it is about."""
    return (
        f"{shorten_name(one.name)} on {one.machine.name}: {one.time}{', for guessed sizes' if one.is_guessed else ''}"
    )


def _compare(job: ComparisonJob, tell: Tell) -> ComparisonResult:
    """Simulate a kernel with the code of its report, and write both sides."""
    try:
        return ComparisonResult(failure=_write_comparison(job, tell))
    except (GpaError, OSError) as error:
        return ComparisonResult(failure=str(error))


def _write_comparison(job: ComparisonJob, tell: Tell) -> str:
    """Write the page; the reason why there is none, or an empty text."""
    from gpa_lsp.document.answer_view import build_answer  # few ask for it, and pages bring much
    from gpa_lsp.document.document_page import render_document_page
    from gpa_lsp.document.simulation_view import COMPARISON_LEAD
    from gpa_lsp.report.measured_simulation import answer_comparison, compare_simulated
    from gpa_lsp.report.pipeline import analyse

    settings = SimulationSettings(machine=job.machine, seconds=job.seconds, memory_bytes=job.memory_bytes)
    launches = LaunchChoice(path=job.launches)
    found = simulate_code(
        job.profile, kernel=job.kernel, launches=launches, settings=settings, progress=_report_to(tell)
    )
    if not found.launches:
        return "; ".join(map(str, found.problems))
    with atomic_write(job.simulated) as stream:
        stream.write(json.dumps(make_document(found.launches, found.problems)) + "\n")
    sides = [analyse([one], kernel_filter=job.kernel, answers=False).kernels for one in (job.profile, job.simulated)]
    answers = [answer_comparison(one) for one in compare_simulated(*sides)]
    if not answers:
        return "the kernel has no samples"
    with atomic_write(job.page, errors="backslashreplace") as stream:
        parts = list(map(build_answer, answers))
        stream.write(render_document_page(f"{job.profile.name}: measured and simulated", COMPARISON_LEAD, parts))
    return ""


def _report_to(tell: Tell) -> Callable[[str, int, int], None]:
    def report(words: str, done: int, total: int) -> None:
        tell(Step(words=words, done=done, total=total))

    return report


def _explain(job: SimulationJob | ComparisonJob, reason: str) -> SimulationResult | ComparisonResult:
    return (
        ComparisonResult(failure=reason)
        if isinstance(job, ComparisonJob)
        else SimulationResult(job=job, failure=reason)
    )


WORK = Work(do=do_job, prepare=_warm_up, explain=_explain)
