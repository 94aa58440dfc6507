"""Divisions and functions with less accuracy, in less time."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import read_text, walk_lines
from gpa_lsp.diagnosis.rewrites.code import Code, Division, find_divisions, read_code
from gpa_lsp.diagnosis.rewrites.model import (
    Rewrite,
    RewriteKind,
    Site,
    TextEdit,
    insert_before,
    insert_behind,
    quote,
    replace_between,
    replace_node,
    shorten,
)
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node


_EXPLANATION = say(
    "{intrinsic} multiplies by the hardware's approximate reciprocal, without the check and slow path of an exact division. Its error is up to "
    "2 ULP for divisors from 2^-126 to 2^126; larger ones give 0, or NaN for an infinite dividend. {fast_math} and {division} do this to all "
    "divisions of a file.",
    intrinsic=quote("__fdividef"),
    fast_math=quote("-use_fast_math"),
    division=quote("-prec-div=false"),
)


def _propose_fast_division(site: Site) -> Iterator[Rewrite]:
    """``__fdividef(a, b)`` in place of a division of floats."""
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


_SINE = "within 2^-21.4 for angles from -π to π and grows outside them"
# Error of the intrinsic ``__<name>f``, by the name of the function without its ``f``.
# Source: CUDA C++ Programming Guide, table of single precision intrinsics with their error bounds.
_ERRORS = {
    "cos": "within 2^-21.2 for angles from -π to π and grows outside them",
    "exp": "up to 2 + |1.17 x| ULP",
    "exp10": "up to 2 + |2.97 x| ULP",
    "log": "within 2^-21.4 for x from 0.5 to 2, and up to 3 ULP elsewhere",
    "log10": "within 2^-24 for x from 0.5 to 2, and up to 3 ULP elsewhere",
    "log2": "within 2^-22 for x from 0.5 to 2, and up to 2 ULP elsewhere",
    "pow": "that of an approximate 2^(y · log2(x)): large for large results",
    "sin": _SINE,
    "sincos": _SINE,
    "tan": "that of an approximate sine over an approximate cosine",
}


def _propose_fast_functions(site: Site) -> Iterator[Rewrite]:
    """The hardware's approximation in place of an accurate function: ``__sinf`` for ``sinf``."""
    for node in walk_lines(site.tree.root, site.lines):
        code = read_code(site.tree, node) if node.type == "call_expression" else None
        # Intrinsics exist on the device only.
        if code is None or not code.function.is_device_only:
            continue
        name = code.types.read_called_name(node)
        approximated = _find_approximated(code, node, name)
        function = node.child_by_field_name("function")
        if approximated is None or function is None:
            continue
        intrinsic = f"__{approximated}f"
        yield Rewrite(
            title=say("Use {intrinsic} for {function}", intrinsic=quote(intrinsic), function=quote(name or "")),
            explanation=say(
                "{intrinsic} is a few instructions around one of the special-function unit. Its error is {accuracy}. {fast_math} does this to "
                "all functions, divisions and roots of a file.",
                intrinsic=quote(intrinsic),
                accuracy=_ERRORS[approximated],
                fast_math=quote("-use_fast_math"),
            ),
            edits=(replace_node(site.tree, function, intrinsic),),
            changes_results=True,
        )


def _find_approximated(code: Code, call: "Node", name: str | None) -> str | None:
    """The name, without its ``f``, of a function that has an approximation; None for others, and where single precision is not certain."""
    if name is None:
        return None
    if name.endswith("f") and name[:-1] in _ERRORS:
        return name[:-1]
    arguments = call.child_by_field_name("arguments")
    if arguments is None or name not in _ERRORS or name == "sincos":
        return None
    # Without the f the arguments choose the precision.
    return name if all(code.types.find(one).is_float for one in arguments.named_children) else None


REWRITES = {
    "fast_division": RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose_fast_division),
    "fast_functions": RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose_fast_functions),
}
