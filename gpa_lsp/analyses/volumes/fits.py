"""Capacity misses: fitted functions of how much more than a cache holds is asked of it.

All are double exponentials ``scale · exp(-height · exp(rate · oversubscription))``, which are near 0 on one side, near ``scale`` on the other and
smooth between. They say nothing about why.

Sources: Ernst et al. (2022), section 4.5, for the form. The published constants are those of the authors' program of May 2022.
"""

from dataclasses import dataclass
from math import exp

_MOST_EXPONENT = 50.0
"""exp(-exp(50)) is 0 long before; keeps huge oversubscriptions from overflowing."""


@dataclass(frozen=True, slots=True)
class Fit:
    """``scale · exp(-height · exp(rate · (x - shift)))``.

    Attributes:
        scale: of the whole.
        height: of the inner function.
        rate: negative where the ratio grows with the oversubscription.
        shift: of the oversubscription.
    """

    scale: float
    height: float
    rate: float
    shift: float = 0.0

    def at(self, oversubscription: float) -> float:
        """The ratio.

        >>> round(Fit(0.73, 4.6, -0.34).at(5.25), 4)
        0.3374
        """
        return self.scale * exp(-self.height * exp(min(_MOST_EXPONENT, self.rate * (oversubscription - self.shift))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """All of a model.

    Attributes:
        l1_miss: of what blocks load again, the part that misses L1; over lines in L1 by size of L1.
        row_hit: of what blocks of earlier rows touched, the part that L2 still holds; over what they touched by size of L2.
        layer_hit: the same of the layer before.
        store_kept: of stores to sectors written in part, those that L2 merges; over what a wave touches by size of L2.
        l2_miss: of what SMs load again within a wave, the part that misses L2; over the same.
        counts_all_blocks: lines of all resident blocks share L1; otherwise those of one block do, since blocks of an SM are in different phases.
    """

    l1_miss: Fit
    row_hit: Fit
    layer_hit: Fit
    store_kept: Fit
    l2_miss: Fit
    counts_all_blocks: bool


PAPER_FITS = Fits(
    l1_miss=Fit(0.73, 4.6, -0.34),
    row_hit=Fit(1.0, 0.078, 1.03, 0.2),
    layer_hit=Fit(1.0, 0.0036, 3.97),
    store_kept=Fit(1.0, 0.044, 0.61),
    l2_miss=Fit(0.5, 13.0, -1.8),
    counts_all_blocks=True,
)
"""Of the published model."""
