"""Launches of the tests: read from their descriptions, compiled, emulated, compared with their references."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Emulation
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import LaunchDescription, ScalarArgument, StructArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from tests.emulator.kernels.compiling import compile_ptx
from tests.emulator.kernels.truth import REFERENCES, Array, Close, Given, Unordered, find_differences
from tests.patience import LIMIT_S

BUDGET = Budget(seconds=LIMIT_S, memory_bytes=512 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One launch of one source.

    Attributes:
        source: the ``.cu``.
        launch: what is launched.
        flags: for the compiler.
        architecture: e.g. 80.
    """

    source: Path
    launch: LaunchDescription
    flags: tuple[str, ...]
    architecture: int

    def __str__(self) -> str:
        title = f"-{self.launch.title}" if self.launch.title else ""
        unoptimised = "-unoptimised" if "-G" in self.flags else ""
        return f"{self.source.parent.name}/{self.launch.kernel}{title}-sm_{self.architecture}{unoptimised}".replace(
            " ", "_"
        )


@cache
def load_module(source: Path, architecture: int, *flags: str) -> PtxModule:
    """The parsed PTX of a source, once per session."""
    return parse_ptx(compile_ptx(source, architecture, *flags), name=source.name)


def read_cases(description: Path, source: Path, flags: tuple[str, ...], *architectures: int) -> list[Case]:
    """Every launch of one description on each architecture."""
    launches = read_launches(description)
    return [
        Case(source=source, launch=one, flags=flags, architecture=name) for name in architectures for one in launches
    ]


def run(case: Case, *, budget: Budget = BUDGET) -> Emulation:
    """Emulate one case."""
    return emulate(load_module(case.source, case.architecture, *case.flags), case.launch, budget=budget)


def compute_expected(case: Case, given: Given) -> dict[str, "Array | Close | Unordered"]:
    """Expected results of a launch."""
    compute = REFERENCES[case.launch.kernel]
    with np.errstate(all="ignore"):
        return dict(compute(given))


def list_differences(case: Case, emulation: Emulation) -> list[str]:
    """Every array that is not what the reference says; arrays it does not name must be as they were."""
    given = read_given(case)
    expected = compute_expected(case, given)
    differences = []
    for array, values in expected.items():
        if array not in emulation.arrays:
            differences.append(f"{array} is not among the results")
            continue
        differences.extend(find_differences(array, emulation.arrays[array], values))
    for array, before in given.values.items():
        if (
            isinstance(before, np.ndarray)
            and array not in expected
            and array in emulation.arrays
            and array not in _OPEN.get(case.launch.kernel, ())
        ):
            differences.extend(find_differences(array, emulation.arrays[array], before))
    return differences


_OPEN = {"atomics_returned": ("heads", "next", "winners")}
"""Arrays whose contents depend on who comes first; tests of their own look at them."""


def read_given(case: Case) -> Given:
    """Inputs of the launch, by name."""
    module = load_module(case.source, case.architecture, *case.flags)
    function = find_kernel(module, case.launch.kernel)
    inputs = build_inputs(module, module.functions[function], case.launch, memory_limit_bytes=64 << 20)
    values: dict[str, object] = {buffer.name: buffer.data for buffer in inputs.buffers} | dict(inputs.variables)
    for argument in case.launch.arguments:
        if isinstance(argument, ScalarArgument):
            values[argument.name] = argument.value
        elif isinstance(argument, StructArgument):
            scalars = (member for _, member in argument.members if isinstance(member, ScalarArgument))
            values |= {f"{argument.name}.{member.name}": member.value for member in scalars}
    return Given(values=values, grid=case.launch.grid, block=case.launch.block)


def find_kernel(module: PtxModule, name: str) -> str:
    """Mangled name of the kernel in a module."""
    bare, _, template = name.partition("<")
    letter = {"float>": "f", "double>": "d", "int>": "i"}.get(template, "")
    found = [
        entry.name
        for entry in module.entries
        if entry.name == name or f"{len(bare)}{bare}I{letter}E" in entry.name or f"Z{len(bare)}{bare}" in entry.name
    ]
    exact = [entry for entry in found if entry == name or not template or f"I{letter}E" in entry]
    assert len(exact) == 1, (name, found)
    return exact[0]
