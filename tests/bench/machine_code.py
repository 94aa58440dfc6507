"""What machine code costs: processor seconds to make it once on a machine, and to load it in each process after that.

Usage: ``python -m tests.bench.machine_code``; every part is made in a cache of its own, by processes of their own.
"""

import os
import subprocess
import sys
import tempfile

_PARTS = {
    "the emulator's core": "from gpa_lsp.execution.emulator.compiled.core_functions import find_core as load",
    "steps of SASS": "from gpa_lsp.execution.simulator.execution.compiled_steps import load_walk as load",
    "one simulated SM": """
from gpa_lsp.execution.simulator.streaming_multiprocessor import simulate_sm
from tests.simulator.sm_notation import EXIT, FMA, make_block, make_model, make_program
program = make_program((FMA, {}), (EXIT, {"stall": 5}))
load = lambda: simulate_sm(program, make_model(), [make_block(program, warps=1)], 1, 100)
""",
    "equal rows of a trace": """
import numpy as np
from gpa_lsp.execution.traces.row_loops import number_rows, open_slots
load = lambda: number_rows(np.zeros((1, 1), np.int64), open_slots(1), *np.zeros((3, 1), np.int64))
""",
}
_TIMED = "\nimport time\nbegin = time.process_time()\nload()\nprint(time.process_time() - begin)\n"


def measure(code: str, cache: str) -> float:
    """Processor seconds of a part, in a process of its own."""
    environment = {**os.environ, "GPA_LSP_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code + _TIMED], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    """Print a row per part."""
    print(f"{'CPU seconds':28} made   loaded   made / loaded")
    with tempfile.TemporaryDirectory() as cache:
        for name, code in _PARTS.items():
            made, loaded = measure(code, cache), measure(code, cache)
            print(f"{name:28} {made:4.2f} {loaded:8.4f} {made / loaded:12.0f}x")


if __name__ == "__main__":
    main()
