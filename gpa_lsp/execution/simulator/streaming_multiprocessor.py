"""One SM, event by event: :func:`simulate_sm`.

The end of an instruction is known when it is issued (:mod:`~gpa_lsp.execution.simulator.memory_path`). So the only events are warps that become
ready, and blocks that begin. A sub-core issues from the warp that it issued from last, unless that yields, else from the youngest that can;
those that have yielded come behind the others, but for an instruction that goes into a queue.
"""

from collections.abc import Sequence
from math import ceil, inf

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.memory_path import enter_memory, fetch_code, find_head, find_room, read_constant
from gpa_lsp.execution.simulator.program import BANKS, OPERANDS, REGISTERS, SUB_CORES, Kind, SassProgram
from gpa_lsp.execution.simulator.reasons import (
    BARRIER,
    BRANCH_RESOLVING,
    DISPATCH_STALL,
    DRAIN,
    IMC_MISS,
    LONG_SCOREBOARD,
    MATH_PIPE_THROTTLE,
    MEMBAR,
    NO_INSTRUCTIONS,
    NOT_SELECTED,
    REASON_COUNT,
    SELECTED,
    SHORT_SCOREBOARD,
    WAIT,
    Moment,
    SmRun,
)
from gpa_lsp.execution.simulator.sm_state import SCOREBOARDS, Array, Row, Sm, open_sm, widen
from gpa_lsp.execution.simulator.warp_walk import BlockStream
from gpa_lsp.foundation.machine_code.loops import compiled, part
from gpa_lsp.foundation.machine_code.types import unrolled

_VISIBLE_CYCLES = 2.0  # From setting a scoreboard to waiting for it
_BEHIND = REASON_COUNT  # Added to a reason, where it counts at the row behind an instruction
_MOST_KEPT = 2  # Registers of an operand that are kept: one of each bank


def simulate_sm(
    program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int, most_issues: int
) -> SmRun:
    """Run blocks on one SM until all have ended.

    Args:
        most_issues: warp instructions to simulate at most; blocks that have begun are given up there.
    """
    sm = open_sm(program, model, blocks, min(resident, len(blocks)), most_issues)
    while not _advance(sm, most_issues):
        sm = widen(sm)
        _fill_heads(sm.heads, sm.lines, int(sm.state["lines"]))
    state = sm.state
    count = int(state["moments"])
    return SmRun(
        moments=tuple(
            Moment(time=time, blocks_done=int(ended), all_cycles=every, idle_cycles=idle, moved=tuple(moved))
            for (time, ended, *moved), (every, idle) in zip(sm.sums[:count].tolist(), sm.marked, strict=False)
        ),
        dilation=float(state["weighted"] / state["plain"]) if state["plain"] else 1.0,
        issued=int(state["issued"]),
        is_cut=bool(state["done"] < len(blocks)),
    )


@compiled
def _fill_heads(heads: Array, lines: Array, count: int) -> None:
    for number in range(count):
        heads[find_head(heads, lines, lines[number].key)] = number


@compiled
def _advance(sm: Sm, most_issues: int) -> bool:
    """Go on until all blocks have ended or enough was issued; False where memory needs room for more lines."""
    model, state, following = sm.model, sm.state, sm.state.following
    resident = len(sm.held)
    if state.begun == 0:
        for place in range(resident):
            sm.free_places[place] = place
        state.free_places = resident
        state.last_start = (resident - 1) * model.block_interval_cycles
        for number in range(resident):
            _begin_block(sm, number * model.block_interval_cycles)
    while state.issued < most_issues:
        if state.lines + sm.most_new > len(sm.lines):
            return False
        time = min(following[0], following[1], following[2], following[3])
        is_behind = state.begun < len(sm.blocks) and state.starts > 0
        if is_behind and sm.block_starts[state.starts - 1] <= time:
            state.starts -= 1
            time = sm.block_starts[state.starts]
            if state.done >= resident and state.moments == 0:
                _mark(sm, time)
            _begin_block(sm, time)
            if state.begun == len(sm.blocks) and state.moments > 0:
                _mark(sm, time)
        elif time == inf:
            break
        else:
            state.last = time
            for number in range(SUB_CORES):
                if following[number] <= time:
                    following[number] = _step(sm, number, time)
        _wake(sm, time)
    _mark(sm, max(state.last, state.latest_end))
    return True


@part
def _wake(sm: Sm, time: float) -> None:
    """Wake sub-cores whose warps became ready as a block began or a barrier opened."""
    following = sm.state.following
    for number in range(SUB_CORES):
        ready = _find_soonest(sm, number)
        if ready < following[number]:
            following[number] = max(ready, time)


@part
def _find_soonest(sm: Sm, number: int) -> float:
    """Time at which the first waiting warp of a sub-core is ready; infinite without one."""
    count = sm.cores[number].waiting
    return sm.warps[sm.waiting[number, count - 1]].ready if count > 0 else inf


@part
def _mark(sm: Sm, time: float) -> None:
    """Keep the sums until now."""
    state = sm.state
    sums = sm.sums[state.moments]
    sums[0], sums[1], sums[2], sums[3] = time, state.done, state.dram_bytes, state.l2_bytes
    sums[4], sums[5], sums[6] = state.tag_cycles, state.data_cycles, state.issued
    marked = sm.marked[state.moments]
    for index in range(marked.shape[1]):
        marked[0, index], marked[1, index] = sm.cycles[0, index], sm.cycles[1, index]
    state.moments += 1


@part
def _account(sm: Sm, execution: Row, reason: int, cycles: float, idle_share: float) -> None:
    """Add cycles of an execution, and of those that it stands for.

    Args:
        idle_share: of the cycles, those in which the scheduler issued nothing.
    """
    counted, index, state = cycles * execution.weight, execution.row * REASON_COUNT + reason, sm.state
    sm.cycles[0, index] += counted
    sm.cycles[1, index] += counted * idle_share
    state.weighted += counted
    state.plain += cycles


@part
def _account_next(sm: Sm, warp: Row, reason: int, cycles: float, idle_share: float) -> None:
    """Add cycles that a warp spent in front of its next instruction."""
    _account(sm, sm.executions[warp.position], reason, cycles, idle_share)


@part
def _begin_block(sm: Sm, time: float) -> None:
    """Give the next block's warps to the sub-cores, in turn."""
    model, state, block = sm.model, sm.state, sm.blocks[sm.state.begun]
    state.free_places -= 1
    place = sm.free_places[state.free_places]
    held, first_slot = sm.held[place], place * sm.arrived.shape[1]
    held.left, held.end, held.arrived = block.warps, time, 0
    state.latest_end = max(state.latest_end, time)
    for index in range(block.warps):
        slot = first_slot + index
        warp = sm.warps[slot]
        warp.number, warp.place, warp.shift = state.warps, place, block.shift
        warp.sub_core = (state.next_sub_core + index) % SUB_CORES
        warp.position, warp.stop = sm.starts[block.first_warp + index], sm.starts[block.first_warp + index + 1]
        warp.fetched_line, warp.segments = -1, 0
        warp.boards[:], warp.is_long[:], warp.outstanding[:] = 0.0, 0, 0
        warp.store_done = warp.async_done = warp.opens = 0.0
        warp.is_parked = warp.yielded = 0
        warp.issued_at = time + model.warp_launch_cycles * (index // SUB_CORES)
        warp.issues_seen = sm.cores[warp.sub_core].issues
        state.warps += 1
        _schedule(sm, slot, warp.issued_at, True)
    state.begun += 1
    state.next_sub_core = (state.next_sub_core + block.warps) % SUB_CORES


@part
def _wait_for(warp: Row, reason: int, until: float) -> None:
    warp.reason[warp.segments] = reason
    warp.until[warp.segments] = until
    warp.segments += 1


@part
def _schedule(sm: Sm, slot: int, now: float, starts: bool) -> None:
    """Find when a warp can issue its next instruction, and its stall reasons until then; at a closed barrier it parks."""
    warp = sm.warps[slot]
    row = sm.rows[sm.executions[warp.position].row]
    if warp.opens > 0.0 and not (warp.defers and row.computes):
        if warp.opens == inf:
            warp.arrived, warp.is_parked = now, 1
            return
        if warp.opens > now:
            _wait_for(warp, BARRIER, warp.opens)
            now = warp.opens
        warp.opens = 0.0
    if row.fetch_line != warp.fetched_line:
        warp.fetched_line = row.fetch_line
        ready = fetch_code(sm, warp.sub_core, row.fetch_line, now)
        if starts:
            ready = max(ready, now + sm.model.warp_start_cycles)
        if ready > now:
            _wait_for(warp, NO_INSTRUCTIONS, ready)
            now = ready
    if row.wait_mask:
        latest, is_long = _find_scoreboard(warp, row.wait_mask)
        if latest > now:
            _wait_for(warp, LONG_SCOREBOARD if is_long else SHORT_SCOREBOARD, latest)
            now = latest
    if row.constant >= 0:
        ready = read_constant(sm, row, now)
        if ready > now:
            _wait_for(warp, IMC_MISS, ready)
            now = ready
    warp.ready = now
    _insert(sm, slot)


@part
def _insert(sm: Sm, slot: int) -> None:
    """Let a warp wait until it is ready."""
    warp, core = sm.warps[slot], sm.cores[sm.warps[slot].sub_core]
    waiting, place = sm.waiting[warp.sub_core], core.waiting
    while place > 0:
        other = sm.warps[waiting[place - 1]]
        if other.ready > warp.ready or (other.ready == warp.ready and other.number > warp.number):
            break
        waiting[place] = waiting[place - 1]
        place -= 1
    waiting[place] = slot
    core.waiting += 1


@part
def _find_scoreboard(warp: Row, mask: int) -> tuple[float, int]:
    """Time at which the last of some scoreboards is released, and whether L1TEX releases it."""
    latest, is_long = 0.0, 0
    for number in range(SCOREBOARDS):
        if mask >> number & 1 and warp.boards[number] > latest:
            latest, is_long = warp.boards[number], warp.is_long[number]
    return latest, is_long


@part
def _settle(sm: Sm, warp: Row) -> None:
    """Account for a warp's stalls since it issued."""
    if warp.segments == 0:
        return
    begin = warp.issued_at
    length = warp.until[warp.segments - 1] - begin
    busy = sm.cores[warp.sub_core].issues - warp.issues_seen
    idle = max(0.0, 1.0 - busy / length) if length > 0 else 0.0
    for number in range(warp.segments):
        until = warp.until[number]
        if until > begin:
            _account_next(sm, warp, warp.reason[number], until - begin, idle)
            begin = until
    warp.segments = 0


@part
def _issue(sm: Sm, slot: int, time: float) -> None:
    """Issue a warp's next instruction."""
    warp = sm.warps[slot]
    state, core, position = sm.state, sm.cores[warp.sub_core], warp.position
    execution = sm.executions[position]
    row = sm.rows[execution.row]
    _account_next(sm, warp, SELECTED, 1.0, 0.0)
    core.issues += 1
    core.last = -1 if row.yields else warp.number
    warp.yielded = row.yields
    state.issued += 1
    _execute(sm, slot, row, execution, time)
    warp.issued_at = time + 1.0
    warp.issues_seen = core.issues
    free = time + row.stall
    if position + 1 >= warp.stop:
        _leave(sm, warp, execution, time, free)
        return
    warp.position = position + 1
    if row.kind == Kind.BARRIER:
        held = sm.held[warp.place]
        warp.opens, warp.defers = inf, row.defers
        sm.arrived[warp.place, held.arrived] = slot
        held.arrived += 1
        _open_barrier(sm, warp.place, time)
    if sm.executions[position + 1].row != execution.row + 1:
        free = _jump(sm, warp, execution, time)
    else:
        _wait_for(warp, WAIT, free)
    _schedule(sm, slot, _hold(sm, slot, row, free), False)


@part
def _execute(sm: Sm, slot: int, row: Row, execution: Row, time: float) -> None:
    """Give an instruction to its unit, and set its scoreboards."""
    warp = sm.warps[slot]
    result = read = 0.0
    if row.kind == Kind.FIXED:
        sm.cores[warp.sub_core].pipe_free[row.pipe] = time + row.interval
        result = time + row.latency
    elif row.kind == Kind.ASYNC_FENCE:
        result = max(time + row.latency, warp.async_done)
    elif row.unit >= 0:
        result, read, left = enter_memory(sm, row, execution, warp, time)
        warp.store_done = max(warp.store_done, left)
        if row.is_async:
            warp.async_done = max(warp.async_done, result)
    visible = time + _VISIBLE_CYCLES
    _set_board(sm, slot, row.write_board, max(result, visible), row.is_long)
    _set_board(sm, slot, row.read_board, max(read if read != 0.0 else result, visible), row.is_long)


@part
def _set_board(sm: Sm, slot: int, number: int, until: float, is_long: int) -> None:
    """Let a scoreboard be released; of what is outstanding at it, the latest are kept, ascending."""
    if number < 0:
        return
    warp = sm.warps[slot]
    if until >= warp.boards[number]:
        warp.boards[number] = until
        warp.is_long[number] = is_long
    if len(sm.outstanding) == 0:
        return
    kept, place = sm.outstanding[slot, number], warp.outstanding[number]
    if place == len(kept):
        if until <= kept[0]:
            return
        place -= 1
        for index in range(place):
            kept[index] = kept[index + 1]
    else:
        warp.outstanding[number] += 1
    while place > 0 and kept[place - 1] > until:
        kept[place] = kept[place - 1]
        place -= 1
    kept[place] = until


@part
def _hold(sm: Sm, slot: int, row: Row, free: float) -> float:
    """Time until which an instruction holds its warp beyond its stall count; the reasons are added to the segments."""
    model, warp, left = sm.model, sm.warps[slot], row.depbar_left
    if row.kind == Kind.CONVERGE:
        free += model.converge_cycles
        _wait_for(warp, BRANCH_RESOLVING, free)
    elif row.kind == Kind.MEMBAR:
        free = max(free + model.membar_cycles, warp.store_done)
        _wait_for(warp, MEMBAR, free)
    elif left >= 0:
        kept, count = sm.outstanding[slot, row.depbar_board], warp.outstanding[row.depbar_board]
        if count > left and kept[count - 1 - left] > free:
            free = kept[count - 1 - left]
            _wait_for(warp, LONG_SCOREBOARD, free)
    return free


@part
def _jump(sm: Sm, warp: Row, execution: Row, time: float) -> float:
    """Time until which a jump holds its warp, which is counted at the row behind the jump until it leaves."""
    model, row = sm.model, sm.rows[execution.row]
    is_return = row.kind == Kind.RETURN
    free = time + row.stall
    leaves = free + (model.return_resolve_cycles if is_return else 0.0)
    idle = _find_idle_share(sm, warp, time)
    _account(sm, execution, _BEHIND + WAIT, free - time - 1.0, idle)
    _account(sm, execution, _BEHIND + BRANCH_RESOLVING, leaves - free, idle)
    warp.issued_at = leaves
    warp.fetched_line = -1
    resolved = leaves + (0.0 if is_return else model.branch_resolve_cycles)
    _wait_for(warp, BRANCH_RESOLVING, resolved)
    _wait_for(warp, NO_INSTRUCTIONS, resolved + model.jump_fetch_cycles)
    return resolved + model.jump_fetch_cycles


@part
def _find_idle_share(sm: Sm, warp: Row, time: float) -> float:
    """The share of cycles until now in which a warp's scheduler issued nothing."""
    return max(0.0, 1.0 - sm.cores[warp.sub_core].issues / time) if time > 0 else 1.0


@part
def _open_barrier(sm: Sm, place: int, time: float) -> None:
    """Let a block's warps go on where all that have not ended have come to the barrier."""
    held = sm.held[place]
    if held.arrived == 0 or held.arrived < held.left:
        return
    open_at = time + sm.model.barrier_open_cycles
    count = held.arrived
    held.arrived = 0
    for number in range(count):
        slot = sm.arrived[place, number]
        warp = sm.warps[slot]
        warp.opens = open_at
        if warp.is_parked:
            warp.is_parked = 0
            _schedule(sm, slot, warp.arrived, False)


@part
def _leave(sm: Sm, warp: Row, execution: Row, time: float, free: float) -> None:
    """End a warp, once its stores have left. Samples of that time fall on the row behind its last one."""
    model, state, held = sm.model, sm.state, sm.held[warp.place]
    resolved = max(free, time + model.exit_resolve_cycles)
    done = max(resolved, warp.store_done)
    idle = _find_idle_share(sm, warp, time)
    begin = time + 1.0
    for reason, until in ((WAIT, free), (BRANCH_RESOLVING, resolved), (DRAIN, done)):
        if until > begin:
            _account(sm, execution, _BEHIND + reason, until - begin, idle)
            begin = until
    held.left -= 1
    held.end = max(held.end, done)
    state.latest_end = max(state.latest_end, held.end)
    if held.left > 0:
        _open_barrier(sm, warp.place, time)
        return
    state.done += 1
    state.last_start = max(state.last_start + model.block_interval_cycles, held.end + model.block_launch_cycles)
    sm.free_places[state.free_places] = warp.place
    state.free_places += 1
    place = state.starts
    while place > 0 and sm.block_starts[place - 1] < state.last_start:
        sm.block_starts[place] = sm.block_starts[place - 1]
        place -= 1
    sm.block_starts[place] = state.last_start
    state.starts += 1


@part
def _step(sm: Sm, number: int, time: float) -> float:
    """Advance a sub-core at a time; returns the time of its next step."""
    core, eligible = sm.cores[number], sm.eligible[number]
    while _find_soonest(sm, number) <= time:
        core.waiting -= 1
        slot = sm.waiting[number, core.waiting]
        _settle(sm, sm.warps[slot])
        eligible[core.eligible] = slot
        core.eligible += 1
    soonest = _find_soonest(sm, number)
    if core.eligible == 0:
        return soonest
    chosen, opens = _sort_out(sm, number, time)
    if chosen < 0:
        soonest = max(min(soonest, opens), time + 1.0)
        _account_blocked(sm, number, soonest - time, 1.0)
        return soonest
    is_held = not try_read_operands(sm, chosen, time)
    _account_blocked(sm, number, 1.0, 1.0 if is_held else 0.0)
    _account_free(sm, number, chosen, is_held)
    if is_held:
        core.last = sm.warps[chosen].number
        return time + 1.0
    place = 0
    while eligible[place] != chosen:
        place += 1
    core.eligible -= 1
    for behind in range(place, core.eligible):
        eligible[behind] = eligible[behind + 1]
    _issue(sm, chosen, time)
    return time + 1.0


@part
def _account_blocked(sm: Sm, number: int, cycles: float, idle_share: float) -> None:
    """Add cycles of the eligible warps of a sub-core whose gate is closed."""
    for place in range(sm.cores[number].eligible):
        warp = sm.warps[sm.eligible[number, place]]
        reason = _find_gate(sm, warp).reason
        if reason >= 0:
            _account_next(sm, warp, reason, cycles, idle_share)


@part
def _account_free(sm: Sm, number: int, chosen: int, is_held: bool) -> None:
    """Add a cycle of the warps whose gate is open, while one is chosen, and of that one where it cannot read its registers."""
    for place in range(sm.cores[number].eligible):
        slot = sm.eligible[number, place]
        warp = sm.warps[slot]
        if _find_gate(sm, warp).reason < 0:
            if is_held:
                _account_next(sm, warp, DISPATCH_STALL, 1.0, 1.0)
            elif slot != chosen:
                _account_next(sm, warp, NOT_SELECTED, 1.0, 0.0)


@part
def _find_gate(sm: Sm, warp: Row) -> Row:
    """Gate of a warp's next instruction, shared with all that wait for the same pipe or queue."""
    return sm.gates[sm.rows[sm.executions[warp.position].row].gate]


@part
def _sort_out(sm: Sm, number: int, time: float) -> tuple[int, float]:
    """Choose the eligible warp to issue from, -1 for none, and find when the first blocked one can issue.

    The reason of a gate is that of the warps behind it; -1 where it is open.
    """
    core, state = sm.cores[number], sm.state
    chosen, is_chosen_behind, opens = -1, False, inf
    state.steps += 1
    for place in range(core.eligible):
        slot = sm.eligible[number, place]
        warp = sm.warps[slot]
        row = sm.rows[sm.executions[warp.position].row]
        gate, is_behind = sm.gates[row.gate], warp.yielded and row.unit < 0
        if gate.step != state.steps:
            gate.step, gate.reason, gate.until = state.steps, -1, time
            if row.unit >= 0:
                gate.reason, gate.until = find_room(sm, number, row, time)
            elif core.pipe_free[row.pipe] > time:
                gate.reason, gate.until = MATH_PIPE_THROTTLE, core.pipe_free[row.pipe]
        if gate.reason >= 0:
            opens = min(opens, gate.until)
        elif chosen < 0 or (
            sm.warps[chosen].number != core.last
            and (
                warp.number == core.last
                or is_behind < is_chosen_behind
                or (is_behind == is_chosen_behind and warp.number > sm.warps[chosen].number)
            )
        ):
            chosen, is_chosen_behind = slot, is_behind
    return chosen, opens


@part
def try_read_operands(sm: Sm, slot: int, time: float) -> bool:
    """Read the registers of a warp's next instruction, if they are there in time; those that take longer have to begin at once.

    There are two banks with one port each, and a cache that the compiler steers. An instruction of fixed latency has a few cycles behind its issue to
    read its operands. Where a bank cannot give them by then, because instructions before it have theirs read, the sub-core issues nothing. The last
    register that was read for each place of an operand is kept, one of each bank, where the instruction says so (``.reuse``), until another is read
    there; to read it again takes no port.
    """
    model, warp = sm.model, sm.warps[slot]
    core, row = sm.cores[warp.sub_core], sm.rows[sm.executions[warp.position].row]
    first, count = row.first, row.count
    needed = (_count_reads(core, row, warp.number, 0), _count_reads(core, row, warp.number, 1))
    cycles = (ceil(needed[0] / model.bank_registers_per_cycle), ceil(needed[1] / model.bank_registers_per_cycle))
    for bank in unrolled(BANKS):
        end = max(core.port_free[bank], time) + cycles[bank]
        if cycles[bank] > 0 and end > time + max(model.operand_window_cycles, float(cycles[bank])):
            return False
    for bank in unrolled(BANKS):
        if cycles[bank] > 0:
            core.port_free[bank] = max(core.port_free[bank], time) + cycles[bank]
    for place in range(OPERANDS):
        is_kept = row.kept[place] and count[place] <= _MOST_KEPT
        for number in range(first[place], first[place] + count[place]):
            core.kept[place * BANKS + (number & 1)] = warp.number * REGISTERS + number if is_kept else -1
    return True


@part
def _count_reads(core: Row, row: Row, warp: int, bank: int) -> int:
    """Registers that an instruction reads from a bank, without those that are kept."""
    found = 0
    for place in range(OPERANDS):
        for number in range(row.first[place], row.first[place] + row.count[place]):
            found += number & 1 == bank and core.kept[place * BANKS + bank] != warp * REGISTERS + number
    return found
