"""Time from a source to simulated lines, for the fixtures' kernels at their own grids; and warp instructions a second of the
simulated SM, beside what simulators publish.

Usage: ``python -m tests.bench.simulating [--kernel NAME] [--machine GPU] [--times N]``; needs NVRTC or nvcc. Seconds are processor time of this one
process, the least of several runs; the first one of each kernel, which compiles it, is shown apart.
"""

import argparse
import time
from pathlib import Path

from gpa_lsp.execution.simulator.execution.compiled_steps import load_walk
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from gpa_lsp.execution.simulator.warp_walk import BlockStream
from gpa_lsp.foundation.errors import GpaError
from tests.bench.emulating import PUBLISHED
from tests.simulator.sm_notation import ALU, BARRIER, EXIT, LOAD, SHARED, STORE, make_block, make_model, make_program
from tests.simulator.twins import KERNELS, simulate_fixture

_AIM_S = 2.0
_MOST = 10_000_000


def measure_fixture(source: Path, machine: str, times: int) -> tuple[float, float, int] | str:
    """Seconds of the first run and of the quickest one behind it, and instructions simulated; or why it was not."""
    seconds = []
    for _ in range(times + 1):
        begin = time.process_time()
        try:
            found = simulate_fixture(source, machine)
        except GpaError as error:
            return str(error)
        seconds.append(time.process_time() - begin)
        if not found.launches:
            return "; ".join(one.message for one in found.problems)
    return seconds[0], min(seconds[1:]), found.launches[0].simulated.issued


def measure_sm() -> None:
    """Rates of the SM alone."""
    cases = {
        "arithmetic": make_program(*[(ALU, {"stall": 2})] * 60, (EXIT, {"stall": 5})),
        "shared memory": make_program(
            *[(SHARED, {"write": 0}), (ALU, {"wait": 1, "stall": 4}), (BARRIER, {"stall": 6})] * 20,
            (EXIT, {"stall": 5}),
        ),
        "global memory": make_program(
            *[(LOAD, {"write": 0}), (ALU, {"wait": 1, "stall": 4}), (STORE, {"stall": 2})] * 20, (EXIT, {"stall": 5})
        ),
    }
    slowest = dict(PUBLISHED)["Accel-Sim, traces"]
    print("\none SM, warp instructions/s                times Accel-Sim's")
    for name, program in cases.items():
        blocks: list[BlockStream] = [make_block(program, warps=8, first=number << 12) for number in range(240)]
        simulate_sm(program, make_model(), blocks, 6, 1)
        begin = time.process_time()
        run = simulate_sm(program, make_model(), blocks, 6, _MOST)
        rate = run.issued / (time.process_time() - begin)
        print(f"{name:30} {rate:11,.0f} {rate / slowest:10,.0f}")


def main() -> None:
    """Print one row per kernel."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2)
    parser.add_argument("--kernel", default="")
    parser.add_argument("--machine", default="RTX 3080")
    options = parser.parse_args()
    load_walk()
    print("fixture                                first    warm s   instructions")
    for source in sorted((*KERNELS.glob("*/original.cu"), *KERNELS.glob("*/improved.cu"))):
        name = f"{source.parent.name}/{source.stem}"
        if options.kernel not in name:
            continue
        found = measure_fixture(source, options.machine, options.times)
        if isinstance(found, str):
            print(f"{name:36} {found[:80]}")
            continue
        first, warm, issued = found
        print(
            f"{name:36} {first:8.2f} {warm:8.2f} {issued:12,}{'' if warm <= _AIM_S else '  over the aim'}", flush=True
        )
    measure_sm()


if __name__ == "__main__":
    main()
