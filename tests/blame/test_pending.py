"""Pending instructions of each scoreboard: examples a reader can follow, and everything against a walk instruction by instruction."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given

from gpa_lsp.diagnosis.blame.pending import MOST_SETTERS, PendingSetters, find_pending
from gpa_lsp.diagnosis.blame.view import FunctionView, WorkBudget
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


@examples(80)
@given(sections())
def test_it_is_what_a_walk_along_all_paths_finds(text: str) -> None:
    """Setters and shortest distances alike; loops, guards, calls, recursion and partial waits included."""
    view = view_text(text)
    walk = PathWalk(view)
    assert flatten(find_all(view)) == (walk.at_masks, walk.at_dependency_barriers)


@examples(80)
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
    view = view_text("B-:R-:W0:-:S02  LDGDEPBAR\nB0:R-:W-:-:S04  NOP\nDEPBAR.LE SB0, 0x0\nBAR.SYNC 0x0")
    sampled = np.zeros(len(view), dtype=np.bool_)
    sampled[3] = True
    found = find_pending(view, sampled, WorkBudget.for_function(len(view)))
    assert (list(found.at_masks), list(found.at_dependency_barriers)) == ([], [2])


def test_of_very_many_the_nearest_are_named() -> None:
    text = "\n".join(["B-:R-:W0:-:S02 LDG.E R2, [R4.64]"] * 100 + ["B0:R-:W-:-:S04 FADD R3, R2, R3"])
    assert list_rows(text, 100) == list(range(100 - MOST_SETTERS, 100))


def test_a_block_takes_the_nearest_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.diagnosis.blame.pending.MOST_BUNDLES", 2)
    text = "\n".join([*["B-:R-:W0:-:S02 LDG.E R2, [R4.64]", "@P0 BRA 0x0"] * 5, "B0:R-:W-:-:S04 FADD R3, R2, R3"])
    assert list_rows(text, 10) == [6, 8]


@pytest.mark.parametrize("write", [write_diamonds, write_irreducible, write_recursion, write_waiting_loop])
def test_work_grows_with_the_function_not_with_its_square(write: Callable[[int], Kernel]) -> None:
    spent = []
    for count in (100, 800):
        view = view_kernel(write(count))
        budget = WorkBudget(remaining=10**9)
        assert find_all(view, budget).is_complete
        spent.append((10**9 - budget.remaining) / len(view))
    assert spent[1] < 1.5 * spent[0]
