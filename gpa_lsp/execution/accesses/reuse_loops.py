"""Loops over references to lists of units, compiled: exact reuse distances, and hits in caches that replace the least recently used line.

Warps of a loop refer to the same lists of units again and again. A list none of whose units another list took since is *intact*: its units lie behind
each other among the last references, all have one distance, and move as one.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.accesses.lane_addresses import INFINITE, NOT_COUNTED
from gpa_lsp.execution.accesses.request_loops import MIX, count_bits, open_slots
from gpa_lsp.foundation.machine_code.loops import compiled, part
from gpa_lsp.foundation.machine_code.types import leading_zeros

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint8]
Slots = npt.NDArray[np.int32]

# In place of the distance of a list: each of its units has its own; in place of its array: they lie in several
SEVERAL = -3

_PAGE_BITS = 3  # Units that follow each other have slots that do
_WORD_BITS = 5  # Places of a word of marks
_BEGIN, _NEXT, _MARKED, _WORDS, _DISTANCE = range(5)  # Of a state


class UnitLists(NamedTuple):
    """Lists of units, which have numbers from 0 on."""

    first: Integers  # int64[k], the place of a list's first unit
    size: Integers  # int64[k]
    unit: Integers  # int64[m], numbers; distinct in each list
    is_own: Marks  # bool[k], no other list has a unit of it


class Recency(NamedTuple):
    """Order of the last references to units. Places go on from sequence to sequence. After the lists there is one of each unit alone."""

    # int64[5]: place of the first reference of the sequence, and of the next one; units that are marked, and words of marks; and the distance of all
    # units of the list that was referred to last, or SEVERAL
    state: Integers
    start: Integers  # by list, the place of its first unit when it was referred to last; -1 for never
    is_broken: Marks  # by list, another one took a unit since
    owner: Integers  # by unit, the list it was referred to by last; -1 for none. Units of lists that have them for themselves have none.
    rank: Integers  # by unit, its rank in it
    distance: Integers  # of the units of the list that was referred to last
    marks: Integers  # by word of places: a bit where a unit was referred to last
    sums: Integers  # Fenwick tree of the marks of words


class Tally(NamedTuple):
    """Sums by group: an instruction and an array."""

    bins: Integers  # int64[groups, bins], references by distance, the last one is ∞
    sums: Integers  # int64[groups, 2], units that are used once only, and all finite distances
    list_array: Integers  # by list, number of the array that its units lie in
    unit_array: Integers  # by unit
    list_fresh: Integers  # by list, the group that used its units for the first and only time, plus one; 0 for none, or where it is known by unit
    unit_fresh: Integers  # the same by unit
    has_fresh: Marks  # by list, some of its units are such, which is known by unit


@compiled
def number_units(units: Integers, slots: Slots, numbers: Integers, known: Integers) -> int:
    """Number units by first appearance; how many there are.

    Args:
        slots: int32[power of two, at least 2 n], all -1.
        known: int64[n], room for the unit of each number.
    """
    count = 0
    for place in range(len(units)):
        unit = units[place]
        mixed = (unit >> _PAGE_BITS) * MIX
        slot = ((mixed ^ (mixed >> 32)) << _PAGE_BITS | unit & ((1 << _PAGE_BITS) - 1)) & (len(slots) - 1)
        while slots[slot] >= 0 and known[slots[slot]] != unit:
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            slots[slot] = count
            known[count] = unit
            count += 1
        numbers[place] = slots[slot]
    return count


@compiled
def merge_lists(lists: UnitLists, slots: Slots, kept: Integers, merged: Integers) -> int:
    """Number lists by first appearance, those with equal units as one; how many there are.

    Args:
        slots: int32[power of two, at least 2 n], all -1.
        kept: int64[n], room for the list of each number.
        merged: int64[n], room for the number of each list.
    """
    count = 0
    for number in range(len(lists.size)):
        mixed = lists.size[number]
        for place in range(lists.first[number], lists.first[number] + lists.size[number]):
            mixed = (mixed ^ lists.unit[place]) * MIX
            mixed ^= mixed >> 29
        slot = mixed & (len(slots) - 1)
        while slots[slot] >= 0 and not _is_equal(lists, number, kept[slots[slot]]):
            slot = (slot + 1) & (len(slots) - 1)
        if slots[slot] < 0:
            slots[slot] = count
            kept[count] = number
            count += 1
        merged[number] = slots[slot]
    return count


@part
def _is_equal(lists: UnitLists, one: int, other: int) -> bool:
    count, is_equal = lists.size[one], lists.size[one] == lists.size[other]
    for rank in range(count if is_equal else 0):
        is_equal &= lists.unit[lists.first[one] + rank] == lists.unit[lists.first[other] + rank]
    return is_equal


class ArrayColumns(NamedTuple):
    """Columns of an :class:`~gpa_lsp.execution.accesses.lane_addresses.ArrayIndex`."""

    bases: npt.NDArray[np.uint64]
    ends: npt.NDArray[np.uint64]
    order: Integers


@compiled
def find_arrays(
    arrays: ArrayColumns, lists: UnitLists, addresses: Integers, of_unit: Integers, of_list: Integers
) -> None:
    """Fill the arrays that units and lists lie in, by numbers from 1 on; 0 for none, and SEVERAL.

    Args:
        addresses: int64[units], first byte of each.
    """
    count, last = len(arrays.bases), 0
    for unit in range(len(addresses) if count > 0 else 0):
        address = np.uint64(addresses[unit])
        if arrays.bases[last] > address or (last + 1 < count and arrays.bases[last + 1] <= address):
            low, high = 0, count
            while low < high:
                middle = (low + high) // 2
                if arrays.bases[middle] <= address:
                    low = middle + 1
                else:
                    high = middle
            last = max(low - 1, 0)
        is_inside = arrays.bases[last] <= address < arrays.ends[last]
        of_unit[unit] = arrays.order[last] + 1 if is_inside else 0
    for number in range(len(lists.size)):
        first = lists.first[number]
        of_list[number] = of_unit[lists.unit[first]]
        for place in range(first + 1, first + lists.size[number]):
            if of_unit[lists.unit[place]] != of_list[number]:
                of_list[number] = SEVERAL


@compiled
def find_own(lists: UnitLists, owner: Integers) -> None:
    """Fill which lists have their units for themselves.

    Args:
        owner: int64[units], all -1.
    """
    for number in range(len(lists.size)):
        lists.is_own[number] = True
        for place in range(lists.first[number], lists.first[number] + lists.size[number]):
            other = owner[lists.unit[place]]
            owner[lists.unit[place]] = number
            if other >= 0:
                lists.is_own[other] = lists.is_own[number] = False


@part
def _begin_sequence(recency: Recency, references: int) -> None:
    state = recency.state
    state[_BEGIN], state[_MARKED], state[_WORDS] = state[_NEXT], 0, (references >> _WORD_BITS) + 1
    for word in range(state[_WORDS]):
        recency.marks[word] = recency.sums[word] = 0


@part
def _count_marks(recency: Recency, place: int) -> int:
    """Marks up to a place of the sequence."""
    word = place >> _WORD_BITS
    found = count_bits(recency.marks[word] & ((2 << (place & ((1 << _WORD_BITS) - 1))) - 1))
    while word > 0:
        found += recency.sums[word]
        word &= word - 1
    return found


@part
def _change_marks(recency: Recency, place: int, count: int, by: int) -> None:
    """Set or clear marks that follow each other."""
    words = recency.state[_WORDS]
    recency.state[_MARKED] += by * count
    while count > 0:
        word, offset = place >> _WORD_BITS, place & ((1 << _WORD_BITS) - 1)
        taken = min(count, (1 << _WORD_BITS) - offset)
        recency.marks[word] += by * (((1 << taken) - 1) << offset)
        word += 1
        while word < words:
            recency.sums[word] += by * taken
            word += word & -word
        place += taken
        count -= taken


@part
def _refer(recency: Recency, lists: UnitLists, number: int, is_erasing: bool) -> int:
    """Refer to all units of a list, in their order; their distance, which those that are erased do not have."""
    state, start, alone = recency.state, recency.start, number - len(lists.size)
    count = lists.size[number] if alone < 0 else 1
    distance = SEVERAL
    if start[number] >= state[_BEGIN] and not recency.is_broken[number]:
        before = start[number] - state[_BEGIN]
        distance = state[_MARKED] - _count_marks(recency, before + count - 1) + count - 1
        _change_marks(recency, before, count, -1)
    elif alone < 0 and lists.is_own[number]:
        distance = INFINITE
    else:
        for rank in range(count):
            unit = lists.unit[lists.first[number] + rank] if alone < 0 else alone
            recency.distance[rank] = _take(recency, number, unit, rank)
            recency.owner[unit], recency.rank[unit] = number, rank
    recency.is_broken[number] = False
    start[number] = -1 if is_erasing else state[_NEXT]
    if not is_erasing:
        _change_marks(recency, state[_NEXT] - state[_BEGIN], count, 1)
    state[_NEXT] += count
    state[_DISTANCE] = distance
    return distance


@part
def _take(recency: Recency, number: int, unit: int, rank: int) -> int:
    """The distance of a unit that a list takes from where it was."""
    state, owner = recency.state, recency.owner[unit]
    if owner < 0 or recency.start[owner] < state[_BEGIN]:
        return INFINITE
    before = recency.start[owner] + recency.rank[unit] - state[_BEGIN]
    distance = state[_MARKED] - _count_marks(recency, before) + rank
    _change_marks(recency, before, 1, -1)
    if owner != number:
        recency.is_broken[owner] = True
    return distance


@part
def _add(tally: Tally, group: int, distance: int, count: int) -> None:
    last = tally.bins.shape[1] - 1
    if distance < 0:
        tally.bins[group, last] += count
    else:
        tally.bins[group, min(64 - leading_zeros(distance), last - 1)] += count
        tally.sums[group, 1] += distance * count


@part
def _add_list(tally: Tally, recency: Recency, lists: UnitLists, number: int, base: int) -> None:
    """Add references to all units of the list that was referred to last.

    Args:
        base: the first group of the instruction.
    """
    distance = recency.state[_DISTANCE]
    first, count, array = lists.first[number], lists.size[number], tally.list_array[number]
    if SEVERAL in (distance, array):
        tally.has_fresh[number] = False
        for rank in range(count):
            unit, one = lists.unit[first + rank], recency.distance[rank] if distance == SEVERAL else distance
            group = base + tally.unit_array[unit]
            _add(tally, group, one, 1)
            _use(tally.unit_fresh, unit, tally.sums, group if one < 0 else -1, 1)
            tally.has_fresh[number] |= one < 0
        return
    group = base + array
    _add(tally, group, distance, count)
    if lists.is_own[number]:
        _use(tally.list_fresh, number, tally.sums, group if distance < 0 else -1, count)
    elif tally.has_fresh[number]:
        tally.has_fresh[number] = False
        for place in range(first, first + count):
            _use(tally.unit_fresh, lists.unit[place], tally.sums, -1, 1)


@part
def _use(fresh: Integers, number: int, sums: Integers, group: int, count: int) -> None:
    """Count units that a group uses for the first time, or that are used again."""
    if group >= 0:
        sums[group, 0] += count
    elif fresh[number] > 0:
        sums[fresh[number] - 1, 0] -= count
    fresh[number] = group + 1


class Sequences(NamedTuple):
    """Rows of sequences, one behind the other."""

    number: Integers  # int64[n], what each refers to
    end: Integers  # of sequences
    base: Integers  # the first group of the instruction of each


class UnitColumns(NamedTuple):
    """Results for n references to single units."""

    distance: Integers
    is_streaming: Marks  # it is not referred to again before it is erased, and was not before
    previous: Integers  # the place of the reference before, erasing or not; -1 for none
    last: Integers  # by list, all -1: room for the place of its last reference


@compiled
def measure_units(lists: UnitLists, of: Sequences, erases: Marks, recency: Recency, found: UnitColumns) -> None:
    """Fill the columns of references to lists of one unit each.

    Args:
        erases: bool[n]; empty where nothing erases.
    """
    begin = 0
    for end in of.end:
        _begin_sequence(recency, end - begin)
        for place in range(begin, end):
            number = of.number[place]
            before = found.last[number]
            is_erasing = len(erases) > 0 and erases[place]
            distance = _refer(recency, lists, number, is_erasing)
            found.previous[place] = before if before >= begin else -1
            if distance >= 0 and not is_erasing:
                found.is_streaming[before] = False
            found.distance[place] = NOT_COUNTED if is_erasing else distance
            found.is_streaming[place] = distance < 0 and not is_erasing
            found.last[number] = place
        begin = end


@compiled
def measure_rows(lists: UnitLists, of: Sequences, recency: Recency, tally: Tally) -> None:
    """Add the references of rows to lists."""
    begin = 0
    for end in of.end:
        references = 0
        for row in range(begin, end):
            references += lists.size[of.number[row]]
        _begin_sequence(recency, references)
        for row in range(begin, end):
            _refer(recency, lists, of.number[row], False)
            _add_list(tally, recency, lists, of.number[row], of.base[row])
        begin = end


class Requests(NamedTuple):
    """Requests, whose sectors lie in lists of lines."""

    list: Integers  # int64[n], of lines
    masks: Integers  # int64[n], the place of the first of their lines in ``sectors``; requests with equal sectors have the same
    sectors: Bits  # uint8, which sectors of a line there are
    missed: Integers  # int64[n], the place of the first of their lines in ``left``; EVERY where all sectors are missed, NONE where none is
    left: Bits  # uint8, which sectors of a line L1 does not have
    used: Integers  # int64[1], places of these


EVERY, NONE = -1, -2


class Cache(NamedTuple):
    """Contents of a cache."""

    recency: Recency
    lines: int  # that it holds; -1 where that is not known
    loaded: Bits  # uint8 by line, sectors that were asked for since the line was missed
    known: Integers  # by list, the masks of the request that asked for its lines last


@part
def _look_up(cache: Cache, line: int, rank: int, wanted: int) -> int:
    """The wanted sectors that the cache has, of a line of the list referred to last, as bits."""
    distance = cache.recency.state[_DISTANCE]
    if distance == SEVERAL:
        distance = cache.recency.distance[rank]
    known = cache.loaded[line] if 0 <= distance < cache.lines else 0
    cache.loaded[line] = known | wanted
    return known & wanted


@compiled
def look_in_l1(lists: UnitLists, requests: Requests, of: Sequences, tally: Tally, cache: Cache) -> None:
    """Fill what requests miss, and add their references to lines.

    Args:
        of: requests that ask L1, with bases of all requests.
    """
    begin = 0
    for end in of.end:
        references = 0
        for place in range(begin, end):
            references += lists.size[requests.list[of.number[place]]]
        _begin_sequence(cache.recency, references)
        for place in range(begin, end):
            row = of.number[place]
            number, masks = requests.list[row], requests.masks[row]
            distance = _refer(cache.recency, lists, number, False)
            _add_list(tally, cache.recency, lists, number, of.base[row])
            if 0 <= distance < cache.lines and cache.known[number] == masks:
                requests.missed[row] = NONE
            else:
                _look_up_list(lists, requests, row, cache)
            cache.known[number] = masks
        begin = end


@part
def _look_up_list(lists: UnitLists, requests: Requests, row: int, cache: Cache) -> None:
    """Fill what a request misses of its lines."""
    number, masks, used = requests.list[row], requests.masks[row], requests.used[0]
    found = misses = 0
    for rank in range(lists.size[number]):
        wanted = requests.sectors[masks + rank]
        hits = _look_up(cache, lists.unit[lists.first[number] + rank], rank, wanted)
        requests.left[used + rank] = wanted & ~hits
        found += hits
        misses += wanted & ~hits
    requests.missed[row] = NONE if misses == 0 else EVERY if found == 0 else used
    if found != 0 and misses != 0:
        requests.used[0] += lists.size[number]


@compiled
def look_in_l2(lists: UnitLists, requests: Requests, order: Integers, cache: Cache, hits: Integers) -> None:
    """Fill how many sectors the requests find that L1 does not have.

    Args:
        order: of all requests.
    """
    recency = cache.recency
    _begin_sequence(recency, (len(recency.marks) << _WORD_BITS) - 1)
    for row in order:
        number, masks, missed = requests.list[row], requests.masks[row], requests.missed[row]
        count, first = lists.size[number], lists.first[number]
        hits[row] = 0
        if missed == EVERY:
            _refer(recency, lists, number, False)
            for rank in range(count):
                hits[row] += count_bits(_look_up(cache, lists.unit[first + rank], rank, requests.sectors[masks + rank]))
        elif missed >= 0:
            for rank in range(count):
                line, wanted = lists.unit[first + rank], requests.left[missed + rank]
                if wanted != 0:
                    _refer(recency, lists, len(lists.size) + line, False)
                    hits[row] += count_bits(_look_up(cache, line, 0, wanted))


class NumberedLists(NamedTuple):
    """Lists of units, equal ones once."""

    lists: UnitLists
    number: Integers  # int64[k], of each list that was given
    units: Integers  # int64, by number of a unit


def number_lists(size: Integers, units: Integers) -> NumberedLists:
    """Number lists and their units.

    Args:
        size: int64[k], of lists, one behind the other.
        units: int64[m], distinct and ascending in each.
    """
    numbers, known = np.empty((2, len(units)), np.int64)
    count = number_units(units, open_slots(len(units)), numbers, known)
    chosen, merged = find_distinct(size, numbers)
    first = np.cumsum(size) - size
    lists = UnitLists(first[chosen], size[chosen], numbers, np.zeros(len(chosen), np.bool_))
    find_own(lists, np.full(count, -1))
    return NumberedLists(lists=lists, number=merged, units=known[:count])


def find_distinct(size: Integers, units: Integers) -> tuple[Integers, Integers]:
    """The first of each of k lists that are equal, ascending, and for each list its place among these, int64[k].

    Args:
        units: one list behind the other.

    >>> [found.tolist() for found in find_distinct(np.array([2, 1, 2]), np.array([4, 5, 4, 4, 5]))]
    [[0, 1], [0, 1, 0]]
    """
    merged, kept = np.empty((2, len(size)), np.int64)
    lists = UnitLists(np.cumsum(size) - size, size, units, _NONE)
    return kept[: merge_lists(lists, open_slots(len(size)), kept, merged)], merged


_NONE = np.empty(0, np.bool_)


def open_recency(lists: UnitLists, units: int, references: int) -> Recency:
    """Recency before the first reference.

    Args:
        references: to units, in the longest sequence.
    """
    count, words = len(lists.size) + units, (references >> _WORD_BITS) + 2
    return Recency(
        state=np.zeros(5, np.int64),
        start=np.full(count, -1),
        is_broken=np.zeros(count, np.bool_),
        owner=np.full(units, -1),
        rank=np.zeros(units, np.int64),
        distance=np.empty(int(lists.size.max(initial=1)), np.int64),
        marks=np.empty(words, np.int64),
        sums=np.empty(words, np.int64),
    )
