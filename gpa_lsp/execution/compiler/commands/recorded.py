"""Records of whole commands: a compilation database, flags in a file, and the lines that a build printed."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gpa_lsp.execution.compiler.commands import (
    LONGEST_COMMAND,
    MOST_COMMANDS,
    MOST_WORDS,
    CommandSource,
    CompileCommand,
    find_compile_commands,
    read_record,
    split_words,
)
from gpa_lsp.foundation.errors import InputError

_REMEDY = "have the build write it again"


def read_compile_commands(path: Path) -> Iterator[CompileCommand]:
    """The commands of ``compile_commands.json``, as CMake, Meson, Bazel's extractors and bear write it.

    Source: JSON Compilation Database Format Specification, clang.llvm.org.

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


def read_compile_flags(path: Path) -> Iterator[CompileCommand]:
    """The command that ``compile_flags.txt`` stands for: one flag a line, for all sources below its folder, as clangd reads it.

    Raises:
        InputError: it cannot be read.
    """
    lines = (line.strip() for line in read_record(path).splitlines()[:MOST_WORDS])
    words = tuple(line for line in lines if line and not line.startswith("#") and "\0" not in line)
    yield CompileCommand(directory=path.parent, words=words, file=None)


_ENTER = re.compile(r"[\w.-]*make(?:\.exe)?(?:\[\d+\])?: Entering directory [`'\"](.+?)['\"]\s*")
_LEAVE = re.compile(r"[\w.-]*make(?:\.exe)?(?:\[\d+\])?: Leaving directory .*")
_COMPILERS = ("nvcc", ".cu", "clang")
_SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c")
_DEEPEST = 100


def read_recorded_lines(path: Path) -> Iterator[CompileCommand]:
    """Compile commands among lines that a build printed: ``make -n -B > compile.log``, or what a wrapper around nvcc wrote.

    Lines that end in a backslash go on in the next; ``make`` says which folder it enters and leaves. Only commands that name a source of CUDA's or
    are nvcc's count.

    Raises:
        InputError: the file cannot be read.
    """
    folders = [path.parent]
    count = 0
    for line in _join_lines(read_record(path)):
        entered = _ENTER.fullmatch(line)
        if entered is not None and len(folders) < _DEEPEST and "\0" not in line:
            folders.append(folders[-1] / entered[1])
        elif _LEAVE.fullmatch(line) and len(folders) > 1:
            folders.pop()
        elif any(name in line for name in _COMPILERS) and "\0" not in line:
            for found in find_compile_commands(split_words(line), folders[-1]):
                for word in found.words if found.is_cuda else ():
                    if word.endswith(_SOURCE_SUFFIXES) and not word.startswith("-"):
                        count += 1
                        yield CompileCommand(directory=found.directory, words=found.words, file=found.directory / word)
        if count >= MOST_COMMANDS:
            return


def _join_lines(text: str) -> Iterator[str]:
    """Lines, with continuations (a backslash at the end) joined."""
    kept: list[str] = []
    length = 0
    for line in text.splitlines():
        goes_on = line.endswith("\\") and length < LONGEST_COMMAND
        kept.append(line[:-1] if goes_on else line)
        length += len(line)
        if not goes_on:
            yield " ".join(kept)
            kept, length = [], 0
    if kept:
        yield " ".join(kept)


COMMAND_SOURCES = (
    CommandSource(names=("compile_commands.json",), read=read_compile_commands, rank=0),
    CommandSource(names=("compile_flags.txt",), read=read_compile_flags, rank=3),
    CommandSource(
        names=("compile.log", "compile_commands.txt", "make.log", "build.log", "nvcc.log"),
        read=read_recorded_lines,
        rank=2,
    ),
)
