"""``rsqrtf(x)`` in place of a division by a square root."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.cuda_declarations import read_number
from gpa_lsp.code.sources.trees import read_text
from gpa_lsp.diagnosis.rewrites.code import Division, find_divisions
from gpa_lsp.diagnosis.rewrites.model import (
    Rewrite,
    RewriteKind,
    Site,
    TextEdit,
    quote,
    replace_between,
    replace_node,
    shorten,
)
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node

_ROOTS = frozenset({"sqrt", "sqrtf"})
_MARKS = frozenset({"__global__", "__device__"})

_EXPLANATION = say(
    "The hardware has an instruction for the reciprocal square root, and {rsqrtf} is little more. A root and a division are two exactly rounded "
    "sequences, each with a slow path. The error of {rsqrtf} is up to 2 ULP.",
    rsqrtf=quote("rsqrtf"),
)


def _propose(site: Site) -> Iterator[Rewrite]:
    for division in find_divisions(site.tree, site.lines):
        function = _find_root(division)
        if function is None or not division.code.function.marks & _MARKS:
            continue
        yield Rewrite(
            title=say(
                "Use {rsqrtf} for {division}", rsqrtf=quote("rsqrtf"), division=shorten(read_text(division.node))
            ),
            explanation=_EXPLANATION,
            edits=_edit(site, division, function),
            changes_results=True,
        )


def _find_root(division: Division) -> "Node | None":
    """The name of the root that is the divisor; None where the divisor is something else, or not single precision."""
    divisor, types = division.divisor, division.code.types
    if division.is_assignment or divisor.type != "call_expression" or not division.type.is_float:
        return None
    is_root = types.read_called_name(divisor) in _ROOTS and types.find(divisor).is_float
    return divisor.child_by_field_name("function") if is_root else None


def _edit(site: Site, division: Division, function: "Node") -> tuple[TextEdit, ...]:
    dividend = division.dividend
    if dividend.type == "number_literal" and read_number(read_text(dividend)).value == 1.0:
        return (
            replace_node(site.tree, dividend, "rsqrtf"),
            replace_between(site.tree, dividend, division.divisor, ""),
            replace_node(site.tree, function, ""),
        )
    return (replace_node(site.tree, division.operator, "*"), replace_node(site.tree, function, "rsqrtf"))


REWRITE = RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose)
