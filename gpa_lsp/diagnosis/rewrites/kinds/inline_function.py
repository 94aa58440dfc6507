"""``__forceinline__`` in place of ``__noinline__`` at a device function that is called."""

from collections.abc import Iterator

from gpa_lsp.code.sources.trees import walk
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote, replace_node
from gpa_lsp.foundation.prose import say

_KEPT_OUT, _FORCED = "__noinline__", "__forceinline__"
_EXPLANATION = say(
    "Calls, returns and the moves of arguments go; each call site holds the code. Results do not change."
)


def _propose(site: Site) -> Iterator[Rewrite]:
    for function in walk(site.tree.root):
        rows = range(function.start_point[0] + 1, function.end_point[0] + 2)
        if function.type != "function_definition" or site.lines.isdisjoint(rows):
            continue
        for node in function.children:
            if node.type == _KEPT_OUT:
                title = say("Replace {kept} by {forced}", kept=quote(_KEPT_OUT), forced=quote(_FORCED))
                edit = replace_node(site.tree, node, _FORCED)
                yield Rewrite(title=title, explanation=_EXPLANATION, edits=(edit,), is_preferred=True)


REWRITE = RewriteKind(language="cuda", optimizers=("function_inlining",), propose=_propose)
