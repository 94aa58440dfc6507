"""The kernels of this folder, compiled and emulated: traces of real code."""

from functools import cache
from pathlib import Path

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation, Sampling, SamplingKind, Trace, TraceSettings
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, ScalarArgument
from tests.emulator.kernels.compiling import compile_ptx

FOLDER = Path(__file__).parent
ARCHITECTURE = 75


@cache
def load_module(name: str) -> PtxModule:
    """A source of this folder, by its name without ending."""
    path = FOLDER / f"{name}.cu"
    return parse_ptx(compile_ptx(path, ARCHITECTURE), name=path.name)


def floats(name: str, count: int) -> ArrayArgument:
    return ArrayArgument(name=name, type=ScalarType.F32, count=count)


def integer(name: str, value: int) -> ScalarArgument:
    return ScalarArgument(name=name, type=ScalarType.S32, value=value)


def trace_kernel(module: str, launch: LaunchDescription, *, blocks: int | None = None) -> tuple[Emulation, Trace]:
    """Emulate with everything traced; some blocks spread over the grid, or all."""
    sampling = Sampling() if blocks is None else Sampling(kind=SamplingKind.SPREAD, count=blocks)
    emulation = emulate(load_module(module), launch, sampling=sampling, trace=TraceSettings(entries=True))
    assert emulation.faults == ()
    assert emulation.is_complete
    assert emulation.trace is not None
    return emulation, emulation.trace


def launch_bicg(kernel: str, size: int) -> LaunchDescription:
    """One of the two kernels of BiCG, 256 threads a block as in the benchmark suite."""
    return LaunchDescription(
        kernel=kernel,
        block=(256, 1, 1),
        grid=(-(-size // 256), 1, 1),
        arguments=(
            floats("a", size * size), floats("x", size), floats("y", size), integer("rows", size), integer("columns", size),
        ),
    )  # fmt: skip


def launch_rank_update(kernel: str, size: int) -> LaunchDescription:
    """SYRK or SYR2K on square matrices, 32 by 8 threads a block as in the benchmark suite."""
    matrices = ("a", "c") if kernel == "syrk" else ("a", "b", "c")
    scalars = tuple(ScalarArgument(name=name, type=ScalarType.F32, value=2) for name in ("alpha", "beta"))
    return LaunchDescription(
        kernel=kernel,
        block=(32, 8, 1),
        grid=(-(-size // 32), -(-size // 8), 1),
        arguments=(
            *scalars, *(floats(name, size * size) for name in matrices), integer("n", size), integer("m", size),
        ),
    )  # fmt: skip
