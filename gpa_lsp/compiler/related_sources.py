"""For a header, or a source that no command names: the command of a source that is built like it."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from gpa_lsp.compiler.commands import CompileCommand

_MOST_READ = 100
_LARGEST_READ_BYTES = 1 << 20


def choose_related(path: Path, commands: Sequence[CompileCommand]) -> CompileCommand | None:
    """The command whose source includes a header; else that of the nearest source, CUDA's before others.

    Args:
        path: the header or source.
        commands: that name a source.
    """
    by_nearness = sorted(
        commands, key=lambda one: (not one.is_cuda, -_measure_nearness(path, one.file or one.directory))
    )
    included = re.compile(rb'#[ \t]*include[ \t]*["<](?:[^"<>\n]*/)?' + re.escape(os.fsencode(path.name)) + rb'[">]')
    for command in by_nearness[:_MOST_READ]:
        if command.file is not None and included.search(_read(command.file)):
            return command
    return next((one for one in by_nearness if one.is_cuda), None)


def _measure_nearness(path: Path, other: Path) -> int:
    """How many folders two paths share."""
    shared = 0
    for mine, theirs in zip(path.parent.parts, other.parent.parts, strict=False):
        if mine != theirs:
            break
        shared += 1
    return shared


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():
            return b""
        with path.open("rb") as stream:
            return stream.read(_LARGEST_READ_BYTES)
    except (OSError, ValueError):
        return b""
