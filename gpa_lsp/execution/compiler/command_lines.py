"""A line that a shell would run → the compile commands in it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

_OPERATORS = frozenset({"&&", "||", ";", "|", "&", "(", ")", "{", "}"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_LAUNCHERS = frozenset(
    {"ccache", "sccache", "distcc", "icecc", "env", "time", "nice", "exec", "command", "libtool", "buildcache"}
)
_CUDA_COMPILER = re.compile(r".*nvcc.*|cuda-?clang.*")
_COMPILER = re.compile(
    r"(?:.*-)?(?:g\+\+|gcc|c\+\+|cc|clang|clang\+\+|clang-cl|cl|icpx|icx|nvc\+\+|hipcc|mpicxx|mpic\+\+)(?:-?[\d.]+)?"
)
_CUDA_SOURCE = (".cu", ".cuh")
_MOST_SEGMENTS = 200


class FoundCommand(Struct, frozen=True, kw_only=True):
    """A compiler with its words."""

    directory: Path  # it runs in
    words: tuple[str, ...]  # without the compiler and what stands in front of it
    is_cuda: bool  # it compiles CUDA C++


def find_compile_commands(words: Sequence[str], directory: Path, *, takes_any: bool = False) -> Iterator[FoundCommand]:
    """The compile commands in a line.

    Args:
        words: of the line, with operators such as ``&&`` as words of their own.
        directory: it runs in; ``cd`` changes it for what follows.

    >>> line = "cd sub && CUDA=1 ccache /usr/local/cuda/bin/nvcc -c k.cu ; echo done"
    >>> [(str(one.directory), one.words, one.is_cuda) for one in find_compile_commands(line.split(), Path("/b"))]
    [('/b/sub', ('-c', 'k.cu'), True)]
    """
    segments = _split(words)
    for segment in segments:
        program = next(
            (
                index
                for index, word in enumerate(segment)
                if not _ASSIGNMENT.fullmatch(word) and _name(word) not in _LAUNCHERS
            ),
            None,
        )
        if program is None:
            continue
        name = _name(segment[program])
        if name == "cd" and program + 1 < len(segment):
            directory = directory / segment[program + 1]
            continue
        rest = tuple(segment[program + 1 :])
        is_nvcc = _CUDA_COMPILER.fullmatch(name) is not None
        is_cuda = is_nvcc or any(word.endswith(_CUDA_SOURCE) for word in rest)
        if is_nvcc or _COMPILER.fullmatch(name) or (takes_any and len(segments) == 1):
            yield FoundCommand(directory=directory, words=rest, is_cuda=is_cuda)


def _split(words: Sequence[str]) -> list[list[str]]:
    segments: list[list[str]] = [[]]
    for word in words:
        if word in _OPERATORS:
            segments.append([])
        elif word.endswith(";"):
            segments[-1].append(word[:-1])
            segments.append([])
        else:
            segments[-1].append(word)
        if len(segments) > _MOST_SEGMENTS:
            break
    return [segment for segment in segments if segment]


def _name(word: str) -> str:
    """A program's name without folders and suffix."""
    return word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
