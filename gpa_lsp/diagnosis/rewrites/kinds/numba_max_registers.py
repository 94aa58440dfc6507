"""``max_registers=N`` for a Numba kernel, so that more of its warps fit on a multiprocessor."""

from collections.abc import Iterator

from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteKind, Site, quote
from gpa_lsp.diagnosis.rewrites.python_functions import add_jit_option, find_numba_kernel
from gpa_lsp.foundation.prose import count, say


def _propose(site: Site) -> Iterator[Rewrite]:
    registers = site.context.max_registers
    kernel = find_numba_kernel(site) if registers else None
    edit = None if kernel is None else add_jit_option(site, kernel, "max_registers", str(registers))
    if kernel is None or edit is None:
        return
    yield Rewrite(
        title=say(
            "Compile {kernel} with {option}", kernel=quote(kernel.name), option=quote(f"max_registers={registers}")
        ),
        explanation=say(
            "With at most {registers} per thread, more blocks fit on an SM. Values beyond them spill to local memory, which can cost more than the "
            "additional warps gain. Results do not change.",
            registers=count(registers, "register"),
        ),
        edits=(edit,),
    )


REWRITE = RewriteKind(language="python", optimizers=("thread_increase",), propose=_propose)
