"""``wait`` against stall counts, on written kernels and on real reports."""

from statistics import median

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.issue_counts import check_wait, count_issues
from gpa_lsp.diagnosis.blame.model import WaitCheck
from gpa_lsp.kernel.model import Kernel
from tests.real_reports import REPORTS, join
from tests.rows.written import write_kernel

LOOP = """
    B-:R-:W-:-:S04  IADD3 R0, RZ, RZ, RZ            # - | selected=1            | x=10
loop:
    B-:R-:W-:-:S04  IADD3 R0, R0, 0x1, RZ           # - | selected=100 wait=3   | x=1000
    B-:R-:W-:-:S01  FFMA R1, R1, R2, R3             # - | selected=100 wait=300 | x=1000
    B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R0, R6, PT # - | selected=100          | x=1000
    B-:R-:W-:-:S05  @P0 BRA loop                    # - | selected=100 wait=1200 | x=1000
    B-:R-:W-:-:S05  EXIT                            # - | selected=1 wait=400   | x=10
"""


def check(kernel: Kernel) -> WaitCheck:
    found = check_wait(kernel, count_issues(kernel))
    assert found is not None
    return found


def test_samples_that_follow_the_stall_counts_correlate() -> None:
    found = check(write_kernel(LOOP))
    assert found.measured_samples == 1903
    assert found.predicted_samples == pytest.approx(1903)
    assert found.correlation == pytest.approx(1.0)
    assert found.rows == 5


def test_samples_of_other_code_do_not() -> None:
    """One instruction too late."""
    shifted = LOOP.replace("wait=1200", "wait=0").replace("wait=400", "wait=1200").replace("wait=300", "wait=3")
    found = check(write_kernel(shifted))
    assert found.correlation is not None and found.correlation < 0.1


def test_what_never_issued_is_not_compared() -> None:
    """Otherwise the filler's zeros would speak for the model."""
    filler = "    B-:R-:W-:-:S15  NOP\n" * 100
    assert check(write_kernel(LOOP + filler)).rows == 6


def test_no_correlation_is_made_of_too_little() -> None:
    few = check(write_kernel("NOP  # - | selected=1 | x=1\nNOP  # - | wait=2 | x=1\nEXIT"))
    assert (few.correlation, few.measured_samples, few.rows) == (None, 2, 2)
    flat = "B-:R-:W-:-:S02  NOP  # - | selected=1 wait=2 | x=1\n"
    assert check(write_kernel(flat * 6)).correlation is None


def test_nothing_to_check() -> None:
    kernel = write_kernel("NOP  # selected=1\nEXIT")
    assert check_wait(kernel, count_issues(kernel)) is None
    sampled = write_kernel(LOOP)
    without = replace(sampled, functions=tuple(replace(one, instructions=None) for one in sampled.functions))
    assert check_wait(without, count_issues(without)) is None


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_real_samples_follow_the_stall_counts(name: str) -> None:
    """Samples correlate where they are enough to tell; stall counts, control codes and issue counts are then all read rightly."""
    for kernel in join(name):
        counts = count_issues(kernel)
        found = check_wait(kernel, counts)
        assert counts.is_exact != any(launch.samples_truncated for launch in kernel.launches), counts.why
        assert counts.counts.sum() > 0 and (counts.counts >= 0).all()
        if found.measured_samples >= 2500:
            assert found.correlation is not None and found.correlation > 0.9, kernel.mangled_name
            assert 0.95 < found.measured_samples / found.predicted_samples < 1.25


@pytest.mark.corpus
def test_the_stall_shows_at_the_next_address_also_behind_a_branch() -> None:
    """Predecessors by address and by flow differ in the first instructions of blocks: samples follow the one by address."""
    by_address, by_flow = [], []
    for kernel in (kernel for name in REPORTS for kernel in join(name)):
        function = kernel.functions[0]
        graph, control = function.graph, function.control
        if "wait" not in kernel.reasons or graph is None or control is None or kernel.total_samples < 100_000:
            continue
        first = [row for row in graph.first_instruction.tolist() if row and len(graph.previous_instructions(row))]
        counts = count_issues(kernel).counts
        stalls = np.maximum(control.stall_cycles.astype(np.int64), 1) - 1
        measured = function.all_samples[first, kernel.reasons.index("wait")]
        flow = []
        for row in first:
            before = list(graph.previous_instructions(row))
            weights = counts[before] / max(float(counts[before].sum()), 1e-9)
            flow.append(counts[row] * float((weights * stalls[before]).sum()))
        by_address.append(np.corrcoef(measured, [counts[row - 1] * stalls[row - 1] for row in first])[0, 1])
        by_flow.append(np.corrcoef(measured, flow)[0, 1])
    if not by_address:
        pytest.skip("this corpus has no kernel with samples enough")
    assert median(by_address) > 0.9
    assert median(by_flow) < 0.6
