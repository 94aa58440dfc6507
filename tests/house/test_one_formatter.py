"""Numbers that people read are written in one place, and a fact reads the same wherever it stands."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.model import UNPRICED
from gpa_lsp.document.advice_notices import list_advice_notices
from gpa_lsp.document.advice_view import build_advice, build_piece, describe_run
from gpa_lsp.document.check_view import list_notices
from gpa_lsp.document.findings import find_findings, name_kernels
from gpa_lsp.document.html_report.code_columns import KernelAddresses, SourceTexts, TextPool
from gpa_lsp.document.html_report.kernel_section import build_sources
from gpa_lsp.document.html_report.page import build_groups
from gpa_lsp.document.kernel_view import build_report_page
from gpa_lsp.document.layout import read_plain
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.page.writer import PageWriter
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import build_sarif, write_github
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.report.model import KernelReport, Report
from gpa_lsp.report.pipeline import analyse
from tests.conftest import ROOT
from tests.editor.views import make_profile
from tests.real_reports import REPORTS, analyse_report
from tests.render.html_report.page_examples import make_page_example

PACKAGE = ROOT / "gpa_lsp"

ROOMS = tuple(sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
"""All are held to it."""

FORMATTER = "foundation/numbers.py"

READ_BY_NOBODY = {
    "editor/sass/hover.py": "a constant rounded to single precision, which is then written as Python writes it",
    "diagnosis/rewrites/kinds/single_precision_literals.py": "a literal of a source",
    "document/charts/chart_frame.py": "the values of ticks, which a chart draws by",
    "document/charts/roofline_rows.py": "the coordinates of points, which a chart draws by",
}
"""Numbers that are written, but not by the rules for what people read."""

AXES = "document/charts/chart_frame.py"
"""Alone says how a chart itself writes the numbers beside its axes."""

CHART_LIBRARIES = PACKAGE / "document" / "charts" / "assets" / "vega.js"  # not ours
SCRIPT_FORMATTER = "page.js"
"""Its ``formatCount`` alone writes numbers in the scripts of pages."""

NUMERIC = re.compile(r"(?:[^{}]?[<>=^])?[-+ ]?#?0?\d*(?:[,_](?:\.\d+)?[a-zA-Z%]?|(?:\.\d+)?[eEfFgGn%])")
"""A format of numbers: separators, decimals or percent. Widths, hexadecimal numbers and dates are none."""

VEGA_FORMAT = re.compile(r"\bformat\([^)]*datum|^[.,\d]*~[rs%]$|^[.,]\d[rs%]$")
"""In an expression of a chart, or as the format of an axis or a tooltip."""

OLD_STYLE = re.compile(r"%[-+ 0]*\d*(?:\.\d+)?[eEfFgG](?![a-zA-Z])")
IN_BRACES = re.compile(r"\{[^{}:]*:([^{}]*)\}")


def list_modules(rooms: tuple[str, ...] = ROOMS) -> Iterator[tuple[str, ast.Module]]:
    for room in rooms:
        for path in sorted((PACKAGE / room).rglob("*.py")):
            yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def read_format(value: ast.FormattedValue) -> str:
    """The format of a value in an f-string; what is computed in it stands as a digit."""
    if not isinstance(value.format_spec, ast.JoinedStr):
        return ""
    parts = value.format_spec.values
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "0" for part in parts)


def calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def writes_number(node: ast.AST) -> bool:
    """A number is made text by hand: in an f-string, by ``format`` or ``%``, or rounded into a text."""
    if isinstance(node, ast.FormattedValue):
        return bool(NUMERIC.fullmatch(read_format(node))) or calls(node.value, "round")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        return bool(OLD_STYLE.search(str(node.left.value)))
    if not isinstance(node, ast.Call):
        return False
    if (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "format"
        and isinstance(node.func.value, ast.Constant)
    ):
        return any(map(NUMERIC.fullmatch, IN_BRACES.findall(str(node.func.value.value))))
    return (calls(node, "format") and len(node.args) == 2) or (
        calls(node, "str") and bool(node.args) and calls(node.args[0], "round")
    )


def find_inline_formats(tree: ast.Module) -> Iterator[int]:
    """The lines on which that is done."""
    return (node.lineno for node in ast.walk(tree) if writes_number(node))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "text",
    ["f'{x:.2f}'", "f'{x:,}'", "f'{x:,.0f}'", "f'{x:>7.1f}'", "f'{x:.{n}f}'", "f'{x:g}'", "f'{x:.1%}'", "f'{round(x)}'",
     "format(x, '.2f')", "str(round(x, 1))", "'{:.1f} ms'.format(x)", "'%.3g' % x"],
)  # fmt: skip
def test_what_is_looked_for_is_found(text: str) -> None:
    assert len(list(find_inline_formats(ast.parse(text)))) == 1


@pytest.mark.parametrize(
    "text",
    ["f'{x}'", "f'{x:>7}'", "f'{x:#06x}'", "f'{x:{n}}'", "f'{x:%Y-%m-%d}'", "f'{x!r}'", "'{}.{}'.format(*x)", "5 % x"],
)
def test_what_is_no_format_of_numbers_is_not_found(text: str) -> None:
    assert list(find_inline_formats(ast.parse(text))) == []


def test_no_number_is_formatted_elsewhere() -> None:
    found = {name: sorted(lines) for name, tree in list_modules() if (lines := set(find_inline_formats(tree)))}
    assert found.pop(FORMATTER)
    assert {name: lines for name, lines in found.items() if name not in READ_BY_NOBODY} == {}
    assert found.keys() == READ_BY_NOBODY.keys()  # an exception that is none any more goes


def test_charts_write_numbers_beside_their_axes_only() -> None:
    """Tooltips get texts that are already written: a chart's own formats know none of our rules."""
    found = {
        name
        for name, tree in list_modules(("document",))
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VEGA_FORMAT.search(node.value)
    }
    assert found == {AXES}


def test_scripts_write_numbers_in_one_function() -> None:
    formats = re.compile(r"toFixed|toPrecision|toLocaleString|toExponential|\bIntl\b|Math\.round|\\d\{3\}")
    plural = re.compile(r"\? *\"(?:e?s)?\" *:|=== 1 \? ")
    found = defaultdict(list)
    for path in sorted({*(PACKAGE / "document").rglob("*.js")} - {CHART_LIBRARIES}):
        for line in path.read_text(encoding="utf-8").splitlines():
            if formats.search(line) or plural.search(line):
                found[path.name].append(line.strip())
    assert list(found) == [SCRIPT_FORMATTER]
    assert len(found[SCRIPT_FORMATTER]) == 2, found[SCRIPT_FORMATTER]


def test_templates_write_no_number() -> None:
    formats = re.compile(r"\|\s*(?:round|format|filesizeformat)\b|\|\s*length\s*(?:\}\}|\)\s*\}\})|'%|\"%")
    for path in sorted((PACKAGE / "document").rglob("*.jinja")):
        assert formats.findall(path.read_text(encoding="utf-8")) == [], path.name


# --- A fact reads the same everywhere. ---

Fact = tuple[str, str, str]
"""Kernel with its number, place (empty for the whole kernel) and what of it is said."""

SHARE = r"[<>]?[\d,.]+ %"
GAIN = re.compile(r" (?:\(gain )?(likely|unknown|[\d.,–]+×)(?:\)|, up to \S+)? in ")
PLACE = re.compile(r"(\S+:\d+)(?:\s|$)")


class Said:
    """Words of each view for each fact."""

    def __init__(self) -> None:
        self.words: dict[Fact, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))

    def add(self, view: str, kernel: str, place: str, what: str, words: str) -> None:
        self.words[kernel, place, what][view].add(words)

    def list_contradictions(self) -> dict[Fact, dict[str, set[str]]]:
        return {
            fact: dict(views)
            for fact, views in self.words.items()
            if len({one for words in views.values() for one in words}) > 1
        }

    def count_compared(self, what: str) -> int:
        """Facts of a kind that several views tell."""
        return sum(len(views) > 1 for fact, views in self.words.items() if fact[2] == what)


def cut_margin(share: str) -> str:
    found = re.match(SHARE, share.lstrip())
    assert found, share
    return found.group()


def listen_to_text(said: Said, kernel: KernelReport, name: str) -> None:
    """The table of source lines of ``gpa-lsp report``, and the head and the advice of ``gpa-lsp advise``."""
    report = Report(problems=(), kernels=(kernel,))
    lines = [read_plain(line) for line in write_terminal(build_report_page(report, PlaceNames()), indent=0)]
    if "Source lines" in lines:
        start = lines.index("Source lines") + 2
        rows = lines[start : lines.index("", start)] if "" in lines[start:] else lines[start:]
        for text in rows:
            place = PLACE.search(text)
            if place:
                said.add("text", name, place.group(1), "share", cut_margin(text))
    shown = [
        read_plain(line)
        for line in write_terminal(build_advice(report, PlaceNames(), max_kernels=None, max_advice=None), indent=0)
    ]
    for advice in kernel.advice.advice if kernel.advice is not None else ():
        (head,) = {
            line
            for line in shown
            if line.endswith(f"  {advice.optimizer}") and re.match(r"  (?:[\d.,–]+×|likely(?:, up to \S+)?|–) ", line)
        }
        said.add("text", name, "", f"estimate of {advice.optimizer}", head.split()[0].rstrip(","))
    if kernel.total_duration_ns:
        time = next(fact for fact in describe_run(kernel) if " in " in fact)
        said.add("text", name, "", "time", time.partition(" in ")[0])


def listen_to_markdown(said: Said, kernel: KernelReport, name: str) -> None:
    """The comment for a pull request, and the hover and the hint of each line."""
    from gpa_lsp.editor.line_words import describe_share, describe_taken
    from gpa_lsp.editor.lines.index import HotLine
    from gpa_lsp.editor.snapshot import VisibleKernel

    report = Report(problems=(), kernels=(kernel,))
    for row in write_markdown(build_advice(report, PlaceNames(), max_kernels=None, max_advice=None), folds=True):
        found = re.match(r"<details><summary><b>(\S+?)(?:, up to [^<]*)?</b> .* (\w+)</summary>", row)
        if found:
            said.add("markdown", name, "", f"estimate of {found.group(2)}", found.group(1).rstrip(","))
    rows = [row for row in kernel.lines if row.file is not None and row.line and row.inclusive_samples][:40]
    profile = make_profile(kernel, texts=dict.fromkeys({row.file for row in rows if row.file is not None}))
    shown = VisibleKernel(name=name, profile=profile, kernel=profile.kernels[0])
    for row in rows:
        assert row.file is not None
        file, place = profile.files[row.file], (row.file, row.line or 0)
        hot = HotLine(shown=shown, row=row, file=file, place=place, share_ratio=1.0)
        said.add("hover", name, f"{row.file}:{row.line}", "share", cut_margin(describe_share([hot])[0][0]))
        said.add("hint", name, f"{row.file}:{row.line}", "share", cut_margin(describe_taken(hot)))


def listen_to_page(said: Said, kernel: KernelReport, name: str) -> None:
    """The data of the page."""
    pool, addresses, texts = TextPool(), KernelAddresses(kernel=0), SourceTexts(None, is_wanted=False)
    for file in build_sources(kernel, addresses, pool, texts):
        for line, share in zip(file["line"], file["shares"], strict=True):
            if share:
                said.add("page", name, f"{file['path']}:{line}", "share", cut_margin(pool.texts[share]))
    every = () if kernel.advice is None else kernel.advice.advice
    for one in every:
        written = PageWriter().write([build_piece(one, every, kernel, PlaceNames())])
        found = re.search(r'<span class="estimate">(\S+)[^<]*</span>', written)
        assert found is not None
        said.add("page", name, "", f"estimate of {one.optimizer}", found.group(1).rstrip(","))
    (row,) = build_groups([kernel], name_kernels([kernel]), {})[0].rows
    if kernel.total_duration_ns:
        said.add("page", name, "", "time", row.time)


def listen_to_notes(said: Said, kernel: KernelReport, name: str) -> None:
    """SARIF and the annotations of GitHub."""
    report, places = Report(problems=(), kernels=(kernel,)), PlaceNames()
    notices = {
        "share": list_notices(report, find_findings(report)),
        "estimate": list_advice_notices(report, places),
    }
    for what, every in notices.items():
        results = build_sarif(every, places, Path("/"))["runs"][0]["results"]
        commands = write_github(every, places).splitlines()
        for notice, result, command in zip(every, results, commands, strict=True):
            for view, text in (("sarif", result["message"]["text"]), ("github", command.split("::", 2)[2])):
                if what == "estimate":
                    if result["ruleId"] not in UNPRICED:
                        gain = GAIN.search(text)
                        assert gain is not None, text
                        said.add(view, name, "", f"estimate of {result['ruleId']}", gain[1])
                elif "called here (estimate)" in text:  # the samples of a library's line, which other views add to it
                    continue
                elif notice.frame is not None and not result["ruleId"].startswith("static/"):
                    said.add(view, name, str(notice.frame.source_line), "share", cut_margin(text.replace("%25", "%")))


def listen(report: Report) -> Said:
    said = Said()
    for number, kernel in enumerate(report.kernels):
        for one in (listen_to_text, listen_to_markdown, listen_to_page, listen_to_notes):
            one(said, kernel, f"{number} {kernel.mangled_name}")
    return said


def test_bundled_reports_say_every_fact_in_one_way() -> None:
    for report in (make_page_example(), analyse([ROOT / "fixtures" / "example.gpa-profile.json"])):
        said = listen(report)
        assert said.list_contradictions() == {}
        assert said.count_compared("share") >= 3
        assert said.count_compared("time") >= 1


def test_every_view_is_heard() -> None:
    views = {view for told in listen(make_page_example()).words.values() for view in told}
    assert views == {"text", "markdown", "hover", "hint", "page", "sarif", "github"}


@pytest.mark.corpus
@pytest.mark.parametrize("name", REPORTS)
def test_real_reports_say_every_fact_in_one_way(name: str) -> None:
    said = listen(analyse_report(name))
    assert said.list_contradictions() == {}
