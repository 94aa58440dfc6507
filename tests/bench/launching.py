"""What a small launch of a program costs on the runtime of ours, once its kernel is bound.

Usage: ``python -m tests.bench.launching [--times N]``; needs nvcc.
"""

import argparse
import tempfile
from pathlib import Path

from gpa_lsp.execution.programs.model import RunSettings
from gpa_lsp.execution.programs.run import Surroundings, run_program
from tests.programs.built import MACHINE, SOURCES, build

_LAUNCHES = 1000


def main() -> None:
    """Print the seconds of a program with one launch and with a thousand, and what one more costs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=3)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = build(SOURCES / "benchmark_loop.cu", folder)

        def measure(launches: int) -> float:
            """The least of some runs."""
            surroundings = Surroundings(folder=folder)
            settings = RunSettings(machine=MACHINE)
            words = [str(program), str(launches)]
            return min(run_program(words, settings, surroundings).seconds for _ in range(times))

        measure(1)  # what is compiled and cached on first use
        one, many = measure(1), measure(_LAUNCHES)
    print(f"a program of 1 launch         {one:.3f} s")
    print(f"a program of {_LAUNCHES:,} launches  {many:.3f} s (at most 2 s are wanted)")
    print(f"a cached small launch         {(many - one) / (_LAUNCHES - 1) * 1e3:.2f} ms (at most 1.5 ms are wanted)")


if __name__ == "__main__":
    main()
