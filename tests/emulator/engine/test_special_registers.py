"""Special registers that are vectors: read by their elements, or whole."""

import numpy as np
import pytest

from gpa_lsp.execution.emulator.model import FaultKind
from tests.emulator.engine.running import run_text

BLOCK, GRID = (4, 2, 3), (2, 3, 2)


def store(*registers: str) -> str:
    """Each thread's values behind one another; its place is in ``%d1``."""
    return "\n".join(f"st.global.u32 [%d1+{4 * place}], {register};" for place, register in enumerate(registers))


PLACE = """
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z; mad.lo.u32 %r4, %r3, 2, %r2; mad.lo.u32 %r4, %r4, 4, %r1;
mov.u32 %r5, %ctaid.x; mov.u32 %r6, %ctaid.y; mov.u32 %r7, %ctaid.z; mad.lo.u32 %r8, %r7, 3, %r6; mad.lo.u32 %r8, %r8, 2, %r5;
mad.lo.u32 %r9, %r8, 24, %r4; mul.wide.u32 %d1, %r9, 16; add.u64 %d1, %d0, %d1;
"""


def read_four(instructions: str) -> np.ndarray:
    """Values that each thread of the launch reads into ``%r21`` to ``%r24``: uint32[blocks, threads, 4]."""
    out = np.zeros(12 * 24 * 4, np.uint32)
    run = run_text(
        f"{PLACE}{instructions}\n{store('%r21', '%r22', '%r23', '%r24')}", {"out": out}, block=BLOCK, grid=GRID
    )
    assert not run.faults
    return run.arrays["out"].reshape(12, 24, 4)


def expect_index(extent: tuple[int, int, int]) -> np.ndarray:
    x, y, z = extent
    linear = np.arange(x * y * z)
    return np.stack([linear % x, linear // x % y, linear // (x * y), 0 * linear], axis=1)


@pytest.mark.parametrize("kind", ["u32", "b32"])
def test_a_vector_is_read_whole(kind: str) -> None:
    threads = read_four(f"mov.v4.{kind} {{%r21, %r22, %r23, %r24}}, %tid;")
    assert np.array_equal(threads, np.broadcast_to(expect_index(BLOCK), (12, 24, 4)))
    blocks = read_four(f"mov.v4.{kind} {{%r21, %r22, %r23, %r24}}, %ctaid;")
    assert np.array_equal(blocks, np.broadcast_to(expect_index(GRID)[:, None], (12, 24, 4)))
    sizes = read_four(f"mov.v4.{kind} {{%r21, _, %r23, %r24}}, %ntid;")
    assert sizes[0, 0].tolist() == [4, 0, 3, 0]


def test_elements_have_the_names_of_colours_as_well() -> None:
    threads = read_four("mov.u32 %r21, %tid.r; mov.u32 %r22, %tid.g; mov.u32 %r23, %tid.b; mov.u32 %r24, %tid.a;")
    assert np.array_equal(threads[0], expect_index(BLOCK))


def test_registers_that_are_vectors_are_moved_by_element() -> None:
    found = read_four(".reg .v4 .b32 %v; mov.v4.b32 %v, %tid; mov.v4.b32 {%r24, %r23, %r22, %r21}, %v;")
    assert np.array_equal(found[0], expect_index(BLOCK)[:, ::-1])


@pytest.mark.parametrize(
    "instruction",
    [
        "mov.u32 %r1, %tid;",
        "mov.u32 %r1, %ntid;",
        "mov.b32 %r1, %ctaid;",
        "mov.v2.u32 {%r1, %r2}, %tid;",
        "mov.u32 %r1, %clusterid;",
    ],
)
def test_a_vector_is_no_number(instruction: str) -> None:
    """ptxas refuses each: argument vector size mismatch."""
    run = run_text(instruction, {"out": np.zeros(4, np.uint32)})
    (fault,) = run.faults
    assert (fault.kind, fault.is_fatal) == (FaultKind.UNSUPPORTED, True)
    assert instruction.rstrip(";").split(",")[-1].strip() in fault.message
