"""Atomic operations of many lanes in the order of the lanes: :func:`apply_in_order`.

The result is exactly that of one lane after the other, block by block, warp by warp; so sums of floating-point numbers are the same in every
run. Operations whose operands can be combined need no loop; others take as many rounds as lanes go to one address, or as there are addresses
that several lanes go to, whichever is less.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.emulator.engine.values import Value
from gpa_lsp.emulator.operations.atomics import AtomicFunction
from gpa_lsp.emulator.operations.single import canonicalise
from gpa_lsp.ptx.scalar_types import ScalarType

Order = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Groups:
    """Lanes sorted by address, those of one address in their own order.

    Attributes:
        order: int64[k], place in the sorted order → lane.
        starts: int64[g], first place of each address.
        sizes: int64[g].
        addresses: int64[g], what each group goes to.
    """

    order: Order
    starts: Order
    sizes: Order
    addresses: Order

    @property
    def group_of(self) -> Order:
        """int64[k], group of each place."""
        return np.repeat(np.arange(len(self.starts)), self.sizes)

    @property
    def occurrence(self) -> Order:
        """int64[k], how many lanes of the group come before each place."""
        return np.arange(len(self.order)) - np.repeat(self.starts, self.sizes)


def apply_in_order(
    view: Value, index: Order, operands: list[Value], function: AtomicFunction, *, wants_old: bool
) -> Value:
    """Change memory as lanes do one after the other.

    Args:
        view: memory, in the function's natural dtype.
        index: int64[k], element of each lane.
        operands: of each lane, arrays [k] or uniform, in the function's natural dtype.
        function: what they do.
        wants_old: whether anybody looks at the result.

    Returns:
        What each lane found, [k]; None when nobody wants it.
    """
    if len(index) == 0:
        return np.zeros(0, view.dtype)
    groups = _group(index)
    if len(groups.starts) == len(index):
        old = view[index]
        view[index] = function.evaluate(old, *operands)
        return old
    spread = [np.broadcast_to(operand, (len(index),))[groups.order] for operand in operands]
    old = _apply_sorted(view, groups, spread, function, wants_old=wants_old)
    if not wants_old or old is None:
        return None
    out = np.empty_like(old)
    out[groups.order] = old
    return out


def _group(index: Order) -> _Groups:
    bits = max(len(index).bit_length(), 1)
    keys = np.sort((index << bits) | np.arange(len(index)))
    order = keys & ((1 << bits) - 1)
    sorted_index = keys >> bits
    starts = np.flatnonzero(np.concatenate(([True], sorted_index[1:] != sorted_index[:-1])))
    sizes = np.diff(np.append(starts, len(index)))
    return _Groups(order, starts, sizes, sorted_index[starts])


def _apply_sorted(
    view: Value, groups: _Groups, operands: list[Value], function: AtomicFunction, *, wants_old: bool
) -> Value:
    if function.is_associative and isinstance(function.evaluate, np.ufunc):
        if not wants_old:
            combined = function.evaluate.reduceat(operands[0], groups.starts, dtype=view.dtype)
            view[groups.addresses] = function.evaluate(view[groups.addresses], combined)
            return None
        return _scan(view, groups, operands[0], function.evaluate)
    match function.name:
        case "exch":
            return _exchange(view, groups, operands[0])
        case "cas":
            return _compare_and_swap(view, groups, operands[0], operands[1])
        case "inc" | "dec" if (operands[0] == operands[0][0]).all():
            return _count(view, groups, int(operands[0][0]), is_up=function.name == "inc")
    is_plain_sum = function.name == "add" and function.type in (ScalarType.F32, ScalarType.F64)
    shared = groups.sizes > 1
    if is_plain_sum and 3 * int(np.count_nonzero(shared)) < int(groups.sizes.max()):
        return _sum_groups(view, groups, operands[0], function)
    return _apply_rounds(view, groups, operands, function)


def _scan(view: Value, groups: _Groups, operand: Value, combine: "np.ufunc") -> Value:
    """Old values by a segmented scan: each lane finds the memory combined with what lanes before it brought."""
    before = view[groups.addresses]
    starts_of = np.repeat(groups.starts, groups.sizes)
    places = np.arange(len(operand))
    scanned = operand.astype(view.dtype)
    scanned[groups.starts] = combine(before, scanned[groups.starts])
    distance = 1
    while distance < int(groups.sizes.max()):
        reaches = places - distance >= starts_of
        earlier = np.concatenate((scanned[:1].repeat(distance), scanned[:-distance]))
        scanned = np.where(reaches, combine(earlier, scanned), scanned)
        distance *= 2
    old = np.concatenate((scanned[:1], scanned[:-1]))
    old[groups.starts] = before
    view[groups.addresses] = scanned[groups.starts + groups.sizes - 1]
    return old


def _exchange(view: Value, groups: _Groups, operand: Value) -> Value:
    old = np.concatenate((operand[:1], operand[:-1]))
    old[groups.starts] = view[groups.addresses]
    view[groups.addresses] = operand[groups.starts + groups.sizes - 1]
    return old


def _count(view: Value, groups: _Groups, limit: int, *, is_up: bool) -> Value:
    """``inc`` and ``dec`` with one limit: the values go round; one above the limit is left at the first step."""
    before = view[groups.addresses].astype(object if limit >= 1 << 62 else np.int64)
    sizes = groups.sizes

    def after(start: Any, steps: Any) -> Any:
        beyond = start > limit
        shifted = np.where(beyond, 0 if is_up else limit, start)
        taken = np.where(beyond, steps - 1, steps)
        moved = (shifted + taken) if is_up else (shifted - taken)
        return np.where(steps == 0, start, moved % (limit + 1))

    old = after(np.repeat(before, sizes), groups.occurrence).astype(view.dtype)
    view[groups.addresses] = after(before, sizes).astype(view.dtype)
    return old


def _compare_and_swap(view: Value, groups: _Groups, compared: Value, new: Value) -> Value:
    """Each round lets the next lane of every address succeed whose comparison holds; all before it fail."""
    current = view[groups.addresses]
    group_of = groups.group_of
    places = np.arange(len(compared))
    settled = groups.starts.copy()
    ends = groups.starts + groups.sizes
    old = np.empty(len(compared), view.dtype)
    while True:
        waiting = places >= settled[group_of]
        hits = waiting & (compared == current[group_of]) & (new != current[group_of])
        first = np.full(len(groups.starts), len(compared))
        np.minimum.at(first, group_of[hits], places[hits])
        found = first < len(compared)
        limit = np.where(found, first + 1, ends)
        seen = waiting & (places < limit[group_of])
        old[seen] = current[group_of][seen]
        if not found.any():
            break
        current[found] = new[first[found]]
        settled = limit
    view[groups.addresses] = current
    return old


def _sum_groups(view: Value, groups: _Groups, operand: Value, function: AtomicFunction) -> Value:
    """Few addresses with many lanes each: sums one after the other."""
    old = np.empty(len(operand), view.dtype)
    single = groups.sizes == 1
    alone = groups.starts[single]
    addresses = groups.addresses[single]
    old[alone] = view[addresses]
    view[addresses] = function.evaluate(view[addresses], operand[alone])
    for group in np.flatnonzero(~single).tolist():
        start, size = int(groups.starts[group]), int(groups.sizes[group])
        address = int(groups.addresses[group])
        chain = np.concatenate((view[address : address + 1], operand[start : start + size]))
        sums = (
            canonicalise(np.add.accumulate(chain, dtype=view.dtype))
            if view.dtype.itemsize == 4
            else np.add.accumulate(chain)
        )
        old[start : start + size] = sums[:-1]
        view[address] = sums[-1]
    return old


def _apply_rounds(view: Value, groups: _Groups, operands: list[Value], function: AtomicFunction) -> Value:
    """The first lane of every address, then the second ones …"""
    occurrence = groups.occurrence
    bits = max(len(occurrence).bit_length(), 1)
    keys = np.sort((occurrence << bits) | np.arange(len(occurrence)))
    by_round = keys & ((1 << bits) - 1)
    limits = np.searchsorted(keys >> bits, np.arange(int(groups.sizes.max()) + 1))
    addresses = np.repeat(groups.addresses, groups.sizes)
    old = np.empty(len(occurrence), view.dtype)
    for first, last in zip(limits[:-1].tolist(), limits[1:].tolist(), strict=True):
        lanes = by_round[first:last]
        where = addresses[lanes]
        found = view[where]
        old[lanes] = found
        view[where] = function.evaluate(found, *[operand[lanes] for operand in operands])
    return old
