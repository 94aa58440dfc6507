"""Worker that tries fixes: compilation, emulation and simulation of both versions."""

import json
import tempfile
from collections import OrderedDict
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_compiled_limits, read_cubin
from gpa_lsp.code.ptx.model import Space
from gpa_lsp.diagnosis.analyses.model import shorten_limit
from gpa_lsp.diagnosis.analyses.static.code_change import CodeFacts, compare_code, find_code_facts
from gpa_lsp.diagnosis.analyses.static.kernel_statics import find_kernel_statics
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin, KnownBlock
from gpa_lsp.execution.compiler.model import CompiledUnit, choose_compile_settings
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.model import EDITOR_PREDICTION
from gpa_lsp.execution.prediction.predict import predict_code
from gpa_lsp.execution.prediction.simulation import Simulation, SimulationSettings, simulate_code
from gpa_lsp.execution.prediction.static_source import choose_compute_capability
from gpa_lsp.execution.simulator.profile_document import make_document
from gpa_lsp.foundation.errors import GpaError, ProblemSeverity
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.processes.worker import Work
from gpa_lsp.gpu.device.products import list_products_named
from gpa_lsp.kernel.dataflow.local_accesses import measure_spills
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.report.fixes.results import FixJob, FixState, FixVerdict, LaunchedJob, LaunchedQuestion, LaunchedResult
from gpa_lsp.report.pipeline import analyse

_KEPT = 16
_LEAST_CHANGE = 0.01  # Of the cycles: less is no change


_kept: OrderedDict[tuple[object, ...], CodeFacts | str] = OrderedDict()


def try_fix(job: FixJob) -> FixVerdict:
    """Compile a source with a fix and without it, and compare the kernel."""
    before = _find_facts(job, job.text, job.lines)
    if isinstance(before, str):
        return FixVerdict(state=FixState.UNKNOWN, details=(f"It cannot be compiled here: {before}.",))
    after = _find_facts(job, job.edited, job.edited_lines)
    if isinstance(after, str):
        return FixVerdict(
            state=FixState.FAILED, words=f"does not compile: {after}", details=(f"It does not compile: {after}.",)
        )
    change = compare_code(before, after)
    if not change.differences:
        return FixVerdict(
            state=FixState.SAME,
            words="compiles to the same code",
            details=("The compiler makes the same instructions with it and without it.",),
        )
    return FixVerdict(
        state=FixState.CHANGED,
        words=str(change.short_words),
        details=(f"Compiled{', ' if change.is_worse else ': '}{change.words}.", *map(str, change.details)),
        has_losses=change.has_losses,
    )


def _find_facts(job: FixJob, text: str, lines: tuple[int, ...]) -> CodeFacts | str:
    """Facts of one version, or a clause that says why there are none."""
    key = (job.path, text, job.kernel, lines, job.threads, job.dynamic_shared_bytes, job.roots, job.architecture)
    if key not in _kept:
        try:
            _kept[key] = _compile(job, text, lines)
        except GpaError as error:
            return str(error).rstrip(".")
        while len(_kept) > _KEPT:
            _kept.popitem(last=False)
    _kept.move_to_end(key)
    return _kept[key]


def _compile(job: FixJob, text: str, lines: tuple[int, ...]) -> CodeFacts | str:
    from gpa_lsp.execution.compiler.compile import compile_source
    from gpa_lsp.execution.compiler.project import find_flags

    flags = find_flags(job.path)
    unit = compile_source(
        job.path,
        text=text,
        compute_capability=job.architecture or choose_compute_capability(flags),
        flags=flags,
        settings=choose_compile_settings(job.path, job.roots, job.limit_s),
    )
    if unit.cubin is None:
        return _find_error(unit, job)
    cubin = read_cubin(unit.cubin)
    kernels, _ = list_unmeasured_kernels(cubin, choose=lambda names: [name for name in names if name == job.kernel])
    if not kernels or not kernels[0].rows.has_code:
        return "the kernel is not among those that this source alone is compiled to"
    limits = read_compiled_limits(cubin)
    rows = kernels[0].rows
    statics = find_kernel_statics(
        kernels[0],
        limits=limits.get(job.kernel),
        blocks=_list_blocks(job),
        spill_bytes=measure_spills(rows, limits),
    )
    return find_code_facts(rows, statics, file=str(job.path), lines=lines)


def _list_blocks(job: FixJob) -> tuple[KnownBlock, ...]:
    if job.threads is None:
        return ()
    shared = job.dynamic_shared_bytes
    return (KnownBlock(threads=job.threads, origin=BlockOrigin.PROFILE, dynamic_shared_bytes=shared),)


def _find_error(unit: CompiledUnit, job: FixJob) -> str:
    error = next((one for one in unit.messages if one.severity is ProblemSeverity.ERROR), None)
    if error is None:
        return "it gives no code"
    place = "" if error.line is None or error.path not in (None, job.path) else f"line {error.line}: "
    return f"{place}{error.text}".rstrip(".")


def compare_launches(job: LaunchedJob) -> LaunchedResult:
    """Compare the launches of a kernel with and without a fix."""
    return compare_cycles(job) if job.question is LaunchedQuestion.CYCLES else compare_sectors(job)


def compare_sectors(job: LaunchedJob) -> LaunchedResult:
    """Emulate launches with and without a fix, and compare their sectors of global and local memory."""
    before = _count_sectors(job, job.base.text)
    after = None if before is None else _count_sectors(job, job.base.edited)
    if before is None or after is None:
        return LaunchedResult()
    if before.blocks != after.blocks:
        return LaunchedResult()
    if before == after:
        return LaunchedResult(
            sentence=f"Emulated: {format_count(before.sectors)} sectors of memory, as many as without it."
        )
    change = f"{format_count(before.sectors)} → {format_count(after.sectors)}"
    return LaunchedResult(
        words=f"sectors {change} (emulated)",
        sentence=f"Emulated: {change} sectors of memory.",
        has_losses=after.sectors > before.sectors,
    )


class _Traffic(Struct, frozen=True, kw_only=True):
    """Memory traffic of the described launches of a kernel."""

    blocks: tuple[int, ...]  # of each launch, those that were executed
    sectors: int  # of global and local memory, by all of them


def _count_sectors(job: LaunchedJob, text: str) -> _Traffic | None:
    """Traffic of one version; None where it is not launched, or does not run to its end."""
    base = job.base
    budget = replace(EDITOR_PREDICTION.budget, seconds=job.seconds, memory_bytes=job.memory_bytes)
    settings = replace(
        EDITOR_PREDICTION, machine=job.machine, budget=budget, checks_races=False, all_seconds=job.seconds
    )
    try:
        found = predict_code(
            base.path,
            text=text,
            launches=LaunchChoice(path=job.launches_path, text=job.launches_text),
            compute_capability=base.architecture,
            settings=settings,
            compile_settings=choose_compile_settings(base.path, base.roots, base.limit_s),
        )
    except GpaError:
        return None
    mine = [one for one in found.kernels if one.mangled_name == base.kernel]
    if not mine or not all(one.execution.is_complete for one in mine):
        return None
    sectors = sum(
        fact.sectors
        for kernel in mine
        for fact in kernel.accesses
        if not fact.is_nested and fact.space in (Space.GLOBAL, Space.LOCAL)
    )
    return _Traffic(blocks=tuple(one.execution.executed_blocks for one in mine), sectors=sectors)


def compare_cycles(job: LaunchedJob) -> LaunchedResult:
    """Simulate launches with and without a fix, and compare cycles and limits."""
    before = _simulate(job, job.base.text)
    after = None if before is None else _simulate(job, job.base.edited)
    if before is None or after is None or before.launches != after.launches:
        return LaunchedResult()
    change = f"{format_count(round(before.cycles))} → {format_count(round(after.cycles))}"
    limits = before.limit if before.limit == after.limit else f"{before.limit} → {after.limit}"
    is_same = abs(after.cycles - before.cycles) <= _LEAST_CHANGE * before.cycles
    return LaunchedResult(
        words="" if is_same else f"cycles {change} (simulated)",
        sentence=f"Simulated on the {before.machine}: {change} cycles{f'; {limits}' if limits else ''}.",
        has_losses=after.cycles > before.cycles and not is_same,
        speedup=before.cycles / after.cycles if after.cycles else None,
    )


class _Simulated(Struct, frozen=True, kw_only=True):
    """Simulated cycles of the described launches of a kernel."""

    launches: int  # how many
    cycles: float  # of all of them
    limit: str  # what limits the longest, a clause; empty where that is not known
    machine: str  # the GPU


def _simulate(job: LaunchedJob, text: str) -> _Simulated | None:
    """Simulation of one version; None where a launch cannot be simulated."""
    base = job.base
    try:
        found = simulate_code(
            base.path,
            kernel=base.kernel,
            launches=LaunchChoice(path=job.launches_path, text=job.launches_text),
            text=text,
            compute_capability=base.architecture,
            settings=SimulationSettings(
                machine=_choose_machine(job), seconds=job.seconds, memory_bytes=job.memory_bytes
            ),
            compile_settings=choose_compile_settings(base.path, base.roots, base.limit_s),
        )
        if not found.launches or any(one.severity is ProblemSeverity.ERROR for one in found.problems):
            return None
        limit = _find_limit(found, base.kernel)
    except (GpaError, OSError):
        return None
    cycles = sum(one.simulated.cycles for one in found.launches)
    machine = found.launches[0].machine.name
    return _Simulated(launches=len(found.launches), cycles=cycles, limit=limit, machine=machine)


def _choose_machine(job: LaunchedJob) -> str | None:
    """GPU of the settings, else the measured one if it is known; None for one of the architecture."""
    if job.machine is not None or job.base.measured_on is None:
        return job.machine
    product = next(iter(list_products_named(job.base.measured_on)), None)
    return None if product is None else product.name


def _find_limit(found: Simulation, kernel: str) -> str:
    """Limit of the simulated kernel, as every view says it of a profile."""
    with tempfile.TemporaryDirectory(prefix="gpa-lsp-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / "fix.gpa-profile.json"
        path.write_text(json.dumps(make_document(found.launches, ())), encoding="utf-8")
        report = analyse([path], answers=False)
    return next((shorten_limit(one.limiter) for one in report.kernels if one.mangled_name == kernel), "")


def do_job(job: FixJob | LaunchedJob) -> FixVerdict | LaunchedResult:
    """The result of a job; what cannot be compiled is a result too."""
    return try_fix(job) if isinstance(job, FixJob) else compare_launches(job)


def _warm_up() -> None:
    from gpa_lsp.code.binary import disassembler  # noqa: F401
    from gpa_lsp.execution.compiler import compile as compiling  # noqa: F401


def _explain(job: FixJob | LaunchedJob, reason: str) -> FixVerdict | LaunchedResult:
    if isinstance(job, LaunchedJob):
        return LaunchedResult()
    return FixVerdict(state=FixState.UNKNOWN, details=(f"It cannot be compiled here: {reason}.",))


WORK = Work(do=lambda job, tell: do_job(job), prepare=_warm_up, explain=_explain)
