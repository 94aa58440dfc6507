"""``#pragma unroll`` in front of a loop whose counter indexes an array of the thread, so that the array can live in registers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import list_ancestors, read_text, walk, walk_lines
from gpa_lsp.diagnosis.rewrites.code import Code, read_code
from gpa_lsp.diagnosis.rewrites.cuda_loops import find_unroll_pragma, has_constant_turns, put_pragma, write_pragma
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node

_ELSEWHERE = frozenset({"__shared__", "__constant__", "static", "extern"})


def _propose(site: Site) -> Iterator[Rewrite]:
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
    """What is indexed is an array that each thread has of its own."""
    name = access.child_by_field_name("argument")
    declaration = code.names.find(name) if name is not None and name.type == "identifier" else None
    if declaration is None or not declaration.is_array or declaration.qualifiers & _ELSEWHERE:
        return False
    return declaration.node.type == "declaration" and declaration.scope.type != "translation_unit"


def _find_indexing_loops(code: Code, access: "Node") -> Iterator["Node"]:
    """The loops around an access whose counter is in its index and whose iterations are counted when compiled."""
    index = access.child_by_field_name("indices")
    used = {code.names.find(one) for one in walk(index) if one.type == "identifier"} if index is not None else set()
    for loop in list_ancestors(access):
        if loop.type in ("lambda_expression", "function_definition"):
            return
        is_counted = any(one is not None and one.scope == loop for one in used)
        if is_counted and has_constant_turns(loop, code.names):
            yield loop


REWRITE = RewriteKind(language="cuda", optimizers=("register_reuse",), propose=_propose, is_remedy=False)
