"""Notes that the counters add to a reason, in addition to its sources."""

import pytest

from gpa_lsp.diagnosis.analyses.decomposition.memory_view import LEG_REMEDIES, LEVEL_REMEDIES, view_memory
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import (
    STORE_AND_GO_ON,
    STORES_ARE_DENSE,
    measure_bank_conflicts,
    note_reason,
)
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import split_reason
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import (
    MEMORY_UNITS,
    PIPE_UNITS,
    QUEUE_UNITS,
    list_queue_use,
    name_use,
)
from gpa_lsp.diagnosis.analyses.decomposition.warp_time import WARP_STATES, SourceRule, find_by_counter, find_warp_state
from gpa_lsp.diagnosis.analyses.questions import stall_sources
from gpa_lsp.gpu.arch.hazards import ProducerGroup
from gpa_lsp.gpu.arch.lookup import find_architecture, list_architectures
from gpa_lsp.kernel.dataflow.instruction_kinds import KINDS, InstructionKind, find_kind
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.analyses.decomposition.written_facts import write_facts
from tests.binary.opcode_table import TABLE


def note(text, reason, metrics=None, **options):
    facts = write_facts(text, metrics, **options)
    return note_reason(facts, split_reason(facts, reason))


def test_the_cycles_the_compiler_encoded():
    # 1,000 times 2 cycles and 3,000 times 6.
    text = """
        B-:R-:W-:-:S02  MOV R1, R2             # - | wait=1 | x=1000
        B-:R-:W-:-:S06  MOV R1, R2             # - | wait=1 | x=3000
    """
    assert note(text, "wait") == "The compiler encoded 5 stall cycles per instruction on average."


@pytest.mark.parametrize(
    ("fences", "scope"),
    [("MEMBAR.SC.GPU", "the GPU"), ("MEMBAR.SC.SYS", "the whole system"), ("MEMBAR.ALL.CTA", "the block")],
)
def test_the_scope_of_fences(fences, scope):
    text = f"    B-:R-:W-:-:S06  {fences}  # k.cu:3\n    B-:R-:W-:-:S02  MOV R1, R2  # k.cu:4 | membar=5"
    assert note(text, "membar") == f"The widest of these fences covers {scope}."


def test_warps_that_synchronise():
    text = "    B-:R-:W-:-:S06  BAR.SYNC 0x0  # k.cu:3\n    B-:R-:W-:-:S02  MOV R1, R2  # k.cu:4 | barrier=5"
    assert note(text, "barrier", block=(33, 3, 1)) == "4 warps of a block synchronise at 1 place."


def test_few_double_precision_lanes():
    text = "    B-:R-:W0:-:S02  DFMA R4, R6, R8, R4  # math_pipe_throttle=50"
    said = note(text, "math_pipe_throttle", {"sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed": 91.0})
    assert "The busiest pipe is FP64, at 91 % of its peak." in said
    assert "a warp occupies the pipe for 16 cycles" in said
    assert "16 cycles" not in note(text, "math_pipe_throttle", compute_capability=(8, 0))


def test_code_size_and_line_starts():
    lines = [
        f"    MOV R1, R2  # - | no_instructions={90 if row == 8 else 10 if row == 3 else 0} | x=1" for row in range(64)
    ]
    assert note("\n".join(lines), "no_instructions") == (
        "1 KiB of code was executed; 90 % of these samples are at the start of a 128-byte line of code."
    )


def test_a_queue_by_kind():
    """4,000 instructions in 1,000 cycles of 4 SMs; loads take three passes where one would do."""
    text = """
        LDS R4, [R9]            # - | mio_throttle=5 | x=3000 shared_wavefronts=9000 shared_wavefronts_ideal=3000
        MUFU.RCP R4, R6         # - | mio_throttle=5 | x=1000
        LDG.E R4, [R2.64]       # - | mio_throttle=5 | x=9000
        LDS.128 R4, [R9]        # - | mio_throttle=5 | x=0
    """
    facts = write_facts(text, {"sm__cycles_active.avg": 1000.0})
    loads, special = list_queue_use(facts, "mio_throttle")
    assert (loads.kind, loads.executions, loads.share_ratio, loads.per_cycle) == (
        InstructionKind.SHARED_LOAD,
        3000,
        0.75,
        0.75,
    )
    assert (loads.passes, loads.least_passes, loads.thread_bytes) == (3.0, 1.0, 4.0)
    assert (special.kind, special.passes, special.thread_bytes) == (InstructionKind.SPECIAL_FUNCTION, None, None)
    assert list_queue_use(facts, "wait") == ()


def test_conflicts_by_aggregates_where_instructions_were_not_counted():
    metrics = {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 30.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 120.0,
    }
    shared, other = (write_facts(text, metrics) for text in ("    LDS R4, [R9]", "    MOV R4, R9"))
    assert measure_bank_conflicts(shared) == 0.25
    assert measure_bank_conflicts(other) is None


def test_how_long_a_barrier_stalls():
    """4,000 executions over 40 samples: 100 warp-cycles a sample; 300 samples over 2,000 executions of a barrier: 15 cycles."""
    text = """
        B-:R-:W-:-:S06  BAR.SYNC 0x0  # k.cu:3 | selected=20 | x=2000
        B-:R-:W-:-:S02  MOV R1, R2    # k.cu:4 | selected=20 barrier=300 | x=2000
    """
    assert note(text, "barrier").endswith("at 1 place, stalled for 15 cycles each time on average.")


def test_how_dense_the_stores_are():
    text = """
        STG.E [R2.64], R4  # k.cu:3 | selected=1 | x=10 global_tag_requests=320 global_sectors_ideal=40
        EXIT               # k.cu:4
        BRA `(.L)          # k.cu:4 | drain=50
    """
    assert note(text, "drain") == "A store takes 32 lines of 128 bytes where 1 would suffice."


def test_dense_stores_are_not_to_be_made_denser():
    text = """
        STG.E [R2.64], R4  # k.cu:3 | selected=1 | x=10 global_tag_requests=10 global_sectors_ideal=40
        EXIT               # k.cu:4
        BRA `(.L)          # k.cu:4 | drain=50
    """
    (finding,) = stall_sources.ANALYSIS.ask(write_facts(text)).findings
    assert STORES_ARE_DENSE in finding.text
    assert finding.remedy == STORE_AND_GO_ON


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
