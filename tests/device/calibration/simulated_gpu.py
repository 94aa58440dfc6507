"""A GPU that takes exactly the time its rates say: what calibration reads off it must be those rates."""

import re
from dataclasses import dataclass, field

from gpa_lsp.execution.calibration.benchmark_sources import GpuFacts, Timing

SM_HZ = 1.5e9
LAUNCH_SECONDS = 5e-6
FACTS = GpuFacts(
    name="Simulated GPU",
    compute_capability=(8, 6),
    sm_count=80,
    l2_bytes=4 << 20,
    free_bytes=8 << 30,
    memory_clock_hz=9.5e9,
    driver_version="13.0",
)
L1_BYTES = 100 << 10
"""Of one SM: what a benchmark can keep in its cache."""

WORK_PER_SM_CYCLE = {
    "fma.rn.f64": 4,
    "fma.rn.f32": 256,
    "fma.rn.f16x2": 256,
    "mad.lo": 128,
    "ex2.approx": 16,
    "mma.sync": 1024,
}
"""Operations per SM and cycle by the instruction in the source."""

BYTES_PER_S = {"shared": 128 * 80 * SM_HZ, "L1": 120 * 80 * SM_HZ, "L2": 2.0e12, "DRAM": 0.7e12}


@dataclass
class SimulatedGpu:
    """Compiling "for" it only wraps the source, so that a kernel's work can be read off it."""

    facts: GpuFacts = FACTS
    timer_ticks: bool = True
    slow_runs: tuple[int, ...] = ()
    runs: int = 0
    sources: list[str] = field(default_factory=list)
    allocated: list[int] = field(default_factory=list)

    def load(self, image: bytes) -> int:
        self.sources.append(image.decode())
        return len(self.sources) - 1

    def count_resident_blocks(self, kernel: int, threads: int) -> int:
        return 1536 // threads

    def allocate(self, size_bytes: int) -> int:
        self.allocated.append(size_bytes)
        return 1 << 32

    def run(self, kernel: int, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> Timing:
        source = self.sources[kernel]
        seconds = self._time(source, blocks, threads, arguments, turns)
        self.runs += 1
        if self.runs in self.slow_runs:
            seconds *= 2
        ticks = seconds if self.timer_ticks else 0.0
        return Timing(seconds=seconds + LAUNCH_SECONDS, sm_cycles=int(seconds * SM_HZ), block_seconds=ticks)

    def _time(self, source: str, blocks: int, threads: int, arguments: tuple[int, ...], turns: int) -> float:
        warps = blocks * threads // 32
        loop = source[source.index("for (int iteration") :]
        steps = int(re.search(r"step < (\d+)", loop)[1])  # type: ignore[index]
        if len(arguments) == 1:
            name = next(name for name in WORK_PER_SM_CYCLE if name in loop)
            per_warp = {"fma.rn.f64": 64, "fma.rn.f32": 64, "fma.rn.f16x2": 128, "mad.lo": 64, "ex2.approx": 32}
            shape = re.search(r"m(\d+)n(\d+)k(\d+)", loop)
            work = 2 * int(shape[1]) * int(shape[2]) * int(shape[3]) if shape else per_warp[name]
            instructions = warps * turns * steps * loop.count('asm volatile("' + name)
            return instructions * work / (WORK_PER_SM_CYCLE[name] * self.facts.sm_count * SM_HZ)
        moved = blocks * threads * 16 * steps * turns
        return moved / BYTES_PER_S[self._find_level(source, arguments[1] * 16)]

    def _find_level(self, source: str, working_set: int) -> str:
        if "ld.volatile.shared" in source:
            return "shared"
        if "ld.global.ca" in source:
            return "L1" if working_set <= L1_BYTES else "L2"
        return "L2" if working_set <= 0.8 * self.facts.l2_bytes else "DRAM"


def compile_nothing(source: str) -> bytes:
    return source.encode()
