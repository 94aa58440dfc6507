"""``gpa-lsp``: the command line.

Arguments are parsed by the standard library: the alternatives tried take 50 to 200 ms to import, which is most of what a small report takes as
a whole. Exit codes are those of :data:`gpa_lsp.cli.inputs.EXIT_CODES`.
"""

import argparse
import atexit
import errno
import gc
import logging
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpa_lsp import __version__
from gpa_lsp.cli import commands
from gpa_lsp.cli.commands import Command, Purpose
from gpa_lsp.cli.inputs import EXIT_BAD_INPUT, EXIT_CODES, EXIT_CRASHED, EXIT_INTERRUPTED
from gpa_lsp.cli.options import choose_format
from gpa_lsp.cli.outputs import check_outputs
from gpa_lsp.cli.terminal import Terminal
from gpa_lsp.foundation.catalogue import list_members, load_catalogue, load_member
from gpa_lsp.foundation.errors import GpaError, MissingToolError

# New objects between two searches for unreachable cycles. Imports make tens of thousands that stay: looking at them is an eighth of a start.
_GARBAGE_THRESHOLD = 200_000

_EPILOG_WIDTH = 78
# characters of a path in a message
_MOST_SHOWN = 200
_REMEDY = "check the name, the permissions and the disk"
_REMEDIES = {
    errno.ENOSPC: "make room on the disk, or choose another place",
    errno.ENAMETOOLONG: "give a shorter path",
    errno.EMFILE: "close other programs, or raise the limit of open files (ulimit -n)",
}
_DEBUG_VARIABLE = "GPA_LSP_DEBUG"

# former commands → what says the same now
_MOVED = {
    "allow": "serve allow",
    "cache": "doctor cache",
    "calibrate": "roofline calibrate",
    "explore": "predict explore",
    "graph": "report graph",
    "memory": "predict",
    "sass": "report sass",
    "simulate": "predict stalls",
    "trace": "predict trace",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: without the program's name; None takes those of the process.

    Returns:
        The exit code.
    """
    gc.set_threshold(_GARBAGE_THRESHOLD)
    atexit.register(gc.freeze)  # else the interpreter looks through all there is for cycles before it ends
    if logging.lastResort is not None and not os.environ.get(_DEBUG_VARIABLE):  # the server writes a log of its own
        logging.lastResort.setFormatter(_WithoutTraceback("gpa-lsp: %(message)s"))
    given = join_words(sys.argv[1:] if arguments is None else arguments)
    names = list_names()
    if not given or (not given[0].startswith("-") and given[0] not in names):
        sys.stderr.write(f"gpa-lsp: error: {_explain_unknown(given, names)}\n")
        return EXIT_BAD_INPUT
    found = _load_commands(given, names)
    try:
        parsed, unknown = build_parser(found).parse_known_args(given)
        if unknown:
            parsed.refuse(f"unrecognized arguments: {' '.join(unknown)}")
        choose_format(parsed)
    except SystemExit as leave:  # how argparse ends after --help and on bad usage
        return _flush(leave.code if isinstance(leave.code, int) else EXIT_BAD_INPUT)
    terminal = Terminal(sys.stdout, sys.stderr, parsed.color)
    try:
        check_outputs(parsed)
        return found[parsed.command].run(parsed, terminal)
    except GpaError as error:
        terminal.complain(f"gpa-lsp: error: {error}")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except OSError as error:  # the system's news, not a fault of ours
        if os.environ.get(_DEBUG_VARIABLE):
            raise
        where = "" if error.filename is None else f"{str(error.filename)[:_MOST_SHOWN]}: "
        terminal.complain(
            f"gpa-lsp: error: {where}{error.strerror or error}; {_REMEDIES.get(error.errno or 0, _REMEDY)}"
        )
        return EXIT_BAD_INPUT
    except Exception as error:
        if os.environ.get(_DEBUG_VARIABLE):
            raise
        missing = _find_missing_library(error)
        if missing is not None:
            terminal.complain(f"gpa-lsp: error: {missing}")
            return EXIT_BAD_INPUT
        name = type(error).__name__
        terminal.complain(
            f"gpa-lsp: internal error: {name}: {error} (a bug in gpa-lsp; {_DEBUG_VARIABLE}=1 shows where)"
        )
        return EXIT_CRASHED


def _explain_unknown(given: Sequence[str], names: Collection[str]) -> str:
    """Message for a first word that is no command: the nearest command, or one that reads the file of that name."""
    if not given:
        return "no command; start with gpa-lsp advise REPORT.ncu-rep, or see gpa-lsp --help"
    if given[0] in _MOVED:
        return f"gpa-lsp {given[0]} is now gpa-lsp {_MOVED[given[0]]}"
    from difflib import get_close_matches  # not on the way of a right command

    word = given[0][:_MOST_SHOWN]
    near = get_close_matches(word, [name for name in names if " " not in name], n=1)
    start = f"gpa-lsp {near[0]}" if near else f"gpa-lsp advise {word}" if Path(word).exists() else ""
    return f"there is no command {word!r}; {f'did you mean {start}? ' if start else ''}gpa-lsp --help lists them"


class _WithoutTraceback(logging.Formatter):
    """Logged failures on the user's terminal, one line each."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 - named by the library
        return ""


class _HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that breaks no line within an option, a table or a file name, such as ``.gpa-lsp.toml``."""

    def _split_lines(self, text: str, width: int) -> list[str]:
        return textwrap.wrap(" ".join(text.split()), width, break_on_hyphens=False)


def _flush(code: int) -> int:
    """Exit code after printing what argparse left in the buffer."""
    terminal = Terminal(sys.stdout, sys.stderr)
    try:
        terminal.print_safely(lambda: None)
    except GpaError as error:
        terminal.complain(f"gpa-lsp: error: {error}")
        return EXIT_BAD_INPUT
    return code


def join_words(given: Sequence[str]) -> list[str]:
    """The arguments with the two words of a part, such as ``predict stalls``, as one."""
    head, rest = " ".join(given[:2]), list(given[2:])
    return [head, *rest] if head in list_names() and len(given) > 1 else list(given)


def list_names() -> dict[str, str]:
    """The words of every command → its member of the catalogue. ``predict_stalls`` is part ``stalls`` of ``predict``."""
    members = list_members(commands)
    parts = {member for member in members if member.partition("_")[0] in members}
    return {member.replace("_", " ", 1) if member in parts else member: member for member in members}


def _load_commands(given: Sequence[str], names: Mapping[str, str]) -> dict[str, Command]:
    """The named command, with its parts if help lists them; all commands where help or an error message needs them."""
    named = next((argument for argument in given if not argument.startswith("-")), None)
    if named is None or named not in names:
        loaded: dict[str, Command] = load_catalogue(commands, "COMMAND", Command)
        return {words: loaded[member] for words, member in names.items() if member in loaded}
    asks_help = not {"-h", "--help"}.isdisjoint(given)
    wanted = [words for words in names if words == named or (asks_help and words.startswith(f"{named} "))]
    return {words: load_member(commands, names[words], "COMMAND", Command) for words in wanted}


def _find_missing_library(error: Exception) -> MissingToolError | None:
    """Error that names a missing third-party library; None for any other fault."""
    if not isinstance(error, ModuleNotFoundError) or error.name is None:
        return None
    library = error.name.partition(".")[0]
    if library == "gpa_lsp":
        return None
    return MissingToolError(library, needed_for="this command", install="pip install gpa-lsp brings it")


def build_parser(found: dict[str, Command]) -> argparse.ArgumentParser:
    """Parser of the given commands, by name."""
    colour = argparse.ArgumentParser(add_help=False)
    colour.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colour the output (default: auto, on a terminal without NO_COLOR)",
    )
    parser = argparse.ArgumentParser(
        prog="gpa-lsp",
        usage="%(prog)s [-h] [--version] COMMAND ...",
        description=_describe_commands(found),
        epilog=textwrap.fill(EXIT_CODES, _EPILOG_WIDTH),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gpa-lsp {__version__}")
    choices = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, help=argparse.SUPPRESS, prog="gpa-lsp"
    )
    for name, command in found.items():
        own = choices.add_parser(
            name,
            description=_fill(command.description),
            parents=[colour],
            formatter_class=_HelpFormatter,
        )
        command.add_arguments(own)
        own.set_defaults(refuse=own.error)  # with the usage of the command, not that of all of them
        examples = "\n".join(f"  gpa-lsp {words}\n{_fill(what, 6)}" for words, what in command.examples)
        others = "\n".join(
            f"  gpa-lsp {words}\n{_fill(one.summary, 6)}"
            for words, one in found.items()
            if words.startswith(f"{name} ")
        )
        paragraphs = (
            _fill(own.epilog or ""),
            f"examples:\n{examples}" if examples else "",
            f"parts:\n{others}" if others else "",
        )
        own.epilog = "\n\n".join(one for one in paragraphs if one)
    return parser


def _describe_commands(found: dict[str, Command]) -> str:
    """Text above the options of ``gpa-lsp --help``: where to start, and the commands by purpose."""
    lines = [_fill("GPU kernel stalls, their causes, and what to change, by source line and SASS instruction.")]
    lines += ["", "start here:", "  gpa-lsp advise REPORT.ncu-rep    (no report yet: gpa-lsp profile -- ./app)"]
    name_cells = max((len(name) for name in found if " " not in name), default=0)
    for purpose in Purpose:
        members = {name: one for name, one in found.items() if one.purpose is purpose and " " not in name}
        if members:
            lines += ["", f"{purpose.value}:"]
        for name, command in members.items():
            parts = ", ".join(words for words in found if words.startswith(f"{name} "))
            summary = f"{command.summary}; also {parts}" if parts else command.summary
            lines.append(_fill(f"{name:<{name_cells}}  {summary}", 2, name_cells + 4))
    return "\n".join([*lines, "", "examples and options of one: gpa-lsp COMMAND --help"])


def _fill(text: str, indent: int = 0, later: int | None = None) -> str:
    """Wrap a paragraph for the screen, as argparse does; *later* is the indent of all lines but the first."""
    width = shutil.get_terminal_size().columns - 2
    return textwrap.fill(
        text,
        max(width, 20),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent if later is None else later),
        break_on_hyphens=False,
    )


if __name__ == "__main__":
    sys.exit(main())
