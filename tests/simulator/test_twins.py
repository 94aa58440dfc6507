"""Simulated, no fixture's improved twin is slower than its original, and those that are known to gain do."""

from pathlib import Path
from statistics import fmean

import pytest

from gpa_lsp.foundation.errors import ProblemSeverity
from tests.simulator.twins import KERNELS, TWINS, simulate_fixture

MACHINE = "A100 PCIe 40GB"
REFUSED = {"indirect_call", "texture_fetch"}
"""Whose originals are not simulated."""
MORE_WORK = {"huge_body"}
"""Whose improved twin executes half as many instructions again, for a smaller body: nobody has measured that it gains."""
ALIKE = {"async_copy", "narrow_loads"}
"""Where the model sees no difference: what copies save but for their waits is not simulated; L1 sends four narrow stores of a warp to the same
sectors together, as counters of an RTX 3080 show, and DRAM limits both."""
LITTLE = {"loop_not_unrolled"}
"""Whose gain is between nothing and 10 %, as the bandwidth changes by up to one percent: its loads wait for each other in queues."""
BANDWIDTHS = (1540, 1547, 1555, 1563, 1571)
"""Of the GPU, in GB/s, over which the gain of these is averaged."""
NOISE = 0.98
GAIN = 1.1
LITTLE_GAIN = 1.03


@pytest.mark.parametrize("pattern", sorted({*TWINS} - REFUSED - MORE_WORK))
def test_an_improved_twin_gains(pattern: str, tmp_path: Path) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    gains = []
    for bandwidth in BANDWIDTHS if pattern in LITTLE else BANDWIDTHS[2:3]:
        gpu = tmp_path / f"{bandwidth}.toml"
        gpu.write_text(f'base = "{MACHINE}"\nmemory_gb_per_s = {bandwidth}\n', encoding="utf-8")
        machine = str(gpu) if pattern in LITTLE else MACHINE
        sides = [simulate_fixture(KERNELS / pattern / f"{role}.cu", machine) for role in ("original", "improved")]
        noted = {problem.severity for one in sides for problem in one.problems}
        assert noted == ({ProblemSeverity.NOTE} if pattern in LITTLE else set())
        before, after = (one.launches[0].simulated.cycles for one in sides)
        gains.append(before / after)
    assert fmean(gains) >= (NOISE if pattern in ALIKE else LITTLE_GAIN if pattern in LITTLE else GAIN), gains
