"""How far a mix of additions and multiplications can rise under a peak that only multiply-adds reach."""

from collections.abc import Iterator

from gpa_lsp.analyses.answers import Finding
from gpa_lsp.analyses.roofline.operations import COUNTED
from gpa_lsp.analyses.roofline.totals import read_span, read_total
from gpa_lsp.analyses.roofline_model import Roofline
from gpa_lsp.basis.prose import Code, percent, say
from gpa_lsp.profile.model import Launch

USED_RATIO = 0.1
"""Below this share of its peak a type's mix does not matter."""

LOW_FUSED_RATIO = 0.8
"""From this part of the peak on, the mix is good enough."""


def find_unfused(launch: Launch, roofline: Roofline) -> Iterator[Finding]:
    """Types a kernel leans on whose instructions are seldom multiply-adds.

    An instruction that is no multiply-add does half of what its slot could: a share f of multiply-adds reaches (1 + f) / 2 of the peak.

    Args:
        launch: whose counters of additions, multiplications and multiply-adds are read.
        roofline: of the same kernel.
    """
    span = read_span(launch)
    if span is None:
        return
    for roof in roofline.roofs:
        if roof.kind not in COUNTED or roof.share_ratio < USED_RATIO:
            continue
        counts = [read_total(launch, span, counters) for counters, _ in COUNTED[roof.kind]]
        add, multiply, fused = counts
        if add is None or multiply is None or fused is None:
            continue
        every = add.value + multiply.value + fused.value
        reachable = (every + fused.value) / (2 * every) if every else 1.0
        if reachable < LOW_FUSED_RATIO:
            yield Finding(
                text=say(
                    "{kind}: {fused} of the additions, multiplications and multiply-adds are multiply-adds, so at most {most} of the peak is "
                    "reachable.",
                    kind=roof.kind,
                    fused=percent(fused.value / every),
                    most=percent(reachable),
                ),
                remedy=say(
                    "Let the compiler fuse ({expression} in one expression, {option}), or regroup the arithmetic: fewer instructions do the same "
                    "work, and the point rises.",
                    expression=Code(text="a * b + c"),
                    option=Code(text="-fmad=true"),
                ),
            )
