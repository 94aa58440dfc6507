"""What an optimizer looks at: one kernel, its blame, its scopes, its launch and its sources, with the usual questions answered once."""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.diagnosis.advice.launch_facts import LaunchFacts, gather_launch_facts
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.diagnosis.analyses.limiter.find import find_limiter
from gpa_lsp.diagnosis.analyses.limiter.model import Limiter
from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline
from gpa_lsp.diagnosis.blame.model import KernelBlame
from gpa_lsp.foundation.records import SharedFacts
from gpa_lsp.kernel.model import Kernel, KernelRows
from gpa_lsp.kernel.scopes import ScopeTree, find_scopes

SourceReader = Callable[[str], str | None]  # Path as compiled → the text of that source, None when it is not at hand

# Counters taken in several passes can exceed 100 % of a peak by a little; what is far above it is damaged or made up
_MOST_PERCENT = 200.0


class Subject(Struct, SharedFacts, frozen=True, kw_only=True, dict=True, weakref=True):
    """One kernel to advise on."""

    kernel: Kernel  # the joined kernel
    blame: KernelBlame  # its blame
    scopes: ScopeTree  # kernel, functions, loops
    launch: LaunchFacts | None  # the longest launch; None for code without a profile
    read_source: SourceReader  # gives the text of a source where it is at hand
    total_samples: int  # T, every sample of the kernel, whatever became of it
    # taken beside them and lost, as far as the profile says; intervals reach as far as they could
    dropped_samples: int = 0
    roofline: KernelRoofline | None = None  # where the kernel stands; None when there is none
    facts: KernelFacts  # what the analyses know of the kernel

    @property
    def rows(self) -> KernelRows:
        """The rows of the kernel."""
        return self.kernel.rows

    @property
    def limiter(self) -> Limiter:
        """What limits the kernel."""
        return find_limiter(self.facts)

    @property
    def has_known_grid(self) -> bool:
        """Whether the profile says with how many blocks and threads the longest launch was made; so it is where there is none."""
        longest = self.kernel.longest_launch
        return longest is None or (longest.grid is not None and longest.block is not None)

    @property
    def known_latency_samples(self) -> npt.NDArray[np.int64]:
        """int64[n, k], for optimizers that need them and so are not asked where they are unknown (``needs_split``)."""
        assert self.rows.latency_samples is not None
        return self.rows.latency_samples

    @property
    def known_edge_latency_samples(self) -> npt.NDArray[np.float64]:
        """float64[e], M^L of each blamed pair, for the same optimizers."""
        assert self.blame.edges.latency_samples is not None
        return self.blame.edges.latency_samples

    def metric(self, name: str) -> float | None:
        """An aggregate of the longest launch; None when not collected, and where no counter can have that value."""
        value = self.kernel.metric(name)
        is_percent = "pct_of_peak" in name
        return None if value is None or value < 0 or (is_percent and value > _MOST_PERCENT) else value

    def source_line(self, file: str, line: int) -> str | None:
        """The text of one source line, stripped; None when the source is not at hand or has no such line."""
        text = self.read_source(file)
        if text is None:
            return None
        lines = _split_lines(text)
        return lines[line - 1].strip() if 0 < line <= len(lines) else None


@lru_cache(maxsize=8)
def _split_lines(text: str) -> list[str]:
    """Kernels of one source come one after the other."""
    return text.splitlines()


def build_subject(
    kernel: Kernel,
    blame: KernelBlame,
    read_source: SourceReader | None = None,
    roofline: KernelRoofline | None = None,
    facts: KernelFacts | None = None,
) -> Subject:
    """The subject of a kernel.

    Args:
        read_source: where sources come from; None takes those embedded in the profile.
        roofline: of the same kernel; None when there is none.
        facts: of the same kernel; None gathers them.
    """
    embedded = kernel.module.sources if kernel.module is not None else {}
    return Subject(
        kernel=kernel,
        blame=blame,
        scopes=find_scopes(kernel.rows),
        launch=gather_launch_facts(kernel),
        read_source=read_source or embedded.get,
        total_samples=kernel.total_samples,
        dropped_samples=sum(launch.sampling.dropped_samples or 0 for launch in kernel.launches),
        roofline=roofline,
        facts=facts or KernelFacts(kernel, blame, roofline),
    )
