"""Every expectation of every literate case."""

from pathlib import Path

import pytest

from tests.cases.literate import DESCRIBING, FOLDER, Case, Fence, find_checks, list_cases, read_cases

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


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.stem}:{case.fences[0].line}")
def test_the_case_has_a_kernel_and_something_expected_of_it(case: Case) -> None:
    kinds = [fence.kind for fence in case.fences]
    assert kinds[0] == "sass"
    assert set(kinds) & find_checks().keys()
    # A fence whose kind is misspelt would be taken for prose.
    assert set(kinds) <= {*DESCRIBING, *find_checks()}
    assert case.kernel.total_samples > 0


def test_every_file_has_a_case() -> None:
    assert {case.path for case in CASES} == {*FOLDER.glob("*.md")}


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
    (case,) = read_cases(path)
    assert [(fence.kind, fence.line) for fence in case.fences] == [("sass", 4), ("future", 9), ("blame", 13)]
    assert case.kernel.device.compute_capability == (7, 0)
    assert "future" not in find_checks()
    with pytest.raises(AssertionError, match="wait=2/2"):
        case.check(case.fences[2])
    path.write_text(TEXT.replace("wait=3/3", "wait=2/2"))
    (case,) = read_cases(path)
    case.check(case.fences[2])


SEVERAL = """
```cuda k.cu
first();
```
```metrics
launch__waves_per_multiprocessor = 2.5
```
```sass
MOV R0, R1  # k.cu:1 | wait=2
```
```sass grid=2,3,1
MOV R0, R2  # k.cu:1 | wait=3
```
```blame
scoreboard  0x0000 MOV <- itself  wait=3/3  ISSUE
```
"""


def test_a_file_can_have_several_kernels_and_what_is_said_of_their_launches(tmp_path: Path) -> None:
    path = tmp_path / "cases.md"
    path.write_text(SEVERAL)
    first, second = read_cases(path)
    assert [case.kernel.total_samples for case in (first, second)] == [2, 3]
    assert [case.kernel.launches[0].read_number("launch__waves_per_multiprocessor") for case in (first, second)] == [
        2.5,
        1,
    ]
    assert second.kernel.launches[0].grid == (2, 3, 1)
    assert second.kernel.module.sources == {"k.cu": "first();\n"}
    assert [fence.kind for fence in second.fences] == ["sass", "blame"]
    second.check(second.fences[1])


def test_an_expectation_needs_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "case.md"
    path.write_text("```blame\n```\n" + TEXT)
    with pytest.raises(ValueError, match=r"case.md, line 1: nothing is known yet"):
        read_cases(path)
