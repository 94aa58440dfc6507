"""Model of a launch's time, and the part that a change leaves: :class:`LaunchTime`.

A launch takes as long as its busiest unit needs for its work, or as long as its warps wait, and somewhat longer where several come near each other:

    T = (Σ U^p + L^p)^(1/p) = 1

There is one U for each stage that work goes through (DRAM, L2, L1, the pipes of the SM): the largest share of the time that a unit of it needs at the
rate it sustains; of those behind the busiest one as much counts as there is time for. L is the time that latency alone would take: no more than these
leave, and no more than the part of a warp's time outside the queues of units that are busy. Of a change that leaves a part f of the work of each unit
and a part r of a warp's time outside queues, U' = max(f · U), L' = r · L, and the speedup is 1 / T'. Where no unit is busy that is 1 / r: GPA's
Equations 2, 4 and 10. Where a unit is full and keeps its work it is 1.

Source: Little's law and the roofline for the two ends; the norm between them is ours, with :data:`SHARPNESS` fitted as it says.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.residency import (
    AS_NOW,
    Filling,
    count_waves,
    measure_active_part,
    measure_longest_part,
    measure_states,
)
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import view_memory
from gpa_lsp.diagnosis.analyses.limiter import SHORT_LAUNCH_NS, find_limiter, list_members
from gpa_lsp.diagnosis.analyses.model import REQUESTS, Limit
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.categories import LONG_SCOREBOARD
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, MOVES, count_per_request, mark_accesses

# p: how sharply a kernel turns from waiting to a full unit. Fitted on simulated edits of 45 families of kernels (``python -m
# tests.bench.calibrating``); errors change by less than a hundredth between 2.5 and 6.
SHARPNESS = 4.0

# Units of the whole GPU; the others are of each SM
CHIP_UNITS = frozenset({"dram", "l2", "l2_slice", "memory"})
_STREAMING = frozenset({"dram", "memory"})  # Idle until the first data arrive

# Unit → the stage that instructions and their accesses go through one after the other; those that are not named are parts of the SM
_STAGES = {
    "dram": "dram",
    **dict.fromkeys(("l2", "l2_slice", "memory"), "l2"),
    **dict.fromkeys(("l1", "tags", "lsu", "shared", "texture", "constant", "adu"), "l1"),
}
_SM = "sm"

_OTHER = "other"  # Work of no unit that is known

# Limits that sum up others → those whose work theirs is taken for, the one that keeps most
_GENERAL = {"sm": ("issue",), "memory": ("dram", "l2", "l1")}

# Of any launch, by the counter of its duration. Ours: empty kernels take one to two microseconds.
_LEAST_LAUNCH_NS = 1000.0

_LEAST_BETWEEN = 0.02  # Of a launch: some work it does

_LEAST_LATENCY = 0.02  # Of the time of a launch: something its warps wait for besides queues

_MOST_FILL = 0.5  # Of the time between: in some of it data stream
_COLD = ("imc_miss", "no_instructions")  # Waits of the first warps for constants and code

_LEAST_NEED = 1e-6  # More than nothing
_MOST_NEED = 0.98  # A unit never needs all of the time: its warps have to wait for something

# Reasons of warps that wait for a unit that others keep busy → the units whose work makes them wait
_QUEUES = {
    "lg_throttle": ("lsu", "l1", "tags"),
    "mio_throttle": ("lsu", "shared", "l1", "constant", "adu"),
    "tex_throttle": ("texture", "fp64"),  # chips with few FP64 units reach them through this queue
    "math_pipe_throttle": ("fma", "alu", "fp64", "fp16", "xu", "tensor"),
    "not_selected": ("issue",),
    "selected": ("issue",),
}

BARRIER = "barrier"
_UNCOUNTED = frozenset({"constant"})  # Units no counter shows the use of: a change that names them has seen their queue

_ISSUED = "selected"
OTHERS = "others"  # Stalls outside queues

# Of the time, from which on a unit's need explains the queue before it. On simulated edits of 38 families errors are the same from 0.5 to 0.9.
_BUSY_RATIO = 0.5
_MEMORY = ("dram", "l1", "tags", "lsu")

# What warps wait for while atomics queue at one slice of L2, which everything else passes, too
_BEHIND_ATOMICS = (LONG_SCOREBOARD, "short_scoreboard", "drain", "lg_throttle", "mio_throttle")

# What is counted of L1 → the part of it that does this
_PARTS_OF_L1 = {REQUESTS: "lsu", "tag lookups": "tags"}


class LaunchTime(Struct, frozen=True, kw_only=True):
    """Model of the time of a kernel's longest launch."""

    # part of the launch before and after the SM that works longest, which no change of the kernel shortens
    ends_ratio: float
    fill_ratio: float  # part of memory's need before data stream in; the same however much is moved
    # what counts of the needs of stages behind the busiest one: 1 unless there is no time for all of them
    others: float
    needs: Mapping[str, float]  # unit → share of the time between that it needs at the rate it sustains
    limits: Mapping[str, Limit]  # unit → how busy it is over the whole launch: no change that keeps its work is faster
    queues: Mapping[str, float]  # stall reason of a queue → share of the samples
    latency: float  # L, of the time between
    # stall reason → the part of its samples in which warps stand in queues, which L leaves out
    queueing: Mapping[str, float]
    outside: float  # the share of a warp's time outside queues
    barrier: float  # the share of it that warps wait at barriers of blocks

    def leave(
        self,
        *,
        warp_time: float = 1.0,
        work: Mapping[str, float] | None = None,
        spread: float = 1.0,
        filling: Filling = AS_NOW,
    ) -> float:
        """The part of the launch's time that a change leaves.

        Args:
            warp_time: r, the part of a warp's time that stays where no unit is in the way.
            work: unit → f, the part of its work that stays, more than 1 where there is more; units that are not named keep all of it.
            spread: how many times as many SMs share the work.
            filling: how many times as evenly they share it, and as many warps of an SM wait at a time.
        """
        kept = work or {}
        needs = {
            unit: self.fill_ratio + (ratio - self.fill_ratio) * keep_work(unit, kept)
            if unit in _STREAMING
            else ratio * keep_work(unit, kept) / (1.0 if unit in CHIP_UNITS else spread * filling.evenness)
            for unit, ratio in self.needs.items()
        }
        present = _join(self._add_stages(self.needs), self.latency)
        between = _join(self._add_stages(needs), self.latency * warp_time / (spread * filling.warps)) / present
        return self.ends_ratio + (1 - self.ends_ratio) * between

    def leave_least(self, work: Mapping[str, float]) -> tuple[str, float]:
        """The unit that needs most of the launch's time at its peak rate after a change, and the part it needs; ``""`` where none is known."""
        left = {unit: limit.busy_ratio * keep_work(unit, work) for unit, limit in self.limits.items()}
        unit = max(left, key=lambda one: (left[one], one), default="")
        return unit, left.get(unit, 0.0)

    def count_outside(self, shares: Mapping[str, float]) -> float:
        """The share of a warp's time that some stalls take outside queues; stall reason → share of the samples."""
        return sum(share * (1 - self.queueing.get(reason, 0.0)) for reason, share in shares.items())

    def leave_latency(self, matched: Mapping[str, float], work: Mapping[str, float]) -> float:
        """The part that stays of a warp's time outside queues, when some stalls go, and with its instructions the cycles that issue them.

        Args:
            matched: stall reason → share of the samples that the change removes.
        """
        shorter = {}
        for reason, share in self.queues.items():
            part, removed = 1.0 - self._keep(reason, work), matched.get(reason, 0.0)
            # Cycles that issue go with their instructions, once; of waits in a queue the rest is shorter, too.
            shorter[reason] = max(0.0, share * part - removed if reason == _ISSUED else (share - removed) * part)
        gone = self.count_outside(matched) + self.count_outside(shorter)
        at_barriers = max(0.0, self.barrier - matched.get(BARRIER, 0.0))
        if at_barriers:
            others = sum(shorter.values()) + sum(share for reason, share in matched.items() if reason != BARRIER)
            gone += at_barriers * min(1.0, max(0.0, others / (1 - self.barrier)))
        return max(0.0, 1.0 - gone / self.outside)

    def _add_stages(self, needs: Mapping[str, float]) -> float:
        """Time that all units together need."""
        first, *others = _list_stages(needs)
        return _join(first, self.others * _join(*others))

    def _keep(self, reason: str, work: Mapping[str, float]) -> float:
        """The part of a queue's wait that stays: of what its busiest unit needs, or of most work where no counter tells."""
        units = [unit for unit in _QUEUES[reason] if unit in work]
        now = max((self.needs.get(unit, 0.0) for unit in units), default=0.0)
        if now:
            units = [unit for unit in units if unit in _UNCOUNTED] or units
            return max(self.needs.get(unit, now) * work[unit] for unit in units) / now
        return min((work[unit] for unit in units), default=1.0)


def keep_work(unit: str, work: Mapping[str, float]) -> float:
    """The part of a unit's work that a change leaves; of a part of the GPU as a whole, what it leaves of its busiest unit."""
    return max(work.get(one, 1.0) for one in _GENERAL.get(unit, (unit,)))


def _list_stages(needs: Mapping[str, float]) -> list[float]:
    """Time that the busiest unit of each stage needs, most first; 0 where none is known."""
    found = {"": 0.0}
    for unit, need in needs.items():
        stage = _STAGES.get(unit, _SM)
        found[stage] = max(found.get(stage, 0.0), need)
    return sorted(found.values(), reverse=True)


def _join(*times: float) -> float:
    return float(sum(one**SHARPNESS for one in times) ** (1 / SHARPNESS))


def _rest(*times: float, most: float = 1.0) -> float:
    """Time that completes some times to the whole, or to another one, by the norm of :func:`_join`."""
    return float(max(0.0, most**SHARPNESS - sum(one**SHARPNESS for one in times)) ** (1 / SHARPNESS))


@remembered
def measure_launch_time(subject: Subject) -> LaunchTime:
    """The time of a kernel's longest launch."""
    ends = _measure_ends(subject)
    between = max(_LEAST_BETWEEN, 1.0 - ends)
    active = max(_LEAST_BETWEEN, min(between, measure_active_part(subject)))
    limiter = find_limiter(subject)
    fill = 0.0 if limiter.unit == "l2_slice" else _measure_fill(subject)
    needs: dict[str, float] = {}
    known: dict[str, Limit] = {}
    counted = {limit.unit for limit in limiter.limits} - _GENERAL.keys()
    members = [limit for limit in list_members(subject) if limit.unit in counted]
    for limit in (*limiter.limits, *members):
        unit = _PARTS_OF_L1.get(limit.by, limit.unit) if limit.unit == "l1" else limit.unit
        if unit != _OTHER:
            known[unit] = max((known.get(unit, limit), limit), key=lambda one: one.busy_ratio)
            need = limit.nearness / (between if unit in CHIP_UNITS else active) + (fill if unit in _STREAMING else 0.0)
            needs[unit] = max(needs.get(unit, 0.0), min(_MOST_NEED, need))
    if limiter.unit == "l2_slice" and limiter.busy_ratio:
        needs["l2_slice"] = min(_MOST_NEED, limiter.busy_ratio / between)
    first, *rest = _list_stages(needs)
    others = min(1.0, _rest(first, most=_MOST_NEED) / max(_join(*rest), _LEAST_NEED))
    busiest = _join(first, others * _join(*rest))
    # While data stream
    busy = {unit: (need - fill) / (1 - fill) if unit in _STREAMING else need for unit, need in needs.items()}
    is_explained = max(busy.get(one, 0.0) for one in _MEMORY) >= _BUSY_RATIO
    is_serial = limiter.unit == "l2_slice" or (not is_explained and has_queueing_atomics(subject))
    queueing = _measure_queueing(subject, busy, is_serial=is_serial)
    queued = sum(part * measure_states(subject, (reason,)) for reason, part in queueing.items())
    outside = max(_LEAST_LATENCY, 1.0 - queued)
    latency = min(_rest(busiest), outside)
    # A unit that warps queue for more than for all others, and of which not all is counted, takes the time that nothing else takes.
    unit = "l2_slice" if is_serial else "l2"
    behind_memory = queueing.get(LONG_SCOREBOARD, 0.0) * measure_states(subject, (LONG_SCOREBOARD,))
    if is_serial or (unit not in needs and not is_explained and 2 * behind_memory > queued):
        needs[unit] = min(_MOST_NEED, max(needs.get(unit, 0.0), _rest(latency, busiest)))
    queues = {reason: measure_states(subject, (reason,)) for reason in _QUEUES}
    return LaunchTime(
        ends_ratio=ends,
        fill_ratio=fill,
        others=others,
        needs=needs,
        limits=known,
        queues=queues,
        latency=latency,
        queueing=queueing,
        outside=outside,
        barrier=measure_states(subject, (BARRIER,)),
    )


def leave_elimination(subject: Subject, match: EliminationMatch) -> float:
    """The part of the launch's time that stays after a change that removes stalls and work."""
    time, total, shares = measure_launch_time(subject), subject.total_samples, dict(match.states)
    if total:
        for region in match.regions:
            for reason, samples in region.by_reason.items():
                shares[reason] = shares.get(reason, 0.0) + samples / total
        shares[OTHERS] = max(0.0, count_matched(subject, match) / total - sum(shares.values())) - match.added
    is_known = total or shares
    warp_time = (
        time.leave_latency(shares, match.work) if is_known else keep_work(find_limiter(subject).unit, match.work)
    )
    return time.leave(warp_time=max(0.0, warp_time), work=match.work, filling=match.filling)


def count_matched(subject: Subject, match: EliminationMatch) -> float:
    """Count the samples that a change would remove."""
    return sum(region.samples for region in match.regions) + sum(match.states.values()) * subject.total_samples


def has_queueing_atomics(subject: Subject) -> bool:
    """Whether warps wait longer than for an idle memory, and most of what they ask L2 for are atomics: on addresses so few that they queue there."""
    rows, (sectors, threads) = subject.rows, count_per_request(subject.rows)
    atomics = mark_accesses(rows, GLOBAL_SPACES, (Access.ATOMIC, Access.REDUCTION))
    others = mark_accesses(rows, GLOBAL_SPACES, MOVES) & ~atomics
    asked, plain = (subject.executed * np.nan_to_num(one) for one in (threads, sectors))
    return bool(asked[atomics].sum() > plain[others].sum() and 2 * _measure_excess_wait(subject) > 1)


def _measure_queueing(subject: Subject, needs: Mapping[str, float], *, is_serial: bool) -> dict[str, float]:
    """Stall reason → the part of it in queues: of units, and behind global memory what is waited beyond the latency of an idle memory."""
    queueing = {
        reason: 1.0
        for reason, units in _QUEUES.items()
        if reason != _ISSUED and max(needs.get(unit, 0.0) for unit in units) >= _BUSY_RATIO
    }
    if is_serial:
        queueing |= dict.fromkeys(_BEHIND_ATOMICS, 1.0)
    excess = _measure_excess_wait(subject)
    return {**queueing, LONG_SCOREBOARD: excess} if excess else queueing


def _measure_excess_wait(subject: Subject) -> float:
    """The part of a wait for global memory that is longer than an idle memory takes; 0 when unknown."""
    memory = view_memory(subject)
    if memory.split is not None:
        return memory.split.queueing_ratio
    if memory.uses is not None and subject.architecture is not None:
        unloaded = subject.architecture.hierarchy.dram_tlb_warm_cycles.value  # no load of an idle memory takes longer
        wait = memory.uses.mean_wait_cycles
        if unloaded is not None and wait > 0:
            return 1 - memory.uses.expose(unloaded) / wait
    return 0.0


def _measure_ends(subject: Subject) -> float:
    """Part of the launch before and after the SM that works longest; where that was not collected, what an empty kernel takes."""
    longest = measure_longest_part(subject)
    if longest is not None:
        return 1.0 - longest
    time_ns = subject.metric("gpu__time_duration.sum")
    return min(1.0, _LEAST_LAUNCH_NS / time_ns) if time_ns and time_ns < SHORT_LAUNCH_NS else 0.0


def _measure_fill(subject: Subject) -> float:
    """Part of a launch's working time before data stream: waits of the first warps for code and constants, and one access to an idle memory.

    Warps of later waves have these waits while data of others are on their way; more loads in flight shorten none.
    """
    waves, architecture, cycles = count_waves(subject), subject.architecture, subject.elapsed_cycles
    if not waves or architecture is None or not cycles or subject.kernel.has_mixed_launches:
        return 0.0
    access = (architecture.hierarchy.dram_tlb_warm_cycles.value or 0.0) / cycles
    wave = 1 / max(1.0, waves)  # each takes at least as long as the first waits
    cold = min(measure_states(subject, _COLD), wave)
    return min(_MOST_FILL, cold + min(access, measure_states(subject, (LONG_SCOREBOARD,)), wave))
