"""Steps of some warps, one after the other: typed Python, executed as machine code."""

from gpa_lsp.execution.emulator.semantics.exchange import (
    is_inside,
    match_all,
    match_any,
    reduce_add,
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_xor,
    shuffle,
    vote_all,
    vote_any,
    vote_uni,
)
from gpa_lsp.execution.emulator.semantics.words import combine_bits, permute
from gpa_lsp.execution.simulator.execution.walk_accesses import access
from gpa_lsp.execution.simulator.execution.walk_model import (
    MOST_SOURCES,
    Code,
    CoreWalk,
    Fault,
    Flag,
    Join,
    Reduction,
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
    spread,
    write,
    write_predicate,
)
from gpa_lsp.foundation.machine_code.types import (
    LANES,
    Pointer,
    all_lanes,
    call,
    copy,
    fill,
    lanes,
    lanes_of,
    local,
    mask_of,
    put,
    s32,
    s64,
    trailing_zeros,
    u8,
    u32,
    u64,
)


def compute(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """Compute the values for the target; predicates are written at once."""
    sources = local(u64, LANES * MOST_SOURCES)
    fill(sources, 0, 8 * LANES * MOST_SOURCES)
    for number in range(s64(step.source_count)):
        read(walk, step.sources[number], index, sources + number * LANES)
    if step.code >= Code.SHUFFLE:
        exchange(walk, step, index, sources)
    elif step.code >= Code.FROM_PREDICATES:
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
        product = product * lanes(b) & ALL_LANES
    elif code == Code.MULTIPLY_WIDE:
        product *= lanes(b)
    else:
        shifted = (product | lanes(b) << 32) << step.tables[0]
        product = (shifted >> (32 if step.flags & Flag.HIGH else 0)) & ALL_LANES
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
    """Predicate logic, comparisons and choices by predicates."""
    a, b, warp = sources, sources + LANES, walk.chosen[index]
    first = read_predicate(walk, step.predicates[0], warp)
    second, third = read_predicate(walk, step.predicates[1], warp), read_predicate(walk, step.predicates[2], warp)
    less, equal = mask_of(s64(lanes(a)) < s64(lanes(b))), mask_of(lanes(a) == lanes(b))
    if step.code == Code.PREDICATE_LOGIC:
        for place in range(s64(step.out_count)):
            write_predicate(walk, step.outs[place], index, combine_bits(first, second, third, step.tables[place]))
    elif step.code == Code.COMPARE:
        table, more = step.tables[0], ~(less | equal)
        equal &= second if step.predicate_count > 1 else u32(ALL_LANES)  # of upper words, where the lower ones are
        truth = (less if table & 1 else u32(0)) | (equal if table & 2 else u32(0)) | (more if table & 4 else u32(0))
        for place in range(s64(step.out_count)):
            write_predicate(walk, step.outs[place], index, join(truth if place == 0 else ~truth, first, step.join))
    else:
        chosen = first if step.code == Code.SELECT else ~(first ^ less)
        put(walk.results + index * LANES, lanes(a) if lanes_of(chosen) else lanes(b))


def compute_value(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """Call a function of :mod:`lane_values`: a number, or two truths."""
    holds, found = u32(ALL_LANES), walk.results + index * LANES
    if step.predicate_count != 0:
        holds = read_predicate(walk, step.predicates[0], walk.chosen[index])
    chosen = local(u64, LANES)
    put(chosen, u64(lanes_of(holds)))
    function = walk.functions[step.tables[0]]
    call(function, found, sources, sources + LANES, sources + 2 * LANES, chosen, step.offset)
    for place in range(s64(step.out_count)):
        truth = mask_of(lanes(found) == ALL_LANES)
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


# Between lanes


def exchange(walk: CoreWalk, step: StepRow, index: s64, sources: Pointer[u64]) -> None:
    """Exchanges between the lanes of a warp."""
    to, bits = walk.results + index * LANES, walk.bits[index]
    values = u32(lanes(sources))
    if step.code == Code.SHUFFLE:
        mode, b, c = step.tables[0], s32(u32(lanes(sources + LANES))), s32(u32(lanes(sources + 2 * LANES)))
        put(to, u64(shuffle(mode, values, b, c)))
        write_predicate(walk, step.outs[0], index, mask_of(is_inside(mode, b, c)))
    elif step.code == Code.VOTE:
        holds = read_predicate(walk, step.predicates[0], walk.chosen[index]) & bits
        put(to, all_lanes(u64(holds)))
        found = vote_uni(holds, bits)
        if step.tables[0] == 1:
            found = vote_any(holds, bits)
        elif step.tables[0] == 2:
            found = vote_all(holds, bits)
        if step.out_count != 0:
            write_predicate(walk, step.outs[0], index, spread(found))
    elif step.code == Code.MATCH:
        if step.tables[0] == 0:
            put(to, u64(match_any(values, bits)))
        else:
            agreeing = match_all(values, bits)
            put(to, all_lanes(u64(agreeing)))
            if step.out_count != 0:
                write_predicate(walk, step.outs[0], index, spread(agreeing))
    elif step.code == Code.REDUCE:
        put(to, all_lanes(u64(reduce(step.tables[0], values, bits))))
    elif step.code == Code.FROM_FIRST:
        put(to, all_lanes(u64(u32(sources[trailing_zeros(bits)]))))
    else:
        leave_barrier(walk, step, index)


def reduce(how, values, bits):
    """One value of all that execute."""
    found = reduce_add(values, bits)
    if how == Reduction.AND:
        found = reduce_and(values, bits)
    elif how == Reduction.OR:
        found = reduce_or(values, bits)
    elif how == Reduction.XOR:
        found = reduce_xor(values, bits)
    elif how == Reduction.MIN:
        found = reduce_min(values, bits)
    elif how == Reduction.MAX:
        found = reduce_max(values, bits)
    elif how == Reduction.MIN_SIGNED:
        found = reduce_min(s32(values), bits)
    elif how == Reduction.MAX_SIGNED:
        found = reduce_max(s32(values), bits)
    return found


def leave_barrier(walk: CoreWalk, step: StepRow, index: s64) -> None:
    """BREAK: the lanes that execute it are waited for no longer."""
    place = walk.barriers + (s64(step.tables[0]) * walk.warps + walk.chosen[index]) * LANES
    put(place, lanes(place) & ~walk.bits[index])
    walk.are_barriers_left = 1


def clear_barrier(walk: CoreWalk, number: s32, index: s64) -> None:
    """Clear the lanes that executing lanes wait for."""
    place = walk.barriers + (s64(number) * walk.warps + walk.chosen[index]) * LANES
    put(place, u32(0) if lanes_of(walk.bits[index]) else lanes(place))


# Steps


def compute_all(walk: CoreWalk, step: StepRow) -> None:
    """Do a step that computes, by all warps."""
    first, values = 1 if step.flags & Flag.UPPER else 0, local(u32, LANES)
    for index in range(walk.count):
        if walk.bits[index] != 0:
            compute(walk, step, index)
    for index in range(walk.count):
        if walk.bits[index] == 0:
            continue
        for word in range(s64(step.words)):
            put(values, u32(lanes(walk.results + index * LANES) >> 32 * (first + word)))
            write(walk, step, word, index, values)
        if step.flags & Flag.CLEARS:
            clear_barrier(walk, step.sources[0].number, index)


def find_guarded(walk: CoreWalk, step: StepRow) -> u32:
    """Find the lanes that execute a step; 0 where the guard is unknown, or there is no room to note it."""
    copy(walk.bits, walk.whole, 4 * walk.count)
    if step.guard < 0:
        return 1
    if walk.guard_count + walk.count > walk.guard_room:
        walk.stop = Stop.ROOM
        return 0
    wrong = u32(0)
    for index in range(walk.count):
        warp = walk.chosen[index]
        unknown = u32(0)
        if step.guard_resource >= 0:
            unknown = walk.unknown[s64(step.guard_resource) * walk.warps + warp] & walk.whole[index]
        walk.faults[index] = u8(Fault.GUARD if unknown != 0 else 0)
        wrong |= unknown
        walk.bits[index] &= read_predicate(walk, step.guard, warp)
    if wrong != 0:
        walk.stop = Stop.FAULT
    return u32(wrong == 0)


def note_guard(walk: CoreWalk) -> None:
    """Note the lanes that executed a step."""
    for index in range(walk.count):
        row, warp = walk.guard_count + index, walk.chosen[index]
        walk.guard_warp[row], walk.guard_place[row] = warp, walk.lengths[warp] + walk.offset
        walk.guard_bits[row] = walk.bits[index]
    walk.guard_count += walk.count


def refuse(walk: CoreWalk) -> u32:
    """Stop at a step that cannot be executed; 1 where no lane executes it."""
    any_lane = u32(0)
    for index in range(walk.count):
        any_lane |= walk.bits[index]
        walk.faults[index] = u8(Fault.REFUSED if walk.bits[index] != 0 else 0)
    if any_lane != 0:
        walk.stop = Stop.FAULT
    return u32(any_lane == 0)


def execute(walk: CoreWalk, step: StepRow) -> u32:
    """Do a step; 0 where it cannot be done, or not yet."""
    if step.code >= Code.LOAD:
        return access(walk, step)
    if step.code == Code.REFUSED:
        return refuse(walk)
    if step.code == Code.OPAQUE:
        mark(walk, step, walk.bits)
        return 1
    if step.code != Code.SKIP:
        compute_all(walk, step)
    if is_touched(walk, step) != 0:
        for index in range(walk.count):
            unknown = find_unknown(walk, step.first_read, step.read_count, index) & walk.bits[index]
            is_exchanged = step.code >= Code.SHUFFLE and step.code <= Code.FROM_FIRST
            walk.unknown_bits[index] = spread(unknown) if is_exchanged else unknown
        mark(walk, step, walk.unknown_bits)
    return 1


def walk_steps(walk: CoreWalk, steps: Pointer[StepRow], first: s64, last: s64) -> s64:
    """Steps from a place to before another; the place of the first one that is not done, for a reason of :class:`Stop`, or the last."""
    walk.offset = first
    while walk.offset < last:
        step = steps[walk.offset]
        if find_guarded(walk, step) == 0 or execute(walk, step) == 0:
            return walk.offset
        if step.guard >= 0:
            note_guard(walk)
        walk.offset += 1
    walk.stop = Stop.DONE
    return last
