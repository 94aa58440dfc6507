"""Nsight Compute on this machine, and the command line that collects what the advisor reads."""

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from gpa_lsp.code.binary.tool_location import find_tool, name_override
from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.foundation.processes.search_paths import is_program
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.profile.collect.variables import Command

Version = tuple[int, int]  # Year and number of a release of Nsight Compute

Capability = tuple[int, int]  # Compute capability

_LAST_CAPABILITY: Capability = (99, 0)


class SometimesRead(Struct, frozen=True, kw_only=True):
    """Metrics that a section brings in some versions or on some GPUs only."""

    metrics: tuple[str, ...] = field(name="reads")  # their names
    since: str = "0.0"  # the first version
    until: str = "9999.9"  # the last version
    # compute capabilities that have them; empty for all
    capabilities: tuple[str, ...] = field(name="on", default=())

    def holds(self, version: Version, capability: Capability) -> bool:
        """Whether a version brings them on a compute capability.

        >>> SometimesRead(metrics=("a.sum",), since="2024.1", capabilities=("7.0-9.0",)).holds((2025, 1), (8, 6))
        True
        """
        ranges = [_read_range(text) for text in self.capabilities]
        is_on = not ranges or any(first <= capability <= last for first, last in ranges)
        return is_on and _read_pair(self.since) <= version <= _read_pair(self.until)


class CollectedSection(Struct, frozen=True, kw_only=True):
    """A section to collect."""

    name: str  # its identifier
    purpose: str = field(name="for")  # what it is for
    reads: tuple[str, ...]  # the metrics this package reads of it wherever it is collected
    # those it brings only in some versions or on some GPUs; a metric may be in several of them, of which one is enough
    sometimes: tuple[SometimesRead, ...] = ()

    @property
    def metrics(self) -> frozenset[str]:
        """All metrics this package reads of it."""
        return frozenset(self.reads).union(*(one.metrics for one in self.sometimes))


@cache
def _read_file() -> dict[str, Any]:
    return read_own_table(Path(__file__).with_name("recipe.toml"))


@cache
def read_sections() -> tuple[CollectedSection, ...]:
    """Sections collected by default."""
    return msgspec.convert(_read_file()["section"], tuple[CollectedSection, ...])


@cache
def read_roofline_sections() -> tuple[CollectedSection, ...]:
    """The sections of ``--roofline``."""
    return msgspec.convert(_read_file()["roofline"], tuple[CollectedSection, ...])


def read_metrics() -> tuple[str, ...]:
    """Metrics collected in addition to sections."""
    return tuple(name for table in _read_file()["metric"] for name in table["names"])


def _read_range(text: str) -> tuple[Capability, Capability]:
    first, is_range, last = text.partition("-")
    lowest = _read_pair(first)
    if not is_range:
        return lowest, lowest
    return lowest, _read_pair(last) if last else _LAST_CAPABILITY


def _read_pair(text: str) -> tuple[int, int]:
    major, minor = text.split(".")
    return int(major), int(minor)


DEFAULT_LAUNCHES = 3  # Launches of a kernel that are measured: two more than one needs, to see the noise between them


# How the passes of a measurement are made: each launch is repeated, with memory saved and restored in between; the whole program is started once
# per pass; or what lies between cudaProfilerStart and cudaProfilerStop is repeated, of launches or of the program
ReplayMode = Literal["kernel", "application", "range", "app-range"]

# What is done to the GPU's clocks meanwhile: nothing, so that the times are those the program has, which needs no permission and leaves nothing
# behind when the profiler is killed; locked at the base clock, the same from run to run, and slower; or at the boost clock (2026.1 and later)
ClockControl = Literal["none", "base", "boost"]

# What is done to the caches before each pass: emptied, so that every pass sees the same, or left as the launches before left them
CacheControl = Literal["all", "none"]


class Recipe(Struct, frozen=True, kw_only=True):
    """Selection and options of a measurement."""

    output: Path | None = None  # the report; None leaves the results to the console
    # part of the readable name of the kernels to measure, as everywhere in this package, or of the mangled one when it starts with ``_Z``; empty for
    # all
    kernel: str = ""
    # launches measured of each kernel and launch configuration, or of all kernels together when ``kernel`` names some; 0 for all
    launches: int = DEFAULT_LAUNCHES
    skipped_launches: int = 0  # matching launches passed over before the first one that is measured
    # everything Nsight Compute knows of (``--set full``), which takes longer: series over time, links, rooflines
    is_full: bool = False
    has_rooflines: bool = False  # rooflines per data type and level of memory
    sections: tuple[str, ...] = ()  # more of them
    metrics: tuple[str, ...] = ()  # more of them
    has_metrics: bool = True  # whether the recipe's own metrics are asked for
    replay_mode: ReplayMode = "kernel"
    clock_control: ClockControl = "none"
    cache_control: CacheControl = "all"
    sampling_interval: int | None = None  # a sample is taken every 2^(5 + n) cycles; None lets the profiler choose
    # for samples on the GPU; None for the profiler's 32 MiB, which hold 3.7 million samples
    sampling_buffer_bytes: int | None = None
    source_folders: tuple[str, ...] = ()  # where sources are looked for that are not at the place they were compiled at
    nvtx_ranges: tuple[str, ...] = ()  # only launches inside of these
    starts_enabled: bool = True  # measure from the start of the program on, and not only after cudaProfilerStart
    options: tuple[str, ...] = ()  # handed to Nsight Compute as they are


def build_command(
    recipe: Recipe, application: Sequence[str], *, ncu: str = "ncu", sampling_prefix: str = "warp-sampling"
) -> Command:
    """Nsight Compute's command line.

    Args:
        recipe: what to measure.
        application: program and arguments.
        ncu: Nsight Compute's program.
        sampling_prefix: how its version spells the options of the sampler (:func:`read_sampling_prefix`).

    >>> words = build_command(Recipe(output=Path("saxpy.ncu-rep"), kernel="saxpy(float*)"), ["./app", "1024"])
    >>> words[0], words[-2:]
    ('ncu', ('./app', '1024'))
    >>> words[words.index("--kernel-name") + 1]
    'regex:saxpy\\\\(float\\\\*\\\\)'
    """
    return (
        ncu,
        *_list_collected(recipe),
        *_list_filters(recipe),
        *("--target-processes", "all"),
        *("--replay-mode", recipe.replay_mode),
        *("--clock-control", recipe.clock_control),
        *("--cache-control", recipe.cache_control),
        *_list_sampling(recipe, sampling_prefix),
        *_list_sources(recipe),
        *recipe.options,
        *(() if recipe.output is None else ("--force-overwrite", "--export", str(recipe.output))),
        *application,
    )


def _list_collected(recipe: Recipe) -> Iterator[str]:
    if recipe.is_full:
        yield from ("--set", "full")
    sections = [] if recipe.is_full else [section.name for section in read_sections()]
    if recipe.has_rooflines:
        sections += [section.name for section in read_roofline_sections()]
    for name in dict.fromkeys((*sections, *recipe.sections)):
        yield from ("--section", name)
    metrics = tuple(dict.fromkeys((*(read_metrics() if recipe.has_metrics else ()), *recipe.metrics)))
    if metrics:
        yield from ("--metrics", ",".join(metrics))


def _list_filters(recipe: Recipe) -> Iterator[str]:
    if recipe.kernel:
        base = "mangled" if recipe.kernel.startswith("_Z") else "demangled"
        yield from ("--kernel-name-base", base, "--kernel-name", f"regex:{escape_expression(recipe.kernel)}")
    if recipe.skipped_launches:
        yield from ("--launch-skip", str(recipe.skipped_launches))
    if recipe.launches and (recipe.kernel or recipe.skipped_launches):
        yield from ("--launch-count", str(recipe.launches))
    elif recipe.launches:
        # Context, stream and name are left open; the number counts launches with the same name, grid, block and shared memory.
        yield from ("--kernel-id", ":::" + "|".join(str(number) for number in range(1, recipe.launches + 1)))
    if recipe.nvtx_ranges:
        yield "--nvtx"
    for nvtx_range in recipe.nvtx_ranges:
        yield from ("--nvtx-include", nvtx_range)
    if not recipe.starts_enabled:
        yield from ("--profile-from-start", "off")


def _list_sampling(recipe: Recipe, prefix: str) -> Iterator[str]:
    if recipe.sampling_interval is not None:
        yield from (f"--{prefix}-interval", str(recipe.sampling_interval))
    if recipe.sampling_buffer_bytes is not None:
        yield from (f"--{prefix}-buffer-size", str(recipe.sampling_buffer_bytes))


def _list_sources(recipe: Recipe) -> Iterator[str]:
    yield from ("--import-source", "yes")
    if recipe.source_folders:
        yield from ("--source-folders", ",".join(recipe.source_folders))


def escape_expression(text: str) -> str:
    r"""Regular expression that matches a text literally, in Python's and C++'s dialects.

    >>> escape_expression("void f<int>(float*)")
    'void f<int>\\(float\\*\\)'
    """
    return re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", text)


def read_sampling_prefix(help_text: str) -> str:
    """Spelling of the sampler's options in a version of Nsight Compute, from its ``--help``.

    >>> read_sampling_prefix("  --sampling-interval arg (=auto)")
    'sampling'
    >>> read_sampling_prefix("  --warp-sampling-interval arg (=auto)")
    'warp-sampling'
    """
    is_old = "--sampling-interval" in help_text and "--warp-sampling-interval" not in help_text
    return "sampling" if is_old else "warp-sampling"


_PATTERNS = (
    ("/", "usr/local/cuda-*/bin/ncu"),
    ("/", "opt/nvidia/nsight-compute/*/ncu"),
    ("/", "opt/nvidia/hpc_sdk/*/*/profilers/Nsight_Compute/ncu"),
    ("/", "opt/cuda/nsight_compute/ncu"),
)
_WINDOWS_PATTERNS = (
    ("ProgramFiles", "NVIDIA Corporation/Nsight Compute */ncu.bat"),
    ("ProgramFiles", "NVIDIA GPU Computing Toolkit/CUDA/v*/bin/ncu.exe"),
)

INSTALL = (
    "it comes with the CUDA toolkit, and by itself from https://developer.nvidia.com/nsight-compute (packages: "
    "nsight-compute-<version> of NVIDIA's repositories; conda: nvidia::nsight-compute)"
)


def find_ncu(chosen: str | None = None) -> Path:
    """Find Nsight Compute's command line: chosen, by environment variable, on ``PATH``, in the usual folders (newest first).

    Args:
        chosen: a path; None to search.

    Raises:
        MissingToolError: it is not there; says how to get it.
    """
    if chosen is not None:
        path = Path(chosen).expanduser()
        if is_program(path):
            return path.absolute()  # a bare name would be looked for on PATH
        raise MissingToolError("ncu", needed_for="measuring", install=f"{chosen} is not a program")
    found = find_tool("ncu")
    variable = name_override("ncu")
    if found is None and os.environ.get(variable):
        install = f"{variable} is set to {os.environ[variable]}, which is not a program: correct it or unset it"
        raise MissingToolError("ncu", needed_for="measuring", install=install)
    if found is None:
        found = next((path for path in list_usual_places() if is_program(path)), None)
    if found is None:
        raise MissingToolError("ncu", needed_for="measuring", install=f"{INSTALL}, or give its path with --ncu")
    return found


def list_usual_places(root: Path | None = None) -> Iterator[Path]:
    """Programs where installers put them, newest version first.

    Args:
        root: taken for the file system's; None for the real one.
    """
    for base, pattern in _WINDOWS_PATTERNS if os.name == "nt" else _PATTERNS:
        folder = Path(os.environ.get(base, base)) if root is None else root
        yield from sorted(folder.glob(pattern), key=lambda path: read_version(str(path)), reverse=True)


def read_version(text: str) -> tuple[int, ...]:
    """First version number in a text; empty if there is none.

    >>> read_version("/opt/nvidia/nsight-compute/2024.3.2/ncu"), read_version("cuda-12.8"), read_version("ncu")
    ((2024, 3, 2), (12, 8), ())
    """
    match = re.search(r"\d+(?:\.\d+)+", text)
    return () if match is None else tuple(int(part) for part in match[0].split("."))
