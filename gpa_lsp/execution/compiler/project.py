"""The flags a source is built with, out of what builds leave behind: :func:`find_flags`."""

import logging
import os
import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

import gpa_lsp.execution.compiler.commands as catalogue
from gpa_lsp.execution.compiler.command_lines import find_compile_commands
from gpa_lsp.execution.compiler.commands import CommandSource, CompileCommand
from gpa_lsp.execution.compiler.flags import build_flags
from gpa_lsp.execution.compiler.model import CompilerFlags
from gpa_lsp.execution.compiler.project_folder import list_folders_around
from gpa_lsp.execution.compiler.words import split_words
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import is_path_end

logger = logging.getLogger(__name__)

_BUILD_FOLDERS = ("build*", "Build*", "out", "cmake-build-*", "_build", "bin", ".build", "Debug", "Release")
_MOST_NAMES = 5000
_MOST_RECORDS = 40
_KEPT_RECORDS = 16
_MOST_ALIKE = 100
_MOST_READ = 100
_LARGEST_READ_BYTES = 1 << 20


class _Record(Struct, frozen=True, kw_only=True):
    """What a record holds, by the files that it names."""

    commands: tuple[CompileCommand, ...]  # all of them
    by_path: Mapping[str, Sequence[CompileCommand]]  # normalised path → commands for it
    by_name: Mapping[str, Sequence[CompileCommand]]  # file name → commands for files of that name
    general: tuple[CompileCommand, ...]  # commands that hold for every source below their folder
    doubt: str | None  # why it could not be read; None when it could


def find_flags(path: Path) -> CompilerFlags | None:
    """The flags a source is compiled with; None when no record of a build says anything of it.

    Records (``compile_commands.json``, ``build.ninja``, recorded lines, ``compile_flags.txt``) are looked for in the folders around the source
    and in their build folders, the nearest first. A header, and a source that no command names, get the flags of a source that
    includes it, else of the nearest one.

    Args:
        path: the source or header.
    """
    return search_flags(path)[0]


def search_flags(path: Path) -> tuple[CompilerFlags | None, tuple[str, ...]]:
    """As :func:`find_flags`, and the doubts on the way also where there are no flags to carry them."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 - links stay, as builds name them
    doubts: list[str] = []
    records: list[tuple[Path, _Record]] = []
    for record, source in _find_records(path):
        content = _read_kept(record, source)
        if content.doubt is not None:
            doubts.append(content.doubt)
        found = _choose(content, path)
        flags = _build(found, record, path, doubts) if found is not None else None
        if flags is not None:
            return flags, flags.doubts
        records.append((record, content))
    for record, content in records:
        related = choose_related(path, [one for one in content.commands if one.file is not None])
        flags = _build(related, record, path, doubts) if related is not None else None
        if flags is not None:
            return flags, flags.doubts
    return None, tuple(doubts)


def _build(command: CompileCommand, record: Path, path: Path, doubts: list[str]) -> CompilerFlags | None:
    """The flags of a command; None, and a doubt more, where it cannot be used."""
    origin = _name_record(record, path)
    sources = [one for one in (command.file, path) if one is not None]
    words, directory = command.words, command.directory
    if command.line is not None:
        found = next(find_compile_commands(split_words(command.line), directory, takes_any=True), None)
        words, directory = (found.words, found.directory) if found is not None else ((), directory)
    try:
        flags = build_flags(words, directory, sources=sources)
    except InputError as error:
        doubts.append(f"the compile command in {origin} cannot be used: {error}")
        return None
    if command.file is None or _is_same(command.file, path):
        return replace(flags, origin=origin, doubts=tuple(doubts))
    doubts.append(f"no compile command names this file; the flags are those of {command.file.name} in {origin}")
    return replace(flags, origin=f"{origin} ({command.file.name})", doubts=tuple(doubts))


def _is_same(file: Path, path: Path) -> bool:
    return _normalise(file) == _normalise(path) or os.path.realpath(file) == os.path.realpath(path)


def _choose(record: _Record, path: Path) -> CompileCommand | None:
    """The command for a file; of several, one by a compiler of CUDA."""
    named = record.by_path.get(_normalise(path), ())
    if not named:
        real = os.path.realpath(path)
        alike = record.by_name.get(path.name, ())[:_MOST_ALIKE]
        named = [one for one in alike if one.file is not None and os.path.realpath(one.file) == real]
    named = named or [one for one in record.general if path.is_relative_to(one.directory)]
    return min(named, key=lambda one: not one.is_cuda, default=None)


def _normalise(path: Path) -> str:
    return os.path.normcase(os.path.normpath(path))


def _name_record(record: Path, path: Path) -> str:
    """The name of a record as a person near the source would say it."""
    for folder in list_folders_around(path):
        if record.is_relative_to(folder):
            return record.relative_to(folder).as_posix()
    return str(record)


def _find_records(path: Path) -> Iterator[tuple[Path, CommandSource]]:
    count = 0
    for folder in list_folders_around(path):
        places = tuple(_list_places(folder))
        for source in _load_sources():
            for place in places:
                found = _find_in(place, source)
                if found is not None and count < _MOST_RECORDS:
                    yield found, source
                    count += 1


def _find_in(place: Path, source: CommandSource) -> Path | None:
    for name in source.names:
        try:
            if (place / name).is_file():
                return place / name
        except OSError:
            return None
    return None


def _list_places(folder: Path) -> Iterator[Path]:
    """A folder and the build folders in it."""
    yield folder
    found: list[str] = []
    try:
        with os.scandir(folder) as listing:
            for count, item in enumerate(listing):
                if count > _MOST_NAMES:
                    break
                if any(fnmatchcase(item.name, pattern) for pattern in _BUILD_FOLDERS) and item.is_dir():
                    found.append(item.name)
    except OSError as error:
        logger.debug("%s is not searched for records of builds: %s", folder, error)
    yield from (folder / name for name in sorted(found))


@cache
def _load_sources() -> tuple[CommandSource, ...]:
    found: dict[str, CommandSource] = load_catalogue(catalogue, "COMMAND_SOURCE", CommandSource)
    return tuple(sorted(found.values(), key=lambda one: one.rank))


def _read_kept(path: Path, source: CommandSource) -> _Record:
    """A record, kept while it does not change."""
    try:
        facts = path.stat()
    except OSError as error:
        return _index((), f"compile commands are not read: {path}: {error}")
    key = (str(path), facts.st_size, facts.st_mtime_ns)
    with _LOCK:
        kept = _KEPT.get(key)
        if kept is not None:
            _KEPT.move_to_end(key)
            return kept
    try:
        kept = _index(tuple(source.read(path)), None)
    except InputError as error:
        kept = _index((), f"compile commands are not read: {error}")
    except (OSError, ValueError) as error:  # names that no system call takes
        kept = _index((), f"compile commands are not read: {path}: {error}")
    with _LOCK:
        _KEPT[key] = kept
        while len(_KEPT) > _KEPT_RECORDS:
            _KEPT.popitem(last=False)
    return kept


def _index(commands: tuple[CompileCommand, ...], doubt: str | None) -> _Record:
    by_path: dict[str, list[CompileCommand]] = {}
    by_name: dict[str, list[CompileCommand]] = {}
    for command in commands:
        if command.file is not None:
            by_path.setdefault(_normalise(command.file), []).append(command)
            by_name.setdefault(command.file.name, []).append(command)
    general = tuple(one for one in commands if one.file is None)
    return _Record(commands=commands, by_path=by_path, by_name=by_name, general=general, doubt=doubt)


def choose_related(path: Path, commands: Sequence[CompileCommand]) -> CompileCommand | None:
    """The command whose source includes a header; else that of the nearest source, CUDA's before others."""
    by_nearness = sorted(
        commands, key=lambda one: (not one.is_cuda, -_measure_nearness(path, one.file or one.directory))
    )
    included = re.compile(rb'#[ \t]*include[ \t]*["<]([^"<>\n]*' + re.escape(os.fsencode(path.name)) + rb')[">]')
    for command in by_nearness[:_MOST_READ]:
        if command.file is None:
            continue
        names = (os.fsdecode(found[1]) for found in included.finditer(_read(command.file)))
        if any(_may_mean(command.file.parent / name, name, path) for name in names):
            return command
    return next((one for one in by_nearness if one.is_cuda), None)


def _may_mean(beside: Path, name: str, path: Path) -> bool:
    """Whether an include line may lead to a file: to the one beside the source where that is there, else to one that ends as the line says."""
    if beside.exists():
        return os.path.realpath(beside) == os.path.realpath(path)
    return is_path_end(str(path), os.path.normpath(name).lstrip("./"))


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


_KEPT: OrderedDict[tuple[str, int, int], _Record] = OrderedDict()
_LOCK = Lock()
