"""``wait``: the instruction at the address before, and the result that forced its stall count."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.code.binary.model import name_resource
from gpa_lsp.diagnosis.blame.fixed_latency import find_wait_causes
from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from tests.blame.listings import sections
from tests.blame.worst_cases import write_diamonds, write_irreducible, write_recursion
from tests.blame.written_views import blame_wait, view_kernel
from tests.blame.written_views import view_text as view
from tests.conftest import examples


class Blamed(NamedTuple):
    """An edge, as far as tests look at it."""

    use: int
    cause: int
    dependency: str
    resource: str
    cycles: int
    instructions: int


def blame(function: FunctionView) -> list[Blamed]:
    edges = blame_wait(function, WorkBudget.for_function(len(function)))
    return [
        Blamed(
            edge.use_row,
            edge.def_row,
            edge.dependency.name,
            name_resource(edge.resource) if edge.resource >= 0 else "",
            edge.distance_cycles,
            edge.distance_instructions,
        )
        for edge in edges
    ]


def test_a_branch_waits_for_its_guard() -> None:
    function = view("""
        B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R2, R6, PT
        B-:R-:W-:-:S05  @P0 BRA 0x0                     # wait=12
        B-:R-:W-:-:S05  EXIT
    """)
    assert blame(function) == [Blamed(1, 0, "GUARD", "P0", 13, 1)]
    (edge,) = blame_wait(function, WorkBudget.for_function(3))
    assert (edge.category, edge.all_samples, edge.latency_samples) == (BlameCategory.EXECUTION_ARITHMETIC, 12.0, 12.0)


def test_the_producer_is_found_behind_an_instruction_that_has_nothing_to_do_with_it() -> None:
    function = view("""
        B-:R-:W-:-:S01  FMUL R2, R3, R4
        B-:R-:W-:-:S03  IADD3 R9, R9, 0x1, RZ
        B-:R-:W-:-:S05  FADD R5, R2, R4           # wait=2
    """)
    assert blame(function) == [Blamed(2, 0, "READ_AFTER_WRITE", "R2", 4, 2)]


def test_of_several_producers_the_one_that_asks_for_the_most() -> None:
    function = view("""
        B-:R-:W-:-:S01  FMUL R2, R3, R4
        B-:R-:W-:-:S05  IADD3 R6, R9, 0x1, RZ
        B-:R-:W-:-:S05  FFMA R5, R2, R6, R4       # wait=4
    """)
    assert blame(function) == [Blamed(2, 1, "READ_AFTER_WRITE", "R6", 5, 1)]


def test_a_stall_count_that_no_result_asks_for_is_the_issue_cost_of_its_instruction() -> None:
    function = view("""
        B-:R-:W-:-:S02  FMUL R2, R3, R4
        B-:R-:W0:-:S08  I2F R7, R8
        B-:R-:W-:-:S05  FADD R5, R2, R4           # wait=7
    """)
    assert blame(function) == [Blamed(2, 1, "ISSUE", "", 8, 1)]
    (edge,) = blame_wait(function, WorkBudget.for_function(3))
    assert edge.category == BlameCategory.ISSUE


def test_a_result_that_explains_less_than_half_of_the_stall_is_not_its_cause() -> None:
    """FMUL asks for 4 cycles, of which 2 are left before IMMA; the 6 cycles are IMMA's own."""
    function = view("""
        B-:R-:W-:-:S02  FMUL R2, R3, R4
        B-:R-:W-:-:S06  NOP
        B-:R-:W-:-:S05  FADD R5, R2, R4           # wait=5
    """)
    assert blame(function) == [Blamed(2, 1, "ISSUE", "", 6, 1)]


def test_the_halves_of_a_pair_are_one_dependency() -> None:
    """Only the high half of the address asks for as many cycles."""
    function = view("""
        B-:R-:W-:-:S05  IMAD.WIDE R4, R2, R3, R6
        B-:R-:W0:-:S02  LDG.E R8, [R4.64]         # wait=4
    """)
    assert blame(function) == [Blamed(1, 0, "READ_AFTER_WRITE", "R4", 5, 1)]


@pytest.mark.parametrize(
    ("stall", "use", "is_cause"),
    [
        ("02", "IMAD.WIDE R8, R2, R3, R4", True),  # its addend it reads two cycles before its factors
        ("06", "IMAD.WIDE R8, R2, R3, R4", False),
        ("06", "IMAD.WIDE R8, R5, R3, R4", True),
        ("02", "IMAD.WIDE R8, R2, R3, R6", False),
        ("06", "IADD3 R8, R5, R3, RZ", True),  # the high half comes two cycles after the low one
        ("06", "IADD3 R8, R4, R3, RZ", False),
    ],
)
def test_halves_and_operands_have_latencies_of_their_own(stall: str, use: str, is_cause: bool) -> None:
    function = view(f"""
        B-:R-:W-:-:S{stall}  IMAD.WIDE R4, R2, R3, R6
        B-:R-:W-:-:S02       {use}                    # wait=1
    """)
    (found,) = blame(function)
    assert found.dependency == ("READ_AFTER_WRITE" if is_cause else "ISSUE")


def test_double_precision_behind_a_scoreboard_counts_where_the_stall_covers_it() -> None:
    """Compute capability 7.0 waits for it by time although a scoreboard is set; 8.6 waits for the scoreboard."""
    text = """
        B-:R-:W0:-:S{stall}  DFMA R4, R2, R2, R4
        B0:R-:W-:-:S02       DFMA R6, R2, R2, R4      # wait=7
    """
    assert blame(view(text.format(stall="08"), (7, 0))) == [Blamed(1, 0, "READ_AFTER_WRITE", "R4", 8, 1)]
    assert blame(view(text.format(stall="02"), (8, 6))) == [Blamed(1, 0, "ISSUE", "", 2, 1)]


def test_a_guarded_def_does_not_hide_the_one_before_it() -> None:
    """Double precision takes 10 cycles, of which 8 are left; the move asks for three at most."""
    text = """
        B-:R-:W-:-:S01  DADD R2, R6, R8
        B-:R-:W-:-:S01  {guard} MOV R2, R9
        B-:R-:W-:-:S08  NOP
        B-:R-:W-:-:S05  IADD3 R5, R2, R4, RZ      # wait=7
    """
    assert blame(view(text.format(guard="@P1"))) == [Blamed(3, 0, "READ_AFTER_WRITE", "R2", 10, 3)]
    assert blame(view(text.format(guard=""))) == [Blamed(3, 2, "ISSUE", "", 8, 1)]


def test_the_last_def_hides_those_before_it() -> None:
    unguarded = view("""
        B-:R-:W-:-:S01  HADD2 R2, R3, R4
        B-:R-:W-:-:S03  MOV R2, R9
        B-:R-:W-:-:S04  NOP
        B-:R-:W-:-:S05  IADD3 R5, R2, R4, RZ      # wait=3
    """)
    assert blame(unguarded)[0].dependency == "ISSUE"


LOOP = """
    B-:R-:W-:-:S04  MOV R0, RZ
loop:
    B-:R-:W-:-:S04  IADD3 R0, R0, 0x1, RZ          # wait=3
    B-:R-:W-:-:S13  ISETP.LT.AND P0, PT, R0, R6, PT
    B-:R-:W-:-:S05  @P0 BRA loop
    B-:R-:W-:-:S04  MOV R7, R0                     # wait=4000
    B-:R-:W-:-:S05  EXIT
"""


def test_the_stall_of_a_taken_branch_shows_at_the_address_behind_it() -> None:
    """The loop's branch is blamed for what lies behind the loop; the header waits for what is before it by address."""
    assert blame(view(LOOP)) == [
        Blamed(1, 0, "READ_AFTER_WRITE", "R0", 4, 1),
        Blamed(4, 3, "ISSUE", "", 5, 1),
    ]


def test_behind_an_instruction_that_never_falls_through_no_result_is_looked_for() -> None:
    function = view("""
        B-:R-:W-:-:S01  MOV R2, R3
        B-:R-:W-:-:S05  EXIT
        B-:R-:W-:-:S04  IADD3 R4, R2, R2, RZ       # wait=4
    """)
    assert blame(function) == [Blamed(2, 1, "ISSUE", "", 5, 1)]


def test_the_first_instruction_keeps_its_wait() -> None:
    function = view("""
        B-:R-:W-:-:S04  MOV R0, RZ                # wait=3
        B-:R-:W-:-:S05  EXIT
        BRA 0x20
    $local:
        B-:R-:W-:-:S04  MOV R1, RZ                # wait=2
        RET.REL.NODEC R20 0x0
    """)
    assert blame(function) == [Blamed(0, 0, "ITSELF", "", 0, 0), Blamed(3, 3, "ITSELF", "", 0, 0)]


def test_producers_are_found_over_the_borders_of_blocks() -> None:
    """Two cycles before the join, the predicate was written four cycles ago on one way and two on the other."""
    function = view("""
        B-:R-:W-:-:S13  ISETP.LT.AND P1, PT, R0, R6, PT
        B-:R-:W-:-:S01  @P1 BRA join
        B-:R-:W-:-:S02  ISETP.LT.AND P0, PT, R2, R6, PT
    join:
        B-:R-:W-:-:S11  NOP
        B-:R-:W-:-:S05  @P0 BRA 0x0                # wait=10
    """)
    assert blame(function) == [Blamed(4, 2, "GUARD", "P0", 13, 2)]


def test_a_call_ends_the_search() -> None:
    function = view("""
        B-:R-:W-:-:S01  MOV R2, R3
        B-:R-:W-:-:S01  CALL.REL.NOINC `($local)
        B-:R-:W-:-:S03  NOP
        B-:R-:W-:-:S04  IADD3 R4, R2, R2, RZ       # wait=3
        EXIT
    $local:
        RET.REL.NODEC R20 0x0
    """)
    assert blame(function) == [Blamed(3, 2, "ISSUE", "", 3, 1)]


def test_uniform_registers_and_predicates_have_latencies_of_their_own() -> None:
    function = view("""
        B-:R-:W-:-:S06  UIADD3 UR4, UR4, 0x1, URZ
        B-:R-:W-:-:S04  IADD3 R2, R2, UR4, RZ               # wait=5
        B-:R-:W-:-:S12  UIADD3 UR6, UR4, 0x1, URZ
        B-:R-:W-:-:S04  IADD3 R3, R2, cx[UR6][0x10], RZ     # wait=11
        B-:R-:W-:-:S11  UISETP.LT.AND UP0, UPT, UR4, UR5, UPT
        B-:R-:W-:-:S04  @UP0 UIADD3 UR7, UR4, 0x1, URZ      # wait=10
    """)
    assert [(found.cause, found.dependency, found.resource) for found in blame(function)] == [
        (0, "READ_AFTER_WRITE", "UR4"),
        (2, "READ_AFTER_WRITE", "UR6"),
        (4, "GUARD", "UP0"),
    ]


def test_without_a_table_the_nearest_def_in_the_window_is_taken() -> None:
    function = replace(
        view("""
        B-:R-:W-:-:S09  MOV R7, R3
        B-:R-:W-:-:S01  MOV R2, R3
        B-:R-:W0:-:S01  LDG.E R8, [R4.64]
        B-:R-:W-:-:S07  NOP
        B0:R-:W-:-:S04  IADD3 R4, R2, R8, R7       # wait=6
        B-:R-:W-:-:S15  NOP
        B0:R-:W-:-:S04  IADD3 R6, R4, R8, R7       # wait=14
    """),
        architecture=None,
    )
    assert blame(function) == [Blamed(4, 1, "READ_AFTER_WRITE", "R2", 9, 3), Blamed(6, 5, "ISSUE", "", 15, 1)]


def test_without_work_left_the_instruction_before_is_blamed() -> None:
    budget = WorkBudget(remaining=0)
    assert not budget.spend(1)
    (edge,) = blame_wait(view(LOOP.replace("wait=4000", "selected=1")), budget)
    assert (edge.use_row, edge.def_row, edge.dependency) == (1, 0, Dependency.ISSUE)


def test_without_samples_there_is_nothing_to_blame() -> None:
    assert blame_wait(view("B-:R-:W-:-:S05  EXIT  # selected=3"), WorkBudget.for_function(1)) == []


@given(text=sections())
@examples(150)
def test_every_sampled_instruction_has_one_cause_with_all_its_samples(text: str) -> None:
    function = view(text.replace("long_scoreboard=7/3 short_scoreboard=2", "wait=7/3"))
    edges = find_wait_causes(function, WorkBudget.for_function(len(function)))
    reason = function.reason_index("wait")
    sampled = [] if reason is None else np.flatnonzero(function.all_samples[:, reason]).tolist()
    assert edges.use_row.tolist() == sampled
    assert edges.all_samples.tolist() == function.all_samples[sampled, reason].tolist()
    assert edges.latency_samples.tolist() == function.latency_samples[sampled, reason].tolist()
    assert sorted(edges.group.tolist()) == list(range(len(edges)))
    for use, cause, dependency, resource, cycles in zip(
        edges.use_row.tolist(),
        edges.def_row.tolist(),
        edges.dependency.tolist(),
        edges.resource.tolist(),
        edges.distance_cycles.tolist(),
        strict=True,
    ):
        if dependency in (Dependency.READ_AFTER_WRITE, Dependency.GUARD):
            assert resource in function.instructions.writes.of(cause)
            assert resource in function.instructions.reads.of(use)
            assert cycles >= function.stall_cycles[use - 1]
        elif dependency == Dependency.ISSUE:
            assert (cause, cycles) == (use - 1, function.stall_cycles[use - 1])
        else:
            assert (dependency, cause, cycles) == (Dependency.ITSELF, use, 0)


@st.composite
def straight_lines(draw: st.DrawFn) -> str:
    """Integer and float arithmetic on four registers, every instruction sampled."""
    lines = []
    for _ in range(draw(st.integers(2, 12))):
        opcode = draw(st.sampled_from(["IADD3 R{}, R{}, R{}, RZ", "FMUL R{}, R{}, R{}", "HADD2 R{}, R{}, R{}"]))
        registers = draw(st.tuples(*[st.integers(0, 3)] * 3))
        lines.append(f"B-:R-:W-:-:S{draw(st.integers(1, 6)):02}  {opcode.format(*registers)}  # wait=1")
    return "\n".join(lines)


@given(text=straight_lines())
@examples(200)
def test_in_straight_code_the_cause_is_the_def_that_asks_for_the_most(text: str) -> None:
    """Against the definition, pair by pair."""
    function = view(text)
    architecture = function.architecture
    assert architecture is not None
    for found in blame(function)[1:]:
        issuer, stall = found.use - 1, int(function.stall_cycles[found.use - 1])
        asked = {}
        for register in function.instructions.reads.of(found.use):
            defs = [row for row in range(found.use) if register in function.instructions.writes.of(row)]
            if not defs:
                continue
            bounds = architecture.find_register_latency(function.mnemonic(defs[-1]), function.mnemonic(found.use))
            assert bounds is not None
            asked[defs[-1]] = bounds.high_cycles - int(function.stall_cycles[defs[-1] : issuer].sum())
        most = max([min(cycles, stall) for cycles in asked.values()], default=0)
        if most > 1 and 2 * (most - 1) >= stall - 1:
            assert min(asked[found.cause], stall) == most
            assert found.dependency == "READ_AFTER_WRITE"
        else:
            assert (found.cause, found.dependency) == (issuer, "ISSUE")


@pytest.mark.parametrize("write", [write_diamonds, write_irreducible, write_recursion])
def test_work_grows_with_the_function_and_not_with_its_paths(write) -> None:  # type: ignore[no-untyped-def]
    function = view_kernel(write(400))
    budget = WorkBudget.for_function(len(function))
    whole = budget.remaining
    edges = find_wait_causes(function, budget)
    assert len(edges) > 400
    assert whole - budget.remaining < 60 * len(function)
