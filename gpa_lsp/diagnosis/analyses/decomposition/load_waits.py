"""Measured stalls on loads (:class:`LoadWaits`), from samples, executions and attributed pairs."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.warp_time import find_warp_state
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD
from gpa_lsp.diagnosis.blame.model import BlameCategory, BlameEdges
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, list_kinds, select_kinds

_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
_ISSUED = "smsp__inst_issued.sum"
_FEWEST_SELECTED = 25  # Issued samples from which the scale is read; 25 leave a standard error of a fifth


def measure_sample_scale(subject: Subject) -> float | None:
    """Warp-cycles of the whole GPU that one sample stands for; None when nothing tells, or when the samples are of a part of the run only.

    Of an aggregate these are warp-cycles of its mean launch, as its executions are: what is divided by them is then for one execution. Aggregates
    beside other launches tell nothing.

    By counters, where every launch has them: warp-cycles are ``smsp__average_warp_latency_per_inst_issued.ratio`` (warp-cycles per issue) times
    ``smsp__inst_issued.sum``, summed over launches, and they are shared out among all samples.

    By the samples alone: a warp is ``selected`` for one cycle per instruction, so that the executions of all instructions over the samples of
    ``selected`` is the number of warp-cycles per sample. The sampling interval and how many schedulers share one sampler need not be known.
    On real reports with 1,000 selected samples or more the two differ by 2 % in the median, and by less than 10 %.

    Source: Little's law; both derivations are ours.
    """
    if subject.kernel.has_mixed_launches or any(launch.samples_truncated for launch in subject.kernel.launches):
        return None
    samples = subject.total_samples
    counted = _sum_warp_cycles(subject)
    if samples > 0 and counted is not None:
        return counted / samples
    selected = subject.rows.count_reason("selected")
    executions = subject.rows.executions
    executed = int(executions[executions > 0].sum())
    if selected < _FEWEST_SELECTED or executed == 0:
        return None
    return executed / selected


def _sum_warp_cycles(subject: Subject) -> float | None:
    total = 0.0
    for launch in subject.kernel.launches:
        if launch.samples is None or launch.samples.total_samples == 0:
            continue
        latency = launch.read_number(_LATENCY)
        issued = launch.read_number(_ISSUED)
        if latency is None or issued is None:
            return None
        total += latency * issued
    return total if total > 0 else None


# Instructions whose results come through L1TEX
LOAD_KINDS = frozenset(
    {
        InstructionKind.GLOBAL_LOAD,
        InstructionKind.LOCAL_LOAD,
        InstructionKind.TEXTURE,
        InstructionKind.SURFACE,
        InstructionKind.GLOBAL_ATOMIC,
        InstructionKind.ASYNC_COPY,
        InstructionKind.CONSTANT_LOAD,
        InstructionKind.BULK_COPY,
    }
)

_MOST_REQUESTS = 1 << 53  # More than counters can mean


class UseWaits(ColumnRecord, frozen=True, kw_only=True):
    """The u instructions that wait for results of loads, by address; by counters one for all."""

    executions: npt.NDArray[np.int64]  # int64[u], by warps, at least 1
    # float64[u], mean warp-cycles of one execution's wait, for everything it waits for together
    wait_cycles: npt.NDArray[np.float64]
    # float64[u], what passed on average since the issue of the last load waited for until the wait began
    passed_cycles: npt.NDArray[np.float64]

    @property
    def mean_wait_cycles(self) -> float:
        """Mean wait of one execution."""
        return float(np.average(self.wait_cycles, weights=self.executions))

    @property
    def mean_passed_cycles(self) -> float:
        """Mean time passed before the wait of one execution began."""
        return float(np.average(self.passed_cycles, weights=self.executions))

    def expose(self, latency_cycles: float) -> float:
        """Mean cycles of a wait that a latency explains: what of it had not passed when the wait began, never more than was waited.

        The bound by the waits is taken over the kernel, not by instruction: the latency is a mean of loads that differ, and of two loads one
        may take longer and the other shorter.
        """
        left = np.maximum(0.0, latency_cycles - self.passed_cycles)
        return min(self.mean_wait_cycles, float(np.average(left, weights=self.executions)))


class LoadWaits(Struct, frozen=True, kw_only=True):
    """The waits for loads, over the whole kernel."""

    # kind of load, most samples first → samples of long_scoreboard that are blamed on it, and warp-cycles waited per execution; None when its
    # executions or the scale are unknown
    kinds: Mapping[InstructionKind, tuple[float, float | None]]
    samples: int  # of long_scoreboard, all of them
    operand_samples: float  # of these, waits until an instruction had read its operands; no latency of memory
    unknown_samples: float  # of these, without a cause that is an instruction
    uses: UseWaits | None  # None when executions or the scale are unknown


def read_mean_wait(subject: Subject, requests: float) -> UseWaits | None:
    """The waits without samples: of the longest launch, by counters; None where they were not collected.

    ``smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio`` (warp-cycles per issue) times ``smsp__inst_issued.sum`` over the
    requests of all loads is the mean wait per load. A warp that waits for several loads together waits once, so that this is less than the
    mean of its waits; and what passed since the load's issue is unknown, and taken as nothing. Queueing that remains is the least there was.

    Source: Little's law.
    """
    per_issue = subject.metric(find_warp_state(LONG_SCOREBOARD).aggregate)
    issued = subject.metric("smsp__inst_issued.sum")
    if not per_issue or issued is None or not 1 <= requests <= _MOST_REQUESTS:
        return None
    return UseWaits(
        executions=np.array([int(requests)], dtype=np.int64),
        wait_cycles=np.array([per_issue * issued / requests]),
        passed_cycles=np.zeros(1),
    )


def list_wait_pairs(subject: Subject) -> BlameEdges | None:
    """Attributed pairs of long-scoreboard stalls; None without attribution or without such samples."""
    if subject.blame is None or LONG_SCOREBOARD not in subject.kernel.reasons:
        return None
    edges = subject.edges
    pairs = edges.select((edges.reason == subject.kernel.reasons.index(LONG_SCOREBOARD)) & edges.is_moved)
    return pairs if len(pairs) else None


def mark_results(pairs: BlameEdges) -> npt.NDArray[np.bool_]:
    """bool[e], waits for results, not until operands were read."""
    return np.not_equal(pairs.category, BlameCategory.WRITE_AFTER_READ)


def measure_load_waits(subject: Subject, scale: float | None) -> LoadWaits | None:
    """Measure stalls on loads; None without samples of long_scoreboard or without attribution.

    The mean wait of one execution is samples · (warp-cycles per sample) / executions (Little's law: warp-cycles in a state over arrivals are its mean
    duration). Per kind of load, over all executions of its instructions; waits for several loads together are shared out as blame does, so that the
    kinds add up to the whole. Per use, over its own executions, for everything it waits for together; uses at which no sample was taken are left out.
    ``scale``: warp-cycles that a sample stands for; None leaves the cycles unknown.
    """
    pairs = list_wait_pairs(subject)
    if pairs is None:
        return None
    results = mark_results(pairs)
    executions = subject.rows.executions
    samples = subject.rows.count_reason(LONG_SCOREBOARD)
    return LoadWaits(
        kinds=_list_kind_waits(subject, pairs, scale),
        samples=samples,
        operand_samples=float(pairs.all_samples[~results].sum()),
        unknown_samples=max(0.0, samples - float(pairs.all_samples.sum())),
        uses=None if scale is None else _measure_uses(subject, pairs, executions, scale),
    )


def _list_kind_waits(
    subject: Subject, pairs: BlameEdges, scale: float | None
) -> dict[InstructionKind, tuple[float, float | None]]:
    results, kinds, executions = mark_results(pairs), list_kinds(subject.rows), subject.rows.executions
    samples = np.bincount(kinds[pairs.def_row[results]], weights=pairs.all_samples[results], minlength=len(KINDS))
    is_load = select_kinds(subject.rows, LOAD_KINDS) & (executions >= 0)
    executed = np.bincount(kinds[is_load], weights=executions[is_load], minlength=len(KINDS))
    found: list[tuple[InstructionKind, tuple[float, float | None]]] = []
    for number in np.flatnonzero(samples).tolist():
        times = int(executed[number]) or None
        cycles = None if times is None or scale is None else float(samples[number]) * scale / times
        found.append((KINDS[number], (float(samples[number]), cycles)))
    return dict(sorted(found, key=lambda one: (-one[1][0], one[0])))


def _measure_uses(
    subject: Subject, pairs: BlameEdges, executions: npt.NDArray[np.int64], cycles: float
) -> UseWaits | None:
    chosen = np.flatnonzero(mark_results(pairs) & (executions[pairs.use_row] > 0))
    if not len(chosen):
        return None
    uses, of_pair = np.unique(pairs.use_row[chosen], return_inverse=True)
    times = executions[uses]
    passed = np.full(len(uses), np.inf)
    np.minimum.at(passed, of_pair, measure_passed_cycles(subject, pairs, cycles)[chosen])
    waited = np.bincount(of_pair, weights=pairs.all_samples[chosen]) * cycles / times
    return UseWaits(executions=times, wait_cycles=waited, passed_cycles=passed)


def measure_passed_cycles(subject: Subject, pairs: BlameEdges, cycles: float) -> npt.NDArray[np.float64]:
    """Mean cycles between the issue of a load and the arrival at the instruction that stalls on it.

    Within one block, every execution of the use went through the instructions between: their samples times what a sample stands for, over the
    executions of the use, is the mean time that took. Elsewhere it is the shortest encoded way, 0 where that is unknown. Returns float64[e], mean
    cycles per execution of the use.
    """
    before = np.concatenate([[0], np.cumsum(subject.rows.all_samples.sum(axis=1))])
    blocks = subject.rows.block_numbers
    executions = np.maximum(1, subject.rows.executions)
    is_near = (
        (blocks[pairs.def_row] == blocks[pairs.use_row])
        & (pairs.def_row < pairs.use_row)
        & (blocks[pairs.use_row] >= 0)
    )
    between = before[pairs.use_row] - before[np.minimum(pairs.def_row + 1, pairs.use_row)]
    spent = between * cycles / executions[pairs.use_row]
    encoded = np.maximum(0, pairs.distance_cycles).astype(np.float64)
    return np.where(is_near, np.maximum(spent, encoded), encoded)
