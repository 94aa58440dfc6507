"""Random programs give in the emulator, a batch of warps at a time, what they give in Python, one thread at a time."""

from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.launches.launch import ArrayArgument, LaunchDescription
from tests.emulator.kernels.compiling import compile_ptx
from tests.emulator.kernels.random_programs import INPUTS, WORD, Maker, Thread, render
from tests.emulator.kernels.running import BUDGET

_THREADS = 192
_LAUNCH = LaunchDescription(
    kernel="random_program",
    block=(96, 1, 1),
    grid=(2, 1, 1),
    arguments=(
        ArrayArgument(name="in", type=ScalarType.U32, count=INPUTS),
        ArrayArgument(name="out", type=ScalarType.U32, count=_THREADS),
    ),
)


@pytest.mark.parametrize("flags", [(), ("-G",)], ids=["optimised", "unoptimised"])
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_what_python_gives(seed: int, flags: tuple[str, ...], tmp_path: Path) -> None:
    program = Maker(seed).make()
    source = tmp_path / f"random_program_{seed}.cu"
    source.write_text(render(program), encoding="utf-8")
    inputs = np.random.Generator(np.random.PCG64(seed)).integers(0, WORD, INPUTS, dtype=np.uint32)
    inputs[:4] = (0, 1, WORD, 1 << 31)
    module = parse_ptx(compile_ptx(source, 80, *flags), name=source.name)
    emulation = emulate(module, _LAUNCH, budget=BUDGET, arrays={"in": inputs})
    assert emulation.faults == ()
    expected = [Thread(number, inputs.tolist()).run(program) for number in range(_THREADS)]
    assert emulation.arrays["out"].tolist() == expected
