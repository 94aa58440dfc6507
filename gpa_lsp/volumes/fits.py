"""Capacity misses: fitted functions of how much more than a cache holds is asked of it.

All are double exponentials ``scale · exp(-height · exp(rate · oversubscription))``, which are near 0 on one side, near ``scale`` on the other and
smooth between. They say nothing about why.

Sources: Ernst et al. (2022), section 4.5, for the form. The published constants are those of the authors' program of May 2022.
"""

from math import exp

from gpa_lsp.basis.lazy_dataclass import dataclass

_MOST_EXPONENT = 50.0
"""exp(-exp(50)) is 0 long before; keeps huge oversubscriptions from overflowing."""


@dataclass(frozen=True, slots=True)
class Fit:
    """``scale · exp(-height · exp(rate · (x - shift)))``, or what that leaves of 1.

    Attributes:
        scale: of the whole.
        height: of the inner function.
        rate: negative where the ratio grows with the oversubscription.
        shift: of the oversubscription.
        is_rest: the ratio is 1 less that.
    """

    scale: float
    height: float
    rate: float
    shift: float = 0.0
    is_rest: bool = False

    def at(self, oversubscription: float) -> float:
        """The ratio.

        >>> round(Fit(0.73, 4.6, -0.34).at(5.25), 4)
        0.3374
        """
        inner = self.height * exp(min(_MOST_EXPONENT, self.rate * (oversubscription - self.shift)))
        ratio = self.scale * exp(-inner)
        return 1 - ratio if self.is_rest else ratio


@dataclass(frozen=True, slots=True, kw_only=True)
class Fits:
    """All of a model.

    Attributes:
        l1_miss: of what blocks load again, the part that misses L1; over lines in L1 by size of L1.
        row_hit: of what blocks of earlier rows touched, the part that L2 still holds; over what they touched by size of L2. None where
            :mod:`~gpa_lsp.volumes.retention` says what L2 holds.
        layer_hit: the same of the layer before; None in the same case.
        store_evicted: of stores to sectors written in part, those that L2 cannot merge; over what a wave touches by size of L2.
        l2_miss: of what SMs load again within a wave, the part that misses L2; over the same.
        overlap_exponent: how well limiters hide each other, see :func:`~gpa_lsp.volumes.deriving.combine_bounds`; None for wholly.
        counts_all_blocks: lines of all resident blocks share L1; otherwise those of one block do, since blocks of an SM are in different phases.
    """

    l1_miss: Fit
    row_hit: Fit | None
    layer_hit: Fit | None
    store_evicted: Fit
    l2_miss: Fit
    overlap_exponent: float | None
    counts_all_blocks: bool


PAPER_FITS = Fits(
    l1_miss=Fit(0.73, 4.6, -0.34),
    row_hit=Fit(1.0, 0.078, 1.03, 0.2),
    layer_hit=Fit(1.0, 0.0036, 3.97),
    store_evicted=Fit(1.0, 0.044, 0.61, is_rest=True),
    l2_miss=Fit(0.5, 13.0, -1.8),
    overlap_exponent=None,
    counts_all_blocks=True,
)
"""Of the published model."""

CORRECTED_FITS = Fits(
    l1_miss=Fit(0.342, 6.925, -1.724),
    row_hit=None,
    layer_hit=None,
    store_evicted=Fit(0.4, 20.6, -8.8),
    l2_miss=PAPER_FITS.l2_miss,
    overlap_exponent=2.25,
    counts_all_blocks=False,
)
"""Of the corrected model.

* ``l1_miss``: re-fitted to 140 measured points of a V100 (3D stars of ranges 4 and 2, folded and not; 2D boxes of ranges 0 to 9).
* ``l2_miss``: as published.
* ``store_evicted``: the height 0.4 is the mean of the five measured shapes of a V100 whose blocks are two elements wide; the rise lies where
  the published fit to an A100 (5 % at 0.26) and these (37 to 42 % at 0.6 to 0.85) leave it. It acts only where sectors are written in part.
* ``overlap_exponent``: fitted to the performance of the 40 shapes of the 3D star of range 4 on a V100, and rounded: mean error 9.3 %. The same
  value serves 32 shapes of a 2D box whose data stays in L1 (9.6 %, 19 to 40 % before tags and starting blocks took time of their own), which say
  little of it themselves: 7.8 to 9.9 % for all from 1.5 to 4. Of other forms with one number, the slowest with 0.175 of all others added is 10.6 and
  7.7 %, and takes what starts blocks for a unit like the others; a closed network of three customers is 9.3 and 9.8 %. Of what cannot be told
  with it: shapes that touch 152 pages (see ``MANY_PAGES``).
"""
