"""What an analysis looks at: :class:`KernelFacts`, one kernel with its blame and its roofline."""

import numpy as np
import numpy.typing as npt

from gpa_lsp.analyses.answers import Missing
from gpa_lsp.analyses.roofline_model import KernelRoofline
from gpa_lsp.arch.model import Architecture
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.shared_facts import SharedFacts
from gpa_lsp.blame.model import KernelBlame
from gpa_lsp.profile.model import Launch
from gpa_lsp.rows.model import Kernel, KernelRows


@dataclass(frozen=True, slots=True)
class KernelFacts(SharedFacts):
    """One kernel to ask about; n rows over all its functions.

    Attributes:
        kernel: the joined kernel.
        blame: None for code without samples.
        roofline: None when there is none.
        main: of a kernel with several launch contexts, the facts of the heaviest, which tell what limits it; None where there is one.
    """

    kernel: Kernel
    blame: KernelBlame | None
    roofline: KernelRoofline | None
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
