"""The rules every comparison shares."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gpa_lsp.foundation.figures import measure_spread, measure_weighted_spread
from gpa_lsp.report.changes import (
    LaunchTimes,
    PartChange,
    Verdict,
    compare_times,
    is_beyond_counts,
    judge_change,
    order_changes,
)

COUNTS = st.integers(0, 100_000)
TIMES = st.lists(st.floats(1.0, 1e9), min_size=1, max_size=6)


def part(
    name: str, before_ns: float | None, after_ns: float | None, ratios: tuple[float, float] = (0, 0)
) -> PartChange:
    return PartChange(
        name=name,
        before_line=None,
        after_line=None,
        before_ns=before_ns,
        after_ns=after_ns,
        before_ratio=ratios[0],
        after_ratio=ratios[1],
        is_clear=True,
    )


@given(COUNTS, COUNTS, st.floats(1.0, 1e9))
def test_the_same_counts_are_never_a_clear_change(part_samples: int, rest: int, time: float) -> None:
    one = (part_samples, part_samples + rest, time)
    assert not is_beyond_counts(one, one)


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_a_clear_change_is_one_both_ways(part_one: int, rest_one: int, part_two: int, rest_two: int) -> None:
    one, two = (part_one, part_one + rest_one, 1.0), (part_two, part_two + rest_two, 1.0)
    assert is_beyond_counts(one, two) == is_beyond_counts(two, one)


def test_more_samples_make_a_change_clear() -> None:
    assert [is_beyond_counts((3 * n, 10 * n, 1.0), (2 * n, 10 * n, 1.0)) for n in (1, 10, 100, 1000)] == [
        False,
        False,
        True,
        True,
    ]


def test_the_same_share_of_a_shorter_time_is_a_change() -> None:
    assert is_beyond_counts((500, 1000, 2.0), (500, 1000, 1.0))


def test_an_estimate_above_the_whole_is_the_whole() -> None:
    assert not is_beyond_counts((120.5, 100, 1.0), (100, 100, 1.0))


@given(TIMES)
def test_the_same_times_are_no_change(values: list[float]) -> None:
    times = LaunchTimes(cycles=None, ns=measure_spread(values))
    found = compare_times(times, times)
    assert found is not None
    assert found.low <= found.speedup == 1.0 <= found.high
    assert judge_change(found, same_code=False) is Verdict.NO_CHANGE


@given(TIMES, TIMES)
def test_faster_one_way_is_not_faster_the_other(before: list[float], after: list[float]) -> None:
    one, two = (LaunchTimes(cycles=measure_spread(values), ns=None) for values in (before, after))
    verdicts = {judge_change(compare_times(*pair), same_code=False) for pair in ((one, two), (two, one))}
    assert verdicts != {Verdict.FASTER}
    assert verdicts != {Verdict.SLOWER}


def test_times_in_different_units_are_not_compared() -> None:
    cycles, ns = (
        LaunchTimes(cycles=measure_spread([1e6]), ns=None),
        LaunchTimes(cycles=None, ns=measure_spread([1e6])),
    )
    assert compare_times(cycles, ns) is None
    both = replace(cycles, ns=measure_spread([2e6]))
    found = compare_times(both, ns)
    assert found is not None
    assert (found.unit, found.speedup) == ("ns", 2.0)


def test_changes_are_ordered_by_time_and_where_that_is_unknown_by_share() -> None:
    ordered = order_changes([part("small", 10, 12), part("large", 50, 5), part("none", 7, 7)])
    assert [change.name for change in ordered] == ["large", "small", "none"]
    ordered = order_changes([part("less", None, 5, (0.5, 0.4)), part("more", None, 5, (0.1, 0.9))])
    assert [change.name for change in ordered] == ["more", "less"]


def test_an_aggregate_does_not_say_how_its_launches_differ() -> None:
    """The noise is assumed, however many launches were summed: their spread is unknown."""
    before, after = (measure_weighted_spread([(mean, 1200)]) for mean in (2e6, 1e6))
    change = compare_times(LaunchTimes(cycles=None, ns=before), LaunchTimes(cycles=None, ns=after))
    assert change is not None
    assert change.low < change.speedup == 2.0 < change.high
    assert change.basis == "launches were added up, which hides the noise; 3 % and the launch overhead assumed"
