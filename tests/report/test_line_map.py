import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.report.line_map import map_edited_lines, map_lines
from tests.patience import in_bounded_time

LINES = st.lists(st.sampled_from(["", "{", "}", "  }", "a = 1;", "b = 2;", "c = 3;", "d", "e", "f"]), max_size=30)

KERNEL = [
    "__global__ void scale(float *x)",
    "{",
    "    int i = threadIdx.x;",
    "    if (i) {",
    "        x[i] *= 2;",
    "    }",
    "}",
]


def follow(before: list[str], after: list[str], line: int) -> int | None:
    return map_lines(before, after).find_current(line)


def test_lines_move_with_what_is_typed_above() -> None:
    after = ["// new", "", *KERNEL]
    assert follow(KERNEL, after, 5) == 7
    assert not map_lines(KERNEL, after).unchanged


def test_a_changed_line_is_gone_and_its_neighbours_stay() -> None:
    after = [*KERNEL[:4], "        x[i] *= 3;", *KERNEL[5:]]
    assert [follow(KERNEL, after, line) for line in (4, 5, 6)] == [4, None, 6]


def test_indentation_and_line_ends_change_nothing() -> None:
    assert map_lines(KERNEL, [f"\t{line} \r" for line in KERNEL]).unchanged


def test_two_edits_leave_what_is_between() -> None:
    after = ["// a", *KERNEL[:3], "    __syncthreads();", *KERNEL[3:], "// b"]
    assert [follow(KERNEL, after, line) for line in range(1, 8)] == [2, 3, 4, 6, 7, 8, 9]


def test_a_deleted_line_is_gone() -> None:
    assert [follow(KERNEL, KERNEL[:2] + KERNEL[3:], line) for line in (2, 3, 4)] == [2, None, 3]


def test_lines_outside_the_text_are_nowhere() -> None:
    assert [follow(KERNEL, KERNEL, line) for line in (-1, 0, 8)] == [None] * 3


@given(LINES, LINES)
def test_pairs_are_equal_and_in_order(before: list[str], after: list[str]) -> None:
    found = map_lines(before, after)
    pairs = [(old, new) for old, new in enumerate(found.current_lines, 1) if new]
    assert len(found.current_lines) == len(before)
    assert all(before[old - 1].strip() == after[new - 1].strip() for old, new in pairs)
    assert all(one[1] < other[1] for one, other in pairwise(pairs))
    assert found.unchanged == ([line.strip() for line in before] == [line.strip() for line in after])


@given(LINES, st.integers(0, 30), LINES)
def test_an_insertion_loses_no_line(before: list[str], position: int, inserted: list[str]) -> None:
    found = map_lines(before, before[:position] + inserted + before[position:])
    assert all(found.current_lines)


def test_a_large_rewrite_does_not_cost_its_square() -> None:
    rng = random.Random(7)
    before = [f"line {rng.randrange(3000)}" for _ in range(10_000)]
    after = [line if rng.random() < 0.5 else f"new {rng.random()}" for line in before]
    with in_bounded_time():
        map_lines(before, after)


def test_an_edited_line_is_still_that_line_for_a_comparison() -> None:
    after = [*KERNEL[:4], "        x[i] *= 3;", *KERNEL[5:]]
    assert map_edited_lines(KERNEL, after) == (1, 2, 3, 4, 5, 6, 7)
    grown = [*KERNEL[:4], "        x[i] *= 3;", "        x[i] += 1;", *KERNEL[5:]]
    assert map_edited_lines(KERNEL, grown) == (1, 2, 3, 4, 0, 7, 8)


@given(LINES, LINES)
def test_edited_lines_keep_every_equal_pair_and_the_order(before: list[str], after: list[str]) -> None:
    equal = map_lines(before, after).current_lines
    found = map_edited_lines(before, after)
    assert all(edited == same for edited, same in zip(found, equal, strict=True) if same)
    partners = [partner for partner in found if partner]
    assert all(one < other for one, other in pairwise(partners))
    assert not partners or (partners[0] >= 1 and partners[-1] <= len(after))
