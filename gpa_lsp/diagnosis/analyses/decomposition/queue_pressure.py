"""What fills the queues and pipes: executions, wavefronts and widths by kind of instruction."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.kernel.dataflow.accesses import count_access_bytes
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind
from gpa_lsp.kernel.dataflow.queues import QUEUES

# Accesses to shared memory whose passes are counted
SHARED_KINDS = frozenset({InstructionKind.SHARED_LOAD, InstructionKind.SHARED_STORE, InstructionKind.MATRIX_LOAD})

_SECTORS_PER_LINE = 4


class QueueUse(Struct, frozen=True, kw_only=True):
    """One kind of instruction in a queue."""

    kind: InstructionKind  # of instruction
    executions: int  # by warps
    share_ratio: float  # of the executions in this queue
    per_cycle: float | None  # executions per SM and cycle; None without the cycles, or with several launches
    # wavefronts of shared memory, or 128-byte lines of global memory, per execution; None where not counted
    passes: float | None
    least_passes: float | None  # the fewest that would suffice; None where not counted
    thread_bytes: float | None  # that one thread moves with one execution, on average; None for what accesses no memory


def list_queue_use(facts: KernelFacts, kinds: npt.NDArray[np.int16], reason: str) -> tuple[QueueUse, ...]:
    """Which instructions go through the queue of a throttle, the most frequent first; empty without executions."""
    executions = facts.rows.executions
    if reason not in QUEUES or not (executions > 0).any():
        return ()
    counted = np.bincount(kinds, weights=np.maximum(0, executions), minlength=len(KINDS))
    chosen = [number for number, kind in enumerate(KINDS) if kind in QUEUES[reason] and counted[number] > 0]
    total = float(sum(counted[number] for number in chosen))
    cycles = _count_sm_cycles(facts)
    widths = facts.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    found = []
    for number in chosen:
        passes, least = _measure_passes(facts, kinds == number, KINDS[number])
        found.append(
            QueueUse(
                kind=KINDS[number],
                executions=int(counted[number]),
                share_ratio=float(counted[number]) / total,
                per_cycle=None if cycles is None else float(counted[number]) / cycles,
                passes=passes,
                least_passes=least,
                thread_bytes=_measure_width(widths, executions, kinds == number),
            )
        )
    return tuple(sorted(found, key=lambda one: (-one.executions, one.kind)))


def _measure_passes(
    facts: KernelFacts, chosen: npt.NDArray[np.bool_], kind: InstructionKind
) -> tuple[float | None, float | None]:
    """Passes per execution, and the fewest; None where not counted."""
    if kind in SHARED_KINDS:
        return _divide(facts, "shared_wavefronts", chosen), _divide(facts, "shared_wavefronts_ideal", chosen)
    if kind is InstructionKind.GLOBAL_LOAD or kind is InstructionKind.GLOBAL_STORE:
        least = _divide(facts, "global_sectors_ideal", chosen)
        return _divide(facts, "global_tag_requests", chosen), None if least is None else max(
            1.0, least / _SECTORS_PER_LINE
        )
    return None, None


def _measure_width(
    widths: npt.NDArray[np.int64], executions: npt.NDArray[np.int64], chosen: npt.NDArray[np.bool_]
) -> float | None:
    counted = chosen & (widths > 0) & (executions > 0)
    executed = int(executions[counted].sum())
    return float((widths[counted] * executions[counted]).sum()) / executed if executed else None


def _divide(facts: KernelFacts, counter: str, chosen: npt.NDArray[np.bool_]) -> float | None:
    values = facts.rows.counter(counter)
    if values is None:
        return None
    executions = facts.rows.executions
    counted = chosen & (values >= 0) & (executions > 0)
    executed = int(executions[counted].sum())
    return int(values[counted].sum()) / executed if executed else None


def _count_sm_cycles(facts: KernelFacts) -> float | None:
    """Active cycles of all SMs; None when not collected or of one launch among several."""
    cycles = facts.metric("sm__cycles_active.avg")
    measured = sum(1 for launch in facts.kernel.launches if launch.failure is None)
    sms = facts.kernel.device.sm_count
    if cycles is None or sms is None or measured != 1:
        return None
    return cycles * sms or None
