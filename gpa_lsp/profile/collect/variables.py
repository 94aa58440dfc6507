"""Variables in the user's commands: ``${file}``, ``${workspaceFolder}``, ``${kernel}``, ``${output}`` and others.

A command is a list of words. A value stays inside the word of its variable, whatever it holds: no shell parses it, and it is never split. Words
that the user hands to a shell (``["bash", "-lc", "…"]``, ``["ssh", "host", "…"]``) are parsed by one, though, and names of files and kernels come
from the repository's author; so a value is put into such a word only if it means the same with and without quotes. Scripts find every value in the
environment as well: ``"$GPA_LSP_FILE"``.
"""

import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import GpaError

Command = tuple[str, ...]  # Program and arguments

_VARIABLE = re.compile(r"\$?\$\{([^{}]*)\}")
_PLAIN = re.compile(r"[\w@+:,./\\-]*" if os.name == "nt" else r"[\w@+:,./-]*")
_SHELL_SYNTAX = re.compile(r"[\s;&|<>()$`\"'*?~#!{}\[\]]")
_UNSAFE_ANYWHERE = re.compile(r"[\x00-\x1f\x7f]")

# Programs that hand their arguments to a shell, or may: what comes after one of them is read again
_INTERPRETERS = frozenset(
    {"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "cmd", "powershell", "pwsh", "wsl", "ssh", "su", "eval",
     "make", "gmake", "ninja", "just"}
)  # fmt: skip

ENVIRONMENT_PREFIX = "GPA_LSP_"


class CommandError(GpaError):
    """Error of a command that cannot be run as written; the message says which word and what to write instead."""


class Values(Struct, frozen=True, kw_only=True):
    """Values of the variables."""

    workspace: Path  # the workspace folder
    file: Path | None = None  # the source file it is about; None when it is about none
    kernel: str | None = None  # name of the kernel; None when it is about none, and the variable is then empty
    output: Path | None = None  # where the report is to be written


# The names there are, besides ``env:NAME``
VARIABLES = ("file", "fileBasename", "fileBasenameNoExtension", "fileDirname", "kernel", "output", "workspaceFolder")


def parse_command(value: object) -> Command:
    """Parse a command from a setting.

    Args:
        value: a list of words, or one line that is split at blanks outside quotes, as a shell would, and not interpreted any further.

    Raises:
        ValueError: it is neither; the message says what it should be, for "... is not ...".

    >>> parse_command('ncu -o "${output}" ./app "two words"')
    ('ncu', '-o', '${output}', './app', 'two words')
    >>> parse_command(["./run", ""])
    ('./run', '')
    """
    words: Sequence[object] = ()
    if isinstance(value, str):
        try:
            words = _split(value)
        except ValueError:
            raise ValueError("a command: a quotation mark is not closed") from None
    elif isinstance(value, list | tuple):
        words = value
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words) or not words[0]:
        raise ValueError('a command: a list of words such as ["make", "profile"], or one line')
    return tuple(str(word) for word in words)


def parse_command_setting(value: object) -> Command | None:
    """Parse an optional command; nothing, an empty line or an empty list gives None.

    Raises:
        ValueError: it is neither.

    >>> parse_command_setting([]), parse_command_setting("./run")
    (None, ('./run',))
    """
    is_empty = not value.strip() if isinstance(value, str) else isinstance(value, list | tuple) and not value
    if value is None or is_empty:
        return None
    return parse_command(value)


def _split(line: str) -> list[str]:
    if os.name != "nt":
        return shlex.split(line)
    return [word.strip('"') for word in shlex.split(line, posix=False)]  # keeps the backslashes of paths


def uses_variable(command: Command | None, name: str) -> bool:
    """Whether a command mentions a variable.

    >>> uses_variable(("ncu", "-o${output}"), "output"), uses_variable(("echo", "$${output}"), "output")
    (True, False)
    """
    return any(found == name for word in command or () for found in _find_names(word))


def _find_names(word: str) -> Iterator[str]:
    return (match[1] for match in _VARIABLE.finditer(word) if not match[0].startswith("$$"))


def expand_command(command: Command, values: Values, environment: Mapping[str, str]) -> Command:
    """Substitute the variables of a command.

    Args:
        command: with variables; ``$${`` stands for a plain ``${``.
        values: what they stand for.
        environment: for ``${env:NAME}``.

    Raises:
        CommandError: an unknown variable, one that has no value, or a value that would be read as something else.

    >>> values = Values(workspace=Path("/w"), file=Path("/w/my kernels/saxpy.cu"))
    >>> expand_command(("./run", "${file}", "-o${workspaceFolder}/out"), values, {})
    ('./run', '/w/my kernels/saxpy.cu', '-o/w/out')
    >>> expand_command(("bash", "-lc", "./run ${file}"), values, {})  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpa_lsp.profile.collect.variables.CommandError: ${file} is /w/my kernels/saxpy.cu, which a shell would not read ...
    """
    known = _list_values(values)
    expanded: list[str] = []
    is_read_again = False
    for word in command:
        is_script = bool(expanded) and (is_read_again or _looks_like_script(word))
        expanded.append(_expand_word(word, known, environment, is_script=is_script))
        is_read_again = is_read_again or _is_interpreter(word)
    return tuple(expanded)


def list_environment(values: Values) -> dict[str, str]:
    """Values as environment variables for scripts, without missing ones.

    >>> list_environment(Values(workspace=Path("/w"), kernel="saxpy"))
    {'GPA_LSP_KERNEL': 'saxpy', 'GPA_LSP_WORKSPACE_FOLDER': '/w'}
    """
    return {
        _name_in_environment(name): value
        for name, value in _list_values(values).items()
        if value is not None and "\0" not in value
    }


def _name_in_environment(name: str) -> str:
    return ENVIRONMENT_PREFIX + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).upper()


def _list_values(values: Values) -> dict[str, str | None]:
    file = values.file
    return {
        "file": None if file is None else str(file),
        "fileBasename": None if file is None else file.name,
        "fileBasenameNoExtension": None if file is None else file.stem,
        "fileDirname": None if file is None else str(file.parent),
        "kernel": values.kernel or "",
        "output": None if values.output is None else str(values.output),
        "workspaceFolder": str(values.workspace),
    }


def _expand_word(word: str, known: Mapping[str, str | None], environment: Mapping[str, str], *, is_script: bool) -> str:
    def fill_in(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return match[0][1:]
        value = _find_value(match[1], known, environment)
        _check_value(match[1], value, is_script=is_script)
        return value

    expanded = _VARIABLE.sub(fill_in, word)
    if expanded.startswith("-") and not word.startswith("-"):
        raise CommandError(f"{word} is {expanded}, which would be read as an option; write ./{word}")
    return expanded


def _find_value(name: str, known: Mapping[str, str | None], environment: Mapping[str, str]) -> str:
    if name.startswith("env:"):
        value = environment.get(name[4:])
        if value is None:
            raise CommandError(f"${{{name}}}: there is no environment variable {name[4:]}")
        return value
    if name not in known:
        listed = ", ".join(f"${{{one}}}" for one in (*VARIABLES, "env:NAME"))
        raise CommandError(
            f"${{{name}}} is not a variable; known are {listed}; write $${{{name}}} where a shell is to replace it"
        )
    found = known[name]
    if found is None:
        raise CommandError(f"${{{name}}} has no value here")
    return found


def _check_value(name: str, value: str, *, is_script: bool) -> None:
    instead = f"${name[4:]}" if name.startswith("env:") else f"${_name_in_environment(name)}"
    if _UNSAFE_ANYWHERE.search(value):
        raise CommandError(f"${{{name}}} holds control characters")
    if is_script and not _PLAIN.fullmatch(value):
        raise CommandError(
            f'${{{name}}} is {value}, which a shell would not read as one word; write "{instead}" instead'
        )


def _is_interpreter(word: str) -> bool:
    name = re.split(r"[/\\]", word)[-1].lower()
    return name.removesuffix(".exe") in _INTERPRETERS


def _looks_like_script(word: str) -> bool:
    """Whether a word has blanks or shell syntax besides the variables."""
    return _SHELL_SYNTAX.search(_VARIABLE.sub("", word)) is not None
