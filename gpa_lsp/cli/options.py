"""Options of the commands, declared as help shows them, and how their values are read: :func:`declare`."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpa_lsp.foundation.catalogue import list_members
from gpa_lsp.foundation.errors import InputError, MissingToolError
from gpa_lsp.foundation.numbers import format_count_of
from gpa_lsp.gpu.arch.sections import parse_architecture_name

# what -o calls standard output
STANDARD_OUTPUT = Path("-")
PICTURES = (".svg", ".png")

# by the end of an output file's name, the format that is written where --format names none
_SUFFIX_FORMATS = {".html": "html", ".json": "json", ".md": "markdown", ".sarif": "sarif"}

_UNITS = {"": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30}
_SIZE = re.compile(r"([0-9]{1,15})\s*([a-z]*)")
_BLOCKS = re.compile(r"([0-9]{1,12})(?:-([0-9]{1,12}))?")
_MOST_BLOCKS = 1 << 20
_MOST_NUMBER = 1 << 32

Parser = argparse.ArgumentParser | argparse._ArgumentGroup


def parse_count(text: str) -> int:
    """A whole number, 0 or more.

    >>> parse_count("12")
    12
    """
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def parse_whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """Parser of whole numbers in a range."""
    words = f"of at least {least}" if most is None else f"from {least} to {most}"

    def parse(text: str) -> int:
        if not text.isdecimal() or not least <= int(text[:20]) <= (most or _MOST_NUMBER):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number {words}")
        return int(text)

    return parse


parse_number = parse_whole(1)


def parse_limit(text: str) -> int:
    """Largest number of rows shown; 0 means all."""
    return parse_count(text) or sys.maxsize


def parse_share(text: str) -> float:
    """A percentage as a ratio, 0 to 1."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a percentage from 0 to 100")
    return percent / 100


def parse_size(text: str) -> int:
    """A number of bytes.

    >>> parse_size("512MiB"), parse_size("2 gib"), parse_size("4096")
    (536870912, 2147483648, 4096)
    """
    match = _SIZE.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS or not int(match[1]):
        raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 512MiB")
    return int(match[1]) * _UNITS[match[2]]


def parse_blocks(text: str) -> tuple[int, ...]:
    """Linear indexes of blocks, ascending.

    >>> parse_blocks("7,0,3-5")
    (0, 3, 4, 5, 7)
    """
    found: set[int] = set()
    for part in text.split(","):
        match = _BLOCKS.fullmatch(part.strip())
        if match is None:
            raise argparse.ArgumentTypeError(f"{text!r} is not a list of blocks such as 0,7,100-131")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last - first >= _MOST_BLOCKS:
            most = format_count_of(_MOST_BLOCKS, "block")
            raise argparse.ArgumentTypeError(f"{part.strip()!r} is not a range of at most {most}")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def parse_seconds(text: str) -> float:
    """Time in seconds."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.01 <= seconds <= 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in seconds between 0.01 and 86,400")
    return seconds


def parse_architecture(text: str) -> tuple[int, int]:
    """``sm_86``, ``8.6`` or ``86``."""
    found = parse_architecture_name(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not an architecture such as sm_86")
    return found


def parse_pair(text: str) -> tuple[str, str]:
    """``OLD=NEW``."""
    old, equals, new = text.partition("=")
    if not (old and equals and new):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form OLD=NEW")
    return old, new


# by what help calls a value: how it is read; texts stay as they are
_KINDS: dict[str, Callable[[str], Any]] = {
    "N": parse_count,
    "S": parse_seconds,
    "SIZE": parse_size,
    "SM": parse_architecture,
    "PERCENT": parse_share,
    "FILE": Path,
    "PATH": Path,
    "DIR": Path,
    "OLD=NEW": parse_pair,
    "FROM=TO": parse_pair,
}

# what means the same in every command that has it
_SHARED = {
    "--kernel": "only the kernel of this name, or else kernels whose name (readable, short or mangled) contains NAME",
    "--map": "sources that were compiled in folder FROM are in folder TO here; repeatable",
    "--format": "how to print (default: text, or what the end of FILE says: .html, .json, .md, .sarif)",
    "--expand": "json: repeat files, functions and inline chains wherever they are used (default: once, in tables that the rest refers to)",
    "--launches": "the description of launches and arguments (default: SOURCE with .launch.toml in place of its suffix)",
    "--sizes": 'of a source whose launches are not described, sizes to assume: "n = 4096, threads = 64x64" (default: sizes that emulate quickly)',
    "--machine": "the GPU, by name or by a .toml file that describes one",
    "--arch": "architecture to compile for, such as sm_86",
    "--memory": "memory for each launch, such as 512MiB",
}  # fmt: skip

_OPTION = re.compile(
    r"(?P<names>-\S+(?:, -\S+)*)(?: (?P<value>\{\S+\}|[^\s.+]+(?:\.\.[^\s.+]+)?))?(?P<many>\.\.\.|\+)?"
)


def declare(parser: Parser, lines: str, **known: Any) -> None:
    """Declare options, one a line, each followed by two spaces or more and its help text; a line without an option continues the last.

    ``--blocks LIST`` takes a value, ``--mode {a,b}`` one of these, ``--delete RUN+`` several, ``--map FROM=TO...`` may be given several times,
    ``--races`` is a switch. What help calls the value says how it is read. An option without a meaning, or with a remark in brackets alone,
    means what it does elsewhere.

    Args:
        known: by name of an option its default, or the function that reads it, or both as a pair.
    """
    for line in re.split(r"\n\s*(?=-)", lines.strip()):
        option, _, meaning = (" ".join(part.split()) for part in re.split(r"(\s{2,})", f"{line}  ", maxsplit=1))
        found = _OPTION.fullmatch(option)
        assert found is not None, option
        names, value = found["names"].split(", "), found["value"]
        shared = _SHARED.get(names[-1], "")
        words = meaning if meaning and meaning[0] != "(" else f"{shared} {meaning}".strip()
        read, default = _split(known.get(names[-1].lstrip("-").replace("-", "_")))
        more: dict[str, Any] = {"help": words}
        if value is None:
            more["action"] = "store_true"
        elif value.startswith("{"):
            more |= {"choices": value.strip("{}").split(","), "default": default}
        else:
            more |= {"metavar": value, "type": read or _KINDS.get(value, str), "default": default}
        if found["many"] == "...":
            more |= {"action": "append", "default": []}
        elif found["many"]:
            more["nargs"] = "+"
        parser.add_argument(*names, **more)


def _split(known: Any) -> tuple[Callable[[str], Any] | None, Any]:
    """Parser and default of an option; None where not given."""
    match known:
        case (read, default) if callable(read):
            return read, default
        case read if callable(read):
            return read, None
    return None, known


class Renamed(argparse.Action):
    """An option under its former name: hidden from help, sets the ``dest`` of the new one, and says so on standard error."""

    def __init__(self, option_strings: Sequence[str], dest: str, **options: Any) -> None:
        super().__init__(option_strings, dest, help=argparse.SUPPRESS, default=argparse.SUPPRESS, **options)

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        """Keep the value."""
        setattr(namespace, self.dest, values if self.nargs != 0 else True)
        sys.stderr.write(f"{parser.prog}: {option} is now --{self.dest.replace('_', '-')}\n")


def add_input_arguments(parser: argparse.ArgumentParser, *, also: str = "") -> None:
    """The arguments of every command that looks at profiles; *also* names what else it reads."""
    words = f"a profile, a report saved as JSON, {f'{also}, ' if also else ''}or a folder to look for profiles in"
    parser.add_argument("paths", metavar="PATH", nargs="+", type=Path, help=words)
    add_filter_arguments(parser)


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of every command that shows kernels: which, and where their sources are."""
    declare(parser, "--kernel NAME\n--map FROM=TO...")


def add_source_arguments(parser: argparse.ArgumentParser, source_help: str) -> None:
    """The arguments of every command that compiles a source: it, its kernels and the description of launches."""
    parser.add_argument("source", metavar="SOURCE", type=Path, help=source_help)
    declare(parser, "--kernel NAME\n--launches FILE")


def add_application_argument(parser: argparse.ArgumentParser, what: str) -> None:
    """The program after two dashes."""
    words = f"the program to {what}, and its arguments"
    parser.add_argument("application", metavar="-- APP ARGS", nargs=argparse.REMAINDER, help=words)


def read_application(arguments: argparse.Namespace, what: str, example: str) -> list[str]:
    """The program and its arguments.

    Raises:
        InputError: there are none, or they begin with a report.
    """
    application: list[str] = arguments.application
    application = application[1:] if application[:1] == ["--"] else application
    if not application:
        raise InputError(f"no program to {what}", remedy=f"give it after two dashes: gpa-lsp {example} -- ./app")
    from gpa_lsp.profile.read import list_suffixes

    first = Path(application[0])
    if first.name.lower().endswith(list_suffixes()) and first.is_file():
        remedy = "gpa-lsp advise and report read it, gpa-lsp predict emulates its launches"
        raise InputError(f"is a report, not a program to {what}", path=first, remedy=remedy)
    return application


def add_mode_argument(parser: argparse.ArgumentParser) -> None:
    """``--mode``, of the commands that attribute stalls."""
    modes = ",".join(list_members("gpa_lsp.diagnosis.blame.blamers"))
    declare(
        parser,
        f"--mode {{{modes}}}  scoreboard (the default) finds causes by scoreboards and stall counts, and limits gains by the load that stays on "
        "each unit; paper finds causes and estimates gains as published for GPA (Zhou et al., 2021)",
    )


def add_limit_argument(parser: argparse.ArgumentParser, what: str, default: int | str | None = None) -> None:
    """``--limit``, formerly ``--top``, of the commands that print the first rows of something.

    Args:
        parser: of the command.
        what: meaning, for help.
        default: rows; the command chooses where it is None, or words for help.
    """
    words = f"{what} ({'0' if default is None else f'default: {default}; 0'} for all)"
    preset = default if isinstance(default, int) else None
    parser.add_argument("--limit", metavar="N", type=parse_limit, default=preset, help=words)
    parser.add_argument("--top", metavar="N", type=parse_limit, action=Renamed, dest="limit")


class _StoreOutput(argparse.Action):
    """Keep the path, and that it is one to write."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        setattr(namespace, self.dest, values if self.nargs != 0 else True)
        namespace.outputs = {**getattr(namespace, "outputs", {}), self.dest: values}


def choose_format(arguments: argparse.Namespace) -> None:
    """Take the format that the end of the output file's name says, where none is named; refuse one that the command does not write."""
    formats: Sequence[str] = getattr(arguments, "formats", ())
    if not formats or arguments.format is not None:
        return
    path: Path = getattr(arguments, "output", None) or STANDARD_OUTPUT
    is_profile = path.name.endswith(".gpa-profile.json")
    arguments.format = "text" if is_profile else _SUFFIX_FORMATS.get(path.suffix.lower(), "text")
    if arguments.format not in formats:
        named = f"{path.name} would hold {arguments.format}"
        arguments.refuse(f"argument -o: {named}; formats here: {', '.join(formats)}")


class _StoreMeasurement(_StoreOutput):
    """Keep the path of a measurement, which may replace an earlier one."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option_string: Any = None) -> None:
        super().__call__(parser, namespace, values, option_string)
        namespace.is_measuring = True


def add_output_argument(
    parser: Parser,
    what: str = "write to FILE instead of standard output",
    *,
    option: str | None = None,
    suffixes: Sequence[str] = (),
    is_measurement: bool = False,
) -> None:
    """``-o FILE``, or another option that names an output file."""

    def parse(text: str) -> Path:
        path = Path(text)
        if suffixes and path != STANDARD_OUTPUT and path.suffix.lower() not in suffixes:
            raise argparse.ArgumentTypeError(f"{text!r} does not end in {', '.join(suffixes)}")
        if path.suffix.lower() in PICTURES and suffixes:
            from gpa_lsp.document.charts.pictures import check_drawing  # before the work, not after it

            try:
                check_drawing()
            except MissingToolError as error:
                raise argparse.ArgumentTypeError(str(error)) from error
        return path

    names = ("-o", "--output") if option is None else (option,)
    action = _StoreMeasurement if is_measurement else _StoreOutput
    parser.add_argument(*names, metavar="FILE", type=parse, action=action, help=what)


def add_format_argument(parser: argparse.ArgumentParser, *others: str, page_help: str = "") -> None:
    """``--format`` with text and other formats; ``--html`` where *page_help* describes a page."""
    declare(parser, f"--format {{{','.join(('text', *others))}}}")
    parser.set_defaults(formats=("text", *others))
    if page_help:
        words = f"the same as --format html: {page_help}"
        parser.add_argument("--html", dest="format", action="store_const", const="html", help=words)
