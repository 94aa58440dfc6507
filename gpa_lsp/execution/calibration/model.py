"""Benchmarks, the GPU they run on, and the rates they reach."""

from msgspec import Struct

from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind


class GpuFacts(Struct, frozen=True, kw_only=True):
    """Properties of a GPU to be measured."""

    name: str  # the device's
    compute_capability: tuple[int, int]  # (major, minor)
    sm_count: int  # streaming multiprocessors
    l2_bytes: int  # size of its L2
    free_bytes: int  # memory that can be allocated
    memory_clock_hz: float | None  # as the driver states it; None when it does not
    driver_version: str  # CUDA version the driver supports, e.g. ``13.0``.


class ArithmeticBenchmark(Struct, frozen=True, kw_only=True):
    """A loop of one instruction in independent chains."""

    kind: OperationKind  # the type of operation
    instruction: str  # what the loop is of, e.g. ``FFMA``: the opcode a listing of the compiled kernel must be full of.
    source: str  # CUDA C++
    instructions_per_turn: int  # of this opcode, per warp and turn of the loop
    ops_per_instruction: int  # operations of one warp instruction, a multiply-add counting two


class MemoryBenchmark(Struct, frozen=True, kw_only=True):
    """Reads of a working set, again and again."""

    level: MemoryLevel  # what it is meant to measure
    instruction: str  # opcode of the reads
    source: str  # CUDA C++
    bytes_per_thread_and_read: int  # width of one read
    reads_per_turn: int  # of each thread in one turn of the loop


class Timing(Struct, frozen=True, kw_only=True):
    """One run of a benchmark."""

    seconds: float  # by events on the stream
    sm_cycles: int  # that block 0 counted from its start to its end
    block_seconds: float  # the same by the GPU's global timer; 0 when it did not advance

    @property
    def sm_hz(self) -> float | None:
        """Clock of the SM; None if the timer is too coarse."""
        return self.sm_cycles / self.block_seconds if self.block_seconds > 0 and self.sm_cycles > 0 else None


class Rate(Struct, frozen=True, kw_only=True):
    """Rate of a benchmark over its repetitions."""

    per_s: float  # the best of them: a roof is what can be reached
    low_per_s: float  # the worst of them
    per_cycle: float | None  # the best per SM cycle, of the whole GPU; None when the clock was not measured
    sm_hz: float | None  # the clock of the best; None when it was not measured
    repetitions: int  # how many


class SweepPoint(Struct, frozen=True, kw_only=True):
    """One working set of a sweep."""

    working_set_bytes: int  # of one SM for L1, of the whole GPU for L2 and DRAM
    rate: Rate  # bytes per second


class Skipped(Struct, frozen=True, kw_only=True):
    """A type or level that has no benchmark on this GPU, and why."""

    what: str
    why: str
