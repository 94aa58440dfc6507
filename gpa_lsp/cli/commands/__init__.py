"""The subcommands of ``gpa-lsp``, one file each: the file's name is the command's, and ``predict_stalls`` is part ``stalls`` of ``predict``.

A member defines ``COMMAND``. Its module is imported when the command is named, and for the list of commands, so what takes time to
import belongs inside ``run``.
"""

import argparse
from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from gpa_lsp.cli.terminal import Terminal


class Purpose(Enum):
    """Purpose of a command; ``--help`` lists commands by it, in this order."""

    READ = "see what is slow, and what to change"
    MEASURE = "measure on a GPU"
    PREDICT = "predict without a GPU"
    COMPARE = "compare before and after"
    USE = "editors, agents and this installation"
    OTHER = "added by other packages"


class Command(Struct, frozen=True, kw_only=True):
    """One subcommand."""

    summary: str  # one line for the list of commands
    description: str  # what ``--help`` says above the options
    add_arguments: Callable[[argparse.ArgumentParser], None]  # declares options and arguments
    # does it; returns the exit code, as ``gpa_lsp.cli.inputs.EXIT_CODES`` says
    run: Callable[[argparse.Namespace, Terminal], int]
    purpose: Purpose = Purpose.OTHER  # the group of ``gpa-lsp --help`` it is listed in
    # what to type after ``gpa-lsp``, and what it is for; ``--help`` shows them below the options
    examples: tuple[tuple[str, str], ...] = ()
