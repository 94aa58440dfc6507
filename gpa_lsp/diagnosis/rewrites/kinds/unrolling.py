"""Unroll factors of loops: ``#pragma unroll`` and its factor."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import list_ancestors, read_text, walk, walk_lines
from gpa_lsp.diagnosis.rewrites.code import Code, read_code
from gpa_lsp.diagnosis.rewrites.cuda_loops import (
    LOOPS,
    find_loops_beginning,
    find_unroll_pragma,
    has_constant_turns,
    propose_factor,
    put_pragma,
    write_pragma,
)
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node


_UNROLL_LOOP_EXPLANATION = say(
    "Loads of several iterations are then in flight together. Unrolling takes registers and code; results do not change. The compiler overlaps "
    "loads and stores of different iterations only where it knows that they do not alias."
)


def _propose_unroll_loop(site: Site) -> Iterator[Rewrite]:
    """``#pragma unroll`` in front of a loop, or a larger factor in the one that is there."""
    copies = site.context.unroll_copies
    for loop in find_loops_beginning(site.tree, site.lines):
        pragma = find_unroll_pragma(site.tree, loop)
        if pragma is None:
            code = read_code(site.tree, loop)
            # Without a factor the pragma has no effect on a loop whose trip count is unknown at compile time.
            if code is None or (copies is None and not has_constant_turns(loop, code.names)):
                continue
        elif copies is None or pragma.copies is None or pragma.copies >= copies:
            continue
        title, edit = propose_factor(site.tree, loop, pragma, copies)
        if edit is not None:
            yield Rewrite(title=title, explanation=_UNROLL_LOOP_EXPLANATION, edits=(edit,), is_preferred=True)


_UNROLL_LESS_EXPLANATION = say(
    "A smaller unroll factor means less code to fetch, but more branches and less overlap between iterations; results do not change."
)


def _propose_unroll_less(site: Site) -> Iterator[Rewrite]:
    """A smaller factor in ``#pragma unroll``, so that a loop's code fits the instruction cache."""
    copies = site.context.unroll_copies
    if copies is None:
        return
    for outer in find_loops_beginning(site.tree, site.lines):
        for loop in _find_unrolled(site, outer, copies):
            title, edit = propose_factor(site.tree, loop, find_unroll_pragma(site.tree, loop), copies)
            if edit is not None:
                yield Rewrite(title=title, explanation=_UNROLL_LESS_EXPLANATION, edits=(edit,), is_preferred=True)


def _find_unrolled(site: Site, outer: "Node", copies: int) -> "Sequence[Node]":
    """Loops whose iterations a loop of the code repeats: itself, or loops inside that are fully unrolled and leave no loop."""
    if _asks_for_more(site, outer, copies):
        return [outer]
    inner = [node for node in walk(outer) if node.type in LOOPS and node != outer]
    if not inner:
        return [outer] if find_unroll_pragma(site.tree, outer) is None else []
    return [loop for loop in inner if _asks_for_more(site, loop, copies) or _is_left_to_compiler(site, loop)]


def _asks_for_more(site: Site, loop: "Node", copies: int) -> bool:
    pragma = find_unroll_pragma(site.tree, loop)
    return pragma is not None and (pragma.is_complete or (pragma.copies is not None and pragma.copies > copies))


def _is_left_to_compiler(site: Site, loop: "Node") -> bool:
    """Whether the compiler may unroll a loop: it has no pragma, and its iterations can be counted."""
    code = read_code(site.tree, loop)
    return code is not None and find_unroll_pragma(site.tree, loop) is None and has_constant_turns(loop, code.names)


_ELSEWHERE = frozenset({"__shared__", "__constant__", "static", "extern"})


def _propose_unroll_indexing_loop(site: Site) -> Iterator[Rewrite]:
    """``#pragma unroll`` in front of a loop whose counter indexes an array of the thread, so that the array can live in registers."""
    for node in walk_lines(site.tree.root, site.lines):
        code = read_code(site.tree, node) if node.type == "subscript_expression" else None
        if code is None or not _is_of_thread(code, node):
            continue
        for loop in _find_indexing_loops(code, node):
            edit = put_pragma(site.tree, loop, None) if find_unroll_pragma(site.tree, loop) is None else None
            if edit is None:
                continue
            array = read_text(node.child_by_field_name("argument"))
            yield Rewrite(
                title=say(
                    "Put {pragma} before the loop that indexes {array}",
                    pragma=quote(write_pragma(None)),
                    array=quote(array),
                ),
                explanation=say(
                    "{array} can only live in registers if every index is known at compile time. This loop's trip count is: fully unrolled, it "
                    "indexes with constants. Any other run-time index still keeps the array in memory; results do not change.",
                    array=quote(array),
                ),
                edits=(edit,),
                is_preferred=True,
            )


def _is_of_thread(code: Code, access: "Node") -> bool:
    """Whether an access indexes an array that each thread has of its own."""
    name = access.child_by_field_name("argument")
    declaration = code.names.find(name) if name is not None and name.type == "identifier" else None
    if declaration is None or not declaration.is_array or declaration.qualifiers & _ELSEWHERE:
        return False
    return declaration.node.type == "declaration" and declaration.scope.type != "translation_unit"


def _find_indexing_loops(code: Code, access: "Node") -> Iterator["Node"]:
    """Loops around an access whose counter is in its index and whose iterations are counted at compile time."""
    index = access.child_by_field_name("indices")
    used = {code.names.find(one) for one in walk(index) if one.type == "identifier"} if index is not None else set()
    for loop in list_ancestors(access):
        if loop.type in ("lambda_expression", "function_definition"):
            return
        is_counted = any(one is not None and one.scope == loop for one in used)
        if is_counted and has_constant_turns(loop, code.names):
            yield loop


REWRITES = {
    "unroll_loop": RewriteKind(language="cuda", optimizers=("loop_unrolling",), propose=_propose_unroll_loop),
    "unroll_less": RewriteKind(language="cuda", optimizers=("excessive_unrolling",), propose=_propose_unroll_less),
    "unroll_indexing_loop": RewriteKind(
        language="cuda", optimizers=("register_reuse",), propose=_propose_unroll_indexing_loop, is_remedy=False
    ),
}
