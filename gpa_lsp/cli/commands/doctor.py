"""``gpa-lsp doctor``: what is installed, and what each missing part would add."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.options import add_format_argument
from gpa_lsp.cli.outputs import write_answer
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.blocks import Block, Item, Items, Part, Table
from gpa_lsp.document.layout import Span, Style, flexible, left
from gpa_lsp.foundation.json_records import pick

if TYPE_CHECKING:
    from gpa_lsp.cli.installation import Component

_STATE_STYLES = {"found": Style.PLAIN, "missing": Style.WARNING, "broken": Style.ERROR}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_format_argument(parser, "json")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.cli.installation import inspect_installation, inspect_packages  # imports most of the package

    components, packages = inspect_installation(), inspect_packages()
    parts = (*components, *packages)
    write_answer(
        arguments,
        terminal,
        text=lambda: _build(components, packages),
        json=lambda: {"components": [pick(part, "name state detail adds install") for part in parts]},
    )
    return 0


def _build(components: "Sequence[Component]", packages: "Sequence[Component]") -> list[Block]:
    columns = (left(), left(), flexible("", 30))
    found = Table(columns=columns, rows=[_make_row(part, part.detail) for part in components])
    uses = Table(columns=columns, rows=[_make_row(part, part.adds) for part in packages])
    lacking = [
        Item(text=((f"{part.name}: ", Style.TITLE), (f"{part.adds}; {part.install}", Style.PLAIN)))
        for part in (*components, *packages)
        if part.state.value != "found"
    ]
    return [
        Part(title="Programs and libraries", blocks=[found]),
        Part(title="Packages, and what they are used for", blocks=[uses]),
        *([Part(title="What the missing parts would add", blocks=[Items(items=lacking)])] if lacking else []),
    ]


def _make_row(part: "Component", words: str) -> Sequence[Span]:
    """A row of the table; the state of an installed package is its version."""
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
