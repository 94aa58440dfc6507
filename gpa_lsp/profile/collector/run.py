"""Runs a program with the collector in it, and makes its profile."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from gpa_lsp.foundation.errors import GpaError, InputError, MissingToolError
from gpa_lsp.foundation.kept_files import find_cache_folder
from gpa_lsp.foundation.native.c_compiler import SHARED_FLAG, SHARED_HEADERS, Library, obtain_library
from gpa_lsp.foundation.processes.python_children import PythonChild
from gpa_lsp.foundation.processes.search_paths import list_package_folders
from gpa_lsp.foundation.processes.watched_command import TEMPORARY, CommandEnd, TimeLimits, WatchedCommand
from gpa_lsp.profile.collector.choosing import Selection
from gpa_lsp.profile.collector.document import CollectedProfile, make_profile, write_profile
from gpa_lsp.profile.collector.records import NAME, CollectedProcess, Mode, is_forbidden, read_processes

SOURCES = Path(__file__).parent / "injection"
CUPTI_VARIABLE = "GPA_LSP_CUPTI"  # Names the libcupti to use, where another than the newest is wanted

_FLAGS = (
    "-std=gnu11",
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-shared",
    "-pthread",
    "-fno-strict-aliasing",
    SHARED_FLAG,
)
_MARK = "cupti_pcsampling.h"
_DRIVER_MARK = "cuda.h"
_LIBRARY = re.compile(r"libcupti\.so\.(\d+)(?:\.\d+)*$")
_TOOLKITS = ("CUDA_PATH", "CUDA_HOME")


class Cupti(Struct, frozen=True, kw_only=True):
    """An installed CUPTI."""

    headers: tuple[Path, ...]  # folders with its headers and CUDA's, in the order a compiler looks
    library: Path | None  # libcupti; None where only headers are installed


def find_cupti() -> Cupti:
    """Newest installed CUPTI: of NVIDIA's wheels, else of a toolkit.

    Raises:
        MissingToolError: none has headers.
    """
    for include, library in _list_candidates():
        driver = include if (include / _DRIVER_MARK).is_file() else _find_driver_headers()
        if (include / _MARK).is_file() and driver is not None:
            named = os.environ.get(CUPTI_VARIABLE)
            found = Path(named) if named else _find_library(library)
            return Cupti(headers=tuple(dict.fromkeys((include, driver))), library=found)
    raise MissingToolError(
        "CUPTI",
        needed_for="sampling without Nsight Compute",
        install="pip install 'gpa-lsp[cupti]', or install the CUDA toolkit",
    )


def _list_candidates() -> Iterator[tuple[Path, tuple[Path, ...]]]:
    """Folders of headers, with folders that may hold the library."""
    for root in list_package_folders("nvidia"):
        releases = (path for path in root.glob("cu*") if path.name[2:].isdigit())
        for release in sorted(releases, key=lambda path: int(path.name[2:]), reverse=True):
            yield release / "include", (release / "lib",)
        yield root / "cuda_cupti" / "include", (root / "cuda_cupti" / "lib",)
    for toolkit in _list_toolkits():
        extra = toolkit / "extras" / "CUPTI"
        yield toolkit / "include", (toolkit / "lib64", toolkit / "lib", extra / "lib64")
        yield extra / "include", (extra / "lib64", toolkit / "lib64")


def _list_toolkits() -> Iterator[Path]:
    yield from (Path(os.environ[name]) for name in _TOOLKITS if os.environ.get(name))
    yield Path("/usr/local/cuda")
    yield from sorted(Path("/usr/local").glob("cuda-*"), reverse=True)


def _find_driver_headers() -> Path | None:
    folders = [root / "cuda_runtime" / "include" for root in list_package_folders("nvidia")]
    folders += [toolkit / "include" for toolkit in _list_toolkits()]
    return next((folder for folder in folders if (folder / _DRIVER_MARK).is_file()), None)


def _find_library(folders: tuple[Path, ...]) -> Path | None:
    found = [path for folder in folders for path in folder.glob("libcupti.so.*") if _LIBRARY.match(path.name)]
    return min(found, key=lambda path: len(path.name), default=None)


def build_library(cupti: Cupti, into: Path) -> Path:
    """Build the collector into a folder.

    Raises:
        MissingToolError: there is no C compiler.
        ToolError: it failed.
        OSError: it cannot be written.
    """
    headers = [f"-I{folder}" for folder in cupti.headers]
    sources = [str(source) for source in sorted(SOURCES.glob("*.c"))]
    library = Library(
        title="the library that collects samples",
        needed_for="sampling without Nsight Compute",
        arguments=(*_FLAGS, *headers, *sources, "-ldl"),
        inputs=(*sorted(SOURCES.glob("*.h")), *SHARED_HEADERS, *_list_versions(cupti)),
    )
    path = into / NAME
    path.write_bytes(obtain_library(library))
    return path


def _list_versions(cupti: Cupti) -> Iterator[Path]:
    """Headers that tell the release."""
    for folder in cupti.headers:
        for name in ("cupti_version.h", _MARK):
            if (folder / name).is_file():
                yield folder / name


NO_LIMIT_S = 10.0 * 365 * 24 * 3600
_MOST_ROW_BYTES = 4 << 30


class CollectorSettings(Struct, frozen=True, kw_only=True):
    """Options of the collector."""

    mode: Mode = Mode.SERIALIZED  # serialized, launch by launch; continuous, added up by kernel; or timing alone
    duty_percent: int = 100  # of the time in which continuous sampling is on
    period_exponent: int | None = None  # 2 to its power are the cycles between two samples; None lets CUPTI choose
    limit_s: float = NO_LIMIT_S  # after which the program and all it started are ended


class CollectedRun(Struct, frozen=True, kw_only=True):
    """Outcome of a run."""

    end: CommandEnd  # how the program ended
    profile: CollectedProfile | None  # what was measured; None when no process of it used CUDA with the collector
    is_forbidden: bool  # the driver did not let us sample


def make_environment(
    settings: CollectorSettings, cupti: Cupti, library: Path, folder: Path, environment: Mapping[str, str]
) -> dict[str, str]:
    """Environment of a measured program."""
    found = {
        **environment,
        "CUDA_INJECTION64_PATH": str(library),
        "GPA_LSP_COLLECTOR_FOLDER": str(folder),
        "GPA_LSP_COLLECTOR_MODE": settings.mode.name.lower(),
        "GPA_LSP_COLLECTOR_DUTY_PERCENT": str(settings.duty_percent),
        "GPA_LSP_COLLECTOR_LIMIT_BYTES": str(_MOST_ROW_BYTES),
    }
    if cupti.library is not None:
        found["GPA_LSP_COLLECTOR_CUPTI"] = str(cupti.library)
    if settings.period_exponent is not None:
        found["GPA_LSP_COLLECTOR_PERIOD"] = str(settings.period_exponent)
    return found


def collect(
    command: Sequence[str] | PythonChild,
    settings: CollectorSettings,
    cupti: Cupti,
    output: Path,
    selection: Selection,
    *,
    streams: tuple[int, int, int],
    tell_ended: Callable[[], None] = lambda: None,
) -> CollectedRun:
    """Run a program, and write its profile.

    Args:
        command: program and arguments, with an environment of its own where it is Python of ours; no shell looks at them.
        settings: how it is measured.
        cupti: with which CUPTI.
        output: the profile.
        selection: of its launches.
        streams: descriptors that become its standard input, output and error.
        tell_ended: called when the program has ended, before its profile is made.

    Raises:
        GpaError: the library cannot be made, or the profile cannot be written.
        KeyboardInterrupt: the user interrupted it; what was measured until then is written.
    """
    with _make_folder() as folder:
        try:
            library = build_library(cupti, folder)
        except OSError as error:
            raise GpaError(f"the library cannot be written to {folder}: {error.strerror or error}") from error
        words, own = command if isinstance(command, PythonChild) else (command, os.environ)
        environment = make_environment(settings, cupti, library, folder, own)
        is_interrupted = False
        try:
            running = WatchedCommand(
                words, folder=Path.cwd(), environment=environment, limits=TimeLimits.by_clock(settings.limit_s), take=lambda piece: None,
                streams=streams, temporary=folder,
            )  # fmt: skip
        except OSError as error:
            raise GpaError(f"{words[0]} cannot be started: {error.strerror or error}") from error
        try:
            end = running.future.result()
        except KeyboardInterrupt:
            is_interrupted = True
            running.cancel()
            end = running.future.result()
        tell_ended()
        processes = read_processes(folder)
        profile = _write(processes, folder, output, selection)
        if is_interrupted:
            raise KeyboardInterrupt
        return CollectedRun(end=end, profile=profile, is_forbidden=is_forbidden(processes))


def _write(
    processes: list[CollectedProcess], folder: Path, output: Path, selection: Selection
) -> CollectedProfile | None:
    if not processes:
        return None
    profile = make_profile(processes, folder, output, selection)
    if profile.launches:
        write_profile(profile, output)
    return profile


@contextmanager
def _make_folder() -> Iterator[Path]:
    """Private folder in the user's cache: records may be larger than /tmp has room for."""
    parent = find_cache_folder() / "collecting"
    try:
        parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = tempfile.TemporaryDirectory(prefix=TEMPORARY, dir=parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise InputError(
            f"cannot be written to ({error.strerror or error})", path=parent, remedy="set GPA_LSP_CACHE_DIR"
        ) from error
    with made as name:
        yield Path(name)
