"""Costs of a kernel's memory requests and branches that divide its warps, from its PTX: :func:`find_symbolic_accesses`; pointers of its accesses:
:func:`find_pointers`, :func:`find_pointer_loads`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from math import gcd

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import (
    Address,
    PtxFunction,
    PtxInstruction,
    PtxModule,
    Register,
    Space,
    list_reads,
    list_writes,
)
from gpa_lsp.code.ptx.static_instructions import AccessKind, describe_instruction
from gpa_lsp.code.symbolic_accesses.forms import Form, Integers, Marks, Monomial, Predicate, Symbol, SymbolTable
from gpa_lsp.code.symbolic_accesses.model import (
    MOST_THREADS,
    DividingBranch,
    Division,
    Factor,
    Shape,
    StrideTerm,
    SymbolicAccess,
    SymbolicAccesses,
    ThreadIndexes,
    WarpPattern,
    count_threads,
)
from gpa_lsp.code.symbolic_accesses.regions import Regions
from gpa_lsp.code.symbolic_accesses.requests import SECTOR_BYTES, WARP_LANES, count_sectors, count_wavefronts
from gpa_lsp.code.symbolic_accesses.walk import LoopSolver, Seen, Walk
from gpa_lsp.foundation.records import remembered

# Values tried for an unknown; those behind 64 stand for all larger ones
_TRIED = (*range(1, 65), 100, 127, 128, 1000, 1023, 1024, 4095, 4096, 8191)
_REPEATED_BYTES = 128  # Period of sectors and banks
_SEPARATE = 1 << 20  # Several unknowns are taken to be different multiples of it, so that their terms never meet


# Makes the record of one access from the cost of its requests; all else is bound
_Finish = Callable[..., SymbolicAccess]


class Width(Struct, frozen=True, kw_only=True):
    """Properties of an access that, with the lanes' addresses, decide the cost of a request."""

    space: Space  # global or shared
    kind: AccessKind  # of the access
    bytes_each: int  # of one thread

    def count(self, addresses: Integers, active: Marks) -> float:
        """Sectors or passes of a request, mean over warps with an active thread.

        Args:
            addresses: int64[warps, 32].
            active: bool[warps, 32].
        """
        return self.count_each(addresses[None], active)[0]

    def count_each(self, addresses: Integers, active: Marks) -> list[float]:
        """The counts of :meth:`count` for several sets of addresses at once, int64[n, warps, 32]."""
        marks = np.broadcast_to(active, addresses.shape).reshape(-1, WARP_LANES)
        if self.space == Space.SHARED:
            lowest = addresses[:, active].min(axis=1)
            shifted = addresses - (lowest - lowest % 128)[:, None, None]
            rows = np.where(active, shifted, 0).astype(np.uint64).reshape(-1, WARP_LANES)
            counts = count_wavefronts(rows, marks, self.bytes_each, np.full(len(rows), self.kind, dtype=np.int8))[0]
        else:
            counts = count_sectors(addresses.reshape(-1, WARP_LANES), marks, self.bytes_each)
        means: list[float] = counts.reshape(len(addresses), -1).mean(axis=1).tolist()
        return means

    def count_ideal(self, active: Marks) -> float:
        """The count of :meth:`count` for active threads at consecutive addresses."""
        is_repeated = bool((active == active[0]).all())
        return _count_ideal(self, (active[:1] if is_repeated else active).tobytes())


@lru_cache(maxsize=1 << 10)
def _count_ideal(width: Width, marks: bytes) -> float:
    """The ideal count, cached: most accesses are made by all threads of a block."""
    active = np.frombuffer(marks, dtype=np.bool_).reshape(-1, WARP_LANES)
    packed = np.sort(~active, axis=1) == 0
    lanes = np.broadcast_to(np.arange(WARP_LANES, dtype=np.int64) * width.bytes_each, active.shape)
    return width.count(lanes, packed)


@lru_cache(maxsize=1 << 8)
def _count_tried(width: Width, marks: bytes, constant: bytes, factor: bytes) -> tuple[float, ...]:
    """Cost of addresses ``constant + factor · value`` for each value tried; cached, because most accesses share a few layouts."""
    active = np.frombuffer(marks, dtype=np.bool_).reshape(-1, WARP_LANES)
    start, step = (np.frombuffer(one, dtype=np.int64).reshape(-1, WARP_LANES) for one in (constant, factor))
    return tuple(width.count_each(start + step * np.array(_TRIED, dtype=np.int64)[:, None, None], active))


def _find_access(
    table: SymbolTable,
    address: Form,
    active: Marks,
    width: Width,
    *,
    finish: _Finish,
    instructions: Sequence[PtxInstruction],
) -> SymbolicAccess | None:
    """One access with the cost of its requests; None where no thread makes it."""
    marks = active.reshape(-1, WARP_LANES)
    rows = np.flatnonzero(marks.any(axis=1))
    if not len(rows):
        return None
    marks = marks[rows]
    ideal = width.count_ideal(marks)
    if table.has_varying(address):
        data = table.find_data((address,))
        pattern = WarpPattern.UNKNOWN if data is None else WarpPattern.SCATTERED
        loads = None if data is None or data.origin is None else instructions[data.origin]
        return finish(pattern=pattern, cost=None, most=None, ideal=ideal, loads=loads, is_certain=False)
    groups = {key: lanes.reshape(-1, WARP_LANES)[rows] for key, lanes in table.group(address).items()}
    return _Reading(table, groups, marks, width, partial(finish, is_certain=not address.is_approximate)).read()


class _Reading:
    """Finds pattern and cost of one access from the coefficients of its address.

    Args:
        table: of the symbols.
        groups: monomial of uniform symbols → int64[warps, 32].
        active: bool[warps, 32].
        width: what is accessed.
        finish: makes the record.
    """

    def __init__(
        self,
        table: SymbolTable,
        groups: Mapping[Monomial, Integers],
        active: Marks,
        width: Width,
        finish: _Finish,
    ) -> None:
        self._table = table
        self._active = active
        self._width = width
        self._ideal = width.count_ideal(active)  # cost of threads side by side
        self._finish = finish
        first = active.argmax(axis=1)[:, None]
        nothing = np.zeros(active.shape, dtype=np.int64)
        self._constant = groups.get((), nothing)
        self._apart = {
            key: np.where(active, lanes - np.take_along_axis(lanes, first, axis=1), 0) for key, lanes in groups.items()
        }
        self._spread = [key for key, lanes in self._apart.items() if lanes.any()]
        pointer = self._find_pointer(groups)
        others = [lanes for key, lanes in groups.items() if key not in ((), pointer)]
        self._grain = gcd(SECTOR_BYTES, *(int(np.gcd.reduce(lanes[active])) for lanes in others))
        self._drop_repeated(np.take_along_axis(self._constant, first, axis=1))

    def _drop_repeated(self, first: Integers) -> None:
        """Keep one warp where all have the same layout, and so the same cost."""
        arrays = (self._active, first % _REPEATED_BYTES, *self._apart.values())
        if len(self._active) == 1 or not all((one == one[0]).all() for one in arrays):
            return
        self._active, self._constant = self._active[:1], self._constant[:1]
        self._apart = {key: lanes[:1] for key, lanes in self._apart.items()}

    def _find_pointer(self, groups: Mapping[Monomial, Integers]) -> Monomial | None:
        """The monomial of the array's own address, which is aligned as allocations are."""
        candidates = [
            key for key, lanes in groups.items() if len(key) == 1 and (lanes[self._active] == 1).all()
        ]  # fmt: skip
        named = [key for key in candidates if self._symbol(key[0]).name]
        return next(iter(named or candidates), None)

    def _symbol(self, number: int) -> Symbol:
        return self._table.symbols[number]

    def read(self) -> SymbolicAccess:
        """Make the record of the access."""
        unknown = [key for key in self._spread if key]
        if not self._spread:
            cost = self._width.count(np.zeros(self._active.shape, dtype=np.int64), self._active)
            ideal = min(self._ideal, cost)
            return self._finish(pattern=WarpPattern.UNIFORM, cost=cost, most=cost, ideal=ideal)
        if not unknown:
            return self._read_known()
        return self._read_symbolic(unknown)

    def _read_known(self) -> SymbolicAccess:
        offsets = range(int(self._constant[self._active].min()) % self._grain, SECTOR_BYTES, self._grain)
        whole = self._constant - int(self._constant[self._active].min())
        if self._width.space == Space.SHARED:
            cost = most = self._count(self._constant)
        else:
            placed = whole + np.array(offsets, dtype=np.int64)[:, None, None]
            costs = self._width.count_each(placed, self._active)
            cost, most = min(costs), max(costs)
        if self._grain == SECTOR_BYTES and self._width.space != Space.SHARED:
            cost = most = self._count(self._constant)
        aligned = cost if self._width.space == Space.SHARED else self._count(whole)
        ideal = min(self._ideal, aligned)
        pattern = (
            WarpPattern.CONTIGUOUS
            if cost <= ideal
            else WarpPattern.MISALIGNED
            if aligned <= ideal
            else WarpPattern.STRIDED
        )
        return self._finish(
            pattern=pattern,
            cost=cost,
            most=most,
            ideal=ideal,
            stride=self._find_stride(),
        )

    def _count(self, addresses: Integers) -> float:
        return self._width.count(addresses, self._active)

    def _read_symbolic(self, unknown: list[Monomial]) -> SymbolicAccess:
        """Make the record of an address with unknowns: of one, all values are tried; several are taken to be large and unrelated."""
        constant = self._apart.get((), np.zeros(self._active.shape, dtype=np.int64))
        if len(unknown) > 1:
            addresses = constant.copy()
            for number, key in enumerate(unknown):
                addresses = addresses + self._apart[key] * (_SEPARATE * (2 * number + 3))
            cost = most = self._count(addresses)
            costs = {1: cost}
        else:
            arrays = (self._active, constant, self._apart[unknown[0]])
            costs = dict(zip(_TRIED, _count_tried(self._width, *(one.tobytes() for one in arrays)), strict=True))
            large = [costs[value] for value in _TRIED if value > _TRIED[63]]
            cost, most = min(large), max(costs.values())
            if self._width.space == Space.SHARED:
                cost = min(costs.values())
        least = max((value + 1 for value in costs if value < 64 and costs[value] < cost), default=1)
        pattern = WarpPattern.STRIDED if cost > self._ideal else WarpPattern.CONTIGUOUS
        return self._finish(
            pattern=pattern,
            cost=cost,
            most=most,
            ideal=self._ideal,
            stride=self._find_stride(),
            unknown=self._list_factors(unknown[0]) if len(unknown) == 1 else (),
            least=least if least > 1 else None,
        )

    def _find_stride(self) -> tuple[StrideTerm, ...]:
        """Distance of neighbouring threads; empty where it is not the same for all."""
        found = []
        for key in sorted(self._spread, key=lambda one: (-len(one), one)):
            lanes = self._apart[key]
            both = self._active[:, 1:] & self._active[:, :-1]
            steps = np.unique((lanes[:, 1:] - lanes[:, :-1])[both])
            if len(steps) != 1:
                return ()
            found.append(StrideTerm(bytes=int(steps[0]), factors=self._list_factors(key)))
        return tuple(found)

    def _list_factors(self, key: Monomial) -> tuple[Factor, ...]:
        return tuple(Factor(name=one.name, parameter=one.parameter) for one in map(self._symbol, key))


MOST_INSTRUCTIONS = 40_000
# Registers alive where blocks begin, over all blocks, and instructions, beyond which a kernel is not looked at
MOST_LIVE = 3_000_000
_MOST_REACHED = 4_096
# Rounds in which loops are found that threads of a warp leave apart; all are taken to be such when there are more.
_MOST_ROUNDS = 4


def find_symbolic_accesses(
    module: PtxModule, kernel: str, *, shape: Shape | None = None, sizes: Sequence[int] | None = None
) -> SymbolicAccesses | None:
    """Costs of a kernel's requests, as far as its own code decides them; called functions are not followed.

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
    """Walk until no further loop is found that threads of a warp leave at different times: registers that these change differ in outer loops."""
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
        parting = found if number < _MOST_ROUNDS - 1 else frozenset(range(len(regions.headers)))
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
        finish = partial(
            SymbolicAccess,
            instruction=instruction,
            kind=kind,
            space=space,
            bytes_each=static.bytes_per_lane,
            address=address,
            active=one.active,
        )
        access = _find_access(table, address, one.active, width, finish=finish, instructions=function.instructions)
        if access is not None:
            yield access


def _points_to_parameter(table: SymbolTable, address: Form) -> bool:
    """Whether an address is a parameter plus an offset: pointers passed to kernels are to global memory."""
    alone = (table.symbols[key[0]] for key, factor in address.terms.items() if len(key) == 1 and factor == 1)
    return any(one.parameter is not None for one in alone)


def _list_branches(
    function: PtxFunction, regions: Regions, table: SymbolTable, seen: list[Seen]
) -> Iterator[DividingBranch]:
    for one in seen:
        instruction = function.instructions[one.index]
        condition = one.condition
        if condition is None or instruction.opcode != "bra" or instruction.target is None:
            continue
        division = _find_division(table, condition, one)
        if division is None:
            continue
        join = regions.post_dominators[one.block]
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
            is_in_loop=regions.forest.innermost[one.block] >= 0,
        )


def _find_division(table: SymbolTable, condition: Predicate, one: Seen) -> Division | None:
    """Kind of division by a branch on the thread's index; None where it divides no warps, or only some, as bounds do."""
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


def _find_sides(regions: Regions, block: int, join: int) -> tuple[set[int], set[int]] | None:
    """Blocks on both sides of a branch up to where they meet; None where they are too many."""
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
    """Whether a side holds a loop that does not also contain the branch."""
    loops = {regions.forest.innermost[one] for one in side}
    return any(loop >= 0 and block not in regions.members[loop] for loop in loops)


# Offset in the kernel's parameters of one that may be a pointer, or the name of a variable
Pointer = int | str


@remembered
def find_pointers(module: PtxModule, kernel: str) -> Mapping[int, tuple[Pointer, ...]]:
    """Number of an access in the kernel → the pointers that it may add its index to; accesses without a symbolic address are left out.

    There are several where an index is not scaled either, as in arrays of bytes: the values of the parameters decide which of them is the pointer.
    """
    found = find_symbolic_accesses(module, kernel)
    if found is None:
        return {}
    return {
        one.instruction.index: pointers
        for one in found.accesses
        if one.space is Space.GLOBAL and (pointers := _list_pointers(one.address, found.table))
    }


def _list_pointers(address: Form, table: SymbolTable) -> tuple[Pointer, ...]:
    """Terms that are not scaled; none where one of them is unknown, since it may be the distance to another array."""
    alone = [table.symbols[key[0]] for key, factor in address.terms.items() if len(key) == 1 and abs(factor) == 1]
    return tuple(_name(alone)) if all(map(_is_known, alone)) else ()


def _is_known(symbol: Symbol) -> bool:
    return bool(symbol.name) or symbol.lanes is not None or symbol.is_counter


def _name(symbols: Iterable[Symbol]) -> Iterable[Pointer]:
    return (one.name if one.parameter is None else one.parameter for one in symbols if one.name)


_POINTER_BYTES = 8
# Instructions whose result may be an address near one of their sources
_PASSING = frozenset({"mov", "cvta", "add", "sub", "mad", "selp"})


def find_pointer_loads(function: PtxFunction, number: int) -> dict[int, int | None]:
    """Slots that may hold the pointer to which an access adds its index → number of the instruction that loaded it; None where several write it.

    For pointers that lie in memory, which :func:`find_pointers` does not know.
    """
    writers: dict[int, list[PtxInstruction]] = {}
    for one in function.instructions:
        for slot in list_writes(one):
            writers.setdefault(slot, []).append(one)
    addresses = (one.base for one in function.instructions[number].sources if isinstance(one, Address))
    waiting = [one.slot for one in addresses if isinstance(one, Register)]
    found: dict[int, int | None] = {}
    seen: set[int] = set()
    while waiting:
        slot = waiting.pop()
        if slot in seen:
            continue
        seen.add(slot)
        one, *others = writers.get(slot, [function.instructions[number]])
        if others:
            found[slot] = None
        elif _loads_pointer(one):
            found[slot] = one.index
        elif one.opcode in _PASSING:
            waiting.extend(list_reads(one))
    return found


def list_loaded_pointers(function: PtxFunction) -> frozenset[int]:
    """Slots of what may be pointers, loaded from memory and not from the parameters."""
    loads = (one for one in function.instructions if _loads_pointer(one) and "param" not in one.suffixes)
    return frozenset(slot for one in loads for slot in list_writes(one))


def _loads_pointer(instruction: PtxInstruction) -> bool:
    """Whether an instruction loads what may be a pointer."""
    types = instruction.types
    return instruction.opcode in ("ld", "ldu") and types[-1].bytes == _POINTER_BYTES and not types[-1].is_float
