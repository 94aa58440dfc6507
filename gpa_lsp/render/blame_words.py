"""What a kernel's blame says in a few sentences: what bounds the kernel, and how far the answer can be trusted."""

from collections.abc import Iterator

import numpy as np

from gpa_lsp.basis.numbers import UNKNOWN, format_count, format_count_of, format_number, format_percent
from gpa_lsp.blame.model import BlameCategory, KernelBlame, SingleDependencyCoverage, UnattributedCause, WaitCheck
from gpa_lsp.render.advice_words import describe_cause, describe_unattributed
from gpa_lsp.render.findings import choose_reasons
from gpa_lsp.report.model import KernelReport

_MAX_CAUSES = 3
_MIN_CAUSE_RATIO = 0.1
"""A cause is named when it holds at least this share of the samples (the first one always)."""

_NO_STALLS = (BlameCategory.ISSUED, BlameCategory.NOT_SELECTED)


def describe_bounds(kernel: KernelReport) -> str:
    """What the kernel's warps mostly wait for, by cause (by stall reason where nothing was blamed), and how close its memory is to its roof.

    Empty without samples.
    """
    if not kernel.total_samples:
        return ""
    words = _describe_causes(kernel) or _describe_reasons(kernel)
    memory = "" if kernel.advice is None else kernel.advice.memory
    if not memory:
        return words
    remedy = (
        ": only less traffic helps (fewer bytes, more reuse)"
        if kernel.advice and kernel.advice.is_bandwidth_bound
        else ""
    )
    return f"{words}; {memory}{remedy}"


def _describe_reasons(kernel: KernelReport) -> str:
    reasons = choose_reasons(kernel.by_reason)
    named = ", ".join(f"{reason.name} {format_percent(reason.ratio)}" for reason in reasons)
    return f"mostly {named}" if named else "issuing, not stalled"


def _describe_causes(kernel: KernelReport) -> str:
    """Empty where no stall has a cause."""
    blame = kernel.blame
    found = [] if blame is None else measure_causes(kernel, blame)
    shares = [(category, ratio) for category, ratio in found if category not in _NO_STALLS]
    shown = [
        f"{describe_cause(category)} ({format_percent(ratio)})"
        for position, (category, ratio) in enumerate(shares[:_MAX_CAUSES])
        if position == 0 or ratio >= _MIN_CAUSE_RATIO
    ]
    return f"waits for {', '.join(shown)}" if shown else ""


def measure_causes(kernel: KernelReport, blame: KernelBlame) -> list[tuple[BlameCategory, float]]:
    """Category of cause and its share of the kernel's samples, largest first; categories without samples are left out."""
    sums = np.bincount(blame.edges.category, weights=blame.edges.all_samples, minlength=len(BlameCategory)).tolist()
    total = kernel.total_samples or 1
    found = [(BlameCategory(number), samples / total) for number, samples in enumerate(sums) if samples > 0]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def describe_grounds(kernel: KernelReport) -> Iterator[tuple[str, str]]:
    """What blame rests on, as a name and a sentence each: coverage, unattributed samples, issue counts, the check by ``wait``."""
    blame = kernel.blame
    if blame is None:
        return
    yield "blame", f"by {blame.blamer}; {_describe_coverage(blame.coverage)}"
    yield "unattributed", _describe_unattributed(kernel, blame)
    counts = blame.issue_counts
    exact = "exact" if counts.is_exact else "sampled"
    spread = counts.chi_square_per_row
    why = counts.why or ("" if spread is None else f"chi-square per instruction {format_number(spread)}")
    yield "issue counts", f"{exact}: {why}" if why else exact
    if blame.wait_check is not None:
        yield "wait check", _describe_wait_check(blame.wait_check)


def _describe_coverage(coverage: SingleDependencyCoverage) -> str:
    parts = []
    if coverage.before_ratio is not None or coverage.after_ratio is not None:
        before, after = format_percent(coverage.before_ratio), format_percent(coverage.after_ratio)
        nodes = format_count_of(coverage.nodes, "instruction")
        parts.append(f"single-dependency coverage {before} → {after} of {nodes}")
    if coverage.group_ratio is not None:
        samples = format_count_of(coverage.group_samples, "sample")
        parts.append(
            f"{format_percent(coverage.group_ratio)} of {samples} of scoreboards and wait have one cause or group of causes"
        )
    if coverage.explained_ratio is not None:
        parts.append(f"{format_percent(coverage.explained_ratio)} of scoreboard samples explained")
    return "; ".join(parts) or "nothing to count coverage on"


def _describe_unattributed(kernel: KernelReport, blame: KernelBlame) -> str:
    lost = blame.unattributed
    every = float(lost.all_samples.sum())
    if not every:
        return "no samples"
    total = kernel.total_samples or 1
    sums = np.bincount(lost.cause, weights=lost.all_samples, minlength=len(UnattributedCause)).tolist()
    causes = sorted(
        ((samples, UnattributedCause(number)) for number, samples in enumerate(sums) if samples > 0), reverse=True
    )
    listed = ", ".join(f"{format_count(samples)} ({describe_unattributed(cause)})" for samples, cause in causes)
    return f"{format_percent(every / total)} of the samples: {listed}"


def _describe_wait_check(check: WaitCheck) -> str:
    correlation = UNKNOWN if check.correlation is None else f"{check.correlation:.3f}"
    return (
        f"correlation {correlation} over {format_count_of(check.rows, 'instruction')}; "
        f"{format_count(check.measured_samples)} samples measured, {format_count(check.predicted_samples)} predicted"
    )
