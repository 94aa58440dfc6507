"""The lines above the code of a SASS document: which kernel it is, how it was measured, what bounds it."""

from collections.abc import Iterator
from datetime import UTC, datetime
from textwrap import wrap

from gpa_lsp.basis.numbers import format_count_of, format_dim3
from gpa_lsp.basis.visible_text import make_one_line
from gpa_lsp.editor.kernel_page import describe_kernel_briefly
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.render.blame_words import describe_bounds
from gpa_lsp.render.sampling_words import describe_quiet, list_sampling_facts

_WIDTH = 80
"""Half a window: whoever reads SASS has the source beside it."""

_LONGEST_TEXT = 500
"""Names of templates have thousands of characters; the report has them."""


def write_header(shown: VisibleKernel) -> Iterator[str]:
    """Comment lines."""
    report = shown.kernel.report
    for text in (
        describe_kernel_briefly(shown),
        report.name if report.name != shown.name else "",
        describe_bounds(report),
        " · ".join(_list_facts(shown)),
        " · ".join(_list_origin(shown)),
        "" if report.instructions.texts else "no instructions: the profile holds no code of this kernel",
    ):
        yield from wrap(
            make_one_line(text)[:_LONGEST_TEXT],
            _WIDTH,
            initial_indent="// ",
            subsequent_indent="//   ",
            break_on_hyphens=False,
        )


def _list_facts(shown: VisibleKernel) -> Iterator[str]:
    report = shown.kernel.report
    if report.total_samples:
        yield format_count_of(report.total_samples, "sample")
        if report.latency_samples is None:
            yield describe_quiet(report)
        yield from list_sampling_facts(report)
    if report.launches:
        yield f"grid {format_dim3(report.configuration.grid)}"
        yield f"block {format_dim3(report.configuration.block)}"
    if report.configuration.registers_per_thread is not None:
        yield f"{report.configuration.registers_per_thread} registers per thread"
    if report.device.name:
        yield report.device.name
    if report.device.compute_capability is not None:
        yield "compute capability {}.{}".format(*report.device.compute_capability)


def _list_origin(shown: VisibleKernel) -> Iterator[str]:
    yield shown.profile.path.name
    try:
        when = datetime.fromtimestamp(shown.kernel.measured_ns / 1e9, tz=UTC).astimezone()
    except (OverflowError, ValueError, OSError):  # a file can say any number
        return
    yield f"{'simulated' if shown.kernel.report.is_simulated else 'measured'} {when:%Y-%m-%d %H:%M}"
