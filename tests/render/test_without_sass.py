"""Answers made without SASS say so in every view."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from lsprotocol import types
from msgspec.structs import replace

from gpa_lsp.document.advice_notices import list_advice_notices
from gpa_lsp.document.advice_view import build_advice
from gpa_lsp.document.advice_words import NO_SASS
from gpa_lsp.document.blame_words import describe_bounds
from gpa_lsp.document.check_view import build_check
from gpa_lsp.document.findings import find_findings, name_kernels
from gpa_lsp.document.html_report.page import build_groups
from gpa_lsp.document.kernel_view import build_report_page
from gpa_lsp.document.layout import Line, read_plain
from gpa_lsp.document.markdown import write_markdown
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.sarif import build_sarif, write_github
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.editor.kernel_page import describe_kernel, describe_kernel_briefly
from gpa_lsp.editor.protocol.features.marks import answer_hover
from gpa_lsp.report.model import FunctionRole, KernelReport, Report
from gpa_lsp.report.saved.store import read_report, write_report
from tests.editor.views import SOURCE, make_profile, make_snapshot, make_view
from tests.report_builder import build_kernel, build_report

LISTING = """
    saxpy.cu:4  S2R R0, SR_TID.X   ; selected=10
    saxpy.cu:5  LDG.E R2, [R4.64]  ; long_scoreboard=60/50
    saxpy.cu:7  EXIT               ; selected=1
"""
UNREAD = "\n".join(f"{line.split()[0]}  -  ; {line.split(';')[1]}" for line in LISTING.strip().splitlines())
ADVICE = "tail_effect parallel 1.44x\n    title: Fill the last wave"


def make_kernel(listing: str) -> KernelReport:
    """Advice that needs no instruction; blame that found nothing where there are none."""
    kernel = build_kernel(
        listing, blame="1 <- ? long_scoreboard=60" if listing is UNREAD else "1 <- 0 long_scoreboard", advice=ADVICE
    )
    texts = ("",) * 3 if listing is UNREAD else kernel.instructions.texts
    return replace(kernel, instructions=replace(kernel.instructions, texts=texts))


def join(lines: Iterable[Line]) -> str:
    return "\n".join(map(read_plain, lines))


def render_html_list(report: Report) -> str:
    (group,) = build_groups(report.kernels, name_kernels(report.kernels), {})
    (row,) = group.rows
    return row.advice


def render_sarif(report: Report) -> str:
    notices = list_advice_notices(report, PlaceNames())
    results = build_sarif(notices, PlaceNames(), Path("/project"))["runs"][0]["results"]
    assert len(results) == 1
    return json.dumps(results)


def render_lens(report: Report) -> str:
    (shown,) = make_snapshot(make_profile(*report.kernels)).visible
    lens, page = describe_kernel_briefly(shown), describe_kernel(shown)
    assert (NO_SASS in lens) == (NO_SASS in page)
    return lens


def render_hover(report: Report) -> str:
    view = make_view(make_profile(*report.kernels), SOURCE)
    params = types.HoverParams(types.TextDocumentIdentifier("file:///project/saxpy.cu"), types.Position(4, 3))
    return answer_hover(view, params).contents.value


RENDERERS: dict[str, Callable[[Report], str]] = {
    "advise": lambda report: join(
        write_terminal(build_advice(report, PlaceNames(), max_kernels=None, max_advice=None))
    ),
    "advise, of several kernels": lambda report: join(
        write_terminal(build_advice(build_report(*report.kernels * 2), PlaceNames(), max_kernels=None, max_advice=None))
    ).partition("\n\n")[0],
    "markdown": lambda report: "\n".join(
        write_markdown(build_advice(report, PlaceNames(), max_kernels=None, max_advice=None))
    ),
    "sarif": render_sarif,
    "github": lambda report: write_github(list_advice_notices(report, PlaceNames()), PlaceNames()),
    "check": lambda report: join(
        write_terminal(build_check(report, find_findings(report), PlaceNames(), 0.05), indent=0)
    ),
    "report": lambda report: join(write_terminal(build_report_page(report, PlaceNames()), indent=0)),
    "page": render_html_list,
    "lens": render_lens,
    "hover": render_hover,
}


@pytest.mark.parametrize("name", RENDERERS)
def test_it_is_marked(name: str) -> None:
    assert NO_SASS in RENDERERS[name](build_report(make_kernel(UNREAD)))
    assert NO_SASS not in RENDERERS[name](build_report(make_kernel(LISTING)))


def test_the_mark_stands_beside_the_estimate() -> None:
    text = RENDERERS["check"](build_report(make_kernel(UNREAD)))
    mark = "its SASS was not read, so better advice may be missing"
    assert f"first suggestion for kernel: Fill the last wave (1.39–1.49×); {mark}\n" in text
    assert RENDERERS["lens"](build_report(make_kernel(UNREAD))).endswith(
        "Fill the last wave 1.39–1.49× · its SASS was not read"
    )


def test_stalls_whose_causes_are_unknown_are_stalls() -> None:
    assert describe_bounds(make_kernel(UNREAD)) == "mostly long_scoreboard 85 %"
    assert describe_bounds(make_kernel(LISTING)).startswith("stalled on ")


def test_the_drivers_own_code_has_no_sass_and_needs_none() -> None:
    kernel = make_kernel(LISTING)
    columns = kernel.instructions
    (function,) = kernel.functions
    foreign = replace(
        kernel,
        instructions=replace(columns, texts=("", "", "")),
        functions=(replace(function, role=FunctionRole.OUTSIDE_MODULE),),
    )
    assert not foreign.lacks_sass


@pytest.mark.parametrize("listing", [LISTING, UNREAD])
def test_a_saved_report_says_it_as_well(listing: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_report(build_report(make_kernel(listing)), path)
    (kernel,) = read_report(path).kernels
    assert kernel.lacks_sass == (listing is UNREAD)
