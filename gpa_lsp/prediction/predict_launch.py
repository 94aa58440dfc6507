"""One launch of one kernel, predicted: a few blocks tell what it costs and where its addresses go, then as many run as may."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod

from gpa_lsp.analyses.answers import Answer
from gpa_lsp.analyses.static.model import KernelStatics
from gpa_lsp.analyses.traces.analyse import TraceAnalyser
from gpa_lsp.analyses.traces.ask import answer_questions
from gpa_lsp.analyses.traces.block_places import list_block_chains
from gpa_lsp.analyses.traces.context import build_trace_context
from gpa_lsp.analyses.traces.line_facts import list_branch_facts, list_line_facts
from gpa_lsp.analyses.traces.model import AnalysisSettings, TraceContext
from gpa_lsp.analyses.traces.paper_answer import PaperCollector
from gpa_lsp.analyses.traces.results import TraceAnalyses
from gpa_lsp.analyses.traces.statistics import list_measures
from gpa_lsp.analyses.volumes.answer import answer_volumes
from gpa_lsp.analyses.volumes.expressions import KernelAccesses
from gpa_lsp.analyses.volumes.from_trace import find_launch_shape, list_probe_blocks, recover_expressions
from gpa_lsp.analyses.volumes.model import VolumePrediction
from gpa_lsp.analyses.volumes.predict import predict_volumes
from gpa_lsp.emulator.emulate import emulate
from gpa_lsp.emulator.launch import LaunchDescription
from gpa_lsp.emulator.model import Emulation, Fault, Sampling, SamplingKind, TraceSettings, TraceSink
from gpa_lsp.emulator.ptx.model import PtxModule
from gpa_lsp.emulator.trace import Trace
from gpa_lsp.errors import GpaError, Problem
from gpa_lsp.machine.products import Product
from gpa_lsp.prediction.fault_answer import ENDINGS, answer_faults, explain_unchecked_races
from gpa_lsp.prediction.flops import count_flops
from gpa_lsp.prediction.machines import choose_product, choose_volume_device
from gpa_lsp.prediction.model import Execution, KernelPrediction
from gpa_lsp.prediction.sampling import SamplingPlan, plan_sampling
from gpa_lsp.prediction.settings import PredictionSettings

_LEAST_LOOKED_AT = 10_000
"""References that are looked at however little memory there is: they take a few MiB."""

_PROBE_SHARE = 4
"""The probe may take this part of the time, so that the rest is left for what it is for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSubject:
    """What is predicted.

    Attributes:
        module: the code.
        launch: how it is run.
        kernel: mangled name.
        name: for people.
        statics: of the kernel; None when there is no image.
        compute_capability: it was compiled for.
    """

    module: PtxModule
    launch: LaunchDescription
    kernel: str
    name: str
    statics: KernelStatics | None
    compute_capability: tuple[int, int]

    @property
    def registers(self) -> int | None:
        """Of a thread; None when unknown."""
        return None if self.statics is None else self.statics.registers

    @property
    def shared_bytes(self) -> int:
        """Of a block, static and dynamic."""
        static = 0 if self.statics is None else self.statics.shared_static_bytes
        return static + self.launch.shared_bytes


class _Fan:
    """Hands pieces on to several sinks."""

    def __init__(self, sinks: Iterable[TraceSink]) -> None:
        self._sinks = tuple(sinks)

    def add(self, piece: Trace) -> None:
        """Take one piece."""
        for sink in self._sinks:
            sink.add(piece)


def predict_launch(
    subject: LaunchSubject, settings: PredictionSettings, *, sinks: Iterable[TraceSink] = ()
) -> KernelPrediction:
    """Emulate and analyse.

    Args:
        subject: what.
        settings: how.
        sinks: get the trace as well.

    Raises:
        InputError: the launch does not go with the kernel (a missing argument, an unknown GPU).
    """
    problems: list[Problem] = []
    product = choose_product(settings.machine, subject.compute_capability)
    context = _build_context(subject, product, problems)
    warps_per_sm = None if problems else context.blocks_per_sm * -(-prod(subject.launch.block) // 32)
    probe = _probe(subject, settings)
    recovered, volumes, volume_answers = _predict_volumes(subject, settings, product, probe, problems)
    wave = context.sm_count * context.blocks_per_sm
    plan = plan_sampling(probe, settings, wave_blocks=wave, machine=context.gpu)
    paper = (PaperCollector(),) if settings.is_paper else ()
    run, analyses = _run(subject, settings, context, plan, sinks=(*paper, *sinks), problems=problems)
    answers, met = ((), ()) if analyses is None else answer_questions(analyses)
    problems.extend(met)
    faults = merge_faults(run.faults, probe.faults)
    unchecked = explain_unchecked_races(run.instructions, checks_races=settings.checks_races)
    return KernelPrediction(
        mangled_name=subject.kernel,
        name=subject.name,
        launch=subject.launch,
        machine=context.gpu,
        registers=subject.registers,
        shared_bytes=subject.shared_bytes,
        warps_per_sm=warps_per_sm,
        execution=_describe_execution(run, plan),
        faults=faults,
        accesses=() if analyses is None else list_line_facts(analyses),
        branches=() if analyses is None else list_branch_facts(analyses),
        volumes=volumes,
        recovered=recovered,
        answers=(
            answer_faults(faults, unchecked_races=unchecked),
            *volume_answers,
            *answers,
            *(one.answer(context) for one in paper),
        ),
        problems=tuple(problems),
        measures=() if analyses is None else list_measures(analyses),
    )


def bound_analyses(memory_bytes: int) -> AnalysisSettings:
    """What the analyses look at, where little memory may be used: less, so that they take about a quarter of what the emulator may.

    >>> bound_analyses(2 << 30) == AnalysisSettings(), bound_analyses(256 << 20).wave_references
    (True, 335544)
    """
    usual = AnalysisSettings()
    return replace(
        usual,
        wave_references=min(usual.wave_references, max(_LEAST_LOOKED_AT, memory_bytes // 8 // 100)),
        block_references=min(usual.block_references, max(_LEAST_LOOKED_AT, memory_bytes // 8 // 200)),
        value_rows=min(usual.value_rows, max(_LEAST_LOOKED_AT, memory_bytes // 16 // 60)),
        footprint_sectors=min(usual.footprint_sectors, max(_LEAST_LOOKED_AT, memory_bytes // 16)),
    )


def _build_context(subject: LaunchSubject, product: Product | None, problems: list[Problem]) -> TraceContext:
    """The GPU, or where it cannot hold a block at all: one SM that holds one."""
    capability = subject.compute_capability if product is None else product.compute_capability
    try:
        return build_trace_context(
            capability,
            block_threads=subject.launch.block,
            registers_per_thread=subject.registers,
            shared_bytes=subject.shared_bytes,
            product=product,
        )
    except GpaError as error:
        problems.append(Problem.from_error(error))
        return TraceContext(sm_count=1, blocks_per_sm=1)


def _probe(subject: LaunchSubject, settings: PredictionSettings) -> Emulation:
    blocks = list_probe_blocks(subject.launch.grid)
    budget = replace(settings.budget, seconds=settings.budget.seconds / _PROBE_SHARE)
    return emulate(
        subject.module,
        subject.launch,
        budget=budget,
        sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=blocks),
        trace=TraceSettings(branches=False),
        check_races=False,
    )


def _predict_volumes(
    subject: LaunchSubject,
    settings: PredictionSettings,
    product: Product | None,
    probe: Emulation,
    problems: list[Problem],
) -> tuple[KernelAccesses | None, VolumePrediction | None, tuple[Answer, ...]]:
    """From the probe alone: it costs milliseconds, and says the same of a launch of any size."""
    device = choose_volume_device(product, settings.mode)
    if isinstance(device, Problem):
        problems.append(device)
        return None, None, ()
    if probe.trace is None or not probe.is_complete:
        why = "data volumes are not predicted: the blocks that were to tell the addresses did not run to their end"
        problems.append(Problem.from_error(GpaError(why)))
        return None, None, ()
    work = count_flops(probe)
    try:
        recovered = recover_expressions(probe.trace, flops_per_thread=work.total, flops_are_double=work.is_double)
        shape = find_launch_shape(recovered, subject.launch.block, subject.launch.grid)
        predicted = predict_volumes(
            recovered,
            shape,
            device,
            registers=subject.registers or 0,
            shared_bytes=subject.shared_bytes,
            mode=settings.mode,
        )
    except GpaError as error:
        problems.append(Problem.from_error(error))
        return None, None, ()
    return recovered, predicted, (answer_volumes(predicted, recovered),)


def _run(
    subject: LaunchSubject,
    settings: PredictionSettings,
    context: TraceContext,
    plan: SamplingPlan,
    *,
    sinks: Iterable[TraceSink],
    problems: list[Problem],
) -> tuple[Emulation, TraceAnalyses | None]:
    """As many blocks as may, and what their trace shows."""
    entries = settings.traces_entries or settings.is_paper
    chains = list_block_chains(subject.module, subject.kernel) if entries else ()
    analyser = TraceAnalyser(context, bound_analyses(settings.budget.memory_bytes), block_chains=chains)
    run = emulate(
        subject.module,
        subject.launch,
        budget=settings.budget,
        sampling=plan.sampling,
        trace=TraceSettings(entries=entries),
        sink=_Fan((analyser, *sinks)),
        check_races=settings.checks_races,
    )
    analyses = _finish(analyser, problems)
    if analyses is not None and not run.is_complete:
        analyses = replace(analyses, is_complete=False)  # a block that was cut short lacks rows
    return run, analyses


def _finish(analyser: TraceAnalyser, problems: list[Problem]) -> TraceAnalyses | None:
    """None where not one block ran to its end."""
    try:
        return analyser.finish()
    except GpaError as error:
        problems.append(Problem.from_error(error))
        return None


def _describe_execution(run: Emulation, plan: SamplingPlan) -> Execution:
    return Execution(
        grid_blocks=prod(run.grid),
        executed_blocks=len(run.executed_blocks),
        is_complete=run.is_complete,
        warp_instructions=run.warp_instructions,
        lane_instructions=int(run.counts.lane_executions.sum()),
        seconds=run.seconds,
        peak_bytes=run.peak_bytes,
        why=plan.why,
        printed=run.printed,
    )


def merge_faults(run: tuple[Fault, ...], probe: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Those of the run, and those only the probe met: its blocks lie at the ends of the grid, where bounds are passed.

    Where the probe itself was ended says nothing: its time is a part of the run's.
    """
    known = {(fault.kind, fault.instruction) for fault in run}
    others = (fault for fault in probe if fault.kind not in ENDINGS)
    return (*run, *(fault for fault in others if (fault.kind, fault.instruction) not in known))
