"""Local memory: spills, arrays and saved registers told apart; which limit to change."""

import pytest

from gpa_lsp.diagnosis.advice.matches import EliminationMatch
from gpa_lsp.diagnosis.advice.model import Advice, Category, Silence, SilenceStage
from gpa_lsp.diagnosis.advice.optimizers.register_reuse import OPTIMIZER, find_register_limits
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.kernel.dataflow.local_accesses import LocalUse, find_local_accesses
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import forget_code, write_subject
from tests.dataflow.test_arithmetic_sequences import read_fixture
from tests.rows.written import write_kernel

ARCHITECTURES = ("sm_75", "sm_80", "sm_90", "sm_120")

SPILL = """
        B-:R-:W-:-:S04  FFMA R9, R2, R3, R4         # k.cu:3 | selected=2
        B-:R0:W-:-:S02  STL [R1+0x8], R9            # k.cu:3 | lg_throttle=6 selected=1
    loop:
        B-:R-:W2:-:S02  LDL.LU R5, [R1+0x8]         # k.cu:6 | lg_throttle=10 selected=4
        B2:R-:W-:-:S04  FADD R6, R5, R6             # k.cu:6 | long_scoreboard=200/150 selected=4
        B-:R-:W-:-:S13  ISETP.NE.AND P0, PT, R7, RZ, PT   # k.cu:5 | wait=4
        B-:R-:W-:-:S05  @P0 BRA loop                # k.cu:5 | wait=12
        B-:R-:W-:-:S05  EXIT                        # k.cu:8 | selected=2
"""
SPILL_CAUSES = {(3, "long_scoreboard"): [2]}

ARRAY = """
        B-:R0:W-:-:S02  STL.128 [R1], RZ            # k.cu:3 | lg_throttle=2
        B-:R-:W-:-:S04  IADD3 R7, R1, R2, RZ        # k.cu:4 | selected=1
        B-:R-:W2:-:S02  LDL R5, [R7]                # k.cu:4 | selected=3
        B2:R-:W-:-:S04  IADD3 R5, R5, 0x1, RZ       # k.cu:4 | long_scoreboard=90
        B-:R0:W-:-:S02  STL [R7], R5                # k.cu:4 | selected=3
        B-:R-:W2:-:S02  LDL R6, [R1+0x4]            # k.cu:6 | selected=1
        B2:R-:W-:-:S02  STG.E [R10.64], R6          # k.cu:6 | long_scoreboard=20
        B-:R-:W-:-:S05  EXIT                        # k.cu:7
"""
ARRAY_CAUSES = {(3, "long_scoreboard"): [2], (6, "long_scoreboard"): [5]}

SAVED = """
        B-:R-:W-:-:S05  CALL.REL.NOINC $k$_Z4leafv  # k.cu:3 | selected=1
        B-:R-:W-:-:S05  EXIT                        # k.cu:4
    $k$_Z4leafv:
        B-:R-:W-:-:S04  IADD3 R1, R1, -0x10, RZ     # k.cu:8 | selected=1
        B-:R0:W-:-:S02  STL [R1+0x4], R16           # k.cu:8 | lg_throttle=5
        B-:R-:W-:-:S04  IADD3 R16, R2, 0x1, RZ      # k.cu:9 | selected=1
        B-:R-:W2:-:S02  LDL R16, [R1+0x4]           # k.cu:10 | selected=1
        B2:R-:W-:-:S05  RET.REL.NODEC R20 0x0       # k.cu:10 | long_scoreboard=70
"""


def match(subject: Subject) -> EliminationMatch:
    found = OPTIMIZER.match(subject)
    assert isinstance(found, EliminationMatch)
    return found


def advise(subject: Subject) -> Advice:
    found = OPTIMIZER.advise(subject)
    assert isinstance(found, Advice)
    return found


def list_uses(text: str) -> list[LocalUse]:
    return [one.use for one in find_local_accesses(write_kernel(text).rows)]


def test_a_place_that_is_written_and_read_again_by_its_offset_is_a_spill() -> None:
    assert list_uses(SPILL) == [LocalUse.SPILL, LocalUse.SPILL]
    # Without the mark of a last use too.
    assert list_uses(SPILL.replace(".LU", "")) == [LocalUse.SPILL, LocalUse.SPILL]
    store, load = find_local_accesses(write_kernel(SPILL).rows)
    assert (store.slots, load.slots, store.value_row, load.value_row) == ((8,), (8,), 0, None)


def test_an_address_that_depends_on_an_index_makes_an_array_of_its_frame() -> None:
    assert set(list_uses(ARRAY)) == {LocalUse.ARRAY}
    indexed = [one.is_indexed for one in find_local_accesses(write_kernel(ARRAY).rows)]
    assert indexed == [False, True, True, False]


def test_a_copy_of_the_stack_pointer_is_no_index() -> None:
    text = SPILL.replace("LDL.LU R5, [R1+0x8]", "LDL R5, [R7+0x4]     ").replace(
        "    loop:", "        IADD3 R7, R1, 0x4, RZ  # k.cu:4\n    loop:"
    )
    assert [(one.use, one.slots) for one in find_local_accesses(write_kernel(text).rows)] == [
        (LocalUse.SPILL, (8,)),
        (LocalUse.SPILL, (8,)),
    ]


def test_a_register_that_a_called_function_only_keeps_is_saved() -> None:
    assert list_uses(SAVED) == [LocalUse.SAVED_REGISTER, LocalUse.SAVED_REGISTER]
    found = OPTIMIZER.match(write_subject(SAVED, {(6, "long_scoreboard"): [5]}))
    assert isinstance(found, Silence)
    assert found.message == "2 local-memory accesses, all to registers saved for callers"


def test_everything_a_spill_costs_counts_and_its_value_is_named() -> None:
    subject = write_subject(SPILL, SPILL_CAUSES, registers=64, block=(256, 1, 1))
    loop, outside = match(subject).regions
    assert (loop.scope.kind, loop.samples, loop.latency_samples) == (ScopeKind.LOOP, 10 + 4 + 200, 10 + 150)
    assert outside.samples == 6 + 1
    assert "Spilled to local memory: 1 value of 4 bytes" in loop.hint
    assert "the result of FFMA at line 3 of k.cu" in loop.hint


def test_the_source_names_the_spilled_variable() -> None:
    source = "\n\n  float sum = a * b + c;\n"
    subject = write_subject(SPILL, SPILL_CAUSES, sources={"k.cu": source})
    assert "`sum`, computed at line 3 of k.cu (FFMA)" in match(subject).hint


def test_a_launch_bound_that_is_too_large_is_a_matter_of_flags() -> None:
    advice = advise(write_subject(SPILL, SPILL_CAUSES, registers=64, block=(256, 1, 1)))
    assert advice.category is Category.BINARY
    assert "held to 64 registers per thread by a bound of 1,024 threads" in advice.hint
    assert "`__launch_bounds__(256)`" in advice.hint


@pytest.mark.parametrize(
    ("registers", "threads", "words"),
    [(255, 128, "All 255 registers of a thread are in use"), (64, 1024, "Blocks of 1,024 threads leave 64 registers")],
)
def test_where_no_flag_helps_the_code_has_to(registers: int, threads: int, words: str) -> None:
    advice = advise(write_subject(SPILL, SPILL_CAUSES, registers=registers, block=(threads, 1, 1)))
    assert advice.category is Category.CODE
    assert words in advice.hint
    assert "split the loop body" in advice.hint


def test_more_registers_without_losing_warps_are_counted() -> None:
    shared = {"launch__shared_mem_per_block_static": 0.0, "launch__shared_mem_per_block_dynamic": 0.0}
    subject = write_subject(
        SPILL, SPILL_CAUSES, registers=65, block=(256, 1, 1), compute_capability=(8, 0), metrics=shared
    )
    limits = find_register_limits(subject)
    # 65 are given out as 72 (in units of 256 a warp), three blocks of eight warps; a fourth would need 64.
    assert (limits.resident_warps, limits.most_for_residency) == (24, 80)
    assert limits.bound_threads is None
    assert "up to 80 keep 24 warps per SM resident" in limits.advise(4)


def test_an_array_is_a_matter_of_code_and_keeps_its_accesses() -> None:
    subject = write_subject(ARRAY, ARRAY_CAUSES)
    found = match(subject)
    assert sum(region.samples for region in found.regions) == 2 + 90 + 20
    assert "index is unknown at compile time" in found.hint
    assert "line 4 of k.cu" in found.hint
    assert advise(subject).category is Category.CODE


def test_a_variable_whose_address_is_taken() -> None:
    text = """
        STL [R1], R4                     # k.cu:3 | lg_throttle=9
        EXIT                             # k.cu:4
    """
    assert "its address is taken" in match(write_subject(text, {})).hint


def test_silences() -> None:
    none = OPTIMIZER.match(write_subject("FADD R2, R2, R3  # k.cu:3 | wait=4\nEXIT", {}))
    assert isinstance(none, Silence)
    assert "none of the 2 instructions" in none.message
    free = OPTIMIZER.match(write_subject("STL [R1], R4 # k.cu:3\nEXIT # k.cu:3 | wait=4", {}))
    assert isinstance(free, Silence)
    assert "caused none of the 4 samples" in free.message
    blind = OPTIMIZER.match(forget_code(write_subject(SPILL, SPILL_CAUSES)))
    assert isinstance(blind, Silence)
    assert blind.stage is SilenceStage.NO_CODE


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_the_fixtures_accesses_are_what_their_patterns_say(sm: str) -> None:
    expected = {
        "register_spill": LocalUse.SPILL,
        "local_array": LocalUse.ARRAY,
        "recursion": LocalUse.SAVED_REGISTER,
    }
    for pattern, use in expected.items():
        accesses = find_local_accesses(read_fixture(pattern, "original", sm))
        assert {one.use for one in accesses} == {use}, pattern
        assert find_local_accesses(read_fixture(pattern, "improved", sm)) == (), pattern
    spills = [one for one in find_local_accesses(read_fixture("register_spill", "original", sm)) if one.is_store]
    assert all(one.value_row is not None and one.value_row < one.row for one in spills)
