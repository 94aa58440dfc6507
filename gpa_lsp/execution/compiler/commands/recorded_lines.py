"""The lines a build printed, kept in a file: ``make -n -B > compile.log``, or what a wrapper around nvcc wrote.

Lines that end in a backslash go on in the next; ``make`` says which folder it enters and leaves. Only commands that name a source of CUDA's or are
nvcc's count.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.execution.compiler.command_lines import LONGEST_COMMAND, find_compile_commands, split_words
from gpa_lsp.execution.compiler.commands import MOST_COMMANDS, CommandSource, CompileCommand, read_record

_ENTER = re.compile(r"[\w.-]*make(?:\.exe)?(?:\[\d+\])?: Entering directory [`'\"](.+?)['\"]\s*")
_LEAVE = re.compile(r"[\w.-]*make(?:\.exe)?(?:\[\d+\])?: Leaving directory .*")
_COMPILERS = ("nvcc", ".cu", "clang")
_SOURCE_SUFFIXES = (".cu", ".cuh", ".cpp", ".cc", ".cxx", ".c")
_DEEPEST = 100


def read_recorded_lines(path: Path) -> Iterator[CompileCommand]:
    """The compile commands among some lines.

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
    """Lines, those that are continued put together."""
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


COMMAND_SOURCE = CommandSource(
    names=("compile.log", "compile_commands.txt", "make.log", "build.log", "nvcc.log"), read=read_recorded_lines, rank=2
)
