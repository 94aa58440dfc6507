"""Sources of the tests, compiled to machine code, walked, and held against the emulator of PTX."""

from dataclasses import dataclass
from functools import cache
from math import prod
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.emulator.emulate import emulate, find_kernel
from gpa_lsp.execution.emulator.model import Budget, Emulation
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.simulator.execution.memory_spaces import GLOBAL_BASE
from gpa_lsp.execution.simulator.walk_kernel import WalkSettings, prepare_walk, walk_kernel
from gpa_lsp.execution.simulator.warp_walk import KernelWalk
from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.model import Kernel
from tests.emulator.kernels.compiling import compile_cubin
from tests.patience import LIMIT_S

BUDGET = Budget(seconds=LIMIT_S, memory_bytes=512 << 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A compiled source.

    Attributes:
        module: its PTX.
        kernels: its machine code, by mangled name.
    """

    module: PtxModule
    kernels: dict[str, Kernel]

    def find(self, launch: LaunchDescription) -> tuple[Kernel, LaunchDescription]:
        """The kernel of a launch, and the launch with its mangled name."""
        name = find_kernel(self.module, launch.kernel).name
        return self.kernels[name], replace(launch, kernel=name)


@cache
def build(path: Path, architecture: int) -> Built:
    """Compile a source; the test is skipped where no compiler is installed."""
    try:
        unit = compile_source(path, compute_capability=divmod(architecture, 10))
    except MissingToolError as error:
        pytest.skip(str(error))
    assert unit.ptx is not None and unit.cubin is not None, [one.text for one in unit.messages]
    return _assemble(path, unit.ptx, unit.cubin)


@cache
def build_for_debugging(path: Path, architecture: int) -> Built:
    """Compile a source with ``-G``."""
    return _assemble(path, *compile_cubin(path, architecture, "-G"))


def _assemble(path: Path, ptx: str, cubin: bytes) -> Built:
    kernels = list_unmeasured_kernels(read_cubin(cubin))[0]
    if any(not one.rows.has_code for one in kernels):
        pytest.skip("no disassembler is installed")
    return Built(module=parse_ptx(ptx, name=path.name), kernels={one.mangled_name: one for one in kernels})


def list_all_blocks(launch: LaunchDescription) -> tuple[int, ...]:
    """Every block of a grid."""
    return tuple(range(prod(launch.grid)))


def walk_all(built: Built, launch: LaunchDescription) -> KernelWalk:
    """Every block, as it is done for a simulation."""
    kernel, launch = built.find(launch)
    return walk_kernel(kernel, built.module, launch, WalkSettings(blocks=list_all_blocks(launch), seconds=LIMIT_S))


def emulate_all(built: Built, launch: LaunchDescription) -> Emulation:
    """The same launch by its PTX."""
    emulation = emulate(built.module, built.find(launch)[1], budget=BUDGET, check_races=False)
    assert emulation.is_complete
    return emulation


def find_differences(built: Built, launch: LaunchDescription) -> list[str]:
    """Execute everything, and name the arrays that the machine code and the PTX leave differently."""
    kernel, launch = built.find(launch)
    settings = WalkSettings(executes_all=True, keeps_walks=False, seconds=LIMIT_S)
    walker = prepare_walk(kernel, built.module, launch, settings)
    assert walker is not None
    walk = walker.walk(list_all_blocks(launch))
    found = [one.reason for one in walk.not_simulated]
    for name, wanted in emulate_all(built, launch).arrays.items():
        if name not in walker.memory.arrays:
            continue
        start = walker.memory.arrays[name] - GLOBAL_BASE
        given = walker.memory.data[start : start + wanted.nbytes].view(wanted.dtype)
        flat = wanted.reshape(-1)
        if flat.dtype.kind == "f":
            equal = np.isclose(given, flat, rtol=1e-3, atol=1e-5, equal_nan=True)
        else:
            equal = given == flat
        if not equal.all():
            found.append(f"{name}: {int((~equal).sum())} of {len(flat)} differ")
    return found
