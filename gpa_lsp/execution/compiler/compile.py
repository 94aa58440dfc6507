"""A source → PTX, cubin and messages: chooses flags and compiler, and retries without host code."""

import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.execution.compiler.device_part import HOST_LEFT_OUT, compile_device_part
from gpa_lsp.execution.compiler.host_code import HostCode, find_conditions, find_host_code
from gpa_lsp.execution.compiler.included_files import explain_missing_headers, find_missing_header, include_with_search
from gpa_lsp.execution.compiler.job import UNITS, CompileJob, make_key, name_in_include, read_source, write_shadow
from gpa_lsp.execution.compiler.launches import guess_instantiations
from gpa_lsp.execution.compiler.messages import explain_removed_names, find_remedy, parse_messages
from gpa_lsp.execution.compiler.model import (
    DEFAULT_COMPUTE_CAPABILITY,
    DEFAULT_SETTINGS,
    CompiledUnit,
    CompilerChoice,
    CompilerFlags,
    CompilerKind,
    CompilerMessage,
    CompileSettings,
)
from gpa_lsp.execution.compiler.nvcc_location import INSTALL, TOOL, NvccInstallation, build_environment, find_nvcc
from gpa_lsp.execution.compiler.nvrtc_processes import identify_nvrtc, list_nvrtc_architectures
from gpa_lsp.execution.compiler.project import find_project_folder, search_flags
from gpa_lsp.foundation.errors import InputError, MissingToolError, ProblemSeverity, ToolError, UnsupportedInputError
from gpa_lsp.foundation.files import read_bounded
from gpa_lsp.foundation.locations import read_escapes
from gpa_lsp.foundation.numbers import format_bytes, format_count_of
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, RunLimits, TimeLimits, run_command

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./+=:@~-]*")
_PLAIN_PATH = re.compile(r"[\w./+=:@~ \\()-]+" if os.name == "nt" else r"[\w./+=:@~ -]+")
_SHADOW = "shadow.cu"
_IMAGE = "device.cubin"
_KEPT = "kept"


class NvccCommand(Struct, frozen=True, kw_only=True):
    """An nvcc command and its files, all in one temporary folder."""

    words: tuple[str, ...]  # the command
    image: Path  # where the cubin will be
    ptx: Path  # where the PTX will be
    links: dict[Path, Path]  # link → folder it stands for


def prepare_command(job: CompileJob, program: Path, folder: Path) -> NvccCommand:
    """Write the text that nvcc is to compile into a folder, and its command.

    Raises:
        ToolError: the system's temporary folder has a name that nvcc cannot be given.
    """
    if not _PLAIN_PATH.fullmatch(str(folder)):
        raise ToolError("nvcc", f"the temporary folder has an unusual name, {folder}; set TMPDIR to another")
    flags = job.flags
    has_plain_macros = all(_PLAIN_WORD.fullmatch(macro) for macro in flags.macros)
    links: dict[Path, Path] = {}
    forced = b"".join(_include_first(header, folder, links) for header in flags.forced_includes)
    (folder / _SHADOW).write_bytes(
        write_shadow(job.content, job.path, () if has_plain_macros else flags.macros, first=forced)
    )
    (folder / _KEPT).mkdir()
    image = folder / _IMAGE
    words = [str(program), "-cubin", f"-arch={job.target}", "-lineinfo", "--keep", f"--keep-dir={folder / _KEPT}"]
    words += [f"-std={flags.standard}"] if flags.standard is not None else []
    words += [*flags.optimisation, *flags.language]
    words += [f"-U{macro[1:]}" if macro.startswith("-") else f"-D{macro}" for macro in flags.macros if has_plain_macros]
    for option, folders in (("-I", (*flags.includes, job.path.parent)), ("-isystem=", flags.system_includes)):
        words += [option + name for name in _name_plainly(folders, folder, links)]
    words += ["-x", "cu", str(folder / _SHADOW), "-o", str(image)]
    return NvccCommand(words=tuple(words), image=image, ptx=folder / _KEPT / f"{Path(_SHADOW).stem}.ptx", links=links)


def _include_first(header: Path, temporary: Path, links: dict[Path, Path]) -> bytes:
    """``#include`` line of a header, through a link if its folder's name needs one; empty if it cannot be written."""
    name = name_in_include(header)
    if name is None:
        folder = next(_name_plainly((header.parent,), temporary, links), None)
        name = name_in_include(Path(folder, header.name)) if folder is not None else None
    return b"" if name is None else b'#include "' + name + b'"\n'


def _name_plainly(folders: tuple[Path, ...], temporary: Path, links: dict[Path, Path]) -> Iterator[str]:
    """Folder names that nvcc accepts, or links to the folders; folders that cannot be linked are left out."""
    for folder in folders:
        if _PLAIN_PATH.fullmatch(str(folder)):
            yield str(folder)
            continue
        link = temporary / f"include{len(links)}"
        try:
            link.symlink_to(folder, target_is_directory=True)
        except (OSError, ValueError):
            continue
        links[link] = folder
        yield str(link)


_SUFFIXES = (".cu", ".cpp", ".cc", ".cxx", ".c", ".cuh", ".h", ".hpp")
_SOURCES = frozenset(_SUFFIXES[:5])
_INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]*[<"](?:[^<>"\n]*/)?([^<>"/\n]+)[>"]', re.MULTILINE)
_MOST_FILES = 500
_MOST_BYTES = 1 << 20
_DEEPEST = 4
_MOST_ASKED = 40  # sources whose includes are followed for one fragment
_SKIPPED = frozenset({"build", "node_modules", ".git", ".venv", "__pycache__"})


def find_including(path: Path) -> Path | None:
    """A source that includes a file, directly or through headers; None where none is found near it.

    Names in ``#include`` lines propose sources; one is taken if its includes, followed as by a compiler, lead to this very file.
    The file's own folder is searched first, then its project, in at most 500 files; CUDA sources come before others.
    """
    includes = dict(_list_includes(path))
    wanted, asked = {path}, 0
    for _ in range(_DEEPEST):
        names = {one.name for one in wanted}
        found = [one for one, included in includes.items() if one not in wanted and not names.isdisjoint(included)]
        for source in (one for one in found if one.suffix in _SOURCES):
            asked += 1
            if asked > _MOST_ASKED:
                return None
            if _leads_to(source, path):
                return source
        if not found:
            return None
        wanted.update(found)
    return None


def _leads_to(source: Path, path: Path) -> bool:
    """Whether the include lines of a source, with the flags it is compiled with, lead to a file."""
    flags, _ = search_flags(source)
    try:
        _, included = include_with_search(source, source.read_bytes(), flags or CompilerFlags(directory=source.parent))
    except (OSError, InputError):
        return False
    real = os.path.realpath(path)
    return any(one.name == path.name and os.path.realpath(one) == real for one in included.headers)


def _list_includes(path: Path) -> Iterator[tuple[Path, frozenset[str]]]:
    """Files near one, and the names, without folders, of what each includes."""
    count = 0
    for file in _list_near(path):
        try:
            facts = file.stat()
            if facts.st_size > _MOST_BYTES:
                continue
            yield file, _read_includes(file, facts.st_size, facts.st_mtime_ns)
        except OSError:
            continue
        count += 1
        if count >= _MOST_FILES:
            return


@lru_cache(maxsize=2 * _MOST_FILES)
def _read_includes(file: Path, size_bytes: int, changed_ns: int) -> frozenset[str]:
    """File names in ``#include`` lines; size and time of change are part of the cache's key."""
    return frozenset(os.fsdecode(found[1]) for found in _INCLUDE.finditer(read_bounded(file, _MOST_BYTES)))


def _list_near(path: Path) -> Iterator[Path]:
    """Sources and headers: those of the folder, then those of the project around it."""
    try:
        own = sorted((one for one in path.parent.iterdir() if one.suffix in _SUFFIXES), key=_rank)
    except OSError:
        return
    yield from own
    seen = 0
    for folder, folders, files in os.walk(find_project_folder(path)):
        folders[:] = sorted(one for one in folders if one not in _SKIPPED and not one.startswith("."))
        for name in sorted(files):
            seen += 1
            if seen > _MOST_FILES * 20:
                return
            file = Path(folder, name)
            if file.suffix in _SUFFIXES and file.parent != path.parent:
                yield file


def _rank(path: Path) -> tuple[int, str]:
    return _SUFFIXES.index(path.suffix), path.name


_ABORTED = re.compile(r"Ptx assembly aborted due to errors")
_REMEDIES = (
    (re.compile(r"\(line \d+ of the PTX\)"), "correct the asm statement that it comes from"),
    (re.compile(r"Unresolved extern"), "define it in this source or in what it includes: nothing is linked to it"),
    (
        re.compile(r"too much shared data"),
        "declare less, or take the array as dynamic shared memory (extern __shared__)",
    ),
    (re.compile(r"uses too much|too much global"), "declare less of it"),
    (re.compile(r"architecture|compute_\d|sm_\d"), "choose another architecture, or another release of CUDA"),
    (re.compile(r"expected a"), "the source ends before it: look for what is left open"),
)
_UNDECLARED = re.compile(
    r"is undefined|was not declared|unknown type name|is not a template|expected a|has not been declared"
)
_LINES_OF = re.compile(r'^\s*\.file\s+\d+\s+"([^"\n]*)"', re.MULTILINE)
_LAUNCHING = re.compile(rb"<<<|\bcudaLaunch|\bcuLaunch|\bint\s+main\s*\(")
_REMEDY = "no line is named: compile the source by itself to see more"


def explain_placeless(unit: CompiledUnit) -> CompiledUnit:
    """Unit whose messages without a place name the source, errors among them with a remedy.

    "Ptx assembly aborted" is dropped if another error gives the reason.
    """
    if all(one.path is not None for one in unit.messages):
        return unit
    others = any(one.severity is ProblemSeverity.ERROR and not _ABORTED.match(one.text) for one in unit.messages)
    kept = (one for one in unit.messages if not (others and _ABORTED.match(one.text)))
    return replace(unit, messages=tuple(_explain(one, unit) for one in kept))


def _explain(message: CompilerMessage, unit: CompiledUnit) -> CompilerMessage:
    if message.path is not None:
        return message
    if message.severity is not ProblemSeverity.ERROR:
        return replace(message, path=unit.source)
    remedy = next((remedy for pattern, remedy in _REMEDIES if pattern.search(message.text)), _REMEDY)
    return replace(message, path=unit.source, text=f"{message.text}; {remedy}")


def compile_source(
    path: Path,
    *,
    text: str | None = None,
    compute_capability: tuple[int, int] | None = None,
    flags: CompilerFlags | None = None,
    settings: CompileSettings = DEFAULT_SETTINGS,
    is_cancelled: Callable[[], bool] | None = None,
) -> CompiledUnit:
    """Compile a CUDA C++ source for one architecture; nothing of it, nor of its project, is run.

    Args:
        path: the source; line tables and messages name it.
        text: what an editor holds of it; None to read the file.
        compute_capability: to compile for; None for the newest that the flags ask for and that is known here, else 8.0.
        flags: from :func:`gpa_lsp.execution.compiler.project.find_flags` or by hand; None to look for the project's own.
        settings: which compiler, and limits.
        is_cancelled: asked every few milliseconds while a compiler runs; True ends it.

    Returns:
        The unit. A source with errors gives one without code, and its messages say why.

    Raises:
        InputError: the source cannot be read, or the compiler does not know the architecture.
        MissingToolError: no compiler is installed.
        ToolError: the compiler crashed, did not end in time, or was cancelled.
    """
    path = Path(os.path.abspath(path))  # noqa: PTH100 - links stay: line tables name the file as the editor does
    content = read_source(path, text)
    compile_text = partial(
        _compile_text, compute_capability=compute_capability, settings=settings, is_cancelled=is_cancelled
    )
    is_launched_elsewhere = _is_launched_elsewhere(content) and _is_saved(path, content, text)
    including = find_including(path) if is_launched_elsewhere else None
    if including is not None:
        whole = _compile_including(including, compile_text)
        if ".entry" in (whole.ptx or "") and _has_lines_of(whole, path):
            return whole
    unit = compile_text(path, content, flags=flags)
    if including is not None or not unit.has_failed or not _is_fragment(unit):
        return unit
    including = find_including(path)
    doubt = "" if _is_saved(path, content, text) else "; what is not saved of it was not compiled"
    whole = unit if including is None else _compile_including(including, compile_text, doubt)
    return whole if _has_lines_of(whole, path) else unit


def _has_lines_of(unit: CompiledUnit, path: Path) -> bool:
    """Whether code of a unit comes from a file: a source may include it under a condition that does not hold."""
    if unit.source is None:
        return False
    folder, real = unit.source.parent, os.path.realpath(path)
    named = (read_escapes(found[1]) for found in _LINES_OF.finditer(unit.ptx or ""))
    return any(os.path.realpath(folder / one) == real for one in named)


def _is_saved(path: Path, content: bytes, text: str | None) -> bool:
    return text is None or (path.is_file() and content == read_source(path, None))


def _compile_including(including: Path, compile_text: "partial[CompiledUnit]", doubt: str = "") -> CompiledUnit:
    """Compile the source that includes a fragment."""
    unit = compile_text(including, read_source(including, None), flags=None)
    return replace(unit, notes=(f"compiled through {including.name}, which includes it{doubt}", *unit.notes))


def _is_launched_elsewhere(content: bytes) -> bool:
    """Whether there are kernels but no launch or main: the including file then chooses macros and template instances."""
    return b"__global__" in content and not _LAUNCHING.search(content)


def _compile_text(
    path: Path,
    content: bytes,
    *,
    compute_capability: tuple[int, int] | None,
    flags: CompilerFlags | None,
    settings: CompileSettings,
    is_cancelled: Callable[[], bool] | None,
) -> CompiledUnit:
    """Compile one source as it is."""
    if flags is None:
        found, doubts = search_flags(path)
        flags = found or CompilerFlags(directory=path.parent, doubts=doubts)
    if compute_capability is None:
        compute_capability = _choose_capability(flags)
    flags, included = include_with_search(path, content, flags)
    job = CompileJob(
        path=path,
        content=content,
        compute_capability=compute_capability,
        flags=flags,
        settings=settings,
        included=included,
        is_cancelled=is_cancelled,
    )
    nvcc = find_nvcc(path, settings.workspace) if settings.choice is not CompilerChoice.NVRTC else None
    key = make_key(job, (nvcc and nvcc.identify(), identify_nvrtc())) if settings.keeps_units else ""
    unit = UNITS.find(key) if key else None
    if unit is None:
        unit = _compile_conditional(job, nvcc, _compile(job, nvcc))
        unit = explain_removed_names(explain_placeless(explain_missing_headers(unit, flags)))
        if key:
            UNITS.keep(key, unit, job.included)
    return replace(unit, notes=(*unit.notes, *flags.doubts))


def _compile_conditional(job: CompileJob, nvcc: NvccInstallation | None, unit: CompiledUnit) -> CompiledUnit:
    """The unit or, if all its kernels are excluded by conditions, one with the macros defined that enable them."""
    has_code = ".entry" in (unit.ptx or "") or b"__global__" not in job.content
    if unit.has_failed or has_code:
        return unit
    names = [one for one in find_conditions(job.content) if not one.startswith("__")]
    if not names:
        return unit
    flags = replace(job.flags, macros=(*names, *job.flags.macros))
    other = _compile(replace(job, flags=flags), nvcc)
    if other.has_failed or ".entry" not in (other.ptx or ""):
        return unit
    note = f"compiled with {', '.join(names)} defined: without, there is no kernel, and no compile command says more"
    return replace(other, notes=(note, *other.notes))


def _is_fragment(unit: CompiledUnit) -> bool:
    """Whether errors are about undeclared names, which another file may declare."""
    errors = [one for one in unit.messages if one.severity is ProblemSeverity.ERROR]
    return any(_UNDECLARED.search(one.text) and find_remedy(one.text) is None for one in errors)


def _compile(job: CompileJob, nvcc: NvccInstallation | None) -> CompiledUnit:
    """Choose the compiler and run it."""
    choice = job.settings.choice
    if choice is CompilerChoice.NVCC:
        if nvcc is None:
            raise MissingToolError(TOOL, needed_for="compiling sources with host code", install=INSTALL)
        return compile_with_nvcc(job, nvcc)
    host = find_host_code(job.content, job.included.headers.values())
    if nvcc is not None and (host is None or host.has_host or identify_nvrtc() is None):
        return _spare_host(job, compile_with_nvcc(job, nvcc), host)
    try:
        unit = compile_device_part(job, host)
    except UnsupportedInputError:
        if nvcc is None:
            raise
        return compile_with_nvcc(job, nvcc)  # its release may know older architectures
    if nvcc is not None and unit.has_failed and _is_about_headers(job, unit):
        return compile_with_nvcc(job, nvcc)
    if unit.is_host_left_out and choice is CompilerChoice.AUTOMATIC:
        reason = f"{HOST_LEFT_OUT}: nvcc or the host compiler that it needs is not installed"
        return replace(unit, notes=(reason, *(one for one in unit.notes if not one.startswith(HOST_LEFT_OUT))))
    return unit


def _spare_host(job: CompileJob, unit: CompiledUnit, host: HostCode | None) -> CompiledUnit:
    """The whole source's unit; if only host code has errors, or there is no kernel, the device code's, with those errors as warnings."""
    if host is None or identify_nvrtc() is None:
        return unit
    if not unit.has_failed:
        return _guess_instances(job, unit, host)
    try:
        alone = compile_device_part(job, host)
    except UnsupportedInputError:
        return unit
    if alone.has_failed:  # what the first compiler did not come to; removed language before what else is missing
        known = {(one.line, one.text) for one in unit.messages}
        more = (one for one in alone.messages if find_remedy(one.text) and (one.line, one.text) not in known)
        return replace(unit, messages=(*more, *unit.messages))
    errors = [one for one in unit.messages if one.severity is ProblemSeverity.ERROR]
    said = tuple(replace(one, severity=ProblemSeverity.WARNING) for one in errors)
    absent = {find_missing_header(one.text) for one in said}
    count = format_count_of(len(errors), "error")
    return replace(
        alone,
        messages=(*said, *(one for one in alone.messages if find_missing_header(one.text) not in absent - {None})),
        seconds=unit.seconds + alone.seconds,
        notes=(
            f"{HOST_LEFT_OUT}: it does not compile ({count})",
            *(one for one in alone.notes if not one.startswith(HOST_LEFT_OUT)),
        ),
    )


def _guess_instances(job: CompileJob, unit: CompiledUnit, host: HostCode) -> CompiledUnit:
    """The unit or, if it has no kernel because no template is instantiated, one with guessed instances."""
    if ".entry" in (unit.ptx or "") or not guess_instantiations(host.tree):
        return unit
    try:
        alone = compile_device_part(job, host)
    except UnsupportedInputError:
        return unit
    return alone if not alone.has_failed and ".entry" in (alone.ptx or "") else unit


def _choose_capability(flags: CompilerFlags) -> tuple[int, int]:
    """The newest capability that the command asks for and NVRTC knows, else the newest it asks for."""
    asked = flags.compute_capabilities
    known = list_nvrtc_architectures()
    return max(
        (one for one in asked if one[0] * 10 + one[1] in known), default=max(asked, default=DEFAULT_COMPUTE_CAPABILITY)
    )


def _is_about_headers(job: CompileJob, unit: CompiledUnit) -> bool:
    """Whether errors lie outside the source itself: missing headers, or headers that NVRTC cannot read."""
    errors = [one for one in unit.messages if one.severity is ProblemSeverity.ERROR]
    return any(find_missing_header(one.text) is not None or one.path not in (None, job.path) for one in errors)


_LARGEST_RESULT_BYTES = 512 << 20
_VERSION = re.compile(r"Cuda compilation tools, release (\d+\.\d+)")
_HEAD_CHARACTERS = 1000
_UNKNOWN_ARCHITECTURE = "Unsupported gpu architecture"


def compile_with_nvcc(job: CompileJob, installation: NvccInstallation) -> CompiledUnit:
    """Compile a source for one architecture.

    Raises:
        ToolError: nvcc crashed, did not end in time, was cancelled, or gave something that is too large.
        UnsupportedInputError: this nvcc does not know the architecture.
    """
    begin_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix=TEMPORARY, ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        command = prepare_command(job, installation.program, folder)
        is_well, output = run_command(
            TOOL,
            command.words,
            folder=folder,
            environment=build_environment(installation, folder),
            limits=RunLimits(
                time=TimeLimits.for_work(job.settings.limit_s),
                memory_limit_bytes=job.settings.memory_limit_bytes,
                is_cancelled=job.is_cancelled,
            ),
        )
        ptx = _read_result(command.ptx) if is_well else None
        cubin = _read_result(command.image) if is_well else None
    if not is_well and _UNKNOWN_ARCHITECTURE in output:
        raise UnsupportedInputError(
            f"nvcc does not compile for {job.target}",
            path=job.path,
            remedy="choose an architecture of the installed CUDA release",
        )
    text = ptx.decode("utf-8", "replace") if ptx is not None else None
    version = _VERSION.search(text[:_HEAD_CHARACTERS]) if text is not None else None
    return CompiledUnit(
        source=job.path,
        kind=CompilerKind.NVCC,
        compiler=f"nvcc {version[1]}" if version else TOOL,
        compute_capability=job.compute_capability,
        ptx=text,
        cubin=cubin,
        messages=_read_messages(job, command, output, folder, is_well),
        seconds=time.perf_counter() - begin_s,
    )


def _read_messages(
    job: CompileJob, command: NvccCommand, output: str, folder: Path, is_well: bool
) -> tuple[CompilerMessage, ...]:
    messages = tuple(_place(one, command, folder) for one in parse_messages(output, find_line=job.find_line))
    if is_well or any(one.severity is ProblemSeverity.ERROR for one in messages):
        return messages
    words = " ".join(output.split())[-500:]
    text = "nvcc failed" + (f": {words}" if words else " without a message")
    return (*messages, CompilerMessage(severity=ProblemSeverity.ERROR, text=text, path=job.path))


def _place(message: CompilerMessage, command: NvccCommand, folder: Path) -> CompilerMessage:
    """Map a message from a linked folder to the real one; drop the place of messages about our own files."""
    if message.path is None:
        return message
    path = Path(folder, message.path)
    for link, original in command.links.items():
        if path.is_relative_to(link):
            return replace(message, path=original / path.relative_to(link))
    if path.is_relative_to(folder):
        return replace(message, path=None, line=None, column=None)
    return message


def _read_result(path: Path) -> bytes | None:
    try:
        size = path.stat().st_size
        if size > _LARGEST_RESULT_BYTES:
            raise ToolError(TOOL, f"its result has {format_bytes(size)}, more than is read")
        return path.read_bytes() or None
    except OSError:
        return None
