"""The command line for Nsight Compute."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from gpa_lsp.profile.collect.recipe import (
    CacheControl,
    ClockControl,
    Recipe,
    ReplayMode,
    build_command,
    escape_expression,
    read_metrics,
    read_roofline_sections,
    read_sections,
)

APP = ["./app", "--size", "1024"]


def pairs(command: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return pairwise(command)


def options(command: tuple[str, ...], name: str) -> list[str]:
    return [value for option, value in pairs(command) if option == name]


def test_the_usual_command() -> None:
    command = build_command(Recipe(output=Path("out.ncu-rep")), APP)
    assert command[0] == "ncu"
    assert command[-3:] == tuple(APP)
    assert options(command, "--section") == [section.name for section in read_sections()]
    assert options(command, "--metrics") == [",".join(read_metrics())]
    assert options(command, "--kernel-id") == [":::1|2|3"]
    assert options(command, "--export") == ["out.ncu-rep"]
    assert options(command, "--import-source") == ["yes"]
    assert options(command, "--target-processes") == ["all"]
    assert options(command, "--clock-control") == ["none"]
    assert options(command, "--cache-control") == ["all"]
    assert options(command, "--replay-mode") == ["kernel"]
    assert "--force-overwrite" in command
    assert not any("sampling" in word for word in command)


def test_kernels_by_name() -> None:
    command = build_command(Recipe(kernel="ns::saxpy<float>(int*)", launches=1, skipped_launches=5), APP)
    assert options(command, "--kernel-name") == [r"regex:ns::saxpy<float>\(int\*\)"]
    assert options(command, "--kernel-name-base") == ["demangled"]
    assert options(command, "--launch-count") == ["1"]
    assert options(command, "--launch-skip") == ["5"]
    assert "--kernel-id" not in command
    mangled = build_command(Recipe(kernel="_Z5saxpyPf", launches=0), APP)
    assert options(mangled, "--kernel-name-base") == ["mangled"]
    assert "--launch-count" not in mangled


def test_every_option() -> None:
    recipe = Recipe(
        is_full=True,
        has_rooflines=True,
        sections=("Nvlink", "Nvlink"),
        metrics=("sm__cycles_active.max", "my__metric.sum"),
        has_metrics=False,
        launches=0,
        replay_mode=ReplayMode.APPLICATION_RANGE,
        clock_control=ClockControl.BASE,
        cache_control=CacheControl.NONE,
        sampling_interval=2,
        sampling_buffer_bytes=1 << 28,
        source_folders=("/src", "../lib"),
        nvtx_ranges=("hot/",),
        starts_enabled=False,
        options=("--graph-profiling", "graph"),
    )
    command = build_command(recipe, APP, ncu="/opt/ncu")
    assert command[:3] == ("/opt/ncu", "--set", "full")
    assert options(command, "--section") == [*(section.name for section in read_roofline_sections()), "Nvlink"]
    assert options(command, "--metrics") == ["sm__cycles_active.max,my__metric.sum"]
    assert options(command, "--replay-mode") == ["app-range"]
    assert options(command, "--clock-control") == ["base"]
    assert options(command, "--cache-control") == ["none"]
    assert options(command, "--warp-sampling-interval") == ["2"]
    assert options(command, "--warp-sampling-buffer-size") == ["268435456"]
    assert options(command, "--source-folders") == ["/src,../lib"]
    assert options(command, "--nvtx-include") == ["hot/"]
    assert options(command, "--profile-from-start") == ["off"]
    assert options(command, "--graph-profiling") == ["graph"]
    assert "--nvtx" in command
    assert not {"--kernel-id", "--launch-count", "--export"} & set(command)
    older = build_command(recipe, APP, sampling_prefix="sampling")
    assert options(older, "--sampling-interval") == ["2"]


@pytest.mark.parametrize("text", ["a.b", "f<int>(float*, int [3])", "x|y", "^$", "{1}", "a\\b", "operator()+"])
def test_names_are_matched_as_they_are(text: str) -> None:
    assert re.fullmatch(escape_expression(text), text)
