"""From a kernel's PTX to what its requests cost and where its warps divide: :func:`find_symbolic_accesses`."""

from collections.abc import Iterator, Sequence

import numpy as np

from gpa_lsp.control_flow.dominators import find_immediate_dominators
from gpa_lsp.emulator.static_instructions import describe_instruction
from gpa_lsp.emulator.trace import AccessKind
from gpa_lsp.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.symbolic_accesses.block_shape import MOST_THREADS, Shape, ThreadIndexes, count_threads
from gpa_lsp.symbolic_accesses.forms import WARP_LANES, Form, Predicate, SymbolTable
from gpa_lsp.symbolic_accesses.model import DividingBranch, Division, SymbolicAccess, SymbolicAccesses
from gpa_lsp.symbolic_accesses.regions import Regions
from gpa_lsp.symbolic_accesses.requests import Width, find_request
from gpa_lsp.symbolic_accesses.solve import LoopSolver
from gpa_lsp.symbolic_accesses.walk import Seen, Walk

MOST_INSTRUCTIONS = 40_000
MOST_LIVE = 3_000_000
"""Registers alive where blocks begin, over all blocks, and instructions, beyond which a kernel is not looked at."""
_MOST_REACHED = 4_096
# Rounds in which loops are found that threads of a warp leave apart; all are taken to be such when there are more.
_MOST_ROUNDS = 4


def find_symbolic_accesses(
    module: PtxModule, kernel: str, *, shape: Shape | None = None, sizes: Sequence[int] | None = None
) -> SymbolicAccesses | None:
    """What a kernel's requests cost, as far as its own code tells; called functions are not followed.

    Args:
        module: PTX.
        kernel: mangled name.
        shape: of a block; None when unknown.
        sizes: of its basic blocks in the code that the PTX was made of; None where it was made of none.

    Returns:
        None for a kernel that the module does not have, and for one too large to be followed.
    """
    function = module.functions.get(kernel)
    if function is None or not 0 < len(function.instructions) <= MOST_INSTRUCTIONS:
        return None
    if shape is None and function.required_threads is not None:
        shape = function.required_threads
    if shape is not None and not 0 < int(np.prod(shape)) <= MOST_THREADS:
        shape = None
    regions = Regions(function, sizes)
    if sum(map(len, regions.live_in)) > MOST_LIVE:
        return None
    table, indexes, seen = _follow(function, regions, shape)
    return SymbolicAccesses(
        shape=shape,
        looks_beyond_x=indexes.looks_beyond_x,
        accesses=tuple(_list_accesses(module, function, table, seen)),
        branches=tuple(_list_branches(function, regions, table, seen)),
        table=table,
    )


def _follow(
    function: PtxFunction, regions: Regions, shape: Shape | None
) -> tuple[SymbolTable, ThreadIndexes, list[Seen]]:
    """Walk until no more loops are found that threads of a warp leave at different times: what these change differs in loops around them."""
    parting: frozenset[int] = frozenset()
    for number in range(_MOST_ROUNDS + 1):
        table = SymbolTable(count_threads(shape))
        indexes = ThreadIndexes(table, shape)
        first = Walk(function, regions, table, indexes, parting=parting)
        solver = LoopSolver(table, regions, first.go())
        added = solver.solve()
        found = parting | solver.find_parting(first.branches)
        if found == parting:
            break
        parting = found if number < _MOST_ROUNDS - 1 else frozenset(range(len(regions.loops)))
    second = Walk(function, regions, table, indexes, added=added, parting=parting)
    second.go()
    return table, indexes, second.seen


def _list_accesses(
    module: PtxModule, function: PtxFunction, table: SymbolTable, seen: list[Seen]
) -> Iterator[SymbolicAccess]:
    for one in sorted((one for one in seen if one.address is not None), key=lambda one: one.index):
        instruction = function.instructions[one.index]
        static = describe_instruction(module, function, instruction, index=one.index)
        address = one.address
        if static.kind is None or address is None or not static.bytes_per_lane:
            continue
        kind = AccessKind.STORE if one.is_copy_target else static.kind
        space = Space.SHARED if one.is_copy_target else static.space
        if space == Space.GENERIC and _points_to_parameter(table, address):
            space = Space.GLOBAL
        if space not in (Space.GLOBAL, Space.SHARED):
            continue
        width = Width(space=space, kind=kind, bytes_each=static.bytes_per_lane)
        request = find_request(table, address, one.active, width)
        if request is None:
            continue
        yield SymbolicAccess(
            instruction=instruction,
            kind=kind,
            space=space,
            bytes_each=static.bytes_per_lane,
            pattern=request.pattern,
            cost=request.cost,
            most=request.most,
            ideal=request.ideal,
            stride=request.stride,
            unknown=request.unknown,
            least=request.least,
            loads=None if request.loads is None else function.instructions[request.loads],
            is_certain=request.is_certain,
            address=address,
            active=one.active,
        )


def _points_to_parameter(table: SymbolTable, address: Form) -> bool:
    """A generic address that is a parameter and something added to it: what kernels are passed is global memory."""
    alone = (table.symbols[key[0]] for key, factor in address.terms.items() if len(key) == 1 and factor == 1)
    return any(one.parameter is not None for one in alone)


def _list_branches(
    function: PtxFunction, regions: Regions, table: SymbolTable, seen: list[Seen]
) -> Iterator[DividingBranch]:
    reverse: list[list[int]] | None = None
    for one in seen:
        instruction = function.instructions[one.index]
        condition = one.condition
        if condition is None or instruction.opcode != "bra" or instruction.target is None:
            continue
        division = _find_division(table, condition, one)
        if division is None:
            continue
        if reverse is None:
            reverse = _find_post_dominators(regions)
        join = reverse[0][one.block]
        sides = _find_sides(regions, one.block, join)
        if sides is None:
            continue
        first, second = sides
        lanes = None
        if condition.lanes is not None:
            lanes = float(condition.lanes.reshape(-1, WARP_LANES).sum(axis=1).mean())
        yield DividingBranch(
            instruction=instruction,
            division=division,
            lanes=lanes,
            sides=(_measure_side(regions, first), _measure_side(regions, second)),
            has_loops=(_has_loop(regions, first, one.block), _has_loop(regions, second, one.block)),
            is_in_loop=regions.innermost[one.block] >= 0,
        )


def _find_division(table: SymbolTable, condition: Predicate, one: Seen) -> Division | None:
    """How a branch on the thread's index divides warps; None where it does not, or divides some warps only, as bounds do."""
    if condition.lanes is not None:
        rows = one.active.reshape(-1, WARP_LANES)
        taken = condition.lanes.reshape(-1, WARP_LANES) & rows
        is_divided = np.any(taken, axis=1) & np.any(rows & ~taken, axis=1)
        is_there = np.any(rows, axis=1)
        return Division.EVERY_WARP if is_there.any() and bool((is_divided >= is_there).all()) else None
    for atom in condition.atoms:
        is_remainder = atom.difference.is_approximate and atom.comparison in ("eq", "ne")
        if is_remainder and not table.has_varying(atom.difference) and not table.is_uniform(atom.difference):
            return Division.REMAINDER
    return None


def _find_post_dominators(regions: Regions) -> list[list[int]]:
    count = len(regions.successors)
    predecessors: list[list[int]] = [[] for _ in range(count)]
    ends = []
    for block, following in enumerate(regions.successors):
        for other in following:
            predecessors[other].append(block)
        if not following:
            ends.append(block)
    return [find_immediate_dominators(predecessors, ends)]


def _find_sides(regions: Regions, block: int, join: int) -> tuple[set[int], set[int]] | None:
    """Blocks on both sides of a branch until they meet; None where that is too much to look at."""
    successors = regions.successors[block]
    if len(successors) != 2:
        return None
    sides: list[set[int]] = []
    for start in successors:
        reached: set[int] = set()
        waiting = [start]
        while waiting:
            one = waiting.pop()
            if one in (join, block) or one in reached:
                continue
            reached.add(one)
            if len(reached) > _MOST_REACHED:
                return None
            waiting.extend(regions.successors[one])
        sides.append(reached)
    return sides[0], sides[1]


def _measure_side(regions: Regions, side: set[int]) -> int:
    return sum(regions.sizes[one] for one in side)


def _has_loop(regions: Regions, side: set[int], block: int) -> bool:
    """Whether a side holds a loop that is not around the branch, too."""
    loops = {regions.innermost[one] for one in side}
    return any(loop >= 0 and block not in regions.members[loop] for loop in loops)
