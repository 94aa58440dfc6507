"""What lens and hover say of a kernel: :class:`KernelBrief`. It is made where the report is: a source can have hundreds of lenses, and a hover is
to say what is of its line alone."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from gpa_lsp.foundation.numbers import format_count, format_percent

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport


class KernelBrief(Struct, frozen=True, kw_only=True):
    """Words about a kernel; each is empty where there is nothing to say."""

    time: str  # it took
    limit: str  # what limits it, or what most samples are stalled on
    suggestion: str  # what to do first
    places: str  # that launched it, else how many launch contexts there are
    verdict: str  # what limits it, in a sentence
    first: str  # what to do first, in a sentence with its gain
    ceiling: str  # how close it is to its nearest ceiling
    simulated: str  # what is to be thought of samples that a model says
    doubts: str  # what keeps its samples, or what is made of them, from being whole


def make_brief(report: "KernelReport") -> KernelBrief:
    """The words about a kernel."""
    # They need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.advice_words import (
        describe_limit,
        describe_limit_briefly,
        describe_priced,
        find_first_suggestion,
        label_suggestion,
    )
    from gpa_lsp.document.context_words import count_contexts
    from gpa_lsp.document.launch_place_words import describe_places_briefly
    from gpa_lsp.document.roofline_text import describe_nearest_roof
    from gpa_lsp.document.sampling_words import describe_simulation, describe_time
    from gpa_lsp.report.launch_places import list_launch_places

    time = ""
    if report.duration_ns is not None:
        launches = f" × {format_count(report.launch_count)}" if report.launch_count not in (1, None) else ""
        time = f"{describe_time(report, report.duration_ns)}{launches}"
    first = find_first_suggestion(report)
    return KernelBrief(
        time=time,
        limit=describe_limit_briefly(report) or ("" if report.lacks_sass and first else _describe_top_reason(report)),
        suggestion="" if first is None else label_suggestion(first),
        places=describe_places_briefly(list_launch_places(report)) or count_contexts(report),
        verdict="" if report.limiter is None else describe_limit(report),
        first="" if first is None or report.limiter is None else describe_priced(first),
        ceiling=describe_nearest_roof(report),
        simulated=describe_simulation(report),
        doubts="; ".join(_list_doubts(report)),
    )


def _list_doubts(report: "KernelReport") -> Iterator[str]:
    from gpa_lsp.document.advice_words import NO_SASS
    from gpa_lsp.document.sampling_words import describe_dropped

    if report.samples_truncated:
        yield "the sampling buffer was full, so only the first part of the run was sampled"
    if report.sampling.dropped_samples:
        yield describe_dropped(report)
    if report.lacks_sass:
        yield f"{NO_SASS}, so causes and most advice are missing"


def _describe_top_reason(report: "KernelReport") -> str:
    """What most samples are stalled on, where no limiter is known; empty without samples."""
    from gpa_lsp.document.findings import choose_reasons

    reasons = choose_reasons(report.by_reason)
    if not reasons:
        return ""
    name = reasons[0].name
    return f"{format_percent(report.by_reason[name].all_samples / report.total_samples)} {name}"
