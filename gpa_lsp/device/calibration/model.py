"""What is measured, on what, and what came out: benchmarks, the GPU they ran on, and the rates they reached."""

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.device.model import MemoryLevel, OperationKind


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuFacts:
    """What has to be known of a GPU to measure it.

    Attributes:
        name: the device's.
        compute_capability: (major, minor).
        sm_count: streaming multiprocessors.
        l2_bytes: size of its L2.
        free_bytes: memory that can be allocated.
        memory_clock_hz: as the driver states it; None when it does not.
        driver_version: CUDA version the driver supports, e.g. ``13.0``.
    """

    name: str
    compute_capability: tuple[int, int]
    sm_count: int
    l2_bytes: int
    free_bytes: int
    memory_clock_hz: float | None
    driver_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArithmeticBenchmark:
    """A loop of one instruction in independent chains.

    Attributes:
        kind: the type of operation.
        instruction: what the loop is of, e.g. ``FFMA``: the opcode a listing of the compiled kernel must be full of.
        source: CUDA C++.
        instructions_per_turn: of this opcode, per warp and turn of the loop.
        ops_per_instruction: operations of one warp instruction, a multiply-add counting two.
    """

    kind: OperationKind
    instruction: str
    source: str
    instructions_per_turn: int
    ops_per_instruction: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryBenchmark:
    """Reads of a working set, again and again.

    Attributes:
        level: what it is meant to measure.
        instruction: opcode of the reads.
        source: CUDA C++.
        bytes_per_thread_and_read: width of one read.
        reads_per_turn: of each thread in one turn of the loop.
    """

    level: MemoryLevel
    instruction: str
    source: str
    bytes_per_thread_and_read: int
    reads_per_turn: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One run of a benchmark.

    Attributes:
        seconds: by events on the stream.
        sm_cycles: that block 0 counted from its start to its end.
        block_seconds: the same by the GPU's global timer; 0 when it did not advance.
    """

    seconds: float
    sm_cycles: int
    block_seconds: float

    @property
    def sm_hz(self) -> float | None:
        """The clock the SM ran at; None when the timer is too coarse to tell."""
        return self.sm_cycles / self.block_seconds if self.block_seconds > 0 and self.sm_cycles > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """What a benchmark reached over its repetitions.

    Attributes:
        per_s: the best of them: a roof is what can be reached.
        low_per_s: the worst of them.
        per_cycle: the best per SM cycle, of the whole GPU; None when the clock was not measured.
        sm_hz: the clock of the best; None when it was not measured.
        repetitions: how many.
    """

    per_s: float
    low_per_s: float
    per_cycle: float | None
    sm_hz: float | None
    repetitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One working set of a sweep.

    Attributes:
        working_set_bytes: of one SM for L1, of the whole GPU for L2 and DRAM.
        rate: bytes per second.
    """

    working_set_bytes: int
    rate: Rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A type or level that has no benchmark on this GPU, and why."""

    what: str
    why: str
