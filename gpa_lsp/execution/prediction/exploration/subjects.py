"""Preparation of an exploration from a source, a kernel and its launch (:func:`prepare_exploration`), and the prediction of one configuration: from
expressions that hold for every block, or by emulating a few of its blocks.

The first is exact where every address depends on the thread's global index alone; this is not assumed, but tested by tracing the kernel
with a second block. The second serves tiles, block-wide loops and gathers; it also detects a kernel that is written for the block it has, as with a
tile of fixed size: a configuration with new faults is not predicted.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import prod
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Fault, FaultKind, Sampling, SamplingKind, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.executed_work import count_flops, count_issued
from gpa_lsp.execution.prediction.exploration.explore import Evaluate, Subject, digest_texts
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration
from gpa_lsp.execution.prediction.fault_answer import ENDINGS, name_place, note_guesses
from gpa_lsp.execution.prediction.launch_sources import DescriptionText, LaunchChoice, require_description
from gpa_lsp.execution.prediction.launched_code import CodeChoice, CodeModule, explain_no_launch, match_code
from gpa_lsp.execution.prediction.static_source import (
    ExaminedSource,
    SourceStatics,
    choose_product,
    choose_volume_device,
    examine_for_machine,
    require_ptx,
)
from gpa_lsp.execution.volumes.devices import VolumeDevice
from gpa_lsp.execution.volumes.expressions import (
    NO_TRIPLE,
    AccessExpression,
    KernelAccesses,
    LaunchShape,
    Triple,
    cover_updates,
    fold_accesses,
)
from gpa_lsp.execution.volumes.from_trace import find_launch_shape, list_probe_blocks, recover_expressions
from gpa_lsp.execution.volumes.model import VolumeMode, VolumePrediction, describe_contradiction
from gpa_lsp.execution.volumes.predict import predict_volumes
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.kernel.names import demangle, shorten_name

PROBE_BUDGET = Budget(seconds=10.0, memory_bytes=2 << 30)
_PLAIN: Triple = (1, 1, 1)

FaultName = tuple[FaultKind, int | None]  # Kind and static instruction


class Resources(Struct, frozen=True, kw_only=True):
    """GPU, model and resources, common to all configurations of a kernel."""

    device: VolumeDevice  # for which
    mode: VolumeMode  # of the model
    registers: int  # of a thread, as compiled
    static_shared_bytes: int  # of a block


class VariedLaunch(Struct, frozen=True, kw_only=True):
    """One launch of a description, with other blocks and folds."""

    description: DescriptionText  # that holds it
    number: int  # index of the launch in it, from 0
    own_fold: Triple = _PLAIN  # elements along x, y, z that a thread of the code covers already

    def find_further_fold(self, configuration: Configuration) -> Triple:
        """Number of threads of the code, as it is, that one thread of a configuration stands for along x, y, z.

        Raises:
            InputError: no number of them makes this fold.
        """
        pairs = tuple(zip(configuration.fold, self.own_fold, strict=True))
        if any(wanted % own for wanted, own in pairs):
            own = "x".join(map(str, self.own_fold))
            raise InputError(f"a thread of the code covers {own} elements", remedy="fold by multiples of that")
        x, y, z = (wanted // own for wanted, own in pairs)
        return (x, y, z)

    def read(self, configuration: Configuration | None) -> LaunchDescription:
        """The launch with another block and fold; as it is for None.

        Raises:
            InputError: the description fixes its grid, or does not allow for this block.
        """
        if configuration is None:
            return self.description.read()[self.number]
        return self.description.read(block=configuration.block, fold=configuration.fold)[self.number]


class ExpressionEvaluator(Struct, frozen=True, kw_only=True):
    """Evaluates by expressions that hold for every block."""

    kernel: KernelAccesses  # its accesses; all affine in the global index
    updates: Triple  # along x, y, z, for any block
    resources: Resources  # of the kernel
    description: VariedLaunch  # of the launch: its dynamic shared memory may follow the block

    def __call__(self, configuration: Configuration) -> RankedConfiguration:
        """See :data:`~gpa_lsp.execution.prediction.exploration.explore.Evaluate`."""
        fold = self.description.find_further_fold(configuration)
        kernel = self.kernel if fold == _PLAIN else fold_accesses(self.kernel, fold)
        shape = cover_updates(self.updates, configuration.block, fold)
        shared_bytes = self.description.read(configuration).shared_bytes
        return _take(configuration, _predict(kernel, shape, self.resources, shared_bytes))


class ProbingEvaluator(Struct, frozen=True, kw_only=True):
    """Evaluates by emulating a few blocks of each configuration."""

    ptx: str  # text of the module
    name: str  # of the module, for messages
    description: VariedLaunch  # of the launch
    resources: Resources  # of the kernel
    # of the launch as it is, see :func:`name_faults`; they say nothing against a configuration
    known_faults: frozenset[FaultName] = frozenset()
    budget: Budget = PROBE_BUDGET  # of the emulator, for each configuration
    # the block of a launch whose grid is given in blocks: nothing tells how the grid would follow another. None otherwise.
    only_block: Triple | None = None

    def __call__(self, configuration: Configuration) -> RankedConfiguration:
        """See :data:`~gpa_lsp.execution.prediction.exploration.explore.Evaluate`."""
        if self.only_block not in (None, configuration.block):
            raise InputError("the grid for this block is not known", remedy="give threads = … in place of grid")
        launch = self.description.read(configuration)
        fold = self.description.find_further_fold(configuration)
        # The code knows nothing of a further fold: it is emulated with all its threads, and what they access is folded.
        unfolded = self.description.read(replace(configuration, fold=self.description.own_fold))
        probe = probe_launch(_parse(self.ptx, self.name), unfolded, self.budget)
        refuse_new_faults(probe.faults, self.known_faults)
        recovered = probe.accesses if fold == _PLAIN else fold_accesses(probe.accesses, fold)
        shape = find_launch_shape(recovered, launch.block, launch.grid, fold)
        return _take(configuration, _predict(recovered, shape, self.resources, launch.shared_bytes))


@lru_cache(maxsize=4)
def _parse(ptx: str, name: str) -> PtxModule:
    return parse_ptx(ptx, name=name)


class Probe(Struct, frozen=True, kw_only=True):
    """Accesses and faults of a few blocks of a launch."""

    accesses: KernelAccesses  # to global memory
    faults: tuple[Fault, ...]  # of the program


def name_faults(faults: Iterable[Fault]) -> frozenset[FaultName]:
    """Names that tell faults of one code from each other, with any block."""
    return frozenset((fault.kind, fault.instruction) for fault in faults)


def refuse_new_faults(faults: Iterable[Fault], known: frozenset[FaultName]) -> None:
    """Refuse a kernel that goes wrong with a block only: it is written for another one.

    Raises:
        InputError: a fault is new.
    """
    for fault in faults:
        if (fault.kind, fault.instruction) not in known:
            place = name_place(fault.chain)
            what = f"{fault.kind.value} ({place})" if place else fault.kind.value
            raise InputError(
                f"the kernel faults with this block: {what}", remedy="its code is written for other blocks"
            )


def probe_launch(module: PtxModule, launch: LaunchDescription, budget: Budget = PROBE_BUDGET) -> Probe:
    """Emulate a few blocks of a launch, and find their accesses and faults.

    Raises:
        InputError: the launch does not go with the kernel, or the blocks do not run to their end.
    """
    blocks = Sampling(kind=SamplingKind.CHOSEN, blocks=list_probe_blocks(launch.grid))
    settings = TraceSettings(branches=False)
    run = emulate(module, launch, budget=budget, sampling=blocks, trace=settings)
    if run.trace is None or not run.is_complete:
        fatal = next((fault for fault in run.faults if fault.is_fatal), None)
        if fatal is not None and fatal.kind is FaultKind.BAD_LAUNCH:
            raise InputError(fatal.message)
        why = "they were stopped" if fatal is None else fatal.message
        raise InputError(f"not all of the probed blocks ran to their end: {why}")
    work = count_flops(run)
    return Probe(
        accesses=recover_expressions(
            run.trace, flops_per_thread=work.total, flops_are_double=work.is_double, issued=count_issued(run)
        ),
        faults=tuple(fault for fault in run.faults if fault.kind not in ENDINGS),
    )


def holds_for_every_block(kernel: KernelAccesses, other: KernelAccesses) -> bool:
    """Whether two recoveries with different blocks are the same expressions, of the global index alone."""
    if kernel.sampled or other.sampled or not kernel.accesses:
        return False
    for one in (*kernel.accesses, *other.accesses):
        if one.thread_bytes != NO_TRIPLE or one.block_bytes != NO_TRIPLE or one.executions != 1.0:
            return False

    def order(one: AccessExpression) -> tuple[int, int]:
        return one.instruction or 0, one.constant_bytes

    return sorted(kernel.accesses, key=order) == sorted(other.accesses, key=order)


def _predict(
    kernel: KernelAccesses, shape: LaunchShape, resources: Resources, dynamic_shared_bytes: int
) -> VolumePrediction:
    return predict_volumes(
        kernel,
        shape,
        resources.device,
        registers=resources.registers,
        shared_bytes=resources.static_shared_bytes + dynamic_shared_bytes,
        mode=resources.mode,
    )


def _take(configuration: Configuration, prediction: VolumePrediction) -> RankedConfiguration:
    volumes = prediction.volumes
    duration_ns = prediction.duration_ns
    if prediction.contradictions:
        defect = describe_contradiction(prediction.contradictions[0])
        return RankedConfiguration(configuration=configuration, why_not=f"a defect of gpa-lsp: {defect}")
    if duration_ns is None:
        return RankedConfiguration(configuration=configuration, why_not="the kernel touches no global memory")
    return RankedConfiguration(
        configuration=configuration,
        seconds=duration_ns / 1e9,
        limiter=prediction.limiter.value if prediction.limiter is not None else "",
        dram_load_bytes=prediction.scale_to_launch(volumes.dram_load),
        dram_store_bytes=prediction.scale_to_launch(volumes.dram_store),
        l2_load_bytes=prediction.scale_to_launch(volumes.l2_load),
        l2_store_bytes=prediction.scale_to_launch(volumes.l2_store),
        warps_per_sm=prediction.blocks_per_sm * -(-prod(configuration.block) // 32),
    )


ONE_LAUNCH = LaunchChoice(is_single=True)


class ChosenLaunch(Struct, frozen=True, kw_only=True):
    """The launch that is meant, its kernel's mangled name, and where it is described."""

    launch: LaunchDescription
    mangled: str
    description: VariedLaunch


class ExplorationSubject(Struct, frozen=True, kw_only=True):
    """A kernel that is ready to be explored."""

    name: str  # for people
    subject: Subject  # of its journal
    current: Configuration  # the configuration the launch has
    dimensions: int  # of the launch: 1, 2 or 3
    evaluate: Evaluate  # predicts configurations
    notes: tuple[Sentence, ...]  # how, one sentence each
    is_fixed: bool = False  # the launch fixes its grid, so that its block cannot be another


def prepare_exploration(
    path: Path,
    *,
    text: str | None = None,
    kernel: str | None = None,
    launches: LaunchChoice = ONE_LAUNCH,
    machine: str | None = None,
    mode: VolumeMode = VolumeMode.CORRECTED,
    compute_capability: tuple[int, int] | None = None,
    compile_settings: CompileSettings = DEFAULT_SETTINGS,
    memory_bytes: int = PROBE_BUDGET.memory_bytes,
) -> ExplorationSubject:
    """Compile, find the launch, and test whether its addresses hold for every block.

    Args:
        path: of the source.
        text: what an editor holds of it; None to read the file.
        kernel: its name or a part of it; None where the source has one described launch.
        launches: the one of that kernel.
        machine: name of the GPU; None for the first known of the compute capability.
        mode: of the volume model.
        compute_capability: to compile for; None for that of the GPU, and where none is named for what the compile command says.
        compile_settings: of the compiler.
        memory_bytes: that emulating one configuration may take.

    Raises:
        InputError: the source does not compile, no launch (or more than one) is meant, its grid is fixed, or the GPU is not known.
        MissingToolError: no compiler is installed.
        ToolError: the compiler did not end in time, or crashed.
    """
    examined = examine_for_machine(
        path, text=text, machine=machine, compute_capability=compute_capability, settings=compile_settings
    )
    statics = examined.statics
    ptx = require_ptx(statics, path)
    module = parse_ptx(ptx, name=str(path))
    code = CodeModule(statics.unit, module, lambda: statics)
    chosen = choose_launch(code, path, kernel, launches)
    device = _require_device(statics, path, machine, mode)
    resources = _find_resources(statics, chosen.mangled, device, mode)
    probing = ProbingEvaluator(
        ptx=ptx,
        name=str(path),
        description=chosen.description,
        resources=resources,
        budget=replace(PROBE_BUDGET, memory_bytes=memory_bytes),
    )
    evaluate, notes = _choose_evaluator(module, chosen.launch, probing)
    subject = Subject(
        kernel=chosen.mangled,
        device=device.name,
        mode=mode.value,
        threads=chosen.launch.covered,
        digest=digest_texts(str(chosen.description.number), chosen.description.description.text, ptx),
    )
    return make_subject(chosen, subject, evaluate, (*notes, *write_notes(examined)))


def make_subject(
    chosen: ChosenLaunch, subject: Subject, evaluate: Evaluate, notes: Sequence[Sentence]
) -> ExplorationSubject:
    """A launch that is ready to be explored."""
    return ExplorationSubject(
        name=shorten_name(demangle(chosen.mangled)),
        subject=subject,
        current=Configuration(block=chosen.launch.block, fold=chosen.launch.fold),
        dimensions=max((axis + 1 for axis in range(3) if subject.threads[axis] > 1), default=1),
        evaluate=evaluate,
        notes=(*(say("{note}.", note=str(one)) for one in note_guesses(chosen.launch)), *notes),
        is_fixed=chosen.launch.threads is None,
    )


def write_notes(examined: ExaminedSource) -> tuple[Sentence, ...]:
    """Notes on how a source was compiled, as sentences."""
    return tuple(say("{note}.", note=one) for one in examined.notes)


def _require_device(statics: SourceStatics, path: Path, machine: str | None, mode: VolumeMode) -> VolumeDevice:
    device = choose_volume_device(choose_product(machine, statics.unit.compute_capability), mode)
    if isinstance(device, Problem):
        raise InputError(device.message, path=path, remedy=device.remedy or "name a GPU with --machine")
    return device


def choose_launch(code: CodeModule, source: Path, kernel: str | None, launches: LaunchChoice) -> ChosenLaunch:
    """Find the one launch that is asked for.

    Args:
        kernel: a name, or a part of one; None for any.
        launches: choice among those of that kernel.

    Raises:
        InputError: none is, or more than one.
    """
    problems: list[Problem] = []
    described = require_description(source, launches)
    launches = replace(launches, path=described.path, text=described.text)
    found = match_code(source, (code,), CodeChoice(kernel=kernel, launches=launches), problems)
    if not found.launches:
        raise explain_no_launch(source, found, problems, kernel)
    (one,) = found.launches
    number = described.read().index(one.launch)
    description = VariedLaunch(description=described, number=number, own_fold=one.launch.fold)
    return ChosenLaunch(launch=one.launch, mangled=one.function.name, description=description)


def _find_resources(statics: SourceStatics, mangled: str, device: VolumeDevice, mode: VolumeMode) -> Resources:
    known = next((one.statics for one in statics.kernels if one.statics.mangled_name == mangled), None)
    return Resources(
        device=device,
        mode=mode,
        registers=0 if known is None or known.registers is None else known.registers,
        static_shared_bytes=0 if known is None else known.shared_static_bytes,
    )


def _choose_evaluator(
    module: PtxModule, launch: LaunchDescription, probing: ProbingEvaluator
) -> tuple[Evaluate, tuple[Sentence, ...]]:
    # A tile of fixed size may fit some blocks only, which no address of global memory tells.
    has_shared = probing.resources.static_shared_bytes + launch.shared_bytes > 0
    first = probe_launch(module, launch, probing.budget)
    known = name_faults(first.faults)
    other = None if has_shared else _probe_other(module, launch, probing)
    holds = other is not None and holds_for_every_block(first.accesses, other.accesses)
    if (
        other is not None
        and holds
        and name_faults(other.faults) <= known
        and _is_guarded(module, launch, probing, known)
    ):
        updates: Triple = find_launch_shape(first.accesses, launch.block, launch.grid).updates
        note = say(
            "Every address is an affine function of the global thread index, as two blocks showed; no other block is emulated."
        )
        evaluator = ExpressionEvaluator(
            kernel=first.accesses, updates=updates, resources=probing.resources, description=probing.description
        )
        return evaluator, (note,)
    why = "The kernel uses shared memory" if has_shared else "Addresses depend on the block or on data"
    why = "The kernel faults with some block sizes" if holds else why
    notes = (say("{why}: a few blocks of each configuration are emulated.", why=why),)
    if launch.threads is not None:
        return replace(probing, known_faults=known), notes
    note = say(
        "The launch gives its grid in blocks, and addresses follow more than the global thread index: other blocks need threads = … in place of grid."
    )
    return replace(probing, known_faults=known, only_block=launch.block), (*notes, note)


def _is_guarded(
    module: PtxModule, launch: LaunchDescription, probing: ProbingEvaluator, known: frozenset[FaultName]
) -> bool:
    """Whether the kernel has no new faults with a block that leaves threads over at the end of each axis."""
    sizes = zip(launch.block, launch.covered, strict=True)
    x, y, z = (next((one for one in range(size - 1, 1, -1) if extent % one), size) for size, extent in sizes)
    configuration = Configuration(block=(x, y, z), fold=launch.fold)
    try:
        probe = probe_launch(module, probing.description.read(configuration), probing.budget)
    except GpaError:
        return False
    return name_faults(probe.faults) <= known


def _probe_other(module: PtxModule, launch: LaunchDescription, probing: ProbingEvaluator) -> Probe | None:
    """Probe with a block that differs along every axis of the launch; None where it does not run."""
    x, y, z = launch.block
    block = (x // 2 if x >= 64 else x * 2, y * 2 if y * 2 <= 8 else max(1, y // 2), z)
    shape = tuple(size if extent > 1 else 1 for size, extent in zip(block, launch.covered, strict=True))
    configuration = Configuration(block=(shape[0], shape[1], shape[2]), fold=launch.fold)
    if configuration.block == launch.block:
        return None
    try:
        return probe_launch(module, probing.description.read(configuration), probing.budget)
    except GpaError:
        return None
