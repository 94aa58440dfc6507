"""RENDER: a report → one page of HTML that opens from disk, asks no network, and shows everything the report holds."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from gpa_lsp.diagnosis.analyses.model import LimiterKind
from gpa_lsp.document.advice_words import (
    describe_gain,
    describe_limit_briefly,
    find_first_suggestion,
    name_first_suggestion,
)
from gpa_lsp.document.blocks import Gauge
from gpa_lsp.document.findings import name_kernels
from gpa_lsp.document.html_report.changes_section import ChangeSection, build_change
from gpa_lsp.document.html_report.code_columns import SourceTexts, share_rows
from gpa_lsp.document.html_report.kernel_section import KernelPlace, build_kernel_data
from gpa_lsp.document.layout import join_facts
from gpa_lsp.document.notices import list_problems
from gpa_lsp.document.page import embed_compressed, read_asset, render_page
from gpa_lsp.document.sampling_words import describe_time
from gpa_lsp.document.time_course_words import format_measured
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.figures import sum_known
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_duration_ns, format_launches
from gpa_lsp.report.compare import Comparison, compare_reports
from gpa_lsp.report.history.model import TimeCourse
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.source_paths import SourceLocator

_MOST_PROFILES = 6  # Named at the head of the page; the list names all


class KernelRow(Struct, frozen=True, kw_only=True):
    """A row of the list; the numbers are to sort by."""

    number: int  # of the kernel
    name: str  # short
    full_name: str  # readable name, where it differs; else empty
    time: str  # of all launches
    time_ns: float  # the same
    share: Gauge | None  # of the time of its group; None without a time
    launches: int | None  # how many; None when unknown
    samples: int  # how many
    counts: tuple[str, str]  # both, written
    # what limits it, in a few words, empty where unknown, and how busy that is; None where it is no unit
    limit: tuple[str, Gauge | None]
    occupancy: Gauge | None  # achieved or possible; None where unknown
    speedup: float  # best estimate; 0 without advice
    gain: str  # its range, written; empty without advice
    advice: str  # title of what is advised first, or ``none``
    change: ChangeSection | None  # since an earlier profile; None without one


class KernelGroup(Struct, frozen=True, kw_only=True):
    """Kernels that were measured together: one run of a program on one GPU. Times and shares are never added over groups."""

    title: str  # profile, GPU, and the time of all
    rows: Sequence[KernelRow]  # in the report's order


def build_groups(
    kernels: Sequence[KernelReport], names: Mapping[str, str], changes: Mapping[int, ChangeSection]
) -> list[KernelGroup]:
    """Rows of the kernel list, grouped by what was measured together, in the report's order."""
    groups: dict[tuple[str, str], list[int]] = {}
    for number, kernel in enumerate(kernels):
        groups.setdefault(_key_group(kernel), []).append(number)
    return [_build_group(numbers, kernels, names, changes) for numbers in groups.values()]


def _key_group(kernel: KernelReport) -> tuple[str, str]:
    """Key of kernels measured together: one run of one program on one GPU."""
    return str(kernel.profile_path or ""), kernel.device.name or ""


def _build_group(
    numbers: Sequence[int],
    kernels: Sequence[KernelReport],
    names: Mapping[str, str],
    changes: Mapping[int, ChangeSection],
) -> KernelGroup:
    whole_ns = sum(kernels[number].total_duration_ns for number in numbers)
    first = kernels[numbers[0]]
    facts = [
        name_profile(first),
        first.device.name or "",
        format_count_of(len(numbers), "kernel"),
        format_duration_ns(whole_ns) if whole_ns else "",
    ]
    return KernelGroup(
        title=join_facts(fact for fact in facts if fact),
        rows=[
            _build_row(number, kernels[number], names[kernels[number].name], whole_ns, changes.get(number))
            for number in numbers
        ],
    )


def list_facts(report: Report) -> list[tuple[str, str]]:
    """Facts of the page's head: profiles, GPUs, dates, number of kernels, time. Times are added only within one run."""
    profiles = list(dict.fromkeys(name_profile(kernel) for kernel in report.kernels if kernel.profile_path))
    devices = list(dict.fromkeys(kernel.device.name for kernel in report.kernels if kernel.device.name))
    moments = sorted({kernel.measured_unix_s for kernel in report.kernels if kernel.measured_unix_s is not None})
    is_one = len({_key_group(kernel) for kernel in report.kernels}) == 1
    total_ns = sum(kernel.total_duration_ns for kernel in report.kernels) if is_one else 0
    launches = sum_known(kernel.launch_count for kernel in report.kernels)
    facts = [
        ("Profiles" if len(profiles) > 1 else "Profile", _name_some(profiles)),
        ("GPUs" if len(devices) > 1 else "GPU", ", ".join(devices)),
        ("Measured", " to ".join(dict.fromkeys(format_measured(moment) for moment in (*moments[:1], *moments[-1:])))),
        ("Kernels", f"{format_count(len(report.kernels))}, {format_launches(launches)}"),
        ("Time", format_duration_ns(total_ns) if total_ns else ""),
    ]
    return [(name, value) for name, value in facts if value]


def _name_some(profiles: Sequence[str]) -> str:
    rest = len(profiles) - _MOST_PROFILES
    return ", ".join(profiles[:_MOST_PROFILES]) + (f" and {format_count(rest)} more" if rest > 0 else "")


def name_profile(kernel: KernelReport) -> str:
    """File name of the profile; its folder is private to the machine that writes the page."""
    return kernel.profile_path.name if kernel.profile_path is not None else ""


def _build_row(
    number: int, kernel: KernelReport, name: str, whole_ns: float, change: ChangeSection | None
) -> KernelRow:
    total_ns = kernel.total_duration_ns
    first = find_first_suggestion(kernel)
    ratio = total_ns / whole_ns if whole_ns else 0.0
    return KernelRow(
        number=number,
        name=name,
        full_name="" if kernel.name == name else kernel.name,
        time=describe_time(kernel, total_ns or None),
        time_ns=total_ns,
        share=Gauge(ratio) if total_ns else None,
        launches=kernel.launch_count,
        samples=kernel.total_samples,
        counts=(format_count(kernel.launch_count), format_count(kernel.total_samples)),
        limit=_find_limit(kernel),
        occupancy=find_occupancy(kernel),
        speedup=first.speedup.estimate if first is not None else 0.0,
        gain=describe_gain(first) if first is not None else "",
        advice=name_first_suggestion(kernel),
        change=change,
    )


def _find_limit(kernel: KernelReport) -> tuple[str, Gauge | None]:
    """Limiter of a kernel in a few words; of a unit its name, and how busy it is, with a tick at what it sustains."""
    limiter = kernel.limiter
    limit = limiter.find(limiter.unit) if limiter is not None and limiter.kind is LimiterKind.UNIT else None
    if limit is None:
        return describe_limit_briefly(kernel), None
    return limit.label, Gauge(limit.busy_ratio, ceiling_ratio=limit.sustained_ratio)


def find_occupancy(kernel: KernelReport) -> Gauge | None:
    """Achieved occupancy with a tick at the possible one, else the possible one; None where the analysis has no bars."""
    answer = kernel.analyses.find("occupancy") if kernel.analyses is not None else None
    if answer is None or not answer.bars:
        return None
    return Gauge(answer.bars[-1].ratio, ceiling_ratio=answer.bars[-1].ceiling_ratio)


_HERE = "gpa_lsp.document.html_report"
_SCRIPTS = ("overview.js", "grid.js", "code.js", "flame.js", "report.js")


def render_html_report(
    report: Report,
    *,
    locator: SourceLocator | None = None,
    with_sources: bool = True,
    before: Report | None = None,
    courses: Mapping[int, TimeCourse] | None = None,
) -> str:
    """A report as one page of HTML.

    Sources, folders and names are shown as they were compiled; of the machine that writes the page nothing is said.

    Args:
        report: what to show.
        locator: finds sources here, where the profile does not carry them; one that may have changed since is marked, one that has is not shown.
        with_sources: False leaves the texts of sources out.
        before: an earlier profile of the same program; the page then says what became of each kernel.
        courses: number of a kernel → its runs up to this one.

    Returns:
        HTML, to be written as UTF-8.
    """
    kernels = report.kernels
    names = name_kernels(kernels)
    comparison = None if before is None else compare_reports(before, report, accept=lambda pair: pair.is_only)
    changes, earlier = _find_changes(kernels, comparison)
    texts = SourceTexts(locator, is_wanted=with_sources)
    data = _build_data(report, names, changes, earlier, courses=courses or {}, texts=texts)
    return render_page(
        f"{_HERE}/report.html.jinja",
        title=_name_page(kernels, names),
        values={
            "groups": build_groups(kernels, names, changes),
            "facts": list_facts(report),
            "problems": list_problems((*(before.problems if before is not None else ()), *_list_common(report))),
            "comparison": comparison,
            "before_names": _name_lost(comparison),
            "packed": [embed_compressed(one) for one in data],
        },
        styles=[read_asset(_HERE, "report.css")],
        scripts=[read_asset(_HERE, name) for name in _SCRIPTS],
        draws_charts=any(one["charts"] for one in data),
    )


def _build_data(
    report: Report,
    names: Mapping[str, str],
    changes: Mapping[int, ChangeSection],
    earlier: Mapping[int, KernelReport],
    *,
    courses: Mapping[int, TimeCourse],
    texts: SourceTexts,
) -> list[dict[str, Any]]:
    """Data of each kernel for the page's script."""
    limits = share_rows([len(kernel.instructions) for kernel in report.kernels])
    return [
        build_kernel_data(
            kernel,
            KernelPlace(
                number=number,
                name=names[kernel.name],
                profile=name_profile(kernel),
                measured=format_measured(kernel.measured_unix_s),
                most_rows=limits[number],
                change=changes.get(number),
                before=earlier.get(number),
                problems=_list_own_problems(report.problems, kernel),
                course=courses.get(number),
            ),
            texts,
        )
        for number, kernel in enumerate(report.kernels)
    ]


def _find_changes(
    kernels: Sequence[KernelReport], comparison: Comparison | None
) -> tuple[Mapping[int, ChangeSection], Mapping[int, KernelReport]]:
    """Change and earlier report of each kernel, by its number in the page."""
    if comparison is None:
        return {}, {}
    numbers = {id(kernel): number for number, kernel in enumerate(kernels)}
    return (
        {numbers[id(found.after)]: build_change(found) for found in comparison.kernels},
        {numbers[id(found.after)]: found.before for found in comparison.kernels},
    )


def _name_lost(comparison: Comparison | None) -> list[str]:
    """Names of the kernels that only the earlier profile has."""
    return [] if comparison is None else [name_kernels([one])[one.name] for one in comparison.only_before]


def _list_common(report: Report) -> list[Problem]:
    """Problems for the head of the page: notes about a kernel, and all about an only one, stand at the kernel alone."""
    own = {kernel.mangled_name for kernel in report.kernels}
    told = list(ProblemSeverity) if len(own) == 1 else [ProblemSeverity.NOTE]
    return [one for one in report.problems if one.kernel not in own or one.severity not in told]


def _list_own_problems(problems: Sequence[Problem], kernel: KernelReport) -> tuple[str, ...]:
    return tuple(
        f"{problem.severity.value}: {problem.message}" + (f"; {problem.remedy}" if problem.remedy else "")
        for problem in problems
        if problem.kernel == kernel.mangled_name
    )


def _name_page(kernels: Sequence[KernelReport], names: Mapping[str, str]) -> str:
    profiles = list(dict.fromkeys(name_profile(kernel) for kernel in kernels if kernel.profile_path))
    if len(profiles) == 1:
        return f"{profiles[0]} – gpa-lsp"
    if len(kernels) == 1:
        return f"{names[kernels[0].name]} – gpa-lsp"
    return "GPU kernels – gpa-lsp"
