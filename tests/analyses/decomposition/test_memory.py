"""Loads, the levels that answer them, and the waits for them, computed by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.analyses.decomposition.load_waits import UseWaits, measure_load_waits, measure_sample_scale
from gpa_lsp.diagnosis.analyses.decomposition.memory_view import (
    OPERANDS,
    QUEUEING,
    L2Traffic,
    average_l1_hits,
    estimate_lines,
    estimate_unloaded_latency,
    list_load_traffic,
    reach_level,
    read_l2_traffic,
    split_latency,
    view_memory,
)
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import MEMORY_UNITS, count_per_execution, list_unit_use
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind
from tests.analyses.decomposition.written_facts import name_state, write_facts

LD = "pipe_lsu_mem_global_op_ld"
LOCAL = "pipe_lsu_mem_local_op_ld"
WAITING = """
    B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # k.cu:4 | selected=100 | x=1000 global_tag_requests=2000
    B-:R-:W-:-:S04  IADD3 R6, R6, R6, RZ  # k.cu:5 | selected=100 wait=900 | x=1000
    B2:R-:W-:-:S02  FADD R5, R4, R4       # k.cu:6 | long_scoreboard=2000 selected=100 | x=1000
"""


def test_the_latency_without_queues_is_added_up_leg_by_leg():
    """A100: L1 36, L2 211 near and 377 far, DRAM 533 cycles. Half of the sectors hit L1, a request has two lines: it goes beyond L1 with

    1 − 0.5² = 0.75, beyond the near L2 with 1 − (1 − 0.5·0.5)² = 0.4375, and to DRAM with 1 − (1 − 0.5·0.25)² = 0.234375.
    """
    l2 = L2Traffic(far_ratio=0.25, dram_ratio=0.25, is_of_reads=True)
    unloaded = estimate_unloaded_latency(find_architecture((8, 0)).hierarchy, 0.5, l2, 2.0)
    assert [(part.name, part.cycles) for part in unloaded.parts] == [
        ("L1", 36),
        ("L1 to L2", pytest.approx(0.75 * (211 - 36))),
        ("to the far partition of L2", pytest.approx((0.4375 - 0.234375) * (377 - 211))),
        ("L2 to DRAM", pytest.approx(0.234375 * (533 - 211))),
        ("several lines per request", 2.0),
    ]
    assert unloaded.cycles == pytest.approx(278.4375)
    assert unloaded.doubts == ()


def test_what_l1_answers_needs_no_l2_and_what_it_does_not_does():
    hierarchy = find_architecture((8, 6)).hierarchy
    hit = estimate_unloaded_latency(hierarchy, 1.0, None, None)
    assert hit.cycles == hierarchy.l1_hit_cycles.value
    assert estimate_unloaded_latency(hierarchy, 0.9, None, None) is None


def test_doubts_are_said():
    l2 = L2Traffic(far_ratio=0.5, dram_ratio=0.0, is_of_reads=False)
    unloaded = estimate_unloaded_latency(find_architecture((8, 6)).hierarchy, 0.0, l2, 1.0)
    assert len(unloaded.doubts) == 2


@given(
    hit=st.floats(min_value=0, max_value=1),
    lines=st.floats(min_value=1, max_value=32),
    near=st.floats(min_value=0, max_value=1),
    part=st.floats(min_value=0, max_value=1),
)
def test_it_is_never_less_than_a_hit_nor_more_than_the_longest_way(hit, lines, near, part):
    hierarchy = find_architecture((8, 0)).hierarchy
    far = (1 - near) * part
    l2 = L2Traffic(far_ratio=far, dram_ratio=1 - near - far, is_of_reads=True)
    unloaded = estimate_unloaded_latency(hierarchy, hit, l2, lines)
    assert 36 - 1e-9 <= unloaded.cycles <= 533 + 2 * (lines - 1) + 1e-6
    assert all(leg.cycles >= -1e-9 for leg in unloaded.parts)


@given(ratio=st.floats(min_value=0, max_value=1), lines=st.floats(min_value=1, max_value=32))
def test_the_more_lines_the_more_requests_go_far(ratio, lines):
    assert ratio - 1e-9 <= reach_level(ratio, lines) <= 1


def test_traffic_by_kind_and_by_level():
    facts = write_facts(
        WAITING,
        {
            f"l1tex__t_requests_{LD}.sum": 300.0,
            f"l1tex__t_sectors_{LD}.sum": 2400.0,
            f"l1tex__t_sectors_{LD}_lookup_hit.sum": 600.0,
            f"l1tex__t_requests_{LOCAL}.sum": 100.0,
            f"l1tex__t_sectors_{LOCAL}.sum": 400.0,
            f"l1tex__t_sector_{LOCAL}_hit_rate.pct": 65.0,
            "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum": 60.0,
            "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": 40.0,
        },
    )
    loads = list_load_traffic(facts)
    assert [(load.kind, load.requests, load.sectors_per_request, load.l1_hit_ratio) for load in loads] == [
        (InstructionKind.GLOBAL_LOAD, 300.0, 8.0, 0.25),
        (InstructionKind.LOCAL_LOAD, 100.0, 4.0, 0.65),
    ]
    # 300 requests at 0.25 and 100 at 0.65; two lines and one.
    assert average_l1_hits(loads) == pytest.approx(0.35)
    assert estimate_lines(loads) == pytest.approx(1.75)
    assert count_per_execution(facts, "global_tag_requests", facts.rows.executions > 0) == 2.0
    l2 = read_l2_traffic(facts)
    assert (l2.far_ratio, l2.dram_ratio) == (pytest.approx(0), pytest.approx(0.4))


def test_with_a_fabric_dram_answers_no_more_than_it_delivered():
    facts = write_facts(
        WAITING,
        {
            "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum": 600.0,
            "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": 400.0,
            "lts__t_sectors_srcunit_tex_op_read.sum": 1000.0,
            "lts__t_sectors_srcunit_ltcfabric.sum": 300.0,
            "dram__sectors_read.sum": 100.0,
        },
    )
    l2 = read_l2_traffic(facts)
    assert (l2.far_ratio, l2.dram_ratio) == (pytest.approx(0.3), pytest.approx(0.1))


@pytest.mark.parametrize(
    ("metric", "dram", "of_reads"),
    [("lts__t_sector_op_read_hit_rate.pct", 0.25, True), ("lts__t_sector_hit_rate.pct", 0.25, False)],
)
def test_hit_rates_of_l2_do_where_lookups_were_not_collected(metric, dram, of_reads):
    l2 = read_l2_traffic(write_facts(WAITING, {metric: 75.0}))
    assert (l2.dram_ratio, l2.is_of_reads) == (dram, of_reads)
    assert read_l2_traffic(write_facts(WAITING)) is None


def test_a_wait_is_warp_cycles_over_executions():
    """3,000 instructions, 300 samples of one that issued: a sample stands for 10 warp-cycles.

    The addition waits 2,000 samples · 10 / 1,000 executions = 20 cycles; before that 1,000 samples · 10 / 1,000 = 10 cycles passed.
    """
    facts = write_facts(WAITING)
    waits = measure_load_waits(facts, measure_sample_scale(facts))
    assert (waits.uses.mean_wait_cycles, waits.uses.mean_passed_cycles) == (20.0, 10.0)
    assert waits.kinds == {InstructionKind.GLOBAL_LOAD: (2000.0, 20.0)}
    # A latency of 25 cycles leaves 15 to wait for when the wait begins; one of 100 explains all of it, one of 5 nothing.
    assert [waits.uses.expose(cycles) for cycles in (25.0, 100.0, 5.0)] == [15.0, 20.0, 0.0]


def test_two_loads_waited_for_together_share_the_wait_and_wait_once():
    facts = write_facts("""
        B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # - | selected=100 | x=1000
        B-:R-:W2:-:S02  LDG.E R5, [R2.64+4]   # - | selected=100 | x=1000
        B2:R-:W-:-:S02  FADD R5, R4, R5       # - | long_scoreboard=3000 selected=100 | x=1000
    """)
    waits = measure_load_waits(facts, measure_sample_scale(facts))
    assert waits.uses.mean_wait_cycles == pytest.approx(30.0)
    # Since the issue of the last of them two encoded cycles.
    assert waits.uses.mean_passed_cycles == pytest.approx(2.0)
    assert waits.kinds[InstructionKind.GLOBAL_LOAD][1] == pytest.approx(15.0)


def test_waits_for_operands_are_no_latency():
    facts = write_facts("""
        B-:R0:W-:-:S02  STG.E [R2.64], R4     # - | selected=100 | x=1000
        B0:R-:W-:-:S02  MOV R4, R6            # - | long_scoreboard=50 selected=100 | x=1000
    """)
    waits = measure_load_waits(facts, measure_sample_scale(facts))
    assert (waits.operand_samples, waits.kinds, waits.uses) == (50.0, {}, None)


def test_without_samples_counters_tell_the_mean_wait_of_a_load():
    # 6 warp-cycles per issue · 2,000 issues / 400 loads = 30 cycles.
    counted = {
        **{name_state(state): 1.0 for state in ("selected", "wait")},
        name_state("long_scoreboard"): 6.0,
        "smsp__inst_issued.sum": 2000.0,
        f"l1tex__t_requests_{LD}.sum": 400.0,
        f"l1tex__t_sector_{LD}_hit_rate.pct": 100.0,
    }
    view = view_memory(write_facts("    LDG.E R4, [R2.64]", counted))
    assert view.uses.mean_wait_cycles == pytest.approx(30.0)
    assert view.split.queueing_ratio == 0.0


@given(
    waits=st.lists(
        st.tuples(
            st.integers(min_value=1, max_value=10**6),
            st.floats(min_value=0.01, max_value=1e4),
            st.floats(min_value=0, max_value=1e4),
        ),
        min_size=1,
        max_size=5,
    ),
    operands=st.floats(min_value=0, max_value=1),
    hit=st.floats(min_value=0, max_value=1),
)
def test_the_parts_of_the_waiting_add_up_to_it(waits, operands, hit):
    uses = UseWaits(
        executions=np.array([one[0] for one in waits]),
        wait_cycles=np.array([one[1] for one in waits]),
        passed_cycles=np.array([one[2] for one in waits]),
    )
    l2 = L2Traffic(far_ratio=0.0, dram_ratio=0.5, is_of_reads=True)
    unloaded = estimate_unloaded_latency(find_architecture((7, 0)).hierarchy, hit, l2, 1.0)
    assert unloaded is not None
    split = split_latency(uses, unloaded, operands)
    assert sum(part.share_ratio for part in split.parts) == pytest.approx(1.0)
    assert sum(part.cycles or 0.0 for part in split.parts) == pytest.approx(uses.mean_wait_cycles)
    assert 0 <= split.queueing_ratio <= 1
    assert split.exposed_cycles <= split.unloaded_cycles + 1e-6
    names = [part.name for part in split.parts]
    assert (OPERANDS in names) == (operands > 0)
    assert (QUEUEING in names) == (split.wait_cycles > split.exposed_cycles)


def test_units_by_active_cycles_where_elapsed_ones_were_not_collected():
    facts = write_facts(
        WAITING,
        {
            "lts__t_sectors.avg.pct_of_peak_sustained_elapsed": 30.0,
            "lts__d_sectors.avg.pct_of_peak_sustained_active": 40.0,
        },
    )
    used = [(use.name, use.ratio) for use in list_unit_use(facts, MEMORY_UNITS)]
    assert used == [("data banks", 0.4), ("sectors", 0.3)]
