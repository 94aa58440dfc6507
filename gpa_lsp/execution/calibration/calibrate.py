"""Measures all roofs of a GPU (:func:`calibrate_attached`), or compiles what would be measured (:func:`plan_calibration`)."""

import ctypes
import datetime
import struct
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from msgspec import Struct

from gpa_lsp import __version__
from gpa_lsp.execution.calibration.benchmark_sources import (
    BLOCK_THREADS,
    WARP_THREADS,
    ArithmeticBenchmark,
    GpuFacts,
    MemoryBenchmark,
    Rate,
    Skipped,
    SweepPoint,
    Timing,
    list_arithmetic_benchmarks,
    list_common_sets,
    list_l1_sets,
    make_common_benchmark,
    make_l1_benchmark,
    make_shared_benchmark,
)
from gpa_lsp.execution.compiler.model import name_target
from gpa_lsp.execution.compiler.nvrtc_processes import PROCESSES, TOOL
from gpa_lsp.execution.compiler.nvrtc_worker import NvrtcJob
from gpa_lsp.foundation.errors import ToolError, UnknownArchitectureError
from gpa_lsp.foundation.numbers import format_bytes
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.device.cuda_driver import call_driver, decode_name, open_device, read_attribute
from gpa_lsp.gpu.device.model import ClockDomain, EmpiricalBandwidth, EmpiricalPeak, EmpiricalRoofs, MemoryLevel

_NEED = "measuring ceilings"
_INSTALL = "run it on a computer with an NVIDIA GPU, its driver and gpa-lsp[cuda], and copy the file that it writes"
_NAME_BYTES = 256
# Cycles and nanoseconds of block 0, two spare words, and the place of the stores that never happen
_OUT_BYTES = (4 + 1024) * 8


class Gpu(Protocol):
    """Operations on a GPU that measuring needs."""

    @property
    def facts(self) -> GpuFacts:
        """Properties of the GPU."""
        ...

    def load(self, image: bytes) -> int:
        """Load a cubin with a kernel ``benchmark``; the answer names it to :meth:`run`."""
        ...

    def count_resident_blocks(self, kernel: int, threads: int) -> int:
        """Blocks of this size that one SM holds."""
        ...

    def run(self, kernel: int, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> Timing:
        """Run once and wait; *arguments*: a 32-bit seed, or 64-bit words, between the output and the number of turns."""
        ...

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory, which stays allocated until the GPU is closed."""
        ...


class CudaGpu:
    """A GPU through ``cuda.bindings.driver``.

    Args:
        index: which, as the driver counts them.
        driver: the driver's bindings; None imports them. Tests give a scripted one.

    Raises:
        MissingToolError: no bindings, no driver, or no such GPU; says which.
        ToolError: the driver refuses.
    """

    def __init__(self, index: int = 0, driver: Any = None) -> None:
        self._driver, self._device = open_device(needed_for=_NEED, install=_INSTALL, index=index, driver=driver)
        self._context = self._call("cuDevicePrimaryCtxRetain", self._device)
        self._call("cuCtxSetCurrent", self._context)
        self._addresses: list[Any] = []
        self._modules: list[Any] = []
        self._functions: list[Any] = []
        self._events = (self._call("cuEventCreate", 0), self._call("cuEventCreate", 0))
        self._out = self._keep(_OUT_BYTES)
        self._facts = self._read_facts()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def facts(self) -> GpuFacts:
        """Properties of the GPU."""
        return self._facts

    def load(self, image: bytes) -> int:
        """Load a cubin; the answer names its kernel."""
        module = self._call("cuModuleLoadData", image)
        self._modules.append(module)
        self._functions.append(self._call("cuModuleGetFunction", module, b"benchmark"))
        return len(self._functions) - 1

    def count_resident_blocks(self, kernel: int, threads: int) -> int:
        """Blocks of this size that one SM holds."""
        return int(self._call("cuOccupancyMaxActiveBlocksPerMultiprocessor", self._functions[kernel], threads, 0))

    def run(self, kernel: int, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> Timing:
        """Run once and wait."""
        # One argument is the seed of an arithmetic benchmark; two are address and size of a working set.
        types: tuple[Any, ...] = (ctypes.c_uint32,) if len(arguments) == 1 else (ctypes.c_uint64,) * len(arguments)
        values = (int(self._out), *arguments, turns)
        kinds = (ctypes.c_uint64, *types, ctypes.c_int32)
        begin, end = self._events
        self._call("cuMemsetD8", self._out, 0, _OUT_BYTES)
        self._call("cuEventRecord", begin, 0)
        self._call("cuLaunchKernel", self._functions[kernel], blocks, 1, 1, threads, 1, 1, 0, 0, (values, kinds), 0)
        self._call("cuEventRecord", end, 0)
        self._call("cuEventSynchronize", end)
        milliseconds = float(self._call("cuEventElapsedTime", begin, end))
        raw = bytearray(16)
        self._call("cuMemcpyDtoH", raw, self._out, len(raw))
        cycles, nanoseconds = struct.unpack("<QQ", raw)
        return Timing(seconds=milliseconds / 1e3, sm_cycles=cycles, block_seconds=nanoseconds / 1e9)

    def allocate(self, size_bytes: int) -> int:
        """The address of fresh memory, filled with zeros."""
        address = self._keep(size_bytes)
        self._call("cuMemsetD8", address, 0, size_bytes)
        return int(address)

    def close(self) -> None:
        """Release everything."""
        for event in self._events:
            self._driver.cuEventDestroy(event)
        for module in self._modules:
            self._driver.cuModuleUnload(module)
        for address in self._addresses:
            self._driver.cuMemFree(address)
        self._driver.cuDevicePrimaryCtxRelease(self._device)

    def _keep(self, size_bytes: int) -> Any:
        address = self._call("cuMemAlloc", size_bytes)
        self._addresses.append(address)
        return address

    def _read_facts(self) -> GpuFacts:
        name = decode_name(self._call("cuDeviceGetName", _NAME_BYTES, self._device))
        free, _ = self._call("cuMemGetInfo")
        version = int(self._call("cuDriverGetVersion"))
        memory_khz = read_attribute(self._driver, self._device, "memory_clock_rate")
        return GpuFacts(
            name=name,
            compute_capability=(
                self._attribute("compute_capability_major"),
                self._attribute("compute_capability_minor"),
            ),
            sm_count=self._attribute("multiprocessor_count"),
            l2_bytes=self._attribute("l2_cache_size"),
            free_bytes=int(free),
            memory_clock_hz=memory_khz * 1e3 if memory_khz else None,
            driver_version=f"{version // 1000}.{version % 1000 // 10}",
        )

    def _attribute(self, name: str) -> int:
        found = read_attribute(self._driver, self._device, name)
        if found is None:
            raise ToolError("the CUDA driver", f"does not report the {name.replace('_', ' ')} of this GPU")
        return found

    def _call(self, name: str, *arguments: Any) -> Any:
        return call_driver(self._driver, name, *arguments)


ARITHMETIC_THREADS = 256
_FIRST_TURNS = 16
_MOST_TURNS = 1 << 26

Compile = Callable[[str], bytes]


class Patience(Struct, frozen=True, kw_only=True):
    """Duration of measurements."""

    # a run shorter than this is repeated with more turns: launching takes some microseconds
    least_seconds: float = 0.02
    repetitions: int = 7  # runs that count; one before them warms the caches and the clocks


def measure_arithmetic(gpu: Gpu, benchmark: ArithmeticBenchmark, compile_source: Compile, patience: Patience) -> Rate:
    """Operations per second of one type, by all SMs together.

    Raises:
        ToolError: the benchmark does not compile or run.
    """
    kernel = gpu.load(compile_source(benchmark.source))
    blocks = gpu.facts.sm_count * max(1, gpu.count_resident_blocks(kernel, ARITHMETIC_THREADS))
    warps = blocks * ARITHMETIC_THREADS // WARP_THREADS
    per_turn = warps * benchmark.instructions_per_turn * benchmark.ops_per_instruction
    run = partial(gpu.run, kernel, blocks, ARITHMETIC_THREADS, (1,))
    return _measure(run, per_turn, patience, benchmark.kind.value)


def measure_shared(gpu: Gpu, benchmark: MemoryBenchmark, compile_source: Compile, patience: Patience) -> Rate:
    """Bytes per second that all SMs read from their shared memory."""
    kernel = gpu.load(compile_source(benchmark.source))
    blocks = gpu.facts.sm_count * max(1, gpu.count_resident_blocks(kernel, BLOCK_THREADS))
    run = partial(gpu.run, kernel, blocks, BLOCK_THREADS, (0, 0))
    return _measure(run, blocks * _count_bytes(benchmark), patience, benchmark.level.value)


def sweep(
    gpu: Gpu, benchmark: MemoryBenchmark, compile_source: Compile, sets: Sequence[int], patience: Patience
) -> tuple[SweepPoint, ...]:
    """Bytes per second at each working set: of one SM for L1, with one block on each, else of the whole GPU."""
    kernel = gpu.load(compile_source(benchmark.source))
    is_l1 = benchmark.level is MemoryLevel.L1
    blocks = gpu.facts.sm_count * (1 if is_l1 else max(1, gpu.count_resident_blocks(kernel, BLOCK_THREADS)))
    address = gpu.allocate(max(sets) * (blocks if is_l1 else 1))
    points = []
    for size in sets:
        arguments = (address, size // benchmark.bytes_per_thread_and_read)
        rate = _measure(
            partial(gpu.run, kernel, blocks, BLOCK_THREADS, arguments),
            blocks * _count_bytes(benchmark),
            patience,
            f"{format_bytes(size)} of {'L1' if is_l1 else 'memory'}",
        )
        points.append(SweepPoint(working_set_bytes=size, rate=rate))
    return tuple(points)


def choose_plateau(points: Sequence[SweepPoint], smallest_bytes: float, largest_bytes: float) -> SweepPoint | None:
    """Fastest working set in a range, in which a level is filled and does not spill; None if the range is empty."""
    inside = [point for point in points if smallest_bytes <= point.working_set_bytes <= largest_bytes]
    return max(inside, key=lambda point: point.rate.per_s, default=None)


def _count_bytes(benchmark: MemoryBenchmark) -> int:
    """Bytes that one block reads in one turn."""
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
    """Number of turns that takes long enough."""
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


# Working sets that measure L1, of its largest size: a part of it is shared memory, and sets that just fit lose lines to each other
_L1_FILL_RATIO = (0.1, 0.75)

# Of the size the driver states. Where L2 is in two halves, each holds a copy of what its own SMs read (compute capability 8.0 and 9.0).
_L2_FILL_RATIO = (0.2, 0.5)

# Working sets that measure DRAM, of L2's size: at most an eighth of the reads can still hit, and where L2 drops what is oldest, none does
_DRAM_FILL_RATIO = 8.0

_UNKNOWN_L1_BYTES = 128 << 10

_QUICK = Patience(least_seconds=0.005, repetitions=3)

Tell = Callable[[str], None]

_LIMIT_S = 60.0
_LONGEST_LOG = 2000


class Calibration(Struct, frozen=True, kw_only=True):
    """Result of a calibration."""

    roofs: EmpiricalRoofs  # for a file
    facts: GpuFacts  # of the GPU
    l1_sweep: tuple[SweepPoint, ...]  # rates by working set of one SM; empty where it could not be measured
    common_sweep: tuple[SweepPoint, ...]  # rates by working set of the whole GPU; empty where it could not be measured
    skipped: tuple[Skipped, ...]  # types and levels without a figure, and why


class Plan(Struct, frozen=True, kw_only=True):
    """Benchmarks for a compute capability."""

    arithmetic: tuple[ArithmeticBenchmark, ...]  # a benchmark per type of operation
    memory: tuple[MemoryBenchmark, ...]  # a benchmark for shared memory, one for L1, and one for L2 and DRAM
    skipped: tuple[Skipped, ...]  # types without a benchmark, and why
    compiler_version: str  # of NVRTC, which compiled all of them


def plan_calibration(compute_capability: tuple[int, int]) -> Plan:
    """Compile every benchmark and run none; needs no GPU.

    Raises:
        MissingToolError: NVRTC or its Python bindings are not installed.
        ToolError: NVRTC refuses one.
    """
    version = find_compiler_version()
    arithmetic, skipped = list_arithmetic_benchmarks(compute_capability)
    memory = (make_shared_benchmark(), make_l1_benchmark(), make_common_benchmark())
    for source in (*(one.source for one in arithmetic), *(one.source for one in memory)):
        compile_source(source, compute_capability)
    return Plan(arithmetic=tuple(arithmetic), memory=memory, skipped=tuple(skipped), compiler_version=version)


def calibrate_attached(device: int, *, is_quick: bool = False, tell: Tell | None = None) -> Calibration:
    """Measure a GPU of this computer; see :func:`calibrate`.

    Args:
        device: which, as the driver counts them.
        is_quick: shorter and fewer runs: a first impression.
        tell: told what is measured next.

    Raises:
        MissingToolError: there is no driver, or no NVRTC.
        ToolError: the GPU cannot be opened, or not one benchmark could be run.
    """
    with CudaGpu(device) as gpu:
        compile_for = partial(compile_source, compute_capability=gpu.facts.compute_capability)
        return calibrate(gpu, compile_for, patience=_QUICK if is_quick else None, tell=tell)


def calibrate(
    gpu: Gpu, compile_source: Compile, *, patience: Patience | None = None, tell: Tell | None = None
) -> Calibration:
    """Measure peaks by type and bandwidths by level.

    A benchmark that fails costs its own figure only. What comes out are the rates at the clocks the GPU chose while it was measured, which the
    SM's own counter tells; nothing is locked.

    Args:
        patience: how long to measure; None for the usual.

    Raises:
        ToolError: not one benchmark could be run; carries the first reason.
    """
    work = _Work(gpu, compile_source, patience or Patience(), tell or (lambda text: None))
    peaks = work.measure_peaks()
    bandwidths, l1_sweep, common_sweep = work.measure_bandwidths()
    if not peaks and not bandwidths:
        raise ToolError(
            "calibration", f"no benchmark could be run: {work.failures[0] if work.failures else 'none is known'}"
        )
    facts = gpu.facts
    return Calibration(
        roofs=EmpiricalRoofs(
            device_name=facts.name,
            compute_capability=facts.compute_capability,
            sm_count=facts.sm_count,
            measured_on=datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            tool_version=__version__,
            sm_hz=work.find_clock(),
            l2_hz=None,
            dram_hz=facts.memory_clock_hz,
            peaks=tuple(peaks),
            bandwidths=tuple(bandwidths),
        ),
        facts=facts,
        l1_sweep=l1_sweep,
        common_sweep=common_sweep,
        skipped=tuple(work.skipped),
    )


class _Work:
    """State of one calibration."""

    def __init__(self, gpu: Gpu, compile_source: Compile, patience: Patience, tell: Tell) -> None:
        self._gpu = gpu
        self._compile = compile_source
        self._patience = patience
        self._tell = tell
        self._clocks: list[float] = []
        self.skipped: list[Skipped] = []
        self.failures: list[str] = []

    def measure_peaks(self) -> list[EmpiricalPeak]:
        """Every type there is a benchmark for."""
        benchmarks, skipped = list_arithmetic_benchmarks(self._gpu.facts.compute_capability)
        self.skipped += skipped
        peaks = []
        for benchmark in benchmarks:
            self._tell(f"{benchmark.kind.value}: {benchmark.instruction}")
            try:
                rate = measure_arithmetic(self._gpu, benchmark, self._compile, self._patience)
            except ToolError as error:
                self._fail(error, benchmark.kind.value)
                continue
            self._note_clock(rate)
            peaks.append(
                EmpiricalPeak(
                    kind=benchmark.kind,
                    ops_per_s=rate.per_s,
                    ops_per_cycle=rate.per_cycle,
                    spread_ratio=_measure_spread(rate),
                )
            )
        return peaks

    def measure_bandwidths(self) -> tuple[list[EmpiricalBandwidth], tuple[SweepPoint, ...], tuple[SweepPoint, ...]]:
        """Every level, and the two sweeps."""
        facts = self._gpu.facts
        found = self._measure_shared()
        l1_bytes = _find_l1_size(facts)
        l1_sweep = self._sweep(make_l1_benchmark(), list_l1_sets(l1_bytes), MemoryLevel.L1)
        l1_range = (_L1_FILL_RATIO[0] * l1_bytes, _L1_FILL_RATIO[1] * l1_bytes)
        found += self._choose(MemoryLevel.L1, l1_sweep, l1_range)
        common_sets = list_common_sets(facts.l2_bytes, facts.free_bytes)
        common_sweep = self._sweep(make_common_benchmark(), common_sets, MemoryLevel.L2, MemoryLevel.DRAM)
        l2_range = (_L2_FILL_RATIO[0] * facts.l2_bytes, _L2_FILL_RATIO[1] * facts.l2_bytes)
        found += self._choose(MemoryLevel.L2, common_sweep, l2_range)
        found += self._choose(MemoryLevel.DRAM, common_sweep, (_DRAM_FILL_RATIO * facts.l2_bytes, float("inf")))
        return found, l1_sweep, common_sweep

    def find_clock(self) -> float | None:
        """The SMs' clock in Hz, the median over benchmarks; None if it was not measured."""
        return sorted(self._clocks)[len(self._clocks) // 2] if self._clocks else None

    def _measure_shared(self) -> list[EmpiricalBandwidth]:
        self._tell("shared memory")
        try:
            rate = measure_shared(self._gpu, make_shared_benchmark(), self._compile, self._patience)
        except ToolError as error:
            self._fail(error, MemoryLevel.SHARED.value)
            return []
        self._note_clock(rate)
        return [self._make_bandwidth(MemoryLevel.SHARED, rate, None)]

    def _sweep(self, benchmark: MemoryBenchmark, sets: Sequence[int], *levels: MemoryLevel) -> tuple[SweepPoint, ...]:
        names = [level.value for level in levels]
        self._tell(f"{' and '.join(names)}: {len(sets)} working sets")
        try:
            return sweep(self._gpu, benchmark, self._compile, sets, self._patience)
        except ToolError as error:
            self._fail(error, *names)
            return ()

    def _choose(
        self, level: MemoryLevel, sweep: Sequence[SweepPoint], working_sets: tuple[float, float]
    ) -> list[EmpiricalBandwidth]:
        best = choose_plateau(sweep, *working_sets)
        if best is None:
            if sweep:
                why = "no working set of the sweep has its size: too little memory is free"
                self.skipped.append(Skipped(what=level.value, why=why))
            return []
        return [self._make_bandwidth(level, best.rate, best.working_set_bytes)]

    def _make_bandwidth(self, level: MemoryLevel, rate: Rate, working_set_bytes: int | None) -> EmpiricalBandwidth:
        per_cycle, clock = _count_per_cycle(level, rate, self._gpu.facts)
        return EmpiricalBandwidth(
            level=level,
            bytes_per_s=rate.per_s,
            bytes_per_cycle=per_cycle,
            clock=clock,
            working_set_bytes=working_set_bytes,
            spread_ratio=_measure_spread(rate),
        )

    def _fail(self, error: ToolError, *whats: str) -> None:
        self.failures.append(str(error))
        self.skipped += [Skipped(what=what, why=str(error)) for what in whats]

    def _note_clock(self, rate: Rate) -> None:
        if rate.sm_hz is not None:
            self._clocks.append(rate.sm_hz)


def _count_per_cycle(level: MemoryLevel, rate: Rate, facts: GpuFacts) -> tuple[float | None, ClockDomain | None]:
    """Bytes per cycle of the level's clock, and that clock; None for L2, whose clock cannot be read."""
    if level in (MemoryLevel.SHARED, MemoryLevel.L1) and rate.per_cycle is not None:
        return rate.per_cycle, ClockDomain.SM
    if level is MemoryLevel.DRAM and facts.memory_clock_hz is not None:
        return rate.per_s / facts.memory_clock_hz, ClockDomain.DRAM
    return None, None


def _find_l1_size(facts: GpuFacts) -> int:
    try:
        return find_architecture(facts.compute_capability).caches.unified_data_cache_bytes.value
    except UnknownArchitectureError:
        return _UNKNOWN_L1_BYTES


def _measure_spread(rate: Rate) -> float | None:
    return (rate.per_s - rate.low_per_s) / rate.per_s if rate.repetitions > 1 else None


def compile_source(source: str, compute_capability: tuple[int, int]) -> bytes:
    """A cubin for one compute capability.

    Raises:
        MissingToolError: NVRTC or its Python bindings are not installed.
        ToolError: NVRTC refuses; carries its log.
    """
    target = name_target(compute_capability)
    options = (f"--gpu-architecture={target}",)
    answer = PROCESSES.compile(NvrtcJob(source=source.encode(), name="benchmark.cu", options=options, limit_s=_LIMIT_S))
    if answer.cubin is None:
        log = answer.log.rstrip("\0 \n")[:_LONGEST_LOG]
        raise ToolError(TOOL, f"does not compile a benchmark for {target}: {log or answer.error}", output=log)
    return answer.cubin


def find_compiler_version() -> str:
    """NVRTC's version, e.g. ``13.0``.

    Raises:
        MissingToolError: it is not installed.
    """
    return ".".join(map(str, PROCESSES.greet().version or ()))
