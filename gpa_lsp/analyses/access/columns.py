"""The memory accesses of a kernel as columns: which instructions they are, how wide, how often, and what they move where less would do."""

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.facts import KernelFacts
from gpa_lsp.analyses.line_sums import count_waits
from gpa_lsp.analyses.opcode_rows import mark_by_opcode, read_counter, read_executions, spread_by_mnemonic
from gpa_lsp.binary.opcodes import Access, MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.blame.model import BlameCategory

SECTOR_BYTES = 32
"""The unit of transfer between caches and memory, on every architecture."""

WARP_THREADS = 32
"""Threads of a warp, on every architecture."""

GLOBAL_SPACES = (MemorySpace.GLOBAL, MemorySpace.GENERIC)

_REGISTER_BYTES = 4
_BYTES = {
    "U8": 1, "S8": 1, "U16": 2, "S16": 2, "F16": 2, "64": 8, "U64": 8, "S64": 8, "F64": 8, "96": 12, "128": 16, "256": 32,
}  # fmt: skip
"""Bytes of an access by modifier; without one of these it is a register wide."""

_MOVES = (Access.LOAD, Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY)
_WAITS = (
    BlameCategory.MEMORY_GLOBAL,
    BlameCategory.MEMORY_LOCAL,
    BlameCategory.EXECUTION_SHARED,
    BlameCategory.MEMORY_THROTTLE,
    BlameCategory.MIO_THROTTLE,
)
"""What a memory access makes others, or itself, wait for."""

Counts = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfers:
    """What accesses to one memory move, by instruction.

    Attributes:
        unit: ``sectors`` or ``wavefronts``.
        actual: int64[n].
        ideal: int64[n], the least that could do for the threads and widths at hand; at most ``actual``.
        requests: int64[n], executions of the instructions that move anything; None when they were not collected.
    """

    unit: str
    actual: Counts
    ideal: Counts
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessColumns:
    """The memory accesses of the n instructions of a kernel.

    Attributes:
        global_transfers: sectors of global and generic accesses; None when not collected.
        shared_transfers: wavefronts of shared accesses; None when not collected.
        local_sectors: int64[n]; None when not collected.
        threads: int64[n], threads whose guard held, of instructions that access memory; None when not collected.
        executions: int64[n]; None when not collected.
        width_bytes: int64[n], bytes one thread moves; 0 where nothing is accessed or nothing disassembled.
        is_global: bool[n]; likewise the other spaces and kinds.
        is_store: stores.
        is_atomic: atomics and reductions.
        waits: float64[n], samples each instruction is to blame for, of the kinds that memory causes.
    """

    global_transfers: Transfers | None
    shared_transfers: Transfers | None
    local_sectors: Counts | None = field(repr=False)
    threads: Counts | None = field(repr=False)
    executions: Counts | None = field(repr=False)
    width_bytes: Counts = field(repr=False)
    is_global: Marks = field(repr=False)
    is_shared: Marks = field(repr=False)
    is_local: Marks = field(repr=False)
    is_store: Marks = field(repr=False)
    is_atomic: Marks = field(repr=False)
    waits: npt.NDArray[np.float64] = field(repr=False)


def read_accesses(facts: KernelFacts) -> AccessColumns:
    """The memory accesses of a kernel."""
    executions = read_executions(facts)
    width_bytes = spread_by_mnemonic(facts, count_access_bytes, unknown=0)
    moves = width_bytes > 0
    threads = read_counter(facts, "thread_executions_true")
    return AccessColumns(
        global_transfers=_read_transfers(facts, "sectors", "global_sectors", executions),
        shared_transfers=_read_transfers(facts, "wavefronts", "shared_wavefronts", executions),
        local_sectors=read_counter(facts, "local_sectors"),
        threads=threads if threads is None else np.where(moves, threads, 0),
        executions=executions,
        width_bytes=width_bytes,
        is_global=mark_by_opcode(facts, lambda opcode: _moves_in(opcode, GLOBAL_SPACES)),
        is_shared=mark_by_opcode(facts, lambda opcode: _moves_in(opcode, (MemorySpace.SHARED,))),
        is_local=mark_by_opcode(facts, lambda opcode: _moves_in(opcode, (MemorySpace.LOCAL,))),
        is_store=mark_by_opcode(facts, lambda opcode: opcode.access is Access.STORE),
        is_atomic=mark_by_opcode(facts, lambda opcode: opcode.access in (Access.ATOMIC, Access.REDUCTION)),
        waits=np.where(moves, count_waits(facts, _WAITS), 0.0),
    )


@lru_cache(maxsize=8192)
def count_access_bytes(mnemonic: str) -> int:
    """Bytes one thread moves with one access to global, generic, shared or local memory; 0 for what accesses none of them.

    >>> [count_access_bytes(one) for one in ("LDG.E.128.CONSTANT", "STG.E.U8", "LDS", "LDSM.16.M88.4", "FADD", "CCTL.IVALL")]
    [16, 1, 4, 16, 0, 0]
    """
    opcode = describe_mnemonic(mnemonic)
    if not _moves_in(opcode, (*GLOBAL_SPACES, MemorySpace.SHARED, MemorySpace.LOCAL)):
        return 0
    numbers = [width for width in opcode.widths if isinstance(width, int)]
    if len(numbers) == len(opcode.widths) and numbers:  # matrix fragments: registers and not bits are named
        return _REGISTER_BYTES * max(numbers)
    return next((_BYTES[one] for one in mnemonic.split(".")[1:] if one in _BYTES), _REGISTER_BYTES)


def _moves_in(opcode: Opcode, spaces: tuple[MemorySpace, ...]) -> bool:
    return opcode.memory in spaces and opcode.access in _MOVES


def _read_transfers(facts: KernelFacts, unit: str, name: str, executions: Counts | None) -> Transfers | None:
    actual, ideal = read_counter(facts, name), read_counter(facts, f"{name}_ideal")
    if actual is None or ideal is None:
        return None
    requests = None if executions is None else np.where(actual > 0, executions, 0)
    return Transfers(unit=unit, actual=actual, ideal=np.minimum(ideal, actual), requests=requests)
