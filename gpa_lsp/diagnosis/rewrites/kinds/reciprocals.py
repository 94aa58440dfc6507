"""Multiplications in place of divisions."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.cuda_declarations import read_number
from gpa_lsp.code.sources.trees import list_ancestors, read_text, walk
from gpa_lsp.diagnosis.rewrites.code import Code, Division, find_divisions, load_known_functions, read_division
from gpa_lsp.diagnosis.rewrites.cuda_loops import LOOPS, list_pragmas
from gpa_lsp.diagnosis.rewrites.cuda_uses import Deed, Use, find_uses, is_in_lambda
from gpa_lsp.diagnosis.rewrites.model import (
    Rewrite,
    RewriteKind,
    Site,
    TextEdit,
    insert_line_above,
    quote,
    read_indentation,
    replace_between,
    replace_node,
    shorten,
)
from gpa_lsp.foundation.prose import count, say

if TYPE_CHECKING:
    from tree_sitter import Node


_RECIPROCAL_OF_LITERAL_EXPLANATION = say(
    "The reciprocal of a literal is computed at compile time, which leaves a multiplication. The compiler does not do this by itself because the "
    "reciprocal is rounded: the result can differ in the last bit."
)


def _propose_reciprocal_of_literal(site: Site) -> Iterator[Rewrite]:
    """A product with the reciprocal of a literal, which the compiler computes, in place of a division by it."""
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
            explanation=_RECIPROCAL_OF_LITERAL_EXPLANATION,
            edits=(
                replace_node(site.tree, division.operator, "*=" if division.is_assignment else "*"),
                replace_node(site.tree, division.divisor, f"({one} / {divisor})"),
            ),
            changes_results=True,
        )


def _is_worth_it(division: Division) -> bool:
    """Whether a written reciprocal helps: the compiler takes exact ones (powers of two) itself, and folds quotients of literals."""
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


_ROOTS = frozenset({"sqrt", "sqrtf"})
_MARKS = frozenset({"__global__", "__device__"})

_RECIPROCAL_ROOT_EXPLANATION = say(
    "The hardware has an instruction for the reciprocal square root, and {rsqrtf} is little more. A root and a division are two exactly rounded "
    "sequences, each with a slow path. The error of {rsqrtf} is up to 2 ULP.",
    rsqrtf=quote("rsqrtf"),
)


def _propose_reciprocal_root(site: Site) -> Iterator[Rewrite]:
    """``rsqrtf(x)`` in place of a division by a square root."""
    for division in find_divisions(site.tree, site.lines):
        function = _find_root(division)
        if function is None or not division.code.function.marks & _MARKS:
            continue
        yield Rewrite(
            title=say(
                "Use {rsqrtf} for {division}", rsqrtf=quote("rsqrtf"), division=shorten(read_text(division.node))
            ),
            explanation=_RECIPROCAL_ROOT_EXPLANATION,
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


# Nodes that an invariant expression may have: none that loads from memory, none that writes
_OF_NUMBERS = frozenset(
    {
        "identifier",
        "number_literal",
        "parenthesized_expression",
        "binary_expression",
        "unary_expression",
        "cast_expression",
        "type_descriptor",
        "primitive_type",
        "field_expression",
        "field_identifier",
        "call_expression",
        "argument_list",
    }
)

_MOST_NODES = 40
_SHARED_BY_MANY = frozenset({"volatile", "__shared__", "__device__", "__managed__", "static", "extern"})
_OF_FILE = frozenset({"const", "constexpr", "__constant__"})
_BUILTIN = frozenset({"threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"})
_HARMLESS = frozenset({Deed.READ, Deed.COPIED, Deed.COMPARED})


def is_invariant(code: Code, expression: "Node", loop: "Node") -> bool:
    """Whether an expression can be computed before a loop.

    Every name in it is a number that is declared outside the loop, is not assigned in the loop, and cannot change unseen in the function: no
    address is taken, no reference bound, and no macro of the file mentions it.
    """
    nodes = list(walk(expression, most=_MOST_NODES + 1))
    if len(nodes) > _MOST_NODES or not all(node.type in _OF_NUMBERS for node in nodes):
        return False
    calls = (node for node in nodes if node.type == "call_expression")
    known = load_known_functions()
    if not all(_is_cast(call) or code.types.read_called_name(call) in known.of_numbers for call in calls):
        return False
    return all(_is_fixed(code, node, loop) for node in nodes if node.type == "identifier" and not _is_called(node))


def _is_cast(call: "Node") -> bool:
    function = call.child_by_field_name("function")
    return function is not None and function.type == "primitive_type"


def _is_called(name: "Node") -> bool:
    parent = name.parent
    return parent is not None and parent.type == "call_expression" and parent.child_by_field_name("function") == name


def _is_fixed(code: Code, name: "Node", loop: "Node") -> bool:
    declaration = code.names.find(name)
    if declaration is None:
        return read_text(name) in _BUILTIN and read_text(name) not in code.names.macros
    if declaration.is_reference or declaration.type.levels or code.names.is_in_macros(declaration.name):
        return False
    if declaration.scope.type in ("translation_unit", "declaration_list"):
        return bool(declaration.qualifiers & _OF_FILE) and "volatile" not in declaration.qualifiers
    is_outside = declaration.start_byte <= loop.start_byte and declaration.scope != loop
    if not is_outside or declaration.qualifiers & _SHARED_BY_MANY:
        return False
    return all(_leaves_alone(code, use, loop) for use in find_uses(code.names, declaration))


def _leaves_alone(code: Code, use: Use, loop: "Node") -> bool:
    """Whether a use leaves the variable unchanged in the loop."""
    if use.deed in _HARMLESS:
        return True
    if use.deed is Deed.PASSED:
        call = use.through.parent
        name = code.types.read_called_name(call) if call is not None and call.type == "call_expression" else None
        return name in load_known_functions().of_numbers or not is_inside(use.node, loop)
    # A lambda runs wherever it is called; a variable whose address is taken can change anywhere.
    is_outside = not is_inside(use.node, loop) and not is_in_lambda(use, code.function.node)
    return use.deed is Deed.WRITTEN and is_outside


def is_inside(node: "Node", around: "Node") -> bool:
    """Whether a node is part of another."""
    return around.start_byte <= node.start_byte and node.end_byte <= around.end_byte


def find_loops_around(node: "Node") -> "list[Node]":
    """The loops around a node within its function or lambda, innermost first."""
    found = []
    for around in list_ancestors(node):
        if around.type in ("function_definition", "lambda_expression"):
            break
        if around.type in LOOPS:
            found.append(around)
    return found


# Divisors that need no parentheses of their own
_SIMPLE = frozenset(
    {"identifier", "call_expression", "field_expression", "parenthesized_expression", "cast_expression"}
)

_DEEPEST = 12  # Levels of a divisor above a name in it

_RECIPROCAL_BEFORE_LOOP_EXPLANATION = say(
    "By the loop's text the divisor is loop-invariant: one division before the loop and a multiplication per iteration suffice. The reciprocal is "
    "rounded, so the last bit of a result can differ; for divisors below 2^-126 it can overflow."
)


def _propose_reciprocal_before_loop(site: Site) -> Iterator[Rewrite]:
    """One reciprocal before a loop, and products in it, in place of divisions by a loop-invariant value."""
    seen = set()
    for division in find_divisions(site.tree, site.lines):
        loop = _find_loop(site, division)
        key = (0 if loop is None else loop.id, read_text(division.divisor))
        if loop is None or key in seen:
            continue
        seen.add(key)
        alike = _find_alike(division, loop)
        if not alike:
            continue  # its own divisor is nested too deep
        name = _invent_name(site, division.divisor)
        divisions = count(len(alike), "division") if len(alike) > 1 else shorten(read_text(division.node))
        yield Rewrite(
            title=say(
                "Divide once before the loop and multiply by {reciprocal} in {divisions}",
                reciprocal=quote(name),
                divisions=divisions,
            ),
            explanation=_RECIPROCAL_BEFORE_LOOP_EXPLANATION,
            edits=(
                _declare(site, division, loop, name),
                *(edit for one in alike for edit in _multiply(site, one, name)),
            ),
            changes_results=True,
        )


def _find_loop(site: Site, division: Division) -> "Node | None":
    """The outermost loop in which the divisor is invariant and before which a declaration can stand; None when there is none."""
    is_real = division.type.is_float or division.type.is_double
    if not is_real or not any(one.type == "identifier" for one in walk(division.divisor)):
        return None
    found = None
    for loop in find_loops_around(division.node):
        if not is_invariant(division.code, division.divisor, loop):
            break
        if _can_declare_before(site, loop):
            found = loop
    return None if division.code.names.has_jumps else found


def _can_declare_before(site: Site, loop: "Node") -> bool:
    block = loop.parent
    if block is None or block.type != "compound_statement":
        return False
    is_in_switch = block.parent is not None and block.parent.type == "switch_statement"
    return not is_in_switch and read_indentation(site.tree, loop) is not None


def _find_alike(division: Division, loop: "Node") -> list[Division]:
    """All divisions of the loop by the same value, in the same precision."""
    wanted, meant = read_text(division.divisor), _list_meanings(division)
    name = next((one for one in walk(division.divisor) if one.type == "identifier"), None)
    found: dict[int, Division] = {}
    # Equal divisors have the same first name.
    for place in division.code.names.places.get(read_text(name), ()):
        one = _find_division_by(division, place, wanted) if is_inside(place, loop) else None
        if one is None or one.type != division.type:
            continue
        if loop in find_loops_around(one.node) and _list_meanings(one) == meant:
            found[one.node.id] = one
    return list(found.values())


def _find_division_by(division: Division, place: "Node", wanted: str) -> Division | None:
    """The innermost division by a value that contains a name; the value may contain divisions itself."""
    node = place
    for _ in range(_DEEPEST):
        parent = node.parent
        one = None if parent is None else read_division(division.code, parent)
        if parent is None:
            return None
        if one is not None and one.divisor == node and read_text(node) == wanted:
            return one
        node = parent
    return None


def _list_meanings(division: Division) -> list[object]:
    names = division.code.names
    return [names.find(each) for each in walk(division.divisor) if each.type == "identifier"]


def _invent_name(site: Site, divisor: "Node") -> str:
    """A name that the file does not contain."""
    stem = f"inv_{read_text(divisor)}" if divisor.type == "identifier" else "inv_divisor"
    name, number = stem, 1
    while name.encode() in site.tree.content:
        number += 1
        name = f"{stem}{number}"
    return name


def _declare(site: Site, division: Division, loop: "Node", name: str) -> TextEdit:
    kind, one = ("float", "1.0f") if division.type.is_float else ("double", "1.0")
    divisor = read_text(division.divisor)
    if division.divisor.type not in _SIMPLE:
        divisor = f"({divisor})"
    indentation = read_indentation(site.tree, loop) or b""
    pragmas = list_pragmas(site.tree, loop)
    return insert_line_above(
        site.tree,
        loop,
        f"const {kind} {name} = {one} / {divisor};",
        indentation=indentation,
        row=pragmas[-1].row if pragmas else None,
    )


def _multiply(site: Site, division: Division, name: str) -> tuple[TextEdit, TextEdit]:
    operator = "*=" if division.is_assignment else "*"
    return replace_node(site.tree, division.operator, operator), replace_node(site.tree, division.divisor, name)


REWRITES = {
    "reciprocal_of_literal": RewriteKind(
        language="cuda", optimizers=("fast_math",), propose=_propose_reciprocal_of_literal
    ),
    "reciprocal_root": RewriteKind(language="cuda", optimizers=("fast_math",), propose=_propose_reciprocal_root),
    "reciprocal_before_loop": RewriteKind(
        language="cuda", optimizers=("fast_math", "strength_reduction"), propose=_propose_reciprocal_before_loop
    ),
}
