"""``gpa-lsp doctor``: what is installed, and what each missing part would add."""

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.layout import Align, Column, Line, Span, Style, hang, lay_out_table, text_line

if TYPE_CHECKING:
    from gpa_lsp.cli.installation import Component

_STATE_STYLES = {"found": Style.PLAIN, "missing": Style.WARNING, "broken": Style.ERROR}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", choices=("text", "json"), default="text", help="how to print (default: text)")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.cli.installation import inspect_installation, inspect_packages  # imports most of the package

    components, packages = inspect_installation(), inspect_packages()
    if arguments.format == "json":
        rows = [
            {
                "name": part.name,
                "state": part.state.value,
                "detail": part.detail,
                "adds": part.adds,
                "install": part.install,
            }
            for part in (*components, *packages)
        ]
        terminal.print_safely(lambda: terminal.write_text(json.dumps({"components": rows}, indent=2) + "\n"))
    else:
        terminal.print_safely(lambda: terminal.write_lines(_render(components, packages, terminal.width)))
    return 0


def _render(components: "Sequence[Component]", packages: "Sequence[Component]", width: int | None) -> Iterator[Line]:
    columns = (
        Column(title=""),
        Column(title="", align=Align.LEFT),
        Column(title="", can_shrink=True, min_chars=30),
    )
    yield from lay_out_table(columns, [_make_row(part, part.detail) for part in components], width=width, indent=0)
    yield ()
    yield text_line("Packages, and what they are used for", Style.HEADING)
    yield from lay_out_table(columns, [_make_row(part, part.adds) for part in packages], width=width, indent=0)
    lacking = [part for part in (*components, *packages) if part.state.value != "found"]
    if not lacking:
        return
    yield ()
    yield text_line("What the missing parts would add", Style.HEADING)
    for part in lacking:
        yield from hang(((f"  {part.name}: ", Style.TITLE), (f"{part.adds}; {part.install}", Style.PLAIN)), width)


def _make_row(part: "Component", words: str) -> Sequence[Span]:
    """A row of the table; a package that is found shows its version as its state."""
    state = part.state.value
    shown = part.detail if words is part.adds and state == "found" else state
    return (part.name, Style.TITLE), (shown, _STATE_STYLES[state]), (words, Style.PLAIN)


COMMAND = Command(
    summary="list what is installed and what missing parts would add",
    description="List the programs and libraries that gpa-lsp finds, and what the missing ones would add.",
    purpose=Purpose.USE,
    examples=(
        ("doctor", "which tools and libraries are found"),
        ("doctor --format json", "the same, for a bug report"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
