"""Regions of blamed pairs: what is counted, what is merged, what belongs together."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.blamed_stalls import (
    MOST_HOTSPOTS,
    build_hotspots,
    build_regions,
    find_edges,
    find_separable,
)
from gpa_lsp.kernel.scopes import ScopeKind
from tests.advice.blamed_by_hand import write_subject

CODE = """
LDG.E R4, [R2.64]   # k.cu:3 | lg_throttle=10/4
loop:
LDG.E R5, [R6.64]   # k.cu:5 | lg_throttle=20/8
FADD R7, R4, R5     # k.cu:6 | long_scoreboard=100/90 wait=7/7
@P0 BRA loop        # k.cu:4 | selected=5
EXIT
"""
CAUSES = {(2, "long_scoreboard"): (0, 1), (2, "wait"): (1,)}


def write():
    return write_subject(CODE, CAUSES)


def mark(subject, *rows: int):
    marks = np.zeros(len(subject.rows), dtype=np.bool_)
    marks[list(rows)] = True
    return marks


def test_edges_are_found_by_cause_and_reason():
    subject = write()
    every = subject.edges
    found = find_edges(subject, mark(subject, 1), ("long_scoreboard", "lg_throttle"))
    pairs = {(int(every.def_row[edge]), int(every.use_row[edge])) for edge in found}
    assert pairs == {(1, 2), (1, 1)}
    assert len(find_edges(subject, mark(subject, 1))) == len(found) + 1
    assert len(find_edges(subject, mark(subject, 1), ("barrier",))) == 0


def test_one_region_per_innermost_scope_of_the_causes_and_one_hotspot_per_pair():
    subject = write()
    edges = find_edges(subject, mark(subject, 0, 1))
    in_loop, before = build_regions(subject, edges, np.ones(len(edges)))
    assert (in_loop.scope.kind, in_loop.samples, in_loop.latency_samples) == (ScopeKind.LOOP, 77, 60)
    assert (before.scope.kind, before.samples) == (ScopeKind.FUNCTION, 60)
    waiting, queueing = in_loop.hotspots
    # Half of what waits for both loads, and the wait for the second one: one pair, two reasons, the larger one named.
    assert (waiting.def_row, waiting.use_row, waiting.samples, waiting.reason) == (1, 2, 57, "long_scoreboard")
    assert not waiting.is_separable
    assert (queueing.use_row, queueing.samples, queueing.is_separable) == (None, 20, True)
    assert (queueing.distance_cycles, waiting.distance_cycles) == (None, 10)


def test_weights_scale_and_nothing_is_left_of_pairs_without_weight():
    subject = write()
    edges = find_edges(subject, mark(subject, 0, 1))
    weights = np.where(subject.edges.def_row[edges] == 1, 0.25, 0.0)
    (region,) = build_regions(subject, edges, weights, write_hint=lambda scope, spots: f"{scope.kind}: {len(spots)}")
    assert region.samples == pytest.approx(77 / 4)
    assert region.hint == "loop: 2"
    assert build_regions(subject, edges, np.zeros(len(edges))) == ()


def test_groups_with_one_cause_are_separable():
    subject = write()
    every = subject.edges
    found = dict(
        zip(
            zip(every.use_row.tolist(), every.def_row.tolist(), strict=True),
            find_separable(subject).tolist(),
            strict=True,
        )
    )
    assert (found[2, 0], found[0, 0]) == (False, True)


def test_a_region_carries_its_largest_pairs_and_counts_all():
    count = MOST_HOTSPOTS + 50
    lines = [f"FADD R{row % 200}, R1, R2  # k.cu:1 | wait={row + 1}" for row in range(count)]
    subject = write_subject("\n".join(lines) + "\nEXIT", {})
    edges = find_edges(subject, np.ones(len(subject.rows), dtype=np.bool_))
    (region,) = build_regions(subject, edges, np.ones(len(edges)), write_note=lambda def_row, _use: str(def_row))
    assert region.samples == count * (count + 1) / 2
    assert [int(hotspot.samples) for hotspot in region.hotspots] == list(range(count, count - MOST_HOTSPOTS, -1))
    assert [hotspot.note for hotspot in region.hotspots[:2]] == [str(count - 1), str(count - 2)]
    assert len(build_hotspots(subject, edges, np.ones(len(edges)))) == count


@given(st.data())
def test_regions_take_each_pairs_weight_once(data):
    rows = data.draw(st.integers(1, 12))
    samples = data.draw(st.lists(st.integers(0, 50), min_size=rows, max_size=rows))
    lines = [
        f"FADD R{row}, R1, R2  # k.cu:{row + 1} | wait={count} long_scoreboard={2 * count}"
        for row, count in enumerate(samples)
    ]
    loop = data.draw(st.integers(0, rows - 1))
    lines.insert(loop, "loop:")
    causes = {
        (row, "long_scoreboard"): data.draw(st.lists(st.integers(0, rows - 1), min_size=1, max_size=3, unique=True))
        for row in range(rows)
    }
    subject = write_subject("\n".join(lines) + "\n@P0 BRA loop\nEXIT", causes)
    edges = find_edges(subject, np.ones(len(subject.rows), dtype=np.bool_))
    weights = np.array(data.draw(st.lists(st.floats(0, 1), min_size=len(edges), max_size=len(edges))))
    regions = build_regions(subject, edges, weights) if len(edges) else ()
    matched = float((subject.edges.all_samples[edges] * weights).sum())
    assert sum(region.samples for region in regions) == pytest.approx(matched)
    assert sum(spot.samples for region in regions for spot in region.hotspots) == pytest.approx(matched)
    assert matched <= subject.total_samples + 1e-6


@given(st.data())
def test_hotspots_are_the_sums_of_their_pairs_named_after_the_largest(data):
    rows = data.draw(st.integers(1, 5))
    row = st.integers(0, rows - 1)
    reasons = ("long_scoreboard", "wait", "short_scoreboard")
    lines = [
        f"FADD R{number}, R1, R2  # k.cu:1 | " + " ".join(f"{one}={data.draw(st.integers(0, 4))}" for one in reasons)
        for number in range(rows)
    ]
    causes = {
        (one, reason): data.draw(st.lists(row, min_size=1, max_size=3)) for one in range(rows) for reason in reasons
    }
    subject = write_subject("\n".join(lines) + "\nEXIT", causes)
    every = subject.edges
    edges = np.array(sorted(data.draw(st.sets(st.integers(0, len(every) - 1)))) if len(every) else [], dtype=np.int64)
    weights = np.array(data.draw(st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=len(edges), max_size=len(edges))))
    most = data.draw(st.none() | st.integers(1, 4))
    found = build_hotspots(subject, edges, weights, write_note=lambda one, other: f"{one} {other}", most=most)

    pairs: dict[tuple[int, int], list[int]] = {}
    for place, edge in enumerate(edges.tolist()):
        pairs.setdefault((int(every.def_row[edge]), int(every.use_row[edge])), []).append(place)
    samples = every.all_samples[edges] * weights
    ranked = sorted(pairs, key=lambda pair: (-samples[pairs[pair]].sum(), pair))[:most]
    separable = find_separable(subject)
    assert [(one.def_row, one.def_row if one.use_row is None else one.use_row) for one in found] == ranked
    for hotspot, pair in zip(found, ranked, strict=True):
        places = pairs[pair]
        largest = edges[max(places, key=lambda place: (samples[place], -place))]
        assert hotspot.samples == pytest.approx(samples[places].sum())
        assert hotspot.latency_samples == pytest.approx((every.latency_samples[edges] * weights)[places].sum())
        assert hotspot.reason == subject.kernel.reasons[every.reason[largest]]
        assert hotspot.category == every.category[largest]
        assert hotspot.is_separable is bool(separable[edges[places]].all())
        assert hotspot.note == f"{pair[0]} {pair[1]}"
