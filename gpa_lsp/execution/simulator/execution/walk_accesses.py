"""Loads, stores, atomic operations and copies of warps, and notes of their sectors and passes: typed Python, executed as machine code."""

from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from gpa_lsp.execution.emulator.semantics.words import change_word, give, take
from gpa_lsp.execution.simulator.execution.memory_spaces import FIRST_BANK, GENERIC, WORD_STRIDE, MemorySpace
from gpa_lsp.execution.simulator.execution.walk_model import (
    MOST_LANE_SECTORS,
    Code,
    CoreBytes,
    CoreWalk,
    Fault,
    File,
    Flag,
    StepRow,
    Stop,
)
from gpa_lsp.execution.simulator.execution.walk_registers import (
    ALL_LANES,
    find_unknown,
    is_touched,
    mark,
    read,
    read_predicate,
    write,
    write_predicate,
)
from gpa_lsp.foundation.machine_code.types import (
    LANES,
    Pointer,
    all_lanes,
    bits_of,
    fill,
    lane_numbers,
    lanes,
    local,
    mask_of,
    popcount,
    put,
    s32,
    s64,
    trailing_zeros,
    u8,
    u32,
    u64,
    view,
)

_SECTOR_SHIFT, _LINE_SHIFT = 5, 7  # of bytes
_SECTORS_PER_LINE_SHIFT = _LINE_SHIFT - _SECTOR_SHIFT
_BANK_BYTES = 4
_BANKED_BYTES = 32 * _BANK_BYTES  # What a pass through shared memory moves at most
_SEVERAL = -2  # In place of a space: lanes mean several


# Where accesses go


def find_bits(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """The lanes whose addresses count: of LDSM those that hold the addresses of rows, of LDGSTS those that fetch."""
    bits = walk.bits[index]
    if step.code == Code.LOAD_MATRIX:
        bits &= u32((u64(1) << u64(step.tables[0])) - 1)
    elif step.code == Code.COPY and step.predicate_count != 0:
        bits &= read_predicate(walk, step.predicates[0], walk.chosen[index])
    return bits


def add_up(walk: CoreWalk, step: StepRow, index: s64, first: s64, last: s64, to: Pointer[s64]) -> None:
    """The sum of some sources."""
    part, total = local(u64, LANES), all_lanes(u64(0))
    for number in range(first, last):
        read(walk, step.sources[number], index, part)
        total += lanes(part)
    put(to, s64(total))


def find_space(step: StepRow, addresses: Pointer[s64], bits: u32) -> s32:
    """The space of an access; generic addresses become addresses in it."""
    if step.space != GENERIC:
        return step.space
    in_shared = mask_of(u64(lanes(addresses) - SHARED_WINDOW) < WINDOW_BYTES) & bits
    in_local = mask_of(u64(lanes(addresses) - LOCAL_WINDOW) < WINDOW_BYTES) & bits
    if in_shared | in_local == 0:
        return MemorySpace.GLOBAL
    if in_shared == bits:
        put(addresses, lanes(addresses) - SHARED_WINDOW)
        return MemorySpace.SHARED
    if in_local == bits:
        put(addresses, lanes(addresses) - LOCAL_WINDOW)
        return MemorySpace.LOCAL
    return _SEVERAL


def find_places(
    walk: CoreWalk, index: s64, space: s32, width: s64, bits: u32, addresses: Pointer[s64], places: Pointer[s64]
) -> s64:
    """Places in the bytes of a space; the fault where a lane goes outside of what is its own, or is not aligned."""
    warp, address, outside = walk.chosen[index], lanes(addresses), u32(0)
    place, aligned = address - walk.global_base, width
    if space != MemorySpace.GLOBAL:
        address &= ALL_LANES
        put(addresses, address)
        place = address
        if space == MemorySpace.SHARED:
            outside = mask_of(address + width > walk.shared_bytes)
            place = address + walk.shared_starts[warp]
        elif space == MemorySpace.LOCAL:
            outside = mask_of(address + width > walk.local_bytes)
            start = warp * walk.local_bytes * LANES + s64(lane_numbers()) * 4
            place = start + (address >> 2) * WORD_STRIDE + (address & 3)
            aligned = width if width < 4 else 4
        else:
            aligned = 1
    put(places, place)
    if outside & bits != 0:
        return Fault.OUTSIDE
    return Fault.MISALIGNED if mask_of(place & (aligned - 1) != 0) & bits != 0 else 0


def locate(walk: CoreWalk, step: StepRow, index: s64) -> s64:
    """Find the addresses and places of an access of a warp; its fault."""
    bits, addresses, fault = find_bits(walk, step, index), view(walk.results, s64) + index * LANES, 0
    if find_unknown(walk, step.first_address, step.address_count, index) & walk.bits[index] != 0:
        return Fault.ADDRESS
    first, last = s64(step.address_sources), s64(step.address_sources) + s64(step.copied_sources)
    if step.code == Code.COPY:
        to = walk.targets + index * LANES
        add_up(walk, step, index, first, last, to)
        put(to, lanes(to) + step.target_offset)
        fault = find_places(walk, index, MemorySpace.SHARED, s64(step.width), walk.bits[index], to, to)
    add_up(walk, step, index, 0, first, addresses)
    put(addresses, lanes(addresses) + step.offset)
    space = find_space(step, addresses, bits)
    if fault != 0 or space == _SEVERAL:
        walk.spaces[index] = u8(MemorySpace.SHARED)
        return fault if fault != 0 else Fault.SEVERAL
    walk.spaces[index] = u8(space)
    return find_places(walk, index, space, s64(step.width), bits, addresses, walk.places + index * LANES)


# What is noted


def list_distinct(
    given: Pointer[s64], shift: s64, base: s64, stride: s64, words: s64, bits: u32, found: Pointer[s64]
) -> s64:
    """The different numbers of lanes, shifted, and of further words, ascending; how many there are."""
    count = 0
    for word in range(words):
        for lane in bits_of(bits):
            number = (given[lane] >> shift) + base + word * stride
            to = count
            while to > 0 and found[to - 1] > number:
                to -= 1
            if to == 0 or found[to - 1] != number:
                for place in range(count, to, -1):
                    found[place] = found[place - 1]
                found[to] = number
                count += 1
    return count


def count_passes(addresses: Pointer[s64], bits: u32, unit_bytes: s64, parts: s64, adds_up: u32) -> s64:
    """Passes of a request that goes in so many parts: of each, the most different units of one group of banks; of atomic operations the most
    lanes.
    """
    passes, shift, size = 0, trailing_zeros(unit_bytes), LANES // parts
    members = local(u32, LANES)  # of a group of banks, lanes with different units
    for part in range(parts):
        fill(members, 0, 4 * LANES)
        most = 0
        for lane in bits_of(bits & u32((u64(1) << size) - 1 << part * size)):
            unit = addresses[lane] >> shift
            group = unit & (_BANKED_BYTES // unit_bytes - 1)
            known = u32(0)
            for other in bits_of(members[group]):
                known |= u32(addresses[other] >> shift == unit)
            if known == 0 or adds_up != 0:
                members[group] |= u32(1) << lane
                count = s64(popcount(members[group]))
                most = count if count > most else most
        passes += most
    return passes


def is_paired(addresses: Pointer[s64], bits: u32, step: s64) -> u32:
    """Whether lanes so far from each other have equal addresses, or are not both active."""
    for lane in bits_of(bits):
        if bits >> (lane ^ step) & 1 and addresses[lane] != addresses[lane ^ step]:
            return 0
    return 1


def count_wavefronts(addresses: Pointer[s64], bits: u32, width: s64, is_load: u32, is_atomic: u32) -> s64:
    """:func:`~gpa_lsp.code.symbolic_accesses.requests.count_wavefronts` of one access."""
    unit_bytes = width if width > _BANK_BYTES else _BANK_BYTES
    parts = unit_bytes // _BANK_BYTES
    passes = count_passes(addresses, bits, unit_bytes, parts, is_atomic)
    if (
        is_load == 0
        or (parts != 2 and parts != 4)
        or (is_paired(addresses, bits, 1) == 0 and is_paired(addresses, bits, 2) == 0)
    ):
        return passes
    joined = count_passes(addresses, bits, unit_bytes, parts // 2, is_atomic)
    return joined if joined < passes else passes


def count_repeats(addresses: Pointer[s64], bits: u32) -> s64:
    """Sum over the lines of 128 bytes: the most lanes with one address in it."""
    count, left = 0, bits
    while left != 0:
        line, in_line, most = addresses[trailing_zeros(left)] >> _LINE_SHIFT, u32(0), 0
        for lane in bits_of(left):
            in_line |= u32(addresses[lane] >> _LINE_SHIFT == line) << lane
        left &= ~in_line
        for lane in bits_of(in_line):
            same = 0
            for other in bits_of(in_line):
                same += addresses[other] == addresses[lane]
            most = same if same > most else most
        count += most
    return count


def note_access(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """Passes and sectors of an access of a warp."""
    bits, space, width, passes, found = find_bits(walk, step, index), s32(walk.spaces[index]), s64(step.width), 0, 0
    if bits == 0:
        return
    warp, addresses, sectors = (
        walk.chosen[index],
        view(walk.results, s64) + index * LANES,
        walk.sectors + walk.sector_count,
    )
    is_load = u32(step.code == Code.LOAD or step.code == Code.COPY or step.code == Code.LOAD_MATRIX)
    is_atomic = u32(step.code == Code.ATOMIC)
    if space >= FIRST_BANK:  # the unit answers one address after the other
        passes = list_distinct(addresses, 0, 0, 0, 1, bits, sectors)
    elif space == MemorySpace.SHARED:
        passes = count_wavefronts(addresses, bits, width, is_load, is_atomic)
    else:
        if space == MemorySpace.LOCAL:
            words = width // 4 if width > 4 else 1
            stride, places = WORD_STRIDE >> _SECTOR_SHIFT, walk.places + index * LANES
            found = list_distinct(places, _SECTOR_SHIFT, walk.local_sector, stride, words, bits, sectors)
        else:
            found = list_distinct(addresses, _SECTOR_SHIFT, 0, 0, 1, bits, sectors)
        if space == MemorySpace.GLOBAL and is_load != 0:
            least = (width + 3) // 4
            passes = count_wavefronts(addresses, bits, width, 1, 0)
            passes = passes if passes > least else least
        elif space == MemorySpace.GLOBAL and is_atomic != 0:
            passes = count_repeats(addresses, bits)
        else:
            for place in range(found):
                line = sectors[place] >> _SECTORS_PER_LINE_SHIFT
                passes += place == 0 or sectors[place - 1] >> _SECTORS_PER_LINE_SHIFT != line
        walk.sector_count += found
    row = walk.access_count
    walk.access_warp[row], walk.access_place[row] = warp, walk.lengths[warp] + walk.offset
    walk.access_passes[row], walk.access_sectors[row] = passes, found
    walk.access_count = row + 1


# What is moved


def is_inside(memory: CoreBytes, place: s64, size: s64) -> u32:
    """Whether bytes are within a memory."""
    return u32(place >= 0 and place + size <= memory.size)


def load_value(memory: CoreBytes, place: s64, size: s64, sign_bytes: s32) -> u64:
    """Bytes of a lane, extended to a word; 0 outside of the memory."""
    if is_inside(memory, place, size) == 0:
        return 0
    found = take(memory.data + place, size)
    if sign_bytes == 0 or size >= 4:
        return found
    unused = u64(64 - 8 * size)
    return u64(s64(found << unused) >> s64(unused)) & ALL_LANES


def store_value(memory: CoreBytes, place: s64, size: s64, value: u64, unknown: u32) -> None:
    """Write bytes, of which some bits may say that they have no known value; those outside of the memory are dropped."""
    if is_inside(memory, place, size) == 0:
        return
    give(memory.data + place, value, size)
    if memory.unknown is not None:
        for word in range(place >> 2, (place + size + 3) >> 2):
            memory.unknown[word] = u8(unknown & 1)


def is_unknown(memory: CoreBytes, place: s64, size: s64) -> u32:
    """Whether bytes have no known value."""
    if is_inside(memory, place, size) == 0:
        return 1
    found = u32(0)
    if memory.unknown is not None:
        for word in range(place >> 2, (place + size + 3) >> 2):
            found |= u32(memory.unknown[word])
    return found


def load(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """Fill the target; the lanes in which it is not known."""
    memory, found, unknown = walk.memories[s64(walk.spaces[index])], local(u32, LANES), u32(0)
    size, stride = size_of(step), stride_of(walk, index)
    bits = u32(ALL_LANES) if step.target_file == File.UNIFORM else walk.bits[index]
    for word in range(s64(step.words)):
        fill(found, 0, 4 * LANES)
        for lane in bits_of(bits):
            place = walk.places[index * LANES + lane] + word * stride
            found[lane] = u32(load_value(memory, place, size, step.sign_bytes))
            unknown |= is_unknown(memory, place, size) << lane
        write(walk, step, word, index, found)
    return unknown


def store(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """Write the target's registers to memory."""
    memory, values = walk.memories[s64(walk.spaces[index])], local(u32, LANES)
    size, stride = size_of(step), stride_of(walk, index)
    unknown = find_unknown(walk, step.first_read, step.read_count, index)
    for word in range(s64(step.words)):
        row = (s64(step.target) + word) * walk.warps + walk.chosen[index]
        value = all_lanes(u32(0))
        if step.target >= 0 and step.target_file == File.REGISTER:
            value = lanes(walk.registers + row * LANES)
        elif step.target >= 0:
            value = all_lanes(walk.uniform[row])
        put(values, value)
        for lane in bits_of(walk.bits[index]):
            place = walk.places[index * LANES + lane] + word * stride
            store_value(memory, place, size, u64(values[lane]), unknown >> lane)


def copy_lanes(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """Global memory to shared memory; zeros by the lanes that do not fetch."""
    fetched, source, to = find_bits(walk, step, index), walk.memories[MemorySpace.GLOBAL], walk.memories[1]
    for word in range(s64(step.words)):
        for lane in bits_of(walk.bits[index]):
            place, target = index * LANES + lane, walk.targets[index * LANES + lane] + 4 * word
            value, unknown = u64(0), u32(0)
            if fetched >> lane & 1:
                value = load_value(source, walk.places[place] + 4 * word, 4, 0)
                unknown = is_unknown(source, walk.places[place] + 4 * word, 4)
            store_value(to, target, 4, value, unknown)


def change(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """Atomic operations, one lane after the other; the lanes in which what they find is not known."""
    memory, size, bits = walk.memories[s64(walk.spaces[index])], s64(step.width), walk.bits[index]
    if step.flags & Flag.TRIES:
        done = can_change(step, walk.spaces[index])
        write_predicate(walk, step.outs[0], index, bits if done != 0 else u32(0))
        if done == 0:
            return 0
    value, other, old = local(u64, LANES), local(u64, LANES), local(u64, LANES)
    given, unknown, what = find_unknown(walk, step.first_read, step.read_count, index), u32(0), step.tables[0]
    fill(value, 0, 8 * LANES)
    fill(other, 0, 8 * LANES)
    if step.source_count > step.address_sources:
        read(walk, step.sources[step.address_sources], index, value)
    if step.source_count > step.address_sources + 1:
        read(walk, step.sources[step.address_sources + 1], index, other)
    for lane in bits_of(bits):
        place = walk.places[index * LANES + lane]
        found, before = load_value(memory, place, size, 0), is_unknown(memory, place, size)
        old[lane] = found
        unknown |= before << lane
        if what < 0:
            store_value(memory, place, size, found, 1)
            continue
        if step.flags & Flag.SUCCEEDS:
            old[lane] = u64(found == value[lane])
        made = change_word(what, step.width, found, value[lane], other[lane])
        store_value(memory, place, size, made, before | given >> lane)
    words = local(u32, LANES)
    for word in range(s64(step.words)):
        put(words, u32(lanes(old) >> u64(32 * word)))
        write(walk, step, word, index, words)
    if step.flags & Flag.SUCCEEDS and step.out_count != 0:
        write_predicate(walk, step.outs[0], index, mask_of(lanes(old) != 0))
    return unknown if what >= 0 else bits


def can_change(step: StepRow, space: s32) -> u32:
    """Whether the memory of a space has an atomic operation that is tried there."""
    return u32(space == MemorySpace.GLOBAL or (space == MemorySpace.SHARED and step.flags & Flag.GLOBAL_ONLY == 0))


def stride_of(walk, index):
    """Bytes from a word of a lane to its next."""
    return s64(WORD_STRIDE if walk.spaces[index] == MemorySpace.LOCAL else 4)


def size_of(step):
    """Bytes of a word."""
    return s64(step.width if step.width < 4 else 4)


def find_written_unknown(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """The lanes that write what is not known to memory."""
    found = u32(0)
    if step.code == Code.STORE or step.code == Code.ATOMIC:
        found = find_unknown(walk, step.first_read, step.read_count, index)
        if step.code == Code.ATOMIC and step.tables[0] < 0:
            found = u32(ALL_LANES)
    elif step.code == Code.COPY:
        source = walk.memories[MemorySpace.GLOBAL]
        for lane in bits_of(find_bits(walk, step, index)):
            found |= is_unknown(source, walk.places[index * LANES + lane], s64(step.width)) << lane
    return found & walk.bits[index]


def can_access(walk: CoreWalk, step: StepRow) -> u32:
    """Whether an access can be done; else why not is said."""
    most_sectors = walk.count * LANES * MOST_LANE_SECTORS
    if walk.access_count + walk.count > walk.access_room or walk.sector_count + most_sectors > walk.sector_room:
        walk.stop = Stop.ROOM
        return 0
    is_right = u32(1)
    for index in range(walk.count):
        fault = locate(walk, step, index) if walk.bits[index] != 0 else 0
        walk.faults[index] = u8(fault)
        is_right &= u32(fault == 0)
    if is_right == 0:
        walk.stop = Stop.FAULT
        return 0
    for index in range(walk.count):
        if walk.bits[index] != 0 and step.flags & Flag.ASKED:
            space = s64(MemorySpace.SHARED if step.code == Code.COPY else walk.spaces[index])
            if walk.memories[space].unknown is None and find_written_unknown(walk, step, index) != 0:
                walk.stop, walk.unmarked = Stop.MARKS, space
                return 0
    return 1


def move(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """Do an access by one warp; the lanes in which its results are unknown."""
    if step.code == Code.LOAD_MATRIX:  # what it loads is not followed further
        return walk.bits[index]
    if step.flags & Flag.ASKED == 0:
        return 0
    if step.code == Code.LOAD or step.code == Code.LOAD_CONSTANT:
        return load(walk, step, index) & walk.bits[index]
    if step.code == Code.STORE:
        store(walk, step, index)
    elif step.code == Code.COPY:
        copy_lanes(walk, step, index)
    else:
        return change(walk, step, index)
    return 0


def access(walk: CoreWalk, step: StepRow) -> u32:
    """Do an access; 0 where it cannot be done, or not yet."""
    if can_access(walk, step) == 0:
        return 0
    any_lane = u32(0)
    for index in range(walk.count):
        walk.unknown_bits[index] = 0
        if walk.bits[index] != 0:
            if walk.keeps_walks != 0:
                note_access(walk, step, index)
            walk.unknown_bits[index] = move(walk, step, index)
            any_lane |= walk.unknown_bits[index]
    if any_lane != 0 or is_touched(walk, step) != 0:
        mark(walk, step, walk.unknown_bits)
    return 1
