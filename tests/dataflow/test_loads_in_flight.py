"""The number of loads a warp has in flight, by the barriers its instructions set and wait for."""

import pytest

from gpa_lsp.kernel.dataflow.staged_copies import count_loads_in_flight
from tests.rows.written import write_kernel

LOAD, USE = "B-:R-:W2:-:S02  LDG.E R2, [R4.64]\n", "B2:R-:W-:-:S04  FFMA R6, R2, R3, R6\n"
PARTIAL = "B-:R-:W-:-:S04  DEPBAR.LE SB2, 0x1\n"


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param((LOAD + USE) * 4, 1, id="one behind another"),
        pytest.param(
            f"{LOAD * 3}B-:R-:W1:-:S02  LDG.E R8, [R4.64]\n{USE}B1:R-:W-:-:S04  FFMA R6, R8, R3, R6\n", 4, id="together"
        ),
        pytest.param(USE + LOAD, 1, id="waited for in the next pass"),
        pytest.param(f"{LOAD}B-:R-:W-:-:S04  FFMA R6, R6, R3, R6\n", 2, id="nothing waits for the first one"),
        pytest.param(LOAD * 3 + PARTIAL + USE, 3, id="a counted wait leaves the last"),
        pytest.param(PARTIAL + LOAD * 3, 4, id="one is left of the pass before"),
        pytest.param("B-:R-:W2:-:S02  LDS R2, [R4]\nB-:R-:W2:-:S02  STG.E [R4.64], R2\n", 0, id="other memory"),
    ],
)
def test_loads_in_flight(text: str, count: int) -> None:
    rows = write_kernel(text).rows
    assert count_loads_in_flight(rows, range(len(rows))) == count
