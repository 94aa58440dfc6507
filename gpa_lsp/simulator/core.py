"""One SM, event by event: :func:`simulate_sm`. The reference; everything in it is an index, a cycle or a sum.

Every time an instruction finishes is known when it is issued, because queues and servers are first come, first served. So the only events are
warps that become ready, and blocks that begin.
"""

from collections import OrderedDict, deque
from heapq import heappop, heappush

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.simulator.machine import SmModel
from gpa_lsp.simulator.program import Kind, SassProgram
from gpa_lsp.simulator.streams import BlockStream

(
    SELECTED,
    NOT_SELECTED,
    WAIT,
    BRANCH_RESOLVING,
    NO_INSTRUCTIONS,
    LONG_SCOREBOARD,
    SHORT_SCOREBOARD,
    IMC_MISS,
    BARRIER,
    MEMBAR,
    MATH_PIPE,
    LG_THROTTLE,
    MIO_THROTTLE,
    TEX_THROTTLE,
    DRAIN,
    DISPATCH,
) = range(16)

REASONS = (
    "selected",
    "not_selected",
    "wait",
    "branch_resolving",
    "no_instructions",
    "long_scoreboard",
    "short_scoreboard",
    "imc_miss",
    "barrier",
    "membar",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "tex_throttle",
    "drain",
    "dispatch_stall",
)
REASON_COUNT = len(REASONS)
SUB_CORES = 4
UNITS = 4
LSU = 0
_NEVER = float("inf")
_SECTOR = 32.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What was added up until a moment of the simulation."""

    time: float
    blocks_done: int
    all_cycles: list[float]
    idle_cycles: list[float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmRun:
    """What one SM did.

    Attributes:
        moments: when the first blocks had ended, when the last one had begun, and the end.
        dilation: warp cycles with those of skipped turns of loops, over those simulated.
        issued: warp instructions that were simulated.
        is_cut: the budget ended it.
    """

    moments: tuple[Moment, ...]
    dilation: float
    issued: int
    is_cut: bool


class _Sm:
    """The state of one SM."""

    def __init__(self, program: SassProgram, model: SmModel, blocks: list[BlockStream], resident: int) -> None:
        self.program, self.model, self.blocks = program, model, blocks
        rows = len(program.kind) + 1
        self.all_cycles = [0.0] * (rows * REASON_COUNT)
        self.idle_cycles = [0.0] * (rows * REASON_COUNT)
        self.resident = resident
        self.rows, self.passes, self.lines = [], [], []
        self.first_sector, self.last_sector, self.sectors, self.weights = [], [], [], []
        # per warp
        self.position, self.stop, self.sub_core, self.block_of, self.launched = [], [], [], [], []
        self.scoreboard, self.is_long, self.issued_at, self.issues_seen = [], [], [], []
        self.segments, self.store_done, self.async_done, self.pending_sets = [], [], [], []
        self.fetched_line = []
        # per sub-core
        self.waiting = [[] for _ in range(SUB_CORES)]
        self.eligible = [[] for _ in range(SUB_CORES)]
        self.issues = [0] * SUB_CORES
        self.last_warp = [-1] * SUB_CORES
        self.pipe_free = [[0.0] * 16 for _ in range(SUB_CORES)]
        self.unit_free = [[0.0] * UNITS for _ in range(SUB_CORES + 1)]
        self.queues = [[deque() for _ in range(UNITS)] for _ in range(SUB_CORES)]
        self.lg_queue = [deque() for _ in range(SUB_CORES)]
        self.queue_last = [[0.0] * UNITS for _ in range(SUB_CORES)]
        self.fetch_lines = [OrderedDict() for _ in range(SUB_CORES)]
        # the SM
        self.accept_free = self.data_free = self.tag_free = 0.0
        self.store_free = self.write_back_free = self.l2_free = self.dram_free = self.reads_until = 0.0
        self.l2_share_left = self.dirty_left = 0.0
        self.stores_leaving = deque()
        self.misses = deque()
        self.l1 = OrderedDict()
        self.l2_seen = set()
        self.code_lines, self.constant_lines = {}, {}
        # blocks
        self.next_block = 0
        self.blocks_done = 0
        self.block_left, self.block_waiting, self.block_end, self.block_first = [], [], [], []
        self.starts = []
        self.last_start = (resident - 1) * model.block_interval_cycles
        self.dispatch_left = [0.0] * SUB_CORES
        self.weighted = self.plain = 0.0
        self.issued = 0
        self.next_sub_core = 0

    # blocks

    def begin_block(self, time: float) -> None:
        """Give the next block's warps to sub-cores."""
        stream = self.blocks[self.next_block]
        number = self.next_block
        self.next_block += 1
        self.block_left.append(len(stream.starts) - 1)
        self.block_waiting.append([])
        self.block_end.append(time)
        self.block_first.append(len(self.position))
        base = len(self.rows)
        sector_base = len(self.sectors)
        self.rows.extend(stream.rows)
        self.passes.extend(stream.passes)
        self.lines.extend(stream.lines)
        self.weights.extend(stream.weights)
        self.first_sector.extend(one + sector_base for one in stream.first_sector)
        self.last_sector.extend(one + sector_base for one in stream.last_sector)
        self.sectors.extend(stream.sectors)
        for index in range(len(stream.starts) - 1):
            warp = len(self.position)
            self.position.append(base + stream.starts[index])
            self.stop.append(base + stream.starts[index + 1])
            self.sub_core.append((self.next_sub_core + index) % SUB_CORES)
            self.block_of.append(number)
            self.launched.append(time)
            self.scoreboard.append([0.0] * 6)
            self.is_long.append([False] * 6)
            self.pending_sets.append([[] for _ in range(6)])
            self.issued_at.append(time)
            self.issues_seen.append(self.issues[self.sub_core[warp]])
            self.segments.append([])
            self.store_done.append(0.0)
            self.async_done.append(0.0)
            self.fetched_line.append(-1)
            start = time + self.model.warp_launch_cycles * (index // SUB_CORES)
            self.schedule(warp, start, start, start, begins=True)
        self.next_sub_core = (self.next_sub_core + len(stream.starts) - 1) % SUB_CORES

    def schedule(
        self, warp: int, time: float, stalled_until: float, branch_until: float, *, begins: bool = False
    ) -> None:
        """Work out when a warp can issue its next instruction, and what it waits for until then."""
        model, program = self.model, self.program
        position = self.position[warp]
        row = self.rows[position]
        segments = self.segments[warp]
        segments.clear()
        if stalled_until > time:
            segments.append((WAIT, stalled_until))
        now = stalled_until
        if branch_until > now:
            segments.append((BRANCH_RESOLVING, branch_until))
            now = branch_until
        line = program.fetch_line[row]
        if line != self.fetched_line[warp]:
            self.fetched_line[warp] = line
            ready = self.fetch(self.sub_core[warp], line, now)
            if begins:
                ready = max(ready, now + model.warp_start_cycles)
            if ready > now:
                segments.append((NO_INSTRUCTIONS, ready))
                now = ready
        mask = program.wait_mask[row]
        if mask:
            board, longs = self.scoreboard[warp], self.is_long[warp]
            latest, is_long = 0.0, False
            for number in range(6):
                if mask >> number & 1 and board[number] > latest:
                    latest, is_long = board[number], longs[number]
            if latest > now:
                segments.append((LONG_SCOREBOARD if is_long else SHORT_SCOREBOARD, latest))
                now = latest
        left = program.depbar_left[row]
        if left >= 0:
            done = self.pending_sets[warp][program.depbar_board[row]]
            if len(done) > left:
                done.sort()
                latest = done[-1 - left]
                if latest > now:
                    segments.append((LONG_SCOREBOARD, latest))
                    now = latest
        constant = program.constant_line[row]
        if constant >= 0:
            ready = self.read_constant(constant, now)
            if ready > now:
                segments.append((IMC_MISS, ready))
                now = ready
        heappush(self.waiting[self.sub_core[warp]], (now, warp))

    def fetch(self, sub_core: int, line: int, time: float) -> float:
        """When the instructions of a line are in a sub-core's first cache."""
        model, lines = self.model, self.fetch_lines[sub_core]
        ready = lines.get(line)
        if ready is not None:
            lines.move_to_end(line)
            return ready
        shared = self.code_lines.get(line)
        if shared is None:
            shared = time + (model.code_cold_cycles if self.code_lines else model.code_first_cycles)
            self.code_lines[line] = shared
            for ahead in range(1, model.code_prefetch_lines + 1):
                self.code_lines.setdefault(line + ahead, shared + ahead * model.code_stream_cycles)
        near = lines.get(line - 1)
        cost = model.code_stream_cycles if near is not None else model.code_near_cycles
        ready = max(time + cost, shared)
        lines[line] = ready
        if len(lines) > model.code_near_lines:
            lines.popitem(last=False)
        return ready

    def read_constant(self, line: int, time: float) -> float:
        """When a constant operand is there."""
        model, known = self.model, self.constant_lines
        far = known.get(-1 - (line >> 2))
        if far is None:
            far = known[-1 - (line >> 2)] = time + model.constant_cold_cycles
        near = known.get(line)
        if near is None:
            near = known[line] = max(far, time + model.constant_near_cycles)
        return near

    # accounting

    def settle(self, warp: int) -> None:
        """Add up what a warp waited for since it issued."""
        position = self.position[warp]
        weight = self.weights[position]
        base = self.rows[position] * REASON_COUNT
        begin = self.issued_at[warp]
        sub_core = self.sub_core[warp]
        segments = self.segments[warp]
        if not segments:
            return
        length = segments[-1][1] - begin
        busy = self.issues[sub_core] - self.issues_seen[warp]
        idle = max(0.0, 1.0 - busy / length) if length > 0 else 0.0
        total = 0.0
        for reason, until in segments:
            cycles = until - begin
            begin = until
            total += cycles
            self.all_cycles[base + reason] += cycles * weight
            self.idle_cycles[base + reason] += cycles * weight * idle
        self.weighted += total * weight
        self.plain += total

    def add(self, warp: int, reason: int, cycles: float, is_idle: bool) -> None:
        position = self.position[warp]
        weight = self.weights[position]
        index = self.rows[position] * REASON_COUNT + reason
        self.all_cycles[index] += cycles * weight
        if is_idle:
            self.idle_cycles[index] += cycles * weight
        self.weighted += cycles * weight
        self.plain += cycles

    # issue

    def find_block(self, warp: int, time: float) -> tuple[int, float]:
        """Why a warp whose operands are there cannot issue, and until when; -1 where it can."""
        program, model = self.program, self.model
        position = self.position[warp]
        row = self.rows[position]
        sub_core = self.sub_core[warp]
        unit = program.unit[row]
        if unit >= 0:
            queue = self.queues[sub_core][unit]
            while queue and queue[0] <= time:
                queue.popleft()
            if program.is_lg[row]:
                lg = self.lg_queue[sub_core]
                while lg and lg[0] <= time:
                    lg.popleft()
                if len(lg) >= model.lg_queue_instructions:
                    return LG_THROTTLE, lg[0]
            if len(queue) >= model.mio_queue_instructions:
                return program.throttle[row], queue[0]
            return -1, time
        pipe = program.pipe[row]
        free = self.pipe_free[sub_core][pipe]
        if free > time:
            return MATH_PIPE, free
        return -1, time

    def issue(self, warp: int, time: float) -> None:
        """Issue a warp's next instruction."""
        program, model = self.program, self.model
        position = self.position[warp]
        row = self.rows[position]
        sub_core = self.sub_core[warp]
        self.issues[sub_core] += 1
        self.issued += 1
        self.add(warp, SELECTED, 1.0, is_idle=False)
        kind = program.kind[row]
        stall = program.stall[row]
        stalled_until = time + stall
        result = read = 0.0
        if kind == Kind.FIXED:
            self.pipe_free[sub_core][program.pipe[row]] = time + program.interval[row]
            result = time + program.latency[row]
        elif kind == Kind.ASYNC_FENCE:
            result = max(time + program.latency[row], self.async_done[warp])
        elif kind != Kind.BRANCH and kind != Kind.EXIT and kind != Kind.BARRIER and kind != Kind.MEMBAR:
            result, read = self.enter_queue(warp, row, kind, position, sub_core, time)
        write_board, read_board = program.write_board[row], program.read_board[row]
        if write_board >= 0:
            self.set_board(warp, write_board, max(result, time + 2.0), program.is_long[row])
        if read_board >= 0:
            self.set_board(warp, read_board, max(read or result, time + 2.0), program.is_long[row])
        self.issued_at[warp] = time + 1.0
        self.issues_seen[warp] = self.issues[sub_core]
        self.last_warp[sub_core] = warp
        if kind == Kind.EXIT and position + 1 >= self.stop[warp]:
            self.leave(warp, time, stalled_until, row)
            return
        self.position[warp] = position + 1
        if kind == Kind.BARRIER:
            self.arrive(warp, time, stalled_until)
            return
        if position + 1 >= self.stop[warp]:
            self.leave(warp, time, stalled_until, row)
            return
        branch_until = 0.0
        if self.rows[position + 1] != row + 1:
            branch_until = time + model.branch_cycles
            self.fetched_line[warp] = -1
        elif kind == Kind.BRANCH:
            branch_until = time + program.fall_through[row]
        if kind == Kind.MEMBAR:
            until = max(self.store_done[warp], time + model.membar_cycles)
            self.schedule(warp, time + 1.0, stalled_until, 0.0)
            self.delay(warp, MEMBAR, until)
            return
        self.schedule(warp, time + 1.0, stalled_until, branch_until)

    def delay(self, warp: int, reason: int, until: float) -> None:
        """Hold back a warp that has just been scheduled."""
        waiting = self.waiting[self.sub_core[warp]]
        for index, (ready, other) in enumerate(waiting):
            if other == warp:
                if ready < until:
                    self.segments[warp].append((reason, until))
                    waiting[index] = (until, warp)
                    waiting.sort()
                return

    def set_board(self, warp: int, number: int, until: float, is_long: bool) -> None:
        board = self.scoreboard[warp]
        if until >= board[number]:
            board[number] = until
            self.is_long[warp][number] = is_long
        if self.program.has_depbar:
            self.pending_sets[warp][number].append(until)

    def arrive(self, warp: int, time: float, stalled_until: float) -> None:
        """A warp at a barrier: it goes on when all warps of its block that are left have come."""
        block = self.block_of[warp]
        waiting = self.block_waiting[block]
        waiting.append((warp, stalled_until))
        self.release(block, time)

    def release(self, block: int, time: float) -> None:
        waiting = self.block_waiting[block]
        if not waiting or len(waiting) < self.block_left[block]:
            return
        open_at = time + self.model.barrier_cycles
        for warp, stalled_until in waiting:
            issued = self.issued_at[warp]
            self.schedule(warp, issued, max(stalled_until, open_at), 0.0)
            segments = self.segments[warp]
            until = max(stalled_until, open_at)
            if segments and segments[0][0] == WAIT and until > stalled_until:
                segments[:1] = [(WAIT, stalled_until), (BARRIER, until)]
        waiting.clear()

    def leave(self, warp: int, time: float, stalled_until: float, row: int) -> None:
        """The end of a warp: what it stored has to leave first."""
        model = self.model
        resolved = max(stalled_until, time + model.exit_cycles)
        done = max(resolved, self.store_done[warp])
        weight = self.weights[self.position[warp] if self.position[warp] < self.stop[warp] else self.stop[warp] - 1]
        base = (row + 1) * REASON_COUNT
        for reason, begin, until in (
            (WAIT, time + 1.0, stalled_until),
            (BRANCH_RESOLVING, stalled_until, resolved),
            (DRAIN, resolved, done),
        ):
            if until > begin:
                self.all_cycles[base + reason] += (until - begin) * weight
                self.idle_cycles[base + reason] += (until - begin) * weight * self.idle_share(self.sub_core[warp], time)
                self.weighted += (until - begin) * weight
                self.plain += until - begin
        block = self.block_of[warp]
        self.block_left[block] -= 1
        self.block_end[block] = max(self.block_end[block], done)
        if self.block_left[block] == 0:
            self.blocks_done += 1
            self.last_start = max(
                self.last_start + model.block_interval_cycles, self.block_end[block] + model.block_launch_cycles
            )
            heappush(self.starts, self.last_start)
        else:
            self.release(block, time)

    def idle_share(self, sub_core: int, time: float) -> float:
        return max(0.0, 1.0 - self.issues[sub_core] / time) if time > 0 else 1.0

    # memory

    def enter_queue(
        self, warp: int, row: int, kind: int, position: int, sub_core: int, time: float
    ) -> tuple[float, float]:
        """Put an instruction of variable latency into its sub-core's queue; when its result is there, and when its sources are read."""
        program, model = self.program, self.model
        unit = program.unit[row]
        begin = max(time + model.queue_cycles, self.queue_last[sub_core][unit] + 1.0)
        passes = self.passes[position]
        if kind == Kind.SPECIAL or passes == 0:  # or no lane is active
            if kind == Kind.SPECIAL:
                free = self.unit_free[4 if program.is_shared_unit[row] else sub_core]
                begin = max(begin, free[unit])
                free[unit] = begin + program.interval[row]
            self.queue_last[sub_core][unit] = begin
            self.queues[sub_core][unit].append(begin)
            return begin + program.latency[row], begin + model.read_cycles
        begin = max(begin, self.accept_free, self.unit_free[sub_core][LSU])
        if kind == Kind.SHARED:
            begin = max(begin, self.data_free - model.data_queue_cycles)
            start = max(begin, self.data_free)
            self.data_free = start + passes
            result = start + passes - 1 + program.latency[row]
            self.enter(sub_core, begin, is_global=False)
            return result, begin + model.read_cycles + passes
        if kind in (Kind.STORE, Kind.REDUCTION):
            return self.store(warp, row, position, sub_core, begin)
        return self.load(warp, row, position, sub_core, begin)

    def enter(self, sub_core: int, begin: float, *, is_global: bool) -> None:
        model = self.model
        self.accept_free = begin + model.accept_cycles
        self.unit_free[sub_core][LSU] = begin + model.address_cycles
        self.queue_last[sub_core][LSU] = begin
        self.queues[sub_core][LSU].append(begin)
        if is_global:
            self.lg_queue[sub_core].append(begin)

    def store(self, warp: int, row: int, position: int, sub_core: int, begin: float) -> tuple[float, float]:
        """A store leaves for L2 through a queue of its own, and has ended when it has left."""
        model = self.model
        leaving = self.stores_leaving
        while leaving and leaving[0] <= begin:
            leaving.popleft()
        if len(leaving) >= model.store_queue_instructions:
            begin = max(begin, leaving[len(leaving) - model.store_queue_instructions])
        count = self.last_sector[position] - self.first_sector[position]
        lines = self.lines[position]
        start = max(begin, self.tag_free)
        self.tag_free = start + max(lines, self.passes[position])
        self.enter(sub_core, begin, is_global=True)
        departs = max(self.store_free, start + self.passes[position])
        self.store_free = departs + count * _SECTOR / model.store_bytes_per_cycle
        departs = self.store_free
        written = count * _SECTOR * model.written_back_share
        if written:
            cost = written / model.dram_bytes_per_cycle
            if self.reads_until > departs + model.read_backlog_cycles:
                self.write_back_free += cost  # reads want the other half
            self.write_back_free = max(self.write_back_free, departs) + cost
            self.dram_free = max(self.dram_free, departs) + cost
            departs = max(departs, self.write_back_free - model.write_buffer_cycles)
            self.store_free = max(self.store_free, departs)
        leaving.append(departs)
        done = departs + model.store_retire_cycles
        if done > self.store_done[warp]:
            self.store_done[warp] = done
        return done, start + model.read_cycles + self.passes[position]

    def load(self, warp: int, row: int, position: int, sub_core: int, begin: float) -> tuple[float, float]:
        """A load, or an atomic that returns something: tags, then what they miss from L2 and DRAM."""
        model, program = self.model, self.program
        misses = self.misses
        while misses and misses[0] <= begin:
            misses.popleft()
        if len(misses) >= model.miss_requests:
            begin = max(begin, misses[len(misses) - model.miss_requests])
        start = max(begin, self.tag_free - model.tag_queue_cycles)
        begin = start
        start = max(start, self.tag_free)
        passes = max(self.lines[position], self.passes[position])
        self.tag_free = start + passes
        self.enter(sub_core, begin, is_global=True)
        latest = start + passes - 1 + program.latency[row]
        uses_l1 = program.uses_l1[row] and model.l1_lines > 0
        l1 = self.l1
        missed = False
        for index in range(self.first_sector[position], self.last_sector[position]):
            sector = self.sectors[index]
            line = sector >> 2
            entry = l1.get(line) if uses_l1 else None
            if entry is not None:
                l1.move_to_end(line)
                ready = entry.get(sector)
                if ready is not None:
                    if ready > latest:
                        latest = ready
                    continue
            missed = True
            ready = self.fetch_sector(sector, start + passes)
            if ready > latest:
                latest = ready
            if uses_l1:
                if entry is None:
                    entry = l1[line] = {}
                    if len(l1) > model.l1_lines:
                        l1.popitem(last=False)
                entry[sector] = ready
        if missed:
            misses.append(latest)
        if program.is_async[row] and latest > self.async_done[warp]:
            self.async_done[warp] = latest
        return latest, begin + model.read_cycles

    def fetch_sector(self, sector: int, time: float) -> float:
        """When a sector that L1 has not arrives."""
        model = self.model
        self.l2_free = max(self.l2_free, time) + _SECTOR / model.l2_bytes_per_cycle
        arrives = self.l2_free + model.l2_cycles
        if sector in self.l2_seen:
            return arrives
        self.l2_seen.add(sector)
        self.l2_share_left += model.l2_hit_share
        if self.l2_share_left >= 1.0:
            self.l2_share_left -= 1.0
            return arrives
        self.dram_free = max(self.dram_free, self.l2_free) + _SECTOR / model.dram_bytes_per_cycle
        self.reads_until = self.dram_free
        return max(arrives, self.dram_free + model.dram_cycles)

    # the loop

    def step(self, sub_core: int, time: float) -> float:
        """What a sub-core does at a time; when it has to be asked again."""
        waiting, eligible = self.waiting[sub_core], self.eligible[sub_core]
        while waiting and waiting[0][0] <= time:
            _, warp = heappop(waiting)
            self.settle(warp)
            eligible.append(warp)
        if not eligible:
            return waiting[0][0] if waiting else _NEVER
        chosen, last = -1, self.last_warp[sub_core]
        blocked = []
        soonest = waiting[0][0] if waiting else _NEVER
        free_count = 0
        for warp in eligible:
            reason, until = self.find_block(warp, time)
            if reason >= 0:
                blocked.append((warp, reason))
                soonest = min(soonest, until)
                continue
            free_count += 1
            if chosen < 0 or warp == last or (chosen != last and warp > chosen):
                chosen = warp
        if chosen < 0:
            soonest = max(soonest, time + 1.0)
            for warp, reason in blocked:
                self.add(warp, reason, soonest - time, is_idle=True)
            return soonest
        if free_count > 1:
            dispatch = min(1.0, self.model.dispatch_share / (free_count - 1))
            names = {warp for warp, _ in blocked}
            for warp in eligible:
                if warp != chosen and warp not in names:
                    self.add(warp, NOT_SELECTED, 1.0 - dispatch, is_idle=False)
                    self.add(warp, DISPATCH, dispatch, is_idle=False)
        for warp, reason in blocked:
            self.add(warp, reason, 1.0, is_idle=False)
        eligible.remove(chosen)
        self.issue(chosen, time)
        return time + 1.0

    def mark(self, time: float) -> Moment:
        return Moment(
            time=time,
            blocks_done=self.blocks_done,
            all_cycles=self.all_cycles.copy(),
            idle_cycles=self.idle_cycles.copy(),
        )


def simulate_sm(
    program: SassProgram, model: SmModel, blocks: list[BlockStream], resident: int, most_issues: int
) -> SmRun:
    """Run blocks on one SM until all have ended.

    Args:
        program: the instructions.
        model: the SM.
        blocks: what each executes, in the order they begin.
        resident: how many fit at once.
        most_issues: warp instructions to simulate at most; begun blocks are given up there.
    """
    sm = _Sm(program, model, blocks, resident)
    for number in range(min(resident, len(blocks))):
        sm.begin_block(number * model.block_interval_cycles)
    following = [0.0] * SUB_CORES
    moments: list[Moment] = []
    time = 0.0
    is_cut = False
    while True:
        time = min(following)
        if sm.starts and sm.next_block < len(blocks) and sm.starts[0] <= time:
            time = heappop(sm.starts)
            if sm.blocks_done >= resident and not moments:
                moments.append(sm.mark(time))
            sm.begin_block(time)
            for sub_core in range(SUB_CORES):
                following[sub_core] = min(following[sub_core], time)
            if sm.next_block == len(blocks):
                moments.append(sm.mark(time))
            continue
        if time == _NEVER:
            break
        if sm.issued >= most_issues:
            is_cut = True
            break
        for sub_core in range(SUB_CORES):
            if following[sub_core] <= time:
                following[sub_core] = sm.step(sub_core, time)
        for sub_core in range(SUB_CORES):  # a barrier may have opened for others
            if sm.waiting[sub_core] and not sm.eligible[sub_core]:
                following[sub_core] = min(following[sub_core], max(sm.waiting[sub_core][0][0], time))
            elif sm.waiting[sub_core]:
                following[sub_core] = min(following[sub_core], max(sm.waiting[sub_core][0][0], time + 1.0))
    end = max([time if time != _NEVER else 0.0, *sm.block_end])
    moments.append(sm.mark(end))
    dilation = sm.weighted / sm.plain if sm.plain else 1.0
    return SmRun(moments=tuple(moments), dilation=dilation, issued=sm.issued, is_cut=is_cut)
