"""Device code of a source with host code, compiled by NVRTC: for machines without nvcc or a host compiler.

Host functions are overwritten with blanks (:mod:`gpa_lsp.execution.compiler.host_code`), and kernel templates are instantiated as the host code
launches them (:mod:`gpa_lsp.execution.compiler.launches`). Rounds of compilation then leave out further code that causes errors and is not marked
as device code: host member functions, types with members of the C++ library, host code in the project's headers, missing headers.
"""

import os
import re
import zlib
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import cache
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.execution.compiler.host_code import HostCode, blank_out, find_host_code, find_removable
from gpa_lsp.execution.compiler.included_files import find_cuda_headers, find_missing_header
from gpa_lsp.execution.compiler.job import CompileJob
from gpa_lsp.execution.compiler.launches import Instantiations, find_instantiations, guess_instantiations
from gpa_lsp.execution.compiler.messages import (
    find_remedy,
    is_about_references,
    list_replacements,
    list_spellings,
    parse_messages,
)
from gpa_lsp.execution.compiler.model import CompiledUnit, CompilerKind, CompilerMessage
from gpa_lsp.execution.compiler.nvrtc_processes import PROCESSES
from gpa_lsp.execution.compiler.nvrtc_worker import NvrtcAnswer, NvrtcJob
from gpa_lsp.execution.compiler.stand_in_headers import (
    LIBRARY_HEADERS,
    RANDOM,
    list_library_names,
    read_absent_header,
    read_device_headers,
)
from gpa_lsp.foundation.errors import ProblemSeverity, UnsupportedInputError

HOST_LEFT_OUT = "host code was left out"
_NESTED = re.compile(
    r"requires separate compilation mode|^device-side kernel launch could not be processed"
    r'|identifier "cuda(?:(?:Stream|Event)\w*|Mem(?:cpy|set)\w*Async|GetLastError|PeekAtLastError|DeviceSynchronize)" is undefined'
)
_DEVICE_RUNTIME = "cuda_device_runtime_api.h"  # nvcc reads it before every source
_RELOCATABLE = "-rdc=true"
_NVCC = b"__NVCC__"  # defined by nvcc alone; sources test it before they declare device code
_UNKNOWN_NAME = re.compile(r'identifier "(\w+)" is undefined|namespace "std" has no member "(\w+)"')
_UNKNOWN_CONSTANT = re.compile(r'identifier "([A-Z][A-Z0-9_]*)" is undefined')
_COMMENT = re.compile(r"//|/\*")
_USUAL_NUMBER = "16"
_MOST_ROUNDS = 8
_UNREFERENCED = "was declared but never referenced"
_OTHER_NUMBERS = re.compile(rb"MRG32k3a|curand_poisson")
_REFERENCES = "gpa_lsp_removed_textures.h"
_FETCHES = "gpa_lsp_texture_fetches.h"
_TOO_LARGE = "the source is too large to separate host code from device code; all of it was compiled as device code"
_HOST_ONLY = re.compile(
    rb'#[ \t]*include[ \t]*[<"]((?:thrust|cub/device|cub/host|cub/grid|nvtx3|cutensor|cudnn|nvml)[^>"\n]*)[>"]'
)
_ALL_OF_CUB = re.compile(rb'#[ \t]*include[ \t]*[<"](cub/cub\.cuh)[>"]')
_PART_OF_CUB = re.compile(rb"\bcub::(Block|Warp|Thread)([A-Z]\w*)")
_WORD = re.compile(r"(?<!^)(?=[A-Z])")


class _Text(Struct):
    """A source or header, and the spans to leave out of it."""

    host: HostCode
    spans: list[tuple[int, int]]

    def leave_out(self, line: int, column: int | None) -> bool:
        """Leave out the code at a place; False if nothing there can be, or it is already."""
        added = [
            span
            for span in find_removable(self.host, line, column)
            if not any(start <= span[0] and span[1] <= end for start, end in self.spans)
        ]
        self.spans += added
        return bool(added)

    def write(self) -> bytes:
        return blank_out(self.host.content, sorted(self.spans))


class _Language(Enum):
    """Removed or optional language features; the value is the note about one."""

    WARPS = "functions of warps that CUDA 9 removed, such as __shfl, were compiled with a mask of all lanes"
    REFERENCES = "texture references, which CUDA 12 removed, were compiled as texture objects"
    SPELLING = (
        "functions that CUDA has no more, such as mul24, were compiled as those with underscores, such as __mul24"
    )
    NESTED = f"kernels launch kernels: device code was compiled with {_RELOCATABLE}"
    LIBRARY = "names of the C and C++ libraries are used without their headers, which were read all the same"


class _Attempt(Struct):
    """State of the compilation between rounds: what is left out, and the features and constants that are needed."""

    source: _Text
    expressions: list[str]
    headers: dict[Path, _Text] = field(default_factory=dict)
    absent_headers: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    removed_lines: set[int] = field(default_factory=set)
    language: dict[_Language, tuple[str, ...]] = field(default_factory=dict)
    absent: list[CompilerMessage] = field(default_factory=list)
    guessed: list[str] = field(default_factory=list)
    constants: dict[str, str] = field(default_factory=dict)


def compile_device_part(job: CompileJob, host: HostCode | None = None) -> CompiledUnit:
    """Compile what NVRTC can of a source.

    Raises:
        MissingToolError: NVRTC is not installed.
        ToolError: it crashed, did not end in time, or was cancelled.
        UnsupportedInputError: this NVRTC does not know the architecture.
    """
    host = host or find_host_code(job.content, job.included.headers.values())
    if host is None:
        unit = compile_with_nvrtc(job)
        return replace(unit, notes=(*unit.notes, _TOO_LARGE))
    asked = find_instantiations(host.tree)
    attempt = _Attempt(source=_Text(host, list(host.spans)), expressions=list(asked.expressions))
    first, unit, seconds = _compile_in_rounds(job, attempt)
    guessed = () if unit.has_failed or ".entry" in (unit.ptx or "") else guess_instantiations(host.tree)
    if guessed:
        attempt.expressions = list(guessed)
        _, more, more_seconds = _compile_in_rounds(job, attempt)
        unit = unit if more.has_failed else more
        attempt.guessed = [] if more.has_failed else list(attempt.expressions)
        seconds += more_seconds
    if unit.has_failed:
        removed = tuple(one for one in unit.messages if find_remedy(one.text) and one not in first.messages)
        messages = (*removed, *first.messages)
        return replace(
            first,
            messages=messages,
            seconds=seconds,
            notes=tuple(_write_notes(host, asked, _Attempt(source=attempt.source, expressions=[]))),
        )
    # Messages about code that was left out are consequences of that, and so is that nothing refers to what it launches
    said = tuple(
        one
        for one in unit.messages
        if (one.path != job.path or one.line not in attempt.removed_lines)
        and not (host.has_host and _UNREFERENCED in one.text)
    )
    is_left_out = unit.is_host_left_out or bool(attempt.removed_lines or attempt.headers or attempt.absent_headers)
    notes = tuple(_write_notes(host, asked, attempt))
    messages = (*attempt.absent, *said)
    return replace(unit, messages=messages, is_host_left_out=is_left_out, seconds=seconds, notes=notes)


def _compile_in_rounds(job: CompileJob, attempt: _Attempt) -> tuple[CompiledUnit, CompiledUnit, float]:
    """First and last unit of rounds that leave out more and more, and the seconds of all."""
    first = unit = _compile(job, attempt)
    seconds = unit.seconds
    for _ in range(_MOST_ROUNDS):
        if not unit.has_failed or seconds > job.settings.limit_s or not _leave_out_more(job, attempt, unit):
            break
        unit = _compile(job, attempt)
        seconds += unit.seconds
    return first, unit, seconds


def _compile(job: CompileJob, attempt: _Attempt) -> CompiledUnit:
    headers = [(name, _read_absent(name)) for name in attempt.absent_headers]
    flags = job.flags
    macros = tuple(macro for some in attempt.language.values() for macro in some)
    macros += tuple(f"{name}={value}" for name, value in attempt.constants.items())
    flags = replace(flags, macros=(*flags.macros, *macros))
    if _Language.REFERENCES in attempt.language:
        headers += [(name, _read_absent(name)) for name in (_REFERENCES, _FETCHES)]
        flags = replace(flags, forced_includes=(Path(_REFERENCES), *flags.forced_includes))
    if _Language.LIBRARY in attempt.language:
        flags = replace(flags, forced_includes=(*map(Path, LIBRARY_HEADERS), *flags.forced_includes))
    if _NVCC in job.content or any(_NVCC in text for text in job.included.headers.values()):
        flags = replace(flags, macros=(_NVCC.decode(), *flags.macros))
    if _Language.NESTED in attempt.language:
        flags = replace(flags, language=(*flags.language, _RELOCATABLE))
        if any((folder / _DEVICE_RUNTIME).is_file() for folder in find_cuda_headers()):
            flags = replace(flags, forced_includes=(Path(_DEVICE_RUNTIME), *flags.forced_includes))
    job = replace(job, flags=flags)
    if attempt.source.host.has_host:
        headers += replace_host_libraries((job.content, *job.included.headers.values()))
    for path, text in attempt.headers.items():
        content = _wrap_header(path, text.write())
        headers += [(name, content) for name in job.included.spellings.get(path, ())]
    return compile_with_nvrtc(
        job,
        DeviceText(
            content=attempt.source.write(),
            expressions=tuple(attempt.expressions),
            headers=tuple(headers),
            folders=tuple(dict.fromkeys(path.parent for path in attempt.headers)),
            is_host_left_out=attempt.source.host.has_host,
        ),
    )


@cache
def _read_absent(name: str) -> str:
    """Device code of a missing header's stand-in; empty if there is none."""
    text = (read_absent_header(name) or "").encode()
    host = None if b"__device__" in text else find_host_code(text)
    return (text if host is None else blank_out(text, host.spans)).decode()


def _wrap_header(path: Path, content: bytes) -> str:
    """Text of a header with its own path, read once only if it says so, whatever name it is included by."""
    guard = f"GPA_LSP_HEADER_{zlib.crc32(str(path).encode('utf-8', 'surrogateescape')):x}"
    begin = f"#ifndef {guard}\n#define {guard}\n" if b"#pragma once" in content else "#if 1\n"
    name = str(path).replace("\\", "\\\\").replace('"', "?")
    return f'{begin}#line 1 "{name}"\n{content.decode("utf-8", "replace")}\n#endif\n'


def _leave_out_more(job: CompileJob, attempt: _Attempt, unit: CompiledUnit) -> bool:
    """React to the errors of an attempt; False if nothing more can be done."""
    has_changed = False
    known = frozenset(attempt.language)
    for message in unit.messages:
        if message.severity is not ProblemSeverity.ERROR:
            continue
        language = _find_language(message.text)
        if language is not None and language not in known:
            has_changed = True
            attempt.language[language] = list_replacements(message.text) or list_spellings(message.text)
            if has_changed and language is _Language.LIBRARY:
                return True  # what follows from a type that is not known is no reason to leave anything out
        elif message.path is not None:
            has_changed |= _answer_message(job, attempt, message, message.path)
    return has_changed


def _answer_message(job: CompileJob, attempt: _Attempt, message: CompilerMessage, path: Path) -> bool:
    """Leave out or define what an error is about; False if neither is possible."""
    missing = find_missing_header(message.text)
    if _take_for_constant(job, attempt, message.text):
        return True
    if path.name == NAME_MAP:
        return _drop_expression(attempt, message.text)
    if missing is not None:
        return _do_without(job, attempt, missing, message)
    if message.line is None:
        return False
    if path == job.path:
        is_out = attempt.source.leave_out(message.line, message.column)
        attempt.removed_lines.update([message.line] if is_out else ())
        return is_out
    path = Path(os.path.normpath(path))  # compilers keep the ".." of what includes it
    return path in job.included.headers and _leave_out_of_header(job, attempt, path, message.line, message.column)


def _find_language(text: str) -> _Language | None:
    """Language feature whose absence a message reports; None for other messages."""
    if list_replacements(text):
        return _Language.WARPS
    if list_spellings(text):
        return _Language.SPELLING
    if is_about_references(text):
        return _Language.REFERENCES
    if _NESTED.search(text):
        return _Language.NESTED
    found = _UNKNOWN_NAME.search(text)
    is_library = found is not None and any(one in list_library_names() for one in found.groups())
    return _Language.LIBRARY if is_library else None


def _take_for_constant(job: CompileJob, attempt: _Attempt, text: str) -> bool:
    """Define a missing name in capitals: as the project does under a condition or, if its header is missing, as a usual number."""
    found = _UNKNOWN_CONSTANT.search(text)
    if found is None or found[1] in attempt.constants or re.search(rb"\b" + found[1].encode() + rb"\s*\(", job.content):
        return False  # a call needs more than a number
    definition = re.compile(rb"^[ \t]*#[ \t]*define[ \t]+" + found[1].encode() + rb"[ \t]+([^\n]*)", re.MULTILINE)
    texts = (job.content, *job.included.headers.values())
    defined = next((match for one in texts if (match := definition.search(one)) is not None), None)
    if defined is not None:
        value = _COMMENT.split(defined[1].decode("utf-8", "replace"))[0].strip()
        if value.endswith("\\"):
            return False
    elif any(
        f'"{name}"'.encode() in job.content for name in attempt.absent_headers if read_absent_header(name) is None
    ):
        value = _USUAL_NUMBER
    else:
        return False
    attempt.constants[found[1]] = value
    return True


def _do_without(job: CompileJob, attempt: _Attempt, missing: str, message: CompilerMessage) -> bool:
    """Replace a missing header by its stand-in or an empty one; warn about the project's own (in quotes)."""
    if missing in attempt.absent_headers:
        return False
    attempt.absent_headers.append(missing)
    if read_absent_header(missing) is None and f'"{missing}"'.encode() in job.content:
        attempt.absent.append(replace(message, severity=ProblemSeverity.WARNING))
    return True


def _leave_out_of_header(job: CompileJob, attempt: _Attempt, path: Path, line: int, column: int | None) -> bool:
    text = attempt.headers.get(path)
    if text is not None:
        return text.leave_out(line, column)
    host = find_host_code(job.included.headers[path], job.included.headers.values())
    if host is None:
        return False
    text = attempt.headers[path] = _Text(host, list(host.spans))
    return text.leave_out(line, column) or bool(host.spans)


def _drop_expression(attempt: _Attempt, text: str) -> bool:
    """Drop the instantiation that the compiler refuses; all of them if it does not say which."""
    squeezed = text.replace(" ", "")
    refused = [one for one in attempt.expressions if f'"{one.replace(" ", "")}"' in squeezed]
    if not refused and "Error in parsing name expression" not in text:
        return False
    for one in refused or list(attempt.expressions):
        attempt.expressions.remove(one)
        attempt.refused.append(one)
    return True


def _write_notes(host: HostCode, asked: Instantiations, attempt: _Attempt) -> list[str]:
    notes = []
    if host.has_host:
        notes.append(f"{HOST_LEFT_OUT}: NVRTC compiles device code only")
    replaced = [name for name in attempt.absent_headers if read_absent_header(name) is not None]
    empty = [name for name in attempt.absent_headers if name not in replaced]
    if empty:
        notes.append(f"missing headers were treated as empty: {', '.join(empty[:5])}")
    if replaced:
        notes.append(f"{', '.join(replaced[:5])} could not be found: headers of gpa_lsp were read instead")
    if RANDOM in replaced and (found := _OTHER_NUMBERS.search(host.content)) is not None:
        notes.append(f"random numbers of {found[0].decode()} are not those of cuRAND: {RANDOM} is not installed")
    if attempt.removed_lines:
        lines = ", ".join(map(str, sorted(attempt.removed_lines)[:8]))
        notes.append(f"host-only code was left out on lines {lines}")
    notes += [one.value for one in attempt.language]
    if attempt.headers:
        names = ", ".join(path.name for path in list(attempt.headers)[:5])
        notes.append(f"host-only code was left out of {names}")
    if attempt.constants:
        shown = ", ".join(f"{name} = {value}" for name, value in list(attempt.constants.items())[:8])
        notes.append(f"constants that are missing, or defined under a condition only, were taken for {shown}")
    if attempt.guessed:
        shown = ", ".join(attempt.guessed[:5])
        notes.append(f"no launch in this file gives the arguments of its templates; guessed: {shown}")
    known = {one.partition("<")[0].rpartition("::")[2] for one in attempt.guessed}
    notes += [
        f"{name} is a template, and no launch in this file gives its arguments; it was not compiled"
        for name in [one for one in asked.untold if one not in known][:5]
    ]
    refused = [one for one in attempt.refused if one.partition("<")[0] not in known][:5]
    return [*notes, *(f"{one} could not be compiled from this file alone" for one in refused)]


def replace_host_libraries(texts: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """(name in the ``#include``, replacement) of headers of libraries that launch kernels themselves.

    The parts of CUB that run in a block or a warp are kept: ``cub/cub.cuh`` becomes the headers of those that the texts name.

    >>> list(replace_host_libraries([b"#include <thrust/sort.h>\\n#include <cub/cub.cuh>\\n cub::BlockReduce<int, 4> r;"]))
    [('thrust/sort.h', ''), ('cub/cub.cuh', '#include <cub/block/block_reduce.cuh>\\n')]
    """
    kept = tuple(texts)
    seen: set[str] = set()
    for text in kept:
        for found in _HOST_ONLY.finditer(text):
            name = found[1].decode("utf-8", "replace")
            if name not in seen and not name.startswith(("thrust/complex", "thrust/tuple", "thrust/pair")):
                seen.add(name)
                yield name, ""
    if any(_ALL_OF_CUB.search(text) for text in kept):
        parts = dict.fromkeys(
            f"cub/{found[1].decode().lower()}/{_spell(found[1] + found[2])}.cuh"
            for text in kept
            for found in _PART_OF_CUB.finditer(text)
        )
        yield "cub/cub.cuh", "".join(f"#include <{part}>\n" for part in parts)


def _spell(name: bytes) -> str:
    """``BlockRadixSort`` → ``block_radix_sort``."""
    return _WORD.sub("_", name.decode()).lower()


_KNOWN_SWITCHES = ("--use_fast_math", "-maxrregcount", "--fmad", "--ftz", "--prec-div", "--prec-sqrt", "--restrict",
                   "--extra-device-vectorization", "-Xptxas", "-rdc", "--extensible-whole-program")  # fmt: skip
# Functions that say neither host nor device are compiled for the device; without it NVRTC refuses members of classes and ``constexpr`` functions
_UNANNOTATED = "-default-device"

_LONG_INT64 = "--define-macro=GPA_LSP_LONG_INT64"
_LIMITS = "limits.h"  # nvcc reads it before every source, and old ones count on that
_NVIDIA_LIBRARY = re.compile(
    rb'#[ \t]*include[ \t]*[<"]((?:cuda/|cub/|thrust/|cooperative_groups|cuda_pipeline|cuda_awbarrier|nv/)[^>"\n]*)[>"]'
)
_TWO_INT64 = 'invalid redeclaration of type name "'

NAME_MAP = "__nv_name_map"  # The file NVRTC names in errors about instantiations that it was asked for


class DeviceText(Struct, frozen=True, kw_only=True):
    """Text and headers to compile."""

    content: bytes  # stands in place of the source's text, with the same lines and columns
    expressions: tuple[str, ...] = ()  # kernel templates to instantiate
    # (name in the ``#include``, text) of headers that are taken from here and from nowhere else
    headers: tuple[tuple[str, str], ...] = ()
    folders: tuple[Path, ...] = ()  # searched for headers besides those of the flags
    is_host_left_out: bool = False  # ``content`` has blanks where the source has host code


def compile_with_nvrtc(job: CompileJob, text: DeviceText | None = None) -> CompiledUnit:
    """Compile the device code of a source.

    Args:
        text: the part of it that is compiled; None for all of it.

    Raises:
        MissingToolError: NVRTC is not installed.
        ToolError: it crashed, did not end in time, or was cancelled.
        UnsupportedInputError: this NVRTC does not know the architecture.
    """
    text = text or DeviceText(content=job.content)
    greeting = PROCESSES.greet()
    number = job.compute_capability[0] * 10 + job.compute_capability[1]
    if number not in greeting.architectures:
        known = ", ".join(f"sm_{one}" for one in greeting.architectures)
        version = ".".join(map(str, greeting.version or ()))
        raise UnsupportedInputError(
            f"NVRTC {version} does not compile for {job.target}",
            path=job.path,
            remedy=f"choose one of {known}, or install another release of NVRTC",
        )
    takes_long = os.name != "nt" and not _reads_nvidia_library(job, text)
    answer = _ask(job, text, takes_long=takes_long)
    if takes_long and answer.error is not None and _TWO_INT64 in answer.log:
        answer = _ask(job, text, takes_long=False)
    return _build_unit(job, answer, f"NVRTC {'.'.join(map(str, greeting.version or ()))}", text.is_host_left_out)


def _reads_nvidia_library(job: CompileJob, text: DeviceText) -> bool:
    empty = {name for name, content in text.headers if not content}
    texts = (text.content, *job.included.headers.values())
    return any(
        found[1].decode("utf-8", "replace") not in empty for one in texts for found in _NVIDIA_LIBRARY.finditer(one)
    )


def _ask(job: CompileJob, text: DeviceText, *, takes_long: bool) -> NvrtcAnswer:
    headers = dict((*read_device_headers(), *text.headers))
    return PROCESSES.compile(
        NvrtcJob(
            source=text.content,
            name=str(job.path),
            options=(*_list_options(job, text.folders), *([_LONG_INT64] if takes_long else [])),
            headers=tuple(headers.items()),
            expressions=text.expressions,
            limit_s=job.settings.limit_s,
        ),
        is_cancelled=job.is_cancelled,
    )


def _list_options(job: CompileJob, folders: tuple[Path, ...]) -> Iterator[str]:
    flags = job.flags
    yield f"--gpu-architecture={job.target}"
    yield "-lineinfo"
    if flags.standard is not None:
        yield f"--std={flags.standard}"
    for macro in flags.macros:
        yield f"--undefine-macro={macro[1:]}" if macro.startswith("-") else f"--define-macro={macro}"
    for folder in (*flags.includes, *flags.system_includes, *folders, *find_cuda_headers()):
        yield f"--include-path={folder}"
    yield f"--pre-include={_LIMITS}"
    for header in flags.forced_includes:
        yield f"--pre-include={header}"
    for switch in (*flags.optimisation, *flags.language):
        if switch.partition("=")[0] in _KNOWN_SWITCHES:
            yield switch
    yield _UNANNOTATED


def _build_unit(job: CompileJob, answer: NvrtcAnswer, compiler: str, is_host_left_out: bool) -> CompiledUnit:
    messages = parse_messages(answer.log, find_line=job.find_line)
    if answer.error is not None and not any(one.severity is ProblemSeverity.ERROR for one in messages):
        words = " ".join(answer.log.split())[:500]
        text = f"{compiler} failed ({answer.error})" + (f": {words}" if words else "")
        messages = (*messages, CompilerMessage(severity=ProblemSeverity.ERROR, text=text, path=job.path))
    return CompiledUnit(
        source=job.path,
        kind=CompilerKind.NVRTC,
        compiler=compiler,
        compute_capability=job.compute_capability,
        ptx=answer.ptx.decode("utf-8", "replace") if answer.ptx is not None else None,
        cubin=answer.cubin,
        messages=messages,
        is_host_left_out=is_host_left_out,
        seconds=answer.seconds,
    )
