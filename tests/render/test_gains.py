"""Estimated gains are printed within their bound, in every wording."""

import math
import re
from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from gpa_lsp.diagnosis.advice.model import Speedup
from gpa_lsp.document.advice_words import describe_speedup, show_bound, show_estimate, show_gain_range
from gpa_lsp.foundation.prose import say
from tests.conftest import ROOT

FACTORS = st.floats(min_value=1.0, max_value=2e4)
WRITTEN = re.compile(r"format_(?:speedup|gain_range)\([^)]*speedup\.(?:estimate|low|high|bound)")


def read_factors(text: str) -> Iterator[float]:
    """The speedups in a text."""
    return (float(number.replace(",", "")) for number in re.findall(r"\d[\d,]*(?:\.\d+)?", text))


@given(st.lists(FACTORS, min_size=4, max_size=4).map(sorted))
@example([1.25, 2.0, 3.657, 3.657])
@example([1.507, 1.507, 1.507, 1.507])
@example([12.27, 12.27, 12.28, 12.28])
def test_no_printed_gain_exceeds_its_printed_bound(ends: list[float]) -> None:
    low, estimate, high, bound = ends
    reason = say("all units")
    gain = Speedup(estimate=estimate, low=low, high=high, bound=bound, bound_reason=reason, uncapped=estimate)
    most = next(read_factors(show_bound(gain)))
    assert most <= bound * (1 + 1e-6)
    assert most > bound * 0.98
    for text in (show_gain_range(gain), show_estimate(gain), str(describe_speedup(gain))):
        assert max(read_factors(text)) <= most, text


def test_a_bound_nobody_knows_caps_nothing() -> None:
    gain = Speedup(estimate=2.0, low=1.5, high=3.657, bound=math.inf, bound_reason=say("nothing known"), uncapped=2.0)
    assert show_gain_range(gain) == "1.5–4×"
    assert show_bound(gain) == "unlimited"


def test_a_range_that_begins_at_no_gain_is_printed_as_likely() -> None:
    def show(low: float, high: float) -> str:
        estimate = (low + high) / 2
        return show_gain_range(
            Speedup(estimate=estimate, low=low, high=high, bound=9.0, bound_reason=say("all units"), uncapped=estimate)
        )

    assert show(1.0, 1.122) == "likely, up to 1.13×"
    assert show(1.02, 2.0) == "likely, up to 2×"
    assert show(1.034, 2.0) == "1.03–2×"
    assert show(1.0, 1.0) == "1×"


def test_one_place_writes_estimates() -> None:
    """A function that writes part of an estimate by itself does not know the bound."""
    found = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "gpa_lsp").rglob("*.py")
        if path.name != "advice_words.py" and WRITTEN.search(path.read_text())
    ]
    assert found == []
