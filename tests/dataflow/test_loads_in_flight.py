"""How many loads a warp has in flight, by what its instructions set and wait for."""

from gpa_lsp.kernel.dataflow.loads_in_flight import count_loads_in_flight
from tests.rows.written import write_kernel


def count(text: str) -> int:
    rows = write_kernel(text).rows
    return count_loads_in_flight(rows, range(len(rows)))


def test_loads_behind_one_another_are_in_flight_one_at_a_time() -> None:
    one = "B-:R-:W2:-:S02  LDG.E R2, [R4.64]\n B2:R-:W-:-:S04  FFMA R6, R2, R3, R6\n"
    assert count(one * 4) == 1


def test_loads_that_are_waited_for_together_are_in_flight_together() -> None:
    loads = "B-:R-:W2:-:S02  LDG.E R2, [R4.64]\n" * 3 + "B-:R-:W1:-:S02  LDG.E R8, [R4.64]\n"
    assert count(loads + "B2:R-:W-:-:S04  FFMA R6, R2, R3, R6\n B1:R-:W-:-:S04  FFMA R6, R8, R3, R6\n") == 4


def test_a_load_may_be_waited_for_in_the_next_pass() -> None:
    assert count("B2:R-:W-:-:S04  FFMA R6, R2, R3, R6\n B-:R-:W2:-:S02  LDG.E R2, [R4.64]\n") == 1
    never = count("B-:R-:W2:-:S02  LDG.E R2, [R4.64]\n B-:R-:W-:-:S04  FFMA R6, R6, R3, R6\n")
    assert never == 2, "nothing waits for the first one"


def test_a_counted_wait_leaves_the_last_ones() -> None:
    loads = "B-:R-:W2:-:S02  LDG.E R2, [R4.64]\n" * 3
    assert count(f"{loads} B-:R-:W-:-:S04  DEPBAR.LE SB2, 0x1\n B2:R-:W-:-:S04  FFMA R6, R2, R3, R6\n") == 3
    assert count(f"B-:R-:W-:-:S04  DEPBAR.LE SB2, 0x1\n {loads}") == 4, "one is left of the pass before"


def test_other_memory_is_not_counted() -> None:
    assert count("B-:R-:W2:-:S02  LDS R2, [R4]\n B-:R-:W2:-:S02  STG.E [R4.64], R2\n") == 0
