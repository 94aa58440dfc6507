"""Which bounds of a roofline and of the profiler's percentages hold."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.advise import advise_kernel, list_optimizers
from gpa_lsp.diagnosis.advice.bounds import find_peak_roof, find_roof, find_sm_roof
from gpa_lsp.diagnosis.advice.model import MemoryLevel
from gpa_lsp.diagnosis.advice.roofs import list_sure_roofs
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.gpu.device.model import HBM_CEILING, OperationKind
from gpa_lsp.gpu.device.model import MemoryLevel as MachineLevel
from tests.advice.subjects import make_blame
from tests.analyses.starlight.rooflines import make_roofline
from tests.rows.written import write_kernel

T = 1e12
DRAM = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
TEXT = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]   # k.cu:3 | selected=10
    B2:R-:W-:-:S04  FFMA R2, R2, R3, R6 # k.cu:4 | long_scoreboard=90
    B-:R-:W-:-:S05  EXIT
"""


def place(
    dram: float | None = None,
    fp32: float | None = None,
    *,
    shared: float | None = None,
    ceiling: float = 1.0,
    is_certain: bool = True,
    is_exact: bool = True,
) -> KernelRoofline:
    """Shares of the peaks, 0..1."""
    shares = {MachineLevel.DRAM: dram, MachineLevel.SHARED: shared}
    return make_roofline(
        ops_per_s=None if fp32 is None else fp32 * 10 * T,
        peaks={OperationKind.FP32: 10 * T},
        traffic={level: (share * 2 * T, 2 * T) for level, share in shares.items() if share is not None},
        ceilings={MachineLevel.DRAM: ceiling},
        is_certain=is_certain,
        is_exact=is_exact,
    )


def make_subject(
    roofline: KernelRoofline | None = None, metrics: dict[str, float] | None = None, blocks: int = 64
) -> Subject:
    kernel = write_kernel(TEXT, metrics=metrics, grid=(blocks, 1, 1))
    return Subject(kernel, make_blame(kernel), roofline)


class TestBounds:
    def test_assumed_limits_and_guessed_operations_bound_nothing(self):
        assert list_sure_roofs(place(0.95, is_certain=False)) == ()
        assert [roof.level for roof in list_sure_roofs(place(0.1, 0.95, is_exact=False))] == [MachineLevel.DRAM]

    def test_the_tighter_of_percentages_and_roofline_holds(self):
        tight = make_subject(place(0.8), {DRAM: 50.0})
        assert min(bound.speedup for bound in find_roof(tight)) == pytest.approx(1.25)
        loose = make_subject(place(0.2), {DRAM: 50.0})
        assert min(bound.speedup for bound in find_roof(loose)) == pytest.approx(HBM_CEILING / 0.5)

    def test_a_relieved_level_sets_no_bound_and_shared_memory_is_one_of_its_own(self):
        subject = make_subject(place(0.8, shared=0.5))
        every = (MemoryLevel.L1, MemoryLevel.L2, MemoryLevel.DRAM)
        assert [bound.speedup for bound in find_roof(subject, every)] == [pytest.approx(2.0)]
        assert find_roof(subject, (*every, MemoryLevel.SHARED)) == ()

    def test_peaks_bound_what_keeps_the_operations(self):
        subject = make_subject(place(0.1, 0.8), {SM: 40.0})
        assert [bound.speedup for bound in find_sm_roof(subject)] == [pytest.approx(2.5), pytest.approx(1.25)]
        (bound,) = find_peak_roof(subject, list_optimizers()["global_coalescing"].reliefs)
        assert bound.speedup == pytest.approx(1.25)
        assert bound.reason == "the kernel reaches 80 % of the FP32 peak and its operations are unchanged"
        assert find_peak_roof(subject, list_optimizers()["fast_math"].reliefs) == ()

    def test_integers_bound_only_what_saves_no_instruction(self):
        roofline = make_roofline(
            ops_per_s=8 * T,
            peaks={OperationKind.INT32: 10 * T},
            traffic={MachineLevel.DRAM: (0.1 * T, 2 * T)},
            kind=OperationKind.INT32,
        )
        assert [
            bound.speedup
            for bound in find_peak_roof(make_subject(roofline), list_optimizers()["global_coalescing"].reliefs)
        ] == [1.25]
        assert find_peak_roof(make_subject(roofline), list_optimizers()["memory_transaction_reduction"].reliefs) == ()

    @given(st.floats(0.01, 1.2), st.floats(0.01, 1.2), st.floats(1, 100), st.floats(1, 100))
    def test_a_roofline_never_loosens_a_bound(self, dram: float, fp32: float, percent: float, sm: float):
        metrics = {DRAM: percent, SM: sm}
        plain, placed = make_subject(None, metrics), make_subject(place(dram, fp32), metrics)
        for find in (find_roof, find_sm_roof):
            assert min(one.speedup for one in find(placed)) <= min(one.speedup for one in find(plain))


def test_a_roofline_takes_no_advice_above_its_headroom():
    """The barrier's 400 samples of 1,000 would gain 1.67×; FP32 is at 10/11 of its peak, and the operations stay."""
    kernel = write_kernel(
        """
        B-:R-:W-:-:S06 BAR.SYNC 0x0             # k.cu:5 | selected=300
        B-:R-:W-:-:S02 STG.E [R6.64], R3        # k.cu:6 | barrier=400/390 selected=300
        B-:R-:W-:-:S05 EXIT                     # k.cu:7
        """
    )
    (plain,) = advise_kernel(Subject(kernel, blame_kernel(kernel)))[0].advice
    (placed,) = advise_kernel(Subject(kernel, blame_kernel(kernel), place(0.1, 10 / 11)))[0].advice
    assert plain.speedup.estimate == pytest.approx(1 / 0.6)
    assert placed.speedup.estimate == pytest.approx(1.1)
    assert placed.speedup.uncapped == plain.speedup.uncapped
    assert "cut from 1.67× to 1.10×: the kernel reaches 91 % of the FP32 peak" in placed.reasons[-1]
