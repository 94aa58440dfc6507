"""What the editor says about a kernel: a line for its lens, and a page for whoever wants more. Pure functions, Markdown."""

from typing import TYPE_CHECKING

from gpa_lsp.basis.numbers import (
    format_count,
    format_count_of,
    format_dim3,
    format_duration_ns,
    format_launches,
    format_percent,
)
from gpa_lsp.basis.visible_text import make_one_line
from gpa_lsp.editor.cause_table import describe_remedy, label_best_advice
from gpa_lsp.editor.history import describe_change_briefly, describe_past
from gpa_lsp.editor.roofline import describe_roofs_of, find_limiter
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import draw_reasons, draw_table, find_top_reason
from gpa_lsp.render.markdown_text import begin_paragraph

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

_MAX_LINES = 20


def describe_kernel_briefly(shown: VisibleKernel) -> str:
    """One line for a lens: name, time, what changed, what limits it, top reason, best advice."""
    report = shown.kernel.report
    parts = [shown.name]
    if report.duration_ns is not None:
        time = format_duration_ns(report.duration_ns)
        parts.append(time if report.launch_count == 1 else f"{time} (mean of {format_launches(report.launch_count)})")
    change = describe_change_briefly(shown.kernel.history)
    if change:
        parts.append(change)
    limiter = find_limiter(shown)
    if limiter is not None:
        parts.append(limiter)
    reason = find_top_reason(report.by_reason)
    if reason is not None:
        ratio = report.by_reason[reason].all_samples / report.total_samples
        parts.append(f"{format_percent(ratio)} {reason}")
    best = label_best_advice(shown.kernel.advice)
    if best:
        parts.append(best)
    if report.lacks_sass:
        from gpa_lsp.render.advice_words import NO_SASS

        parts.append(NO_SASS)
    return " · ".join(parts)


def describe_kernel(shown: VisibleKernel) -> str:
    """A page about a kernel."""
    report = shown.kernel.report
    parts = [
        f"# {make_one_line(shown.name)}",
        begin_paragraph(describe_kernel_briefly(shown)),
        make_one_line(_describe_launch(report)),
    ]
    parts.append(describe_roofs_of(shown))
    parts.append(describe_past(shown.kernel.history))
    parts.append(draw_reasons(report.by_reason, report.total_samples, "of kernel"))
    lines = [
        (
            f"{row.file}:{row.line}" if row.file else row.function,
            format_count(row.inclusive_samples),
            format_count(row.samples),
            find_top_reason(row.inclusive_by_reason) or "",
        )
        for row in report.lines[:_MAX_LINES]
    ]
    if lines:
        parts.extend(
            [
                "## Hottest lines",
                draw_table(("line", "with inlined code", "itself", "mostly"), lines, text_columns=(0, 3)),
            ]
        )
    if shown.kernel.advice:
        parts.append("## Advice")
        parts.extend(describe_remedy(advice) for advice in shown.kernel.advice)
    parts.append(_describe_answers(report))
    rules = [rule for launch in report.launches for rule in launch.rules if rule.kind in ("warning", "optimization")]
    if rules:
        parts.append("## What NVIDIA's rules said")
        parts.extend(dict.fromkeys(make_one_line(f"**{rule.rule}**: {rule.text}") for rule in rules))
    return "\n\n".join(part for part in parts if part) + "\n"


def _describe_answers(report: "KernelReport") -> str:
    """What the other analyses say. Paths are as compiled: what is opened from here is the report's page."""
    # These need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.render.answer_markdown import render_answers_markdown
    from gpa_lsp.render.places import PlaceNames

    return "\n".join(render_answers_markdown(report, PlaceNames(), heading="##", max_rows=_MAX_LINES)).strip()


def _describe_launch(report: "KernelReport") -> str:
    launch = report.configuration
    from gpa_lsp.render.sampling_words import describe_quiet, list_sampling_facts

    facts = list_sampling_facts(report) if report.total_samples else []
    if report.total_samples and report.latency_samples is None:
        facts = [describe_quiet(report), *facts]
    parts = [
        "; ".join([format_count_of(report.total_samples, "sample"), *facts]),
        f"grid {format_dim3(launch.grid)}",
        f"block {format_dim3(launch.block)}",
    ]
    if launch.registers_per_thread is not None:
        parts.append(f"{launch.registers_per_thread} registers per thread")
    if report.device.name:
        parts.append(report.device.name)
    return " · ".join(parts)
