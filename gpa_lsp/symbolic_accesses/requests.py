"""From the address of each thread to what a request costs: :func:`find_request`."""

from collections.abc import Mapping
from functools import lru_cache
from math import gcd

import numpy as np

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.trace import AccessKind
from gpa_lsp.ptx.model import Space
from gpa_lsp.symbolic_accesses.forms import WARP_LANES, Form, Integers, Marks, Monomial, Symbol, SymbolTable
from gpa_lsp.symbolic_accesses.model import Factor, StrideTerm, WarpPattern
from gpa_lsp.symbolic_accesses.wavefronts import count_wavefronts

SECTOR_BYTES = 32
_TRIED = (*range(1, 65), 100, 127, 128, 1000, 1023, 1024, 4095, 4096, 8191)
"""Values of what is not known; those behind 64 stand for all larger ones."""
_REPEATED_BYTES = 128
"""Sectors and banks repeat after so many."""
_SEPARATE = 1 << 20
"""What several unknowns are taken to be multiples of, so that their terms never meet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a request costs; fields as in :class:`~gpa_lsp.symbolic_accesses.model.SymbolicAccess`, but ``loads`` is an index."""

    pattern: WarpPattern
    ideal: float
    cost: float | None = None
    most: float | None = None
    stride: tuple[StrideTerm, ...] = ()
    unknown: tuple[Factor, ...] = ()
    least: int | None = None
    loads: int | None = None
    is_certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """What decides what lanes' addresses cost.

    Attributes:
        space: global or shared.
        kind: of the access.
        bytes_each: of one thread.
    """

    space: Space
    kind: AccessKind
    bytes_each: int

    def count(self, addresses: Integers, active: Marks) -> float:
        """Sectors or passes of a request, mean over warps with an active thread.

        Args:
            addresses: int64[warps, 32].
            active: bool[warps, 32].
        """
        return self.count_each(addresses[None], active)[0]

    def count_each(self, addresses: Integers, active: Marks) -> list[float]:
        """The same for several sets of addresses at once, int64[n, warps, 32]."""
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
        """The same for threads side by side."""
        is_repeated = bool((active == active[0]).all())
        return _count_ideal(self, (active[:1] if is_repeated else active).tobytes())


@lru_cache(maxsize=1 << 10)
def _count_ideal(width: Width, marks: bytes) -> float:
    """Most accesses are made by all threads of a block."""
    active = np.frombuffer(marks, dtype=np.bool_).reshape(-1, WARP_LANES)
    packed = np.sort(~active, axis=1) == 0
    lanes = np.broadcast_to(np.arange(WARP_LANES, dtype=np.int64) * width.bytes_each, active.shape)
    return width.count(lanes, packed)


@lru_cache(maxsize=1 << 8)
def _count_tried(width: Width, marks: bytes, constant: bytes, factor: bytes) -> tuple[float, ...]:
    """What ``constant + factor · value`` costs for each value that is tried; a few ways to lie are those of most accesses."""
    active = np.frombuffer(marks, dtype=np.bool_).reshape(-1, WARP_LANES)
    start, step = (np.frombuffer(one, dtype=np.int64).reshape(-1, WARP_LANES) for one in (constant, factor))
    return tuple(width.count_each(start + step * np.array(_TRIED, dtype=np.int64)[:, None, None], active))


def count_sectors(addresses: Integers, active: Marks, bytes_each: int) -> Integers:
    """int64[n], the distinct sectors of 32 bytes that the active lanes of each request touch.

    >>> lanes = np.arange(32, dtype=np.int64)[None]
    >>> every = np.ones((1, 32), dtype=bool)
    >>> [int(count_sectors(lanes * step, every, 4)[0]) for step in (0, 4, 8, 12, 32, 400)]
    [1, 4, 8, 12, 32, 32]
    >>> int(count_sectors(lanes * 4 + 4, every, 4)[0])
    5
    """
    parts = -(-bytes_each // SECTOR_BYTES) + 1
    steps = np.minimum(np.arange(parts, dtype=np.int64) * SECTOR_BYTES, bytes_each - 1)
    touched = (addresses[:, :, None] + steps) // SECTOR_BYTES
    some = np.take_along_axis(touched[:, :, 0], active.argmax(axis=1)[:, None], axis=1)
    touched = np.where(active[:, :, None], touched, some[:, :, None]).reshape(len(addresses), -1)
    touched.sort(axis=1)
    counts: Integers = 1 + np.count_nonzero(touched[:, 1:] != touched[:, :-1], axis=1)
    return counts


def find_request(table: SymbolTable, address: Form, active: Marks, width: Width) -> Request | None:
    """What the requests of one access cost; None where no thread makes it.

    Args:
        table: of the symbols.
        address: of the first byte.
        active: bool[threads], those that make it.
        width: what is accessed.
    """
    marks = active.reshape(-1, WARP_LANES)
    rows = np.flatnonzero(marks.any(axis=1))
    if not len(rows):
        return None
    marks = marks[rows]
    ideal = width.count_ideal(marks)
    if table.has_varying(address):
        data = table.find_data((address,))
        pattern = WarpPattern.UNKNOWN if data is None else WarpPattern.SCATTERED
        origin = None if data is None else data.origin
        return Request(pattern=pattern, ideal=ideal, loads=origin, is_certain=False)
    groups = {key: lanes.reshape(-1, WARP_LANES)[rows] for key, lanes in table.group(address).items()}
    return _Reading(table, groups, marks, width, ideal, is_certain=not address.is_approximate).read()


class _Reading:
    """One access, its coefficients apart.

    Args:
        table: of the symbols.
        groups: monomial of uniform symbols → int64[warps, 32].
        active: bool[warps, 32].
        width: what is accessed.
        ideal: cost of threads side by side.
        is_certain: the address is exact.
    """

    def __init__(
        self,
        table: SymbolTable,
        groups: Mapping[Monomial, Integers],
        active: Marks,
        width: Width,
        ideal: float,
        *,
        is_certain: bool,
    ) -> None:
        self._table = table
        self._active = active
        self._width = width
        self._ideal = ideal
        self._is_certain = is_certain
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
        """Warps whose threads lie in the same way cost the same: one says it for all."""
        arrays = (self._active, first % _REPEATED_BYTES, *self._apart.values())
        if len(self._active) == 1 or not all((one == one[0]).all() for one in arrays):
            return
        self._active, self._constant = self._active[:1], self._constant[:1]
        self._apart = {key: lanes[:1] for key, lanes in self._apart.items()}

    def _find_pointer(self, groups: Mapping[Monomial, Integers]) -> Monomial | None:
        """The array's own address, which is aligned as allocations are."""
        candidates = [
            key for key, lanes in groups.items() if len(key) == 1 and (lanes[self._active] == 1).all()
        ]  # fmt: skip
        named = [key for key in candidates if self._symbol(key[0]).name]
        return next(iter(named or candidates), None)

    def _symbol(self, number: int) -> Symbol:
        return self._table.symbols[number]

    def read(self) -> Request:
        """What it costs."""
        unknown = [key for key in self._spread if key]
        if not self._spread:
            cost = self._width.count(np.zeros(self._active.shape, dtype=np.int64), self._active)
            ideal = min(self._ideal, cost)
            return Request(pattern=WarpPattern.UNIFORM, cost=cost, most=cost, ideal=ideal, is_certain=self._is_certain)
        if not unknown:
            return self._read_known()
        return self._read_symbolic(unknown)

    def _read_known(self) -> Request:
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
        return Request(
            pattern=pattern,
            cost=cost,
            most=most,
            ideal=ideal,
            stride=self._find_stride(),
            is_certain=self._is_certain,
        )

    def _count(self, addresses: Integers) -> float:
        return self._width.count(addresses, self._active)

    def _read_symbolic(self, unknown: list[Monomial]) -> Request:
        """With one unknown all values are tried; several are taken to be large and unrelated."""
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
        return Request(
            pattern=pattern,
            cost=cost,
            most=most,
            ideal=self._ideal,
            stride=self._find_stride(),
            unknown=self._list_factors(unknown[0]) if len(unknown) == 1 else (),
            least=least if least > 1 else None,
            is_certain=self._is_certain,
        )

    def _find_stride(self) -> tuple[StrideTerm, ...]:
        """Of neighbouring threads; nothing where it is not the same for all."""
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
