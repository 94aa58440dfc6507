"""A smaller factor in ``#pragma unroll``, so that a loop's code fits the instruction cache."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.code.sources.trees import walk
from gpa_lsp.diagnosis.rewrites.code import read_code
from gpa_lsp.diagnosis.rewrites.cuda_loops import (
    LOOPS,
    find_loops_beginning,
    find_unroll_pragma,
    has_constant_turns,
    propose_factor,
)
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site
from gpa_lsp.foundation.prose import say

if TYPE_CHECKING:
    from tree_sitter import Node

_EXPLANATION = say(
    "A smaller unroll factor means less code to fetch, but more branches and less overlap between iterations; results do not change."
)


def _propose(site: Site) -> Iterator[Rewrite]:
    copies = site.context.unroll_copies
    if copies is None:
        return
    for outer in find_loops_beginning(site.tree, site.lines):
        for loop in _find_unrolled(site, outer, copies):
            title, edit = propose_factor(site.tree, loop, find_unroll_pragma(site.tree, loop), copies)
            if edit is not None:
                yield Rewrite(title=title, explanation=_EXPLANATION, edits=(edit,), is_preferred=True)


def _find_unrolled(site: Site, outer: "Node", copies: int) -> "Sequence[Node]":
    """Whose iterations a loop of the code repeats: its own, or those of loops in it that are unrolled as a whole and leave no loop of their own."""
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
    """Without a pragma the compiler may unroll what it can count."""
    code = read_code(site.tree, loop)
    return code is not None and find_unroll_pragma(site.tree, loop) is None and has_constant_turns(loop, code.names)


REWRITE = RewriteKind(language="cuda", optimizers=("excessive_unrolling",), propose=_propose)
