"""Compare two reports: what got faster, what was changed, which advice was taken, how good its estimate was."""

import hashlib
from collections.abc import Callable, Mapping, Sequence

import msgspec.structs
import numpy as np

from gpa_lsp.diagnosis.advice.model import LEAST_SPEEDUP, Advice, SilenceStage
from gpa_lsp.foundation.figures import Spread, measure_weighted_spread
from gpa_lsp.report.changes import (
    CODE_DIGITS,
    LaunchTimes,
    MeasuredWork,
    PartChange,
    TimeChange,
    Verdict,
    explain_missing_stalls,
    judge_measurements,
    order_changes,
)
from gpa_lsp.report.comparison import AdviceOutcome, Comparison, KernelComparison, LikelyPair
from gpa_lsp.report.differences import Difference, Trait, compare_traits
from gpa_lsp.report.kernel_pairs import find_likely_pairs, find_named, pair_by_name
from gpa_lsp.report.line_map import map_edited_lines, split_lines
from gpa_lsp.report.model import KernelReport, LaunchReport, LineRow, Report
from gpa_lsp.report.taken import LOCAL_OPTIMIZERS, AdviceFate, judge_advice, judge_local_advice


def compare_reports(
    before: Report,
    after: Report,
    wanted: Sequence[tuple[str, str]] = (),
    accept: Callable[[LikelyPair], bool] = lambda pair: False,
) -> Comparison:
    """Lay two reports side by side, kernel by kernel.

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
    """Lay two measurements side by side: of one kernel, or of two that do the same work.

    Where they did not do the same work, nothing but that is said.
    """
    judgement = judge_measurements(measure_work(before), measure_work(after))
    if judgement.verdict is Verdict.OTHER_WORK:
        return KernelComparison(
            before=before,
            after=after,
            verdict=judgement.verdict,
            time=None,
            note=judgement.note,
            instructions_ratio=None,
            differences=(),
            reasons=(),
            lines=(),
            outcomes=(),
            new_advice=(),
        )
    same_code, time = judgement.verdict is Verdict.SAME_CODE, judgement.time
    traits = {} if same_code else compare_traits(before, after)
    no_stalls = explain_missing_stalls(before.total_samples, after.total_samples)
    return KernelComparison(
        before=before,
        after=after,
        verdict=judgement.verdict,
        time=time,
        note=judgement.note,
        instructions_ratio=_compare_instructions(before, after),
        differences=tuple(difference for difference in traits.values() if difference.is_change),
        reasons=() if no_stalls else _compare_reasons(before, after),
        lines=() if no_stalls else _compare_lines(before, after),
        outcomes=tuple(
            _follow_up(advice, (before, after), time, traits, same_code=same_code) for advice in _list_advice(before)
        ),
        new_advice=_find_new_advice(before, after),
        no_stalls=no_stalls,
    )


def digest_code(kernel: KernelReport) -> str | None:
    """Equal for the same instructions with the same control codes, launched the same way; None where instructions or launch are not known."""
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
    """Gather all that tells what work a kernel was measured on."""
    return MeasuredWork(
        times=measure_times(kernel),
        device=kernel.device.name or "",
        grid=kernel.configuration.grid,
        block=kernel.configuration.block,
        executed_instructions=count_executed(kernel),
        code_digest=digest_code(kernel),
        is_simulated=kernel.is_simulated,
    )


def measure_times(kernel: KernelReport) -> LaunchTimes:
    """How long a kernel's launches took; launches without a time are left out."""
    return LaunchTimes(
        cycles=measure_launch_spread(kernel.launches, lambda launch: launch.elapsed_cycles),
        ns=measure_launch_spread(kernel.launches, lambda launch: launch.duration_ns),
    )


def measure_launch_spread(
    launches: Sequence[LaunchReport], read: Callable[[LaunchReport], float | None]
) -> Spread | None:
    """The spread of a number over launches, of which aggregates know the mean; None when none knows it."""
    known = [(read(launch), launch.launch_count) for launch in launches]
    return measure_weighted_spread(
        [(value, count) for value, count in known if value is not None and count is not None]
    )


def _compare_instructions(before: KernelReport, after: KernelReport) -> float | None:
    old, new = count_executed(before), count_executed(after)
    return new / old if old and new else None


def count_executed(kernel: KernelReport) -> float | None:
    """Warp instructions a launch executes, mean over launches; None where they were not counted."""
    known = kernel.instructions.executions
    launches = [launch for launch in kernel.launches if launch.failure is None]
    if len(launches) > 1 and any(launch.aggregate is not None for launch in launches):
        return None  # aggregates have the executions of a mean launch, and beside others none
    return float(known[known >= 0].sum()) / max(len(launches), 1) or None


def _part_ns(kernel: KernelReport, ratio: float) -> float | None:
    return None if kernel.duration_ns is None else ratio * kernel.duration_ns


def _share(kernel: KernelReport, samples: float) -> float:
    return samples / kernel.total_samples if kernel.total_samples else 0.0


def _compare_reasons(before: KernelReport, after: KernelReport) -> tuple[PartChange, ...]:
    changes = []
    for reason in dict.fromkeys((*before.by_reason, *after.by_reason)):
        old = _share(before, before.by_reason[reason].all_samples if reason in before.by_reason else 0)
        new = _share(after, after.by_reason[reason].all_samples if reason in after.by_reason else 0)
        changes.append(_make_change(before, after, reason, (None, None), (old, new)))
    return order_changes(changes)


def _compare_lines(before: KernelReport, after: KernelReport) -> tuple[PartChange, ...]:
    """Lines by their inclusive samples and what they call; a line that moved is followed where both reports have the source."""
    old = {(row.file, row.line): row for row in before.lines if row.file is not None and row.line is not None}
    new = {(row.file, row.line): row for row in after.lines if row.file is not None and row.line is not None}
    changes = []
    for (file, line), partner in pair_lines(before, after, list(old)).items():
        row, other = old[(file, line)], None if partner is None else new.pop((file, partner), None)
        ratios = (_share(before, _cost(row)), _share(after, _cost(other) if other else 0.0))
        changes.append(_make_change(before, after, file, (line, partner), ratios))
    for (file, line), row in new.items():
        assert file is not None
        ratios = (0.0, _share(after, _cost(row)))
        changes.append(_make_change(before, after, file, (None, line), ratios))
    return order_changes(changes)


def _cost(row: LineRow) -> float:
    """Samples of a line with everything inlined into it and called from it."""
    return row.inclusive_samples + row.called_samples


def _make_change(
    before: KernelReport,
    after: KernelReport,
    name: str,
    lines: tuple[int | None, int | None],
    ratios: tuple[float, float],
) -> PartChange:
    return PartChange(
        name=name,
        before_line=lines[0],
        after_line=lines[1],
        before_ns=_part_ns(before, ratios[0]),
        after_ns=_part_ns(after, ratios[1]),
        before_ratio=ratios[0],
        after_ratio=ratios[1],
    )


def _list_advice(kernel: KernelReport) -> tuple[Advice, ...]:
    """Advice that promises something: a remark that nothing is to be gained cannot be taken."""
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
    """What became of a piece of advice, by what changed in code and counters."""
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
        estimate=advice.speedup.estimate,
        achieved=time.speedup if time is not None and is_done else None,
    )


def _find_share_after(optimizer: str, after: KernelReport) -> float | None:
    """Of the samples after, those an optimizer's advice is about; None where nobody counted them."""
    if after.advice is None or not after.total_samples:
        return None
    now = next((other for other in after.advice.advice if other.optimizer == optimizer), None)
    if now is not None:
        return _share(after, now.matched_samples)
    silence = next((one for one in after.advice.silences if one.optimizer == optimizer), None)
    return 0.0 if silence is not None and silence.stage is SilenceStage.NOT_MATCHED else None


def pair_lines(
    before: KernelReport, after: KernelReport, wanted: Sequence[tuple[str | None, int | None]]
) -> dict[tuple[str, int], int | None]:
    """Follow lines from one source to the next.

    Returns:
        (file, line) → the line after; None for one that is gone.
    """
    maps: dict[str, tuple[int, ...] | None] = {}
    found: dict[tuple[str, int], int | None] = {}
    for file, line in wanted:
        if file is None or line is None:
            continue
        if file not in maps:
            maps[file] = _map_texts(before.embedded_sources.get(file), after.embedded_sources.get(file))
        table = maps[file]
        found[(file, line)] = line if table is None or not 0 < line <= len(table) else table[line - 1] or None
    return found


def _map_texts(before: str | None, after: str | None) -> tuple[int, ...] | None:
    """None where both are the same or cannot be compared."""
    if before is None or after is None or before == after:
        return None
    return map_edited_lines(split_lines(before), split_lines(after))
