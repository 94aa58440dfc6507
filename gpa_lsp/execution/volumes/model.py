"""Records of a prediction: :class:`VolumePrediction`. Volumes are in bytes per update unless a name says otherwise."""

from collections.abc import Iterator
from enum import StrEnum
from math import isfinite, prod

from msgspec import Struct

from gpa_lsp.execution.volumes.devices import VolumeDevice
from gpa_lsp.execution.volumes.expressions import LaunchShape, Wave
from gpa_lsp.foundation.prose import Sentence, say, size
from gpa_lsp.foundation.records import ColumnRecord


class VolumeMode(StrEnum):
    """Volume model."""

    PAPER = "paper"  # As published: what its authors' program of 2022 computes, slips included
    CORRECTED = "corrected"  # Its slips mended, its rules replaced by later ones where measurements ask for it


class Limiter(StrEnum):
    """Resource that can limit a kernel; the values are words for people."""

    FLOPS = "floating-point operations"
    ISSUE = "instruction issue"
    ALU = "the ALU pipe"
    FMA = "the FMA pipe"
    XU = "special functions"
    BLOCKS = "starting blocks"
    L1 = "L1"
    L2 = "L2"
    DRAM = "DRAM"

    @property
    def label(self) -> str:
        """Name of a row, without the article of a sentence."""
        return self.value.removeprefix("the ")


# Schedulers and pipes of the SM, which no form of combining them with memory was fitted for
ISSUE_LIMITERS = (Limiter.ISSUE, Limiter.ALU, Limiter.FMA, Limiter.XU)


class SharedLoads(Struct, frozen=True, kw_only=True):
    """Loads of an array that blocks share with their neighbours along an axis of the grid, in bytes per update."""

    axis: str  # ``x``, ``y`` or ``z``
    spacing_blocks: float  # blocks that start from one to its neighbour
    apart_bytes: float  # loaded when neighbours share nothing
    together_bytes: float  # loaded when each sector is loaded once
    # how much later in its program a neighbour loads what both load, as a part of the program; negative for earlier
    delay_ratio: float = 0.0

    @property
    def again_bytes(self) -> float:
        """Bytes per update that one block has loaded and its neighbour loads again."""
        return self.apart_bytes - self.together_bytes


class Rewrites(Struct, frozen=True, kw_only=True):
    """Stores to where the same threads stored before, as a sum kept in memory is."""

    block_bytes: float  # distinct sectors of each warp's store, summed over a block, without the first time
    traffic_ratio: float  # the part of a block's traffic that passes between one time and the next


class Counts(Struct, frozen=True, kw_only=True):
    """Counts before any fit. Bytes are sectors (lines for ``block_line_bytes``) times their size."""

    l1_cycles_per_warp: float  # for one thread of each lane, all its updates
    # distinct lines one block loads through L1 in one iteration of its loops: what it allocates there
    block_line_bytes: float
    block_request_bytes: float  # distinct sectors of each warp's load, summed over a block: what L1 hands out
    block_bypassing_bytes: float  # of ``block_request_bytes`` what loads that L1 does not keep ask for, all of it of L2; 0 in the published model
    block_load_bytes: float  # distinct sectors one block loads through L1
    # distinct sectors of each warp's atomics and reductions, summed over a block; 0 in the published model
    block_atomic_bytes: float
    block_store_bytes: float  # distinct sectors of each warp's store, summed over a block: L1 writes through
    block_written_bytes: float  # distinct sectors that one block writes; in the published model ``block_store_bytes``
    # of ``block_store_bytes`` what goes again where it went before; empty in the published model
    rewrites: tuple[Rewrites, ...]
    # distinct sectors that the whole launch reads: DRAM gives them once at least; 0 in the published model
    launch_load_bytes: float
    # distinct sectors that the whole launch writes: DRAM takes them once at least; 0 in the published model
    launch_store_bytes: float
    # of each array, what blocks load that their neighbours load too; empty in the published model, which looks at waves
    shared_loads: tuple[SharedLoads, ...]
    # per update that is loaded when all of ``shared_loads`` is loaded once; 0 in the published model
    once_load_bytes: float
    fetched_bytes: float  # per update that DRAM gives along with ``once_load_bytes``; 0 in the published model
    load_iterations: int  # of the longest loop through memory, 1 without any
    loads_per_thread: int  # in its program; of a loop those of one iteration
    wave_load_bytes: float  # distinct sectors a wave loads
    wave_store_bytes: float  # distinct sectors a wave stores
    before_bytes: tuple[float, float, float]  # distinct sectors that the sets before the wave touched: along x, y and z
    # of ``wave_load_bytes`` what these sets touched, each counted once, along x, y and z
    shared_load_bytes: tuple[float, float, float]
    wave_threads: int  # threads of the wave with work
    wave_pages: int  # distinct pages of 2 MiB of a wave, by array
    busy_ratio: float  # threads with work of all in blocks where one has some; 1 in the published model
    working_ratio: float  # threads with work of all that are launched; 1 in the published model, which does not look at the grid's ends
    executed_ratio: (
        float  # threads with work of those that means of executed instructions are of; 1 in the published model
    )
    # rows that one thread's loads of an array span, at most over the arrays; None where rows share nothing
    row_span: int | None
    layer_span: int | None  # layers that they span; None where layers share nothing


class LayerReuse(Struct, frozen=True, kw_only=True):
    """Reuse of what earlier blocks loaded along one axis: the layer condition."""

    axis: str  # ``y`` for rows (blocks of the same row included), ``z`` for layers
    overlap: float  # bytes per update that those blocks had loaded already
    hit: float  # of it, bytes per update that L2 still holds
    # what L2 must hold for all of it: what those blocks touched; in the corrected model what passes through L2 from a block to its neighbour along
    # the axis
    needed_bytes: float
    oversubscription: float  # ``needed_bytes`` over the size of L2
    hit_ratio: float  # of the overlap; 1 when the condition holds well
    # rows (or layers) that one thread's loads span, all of which must stay in L2; None where neighbours share nothing
    layers_needed: int | None
    # length of a row (side of a square layer) of updates at which what is needed fills L2; None where neighbours share nothing
    transition_updates: float | None

    @property
    def holds(self) -> bool:
        """Whether at least half of the overlap hits."""
        return self.hit_ratio >= 0.5


class Volumes(Struct, frozen=True, kw_only=True):
    """Volumes by level and cause, in bytes per update."""

    l1_load: float  # L1 to registers: distinct sectors of each warp's loads
    l2_load_compulsory: float  # L2 to L1: what a block loads, once
    l2_load_capacity: float  # loaded again since L1 had dropped it
    l2_load_bypassing: float  # loads that L1 does not keep: distinct sectors of each warp's
    l2_store: float  # L1 to L2
    dram_load_footprint: float  # what blocks load, each sector once for a block; in the published model once for a wave
    dram_load_reused: float  # of it what L2 still holds from other blocks
    dram_load_fetched: float  # that come along, since DRAM gives more than a sector at once
    dram_load_partial: float  # read to complete sectors that were written in part
    dram_store_compulsory: float  # what a wave stores, once
    dram_store_partial: float  # stored again since L2 had dropped a sector that was written in part
    dram_store_again: float  # stored again since L2 had dropped a sector before the same threads wrote it once more

    @property
    def l2_load(self) -> float:
        """All loads of L1 from L2."""
        return self.l2_load_compulsory + self.l2_load_capacity + self.l2_load_bypassing

    @property
    def dram_load(self) -> float:
        """All loads of L2 from DRAM."""
        return self.dram_load_footprint - self.dram_load_reused + self.dram_load_fetched + self.dram_load_partial

    @property
    def dram_store(self) -> float:
        """All stores of L2 to DRAM."""
        return self.dram_store_compulsory + self.dram_store_partial + self.dram_store_again


class Bound(Struct, frozen=True, kw_only=True):
    """Performance that one limiter alone would allow."""

    limiter: Limiter  # which
    updates_per_s: float  # at most
    load: float  # what an update asks of it: flops, cycles of an SM or of its L1, or bytes


class Rule(StrEnum):
    """Rule that every prediction obeys; the values are words for people."""

    NOTHING_NEGATIVE = "no volume is negative"
    LEVELS = "a level is asked for no less than it asks the next one for"
    COMPULSORY = "what is touched is moved once at least"
    COUNTED = "what was counted is what is predicted"


class Contradiction(Struct, frozen=True, kw_only=True):
    """Two numbers of one prediction that cannot both be true: a defect of ours. The first must not be more than the second, and is."""

    rule: Rule  # that is broken
    low_name: str  # what the first is of
    low_bytes: float  # of the launch, or of the traced blocks where they are counted
    high_name: str  # what the second is of
    high_bytes: float  # in the unit of ``low_bytes``


class VolumePrediction(ColumnRecord, frozen=True, kw_only=True):
    """Prediction of a launch."""

    kernel: str  # its name
    device: VolumeDevice  # for which
    mode: VolumeMode  # the model
    launch: LaunchShape  # how the threads are laid out
    blocks_per_sm: int  # resident at once
    wave: Wave  # blocks that run at once
    counts: Counts  # before fits
    volumes: Volumes  # bytes per update by level and cause
    l1_oversubscription: float  # lines that share an L1, over its size
    l2_oversubscription: float  # what a wave touches, over the size of L2
    # bytes per update that SMs load again within a wave and L2 has dropped, by the published model's fourth version; it is in no volume, since the
    # third version without it is nearer to measurements
    l2_capacity_estimate: float
    reuse: tuple[LayerReuse, ...]  # of rows and of layers
    bounds: tuple[Bound, ...]  # what each limiter would allow, lowest first; limiters without load are left out
    # expected; in the published model the lowest bound, in the corrected one less, since limiters do not overlap perfectly. 0 when nothing limits it.
    updates_per_s: float
    notes: tuple[Sentence, ...] = ()  # approximations that matter here, one sentence each
    # defects; where there are any, no number of the prediction may be shown
    contradictions: tuple[Contradiction, ...] = ()

    @property
    def limiter(self) -> Limiter | None:
        """Lowest bound's limiter; None when nothing limits the launch."""
        return self.bounds[0].limiter if self.bounds else None

    @property
    def update_count(self) -> int:
        """Updates of the whole launch."""
        return prod(self.launch.updates)

    @property
    def duration_ns(self) -> float | None:
        """Time of the whole launch without launch overhead; None when nothing limits it."""
        return self.update_count / self.updates_per_s * 1e9 if self.updates_per_s else None

    def scale_to_thread(self, bytes_per_update: float) -> float:
        """Bytes per update as bytes per thread."""
        return bytes_per_update * self.launch.updates_per_thread

    def scale_to_launch(self, bytes_per_update: float) -> float:
        """Bytes per update as bytes of the whole launch."""
        return bytes_per_update * self.update_count


# Contradictions that no prediction may have: :func:`find_contradictions`.
#
# A prediction that breaks one of these rules is wrong in an unknown place: it is a defect, which is
# shown as one in place of its numbers. The published model is kept as it was published, and not held to them.

TOLERANCE_RATIO = 1e-6  # Relative rounding error of sums of doubles


def find_contradictions(prediction: VolumePrediction) -> tuple[Contradiction, ...]:
    """Volumes of a launch that cannot be true together."""
    return tuple(
        Contradiction(rule=rule, low_name=low_name, low_bytes=low, high_name=high_name, high_bytes=high)
        for rule, low_name, low, high_name, high in _list_rules(prediction)
        if not (isfinite(low) and isfinite(high) and low <= high + TOLERANCE_RATIO * max(abs(low), abs(high), 1.0))
    )


def _list_rules(prediction: VolumePrediction) -> Iterator[tuple[Rule, str, float, str, float]]:
    """Each rule with two names and amounts in bytes, of which the first must not exceed the second."""
    volumes, counts, launch = prediction.volumes, prediction.counts, prediction.launch
    updates = launch.region.thread_count * launch.updates_per_thread
    per_block = launch.threads_per_block * counts.working_ratio * launch.updates_per_thread
    named = {
        "loads from L1": volumes.l1_load,
        "loads from L2": volumes.l2_load,
        "stores to L2": volumes.l2_store,
        "loads from DRAM": volumes.dram_load,
        "stores to DRAM": volumes.dram_store,
    }
    moved = {name: value * updates for name, value in named.items()}
    for name, value in moved.items():
        yield Rule.NOTHING_NEGATIVE, "nothing", 0.0, name, value
    # Atomics read in L2, DRAM gives more than a sector, and L2 completes sectors that were written in part: none of it passes L1.
    own = counts.block_atomic_bytes / per_block + volumes.dram_load_fetched + volumes.dram_load_partial
    in_l2 = moved["loads from L2"] + own * updates
    yield Rule.LEVELS, "loads from DRAM", moved["loads from DRAM"], "what L2 is asked for", in_l2
    yield Rule.LEVELS, "stores to DRAM", moved["stores to DRAM"], "stores to L2", moved["stores to L2"]
    yield Rule.LEVELS, "loads from L2", moved["loads from L2"], "loads from L1", moved["loads from L1"]
    for touched, least, way in (
        ("sectors the launch reads", counts.launch_load_bytes, "loads from DRAM"),
        ("sectors the launch writes", counts.launch_store_bytes, "stores to DRAM"),
    ):
        yield Rule.COMPULSORY, touched, least, way, moved[way]


def describe_contradiction(found: Contradiction) -> Sentence:
    """A contradiction as a sentence."""
    return say(
        "{rule}: {low} ({less}) are more than {high} ({more}).",
        rule=found.rule.value.capitalize(),
        low=found.low_name,
        less=size(found.low_bytes),
        high=found.high_name,
        more=size(found.high_bytes),
    )
