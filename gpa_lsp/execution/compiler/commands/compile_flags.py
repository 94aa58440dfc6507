"""``compile_flags.txt``: one flag a line, for every source below its folder, as clangd reads it."""

from collections.abc import Iterator
from pathlib import Path

from gpa_lsp.execution.compiler.command_lines import MOST_WORDS
from gpa_lsp.execution.compiler.commands import CommandSource, CompileCommand, read_record


def read_compile_flags(path: Path) -> Iterator[CompileCommand]:
    """The one command that the file stands for.

    Raises:
        InputError: it cannot be read.
    """
    lines = (line.strip() for line in read_record(path).splitlines()[:MOST_WORDS])
    words = tuple(line for line in lines if line and not line.startswith("#") and "\0" not in line)
    yield CompileCommand(directory=path.parent, words=words, file=None)


COMMAND_SOURCE = CommandSource(names=("compile_flags.txt",), read=read_compile_flags, rank=3)
