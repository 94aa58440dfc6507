"""``fastmath=True`` for a Numba kernel."""

from collections.abc import Iterator

from gpa_lsp.rewrites.model import Proposal, RewriteKind, Site
from gpa_lsp.rewrites.numba_options import add_jit_option, find_numba_kernel


def _propose(site: Site) -> Iterator[Proposal]:
    kernel = find_numba_kernel(site)
    edit = None if kernel is None else add_jit_option(site, kernel, "fastmath", "True")
    if kernel is None or edit is None:
        return
    yield Proposal(
        title=f"Compile `{kernel.name}` with `fastmath=True`",
        explanation=(
            "Divisions, roots and functions of single precision become approximations of a few instructions, in the kernel and in what it calls; "
            "denormal numbers become zero, and products and sums are fused. Results differ in the last bits, those of sine and cosine by more for "
            "large angles. FP64 arithmetic stays as it is."
        ),
        edits=(edit,),
        changes_results=True,
    )


REWRITE = RewriteKind(language="python", optimizers=("fast_math",), propose=_propose)
