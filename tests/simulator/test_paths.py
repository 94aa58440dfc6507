"""Machine code is walked as its lanes go: copies of loops and what remains, predicates, calls, exits, spills, barriers."""

from collections import Counter
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.emulate import emulate
from gpa_lsp.execution.emulator.model import TraceSettings
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.simulator.walk_kernel import WalkSettings, walk_kernel
from gpa_lsp.execution.simulator.warp_walk import LOCAL_BASE, KernelWalk
from gpa_lsp.kernel.model import Kernel
from tests.simulator.walking import BUDGET, Built, build, find_differences, list_all_blocks, walk_all

SOURCE = Path(__file__).parent / "sources" / "paths.cu"
LAUNCHES = {one.kernel: one for one in read_launches(SOURCE.with_suffix(".launch.toml"))}
ARCHITECTURES = (75, 80, 90, 120)
BLOCKS, WARPS = 4, 2
COME_BACK_APART = ("dispatching",)
"""Nothing lets the lanes meet behind a call that parted them: each part stores by itself."""


def count_opcode(built: Built, walk: KernelWalk, opcode: str) -> int:
    """Executions by warps with a lane, over all walks."""
    rows = built.kernels[walk.kernel].rows
    is_meant = np.array([rows.opcode(row).name == opcode for row in range(len(rows))])
    return sum(int((is_meant[one.instruction] & (one.active != 0)).sum()) for one in walk.walks)


def list_stores(built: Built, launch: LaunchDescription) -> Counter[tuple[int, int, int]]:
    """(block, warp, sector) → how often the PTX stores there."""
    named = built.find(launch)[1]
    emulation = emulate(built.module, named, budget=BUDGET, trace=TraceSettings(), check_races=False)
    assert emulation.trace is not None
    accesses = emulation.trace.accesses
    found: Counter[tuple[int, int, int]] = Counter()
    ends = np.append(accesses.first_address[1:], len(accesses.addresses)).astype(int)
    for place in range(len(accesses)):
        instruction = emulation.trace.instructions[int(accesses.instruction[place])]
        if accesses.space[place] == Space.GLOBAL and instruction.kind == AccessKind.STORE:
            addresses = accesses.addresses[int(accesses.first_address[place]) : ends[place]]
            for sector in np.unique(addresses // np.uint64(32)).tolist():
                found[int(accesses.block[place]), int(accesses.warp[place]), int(sector)] += 1
    return found


def list_walked_stores(kernel: Kernel, walk: KernelWalk) -> Counter[tuple[int, int, int]]:
    """The same of the machine code."""
    rows = kernel.rows
    is_store = np.array([rows.opcode(row).name == "STG" for row in range(len(rows))])
    found: Counter[tuple[int, int, int]] = Counter()
    for one in walk.walks:
        for place in np.flatnonzero(is_store[one.instruction]).tolist():
            first, last = int(one.first_sector[place]), int(one.first_sector[place + 1])
            found.update((one.block[0], one.warp, sector) for sector in one.sectors[first:last].tolist())
    return found


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_machine_code_leaves_the_memory_that_the_ptx_leaves(name: str, architecture: int) -> None:
    assert find_differences(build(SOURCE, architecture), LAUNCHES[name]) == []


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_stores_touch_the_sectors_that_the_ptx_touches(name: str, architecture: int) -> None:
    built = build(SOURCE, architecture)
    walk = walk_all(built, LAUNCHES[name])
    assert walk.not_simulated == ()
    found, wanted = list_walked_stores(built.kernels[name], walk), list_stores(built, LAUNCHES[name])
    if name in COME_BACK_APART:
        assert set(found) == set(wanted)
    else:
        assert found == wanted


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", LAUNCHES)
def test_what_decides_nothing_need_not_be_executed(name: str, architecture: int) -> None:
    built = build(SOURCE, architecture)
    kernel, launch = built.find(LAUNCHES[name])
    blocks = list_all_blocks(launch)
    every = walk_kernel(kernel, built.module, launch, WalkSettings(blocks=blocks, executes_all=True))
    some = walk_kernel(kernel, built.module, launch, WalkSettings(blocks=blocks))
    for one, other in zip(every.walks, some.walks, strict=True):
        assert (one.block, one.warp) == (other.block, other.warp)
        for column in ("instruction", "active", "wavefronts", "first_sector", "sectors"):
            assert np.array_equal(getattr(one, column), getattr(other, column)), column


def test_a_straight_line_is_executed_once_by_each_warp() -> None:
    built = build(SOURCE, 80)
    walk = walk_all(built, LAUNCHES["straight"])
    (walked,) = {tuple(one.instruction.tolist()) for one in walk.walks}
    assert walked == tuple(range(len(walked)))
    assert built.kernels["straight"].rows.opcode(walked[-1]).name == "EXIT"
    assert all((one.active == 0xFFFFFFFF).all() for one in walk.walks)
    assert len(walk.walks) == BLOCKS * WARPS
    assert walk.executed[: len(walked)].tolist() == [BLOCKS * WARPS] * len(walked)
    assert walk.thread_executed[: len(walked)].tolist() == [BLOCKS * WARPS * 32] * len(walked)


def test_every_turn_of_a_loop_loads_once_however_often_its_body_was_copied() -> None:
    """Eleven turns are two of four copies and three that remain."""
    built = build(SOURCE, 80)
    kernel = built.kernels["unrolled"]
    loads = [row for row in range(len(kernel.rows)) if kernel.rows.opcode(row).name == "LDG"]
    assert len(loads) > 1
    walk = walk_all(built, LAUNCHES["unrolled"])
    assert count_opcode(built, walk, "LDG") == 11 * BLOCKS * WARPS
    assert len({int(walk.executed[row]) for row in loads}) > 1


def test_a_predicate_takes_lanes_away() -> None:
    built = build(SOURCE, 80)
    rows = built.kernels["predicated"].rows
    walk = walk_all(built, LAUNCHES["predicated"])
    stores = [
        int(mask)
        for one in walk.walks
        for row, mask in zip(one.instruction, one.active, strict=True)
        if rows.opcode(int(row)).name == "STG"
    ]
    assert stores == [0xAAAAAAAA] * BLOCKS * WARPS


def test_calls_come_back() -> None:
    built = build(SOURCE, 80)
    walk = walk_all(built, LAUNCHES["calling"])
    assert count_opcode(built, walk, "RET") >= BLOCKS * WARPS
    lanes = {int(one.active[-1]) for one in walk.walks}
    assert lanes == {0xFFFFFFFF}


def test_functions_that_registers_name_are_called_by_the_lanes_that_name_them() -> None:
    built = build(SOURCE, 80)
    rows = built.kernels["pointing"].rows
    walk = walk_all(built, LAUNCHES["pointing"])
    called = {rows.texts[row] for row in range(len(rows)) if rows.opcode(row).name == "CALL"}
    assert called and all(text.startswith("CALL.REL.NOINC R") for text in called)
    masks = [
        int(mask)
        for one in walk.walks
        for row, mask in zip(one.instruction.tolist(), one.active.tolist(), strict=True)
        if rows.opcode(row).name == "RET"
    ]
    assert masks and all(mask & (mask << 1) == 0 or bin(mask).count("1") > 16 for mask in masks)
    assert any(mask & 0x55555555 == mask for mask in masks) and any(mask & 0xAAAAAAAA == mask for mask in masks)


def test_lanes_that_left_are_missing_behind() -> None:
    built = build(SOURCE, 80)
    walk = walk_all(built, LAUNCHES["leaving"])
    some, none = (one for one in walk.walks if one.block == (3, 0, 0))
    assert walk.not_simulated == ()
    assert len(none) < len(some)
    assert int(none.active[-1]) == 0xFFFFFFFF
    assert {int(mask) & ~0xFF for mask in some.active[len(none) :]} == {0}


def test_local_memory_lies_beyond_global_memory_and_its_words_side_by_side() -> None:
    built = build(SOURCE, 80)
    rows = built.kernels["spilling"].rows
    walk = walk_all(built, LAUNCHES["spilling"])
    assert count_opcode(built, walk, "LDL") > 0
    is_local = np.array([rows.opcode(row).name in ("LDL", "STL") for row in range(len(rows))])
    for one in walk.walks:
        counts = np.diff(one.first_sector)
        local = np.repeat(is_local[one.instruction], counts)
        assert ((one.sectors >= LOCAL_BASE // 32) == local).all()


def test_shared_memory_has_wavefronts_and_no_sectors() -> None:
    built = build(SOURCE, 80)
    rows = built.kernels["meeting"].rows
    walk = walk_all(built, LAUNCHES["meeting"])
    is_shared = np.array([rows.opcode(row).name in ("LDS", "STS") for row in range(len(rows))])
    for one in walk.walks:
        chosen = is_shared[one.instruction] & (one.active != 0)
        assert (one.wavefronts[chosen] == 1).all()
        assert (np.diff(one.first_sector)[chosen] == 0).all()


def test_a_walk_ends_where_it_takes_too_much() -> None:
    built = build(SOURCE, 80)
    kernel, launch = built.find(LAUNCHES["nested"])
    walk = walk_kernel(kernel, built.module, launch, WalkSettings(executions=100))
    assert walk.walks == ()
    assert {one.reason for one in walk.not_simulated} == {"more than 100 instructions would have to be kept"}
    assert not walk.executed.any()


def test_blocks_for_which_no_time_is_left_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpa_lsp.execution.simulator.walk_kernel._MOST_WARPS", 1)  # a block at a time
    monkeypatch.setattr("gpa_lsp.execution.simulator.walk_kernel.work_time", count().__next__)
    built = build(SOURCE, 80)
    kernel, launch = built.find(LAUNCHES["straight"])
    walk = walk_kernel(kernel, built.module, launch, WalkSettings(blocks=list_all_blocks(launch), seconds=2.5))
    assert walk.sampled_blocks == (0, 1)
    assert [one.reason for one in walk.not_simulated] == ["it took more than 2.5 s of processor time"]


def test_a_block_that_strays_ends_alone() -> None:
    source = SOURCE.with_name("faults.cu")
    (launch,) = read_launches(source.with_suffix(".launch.toml"))
    walk = walk_all(build(source, 80), launch)
    (problem,) = walk.not_simulated
    assert problem.block == 2
    assert problem.reason == "an access lies outside of the shared memory of its block"
    assert walk.sampled_blocks == (0, 1, 3)
