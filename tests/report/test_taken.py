"""Signs that advice was taken."""

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from gpa_lsp.foundation.numbers import Cell
from gpa_lsp.report.differences import Difference, Trait
from gpa_lsp.report.taken import SIGNS, AdviceFate, judge_advice


def test_of_every_optimizer_it_is_known_what_taking_its_advice_changes() -> None:
    assert set(SIGNS) == set(list_optimizers())


@pytest.mark.parametrize(
    ("optimizer", "values", "fate"),
    [
        ("global_coalescing", {"GLOBAL_EXCESS": (0.74, 0.2)}, AdviceFate.TAKEN),
        ("global_coalescing", {"GLOBAL_EXCESS": (0.74, 0.5)}, AdviceFate.PARTLY_TAKEN),
        ("global_coalescing", {"GLOBAL_EXCESS": (0.74, 0.74)}, AdviceFate.OPEN),
        ("global_coalescing", {"GLOBAL_EXCESS": (0.74, 0.9)}, AdviceFate.OPEN),
        ("sm_imbalance", {"IDLE_SMS": (0.03, 0.0)}, AdviceFate.OPEN),  # what was small tells nothing by being smaller
        ("sm_imbalance", {"IDLE_SMS": (0.3, 0.0)}, AdviceFate.TAKEN),
        ("shared_tiling", {"SHARED_ACCESSES": (0, 1000)}, AdviceFate.TAKEN),  # what appears has risen
        ("shared_tiling", {"SHARED_ACCESSES": (0, 0)}, AdviceFate.OPEN),
        ("function_inlining", {"CALLS": (0, 0)}, AdviceFate.UNKNOWN),  # nothing falls from zero
        ("block_shape", {"BLOCK": ("16×16", "256")}, AdviceFate.TAKEN),
        ("block_shape", {"BLOCK": ("16×16", "16×16")}, AdviceFate.OPEN),
        ("fast_math", {"CALLS": (10, 10), "FP64": (100, 10)}, AdviceFate.TAKEN),  # the strongest sign counts
        ("global_coalescing", {}, AdviceFate.UNKNOWN),  # nothing tells
        ("kernel_fusion", {"EXECUTED": (100, 10)}, AdviceFate.UNKNOWN),
        ("theirs", {"EXECUTED": (100, 10)}, AdviceFate.UNKNOWN),
    ],
)
def test_the_fate_of_advice(optimizer: str, values: dict[str, tuple[Cell, Cell]], fate: AdviceFate) -> None:
    """An optimizer's advice, from values of traits before and after."""
    differences = {
        Trait[name]: Difference(trait=Trait[name], before=before, after=after)
        for name, (before, after) in values.items()
    }
    assert judge_advice(optimizer, differences)[0] is fate
