"""Signs that advice was taken."""

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.report.differences import Difference, Trait
from gpa_lsp.report.taken import SIGNS, AdviceFate, judge_advice


def judge(optimizer: str, **values: tuple[Cell, Cell]) -> AdviceFate:
    """The fate of an optimizer's advice from values of traits before and after."""
    differences = {
        Trait[name]: Difference(trait=Trait[name], before=before, after=after)
        for name, (before, after) in values.items()
    }
    return judge_advice(optimizer, differences)[0]


def test_of_every_optimizer_it_is_known_what_taking_its_advice_changes() -> None:
    assert set(SIGNS) == set(list_optimizers())


@pytest.mark.parametrize(
    ("after", "fate"),
    [(0.2, AdviceFate.TAKEN), (0.5, AdviceFate.PARTLY_TAKEN), (0.74, AdviceFate.OPEN), (0.9, AdviceFate.OPEN)],
)
def test_excess_sectors_tell_of_coalescing(after: float, fate: AdviceFate) -> None:
    assert judge("global_coalescing", GLOBAL_EXCESS=(0.74, after)) is fate


def test_a_share_that_was_small_before_tells_nothing_by_being_smaller() -> None:
    assert judge("sm_imbalance", IDLE_SMS=(0.03, 0.0)) is AdviceFate.OPEN
    assert judge("sm_imbalance", IDLE_SMS=(0.3, 0.0)) is AdviceFate.TAKEN


def test_what_appears_has_risen() -> None:
    assert judge("shared_tiling", SHARED_ACCESSES=(0, 1000)) is AdviceFate.TAKEN
    assert judge("shared_tiling", SHARED_ACCESSES=(0, 0)) is AdviceFate.OPEN


def test_nothing_falls_from_zero() -> None:
    assert judge("function_inlining", CALLS=(0, 0)) is AdviceFate.UNKNOWN


def test_names_change_or_do_not() -> None:
    assert judge("block_shape", BLOCK=("16×16", "256")) is AdviceFate.TAKEN
    assert judge("block_shape", BLOCK=("16×16", "16×16")) is AdviceFate.OPEN


def test_any_sign_is_enough_and_the_strongest_counts() -> None:
    assert judge("fast_math", CALLS=(10, 10), FP64=(100, 10)) is AdviceFate.TAKEN


def test_without_what_tells_nobody_knows() -> None:
    assert judge("global_coalescing") is AdviceFate.UNKNOWN
    assert judge("kernel_fusion", EXECUTED=(100, 10)) is AdviceFate.UNKNOWN
    assert judge("theirs", EXECUTED=(100, 10)) is AdviceFate.UNKNOWN
