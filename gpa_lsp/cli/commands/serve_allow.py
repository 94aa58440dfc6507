"""``gpa-lsp serve allow``: confirm the command that an editor measures with, for editors that cannot ask."""

import argparse
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING

from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.options import declare
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.errors import InputError

if TYPE_CHECKING:
    from gpa_lsp.profile.collect.allowance import Allowance, Allowed


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    declare(
        parser,
        """
        --workspace DIR  the folder it may run in (default: the current one)
        --build LINE     the command that builds, as in gpaLsp.profile.buildCommand
        --list           list the allowed commands of all workspaces
        --forget N       revoke number N of the list
        """,
        workspace=Path(),
    )
    what = "the command as in gpaLsp.profile.command, with its variables (quote them: '${output}')"
    parser.add_argument("command_words", metavar="-- COMMAND", nargs=argparse.REMAINDER, help=what)


def _run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    from gpa_lsp.profile.collect.allowance import Allowance  # brings hashing and JSON, which --help does without

    allowance = Allowance()
    words = arguments.command_words
    words = words[1:] if words[:1] == ["--"] else words
    if arguments.forget is not None:
        _forget(allowance, arguments.forget, terminal)
    elif arguments.list:
        terminal.print_safely(lambda: _list(allowance, terminal))
    else:
        _allow(allowance, words, arguments, terminal)
    return 0


def _allow(allowance: "Allowance", words: list[str], arguments: argparse.Namespace, terminal: Terminal) -> None:
    from gpa_lsp.profile.collect.variables import parse_command

    if not words:
        raise InputError("no command to allow", remedy="give it after two dashes, or --list the allowed ones")
    workspace: Path = arguments.workspace
    if not workspace.is_dir():
        raise InputError("is not a folder", path=workspace, remedy="give the folder the editor opens with --workspace")
    try:
        # One word with blanks is a line, as the setting may be.
        profile = parse_command(words[0] if len(words) == 1 else words)
        build = None if arguments.build is None else parse_command(arguments.build)
    except ValueError as error:
        raise InputError(f"{' '.join(words)} is not {error}") from None
    entry = allowance.allow(workspace, build, profile)
    terminal.complain(f"gpa-lsp: allowed in {entry.workspace}: {_describe_commands(entry)}")


def _list(allowance: "Allowance", terminal: Terminal) -> None:
    entries = allowance.list_entries()
    for number, entry in enumerate(entries, start=1):
        day = time.strftime("%Y-%m-%d", time.localtime(entry.allowed_unix_s))
        terminal.write_text(f"{number:3}  {day}  {_show(entry.workspace)}  {_describe_commands(entry)}\n")
    if not entries:
        terminal.write_text(f"nothing is allowed ({allowance.file})\n")


def _forget(allowance: "Allowance", number: int, terminal: Terminal) -> None:
    entries = allowance.list_entries()
    if not 1 <= number <= len(entries):
        raise InputError(f"there is no number {number}", remedy="see gpa-lsp serve allow --list")
    entry = entries[number - 1]
    allowance.forget([entry])
    terminal.complain(f"gpa-lsp: no longer allowed in {_show(entry.workspace)}: {_describe_commands(entry)}")


def _describe_commands(entry: "Allowed") -> str:
    commands = [command for command in (entry.build, entry.profile) if command is not None]
    return ", then ".join(shlex.join(command) for command in commands)


def _show(workspace: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111 - text that is shown, no path that is used
    return "~" + workspace[len(home) :] if workspace.startswith(home + os.sep) else workspace


COMMAND = Command(
    summary="confirm the command that an editor measures with, for editors that cannot ask",
    description=(
        "Measuring on save runs a command of yours, and only after you have confirmed it, once per command and workspace. Editors ask; for those "
        "that cannot, this command confirms. A changed command must be confirmed again."
    ),
    purpose=Purpose.USE,
    examples=(
        ("serve allow --list", "list what is allowed"),
        ("serve allow --forget 1", "revoke the first of the list"),
    ),
    add_arguments=_add_arguments,
    run=_run,
)
