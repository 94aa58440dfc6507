"""How a file is analysed: :class:`Way`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

Progress = Callable[[str, int, int], None]  # Told (what, done, total) as the work goes on

# Told the report of a kernel as soon as it is judged, the longest kernels first
TakeKernel = Callable[["KernelReport"], None]


class Way(Struct, frozen=True, kw_only=True):
    """How a file is analysed."""

    # keep kernels that this names: whole, or else by a part of their mangled, readable or short name; None keeps all
    kernel_filter: str | None = None
    disassemble: bool = True  # also produce instruction texts, which needs nvdisasm
    # ask every analysis. A report without their answers still says what is stalled, why, and what to change, in half the time.
    answers: bool = True
    # name of the blamer that finds the causes of stalls; with ``paper`` advice is as GPA published it, too. None finds none, analyses nothing and
    # gives no advice.
    mode: str | None = DEFAULT_BLAMER
