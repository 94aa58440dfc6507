"""What the editor says about a kernel: a line for its lens, and a page for whoever wants more. Pure functions, Markdown."""

from typing import TYPE_CHECKING

from gpa_lsp.document.markdown_text import begin_paragraph
from gpa_lsp.editor.cause_table import describe_remedy
from gpa_lsp.editor.history import describe_change_briefly, describe_past
from gpa_lsp.editor.measurements import describe_shown
from gpa_lsp.editor.roofline import describe_roofs_of
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.editor.stall_table import draw_reasons, draw_table, find_top_reason
from gpa_lsp.foundation.numbers import format_count, format_count_of, format_dim3
from gpa_lsp.foundation.visible_text import make_one_line, shorten

if TYPE_CHECKING:
    from gpa_lsp.report.model import KernelReport

MOST_LENS_CHARS = 90  # Of a lens: more would run out of the window beside the code's own width

_MOST_PAGE_CHARS = 1000
_MOST_NAME_CELLS = 40
_LEAST_PARTS = 2
_MAX_LINES = 20
_MOST_PLACES = 8


def describe_kernel_briefly(shown: VisibleKernel, room: int = MOST_LENS_CHARS, chosen: str = "") -> str:
    """One line for a lens: name, time, what changed, what limits it, what to do first. What comes last is left out first where there is no room.

    Args:
        room: characters at most.
    """
    # It needs numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.advice_words import NO_SASS
    from gpa_lsp.document.layout import cut

    brief = shown.kernel.brief
    change = describe_change_briefly(shown.kernel.history) or ""
    parts = (cut(shown.name, _MOST_NAME_CELLS), chosen, brief.time, change, brief.limit, brief.suggestion, brief.places)
    doubt = NO_SASS if shown.kernel.report.lacks_sass else ""
    said = list(dict.fromkeys(part for part in parts if part))
    while len(" · ".join([*said, *filter(None, [doubt])])) > room and len(said) > _LEAST_PARTS:
        said.pop()
    return shorten(" · ".join(said), room, doubt)


def describe_limit_of(shown: VisibleKernel) -> str:
    """What limits a kernel, in a row of Markdown; empty where that is not known."""
    from gpa_lsp.document.advice_words import describe_limit
    from gpa_lsp.document.markdown_text import write_sentence

    report = shown.kernel.report
    return "" if report.limiter is None else f"**limit** {write_sentence(describe_limit(report))}"


def describe_first_of(shown: VisibleKernel) -> str:
    """What to do first, in a row of Markdown; empty where nothing is suggested, or the limit is not known."""
    from gpa_lsp.document.advice_words import describe_gain, describe_suggestion, find_first_suggestion
    from gpa_lsp.document.markdown_text import write_sentence

    report = shown.kernel.report
    first = None if report.limiter is None else find_first_suggestion(report)
    if first is None:
        return ""
    gain = describe_gain(first)
    return f"**first** {f'{gain} ' if gain else ''}{write_sentence(describe_suggestion(first))}"


def describe_verdict(shown: VisibleKernel) -> str:
    """What limits a kernel, what to do first, and where it was launched in other contexts, a row each; empty where the limit is not known."""
    from gpa_lsp.document.context_words import describe_contexts
    from gpa_lsp.document.markdown_text import write_sentence

    limit = describe_limit_of(shown)
    contexts = describe_contexts(shown.kernel.report) if limit else ()
    rows = (limit, describe_first_of(shown), *(f"**in** {write_sentence(one)}" for one in contexts))
    return "  \n".join(filter(None, rows))


def describe_kernel(shown: VisibleKernel) -> str:
    """A page about a kernel."""
    report = shown.kernel.report
    parts = [
        f"# {make_one_line(shown.name)}",
        begin_paragraph(describe_kernel_briefly(shown, _MOST_PAGE_CHARS)),
        make_one_line(_describe_launch(report)),
        make_one_line(describe_shown(shown)),
        describe_verdict(shown),
    ]
    parts.append(describe_roofs_of(shown))
    parts.append(describe_past(shown.kernel.history))
    parts.append(describe_places(shown, heading="## Launched from"))
    parts.append(_draw_contexts(report))
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


def _draw_contexts(report: "KernelReport") -> str:
    """The launch contexts, Markdown; empty where there is one."""
    from gpa_lsp.document.context_words import build_context_table
    from gpa_lsp.document.places import PlaceNames

    table = build_context_table(report, PlaceNames())
    if not table.rows:
        return ""
    rows = [[make_one_line(text) for text, _ in row] for row in table.rows]
    return f"## {table.title}\n\n{draw_table([one.title for one in table.columns], rows, text_columns=(3, 4, 5))}"


def describe_places(shown: VisibleKernel, heading: str = "") -> str:
    """Where a kernel was launched from, Markdown: a list of calling contexts; empty where none is known."""
    from gpa_lsp.document.launch_place_words import describe_place_time, describe_stack
    from gpa_lsp.report.launch_places import list_launch_places

    places = list_launch_places(shown.kernel.report)
    if not places:
        return ""
    rows = []
    for place in places[:_MOST_PLACES]:
        time = describe_place_time(place) if len(places) > 1 else ""
        rows.append(f"- {make_one_line(': '.join(part for part in (time, describe_stack(place)) if part))}")
    if len(places) > _MOST_PLACES:
        rows.append(f"- and {format_count_of(len(places) - _MOST_PLACES, 'place')} more")
    return "\n".join([*([heading, ""] if heading else ["**launched from**", ""]), *rows])


def _describe_answers(report: "KernelReport") -> str:
    """What the other analyses say. Paths are as compiled: what is opened from here is the report's page."""
    # These need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.answer_view import build_answers
    from gpa_lsp.document.markdown import write_markdown
    from gpa_lsp.document.places import PlaceNames

    return "\n".join(write_markdown(build_answers(report, PlaceNames()), max_rows=_MAX_LINES))


def _describe_launch(report: "KernelReport") -> str:
    launch = report.configuration
    from gpa_lsp.document.context_words import name_shape
    from gpa_lsp.document.sampling_words import describe_quiet, list_sampling_facts

    facts = list_sampling_facts(report) if report.total_samples else []
    if report.total_samples and report.latency_samples is None:
        facts = [describe_quiet(report), *facts]
    parts = [
        "; ".join([format_count_of(report.total_samples, "sample"), *facts]),
        f"grid {format_dim3(launch.grid)}",
        " ".join(filter(None, (f"block {format_dim3(launch.block)}", name_shape(report)))),
    ]
    if launch.registers_per_thread is not None:
        parts.append(f"{launch.registers_per_thread} registers per thread")
    if report.device.name:
        parts.append(report.device.name)
    return " · ".join(parts)
