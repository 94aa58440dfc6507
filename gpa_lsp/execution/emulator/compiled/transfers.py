"""Loads, stores and atomic operations of all lanes, and marks of the memory they touched: typed Python of the core."""

from gpa_lsp.execution.emulator.compiled.addresses import (
    ALL_LANES,
    AT_ONE_PLACE,
    IN_A_ROW,
    IN_LOCAL,
    IN_SHARED,
    base_of,
    find_order,
    frame_of,
    measure,
    offsets_of,
    operand,
    place_of,
)
from gpa_lsp.execution.emulator.compiled.model import (
    ATOMIC,
    FAILED,
    FUNCTIONS,
    LANES,
    LOAD,
    STORE,
    CoreMachine,
    Operation,
)
from gpa_lsp.execution.emulator.compiled.shared_watch import unit_of
from gpa_lsp.execution.emulator.semantics.model import LONGEST_VECTOR
from gpa_lsp.execution.emulator.semantics.words import COMPARE_AND_SWAP, change_word, give, take
from gpa_lsp.foundation.machine_code.types import (
    Pointer,
    all_lanes,
    as_float,
    bits_of,
    call,
    f64,
    gather,
    lanes,
    lanes_of,
    local,
    mask_of,
    popcount,
    put,
    s32,
    s64,
    scatter,
    u8,
    u16,
    u32,
    u64,
    view,
)

# Marks, as in :mod:`~gpa_lsp.execution.emulator.engine.arena`
MARK_READ, MARK_WRITTEN = 1, 2
WORD_SHIFT, CHUNK_SHIFT = 2, 9  # A chunk is no longer than what one instruction of a warp accesses in a row
INIT, ARRIVE, ARRIVE_AND_DROP, EXPECT, COMPLETE = range(13, 18)
# Words of barriers: arrivals expected, pending ones, bytes of transactions that are expected and not yet complete, and the phase in the highest bit
PENDING_SHIFT, COUNT_MASK, BYTES_SHIFT, BYTES_MASK, PHASE_SHIFT = 20, (1 << 20) - 1, 40, (1 << 22) - 1, 63


def blend(to, values, mask):
    """Write the values of the lanes of a mask, side by side."""
    if mask == ALL_LANES:
        put(to, values)
    else:
        put(to, values if lanes_of(mask) else lanes(to))


def keep(to: Pointer[u8], source: Pointer[u8], size: s32, mask: u32) -> None:
    """Put the values of some lanes into a register."""
    if size == 4:
        blend(view(to, u32), lanes(view(source, u32)), mask)
    elif size == 8:
        blend(view(to, u64), lanes(view(source, u64)), mask)
    elif size == 2:
        blend(view(to, u16), lanes(view(source, u16)), mask)
    else:
        blend(to, lanes(source), mask)


def take_lanes(source, size):
    """32 unsigned numbers side by side: u64."""
    if size == 8:
        return lanes(view(source, u64))
    if size == 4:
        return u64(lanes(view(source, u32)))
    if size == 2:
        return u64(lanes(view(source, u16)))
    return u64(lanes(view(source, u8)))


def give_lanes(to, values, mask, size):
    """Write numbers of the lanes of a mask, side by side."""
    if size == 8:
        blend(view(to, u64), values, mask)
    elif size == 4:
        blend(view(to, u32), u32(values), mask)
    elif size == 2:
        blend(view(to, u16), u16(values), mask)
    else:
        blend(view(to, u8), u8(values), mask)


def gather_lanes(source, offsets, mask, size):
    """Numbers of the lanes of a mask, wherever they lie: u64."""
    if size == 8:
        return gather(view(source, u64), offsets, mask)
    if size == 4:
        return u64(gather(view(source, u32), offsets, mask))
    if size == 2:
        return u64(gather(view(source, u16), offsets, mask))
    return u64(gather(view(source, u8), offsets, mask))


def load_as(kind, base, offsets, order, to, mask):
    """Values of the lanes of a mask, which lie as the order says, into a register as wide."""
    if order == IN_A_ROW:
        put(view(to, kind), lanes(view(base + offsets[0], kind)))
    elif order == AT_ONE_PLACE:
        put(view(to, kind), all_lanes(view(base + offsets[0], kind)[0]))
    else:
        blend(view(to, kind), gather(view(base, kind), offsets, mask), mask)


def load_one(machine: CoreMachine, operation: Operation, space: s32, warp: s64, element: s64) -> None:
    """Load one value for each lane of a warp."""
    mask, size, width = machine.masks[warp], operation.element_bytes, operation.register_bytes
    to = frame_of(machine, warp) + operation.places[element]
    base = base_of(machine, space, warp) + element * s64(size)
    offsets = offsets_of(machine, space, warp)
    if size != width:
        values = gather_lanes(base, offsets, mask, size)
        if operation.is_signed != 0 and width > size:
            unused = u64(64 - 8 * size)
            values = u64(s64(values << unused) >> s64(unused))
        give_lanes(to, values, mask, width)
        return
    order = find_order(offsets, mask, u64(size))
    if size == 4:
        load_as(u32, base, offsets, order, to, mask)
    elif size == 8:
        load_as(u64, base, offsets, order, to, mask)
    elif size == 2:
        load_as(u16, base, offsets, order, to, mask)
    else:
        load_as(u8, base, offsets, order, to, mask)


def load(machine: CoreMachine, operation: Operation, space: s32) -> None:
    """Load the values of all lanes."""
    for warp in range(machine.warps):
        if machine.masks[warp] == 0:
            continue
        for element in range(operation.elements):
            if operation.places[element] >= 0:
                load_one(machine, operation, space, warp, element)


def values_of(machine, operation, warp, place):
    """Values that the lanes of a warp store: u64."""
    source = operand(frame_of(machine, warp), machine.constants, place)
    size = operation.register_bytes if place >= 0 else operation.element_bytes
    return take_lanes(source, size)


def value_of(machine: CoreMachine, operation: Operation, warp: s64, lane: s64, place: s32) -> u64:
    """Value that one lane stores."""
    source = operand(frame_of(machine, warp), machine.constants, place)
    size = operation.register_bytes if place >= 0 else operation.element_bytes
    return take(source + lane * s64(size), operation.element_bytes)


def store_as(kind, base, offsets, order, values, mask):
    """Store values of the lanes of a mask, which lie as the order says."""
    if order == IN_A_ROW:
        put(view(base + offsets[0], kind), kind(values))
    else:
        scatter(view(base, kind), offsets, mask, kind(values))


def store_one(machine: CoreMachine, operation: Operation, space: s32, warp: s64, element: s64) -> None:
    """Store one value of each lane of a warp; of lanes with one address the last wins."""
    mask, size = machine.masks[warp], operation.element_bytes
    base = base_of(machine, space, warp) + element * s64(size)
    offsets = offsets_of(machine, space, warp)
    values = values_of(machine, operation, warp, operation.places[element])
    order = find_order(offsets, mask, u64(size))
    if size == 4:
        store_as(u32, base, offsets, order, values, mask)
    elif size == 8:
        store_as(u64, base, offsets, order, values, mask)
    elif size == 2:
        store_as(u16, base, offsets, order, values, mask)
    else:
        store_as(u8, base, offsets, order, values, mask)


def store(machine: CoreMachine, operation: Operation, space: s32) -> None:
    """Store the values of all lanes."""
    for warp in range(machine.warps):
        if machine.masks[warp] == 0:
            continue
        for element in range(operation.elements):
            store_one(machine, operation, space, warp, element)


def differs(operation: Operation, found: u64, stored: u64) -> u32:
    """Whether a lane lost what it stored."""
    if found == stored:
        return 0
    if operation.is_float == 0:
        return 1
    one, other = as_float(found), as_float(stored)
    if operation.element_bytes == 4:
        one, other = f64(as_float(u32(found))), f64(as_float(u32(stored)))
    return u32(one != other and other == other)


def store_shared(machine: CoreMachine, operation: Operation) -> u32:
    """Store to shared memory; where a lane's value is overwritten by a different one, undo it all and return 1."""
    every, size = machine.warps * LANES, operation.element_bytes
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            for element in range(operation.elements):
                at = place_of(machine, IN_SHARED, warp, lane) + element * s64(size)
                machine.before[element * every + warp * LANES + lane] = take(at, size)
    store(machine, operation, IN_SHARED)
    is_lost = u32(0)
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            for element in range(operation.elements):
                found = take(place_of(machine, IN_SHARED, warp, lane) + element * s64(size), size)
                stored = value_of(machine, operation, warp, lane, operation.places[element])
                is_lost |= differs(operation, found, stored)
    if is_lost == 0:
        return 0
    for warp in range(machine.warps):
        for lane in bits_of(machine.masks[warp]):
            for element in range(operation.elements):
                at = place_of(machine, IN_SHARED, warp, lane) + element * s64(size)
                give(at, machine.before[element * every + warp * LANES + lane], size)
    return 1


def find_lost(machine: CoreMachine, element: s64) -> s64:
    """Find lanes whose element, stored to shared memory with the access at work, a different value overwrote, and note the writers' stamps in
    ``before``. Number of lanes; FAILED after the last element.
    """
    operation, count = machine.operations[machine.operation], 0
    if element >= operation.elements or operation.code != STORE:
        return FAILED
    for warp in range(machine.warps):
        put(machine.before + warp * LANES, all_lanes(u64(0)))
        for lane in bits_of(machine.masks[warp]):
            at = place_of(machine, IN_SHARED, warp, lane) + element * s64(operation.element_bytes)
            stored = value_of(machine, operation, warp, lane, operation.places[element])
            if differs(operation, take(at, operation.element_bytes), stored) != 0:
                machine.before[warp * LANES + lane] = u64(machine.writes[unit_of(machine, warp, lane)])
                count += 1
    return count


def arrive(word: u64, count: u64, drops: u32) -> u64:
    """A barrier's word after ``count`` arrivals; threads that drop out are not expected again. Above the count stand bytes to expect first."""
    more, count = count >> PENDING_SHIFT, count & COUNT_MASK
    expected, pending = word & COUNT_MASK, word >> PENDING_SHIFT & COUNT_MASK
    if drops != 0:
        expected = expected - (count if count < expected else expected)
    left = pending - (count if count < pending else pending)
    return end_phase(word, expected, left, more)


def end_phase(word: u64, expected: u64, left: u64, more: u64) -> u64:
    """A barrier's word with other numbers of arrivals and more bytes; its phase ends where neither are missing."""
    missing, phase = (word >> BYTES_SHIFT) + more & BYTES_MASK, word >> PHASE_SHIFT
    if left == 0 and missing == 0:
        left = expected
        phase = phase ^ u64(1)
    return expected | left << PENDING_SHIFT | missing << BYTES_SHIFT | phase << PHASE_SHIFT


def call_function(machine: CoreMachine, operation: Operation, old: u64, value: u64) -> u64:
    """New value of one lane's word by a lane operation of the old value and the operand."""
    found, other = local(u8, 8 * LANES), local(u8, LANES)
    of, by = local(u8, 8 * LANES), local(u8, 8 * LANES)
    give(of, old, operation.element_bytes)
    give(by, value, operation.element_bytes)
    call(machine.functions[operation.combination - FUNCTIONS], found, other, of, by, of)
    return take(found, operation.element_bytes)


def change_further(machine: CoreMachine, operation: Operation, old: u64, value: u64) -> u64:
    """New value by lane operations and arrivals at barriers."""
    what = operation.combination
    if what >= FUNCTIONS:
        return call_function(machine, operation, old, value)
    if what in (EXPECT, COMPLETE):
        more = value if what == EXPECT else u64(0) - value
        return end_phase(old, old & COUNT_MASK, old >> PENDING_SHIFT & COUNT_MASK, more)
    return value | value << PENDING_SHIFT if what == INIT else arrive(old, value, what == ARRIVE_AND_DROP)


def change(machine: CoreMachine, operation: Operation, old: u64, value: u64, other: u64) -> u64:
    """New value of an atomic operation."""
    what = operation.combination
    if what >= INIT:
        return change_further(machine, operation, old, value)
    return change_word(what, operation.element_bytes, old, value, other)


def finds_another(machine: CoreMachine, operation: Operation, space: s32, warp: s64) -> u32:
    """Whether all lanes of a warp compare-and-swap one word with values that it does not hold: each reads it, and it stays.

    Of lanes that contend by compare-and-swap nearly all do, again and again.
    """
    mask, size, compared = machine.masks[warp], operation.element_bytes, operation.places[0]
    if operation.combination != COMPARE_AND_SWAP or operation.elements != 1 or space == IN_LOCAL or mask == 0:
        return 0
    if compared >= 0 and operation.register_bytes != size:
        return 0  # numbers in wider registers are not side by side
    first = s64(popcount((mask - 1) & ~mask))
    addresses = machine.addresses + warp * LANES
    if mask_of(lanes(addresses) != addresses[first]) & mask != 0:
        return 0
    frame, old = frame_of(machine, warp), take(place_of(machine, space, warp, first), size)
    if mask_of(take_lanes(operand(frame, machine.constants, compared), size) == old) & mask != 0:
        return 0
    result = operation.places[LONGEST_VECTOR]
    if result >= 0:
        give_lanes(frame + result, all_lanes(old), mask, size)
    return 1


def change_in_order(machine: CoreMachine, operation: Operation, space: s32) -> None:
    """Atomic operations of all lanes, one after the other."""
    size = operation.element_bytes
    for warp in range(machine.warps):
        if finds_another(machine, operation, space, warp) != 0:
            continue
        for lane in bits_of(machine.masks[warp]):
            for element in range(operation.elements):
                at = place_of(machine, space, warp, lane) + element * s64(size)
                old = take(at, size)
                value = value_of(machine, operation, warp, lane, operation.places[element])
                other = u64(0)
                if operation.combination == COMPARE_AND_SWAP:
                    other = value_of(machine, operation, warp, lane, operation.c)
                give(at, change(machine, operation, old, value, other), size)
                result = operation.places[LONGEST_VECTOR + element]
                if result >= 0:
                    give(frame_of(machine, warp) + result + lane * s64(size), old, size)


def give_zeros(machine: CoreMachine, operation: Operation) -> None:
    """Give zeros to lanes that may not access what they want."""
    first = LONGEST_VECTOR if operation.code == ATOMIC else 0
    if operation.code == STORE:
        return
    for warp in range(machine.warps):
        mask = machine.wrong[warp]
        for element in range(operation.elements):
            place = operation.places[first + element]
            if mask != 0 and place >= 0:
                give_lanes(frame_of(machine, warp) + place, all_lanes(u64(0)), mask, operation.register_bytes)


def choose_marks(size: u64, marks: u8) -> u8:
    """Add READ to the marks of accesses of less than a word: the rest of the word still matters."""
    return marks | MARK_READ if size < 1 << WORD_SHIFT else marks


def mark_words(machine: CoreMachine, address: u64, size: u64, marks: u8) -> None:
    """Mark the words of consecutive bytes."""
    first = (address - machine.arena_base) >> WORD_SHIFT
    last = (address - machine.arena_base + size - 1) >> WORD_SHIFT
    for word in range(s64(first), s64(last) + 1):
        machine.word_marks[word] |= marks


def mark_chunk(machine: CoreMachine, address: u64, marks: u8) -> None:
    """Mark the chunk of an address."""
    machine.chunk_marks[(address - machine.arena_base) >> CHUNK_SHIFT] |= marks


def mark_lanes(machine: CoreMachine, addresses: Pointer[u64], offset: u64, size: u64, mask: u32, marks: u8) -> None:
    """Mark the words and chunks that some lanes accessed."""
    for lane in bits_of(mask):
        at = addresses[lane] + offset
        for behind in range(0, s64(size), 4):
            machine.word_marks[(at - machine.arena_base + u64(behind)) >> WORD_SHIFT] |= marks
        mark_chunk(machine, at, marks)


def mark(machine: CoreMachine, operation: Operation) -> None:
    """Mark the words and chunks of an access."""
    size = measure(operation)
    marks = u8(MARK_READ if operation.code != STORE else 0) | u8(MARK_WRITTEN if operation.code != LOAD else 0)
    marks = choose_marks(size, marks)
    for warp in range(machine.warps):
        mask = machine.masks[warp]
        if mask == 0:
            continue
        address = machine.addresses + warp * LANES
        order = find_order(lanes(address), mask, size)
        if order == IN_A_ROW:
            mark_words(machine, address[0], size * LANES, marks)
            mark_chunk(machine, address[0], marks)
            mark_chunk(machine, address[LANES - 1], marks)
        else:
            mark_lanes(machine, address, 0, size, u32(1) if order == AT_ONE_PLACE else mask, marks)
