"""Subject of analyses and advice: one kernel with its blame, its sources and its roofline (:class:`Subject`)."""

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.diagnosis.analyses.answers import Missing
from gpa_lsp.diagnosis.analyses.model import KernelRoofline
from gpa_lsp.diagnosis.blame.model import BlameEdges, KernelBlame
from gpa_lsp.foundation.records import SharedFacts
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.kernel.model import Kernel, KernelRows
from gpa_lsp.kernel.scopes import ScopeTree, find_scopes
from gpa_lsp.profile.launch_configuration import LaunchConfiguration
from gpa_lsp.profile.model import Launch

SourceReader = Callable[[str], str | None]  # Path as compiled → the text of that source, None when it is not at hand

ELAPSED_METRICS = ("sm__cycles_elapsed.max", "gpc__cycles_elapsed.max")  # Newest name first


class Subject(Struct, SharedFacts, frozen=True, dict=True, weakref=True):
    """One kernel that analyses, optimizers and checks are asked about; n rows over all its functions."""

    kernel: Kernel  # the joined kernel
    blame: KernelBlame | None = None  # None for code that was not launched
    roofline: KernelRoofline | None = None  # None when there is none
    # of a kernel with several launch contexts, the heaviest, which tells what limits it; None where there is one
    main: "Subject | None" = None
    read_source: SourceReader | None = None  # None takes the sources embedded in the profile

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

    @cached_property
    def launch(self) -> LaunchConfiguration | None:
        """Configuration of the longest launch; None without one, where it had no threads, or without known grid and block."""
        launch = self.longest
        if launch is None or launch.grid is None or launch.block is None or min(launch.block) < 1:
            return None
        found, function = launch.configuration, self.kernel.functions[0].function
        if found.registers_per_thread is not None or function is None:
            return found
        return replace(found, registers_per_thread=function.registers)

    @property
    def sm_count(self) -> int | None:
        """Multiprocessors that the longest launch could use; None when unknown."""
        return (self.longest and self.longest.read_count("launch__sm_count")) or self.kernel.device.sm_count or None

    @property
    def elapsed_cycles(self) -> float | None:
        """Cycles of the longest launch, in the SMs' clock; None when not collected."""
        return self.metric(*ELAPSED_METRICS, "sm__cycles_elapsed.avg") or None

    def measure_active(self, metric: str = "sm__cycles_active.avg") -> float | None:
        """The part of the longest launch in which an SM held warps, 0..1; None when not collected."""
        active, elapsed = self.metric(metric), self.elapsed_cycles
        return None if active is None or elapsed is None else min(1.0, active / elapsed)

    @property
    def scopes(self) -> ScopeTree:
        """Kernel, functions, loops."""
        return find_scopes(self.rows)

    @cached_property
    def total_samples(self) -> int:
        """T, the number of samples of the kernel, attributed or not."""
        return self.kernel.total_samples

    def share_of(self, samples: float) -> float | None:
        """The part of all samples that some of them are, 0..1; None without any."""
        return samples / self.total_samples if self.total_samples else None

    @cached_property
    def runs(self) -> tuple[Launch, ...]:
        """The launches that ran."""
        return tuple(launch for launch in self.kernel.launches if launch.failure is None)

    @property
    def run_count(self) -> int:
        """Launches that ran, at least 1: what to divide sums over all launches by."""
        return max(1, len(self.runs))

    @property
    def dropped_samples(self) -> int:
        """Samples that were taken and lost, as far as the profile says; intervals reach as far as they could."""
        return sum(launch.sampling.dropped_samples or 0 for launch in self.kernel.launches)

    @property
    def edges(self) -> BlameEdges:
        """The blamed pairs; none where nothing was blamed."""
        return BlameEdges.from_rows() if self.blame is None else self.blame.edges

    @property
    def known_latency_samples(self) -> npt.NDArray[np.int64]:
        """int64[n, k], for optimizers that need them and so are not asked where they are unknown (``needs_split``)."""
        assert self.rows.latency_samples is not None
        return self.rows.latency_samples

    @property
    def known_edge_latency_samples(self) -> npt.NDArray[np.float64]:
        """float64[e], M^L of each blamed pair, for the same optimizers."""
        assert self.edges.latency_samples is not None
        return self.edges.latency_samples

    def metric(self, *names: str) -> float | None:
        """The first of these aggregates that the longest launch has; None when it has none of them."""
        return self.kernel.metric(*names)

    def read_counter(self, name: str) -> npt.NDArray[np.int64] | None:
        """int64[n] of a per-instruction counter, 0 where an instruction has none; None when it was not collected."""
        column = self.rows.counter(name)
        return None if column is None else np.maximum(column, 0)

    @cached_property
    def executed(self) -> npt.NDArray[np.int64]:
        """int64[n], warp-level executions over all launches, 0 where an instruction has none."""
        return np.maximum(self.rows.executions, 0)

    def read_executions(self) -> npt.NDArray[np.int64] | None:
        """The same; None when they were not collected at all."""
        return self.executed if bool((self.rows.executions >= 0).any()) else None

    def read_text(self, file: str) -> str | None:
        """The text of a source; None when it is not at hand."""
        if self.read_source is not None:
            return self.read_source(file)
        return None if self.kernel.module is None else self.kernel.module.sources.get(file)

    def source_line(self, file: str, line: int) -> str | None:
        """The text of one source line, stripped; None when the source is not at hand or has no such line."""
        text = self.read_text(file)
        if text is None:
            return None
        lines = _split_lines(text)
        return lines[line - 1].strip() if 0 < line <= len(lines) else None


@lru_cache(maxsize=8)
def _split_lines(text: str) -> list[str]:
    """Kernels of one source come one after the other."""
    return text.splitlines()


def lack(what: str, *metrics: str, section: str = "", needs_all: bool = False) -> Missing:
    """Note a fact that is unknown because metrics were not collected."""
    return Missing(what=what, metrics=metrics, section=section, needs_all=needs_all)
