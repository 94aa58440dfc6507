"""The subcommands of ``gpa-lsp``, one file each: the file's name is the command's.

A member defines ``COMMAND``. Its module is imported when the command is named, and for the list of commands, so what takes time to
import belongs inside ``run``.
"""

import argparse
from collections.abc import Callable

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.cli.terminal import Terminal


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One subcommand.

    Attributes:
        summary: one line for the list of commands.
        description: what ``--help`` says above the options.
        add_arguments: declares options and arguments.
        run: does it; returns the exit code (0 done, 1 findings with ``--fail-on``, 2 bad input).
    """

    summary: str
    description: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace, Terminal], int]
