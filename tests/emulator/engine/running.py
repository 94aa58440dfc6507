"""PTX texts that tests run: written by hand, with the launch they need."""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Budget, Emulation
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription, ScalarArgument
from tests.patience import LIMIT_S

REGISTERS = (
    ".reg .pred %p<20>; .reg .b16 %h<20>; .reg .b32 %r<60>; .reg .b64 %d<40>; .reg .f32 %f<20>; .reg .f64 %g<20>;"
)
SMALL = Budget(seconds=LIMIT_S, memory_bytes=256 << 20)
_TYPES = {
    one.natural_dtype: one
    for one in (ScalarType.U8, ScalarType.U32, ScalarType.S32, ScalarType.U64, ScalarType.F32, ScalarType.F64)
}
Array = npt.NDArray[Any]


def build_module(body: str, parameters: tuple[str, ...], *, before: str = "", target: str = "sm_80") -> PtxModule:
    """A module with the kernel ``k``, whose parameters are pointers (``%d0`` …, loaded already) and 32-bit numbers (``%r0`` …).

    Args:
        body: instructions; ``ret;`` is added.
        parameters: ``d`` for a pointer, ``r`` for a number.
        before: functions and variables of the module.
        target: of the module.
    """
    declared, loaded, counts = [], [], {"d": 0, "r": 0}
    for place, kind in enumerate(parameters):
        width = 64 if kind == "d" else 32
        declared.append(f".param .u{width} k_param_{place}")
        loaded.append(f"ld.param.u{width} %{kind}{counts[kind]}, [k_param_{place}];")
        counts[kind] += 1
    text = (
        f".version 8.0 .target {target} .address_size 64 {before}\n"
        f".visible .entry k({', '.join(declared)}) {{ {REGISTERS} {' '.join(loaded)}\n{body}\nret; }}"
    )
    return parse_ptx(text, name="k.ptx")


def run_text(
    body: str,
    arrays: dict[str, Array],
    *numbers: int,
    block: int | tuple[int, int, int] = 32,
    grid: int | tuple[int, int, int] = 1,
    before: str = "",
    shared_bytes: int = 0,
    cluster: tuple[int, int, int] | None = None,
    **options: Any,
) -> Emulation:
    """Run instructions on arrays (pointers ``%d0`` …, in order) and numbers (``%r0`` …)."""
    module = build_module(body, ("d",) * len(arrays) + ("r",) * len(numbers), before=before)
    arguments: list[Any] = [
        ArrayArgument(name=name, type=_TYPES[data.dtype], count=len(data)) for name, data in arrays.items()
    ]
    arguments += [
        ScalarArgument(name=f"n{place}", type=ScalarType.U32, value=value) for place, value in enumerate(numbers)
    ]
    launch = LaunchDescription(
        kernel="k",
        block=block if isinstance(block, tuple) else (block, 1, 1),
        grid=grid if isinstance(grid, tuple) else (grid, 1, 1),
        shared_bytes=shared_bytes,
        cluster=cluster,
        arguments=tuple(arguments),
    )
    return emulate(module, launch, arrays=arrays, **{"budget": SMALL, **options})


GLOBAL_THREAD = """
mov.u32 %r50, %ctaid.x; mov.u32 %r51, %ntid.x; mov.u32 %r52, %tid.x; mad.lo.u32 %r59, %r50, %r51, %r52;
mul.wide.u32 %d30, %r59, 4; add.u64 %d31, %d0, %d30; add.u64 %d32, %d1, %d30;
"""
"""Thread of the grid in ``%r59``, its word of the first array at ``%d31``, of the second at ``%d32``."""


def words(*values: int) -> npt.NDArray[np.uint32]:
    """uint32 numbers."""
    return np.array(values, np.uint32)


def zeros(count: int) -> npt.NDArray[np.uint32]:
    """uint32 zeros."""
    return np.zeros(count, np.uint32)
