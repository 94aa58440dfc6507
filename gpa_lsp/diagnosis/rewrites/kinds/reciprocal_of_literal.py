"""A product with the reciprocal of a literal, which the compiler computes, in place of a division by it."""

import math
from collections.abc import Iterator

from gpa_lsp.code.sources.trees import read_text
from gpa_lsp.diagnosis.rewrites.code import Division, find_divisions
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote, replace_node, shorten
from gpa_lsp.foundation.prose import say

_EXPLANATION = say(
    "The reciprocal of a literal is computed at compile time, which leaves a multiplication. The compiler does not do this by itself because the "
    "reciprocal is rounded: the result can differ in the last bit."
)


def _propose(site: Site) -> Iterator[Rewrite]:
    for division in find_divisions(site.tree, site.lines):
        if not _is_worth_it(division):
            continue
        one = "1.0f" if division.type.is_float else "1.0"
        divisor = read_text(division.divisor)
        yield Rewrite(
            title=say(
                "Multiply by {reciprocal} in {division}",
                reciprocal=quote(f"({one} / {divisor})"),
                division=shorten(read_text(division.node)),
            ),
            explanation=_EXPLANATION,
            edits=(
                replace_node(site.tree, division.operator, "*=" if division.is_assignment else "*"),
                replace_node(site.tree, division.divisor, f"({one} / {divisor})"),
            ),
            changes_results=True,
        )


def _is_worth_it(division: Division) -> bool:
    """Of powers of two the compiler takes the reciprocal itself, since it is exact; quotients of literals it computes as a whole."""
    value = division.literal_divisor
    if (
        not value
        or not (division.type.is_float or division.type.is_double)
        or division.dividend.type == "number_literal"
    ):
        return False
    # A float divided by a double literal should be divided by a float.
    is_widened = division.type.is_double and division.code.types.find(division.dividend).is_float
    is_power_of_two = abs(math.frexp(value)[0]) == 0.5
    return not is_widened and not is_power_of_two and math.isfinite(1.0 / value)


REWRITE = RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose)
