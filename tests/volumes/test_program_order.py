"""When neighbours load what both load: boxes, whose loads go through rows in order, and stars."""

import pytest

from gpa_lsp.execution.volumes.expressions import cover_updates
from gpa_lsp.execution.volumes.groups import group_accesses
from gpa_lsp.execution.volumes.model import SharedLoads
from gpa_lsp.execution.volumes.retention import add_delays, count_loads
from tests.volumes.measured_families import BOX_SIDE, write_box

SHARED = tuple(
    SharedLoads(axis=axis, spacing_blocks=1.0, apart_bytes=16.0, together_bytes=8.0) for axis in ("x", "y", "z")
)


@pytest.mark.parametrize("radius", [4, 6, 9])
def test_rows_of_a_box_are_loaded_in_order(radius: int) -> None:
    """A thread goes through 2 r + 1 rows. The first row of a block of h rows that reaches a shared one is its last, so that the next block, which
    has the row h places earlier in its program, loads it earlier by as much: on average over the rows that both load."""
    entries = group_accesses(write_box(radius))
    entry = next(one for one in entries if one.select(loads=True))
    height = 8
    x, y, z = add_delays(SHARED, entry, cover_updates((BOX_SIDE, BOX_SIDE, 1), (32, height, 1)))
    rows = range(-radius, height + radius)
    first = {row: max(0, row - (height - 1) + radius) for row in rows}
    both = [row for row in rows if row - height in first]
    expected = sum(first[row - height] - first[row] for row in both) / len(both) / (2 * radius + 1)
    assert y.delay_ratio == pytest.approx(expected, rel=0.05)
    assert abs(x.delay_ratio) < 1 / (2 * radius + 1)
    assert z.delay_ratio == 0.0
    assert count_loads(entries) == (2 * radius + 1) ** 2


def test_one_load_has_no_order() -> None:
    entry = group_accesses(write_box(0))[0]
    assert {one.delay_ratio for one in add_delays(SHARED, entry, cover_updates((64, 64, 1), (8, 8, 1)))} == {0.0}
