"""Findings in the order to be read."""

from collections.abc import Iterable

from gpa_lsp.diagnosis.analyses.answers import Finding, Weight

_RANKS = {Weight.HIGH: 0, Weight.PLAIN: 1, Weight.GOOD: 2}


def order_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """What holds the kernel up first, what is good last; by share within one weight, those without a share as they came, in front.

    >>> from gpa_lsp.foundation.prose import say
    >>> [one.text for one in order_findings([Finding(text=say("a"), share_ratio=0.1), Finding(text=say("b"), weight=Weight.HIGH)])]
    ['b', 'a']
    """
    return tuple(
        sorted(findings, key=lambda one: (_RANKS[one.weight], -(1.0 if one.share_ratio is None else one.share_ratio)))
    )
