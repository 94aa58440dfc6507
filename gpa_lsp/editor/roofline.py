"""What hovers and lenses say of a kernel's roofline: two lines and bars everywhere, a picture where the client draws it. Pure functions.

Modules that need numpy are loaded inside: the answer to initialize must not wait for them.
"""

from typing import TYPE_CHECKING

from gpa_lsp.editor.snapshot import VisibleKernel

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.analyses.roofline_model import KernelRoofline


def find_roofline(shown: VisibleKernel) -> "KernelRoofline | None":
    """Where a kernel stands; None where that is not known."""
    analyses = shown.kernel.report.analyses
    return None if analyses is None else analyses.roofline


def describe_known_roofs_of(shown: VisibleKernel, *, with_bars: bool) -> str:
    """How close a kernel is to its roofs, for the hover of one of its lines; empty also where only what is missing could be named."""
    from gpa_lsp.document.roofline_text import choose_roofline

    roofline, advice = find_roofline(shown), shown.kernel.report.advice
    line = None if roofline is None else choose_roofline(roofline)
    is_known = line.binding is not None if line is not None else bool(advice is not None and advice.units)
    return describe_roofs_of(shown, with_bars=with_bars) if is_known else ""


def describe_roof_briefly(shown: VisibleKernel) -> str:
    """How close a kernel is to its nearest roof, in one row of Markdown; empty where that is not known."""
    from gpa_lsp.document.markdown_text import write_sentence
    from gpa_lsp.document.roofline_text import choose_roofline, describe_roofline, describe_roofs

    roofline, advice = find_roofline(shown), shown.kernel.report.advice
    line = None if roofline is None else choose_roofline(roofline)
    if roofline is not None and line is not None and line.binding is not None:
        return f"**ceiling** {write_sentence(describe_roofline(roofline)[0])}"
    return f"**ceiling** {write_sentence(describe_roofs(advice))}" if advice is not None and advice.units else ""


def describe_roofs_of(shown: VisibleKernel, *, with_bars: bool = True) -> str:
    """How close a kernel is to its roofs, as Markdown; empty for one that was not measured, or not judged."""
    from gpa_lsp.document.roofline_text import describe_roofs

    report, roofline = shown.kernel.report, find_roofline(shown)
    if not report.launches:
        return ""
    if roofline is None:
        return "" if report.advice is None else describe_roofs(report.advice)
    return write_roofline(roofline, with_bars=with_bars)


def write_roofline(roofline: "KernelRoofline", *, with_bars: bool) -> str:
    """The two lines, then the bars, in Markdown."""
    from gpa_lsp.document.answer_view import build_bars
    from gpa_lsp.document.markdown import write_markdown
    from gpa_lsp.document.markdown_text import write_sentence
    from gpa_lsp.document.roofline_text import choose_roofline, describe_roofline, list_bars

    text = "**Roofline**: " + "  \n".join(write_sentence(text) for text in describe_roofline(roofline) if text)
    line = choose_roofline(roofline)
    bars = () if line is None or not with_bars else list_bars(line)
    return "\n".join((text, "", *write_markdown([build_bars(bars)]))) if bars else text


def draw_roofline_of(shown: VisibleKernel) -> str:
    """The roofline as a picture in Markdown; empty where there is nothing to draw."""
    from gpa_lsp.document.context_words import list_context_lines
    from gpa_lsp.document.markdown_text import embed_picture
    from gpa_lsp.document.roofline_picture import describe_roofline_picture, draw_roofline_picture

    roofline = find_roofline(shown)
    lines = [line for _, line in list_context_lines(shown.kernel.report)]
    picture = None if roofline is None else draw_roofline_picture(roofline, lines)
    if roofline is None or picture is None:
        return ""
    return embed_picture(picture, describe_roofline_picture(roofline))
