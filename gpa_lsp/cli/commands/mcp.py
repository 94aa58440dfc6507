"""``gpa-lsp mcp``: answer agents over the Model Context Protocol."""

import argparse
from pathlib import Path

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.terminal import Terminal


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    del parser  # an agent's host starts it in the folder it works in


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.agents.server import serve

    del arguments, terminal  # standard output is the protocol's
    serve(Path.cwd())
    return 0


COMMAND = Command(
    summary="answer agents over standard input and output (Model Context Protocol)",
    description=(
        "Answer an agent's questions about the reports and sources below the current folder: kernels, advice, causes of a line, comparisons, "
        "predictions, SASS. Each answer has at most 2 KB and says how to ask for more."
    ),
    purpose=Purpose.USE,
    examples=(
        ("mcp", "speak the Model Context Protocol; agents start this"),
        ("mcp --color never", "the same without colour in messages"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
