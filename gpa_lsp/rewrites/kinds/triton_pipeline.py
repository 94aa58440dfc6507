"""A loop of a Triton kernel whose loads are issued some turns ahead: ``tl.range(…, num_stages=N)``."""

from collections.abc import Iterator

from gpa_lsp.rewrites.model import Proposal, RewriteKind, Site
from gpa_lsp.rewrites.triton_loops import add_option, find_range_loops

_STAGES = 3
"""Turns under way at once: one that computes while the loads of two are on their way."""


def _propose(site: Site) -> Iterator[Proposal]:
    for loop in find_range_loops(site):
        if loop.has_option("num_stages") or not loop.has_call("load"):
            continue
        yield Proposal(
            title=f"Load ahead: `{loop.language}.range(…, num_stages={_STAGES})`",
            explanation=(
                f"The compiler then keeps {_STAGES} turns under way at once, and loads for the next ones while it computes. The launch's option of "
                "that name does so only for loads that feed a dot product. Each stage takes shared memory for what it loads; results do not change."
            ),
            edits=add_option(site, loop, f"num_stages={_STAGES}"),
            is_preferred=True,
        )


REWRITE = RewriteKind(language="python", optimizers=("async_copy", "code_reordering"), propose=_propose)
