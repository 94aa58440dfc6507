"""Simulated, no fixture's improved twin is slower than its original, and those that are known to gain do."""

import pytest

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
"""Whose gain is between 3 and 13 %, as the bandwidth of an SM changes by up to one percent: its loads wait for each other in queues."""
NOISE = 0.98
GAIN = 1.1
LITTLE_GAIN = 1.03


@pytest.mark.parametrize("pattern", sorted({*TWINS} - REFUSED - MORE_WORK))
def test_an_improved_twin_gains(pattern: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")
    sides = [simulate_fixture(KERNELS / pattern / f"{role}.cu", MACHINE) for role in ("original", "improved")]
    assert [one.problems for one in sides] == [(), ()]
    before, after = (one.launches[0].simulated.cycles for one in sides)
    assert before / after >= (NOISE if pattern in ALIKE else LITTLE_GAIN if pattern in LITTLE else GAIN)
