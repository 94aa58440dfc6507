"""Findings on lanes: idle lanes, lanes that guards switch off, and ways not taken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.answers import Answer, Weight
from gpa_lsp.diagnosis.analyses.questions.divergence import ANALYSIS, measure_partial_warps, read_lanes
from gpa_lsp.diagnosis.analyses.subject import Subject
from tests.rows.written import write_kernel


def facts_of(text: str, **kernel):
    return Subject(write_kernel(text, **kernel))


def ask(text: str, **kernel) -> Answer:
    return ANALYSIS.ask(facts_of(text, **kernel))


@given(st.integers(1, 1024), st.integers(1, 4), st.integers(1, 4))
def test_partial_warps_are_the_lanes_without_threads(x, y, z):
    threads = x * y * z
    share = measure_partial_warps((x, y, z))
    lanes = threads / (1 - share)
    assert lanes == pytest.approx(round(lanes))
    assert round(lanes) % 32 == 0
    assert threads <= round(lanes) < threads + 32


@given(st.integers(1, 100), st.data())
def test_lanes_are_conserved(executions, data):
    part = data.draw(st.integers(0, 32 * executions))
    work = data.draw(st.integers(0, part))
    lanes = read_lanes(
        facts_of(
            f"FADD R1, R1, R1    # k.cu:1 | selected=0 | x={executions} thread_executions={part} thread_executions_true={work}"
        )
    )
    assert lanes is not None and lanes.idle is not None and lanes.switched_off is not None
    assert int(lanes.idle[0] + lanes.switched_off[0]) + work == 32 * executions
    assert lanes.lost[0] == lanes.idle[0] + lanes.switched_off[0]


@pytest.mark.parametrize("text", ["@P0 EXIT", "@P0 BRA 0x0", "@P0 BSSY B0, 0x0", "@P0 RET.REL.NODEC R2 0x0"])
def test_a_way_not_taken_is_no_lane_lost(text):
    lanes = read_lanes(
        facts_of(f"{text}    # k.cu:1 | selected=0 | x=10 thread_executions=320 thread_executions_true=0")
    )
    assert lanes.lost.tolist() == [0]


def test_calls_and_returns_are_branches_and_exits_are_not():
    lanes = read_lanes(
        facts_of(
            """
            BRA 0x10             # k.cu:1 | selected=0 | x=10 thread_executions=320 divergent_branch_targets=2
            RET.REL.NODEC R2 0x0 # k.cu:2 | selected=0 | x=10 thread_executions=320
            EXIT                 # k.cu:3 | selected=0 | x=80 thread_executions=320
            """
        )
    )
    assert lanes.uniform_ratio == pytest.approx(1 - 2 / 20)


def test_code_without_branches_has_no_share_of_uniform_ones():
    lanes = read_lanes(
        facts_of("EXIT    # k.cu:1 | selected=0 | x=10 thread_executions=320 divergent_branch_targets=0")
    )
    assert lanes.uniform_ratio is None
    assert (
        "branches"
        not in ask("EXIT    # k.cu:1 | selected=0 | x=10 thread_executions=320 divergent_branch_targets=0").summary
    )


def test_full_warps_are_praised():
    answer = ask("FADD R1, R1, R1    # k.cu:1 | selected=9 | x=10 thread_executions=320 thread_executions_true=320")
    (finding,) = answer.findings
    assert finding.weight is Weight.GOOD
    assert answer.marks == ()
    assert answer.tables == ()


def test_idle_lanes_without_samples_have_no_bound_in_time():
    answer = ask("FADD R1, R1, R1    # k.cu:1 | selected=0 | x=10 thread_executions=160 thread_executions_true=160")
    (finding,) = answer.findings
    assert "Full warps would save 5 of 10 warp instructions (50 %)." in finding.text
    assert finding.share_ratio is None
    (mark,) = answer.marks
    assert (mark.value, mark.line, mark.text) == (5.0, 1, "16 of 32 threads are busy on average")


def test_divergence_beyond_the_partial_warp_is_spoken_of():
    answer = ask(
        "FADD R1, R1, R1    # k.cu:1 | selected=90 | x=10 thread_executions=100 thread_executions_true=100",
        block=(48, 1, 1),
    )
    assert ["does not fill" in one.text for one in answer.findings] == [True, False]
    assert "Full warps would save" in answer.findings[1].text
