"""How a file is analysed: :class:`Way`."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.blame import DEFAULT_BLAMER

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

Progress = Callable[[str, int, int], None]
"""Told (what, done, total) as the work goes on."""

TakeKernel = Callable[["KernelReport"], None]
"""Told the report of a kernel as soon as it is judged, the longest kernels first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How a file is analysed.

    Attributes:
        kernel_filter: keep kernels that this names: whole, or else by a part of their mangled, readable or short name; None keeps all.
        disassemble: also produce instruction texts, which needs nvdisasm.
        answers: ask every analysis. A report without their answers still says what is stalled, why, and what to change, in half the time.
        blamer: name of the blamer that finds the causes of stalls; None finds none, analyses nothing and gives no advice.
    """

    kernel_filter: str | None = None
    disassemble: bool = True
    answers: bool = True
    blamer: str | None = DEFAULT_BLAMER
