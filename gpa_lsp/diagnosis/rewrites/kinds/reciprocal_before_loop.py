"""A division by what a loop does not change: one reciprocal before the loop, and products in it."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import read_text, walk
from gpa_lsp.diagnosis.rewrites.cuda_loops import LOOPS, list_pragmas
from gpa_lsp.diagnosis.rewrites.divisions import Division, find_divisions, read_division
from gpa_lsp.diagnosis.rewrites.edits import insert_line_above, read_indentation, replace_node
from gpa_lsp.diagnosis.rewrites.invariance import find_loops_around, is_inside, is_invariant
from gpa_lsp.diagnosis.rewrites.model import Proposal, RewriteKind, Site, TextEdit
from gpa_lsp.diagnosis.rewrites.titles import quote, shorten
from gpa_lsp.foundation.prose import count, say

if TYPE_CHECKING:
    from tree_sitter import Node

# Divisors that need no parentheses of their own
_SIMPLE = frozenset(
    {"identifier", "call_expression", "field_expression", "parenthesized_expression", "cast_expression"}
)

_DEEPEST = 12  # Levels of a divisor above a name in it

_EXPLANATION = say(
    "By the loop's text the divisor is loop-invariant: one division before the loop and a multiplication per iteration suffice. The reciprocal is "
    "rounded, so the last bit of a result can differ; for divisors below 2^-126 it can overflow."
)


def _propose(site: Site) -> Iterator[Proposal]:
    seen = set()
    for division in find_divisions(site.tree, site.lines):
        loop = _find_loop(site, division)
        key = (0 if loop is None else loop.id, read_text(division.divisor))
        if loop is None or key in seen:
            continue
        seen.add(key)
        alike = _find_alike(division, loop)
        if not alike:
            continue  # its own divisor is deeper than is looked
        name = _invent_name(site, division.divisor)
        divisions = count(len(alike), "division") if len(alike) > 1 else shorten(read_text(division.node))
        yield Proposal(
            title=say(
                "Divide once before the loop and multiply by {reciprocal} in {divisions}",
                reciprocal=quote(name),
                divisions=divisions,
            ),
            explanation=_EXPLANATION,
            edits=(
                _declare(site, division, loop, name),
                *(edit for one in alike for edit in _multiply(site, one, name)),
            ),
            changes_results=True,
        )


def _find_loop(site: Site, division: Division) -> "Node | None":
    """The outermost loop that leaves the divisor alone, where a declaration can stand before it; None when there is none."""
    is_real = division.type.is_float or division.type.is_double
    if not is_real or not any(one.type == "identifier" for one in walk(division.divisor)):
        return None
    found = None
    for loop in find_loops_around(division.node, LOOPS):
        if not is_invariant(division.code, division.divisor, loop):
            break
        if _can_declare_before(site, loop):
            found = loop
    return None if division.code.names.has_jumps else found


def _can_declare_before(site: Site, loop: "Node") -> bool:
    parent = loop.parent
    is_in_block = parent is not None and parent.type == "compound_statement"
    is_in_switch = (
        is_in_block and parent is not None and parent.parent is not None and parent.parent.type == "switch_statement"
    )
    return is_in_block and not is_in_switch and read_indentation(site.tree, loop) is not None


def _find_alike(division: Division, loop: "Node") -> list[Division]:
    """All divisions of the loop by the same value, in the same precision."""
    wanted, meant = read_text(division.divisor), _list_meanings(division)
    name = next((one for one in walk(division.divisor) if one.type == "identifier"), None)
    found: dict[int, Division] = {}
    # A divisor that is the same has the same first name.
    for place in division.code.names.places.get(read_text(name), ()):
        one = _find_division_by(division, place, wanted) if is_inside(place, loop) else None
        if one is None or one.type != division.type:
            continue
        if loop in find_loops_around(one.node, LOOPS) and _list_meanings(one) == meant:
            found[one.node.id] = one
    return list(found.values())


def _find_division_by(division: Division, place: "Node", wanted: str) -> Division | None:
    """The innermost division by a value that a name stands in; the value may hold divisions of its own."""
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
    """A name that stands nowhere in the file."""
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


REWRITE = RewriteKind(language="cuda", optimizers=("fast_math", "strength_reduction"), propose=_propose)
