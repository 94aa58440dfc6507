"""``max_registers=N`` for a Numba kernel, so that more of its warps fit on a multiprocessor."""

from collections.abc import Iterator

from gpa_lsp.rewrites.model import Proposal, RewriteKind, Site
from gpa_lsp.rewrites.numba_options import add_jit_option, find_numba_kernel


def _propose(site: Site) -> Iterator[Proposal]:
    registers = site.context.max_registers
    kernel = find_numba_kernel(site) if registers else None
    edit = None if kernel is None else add_jit_option(site, kernel, "max_registers", str(registers))
    if kernel is None or edit is None:
        return
    yield Proposal(
        title=f"Compile `{kernel.name}` with `max_registers={registers}`",
        explanation=(
            f"With at most {registers} registers a thread, more blocks fit on a multiprocessor at once. What the kernel needs beyond them goes to "
            "local memory, which can cost more than the additional warps gain. Results do not change."
        ),
        edits=(edit,),
    )


REWRITE = RewriteKind(language="python", optimizers=("thread_increase",), propose=_propose)
