"""Search for the rewrites that answer a piece of advice at some lines of a text."""

from collections.abc import Collection, Mapping
from functools import cache

from msgspec.structs import replace

from gpa_lsp.code.sources.trees import read_tree
from gpa_lsp.diagnosis.rewrites import kinds
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteContext, RewriteKind, Site
from gpa_lsp.foundation.catalogue import load_catalogue

MOST_LINES = 64  # Lines looked at for one piece of advice, the first ones

MOST_REWRITES = 16  # Rewrites given for one piece of advice, the first ones; more are no choice


@cache
def load_kinds() -> Mapping[str, RewriteKind]:
    """Every kind of rewrite, by name."""
    subjects: dict[str, dict[str, RewriteKind]] = load_catalogue(kinds, "REWRITES", dict)
    return dict(sorted((name, kind) for subject in subjects.values() for name, kind in subject.items()))


def find_rewrites(file_name: str, text: str, lines: Collection[int], context: RewriteContext) -> tuple[Rewrite, ...]:
    r"""The rewrites that answer a piece of advice and that the text proves applicable.

    Args:
        file_name: for the language.
        text: of the whole file as it is now.
        lines: 1-based lines the advice is about as they are numbered now: a loop's own line, the lines that cause the stalls.
        context: what else is known.

    Returns:
        By kind in alphabetical order, and within one in the order of the text. Empty for a language without a grammar, for a text that is too
        large, and for one with line ends that only some readers count (a carriage return alone).

    >>> context = RewriteContext(optimizer="loop_unrolling", unroll_copies=4)
    >>> text = "void f(float *x, int n) {\n  for (int i = 0; i < n; ++i)\n    x[i] = 0;\n}\n"
    >>> [(found.title, found.edits[0].text) for found in find_rewrites("k.cu", text, [2], context)]
    [('Put `#pragma unroll 4` before the loop', '  #pragma unroll 4\n')]
    """
    if text.count("\r") != text.count("\r\n"):
        return ()
    chosen = {name: kind for name, kind in load_kinds().items() if context.optimizer in kind.optimizers}
    tree = read_tree(file_name, text) if chosen else None
    if tree is None:
        return ()
    near = frozenset(sorted(line for line in lines if 0 < line <= tree.line_count)[:MOST_LINES])
    site = Site(tree=tree, lines=near, context=context)
    found: dict[object, Rewrite] = {}
    for name, kind in chosen.items():
        for rewrite in kind.propose(site) if kind.language == tree.language.name else ():
            edits = tuple(sorted(rewrite.edits))
            whole = replace(rewrite, name=name, optimizers=kind.optimizers, is_remedy=kind.is_remedy, edits=edits)
            found.setdefault(edits, whole)
            if len(found) == MOST_REWRITES:
                return tuple(found.values())
    return tuple(found.values())
