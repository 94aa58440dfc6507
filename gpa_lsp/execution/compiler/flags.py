"""The words of a compile command → :class:`~gpa_lsp.execution.compiler.model.CompilerFlags`.

What a build's files say is never run as it stands: only words on the lists below get through, each with what it needs to be, so that a command
can neither name a program (``-ccbin``, ``-Xcompiler -fplugin=…``) nor a file to write (``-o``, ``-keep-dir``, ``-MF``). Commands of clang for CUDA
and of plain C++ compilers are understood as far as the options mean the same.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct, field

from gpa_lsp.execution.compiler.architectures import read_architectures
from gpa_lsp.execution.compiler.model import CompilerFlags
from gpa_lsp.execution.compiler.words import expand_response_files

_INCLUDES = ("-I", "--include-path", "-iquote")
_SYSTEM_INCLUDES = ("-isystem", "--system-include", "-idirafter", "/external:I", "-imsvc")
_FORCED_INCLUDES = ("-include", "--pre-include", "/FI")
_DEFINE = ("-D", "--define-macro")
_UNDEFINE = ("-U", "--undefine-macro")
_STANDARD = ("-std", "--std")
_ARCHITECTURES = (
    "-arch", "--gpu-architecture", "-code", "--gpu-code", "-gencode", "--generate-code", "--cuda-gpu-arch", "--offload-arch",
)  # fmt: skip
_OPTIMISATION = {
    "-use_fast_math": "--use_fast_math",
    "--use_fast_math": "--use_fast_math",
    "-maxrregcount": "-maxrregcount",
    "--maxrregcount": "-maxrregcount",
    "-fmad": "--fmad",
    "--fmad": "--fmad",
    "-ftz": "--ftz",
    "--ftz": "--ftz",
    "-prec-div": "--prec-div",
    "--prec-div": "--prec-div",
    "-prec-sqrt": "--prec-sqrt",
    "--prec-sqrt": "--prec-sqrt",
    "-extra-device-vectorization": "--extra-device-vectorization",
    "--extra-device-vectorization": "--extra-device-vectorization",
    "-restrict": "--restrict",
    "--restrict": "--restrict",
}
_LANGUAGE = {
    "-extended-lambda": "--extended-lambda",
    "--extended-lambda": "--extended-lambda",
    "--expt-extended-lambda": "--extended-lambda",
    "-expt-extended-lambda": "--extended-lambda",
    "--expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "-expt-relaxed-constexpr": "--expt-relaxed-constexpr",
    "-rdc": "-rdc",
    "--relocatable-device-code": "-rdc",
    "-dc": "-rdc=true",
    "--device-c": "-rdc=true",
    "-fgpu-rdc": "-rdc=true",
    "-ewp": "--extensible-whole-program",
    "--default-stream": "--default-stream",
    "-default-stream": "--default-stream",
    "-allow-unsupported-compiler": "-allow-unsupported-compiler",
    "--allow-unsupported-compiler": "-allow-unsupported-compiler",
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
_MOST_DROPPED = 200


class _Gathered(Struct):
    """What the words have said so far."""

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


def build_flags(
    words: Sequence[str], directory: Path, *, origin: str = "", sources: Iterable[Path] = ()
) -> CompilerFlags:
    """The flags in a compile command.

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
        origin=origin,
    )


def _pair(words: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values, however the two are put together."""
    waiting: str | None = None
    for word in words:
        if waiting is not None:
            yield waiting, word
            waiting = None
            continue
        option, has_value, value = word.partition("=")
        joined = next((one for one in _JOINED if word.startswith(one) and len(word) > len(one)), None)
        if has_value and word.startswith("-") and _takes_value(option):
            yield option, value
        elif _takes_value(word):
            waiting = word
        elif joined is not None:
            yield joined, word[len(joined) :].removeprefix("=")
        else:
            yield word, None
    if waiting is not None:
        yield waiting, None


def _takes_value(option: str) -> bool:
    return (
        option in _DROPPED_WITH_VALUE
        or option
        in (
            *_INCLUDES,
            *_SYSTEM_INCLUDES,
            *_FORCED_INCLUDES,
            *_DEFINE,
            *_UNDEFINE,
            *_STANDARD,
            *_ARCHITECTURES,
            *_ASSEMBLER,
        )
        or _OPTIMISATION.get(option) in _WITH_VALUE
        or _LANGUAGE.get(option) in _WITH_VALUE
    )


def _take(gathered: _Gathered, option: str, value: str | None) -> bool:
    """Keep an option; False when it is not one that is kept."""
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
