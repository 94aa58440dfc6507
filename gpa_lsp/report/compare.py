"""Comparison of two reports: speedups, differences, and what became of the advice.

Times of parts are shares of samples times the kernel's duration: samples are taken at a fixed rate, so a part's share of them is its share of
the time. Durations are compared in SM cycles where both reports have them, because profilers lock clocks, and do so differently.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath

import msgspec.structs
import numpy as np
from msgspec import Struct

from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP, Advice, SilenceStage
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.prose import Sentence, list_of, percent, say
from gpa_lsp.kernel.names import find_family, list_named, shorten_name
from gpa_lsp.report.changes import (
    CODE_DIGITS,
    LaunchTimes,
    MeasuredChange,
    MeasuredWork,
    PartChange,
    TimeChange,
    Verdict,
    compare_lines,
    compare_measurements,
    order_changes,
)
from gpa_lsp.report.differences import Difference, Trait, compare_traits, count_opcodes, read_executions
from gpa_lsp.report.model import KernelReport, Report, measure_launch_spread
from gpa_lsp.report.taken import LOCAL_OPTIMIZERS, AdviceFate, judge_advice, judge_local_advice, pair_lines

Pair = tuple[KernelReport, KernelReport]

_LEAST_LIKENESS = 0.55
_MOST_COMPARED = 10_000  # pairs of kernels that are looked at; more have to be named by the user
_ALIKE = 0.8  # From this likeness of two opcode counts on the code is called similar
_LISTED_NAMES = 20


class AdviceOutcome(Struct, frozen=True, kw_only=True):
    """Earlier advice, and what became of it."""

    advice: Advice  # as it was given
    fate: AdviceFate  # whether it was taken, as far as code and counters tell
    # what differs that tells, or would have to differ if it is still open; empty where nothing can tell
    signs: tuple[Difference, ...]
    before_ratio: float  # share of the samples before that it is about
    # share of the samples after that the same optimizer's advice is about; None where there are no samples, or uncounted since something else
    # forbids the advice
    after_ratio: float | None
    # the kernel's speedup, by whatever was changed, for advice that was taken; None otherwise and when unknown
    achieved: float | None


class KernelComparison(MeasuredChange, frozen=True, kw_only=True):
    """Comparison of a kernel in two reports. If the two did not do the same work, it states that alone."""

    before: KernelReport  # the kernel before
    after: KernelReport  # the kernel after
    # of launch, code and counters; only what changed, and nothing where code and launch are the same
    differences: tuple[Difference, ...] = ()
    lines: tuple[
        PartChange, ...
    ] = ()  # by source line, largest change first; empty where one of the two has no samples
    outcomes: tuple[AdviceOutcome, ...] = ()  # of the advice given before, in its order
    new_advice: tuple[Advice, ...] = ()  # advice given now by optimizers that had none before


class LikelyPair(Struct, frozen=True, kw_only=True):
    """Two kernels of different names that may be the same one."""

    before: KernelReport  # in the report before only
    after: KernelReport  # in the report after only
    likeness: float  # 0..1
    why: Sentence  # what they have in common, clauses
    is_only: bool = False  # the code of both is known, and all other kernels of both reports are compared with others


class Comparison(Struct, frozen=True, kw_only=True):
    """Two reports side by side."""

    kernels: tuple[KernelComparison, ...]  # pairs, longest time before first
    only_before: tuple[KernelReport, ...]  # kernels that are gone
    only_after: tuple[KernelReport, ...]  # kernels that are new
    likely_pairs: tuple[LikelyPair, ...] = ()  # of these, the ones that look alike and were not compared


def compare_reports(
    before: Report,
    after: Report,
    wanted: Sequence[tuple[str, str]] = (),
    accept: Callable[[LikelyPair], bool] = lambda pair: False,
) -> Comparison:
    """Pair the kernels of two reports and compare each pair.

    Kernels belong together when their linkage names and GPUs are the same; what is left over is matched by its short name, if that
    is unique on both sides (a template argument, a parameter or a compiler's counter changed).

    Args:
        before: may be the same as ``after``.
        after: measured after a change.
        wanted: names, or parts of them, of kernels before and after; then nothing else is compared.
        accept: whether two kernels of different names that look alike are compared.

    Raises:
        InputError: a wanted name is that of no kernel, or of several.
    """
    if wanted:
        named = [(find_named(before, old, "before"), find_named(after, new, "after")) for old, new in wanted]
        return Comparison(kernels=_compare_pairs(named), only_before=(), only_after=())
    pairs, only_before, only_after = pair_by_name(before.kernels, after.kernels)
    likely = []
    for pair in find_likely_pairs(only_before, only_after):
        if not accept(pair):
            likely.append(pair)
            continue
        pairs.append((pair.before, pair.after))
        only_before = [kernel for kernel in only_before if kernel is not pair.before]
        only_after = [kernel for kernel in only_after if kernel is not pair.after]
    return Comparison(
        kernels=_compare_pairs(pairs),
        only_before=tuple(only_before),
        only_after=tuple(only_after),
        likely_pairs=tuple(likely),
    )


def _compare_pairs(pairs: Sequence[tuple[KernelReport, KernelReport]]) -> tuple[KernelComparison, ...]:
    compared = [compare_kernels(old, new) for old, new in pairs]
    return tuple(sorted(compared, key=lambda found: (-found.before.total_duration_ns, found.before.mangled_name)))


def compare_kernels(before: KernelReport, after: KernelReport) -> KernelComparison:
    """Compare two measurements of one kernel, or of two kernels that do the same work."""
    works = measure_work(before), measure_work(after)
    change = compare_measurements(*works)
    shared = msgspec.structs.asdict(change)
    if change.verdict is Verdict.OTHER_WORK:
        return KernelComparison(before=before, after=after, **shared)
    same_code = change.verdict is Verdict.SAME_CODE
    traits = {} if same_code else compare_traits(before, after)
    return KernelComparison(
        before=before,
        after=after,
        differences=tuple(difference for difference in traits.values() if difference.is_change),
        lines=_compare_lines(before, after, works) if change.has_stalls else (),
        outcomes=tuple(
            _follow_up(advice, (before, after), change.time, traits, same_code=same_code)
            for advice in _list_advice(before)
        ),
        new_advice=_find_new_advice(before, after),
        **shared,
    )


def digest_code(kernel: KernelReport) -> str | None:
    """Digest of instructions, control codes and launch configuration; None where instructions or launch are unknown."""
    columns = kernel.instructions
    is_launch_known = kernel.configuration.grid is not None and kernel.configuration.block is not None
    if not any(columns.texts) or not is_launch_known:
        return None
    launch = hashlib.sha256(repr(msgspec.structs.astuple(kernel.configuration)).encode())
    code = hashlib.sha256("\n".join(columns.texts).encode("utf-8", "surrogatepass"))
    code.update(columns.stall_cycles.astype(np.uint8).tobytes())
    code.update(columns.wait_mask.astype(np.uint8).tobytes())
    return code.hexdigest()[:CODE_DIGITS] + launch.hexdigest()[:CODE_DIGITS]


def measure_work(kernel: KernelReport) -> MeasuredWork:
    """Times, samples and evidence of a kernel's work; launches without a time are left out of its times."""
    executions = read_executions(kernel)
    return MeasuredWork(
        times=LaunchTimes(
            cycles=measure_launch_spread(kernel.launches, lambda launch: launch.elapsed_cycles),
            ns=measure_launch_spread(kernel.launches, lambda launch: launch.duration_ns),
        ),
        duration_ns=kernel.duration_ns,
        device=kernel.device.name or "",
        launch=kernel.configuration,
        executed_instructions=None if executions is None else float(executions.sum()),
        code_digest=digest_code(kernel),
        total_samples=kernel.total_samples,
        by_reason=kernel.by_reason,
        is_simulated=kernel.is_simulated,
    )


def _share(kernel: KernelReport, samples: float) -> float:
    return samples / kernel.total_samples if kernel.total_samples else 0.0


def _compare_lines(
    before: KernelReport, after: KernelReport, works: tuple[MeasuredWork, MeasuredWork]
) -> tuple[PartChange, ...]:
    """Lines by inclusive and called samples; lines that moved are followed where both reports have the source."""
    old, new = (
        {
            (row.file, row.line): row.inclusive_samples + row.called_samples
            for row in kernel.lines
            if row.file is not None and row.line is not None
        }
        for kernel in (before, after)
    )
    return order_changes(compare_lines(*works, old, new, pair_lines(before, after, list(old))))


def _list_advice(kernel: KernelReport) -> tuple[Advice, ...]:
    """Advice with a gain; other remarks cannot be taken."""
    every = () if kernel.advice is None else kernel.advice.advice
    return tuple(advice for advice in every if advice.speedup.estimate >= LEAST_SPEEDUP)


def _find_new_advice(before: KernelReport, after: KernelReport) -> tuple[Advice, ...]:
    known = {advice.optimizer for advice in _list_advice(before)}
    return tuple(advice for advice in _list_advice(after) if advice.optimizer not in known)


def _follow_up(
    advice: Advice,
    kernels: tuple[KernelReport, KernelReport],
    time: TimeChange | None,
    traits: Mapping[Trait, Difference],
    *,
    same_code: bool,
) -> AdviceOutcome:
    """Outcome of advice, by differences of code and counters."""
    before, after = kernels
    if same_code:
        fate, signs = AdviceFate.OPEN, tuple[Difference, ...]()
    elif advice.optimizer in LOCAL_OPTIMIZERS:
        fate, signs = judge_local_advice(advice, before, after, traits)
    else:
        fate, signs = judge_advice(advice.optimizer, traits)
    is_done = fate in (AdviceFate.TAKEN, AdviceFate.PARTLY_TAKEN)
    return AdviceOutcome(
        advice=advice,
        fate=fate,
        signs=signs,
        before_ratio=_share(before, advice.matched_samples),
        after_ratio=_find_share_after(advice.optimizer, after),
        achieved=time.speedup if time is not None and is_done else None,
    )


def _find_share_after(optimizer: str, after: KernelReport) -> float | None:
    """Share of the samples after that an optimizer's advice is about; None where it was not counted."""
    if after.advice is None or not after.total_samples:
        return None
    now = next((other for other in after.advice.advice if other.optimizer == optimizer), None)
    if now is not None:
        return _share(after, now.matched_samples)
    silence = next((one for one in after.advice.silences if one.optimizer == optimizer), None)
    return 0.0 if silence is not None and silence.stage is SilenceStage.NOT_MATCHED else None


def pair_by_name(
    before: Sequence[KernelReport], after: Sequence[KernelReport]
) -> tuple[list[Pair], list[KernelReport], list[KernelReport]]:
    """Kernels of equal linkage name and GPU, then of equal short name unique on both sides; and the rest of each side."""
    pairs: list[Pair] = []
    old, new = list(before), list(after)
    names: tuple[Callable[[KernelReport], object], ...] = (
        lambda kernel: (kernel.mangled_name, kernel.device.name),
        lambda kernel: find_family(kernel.name, None).name,
    )
    for name in names:
        for kernel in list(old):
            alike = [other for other in new if name(other) == name(kernel)]
            if len(alike) == 1 and sum(name(other) == name(kernel) for other in old) == 1:
                pairs.append((kernel, alike[0]))
                old.remove(kernel)
                new.remove(alike[0])
    return pairs, old, new


def find_named(report: Report, text: str, side: str) -> KernelReport:
    """The kernel before or after that ``text`` names, as in :func:`~gpa_lsp.kernel.names.list_named`.

    Raises:
        InputError: there is none, or there are several.
    """
    found = list_named(text, report.kernels, lambda kernel: (kernel.mangled_name, kernel.name))
    if len(found) == 1:
        return found[0]
    problem = f"several kernels {side} are named" if found else f"no kernel {side} is named"
    listed = list(dict.fromkeys(shorten_name(kernel.name) for kernel in found or report.kernels))
    more = " and others" if len(listed) > _LISTED_NAMES else ""
    raise InputError(
        f"{problem} {text!r}", remedy=f"there are {', '.join(listed[:_LISTED_NAMES])}{more}" if listed else None
    )


def find_likely_pairs(before: Sequence[KernelReport], after: Sequence[KernelReport]) -> tuple[LikelyPair, ...]:
    """Similar kernels on the same GPU, most alike first; no kernel is in two pairs."""
    if len(before) * len(after) > _MOST_COMPARED:
        return ()
    opcodes = {id(kernel): count_opcodes(kernel) for kernel in (*before, *after)}
    every = [
        _Likeness.of(old, new, _compare_counts(opcodes[id(old)], opcodes[id(new)]))
        for old in before
        for new in after
        if old.device.name == new.device.name
    ]
    found: list[LikelyPair] = []
    for one in sorted(every, key=lambda likeness: -likeness.value):
        is_free = all(one.before is not pair.before and one.after is not pair.after for pair in found)
        if is_free and one.value >= _LEAST_LIKENESS:
            is_only = len(before) == len(after) == 1 and one.code is not None
            found.append(
                LikelyPair(before=one.before, after=one.after, likeness=one.value, why=one.explain(), is_only=is_only)
            )
    return tuple(found)


class _Likeness(Struct, frozen=True, kw_only=True):
    """Likeness of two kernels; ratios are 0..1, None where unknown."""

    before: KernelReport
    after: KernelReport
    code: float | None
    work: float | None
    name: float
    file: bool | None

    @classmethod
    def of(cls, before: KernelReport, after: KernelReport, code: float | None) -> "_Likeness":
        """Measure the likeness of two kernels; *code* is that of their opcodes."""
        threads = [kernel.configuration.all_threads for kernel in (before, after)]
        files = [_find_file(kernel) for kernel in (before, after)]
        names = [shorten_name(kernel.name).partition("<")[0] for kernel in (before, after)]
        return cls(
            before=before,
            after=after,
            code=code,
            work=min(threads) / max(threads) if all(threads) else None,
            name=SequenceMatcher(None, names[0], names[1], autojunk=False).ratio(),
            file=files[0] == files[1] if all(files) else None,
        )

    @property
    def value(self) -> float:
        """Weighted mean of what is known: code and name count most, since people rarely change a name's stem."""
        weighted = [(self.code, 4), (self.name, 4), (self.work, 2), (self.file, 2)]
        known = [(float(value), weight) for value, weight in weighted if value is not None]
        return sum(value * weight for value, weight in known) / sum(weight for _, weight in known)

    def explain(self) -> Sentence:
        """Common traits of the two."""
        return list_of(self._list_reasons())

    def _list_reasons(self) -> Iterator[Sentence]:
        if self.work == 1:
            yield say("the same number of threads")
        if self.code is not None and self.code >= _ALIKE:
            yield say("similar code ({alike})", alike=percent(self.code))
        if self.file:
            yield say("source files of the same name")
        if self.name >= 0.5 or (self.work != 1 and (self.code or 0.0) < _ALIKE and not self.file):
            yield say("similar names")


def _find_file(kernel: KernelReport) -> str:
    """Name of the file with most samples; empty for code without lines."""
    file = next((row.file for row in kernel.lines if row.file is not None), None)
    return "" if file is None else PurePosixPath(file.replace("\\", "/")).name


def _compare_counts(before: dict[str, int], after: dict[str, int]) -> float | None:
    """Cosine of the angle between two counts of opcodes; None where one of them is empty."""
    if not before or not after:
        return None
    product = sum(count * after.get(opcode, 0) for opcode, count in before.items())
    lengths = [math.sqrt(sum(count * count for count in counts.values())) for counts in (before, after)]
    return product / (lengths[0] * lengths[1])
