"""Preparation of an exploration from a source, a kernel and its launch: :func:`prepare_exploration`."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.model import DEFAULT_SETTINGS, CompileSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.exploration.evaluators import (
    PROBE_BUDGET,
    ExpressionEvaluator,
    FaultName,
    Probe,
    ProbingEvaluator,
    Resources,
    VariedLaunch,
    holds_for_every_block,
    name_faults,
    probe_launch,
)
from gpa_lsp.execution.prediction.exploration.explore import Evaluate, Subject, digest_texts
from gpa_lsp.execution.prediction.exploration.model import Configuration
from gpa_lsp.execution.prediction.fault_answer import note_guesses
from gpa_lsp.execution.prediction.launch_sources import LaunchChoice, require_description
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
from gpa_lsp.execution.volumes.expressions import Triple
from gpa_lsp.execution.volumes.from_trace import find_launch_shape
from gpa_lsp.execution.volumes.model import VolumeMode
from gpa_lsp.foundation.errors import GpaError, InputError, Problem
from gpa_lsp.foundation.prose import Sentence, say
from gpa_lsp.kernel.names import demangle, shorten_name

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
