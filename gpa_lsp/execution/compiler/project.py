"""Project folder of a source, and the flags it is built with, from the records of builds: :func:`find_flags`."""

import logging
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from itertools import chain, takewhile
from pathlib import Path
from threading import Lock

from msgspec import Struct, field
from msgspec.structs import replace

import gpa_lsp.execution.compiler.commands as catalogue
from gpa_lsp.execution.compiler.commands import (
    CommandSource,
    CompileCommand,
    expand_response_files,
    find_compile_commands,
    split_words,
)
from gpa_lsp.execution.compiler.model import CompilerFlags, read_architectures
from gpa_lsp.foundation.catalogue import load_catalogue
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.locations import is_path_end

# The words of a compile command → :class:`~gpa_lsp.execution.compiler.model.CompilerFlags`.
#
# What a build's files say is never run as it stands: only words on the lists below get through, each with what it
# needs to be, so that a command can neither name a program (``-ccbin``, ``-Xcompiler -fplugin=…``) nor a file to write
# (``-o``, ``-keep-dir``, ``-MF``). Commands of clang for CUDA and of plain C++ compilers are understood as far as the
# options mean the same.

logger = logging.getLogger(__name__)

_MARKS = (
    ".git", ".hg", ".svn", ".jj", "compile_commands.json", "build.ninja", "pyproject.toml", "CMakePresets.json",
    "WORKSPACE", "meson.build",
)  # fmt: skip
_MOST_FOLDERS = 40


def list_folders_around(source: Path) -> Iterator[Path]:
    """Folders around a source, innermost first, without the file system's root and the user's home."""
    try:
        home: Path | None = Path.home()
    except RuntimeError:
        home = None
    for count, folder in enumerate(source.parents):
        if count >= _MOST_FOLDERS or folder in (folder.parent, home):
            return
        yield folder


_INCLUDES = ("-I", "--include-path", "-iquote")
_SYSTEM_INCLUDES = ("-isystem", "--system-include", "-idirafter", "/external:I", "-imsvc")
_FORCED_INCLUDES = ("-include", "--pre-include", "/FI")
_DEFINE = ("-D", "--define-macro")
_UNDEFINE = ("-U", "--undefine-macro")
_STANDARD = ("-std", "--std")
_ARCHITECTURES = (
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "--cuda-gpu-arch", "--offload-arch",
)  # fmt: skip
# Spellings of options → the kept one
_OPTIMISATION = {
    f"{dashes}{name}": "-maxrregcount" if name == "maxrregcount" else f"--{name}"
    for name in (
        "use_fast_math", "maxrregcount", "fmad", "ftz", "prec-div", "prec-sqrt", "extra-device-vectorization", "restrict",
    )
    for dashes in ("-", "--")
}  # fmt: skip
_LANGUAGE = {
    f"{dashes}{name}": kept
    for name, kept in (
        ("extended-lambda", "--extended-lambda"),
        ("expt-extended-lambda", "--extended-lambda"),
        ("expt-relaxed-constexpr", "--expt-relaxed-constexpr"),
        ("default-stream", "--default-stream"),
        ("allow-unsupported-compiler", "-allow-unsupported-compiler"),
    )
    for dashes in ("-", "--")
} | {
    "-rdc": "-rdc",
    "--relocatable-device-code": "-rdc",
    "-dc": "-rdc=true",
    "--device-c": "-rdc=true",
    "-fgpu-rdc": "-rdc=true",
    "-ewp": "--extensible-whole-program",
}
_ASSEMBLER = ("-Xptxas", "--ptxas-options")
_WITH_VALUE = frozenset({"-maxrregcount", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "-rdc", "--default-stream"})
_VALUES = re.compile(r"true|false|legacy|per-thread|null|\d{1,4}")
_ASSEMBLER_VALUES = re.compile(
    r"-?-?(?:O[0-4]|opt-level=[0-4]|(?:dlcm|def-load-cache|dscm|def-store-cache)=(?:ca|cg|cs|cv|wb|wt)|maxrregcount=\d{1,4}|allow-expensive-optimizations=(?:true|false)"
    r"|disable-optimizer-constants|fmad=(?:true|false)|flcm=\w{2}|force-load-cache=\w{2})"
)
_STANDARD_VALUES = re.compile(r"(?:c|gnu)\+\+(?:03|0x|11|1y|14|1z|17|2a|20|2b|23)")
_STANDARD_SPELLINGS = {"gnu": "c", "0x": "11", "1y": "14", "1z": "17", "2a": "20", "2b": "23"}
_MACRO = re.compile(r"[A-Za-z_]\w*(?:\([\w, .]*\))?(?:=[^\n\r\0]*)?")
_MACRO_NAME = re.compile(r"[A-Za-z_]\w*")
_JOINED = tuple(
    sorted((*_INCLUDES[:1], *_DEFINE[:1], *_UNDEFINE[:1], "-isystem", "/FI", "/external:I"), key=len, reverse=True)
)
_DROPPED_WITH_VALUE = frozenset(
    {
        "-o", "--output-file", "-MF", "-MT", "-MQ", "--dependency-output", "-ccbin", "--compiler-bindir", "-Xcompiler", "--compiler-options",
        "-Xlinker", "--linker-options", "-Xarchive", "--archive-options", "-Xnvlink", "--nvlink-options", "-x", "--x", "-L", "-l", "-odir",
        "--output-directory", "-keep-dir", "--keep-dir", "-Xcudafe", "-diag-suppress", "--diag-suppress", "-t", "--threads", "-m", "-Werror",
        "-cudart", "--cudart", "-cudadevrt", "--cudadevrt", "-Xclang", "-mllvm", "-target", "-isysroot", "-idp", "--input-drive-prefix",
        "--dependency-target-name", "-split-compile", "--split-compile", "-tmp", "-Xfatbin", "--fatbin-options", "-time", "--time", "-MG",
    }
)  # fmt: skip
_VALUED = _DROPPED_WITH_VALUE.union(
    _INCLUDES, _SYSTEM_INCLUDES, _FORCED_INCLUDES, _DEFINE, _UNDEFINE, _STANDARD, _ARCHITECTURES, _ASSEMBLER,
    (option for option, kept in (_OPTIMISATION | _LANGUAGE).items() if kept in _WITH_VALUE),
)  # fmt: skip
_MOST_DROPPED = 200


class _Gathered(Struct):
    """Flags gathered from words so far."""

    directory: Path
    includes: list[Path] = field(default_factory=list)
    system_includes: list[Path] = field(default_factory=list)
    forced_includes: list[Path] = field(default_factory=list)
    macros: list[str] = field(default_factory=list)
    standard: str | None = None
    optimisation: dict[str, str] = field(default_factory=dict)
    language: dict[str, str] = field(default_factory=dict)
    architectures: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def build_flags(words: Sequence[str], directory: Path, *, sources: Iterable[Path] = ()) -> CompilerFlags:
    """Flags of a compile command.

    Raises:
        InputError: a response file cannot be read.

    >>> found = build_flags(["-Iinc", "-DN=4", "-gencode", "arch=compute_80,code=sm_80", "-ccbin", "evil", "-o", "k.o"], Path("/b"))
    >>> [str(one) for one in found.includes], found.macros, found.compute_capabilities, found.dropped
    (['/b/inc'], ('N=4',), ((8, 0),), ('-ccbin evil', '-o k.o'))
    """
    gathered = _Gathered(directory=directory)
    passed_over = frozenset(sources)
    for option, value in _pair(expand_response_files(words, directory)):
        if value is None and not option.startswith("-") and Path(directory, option) in passed_over:
            continue
        if not _take(gathered, option, value) and len(gathered.dropped) < _MOST_DROPPED:
            gathered.dropped.append(option if value is None else f"{option} {value}")
    capabilities, variants = read_architectures(gathered.architectures)
    return CompilerFlags(
        directory=directory,
        includes=tuple(dict.fromkeys(gathered.includes)),
        system_includes=tuple(dict.fromkeys(gathered.system_includes)),
        forced_includes=tuple(gathered.forced_includes),
        macros=tuple(gathered.macros),
        standard=gathered.standard,
        optimisation=tuple(gathered.optimisation.values()),
        language=tuple(gathered.language.values()),
        compute_capabilities=capabilities,
        architectures=variants,
        dropped=tuple(gathered.dropped),
    )


def _pair(words: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values, joined or separate."""
    waiting: str | None = None
    for word in words:
        if waiting is not None:
            yield waiting, word
            waiting = None
            continue
        option, has_value, value = word.partition("=")
        joined = next((one for one in _JOINED if word.startswith(one) and len(word) > len(one)), None)
        if has_value and word.startswith("-") and option in _VALUED:
            yield option, value
        elif word in _VALUED:
            waiting = word
        elif joined is not None:
            yield joined, word[len(joined) :].removeprefix("=")
        else:
            yield word, None
    if waiting is not None:
        yield waiting, None


def _take(gathered: _Gathered, option: str, value: str | None) -> bool:
    """Keep an option; False if it is to be dropped."""
    if value is None:
        return _take_switch(gathered, option)
    for options, paths in (
        (_INCLUDES, gathered.includes),
        (_SYSTEM_INCLUDES, gathered.system_includes),
        (_FORCED_INCLUDES, gathered.forced_includes),
    ):
        if option in options:
            return _add_paths(paths, gathered.directory, value)
    if option in _DEFINE:
        return _add_macro(gathered.macros, value, _MACRO, "")
    if option in _UNDEFINE:
        return _add_macro(gathered.macros, value, _MACRO_NAME, "-")
    if option in _STANDARD:
        return _take_standard(gathered, value)
    if option in _ARCHITECTURES:
        gathered.architectures.append(value)
        return True
    return _take_setting(gathered, option, value)


def _take_switch(gathered: _Gathered, option: str) -> bool:
    for known, kept in ((_OPTIMISATION, gathered.optimisation), (_LANGUAGE, gathered.language)):
        name = known.get(option)
        if name is not None and name not in _WITH_VALUE:
            kept[name.partition("=")[0]] = name
            return True
    if option.startswith(("-std=", "/std:")):
        return _take_standard(gathered, option[len("-std=") :])
    return False


def _take_setting(gathered: _Gathered, option: str, value: str) -> bool:
    for known, kept in ((_OPTIMISATION, gathered.optimisation), (_LANGUAGE, gathered.language)):
        name = known.get(option)
        if name is not None and _VALUES.fullmatch(value):
            kept[name] = f"{name}={value}"
            return True
    if option in _ASSEMBLER:
        parts = [part for part in value.split(",") if _ASSEMBLER_VALUES.fullmatch(part)]
        for part in parts:
            gathered.optimisation[f"-Xptxas={part.partition('=')[0]}"] = f"-Xptxas={part}"
        return len(parts) == value.count(",") + 1
    return False


def _take_standard(gathered: _Gathered, value: str) -> bool:
    if not _STANDARD_VALUES.fullmatch(value):
        return False
    language, _, year = value.partition("++")
    gathered.standard = f"{_STANDARD_SPELLINGS.get(language, language)}++{_STANDARD_SPELLINGS.get(year, year)}"
    return True


def _add_paths(paths: list[Path], directory: Path, value: str) -> bool:
    # nvcc takes several behind one -I, with commas between; a folder with a comma in its name is one all the same.
    whole = Path(directory, value)
    names = [value] if "," not in value or whole.exists() else value.split(",")
    paths.extend(Path(directory, name) for name in names if name and "\n" not in name and "\0" not in name)
    return True


def _add_macro(macros: list[str], value: str, pattern: re.Pattern[str], mark: str) -> bool:
    if not pattern.fullmatch(value):
        return False
    macros.append(mark + value)
    return True


_BUILD_FOLDERS = ("build*", "Build*", "out", "cmake-build-*", "_build", "bin", ".build", "Debug", "Release")
_MOST_NAMES = 5000
_MOST_RECORDS = 40
_KEPT_RECORDS = 16
_MOST_ALIKE = 100
_MOST_READ = 100
_LARGEST_READ_BYTES = 1 << 20


class _Record(Struct, frozen=True, kw_only=True):
    """Commands of a record, indexed by file."""

    commands: tuple[CompileCommand, ...]  # all of them
    by_path: Mapping[str, Sequence[CompileCommand]]  # normalised path → commands for it
    by_name: Mapping[str, Sequence[CompileCommand]]  # file name → commands for files of that name
    general: tuple[CompileCommand, ...]  # commands that hold for every source below their folder
    doubt: str | None  # why it could not be read; None when it could


def find_flags(path: Path) -> CompilerFlags | None:
    """Flags a source is compiled with; None if no record of a build tells.

    Records (``compile_commands.json``, ``build.ninja``, recorded lines, ``compile_flags.txt``) are looked for in the folders around the source
    and in their build folders, the nearest first. A header, and a source that no command names, get the flags of a source that
    includes it, else of the nearest one.

    Args:
        path: the source or header.
    """
    return search_flags(path)[0]


def search_flags(path: Path) -> tuple[CompilerFlags | None, tuple[str, ...]]:
    """Flags as of :func:`find_flags`, and doubts even if there are no flags."""
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
    """Flags of a command; None, with a doubt added, if it cannot be used."""
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
    """Command for a file, preferably a CUDA compiler's."""
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
    """Path of a record relative to the innermost common folder."""
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
    """A folder and its build folders."""
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
    found: dict[str, tuple[CommandSource, ...]] = load_catalogue(catalogue, "COMMAND_SOURCES", tuple)
    return tuple(sorted(chain.from_iterable(found.values()), key=lambda one: one.rank))


def _read_kept(path: Path, source: CommandSource) -> _Record:
    """Read a record, cached until it changes."""
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
    """Command whose source includes a header, else that of the nearest CUDA source."""
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
    """Whether an include line may lead to a file: the one beside the source if it exists, else one whose path ends like it."""
    if beside.exists():
        return os.path.realpath(beside) == os.path.realpath(path)
    return is_path_end(str(path), os.path.normpath(name).lstrip("./"))


def _measure_nearness(path: Path, other: Path) -> int:
    """Number of folders that two paths share."""
    pairs = zip(path.parent.parts, other.parent.parts, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


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


def find_project_folder(source: Path) -> Path:
    """Outermost marked project folder around a source; its own folder if none is marked."""
    found = source.parent
    for folder in list_folders_around(source):
        if any((folder / mark).exists() for mark in _MARKS):
            found = folder
    return found
