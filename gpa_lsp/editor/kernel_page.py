"""What the editor says about a kernel: a line for its lens, and a page for whoever wants more. Pure functions, Markdown."""

from collections.abc import Sequence

from gpa_lsp.document.markdown_text import begin_paragraph, write_links
from gpa_lsp.editor.cause_table import describe_remedy
from gpa_lsp.editor.history import describe_change_briefly, describe_past
from gpa_lsp.editor.measurements import describe_shown
from gpa_lsp.editor.roofline import describe_roofs_of
from gpa_lsp.editor.snapshot import VisibleKernel
from gpa_lsp.foundation.visible_text import make_one_line, shorten

MOST_LENS_CHARS = 90  # Of a lens: more would run out of the window beside the code's own width

_MOST_HOVER_LINES = 12  # what is taken in at a glance; links open the rest
_MOST_PAGE_CHARS = 1000
_MOST_NAME_CELLS = 40
_LEAST_PARTS = 2
_MAX_LINES = 20
_MOST_PLACES = 8


def write_hover(rows: Sequence[str], last: Sequence[str]) -> str:
    """Rows of Markdown as a hover: as many as it may have, and in any case the last ones; empty rows are left out."""
    kept = [row for row in last if row]
    return "  \n".join((*[row for row in rows if row][: _MOST_HOVER_LINES - len(kept)], *kept))


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
    """A page about a kernel. Paths are as compiled: what is opened from here is the report's page."""
    # These need numpy, which the answer to initialize must not wait for.
    from gpa_lsp.document.kernel_view import build_heading, build_parts
    from gpa_lsp.document.markdown import write_markdown
    from gpa_lsp.document.places import PlaceNames

    report, places = shown.kernel.report, PlaceNames()
    parts = build_parts(report, places)
    advice = [describe_remedy(one) for one in shown.kernel.advice]
    written = [
        f"# {make_one_line(shown.name)}",
        begin_paragraph(describe_kernel_briefly(shown, _MOST_PAGE_CHARS)),
        make_one_line(describe_shown(shown)),
        describe_verdict(shown),
        describe_roofs_of(shown),
        describe_past(shown.kernel.history),
        "\n".join(write_markdown(build_heading(report, shown.name, places).blocks)),
        *(("## Advice", *advice) if advice else ()),
        "\n".join(write_markdown([part for part in parts if part.title != "Advice"], max_rows=_MAX_LINES)),
    ]
    return "\n\n".join(part for part in written if part) + "\n"


def describe_places(shown: VisibleKernel) -> str:
    """Where a kernel was launched from, Markdown: a list of calling contexts; empty where none is known."""
    from gpa_lsp.document.kernel_view import build_launch_places
    from gpa_lsp.document.markdown import write_markdown

    places = build_launch_places(shown.kernel.report)
    listed = write_markdown(places.blocks, max_rows=_MOST_PLACES)
    return "\n".join(("**launched from**", "", *listed)) if places.blocks else ""
