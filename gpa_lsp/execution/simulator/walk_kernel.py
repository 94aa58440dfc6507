"""A kernel's SASS and a launch → executions of its warps: :func:`walk_kernel`.

Every lane executes the machine code with its values: predicates decide branches, addresses give sectors, as on the GPU. Unknown values, results of
instructions whose arithmetic is unknown (matrix products, clocks), are marked and followed; where one decides a branch, a predicate or an address,
the walk of that block ends, with the reason and the place. Nothing is guessed, and no line table is needed.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES
from gpa_lsp.code.ptx.model import PtxModule
from gpa_lsp.execution.accesses.l2_traffic import BlockPlace, place_block
from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import LaunchDescription, find_cluster
from gpa_lsp.execution.simulator.execution.compiled_steps import BoundCode
from gpa_lsp.execution.simulator.execution.demand import demand_everything, find_demand
from gpa_lsp.execution.simulator.execution.memory_spaces import (
    LaunchMemory,
    MemorySpaces,
    SpecialRegisters,
    lay_out_launch,
)
from gpa_lsp.execution.simulator.execution.recording import Recorder
from gpa_lsp.execution.simulator.execution.walking import Walk, WalkLimits, describe_problems
from gpa_lsp.execution.simulator.execution.warp_state import WarpState
from gpa_lsp.execution.simulator.warp_walk import LOCAL_SECTOR, KernelWalk, NotSimulated, WarpWalk
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_seconds
from gpa_lsp.foundation.records import ColumnRecord
from gpa_lsp.foundation.work_time import work_time
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES
from gpa_lsp.kernel.model import Kernel

# Executions over a grid of one axis, by blocks that stand for others: :func:`count_grid`.
#
# Loops that stride over the grid and guards at the end of data make blocks differ by their index alone: up to some block
# all do the same, and behind it all do less. So blocks between two that execute the same are taken to do so as well, and
# between two that do not, some are looked at, until it is known where they change. What warps execute decides; lanes,
# which differ more often, are taken to change evenly.

Counts = npt.NDArray[np.float64]  # float64[2, r]: executions of each row by the warps of a block, and by their lanes

MOST_BLOCKS = 96  # Looked at: enough for a few changes in a large grid
# Into which the blocks between two are divided: blocks that are looked at together take little more time than one
_PARTS = 4


def count_grid(
    blocks: int, known: Mapping[int, Counts], look: Callable[[Sequence[int]], Mapping[int, Counts]]
) -> Counts | None:
    """Executions of all blocks; where they change too often, as if they changed evenly between those that were looked at.

    Returns:
        None where the first or the last block is not known.
    """
    found = dict(known)
    wanted = [one for one in (0, blocks - 1) if one not in found]
    while wanted and len(found) + len(wanted) <= MOST_BLOCKS:
        seen = look(wanted)
        found.update(seen)
        if len(seen) < len(wanted):
            break
        wanted = [
            one
            for first, last in pairwise(sorted(found))
            if not np.array_equal(found[first][0], found[last][0])
            for one in _divide(first, last)
        ]
    if not {0, blocks - 1} <= found.keys():
        return None
    total: Counts = np.sum([*found.values()], axis=0)
    for first, last in pairwise(sorted(found)):
        total += (last - first - 1) * (found[first] + found[last]) / 2
    return total


def _divide(first: int, last: int) -> Sequence[int]:
    """Blocks between two that part those between them evenly; none where there are none.

    >>> _divide(0, 100), _divide(4, 6), _divide(4, 5)
    ([25, 50, 75], [5], [])
    """
    return sorted({first + (last - first) * part // _PARTS for part in range(1, _PARTS)} - {first, last})


_MOST_WARPS = 2048  # That run together: their registers are a few hundred megabytes at most
_STACK_BYTES = 4096  # Of a lane, where the image does not say how much it needs (recursion)
_MOST_LOCAL_BYTES = 1 << 28
_RESERVED_SHARED_BYTES = 1024
_LOOK_SHARE = 0.25  # Part of the time for a walk that is spent on finding where blocks begin to execute something else


class WalkSettings(Struct, frozen=True, kw_only=True):
    """Blocks to walk, and limits of the walk."""

    blocks: tuple[int, ...] = ()  # linear indexes of the blocks to walk; empty for some that are spread over the grid
    most_blocks: int = 32  # of those that are spread
    # execute also instructions that decide nothing, so that memory is as the kernel leaves it
    executes_all: bool = False
    # in a grid of one axis, walk further blocks, to find out where blocks begin to execute something else
    counts_grid: bool = False
    keeps_walks: bool = True  # return the walks; else executions are only counted, in less memory
    executions: int = 12_000_000  # of instructions by warps that are kept; more end the walk
    seconds: float = 60.0  # of processor time; more end the walk
    memory_bytes: int = 4 << 30  # of the launch's arrays


def walk_kernel(
    kernel: Kernel,
    module: PtxModule,
    launch: LaunchDescription,
    settings: WalkSettings = WalkSettings(),  # noqa: B008
) -> KernelWalk:
    """Walk some blocks of a launch.

    Returns:
        The walks; what could not be walked is in ``not_simulated``.

    Raises:
        InputError: the arguments do not fit the kernel, or need too much memory.
    """
    walker = prepare_walk(kernel, module, launch, settings)
    if walker is None:
        return _refuse(kernel, launch, "the kernel's machine code or its PTX is missing")
    if prod(find_cluster(module.functions[kernel.mangled_name], launch) or ()) > 1:
        return _refuse(kernel, launch, "its blocks form clusters, which are not simulated")
    blocks = settings.blocks or choose_blocks(launch.grid, settings.most_blocks)
    if blocks and max(blocks) >= prod(launch.grid):
        raise InputError(f"block {max(blocks)} is not in the grid of {prod(launch.grid)}")
    return walker.walk(sorted(set(blocks)))


def prepare_walk(
    kernel: Kernel, module: PtxModule, launch: LaunchDescription, settings: WalkSettings
) -> "KernelWalker | None":
    """Lay out the memory of a launch; None where there is no machine code, or no PTX of it.

    Raises:
        InputError: as :func:`walk_kernel`.
    """
    function = module.functions.get(kernel.mangled_name)
    if function is None or kernel.cubin is None or not kernel.rows.has_code:
        return None
    inputs = build_inputs(module, function, launch, memory_limit_bytes=settings.memory_bytes)
    local_bytes = _find_local_bytes(kernel)
    memory = lay_out_launch(module, kernel.mangled_name, launch, inputs, kernel.cubin, local_bytes=local_bytes)
    return KernelWalker(kernel, launch, memory, settings, local_bytes)


def find_static_shared_bytes(kernel: Kernel) -> int:
    """Shared memory of a block as the code declares it, what the system keeps for itself included."""
    if kernel.cubin is None:
        return 0
    function = kernel.cubin.functions.get(kernel.mangled_name)
    static = 0 if function is None else function.shared_static_bytes
    return max(static, _RESERVED_SHARED_BYTES) if kernel.cubin.sm >= 90 else static


def find_shared_bytes(kernel: Kernel, launch: LaunchDescription) -> int:
    """Shared memory of a block, static and dynamic."""
    return find_static_shared_bytes(kernel) + launch.shared_bytes


def find_registers(kernel: Kernel) -> int:
    """Registers of a thread: the most that the kernel or what it calls needs."""
    if kernel.cubin is None:
        return 0
    listed = [
        kernel.cubin.functions[one.name].registers for one in kernel.functions if one.name in kernel.cubin.functions
    ]
    return max((one for one in listed if one is not None), default=0)


def _find_local_bytes(kernel: Kernel) -> int:
    """Local memory of a lane."""
    assert kernel.cubin is not None
    stack_bytes = kernel.cubin.functions[kernel.mangled_name].stack_bytes
    return _STACK_BYTES if stack_bytes is None else max(-(-stack_bytes // 16) * 16, 16)


def _refuse(kernel: Kernel, launch: LaunchDescription, reason: str) -> KernelWalk:
    nothing = np.zeros(len(kernel.rows))
    return KernelWalk(
        kernel=kernel.mangled_name,
        grid=launch.grid,
        block_threads=launch.block,
        shared_bytes=find_shared_bytes(kernel, launch),
        registers=find_registers(kernel),
        walks=(),
        sampled_blocks=(),
        executed=nothing,
        thread_executed=nothing,
        extents=np.zeros((0, 2), np.int64),
        not_simulated=(NotSimulated(reason=reason),),
    )


class _Run(ColumnRecord, frozen=True, kw_only=True):
    """Blocks that ran together."""

    recorder: Recorder  # of the executions of their warps
    numbers: npt.NDArray[np.int64]  # int64[w], linear index of each warp's block
    whole: tuple[int, ...]  # linear indexes of those that ran to their end
    problems: tuple[NotSimulated, ...]  # of the others


def _list_outside(walks: Sequence[WarpWalk], extents: npt.NDArray[np.int64]) -> tuple[int, ...]:
    """Rows that access global memory outside of some extents, by the sectors they touch."""
    first = extents[:, 0] // SECTOR_BYTES
    last = np.maximum.accumulate(extents[:, 1] - 1) // SECTOR_BYTES
    found: set[int] = set()
    for one in walks:
        place = np.searchsorted(first, one.sectors, side="right") - 1
        ends = np.append(last, -1)[place]  # of what lies before the first: -1
        is_outside = (one.sectors > ends) & (one.sectors < LOCAL_SECTOR)
        if is_outside.any():
            rows = np.repeat(one.instruction, np.diff(one.first_sector))
            found.update(rows[is_outside].tolist())
    return tuple(sorted(found))


class KernelWalker:
    """Walks blocks of one launch.

    Attributes:
        memory: of the launch, with the stores of the blocks that were walked, as far as they were executed.
    """

    def __init__(
        self, kernel: Kernel, launch: LaunchDescription, memory: LaunchMemory, settings: WalkSettings, local_bytes: int
    ) -> None:
        self._kernel, self._launch, self._settings = kernel, launch, settings
        self.memory = memory
        self._local_bytes = local_bytes
        self._warps_per_block = -(-prod(launch.block) // WARP_LANES)
        self._demand = demand_everything(kernel.rows) if settings.executes_all else find_demand(kernel.rows)
        self._walks: list[WarpWalk] = []
        self._problems: list[NotSimulated] = []
        self._runs: list[_Run] = []

    def walk(self, blocks: Sequence[int]) -> KernelWalk:
        """Walk blocks, as many at a time as fit."""
        local = max(self._local_bytes * WARP_LANES, 1)
        most_warps = min(_MOST_WARPS, max(_MOST_LOCAL_BYTES // local, 1))
        together = max(most_warps // self._warps_per_block, 1)
        left, end_s = self._settings.executions, work_time() + self._settings.seconds
        for start in range(0, len(blocks), together):
            limits = WalkLimits(executions=left, seconds=end_s - work_time())
            if limits.seconds <= 0:
                reason = f"it took more than {format_seconds(self._settings.seconds)} of processor time"
                self._problems.append(NotSimulated(reason=reason))
                break
            left = max(left - self._walk_some(blocks[start : start + together], limits), 0)
        executed, thread_executed = self._extrapolate()
        return KernelWalk(
            kernel=self._kernel.mangled_name,
            grid=self._launch.grid,
            block_threads=self._launch.block,
            shared_bytes=find_shared_bytes(self._kernel, self._launch),
            registers=find_registers(self._kernel),
            walks=tuple(self._walks),
            sampled_blocks=self._list_walked(),
            executed=executed,
            thread_executed=thread_executed,
            not_simulated=tuple({(one.reason, one.row): one for one in reversed(self._problems)}.values())[::-1],
            extents=self.memory.extents,
            outside=_list_outside(self._walks, self.memory.extents),
        )

    def _walk_some(self, blocks: Sequence[int], limits: WalkLimits) -> int:
        """Walk blocks together; returns the number of executions they took."""
        keeps_walks = self._settings.keeps_walks
        run = self._run(blocks, limits, keeps_walks)
        self._problems += run.problems
        self._runs.append(run)
        if keeps_walks:
            chosen = [warp for warp, block in enumerate(run.numbers.tolist()) if block in run.whole]
            places = [place_block(self._launch.grid, int(run.numbers[one])) for one in chosen]
            self._walks += run.recorder.take_walks(chosen, places, [one % self._warps_per_block for one in chosen])
        return run.recorder.executions

    def _run(self, blocks: Sequence[int], limits: WalkLimits, keeps_walks: bool) -> _Run:
        per_block = self._warps_per_block
        own = np.repeat(np.arange(len(blocks), dtype=np.int64), per_block)
        numbers = np.array(blocks, dtype=np.int64)[own]
        warps = np.tile(np.arange(per_block, dtype=np.int64), len(blocks))
        state = WarpState(len(own), find_registers(self._kernel))
        threads = warps[:, None] * WARP_LANES + np.arange(WARP_LANES)
        state.alive[:] = threads < prod(self._launch.block)
        recorder = Recorder(len(own), keeps_walks=keeps_walks)
        shared = find_shared_bytes(self._kernel, self._launch)
        specials = SpecialRegisters(self._launch.grid, self._launch.block, numbers, warps, shared)
        code = BoundCode(
            self._kernel.rows,
            self.memory.banks,
            specials,
            self._demand,
            immediates=self._find_immediates(),
            registers=len(state.registers),
        )
        spaces = MemorySpaces(self.memory.data, own, shared, self._local_bytes, self.memory.banks)
        walk = Walk(
            code, state, spaces, specials, recorder=recorder, blocks=own, limits=limits, banks=self.memory.banks
        )
        walk.run()
        return _Run(
            recorder=recorder,
            numbers=numbers,
            whole=tuple(block for place, block in enumerate(blocks) if place not in walk.problems),
            problems=describe_problems(walk, blocks, warps.tolist()),
        )

    def _find_immediates(self) -> dict[int, int]:
        """Row → the immediate that is written there when the code is loaded."""
        rows = self._kernel.rows
        first = {one.name: int(at) for one, at in zip(rows.functions, rows.first_rows.tolist(), strict=False)}
        return {
            first[name] + offset // INSTRUCTION_BYTES: word
            for (name, offset), word in self.memory.immediates.items()
            if name in first
        }

    def _list_walked(self) -> tuple[int, ...]:
        return tuple(block for run in self._runs for block in run.whole)

    def _extrapolate(self) -> Counts:
        """Executions over the grid, by the blocks that ran to their end."""
        grid, walked = self._launch.grid, self._list_walked()
        total: Counts = np.zeros((2, len(self._kernel.rows)))
        if not walked:
            return total
        if self._settings.counts_grid and max(grid) == prod(grid):
            end_s = work_time() + _LOOK_SHARE * self._settings.seconds
            known = {block: counts for run in self._runs for block, counts in self._count_by_block(run).items()}
            found = count_grid(prod(grid), known, lambda blocks: self._look(blocks, end_s))
            if found is not None:
                return found
        weight_of = dict(zip(walked, weigh_blocks(grid, walked), strict=True))
        for run in self._runs:
            weights = np.array([weight_of.get(one, 0.0) for one in run.numbers.tolist()])
            total += run.recorder.weigh(len(self._kernel.rows), weights)
        return total

    def _look(self, blocks: Sequence[int], end_s: float) -> Mapping[int, Counts]:
        """Counts of further blocks."""
        seconds = end_s - work_time()
        if seconds <= 0:
            return {}
        limits = WalkLimits(executions=self._settings.executions, seconds=seconds)
        return self._count_by_block(self._run(blocks, limits, keeps_walks=False))

    def _count_by_block(self, run: _Run) -> dict[int, Counts]:
        """Counts of each block that ran to its end."""
        rows = len(self._kernel.rows)
        return {
            block: np.array(run.recorder.weigh(rows, (run.numbers == block).astype(np.float64))) for block in run.whole
        }


def choose_blocks(grid: BlockPlace, most: int) -> tuple[int, ...]:
    """Choose blocks spread over a grid: some each of corners, edges and its inside, so that what ends early at an edge is seen.

    Args:
        most: how many at most, and at least one.

    >>> choose_blocks((3, 1, 1), 8)
    (0, 1, 2)
    >>> choose_blocks((100, 1, 1), 4)
    (0, 49, 50, 99)
    """
    count = prod(grid)
    if count <= most:
        return tuple(range(count))
    kinds = [_list_kinds(size) for size in grid]
    corners = [x + grid[0] * (y + grid[1] * z) for x, y, z in product(*([one[0] for one in axis] for axis in kinds))]
    chosen = set(sorted(corners)[:most])
    left = most - len(chosen)
    # The rest is spread evenly over all, past those that are chosen already.
    steps = max(left + 1, 1)
    for place in range(1, steps):
        chosen.add(place * (count - 1) // steps)
    return tuple(sorted(chosen))


def _list_kinds(size: int) -> list[tuple[int, int]]:
    """(a block, how many it stands for) along one axis: its first, its last, and one in between."""
    if size <= 2:
        return [(place, 1) for place in range(size)]
    return [(0, 1), (size - 1, 1), (size // 2, size - 2)]


def weigh_blocks(grid: BlockPlace, blocks: Sequence[int]) -> list[float]:
    """Number of blocks of the grid that each block stands for: those at the same sides of the grid, or, where a side has none, all alike.

    >>> weigh_blocks((100, 1, 1), (0, 33, 66, 99))
    [1.0, 49.0, 49.0, 1.0]
    >>> weigh_blocks((100, 1, 1), (5, 6))
    [50.0, 50.0]
    """
    places = [_find_sides(place_block(grid, block), grid) for block in blocks]
    seen = Counter(places)
    sizes = {
        place: prod(count for _, count in kinds)
        for place, kinds in (
            (_find_sides([one for one, _ in kinds], grid), kinds) for kinds in product(*map(_list_kinds, grid))
        )
    }
    if set(seen) != set(sizes):
        return [prod(grid) / len(blocks)] * len(blocks)
    return [sizes[place] / seen[place] for place in places]


def _find_sides(place: Sequence[int], grid: BlockPlace) -> tuple[int, ...]:
    """Side of the grid that a block is at along each axis: 0 for the first block, 2 for the last, 1 for those in between."""
    return tuple(0 if at == 0 else 2 if at == size - 1 else 1 for at, size in zip(place, grid, strict=True))
