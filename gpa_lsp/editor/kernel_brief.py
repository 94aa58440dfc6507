"""What a lens says of a kernel: :class:`KernelBrief`. It is made where the report is: a source can have hundreds of lenses."""

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


def make_brief(report: "KernelReport") -> KernelBrief:
    """The words about a kernel."""
    # They need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.advice_words import describe_limit_briefly, find_first_suggestion, label_suggestion
    from gpa_lsp.document.context_words import count_contexts
    from gpa_lsp.document.launch_place_words import describe_places_briefly
    from gpa_lsp.document.sampling_words import describe_time
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
    )


def _describe_top_reason(report: "KernelReport") -> str:
    """What most samples are stalled on, where no limiter is known; empty without samples."""
    from gpa_lsp.document.findings import choose_reasons

    reasons = choose_reasons(report.by_reason)
    if not reasons:
        return ""
    name = reasons[0].name
    return f"{format_percent(report.by_reason[name].all_samples / report.total_samples)} {name}"
