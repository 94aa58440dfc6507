"""Run benchmarks until their times mean something, and make rates of them."""

from collections.abc import Callable, Sequence

from gpa_lsp.basis.errors import ToolError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_bytes
from gpa_lsp.device.calibration.arithmetic_sources import WARP_THREADS
from gpa_lsp.device.calibration.gpu import Gpu
from gpa_lsp.device.calibration.memory_sources import BLOCK_THREADS
from gpa_lsp.device.calibration.model import ArithmeticBenchmark, MemoryBenchmark, Rate, SweepPoint, Timing

ARITHMETIC_THREADS = 256
_FIRST_TURNS = 16
_MOST_TURNS = 1 << 26

Compile = Callable[[str], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to measure.

    Attributes:
        least_seconds: a run shorter than this is repeated with more turns: launching takes some microseconds.
        repetitions: runs that count; one before them warms the caches and the clocks.
    """

    least_seconds: float = 0.02
    repetitions: int = 7


def measure_arithmetic(gpu: Gpu, benchmark: ArithmeticBenchmark, compile_source: Compile, patience: Patience) -> Rate:
    """Operations per second of one type, by all SMs together.

    Raises:
        ToolError: the benchmark does not compile or run.
    """
    kernel = gpu.load(compile_source(benchmark.source))
    blocks = gpu.facts.sm_count * max(1, gpu.count_resident_blocks(kernel, ARITHMETIC_THREADS))
    warps = blocks * ARITHMETIC_THREADS // WARP_THREADS
    per_turn = warps * benchmark.instructions_per_turn * benchmark.ops_per_instruction

    def run(turns: int) -> Timing:
        return gpu.run(kernel, blocks, ARITHMETIC_THREADS, (1,), turns)

    return _measure(run, per_turn, patience, benchmark.kind.value)


def measure_shared(gpu: Gpu, benchmark: MemoryBenchmark, compile_source: Compile, patience: Patience) -> Rate:
    """Bytes per second that all SMs read from their shared memory."""
    kernel = gpu.load(compile_source(benchmark.source))
    blocks = gpu.facts.sm_count * max(1, gpu.count_resident_blocks(kernel, BLOCK_THREADS))

    def run(turns: int) -> Timing:
        return gpu.run(kernel, blocks, BLOCK_THREADS, (0, 0), turns)

    return _measure(run, blocks * _count_bytes(benchmark), patience, benchmark.level.value)


def sweep_l1(
    gpu: Gpu, benchmark: MemoryBenchmark, compile_source: Compile, sets: Sequence[int], patience: Patience
) -> tuple[SweepPoint, ...]:
    """Bytes per second at each working set of one SM, with one block on each."""
    kernel = gpu.load(compile_source(benchmark.source))
    blocks = gpu.facts.sm_count
    address = gpu.allocate(blocks * max(sets))
    points = []
    for size in sets:
        words = size // benchmark.bytes_per_thread_and_read

        def run(turns: int, words: int = words) -> Timing:
            return gpu.run(kernel, blocks, BLOCK_THREADS, (address, words), turns)

        rate = _measure(
            run, blocks * _count_bytes(benchmark), patience, f"{benchmark.level.value}, {format_bytes(size)}"
        )
        points.append(SweepPoint(working_set_bytes=size, rate=rate))
    return tuple(points)


def sweep_common(
    gpu: Gpu, benchmark: MemoryBenchmark, compile_source: Compile, sets: Sequence[int], patience: Patience
) -> tuple[SweepPoint, ...]:
    """Bytes per second at each working set of the whole GPU."""
    kernel = gpu.load(compile_source(benchmark.source))
    blocks = gpu.facts.sm_count * max(1, gpu.count_resident_blocks(kernel, BLOCK_THREADS))
    address = gpu.allocate(max(sets))
    points = []
    for size in sets:
        words = size // benchmark.bytes_per_thread_and_read

        def run(turns: int, words: int = words) -> Timing:
            return gpu.run(kernel, blocks, BLOCK_THREADS, (address, words), turns)

        rate = _measure(run, blocks * _count_bytes(benchmark), patience, f"{format_bytes(size)} of memory")
        points.append(SweepPoint(working_set_bytes=size, rate=rate))
    return tuple(points)


def choose_plateau(points: Sequence[SweepPoint], smallest_bytes: float, largest_bytes: float) -> SweepPoint | None:
    """The fastest working set in a range: that of a level which is neither too small to be filled nor spills to the next. None without one."""
    inside = [point for point in points if smallest_bytes <= point.working_set_bytes <= largest_bytes]
    return max(inside, key=lambda point: point.rate.per_s, default=None)


def _count_bytes(benchmark: MemoryBenchmark) -> int:
    """Of one block in one turn."""
    return BLOCK_THREADS * benchmark.reads_per_turn * benchmark.bytes_per_thread_and_read


def _measure(run: Callable[[int], Timing], work_per_turn: int, patience: Patience, what: str) -> Rate:
    turns = _find_turns(run, patience, what)
    run(turns)  # warms up
    timings = [run(turns) for _ in range(patience.repetitions)]
    best = min(timings, key=lambda timing: timing.seconds)
    worst = max(timings, key=lambda timing: timing.seconds)
    if best.seconds <= 0:
        raise ToolError(
            "calibration", f"the benchmark of {what} took no time at all; the GPU's clock cannot be trusted"
        )
    work = float(work_per_turn) * turns
    clock = best.sm_hz
    return Rate(
        per_s=work / best.seconds,
        low_per_s=work / worst.seconds,
        per_cycle=None if clock is None else work / best.seconds / clock,
        sm_hz=clock,
        repetitions=patience.repetitions,
    )


def _find_turns(run: Callable[[int], Timing], patience: Patience, what: str) -> int:
    """Turns that take long enough."""
    turns = _FIRST_TURNS
    while turns <= _MOST_TURNS:
        seconds = run(turns).seconds
        if seconds >= patience.least_seconds:
            return turns
        growth = patience.least_seconds / seconds * 1.2 if seconds > 0 else 16.0
        turns = int(turns * min(16.0, max(1.5, growth))) + 1
    raise ToolError(
        "calibration", f"the benchmark of {what} is always too short to be timed; it was not executed as written"
    )
