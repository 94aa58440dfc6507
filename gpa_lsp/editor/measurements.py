"""Words about which of several measurements of a kernel is shown: for the lens, the lists and the page."""

import time

from gpa_lsp.document.time_course_words import format_moment_briefly
from gpa_lsp.editor.snapshot import LoadedProfile, MeasuredKernel, VisibleKernel

_LONGEST_STEM = 24


def describe_measurement(profile: LoadedProfile, kernel: MeasuredKernel) -> str:
    """``gemm_v1.ncu-rep · 18 Aug · 186 µs``: a row of a list to choose from."""
    from gpa_lsp.document.sampling_words import describe_time  # it needs numpy, which a start must not wait for

    report = kernel.report
    took = "" if report.duration_ns is None else describe_time(report, report.duration_ns)
    is_simulated = "simulated" if report.is_simulated and "simulated" not in took else ""
    return " · ".join(filter(None, (profile.path.name, _name_moment(kernel), took, is_simulated)))


def label_shown(shown: VisibleKernel) -> str:
    """``shown: gemm_v1 · 18 Aug ▾`` for a lens; empty where there is nothing to choose."""
    if shown.measurement_count == 1:
        return ""
    from gpa_lsp.document.layout import cut  # it needs numpy, which a start must not wait for

    name = "simulated" if shown.kernel.report.is_simulated else cut(shown.profile.path.stem, _LONGEST_STEM)
    return f"shown: {name} · {_name_moment(shown.kernel)} ▾"


def describe_shown(shown: VisibleKernel) -> str:
    """``Shown: gemm_v1.ncu-rep of 18 Aug, one of 4 measurements`` for the kernel's page; empty where there is no other."""
    if shown.measurement_count == 1:
        return ""
    moment = _name_moment(shown.kernel)
    return f"Shown: {shown.profile.path.name} of {moment}, one of {shown.measurement_count} measurements"


def _name_moment(kernel: MeasuredKernel) -> str:
    return format_moment_briefly(kernel.measured_ns, time.time_ns())
