"""``atom``, ``red`` and ``mbarrier``: what reads and writes memory at once."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Immediate, Operand, Space
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.execution.emulator.engine.accesses import Place
from gpa_lsp.execution.emulator.engine.binder import Binder, UnsupportedInstruction, flatten, read_as
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Registers
from gpa_lsp.execution.emulator.engine.lane_steps import narrow_mask
from gpa_lsp.execution.emulator.engine.memory_steps import bind_address, make_access, make_resolver
from gpa_lsp.execution.emulator.engine.values import U64, Value
from gpa_lsp.execution.emulator.operations.atomics import AtomicFunction, atomic_function
from gpa_lsp.execution.emulator.operations.single import canonicalise
from gpa_lsp.foundation.records import ColumnRecord

# Atomic operations of many lanes in the order of the lanes: :func:`apply_in_order`.
#
# The result is exactly that of one lane after the other, block by block, warp by warp; so sums of floating-point numbers are the same in every
# run. Operations whose operands can be combined need no loop; others take as many rounds as lanes go to one address, or as there are addresses
# that several lanes go to, whichever is less.

Order = npt.NDArray[np.int64]


class _Groups(ColumnRecord, frozen=True):
    """Lanes sorted by address, those of one address in their own order."""

    order: Order  # int64[k], place in the sorted order → lane
    starts: Order  # int64[g], first place of each address
    sizes: Order  # int64[g]
    addresses: Order  # int64[g], what each group goes to

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
        index: int64[k], element of each lane.

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


_PENDING_SHIFT = 20
_COUNT_MASK = (1 << _PENDING_SHIFT) - 1
_PHASE_SHIFT = 63


def bind_atomic(binder: Binder) -> None:
    """``atom`` and ``red``, lanes one after the other.

    Raises:
        UnsupportedInstruction: a form that is not known.
    """
    instruction = binder.instruction
    function = atomic_function(instruction)
    if function is None or "async" in instruction.suffixes:
        raise UnsupportedInstruction
    _bind_function(binder, function, instruction.sources[0], instruction.sources[1:])


def _bind_function(
    binder: Binder, function: AtomicFunction, address: Operand, operands: tuple[Operand, ...], elements: int = 0
) -> None:
    instruction = binder.instruction
    kind = function.type
    dtype = kind.natural_dtype
    results = [one for one in flatten(instruction.destinations) if one is not None]
    parts = [flatten((operand,)) for operand in operands[: function.operands]]
    count = elements or len(parts[0])
    sources = [[binder.read(part, kind) for part in part_list] for part_list in parts]
    find, offset = bind_address(binder, address)
    access = make_access(binder, AccessKind.ATOMIC if results else AccessKind.REDUCTION, dtype, count, offset)
    slots = [binder.write(result, kind) for result in flatten(instruction.destinations)] if results else []
    resolve, guard, tracer = make_resolver(binder, access), binder.guard, binder.machine.tracer

    def apply(fragment: Fragment, place: Place) -> None:
        views, index, allowed, _ = place
        registers = fragment.registers
        lanes = np.arange(fragment.warps.lanes) if allowed is None else np.flatnonzero(allowed)
        where = np.full(len(lanes), index, np.int64) if type(index) is int else index[lanes]
        for element, view in enumerate(views):
            given = []
            for source in sources:
                value = read_as(fragment, source[element], dtype)
                given.append(value[lanes] if value.ndim else value)
            old = apply_in_order(view, where, given, function, wants_old=bool(slots))
            if slots:
                _put(registers, slots[element], old, lanes, fragment.warps.lanes)

    def step(fragment: Fragment) -> None:
        mask = narrow_mask(fragment, guard)
        address = find(fragment)
        for slot in slots:
            fragment.registers[slot] = np.zeros(fragment.warps.lanes, dtype)
        for space, place in resolve(fragment, address, mask):
            _, index, allowed, bad = place
            if tracer is not None:
                tracer.record(access, fragment, space, address, allowed if bad is None else allowed | bad)
            if space is Space.SHARED and fragment.batch.checks is not None:
                fragment.batch.checks.check_store(access, fragment, index, allowed)
            apply(fragment, place)

    binder.steps.append(step)
    binder.finish()


def _put(registers: Registers, slot: int, old: Value, lanes: Value, count: int) -> None:
    if len(lanes) == count:
        registers[slot] = old
        return
    registers[slot][lanes] = old


def bind_mbarrier(binder: Binder) -> None:
    """``mbarrier`` objects, as words of shared memory: expected arrivals, pending ones, and the phase in the highest bit.

    Bytes of transactions are not counted: what would complete them is not emulated.

    Raises:
        UnsupportedInstruction: a form that is not known.
    """
    instruction = binder.instruction
    words = instruction.suffixes
    verb = words[0] if words else ""
    operands = instruction.sources
    if verb in ("inval", "expect_tx"):
        binder.finish()
        return
    if verb == "init":
        _bind_function(
            binder,
            _word_function(lambda _old, count: count | count << np.uint64(_PENDING_SHIFT)),
            operands[0],
            operands[1:2],
        )
    elif verb in ("arrive", "arrive_drop"):
        has_count = len(operands) > 1 and "expect_tx" not in words
        count = operands[1] if has_count else Immediate(1)
        function = _word_function(_arrive if verb == "arrive" else _arrive_and_drop)
        _bind_function(binder, function, operands[0], (count,))
    elif verb in ("test_wait", "try_wait"):
        _bind_wait(binder, has_parity="parity" in words)
    else:
        raise UnsupportedInstruction


def bind_copy_arrival(binder: Binder) -> None:
    """``cp.async.mbarrier.arrive``: an arrival when the copies of a thread are done, which they are.

    Without ``.noinc`` it is expected in addition to the others, so that nothing changes.
    """
    if "noinc" not in binder.instruction.suffixes:
        binder.finish()
        return
    _bind_function(binder, _word_function(_arrive), binder.instruction.sources[0], (Immediate(1),))


def _word_function(evaluate: Callable[..., Value]) -> AtomicFunction:
    return AtomicFunction(name="mbarrier", evaluate=evaluate, type=ScalarType.U64)


def _arrive(word: Value, count: Value) -> Value:
    expected = word & np.uint64(_COUNT_MASK)
    pending = word >> np.uint64(_PENDING_SHIFT) & np.uint64(_COUNT_MASK)
    phase = word >> np.uint64(_PHASE_SHIFT)
    left = pending - np.minimum(count, pending)
    done = left == 0
    left = np.where(done, expected, left)
    phase = phase ^ done.astype(np.uint64)
    return expected | left << np.uint64(_PENDING_SHIFT) | phase << np.uint64(_PHASE_SHIFT)


def _arrive_and_drop(word: Value, count: Value) -> Value:
    expected = word & np.uint64(_COUNT_MASK)
    fewer = expected - np.minimum(count, expected)
    return _arrive((word & ~np.uint64(_COUNT_MASK)) | fewer, count)


def _bind_wait(binder: Binder, *, has_parity: bool) -> None:
    """Whether the phase that a token (or parity) stands for has ended."""
    instruction = binder.instruction
    kind = ScalarType.U32 if has_parity else ScalarType.U64
    token = binder.read(instruction.sources[1], kind)
    find, offset = bind_address(binder, instruction.sources[0])
    access = make_access(binder, AccessKind.LOAD, U64, 1, offset)
    access.is_strong = True
    result = binder.write(flatten(instruction.destinations)[0], ScalarType.PRED)
    resolve, guard = make_resolver(binder, access), binder.guard

    def step(fragment: Fragment) -> None:
        done: Value = np.bool_(False)
        for _, (views, index, _, _) in resolve(fragment, find(fragment), narrow_mask(fragment, guard)):
            word = views[0][index] if type(index) is int else views[0].take(index, mode="wrap")
            phase = word >> np.uint64(_PHASE_SHIFT)
            given = read_as(fragment, token, kind.storage_dtype)
            asked = (given & given.dtype.type(1)).astype(np.uint64) if has_parity else given >> np.uint64(_PHASE_SHIFT)
            done = phase != asked
        fragment.registers[result] = done

    binder.steps.append(step)
    binder.finish()
