"""Steps of some warps, one after the other until one that Python has to do: typed Python, executed as machine code. What numpy has of accesses
(:mod:`memory_steps`) is the same, bit for bit."""

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.execution.emulator.semantics.words import combine_bits, permute
from gpa_lsp.execution.simulator.execution.memory_spaces import MemorySpace
from gpa_lsp.execution.simulator.execution.walk_model import (
    MOST_LANE_SECTORS,
    MOST_SOURCES,
    Code,
    CoreBytes,
    CoreWalk,
    Extension,
    File,
    Flag,
    Join,
    PredicateBit,
    SourceRow,
    StepRow,
)
from gpa_lsp.foundation.machine_code.types import (
    LANES,
    Pointer,
    all_lanes,
    bits_of,
    call,
    copy,
    fill,
    lane_numbers,
    lanes,
    lanes_of,
    local,
    mask_of,
    popcount,
    put,
    s8,
    s16,
    s32,
    s64,
    trailing_zeros,
    u8,
    u16,
    u32,
    u64,
    view,
)

_ALL_LANES = 0xFFFFFFFF
_SECTOR_SHIFT, _SECTORS_PER_LINE_SHIFT = 5, 2
_WORD_STRIDE = 4 * LANES  # of local memory
_BANK_BYTES = 4
_BANKED_BYTES = 32 * _BANK_BYTES  # What a pass through shared memory moves at most


# Registers and predicates


def read_predicate(walk: CoreWalk, predicate: s32, warp: s64) -> u32:
    """The lanes in which a predicate holds."""
    place = s64(predicate & 7) * walk.warps + warp
    found = u32(0)
    if predicate & PredicateBit.UNIFORM:
        found = spread(u32(walk.uniform_predicates[place]))
    else:
        found = mask_of(lanes(walk.predicates + place * LANES) != 0)
    return ~found if predicate & PredicateBit.NEGATED else found


def write_predicate(walk: CoreWalk, predicate: s32, index: s64, value: u32) -> None:
    """A predicate, in the lanes that execute; of a uniform one, lane 0 counts."""
    if predicate < 0:
        return
    place = s64(predicate & 7) * walk.warps + walk.chosen[index]
    if predicate & PredicateBit.UNIFORM:
        walk.uniform_predicates[place] = u8(value & 1)
    else:
        marks = walk.predicates + place * LANES
        put(marks, u8(lanes_of(value)) if lanes_of(walk.bits[index]) else lanes(marks))


def read(walk: CoreWalk, source: SourceRow, warp: s64, to: Pointer[u64]) -> None:
    """The 32 values of a source."""
    place = s64(source.number) * walk.warps + warp
    value = all_lanes(source.value)
    if source.file == File.REGISTER:
        value = u64(lanes(walk.registers + place * LANES))
        if source.is_pair != 0:
            value |= u64(lanes(walk.registers + (place + walk.warps) * LANES)) << 32
    elif source.file == File.UNIFORM:
        one = u64(walk.uniform[place])
        if source.is_pair != 0:
            one |= u64(walk.uniform[place + walk.warps]) << 32
        value = all_lanes(one)
    value = value >> source.shift & source.mask
    if source.scale != 1:
        value *= source.scale
    value = (value ^ source.flip) + source.added
    if source.extension == Extension.ZERO:
        value &= _ALL_LANES
    elif source.extension == Extension.SIGN:
        value = u64(s64(value << 32) >> 32)
    put(to, value)


def read_sources(walk: CoreWalk, step: StepRow, warp: s64, to: Pointer[u64]) -> None:
    """The 32 values of each source, 0 of those that are missing."""
    fill(to, 0, 8 * LANES * MOST_SOURCES)
    for number in range(s64(step.source_count)):
        read(walk, step.sources[number], warp, to + number * LANES)


def write(walk: CoreWalk, step: StepRow, word: s64, index: s64, values: Pointer[u32]) -> None:
    """A register of the target, in the lanes that execute; of a uniform one, what lane 0 has counts."""
    if step.target < 0:
        return
    place = (s64(step.target) + word) * walk.warps + walk.chosen[index]
    if step.target_file == File.UNIFORM:
        walk.uniform[place] = values[0]
    else:
        to = walk.registers + place * LANES
        put(to, lanes(values) if lanes_of(walk.bits[index]) else lanes(to))


# Arithmetic


def compute(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """What goes to the target; predicates are written at once."""
    sources = local(u64, LANES * MOST_SOURCES)
    read_sources(walk, step, walk.chosen[index], sources)
    if step.code >= Code.FROM_PREDICATES:
        move_predicates(walk, step, index, sources)
    elif step.code >= Code.VALUE:
        compute_value(walk, step, index, sources)
    elif step.code <= Code.LOAD_ADDRESS:
        compute_sum(walk, step, index, sources)
    else:
        compute_bits(walk, step, index, sources)


def compute_sum(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """Sums and products, with their carries."""
    code, a, b = step.code, sources, sources + LANES
    product = lanes(a)
    if code == Code.ADD:
        product += lanes(b)
    elif code == Code.MULTIPLY:
        product = product * lanes(b) & _ALL_LANES
    elif code == Code.MULTIPLY_WIDE:
        product *= lanes(b)
    else:
        shifted = (product | lanes(b) << 32) << step.tables[0]
        product = (shifted >> (32 if step.flags & Flag.HIGH else 0)) & _ALL_LANES
    total = product + lanes(b + LANES)
    for number in range(s64(step.predicate_count)):
        total += u64(lanes_of(read_predicate(walk, step.predicates[number], walk.chosen[index])))
    for place in range(s64(step.out_count)):
        over = mask_of(total < product) if code == Code.MULTIPLY_WIDE else mask_of(total >> 32 > u64(place))
        write_predicate(walk, step.outs[place], index, over)
    put(walk.results + index * LANES, total)


def compute_bits(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """Logic, comparisons, shifts and choices."""
    code, table, to = step.code, step.tables[0], walk.results + index * LANES
    a, b, c = sources, sources + LANES, sources + 2 * LANES
    if code == Code.LOGIC:
        found = combine_bits(u32(lanes(a)), u32(lanes(b)), u32(lanes(c)), table)
        put(to, u64(found))
        truth = mask_of(found != 0)
        for number in range(s64(step.predicate_count)):
            joined = read_predicate(walk, step.predicates[number], walk.chosen[index])
            truth = truth & joined if step.flags & Flag.AND else truth | joined
        if step.out_count != 0:
            write_predicate(walk, step.outs[0], index, truth)
    elif code == Code.SHIFT:
        value, count, most = lanes(a) | lanes(c) << 32, lanes(b), u64(table)
        count = count & most if step.flags & Flag.WRAPS else (count if count < most else most)
        if step.flags & Flag.LEFT:
            value <<= count
        elif step.flags & Flag.SIGNED:
            value = u64(s64(value) >> count)
        else:
            value >>= count
        put(to, value)
    elif code == Code.PERMUTE:
        put(to, u64(permute(u32(lanes(a)), u32(lanes(c)), u32(lanes(b)))))
    else:
        decide(walk, step, index, sources)


def decide(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """What depends on predicates."""
    a, b, warp = sources, sources + LANES, walk.chosen[index]
    first = read_predicate(walk, step.predicates[0], warp)
    second, third = read_predicate(walk, step.predicates[1], warp), read_predicate(walk, step.predicates[2], warp)
    less, equal = mask_of(s64(lanes(a)) < s64(lanes(b))), mask_of(lanes(a) == lanes(b))
    if step.code == Code.PREDICATE_LOGIC:
        for place in range(s64(step.out_count)):
            write_predicate(walk, step.outs[place], index, combine_bits(first, second, third, step.tables[place]))
    elif step.code == Code.COMPARE:
        table, more = step.tables[0], ~(less | equal)
        equal &= second if step.predicate_count > 1 else u32(_ALL_LANES)  # of upper words, where the lower ones are
        truth = (less if table & 1 else u32(0)) | (equal if table & 2 else u32(0)) | (more if table & 4 else u32(0))
        for place in range(s64(step.out_count)):
            write_predicate(walk, step.outs[place], index, join(truth if place == 0 else ~truth, first, step.join))
    else:
        chosen = first if step.code == Code.SELECT else ~(first ^ less)
        put(walk.results + index * LANES, lanes(a) if lanes_of(chosen) else lanes(b))


def compute_value(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """What a function of values gives: a number, or two truths."""
    holds, found = u32(_ALL_LANES), walk.results + index * LANES
    if step.predicate_count != 0:
        holds = read_predicate(walk, step.predicates[0], walk.chosen[index])
    chosen = local(u64, LANES)
    put(chosen, u64(lanes_of(holds)))
    function = walk.functions[step.tables[0]]
    call(function, found, sources, sources + LANES, sources + 2 * LANES, chosen, step.offset)
    for place in range(s64(step.out_count)):
        truth = mask_of(lanes(found) == _ALL_LANES)
        if step.code == Code.TRUTH:
            truth = join(mask_of((lanes(found) >> u64(place) & 1) != 0), holds, step.join)
        write_predicate(walk, step.outs[place], index, truth)


def join(one: u32, other: u32, how: s32) -> u32:
    """Two truths of all lanes."""
    return one & other if how == Join.AND else (one | other if how == Join.OR else one ^ other)


def move_predicates(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """Predicates as bits of a word, or back."""
    found, chosen = all_lanes(u64(0)), u64(step.offset)
    for number in range(7):
        if chosen >> u64(number) & 1 == 0:
            continue
        predicate = s32(number) | step.tables[1]
        if step.code == Code.FROM_PREDICATES:
            found |= u64(lanes_of(read_predicate(walk, predicate, walk.chosen[index]))) << u64(number)
        else:
            write_predicate(walk, predicate, index, mask_of((lanes(sources) >> u64(number) & 1) != 0))
    kept = lanes(sources) & ~(chosen << u64(step.tables[0]))
    put(walk.results + index * LANES, kept | found << u64(step.tables[0]))


# Marks of what is not known


def find_unknown(walk: CoreWalk, first: s32, count: s32, index: s64) -> u32:
    """The lanes of a chosen warp in which any of some resources is not known."""
    found = u32(0)
    if walk.has_unknown != 0:
        for place in range(s64(first), s64(first) + s64(count)):
            found |= walk.unknown[s64(walk.resources[place]) * walk.warps + walk.chosen[index]]
    return found


def is_touched(walk: CoreWalk, step: StepRow) -> u32:
    """Whether anything that a step reads or writes is not known anywhere."""
    found = u32(0)
    if walk.has_unknown != 0:
        for place in range(s64(step.read_count)):
            found |= walk.tainted[walk.resources[step.first_read + place]]
        for place in range(s64(step.write_count)):
            found |= walk.tainted[walk.resources[step.first_write + place]]
    return found


def mark(walk: CoreWalk, step: StepRow, unknown: Pointer[u32]) -> None:
    """Note in which lanes what a step wrote is not known."""
    for index in range(walk.count):
        walk.has_unknown |= unknown[index] & walk.bits[index] != 0
    for place in range(s64(step.first_write), s64(step.first_write) + s64(step.write_count)):
        resource = s64(walk.resources[place])
        kind, marks = resource >> 8, walk.unknown + resource * walk.warps
        for index in range(walk.count):
            warp, written, found = walk.chosen[index], walk.bits[index], unknown[index] & walk.bits[index]
            if kind == ResourceKind.UNIFORM_REGISTER or kind == ResourceKind.UNIFORM_PREDICATE:
                written, found = spread(written), spread(found)
            marks[warp] = found | (marks[warp] & ~written)
        any_lane = u32(0)
        for warp in range(walk.warps):
            any_lane |= marks[warp]
        walk.tainted[resource] = u8(any_lane != 0)


def spread(bits: u32) -> u32:
    """All lanes, where there is one."""
    return u32(_ALL_LANES) if bits != 0 else u32(0)


# Memory


def find_places(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """Addresses and places in the bytes of the space; 0 where a lane goes outside of what is its own, or is not aligned."""
    sources, warp, width, wrong = local(u64, LANES * MOST_SOURCES), walk.chosen[index], s64(step.width), u32(0)
    read_sources(walk, step, warp, sources)
    address = s64(lanes(sources) + lanes(sources + LANES) + lanes(sources + 2 * LANES)) + step.offset
    place = address - walk.global_base
    if step.space != MemorySpace.GLOBAL:
        address &= _ALL_LANES
        is_shared = step.space == MemorySpace.SHARED
        wrong = mask_of(address + width > (walk.shared_bytes if is_shared else walk.local_bytes))
        place = address + walk.shared_starts[warp]
        if step.space == MemorySpace.LOCAL:
            start = warp * walk.local_bytes * LANES + s64(lane_numbers()) * 4
            place = start + (address >> 2) * _WORD_STRIDE + (address & 3)
            width = width if width < 4 else 4
    put(view(walk.results, s64) + index * LANES, address)
    put(walk.places + index * LANES, place)
    wrong |= mask_of(place & (width - 1) != 0)
    return u32(wrong & walk.bits[index] == 0)


def list_sectors(walk: CoreWalk, step: StepRow, bits: u32, shown: Pointer[s64], sectors: Pointer[s64]) -> s64:
    """The different sectors of an access, ascending; how many there are."""
    words, base, count = 1, 0, 0
    if step.space == MemorySpace.LOCAL:
        base = walk.local_sector
        if step.width > 4:
            words = s64(step.width) // 4
    for word in range(words):
        for lane in bits_of(bits):
            sector = (shown[lane] >> _SECTOR_SHIFT) + base + word * (_WORD_STRIDE >> _SECTOR_SHIFT)
            to = count
            while to > 0 and sectors[to - 1] > sector:
                to -= 1
            if to == 0 or sectors[to - 1] != sector:
                for place in range(count, to, -1):
                    sectors[place] = sectors[place - 1]
                sectors[to] = sector
                count += 1
    return count


def count_passes(addresses: Pointer[s64], bits: u32, unit_bytes: s64, parts: s64) -> s64:
    """Passes of a request that goes in so many parts: of each, the most different units of one group of banks."""
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
            if known == 0:
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


def count_wavefronts(addresses: Pointer[s64], bits: u32, width: s64, is_load: u32) -> s64:
    """:func:`~gpa_lsp.code.symbolic_accesses.requests.count_wavefronts` of one load or store."""
    unit_bytes = width if width > _BANK_BYTES else _BANK_BYTES
    parts = unit_bytes // _BANK_BYTES
    passes = count_passes(addresses, bits, unit_bytes, parts)
    if (
        is_load == 0
        or (parts != 2 and parts != 4)
        or (is_paired(addresses, bits, 1) == 0 and is_paired(addresses, bits, 2) == 0)
    ):
        return passes
    joined = count_passes(addresses, bits, unit_bytes, parts // 2)
    return joined if joined < passes else passes


def note_access(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """Passes and sectors of an access of a warp."""
    passes, found, width, is_load = 0, 0, s64(step.width), u32(step.code == Code.LOAD)
    warp, bits, addresses = walk.chosen[index], walk.bits[index], view(walk.results, s64) + index * LANES
    is_shared, is_local = step.space == MemorySpace.SHARED, step.space == MemorySpace.LOCAL
    is_banked = is_shared or (is_load != 0 and not is_local)
    if is_banked:
        least = 0 if is_shared else (width + 3) // 4
        passes = count_wavefronts(addresses, bits, width, is_load)
        passes = passes if passes > least else least
    if not is_shared:
        sectors, line = walk.sectors + walk.sector_count, -1
        found = list_sectors(walk, step, bits, walk.places + index * LANES if is_local else addresses, sectors)
        for place in range(0 if is_banked else found):
            passes += place == 0 or sectors[place] >> _SECTORS_PER_LINE_SHIFT != line
            line = sectors[place] >> _SECTORS_PER_LINE_SHIFT
        walk.sector_count += found
    row = walk.access_count
    walk.access_warp[row], walk.access_place[row] = warp, walk.lengths[warp] + walk.offset
    walk.access_passes[row], walk.access_sectors[row] = passes, found
    walk.access_count = row + 1


def load_value(memory: CoreBytes, place: s64, size: s64, sign_bytes: s32) -> u32:
    """Bytes of a lane, extended to a word; 0 outside of the memory."""
    if place < 0 or place + size > memory.size:
        return 0
    at = memory.data + place
    if size == 4:
        return view(at, u32)[0]
    if size == 2:
        return u32(s32(view(at, s16)[0])) if sign_bytes != 0 else u32(view(at, u16)[0])
    return u32(s32(view(at, s8)[0])) if sign_bytes != 0 else u32(at[0])


def load(walk: CoreWalk, step: StepRow, index: s64) -> u32:
    """Fill the target; the lanes in which it is not known."""
    memory, found, unknown = walk.memories[step.space], local(u32, LANES), u32(0)
    for word in range(s64(step.words)):
        fill(found, 0, 4 * LANES)
        for lane in bits_of(walk.bits[index]):
            place = walk.places[index * LANES + lane] + word * stride_of(step)
            found[lane] = load_value(memory, place, size_of(step), step.sign_bytes)
            is_known = place >= 0 and place < memory.size
            if is_known and memory.unknown is not None:
                is_known = memory.unknown[place >> 2] == 0
            unknown |= u32(not is_known) << lane
        write(walk, step, word, index, found)
    return unknown


def store(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """Write the target's registers to memory."""
    memory, size, values = walk.memories[step.space], size_of(step), local(u32, LANES)
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
            place = walk.places[index * LANES + lane] + word * stride_of(step)
            if place < 0:
                continue
            if place + size <= memory.size:
                copy(memory.data + place, values + lane, size)
            if place < memory.size and memory.unknown is not None:
                memory.unknown[place >> 2] = u8(unknown >> lane & 1)


def stride_of(step):
    """Bytes from a word of a lane to its next."""
    return _WORD_STRIDE if step.space == MemorySpace.LOCAL else 4


def size_of(step):
    """Bytes of a word."""
    return s64(step.width if step.width < 4 else 4)


def access(walk: CoreWalk, step: StepRow) -> u32:
    """Do a load or a store; 0 where Python has to: it goes nowhere, depends on what is not known, or there is no room to note it."""
    is_asked, is_store = step.flags & Flag.ASKED, step.code == Code.STORE
    has_no_marks = is_store and is_asked != 0 and walk.memories[step.space].unknown is None
    most_sectors = walk.count * LANES * MOST_LANE_SECTORS
    if walk.access_count + walk.count > walk.access_room or walk.sector_count + most_sectors > walk.sector_room:
        return 0
    for index in range(walk.count):
        bits = walk.bits[index]
        if bits != 0:
            decides = find_unknown(walk, step.first_address, step.address_count, index)
            if has_no_marks:
                decides |= find_unknown(walk, step.first_read, step.read_count, index)
            if decides & bits != 0 or find_places(walk, step, index) == 0:
                return 0
    any_lane = u32(0)
    for index in range(walk.count):
        walk.unknown_bits[index] = 0
        if walk.bits[index] == 0:
            continue
        if walk.keeps_walks != 0:
            note_access(walk, step, index)
        if is_asked != 0 and is_store:
            store(walk, step, index)
        elif is_asked != 0:
            walk.unknown_bits[index] = load(walk, step, index)
            any_lane |= walk.unknown_bits[index]
    if any_lane != 0 or is_touched(walk, step) != 0:
        mark(walk, step, walk.unknown_bits)
    return 1


# Steps


def compute_all(walk: CoreWalk, step: StepRow) -> None:
    """What a step computes, by all warps."""
    first, values = 1 if step.flags & Flag.UPPER else 0, local(u32, LANES)
    for index in range(walk.count):
        if walk.bits[index] != 0:
            compute(walk, step, index)
    for index in range(walk.count):
        for word in range(s64(step.words)):
            if walk.bits[index] != 0:
                put(values, u32(lanes(walk.results + index * LANES) >> 32 * (first + word)))
                write(walk, step, word, index, values)


def find_guarded(walk: CoreWalk, step: StepRow) -> u32:
    """The lanes that execute a step; 0 where who does is not known, or there is no room to note it."""
    copy(walk.bits, walk.whole, 4 * walk.count)
    if step.guard < 0:
        return 1
    for index in range(walk.count):
        warp = walk.chosen[index]
        mark_of_guard = s64(step.guard_resource) * walk.warps + warp
        if step.guard_resource >= 0 and walk.unknown[mark_of_guard] & walk.whole[index] != 0:
            return 0
        walk.bits[index] &= read_predicate(walk, step.guard, warp)
    return u32(walk.guard_count + walk.count <= walk.guard_room)


def note_guard(walk: CoreWalk) -> None:
    """Who executed a step."""
    for index in range(walk.count):
        row, warp = walk.guard_count + index, walk.chosen[index]
        walk.guard_warp[row], walk.guard_place[row] = warp, walk.lengths[warp] + walk.offset
        walk.guard_bits[row] = walk.bits[index]
    walk.guard_count += walk.count


def execute(walk: CoreWalk, step: StepRow) -> u32:
    """Do a step; 0 where it is left to Python."""
    if step.code >= Code.LOAD:
        return access(walk, step)
    if step.code == Code.OPAQUE:
        mark(walk, step, walk.bits)
        return 1
    if step.code != Code.SKIP:
        compute_all(walk, step)
    if is_touched(walk, step) != 0:
        for index in range(walk.count):
            walk.unknown_bits[index] = find_unknown(walk, step.first_read, step.read_count, index)
        mark(walk, step, walk.unknown_bits)
    return 1


def walk_steps(walk: CoreWalk, steps: Pointer[StepRow], first: s64, last: s64) -> s64:
    """Steps from a place to before another; the place of the first one that is left to Python, or the last."""
    walk.offset = first
    while walk.offset < last:
        step = steps[walk.offset]
        if step.code == Code.PYTHON or find_guarded(walk, step) == 0 or execute(walk, step) == 0:
            break
        if step.guard >= 0:
            note_guard(walk)
        walk.offset += 1
    return walk.offset
