"""Time of the warps by counters and by samples, and the meaning of a sample."""

import pytest

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import measure_sample_scale
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import read_warp_time
from gpa_lsp.diagnosis.analyses.questions.top_down import read_issue_slots
from tests.analyses.decomposition.written_facts import name_state, write_facts

CODE = """
    B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # - | selected=100 not_selected=50 | x=4000
    B2:R-:W-:-:S02  FADD R5, R4, R4       # - | long_scoreboard=600/450 wait=150/100 selected=100 | x=4000
"""
STATES = {"selected": 1.0, "not_selected": 0.5, "long_scoreboard": 6.0, "wait": 2.0, "no_instruction": 0.5, "gmma": 0.0}


def test_by_samples_a_state_is_its_part_and_selected_lasts_one_cycle():
    # 1,000 samples; 200 of warps that issued, so that 5 cycles pass for each instruction, 3 of them waiting for memory.
    time = read_warp_time(write_facts(CODE))
    assert not time.from_counters
    assert sum(one.cycles_per_issue for one in time.states) == 5.0
    first = time.states[0]
    assert (first.state.name, first.share_ratio, first.cycles_per_issue, first.sampled) == (
        "long_scoreboard",
        0.6,
        3.0,
        600,
    )
    assert first.latency_share_ratio == pytest.approx(450 / 550)
    assert time.stalled_ratio == pytest.approx(0.75)
    assert [one.state.name for one in time.stalls] == ["long_scoreboard", "wait"]


def test_by_counters_a_state_is_its_warp_cycles_over_those_of_all():
    # 10 warp-cycles per issue: 6 for memory, 2 waits, half a cycle without an instruction.
    time = read_warp_time(write_facts(CODE, {name_state(state): value for state, value in STATES.items()}))
    assert time.from_counters
    assert sum(one.cycles_per_issue for one in time.states) == 10.0
    assert {one.state.name: one.share_ratio for one in time.stalls} == {
        "long_scoreboard": 0.6,
        "wait": 0.2,
        "no_instructions": 0.05,
    }
    assert time.share_of("no_instructions") == 0.05
    assert time.share_of("barrier") == 0.0


def test_a_few_states_are_not_the_whole():
    time = read_warp_time(write_facts(CODE, {name_state("barrier"): 3.0}))
    assert not time.from_counters


def test_a_state_that_is_new_keeps_its_name():
    time = read_warp_time(write_facts(CODE, {name_state(state): 1.0 for state in (*STATES, "flux_capacitor")}))
    assert "flux_capacitor" in {one.state.name for one in time.stalls}


def test_without_counters_and_samples_nothing_is_known():
    assert read_warp_time(write_facts("    MOV R0, R1")) is None


def test_a_sample_stands_for_executions_over_selected_samples():
    # 8,000 instructions were executed, each one cycle selected; 200 samples saw one: 40 warp-cycles each.
    assert measure_sample_scale(write_facts(CODE)) == 40.0


def test_by_counters_a_sample_stands_for_its_part_of_all_warp_cycles():
    # 5.5 warp-cycles per issue, 8,000 issues, 1,000 samples.
    counted = {"smsp__average_warp_latency_per_inst_issued.ratio": 5.5, "smsp__inst_issued.sum": 8000.0}
    assert measure_sample_scale(write_facts(CODE, counted)) == 44.0


@pytest.mark.parametrize(
    "facts",
    [
        write_facts(CODE, truncated=True),
        write_facts(CODE.replace("x=4000", "x=0")),
        write_facts(CODE.replace("selected=100", "selected=10")),
        write_facts("    MOV R0, R1"),
    ],
    ids=["buffer full", "nothing executed", "too few selected", "no samples"],
)
def test_otherwise_it_is_unknown(facts):
    assert measure_sample_scale(facts) is None


def test_issue_slots_by_activity_or_by_instructions_per_cycle():
    slots = read_issue_slots(
        write_facts(
            CODE,
            {
                "smsp__issue_active.avg.per_cycle_active": 0.25,
                "sm__cycles_active.avg": 900.0,
                "gpc__cycles_elapsed.max": 1000.0,
                "sm__throughput.avg.pct_of_peak_sustained_elapsed": 30.0,
                "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": 85.0,
            },
        )
    )
    assert (slots.used_ratio, slots.idle_ratio, slots.active_ratio) == (0.25, 0.75, 0.9)
    assert (slots.busiest_ratio, slots.busiest_name) == (0.85, "the memory")
    # 1 − IPC/4.
    by_rate = read_issue_slots(write_facts(CODE, {"sm__inst_executed.avg.per_cycle_active": 1.0}))
    assert by_rate.idle_ratio == 0.75
    assert read_issue_slots(write_facts(CODE)) is None
