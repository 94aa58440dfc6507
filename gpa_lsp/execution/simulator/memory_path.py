"""The path of instructions of variable latency (queues of the sub-cores, L1, the SM's share of L2 and DRAM), and the caches of code and constants.

All servers are first come, first served, so that the end of an instruction is known when it enters.

Stores have a path of their own. A store gives its registers back when they have been read, enters the queue of stores under way, leaves it for
L2, and has ended some cycles behind that: no warp waits until it is in DRAM. L2 takes what is written until what it displaces is too far behind
on its way to DRAM; only then does DRAM push back, by letting stores leave later. So a kernel that only stores shows by its reasons where stores are
held:

* ``drain``: its warps have ended but for stores that have not left. All time is there as long as fewer stores are under way than the queue holds.
* ``lg_throttle``: the queue is full, and with it those of the sub-cores in front of it. The more stores a warp has, the more time moves here.
* A scoreboard, long for stores: the registers of a store that has not been read are overwritten; ``short_scoreboard`` is of what addresses come from.

An SM has one port to L2. A sector that is stored takes it for two cycles on most GPUs, as Nsight Compute shows: L1 is twice as busy as it sends
(``l1tex__m_l1tex2xbar_req_cycles_active``). Stores of parts of sectors send a mask with each line, so that a warp that stores down a column takes the
port for 32 sectors and 32 masks.

Atomic operations that name one address are done one after the other, in L2, for all SMs: where they meet, each waits until the others' turn is over.
Those that return nothing are stores that leave when they are done, so that the SM waits like one whose stores do not get away.

If stores ended in DRAM, kernels that load and store would take as long as they do, but spend nearly half of it in ``drain``, where the profiler sees
two percent; if nothing pushed back, kernels that only store would take a tenth of their time.
"""

from gpa_lsp.code.symbolic_accesses.requests import FREE_TAGS, TAGS_PER_CYCLE
from gpa_lsp.execution.simulator.program import LSU, Kind
from gpa_lsp.execution.simulator.reasons import LG_THROTTLE
from gpa_lsp.execution.simulator.sm_state import LG, Array, Row, Sm
from gpa_lsp.execution.simulator.warp_walk import LINE_SECTORS, LOCAL_SECTOR
from gpa_lsp.foundation.machine_code.loops import part
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES

# When an instruction's result is there, when its sources have been read, and when what it stores has left
Passage = tuple[float, float, float]

_MIX = -7046029254386353131  # Odd, with bits as if drawn by lot
# Bandwidth of DRAM that an SM has not used is used by others, which leave it as much when it asks for more than its part: up to so many cycles of it,
# longer than what blocks do between two bursts, once its first one has brought the SMs out of step. Assumed
_LENT_CYCLES = 1000.0
_PAGE_BITS = 3  # Lines that follow each other have heads that do


@part
def find_room(sm: Sm, sub_core: int, row: Row, time: float) -> tuple[int, float]:
    """Reason why a queue is closed to an instruction, and until when; -1 where it is open."""
    model, core, unit = sm.model, sm.cores[sub_core], row.unit
    if row.is_lg:
        _drop_until(sm, sub_core, LG, time)
        if core.count[LG] >= model.lg_queue_instructions:
            return LG_THROTTLE, sm.queues[sub_core, LG, core.first[LG]]
    _drop_until(sm, sub_core, unit, time)
    if core.count[unit] >= model.mio_queue_instructions:
        return row.throttle, sm.queues[sub_core, unit, core.first[unit]]
    return -1, time


@part
def _drop_until(sm: Sm, sub_core: int, queue: int, time: float) -> None:
    core, values = sm.cores[sub_core], sm.queues[sub_core, queue]
    while core.count[queue] > 0 and values[core.first[queue]] <= time:
        core.first[queue] = (core.first[queue] + 1) % len(values)
        core.count[queue] -= 1


@part
def _enter_queue(sm: Sm, sub_core: int, queue: int, begin: float) -> None:
    """Append to a queue that :func:`find_room` found room in."""
    core, values = sm.cores[sub_core], sm.queues[sub_core, queue]
    values[(core.first[queue] + core.count[queue]) % len(values)] = begin
    core.count[queue] += 1


@part
def enter_memory(sm: Sm, row: Row, execution: Row, warp: Row, time: float) -> Passage:
    """Put an instruction that was issued at ``time`` into its queue."""
    model, state, sub_core = sm.model, sm.state, warp.sub_core
    core = sm.cores[sub_core]
    kind, unit, passes = row.kind, row.unit, execution.passes
    begin = max(time + model.queue_cycles, core.entered[unit] + 1.0)
    if kind == Kind.SPECIAL:
        free = state.shared_free if row.is_shared_unit else core.unit_free
        begin = max(begin, free[unit])
        again = max(passes - 1, 0) * row.interval
        free[unit] = begin + row.interval + again
        core.entered[unit] = begin
        _enter_queue(sm, sub_core, unit, begin)
        return begin + row.latency + again, begin + model.read_cycles, 0.0
    begin = max(begin, state.accept_free, core.unit_free[LSU])
    # the LSU takes an instruction without active lanes, and gives it a wavefront of the data stage
    if kind == Kind.SHARED or passes == 0:
        return _access_shared(sm, row, max(passes, 1), sub_core, begin)
    if kind in (Kind.STORE, Kind.REDUCTION):
        return _store(sm, row, execution, warp, begin)
    return _load(sm, row, execution, warp, begin)


@part
def _leave_queue(sm: Sm, sub_core: int, begin: float, is_lg: bool) -> None:
    model, core = sm.model, sm.cores[sub_core]
    sm.state.accept_free = begin + model.accept_cycles
    core.unit_free[LSU] = begin + model.address_cycles
    core.entered[LSU] = begin
    _enter_queue(sm, sub_core, LSU, begin)
    if is_lg:
        _enter_queue(sm, sub_core, LG, begin)


@part
def _access_shared(sm: Sm, row: Row, passes: int, sub_core: int, begin: float) -> Passage:
    model, state = sm.model, sm.state
    begin = max(begin, state.data_free - model.data_queue_cycles)
    start = max(begin, state.data_free)
    state.data_free = start + passes
    state.data_cycles += passes
    _leave_queue(sm, sub_core, begin, False)
    return start + passes - 1 + row.latency, begin + model.read_cycles + passes, 0.0


@part
def _store(sm: Sm, row: Row, execution: Row, warp: Row, begin: float) -> Passage:
    model, state, passes = sm.model, sm.state, execution.passes
    is_reduction = row.kind == Kind.REDUCTION
    while state.leaving_first < state.leaving_end and sm.leaving[state.leaving_first] <= begin:
        state.leaving_first += 1
    most = int(model.store_queue_instructions)
    if state.leaving_end - state.leaving_first >= most:
        begin = max(begin, sm.leaving[state.leaving_end - most])
    start = max(begin, state.tag_free)
    busy = max(execution.lines, passes)
    state.tag_free = start + busy
    state.tag_cycles += busy
    _leave_queue(sm, warp.sub_core, begin, True)
    if not is_reduction and len(sm.l1) > 0:
        _keep_stored(sm, execution, warp.shift, start + busy)
    written = float((execution.last_sector - execution.first_sector) * SECTOR_BYTES)
    departs = max(state.store_free, _send(sm, row, execution, warp, start + passes))
    back = written * model.written_back_ratio
    if back != 0.0:
        departs = _write_back(sm, back, departs)
    state.store_free = departs
    if is_reduction:
        departs = _meet(sm, row, execution, warp.shift, departs)
    sm.leaving[state.leaving_end] = departs
    state.leaving_end += 1
    done = departs + model.store_retire_cycles
    return done, start + model.read_cycles + passes, done


@part
def _send(sm: Sm, row: Row, execution: Row, warp: Row, time: float) -> float:
    """Time at which L2 has a store.

    The port of the SM takes each sector, and a mask for each line whose sectors are stored in part. L1 sends a store together with the one just
    before it, of the same warp, that goes to the same sectors. Lanes whose atomic operations name one address are sent one by one.
    """
    model, state = sm.model, sm.state
    sectors = execution.last_sector - execution.first_sector
    sent = float(sectors)
    if row.kind == Kind.REDUCTION:
        sent *= _count_repeats(execution)
    elif state.merged_warp == warp.number and _is_merged(sm, execution):
        return time
    state.merged_first, state.merged_last = execution.first_sector, execution.last_sector
    state.merged_warp = warp.number
    state.l2_bytes += sent * SECTOR_BYTES
    state.l2_free = max(state.l2_free, time) + sent * SECTOR_BYTES / model.l2_bytes_per_cycle
    state.port_free = (
        max(state.port_free, time) + (sent + execution.masked) * SECTOR_BYTES / model.store_bytes_per_cycle
    )
    return max(state.port_free, state.l2_free)


@part
def _is_merged(sm: Sm, execution: Row) -> bool:
    count, first, same = execution.last_sector - execution.first_sector, sm.state.merged_first, 0
    if count != sm.state.merged_last - first:
        return False
    for place in range(count):
        same += sm.sectors[execution.first_sector + place] == sm.sectors[first + place]
    return same == count


@part
def _count_repeats(execution: Row) -> float:
    """Lanes that name the same address, of each line."""
    return execution.passes / max(execution.lines, 1)


@part
def _meet(sm: Sm, row: Row, execution: Row, shift: int, time: float) -> float:
    """Time at which L2 has done the last of a warp's atomic operations, which come together.

    The first waits only for what came before it. A slice takes one sector of a line in a cycle of L2 (lts__d_atomic_input_cycles_active), and holds
    an address for as long as its operation takes.
    """
    repeats, scale = _count_repeats(execution), sm.model.atomic_cycles
    latest, line, begin = time, -1, time
    for place in range(execution.first_sector, execution.last_sector):
        sector = _find_sector(sm, place, shift)
        held = sm.atomics[_find_line(sm, sector // LINE_SECTORS)]
        if sector // LINE_SECTORS != line:
            line, begin = sector // LINE_SECTORS, max(time, held[LINE_SECTORS])
        start = max(begin, held[sector % LINE_SECTORS])
        held[sector % LINE_SECTORS] = start + repeats * row.interval * scale
        begin += repeats * scale
        held[LINE_SECTORS] = begin
        latest = max(latest, begin - scale, start + (repeats - 1.0) * row.interval * scale)
    return latest


@part
def _find_sector(sm: Sm, place: int, shift: int) -> int:
    """The number of a sector.

    Args:
        shift: what is added to the sectors that the block alone touches.
    """
    coded = sm.sectors[place]
    return (coded >> 1) + (coded & 1) * shift


@part
def _find_line(sm: Sm, key: int) -> int:
    """The place of a line of memory in ``lines``."""
    state, heads, lines = sm.state, sm.heads, sm.lines
    place = find_head(heads, lines, key)
    if heads[place] < 0:
        heads[place] = state.lines
        lines[state.lines].key = key
        lines[state.lines].slot = -1
        state.lines += 1
    return heads[place]


@part
def find_head(heads: Array, lines: Array, key: int) -> int:
    """Place of the head of a line, or the free place where it belongs."""
    mixed = (key >> _PAGE_BITS) * _MIX
    place = ((mixed ^ (mixed >> 32)) << _PAGE_BITS | key & ((1 << _PAGE_BITS) - 1)) & (len(heads) - 1)
    while heads[place] >= 0 and lines[heads[place]].key != key:
        place = (place + 1) & (len(heads) - 1)
    return place


@part
def append(links: Array, number: int) -> None:
    """Link a number as the newest of a ring from the oldest to the newest, which the last place closes."""
    ring = links.shape[1] - 1
    newest = links[0, ring]
    links[0, number], links[1, number] = newest, ring
    links[1, newest] = links[0, ring] = number


@part
def forget(links: Array, number: int) -> None:
    """Unlink a number."""
    before, after = links[0, number], links[1, number]
    links[1, before], links[0, after] = after, before


@part
def _keep_stored(sm: Sm, execution: Row, shift: int, time: float) -> None:
    """Stores take lines of L1; what they leave there is read again only in local memory, where no other SM can have written since."""
    for place in range(execution.first_sector, execution.last_sector):
        sector = _find_sector(sm, place, shift)
        entry = sm.l1[_take_line(sm, _find_line(sm, sector // LINE_SECTORS))]
        part = sector % LINE_SECTORS
        if sector & LOCAL_SECTOR and not entry.known >> part & 1:  # what later blocks alone touch has higher bits
            entry.ready[part] = time
            entry.known |= 1 << part


@part
def _take_line(sm: Sm, line: int) -> int:
    """The slot of a line in L1, as the one used last."""
    state, slot = sm.state, sm.lines[line].slot
    if slot >= 0:
        forget(sm.l1_links, slot)
        append(sm.l1_links, slot)
        return slot
    if state.l1_lines < len(sm.l1):
        slot = state.l1_lines
        state.l1_lines += 1
    else:
        slot = sm.l1_links[1, len(sm.l1)]
        forget(sm.l1_links, slot)
        sm.lines[sm.l1[slot].line].slot = -1
    append(sm.l1_links, slot)
    sm.l1[slot].line = line
    sm.l1[slot].known = 0
    sm.lines[line].slot = slot
    return slot


@part
def _write_back(sm: Sm, written: float, departs: float) -> float:
    """Send to DRAM what a store displaces; returns when the store departs, which waits where too much is due."""
    model, state = sm.model, sm.state
    state.dram_bytes += written
    cost = written / model.dram_bytes_per_cycle
    if state.reads_until > departs + model.read_backlog_cycles:
        state.write_back_free += cost  # reads want the other half
    state.write_back_free = max(state.write_back_free, departs) + cost
    state.dram_free = max(state.dram_free, departs - _LENT_CYCLES) + cost
    return max(departs, state.write_back_free - model.write_buffer_cycles)


@part
def _load(sm: Sm, row: Row, execution: Row, warp: Row, begin: float) -> Passage:
    """A load, or an atomic operation that returns something: tags, then what they miss from L2 and DRAM."""
    model, state = sm.model, sm.state
    while state.misses_first < state.misses_end and sm.misses[state.misses_first] <= begin:
        state.misses_first += 1
    most = int(model.miss_queue_instructions)
    if state.misses_end - state.misses_first >= most:
        begin = max(begin, sm.misses[state.misses_end - most])
    begin = max(begin, state.tag_free - model.tag_queue_cycles)
    start = max(begin, state.tag_free)
    passes = _count_passes(model.l1_tags_per_cycle, execution.passes, execution.lines)
    state.tag_free = start + passes
    state.tag_cycles += passes
    _leave_queue(sm, warp.sub_core, begin, True)
    hit = start + passes - 1 + row.latency
    latest = _look_up(sm, execution, warp.shift, start + passes, row.uses_l1 and len(sm.l1) > 0)
    if row.kind == Kind.ATOMIC and latest > 0:
        latest = max(latest, _meet(sm, row, execution, warp.shift, start + passes) + model.l2_cycles)
    if latest > 0:
        sm.misses[state.misses_end] = max(latest, hit)
        state.misses_end += 1
    return max(latest, hit), begin + model.read_cycles, 0.0


@part
def _count_passes(at_once: float, passes: int, lines: int) -> float:
    """Cycles in which L1 has the lines of a load looked up and its data handed over."""
    if at_once:
        return passes + lines / at_once
    return float(max(passes, -(-(lines + FREE_TAGS) // TAGS_PER_CYCLE)))


@part
def _look_up(sm: Sm, execution: Row, shift: int, time: float, uses_l1: bool) -> float:
    """Time at which the last sector that misses L1 arrives, sectors under way included; 0 where all hit.

    A request for a line takes the port as long as a sector that is stored, and little more than half as long where all of it is requested.
    """
    state, latest, asked = sm.state, 0.0, -1
    wanted = (0.5 + 0.5 * execution.lines / max(1, execution.last_sector - execution.first_sector)) * SECTOR_BYTES
    for place in range(execution.first_sector, execution.last_sector):
        sector = _find_sector(sm, place, shift)
        line, part = _find_line(sm, sector // LINE_SECTORS), sector % LINE_SECTORS
        slot = _take_line(sm, line) if uses_l1 else -1
        if uses_l1 and sm.l1[slot].known >> part & 1:
            ready = sm.l1[slot].ready[part]
            latest = max(latest, ready) if ready > time else latest
            continue
        if line != asked:
            asked = line
            state.port_free = max(state.port_free, time) + wanted / sm.model.store_bytes_per_cycle
        arrives = _fetch(sm, line, part, state.port_free)
        if uses_l1:
            sm.l1[slot].known |= 1 << part
            sm.l1[slot].ready[part] = arrives
        latest = max(latest, arrives)
    return latest


@part
def _fetch(sm: Sm, line: int, part: int, time: float) -> float:
    """Time at which a sector that misses L1 arrives."""
    model, state, entry = sm.model, sm.state, sm.lines[line]
    state.l2_bytes += SECTOR_BYTES
    state.l2_free = max(state.l2_free, time) + SECTOR_BYTES / model.l2_bytes_per_cycle
    arrives = state.l2_free + model.l2_cycles
    if entry.seen >> part & 1:
        return arrives
    entry.seen |= 1 << part
    state.hits_due += model.l2_hit_ratio
    if state.hits_due >= 1.0:
        state.hits_due -= 1.0
        return arrives
    state.dram_bytes += model.fetched_bytes
    lent = _LENT_CYCLES if state.dram_free > 0.0 else 0.0
    state.dram_free = max(state.dram_free, state.l2_free - lent) + model.fetched_bytes / model.dram_bytes_per_cycle
    state.reads_until = state.dram_free
    return max(arrives, max(state.dram_free, state.l2_free) + model.dram_cycles)


@part
def fetch_code(sm: Sm, sub_core: int, line: int, time: float) -> float:
    """Time at which a line of code is in a sub-core's own cache; the SM's cache behind it fetches a stream of lines ahead of a miss."""
    model, core, near, links = sm.model, sm.cores[sub_core], sm.near[sub_core], sm.near_links[sub_core]
    if near[line] >= 0:
        forget(links, line)
        append(links, line)
        return near[line]
    if sm.code[line] < 0:
        sm.code[line] = time + (model.code_cold_cycles if sm.state.has_code else model.code_first_cycles)
        sm.state.has_code = 1
        for ahead in range(1, int(model.code_prefetch_lines) + 1):
            if sm.code[line + ahead] < 0:
                sm.code[line + ahead] = sm.code[line] + ahead * model.code_stream_cycles
    follows = line > 0 and near[line - 1] >= 0
    ready = max(time + (model.code_stream_cycles if follows else model.code_near_cycles), sm.code[line])
    near[line] = ready
    append(links, line)
    core.near_lines += 1
    if core.near_lines > model.code_cache_lines:
        oldest = links[1, len(near)]
        near[oldest] = -1.0
        forget(links, oldest)
        core.near_lines -= 1
    return ready


@part
def read_constant(sm: Sm, row: Row, time: float) -> float:
    """Time at which the line of an instruction's constants is in the SM."""
    model, (near, far) = sm.model, sm.constants
    if near[row.constant] < 0:
        if far[row.far_constant] < 0:
            far[row.far_constant] = time + model.constant_cold_cycles
        near[row.constant] = max(far[row.far_constant], time + model.constant_near_cycles)
    return near[row.constant]
