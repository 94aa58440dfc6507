"""Compile commands: a catalogue of the records of them that builds leave behind, and what a line holds (:func:`split_words`,
:func:`find_compile_commands`, :func:`expand_response_files`).

Each member of the catalogue defines ``COMMAND_SOURCES``. Records are only read: no build tool, and no program that a record names, is ever run.
"""

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_bytes

LARGEST_RECORD_BYTES = 64 << 20
MOST_COMMANDS = 100_000


class CompileCommand(Struct, frozen=True, kw_only=True):
    """One command of a build."""

    directory: Path  # it runs in, absolute
    words: tuple[str, ...]  # of the command, without the compiler; empty while ``line`` is not split
    file: Path | None  # the source it compiles, absolute; None for flags that hold for every source below ``directory``
    is_cuda: bool = True  # the compiler is one of CUDA C++
    # as a shell would get it; None when ``words`` has it all. Split only when it is needed, because a database may have 100,000.
    line: str | None = None


class CommandSource(Struct, frozen=True, kw_only=True):
    """One kind of record."""

    names: tuple[str, ...]  # of the files, patterns as in :func:`fnmatch.fnmatchcase`; the first that is there is taken
    # gives the commands in such a file. Raises InputError for one that cannot be used.
    read: Callable[[Path], Iterator[CompileCommand]]
    rank: int  # where one folder has several records, the lowest is asked first


def read_record(path: Path) -> str:
    """The text of a record.

    Raises:
        InputError: it cannot be read, or is too large.
    """
    try:
        if not path.is_file():
            raise InputError("this is not a regular file", path=path)
        with path.open("rb") as stream:
            content = stream.read(LARGEST_RECORD_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(f"it cannot be read ({error})", path=path, remedy="check the permissions") from error
    if len(content) > LARGEST_RECORD_BYTES:
        raise InputError(
            f"it is larger than {format_bytes(LARGEST_RECORD_BYTES)}",
            path=path,
            remedy="remove what does not belong to this project",
        )
    return content.decode("utf-8", "surrogateescape")


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
    """A compiler invocation."""

    directory: Path  # it runs in
    words: tuple[str, ...]  # without the compiler and what stands in front of it
    is_cuda: bool  # it compiles CUDA C++


def find_compile_commands(words: Sequence[str], directory: Path, *, takes_any: bool = False) -> Iterator[FoundCommand]:
    """Compile commands in a line.

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


LONGEST_COMMAND = 1 << 20
MOST_WORDS = 20_000
_LARGEST_RESPONSE_BYTES = 4 << 20
_DEEPEST = 8
_MOST_RESPONSE_FILES = 1000
_RESPONSE_OPTIONS = ("--options-file", "-optf")
_PIECE = re.compile(r"""\s+|'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(\n|.)|([^\s'"\\]+)|(.)""", re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\$`\n])')


def split_words(command: str) -> tuple[str, ...]:
    r"""Words of a command, split as by a shell; nothing is expanded or run.

    An operator of the shell (``;``, ``&&``, ``|``, ``>``) that stands alone is a word of its own like any other. A backslash in front of a letter
    of a Windows path stays.

    >>> split_words(r'nvcc -DNAME=\"a\" "-I/a b" -o x.o C:\\src\\k.cu')
    ('nvcc', '-DNAME="a"', '-I/a b', '-o', 'x.o', 'C:\\src\\k.cu')
    >>> split_words(r'nvcc.exe -IC:\cuda\include k.cu')
    ('nvcc.exe', '-IC:\\cuda\\include', 'k.cu')
    """
    words: list[str] = []
    current: list[str] | None = None
    for piece in _PIECE.finditer(command[:LONGEST_COMMAND]):
        single, double, escaped, plain, other = piece.groups()
        if piece.group().isspace() and escaped is None:
            if current is not None:
                words.append("".join(current))
                current = None
            if len(words) > MOST_WORDS:
                break
            continue
        current = [] if current is None else current
        if single is not None:
            current.append(single)
        elif double is not None:
            current.append(_ESCAPED.sub(lambda found: "" if found[1] == "\n" else found[1], double))
        elif escaped is not None:
            current.append("" if escaped == "\n" else f"\\{escaped}" if escaped.isalnum() else escaped)
        else:
            current.append(plain or other or "")
    if current is not None:
        words.append("".join(current))
    return tuple(words[:MOST_WORDS])


def expand_response_files(words: Sequence[str], directory: Path) -> Iterator[str]:
    """Words, with response files (``--options-file``, ``@file``) replaced by their words.

    Raises:
        InputError: a response file cannot be read, is too large, or reads itself; or there are too many.
    """
    for count, word in enumerate(_expand(words, directory, (), itertools.count(1))):
        if count >= MOST_WORDS:
            raise InputError(f"the command has more than {MOST_WORDS} words", remedy="shorten its response files")
        yield word


def _expand(
    words: Sequence[str], directory: Path, open_files: tuple[Path, ...], numbers: Iterator[int]
) -> Iterator[str]:
    """Expand words recursively; each file read takes one of the numbers, as files may include others without holding words."""
    is_name = False
    for word in words:
        option, has_value, value = word.partition("=")
        if is_name:
            names, is_name = word, False
        elif word in _RESPONSE_OPTIONS:
            is_name = True
            continue
        elif has_value and option in _RESPONSE_OPTIONS:
            names = value
        elif word.startswith("@") and len(word) > 1:
            names = word[1:]
        else:
            yield word
            continue
        for name in names.split(","):
            path = Path(directory, name)
            if path in open_files or len(open_files) >= _DEEPEST:
                raise InputError("the response file includes itself", path=path, remedy="correct the build's files")
            if next(numbers) > _MOST_RESPONSE_FILES:
                raise InputError(
                    f"the command reads more than {_MOST_RESPONSE_FILES} response files",
                    path=path,
                    remedy="correct the build's files",
                )
            yield from _expand(split_words(_read(path)), directory, (*open_files, path), numbers)


def _read(path: Path) -> str:
    try:
        if not path.is_file():
            raise InputError("the response file does not exist", path=path, remedy="build the project once")
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_RESPONSE_BYTES + 1)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the response file cannot be read ({error})", path=path, remedy="build the project once"
        ) from error
    if len(content) > _LARGEST_RESPONSE_BYTES:
        raise InputError("the response file is too large", path=path, remedy="correct the build's files")
    return content.decode("utf-8", "surrogateescape")
