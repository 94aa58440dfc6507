"""``gpa-lsp report``: everything that was found."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.inputs import add_input_arguments, choose_exit_code, load_report, name_places
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.report.model import Report


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input_arguments(parser)
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: text)")
    parser.add_argument("-o", "--output", metavar="FILE", type=Path, help="write to FILE instead of standard output")
    parser.add_argument("--top", metavar="N", type=_parse_count, help="text: no more than N rows per table")
    parser.add_argument(
        "--indent", metavar="N", type=_parse_count, help="json: spaces per level (default: one row per line)"
    )
    parser.add_argument(
        "--no-sources", action="store_true", help="json: leave out the source texts that the profile carries"
    )


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    report = load_report(arguments, terminal)
    if arguments.output is None:
        terminal.print_safely(lambda: _print(report, arguments, terminal))
    else:
        try:
            _write_file(report, arguments)
        except OSError as error:
            raise InputError(
                f"cannot be written: {error.strerror or error}", path=arguments.output, remedy="choose another file"
            ) from error
    return choose_exit_code(report)


def _print(report: "Report", arguments: argparse.Namespace, terminal: Terminal) -> None:
    if arguments.format == "json":
        from gpa_lsp.report.store import write_report  # each format loads its own renderer

        write_report(report, terminal.out, indent=arguments.indent, with_sources=not arguments.no_sources)
        return
    from gpa_lsp.render.text import render_report

    lines = render_report(report, name_places(arguments), terminal.width, max_rows=arguments.top)
    terminal.write_lines(lines)


def _write_file(report: "Report", arguments: argparse.Namespace) -> None:
    if arguments.format == "json":
        from gpa_lsp.report.store import write_report

        write_report(report, arguments.output, indent=arguments.indent, with_sources=not arguments.no_sources)
        return
    from gpa_lsp.render.layout import join_lines
    from gpa_lsp.render.text import render_report

    text = join_lines(render_report(report, name_places(arguments), max_rows=arguments.top))
    arguments.output.write_text(text, encoding="utf-8", errors="backslashreplace")


def _parse_count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


COMMAND = Command(
    summary="print everything: kernels, reasons, functions, lines, loops, launches",
    description="Print all that was found in profiles. The JSON form can be read back by every command, on any machine.",
    add_arguments=_add_arguments,
    run=_run,
)
