"""Barriers, branches, drains and the reasons that stay: who is blamed."""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.diagnosis.blame.model import BlameCategory, Dependency, UnattributedCause
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.walk_back import BLAMED_ELSEWHERE, find_other_causes
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.profile.stall_reasons import STALL_REASONS
from tests.blame.listings import sections
from tests.blame.worst_cases import write_diamonds, write_irreducible, write_nest, write_recursion
from tests.blame.written_views import blame_other_reasons, view_kernel
from tests.blame.written_views import view_text as view
from tests.conftest import examples


class Blamed(NamedTuple):
    """An edge, as far as most tests look at it."""

    use: int
    cause: int
    samples: float
    instructions: int


def blame(function: FunctionView) -> list[Blamed]:
    """The edges, all of one reason."""
    edges, _ = blame_other_reasons(function, WorkBudget.for_function(len(function)))
    return [Blamed(edge.use_row, edge.def_row, edge.all_samples, edge.distance_instructions) for edge in edges]


def categorise(function: FunctionView) -> set[tuple[str, str]]:
    edges, _ = blame_other_reasons(function, WorkBudget.for_function(len(function)))
    return {(edge.category.name, edge.dependency.name) for edge in edges}


def list_lost(function: FunctionView) -> list[tuple[int, str, float, str]]:
    _, lost = blame_other_reasons(function, WorkBudget.for_function(len(function)))
    return [(one.row, function.reasons[one.reason], one.all_samples, one.cause.name) for one in lost]


def test_a_barrier_stall_is_the_barriers_before_it() -> None:
    function = view("""
        BAR.SYNC.DEFER_BLOCKING 0x0
        IADD3 R0, R0, 0x1, RZ       # barrier=90/80
        IADD3 R1, R1, 0x1, RZ
        BAR.SYNC.DEFER_BLOCKING 0x0 # barrier=10
        EXIT                        # barrier=5
    """)
    assert blame(function) == [Blamed(1, 0, 90, 1), Blamed(3, 0, 10, 3), Blamed(4, 3, 5, 1)]
    assert categorise(function) == {("SYNCHRONISATION", "SYNCHRONISATION")}
    edges, _ = find_other_causes(function, WorkBudget.for_function(len(function)))
    assert edges.latency_samples.tolist() == [80, 10, 5]


def test_barriers_on_several_ways_share_by_how_often_they_issued() -> None:
    text = """
        @P0 BRA other
        BAR.SYNC 0x0
        BRA join
    other:
        BAR.SYNC 0x0
    join:
        IADD3 R0, R0, 0x1, RZ       # barrier=80
    """
    assert blame(view(text, issue_counts=[4, 1, 1, 3, 4])) == [Blamed(4, 1, 20, 2), Blamed(4, 3, 60, 1)]
    assert blame(view(text, issue_counts=[0, 0, 0, 0, 0])) == [Blamed(4, 1, 40, 2), Blamed(4, 3, 40, 1)]


def test_a_barrier_at_the_end_of_a_loop_is_as_near_as_one_before_it() -> None:
    function = view(
        """
        BAR.SYNC 0x0
    loop:
        LDS R0, [R1]                # barrier=99
        BAR.SYNC 0x0
        ISETP.LT.AND P0, PT, R0, R6, PT
        @P0 BRA loop
        EXIT
    """,
        issue_counts=[1, 10, 10, 10, 10, 1],
    )
    assert blame(function) == [Blamed(1, 0, 9, 1), Blamed(1, 2, 90, 3)]


def test_a_barrier_far_away_on_another_way_is_not() -> None:
    filler = "IADD3 R0, R0, 0x1, RZ\n" * 8
    function = view(f"""
        BAR.SYNC 0x0
    loop:
        LDS R0, [R1]                # barrier=99
        BAR.SYNC 0x0
        {filler}
        @P0 BRA loop
        EXIT
    """)
    assert blame(function) == [Blamed(1, 0, 99, 1)]


def test_a_barrier_hides_those_before_it_over_the_borders_of_blocks() -> None:
    function = view("""
        BAR.SYNC 0x0
        @P0 EXIT
        B-:R-:W-:-:S05  BAR.SYNC 0x0
        B-:R-:W-:-:S07  @P1 EXIT
        B-:R-:W-:-:S03  NOP
        NOP                         # barrier=5
    """)
    assert blame(function) == [Blamed(5, 2, 5, 3)]
    edges, _ = find_other_causes(function, WorkBudget.for_function(len(function)))
    assert edges.distance_cycles.tolist() == [15]


def test_arriving_at_a_barrier_is_no_wait() -> None:
    function = view("""
        BAR.ARV 0x1, 0x40
        IADD3 R0, R0, 0x1, RZ       # barrier=9
        EXIT
    """)
    assert blame(function) == []
    assert list_lost(function) == [(1, "barrier", 9, "NO_PRODUCER")]


@pytest.mark.parametrize(
    ("reason", "opcode", "category"),
    [
        ("membar", "MEMBAR.SC.GPU", "SYNCHRONISATION"),
        ("membar", "ERRBAR", "SYNCHRONISATION"),
        ("warpgroup_arrive", "WARPGROUP.ARRIVE", "SYNCHRONISATION"),
        ("gmma", "WARPGROUP.ARRIVE", "SYNCHRONISATION"),
        ("sleeping", "NANOSLEEP 0x64", "SLEEPING"),
        ("sleeping", "YIELD", "SLEEPING"),
    ],
)
def test_every_kind_of_waiting_has_its_instruction(reason: str, opcode: str, category: str) -> None:
    function = view(f"""
        BAR.SYNC 0x0
        {opcode}
        IADD3 R0, R0, 0x1, RZ
        EXIT                        # {reason}=7
    """)
    assert blame(function) == [Blamed(3, 1, 7, 2)]
    assert categorise(function) == {(category, "SYNCHRONISATION")}


def test_what_sleeps_for_no_known_reason_keeps_its_samples() -> None:
    function = view("EXIT  # sleeping=7")
    assert blame(function) == [Blamed(0, 0, 7, 0)]
    assert categorise(function) == {("SLEEPING", "ITSELF")}


def test_branch_resolving_is_the_control_instruction_on_whichever_way() -> None:
    function = view(
        """
        BSSY B0, join
        @P0 BRA join                # branch_resolving=8
        IADD3 R0, R0, 0x1, RZ       # branch_resolving=4
        IADD3 R0, R0, 0x1, RZ
    join:
        BSYNC B0                    # branch_resolving=20
        EXIT                        # branch_resolving=1
    """,
        issue_counts=[10, 10, 5, 5, 10, 10],
    )
    assert blame(function) == [Blamed(1, 0, 8, 1), Blamed(2, 1, 4, 1), Blamed(4, 1, 20, 1), Blamed(5, 4, 1, 1)]
    assert categorise(function) == {("BRANCH", "CONTROL")}


def test_several_branches_to_one_place_share_by_how_often_they_issued() -> None:
    function = view(
        """
        @P0 BRA there
        @P1 BRA there
        EXIT
    there:
        IADD3 R0, R0, 0x1, RZ       # branch_resolving=80
        EXIT
    """,
        issue_counts=[3, 1, 1, 1, 1],
    )
    assert blame(function) == [Blamed(3, 0, 60, 1), Blamed(3, 1, 20, 1)]


def test_the_filler_behind_a_return_is_the_returns() -> None:
    """Not that of the branch to itself that stands there."""
    function = view("""
        EXIT
    self:
        BRA self                    # branch_resolving=5
        NOP                         # branch_resolving=1
    """)
    assert blame(function) == [Blamed(1, 0, 5, 1), Blamed(2, 1, 1, 1)]


def test_the_first_instruction_of_a_local_function_was_called() -> None:
    function = view(
        """
        CALL.REL.NOINC `($local)    # branch_resolving=3
        IADD3 R0, R0, 0x1, RZ       # branch_resolving=2
        CALL.REL.NOINC `($local)
        EXIT
    $local:
        IADD3 R0, R0, 0x1, RZ       # branch_resolving=40
        RET.REL.NODEC R20 0x0
    """,
        issue_counts=[1, 1, 3, 1, 4, 4],
    )
    assert blame(function) == [Blamed(1, 0, 2, 1), Blamed(4, 0, 10, 1), Blamed(4, 2, 30, 1)]
    assert list_lost(function) == [(0, "branch_resolving", 3, "NO_PRODUCER")]


def test_an_indirect_branch_says_so() -> None:
    function = view("""
        BRX R2 0x0
        IADD3 R0, R0, 0x1, RZ       # branch_resolving=4
    """)
    assert categorise(function) == {("INDIRECT", "CONTROL")}


def test_misc_is_the_control_instruction_right_before_or_stays() -> None:
    function = view("""
        BSSY B0, join               # misc=1
        IADD3 R0, R0, 0x1, RZ       # misc=5
        IADD3 R0, R0, 0x1, RZ       # misc=2
    join:
        BSYNC B0
        EXIT
    """)
    assert blame(function) == [Blamed(1, 0, 5, 1), Blamed(0, 0, 1, 0), Blamed(2, 2, 2, 0)]
    assert categorise(function) == {("MISC", "CONTROL"), ("MISC", "ITSELF")}


DRAIN = """
    STG.E [R2.64], R4
    @P0 BRA other
    STG.E [R2.64], R5
    STS [R6], R5
    BRA done
other:
    RED.E.ADD.STRONG.GPU [R2.64], R6
done:
    B-:R-:W-:-:S05  EXIT
    BRA 0x70                        # drain=90
"""


def test_a_drain_waits_for_the_last_stores_before_the_exit() -> None:
    """Stores to shared memory do not leave the SM."""
    function = view(DRAIN, issue_counts=[3, 3, 1, 1, 1, 2, 3, 0])
    assert blame(function) == [Blamed(7, 5, 90, 2)]
    function = view(DRAIN.replace("STS [R6], R5", "@P1 BRA done"), issue_counts=[3, 3, 1, 1, 1, 2, 3, 0])
    assert blame(function) == [Blamed(7, 5, 90, 2)]
    assert categorise(function) == {("DRAIN", "SYNCHRONISATION")}
    edges, _ = find_other_causes(function, WorkBudget.for_function(len(function)))
    assert edges.distance_cycles.tolist() == [6]


def test_stores_as_near_share_a_drain() -> None:
    function = view(
        """
        @P0 BRA other
        STG.E [R2.64], R5
        BRA done
    other:
        STL [R2], R6
        NOP
    done:
        EXIT
        BRA 0x60                        # drain=90/60
    """,
        issue_counts=[3, 1, 1, 2, 2, 3, 0],
    )
    assert blame(function) == [Blamed(6, 1, 30, 3), Blamed(6, 3, 60, 3)]
    edges, _ = find_other_causes(function, WorkBudget.for_function(len(function)))
    assert edges.latency_samples.tolist() == [20, 40]


def test_a_drain_without_stores_is_the_exits_and_one_without_exit_nobodys() -> None:
    function = view("""
        NOP                             # drain=1
        @P0 EXIT
        NOP                             # drain=2
        STG.E [R2.64], R5
        EXIT
        NOP
        NOP                             # drain=4
    """)
    assert sorted(blame(function)) == [Blamed(2, 1, 2, 1), Blamed(6, 3, 4, -1)]
    assert list_lost(function) == [(0, "drain", 1, "NO_PRODUCER")]


def test_dispatch_stalls_hint_at_a_wide_or_constant_operand_just_before() -> None:
    function = view("""
        IMAD.WIDE R2, R4, R5, R6
        IADD3 R0, R0, 0x1, RZ           # dispatch_stall=5
        IADD3 R0, R0, c[0x0][0x160], RZ # dispatch_stall=2
        IADD3 R0, R0, 0x1, RZ           # dispatch_stall=3
        LDSM.16.M88.4 R8, [R2]
        IADD3 R0, R0, 0x1, RZ           # dispatch_stall=1
    """)
    assert sorted(blame(function)) == [Blamed(1, 0, 5, 1), Blamed(2, 2, 2, 0), Blamed(3, 2, 3, 1), Blamed(5, 5, 1, 0)]
    assert categorise(function) == {("DISPATCH", "ISSUE"), ("DISPATCH", "ITSELF")}


def test_all_others_stay() -> None:
    function = view("""
        NOP
        LDG.E R0, [R2.64]   # lg_throttle=9/8 mio_throttle=2 selected=4 not_selected=3 no_instructions=1 flux_capacitor=6
        FFMA R0, R0, R0, c[0x0][0x10]  # math_pipe_throttle=5 imc_miss=1 tex_throttle=1
    """)
    edges, lost = find_other_causes(function, WorkBudget.for_function(3))
    assert len(lost) == 0
    assert edges.use_row.tolist() == edges.def_row.tolist() == [1] * 6 + [2] * 3
    found = {
        function.reasons[reason]: BlameCategory(category).name
        for reason, category in zip(edges.reason, edges.category, strict=True)
    }
    assert found == {
        "flux_capacitor": "MISC",
        "imc_miss": "CONSTANT_MISS",
        "lg_throttle": "MEMORY_THROTTLE",
        "math_pipe_throttle": "PIPE_THROTTLE",
        "mio_throttle": "MIO_THROTTLE",
        "no_instructions": "INSTRUCTION_FETCH",
        "not_selected": "NOT_SELECTED",
        "selected": "ISSUED",
        "tex_throttle": "TEXTURE_THROTTLE",
    }
    assert set(edges.dependency.tolist()) == {Dependency.ITSELF}


def test_scoreboards_and_wait_are_left_to_others() -> None:
    function = view("EXIT  # long_scoreboard=1 short_scoreboard=2 wait=3")
    assert blame_other_reasons(function, WorkBudget.for_function(1)) == ([], [])


def test_without_work_left_the_loss_says_so() -> None:
    function = view("BAR.SYNC 0x0\nhere:\nNOP  # barrier=3\n@P0 BRA here\nEXIT")
    _, lost = blame_other_reasons(function, WorkBudget(remaining=0))
    assert [(one.row, one.cause, one.all_samples) for one in lost] == [(1, UnattributedCause.WORK_BOUND, 3)]


def sample_everywhere(function: FunctionView, seed: int) -> FunctionView:
    """The same function with samples of every reason, and of an unknown one, on many instructions."""
    reasons = (*sorted(STALL_REASONS), "unheard_of")
    random = np.random.default_rng(seed)
    every = random.integers(0, 4, (len(function), len(reasons)))
    latency = np.minimum(every, random.integers(0, 4, every.shape))
    counts = random.integers(0, 5, len(function)).astype(np.float64)
    return replace(function, reasons=reasons, all_samples=every, latency_samples=latency, issue_counts=counts)


def check_nothing_is_lost(function: FunctionView) -> None:
    budget = WorkBudget.for_function(len(function))
    whole = budget.remaining
    edges, losses = find_other_causes(function, budget)
    for kind in ("all_samples", "latency_samples"):
        found = np.zeros(function.all_samples.shape)
        np.add.at(found, (edges.use_row, edges.reason), getattr(edges, kind))
        np.add.at(found, (losses.row, losses.reason), getattr(losses, kind))
        expected = getattr(function, kind).astype(np.float64)
        expected[:, [function.reasons.index(name) for name in BLAMED_ELSEWHERE]] = 0
        np.testing.assert_allclose(found, expected, atol=1e-9)
    assert (edges.latency_samples <= edges.all_samples).all()
    triples = list(zip(edges.use_row.tolist(), edges.reason.tolist(), edges.def_row.tolist(), strict=True))
    assert len(set(triples)) == len(triples)
    assert len(set(edges.group.tolist())) == len(edges)
    assert whole - budget.remaining < 100 * len(function)


@given(text=sections(), seed=st.integers(0, 1000))
@examples(150)
def test_nothing_is_lost_whatever_the_code_is(text: str, seed: int) -> None:
    check_nothing_is_lost(sample_everywhere(view(text), seed))


@pytest.mark.parametrize("write", [write_diamonds, write_irreducible, write_recursion, write_nest])
def test_work_grows_with_the_function_and_not_with_its_paths(write) -> None:  # type: ignore[no-untyped-def]
    check_nothing_is_lost(sample_everywhere(view_kernel(write(400)), 0))


@given(text=sections())
@examples(100)
def test_no_other_barrier_lies_on_the_shortest_way_from_the_one_that_is_blamed(text: str) -> None:
    """Against a search from each sampled instruction backwards, one instruction at a time."""
    text = text.replace("MUFU.RCP", "BAR.SYNC 0x0 //")
    function = view(text)
    marked = [row for row in range(len(function)) if function.opcode(row).name == "BAR"]
    function = replace(
        function,
        reasons=("barrier",),
        all_samples=np.ones((len(function), 1), dtype=np.int64),
        latency_samples=np.ones((len(function), 1), dtype=np.int64),
    )
    entered_from: dict[int, list[int]] = {}
    for call in function.graph.calls:
        if call.callee_procedure is not None:
            first = function.graph.procedures[call.callee_procedure].start_offset // 16
            entered_from.setdefault(first, []).append(call.instruction)
    nearest: dict[int, int] = {}
    for row in range(len(function)):
        front, seen, steps = {row}, {row}, 0
        while front:
            steps += 1
            front = {
                one
                for place in front
                for one in (*function.graph.previous_instructions(place), *entered_from.get(place, ()))
            }
            if front & set(marked):
                nearest[row] = steps
                break
            front -= seen
            seen |= front
    edges, lost = find_other_causes(function, WorkBudget.for_function(len(function)))
    assert set(lost.row.tolist()) == set(range(len(function))) - set(nearest)
    found: dict[int, int] = {}
    for use, cause, steps in zip(
        edges.use_row.tolist(), edges.def_row.tolist(), edges.distance_instructions.tolist(), strict=True
    ):
        assert cause in marked
        found[use] = min(found.get(use, steps), steps)
    assert found == nearest
