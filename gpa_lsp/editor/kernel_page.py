"""Words about a kernel: a line for its lens, which of its measurements is shown, rows for hovers, and a page with the details.

What is imported inside functions needs numpy, which the answer to initialize must not wait for.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpa_lsp.document.blocks import Block, Paragraph, Part
from gpa_lsp.document.layout import Line, Style, cut
from gpa_lsp.document.markdown import write_line, write_links, write_markdown
from gpa_lsp.document.time_course_words import format_moment_briefly
from gpa_lsp.editor.history import build_past, describe_change_briefly
from gpa_lsp.editor.snapshot import LoadedProfile, MeasuredKernel, VisibleKernel
from gpa_lsp.foundation.visible_text import shorten

if TYPE_CHECKING:
    from gpa_lsp.diagnosis.advice.model import Advice
    from gpa_lsp.diagnosis.analyses.model import KernelRoofline

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


MOST_LENS_CHARS = 90  # Of a lens: more would run out of the window beside the code's own width

_MOST_HOVER_LINES = 12  # what is taken in at a glance; links open the rest
_MOST_NAME_CELLS = 40
_LEAST_PARTS = 2
_MAX_LINES = 20


def head(word: str, text: str) -> Line:
    """A row that begins with what it is about; empty without a text."""
    return ((word, Style.TITLE), (" ", Style.PLAIN), (text, Style.PLAIN)) if text else ()


def write_hover(rows: Sequence[str | Line], links: str, last: Sequence[str | Line] = ()) -> str:
    """Rows as a hover: as many as it may have, and in any case the last ones and the links; empty rows are left out."""
    kept = [*(write_line(row) for row in last if row), *filter(None, [links])]
    return "  \n".join((*[write_line(row) for row in rows if row][: _MOST_HOVER_LINES - len(kept)], *kept))


def link_hover(shown: VisibleKernel, uri: str, line: int, *, is_sass: bool = False) -> str:
    """The row of links to what a hover of a line (1-based) leaves out; in the SASS itself there is none to the SASS."""
    place, mangled = (uri, line - 1), shown.kernel.report.mangled_name
    links: list[tuple[str, str, Sequence[object]]] = [("table", "gpaLsp.showLine", place)]
    links += [] if is_sass else [("SASS", "gpaLsp.openSass", place)]
    return write_links([*links, ("page", "gpaLsp.showPage", (mangled,)), ("history", "gpaLsp.showHistory", (mangled,))])


def describe_kernel_briefly(shown: VisibleKernel, room: int = MOST_LENS_CHARS, chosen: str = "") -> str:
    """One line for a lens: name, time, what changed, what limits it, what to do first. What comes last is left out first where there is no room.

    Args:
        room: characters at most.
    """
    from gpa_lsp.document.advice_words import NO_SASS

    brief = shown.kernel.brief
    change = describe_change_briefly(shown.kernel.history) or ""
    parts = (cut(shown.name, _MOST_NAME_CELLS), chosen, brief.time, change, brief.limit, brief.suggestion, brief.places)
    doubt = NO_SASS if shown.kernel.report.lacks_sass else ""
    said = list(dict.fromkeys(part for part in parts if part))
    while len(" · ".join([*said, *filter(None, [doubt])])) > room and len(said) > _LEAST_PARTS:
        said.pop()
    return shorten(" · ".join(said), room, doubt)


def describe_limit_of(shown: VisibleKernel) -> Line:
    """Row with the limiter of a kernel; empty where it is not known."""
    return head("limit", shown.kernel.brief.verdict)


def describe_first_of(shown: VisibleKernel) -> Line:
    """Row with the first suggestion; empty where there is none, or the limiter is not known."""
    return head("first", shown.kernel.brief.first)


def describe_verdict(shown: VisibleKernel) -> list[Line]:
    """Rows with the limiter, the first suggestion, and the verdicts in other calling contexts; none where the limiter is not known."""
    from gpa_lsp.document.context_words import describe_contexts

    limit = describe_limit_of(shown)
    contexts = describe_contexts(shown.kernel.report) if limit else ()
    return [row for row in (limit, describe_first_of(shown), *(head("in", one) for one in contexts)) if row]


def build_roofs(shown: VisibleKernel, *, needs_any: bool = False) -> list[Block]:
    """Build the distance of a kernel from its roofs; nothing for one that was not measured, or not judged.

    Args:
        needs_any: nothing where only what is missing could be named.
    """
    from gpa_lsp.document.roofline_text import describe_roofs

    report = shown.kernel.report
    roofline = None if report.analyses is None else report.analyses.roofline
    if not report.launches or (needs_any and not shown.kernel.brief.ceiling):
        return []
    if roofline is not None:
        return build_roofline(roofline)
    return [] if report.advice is None else [Paragraph(text=describe_roofs(report.advice))]


def build_roofline(roofline: "KernelRoofline") -> list[Block]:
    """Two sentences, then bars."""
    from gpa_lsp.document.answer_view import build_bars
    from gpa_lsp.document.roofline_text import choose_roofline, describe_roofline, list_bars

    nearest, place = describe_roofline(roofline)
    line = choose_roofline(roofline)
    blocks: list[Block] = [Paragraph(text=(("Roofline", Style.TITLE), (": ", Style.PLAIN), (nearest, Style.PLAIN)))]
    blocks += [Paragraph(text=place)] if place else []
    return [*blocks, build_bars(list_bars(line))] if line is not None else blocks


def build_pieces(shown: VisibleKernel, pieces: "Sequence[Advice]") -> list[Block]:
    """Pieces of a kernel's advice as every page has them. Paths are as compiled."""
    from gpa_lsp.document.advice_view import build_piece
    from gpa_lsp.document.places import PlaceNames

    return [build_piece(one, shown.kernel.advice, shown.kernel.report, PlaceNames()) for one in pieces]


def describe_kernel(shown: VisibleKernel) -> str:
    """A page about a kernel, Markdown. Paths are as compiled: what is opened from here is the report's page."""
    from gpa_lsp.document.kernel_view import build_heading, build_parts
    from gpa_lsp.document.places import PlaceNames

    report, places = shown.kernel.report, PlaceNames()
    parts = build_parts(report, places)
    texts: list[str | Line] = [
        describe_shown(shown),
        *describe_verdict(shown),
    ]
    pieces = build_pieces(shown, shown.kernel.advice)
    blocks = [
        *(Paragraph(text=text) for text in texts if text),
        *build_roofs(shown),
        *build_past(shown.kernel.history),
        *build_heading(report, shown.name, places).blocks,
        *([Part(title="Advice", blocks=pieces)] if pieces else []),
        *(part for part in parts if part.title != "Advice"),
    ]
    page = Part(title=shown.name, style=Style.TITLE, blocks=blocks)
    return "\n".join(write_markdown([page], level=1, max_rows=_MAX_LINES)) + "\n"
