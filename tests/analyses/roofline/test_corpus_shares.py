"""NVIDIA's own stored percentages against ours, from counts, our peaks and cycles, on every launch of the corpus.

Two shares agree within 2 % of the stored one, or, where it is tiny, within 0.1 percentage points.
"""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from gpa_lsp.diagnosis.analyses.limiter import BUSY_RATIO
from gpa_lsp.diagnosis.analyses.model import CLEARLY_NEARER, Roofline
from gpa_lsp.diagnosis.analyses.questions.speed_of_light import RECOMPUTED, read_breakdown, recompute
from gpa_lsp.diagnosis.analyses.roofline.counts import MEMORY_THROUGHPUT, SM_THROUGHPUT
from gpa_lsp.diagnosis.analyses.roofline.place import ISSUE, place_kernel
from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind
from gpa_lsp.profile.model import Launch
from tests.analyses.roofline.corpus import Measured, list_measured
from tests.real_reports import REPORTS, join

pytestmark = pytest.mark.corpus

SUFFIXES = ("avg.pct_of_peak_sustained_elapsed", "sum.pct_of_peak_sustained_elapsed")

EXPECTED = {
    "sm__inst_executed": 42,
    "sm__issue_active": 39,
    "sm__inst_executed_pipe_xu": 42,
    "sm__pipe_fp64_cycles_active": 42,
    "sm__pipe_alu_cycles_active": 41,
    "sm__pipe_fma_cycles_active": 41,
    "sm__pipe_tensor_cycles_active": 42,
    "dram__cycles_active": 39,
    "lts__t_sectors": 39,
    "lts__t_sectors_srcunit_tex": 39,
    "l1tex__m_xbar2l1tex_read_sectors": 39,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": 39,
}
"""How many of the 42 launches with numbers have both. Three have no counts of memory, and no model of the ALU and FMA pipes of 12.0 is known."""


def assert_close(ours: float, stored: float, what: str) -> None:
    assert abs(ours - stored) <= max(0.02 * stored, 0.001), f"{what}: {100 * ours:.4f} % and not {100 * stored:.4f} %"


def read_stored(launch: Launch, metric: str) -> float | None:
    values = (launch.read_number(f"{metric}.{suffix}") for suffix in SUFFIXES)
    percent = next((value for value in values if value is not None), None)
    return None if percent is None else percent / 100


def list_all() -> Iterator[tuple[str, Measured]]:
    for name in REPORTS:
        for measured in list_measured(name):
            yield f"{name} launch {measured.launch.index}", measured


def test_every_share_that_can_be_recomputed_is_the_stored_one():
    compared: Counter[str] = Counter()
    for place, measured in list_all():
        for metric in RECOMPUTED:
            stored, ours = read_stored(measured.launch, metric), recompute(metric, measured.basis)
            if stored is not None and ours is not None:
                assert_close(ours, stored, f"{place}: {metric}")
                compared[metric] += 1
    assert dict(compared) == EXPECTED


def test_no_roofline_promises_more_than_the_profiler_s_busiest_unit_leaves():
    """A unit of NVIDIA's at 86 % leaves no kernel with the same work more than 1 / 0.86 of its speed, wherever its roofs are."""
    tight = 0
    for name in REPORTS:
        for kernel in join(name):
            placed = place_kernel(kernel)
            for line in () if placed is None else placed.launches:
                launch = next(one for one in kernel.launches if one.index == line.launch_index)
                shares = [read_stored(launch, metric) for metric in (SM_THROUGHPUT, MEMORY_THROUGHPUT)]
                highest = max(share for share in shares if share is not None)
                assert line.headroom is not None
                # A roof counts as the unit behind it up to a tenth apart.
                assert line.headroom <= CLEARLY_NEARER / highest, name
                tight += line.tighter_unit is not None and highest >= BUSY_RATIO
    assert tight == 4


@pytest.mark.parametrize("metric", [SM_THROUGHPUT, MEMORY_THROUGHPUT])
def test_a_throughput_is_the_largest_of_its_members_ours_included(metric):
    ours_on_top = 0
    for place, measured in list_all():
        breakdown = read_breakdown(metric, measured.basis)
        assert breakdown is not None, place
        assert breakdown.stored_ratio is not None, place
        shares = [
            (member.stored_ratio or 0.0 if member.own_ratio is None else member.own_ratio, member)
            for member in breakdown.members
        ]
        highest, busiest = max(shares, key=lambda pair: pair[0])
        assert_close(highest, breakdown.stored_ratio, f"{place}: {metric}")
        ours_on_top += busiest.own_ratio is not None
    # In the other launches the busiest unit is one whose counts no report has (load and store instructions, paths between L1 and L2).
    assert ours_on_top == {SM_THROUGHPUT: 32, MEMORY_THROUGHPUT: 27}[metric]


def list_rooflines(name: str) -> Iterator[tuple[str, Launch, Roofline]]:
    for kernel in join(name):
        placed = place_kernel(kernel)
        launches = {launch.index: launch for launch in kernel.launches}
        for roofline in placed.launches:
            assert roofline.launch_index is not None
            yield f"{name} launch {roofline.launch_index}", launches[roofline.launch_index], roofline


ROOFS = {
    MemoryLevel.DRAM: ("dram__cycles_active", "gpu__dram_throughput"),
    MemoryLevel.L2: ("lts__t_sectors_srcunit_tex",),
    MemoryLevel.SHARED: ("l1tex__data_pipe_lsu_wavefronts_mem_shared",),
    None: ("sm__inst_executed",),
}


@pytest.mark.parametrize("level", ROOFS)
def test_the_distance_to_a_roof_is_the_stored_share(level):
    compared = 0
    for name in REPORTS:
        for place, launch, roofline in list_rooflines(name):
            roof = next(
                (one for one in roofline.roofs if one.level is level and (level is not None or one.name == ISSUE)), None
            )
            for metric in ROOFS[level]:
                stored = read_stored(launch, metric)
                if stored is not None and roof is not None:
                    assert_close(roof.share_ratio, stored, f"{place}: {metric}")
                    compared += 1
    assert compared == {MemoryLevel.DRAM: 84, MemoryLevel.L2: 39, MemoryLevel.SHARED: 39, None: 42}[level]


@pytest.mark.parametrize(("kind", "letter"), [(OperationKind.FP32, "f"), (OperationKind.FP64, "d")])
def test_the_distance_to_an_arithmetic_roof_is_that_of_the_profilers_own_roofline(kind, letter):
    compared = 0
    for name in REPORTS:
        for place, launch, roofline in list_rooflines(name):
            peak = launch.read_number(f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on.sum.peak_sustained")
            counts = [
                launch.read_number(f"smsp__sass_thread_inst_executed_op_{letter}{name}_pred_on.sum.per_cycle_elapsed")
                for name in ("add", "mul", "fma")
            ]
            if peak is None or None in counts:
                continue
            stored = (counts[0] + counts[1] + 2 * counts[2]) / (2 * peak)
            roof = next((one for one in roofline.roofs if one.kind is kind), None)
            assert_close(0.0 if roof is None else roof.share_ratio, stored, f"{place}: {kind}")
            compared += 1
    assert compared == 39


@pytest.mark.parametrize("direction", ["read", "write"])
def test_bytes_of_dram_by_direction(direction):
    compared = 0
    for place, measured in list_all():
        stored = read_stored(measured.launch, f"dram__bytes_{direction}")
        bytes_moved = measured.launch.read_number(f"dram__bytes_{direction}.sum")
        bandwidth = measured.basis.machine.find_bandwidth(MemoryLevel.DRAM)
        if stored is None or bytes_moved is None or bandwidth is None or bandwidth.bytes_per_s is None:
            continue
        ours = bytes_moved / (bandwidth.bytes_per_s * measured.basis.span.duration_s)
        assert_close(ours, stored, f"{place}: dram__bytes_{direction}")
        compared += 1
    assert compared == 38


RULE = re.compile(
    r"on this device is (?P<ratio>\d+):1\. .* achieved +(?:close to )?(?P<fp32>\d+)% of this device's fp32 peak performance and"
    r" +(?:close to )?(?P<fp64>\d+)% of its fp64 peak",
    re.IGNORECASE,
)


def test_the_profilers_rule_for_the_roofline_says_the_same_percentages():
    compared = 0
    for name in REPORTS:
        for kernel in join(name):
            placed = place_kernel(kernel)
            assert placed is not None
            peaks = [placed.machine.find_peak(kind) for kind in (OperationKind.FP32, OperationKind.FP64)]
            assert peaks[0] is not None
            assert peaks[1] is not None
            for place, launch, roofline in list_rooflines(name):
                said = next(
                    (found for rule in launch.rules for one in rule.messages if (found := RULE.search(one.text))), None
                )
                if said is None or all(launch is not one for one in kernel.launches):
                    continue
                assert (peaks[0].ops_per_cycle or 0) / (peaks[1].ops_per_cycle or 1) == int(said["ratio"]), place
                shares = {roof.kind: 100 * roof.share_ratio for roof in roofline.roofs}
                for kind, word in ((OperationKind.FP32, "fp32"), (OperationKind.FP64, "fp64")):
                    assert abs(shares.get(kind, 0.0) - int(said[word])) <= 0.5, f"{place}: {kind}"
                compared += 1
    assert compared == 34
