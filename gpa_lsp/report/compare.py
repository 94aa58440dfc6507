"""Compare two reports of the same program: what got faster, which advice was taken, how good the estimate was."""

import dataclasses
import hashlib
from collections.abc import Callable, Sequence

import numpy as np

from gpa_lsp.advice.model import Advice, SilenceStage
from gpa_lsp.basis.figures import Spread, measure_weighted_spread
from gpa_lsp.report.changes import LaunchTimes, PartChange, TimeChange, compare_times, judge_change, order_changes
from gpa_lsp.report.comparison import (
    AdviceFate,
    AdviceOutcome,
    Comparison,
    KernelComparison,
)
from gpa_lsp.report.families import find_family
from gpa_lsp.report.line_map import map_edited_lines, split_lines
from gpa_lsp.report.model import KernelReport, LaunchReport, LineRow, Report

_TAKEN_RATIO = 0.5
_PARTLY_RATIO = 0.8
_LEAST_FALL_RATIO = 0.01
"""Of the old time; stalls that became less by a smaller part may have done so for other reasons."""


def compare_reports(before: Report, after: Report) -> Comparison:
    """Lay two reports side by side, kernel by kernel.

    Kernels belong together when their linkage names and GPUs are the same; what is left over is matched by its short name, if that
    is unique on both sides (a template argument, a parameter or a compiler's counter changed).
    """
    pairs, only_before, only_after = _pair_kernels(before.kernels, after.kernels)
    compared = [compare_kernels(old, new) for old, new in pairs]
    compared.sort(key=lambda found: (-found.before.total_duration_ns, found.before.mangled_name))
    return Comparison(kernels=tuple(compared), only_before=tuple(only_before), only_after=tuple(only_after))


def compare_kernels(before: KernelReport, after: KernelReport) -> KernelComparison:
    """Lay two measurements of one kernel side by side."""
    time = measure_time_change(before, after)
    same_code = is_same_code(before, after)
    verdict = judge_change(time, same_code=same_code)
    return KernelComparison(
        before=before,
        after=after,
        verdict=verdict,
        time=time,
        instructions_ratio=_compare_instructions(before, after),
        reasons=_compare_reasons(before, after),
        lines=_compare_lines(before, after),
        outcomes=tuple(_follow_up(advice, before, after, time, same_code=same_code) for advice in _list_advice(before)),
        new_advice=_find_new_advice(before, after),
    )


def is_same_code(before: KernelReport, after: KernelReport) -> bool:
    """The two are the same instructions, launched the same way. False where the instructions are not known."""
    digest = digest_code(before)
    return digest is not None and digest == digest_code(after)


def digest_code(kernel: KernelReport) -> str | None:
    """Equal for the same instructions with the same control codes, launched the same way; None where instructions or launch are not known.

    Returns:
        64 hexadecimal digits, the same on every machine.
    """
    columns = kernel.instructions
    is_launch_known = kernel.configuration.grid is not None and kernel.configuration.block is not None
    if not any(columns.texts) or not is_launch_known:
        return None
    digest = hashlib.sha256(repr(dataclasses.astuple(kernel.configuration)).encode())
    digest.update("\n".join(columns.texts).encode("utf-8", "surrogatepass"))
    digest.update(columns.stall_cycles.astype(np.uint8).tobytes())
    digest.update(columns.wait_mask.astype(np.uint8).tobytes())
    return digest.hexdigest()


def measure_time_change(before: KernelReport, after: KernelReport) -> TimeChange | None:
    """Time per launch before and after, with the range the speedup lies in; None when one of the two has no time."""
    return compare_times(measure_times(before), measure_times(after))


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


def _pair_kernels(
    before: Sequence[KernelReport], after: Sequence[KernelReport]
) -> tuple[list[tuple[KernelReport, KernelReport]], list[KernelReport], list[KernelReport]]:
    pairs: list[tuple[KernelReport, KernelReport]] = []
    old, new = list(before), list(after)
    for name in (_full_name, _short_name):
        for kernel in list(old):
            alike = [other for other in new if name(other) == name(kernel)]
            rivals = [other for other in old if name(other) == name(kernel)]
            if len(alike) == 1 and len(rivals) == 1:
                pairs.append((kernel, alike[0]))
                old.remove(kernel)
                new.remove(alike[0])
    return pairs, old, new


def _full_name(kernel: KernelReport) -> tuple[str, str | None]:
    return kernel.mangled_name, kernel.device.name


def _short_name(kernel: KernelReport) -> tuple[str, str | None]:
    return find_family(kernel.name, None).name, None


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
    return () if kernel.advice is None else kernel.advice.advice


def _find_new_advice(before: KernelReport, after: KernelReport) -> tuple[Advice, ...]:
    known = {advice.optimizer for advice in _list_advice(before)}
    return tuple(advice for advice in _list_advice(after) if advice.optimizer not in known)


def _is_gated(kernel: KernelReport, optimizer: str) -> bool:
    """The optimizer sees its pattern, and something else forbids its advice."""
    silences = () if kernel.advice is None else kernel.advice.silences
    return any(silence.optimizer == optimizer and silence.stage is SilenceStage.GATED for silence in silences)


def _follow_up(
    advice: Advice, before: KernelReport, after: KernelReport, time: TimeChange | None, *, same_code: bool
) -> AdviceOutcome:
    """What became of the stalls an advice matched, in parts of the old time."""
    now = next((other for other in _list_advice(after) if other.optimizer == advice.optimizer), None)
    scale = 1.0 if time is None else time.after / time.before
    old_ratio = _share(before, advice.matched_samples)
    new_ratio = 0.0 if now is None else _share(after, now.matched_samples) * scale
    is_forbidden = now is None and _is_gated(after, advice.optimizer)
    fate = AdviceFate.OPEN
    if not same_code and old_ratio > 0 and not is_forbidden:
        left = new_ratio / old_ratio
        is_notable = old_ratio - new_ratio >= _LEAST_FALL_RATIO
        fate = AdviceFate.TAKEN if left < _TAKEN_RATIO else fate
        if fate is AdviceFate.OPEN and left < _PARTLY_RATIO and is_notable:
            fate = AdviceFate.PARTLY_TAKEN
    achieved = time.speedup if time is not None and fate is not AdviceFate.OPEN else None
    return AdviceOutcome(
        advice=advice,
        fate=fate,
        before_ratio=old_ratio,
        after_ratio=None if is_forbidden else new_ratio,
        estimate=advice.speedup.estimate,
        achieved=achieved,
    )


def pair_lines(
    before: KernelReport, after: KernelReport, wanted: Sequence[tuple[str | None, int | None]]
) -> dict[tuple[str, int], int | None]:
    """Follow lines from one source to the next.

    Args:
        before: with embedded sources, or without: then lines keep their numbers.
        after: with embedded sources, or without.
        wanted: (file, line) of the source before.

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
