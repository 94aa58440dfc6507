"""Every remedy has its case: a kernel for which it speaks, and the remedied one, for which it is silent."""

import pytest

from gpa_lsp.diagnosis.advice.advise import list_optimizers
from tests.cases.advice_fence import Expected, read_fence
from tests.cases.literate import FOLDER, Case, read_cases


@pytest.mark.parametrize("name", list_optimizers())
def test_the_optimizer_has_a_case_in_which_it_speaks_and_one_in_which_it_is_silent(name: str) -> None:
    path = FOLDER / f"{name}.md"
    assert path.is_file(), f"write {path.name}: a kernel that {name} is about, the same kernel remedied, and why"
    first, *others = read_cases(path)
    assert name in [item.optimizer for item in _read_advice(first).items]
    assert any(name == silent for case in others for silent, _, _ in _read_advice(case).silences)


def _read_advice(case: Case) -> Expected:
    (fence,) = (fence for fence in case.fences if fence.kind == "advice")
    return read_fence(fence.text)


@pytest.mark.parametrize(
    ("file", "equation"),
    [
        ("equation_2.md", "Equation 2"),
        ("equation_4.md", "Equation 4"),
        ("equation_5.md", "Equation 5"),
        ("equations_6_to_10.md", "Equation 10"),
        ("clamps.md", "cannot exceed"),
        ("figure_3_barrier_dependency.md", "Figure 3"),
        ("figure_4_predicated_loads.md", "Figure 4"),
        ("figure_8_distance_1.md", "Figure 8"),
        ("starlight_table_1.md", "Equations 2 to 4"),
    ],
)
def test_what_is_published_has_its_case(file: str, equation: str) -> None:
    assert equation in (FOLDER / file).read_text(encoding="utf-8")
    assert read_cases(FOLDER / file)
