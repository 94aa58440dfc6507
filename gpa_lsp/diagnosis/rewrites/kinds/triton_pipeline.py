"""A loop of a Triton kernel whose loads are issued some iterations ahead: ``tl.range(…, num_stages=N)``."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote
from gpa_lsp.diagnosis.rewrites.python_functions import add_option, find_range_loops
from gpa_lsp.foundation.prose import count, say

_STAGES = 3  # Iterations in flight: one that computes while the loads of two are on their way


def _propose(site: Site) -> Iterator[Rewrite]:
    for loop in find_range_loops(site):
        if loop.has_option("num_stages") or not loop.has_call("load"):
            continue
        yield Rewrite(
            title=say("Load ahead: {range}", range=quote(f"{loop.language}.range(…, num_stages={_STAGES})")),
            explanation=say(
                "The compiler then software-pipelines the loop: {stages} in flight, loading for the next ones while it computes. The launch option "
                "of that name does so only for loads that feed a dot product. Each stage takes shared memory; results do not change.",
                stages=count(_STAGES, "iteration"),
            ),
            edits=add_option(site, loop, f"num_stages={_STAGES}"),
            is_preferred=True,
        )


REWRITE = RewriteKind(language="python", optimizers=("async_copy", "code_reordering"), propose=_propose)
