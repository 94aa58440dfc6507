"""``gpa-lsp doctor``: what is installed, and what each missing part would add."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.render.layout import Align, Column, Line, Span, Style, hang, lay_out_table, text_line

if TYPE_CHECKING:
    from gpa_lsp.cli.installation import Component

_STATE_STYLES = {"found": Style.PLAIN, "missing": Style.WARNING, "broken": Style.ERROR}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: text)")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.cli.installation import inspect_installation  # knows every part there is, and so imports a good deal

    components = inspect_installation()
    if arguments.format == "json":
        rows = [
            {
                "name": part.name,
                "state": part.state.value,
                "detail": part.detail,
                "adds": part.adds,
                "install": part.install,
            }
            for part in components
        ]
        terminal.print_safely(lambda: terminal.write_text(json.dumps({"components": rows}, indent=2) + "\n"))
    else:
        terminal.print_safely(lambda: terminal.write_lines(_render(components, terminal.width)))
    return 0


def _render(components: "Sequence[Component]", width: int | None) -> Iterator[Line]:
    columns = (
        Column(title=""),
        Column(title="", align=Align.LEFT),
        Column(title="", can_shrink=True, min_chars=30),
    )
    rows: list[Sequence[Span]] = [
        ((part.name, Style.TITLE), (part.state.value, _STATE_STYLES[part.state.value]), (part.detail, Style.PLAIN))
        for part in components
    ]
    yield from lay_out_table(columns, rows, width=width, indent=0)
    lacking = [part for part in components if part.state.value != "found"]
    if not lacking:
        return
    yield ()
    yield text_line("What the missing parts would add", Style.HEADING)
    for part in lacking:
        yield from hang(((f"  {part.name}: ", Style.TITLE), (f"{part.adds}; {part.install}", Style.PLAIN)), width)


COMMAND = Command(
    summary="list what is installed and what missing parts would add",
    description="List the programs and libraries that gpa-lsp finds, and what the missing ones would add.",
    add_arguments=_add_arguments,
    run=_run,
)
