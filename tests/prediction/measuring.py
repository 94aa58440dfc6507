"""Profiles whose counts are what a kernel of our own fixtures does, so that a comparison has something to be right about."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.embedded_ptx import find_ptx_lines, list_embedded_ptx
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.profile.model import Device, Launch, LoadedFunction, Metric, Module, Profile
from gpa_lsp.profile.read import read_profile
from tests.conftest import ROOT
from tests.profile.native_writing import write_native

START = 0x7F0000000000
KERNEL = "_Z13short_def_usePKfPfii"
"""``out[i]`` from ``steps`` loads of ``in``, one a turn."""

GRID, BLOCK, STEPS = (8, 1, 1), (256, 1, 1), 5
WARPS = GRID[0] * BLOCK[0] // 32
LAUNCHES = f"""
[[launch]]
kernel = "short_def_use"
block = {BLOCK[0]}
grid = {GRID[0]}
arguments = [
  {{ name = "in", type = "float", count = "n * steps", fill = "uniform" }},
  {{ name = "out", type = "float", count = "n" }},
  {{ name = "n", type = "int", value = {GRID[0] * BLOCK[0]} }},
  {{ name = "steps", type = "int", value = {STEPS} }},
]
"""


def count_accesses() -> dict[str, dict[int, int]]:
    """Counts as a GPU would take them: metric → offset of the machine instruction → count."""
    cubin = read_cubin((ROOT / "fixtures/cubins/sm_80/short_def_use_original.cubin").read_bytes())
    (unit,) = list_embedded_ptx(cubin)
    text = unit.text.splitlines()
    places = {number: line for line, number in enumerate(unit.kept_lines) if number}
    found: dict[str, dict[int, int]] = {}
    for index, line in enumerate(find_ptx_lines(cubin, KERNEL, unit).tolist()):
        words = text[places[line]] if line else ""
        times = STEPS if "ld.global" in words else 1
        if "ld.global" in words or "st.global" in words:
            offset = index * INSTRUCTION_BYTES
            found.setdefault("inst_executed", {})[offset] = WARPS * times
            found.setdefault("thread_inst_executed_true", {})[offset] = 32 * WARPS * times
            found.setdefault("memory_l2_theoretical_sectors_global", {})[offset] = 4 * WARPS * times
    return found


def write_measured(
    path: Path,
    counts: Mapping[str, Mapping[int, int]],
    *,
    grid: tuple[int, int, int] = GRID,
    totals: Mapping[str, float] | None = None,
) -> Path:
    """A profile of one launch with these counts by instruction, and these of the launch."""
    example = read_profile(ROOT / "fixtures/example.gpa-profile.json")
    launch = next(one for one in example.launches if one.mangled_name == KERNEL)
    assert launch.module_id is not None
    module = example.modules[launch.module_id]
    metrics = {
        name: Metric(
            name=name,
            value=None,
            instance_ids=tuple(START + offset for offset in column),
            instance_values=tuple(column.values()),
        )
        for name, column in counts.items()
    } | {name: Metric(name=name, value=value) for name, value in (totals or {}).items()}
    measured = replace(
        launch,
        grid=grid,
        samples=None,
        metrics=metrics,
        device=Device(name="NVIDIA A100-SXM4-40GB", compute_capability=(8, 0), sm_count=108, sm_clock_hz=None),
        function_addresses=(START,),
    )
    placed = replace(module, functions=(LoadedFunction(name=KERNEL, address=START),))
    write_native(_profile(measured, placed), path)
    return path


def _profile(launch: Launch, module: Module) -> Profile:
    return Profile(
        path=None,
        format_name="gpa-lsp/profile/2",
        tool_version=None,
        modules={module.module_id: module},
        launches=(replace(launch, index=0),),
    )
