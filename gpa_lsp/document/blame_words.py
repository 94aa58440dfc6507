"""Limit and stalls of a kernel in a few sentences, and how far the attribution can be trusted."""

from collections.abc import Iterator, Mapping

import numpy as np

from gpa_lsp.diagnosis.blame.model import (
    NO_STALLS,
    BlameCategory,
    KernelBlame,
    SingleDependencyCoverage,
    UnattributedCause,
    WaitCheck,
)
from gpa_lsp.document.advice_words import describe_cause
from gpa_lsp.document.findings import choose_reasons
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_number, format_percent
from gpa_lsp.foundation.prose import NOTHING, Sentence, drop_stop, join, percent, say
from gpa_lsp.report.model import KernelReport

_MAX_CAUSES = 3
_MIN_CAUSE_RATIO = 0.1  # A cause is named when it holds at least this share of the samples (the first one always)

_UNATTRIBUTED: Mapping[UnattributedCause, str] = {
    UnattributedCause.NO_CODE: "their code is not in the profile",
    UnattributedCause.NO_INSTRUCTIONS: "their code could not be disassembled",
    UnattributedCause.NO_PRODUCER: "no instruction matches the stall reason",
    UnattributedCause.WORK_BOUND: "in a function too large to search",
}

NO_CAUSE = "an unknown cause"  # To follow "stalled on" where samples have none


def describe_bounds(kernel: KernelReport) -> Sentence:
    """The kernel's limit and the main causes of its stalls (else the stall reasons); empty where neither is known."""
    limit = NOTHING if kernel.limiter is None else drop_stop(kernel.limiter.sentence)
    return join((limit, describe_stalls(kernel)), "; ")


def describe_stalls(kernel: KernelReport) -> Sentence:
    """The main causes of a kernel's stalls, else its stall reasons; empty without samples."""
    return _describe_causes(kernel) or _describe_reasons(kernel) if kernel.total_samples else NOTHING


def _describe_reasons(kernel: KernelReport) -> Sentence:
    reasons = choose_reasons(kernel.by_reason)
    named = join(
        (say("{name} {share}", name=reason.name, share=percent(reason.ratio)) for reason in reasons), separator=", "
    )
    return say("mostly {named}", named=named) if named else say("issuing, not stalled")


def _describe_causes(kernel: KernelReport) -> Sentence:
    """Empty where no stall has a cause."""
    blame = kernel.blame
    found = [] if blame is None else measure_causes(kernel, blame)
    shares = [(category, ratio) for category, ratio in found if category not in NO_STALLS]
    shown = [
        say("{cause} ({share})", cause=describe_cause(category), share=percent(ratio))
        for position, (category, ratio) in enumerate(shares[:_MAX_CAUSES])
        if position == 0 or ratio >= _MIN_CAUSE_RATIO
    ]
    return say("stalled on {causes}", causes=join(shown, ", ")) if shown else NOTHING


def measure_causes(kernel: KernelReport, blame: KernelBlame) -> list[tuple[BlameCategory, float]]:
    """Category of cause and its share of the kernel's samples, largest first; categories without samples are left out."""
    sums = np.bincount(blame.edges.category, weights=blame.edges.all_samples, minlength=len(BlameCategory)).tolist()
    total = kernel.total_samples or 1
    found = [(BlameCategory(number), samples / total) for number, samples in enumerate(sums) if samples > 0]
    return sorted(found, key=lambda pair: (-pair[1], pair[0]))


def describe_basis(kernel: KernelReport) -> Iterator[tuple[str, str]]:
    """Pairs of name and sentence: method and coverage of the attribution, unattributed samples, issue counts, the check by ``wait``."""
    blame = kernel.blame
    if blame is None:
        return
    yield "attribution", f"by {blame.blamer}; {_describe_coverage(blame.coverage)}"
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
    return "; ".join(parts) or "no samples to measure coverage on"


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
    listed = ", ".join(f"{format_count(samples)} ({_UNATTRIBUTED[cause]})" for samples, cause in causes)
    return f"{format_percent(every / total)} of the samples: {listed}"


def _describe_wait_check(check: WaitCheck) -> str:
    return (
        f"correlation {format_number(check.correlation)} over {format_count_of(check.rows, 'instruction')}; "
        f"{format_count(check.measured_samples)} samples measured, {format_count(check.predicted_samples)} predicted"
    )
