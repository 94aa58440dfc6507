"""Cycles that the warps of a kernel spend in each state, from counters or from samples."""

from enum import Enum

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.prose import NOTHING, Sentence, say
from gpa_lsp.foundation.records import remembered
from gpa_lsp.profile.stall_reasons import describe_stall_reason

# The warp states of the profiler as the decomposition uses them: their counters, how their sources are told apart, and what to do.
#
# A state is a row of one table, and a test holds the table against :data:`gpa_lsp.profile.stall_reasons.STALL_REASONS`: no name is matched
# anywhere else, so none can be misspelt out of reach.

# Around the part of the name that says which state: the metric that counts it
_PREFIX, _SUFFIX = "smsp__average_warps_issue_stalled_", "_per_issue_active.ratio"


class SourceRule(Enum):
    """Rule that splits the stalls of a warp state into sources."""

    BY_CAUSE = "the kind of the cause"
    BY_PRODUCER = "the kind of the cause, and how the stalled instruction depends on it"
    BY_WAITER = "the kind of the stalled instruction"
    BY_PLACE = "the place of the cause"
    BY_FUNCTION = "the function whose instructions were fetched"
    NONE = "none: a warp in this state is not stalled"


class WarpState(Struct, frozen=True, kw_only=True):
    """One state of a warp."""

    name: str  # as sampled, in Nsight Compute's spelling
    counter: str  # the part of the aggregate's name that says which state; differs from ``name`` in two cases
    rule: SourceRule  # how its sources are told apart
    remedy: Sentence  # what to do about it in general; empty for states in which nothing is stalled
    is_stall: bool = True  # the warp could not issue

    @property
    def aggregate(self) -> str:
        """The metric that counts it: warps in this state per cycle with an issue."""
        return f"{_PREFIX}{self.counter}{_SUFFIX}"


# States whose aggregate is spelt differently. Source: metric names of real reports, 2020.3 to 2026.2.
_COUNTER_NAMES = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}

_ROWS = (
    (
        "long_scoreboard",
        SourceRule.BY_CAUSE,
        "Issue loads earlier, or request less (reuse, wider and coalesced accesses)",
    ),
    (
        "short_scoreboard",
        SourceRule.BY_CAUSE,
        "Put independent work between these instructions and the use of their results, and use fewer of them",
    ),
    ("wait", SourceRule.BY_PRODUCER, "Give each warp independent instructions (unroll, several accumulators)"),
    (
        "math_pipe_throttle",
        SourceRule.BY_WAITER,
        "All warps share the pipe: use fewer of its instructions, or those of another pipe",
    ),
    (
        "mio_throttle",
        SourceRule.BY_WAITER,
        "Spread out shared-memory, shuffle and special-function instructions, use fewer and wider ones, remove bank conflicts",
    ),
    (
        "lg_throttle",
        SourceRule.BY_WAITER,
        "Issue fewer and wider accesses to global and local memory: vector types, values kept in registers, no spills",
    ),
    ("tex_throttle", SourceRule.BY_WAITER, "Spread out texture fetches, or read part of the data with ordinary loads"),
    (
        "barrier",
        SourceRule.BY_PLACE,
        "Balance the warps' work before the barrier, use smaller blocks so that others run meanwhile, or synchronise less",
    ),
    (
        "membar",
        SourceRule.BY_PLACE,
        "Fence with the narrowest correct scope (block before device before system), and less often",
    ),
    (
        "warpgroup_arrive",
        SourceRule.BY_PLACE,
        "Issue the matrix instructions of a warp group earlier and keep several groups in flight",
    ),
    (
        "no_instructions",
        SourceRule.BY_FUNCTION,
        "Shrink the hot code (less unrolling and inlining, slow paths out of the loop), and branch less",
    ),
    (
        "branch_resolving",
        SourceRule.BY_CAUSE,
        "Branch less: unroll short loops, select or predicate instead, inline small functions",
    ),
    (
        "dispatch_stall",
        SourceRule.BY_WAITER,
        "Poorly documented; it follows wide multiplies and constant operands, so fewer of these may help",
    ),
    (
        "imc_miss",
        SourceRule.BY_PLACE,
        "Let the warps read the same few constants, read them once into registers, or pass large tables through global memory",
    ),
    ("drain", SourceRule.BY_PLACE, "Store earlier, and coalesce: a warp cannot exit before its stores have left"),
    ("sleeping", SourceRule.BY_PLACE, "Sleep for less time, or do useful work instead"),
    (
        "misc",
        SourceRule.BY_CAUSE,
        "The hardware gives no reason; it occurs at reconvergence points, so fewer divergent branches may help",
    ),
)

# All states known, by name.
#
# Source: what each means, the Nsight Compute Profiling Guide, Warp Stall Reasons; where samples of each are found, measured on real reports.
WARP_STATES: dict[str, WarpState] = {
    **{
        name: WarpState(name=name, counter=_COUNTER_NAMES.get(name, name), rule=rule, remedy=say(remedy))
        for name, rule, remedy in _ROWS
    },
    **{
        name: WarpState(name=name, counter=name, rule=SourceRule.NONE, remedy=NOTHING, is_stall=False)
        for name in ("selected", "not_selected")
    },
}


def find_warp_state(name: str) -> WarpState:
    """A state by its sampled name; one that is not known keeps its name, and its samples their instruction.

    >>> find_warp_state("no_instructions").aggregate
    'smsp__average_warps_issue_stalled_no_instruction_per_issue_active.ratio'
    >>> find_warp_state("flux_capacitor").rule
    <SourceRule.BY_WAITER: 'the kind of the stalled instruction'>
    """
    known = WARP_STATES.get(name)
    if known is not None:
        return known
    remedy = say("This version does not know this state; look at the instructions it is sampled at")
    return WarpState(
        name=name,
        counter=name,
        rule=SourceRule.BY_WAITER,
        remedy=remedy,
        is_stall=describe_stall_reason(name).is_stall,
    )


def find_by_counter(counter: str) -> WarpState:
    """A state by the word in its aggregate's name.

    >>> find_by_counter("gmma").name, find_by_counter("wait").name
    ('warpgroup_arrive', 'wait')
    """
    name = next((name for name, spelt in _COUNTER_NAMES.items() if spelt == counter), counter)
    return find_warp_state(name)


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

    @property
    def stalls(self) -> tuple[StateTime, ...]:
        """The states in which a warp could not issue, the longest first; those without time left out."""
        return tuple(one for one in self.states if one.state.is_stall and one.share_ratio > 0)

    @property
    def stalled_ratio(self) -> float:
        """Share of all warp-cycles in which the warp could not issue."""
        return sum(one.share_ratio for one in self.stalls)

    def share_of(self, name: str) -> float:
        """The share of one state; 0 when it never occurred."""
        return next((one.share_ratio for one in self.states if one.state.name == name), 0.0)


@remembered
def read_warp_time(subject: Subject) -> WarpTime | None:
    """Read the time of warps by state; None when neither counters nor samples tell.

    With counters: ``smsp__average_warps_issue_stalled_<state>_per_issue_active.ratio`` is the number of warps in the state, averaged over active
    cycles, divided by the issues per active cycle; that is warp-cycles in the state per issue. The states share all warp-cycles out among them,
    so that a state's share is its number over the sum of all (which the profiler prints as ``smsp__average_warp_latency_per_inst_issued.ratio``;
    the two agree within 2 % on real reports of kernels with half a million instructions).

    With samples: a sample looks at one resident warp, at regular intervals, so that samples of a state over all samples is the state's share of
    warp-cycles; and ``selected`` lasts one cycle per issue, so that samples of a state over samples of ``selected`` are its cycles per issue.

    Source: Nsight Compute Profiling Guide, Metrics Decoder and Warp Stall Reasons; Little's law for the second reading.
    """
    counted = _read_counters(subject)
    samples = _count_samples(subject)
    if not counted and not samples:
        return None
    cycles = counted or {name: float(every) for name, (every, _) in samples.items()}
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
    return WarpTime(states=tuple(times), from_counters=bool(counted))


def _read_counters(subject: Subject) -> dict[str, float]:
    """State → warp-cycles per issue; empty unless the launch has enough of them to be the whole."""
    if subject.longest is None:
        return {}
    found: dict[str, float] = {}
    for metric in subject.longest.metrics:
        if metric.startswith(_PREFIX) and metric.endswith(_SUFFIX):
            value = subject.metric(metric)
            if value is not None:
                found[find_by_counter(metric[len(_PREFIX) : -len(_SUFFIX)]).name] = value
    is_whole = {"selected", "long_scoreboard", "wait"} <= found.keys() and sum(found.values()) > 0
    return found if is_whole else {}


def _count_samples(subject: Subject) -> dict[str, tuple[int, int | None]]:
    """State → samples, and latency samples (None when unknown); states without any left out."""
    every = subject.rows.all_samples.sum(axis=0).tolist()
    split = subject.rows.latency_samples
    latency = [None] * len(every) if split is None else split.sum(axis=0).tolist()
    return {
        name: (one, other) for name, one, other in zip(subject.kernel.reasons, every, latency, strict=True) if one > 0
    }


def _divide(part: float, whole: float) -> float | None:
    return part / whole if whole > 0 else None
