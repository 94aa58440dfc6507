"""Fences ``roofline``: where the kernel stands under the roofs, one fact a line, of all launches together::

    time 0.001 s
    operations FP32 6.4e+07
    bytes DRAM 5.12e+07
    point FP32 over DRAM: 1.25 per byte, 6.4e+10 of 8e+10, memory
    instructions over DRAM: 2.5 per transaction, 4e+09 of 5e+09
    roof DRAM bandwidth: 5.12e+10 of 6.4e+10, sustains 0.85, headroom 1.0625
    dominant FP32
    missing bytes of L1
    says Nearest ceiling: DRAM bandwidth, 80 % of its peak, headroom 1.14×.

Numbers are written with six digits. Lines that begin with ``roof`` must be all there are, in their order; of the others those that matter are named.
"""

from collections.abc import Iterator

from gpa_lsp.diagnosis.analyses.model import Roofline
from gpa_lsp.diagnosis.analyses.questions.roofline import describe_place
from gpa_lsp.diagnosis.analyses.roofline.place import place_kernel
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.kernel.model import Kernel

_ALL = "roof "


def check_roofline(kernel: Kernel, blame: KernelBlame, text: str) -> None:
    """Compare what a fence expects with where the kernel stands."""
    placed = place_kernel(kernel)
    assert placed.whole is not None
    found = list(render_roofline(placed.whole))
    expected = [line.strip() for line in text.splitlines() if line.strip()]
    assert [line for line in expected if line.startswith(_ALL)] == [line for line in found if line.startswith(_ALL)]
    for line in expected:
        assert line in found, "\n".join([f"expected: {line}", "found:", *found])


def render_roofline(roofline: Roofline) -> Iterator[str]:
    """A roofline in the notation of the fence."""
    yield f"time {roofline.duration_s:.6g} s"
    for count in roofline.operations:
        yield f"operations {count.kind} {count.operations:.6g}" + ("" if count.is_exact else " or so")
    for traffic in roofline.traffic:
        yield f"bytes {traffic.level} {traffic.bytes:.6g}" + ("" if traffic.is_exact else " or so")
    for point in roofline.points:
        side = "unknown" if point.is_memory_side is None else ("memory" if point.is_memory_side else "arithmetic")
        yield (
            f"point {point.kind} over {point.level}: {point.intensity:.6g} per byte, {point.achieved_ops_per_s:.6g} of "
            f"{_write(point.attainable_ops_per_s)}, {side}"
        )
    for one in roofline.instruction_points:
        yield (
            f"instructions over {one.level}: {one.intensity:.6g} per transaction, {one.achieved_per_s:.6g} of "
            f"{_write(one.attainable_per_s)}"
        )
    for roof in roofline.roofs:
        yield (
            f"roof {roof.name}: {roof.achieved_per_s:.6g} of {roof.limit_per_s:.6g}, sustains {roof.ceiling_ratio:.6g}, "
            f"headroom {roof.headroom:.6g}"
        )
    yield f"dominant {roofline.dominant}"
    for missing in roofline.missing:
        yield f"missing {missing.what}"
    yield f"says {describe_place(roofline)}"


def _write(number: float | None) -> str:
    return "unknown" if number is None else f"{number:.6g}"
