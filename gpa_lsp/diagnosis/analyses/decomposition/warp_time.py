"""How the warps of a kernel spend their cycles: one number per state, from counters or from samples."""

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.decomposition.reasons import WarpState, find_by_counter, find_warp_state
from gpa_lsp.diagnosis.analyses.facts import KernelFacts
from gpa_lsp.foundation.figures import sum_known

_PREFIX = "smsp__average_warps_issue_stalled_"
_SUFFIX = "_per_issue_active.ratio"


class StateTime(Struct, frozen=True, kw_only=True):
    """The time of one state."""

    state: WarpState  # which
    share_ratio: float  # of all cycles that resident warps spent, 0..1
    # warp-cycles in this state for each instruction issued; None where nothing tells (samples without an issue)
    cycles_per_issue: float | None
    sampled: int  # samples of this state, all launches; 0 when not sampled
    # of the samples taken in cycles without an issue, the part in this state; None without such samples, and where they are not told from the others
    latency_share_ratio: float | None


class WarpTime(Struct, frozen=True, kw_only=True):
    """The time of all states."""

    states: tuple[StateTime, ...]  # every state that was counted or sampled, the longest first
    from_counters: bool  # of the longest launch, by hardware counters; False: of all launches, by samples
    cycles_per_issue: float | None  # warp-cycles of all states for each instruction issued; None where nothing tells

    @property
    def stalls(self) -> tuple[StateTime, ...]:
        """The states in which a warp could not issue, the longest first; those without time left out."""
        return tuple(one for one in self.states if one.state.is_stall and one.share_ratio > 0)

    @property
    def stalled_ratio(self) -> float:
        """Of all warp-cycles, those in which the warp could not issue."""
        return sum(one.share_ratio for one in self.stalls)

    def share_of(self, name: str) -> float:
        """The share of one state; 0 when it never occurred."""
        return next((one.share_ratio for one in self.states if one.state.name == name), 0.0)


def read_warp_time(facts: KernelFacts) -> WarpTime | None:
    """How the warps spend their cycles; None when neither counters nor samples tell.

    With counters: ``smsp__average_warps_issue_stalled_<state>_per_issue_active.ratio`` is the number of warps in the state, averaged over active
    cycles, divided by the issues per active cycle; that is warp-cycles in the state per issue. The states share all warp-cycles out among them,
    so that a state's share is its number over the sum of all (which the profiler prints as ``smsp__average_warp_latency_per_inst_issued.ratio``;
    the two agree within 2 % on real reports of kernels with half a million instructions).

    With samples: a sample looks at one resident warp, at regular intervals, so that samples of a state over all samples is the state's share of
    warp-cycles; and ``selected`` lasts one cycle per issue, so that samples of a state over samples of ``selected`` are its cycles per issue.

    Source: Nsight Compute Profiling Guide, Metrics Decoder and Warp Stall Reasons; Little's law for the second reading.
    """
    return facts.once(_read_warp_time)


def _read_warp_time(facts: KernelFacts) -> WarpTime | None:
    counted = _read_counters(facts)
    samples = _count_samples(facts)
    if not counted and not samples:
        return None
    cycles = counted or _scale_samples(samples)
    total = sum(cycles.values())
    latency_total = sum_known(latency for _, latency in samples.values())
    times = [
        StateTime(
            state=find_warp_state(name),
            share_ratio=value / total,
            cycles_per_issue=value if counted else _divide(value, samples.get("selected", (0, 0))[0]),
            sampled=samples.get(name, (0, 0))[0],
            latency_share_ratio=_divide(samples.get(name, (0, 0))[1] or 0, latency_total or 0),
        )
        for name, value in cycles.items()
    ]
    times.sort(key=lambda one: (-one.share_ratio, one.state.name))
    per_issue = total if counted else _divide(total, samples.get("selected", (0, 0))[0])
    return WarpTime(states=tuple(times), from_counters=bool(counted), cycles_per_issue=per_issue)


def _read_counters(facts: KernelFacts) -> dict[str, float]:
    """State → warp-cycles per issue; empty unless the launch has enough of them to be the whole."""
    if facts.longest is None:
        return {}
    found: dict[str, float] = {}
    for metric in facts.longest.metrics:
        if metric.startswith(_PREFIX) and metric.endswith(_SUFFIX):
            value = facts.metric(metric)
            if value is not None and value >= 0:
                found[find_by_counter(metric[len(_PREFIX) : -len(_SUFFIX)]).name] = value
    is_whole = {"selected", "long_scoreboard", "wait"} <= found.keys() and sum(found.values()) > 0
    return found if is_whole else {}


def _count_samples(facts: KernelFacts) -> dict[str, tuple[int, int | None]]:
    """State → samples, and latency samples (None when unknown); states without any left out."""
    every = facts.rows.all_samples.sum(axis=0).tolist()
    split = facts.rows.latency_samples
    latency = [None] * len(every) if split is None else split.sum(axis=0).tolist()
    return {
        name: (one, other) for name, one, other in zip(facts.kernel.reasons, every, latency, strict=True) if one > 0
    }


def _scale_samples(samples: dict[str, tuple[int, int | None]]) -> dict[str, float]:
    return {name: float(every) for name, (every, _) in samples.items()}


def _divide(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
