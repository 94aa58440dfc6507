"""How far the estimates of each remedy were off on kernels that it was not made with: :func:`find_calibration`.

The figures are those of ``calibration.toml``, which ``python -m tests.bench.calibrating --write`` writes, from simulated edits of families of
kernels. They are exponents ln(achieved) / ln(model): of a model's value S, S^middle is expected, and the range is S^low to S^high, between which
three of five edits were: the simulator's own errors (15 % on kernels it was not made with) and what people change along are among them. Of measured
pairs more are.
"""

from functools import cache
from pathlib import Path

import tomli
from msgspec import Struct, convert

FEWEST_FAMILIES = 5  # Of kernels, for figures of a remedy's own; with fewer those of all remedies together count

_ANY = "any"  # The entry of all remedies together


class Calibration(Struct, frozen=True, kw_only=True):
    """What simulated edits said of one remedy's estimates."""

    edits: int  # with an estimate
    families: int  # of kernels they are from
    low: float  # exponent that four of five are above
    middle: float  # median of the families' medians, at most 1
    high: float  # exponent that four of five are below


def find_calibration(optimizer: str) -> Calibration:
    """That of a remedy; that of all remedies together where few kernels are known to which it was done."""
    known = _read()
    own = known.get(optimizer)
    return known[_ANY] if own is None or own.families < FEWEST_FAMILIES else own


@cache
def _read() -> dict[str, Calibration]:
    text = Path(__file__).with_name("calibration.toml").read_text(encoding="utf-8")
    return convert(tomli.loads(text), dict[str, Calibration])
