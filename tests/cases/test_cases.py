"""Every expectation of every literate case."""

from pathlib import Path

import pytest

from tests.cases.literate import Case, Fence, find_checks, list_cases, read_case

CASES = list_cases()
EXPECTATIONS = [
    pytest.param(case, fence, id=f"{case.path.stem}:{fence.line}:{fence.kind}")
    for case in CASES
    for fence in case.fences
    if fence.kind in find_checks()
]


@pytest.mark.parametrize(("case", "fence"), EXPECTATIONS)
def test_the_expectation_holds(case: Case, fence: Fence) -> None:
    assert fence.text.strip()
    case.check(fence)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.stem)
def test_the_case_has_one_kernel_and_something_expected_of_it(case: Case) -> None:
    assert [fence.kind for fence in case.fences].count("sass") == 1
    assert any(fence.kind in find_checks() for fence in case.fences)
    assert case.kernel.total_samples > 0


TEXT = """
Prose.

```sass compute_capability=7.0 registers=40
MOV R0, R1  # wait=2
EXIT
```

```future kind of fence
anything
```

```blame
paper  0x0000 MOV <- itself  wait=3/3  ISSUE
```
"""


def test_a_wrong_expectation_fails_and_an_unknown_fence_is_prose(tmp_path: Path) -> None:
    path = tmp_path / "case.md"
    path.write_text(TEXT)
    case = read_case(path)
    assert [(fence.kind, fence.line) for fence in case.fences] == [("sass", 4), ("future", 9), ("blame", 13)]
    assert case.kernel.device.compute_capability == (7, 0)
    assert "future" not in find_checks()
    with pytest.raises(AssertionError, match="wait=2/2"):
        case.check(case.fences[2])
    path.write_text(TEXT.replace("wait=3/3", "wait=2/2"))
    case = read_case(path)
    case.check(case.fences[2])
