"""Result of blaming: a :class:`KernelBlame`, the samples of a kernel moved to their causes, as columns.

*Rows* are instructions of the whole kernel: those of ``kernel.functions[0]``, then of the next function, and so on, in the order of the
functions' columns. The same numbers index ``report.model.InstructionColumns``.

Conservation: for every row and reason, samples on edges (those to itself included) plus unattributed ones are the samples that were taken
there, all samples and latency samples alike. :func:`gpa_lsp.diagnosis.blame.blame.check_conservation` says so.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from functools import cache
from types import NoneType
from typing import Any, Self, get_args, get_type_hints

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.foundation.errors import Problem
from gpa_lsp.foundation.records import ColumnRecord


class BlameCategory(IntEnum):
    """The detailed class of a stall: what kind of cause it has.

    Source: GPA section IV, Figure 5 (local, constant, global memory; shared memory, arithmetic, write after read), and the finer classes
    that its code and newer hardware ask for.
    """

    MEMORY_GLOBAL = 0  # A result of global or generic memory (loads, atomics, asynchronous copies)
    MEMORY_LOCAL = 1  # A result of local memory: spills, stacks, arrays indexed at run time
    MEMORY_CONSTANT = 2  # A constant loaded through L1 (indexed)
    MEMORY_TEXTURE = 3  # A texture or surface access
    EXECUTION_SHARED = 4  # A result of shared memory
    EXECUTION_CONSTANT = 5  # A constant load answered by the memory input/output unit (LDC)
    EXECUTION_ARITHMETIC = 6  # A result of an arithmetic instruction of fixed latency, predicates included
    # A result of arithmetic of variable latency: special functions, conversions, bit counts, FP64 and matrix units behind a scoreboard
    EXECUTION_SPECIAL = 7
    EXECUTION_WARP = 8  # A result of an exchange between lanes: shuffle, vote, match, reduction
    EXECUTION_SYSTEM = 9  # A special register or another system value (S2R, CS2R)
    WRITE_AFTER_READ = 10  # A register that an earlier instruction had still to read
    ISSUE = 11  # The issue cost of the instruction before: its stall count, with no result waited for
    SYNCHRONISATION = 12  # Block barriers, fences, warp groups, memory barriers
    BRANCH = 13  # A branch, call, return or reconvergence whose target had to be resolved
    INDIRECT = 14  # An address or a target through a register pair that had to be read first (indirect branch)
    INSTRUCTION_FETCH = 15
    PIPE_THROTTLE = 16  # The arithmetic pipe was busy
    MEMORY_THROTTLE = 17  # The local/global memory queue was full (lg_throttle)
    MIO_THROTTLE = 18
    TEXTURE_THROTTLE = 19
    CONSTANT_MISS = 20  # The instruction's own constant operand missed (imc_miss)
    NOT_SELECTED = 21  # Ready, but another warp issued: no lost time
    ISSUED = 22  # The sample saw the warp issue (selected)
    DISPATCH = 23
    DRAIN = 24  # Stores outstanding at the exit
    SLEEPING = 25
    MISC = 26  # A reason the hardware or this version does not name


WAIT = "wait"  # Stall reason of fixed latencies and of issue cost

NO_STALLS = (BlameCategory.ISSUED, BlameCategory.NOT_SELECTED)


class Dependency(IntEnum):
    """Kind of dependency of a use on its def."""

    ITSELF = 0  # The instruction is its own cause; def and use are one row
    READ_AFTER_WRITE = 1
    WRITE_AFTER_READ = 2
    WRITE_AFTER_WRITE = 3
    GUARD = 4  # A predicate that guards the use (read after write)
    # A scoreboard only: the use waits for the def's counter without touching a register of it (GPA Figure 3)
    SCOREBOARD = 5
    ISSUE = 6  # The stall count of the instruction before it, without a result that forced it
    SYNCHRONISATION = 7  # The barrier, fence, store or exit it waits at
    CONTROL = 8  # The control instruction through which the use was reached
    CALL = 9  # A producer of arguments before the call through which the use's function was entered
    QUEUE = 10  # Both go through the queue that was full when the use was sampled


class UnattributedCause(IntEnum):
    """Reason why samples have no cause."""

    NO_CODE = 0  # The profile does not hold the code they were taken in
    NO_INSTRUCTIONS = 1  # The code could not be disassembled
    NO_PRODUCER = 2  # No instruction could be found that the reason can mean
    WORK_BOUND = 3  # The function exceeded the work bound; see the problems


class ColumnTable(ColumnRecord, frozen=True, kw_only=True):
    """Columns of one length, the first of which is always there; None for a column that is unknown."""

    def __len__(self) -> int:
        return len(getattr(self, self.__struct_fields__[0]))

    @classmethod
    def from_columns(cls, **columns: Any) -> Self:
        """The table of some columns, each as the type of its field."""
        dtypes = _read_dtypes(cls)
        known = {name: column for name, column in columns.items() if column is not None}
        return cls(**{**columns, **{name: np.asarray(column, dtypes[name]) for name, column in known.items()}})

    @classmethod
    def from_rows(cls, rows: Iterable[Sequence[float]] = ()) -> Self:
        """The table of some rows, each with a value for every column, in the order of the fields."""
        columns = zip(*rows, strict=True)
        return cls.from_columns(**{name: next(columns, ()) for name in cls.__struct_fields__})

    @classmethod
    def join(cls, parts: Iterable[Self]) -> Self:
        """The rows of several tables; a column that is unknown in one of them is unknown."""
        columns: dict[str, Any] = {}
        listed = [cls.from_rows(), *parts]
        for name in cls.__struct_fields__:
            found = [getattr(part, name) for part in listed]
            columns[name] = None if any(one is None for one in found) else np.concatenate(found)
        return cls(**columns)

    def select(self, chosen: npt.NDArray[Any]) -> Self:
        """Some of the rows: those of a mask, or those of some numbers, in their order."""
        columns = {name: getattr(self, name) for name in self.__struct_fields__}
        return type(self)(**{name: None if one is None else one[chosen] for name, one in columns.items()})

    def sort_by(self, *names: str) -> Self:
        """The rows in ascending order of a column, those that are equal there in order of the next."""
        return self.select(np.lexsort([getattr(self, name) for name in reversed(names)]))


@cache
def _read_dtypes(kind: type[ColumnTable]) -> dict[str, type]:
    """Field → type of the numbers in its column, as it is annotated."""
    hints = get_type_hints(kind).items()
    arrays = {name: get_args(hint)[0] if NoneType in get_args(hint) else hint for name, hint in hints}
    return {name: get_args(get_args(array)[1])[0] for name, array in arrays.items()}


class BlameEdges(ColumnTable, frozen=True, kw_only=True):
    """Blamed pairs: one for each use, def and reason, sorted by use, reason and def."""

    use_row: npt.NDArray[np.int32]  # int32[e], the instruction that was sampled
    # int32[e], the instruction that is blamed; the use itself for reasons that stay with the instruction, and for its own part in a full queue
    def_row: npt.NDArray[np.int32]
    reason: npt.NDArray[np.int16]  # int16[e] (into the kernel's reasons), stall reason
    all_samples: npt.NDArray[np.float64]  # float64[e], samples
    # float64[e], of these, samples taken when the scheduler issued nothing; None in the whole kernel where the profile does not tell
    latency_samples: npt.NDArray[np.float64] | None
    category: npt.NDArray[np.uint8]  # uint8[e] (of :class:`BlameCategory`), what kind of cause it is
    dependency: npt.NDArray[np.uint8]  # uint8[e] (of :class:`Dependency`), how the use depends on the def
    # int16[e] (-1 for None), register or predicate that connects the two (lowest of a pair or vector; both halves of a 64-bit address are one
    # dependency); None where none does
    resource: npt.NDArray[np.int16]
    # int32[e], edges with the same number are causes that the use waits for *together* (behind one scoreboard, or in one full queue): their shares
    # are a convention, not a measurement. Numbers are unique within the kernel.
    group: npt.NDArray[np.int32]
    # int32[e] (-1 for None), sum of encoded stall counts on the shortest path from the def's issue to the use's; 0 for itself, None when unknown
    distance_cycles: npt.NDArray[np.int32]
    # int32[e] (-1 for None), instructions on that path from after the def up to and including the use; 0 for itself, None when unknown
    distance_instructions: npt.NDArray[np.int32]

    def sort(self) -> "BlameEdges":
        """The edges by use, reason and def."""
        return self.sort_by("use_row", "reason", "def_row", "group")

    @property
    def is_moved(self) -> npt.NDArray[np.bool_]:
        """bool[e]: the cause is another instruction."""
        return np.not_equal(self.use_row, self.def_row)


class Unattributed(ColumnTable, frozen=True, kw_only=True):
    """Samples without a cause, by row and reason; shown, never dropped."""

    row: npt.NDArray[np.int32]  # int32[u], the instruction
    reason: npt.NDArray[np.int16]  # int16[u] (into the kernel's reasons), stall reason
    cause: npt.NDArray[np.uint8]  # uint8[u] (of :class:`UnattributedCause`), why they have none
    all_samples: npt.NDArray[np.float64]  # float64[u], samples
    # float64[u], of these, samples taken when the scheduler issued nothing; None in the whole kernel where the profile does not tell
    latency_samples: npt.NDArray[np.float64] | None


class IssueCounts(ColumnRecord, frozen=True, kw_only=True):
    """Issue counts of instructions, for apportioning and for the model of ``wait``."""

    counts: npt.NDArray[np.float64]  # float64[n] over all rows, in samples: comparable with ``selected`` samples
    is_exact: bool  # derived from executions (``inst_executed``), not from ``selected`` samples
    why: str  # one clause: why they are or are not exact
    chi_square_per_row: float | None  # of ``selected`` against scaled executions; None where it could not be computed


class SingleDependencyCoverage(Struct, frozen=True, kw_only=True):
    """Shares of stalls with a single cause. Ratios are None without anything to count.

    Source: GPA section VI-C; the definition of a single node as its code counts (reference measurements, two classes).
    """

    before_ratio: float | None  # the paper's node coverage of the dependency graph before pruning
    # after this blamer's pruning. A node (a sampled instruction or a def of one) is single when at most one of its sources is a memory instruction
    # other than shared memory and at most one is anything else.
    after_ratio: float | None
    nodes: int  # nodes of the graph
    # share of long-scoreboard, short-scoreboard and wait samples that have exactly one group or producer; of a wait for several, the least share that
    # can
    group_ratio: float | None
    group_samples: int  # those samples
    explained_ratio: float | None  # share of long- and short-scoreboard samples with a cause


class WaitCheck(Struct, frozen=True, kw_only=True):
    """``wait`` per instruction against the model share of issues × (predecessor's stall count − 1): a check of decoding and control flow."""

    # Pearson's, over the instructions with a known predecessor; None with fewer than three or no spread
    correlation: float | None
    measured_samples: int  # ``wait`` samples
    predicted_samples: float  # the model's
    rows: int  # instructions compared


class KernelBlame(Struct, frozen=True, kw_only=True):
    """A kernel's samples, moved to their causes."""

    blamer: str  # name of the blamer, e.g. ``scoreboard``.
    edges: BlameEdges  # who is blamed for what
    unattributed: Unattributed  # samples without a cause
    issue_counts: IssueCounts  # how often each row issued
    coverage: SingleDependencyCoverage  # single-dependency coverage
    wait_check: WaitCheck | None  # None without ``wait`` samples or without instructions
    problems: tuple[Problem, ...] = ()  # work bounds met, functions left out
