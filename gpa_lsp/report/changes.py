"""Comparison of two measurements: the rules and words that every view shares.

Nothing here needs numpy or a report, so that what was remembered of a kernel can be compared as well as the kernel itself, and the result shown
by a server that has not loaded any.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

from msgspec import Struct

from gpa_lsp.foundation.figures import Spread, measure_share
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_dim3, format_hz, format_limit
from gpa_lsp.foundation.prose import NOTHING, Sentence, factor, join, say
from gpa_lsp.profile.launch_configuration import LaunchConfiguration

ASSUMED_NOISE_RATIO = 0.03  # Run-to-run noise taken for granted where too few launches were measured to see it

# And what start and end of a launch may differ by: it decides for kernels of a few microseconds
ASSUMED_OVERHEAD_CYCLES = 1_000.0

ASSUMED_OVERHEAD_NS = 1_000.0

_ENOUGH_LAUNCHES = 3

# Of executed instructions, after / before: more than this is other work where the code is the same (polling and contended atomics repeat a little),
_SAME_CODE_LIMIT = 1.05
# other work is possible where code and number of threads differ,
_OTHER_LAUNCH_LIMIT = 1.5
# and where the code differs only. In real pairs of one work, edits changed it by up to 2.1 times each way, but for -G (27) and removed atomics (6.8).
_SAME_LAUNCH_LIMIT = 4.0
# Executed instructions per thread that stay within this ratio while the threads change by more than that: another size, for threads that take
# over the work of others execute more.
_SCALED_LIMITS = ((1.02, 1.5), (1.25, 10.0))
_SAME_THREADS_LIMIT = 1.02  # blocks of another shape round the threads up otherwise
# SM clocks that differ by more than this ratio are worth saying: latencies of DRAM and L2 do not follow the clock.
_CLOCK_LIMIT = 1.1
_LEAST_FACTOR = 0.1  # below, a factor's two decimals say little
_LEAST_CLOCK_NS = 10_000.0  # shorter launches do not tell the clock

# Digits of a digest of code and launch that are of the code, and as many of the launch.
CODE_DIGITS = 32


class Verdict(Enum):
    """Outcome of comparing a kernel's times."""

    FASTER = "faster"
    SLOWER = "slower"
    NO_CHANGE = "no_change"  # Within what the measurement can tell
    # The instructions and the launch are the same, so there is nothing a change could have done
    SAME_CODE = "same_code"
    UNKNOWN = "unknown"  # One of the two has no time
    OTHER_WORK = "other_work"  # The two did not do the same work, so their times say nothing of the code


class ReasonCount(Struct, frozen=True, kw_only=True):
    """Samples with one stall reason."""

    all_samples: int  # every sample
    latency_samples: int | None  # those taken when the scheduler issued nothing ("not issued"); None when unknown


# Stall reason (Nsight's spelling) → its samples, only reasons with at least one sample, most samples first
ReasonCounts = Mapping[str, ReasonCount]

Place = tuple[str, int]  # File as compiled, and line


class LaunchTimes(Struct, frozen=True, kw_only=True):
    """Times of a kernel's launches."""

    cycles: Spread | None  # SM cycles per launch; None where not counted
    ns: Spread | None  # wall-clock time per launch; None where unknown


class MeasuredWork(Struct, frozen=True, kw_only=True):
    """Times and samples of a kernel, and the evidence of what work they were measured on."""

    times: LaunchTimes  # per launch
    duration_ns: float | None  # mean over launches; None when unknown
    device: str  # name of the GPU; empty when unknown
    launch: LaunchConfiguration  # configuration of the longest launch
    executed_instructions: float | None  # warp instructions per launch; None where not counted
    # of instructions, control codes and launch, as :func:`~gpa_lsp.report.compare.digest_code` has it: equal digests are the same code launched the
    # same way. None where the instructions are unknown.
    code_digest: str | None
    total_samples: int  # over all launches
    by_reason: ReasonCounts  # of these, per stall reason, most samples first
    is_simulated: bool = False  # the times come from a model

    @property
    def clock_hz(self) -> float | None:
        """Mean SM clock; None where it is unknown or the launches are too short to tell."""
        cycles, ns = self.times.cycles, self.times.ns
        is_known = cycles is not None and ns is not None and ns.mean >= _LEAST_CLOCK_NS and cycles.mean > 0
        return cycles.mean / ns.mean * 1e9 if is_known and cycles is not None and ns is not None else None


class TimeChange(Struct, frozen=True, kw_only=True):
    """A kernel's time per launch, before and after."""

    before: float  # in ``unit``
    after: float  # in ``unit``
    unit: str  # ``cycles`` or ``ns``
    speedup: float  # before / after
    low: float  # lower end of the range the speedup lies in
    high: float  # upper end
    basis: str  # how the range was found, one clause


class PartChange(Struct, frozen=True, kw_only=True):
    """Time of a part of a kernel (a stall reason, a line) per launch."""

    name: str  # the reason, or the file as compiled before; of a line that is new, as compiled after
    before_line: int | None  # 1-based; None for a reason, and for a line that was not there before
    after_line: int | None  # 1-based; None for a reason, and for a line that is not there any more
    before_ns: float | None  # None when the kernel's duration is unknown
    after_ns: float | None  # None when the kernel's duration is unknown
    before_ratio: float  # share of the kernel's samples
    after_ratio: float  # share of the kernel's samples
    is_clear: bool  # the change is larger than the two counts of samples leave in doubt


def compare_times(before: LaunchTimes, after: LaunchTimes) -> TimeChange | None:
    """Times per launch before and after, with the range of the speedup; None where a time is missing.

    In cycles where both have them, because profilers lock clocks, and do so differently. With three launches or more on both sides the range is
    twice the standard error of the ratio of means, else an assumed noise of 3 % and 1,000 cycles (1 µs) of launch overhead; so it is where an
    aggregate does not say how its launches differ.
    """
    for unit, overhead, first, second in (
        ("cycles", ASSUMED_OVERHEAD_CYCLES, before.cycles, after.cycles),
        ("ns", ASSUMED_OVERHEAD_NS, before.ns, after.ns),
    ):
        if first is None or second is None or second.mean <= 0 or first.mean <= 0:
            continue
        speedup = first.mean / second.mean
        deviations = (first.standard_deviation, second.standard_deviation)
        if min(first.count, second.count) >= _ENOUGH_LAUNCHES and None not in deviations:
            errors = [
                (deviation or 0.0) / spread.mean / math.sqrt(spread.count)
                for spread, deviation in zip((first, second), deviations, strict=True)
            ]
            half = 2 * math.hypot(*errors)
            basis = f"{format_count(first.count)} and {format_count_of(second.count, 'launch')}"
        else:
            half = ASSUMED_NOISE_RATIO + overhead / min(first.mean, second.mean)
            is_hidden = any(spread.count > 1 and spread.standard_deviation is None for spread in (first, second))
            seen = "launches were added up, which hides" if is_hidden else "too few launches to see"
            basis = f"{seen} the noise; {format_limit(ASSUMED_NOISE_RATIO)} and the launch overhead assumed"
        return TimeChange(
            before=first.mean,
            after=second.mean,
            unit=unit,
            speedup=speedup,
            low=speedup * max(0.0, 1 - half),
            high=speedup * (1 + half),
            basis=basis,
        )
    return None


def measure_range(spread: Spread, unit: str) -> tuple[float, float]:
    """Range of one mean time in ``cycles`` or ``ns``, by the rules of :func:`compare_times`; disjoint ranges are a change beyond the noise."""
    if spread.count >= _ENOUGH_LAUNCHES and spread.standard_deviation is not None:
        half = 2 * spread.standard_deviation / math.sqrt(spread.count)
    else:  # half of what is assumed between two measurements
        overhead = ASSUMED_OVERHEAD_CYCLES if unit == "cycles" else ASSUMED_OVERHEAD_NS
        half = (ASSUMED_NOISE_RATIO * spread.mean + overhead) / 2
    return max(0.0, spread.mean - half), spread.mean + half


class MeasuredChange(Struct, frozen=True, kw_only=True):
    """Change of a kernel between two measurements, as far as the two can be compared."""

    verdict: Verdict  # what became of its time
    time: TimeChange | None  # None where the two are not compared, and where one has no time
    # why the two are not compared, or what may differ besides the code; empty where nothing is known to
    note: Sentence = NOTHING
    is_same_work: bool | None = True  # as far as is known; None where the work may differ
    instructions_ratio: float | None = None  # executed warp instructions after / before; None where not counted
    # by stall reason, largest change first; empty where one of the two has no samples, or they did not do the same work
    reasons: tuple[PartChange, ...] = ()
    no_stalls: Sentence = NOTHING  # why nothing is said of stalls; empty where both have samples

    @property
    def has_stalls(self) -> bool:
        """Whether stalls of both are known and comparable."""
        return self.verdict is not Verdict.OTHER_WORK and not self.no_stalls


def compare_measurements(before: MeasuredWork, after: MeasuredWork) -> MeasuredChange:
    """Judge whether two measurements did the same work, and if so, how time and stalls changed.

    Every view that compares two measurements of a kernel asks this.

    >>> from msgspec.structs import replace
    >>> times = LaunchTimes(cycles=None, ns=Spread(count=1, mean=2e6, minimum=None, maximum=None, standard_deviation=None))
    >>> launch = LaunchConfiguration(
    ...     grid=(8, 1, 1), block=(32, 1, 1), registers_per_thread=None, shared_static_bytes=None, shared_dynamic_bytes=None
    ... )
    >>> small = MeasuredWork(
    ...     times=times, duration_ns=2e6, device="T4", launch=launch, executed_instructions=800.0, code_digest=None, total_samples=0, by_reason={}
    ... )
    >>> large = replace(small, launch=replace(launch, grid=(80, 1, 1)), executed_instructions=8000.0)
    >>> compare_measurements(small, large).verdict.value, compare_measurements(small, large).note
    ('other_work', 'other size: grid 8 → 80, 10.0× the instructions')
    >>> compare_measurements(small, replace(large, executed_instructions=2000.0)).note
    'work may differ: grid 8 → 80, 2.50× the instructions'
    """
    is_same_work, note = _judge_work(before, after)
    old, new = before.executed_instructions, after.executed_instructions
    ratio = new / old if old and new else None
    no_stalls = explain_missing_stalls(before.total_samples, after.total_samples)
    if is_same_work is False:
        return MeasuredChange(
            verdict=Verdict.OTHER_WORK,
            time=None,
            note=note,
            is_same_work=False,
            instructions_ratio=ratio,
            no_stalls=no_stalls,
        )
    time = compare_times(before.times, after.times)
    same_code = before.code_digest is not None and before.code_digest == after.code_digest
    return MeasuredChange(
        verdict=judge_change(time, same_code=same_code),
        time=time,
        note=NOTHING if time is None else note or _describe_clocks(before, after),
        is_same_work=is_same_work,
        instructions_ratio=ratio,
        reasons=() if no_stalls else _compare_reasons(before, after),
        no_stalls=no_stalls,
    )


def _compare_reasons(before: MeasuredWork, after: MeasuredWork) -> tuple[PartChange, ...]:
    counts = [{name: one.all_samples for name, one in side.by_reason.items()} for side in (before, after)]
    return order_changes(
        [
            _compare_part(before, after, reason, (None, None), (counts[0].get(reason, 0), counts[1].get(reason, 0)))
            for reason in dict.fromkeys((*counts[0], *counts[1]))
        ]
    )


def compare_lines(
    before: MeasuredWork,
    after: MeasuredWork,
    old: Mapping[Place, float],
    new: Mapping[Place, float],
    partners: Mapping[Place, int | None],
    *,
    are_whole: tuple[bool, bool] = (True, True),
) -> list[PartChange]:
    """Compare the samples of lines before and after.

    ``partners`` has for each line before the same line after, in the same file, without those that are gone. A line that one side does not list has
    no samples there where that side is whole, and else is left out.
    """
    changes = []
    for (file, line), samples in old.items():
        partner = partners.get((file, line))
        now = None if partner is None else new.get((file, partner))
        if now is not None or are_whole[1]:
            changes.append(_compare_part(before, after, file, (line, partner), (samples, now or 0.0)))
    if are_whole[0]:
        origins = {(file, partner): line for (file, line), partner in partners.items()}
        for (file, line), samples in new.items():
            origin = origins.get((file, line))
            if origin is None or (file, origin) not in old:
                changes.append(_compare_part(before, after, file, (origin, line), (0.0, samples)))
    return changes


def _compare_part(
    before: MeasuredWork,
    after: MeasuredWork,
    name: str,
    lines: tuple[int | None, int | None],
    samples: tuple[float, float],
) -> PartChange:
    totals = (before.total_samples, after.total_samples)
    ratios = [part / whole if whole else 0.0 for part, whole in zip(samples, totals, strict=True)]
    before_ns, after_ns = before.duration_ns, after.duration_ns
    known = before_ns is not None and after_ns is not None
    return PartChange(
        name=name,
        before_line=lines[0],
        after_line=lines[1],
        before_ns=None if before_ns is None else ratios[0] * before_ns,
        after_ns=None if after_ns is None else ratios[1] * after_ns,
        before_ratio=ratios[0],
        after_ratio=ratios[1],
        is_clear=is_beyond_counts(
            (samples[0], totals[0], before_ns if known and before_ns else 1.0),
            (samples[1], totals[1], after_ns if known and after_ns else 1.0),
        ),
    )


def judge_change(time: TimeChange | None, *, same_code: bool) -> Verdict:
    """Verdict on a change of time; *same_code*: instructions and launch are the same.

    >>> judge_change(None, same_code=True).value, judge_change(None, same_code=False).value
    ('same_code', 'unknown')
    """
    if same_code:
        return Verdict.SAME_CODE
    if time is None:
        return Verdict.UNKNOWN
    if time.low > 1:
        return Verdict.FASTER
    return Verdict.SLOWER if time.high < 1 else Verdict.NO_CHANGE


def _judge_work(before: MeasuredWork, after: MeasuredWork) -> tuple[bool | None, Sentence]:
    """Whether two measurements did the same work (None where it may differ), and the evidence against."""
    if before.device and after.device and before.device != after.device:
        return False, say("other GPU: {before} → {after}", before=before.device, after=after.device)
    if before.is_simulated is not after.is_simulated:
        return False, say("one of the two is simulated")
    old, new = before.executed_instructions, after.executed_instructions
    executed = new / old if old and new else None
    old_threads, new_threads = before.launch.all_threads, after.launch.all_threads
    threads = new_threads / old_threads if old_threads and new_threads else None
    differences = join(_list_work_differences(before, after, executed), ", ")
    if before.code_digest and after.code_digest and before.code_digest[:CODE_DIGITS] == after.code_digest[:CODE_DIGITS]:
        shapes = [(side.launch.grid, side.launch.block) for side in (before, after)]
        kind = "data" if shapes[0] == shapes[1] else "size"
        is_same = _judge_same_code(executed, threads, kind)
    else:
        kind, is_same = "size", _judge_other_code(executed, threads)
    if is_same:
        return True, NOTHING
    if is_same is False:
        return False, say("other {kind}: {differences}", kind=kind, differences=differences)
    return None, say("work may differ: {differences}", differences=differences or say("the launches are unknown"))


def _judge_same_code(executed: float | None, threads: float | None, kind: str) -> bool | None:
    """Whether equal code did the same work, by the ratios after / before of instructions and threads."""
    is_same_size = threads is None or _is_within(threads, _SAME_THREADS_LIMIT)
    if executed is None:  # threads of a loop in strides of the grid may share the same work
        return True if is_same_size else None
    if _is_within(executed, _SAME_CODE_LIMIT):
        return True
    # The same threads in blocks of another shape may execute more, as trees of a reduction do.
    return None if is_same_size and kind == "size" and _is_within(executed, _OTHER_LAUNCH_LIMIT) else False


def _judge_other_code(executed: float | None, threads: float | None) -> bool | None:
    """Whether different code did the same work, by ratios after / before; an edit may change both, so neither alone decides."""
    if threads is not None and _is_within(threads, _SAME_THREADS_LIMIT):
        return True if executed is None or _is_within(executed, _SAME_LAUNCH_LIMIT) else None
    if executed is None:
        return None
    if threads is not None:
        per_thread = executed / threads
        if any(_is_within(per_thread, limit) and not _is_within(threads, least) for limit, least in _SCALED_LIMITS):
            return False
        if _is_within(per_thread, _SCALED_LIMITS[0][0]):
            return None
    return True if _is_within(executed, _OTHER_LAUNCH_LIMIT) else None


def _is_within(ratio: float, limit: float) -> bool:
    return 1 / limit <= ratio <= limit


def _list_work_differences(before: MeasuredWork, after: MeasuredWork, executed: float | None) -> Iterator[Sentence]:
    first, then = before.launch, after.launch
    for name, old, new in (("grid", first.grid, then.grid), ("block", first.block, then.block)):
        if old is not None and new is not None and old != new:
            yield say("{name} {old} → {new}", name=name, old=format_dim3(old), new=format_dim3(new))
    if executed is not None and not _is_within(executed, _SAME_CODE_LIMIT):
        is_far_less = executed < _LEAST_FACTOR
        words = "{factor} fewer instructions" if is_far_less else "{factor} the instructions"
        yield say(words, factor=factor(1 / executed if is_far_less else executed))


def _describe_clocks(before: MeasuredWork, after: MeasuredWork) -> Sentence:
    """Two clocks that differ notably; else empty."""
    old, new = before.clock_hz, after.clock_hz
    if old is None or new is None or _is_within(new / old, _CLOCK_LIMIT):
        return NOTHING
    return say("clocks differ: {old} → {new}", old=format_hz(old), new=format_hz(new))


def explain_missing_stalls(before_samples: int, after_samples: int) -> Sentence:
    """Reason why stalls are not compared; empty where both measurements have samples.

    >>> explain_missing_stalls(100, 0), explain_missing_stalls(100, 100)
    ('stalls unknown: the report after has no samples', '')
    """
    if before_samples and after_samples:
        return NOTHING
    if not before_samples and not after_samples:
        return say("stalls unknown: neither report has samples")
    return say("stalls unknown: the report {side} has no samples", side="after" if before_samples else "before")


def is_beyond_counts(before: tuple[float, int, float], after: tuple[float, int, float]) -> bool:
    """Whether a part's time changed by more than sampling error: its 95 % intervals do not overlap.

    >>> is_beyond_counts((300, 1000, 1.0), (100, 1000, 1.0)), is_beyond_counts((3, 10, 1.0), (1, 10, 1.0))
    (True, False)
    """
    ends = []
    for part, whole, time in (before, after):
        share = measure_share(min(round(part), whole), whole)
        ends.append((share.low_ratio * time, share.high_ratio * time))
    (old_low, old_high), (new_low, new_high) = ends
    return old_high < new_low or new_high < old_low


def order_changes(changes: Sequence[PartChange]) -> tuple[PartChange, ...]:
    """Largest change first: of time, or of share where times are unknown."""

    def measure(change: PartChange) -> float:
        if change.before_ns is None or change.after_ns is None:
            return abs(change.after_ratio - change.before_ratio)
        return abs(change.after_ns - change.before_ns)

    return tuple(sorted(changes, key=measure, reverse=True))
