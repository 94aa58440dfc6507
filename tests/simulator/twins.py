"""The fixtures' kernels with the launches of their recipes, simulated."""

import json
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli

from gpa_lsp.execution.prediction.launch_sources import LaunchChoice
from gpa_lsp.execution.prediction.simulation import Simulation, SimulationSettings, simulate_code

KERNELS = Path(__file__).parents[2] / "fixtures" / "kernels"
TWINS = tuple(sorted(path.parent.name for path in KERNELS.glob("*/improved.cu")))
"""Patterns with an original and an improved kernel."""


def simulate_fixture(source: Path, machine: str) -> Simulation:
    """A fixture's kernel on a GPU."""
    with TemporaryDirectory() as folder:
        launches = Path(folder) / "fixture.launch.toml"
        launches.write_text(describe_launch(source), encoding="utf-8")
        return simulate_code(source, launches=LaunchChoice(path=launches), settings=SimulationSettings(machine=machine))


def describe_launch(source: Path) -> str:
    """A fixture's recipe as a description of its launch."""
    recipe = tomli.loads((source.parent / "recipe.toml").read_text(encoding="utf-8"))
    own = recipe[source.stem]
    name, parameters = _find_kernel(source)
    arguments = recipe["arguments"][:parameters]  # an improved twin may take fewer
    return "\n".join(
        [
            "[[launch]]",
            f"kernel = {json.dumps(name)}",
            f"grid = {own['grid']}",
            f"block = {own['block']}",
            f"shared_bytes = {own.get('shared_dynamic_bytes', 0)}",
            "arguments = [",
            *(f"  {{ {_describe_argument(one, own.get('textures', ()))} }}," for one in arguments),
            "]",
            "",
        ]
    )


def _describe_argument(argument: dict[str, Any], textures: list[str]) -> str:
    found = f"name = {json.dumps(argument['name'])}, type = {json.dumps(argument['type'])}"
    if argument["kind"] == "scalar":
        return f"{found}, value = {argument['value']}"
    found += f", {'width' if argument['name'] in textures else 'count'} = {argument['count']}"
    if argument["kind"] == "input":
        found += f', fill = "uniform", low = {argument.get("low", 0)}, high = {argument.get("high", 1)}'
    return found


def _find_kernel(source: Path) -> tuple[str, int]:
    """Name and parameters of the one kernel in a fixture's source."""
    text = source.read_text(encoding="utf-8").partition("__global__")[2]
    head, _, rest = re.sub(r"__launch_bounds__\([^)]*\)", "", text).partition("(")
    return head.split()[-1], rest.partition(")")[0].count(",") + 1
