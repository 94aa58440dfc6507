"""``#pragma unroll`` in front of a loop, or a larger factor in the one that is there."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpa_lsp.diagnosis.rewrites.code import read_code
from gpa_lsp.diagnosis.rewrites.cuda_loops import (
    change_pragma,
    find_loops_beginning,
    find_unroll_pragma,
    has_constant_turns,
    put_pragma,
    write_pragma,
)
from gpa_lsp.diagnosis.rewrites.model import Proposal, RewriteKind, Site, TextEdit
from gpa_lsp.diagnosis.rewrites.titles import quote
from gpa_lsp.foundation.prose import NOTHING, Sentence, say

if TYPE_CHECKING:
    from tree_sitter import Node

_EXPLANATION = say(
    "Loads of several iterations are then in flight together. Unrolling takes registers and code; results do not change. The compiler overlaps "
    "loads and stores of different iterations only where it knows that they do not alias."
)


def _propose(site: Site) -> Iterator[Proposal]:
    copies = site.context.unroll_copies
    for loop in find_loops_beginning(site.tree, site.lines):
        pragma = find_unroll_pragma(site.tree, loop)
        if pragma is None:
            title, edit = _add(site, loop, copies)
        elif copies is not None and pragma.copies is not None and pragma.copies < copies:
            title = say(
                "Replace {old} by {new}", old=quote(f"#pragma {pragma.line.words}"), new=quote(write_pragma(copies))
            )
            edit = change_pragma(site.tree, loop, pragma, copies)
        else:
            continue
        if edit is not None:
            yield Proposal(title=title, explanation=_EXPLANATION, edits=(edit,), is_preferred=True)


def _add(site: Site, loop: "Node", copies: int | None) -> tuple[Sentence, TextEdit | None]:
    code = read_code(site.tree, loop)
    # Without a factor the pragma does nothing to a loop whose iterations are not known when it is compiled.
    if code is None or (copies is None and not has_constant_turns(loop, code.names)):
        return NOTHING, None
    return say("Put {pragma} before the loop", pragma=quote(write_pragma(copies))), put_pragma(site.tree, loop, copies)


REWRITE = RewriteKind(language="cuda", optimizers=("loop_unrolling",), propose=_propose)
