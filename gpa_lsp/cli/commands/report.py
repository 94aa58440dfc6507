"""``gpa-lsp report``: everything that was found."""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import choose_exit_code, load_before, load_report, locate_sources, name_places, tell_problems
from gpa_lsp.cli.options import (
    add_format_argument,
    add_input_arguments,
    add_limit_argument,
    add_mode_argument,
    add_output_argument,
    declare,
)
from gpa_lsp.cli.outputs import is_printed, write_answer, write_report_json
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.document.blocks import Block
    from gpa_lsp.report.history.model import TimeCourse
    from gpa_lsp.report.model import Report

_MOST_FILES = 1000  # Pages of one profile in one folder before a name has to be given


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser)
    page = "one page with everything, which opens from disk without a network; on a terminal without -o it is written to a new file here, named "
    add_format_argument(parser, "json", "html", page_help=f"{page}after the profile")
    add_output_argument(parser)
    declare(
        parser,
        """
        --before PATH  html: an earlier profile; the page shows how each kernel changed
        --history      html: add the time of each kernel over the runs that this user recorded; see gpa-lsp history
        """,
    )
    add_mode_argument(parser)
    add_limit_argument(parser, "text: at most N rows per table")
    declare(
        parser,
        """
        --details     text: everything about each kernel: reasons, functions, loops, launches, analyses (default: at most two screens)
        --indent N    json: spaces per level (default: one row per line)
        --expand
        --no-sources  json and html: leave out source texts
        """,
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    if arguments.format != "html" and (arguments.history or arguments.before is not None):
        raise InputError("--before and --history work with pages only", remedy="add --html, or use compare or history")
    report = load_report(arguments, terminal, mode=arguments.mode)
    before = load_before(arguments, terminal, mode=arguments.mode)
    if arguments.output is None and arguments.format == "html" and terminal.is_interactive:
        arguments.output = _choose_file(arguments.paths[0])
        terminal.complain(f"writing {arguments.output}")
    _write(report, before, arguments, terminal)
    if not is_printed(arguments.output):
        tell_problems(terminal, report, before)
    return choose_exit_code(report, before)


def _write(report: "Report", before: "Report | None", arguments: argparse.Namespace, terminal: Terminal) -> None:
    has_sources = not arguments.no_sources
    if arguments.format == "json":
        options = {"indent": arguments.indent, "with_sources": has_sources, "is_expanded": arguments.expand}
        write_report_json(report, arguments.output, terminal, **options)
        return

    def build() -> "list[Block]":
        from gpa_lsp.document.kernel_view import build_report_page

        return build_report_page(report, name_places(arguments), has_details=arguments.details)

    def draw() -> str:
        from gpa_lsp.document.html_report.page import render_html_report

        courses, locator = _find_courses(report) if arguments.history else None, locate_sources(arguments)
        return render_html_report(report, locator=locator, with_sources=has_sources, before=before, courses=courses)

    write_answer(arguments, terminal, text=build, html=draw, max_rows=arguments.limit)


def _find_courses(report: "Report") -> "Mapping[int, TimeCourse]":
    from gpa_lsp.report.history.past import find_courses  # a Python without SQLite still writes pages

    return find_courses(report.kernels)


def _choose_file(profile: Path) -> Path:
    """A free name in the current folder, after the profile's."""
    stem = profile.name.partition(".")[0] or "report"
    for number in range(1, _MOST_FILES):
        chosen = Path(f"{stem}.html" if number == 1 else f"{stem}-{number}.html")
        if not chosen.exists():
            return chosen
    raise InputError("too many pages of this profile here", remedy="give -o FILE")


COMMAND = Command(
    summary="print what limits each kernel, advice and its hottest lines, or with --details everything; or write a page",
    description=(
        "Print for each kernel what limits it, what to change, its hottest lines and what was left out: at most two screens. With --details, as "
        "JSON or as a page: all that was found. The JSON form can be read back by every command, on any machine; the page shows kernels, advice, "
        "rooflines, answers, source and SASS in a browser."
    ),
    purpose=Purpose.READ,
    examples=(
        ("report matmul.ncu-rep", "what limits each kernel, advice, hottest lines"),
        ("report matmul.ncu-rep --html -o matmul.html", "one page with everything, for a browser"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
