"""Sums by key against a dictionary."""

from collections import defaultdict

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.execution.traces.keyed_sums import KeyedSums, compress_keys
from tests.conftest import examples

rows = st.lists(
    st.tuples(st.integers(0, 50) | st.integers(0, 1 << 50), st.integers(0, 1000), st.integers(0, 5)), max_size=40
)


@examples(100)
@given(st.lists(rows, max_size=4))
def test_sums_are_those_of_a_dictionary(additions):
    sums = KeyedSums(2)
    expected = defaultdict(lambda: [0, 0])
    for addition in additions:
        sums.add(
            np.array([row[0] for row in addition], dtype=np.int64),
            np.array([row[1:] for row in addition], dtype=np.int64).reshape(-1, 2),
        )
        for key, first, second in addition:
            expected[key][0] += first
            expected[key][1] += second
    assert sums.keys.tolist() == sorted(expected)
    assert sums.sums.tolist() == [expected[key] for key in sorted(expected)]


def test_keys_beyond_the_limit_are_summed_together():
    sums = KeyedSums(1, most_keys=4)
    sums.add(np.array([1, 2, 2]), np.ones((3, 1), dtype=np.int64))
    sums.add(np.array([2, 3, 4, 5, 6, 6]), np.ones((6, 1), dtype=np.int64))
    sums.add(np.array([6, 1]), np.ones((2, 1), dtype=np.int64))
    assert len(sums.keys) <= 4
    assert sums.sums.sum() == 11
    counts = dict(zip(sums.keys.tolist(), sums.sums[:, 0].tolist(), strict=True))
    assert (counts[1], counts[2]) == (2, 3)


@given(st.lists(st.integers(0, 1 << 60), min_size=1, max_size=30))
def test_keys_are_compressed(keys):
    groups, place = compress_keys(np.array(keys, dtype=np.int64))
    assert groups.tolist() == sorted(set(keys))
    assert groups[place].tolist() == keys
