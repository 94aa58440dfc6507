"""Residency of a launch on the GPU: resources of a block, resident warps, issue rates, active time of the SMs."""

from collections.abc import Collection
from math import ceil

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.diagnosis.analyses.occupancy import ACHIEVED, THEORETICAL, read_launch_shape
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy

# Waits of a warp for other warps of its SM: full queues, a busy pipe, another warp picked (GPA: throttle, pipe and not-selected stalls)
CONTENTION_REASONS = ("lg_throttle", "mio_throttle", "tex_throttle", "math_pipe_throttle", "not_selected")

# States of a warp in cycles in which its scheduler issued: this warp, or another one
_ISSUING_REASONS = ("selected", "not_selected")

# A kernel with so many registers less than the architecture's most is at that limit: pairs need an even start
LIMIT_SLACK_REGISTERS = 2

WAVES = "launch__waves_per_multiprocessor"

_MOST_CONTENTION = 0.999

# Enough for every scheduler of an SM to have two warps of a block, and small enough for several blocks
GOOD_BLOCK_THREADS = 256


def describe_block(subject: Subject) -> BlockShape | None:
    """Resources of a block of the longest launch; None where the profile lacks registers or shared memory."""
    shape = None if subject.longest is None else read_launch_shape(subject, subject.longest)
    return None if shape is None or shape.dynamic_bytes is None else shape.block


class Filling(Struct, frozen=True, kw_only=True):
    """The filling of SMs by a grid, or, of two grids, how many times as good that of the second one is."""

    warps: float = 1.0  # resident on an SM while it works, on average
    evenness: float = 1.0  # blocks of an SM, on average, by those of the SM that gets most


AS_NOW = Filling()


def compare_filling(subject: Subject, blocks: float, block: BlockShape | None = None) -> Filling:
    """The filling by some blocks, of a shape of their own or the present one, by that of now; 1 where one is unknown."""
    now, launch, sms = describe_block(subject), subject.launch, subject.sm_count
    architecture = subject.kernel.architecture
    if now is None or launch is None or not launch.blocks or not sms or architecture is None:
        return AS_NOW

    def fill(blocks: float, block: BlockShape) -> Filling | None:
        found, each = find_occupancy(architecture, block), blocks / sms
        if not found.blocks_per_sm or not each:
            return None
        waves = each / found.blocks_per_sm
        resident = each if waves <= 1 else found.blocks_per_sm * waves / ceil(waves)
        return Filling(warps=resident * found.warps_per_block, evenness=each / ceil(each))

    old, new = fill(launch.blocks, now), fill(blocks, block or now)
    if old is None or new is None:
        return AS_NOW
    return Filling(warps=new.warps / old.warps, evenness=new.evenness / old.evenness)


def bound_issue_rate(subject: Subject) -> tuple[float, float]:
    """Share of the active cycles in which a scheduler issued, least and most.

    Both are the same number where it was measured, or samples in such cycles are told from the others. Where neither is so, it is at least the
    share of the warps that were selected or not selected, as in their cycles the scheduler issued; and at most 1.
    """
    measured = subject.metric("smsp__issue_active.avg.per_cycle_active")
    if measured is not None:
        return measured, measured
    total = subject.total_samples
    if total and subject.rows.latency_samples is not None:
        sampled = (total - int(subject.rows.latency_samples.sum())) / total
        return sampled, sampled
    return (total - count_stalled(subject)) / total if total else 0.0, 1.0


def count_stalled(subject: Subject) -> int:
    """Samples of warps that could not issue."""
    return subject.total_samples - sum(subject.rows.count_reason(reason) for reason in _ISSUING_REASONS)


def measure_issue_ratio(subject: Subject) -> float:
    """R_I of GPA's Equation 8: the part of their time in which warps issue; 0 when unknown."""
    return measure_states(subject, ("selected",))


def measure_states(subject: Subject, states: Collection[str]) -> float:
    """The part of their time that warps spend in some states: by samples, and without any by the counters of the longest launch; 0 when unknown."""
    total = subject.total_samples
    if total:
        return sum(subject.rows.count_reason(state) for state in states) / total
    time = read_warp_time(subject)
    return 0.0 if time is None else sum(time.share_of(state) for state in states)


def name_whole(subject: Subject) -> str:
    """Noun for the whole that :func:`measure_states` gives shares of."""
    return "samples" if subject.total_samples else "warps' time"


def measure_contention(subject: Subject) -> float:
    """Share of their time that warps waited for other warps of the SM; less than 1."""
    total = subject.total_samples
    most = 1 - 1 / total if total else _MOST_CONTENTION
    return min(measure_states(subject, CONTENTION_REASONS), most)


def measure_active_part(subject: Subject) -> float:
    """The part of the launch in which an SM was active on average; 1 when not collected."""
    return subject.measure_active() or 1.0


def measure_longest_part(subject: Subject) -> float | None:
    """The part of the launch in which the SM that was active longest was active; None when not collected."""
    return subject.measure_active("sm__cycles_active.max")


def measure_sm_idleness(subject: Subject) -> float | None:
    """The part of the longest SM's active time in which an SM was idle, on average; None when not collected."""
    mean, longest = subject.metric("sm__cycles_active.avg"), subject.metric("sm__cycles_active.max")
    if not mean or not longest:
        return None
    idle = max(0.0, 1 - mean / longest)
    return idle if idle < 1 else None


def measure_occupancy_gap(subject: Subject) -> float | None:
    """The part of the warps that could be resident and were not, on average; None when not collected."""
    achieved, possible = subject.metric(ACHIEVED), subject.metric(THEORETICAL)
    return None if achieved is None or not possible else max(0.0, 1 - achieved / possible)


def count_waves(subject: Subject) -> float | None:
    """Number of waves of blocks in the grid; None when not stored."""
    return subject.metric(WAVES)
