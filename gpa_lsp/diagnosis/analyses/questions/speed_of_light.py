"""Question: which part of the GPU is busiest? The profiler's throughputs taken apart, stored shares beside recomputed ones."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from functools import lru_cache

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.answers import Answer, Bar, Finding, Table, Weight, know_nothing, list_columns
from gpa_lsp.diagnosis.analyses.limiter import find_limiter
from gpa_lsp.diagnosis.analyses.mix import find_pipe, list_pipes
from gpa_lsp.diagnosis.analyses.model import Confidence, Limiter, LimiterKind
from gpa_lsp.diagnosis.analyses.questions import Analysis
from gpa_lsp.diagnosis.analyses.roofline.counts import (
    ELAPSED_SHARE,
    MEMORY_THROUGHPUT,
    SM_THROUGHPUT,
    Executions,
    Span,
    count_launch,
    describe_unit,
    list_members,
    read_count,
    read_span,
    read_total,
)
from gpa_lsp.diagnosis.analyses.roofline.operations import count_tensor_operations
from gpa_lsp.diagnosis.analyses.roofline.work import measure_traffic
from gpa_lsp.diagnosis.analyses.subject import Subject, lack
from gpa_lsp.foundation.prose import NOTHING, Sentence, capitalize, join, percent, say
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.device.find import find_machine
from gpa_lsp.gpu.device.model import Machine, MemoryLevel
from gpa_lsp.gpu.device.rates import count_l2_slices
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES
from gpa_lsp.profile.model import Launch

# The profiler's two throughputs taken apart: each is the largest of its members' shares of their peaks, and many of these can be recomputed.
#
# A recomputed share comes from counts, the machine's peaks and the elapsed cycles, and stands beside the stored one: where they agree, the roofs
# are those the profiler has; where only one is known, that one holds.
#
# Source: NVIDIA, Nsight Compute Profiling Guide, Metrics Structure (throughputs and their breakdowns).

# How busy the arithmetic pipes are, recomputed from how often each opcode was executed.
#
# The rules were found on 42 launches of published reports by comparing with the profiler's own percentages, and hold to a tenth of a percent on the
# compute capabilities they are given for; what is not known to hold is not recomputed.


class RecomputedPipe(Enum):
    """Pipes whose use can be recomputed; the values are the profiler's names of it."""

    XU = "sm__inst_executed_pipe_xu"
    FP64 = "sm__pipe_fp64_cycles_active"
    ALU = "sm__pipe_alu_cycles_active"
    FMA = "sm__pipe_fma_cycles_active"


# Compute capabilities a rule is known for; 8.9 has the SM of 8.6
_KNOWN: dict[RecomputedPipe, frozenset[tuple[int, int]]] = {
    RecomputedPipe.XU: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)}),
    RecomputedPipe.FP64: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0), (12, 0)}),
    RecomputedPipe.ALU: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0)}),
    RecomputedPipe.FMA: frozenset({(7, 0), (8, 0), (8, 6), (8, 9), (9, 0)}),
}

# FMA in two halves, of which one multiplies integers and packed halves take both
_SPLIT_FMA = frozenset({(8, 6), (8, 9), (9, 0)})
_WIDE = frozenset({"WIDE", "HI"})


def find_pipe_use(
    use: RecomputedPipe, warps: Mapping[str, float], architecture: Architecture, sm_cycles: float
) -> float | None:
    """The share of its peak that a pipe had.

    Returns 0..1; None where the rule is not known to hold. ``sm_cycles``: elapsed cycles, summed over the SMs; positive.
    """
    pipe = next(one for one in list_pipes() if one.name == use.name.lower())
    rate = pipe.find_rate(architecture)
    if architecture.compute_capability not in _KNOWN[use] or not rate:
        return None
    cost = sum(
        count * (_count_slots(mnemonic, architecture.compute_capability) if use is RecomputedPipe.FMA else 1.0)
        for mnemonic, count in warps.items()
        if find_pipe(mnemonic, architecture.name) == pipe.name
    )
    return cost / (sm_cycles * rate)


@lru_cache(maxsize=8192)
def _count_slots(mnemonic: str, capability: tuple[int, int]) -> float:
    """Number of issue slots that an instruction takes of the FMA pipe."""
    opcode, *modifiers = mnemonic.split(".")
    takes_both = opcode.startswith("H") or bool(_WIDE & set(modifiers[:1]))
    return 2.0 if capability in _SPLIT_FMA and takes_both else 1.0


_HALF_ON_TENSOR_CYCLES = {(8, 0): 0.25, (9, 0): 0.5}


def find_half_cycles(warps: Mapping[str, float], architecture: Architecture) -> float:
    """Cycles of an SM that half-precision arithmetic takes the tensor cores: ``HFMA2.MMA`` of 8.0 and 9.0."""
    cycles = _HALF_ON_TENSOR_CYCLES.get(architecture.compute_capability, 0.0)
    return cycles * sum(count for mnemonic, count in warps.items() if mnemonic.startswith("HFMA2.MMA"))


# Sectors that an SM's L1 can take from L2 in a cycle. Found from the profiler's own percentages of published reports (all but 8.9, which has the SM
# of 8.6).
L1_FILL_SECTORS_PER_CYCLE = {(7, 0): 1, (8, 0): 2, (8, 6): 1, (8, 9): 1, (9, 0): 4, (12, 0): 1}


# Compute capabilities some boards of which accumulate in FP32 at half the rate, which nothing in a report tells
_HALVED_IN_FP32 = frozenset({(7, 5), (8, 6), (8, 9), (12, 0)})


class Basis(Struct, frozen=True, kw_only=True):
    """Inputs from which shares are recomputed."""

    launch: Launch  # whose counters
    span: Span  # its time and cycles
    machine: Machine  # at the launch's clocks
    architecture: Architecture | None  # None when there is no table
    executions: Executions | None  # of its instructions; None when unknown

    @property
    def sm_cycles(self) -> float | None:
        """Elapsed cycles summed over the SMs."""
        cycles, sms = self.span.elapsed_cycles, self.machine.sm_count
        return cycles * sms if cycles and sms else None

    @property
    def slice_cycles(self) -> float | None:
        """Elapsed cycles summed over the slices of L2."""
        stated = read_count(self.launch, "lts__cycles_elapsed.sum")
        slices, clock_hz = count_l2_slices(self.launch), self.machine.clocks.l2_hz
        if stated:
            return stated
        return slices * clock_hz * self.span.duration_s if slices and clock_hz else None


class Member(Struct, frozen=True, kw_only=True):
    """One of the shares a throughput is the largest of."""

    metric: str  # the profiler's name of the unit's activity, without suffix
    stored_ratio: float | None  # as the report has it; None when it was not collected
    own_ratio: float | None  # recomputed; None where that cannot be done

    @property
    def ratio(self) -> float | None:
        """The stored one, else ours."""
        return self.own_ratio if self.stored_ratio is None else self.stored_ratio


class Breakdown(Struct, frozen=True, kw_only=True):
    """A throughput and its members."""

    metric: str  # the profiler's name without suffix
    stored_ratio: float | None  # as the report has it; None when it was not collected
    members: tuple[Member, ...]  # busiest first, unknown ones last

    @property
    def busiest(self) -> Member | None:
        """The member that makes the throughput; None when none is known."""
        return next((member for member in self.members if member.ratio is not None), None)


def read_breakdown(metric: str, basis: Basis) -> Breakdown | None:
    """A throughput's members, with what can be recomputed.

    Returns None when the report does not list the members.
    """
    names = list_members(basis.launch, metric)
    if not names:
        return None
    members = [
        Member(metric=name, stored_ratio=read_share(basis.launch, name), own_ratio=recompute(name, basis))
        for name in names
    ]
    return Breakdown(
        metric=metric,
        stored_ratio=read_share(basis.launch, metric),
        members=tuple(sorted(members, key=lambda one: (one.ratio is None, -(one.ratio or 0.0)))),
    )


def read_share(launch: Launch, metric: str) -> float | None:
    """The stored share of its peak of a unit, 0..1; None when it was not collected."""
    percent = read_count(launch, f"{metric}{ELAPSED_SHARE}")
    return None if percent is None else percent / 100


def recompute(metric: str, basis: Basis) -> float | None:
    """A unit's share of its peak from counts, peaks and cycles; None where that cannot be done."""
    rule = RECOMPUTED.get(metric)
    return None if rule is None else rule(basis)


def _divide(count: float | None, most: float | None) -> float | None:
    return count / most if count is not None and most else None


def _count(basis: Basis, *counters: str) -> float | None:
    total = read_total(basis.launch, basis.span, counters)
    return None if total is None else total.value


def _find_issue_slots(basis: Basis) -> float | None:
    """Warp instructions the GPU could have issued."""
    rate, cycles = basis.machine.issue_per_cycle, basis.span.elapsed_cycles
    return rate * cycles if rate and cycles else None


def _executed(basis: Basis) -> float | None:
    return _divide(_count(basis, "smsp__inst_executed", "sm__inst_executed"), _find_issue_slots(basis))


def _issued(basis: Basis) -> float | None:
    return _divide(_count(basis, "smsp__inst_issued", "sm__inst_issued"), _find_issue_slots(basis))


def _dram(basis: Basis) -> float | None:
    traffic = measure_traffic(basis.launch, basis.span, None).get(MemoryLevel.DRAM)
    bandwidth = basis.machine.find_bandwidth(MemoryLevel.DRAM)
    if traffic is None or bandwidth is None or not bandwidth.bytes_per_s:
        return None
    return traffic.bytes / (bandwidth.bytes_per_s * basis.span.duration_s)


def _l2_sectors(counter: str) -> Callable[[Basis], float | None]:
    def share(basis: Basis) -> float | None:
        peak, cycles = read_count(basis.launch, f"{counter}.avg.peak_sustained"), basis.slice_cycles
        return _divide(_count(basis, counter), peak * cycles if peak and cycles else None)

    return share


def _l1_fills(basis: Basis) -> float | None:
    moved = _count(basis, "l1tex__m_xbar2l1tex_read_bytes")
    capability = None if basis.architecture is None else basis.architecture.compute_capability
    rate = None if capability is None else L1_FILL_SECTORS_PER_CYCLE.get(capability)
    if moved is None or rate is None or basis.sm_cycles is None:
        return None
    return moved / SECTOR_BYTES / (rate * basis.sm_cycles)


def _shared_wavefronts(basis: Basis) -> float | None:
    """One pass through the banks in a cycle."""
    return _divide(_count(basis, "l1tex__data_pipe_lsu_wavefronts_mem_shared"), basis.sm_cycles)


def _pipe(use: RecomputedPipe) -> Callable[[Basis], float | None]:
    def share(basis: Basis) -> float | None:
        executions, cycles = basis.executions, basis.sm_cycles
        if executions is None or not executions.warps or basis.architecture is None or cycles is None:
            return None
        return find_pipe_use(use, executions.warps, basis.architecture, cycles)

    return share


def _tensor(basis: Basis) -> float | None:
    """Each type's operations over its dense peak: the types take turns on one pipe."""
    executions, cycles = basis.executions, basis.sm_cycles
    if executions is None or not executions.warps or basis.architecture is None or cycles is None:
        return None
    share = find_half_cycles(executions.warps, basis.architecture) / cycles
    for mnemonic, warps in executions.warps.items():
        tensor = count_tensor_operations(mnemonic)
        if tensor is None:
            continue
        kind, operations = tensor
        peak = basis.machine.find_peak(kind)
        is_halved = "F32" in mnemonic.split(".") and basis.architecture.compute_capability in _HALVED_IN_FP32
        if peak is None or not peak.ops_per_cycle or basis.span.elapsed_cycles is None or is_halved:
            return None
        share += operations * warps / (peak.ops_per_cycle * basis.span.elapsed_cycles)
    return share


# The profiler's name of a unit's activity → how it is recomputed. ``lts__t_tag_requests`` is not among them: ``lts__t_requests`` is another count, 6
# % from it in published reports of short kernels.
RECOMPUTED: dict[str, Callable[[Basis], float | None]] = {
    "sm__inst_executed": _executed,
    "sm__issue_active": _issued,
    **{use.value: _pipe(use) for use in RecomputedPipe},
    "sm__pipe_tensor_cycles_active": _tensor,
    "dram__cycles_active": _dram,
    "lts__t_sectors": _l2_sectors("lts__t_sectors"),
    "lts__t_sectors_srcunit_tex": _l2_sectors("lts__t_sectors_srcunit_tex"),
    "l1tex__m_xbar2l1tex_read_sectors": _l1_fills,
    "l1tex__data_pipe_lsu_wavefronts_mem_shared": _shared_wavefronts,
}


_SECTION = "SpeedOfLight"

# A recomputed share further from the stored one than both of these is said to be
APART_RATIO, APART_POINTS = 0.02, 0.001

MOST_BARS = 5  # Bars of each throughput

# What follows from a verdict that is sure
_REMEDIES = {
    LimiterKind.UNIT: say("Only less work for that unit makes the kernel faster."),
    LimiterKind.LATENCY: say(
        "More independent instructions in each warp, or more warps; the stalls tell which latency."
    ),
    LimiterKind.PARALLELISM: say("More blocks, of even length, so that every SM has work to the end."),
}

_TITLES = {SM_THROUGHPUT: "Compute", MEMORY_THROUGHPUT: "Memory"}


def _answer(subject: Subject) -> Answer:
    breakdowns = list(_read_breakdowns(subject))
    known = [one for one in breakdowns if one.busiest is not None]
    if not known:
        names = (f"breakdown:{metric}{ELAPSED_SHARE}" for metric in _TITLES)
        lacking = lack("throughputs and their parts", *names, section=_SECTION, needs_all=True)
        return know_nothing(_quote(find_limiter(subject)), lacking)
    return Answer(
        summary=_summarise(known),
        findings=tuple(_list_findings(known, find_limiter(subject))),
        bars=tuple(bar for one in known for bar in _list_bars(one)),
        tables=tuple(_build_table(one) for one in known),
    )


def _quote(limiter: Limiter) -> Sentence:
    """Quote the limiter, where the profiler's throughputs were not collected."""
    if limiter.kind is LimiterKind.UNKNOWN:
        return say("Unknown: the profiler's throughputs were not collected.")
    return join([limiter.verdict, say("The profiler's throughputs were not collected.")])


def _read_breakdowns(subject: Subject) -> Iterator[Breakdown]:
    launch = subject.longest
    span = None if launch is None else read_span(launch)
    # Not the roofline's machine: that may have measured roofs, and the stored shares are of the theoretical ones.
    machine = None if launch is None else find_machine(launch.device, subject.architecture, launch)
    if launch is None or span is None or machine is None:
        return
    basis = Basis(
        launch=launch,
        span=span,
        machine=machine,
        architecture=subject.architecture,
        executions=count_launch(subject.kernel, launch, subject.run_count),
    )
    for metric in _TITLES:
        breakdown = read_breakdown(metric, basis)
        if breakdown is not None:
            yield breakdown


def _find_ratio(breakdown: Breakdown) -> float:
    """The throughput: as stored, else its busiest member."""
    if breakdown.stored_ratio is not None:
        return breakdown.stored_ratio
    return (breakdown.busiest.ratio or 0.0) if breakdown.busiest is not None else 0.0


def _summarise(breakdowns: Sequence[Breakdown]) -> Sentence:
    parts = [
        say(
            "{throughput} at {share} of its peak ({unit})",
            throughput=_TITLES[one.metric].lower(),
            share=percent(_find_ratio(one)),
            unit=describe_unit(one.busiest.metric) if one.busiest is not None else "unknown",
        )
        for one in breakdowns
    ]
    return say("{parts}.", parts=capitalize(join(parts, ", ")))


def _list_findings(breakdowns: Sequence[Breakdown], limiter: Limiter) -> Iterator[Finding]:
    highest = max(breakdowns, key=_find_ratio)
    unit = "" if highest.busiest is None else describe_unit(highest.busiest.metric)
    share = percent(_find_ratio(highest))
    is_said = unit.lower() in limiter.verdict.lower() and str(share) in limiter.verdict
    busiest = (
        NOTHING if is_said else say("The profiler's busiest unit: {unit}, {share} of its peak.", unit=unit, share=share)
    )
    is_sure = limiter.confidence is Confidence.SURE
    yield Finding(
        text=join([limiter.verdict, busiest]),
        weight=Weight.HIGH if is_sure or limiter.kind is LimiterKind.LATENCY else Weight.PLAIN,
        remedy=_REMEDIES.get(limiter.kind, NOTHING) if is_sure else NOTHING,
    )
    yield from _list_differences(breakdowns)


def _list_differences(breakdowns: Sequence[Breakdown]) -> Iterator[Finding]:
    """List shares whose stored and recomputed values differ."""
    for one in breakdowns:
        for member in one.members:
            stored, own = member.stored_ratio, member.own_ratio
            if stored is None or own is None:
                continue
            if abs(stored - own) > max(APART_RATIO * stored, APART_POINTS):
                yield Finding(
                    text=say(
                        "{unit}: the profiler stored {stored}, its counts give {own}. Counters from different passes of the kernel can differ.",
                        unit=describe_unit(member.metric),
                        stored=percent(stored),
                        own=percent(own),
                    )
                )


def _list_bars(breakdown: Breakdown) -> Iterator[Bar]:
    for member in breakdown.members[:MOST_BARS]:
        if member.ratio:
            yield Bar(
                label=describe_unit(member.metric),
                ratio=min(1.0, member.ratio),
                words=say(_TITLES[breakdown.metric].lower()),
            )


def _build_table(breakdown: Breakdown) -> Table:
    return Table(
        title=f"{_TITLES[breakdown.metric]} throughput",
        columns=list_columns("Unit | Of its peak [ratio] | Recomputed [ratio] | Metric"),
        rows=tuple(
            (describe_unit(member.metric), member.stored_ratio, member.own_ratio, member.metric)
            for member in breakdown.members
        ),
        note=say("The throughput is the largest of these. Recomputed: from counts, peaks and cycles."),
    )


ANALYSIS = Analysis(name="speed_of_light", title="Busiest units", order=20, answer=_answer)
