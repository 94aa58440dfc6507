"""What instructions of variable latency go through: queues of the sub-cores, L1, and the SM's share of L2 and DRAM: :class:`MemoryPath`.

All servers are first come, first served, so that the end of an instruction is known when it enters.

Stores have a path of their own. A store gives its registers back when they have been read, enters the queue of stores under way, leaves it for
L2, and has ended some cycles behind that: where it is in DRAM, nobody waits for. L2 takes what is written until what it displaces is too far behind
on its way to DRAM; only then does DRAM push back, by letting stores leave later. So the reasons of a kernel that only stores say where they stand:

* ``drain``: its warps have ended but for stores that have not left. All time is there as long as fewer stores are under way than the queue holds.
* ``lg_throttle``: the queue is full, and with it those of the sub-cores in front of it. The more stores a warp has, the more time moves here.
* A scoreboard, long for stores: the registers of a store that has not been read are overwritten; ``short_scoreboard`` is of what addresses come from.

Atomic operations that name one address are done one after the other, in L2, for all SMs: where they meet, each waits until the others' turn is over.
Those that return nothing are stores that leave when they are done, so that the SM waits like one whose stores do not get away.

If stores ended in DRAM, kernels that load and store would take as long as they do, but spend nearly half of it in ``drain``, where the profiler sees
two percent; if nothing pushed back, kernels that only store would take a tenth of their time.
"""

from collections import OrderedDict, deque

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.program import LSU, UNITS, Kind, SassProgram
from gpa_lsp.execution.simulator.reasons import LG_THROTTLE
from gpa_lsp.execution.simulator.streams import Executions
from gpa_lsp.execution.simulator.warp_walk import LINE_SECTORS, LOCAL_SECTOR
from gpa_lsp.execution.volumes.block_volumes import FREE_TAGS, TAGS_PER_CYCLE
from gpa_lsp.kernel.dataflow.accesses import SECTOR_BYTES

# When an instruction's result is there, when its sources have been read, and when what it stores has left
Passage = tuple[float, float, float]


class MemoryPath:
    """See the module.

    Attributes:
        l2_bytes: asked of L2.
        dram_bytes: to and from DRAM.
        tag_cycles: in which the tags of L1 were looked up.
        data_cycles: in which shared memory was accessed.
    """

    def __init__(self, program: SassProgram, model: SmModel, executions: Executions, sub_cores: int) -> None:
        self._program, self._model, self._executions = program, model, executions
        self._queues: list[list[deque[float]]] = [[deque() for _ in range(UNITS)] for _ in range(sub_cores)]
        self._lg_queues: list[deque[float]] = [deque() for _ in range(sub_cores)]
        self._last = [[0.0] * UNITS for _ in range(sub_cores)]
        self._unit_free = [[0.0] * UNITS for _ in range(sub_cores)]
        self._shared_free = [0.0] * UNITS
        self._accept_free = self._data_free = self._tag_free = 0.0
        self._store_free = self._write_back_free = 0.0
        self._l2_free = self._dram_free = self._reads_until = 0.0
        self._hits_due = 0.0
        self._leaving: deque[float] = deque()
        self._misses: deque[float] = deque()
        self._l1: OrderedDict[int, dict[int, float]] = OrderedDict()
        self._l2_seen: set[int] = set()
        self._held: dict[int, float] = {}
        self.l2_bytes = self.dram_bytes = self.tag_cycles = self.data_cycles = 0.0

    def find_room(self, sub_core: int, row: int, time: float) -> tuple[int, float]:
        """Why a queue does not take an instruction, and until when; -1 where it does."""
        program, model = self._program, self._model
        if program.is_lg[row]:
            queue = self._lg_queues[sub_core]
            while queue and queue[0] <= time:
                queue.popleft()
            if len(queue) >= model.lg_queue_instructions:
                return LG_THROTTLE, queue[0]
        queue = self._queues[sub_core][program.unit[row]]
        while queue and queue[0] <= time:
            queue.popleft()
        if len(queue) >= model.mio_queue_instructions:
            return program.throttle[row], queue[0]
        return -1, time

    def enter(self, row: int, position: int, sub_core: int, time: float) -> Passage:
        """Put an instruction that was issued at ``time`` into its queue."""
        program, model = self._program, self._model
        kind, unit = program.kind[row], program.unit[row]
        begin = max(time + model.queue_cycles, self._last[sub_core][unit] + 1.0)
        passes = self._executions.passes[position]
        if kind == Kind.SPECIAL or passes == 0:  # or no lane is active
            again = 0.0
            if kind == Kind.SPECIAL:
                free = self._shared_free if program.is_shared_unit[row] else self._unit_free[sub_core]
                begin = max(begin, free[unit])
                again = max(passes - 1, 0) * program.interval[row]
                free[unit] = begin + program.interval[row] + again
            self._last[sub_core][unit] = begin
            self._queues[sub_core][unit].append(begin)
            return begin + program.latency[row] + again, begin + model.read_cycles, 0.0
        begin = max(begin, self._accept_free, self._unit_free[sub_core][LSU])
        if kind == Kind.SHARED:
            return self._access_shared(row, passes, sub_core, begin)
        if kind in (Kind.STORE, Kind.REDUCTION):
            return self._store(row, position, sub_core, begin)
        return self._load(row, position, sub_core, begin)

    def _leave_queue(self, sub_core: int, begin: float, *, is_lg: bool) -> None:
        model = self._model
        self._accept_free = begin + model.accept_cycles
        self._unit_free[sub_core][LSU] = begin + model.address_cycles
        self._last[sub_core][LSU] = begin
        self._queues[sub_core][LSU].append(begin)
        if is_lg:
            self._lg_queues[sub_core].append(begin)

    def _access_shared(self, row: int, passes: int, sub_core: int, begin: float) -> Passage:
        model = self._model
        begin = max(begin, self._data_free - model.data_queue_cycles)
        start = max(begin, self._data_free)
        self._data_free = start + passes
        self.data_cycles += passes
        self._leave_queue(sub_core, begin, is_lg=False)
        return start + passes - 1 + self._program.latency[row], begin + model.read_cycles + passes, 0.0

    def _store(self, row: int, position: int, sub_core: int, begin: float) -> Passage:
        model, executions = self._model, self._executions
        is_reduction = self._program.kind[row] == Kind.REDUCTION
        leaving = self._leaving
        while leaving and leaving[0] <= begin:
            leaving.popleft()
        if len(leaving) >= model.store_queue_instructions:
            begin = max(begin, leaving[len(leaving) - model.store_queue_instructions])
        passes = executions.passes[position]
        start = max(begin, self._tag_free)
        busy = max(executions.lines[position], passes)
        self._tag_free = start + busy
        self.tag_cycles += busy
        self._leave_queue(sub_core, begin, is_lg=True)
        if not is_reduction and model.l1_lines > 0:
            self._keep_stored(position, start + busy)
        written = (executions.last_sector[position] - executions.first_sector[position]) * SECTOR_BYTES
        sent = written * self._count_repeats(position) if is_reduction else written
        self.l2_bytes += sent
        departs = max(self._store_free, start + passes) + sent / model.store_bytes_per_cycle
        back = written * model.written_back_ratio
        if back:
            departs = self._write_back(back, departs)
        self._store_free = departs
        if is_reduction:
            departs = self._meet(row, position, departs)
        leaving.append(departs)
        done = departs + model.store_retire_cycles
        return done, start + model.read_cycles + passes, done

    def _count_repeats(self, position: int) -> float:
        """Lanes that name the same address, of each line."""
        executions = self._executions
        return executions.passes[position] / max(executions.lines[position], 1)

    def _meet(self, row: int, position: int, time: float) -> float:
        """When L2 has done the last of a warp's atomic operations that come at a time. The first waits only for what came before it."""
        executions = self._executions
        repeats = self._count_repeats(position)
        cycles = self._program.interval[row] * self._model.atomic_cycles
        latest = time
        for sector in executions.sectors[executions.first_sector[position] : executions.last_sector[position]]:
            start = max(time, self._held.get(sector, 0.0))
            self._held[sector] = start + repeats * cycles
            latest = max(latest, start + (repeats - 1.0) * cycles)
        return latest

    def _keep_stored(self, position: int, time: float) -> None:
        """Stores take lines of L1; what they leave there is read again only in local memory, where no other SM can have written since."""
        executions = self._executions
        for sector in executions.sectors[executions.first_sector[position] : executions.last_sector[position]]:
            entry = self._take_line(sector // LINE_SECTORS)
            if sector & LOCAL_SECTOR:  # a bit: what later blocks alone touch is told apart by higher ones
                entry.setdefault(sector, time)

    def _take_line(self, line: int) -> dict[int, float]:
        """A line of L1, as the one used last."""
        l1 = self._l1
        entry = l1.get(line)
        if entry is not None:
            l1.move_to_end(line)
            return entry
        entry = l1[line] = {}
        if len(l1) > self._model.l1_lines:
            l1.popitem(last=False)
        return entry

    def _write_back(self, written: float, departs: float) -> float:
        """What a store displaces goes to DRAM; where too much of that is due, the store waits."""
        model = self._model
        self.dram_bytes += written
        cost = written / model.dram_bytes_per_cycle
        if self._reads_until > departs + model.read_backlog_cycles:
            self._write_back_free += cost  # reads want the other half
        self._write_back_free = max(self._write_back_free, departs) + cost
        self._dram_free = max(self._dram_free, departs) + cost
        return max(departs, self._write_back_free - model.write_buffer_cycles)

    def _load(self, row: int, position: int, sub_core: int, begin: float) -> Passage:
        """A load, or an atomic operation that returns something: tags, then what they miss from L2 and DRAM."""
        model, program, executions = self._model, self._program, self._executions
        misses = self._misses
        while misses and misses[0] <= begin:
            misses.popleft()
        if len(misses) >= model.miss_queue_instructions:
            begin = max(begin, misses[len(misses) - model.miss_queue_instructions])
        begin = max(begin, self._tag_free - model.tag_queue_cycles)
        start = max(begin, self._tag_free)
        passes = self._count_passes(executions.passes[position], executions.lines[position])
        self._tag_free = start + passes
        self.tag_cycles += passes
        self._leave_queue(sub_core, begin, is_lg=True)
        hit = start + passes - 1 + program.latency[row]
        latest = self._look_up(position, start + passes, uses_l1=program.uses_l1[row] and model.l1_lines > 0)
        if program.kind[row] == Kind.ATOMIC and latest > 0:
            latest = max(latest, self._meet(row, position, start + passes) + model.l2_cycles)
        if latest > 0:
            misses.append(max(latest, hit))
        return max(latest, hit), begin + model.read_cycles, 0.0

    def _count_passes(self, passes: int, lines: int) -> float:
        """Cycles in which L1 has the lines of a load looked up and its data handed over."""
        at_once = self._model.l1_tags_per_cycle
        if at_once:
            return passes + lines / at_once
        return max(passes, -(-(lines + FREE_TAGS) // TAGS_PER_CYCLE))

    def _look_up(self, position: int, time: float, *, uses_l1: bool) -> float:
        """When the last sector that L1 had not is there; 0 where it had all. Those under way are waited for."""
        executions = self._executions
        latest = 0.0
        for sector in executions.sectors[executions.first_sector[position] : executions.last_sector[position]]:
            entry = self._take_line(sector // LINE_SECTORS) if uses_l1 else {}
            ready = entry.get(sector)
            if ready is None:
                ready = entry[sector] = self._fetch(sector, time)
            elif ready <= time:
                continue
            latest = max(latest, ready)
        return latest

    def _fetch(self, sector: int, time: float) -> float:
        """When a sector that L1 has not arrives."""
        model = self._model
        self.l2_bytes += SECTOR_BYTES
        self._l2_free = max(self._l2_free, time) + SECTOR_BYTES / model.l2_bytes_per_cycle
        arrives = self._l2_free + model.l2_cycles
        if sector in self._l2_seen:
            return arrives
        self._l2_seen.add(sector)
        self._hits_due += model.l2_hit_ratio
        if self._hits_due >= 1.0:
            self._hits_due -= 1.0
            return arrives
        self.dram_bytes += SECTOR_BYTES
        self._dram_free = max(self._dram_free, self._l2_free) + SECTOR_BYTES / model.dram_bytes_per_cycle
        self._reads_until = self._dram_free
        return max(arrives, self._dram_free + model.dram_cycles)


FAR_LINES = 4  # Lines of the constant cache that come from further away together


class InstructionSupply:
    """Each sub-core's instruction cache, what the SM holds behind them, and its constants. A stream of lines is fetched ahead of a miss."""

    def __init__(self, model: SmModel, sub_cores: int) -> None:
        self._model = model
        self._near: list[OrderedDict[int, float]] = [OrderedDict() for _ in range(sub_cores)]
        self._shared: dict[int, float] = {}
        self._constants: dict[int, float] = {}
        self._far_constants: dict[int, float] = {}

    def fetch(self, sub_core: int, line: int, time: float) -> float:
        """When the instructions of a line are in a sub-core's own cache."""
        model, near = self._model, self._near[sub_core]
        ready = near.get(line)
        if ready is not None:
            near.move_to_end(line)
            return ready
        shared = self._shared.get(line)
        if shared is None:
            shared = time + (model.code_cold_cycles if self._shared else model.code_first_cycles)
            self._shared[line] = shared
            for ahead in range(1, model.code_prefetch_lines + 1):
                self._shared.setdefault(line + ahead, shared + ahead * model.code_stream_cycles)
        follows = line - 1 in near
        ready = max(time + (model.code_stream_cycles if follows else model.code_near_cycles), shared)
        near[line] = ready
        if len(near) > model.code_cache_lines:
            near.popitem(last=False)
        return ready

    def read_constant(self, line: int, time: float) -> float:
        """When a line of constants is in the SM."""
        ready = self._constants.get(line)
        if ready is None:
            far = self._far_constants.setdefault(line // FAR_LINES, time + self._model.constant_cold_cycles)
            ready = self._constants[line] = max(far, time + self._model.constant_near_cycles)
        return ready
