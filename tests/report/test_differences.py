"""Differences of launch, code and counters."""

import numpy as np
import pytest
from msgspec.structs import replace

from gpa_lsp.report.differences import Trait, compare_traits
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel

LOADS = """
    k.cu:4  LDG.E R2, [R4.64]        ; wait=1
    k.cu:4  LDG.E.128 R8, [R4.64]    ; wait=1
    k.cu:5  FFMA R3, R11, R3, R6     ; wait=1
    k.cu:5  @!P0 LDS R7, [R0]        ; wait=1
    k.cu:6  FADD R7, R2, R7          ; wait=1
"""
BLANK = "k.cu:4  NOP  ; wait=1"


def executed(kernel: KernelReport, *counts: int) -> KernelReport:
    return replace(kernel, instructions=replace(kernel.instructions, executions=np.array(counts, dtype=np.int64)))


def test_instructions_are_counted_in_the_code_where_executions_are_unknown_on_one_side() -> None:
    found = compare_traits(executed(build_kernel(LOADS), 5, 5, 5, 5, 5), build_kernel(BLANK))
    loads = found[Trait.GLOBAL_ACCESSES]
    assert (loads.before, loads.after, loads.is_static) == (2, 0, True)
    assert (found[Trait.SHARED_ACCESSES].before, found[Trait.SHARED_ACCESSES].after) == (1, 0)
    assert Trait.EXECUTED not in found
    assert not found[Trait.CODE_SIZE].is_static


def test_executions_count_where_both_know_them() -> None:
    found = compare_traits(executed(build_kernel(LOADS), 5, 3, 5, 7, 5), executed(build_kernel(BLANK), 9))
    loads = found[Trait.GLOBAL_ACCESSES]
    assert (loads.before, loads.after, loads.is_static) == (8, 0, False)
    assert (found[Trait.EXECUTED].before, found[Trait.EXECUTED].after) == (25, 9)


def test_the_first_use_of_a_load_may_be_of_any_register_it_fills() -> None:
    found = compare_traits(build_kernel(LOADS), build_kernel(LOADS))
    distance = found[Trait.LOAD_DISTANCE]
    assert distance.before == pytest.approx((4 + 1 + 1) / 3)
    assert not distance.is_change


def test_accesses_per_arithmetic_instruction() -> None:
    found = compare_traits(build_kernel(LOADS), build_kernel(LOADS))
    assert found[Trait.ACCESSES_PER_ARITHMETIC].before == pytest.approx(3 / 2)


def test_what_one_side_does_not_know_is_no_difference() -> None:
    kernel = build_kernel(LOADS)
    unknown = replace(kernel, configuration=replace(kernel.configuration, grid=None, registers_per_thread=None))
    found = compare_traits(kernel, unknown)
    assert found.keys().isdisjoint({Trait.GRID, Trait.BLOCKS, Trait.REGISTERS, Trait.GLOBAL_SECTORS, Trait.OCCUPANCY})
    assert Trait.CODE_SIZE in found


def test_grid_and_block_are_differences() -> None:
    kernel = build_kernel(LOADS)
    other = replace(kernel, configuration=replace(kernel.configuration, grid=(7, 2, 1), block=(64, 1, 1)))
    changed = {trait: one.after for trait, one in compare_traits(kernel, other).items() if one.is_change}
    assert changed == {Trait.GRID: "7×2", Trait.BLOCK: "64", Trait.BLOCKS: 14}
