"""The memory accesses of a kernel as columns: which instructions they are, how wide, how often, and what they move where less would do."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.line_sums import count_waits
from gpa_lsp.diagnosis.blame.model import BlameCategory
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.kernel.dataflow.accesses import GLOBAL_SPACES, MOVES, count_access_bytes, mark_accesses

# What memory accesses stall others, or themselves, with
_WAITS = (
    BlameCategory.MEMORY_GLOBAL,
    BlameCategory.MEMORY_LOCAL,
    BlameCategory.EXECUTION_SHARED,
    BlameCategory.MEMORY_THROTTLE,
    BlameCategory.MIO_THROTTLE,
)

Counts = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


class Transfers(ColumnRecord, frozen=True, kw_only=True):
    """What accesses to one memory move, by instruction."""

    unit: str  # ``sectors`` or ``wavefronts``
    actual: Counts  # int64[n]
    ideal: Counts  # int64[n], the least that could do for the threads and widths at hand; at most ``actual``
    # int64[n], executions of the instructions that move anything; None when they were not collected
    requests: Counts | None

    @property
    def excess(self) -> Counts:
        """int64[n], what is moved beyond the least."""
        return self.actual - self.ideal

    @property
    def excess_ratio(self) -> float:
        """Of all that is moved, 0..1; 0 where nothing is."""
        total = int(self.actual.sum())
        return int(self.excess.sum()) / total if total else 0.0


class AccessColumns(ColumnRecord, frozen=True, kw_only=True):
    """The memory accesses of the n instructions of a kernel."""

    global_transfers: Transfers | None  # sectors of global and generic accesses; None when not collected
    shared_transfers: Transfers | None  # wavefronts of shared accesses; None when not collected
    local_sectors: Counts | None  # int64[n]; None when not collected
    # int64[n], threads whose guard held, of instructions that access memory; None when not collected
    threads: Counts | None
    executions: Counts | None  # int64[n]; None when not collected
    width_bytes: Counts  # int64[n], bytes one thread moves; 0 where nothing is accessed or nothing disassembled
    is_global: Marks  # bool[n], as are all that begin with ``is_``
    is_shared: Marks
    is_local: Marks
    is_store: Marks  # stores
    is_atomic: Marks  # atomics and reductions
    waits: npt.NDArray[np.float64]  # float64[n], samples each instruction causes, of the kinds that memory causes


def read_accesses(facts: KernelFacts) -> AccessColumns:
    """The memory accesses of a kernel."""
    executions = facts.read_executions()
    width_bytes = facts.rows.spread_by_mnemonic(count_access_bytes, unknown=0)
    moves = width_bytes > 0
    threads = facts.read_counter("thread_executions_true")
    return AccessColumns(
        global_transfers=_read_transfers(facts, "sectors", "global_sectors", executions),
        shared_transfers=_read_transfers(facts, "wavefronts", "shared_wavefronts", executions),
        local_sectors=facts.read_counter("local_sectors"),
        threads=threads if threads is None else np.where(moves, threads, 0),
        executions=executions,
        width_bytes=width_bytes,
        is_global=mark_accesses(facts.rows, GLOBAL_SPACES, MOVES),
        is_shared=mark_accesses(facts.rows, (MemorySpace.SHARED,), MOVES),
        is_local=mark_accesses(facts.rows, (MemorySpace.LOCAL,), MOVES),
        is_store=facts.rows.mark_by_opcode(lambda opcode: opcode.access is Access.STORE),
        is_atomic=facts.rows.mark_by_opcode(lambda opcode: opcode.access in (Access.ATOMIC, Access.REDUCTION)),
        waits=np.where(moves, count_waits(facts, _WAITS), 0.0),
    )


def _read_transfers(facts: KernelFacts, unit: str, name: str, executions: Counts | None) -> Transfers | None:
    actual, ideal = facts.read_counter(name), facts.read_counter(f"{name}_ideal")
    if actual is None or ideal is None:
        return None
    requests = None if executions is None else np.where(actual > 0, executions, 0)
    return Transfers(unit=unit, actual=actual, ideal=np.minimum(ideal, actual), requests=requests)
