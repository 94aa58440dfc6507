"""Prediction of one launch: a few blocks tell its cost and its addresses, then as many run as the limits allow."""

from collections.abc import Iterable
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.blocks import find_blocks
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.static_instructions import list_reachable
from gpa_lsp.diagnosis.analyses.answers import Answer
from gpa_lsp.diagnosis.analyses.static.model import KernelStatics
from gpa_lsp.execution.accesses.piece_rows import PieceRows
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation, Fault, Sampling, SamplingKind, TraceSettings, TraceSink
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.executed_work import answer_operations, count_flops, count_issued
from gpa_lsp.execution.prediction.fault_answer import (
    ENDINGS,
    answer_faults,
    explain_unchecked_races,
    grow_guessed,
    note_guesses,
    part_guessed,
)
from gpa_lsp.execution.prediction.model import Execution, KernelPrediction, PredictionSettings
from gpa_lsp.execution.prediction.static_source import choose_product, choose_volume_device
from gpa_lsp.execution.traces.ask import TraceAnswerer, TraceAnswers
from gpa_lsp.execution.traces.model import AnalysisSettings, TraceContext, build_trace_context
from gpa_lsp.execution.volumes.answer import answer_volumes
from gpa_lsp.execution.volumes.expressions import KernelAccesses
from gpa_lsp.execution.volumes.from_trace import (
    list_border_blocks,
    list_fewest_probe_blocks,
    list_probe_blocks,
    predict_traced,
    recover_expressions,
)
from gpa_lsp.execution.volumes.model import Contradiction, VolumePrediction
from gpa_lsp.execution.volumes.trace_sampling import compare_executions, continue_trace, has_all_first
from gpa_lsp.foundation.errors import GpaError, InputError, Problem, spare_others
from gpa_lsp.foundation.locations import InlineChain
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.gpu.device.products import Product


class LaunchVolumes(Struct, frozen=True, kw_only=True):
    """Data volumes of a launch, as far as they were predicted."""

    recovered: KernelAccesses | None = None  # what the kernel does to global memory
    predicted: VolumePrediction | None = None  # None without a GPU that volumes can be predicted for
    answers: tuple[Answer, ...] = ()  # for people

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """Contradictions of the prediction."""
        return () if self.predicted is None else self.predicted.contradictions

    @property
    def shown(self) -> VolumePrediction | None:
        """The prediction; None where it contradicts itself."""
        return None if self.contradictions else self.predicted


class LaunchSubject(Struct, frozen=True, kw_only=True):
    """A kernel, and how it is launched."""

    module: PtxModule  # the code
    launch: LaunchDescription  # how it is run
    kernel: str  # mangled name
    name: str  # for people
    statics: KernelStatics | None  # of the kernel; None when there is no image
    compute_capability: tuple[int, int]  # it was compiled for

    @property
    def registers(self) -> int | None:
        """Registers of a thread; None when unknown."""
        return None if self.statics is None else self.statics.registers

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block in bytes, static and dynamic."""
        static = 0 if self.statics is None else self.statics.shared_static_bytes
        return static + self.launch.shared_bytes


def predict_volumes_of(
    subject: LaunchSubject,
    settings: PredictionSettings,
    product: Product | None,
    probe: Emulation,
    counted: Emulation,
    *,
    problems: list[Problem],
    piece: PieceRows | None = None,
) -> LaunchVolumes:
    """Predict data volumes from a few blocks, which takes milliseconds for a launch of any size.

    Args:
        probe: the blocks, traced.
        counted: blocks whose executions are counted: the same, or more.
    """
    device = choose_volume_device(product, settings.mode)
    if isinstance(device, Problem):
        problems.append(device)
        return LaunchVolumes()
    trace = probe.trace
    executed = len(counted.executed_blocks)
    is_whole = trace is not None and trace.is_complete and probe.is_complete
    lanes = counted.counts.lane_executions
    continuation = None if trace is None or is_whole else continue_trace(trace, lanes, executed)
    if trace is None or not counted.is_complete or (continuation is None and not is_whole):
        why = "data volumes are not predicted: the blocks traced for the addresses did not run to their end"
        remedy = "give more time or memory, or describe a smaller launch"
        problems.append(Problem.warning(why, remedy))  # the user's own limit
        return LaunchVolumes()
    piece = PieceRows(trace) if piece is None else piece
    with spare_others("predicting data volumes", problems):
        work = count_flops(counted)
        recovered = recover_expressions(
            trace,
            flops_per_thread=work.total,
            flops_are_double=work.is_double,
            issued=count_issued(counted),
            ratios=compare_executions(trace, lanes, executed)[0],
            is_executed_whole=executed == prod(counted.grid),
            piece=piece,
            continuation=continuation,
        )
        predicted = predict_traced(
            recovered,
            trace,
            device,
            mode=settings.mode,
            registers=subject.registers or 0,
            shared_bytes=subject.shared_bytes,
            piece=piece,
            counts_requests=continuation is None,
        )
        return LaunchVolumes(recovered=recovered, predicted=predicted, answers=(answer_volumes(predicted, recovered),))
    return LaunchVolumes()


class SamplingPlan(Struct, frozen=True, kw_only=True):
    """Choice of the blocks to emulate."""

    sampling: Sampling  # for the emulator
    why: str  # a clause for people


def plan_sampling(probe: Emulation, settings: PredictionSettings, *, wave_blocks: int, machine: str) -> SamplingPlan:
    """Choose the blocks to emulate by the cost of a few.

    Raises:
        InputError: none of the requested blocks is in the grid.
    """
    total = prod(probe.grid)
    if settings.blocks:
        chosen = tuple(sorted({block for block in settings.blocks if block < total}))
        if not chosen:
            message = f"there is no block {format_count(min(settings.blocks))} in a grid of {format_count(total)}"
            raise InputError(message, remedy=f"choose from 0 to {format_count(total - 1)}")
        return SamplingPlan(sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=chosen), why="the requested blocks")
    per_block = max(1.0, probe.warp_instructions / max(1, len(probe.executed_blocks)))
    work = min(settings.traced_warp_instructions, int(settings.budget.seconds * _TRACED_PER_S))
    affordable = max(1, int(work / per_block))
    if total <= affordable:
        return SamplingPlan(sampling=Sampling(), why="all blocks")
    if wave_blocks <= affordable:
        why = f"one wave of the {machine}" if machine else "one wave"
        return SamplingPlan(sampling=Sampling(kind=SamplingKind.WAVE, count=wave_blocks), why=why)
    why = f"the first blocks of a wave of {format_count(wave_blocks)}, which are too many to emulate"
    return SamplingPlan(sampling=Sampling(kind=SamplingKind.WAVE, count=affordable), why=why)


# Warp instructions that are traced and analysed in a second of processor time, with room to spare (matmul in shared memory: 4.8 million).
# Work decides how many blocks run, and repeats; the time is there for kernels that cost much more.
_TRACED_PER_S = 1_000_000

_LEAST_LOOKED_AT = 10_000  # References that are analysed however little memory there is: they take a few MiB

_PROBE_SHARE = 4  # Part of the time, 1 in this, that the probe may take, so that the rest is left for the run

# The same for the probe of fewer blocks, where the first one did not end: they run at once anyway
_SECOND_PROBE_SHARE = 2
_MOST_EXECUTIONS = 1024  # Of an access by a warp, in the probe of fewer blocks: enough to tell loops within each other
_FEWEST_EXECUTIONS = 32
_ACCESS_BYTES = 300  # Of a traced access of 32 lanes

# Part of the time, 1 in this, that the run has at least, however much of it the probe took without ending
_RUN_SHARE = 2
_MOST_SERVED_BYTES = 64 << 20  # Addresses of a probe that are analysed as one piece: as much as a batch of a run has
_GROWING_ROUNDS = 3  # Probes with larger arrays, where sizes are guesses


def predict_launch(
    subject: LaunchSubject, settings: PredictionSettings, *, sinks: Iterable[TraceSink] = ()
) -> KernelPrediction:
    """Emulate and analyse a launch.

    Raises:
        InputError: the launch does not go with the kernel (a missing argument, an unknown GPU).
    """
    problems: list[Problem] = []
    product = choose_product(settings.machine, subject.compute_capability)
    context = _build_context(subject, product, problems)
    warps_per_sm = None if problems else context.blocks_per_sm * -(-prod(subject.launch.block) // 32)
    problems.extend(note_guesses(subject.launch))
    probe, subject, left = _probe_grown(subject, settings, problems)
    piece = None if probe.trace is None else PieceRows(probe.trace)
    wave = context.sm_count * context.blocks_per_sm
    plan = plan_sampling(probe, settings, wave_blocks=wave, machine=context.gpu)
    if not _is_enough(probe, plan):
        piece = None  # frees its memory
    run, shown = _run(subject, left, context, plan, probe=probe, piece=piece, sinks=sinks, problems=problems)
    is_run_counted = run.is_complete if probe.is_complete else _has_all_first(probe)
    counted = run if is_run_counted else probe
    volumes = predict_volumes_of(subject, settings, product, probe, counted, problems=problems, piece=piece)
    function = next((one for one in subject.module.entries if one.name == subject.kernel), None)
    faults, notes = part_guessed(subject.launch, merge_faults(run.faults, probe.faults), function)
    problems.extend(notes)
    operations: tuple[Answer, ...] = ()
    with spare_others("counting arithmetic operations", problems):
        operations = (answer_operations(run),)
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
        accesses=shown.accesses,
        branches=shown.branches,
        volumes=volumes.shown,
        contradictions=volumes.contradictions,
        recovered=volumes.recovered,
        answers=(
            answer_faults(faults, unchecked_races=unchecked, is_beyond_guesses=bool(notes)),
            *volumes.answers,
            *operations,
            *shown.answers,
        ),
        problems=tuple(problems),
        measures=shown.measures,
        counts=run.counts,
    )


def bound_analyses(memory_bytes: int) -> AnalysisSettings:
    """Bounds of the analyses, so that they take about a quarter of the memory that the emulator may.

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
    """Context of the GPU; where it cannot hold a block at all, of one SM that holds one."""
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


def _probe_grown(
    subject: LaunchSubject, settings: PredictionSettings, problems: list[Problem]
) -> tuple[Emulation, LaunchSubject, PredictionSettings]:
    """The probe, its subject with arrays of guessed size as large as it touched, and the settings with the time that is left."""
    tried: list[Problem] = []
    probe, taken = _probe(subject, settings, tried)
    given = subject
    for _ in range(_GROWING_ROUNDS):
        grown = grow_guessed(subject.launch, probe.faults)
        if grown is None:
            break
        subject = replace(subject, launch=grown)
        tried.clear()
        probe, more = _probe(subject, _take_seconds(settings, taken), tried)
        taken += more
    problems.extend(tried)
    if subject is not given:
        message = "arrays whose sizes are guesses were made larger, since more of them was touched"
        problems.append(Problem.note(message))
    return probe, subject, _take_seconds(settings, taken)


def _probe(subject: LaunchSubject, settings: PredictionSettings, problems: list[Problem]) -> tuple[Emulation, float]:
    """Emulate the blocks that tell addresses, or the fewest that do where they take too long; and the seconds that takes from the run."""
    every, fewest = list_probe_blocks(subject.launch.grid), list_fewest_probe_blocks(subject.launch.grid)
    is_all = len(every) == prod(subject.launch.grid)  # then it may be all that is run
    whole = _choose_trace(settings) if is_all else TraceSettings(branches=False)
    checks = is_all and settings.checks_races
    probe = _trace_blocks(subject, settings, every, settings.budget.seconds / _PROBE_SHARE, whole, check_races=checks)
    while not is_all and _is_whole(probe) and probe.trace is not None and (more := list_border_blocks(probe.trace)):
        every = tuple(sorted({*every, *more}))
        probe = _trace_blocks(subject, settings, every, settings.budget.seconds / _PROBE_SHARE, whole)
    if _is_whole(probe):
        return probe, 0.0
    first = TraceSettings(branches=False, most_executions=_choose_most_executions(probe, settings, len(fewest)))
    again = _trace_blocks(subject, settings, fewest, settings.budget.seconds / _SECOND_PROBE_SHARE, first)
    taken = probe.seconds + again.seconds
    if not _has_all_first(again):
        return probe, taken
    if len(fewest) < len(every):
        message = f"addresses are those of {format_count(len(fewest))} blocks at the beginning of the grid; more of them would take too long"
        problems.append(Problem.note(message))
    return again, taken


def _take_seconds(settings: PredictionSettings, taken: float) -> PredictionSettings:
    """The settings with the seconds the user gave less those taken, but never less than a part of them: the run is to find something, too."""
    seconds = settings.budget.seconds
    return replace(settings, budget=replace(settings.budget, seconds=max(seconds - taken, seconds / _RUN_SHARE)))


def _is_whole(probe: Emulation) -> bool:
    """Whether every block ran to its end and was traced whole: volumes would lack the rest."""
    return probe.is_complete and probe.trace is not None and probe.trace.is_complete


def _choose_most_executions(probe: Emulation, settings: PredictionSettings, blocks: int) -> int:
    """Executions of each access that there is memory to trace."""
    counts = probe.counts.warp_executions
    executed = sum(one.kind is not None and int(counts[one.index]) > 0 for one in probe.instructions)
    warps = blocks * -(-prod(probe.block_threads) // 32)
    most_bytes = min(settings.budget.trace_bytes, settings.budget.memory_bytes // 4)
    return max(_FEWEST_EXECUTIONS, min(_MOST_EXECUTIONS, most_bytes // (_ACCESS_BYTES * warps * max(1, executed))))


def _has_all_first(probe: Emulation) -> bool:
    """Whether every access, or the first ones of each, were traced as far as blocks ran: with counts of whole blocks that tells volumes."""
    return probe.trace is not None and has_all_first(probe.trace)


def _trace_blocks(
    subject: LaunchSubject,
    settings: PredictionSettings,
    blocks: tuple[int, ...],
    seconds: float,
    trace: TraceSettings,
    *,
    check_races: bool = False,
) -> Emulation:
    return emulate(
        subject.module,
        subject.launch,
        budget=replace(settings.budget, seconds=seconds),
        sampling=Sampling(kind=SamplingKind.CHOSEN, blocks=blocks),
        trace=trace,
        check_races=check_races,
    )


def _choose_trace(settings: PredictionSettings) -> TraceSettings:
    return TraceSettings(entries=settings.traces_entries or settings.is_paper)


def _is_enough(probe: Emulation, plan: SamplingPlan) -> bool:
    """Whether the probe did all that the run would do: it traced all blocks of the grid as a run does."""
    trace = probe.trace
    return (
        plan.sampling == Sampling()
        and _is_whole(probe)
        and trace is not None
        and len(probe.executed_blocks) == prod(probe.grid)
        and trace.accesses.addresses.nbytes <= _MOST_SERVED_BYTES
    )


def _run(
    subject: LaunchSubject,
    settings: PredictionSettings,
    context: TraceContext,
    plan: SamplingPlan,
    *,
    probe: Emulation,
    piece: PieceRows | None,
    sinks: Iterable[TraceSink],
    problems: list[Problem],
) -> tuple[Emulation, TraceAnswers]:
    """Emulate the planned blocks and answer from their trace; the piece of a probe that ran them all stands for the run."""
    trace = _choose_trace(settings)
    chains = list_block_chains(subject.module, subject.kernel) if trace.entries else ()
    answerer = TraceAnswerer(
        context,
        bound_analyses(settings.budget.memory_bytes),
        problems,
        block_chains=chains,
        is_paper=settings.is_paper,
        sinks=sinks,
    )
    if piece is not None:
        begin = work_time()
        answerer.add_rows(piece)
        run = replace(probe, trace=None, sink_seconds=work_time() - begin)
        return run, answerer.finish(is_complete=run.is_complete)
    run = emulate(
        subject.module,
        subject.launch,
        budget=settings.budget,
        sampling=plan.sampling,
        trace=trace,
        sink=answerer,
        check_races=settings.checks_races,
    )
    return run, answerer.finish(is_complete=run.is_complete)  # a block that was cut short lacks rows


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
        analysis_seconds=run.sink_seconds,
    )


def merge_faults(run: tuple[Fault, ...], probe: tuple[Fault, ...]) -> tuple[Fault, ...]:
    """Faults of the run, and those only the probe met: its blocks lie at the ends of the grid, where bounds are passed.

    The end of the probe itself is left out: its time is a part of the run's.
    """
    known = {(fault.kind, fault.instruction) for fault in run}
    others = (fault for fault in probe if fault.kind not in ENDINGS)
    return group_faults((*run, *(fault for fault in others if (fault.kind, fault.instruction) not in known)))


def group_faults(faults: Iterable[Fault]) -> tuple[Fault, ...]:
    """Faults with those of one kind on one source line, with its callers, as one: the compiler makes many instructions of a line.

    The first stands for all: its message, thread and other access. Where no line is known, each stays by itself.
    """
    found: dict[object, Fault] = {}
    for number, fault in enumerate(faults):
        key = number if fault.chain is None else (fault.kind, fault.chain, fault.is_fatal)
        first = found.get(key)
        if first is None:
            found[key] = fault
            continue
        found[key] = replace(
            first, count=first.count + fault.count, instructions=first.instructions + fault.instructions
        )
    return tuple(found.values())


def list_block_chains(module: PtxModule, kernel: str) -> tuple[InlineChain | None, ...]:
    """The inline chain of the first instruction that has one, for each basic block of a kernel and of what it can call, by its number in traces."""
    chains: list[InlineChain | None] = []
    for function in list_reachable(module, kernel):
        blocks = find_blocks(function)
        for first, last in zip(blocks.first, blocks.last, strict=True):
            body = function.instructions[first : last + 1]
            chains.append(next((one.chain for one in body if one.chain is not None), None))
    return tuple(chains)
