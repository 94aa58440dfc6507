"""``gpa-lsp doctor``: what is installed, and what each missing part would add."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.options import add_format_argument
from gpa_lsp.cli.outputs import write_answer
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.document.blocks import Block, Item, Items, Part, tabulate
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
    cells = max(len(part.name) for part in components)
    found = [
        Item(
            lead=(part.name.ljust(cells), Style.TITLE),
            text=((f"{part.state:<7}  ", _STATE_STYLES[part.state]), (part.detail, Style.PLAIN)),
        )
        for part in components
    ]
    uses = tabulate(
        packages,
        [
            (left(), lambda part: (part.name, Style.TITLE)),
            (left(), _show_version),
            (flexible("", 30), lambda part: part.adds),
        ],
    )
    lacking = [
        Item(text=((f"{part.name}: ", Style.TITLE), (f"{part.adds}. To add it: {part.install}", Style.PLAIN)))
        for part in (*components, *packages)
        if part.state != "found"
    ]
    return [
        Part(title="Programs and libraries", blocks=[Items(items=found)]),
        Part(title="Packages, and what they are used for", blocks=[uses]),
        *([Part(title="What the missing parts would add", blocks=[Items(items=lacking)])] if lacking else []),
    ]


def _show_version(part: "Component") -> Span:
    """The version of an installed package, else its state."""
    return part.detail if part.state == "found" else part.state, _STATE_STYLES[part.state]


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
