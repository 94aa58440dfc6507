"""Notices: messages about one source line each. Terminals, code-scanning services and pull requests show the same list."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from gpa_lsp.document.blocks import Item, Items, Paragraph, Part, make_line
from gpa_lsp.document.layout import Line, Style
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.foundation.errors import Problem, ProblemSeverity
from gpa_lsp.foundation.locations import Frame, write_place
from gpa_lsp.kernel.names import demangle, shorten_name
from gpa_lsp.report.model import KernelReport

_STYLES = {
    ProblemSeverity.ERROR: Style.ERROR,
    ProblemSeverity.WARNING: Style.WARNING,
    ProblemSeverity.NOTE: Style.NOTE,
}


class Rule(Struct, frozen=True, kw_only=True):
    """Kind of a notice."""

    name: str  # ``long_scoreboard``, ``static/local_array``
    text: str  # a sentence
    more: str = ""  # sentences that belong to it; may be empty
    help: str = ""  # sentences on what it means and what to do; may be empty
    level: ProblemSeverity = ProblemSeverity.NOTE  # of its notices, where they say nothing else
    tags: tuple[str, ...] = ("performance", "gpu")


# Another place that a notice is about: what it has to do with it, the line, and mangled name of the function; None where it is not said
Related = tuple[str, Frame, str | None]


class Notice(Struct, frozen=True, kw_only=True):
    """One message, and its line."""

    text: str | Line  # on one line
    level: ProblemSeverity = ProblemSeverity.NOTE
    title: str = "gpa-lsp"  # above the text, where there is room for one
    rule: Rule | None = None  # None for what hindered the work
    kernel: KernelReport | None = None  # whose sources tell where files are; None where they are named as they are here
    function: str = ""  # mangled name of the function the line is in; may be empty
    frame: Frame | None = None  # the line; None where none is known
    column: int | None = None  # 1-based; None where none is known
    path: Path | None = None  # of this machine, where no line is known
    name: str = ""  # to be read where no line is known; empty for the path
    identity: tuple[
        str, ...
    ] = ()  # what tells it from others whatever its line: scheme, kernel, function, file and so on
    rank: float | None = None  # importance, 0 to 100
    related: tuple[Related, ...] = ()
    properties: Mapping[str, Any] = {}  # for programs

    @property
    def plain_text(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in make_line(self.text))

    def show_file(self, places: PlaceNames) -> str:
        """Path of the file as people read it; empty where none is known."""
        if self.frame is None:
            return "" if self.path is None else places.show_path(self.path)
        if self.kernel is None:
            return places.show_path(Path(self.frame.file))
        return places.show_file(self.kernel, self.frame.file)

    def show_place(self, places: PlaceNames) -> str:
        """``file:line`` or ``file:line:column``; without a line the notice's name or file."""
        if self.frame is None:
            return self.name or self.show_file(places)
        place = write_place(self.show_file(places), self.frame.line)
        return f"{place}:{self.column}" if self.frame.line and self.column else place


def build_notices(notices: Sequence[Notice], places: PlaceNames) -> list[Paragraph]:
    """Notices as ``file:line: info: …``, the form that terminals and editors make clickable."""
    return [Paragraph(text=build_line(one, places)) for one in notices]


def build_line(notice: Notice, places: PlaceNames) -> Line:
    """One notice as a line."""
    word = "info" if notice.rule is not None and notice.level is ProblemSeverity.NOTE else notice.level.value
    place = notice.show_place(places)
    lead: Line = ((place, Style.PATH), (": ", Style.PLAIN)) if place else ()
    return (*lead, (f"{word}: ", _STYLES[notice.level]), *make_line(notice.text))


def list_problems(problems: Sequence[Problem]) -> list[Notice]:
    """Problems as notices."""
    return [Notice(text=describe_problem(one), level=one.severity, path=one.path) for one in problems]


def build_problems(problems: Sequence[Problem], places: PlaceNames) -> list[Part]:
    """A part with all problems for the end of a page; none without problems."""
    items = [Item(text=build_line(one, places)) for one in list_problems(problems)]
    return [Part(title="Problems", blocks=[Items(items=items)])] if items else []


def describe_problem(problem: Problem) -> str:
    """A problem without its file: place or kernel, message and remedy."""
    where = problem.place
    if problem.kernel is not None and problem.kernel not in (where or problem.message):
        where = ", ".join(part for part in (where, shorten_name(demangle(problem.kernel))) if part)
    text = f"{where}: {problem.message}" if where else problem.message
    return f"{text}; {problem.remedy}" if problem.remedy else text
