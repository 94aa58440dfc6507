"""L2 keeps for some time what neighbours share: cases that can be worked out by hand, and what holds for all."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.execution.accesses.l2_traffic import L2Cache
from gpa_lsp.execution.volumes.expressions import cover_updates
from gpa_lsp.execution.volumes.groups import group_accesses
from gpa_lsp.execution.volumes.model import SharedLoads
from gpa_lsp.execution.volumes.retention import Flow, Retention, add_delays, count_loads, find_retention
from tests.conftest import examples
from tests.volumes.measured_families import BOX_SIDE, write_box

PAIR = SharedLoads(axis="x", spacing_blocks=0.0, apart_bytes=16.0, together_bytes=8.0)
"""Every sector is loaded by two blocks that start together."""
FLOW = Flow(
    shared=(PAIR,), once_bytes=8.0, stored_bytes=0.0, running=100, blocks=10_000, updates_per_block=1024.0, iterations=1
)
LIFETIME_BYTES = FLOW.running * FLOW.updates_per_block


def find(flow: Flow, kept_bytes: float, ways: int | None = None) -> Retention:
    return find_retention(flow, L2Cache(size_bytes=kept_bytes, ways=ways))


def test_two_blocks_at_once() -> None:
    """Two touches anywhere within a life are further apart than t with probability (1 - t)². What passes until then is 8 t + 8 (1 - (1 - t)³) / 3."""
    stays = 0.5
    passed = (8 * stays + 8 * (1 - (1 - stays) ** 3) / 3) * LIFETIME_BYTES
    found = find(FLOW, passed)
    assert found.missed[0] == pytest.approx(0.25, abs=0.02)


def test_an_l2_that_holds_all_of_a_life_misses_nothing() -> None:
    assert find(FLOW, 16.0 * LIFETIME_BYTES).missed == pytest.approx((0.0,))


def test_without_l2_every_touch_misses() -> None:
    assert find(FLOW, 0.0).missed == (1.0,)


def test_layers_far_apart_hit_once_l2_holds_what_lies_between() -> None:
    """A neighbour ten lifetimes later: eight bytes pass per update and lifetime, or sixteen while it misses."""
    far = replace(FLOW, shared=(replace(PAIR, axis="z", spacing_blocks=1000.0),))
    between = 10 * 16.0 * LIFETIME_BYTES
    found = find(far, 0.5 * between)
    assert found.missed == (1.0,)
    assert found.needed_bytes[0] == pytest.approx(between, rel=0.05)
    assert find(far, 1.3 * between).missed == pytest.approx((0.0,))


def test_a_set_that_fills_by_chance_keeps_some_sectors_longer() -> None:
    """Layers ten lifetimes apart: just below what lies between, an L2 of one set misses all of it, one of sets some of it; far off both agree."""
    far = replace(FLOW, shared=(replace(PAIR, axis="z", spacing_blocks=1000.0),))
    between = 10 * 16.0 * LIFETIME_BYTES
    assert find(far, 0.8 * between).missed == (1.0,)
    assert 0.5 < find(far, 0.8 * between, ways=16).missed[0] < 0.95
    assert find(far, 0.4 * between, ways=16).missed[0] > 0.999
    assert find(far, 3.0 * between, ways=16).missed[0] < 0.001
    many = find(far, 1.05 * between, ways=512).missed[0]
    assert abs(many - find(far, 1.05 * between).missed[0]) < 0.15


def test_neighbours_in_step_with_the_program_share_whatever_l2_holds() -> None:
    """The same point of a long program: next to each other they come together; a row of blocks later, the delay takes the gap away."""
    small = 0.02 * 16 * LIFETIME_BYTES
    ordered = replace(FLOW, window_ratio=0.01)
    assert find(FLOW, small).missed[0] > 0.9
    assert find(ordered, small).missed[0] == pytest.approx(0.0, abs=0.01)
    later = replace(ordered, shared=(replace(PAIR, spacing_blocks=50.0),))
    assert find(later, small).missed[0] == pytest.approx(1.0, abs=0.01)
    caught_up = replace(ordered, shared=(replace(PAIR, spacing_blocks=50.0, delay_ratio=-0.5),))
    assert find(caught_up, small).missed[0] == pytest.approx(0.0, abs=0.05)


def test_stores_take_room() -> None:
    quiet, busy = (find(replace(FLOW, stored_bytes=stored), 4e5) for stored in (0.0, 8.0))
    assert busy.missed[0] > quiet.missed[0]


def test_blocks_that_loop_share_in_step() -> None:
    """Neighbours of one wave touch a sector in the same iteration; only the next wave is a lifetime away."""
    looping = replace(FLOW, iterations=64)
    assert find(looping, 0.2 * LIFETIME_BYTES * 16).missed == pytest.approx((0.0,))
    half = replace(looping, shared=(replace(PAIR, spacing_blocks=50.0),))
    assert find(half, 0.2 * LIFETIME_BYTES * 16).missed[0] == pytest.approx(0.5, abs=0.01)


@examples(60)
@given(
    st.lists(st.tuples(st.floats(0.1, 5e4), st.floats(1.01, 40.0)), min_size=1, max_size=3),
    st.sampled_from([1, 3, 64]),
    st.floats(0.0, 16.0),
    st.sampled_from([None, 16]),
    st.sampled_from([1.0, 0.3]),
)
def test_more_l2_never_misses_more(
    neighbours: list[tuple[float, float]], iterations: int, stored: float, ways: int | None, window: float
) -> None:
    shared = tuple(
        SharedLoads(axis="y", spacing_blocks=spacing, apart_bytes=8 * touches, together_bytes=8.0)
        for spacing, touches in neighbours
    )
    flow = replace(
        FLOW,
        shared=shared,
        once_bytes=8.0 * len(shared),
        stored_bytes=stored,
        iterations=iterations,
        window_ratio=window,
    )
    found = [find(flow, kept * LIFETIME_BYTES, ways) for kept in (0.0, 1.0, 10.0, 100.0, 1e7)]
    for less, more in pairwise(found):
        for before, after in zip(less.missed, more.missed, strict=True):
            assert 0.0 <= after <= before + 1e-6 <= 1.0 + 2e-6


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
