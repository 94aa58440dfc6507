"""``#pragma unroll`` in front of a loop, or a larger factor in the one that is there."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.rewrites.code import read_code
from gpa_lsp.diagnosis.rewrites.cuda_loops import (
    find_loops_beginning,
    find_unroll_pragma,
    has_constant_turns,
    propose_factor,
)
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site
from gpa_lsp.foundation.prose import say

_EXPLANATION = say(
    "Loads of several iterations are then in flight together. Unrolling takes registers and code; results do not change. The compiler overlaps "
    "loads and stores of different iterations only where it knows that they do not alias."
)


def _propose(site: Site) -> Iterator[Rewrite]:
    copies = site.context.unroll_copies
    for loop in find_loops_beginning(site.tree, site.lines):
        pragma = find_unroll_pragma(site.tree, loop)
        if pragma is None:
            code = read_code(site.tree, loop)
            # Without a factor the pragma does nothing to a loop whose iterations are not known when it is compiled.
            if code is None or (copies is None and not has_constant_turns(loop, code.names)):
                continue
        elif copies is None or pragma.copies is None or pragma.copies >= copies:
            continue
        title, edit = propose_factor(site.tree, loop, pragma, copies)
        if edit is not None:
            yield Rewrite(title=title, explanation=_EXPLANATION, edits=(edit,), is_preferred=True)


REWRITE = RewriteKind(language="cuda", optimizers=("loop_unrolling",), propose=_propose)
