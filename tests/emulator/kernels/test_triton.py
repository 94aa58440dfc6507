"""Triton's kernels give numpy's results: loads by halves of a warp, reductions, tensor cores by warps and by warp groups."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import Emulation, TraceSettings
from gpa_lsp.execution.launches.launch import Argument, ArrayArgument, LaunchDescription, ScalarArgument

FOLDER = Path(__file__).parent / "triton"
_TYPES = {np.dtype(np.float32): ScalarType.F32, np.dtype(np.float16): ScalarType.F16}

Array = npt.NDArray[np.generic]
Doubles = npt.NDArray[np.float64]


@cache
def read_module(name: str) -> PtxModule:
    """The parsed PTX of one kernel."""
    path = FOLDER / f"{name}.ptx"
    return parse_ptx(path.read_text(encoding="utf-8"), name=path.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One launch of what Triton compiled.

    Attributes:
        name: of the PTX.
        grid: of the launch.
        shared_bytes: of the launch, as Triton says.
        arrays: what the kernel is given, in order; the last one is its result.
        numbers: what follows them.
    """

    name: str
    grid: tuple[int, int, int]
    shared_bytes: int
    arrays: tuple[Array, ...]
    numbers: tuple[int, ...]

    def run(self) -> Emulation:
        """Emulate it, everything recorded. Triton's kernels have two pointers more, to memory of their own that they do not need."""
        module = read_module(self.name)
        names = [f"array_{place}" for place in range(len(self.arrays))]
        arguments: list[Argument] = [
            ArrayArgument(name=name, type=_TYPES[array.dtype], count=array.size)
            for name, array in zip(names, self.arrays, strict=True)
        ]
        arguments += [
            ScalarArgument(name=f"number_{place}", type=ScalarType.S32, value=value)
            for place, value in enumerate(self.numbers)
        ]
        arguments += [ScalarArgument(name=name, type=ScalarType.S64, value=0) for name in ("scratch", "profile")]
        description = LaunchDescription(
            kernel=module.entries[0].name,
            grid=self.grid,
            block=(128, 1, 1),
            shared_bytes=self.shared_bytes,
            arguments=tuple(arguments),
        )
        arrays = {name: array.ravel() for name, array in zip(names, self.arrays, strict=True)}
        return emulate(module, description, arrays=arrays, trace=TraceSettings())


def compute(launch: Launch) -> Doubles:
    """The result of a launch that ran to its end without a fault."""
    emulation = launch.run()
    assert [f"{fault.kind}: {fault.message}" for fault in emulation.faults] == []
    assert emulation.is_complete
    result = emulation.arrays[f"array_{len(launch.arrays) - 1}"]
    return result.reshape(launch.arrays[-1].shape).astype(np.float64)


def _draw(shape: tuple[int, ...], dtype: type[np.floating], seed: int) -> Array:
    return (np.random.default_rng(seed).random(shape) * 2 - 1).astype(dtype)


def test_sums_of_arrays() -> None:
    x, y = _draw((1200,), np.float32, 1), _draw((1200,), np.float32, 2)
    launch = Launch(
        name="add_sm_80", grid=(3, 1, 1), shared_bytes=0, arrays=(x, y, np.zeros(1200, np.float32)), numbers=(1200,)
    )
    assert (compute(launch) == (x + y)).all()


def test_softmax_of_rows() -> None:
    x = 5 * _draw((6, 400), np.float32, 3)
    launch = Launch(name="softmax_sm_90", grid=(6, 1, 1), shared_bytes=16, arrays=(x, np.zeros_like(x)), numbers=(400,))
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    right = power / power.sum(axis=1, keepdims=True)
    assert np.abs(compute(launch) / right - 1).max() < 1e-5


@pytest.mark.parametrize(
    ("name", "tile", "shared_bytes"), [("matmul_sm_80", (32, 64), 6144), ("matmul_sm_90", (64, 64), 32768)]
)
def test_products_of_matrices(name: str, tile: tuple[int, int], shared_bytes: int) -> None:
    rows, columns, depth = 128, 128, 192
    a, b = _draw((rows, depth), np.float16, 4), _draw((depth, columns), np.float16, 5)
    launch = Launch(
        name=name,
        grid=(rows // tile[0], columns // tile[1], 1),
        shared_bytes=shared_bytes,
        arrays=(a, b, np.zeros((rows, columns), np.float32)),
        numbers=(depth, columns),
    )
    left, right = a.astype(np.float64), b.astype(np.float64)
    # A rounding to single precision for each step of the depth, of sums no larger than those of the magnitudes.
    bound = depth / 16 * 2.0**-24 * (np.abs(left) @ np.abs(right))
    assert (np.abs(compute(launch) - left @ right) <= bound).all()


def _prepare_attention() -> Launch:
    rows, keys, width = 128, 192, 32
    q, k, v = (_draw((count, width), np.float16, seed) for count, seed in ((rows, 6), (keys, 7), (keys, 8)))
    return Launch(
        name="attention_sm_90",
        grid=(rows // 64, 1, 1),
        shared_bytes=20480,
        arrays=(q, k, v, np.zeros((rows, width), np.float32)),
        numbers=(keys,),
    )


def test_attention_whose_second_product_takes_what_the_first_gave_from_registers() -> None:
    launch = _prepare_attention()
    q, k, v = (array.astype(np.float64) for array in launch.arrays[:3])
    power = np.exp(q @ k.T)
    right = power @ v / power.sum(axis=1, keepdims=True)
    # The powers are rounded to halves before the second product.
    assert np.abs(compute(launch) - right).max() < 2.0**-11


def test_what_tensor_cores_read_by_descriptor_is_no_access_of_lanes() -> None:
    emulation = _prepare_attention().run()
    assert emulation.trace is not None
    accesses = emulation.trace.accesses
    words = [emulation.instructions[int(number)].text.split()[0] for number in np.unique(accesses.instruction)]
    assert (accesses.space == int(Space.SHARED)).any()
    assert {word for word in words if word.startswith("wgmma")} == set()
    executed = [
        int(count)
        for one, count in zip(emulation.instructions, emulation.counts.warp_executions, strict=True)
        if one.text.startswith("wgmma.mma_async")
    ]
    # Two blocks of four warps, three steps of the keys, six products in each.
    assert executed == [2 * 4 * 3] * 6


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ptx")), ids=lambda path: path.stem)
def test_lines_are_those_of_the_kernels_and_no_folder_is_named(path: Path) -> None:
    module = read_module(path.stem)
    assert set(module.files.values()) <= {"kernels.py", "standard.py"}
    (function,) = module.entries
    source = (FOLDER / "kernels.py").read_text(encoding="utf-8").splitlines()
    lines = {
        instruction.chain[-1].line
        for instruction in function.instructions
        if instruction.opcode in ("ld", "st", "wgmma", "mma") and instruction.chain is not None
    }
    assert lines
    used = {word for line in lines for word in ("tl.load", "tl.store", "tl.dot") if word in source[line - 1]}
    assert {"tl.store"} <= used
