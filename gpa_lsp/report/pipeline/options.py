"""Options of an analysis: :class:`AnalysisOptions`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.diagnosis.blame import DEFAULT_BLAMER

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

Progress = Callable[[str, int, int], None]  # Called with (what, done, total) as the work goes on

# Called with the report of a kernel as soon as it is judged, the longest kernels first
OnKernel = Callable[["KernelReport"], None]


class AnalysisOptions(Struct, frozen=True, kw_only=True):
    """Options of the analysis of a file."""

    # keep kernels with this name: whole, or else as a part of their mangled, readable or short name; None keeps all
    kernel_filter: str | None = None
    disassemble: bool = True  # also produce instruction texts, which needs nvdisasm
    # run every analysis. A report without their answers still says what is stalled, why, and what to change, in half the time.
    answers: bool = True
    # name of the blamer that finds the causes of stalls; ``paper`` also gives advice as GPA published it. None attributes nothing, analyses nothing
    # and gives no advice.
    mode: str | None = DEFAULT_BLAMER
