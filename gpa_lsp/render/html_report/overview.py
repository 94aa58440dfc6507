"""The head of the page and the list of its kernels."""

from collections.abc import Mapping, Sequence

from gpa_lsp.basis.errors import Problem
from gpa_lsp.basis.figures import sum_known
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import (
    format_count,
    format_count_of,
    format_duration_ns,
    format_launches,
    format_percent,
)
from gpa_lsp.render.advice_words import (
    describe_limit_briefly,
    find_best_advice,
    name_best_advice,
    show_estimate,
    show_interval,
)
from gpa_lsp.render.finding_words import describe_problem
from gpa_lsp.render.html_report.changes_section import ChangeSection
from gpa_lsp.render.html_report.roofline_section import convert_roof
from gpa_lsp.render.html_report.tables import Meter, convert_bar
from gpa_lsp.render.layout import clamp_ratio, join_facts
from gpa_lsp.render.moments import format_moment
from gpa_lsp.render.sampling_words import describe_time
from gpa_lsp.report.model import KernelReport, Report

UTC_SUFFIX = " UTC"

_MOST_PROFILES = 6
"""Named at the head of the page; the list names all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """A row of the list; the numbers are to sort by.

    Attributes:
        number: of the kernel.
        name: short.
        full_name: readable name, where it differs; else empty.
        time: of all launches.
        time_ns: the same.
        share: of the time of its group, as a bar; None without a time.
        launches: how many; None when unknown.
        samples: how many.
        counts: both, written.
        roof: the nearest ceiling; None where unknown.
        limiter: what limits the kernel, in a few words; may be empty.
        occupancy: achieved or possible; None where unknown.
        speedup: best estimate; 0 without advice.
        estimate: the same, written; empty without advice.
        interval: of it; may be empty.
        advice: title of the best advice, or ``none``.
        change: since an earlier profile; None without one.
    """

    number: int
    name: str
    full_name: str
    time: str
    time_ns: float
    share: Meter | None
    launches: int | None
    samples: int
    counts: tuple[str, str]
    roof: Meter | None
    limiter: str
    occupancy: Meter | None
    speedup: float
    estimate: str
    interval: str
    advice: str
    change: ChangeSection | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelGroup:
    """Kernels that were measured together: one run of a program on one GPU. Times and shares are never added over groups.

    Attributes:
        title: profile, GPU, and the time of all.
        rows: in the report's order.
    """

    title: str
    rows: Sequence[KernelRow]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemItem:
    """A problem: its severity, the file it is about (may be empty), and what is wrong and to do."""

    severity: str
    file: str
    text: str


def build_groups(
    kernels: Sequence[KernelReport], names: Mapping[str, str], changes: Mapping[int, ChangeSection]
) -> list[KernelGroup]:
    """The list, by what was measured together, in the report's order.

    Args:
        kernels: of the report.
        names: readable name → short name.
        changes: by number of the kernel.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for number, kernel in enumerate(kernels):
        groups.setdefault(_key_group(kernel), []).append(number)
    return [_build_group(numbers, kernels, names, changes) for numbers in groups.values()]


def _key_group(kernel: KernelReport) -> tuple[str, str]:
    """Of what was measured together: one run of one program on one GPU."""
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
    """What the page is about: profiles, GPUs, when, how long. Times are added only where they were measured together."""
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


def format_measured(unix_s: int | None) -> str:
    """When something was measured, in UTC, so that a page says the same wherever it is written; empty when unknown.

    >>> format_measured(1_763_733_720)
    '2025-11-21 14:02 UTC'
    """
    if unix_s is None:
        return ""
    from datetime import UTC

    return f"{format_moment(unix_s * 1_000_000_000, UTC)}{UTC_SUFFIX}"


def name_profile(kernel: KernelReport) -> str:
    """The profile's file name: its folder is the writer's own affair."""
    return kernel.profile_path.name if kernel.profile_path is not None else ""


def list_problems(problems: Sequence[Problem]) -> list[ProblemItem]:
    """All problems; none is dropped."""
    return [
        ProblemItem(
            severity=problem.severity.value,
            file=problem.path.name if problem.path is not None else "",
            text=describe_problem(problem),
        )
        for problem in problems
    ]


def _build_row(
    number: int, kernel: KernelReport, name: str, whole_ns: float, change: ChangeSection | None
) -> KernelRow:
    total_ns = kernel.total_duration_ns
    best = find_best_advice(kernel)
    ratio = total_ns / whole_ns if whole_ns else 0.0
    return KernelRow(
        number=number,
        name=name,
        full_name="" if kernel.name == name else kernel.name,
        time=describe_time(kernel, total_ns or None),
        time_ns=total_ns,
        share=Meter(label="", ratio=clamp_ratio(ratio), text=format_percent(ratio)) if total_ns else None,
        launches=kernel.launch_count,
        samples=kernel.total_samples,
        counts=(format_count(kernel.launch_count), format_count(kernel.total_samples)),
        roof=find_nearest_roof(kernel),
        limiter=describe_limit_briefly(kernel),
        occupancy=find_occupancy(kernel),
        speedup=best.speedup.estimate if best is not None else 0.0,
        estimate=show_estimate(best.speedup) if best is not None else "",
        interval=show_interval(best.speedup) if best is not None else "",
        advice=name_best_advice(kernel),
        change=change,
    )


def find_nearest_roof(kernel: KernelReport) -> Meter | None:
    """What the kernel is closest to: a ceiling of its roofline, or a unit nearer to full than any; else what the profiler says of its units."""
    roofline = kernel.analyses.roofline if kernel.analyses is not None else None
    whole = None if roofline is None else roofline.whole
    if whole is not None and whole.tighter_unit is not None:
        busiest = whole.tighter_unit
        return _make_meter(busiest.name, busiest.share_ratio, busiest.ceiling_ratio)
    if whole is not None and whole.binding is not None:
        return convert_roof(whole.binding)
    units = kernel.advice.units if kernel.advice is not None else ()
    known = [unit for unit in units if unit.ceiling_ratio > 0]
    if not known:
        return None
    unit = max(known, key=lambda one: one.achieved_ratio / one.ceiling_ratio)
    return _make_meter(unit.name, unit.achieved_ratio, unit.ceiling_ratio)


def _make_meter(name: str, ratio: float, ceiling_ratio: float) -> Meter:
    return Meter(
        label=name,
        ratio=clamp_ratio(ratio),
        text=format_percent(ratio),
        ceiling=clamp_ratio(ceiling_ratio) if ceiling_ratio < 1 else None,
    )


def find_occupancy(kernel: KernelReport) -> Meter | None:
    """What was achieved, with a tick at what is possible, else what is possible; None where the analysis of occupancy could not say."""
    answer = kernel.analyses.find("occupancy") if kernel.analyses is not None else None
    if answer is None or not answer.bars:
        return None
    return convert_bar(next((bar for bar in answer.bars if bar.ceiling_ratio < 1), answer.bars[0]))
