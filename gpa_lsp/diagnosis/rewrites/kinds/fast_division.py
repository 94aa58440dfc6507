"""``__fdividef(a, b)`` in place of a division of floats."""

from collections.abc import Iterator

from gpa_lsp.code.sources.trees import read_text
from gpa_lsp.diagnosis.rewrites.code import Division, find_divisions
from gpa_lsp.diagnosis.rewrites.model import (
    Rewrite,
    RewriteKind,
    Site,
    TextEdit,
    insert_before,
    insert_behind,
    quote,
    replace_between,
    shorten,
)
from gpa_lsp.foundation.prose import say

_EXPLANATION = say(
    "{intrinsic} multiplies by the hardware's approximate reciprocal, without the check and slow path of an exact division. Its error is up to "
    "2 ULP for divisors from 2^-126 to 2^126; larger ones give 0, or NaN for an infinite dividend. {fast_math} and {division} do this to all "
    "divisions of a file.",
    intrinsic=quote("__fdividef"),
    fast_math=quote("-use_fast_math"),
    division=quote("-prec-div=false"),
)


def _propose(site: Site) -> Iterator[Rewrite]:
    for division in find_divisions(site.tree, site.lines):
        # Intrinsics exist on the device only; a quotient by a literal has a better remedy.
        if (
            not division.code.function.is_device_only
            or not division.type.is_float
            or division.literal_divisor is not None
        ):
            continue
        if division.is_assignment and division.dividend.type != "identifier":
            continue
        yield Rewrite(
            title=say(
                "Divide approximately: {intrinsic} for {division}",
                intrinsic=quote("__fdividef"),
                division=shorten(read_text(division.node)),
            ),
            explanation=_EXPLANATION,
            edits=_call(site, division),
            changes_results=True,
        )


def _call(site: Site, division: Division) -> tuple[TextEdit, ...]:
    left, right = division.dividend, division.divisor
    opening = f"{read_text(left)} = __fdividef(" if division.is_assignment else "__fdividef("
    return (
        insert_before(site.tree, left, opening),
        replace_between(site.tree, left, right, ", "),
        insert_behind(site.tree, right, ")"),
    )


REWRITE = RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose)
