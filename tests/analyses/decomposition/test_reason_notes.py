"""Notes that the counters add to a reason, in addition to its sources."""

import pytest

from gpa_lsp.diagnosis.analyses.decomposition.memory_view import LEG_REMEDIES, LEVEL_REMEDIES, view_memory
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import (
    measure_bank_conflicts,
)
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import (
    MEMORY_UNITS,
    PIPE_UNITS,
    QUEUE_UNITS,
    name_use,
)
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import WARP_STATES, SourceRule, find_by_counter, find_warp_state
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, find_kind
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.decomposition.written_facts import write_facts
from tests.binary.opcode_table import TABLE


def test_conflicts_by_aggregates_where_instructions_were_not_counted():
    metrics = {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 30.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 120.0,
    }
    shared, other = (write_facts(text, metrics) for text in ("    LDS R4, [R9]", "    MOV R4, R9"))
    assert measure_bank_conflicts(shared) == 0.25
    assert measure_bank_conflicts(other) is None


def test_every_stall_reason_of_the_profiler_has_a_row_and_no_row_is_misspelt():
    assert WARP_STATES.keys() == STALL_REASONS.keys()
    for name, state in WARP_STATES.items():
        assert (state.name, state.is_stall) == (name, STALL_REASONS[name].is_stall)


@pytest.mark.parametrize("capability", list_architectures())
def test_every_reason_an_architecture_reports_is_known(capability):
    assert set(find_architecture(capability).stalls.reasons.value) <= WARP_STATES.keys()


def test_stalls_have_a_remedy_and_a_rule_and_others_have_neither():
    for state in WARP_STATES.values():
        assert bool(state.remedy) == state.is_stall
        assert (state.rule is SourceRule.NONE) == (not state.is_stall)


def test_the_names_of_counters_are_found_back():
    for state in WARP_STATES.values():
        assert find_by_counter(state.counter) == state
    assert find_by_counter("no_instruction").name == "no_instructions"
    assert find_by_counter("gmma").name == "warpgroup_arrive"
    assert find_by_counter("flux_capacitor") == find_warp_state("flux_capacitor")


def test_every_opcode_there_is_has_a_kind():
    for name in TABLE:
        assert find_kind(name) in KINDS
    for group in ProducerGroup:
        members = find_architecture((8, 0)).opcodes.producers[group].value
        assert {find_kind(member) for member in members}.isdisjoint({InstructionKind.OTHER, InstructionKind.UNKNOWN})


@pytest.mark.parametrize(
    ("mnemonic", "kind"),
    [
        ("LDGSTS.E.BYPASS.128", InstructionKind.ASYNC_COPY),
        ("LDSM.16.M88.4", InstructionKind.MATRIX_LOAD),
        ("BRA.DIV", InstructionKind.BRANCH),
        ("BRX", InstructionKind.INDIRECT_BRANCH),
        ("MEMBAR.SC.GPU", InstructionKind.FENCE),
        ("BSYNC", InstructionKind.RECONVERGENCE),
        ("CS2R", InstructionKind.WIDE_MOVE),
        ("ULDC.64", InstructionKind.CONSTANT_LOAD),
        ("DFMA", InstructionKind.FP64),
        ("HFMA2.MMA", InstructionKind.FP16),
        ("FROB", InstructionKind.OTHER),
    ],
)
def test_kinds_of_a_few(mnemonic, kind):
    assert find_kind(mnemonic) is kind


def test_every_level_of_a_unit_and_every_leg_has_a_remedy():
    assert {level for level, _, _ in MEMORY_UNITS} == LEVEL_REMEDIES.keys()
    metrics = [name_use(unit) for unit in (*MEMORY_UNITS, *PIPE_UNITS, *QUEUE_UNITS)]
    assert all(metric.endswith(".avg.pct_of_peak_sustained_elapsed") for metric in metrics)
    facts = write_facts(LOADS, {**COUNTERS, "lts__t_sectors_srcunit_ltcfabric.sum": 10.0}, compute_capability=(8, 0))
    split = view_memory(facts).split
    assert {part.name for part in split.parts} <= LEG_REMEDIES.keys()
    assert len(split.parts) == 6


LOADS = """
    B-:R-:W2:-:S02  LDG.E R4, [R2.64]     # - | selected=100 | x=1000 global_tag_requests=2000
    B2:R-:W-:-:S02  FADD R5, R4, R4       # - | long_scoreboard=9000 selected=100 | x=1000
"""
COUNTERS = {
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": 1000.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 8000.0,
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum": 4000.0,
    "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum": 2000.0,
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum": 2000.0,
    "lts__t_sectors_srcunit_tex_op_read.sum": 4000.0,
    "dram__sectors_read.sum": 1000.0,
    "smsp__average_warp_latency_per_inst_issued.ratio": 500.0,
    "smsp__inst_issued.sum": 2000.0,
}
