"""A smaller factor in ``#pragma unroll``, so that a loop's code fits the instruction cache."""

from collections.abc import Iterator

from gpa_lsp.rewrites.model import Proposal, RewriteKind, Site
from gpa_lsp.rewrites.pragmas import change_pragma, put_pragma, write_pragma
from gpa_lsp.sources.cuda_loops import find_loops_beginning, find_unroll_pragma

_EXPLANATION = "Fewer copies of the body are less code to fetch. There are more branches, and less of one turn can overlap; results do not change."


def _propose(site: Site) -> Iterator[Proposal]:
    copies = site.context.unroll_copies
    if copies is None:
        return
    for loop in find_loops_beginning(site.tree, site.lines):
        pragma = find_unroll_pragma(site.tree, loop)
        if pragma is None:
            title = f"Put `{write_pragma(copies)}` before the loop"
            edit = put_pragma(site.tree, loop, copies)
        elif pragma.is_complete or (pragma.copies is not None and pragma.copies > copies):
            title = f"Replace `#pragma {pragma.line.words}` by `{write_pragma(copies)}`"
            edit = change_pragma(site.tree, loop, pragma, copies)
        else:
            continue
        if edit is not None:
            yield Proposal(title=title, explanation=_EXPLANATION, edits=(edit,), is_preferred=True)


REWRITE = RewriteKind(language="cuda", optimizers=("excessive_unrolling",), propose=_propose)
