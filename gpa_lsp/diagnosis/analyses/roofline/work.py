"""What a launch did, and what several did together: :class:`Work`."""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Pipe, describe_mnemonic
from gpa_lsp.diagnosis.analyses.roofline.busy_units import read_busy_units
from gpa_lsp.diagnosis.analyses.roofline.instructions import Executions
from gpa_lsp.diagnosis.analyses.roofline.operations import count_operations
from gpa_lsp.diagnosis.analyses.roofline.totals import Span, read_count, read_total
from gpa_lsp.diagnosis.analyses.roofline.traffic import measure_traffic
from gpa_lsp.diagnosis.analyses.roofline_model import OperationCount, Traffic
from gpa_lsp.gpu.device.model import Machine, MemoryLevel, OperationKind
from gpa_lsp.profile.model import Launch

_WARP_INSTRUCTIONS = ("smsp__inst_executed", "sm__inst_executed")
_ALL_INSTRUCTIONS = "inst_executed"


class Work(Struct, frozen=True, kw_only=True):
    """Operations, bytes and instructions in some time."""

    duration_s: float  # positive
    operations: Mapping[OperationKind, OperationCount]  # by type; types that are not known are missing
    traffic: Mapping[MemoryLevel, Traffic]  # by level; levels that are not known are missing
    warp_instructions: float | None  # None when unknown
    # the profiler's name of a unit → its share of its peak times the time; units that are not known are missing
    busy_s: Mapping[str, float] = field(default_factory=dict)
    # no instruction goes there: what was counted is the hardware's own
    unused_levels: frozenset[MemoryLevel] = frozenset()


def measure_work(launch: Launch, span: Span, executions: Executions | None, machine: Machine | None) -> Work:
    """What one launch did.

    Args:
        span: its time and cycles.
        executions: of its instructions; None when unknown.
    """
    return Work(
        duration_s=span.duration_s,
        operations=count_operations(launch, span, executions),
        traffic=measure_traffic(launch, span, machine),
        warp_instructions=_count_warp_instructions(launch, span, executions),
        busy_s={unit: share * span.duration_s for unit, share in read_busy_units(launch).items()},
        unused_levels=_find_unused(executions),
    )


def _find_unused(executions: Executions | None) -> frozenset[MemoryLevel]:
    """Shared memory, where the instructions are known and none goes there."""
    if executions is None or any(map(_may_use_shared, executions.warps or executions.threads)):
        return frozenset()
    return frozenset({MemoryLevel.SHARED})


def _may_use_shared(mnemonic: str) -> bool:
    """It reads or writes shared memory, or could: by a generic address, as a copy between memories, or as operands of tensor cores."""
    opcode = describe_mnemonic(mnemonic)
    is_there = opcode.memory in (MemorySpace.SHARED, MemorySpace.GENERIC)
    return is_there or opcode.access is Access.COPY or opcode.pipe is Pipe.TENSOR


def _count_warp_instructions(launch: Launch, span: Span, executions: Executions | None) -> float | None:
    total = read_total(launch, span, _WARP_INSTRUCTIONS)
    if total is not None:
        return total.value
    stated = read_count(launch, _ALL_INSTRUCTIONS)
    if stated is not None or executions is None or not executions.warps:
        return stated
    return float(sum(executions.warps.values()))


def sum_work(works: Sequence[Work]) -> Work | None:
    """All of it together: total work in the total time, so that every launch counts by how long it took.

    What is unknown of one is unknown of the sum. None of nothing.
    """
    if not works:
        return None
    known = [work.warp_instructions for work in works if work.warp_instructions is not None]
    return Work(
        duration_s=sum(work.duration_s for work in works),
        operations={
            kind: _sum_operations([work.operations[kind] for work in works])
            for kind in OperationKind
            if all(kind in work.operations for work in works)
        },
        traffic={
            level: _sum_traffic([work.traffic[level] for work in works])
            for level in MemoryLevel
            if all(level in work.traffic for work in works)
        },
        warp_instructions=sum(known) if len(known) == len(works) else None,
        busy_s={
            unit: sum(work.busy_s[unit] for work in works)
            for unit in works[0].busy_s
            if all(unit in work.busy_s for work in works)
        },
        unused_levels=frozenset.intersection(*(work.unused_levels for work in works)),
    )


def _sum_operations(counts: Sequence[OperationCount]) -> OperationCount:
    return replace(
        counts[0],
        operations=sum(count.operations for count in counts),
        source=_join_sources(count.source for count in counts),
        is_exact=all(count.is_exact for count in counts),
    )


def _sum_traffic(counts: Sequence[Traffic]) -> Traffic:
    transactions = [count.transactions for count in counts if count.transactions is not None]
    return replace(
        counts[0],
        bytes=sum(count.bytes for count in counts),
        source=_join_sources(count.source for count in counts),
        transactions=sum(transactions) if len(transactions) == len(counts) else None,
        is_exact=all(count.is_exact for count in counts),
    )


def _join_sources(sources: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(sources))
