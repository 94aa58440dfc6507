"""``gpa-lsp serve``: the language server."""

import argparse
import sys

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.options import declare
from gpa_lsp.cli.terminal import Terminal


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(parser, "--stdio  speak over standard input and output (the default)")


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.editor.protocol.start import serve  # brings the protocol's five hundred classes

    if sys.stdin is not None and sys.stdin.isatty():
        terminal.complain(
            "gpa-lsp: the language server reads the protocol (LSP) from standard input; configure an editor to start `gpa-lsp serve`. Ctrl-D ends it."
        )
    return serve()


COMMAND = Command(
    summary="run the language server, for editors",
    description="Speak the Language Server Protocol over standard input and output. Editors start this.",
    purpose=Purpose.USE,
    examples=(
        ("serve", "speak the Language Server Protocol; editors start this"),
        ("serve --stdio", "the same, for editors that pass --stdio"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
