"""The Nsight Compute command line that collects what the advisor reads, and not much more."""

import re
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.collect.collected import read_metrics, read_roofline_sections, read_sections
from gpa_lsp.collect.variables import Command

DEFAULT_LAUNCHES = 3
"""Launches of a kernel that are measured: two more than one needs, to see the noise between them."""


class ReplayMode(Enum):
    """How the passes of a measurement are made."""

    KERNEL = "kernel"
    """Each launch is repeated, with memory saved and restored in between."""
    APPLICATION = "application"
    """The whole program is started once per pass."""
    RANGE = "range"
    """What lies between cudaProfilerStart and cudaProfilerStop is repeated."""
    APPLICATION_RANGE = "app-range"


class ClockControl(Enum):
    """What is done to the GPU's clocks meanwhile."""

    NONE = "none"
    """Nothing: the times are those the program has. Needs no permission, and leaves nothing behind when the profiler is killed."""
    BASE = "base"
    """Locked at the base clock: the same from run to run, and slower."""
    BOOST = "boost"
    """Locked at the boost clock (2026.1 and later)."""


class CacheControl(Enum):
    """What is done to the caches before each pass."""

    ALL = "all"
    """Emptied: every pass sees the same."""
    NONE = "none"
    """Left as the launches before left them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """What to measure, and how.

    Attributes:
        output: the report; None leaves the results to the console.
        kernel: part of the readable name of the kernels to measure, as everywhere in this package, or of the mangled one when it starts with
            ``_Z``; empty for all.
        launches: launches measured of each kernel and launch configuration, or of all kernels together when ``kernel`` names some; 0 for all.
        skipped_launches: matching launches passed over before the first one that is measured.
        is_full: everything Nsight Compute knows of (``--set full``), which takes longer: series over time, links, rooflines.
        has_rooflines: rooflines per data type and level of memory.
        sections: more of them.
        metrics: more of them.
        has_metrics: whether the recipe's own metrics are asked for.
        replay_mode: see there.
        clock_control: see there.
        cache_control: see there.
        sampling_interval: a sample is taken every 2^(5 + n) cycles; None lets the profiler choose.
        sampling_buffer_bytes: for samples on the GPU; None for the profiler's 32 MiB, which hold 3.7 million samples.
        source_folders: where sources are looked for that are not at the place they were compiled at.
        nvtx_ranges: only launches inside of these.
        starts_enabled: measure from the start of the program on, and not only after cudaProfilerStart.
        options: handed to Nsight Compute as they are.
    """

    output: Path | None = None
    kernel: str = ""
    launches: int = DEFAULT_LAUNCHES
    skipped_launches: int = 0
    is_full: bool = False
    has_rooflines: bool = False
    sections: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    has_metrics: bool = True
    replay_mode: ReplayMode = ReplayMode.KERNEL
    clock_control: ClockControl = ClockControl.NONE
    cache_control: CacheControl = CacheControl.ALL
    sampling_interval: int | None = None
    sampling_buffer_bytes: int | None = None
    source_folders: tuple[str, ...] = ()
    nvtx_ranges: tuple[str, ...] = ()
    starts_enabled: bool = True
    options: tuple[str, ...] = ()


def build_command(
    recipe: Recipe, application: Sequence[str], *, ncu: str = "ncu", sampling_prefix: str = "warp-sampling"
) -> Command:
    """The command line.

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
        *("--replay-mode", recipe.replay_mode.value),
        *("--clock-control", recipe.clock_control.value),
        *("--cache-control", recipe.cache_control.value),
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
    r"""A regular expression that matches a text, in the dialects of Python and C++ alike.

    >>> escape_expression("void f<int>(float*)")
    'void f<int>\\(float\\*\\)'
    """
    return re.sub(r"([\\^$.|?*+()\[\]{}])", r"\\\1", text)


def read_sampling_prefix(help_text: str) -> str:
    """How a version of Nsight Compute spells the options of its sampler, from what it prints with ``--help``.

    >>> read_sampling_prefix("  --sampling-interval arg (=auto)")
    'sampling'
    >>> read_sampling_prefix("  --warp-sampling-interval arg (=auto)")
    'warp-sampling'
    """
    is_old = "--sampling-interval" in help_text and "--warp-sampling-interval" not in help_text
    return "sampling" if is_old else "warp-sampling"
