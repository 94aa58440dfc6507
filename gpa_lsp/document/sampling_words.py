"""Sampling of a kernel in words: GPU, period, unknowns, and samples that belong to none of its instructions."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.document.layout import join_facts
from gpa_lsp.execution.simulator.regimes import UNCHECKED, UNKNOWN_TIME, describe_error, is_time_known
from gpa_lsp.foundation.figures import measure_share
from gpa_lsp.foundation.numbers import (
    format_count,
    format_count_of,
    format_duration_ns,
    format_hz,
    format_percent,
    format_share,
)
from gpa_lsp.gpu.device.model import Machine
from gpa_lsp.report.count import find_top_stall
from gpa_lsp.report.model import DeviceReport, KernelReport

# Where foreign samples stand in a table of functions
OTHER_CODE = "other code that ran meanwhile (not counted in the kernel's samples)"


def describe_device(device: DeviceReport) -> str:
    """GPU name, compute capability, SMs and clock, as far as they are known."""
    clock = [] if device.sm_clock_hz is None else [format_hz(device.sm_clock_hz)]
    return join_facts([*list_gpu_facts(device), *clock])


def list_gpu_facts(gpu: DeviceReport | Machine) -> list[str]:
    """Name, compute capability and number of SMs, as far as they are known."""
    facts = [gpu.name or "unknown GPU"]
    if gpu.compute_capability is not None:
        facts.append("compute capability {}.{}".format(*gpu.compute_capability))
    return facts if gpu.sm_count is None else [*facts, format_count_of(gpu.sm_count, "SM")]


def label_samples(reasons: Sequence[str], samples: npt.NDArray[np.int64], total: int) -> str:
    """Share of some samples, and their main stall reason (with its own share, where that differs).

    >>> label_samples(("long_scoreboard", "selected"), np.array([84, 0]), 100)
    '84 % long_scoreboard'
    >>> label_samples(("long_scoreboard", "selected"), np.array([33, 36]), 100)
    '69 %, 33 % long_scoreboard'
    """
    share = format_percent(int(samples.sum()) / total if total else 0.0)
    top = find_top_stall(reasons, samples)
    if top is None:
        return share
    of_reason = format_percent(top[1] / total if total else 0.0)
    return f"{share} {top[0]}" if of_reason == share else f"{share}, {of_reason} {top[0]}"


def describe_time(kernel: KernelReport, duration_ns: float | None) -> str:
    """A time of a kernel; a simulated one is marked, and hidden where the model was not checked."""
    if not kernel.is_simulated:
        return format_duration_ns(duration_ns)
    if not is_time_known(kernel.instructions.texts, kernel.instructions.executions):
        return UNKNOWN_TIME
    doubt = f" ({UNCHECKED})" if kernel.sampling.unchecked else ""
    return f"{format_duration_ns(duration_ns)} simulated{doubt}"


def describe_simulation(kernel: KernelReport) -> str:
    """Error of simulated samples; empty for measured ones."""
    if not kernel.is_simulated:
        return ""
    return f"simulated, not measured: {describe_error(kernel.sampling.unchecked)}"


def describe_quiet(kernel: KernelReport) -> str:
    """Share of the samples that were taken while the scheduler issued nothing."""
    if kernel.latency_samples is None:
        return "how many were not issued is unknown"
    return f"{format_share(kernel.share_of(kernel.latency_samples))} of them not issued"


def describe_dropped(kernel: KernelReport) -> str:
    """The dropped samples; empty where none or an unknown number was dropped."""
    dropped = kernel.sampling.dropped_samples
    if not dropped:
        return ""
    share = format_percent(measure_share(dropped, kernel.total_samples + dropped).ratio)
    return f"{format_count(dropped)} more were dropped ({share} of all), so shares are less certain"


def list_sampling_facts(kernel: KernelReport) -> list[str]:
    """Clauses on period, dropped and foreign samples; unknown numbers are named where the collector counts them."""
    sampling = kernel.sampling
    simulated = describe_simulation(kernel)
    facts = [simulated] if simulated else []
    if sampling.period_cycles is not None:
        facts.append(f"one every {format_count(sampling.period_cycles)} cycles")
    if dropped := describe_dropped(kernel):
        facts.append(dropped)
    elif sampling.dropped_samples is None and (sampling.foreign_samples, sampling.total_samples) != (None, None):
        facts.append("how many were dropped is unknown")
    if sampling.foreign_samples:
        facts.append(f"{format_count(sampling.foreign_samples)} more are of other code")
    return facts
