"""Issue counts of instructions: executions where they agree with the samples, blocks' means of the samples where not."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.issue_counts import LEAST_ISSUES_SAMPLES, count_issues
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from tests.rows.written import write_kernel

LOOP = """
    IADD3 R0, RZ, RZ, RZ            # - | selected=1  | x=10
loop:
    IADD3 R0, R0, 0x1, RZ           # - | selected=0  | x=1000
    FFMA R1, R1, R2, R3             # - | selected=95 | x=1000
    ISETP.LT.AND P0, PT, R0, R6, PT # - | selected=105 | x=1000
    @P0 BRA loop                    # - | selected=100 | x=1000
    EXIT                            # - | selected=100 | x=10
"""
"""A hundred samples of issue at the loop's header show behind its branch, as they do in real reports."""


def append_outside(kernel: Kernel, selected: int) -> Kernel:
    """The kernel with two samples in code that the profile does not hold."""
    samples = np.zeros((1, len(kernel.reasons)), dtype=np.int64)
    samples[0, kernel.reasons.index("selected")] = selected
    outside = FunctionSamples(
        name="<outside this module>",
        function=None,
        instructions=None,
        graph=None,
        control=None,
        lines=None,
        chain_index=np.full(1, -1, dtype=np.int32),
        routine_index=np.zeros(1, dtype=np.int32),
        pc_offsets=np.array([0x7000], dtype=np.int64),
        all_samples=samples,
        latency_samples=np.zeros_like(samples),
        executions=np.full(1, -1, dtype=np.int64),
    )
    return replace(kernel, functions=(*kernel.functions, outside))


def test_executions_are_scaled_to_samples_where_they_agree() -> None:
    counts = count_issues(write_kernel(LOOP))
    assert counts.is_exact
    assert counts.counts == pytest.approx([401 / 402, *[40100 / 402] * 4, 401 / 402])
    assert counts.counts.sum() == pytest.approx(401)
    assert counts.chi_square_per_row == pytest.approx(1 / 6)
    assert "agree" in counts.why


def test_executions_of_another_course_are_not_taken() -> None:
    other = LOOP.replace("selected=95", "selected=900").replace("selected=105", "selected=20")
    counts = count_issues(write_kernel(other))
    assert not counts.is_exact
    assert counts.chi_square_per_row is not None and counts.chi_square_per_row > 100
    assert "different runs" in counts.why


def test_a_full_sampling_buffer_speaks_against_executions() -> None:
    counts = count_issues(write_kernel(LOOP, truncated=True))
    assert not counts.is_exact
    assert "buffer" in counts.why
    assert counts.chi_square_per_row == pytest.approx(1 / 6)


def test_samples_count_by_blocks_and_never_nothing() -> None:
    """The mean of those in a block whose samples are their own; an instruction nobody saw issue counts a little."""
    text = LOOP.replace("| x=1000", "").replace("| x=10", "").replace("- | selected", "selected")
    counts = count_issues(write_kernel(text + "    BRA 0x60\n"))
    assert not counts.is_exact
    assert counts.chi_square_per_row is None
    assert "not counted" in counts.why
    assert counts.counts.tolist() == [1, 100, 100, 100, 100, 100, LEAST_ISSUES_SAMPLES]


def test_rows_without_code_count_for_themselves() -> None:
    exact = count_issues(append_outside(write_kernel(LOOP), 7))
    assert exact.is_exact
    assert exact.counts[-1] == 7
    assert exact.counts.sum() == pytest.approx(408)
    sampled = count_issues(append_outside(write_kernel(LOOP, truncated=True), 7))
    assert sampled.counts[-1] == 7
    assert count_issues(append_outside(write_kernel(LOOP, truncated=True), 0)).counts[-1] == LEAST_ISSUES_SAMPLES


def test_filler_that_the_counter_does_not_list_never_issued() -> None:
    """The samples of issue behind the EXIT are of what was executed."""
    counts = count_issues(write_kernel(LOOP + "    BRA 0x60   # selected=99\n"))
    assert counts.is_exact
    assert counts.counts[-1] == 0
    assert counts.counts.sum() == pytest.approx(500)


@pytest.mark.parametrize("text", ["EXIT", "EXIT  # wait=3", "EXIT  # - | wait=3 | x=5", "EXIT  # - | selected=0 | x=0"])
def test_without_samples_of_issue_everything_counts_a_little(text: str) -> None:
    counts = count_issues(write_kernel(text))
    assert not counts.is_exact
    assert counts.counts.tolist() == [LEAST_ISSUES_SAMPLES]
    assert counts.chi_square_per_row is None


def test_a_kernel_without_functions_has_no_counts() -> None:
    assert len(count_issues(replace(write_kernel("EXIT"), functions=())).counts) == 0
