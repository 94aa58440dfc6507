"""What one sample stands for: :class:`SampleScale`, warp-cycles per sample."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.facts import KernelFacts

_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
_ISSUED = "smsp__inst_issued.sum"
_FEWEST_SELECTED = 25  # Issued samples from which the scale is read; 25 leave a standard error of a fifth


class SampleScale(Struct, frozen=True, kw_only=True):
    """What one sample stands for."""

    cycles: float  # warp-cycles of the whole GPU per sample
    source: str  # how it was found, one clause
    error_ratio: float  # standard error, relative; 0 where counters give it


def measure_sample_scale(facts: KernelFacts) -> SampleScale | None:
    """Warp-cycles that one sample stands for; None when nothing tells, or when the samples are of a part of the run only.

    Of an aggregate these are warp-cycles of its mean launch, as its executions are: what is divided by them is then for one execution. Aggregates
    beside other launches tell nothing.

    By counters, where every launch has them: warp-cycles are ``smsp__average_warp_latency_per_inst_issued.ratio`` (warp-cycles per issue) times
    ``smsp__inst_issued.sum``, summed over launches, and they are shared out among all samples.

    By the samples alone: a warp is ``selected`` for one cycle per instruction, so that the executions of all instructions over the samples of
    ``selected`` is the number of warp-cycles per sample. The sampling interval and how many schedulers share one sampler need not be known.
    On real reports with 1,000 selected samples or more the two differ by 2 % in the median, and by less than 10 %.

    Source: Little's law; both derivations are ours.
    """
    if facts.kernel.has_mixed_launches or any(launch.samples_truncated for launch in facts.kernel.launches):
        return None
    samples = facts.kernel.total_samples
    counted = _sum_warp_cycles(facts)
    if samples > 0 and counted is not None:
        return SampleScale(cycles=counted / samples, source="warp latency per issue times issues", error_ratio=0.0)
    selected = facts.rows.count_reason("selected")
    executions = facts.rows.executions
    executed = int(executions[executions > 0].sum())
    if selected < _FEWEST_SELECTED or executed == 0:
        return None
    return SampleScale(
        cycles=executed / selected, source="executions per sample of a warp that issued", error_ratio=selected**-0.5
    )


def _sum_warp_cycles(facts: KernelFacts) -> float | None:
    total = 0.0
    for launch in facts.kernel.launches:
        if launch.samples is None or launch.samples.total_samples == 0:
            continue
        latency = launch.read_number(_LATENCY)
        issued = launch.read_number(_ISSUED)
        if latency is None or issued is None:
            return None
        total += latency * issued
    return total if total > 0 else None
