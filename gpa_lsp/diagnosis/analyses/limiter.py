"""Decide what limits a kernel: the one place that does.

The time of a launch is split three ways: the part its busiest unit needs at the rate such a unit sustains, the part in which SMs have no work, and
the rest, in which SMs have warps and none of them keeps a unit busy: latency. The largest part is the limiter, but for a unit that is nearly
full: then nothing else matters before it has less to do.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import list_queue_use
from gpa_lsp.diagnosis.analyses.model import REQUESTS, WAVEFRONTS, Confidence, Limit, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.occupancy import find_unit, find_waves, measure_units
from gpa_lsp.diagnosis.analyses.roofline.counts import find_device_dram_ceiling, read_busy_units
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.prose import NOTHING, Sentence, begin_lower, count, duration, percent, say
from gpa_lsp.foundation.records import remembered
from gpa_lsp.gpu.device.model import L1_CEILING, L2_CEILING, MemoryLevel, OperationKind
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    count_access_bytes,
    count_per_request,
    mark_accesses,
)
from gpa_lsp.kernel.dataflow.gathered_accesses import count_addresses, count_passes, find_special_registers
from gpa_lsp.profile.model import Launch

# Pattern of the profiler's names, short name, label. The first that fits counts.
_FAMILIES = (
    (r"dram__|fbpa__", "dram", "DRAM"),
    (r"lts__|l1tex__m_|gpu__", "l2", "L2"),
    (r"l1tex__f_|l1tex__tex|l1tex__data_pipe_tex|sm__inst_executed_pipe_tex", "texture", "The texture unit"),
    (r"l1tex__data_pipe_lsu_wavefronts_mem_shared", "shared", "Shared memory"),
    (r"l1tex__|sm__inst_executed_pipe_lsu|sm__mio|sm__memory", "l1", "L1 load/store"),
    (r"sm__inst_executed_pipe_adu", "adu", "The ADU pipe"),
    (r"idc__", "constant", "The constant cache"),
    (r"sm__inst_executed$|sm__inst_issued|sm__issue_active", "issue", "Instruction issue"),
    (r"sm__(?:inst_executed_)?pipe_(?:fma|fmaheavy|fmalite)", "fma", "The FMA pipe"),
    (r"sm__(?:inst_executed_)?pipe_(?:alu|aluheavy)", "alu", "The ALU pipe"),
    (r"sm__(?:inst_executed_)?pipe_fp64", "fp64", "The FP64 pipe"),
    (r"sm__(?:inst_executed_)?pipe_fp16", "fp16", "The FP16 pipe"),
    (r"sm__(?:inst_executed_)?pipe_(?:tensor|shared|tma)", "tensor", "The tensor pipe"),
    (r"sm__(?:inst_executed_)?pipe_xu", "xu", "The XU pipe"),
    (r"sm__(?:inst_executed_)?pipe_uniform", "uniform", "The uniform datapath"),
    (r"sm__(?:inst_executed_)?pipe_cbu", "branch", "The branch unit"),
    (r"sm__", "sm", "The SM"),
    (r"", "other", "A unit"),
)

# Part of a name, and what is counted by it
_KINDS = (
    (WAVEFRONTS, WAVEFRONTS),
    ("lsuin_requests", REQUESTS),
    ("inst_executed_pipe_lsu", REQUESTS),
    ("t_tag", "tag lookups"),
    ("t_sectors", "sectors"),
    ("d_sectors", "sectors"),
    ("xbar2lts", "requests from the SMs"),
    ("lts2xbar", "replies to the SMs"),
    ("d_atomic", "atomics"),
)

# Throughputs of whole parts, which older and smaller reports have in place of their members
_WHOLE = (
    ("dram", "DRAM", ("gpu__dram_throughput", "dram__throughput", "dram__cycles_active")),
    ("l2", "L2", ("lts__throughput", "lts__t_sectors")),
    ("l1", "L1 load/store", ("l1tex__throughput",)),
    ("sm", "The SM", ("sm__throughput",)),
    ("memory", "The memory", ("gpu__compute_memory_throughput",)),
)

# Parts of the memory, and the SM as a whole
_NO_PIPES = frozenset({"dram", "l2", "l1", "shared", "texture", "memory", "sm"})

# Roof → the part of the GPU it is the peak of. Integer operations are shared between two pipes.
_ROOFED: dict[MemoryLevel | OperationKind | None, tuple[str, str]] = {
    MemoryLevel.DRAM: ("dram", "DRAM"),
    MemoryLevel.L2: ("l2", "L2"),
    MemoryLevel.L1: ("l1", "L1 load/store"),
    MemoryLevel.SHARED: ("shared", "Shared memory"),
    OperationKind.FP64: ("fp64", "The FP64 pipe"),
    OperationKind.FP32: ("fma", "The FMA pipe"),
    OperationKind.FP16: ("fp16", "The FP16 pipe"),
    OperationKind.SPECIAL: ("xu", "The XU pipe"),
    None: ("issue", "Instruction issue"),
    **{kind: ("tensor", "The tensor pipe") for kind in OperationKind if kind.name.startswith("TENSOR")},
}

# Of the cycles in which SMs had work; what some reports have of L1 in place of the whole
_L1_ACTIVE = "l1tex__throughput.avg.pct_of_peak_sustained_active"

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"

_SAME_PIPE = 0.9  # From this part of what two kinds of instructions share on, one of them is all there is of it

_SHARED_PART = 0.5  # From this part of L1's wavefronts on they are called shared memory's

# Times the mean slice's sectors; addresses are hashed over the slices, so that only few addresses make one slice that busy
_UNEVEN_SLICES = 5.0

# Of the cycles of the busiest slice: one takes an atomic to the same address every third cycle (a GTX 1660 SUPER, float additions: 1,048,576 in
# 3,146,718 active cycles, which the profiler calls 33 % of the peak), so from here on it does little else
_SERIAL_ATOMIC_RATIO = 0.25

_FLOAT_CYCLES = 3.0  # Of a slice for an addition of floats to one address, by the same launch

_LINE_BYTES = 128  # In one slice of L2

_BLOCK_INDICES = frozenset({"SR_CTAID.X", "SR_CTAID.Y", "SR_CTAID.Z"})

_FLOATS = frozenset({"F16", "F32", "F64", "BF16", "F16x2", "F32x2"})

_ATOMIC_CYCLES = "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed"


@remembered
def list_limits(subject: Subject) -> tuple[Limit, ...]:
    """The parts of the GPU of which the longest launch says how busy they were, nearest to what they sustain first."""
    launch = subject.longest
    if launch is None:
        return ()
    found: dict[str, Limit] = {}
    for limit in (*_read_members(subject, launch), *_read_whole(subject)):
        known = found.get(limit.unit)
        if known is None or (limit.metric and limit.nearness > known.nearness):
            found[limit.unit] = limit
    counted = found.keys() | ({"shared"} if "l1" in found else set())  # shared memory is a part of L1
    has_pipes = bool(counted - _NO_PIPES)  # then those that are missing were not worth the profiler's while
    for limit in _derive_from_roofs(subject):
        if limit.unit not in counted and (limit.unit in _NO_PIPES or not has_pipes):
            found[limit.unit] = limit
    if {"dram", "l2", "l1"} & found.keys():
        found.pop("memory", None)
    fp64, tensor = found.get("fp64"), found.get("tensor")
    if fp64 and tensor and "pipe_shared" in tensor.metric and fp64.busy_ratio >= _SAME_PIPE * tensor.busy_ratio:
        del found["tensor"]  # FP64 and tensor instructions share it, and these are FP64's
    if len(found.keys() - {"dram", "l2", "l1", "sm", "memory"}) > 1:
        found.pop("sm", None)
    return tuple(sorted(found.values(), key=lambda limit: (-limit.nearness, limit.unit)))


def find_serial_slice(subject: Subject) -> float | None:
    """Share of the launch in which the busiest slice of L2 was busy with atomics that queue for few addresses; None where that is not so."""
    if subject.metric(_ATOMIC_CYCLES) is None:
        return _derive_serial_slice(subject)
    sectors = find_unit(measure_units(subject), "lts__t_sectors.avg")
    percent = subject.metric(_ATOMIC_CYCLES)
    if sectors is None or percent is None or sectors.excess < _UNEVEN_SLICES or percent / 100 < _SERIAL_ATOMIC_RATIO:
        return None
    active, elapsed = subject.metric("lts__cycles_active.max"), subject.metric("lts__cycles_elapsed.max")
    return min(1.0, active / elapsed) if active and elapsed else min(1.0, percent / 100)


def _derive_serial_slice(subject: Subject) -> float | None:
    """Derive the share by code and executions where it was not counted: from atomics that all threads of a block make on one address, or on those of
    one line. A slice does those on one line one after the other."""
    elapsed, rows = subject.elapsed_cycles, subject.rows
    if not elapsed or subject.kernel.has_mixed_launches:
        return None
    cycles, (sectors, threads), made = 0.0, count_per_request(rows), rows.counter("thread_executions_true")
    atomics = mark_accesses(rows, GLOBAL_SPACES, (Access.ATOMIC, Access.REDUCTION))
    for row in np.flatnonzero(atomics if made is None else atomics & (made > 0)).tolist():
        indices, _ = find_special_registers(rows, row)
        is_single = sectors[row] <= 1 and indices <= _BLOCK_INDICES
        addresses = 1 if is_single else count_addresses(rows, row)
        width = count_access_bytes(rows.mnemonic(row))
        if addresses is None or addresses * width > _LINE_BYTES:
            continue
        passes = count_passes(float(threads[row]), addresses)
        is_float = not _FLOATS.isdisjoint(rows.mnemonic(row).split("."))
        lines = max(1.0, _count_neighbours(subject, indices) * width / _LINE_BYTES) if is_single else 1.0
        cycles += max(0, int(rows.executions[row])) * passes * (_FLOAT_CYCLES if is_float else 1.0) / lines
    ratio = cycles / max(1, len(subject.kernel.launches)) / elapsed
    return min(1.0, ratio) if ratio >= _SERIAL_ATOMIC_RATIO else None


def _count_neighbours(subject: Subject, indices: frozenset[str]) -> int:
    """Count the values that some indices of blocks have among the blocks that run at once; x grows first."""
    launch = subject.longest
    waves = None if launch is None else find_waves(subject, launch)
    if launch is None or launch.grid is None or waves is None or not indices:
        return 1
    blocks = np.arange(min(waves.blocks, waves.capacity_blocks))
    by_index = dict(zip(sorted(_BLOCK_INDICES), np.unravel_index(blocks, launch.grid, order="F"), strict=True))
    return len(np.unique(np.stack([by_index[one] for one in indices]), axis=1).T)


def list_members(subject: Subject) -> tuple[Limit, ...]:
    """All counters behind the profiler's throughputs, of the longest launch; parts of the GPU with several counters occur several times."""
    return () if subject.longest is None else tuple(_read_members(subject, subject.longest))


def _read_members(subject: Subject, launch: Launch) -> Iterator[Limit]:
    busy = read_busy_units(launch)
    shared = _measure_shared_part(launch)
    for name, ratio in busy.items():
        unit, label = _find_family(name)
        if unit == "l1" and "wavefronts" in name and shared >= _SHARED_PART:
            unit, label = "shared", "Shared memory"
        by = next((words for part, words in _KINDS if part in name), "")
        yield Limit(
            unit=unit, label=label, busy_ratio=ratio, sustained_ratio=_find_ceiling(subject, unit), metric=name, by=by
        )


@lru_cache(maxsize=1 << 10)
def _find_family(name: str) -> tuple[str, str]:
    """Short name and label of the part that a counter belongs to; the launches of a report have the same ones."""
    return next((unit, label) for pattern, unit, label in _FAMILIES if re.match(pattern, name))


def _read_whole(subject: Subject) -> Iterator[Limit]:
    for unit, label, names in _WHOLE:
        percent = subject.metric(*(f"{name}{_ELAPSED}" for name in names))
        if percent is not None:
            yield Limit(unit=unit, label=label, busy_ratio=percent / 100, sustained_ratio=_find_ceiling(subject, unit))
    percent = subject.metric(_L1_ACTIVE)
    if percent is not None:
        active = 1 - (measure_idle(subject) or 0.0)
        ratio = active * percent / 100
        yield Limit(unit="l1", label="L1 load/store", busy_ratio=ratio, sustained_ratio=_find_ceiling(subject, "l1"))


def _derive_from_roofs(subject: Subject) -> Iterator[Limit]:
    """Derive limits from the roofline, for units whose percentage was not collected; only roofs and counts that are certain."""
    if subject.roofline is None or subject.longest is None:
        return
    line = subject.roofline.find_launch(subject.longest.index)
    if line is None:
        return
    machine = subject.roofline.machine
    sure_levels = {one.level for one in machine.bandwidths if one.is_certain}
    exact_levels = {one.level for one in line.traffic if one.is_exact}
    sure_kinds = {one.kind for one in machine.peaks if one.is_certain}
    exact_kinds = {one.kind for one in line.operations if one.is_exact}
    for roof in line.roofs:
        is_issue = roof.level is None and roof.kind is None
        is_sure = is_issue or roof.level in sure_levels & exact_levels or roof.kind in sure_kinds & exact_kinds
        unit, label = _ROOFED.get(roof.level or roof.kind, ("", ""))
        if is_sure and unit:
            yield Limit(
                unit=unit,
                label=label,
                busy_ratio=roof.share_ratio,
                sustained_ratio=_find_ceiling(subject, unit),
                is_derived=True,
            )


def measure_idle(subject: Subject) -> float | None:
    """Share of the time of all SMs in which they had no warp; None when not collected."""
    active = subject.measure_active()
    return None if active is None else 1 - active


def _measure_shared_part(launch: Launch) -> float:
    """Shared memory's part of L1's wavefronts, by their shares of one peak; 0 when not collected."""
    whole = launch.read_number(f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}")
    shared = launch.read_number("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed")
    return shared / whole if whole and shared is not None else 0.0


def _find_ceiling(subject: Subject, unit: str) -> float:
    if unit in ("dram", "memory"):
        return find_device_dram_ceiling(subject.kernel.device)
    return {"l2": L2_CEILING, "l1": L1_CEILING, "shared": L1_CEILING, "texture": L1_CEILING}.get(unit, 1.0)


# From this share of what a unit sustains on it is the limiter in any case: the bound of Nsight Compute's rule for the bottleneck
FULL_RATIO = 0.8

# From here on it is the likely one, if SMs have work and no larger part of the time is latency; below it nothing is busy (the same rule)
BUSY_RATIO = 0.6

IDLE_RATIO = 0.3  # SM time without work that is worth being called the limiter. Ours.

# Any launch takes some microseconds to begin and to end (2 to 4 in published reports of kernels of one block)
SHORT_LAUNCH_NS = 10_000.0

# What tells how busy the units are
METRICS = (
    "breakdown:sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "breakdown:gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
)

FULL_QUEUE_RATIO = 0.3  # Of all samples, before a queue that no counter shows to be full. Ours.

_QUEUES = {
    "lg_throttle": ("l1", "The queue of L1 for global and local memory"),
    "mio_throttle": ("mio", "The MIO queue"),
    "tex_throttle": ("texture", "The texture queue"),
}

_MEMORY = frozenset({"dram", "l2", "l1"})

_RUNNING = ("selected", "not_selected")


def find_limiter(subject: Subject) -> Limiter:
    """Find the limiter of a kernel; with several launch contexts, that of the heaviest."""
    return _find_limiter(subject.main or subject)


@remembered
def _find_limiter(subject: Subject) -> Limiter:
    limits = list_limits(subject)
    cubin = subject.kernel.cubin
    if cubin is not None and subject.kernel.mangled_name in cubin.debug_functions:
        return _blame_build(limits)
    slice_ratio = find_serial_slice(subject)
    if slice_ratio is not None and (not limits or slice_ratio > limits[0].nearness or limits[0].nearness < FULL_RATIO):
        return _blame_slice(limits, slice_ratio)
    idle = measure_idle(subject)
    if not limits or all(limit.unit == "sm" for limit in limits):
        return _know_nothing(limits)
    first = limits[0]
    if (
        all(limit.is_derived for limit in limits)
        and first.nearness < BUSY_RATIO
        and not _MEMORY & {one.unit for one in limits}
    ):
        return _know_nothing(limits)  # a pipe that is not busy says nothing of the memory
    active = 1.0 if idle is None else 1.0 - idle
    if first.nearness >= FULL_RATIO:
        return _blame_unit(limits, Confidence.LIKELY if first.is_derived else Confidence.SURE)
    latency = max(0.0, active - first.nearness)
    if idle is not None and idle >= IDLE_RATIO and idle >= latency:
        return _blame_parallelism(subject, limits, idle)
    if first.nearness >= BUSY_RATIO * active and first.nearness >= latency and first.nearness >= BUSY_RATIO:
        return _blame_unit(limits, Confidence.LIKELY)
    return _blame_latency(subject, limits)


def _conclude(
    kind: LimiterKind,
    unit: str,
    busy_ratio: float | None,
    sentence: Sentence,
    limits: tuple[Limit, ...],
    *,
    confidence: Confidence,
    others: Sequence[Limit] = (),
    now: float = 1.0,
) -> Limiter:
    """A verdict.

    Args:
        others: what can limit the kernel next, nearest first.
        now: what is used of the limiter, from which on the next one is counted.
    """
    following = others[0] if others and others[0].nearness > 0 else None
    return Limiter(
        kind=kind,
        unit=unit,
        busy_ratio=busy_ratio,
        next=following,
        next_factor=None if following is None else max(1.0, now / following.nearness),
        confidence=confidence,
        sentence=sentence,
        missing=METRICS if kind is LimiterKind.UNKNOWN else (),
        limits=limits,
    )


def _blame_build(limits: tuple[Limit, ...]) -> Limiter:
    sentence = say(
        "Debug build: compiled with -G, so nothing is optimized. Rebuild without -G first; other figures do not apply."
    )
    return _conclude(LimiterKind.BUILD, "debug", None, sentence, limits, confidence=Confidence.SURE)


def _blame_slice(limits: tuple[Limit, ...], slice_ratio: float) -> Limiter:
    sentence = say(
        "Atomics queue at one slice of L2: it is {busy} busy, with the atomics to a few addresses.",
        busy=percent(slice_ratio),
    )
    return _conclude(
        LimiterKind.UNIT, "l2_slice", slice_ratio, sentence, limits, confidence=Confidence.SURE, others=limits
    )


def _blame_unit(limits: tuple[Limit, ...], confidence: Confidence) -> Limiter:
    first = limits[0]
    is_below = first.busy_ratio < first.sustained_ratio < 1
    sentence = say(
        "Limited by {label}: {busy} of peak{by}{most}.",
        label=begin_lower(first.label),
        busy=percent(first.busy_ratio),
        by=_say_derived(first),
        most=say(" (practical maximum {most})", most=percent(first.sustained_ratio)) if is_below else NOTHING,
    )
    rest, now = limits[1:], first.nearness
    return _conclude(
        LimiterKind.UNIT, first.unit, first.busy_ratio, sentence, limits, confidence=confidence, others=rest, now=now
    )


def _say_derived(limit: Limit) -> str:
    return ", by the roofline" if limit.is_derived else ""


def _blame_parallelism(subject: Subject, limits: tuple[Limit, ...], idle: float) -> Limiter:
    unit, why = _explain_idle(subject, idle)
    confidence = Confidence.SURE if idle >= 0.5 else Confidence.LIKELY
    sentence = say("SMs have no work for {idle} of the time: {why}.", idle=percent(idle), why=why)
    return _conclude(
        LimiterKind.PARALLELISM, unit, idle, sentence, limits, confidence=confidence, others=limits, now=1.0 - idle
    )


def _explain_idle(subject: Subject, idle: float) -> tuple[str, Sentence]:
    """Short name and clause of what leaves SMs without work: the largest of grid, tail or imbalance, and launch."""
    launch = subject.longest
    waves = None if launch is None else find_waves(subject, launch)
    sms = find_unit(measure_units(subject), "sm__cycles_active.avg")
    elapsed = subject.elapsed_cycles
    ends = max(0.0, 1 - sms.most / elapsed) if sms is not None and elapsed else None
    if waves is not None and waves.idle_sms / waves.sm_count >= idle / 2:
        return "grid", say("{blocks} on {sms}", blocks=count(waves.blocks, "block"), sms=count(waves.sm_count, "SM"))
    time_ns = subject.metric("gpu__time_duration.sum")
    if (ends is not None and ends >= idle / 2) or (sms is None and time_ns is not None and time_ns < SHORT_LAUNCH_NS):
        taken = (
            say("the launch takes {time}", time=duration(time_ns))
            if time_ns is not None
            else say("the launch is short")
        )
        return "launch", say("{taken}, much of it to begin and to end", taken=taken)
    if waves is not None and waves.rounds <= 4 and waves.lost_by_waves_ratio >= idle / 2:
        last = count(waves.last_blocks)
        capacity = count(waves.capacity_blocks, "block")
        return "tail", say("the last wave has {last} of {capacity}", last=last, capacity=capacity)
    return "imbalance", say("some SMs are done long before the others")


def _blame_queue(subject: Subject, limits: tuple[Limit, ...], reason: str, ratio: float) -> Limiter:
    """Blame a queue that warps stall on although no counter of its unit is high: each access takes several passes that nothing counts."""
    unit, label = _QUEUES[reason]
    use = list_queue_use(subject, reason)
    most = f", mostly {use[0].kind}" if use else ""
    sentence = say(
        "{label} is full: {share} of the samples are stalled on {reason}{most}.",
        label=label,
        share=percent(ratio),
        reason=reason,
        most=most,
    )
    others = [limit for limit in limits if limit.unit != unit]
    return _conclude(LimiterKind.UNIT, unit, ratio, sentence, limits, confidence=Confidence.LIKELY, others=others)


def _blame_latency(subject: Subject, limits: tuple[Limit, ...]) -> Limiter:
    first = limits[0]
    total = subject.total_samples
    counts = {reason: subject.rows.count_reason(reason) for reason in subject.kernel.reasons if reason not in _RUNNING}
    reason = max(counts, key=lambda name: (counts[name], name), default=None) if total else None
    is_derived = all(limit.is_derived for limit in limits)
    if reason in _QUEUES and counts[reason] >= FULL_QUEUE_RATIO * total:
        return _blame_queue(subject, limits, reason, counts[reason] / total)
    if reason is None or not counts[reason]:
        stalls, unit, ratio = NOTHING, "", None
    else:
        unit, ratio = reason, counts[reason] / total
        stalls = say("; {share} of the samples are stalled on {reason}", share=percent(ratio), reason=reason)
    is_sure = first.nearness < BUSY_RATIO and reason and not is_derived
    sentence = say(
        "Latency: no unit is{known} more than {busy} busy ({label}{by}){stalls}.",
        known=" known to be" * is_derived,
        busy=percent(first.busy_ratio),
        label=first.label.removeprefix("The "),
        by=_say_derived(first),
        stalls=stalls,
    )
    confidence = Confidence.SURE if is_sure else Confidence.LIKELY
    return _conclude(LimiterKind.LATENCY, unit, ratio, sentence, limits, confidence=confidence, others=limits)


def _know_nothing(limits: tuple[Limit, ...]) -> Limiter:
    sentence = say("Unknown: the utilization of the units was not collected.")
    return _conclude(LimiterKind.UNKNOWN, "", None, sentence, limits, confidence=Confidence.UNKNOWN)
