"""What an analysis looks at: :class:`KernelFacts`, one kernel with its blame and its roofline."""

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.records import SharedFacts
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.kernel.model import Kernel, KernelRows
from gpa_lsp.profile.model import Launch


class KernelFacts(Struct, SharedFacts, frozen=True, dict=True, weakref=True):
    """One kernel to ask about; n rows over all its functions."""

    kernel: Kernel  # the joined kernel
    blame: KernelBlame | None  # None for code without samples
    roofline: KernelRoofline | None  # None when there is none
    # of a kernel with several launch contexts, the facts of the heaviest, which tell what limits it; None where there is one
    main: "KernelFacts | None" = None

    @property
    def architecture(self) -> Architecture | None:
        """The GPU's table; None when there is none."""
        return self.kernel.architecture

    @property
    def rows(self) -> KernelRows:
        """The kernel's rows."""
        return self.kernel.rows

    @property
    def longest(self) -> Launch | None:
        """The longest launch that has numbers; None for code without a profile."""
        return self.kernel.longest_launch

    def metric(self, *names: str) -> float | None:
        """The first of these aggregates that the longest launch has; None when it has none of them."""
        return self.kernel.metric(*names)

    def read_counter(self, name: str) -> npt.NDArray[np.int64] | None:
        """int64[n] of a per-instruction counter, 0 where an instruction has none; None when it was not collected."""
        column = self.rows.counter(name)
        return None if column is None else np.maximum(column, 0)

    def read_executions(self) -> npt.NDArray[np.int64] | None:
        """int64[n], warp-level executions, 0 where an instruction has none; None when they were not collected at all."""
        executions = self.rows.executions
        return np.maximum(executions, 0) if bool((executions >= 0).any()) else None


def lack(what: str, *metrics: str, section: str = "", needs_all: bool = False) -> Missing:
    """What is unknown because metrics were not collected."""
    return Missing(what=what, metrics=metrics, section=section, needs_all=needs_all)
