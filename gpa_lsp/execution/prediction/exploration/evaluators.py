"""Predictions of one configuration: from expressions that hold for every block, or by emulating a few of its blocks.

The first is exact where every address depends on the thread's global index alone; this is not assumed, but tested by tracing the kernel
with a second block. The second serves tiles, block-wide loops and gathers; it also detects a kernel that is written for the block it has, as with a
tile of fixed size: a configuration with new faults is not predicted.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Fault, FaultKind, Sampling, SamplingKind, TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.prediction.executed_work import count_flops, count_issued
from gpa_lsp.execution.prediction.exploration.model import Configuration, RankedConfiguration
from gpa_lsp.execution.prediction.fault_answer import ENDINGS, name_place
from gpa_lsp.execution.prediction.launch_sources import DescriptionText
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
from gpa_lsp.foundation.errors import InputError

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
