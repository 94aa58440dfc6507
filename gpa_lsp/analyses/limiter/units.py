"""How busy the parts of the GPU are, by the profiler's own shares: one limit per part, its busiest counter."""

import re
from collections.abc import Iterator
from functools import lru_cache

from gpa_lsp.analyses.balance.units import find_unit, measure_units
from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.limiter.model import REQUESTS, Limit
from gpa_lsp.analyses.roofline.busy_units import read_busy_units
from gpa_lsp.analyses.roofline_model import Roofline
from gpa_lsp.device.model import L1_CEILING, L2_CEILING, MemoryLevel, OperationKind, find_dram_ceiling
from gpa_lsp.profile.model import Launch

_FAMILIES = (
    (r"dram__|fbpa__", "dram", "DRAM"),
    (r"lts__|l1tex__m_|gpu__", "l2", "L2"),
    (r"l1tex__f_|l1tex__tex|l1tex__data_pipe_tex|sm__inst_executed_pipe_tex", "texture", "The texture unit"),
    (r"l1tex__data_pipe_lsu_wavefronts_mem_shared", "shared", "Shared memory"),
    (r"l1tex__|sm__inst_executed_pipe_(lsu|adu)|sm__mio|sm__memory", "l1", "L1 load/store"),
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
"""Pattern of the profiler's names, short name, label. The first that fits counts."""

_KINDS = (
    ("wavefronts", "wavefronts"),
    ("lsuin_requests", REQUESTS),
    ("inst_executed_pipe_lsu", REQUESTS),
    ("t_tag", "tag lookups"),
    ("t_sectors", "sectors"),
    ("d_sectors", "sectors"),
    ("xbar2lts", "requests from the SMs"),
    ("lts2xbar", "replies to the SMs"),
    ("d_atomic", "atomics"),
)
"""Part of a name, and what is counted by it."""

_WHOLE = (
    ("dram", "DRAM", ("gpu__dram_throughput", "dram__throughput", "dram__cycles_active")),
    ("l2", "L2", ("lts__throughput", "lts__t_sectors")),
    ("l1", "L1 load/store", ("l1tex__throughput",)),
    ("sm", "The SM", ("sm__throughput",)),
    ("memory", "The memory", ("gpu__compute_memory_throughput",)),
)
"""Throughputs of whole parts, which older and smaller reports have in place of their members."""

_NO_PIPES = frozenset({"dram", "l2", "l1", "shared", "texture", "memory", "sm"})
"""Parts of the memory, and the SM as a whole."""

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
"""Roof → the part of the GPU it is the peak of. Integer operations are shared between two pipes."""

_L1_ACTIVE = "l1tex__throughput.avg.pct_of_peak_sustained_active"
"""Of the cycles in which SMs had work; what some reports have of L1 in place of the whole."""

_ELAPSED = ".avg.pct_of_peak_sustained_elapsed"

_SAME_PIPE = 0.9
"""From this part of what two kinds of instructions share on, one of them is all there is of it."""

_SHARED_PART = 0.5
"""From this part of L1's wavefronts on they are called shared memory's."""

_UNEVEN_SLICES = 5.0
"""Times the mean slice's sectors; addresses are hashed over the slices, so that only few addresses make one slice that busy."""

_SERIAL_ATOMIC_RATIO = 0.25
"""Of the cycles of the busiest slice: one takes an atomic to the same address every third cycle (a GTX 1660 SUPER, float additions: 1,048,576 in
3,146,718 active cycles, which the profiler calls 33 % of the peak), so from here on it does little else."""


def list_limits(facts: KernelFacts) -> tuple[Limit, ...]:
    """The parts of the GPU of which the longest launch says how busy they were, nearest to what they sustain first."""
    return facts.once(_list_limits)


def find_serial_slice(facts: KernelFacts) -> float | None:
    """Share of the launch in which the busiest slice of L2 was busy with atomics that queue for few addresses; None where that is not so."""
    sectors = find_unit(measure_units(facts), "lts__t_sectors.avg")
    percent = facts.metric("lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed")
    if sectors is None or percent is None or sectors.excess < _UNEVEN_SLICES or percent / 100 < _SERIAL_ATOMIC_RATIO:
        return None
    active, elapsed = facts.metric("lts__cycles_active.max"), facts.metric("lts__cycles_elapsed.max")
    return min(1.0, active / elapsed) if active and elapsed else min(1.0, percent / 100)


def _list_limits(facts: KernelFacts) -> tuple[Limit, ...]:
    launch = facts.longest
    if launch is None:
        return ()
    found: dict[str, Limit] = {}
    for limit in (*_read_members(facts, launch), *_read_whole(facts)):
        known = found.get(limit.unit)
        if known is None or (limit.metric and limit.nearness > known.nearness):
            found[limit.unit] = limit
    counted = found.keys() | ({"shared"} if "l1" in found else set())  # shared memory is a part of L1
    has_pipes = bool(counted - _NO_PIPES)  # then those that are missing were not worth the profiler's while
    for limit in _derive_from_roofs(facts):
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


def _read_members(facts: KernelFacts, launch: Launch) -> Iterator[Limit]:
    busy = read_busy_units(launch)
    shared = _measure_shared_part(launch)
    for name, ratio in busy.items():
        unit, label = _find_family(name)
        if unit == "l1" and "wavefronts" in name and shared >= _SHARED_PART:
            unit, label = "shared", "Shared memory"
        by = next((words for part, words in _KINDS if part in name), "")
        yield Limit(
            unit=unit, label=label, busy_ratio=ratio, sustained_ratio=_find_ceiling(facts, unit), metric=name, by=by
        )


@lru_cache(maxsize=1 << 10)
def _find_family(name: str) -> tuple[str, str]:
    """Short name and label of the part that a counter belongs to; the launches of a report have the same ones."""
    return next((unit, label) for pattern, unit, label in _FAMILIES if re.match(pattern, name))


def _read_whole(facts: KernelFacts) -> Iterator[Limit]:
    for unit, label, names in _WHOLE:
        percent = facts.metric(*(f"{name}{_ELAPSED}" for name in names))
        if percent is not None and 0 <= percent <= 200:
            yield Limit(unit=unit, label=label, busy_ratio=percent / 100, sustained_ratio=_find_ceiling(facts, unit))
    percent = facts.metric(_L1_ACTIVE)
    if percent is not None and 0 <= percent <= 200:
        active = 1 - (measure_idle(facts) or 0.0)
        ratio = active * percent / 100
        yield Limit(unit="l1", label="L1 load/store", busy_ratio=ratio, sustained_ratio=_find_ceiling(facts, "l1"))


def _derive_from_roofs(facts: KernelFacts) -> Iterator[Limit]:
    """What the longest launch achieves of the roofs that are known for sure, for parts of which no percentage was collected."""
    line = _find_roofline(facts)
    if line is None or facts.roofline is None:
        return
    machine = facts.roofline.machine
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
                sustained_ratio=_find_ceiling(facts, unit),
                is_derived=True,
            )


def _find_roofline(facts: KernelFacts) -> Roofline | None:
    """Where the longest launch stands."""
    if facts.roofline is None or facts.longest is None:
        return None
    return next((one for one in facts.roofline.launches if one.launch_index == facts.longest.index), None)


def measure_idle(facts: KernelFacts) -> float | None:
    """Share of the time of all SMs in which they had no warp; None when not collected."""
    active = facts.metric("sm__cycles_active.avg")
    elapsed = facts.metric("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max", "sm__cycles_elapsed.avg")
    return None if active is None or not elapsed or active < 0 else max(0.0, 1 - active / elapsed)


def _measure_shared_part(launch: Launch) -> float:
    """Shared memory's part of L1's wavefronts, by their shares of one peak; 0 when not collected."""
    whole = launch.read_number(f"l1tex__data_pipe_lsu_wavefronts{_ELAPSED}")
    shared = launch.read_number("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed")
    return shared / whole if whole and shared is not None else 0.0


def _find_ceiling(facts: KernelFacts, unit: str) -> float:
    if unit in ("dram", "memory"):
        return find_dram_ceiling(facts.kernel.device.attributes.get("device__attribute_global_memory_bus_width"))
    return {"l2": L2_CEILING, "l1": L1_CEILING, "shared": L1_CEILING, "texture": L1_CEILING}.get(unit, 1.0)
