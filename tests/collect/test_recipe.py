"""The command line for Nsight Compute: it asks for everything that is read."""

import ast
import io
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import gpa_lsp
from gpa_lsp.collect.recipe import (
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
from gpa_lsp.profile.ncu.container import read_container

APP = ["./app", "--size", "1024"]

METRIC = re.compile(r"(?:[a-z0-9]+__\w+(?:\.\w+)*|memory_l[12]_\w+|inst_executed|thread_inst_executed(?:_true)?)")

NOT_ASKED_FOR = {
    "device__attribute_": "a prefix",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "stands in for gpu__dram_throughput in other people's reports",
    "memory_l1_sectors_global": "name in 2020.3",
    "memory_l1_sectors_shared": "name in 2020.3",
    "memory_l1_sectors_shared_ideal": "name in 2020.3",
    "memory_l2_sectors_global": "name in 2020.3",
    "memory_l2_sectors_global_ideal": "name in 2020.3",
    "memory_l2_sectors_local": "name in 2020.3",
    "smsp__thread_inst_executed": "the beginning of a name that is asked for",
}


def find_metrics_read() -> set[str]:
    """Every name of a metric that stands in the package, outside this room."""
    found = set()
    root = Path(gpa_lsp.__file__).parent
    for path in root.rglob("*.py"):
        if not path.is_relative_to(root / "collect"):
            constants = (node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant))
            found |= {value for value in constants if isinstance(value, str) and METRIC.fullmatch(value)}
    return found


def pairs(command: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    return pairwise(command)


def options(command: tuple[str, ...], name: str) -> list[str]:
    return [value for option, value in pairs(command) if option == name]


def test_everything_that_is_read_is_asked_for() -> None:
    asked_for = {name for section in read_sections() for name in section.reads} | set(read_metrics())
    missing = find_metrics_read() - asked_for - set(NOT_ASKED_FOR)
    assert missing == set(), "say in recipe.toml which section brings it, or ask for it as a metric"


def test_nothing_is_said_to_be_read_that_is_not() -> None:
    claimed = {name for section in read_sections() for name in section.reads}
    assert claimed - find_metrics_read() == set()
    assert set(NOT_ASKED_FOR) - find_metrics_read() == set()


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
    assert options(command, "--section") == [*read_roofline_sections(), "Nvlink"]
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


@pytest.mark.corpus
def test_sections_bring_what_the_recipe_says(corpus: Path) -> None:
    """In published reports: a metric that any section defines is defined by the section the recipe names, where the report has that one."""
    checked = 0
    for path in sorted((corpus / "ncu").glob("*.ncu-rep")):
        definitions = read_section_definitions(path)
        for section in read_sections():
            for name in section.reads if section.name in definitions else ():
                is_whole = re.compile(rb"(?<![a-z_])" + re.escape(name.encode()) + rb"(?![\w.])")
                bringing = {found for found, definition in definitions.items() if is_whole.search(definition)}
                assert not bringing or section.name in bringing, (path.name, name)
                checked += bool(bringing)
    assert checked > 200


def read_section_definitions(path: Path) -> dict[str, bytes]:
    """Section → its encoded definition (field 17 of a result), as the report's first launch carries it."""
    data = path.read_bytes()
    place = read_container(io.BytesIO(data), len(data)).results[0]
    fields = list_fields(data[place.offset : place.offset + place.size_bytes])
    sections = [content for number, content in fields if number == 17]
    return {
        next(content for number, content in list_fields(found) if number == 1).decode(): found for found in sections
    }


def list_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The length-delimited fields of a protobuf message."""
    position = 0
    while position < len(message):
        key, position = read_varint(message, position)
        if key & 7 == 2:
            length, position = read_varint(message, position)
            yield key >> 3, message[position : position + length]
            position += length
        elif key & 7 == 0:
            _, position = read_varint(message, position)
        else:
            position += {1: 8, 5: 4}[key & 7]


def read_varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        octet = message[position]
        value |= (octet & 127) << shift
        position += 1
        shift += 7
        if octet < 128:
            return value, position
