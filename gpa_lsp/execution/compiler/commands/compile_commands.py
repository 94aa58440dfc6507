"""``compile_commands.json``, as CMake, Meson, Bazel's extractors and bear write it.

Source: JSON Compilation Database Format Specification, clang.llvm.org.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpa_lsp.execution.compiler.command_lines import find_compile_commands
from gpa_lsp.execution.compiler.commands import MOST_COMMANDS, CommandSource, CompileCommand, read_record
from gpa_lsp.foundation.errors import InputError

_REMEDY = "have the build write it again"


def read_compile_commands(path: Path) -> Iterator[CompileCommand]:
    """The commands of a database.

    Raises:
        InputError: it is no such database.
    """
    try:
        entries: Any = json.loads(read_record(path))
    except (ValueError, RecursionError) as error:
        raise InputError(f"it is not valid JSON ({error})"[:300], path=path, remedy=_REMEDY) from error
    if not isinstance(entries, list):
        raise InputError("it is not a list of commands", path=path, remedy=_REMEDY)
    for entry in entries[:MOST_COMMANDS]:
        command = _read_entry(entry, path.parent) if isinstance(entry, dict) else None
        if command is not None:
            yield command


def _read_entry(entry: dict[str, Any], folder: Path) -> CompileCommand | None:
    file, place = entry.get("file"), entry.get("directory", "")
    arguments, command = entry.get("arguments"), entry.get("command")
    if not isinstance(file, str) or not isinstance(place, str) or not file or "\0" in file + place:
        return None
    directory = folder / place
    if isinstance(arguments, list) and arguments and all(isinstance(word, str) for word in arguments):
        words = tuple(word for word in arguments if "\0" not in word)
        found = next(find_compile_commands(words, directory, takes_any=True), None)
        if found is None:
            return None
        is_cuda = found.is_cuda or file.endswith(".cu")
        return CompileCommand(directory=found.directory, words=found.words, file=directory / file, is_cuda=is_cuda)
    if not isinstance(command, str) or "\0" in command:
        return None
    is_cuda = file.endswith(".cu") or "nvcc" in command
    return CompileCommand(directory=directory, words=(), file=directory / file, is_cuda=is_cuda, line=command)


COMMAND_SOURCE = CommandSource(names=("compile_commands.json",), read=read_compile_commands, rank=0)
