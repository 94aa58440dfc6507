"""Equation 1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.blame.blamers.paper import apportion
from gpa_lsp.diagnosis.blame.issue_counts import LEAST_ISSUES_SAMPLES


def test_shares_grow_with_issues_and_fall_with_distance():
    assert apportion([3.0, 1.0], [5, 5]) == pytest.approx((0.75, 0.25))
    assert apportion([4.0, 4.0], [1, 3]) == pytest.approx((0.75, 0.25))


def test_a_source_nobody_saw_issue_is_light_but_possible():
    light, heavy = apportion([0.0, 100.0], [1, 1])
    assert light == pytest.approx(LEAST_ISSUES_SAMPLES / (100 + LEAST_ISSUES_SAMPLES))
    assert light + heavy == pytest.approx(1)


def test_without_any_issue_only_the_distance_counts():
    assert apportion([0.0, 0.0], [1, 3]) == pytest.approx((0.75, 0.25))


_sources = st.lists(st.tuples(st.floats(0, 1e9), st.integers(1, 10_000)), min_size=1, max_size=8)


@given(_sources)
def test_shares_are_positive_and_add_up(sources):
    shares = apportion(*zip(*sources, strict=True))
    assert all(share > 0 for share in shares)
    assert sum(shares) == pytest.approx(1)


@given(_sources, st.floats(0.5, 1e6))
def test_the_unit_of_issues_does_not_matter(sources, factor):
    issues, lengths = zip(*[(one + 1, length) for one, length in sources], strict=True)
    scaled = apportion([one * factor for one in issues], lengths)
    assert scaled == pytest.approx(apportion(issues, lengths))
