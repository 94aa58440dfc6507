"""Who is pending behind which scoreboard: examples a reader can follow, and everything against a walk instruction by instruction."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from gpa_lsp.diagnosis.blame import pending_flow
from gpa_lsp.diagnosis.blame.pending import MOST_SETTERS, PendingSetters, find_pending
from gpa_lsp.diagnosis.blame.view import FunctionView
from gpa_lsp.diagnosis.blame.work import WorkBudget
from gpa_lsp.kernel.model import Kernel
from tests.blame.listings import sections
from tests.blame.path_walk import Found, PathWalk
from tests.blame.worst_cases import write_diamonds, write_irreducible, write_recursion, write_waiting_loop
from tests.blame.written_views import view_kernel, view_text
from tests.conftest import examples


def find_all(view: FunctionView, budget: WorkBudget | None = None) -> PendingSetters:
    every = np.ones(len(view), dtype=np.bool_)
    return find_pending(view, every, budget or WorkBudget.for_function(len(view)))


def list_rows(text: str, row: int) -> list[int]:
    """The rows that the wait mask of a row waits for."""
    return sorted(one.row for one in find_all(view_text(text)).at_masks.get(row, ()))


def list_rows_of_dependency_barrier(text: str, row: int) -> list[int]:
    return sorted(one.row for one in find_all(view_text(text)).at_dependency_barriers.get(row, ()))


def test_a_scoreboard_is_a_counter() -> None:
    """The second load does not take the place of the first; the third is behind another scoreboard."""
    text = """
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W0:-:S02  LDG.E R3, [R6.64]
        B-:R-:W1:-:S02  LDG.E R8, [R6.64]
        B0:R-:W-:-:S04  FADD R3, R2, R3
        B01:R-:W-:-:S04 FADD R3, R8, R3
    """
    assert list_rows(text, 3) == [0, 1]
    assert list_rows(text, 4) == [2]


def test_a_wait_counts_although_its_guard_may_not_hold() -> None:
    text = """
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B0:R-:W-:-:S04  @P0 FADD R3, R2, R3
        B0:R-:W-:-:S04  FADD R3, R2, R3
    """
    assert list_rows(text, 2) == []


def test_an_instruction_whose_result_was_waited_for_has_read_its_operands() -> None:
    text = """
        B-:R1:W0:-:S02  LDG.E R2, [R4.64]
        B-:R1:W-:-:S02  STG.E [R6.64], R9
        B0:R-:W-:-:S04  FADD R3, R2, R3
        B1:R-:W-:-:S04  IADD3 R4, R4, 0x4, RZ
    """
    assert list_rows(text, 3) == [1]
    not_waited = text.replace("B0:", "B-:")
    assert list_rows(not_waited, 3) == [0, 1]


def test_a_wait_for_operands_leaves_the_result_pending() -> None:
    text = """
        B-:R1:W0:-:S02  LDG.E R2, [R4.64]
        B1:R-:W-:-:S04  IADD3 R4, R4, 0x4, RZ
        B0:R-:W-:-:S04  FADD R3, R2, R3
    """
    found = find_all(view_text(text)).at_masks
    assert [(one.by_result, one.by_operands) for one in found[1]] == [(False, True)]
    assert [(one.by_result, one.by_operands) for one in found[2]] == [(True, False)]


def test_one_scoreboard_for_both_is_one_setter() -> None:
    text = """
        B-:R0:W0:-:S02  LDG.E R2, [R4.64]
        B0:R-:W-:-:S04  FADD R3, R2, R3
    """
    (one,) = find_all(view_text(text)).at_masks[1]
    assert (one.row, one.by_result, one.by_operands, one.distance) == (0, True, True, (2, 1))


def test_a_wait_sees_what_the_last_turn_of_the_loop_set() -> None:
    text = """
    loop:
        B0:R-:W-:-:S04  FADD R3, R2, R3
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W-:-:S05  @P0 BRA loop
        B0:R-:W-:-:S04  FADD R3, R2, R3
    """
    (before,) = find_all(view_text(text)).at_masks[0]
    assert (before.row, before.distance) == (1, (7, 2))
    assert list_rows(text, 3) == [1]


def test_a_setter_waits_before_it_sets() -> None:
    text = """
    loop:
        B0:R-:W0:-:S02  LDG.E R2, [R2.64]
        B-:R-:W-:-:S05  @P0 BRA loop
    """
    (one,) = find_all(view_text(text)).at_masks[0]
    assert (one.row, one.distance) == (0, (7, 2))


PIPELINE = """
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x1
        B-:R-:W-:-:S05  BAR.SYNC 0x0
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x0
        B-:R-:W-:-:S05  BAR.SYNC 0x0
"""


def test_a_partial_wait_excludes_the_newest_and_is_done_with_the_older() -> None:
    assert list_rows_of_dependency_barrier(PIPELINE, 3) == [0, 1]
    assert list_rows_of_dependency_barrier(PIPELINE, 5) == [2]
    assert list_rows_of_dependency_barrier(PIPELINE.replace("DEPBAR.LE SB0, 0x1", "DEPBAR.LE SB0, 0x3"), 5) == [0, 1, 2]


def test_a_guarded_dependency_barrier_may_not_have_waited() -> None:
    assert list_rows_of_dependency_barrier(PIPELINE.replace("DEPBAR.LE SB0, 0x1", "@P0 DEPBAR.LE SB0, 0x1"), 5) == [
        0,
        1,
        2,
    ]


def test_a_dependency_barrier_can_name_more_scoreboards() -> None:
    text = """
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W1:-:S02  LDS R3, [R6]
        B-:R-:W2:-:S02  LDS R9, [R6]
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x0, {1}
        B-:R-:W-:-:S04  DEPBAR {5,4,3,2,1,0}
        B-:R-:W-:-:S05  EXIT
    """
    assert list_rows_of_dependency_barrier(text, 3) == [0, 1]
    assert list_rows_of_dependency_barrier(text, 4) == [2]


def test_the_commit_before_the_last_one_of_a_software_pipeline() -> None:
    """Two groups are under way; each turn waits for the older one, which the turn before last started, or the code before the loop."""
    text = """
        B-:R-:W0:-:S02  LDGDEPBAR
    loop:
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x1
        B-:R-:W-:-:S05  BAR.SYNC 0x0
        B-:R-:W-:-:S05  @P0 BRA loop
        B-:R-:W-:-:S05  EXIT
    """
    pending = find_all(view_text(text)).at_dependency_barriers[2]
    assert [(one.row, one.distance) for one in pending] == [(0, (4, 2)), (1, (18, 5))]


CALLS = """
        B-:R-:W0:-:S02  LDG.E R2, [R4.64]
        B-:R-:W-:-:S05  CALL.REL.NOINC `($half)
        B0:R-:W-:-:S04  FADD R3, R2, R3
        B-:R-:W1:-:S02  LDG.E R5, [R4.64]
        B-:R-:W-:-:S05  CALL.REL.NOINC `($half)
        B1:R-:W-:-:S04  FADD R3, R5, R3
        B2:R-:W-:-:S04  FADD R3, R7, R3
        B-:R-:W-:-:S05  EXIT
    $half:
        B1:R-:W-:-:S04  FMUL R6, R5, 0.5
        B-:R-:W2:-:S02  MUFU.RCP R7, R6
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
"""


def test_what_is_pending_at_a_call_is_pending_in_the_routine() -> None:
    assert list_rows(CALLS, 8) == [3]


def test_what_a_routine_lets_through_is_pending_behind_that_call_only() -> None:
    """The first load gets through to row 2; the second one is waited for inside. Neither returns to the other's call."""
    found = find_all(view_text(CALLS)).at_masks
    assert [(one.row, one.distance) for one in found[2]] == [(0, (2 + 5 + 4 + 2 + 5, 5))]
    assert found[5] == ()


def test_what_a_routine_sets_is_pending_behind_all_its_calls() -> None:
    assert list_rows(CALLS, 6) == [9]


def test_a_routine_may_let_through_older_and_younger() -> None:
    """On one way through the routine another setter follows, and then the partial wait waits for the first."""
    text = """
        B-:R-:W0:-:S02  LDGDEPBAR
        B-:R-:W-:-:S05  CALL.REL.NOINC `($maybe)
        B-:R-:W-:-:S04  DEPBAR.LE SB0, 0x1
        B-:R-:W-:-:S05  EXIT
    $maybe:
        B-:R-:W-:-:S05  @P0 BRA skip
        B-:R-:W0:-:S02  LDGDEPBAR
    skip:
        B-:R-:W-:-:S05  RET.REL.NODEC R20 0x0
    """
    assert list_rows_of_dependency_barrier(text, 2) == [0]


def flatten(found: PendingSetters) -> tuple[Found, Found]:
    masks, barriers = (
        {
            row: {(one.row, one.scoreboard): tuple(one.distance) for one in pending}
            for row, pending in each.items()
            if pending
        }
        for each in (found.at_masks, found.at_dependency_barriers)
    )
    return masks, barriers  # type: ignore[return-value]


@given(sections())
def test_it_is_what_a_walk_along_all_paths_finds(text: str) -> None:
    """Setters and shortest distances alike; loops, guards, calls, recursion and partial waits included."""
    view = view_text(text)
    walk = PathWalk(view)
    assert flatten(find_all(view)) == (walk.at_masks, walk.at_dependency_barriers)


@examples(200)
@given(sections())
def test_without_budget_only_what_crosses_blocks_is_missed(text: str) -> None:
    view = view_text(text)
    poor, rich = find_all(view, WorkBudget(remaining=0)), find_all(view)
    for row, pending in rich.at_masks.items():
        found = {one.row for one in poor.at_masks[row]}
        block = view.graph.block_of_instruction
        inside = {one.row for one in pending if one.row < row and block[one.row] == block[row]}
        assert inside <= found <= {one.row for one in pending}
    assert rich.is_complete


def test_a_spent_budget_is_told() -> None:
    budget = WorkBudget(remaining=10)
    text = "B-:R-:W0:-:S02 LDG.E R2, [R4.64]\nBRA next\nnext:\nB0:R-:W-:-:S04 FADD R3, R2, R3\nEXIT"
    assert not find_all(view_text(text), budget).is_complete
    assert budget.is_exhausted


def test_half_of_a_budget_is_left_for_others() -> None:
    view = view_kernel(write_waiting_loop(50))
    budget = WorkBudget(remaining=10_000)
    assert not find_all(view, budget).is_complete
    assert budget.remaining >= 5_000


def test_only_what_was_sampled_is_asked_about() -> None:
    view = view_text(PIPELINE)
    sampled = np.zeros(len(view), dtype=np.bool_)
    sampled[6] = True
    found = find_pending(view, sampled, WorkBudget.for_function(len(view)))
    assert (list(found.at_masks), list(found.at_dependency_barriers)) == ([], [5])


def test_of_very_many_the_nearest_are_named() -> None:
    text = "\n".join(["B-:R-:W0:-:S02 LDG.E R2, [R4.64]"] * 100 + ["B0:R-:W-:-:S04 FADD R3, R2, R3"])
    assert list_rows(text, 100) == list(range(100 - MOST_SETTERS, 100))


def test_a_block_takes_the_nearest_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending_flow, "MOST_BUNDLES", 2)
    text = "\n".join([*["B-:R-:W0:-:S02 LDG.E R2, [R4.64]", "@P0 BRA 0x0"] * 5, "B0:R-:W-:-:S04 FADD R3, R2, R3"])
    assert list_rows(text, 10) == [6, 8]


@pytest.mark.parametrize(
    ("write", "size"),
    [(write_diamonds, 300), (write_irreducible, 300), (write_recursion, 100), (write_waiting_loop, 300)],
    ids=["diamonds", "irreducible", "recursion", "waits that end nothing"],
)
def test_work_grows_with_the_function_not_with_its_square(write: Callable[[int], Kernel], size: int) -> None:
    spent = []
    for count in (size, 8 * size):
        view = view_kernel(write(count))
        budget = WorkBudget(remaining=10**9)
        assert find_all(view, budget).is_complete
        spent.append((10**9 - budget.remaining) / len(view))
    assert spent[1] < 1.5 * spent[0]
