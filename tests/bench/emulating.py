"""Warp instructions a second of the emulator, plain, with checks of shared memory, and traced, beside what simulators publish.

Usage: ``python -m tests.bench.emulating [--times N] [--kernel NAME]``; needs NVRTC. Rates are by processor time of this one process: other work
on the machine does not count.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Emulation, Trace, TraceSettings
from gpa_lsp.execution.launches.launch import Argument, ArrayArgument, Generator, LaunchDescription, ScalarArgument
from tests.emulator.kernels.compiling import compile_ptx

_SOURCES = Path(__file__).parents[1] / "emulator" / "kernels" / "sources"
_BUDGET = Budget(seconds=120.0, memory_bytes=4 << 30)

PUBLISHED = (
    ("GPGPU-Sim 3.x", 3_000),
    ("Accel-Sim, traces", 12_500),
    ("Accel-Sim, execution", 6_000),
    ("MGPUSim", 28_000),
    ("Multi2Sim", 800),
)
"""Warp instructions a second of cycle simulators. Source: Accel-Sim (ISCA 2020), table I; they also
say how long it takes, which an emulator does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A kernel and its launch."""

    source: str
    launch: LaunchDescription


def floats(name: str, count: int) -> ArrayArgument:
    """An array of random numbers."""
    return ArrayArgument(name=name, type=ScalarType.F32, count=count, generator=Generator.UNIFORM, high=10.0)


def integers(name: str, count: int) -> ArrayArgument:
    """An array of random integers."""
    return ArrayArgument(name=name, type=ScalarType.S32, count=count, generator=Generator.UNIFORM, high=10.0)


def number(name: str, value: float, kind: ScalarType = ScalarType.S32) -> ScalarArgument:
    """A scalar."""
    return ScalarArgument(name=name, type=kind, value=value)


def build_launch(kernel: str, grid: tuple[int, int], block: tuple[int, int], *arguments: Argument) -> LaunchDescription:
    """A launch in two dimensions."""
    return LaunchDescription(kernel=kernel, grid=(*grid, 1), block=(*block, 1), arguments=arguments)


def list_works() -> tuple[Work, ...]:
    """Launches to measure, of about a million threads or multiplications each."""
    columns, rows, size = 200_000, 20, 512
    heat = 1024
    return (
        Work(
            source="pathfinder.cu",
            launch=build_launch(
                "pathfinder",
                (-(-columns // (64 - 2 * rows)), 1),
                (64, 1),
                integers("wall", columns * rows),
                integers("first_costs", columns),
                integers("costs", columns),
                number("columns", columns),
                number("rows", rows),
            ),
        ),
        Work(
            source="hotspot.cu",
            launch=build_launch(
                "hotspot",
                (-(-heat // 12), -(-heat // 12)),
                (16, 16),
                floats("power", heat * heat),
                floats("heat", heat * heat),
                floats("out", heat * heat),
                number("size", heat),
                number("share", 0.125, ScalarType.F32),
                number("ambient", 80.0, ScalarType.F32),
            ),
        ),
        Work(
            source="matmul_tiled.cu",
            launch=build_launch(
                "matmul_tiled<float>",
                (size // 8, size // 8),
                (8, 8),
                floats("a", size * size),
                floats("b", size * size),
                floats("c", size * size),
                number("size", size),
            ),
        ),
    )


class Sink:
    """Takes traces and forgets them, as an analysis of its own does."""

    def __init__(self) -> None:
        self.rows = 0

    def add(self, piece: Trace) -> None:
        """Count the rows."""
        self.rows += len(piece.accesses) + len(piece.branches)


def time_emulation(run: Callable[[], Emulation], times: int) -> tuple[float, Emulation]:
    """Least processor seconds of several runs."""
    least, found = float("inf"), None
    for _ in range(times):
        begin = time.process_time()
        found = run()
        least = min(least, time.process_time() - begin)
    assert found is not None
    return least, found


def measure(module: PtxModule, launch: LaunchDescription, times: int) -> None:
    """Print a row of one kernel."""
    plain, emulation = time_emulation(lambda: emulate(module, launch, budget=_BUDGET, check_races=False), times)
    checked, _ = time_emulation(lambda: emulate(module, launch, budget=_BUDGET), times)
    traced, _ = time_emulation(
        lambda: emulate(module, launch, budget=_BUDGET, check_races=False, trace=TraceSettings(), sink=Sink()), times
    )
    assert emulation.is_complete, emulation.faults
    millions = emulation.warp_instructions / 1e6
    rates = "".join(f"{millions / seconds:10.1f}" for seconds in (plain, checked, traced))
    print(f"{launch.kernel:22} {millions:9.2f} {plain:9.3f} {rates} {emulation.peak_bytes / 2**20:9.0f}")


def main() -> None:
    """Print one row per kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--kernel", default="")
    options = parser.parse_args()
    print("                        million     plain  million warp instructions/s      peak")
    print("kernel                     warp   seconds     plain   checked    traced       MiB")
    for work in list_works():
        if options.kernel in work.launch.kernel:
            module = parse_ptx(compile_ptx(_SOURCES / work.source, 80), name=work.source)
            measure(module, work.launch, options.times)
    print("\nPublished rates of cycle simulators, warp instructions/s:")
    for name, rate in PUBLISHED:
        print(f"{name:22} {rate:12,}")


if __name__ == "__main__":
    main()
