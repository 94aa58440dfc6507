"""Narrow accesses side by side that one access could make."""

from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.kernel.dataflow.accesses import find_access_runs
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.model import Kernel
from tests.rows.written import write_kernel


def list_runs(text: str, **kernel) -> list[tuple[tuple[int, ...], int]]:
    return [(run.rows, run.bytes_each) for run in find_access_runs(write_kernel(text, **kernel).rows)]


FOUR = """
IMAD.WIDE R2, R0, {scale}, R8  # k.cu:3
LDG.E R7, [R2.64+0xc]          # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
LDG.E R5, [R2.64+0x4]          # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
LDG.E R4, [R2.64]              # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
LDG.E R6, [R2.64+0x8]          # k.cu:5 | lg_throttle=40/40 | x=100 {counters}
FADD R4, R4, R5                # k.cu:6 | long_scoreboard=400/400
EXIT
"""


@pytest.mark.parametrize(
    ("scale", "counters", "rows"),
    [
        ("0x10", "", [(3, 2, 4, 1)]),
        ("0x8", "", [(4, 1), (3, 2)]),
        ("0x4", "", []),
        ("R9", "", []),
        ("R9", "global_sectors=1600 thread_executions_true=3200", [(3, 2, 4, 1)]),
        ("R9", "global_sectors=800 thread_executions_true=3200", [(4, 1), (3, 2)]),
        ("R9", "global_sectors=400 thread_executions_true=3200", []),
        ("R9", "global_sectors=200 thread_executions_true=3200", [(3, 2, 4, 1)]),
    ],
)
def test_threads_must_stand_a_multiple_of_the_wide_access_apart(scale, counters, rows):
    """A stencil reads x[i - 1], x[i], x[i + 1] at neighbouring addresses, too, but no wide access is aligned in every thread."""
    assert list_runs(FOUR.format(scale=scale, counters=counters)) == [(found, 4) for found in rows]


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        # A constant register holds the multiplier, as on older architectures.
        ("MOV R9, 0x8\nIMAD.WIDE R2, R0, R9, R6\nLDG.E R4, [R2.64]\nLDG.E R5, [R2.64+0x4]", [((2, 3), 4)]),
        ("LEA R2, P0, R0, R6, 0x4\nSTG.E.64 [R2.64+0x8], R4\nSTG.E.64 [R2.64], R8", [((2, 1), 8)]),
        # The base changes in between.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64]\nIADD3 R2, R2, 0x8, RZ\nLDG.E R5, [R2.64+0x4]", []),
        # Two blocks.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64]\n@P0 BRA next\nnext:\nLDG.E R5, [R2.64+0x4]", []),
        # One of them under a guard.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64]\n@P0 LDG.E R5, [R2.64+0x4]", []),
        # The pair does not begin at a aligned to its size.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E R4, [R2.64+0x4]\nLDG.E R5, [R2.64+0x8]", []),
        # As wide as it gets.
        ("IMAD.WIDE R2, R0, 0x20, R6\nLDG.E.128 R4, [R2.64]\nLDG.E.128 R8, [R2.64+0x10]", []),
        # Volatile.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDG.E.STRONG.SYS R4, [R2.64]\nLDG.E.STRONG.SYS R5, [R2.64+0x4]", []),
        # Shared memory is another matter.
        ("IMAD.WIDE R2, R0, 0x8, R6\nLDS R4, [R2]\nLDS R5, [R2+0x4]", []),
    ],
)
def test_what_can_be_merged(text, runs):
    assert list_runs(f"{text}\nEXIT") == runs


def read_fixture(fixtures: Path, architecture: str, name: str) -> Kernel:
    path = fixtures / "cubins" / architecture / f"{name}.cubin"
    (kernel,), _ = list_unmeasured_kernels(read_cubin(path.read_bytes(), path=path))
    return kernel


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_pair_of_narrow_loads_is_told_apart(fixtures, architecture):
    narrow = find_access_runs(read_fixture(fixtures, architecture, "narrow_loads_original").rows)
    assert sorted((len(run.rows), run.merged_bytes) for run in narrow) == [(4, 16), (4, 16)]
    wide = find_access_runs(read_fixture(fixtures, architecture, "narrow_loads_improved").rows)
    assert wide == ()


@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", ["strided_access_improved", "bank_conflict_original", "branch_divergence_original"])
def test_kernels_whose_threads_are_neighbours_have_nothing_to_merge(fixtures, architecture, name):
    assert find_access_runs(read_fixture(fixtures, architecture, name).rows) == ()
