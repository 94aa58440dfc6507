"""``fastmath=True`` for a Numba kernel."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote
from gpa_lsp.diagnosis.rewrites.python_functions import add_jit_option, find_numba_kernel
from gpa_lsp.foundation.prose import say


def _propose(site: Site) -> Iterator[Rewrite]:
    kernel = find_numba_kernel(site)
    edit = None if kernel is None else add_jit_option(site, kernel, "fastmath", "True")
    if kernel is None or edit is None:
        return
    yield Rewrite(
        title=say("Compile {kernel} with {option}", kernel=quote(kernel.name), option=quote("fastmath=True")),
        explanation=say(
            "FP32 divisions, roots and functions become approximations of a few instructions, in the kernel and in what it calls; denormals are "
            "flushed to zero, and products and sums are fused. Results differ in the last bits, sine and cosine of large angles by more. FP64 "
            "arithmetic does not change."
        ),
        edits=(edit,),
        changes_results=True,
    )


REWRITE = RewriteKind(language="python", optimizers=("fast_math",), propose=_propose)
