"""What the counters say of a reason besides its sources."""

import pytest

from gpa_lsp.diagnosis.analyses.decomposition.instruction_rows import view_rows
from gpa_lsp.diagnosis.analyses.decomposition.reason_notes import (
    STORE_AND_GO_ON,
    STORES_ARE_DENSE,
    measure_bank_conflicts,
    note_reason,
)
from gpa_lsp.diagnosis.analyses.decomposition.stall_split import split_reason
from gpa_lsp.diagnosis.analyses.decomposition.unit_use import list_queue_use
from gpa_lsp.diagnosis.analyses.questions import stall_sources
from gpa_lsp.kernel.dataflow.instruction_kinds import InstructionKind
from tests.analyses.decomposition.written_facts import write_facts


def note(text, reason, metrics=None, **options):
    facts = write_facts(text, metrics, **options)
    return note_reason(facts, split_reason(facts, reason), view_rows(facts).kinds)


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
    loads, special = list_queue_use(facts, view_rows(facts).kinds, "mio_throttle")
    assert (loads.kind, loads.executions, loads.share_ratio, loads.per_cycle) == (
        InstructionKind.SHARED_LOAD,
        3000,
        0.75,
        0.75,
    )
    assert (loads.passes, loads.least_passes, loads.thread_bytes) == (3.0, 1.0, 4.0)
    assert (special.kind, special.passes, special.thread_bytes) == (InstructionKind.SPECIAL_FUNCTION, None, None)
    assert list_queue_use(facts, view_rows(facts).kinds, "wait") == ()


def test_conflicts_by_aggregates_where_instructions_were_not_counted():
    metrics = {
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum": 30.0,
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum": 120.0,
    }
    shared, other = (write_facts(text, metrics) for text in ("    LDS R4, [R9]", "    MOV R4, R9"))
    assert measure_bank_conflicts(shared, view_rows(shared).kinds) == 0.25
    assert measure_bank_conflicts(other, view_rows(other).kinds) is None


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
    (finding,) = stall_sources.answer(write_facts(text)).findings
    assert STORES_ARE_DENSE in finding.text
    assert finding.remedy == STORE_AND_GO_ON
