"""One SM, event by event: :func:`simulate_sm`.

When an instruction ends is known when it is issued (:mod:`~gpa_lsp.execution.simulator.memory_path`). So the only events are warps that become
ready, and
blocks that begin. A sub-core issues of the warp it issued of last, else of the youngest that can.
"""

from collections.abc import Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.machine import SmModel
from gpa_lsp.execution.simulator.memory_path import FAR_LINES, InstructionSupply, MemoryPath
from gpa_lsp.execution.simulator.program import OPERANDS, PIPES, SUB_CORES, Kind, RegisterPorts, SassProgram
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
    StallAccounts,
)
from gpa_lsp.execution.simulator.streams import BlockStream, Executions
from gpa_lsp.foundation.native.shared_library import find_core

_SCOREBOARDS = 6
_VISIBLE_CYCLES = 2.0  # From setting a scoreboard to waiting for it

Segment = tuple[int, float]  # A reason, and until when a warp waits for it


class _Warp:
    """A warp that has begun."""

    __slots__ = (
        "async_done",
        "block",
        "boards",
        "fetched_line",
        "issued_at",
        "issues_seen",
        "long_boards",
        "number",
        "outstanding",
        "position",
        "segments",
        "stop",
        "store_done",
        "sub_core",
    )

    def __init__(self, number: int, block: int, sub_core: int, position: int, stop: int) -> None:
        self.number, self.block, self.sub_core, self.position, self.stop = number, block, sub_core, position, stop
        self.boards = [0.0] * _SCOREBOARDS
        self.long_boards = [False] * _SCOREBOARDS
        self.outstanding: list[list[float]] = [[] for _ in range(_SCOREBOARDS)]
        self.segments: list[Segment] = []
        self.store_done = self.async_done = self.issued_at = 0.0
        self.fetched_line = -1
        self.issues_seen = 0


class _Block:
    """A block that has begun."""

    __slots__ = ("arrived", "end", "left")

    def __init__(self, warps: int, time: float) -> None:
        self.left, self.end = warps, time
        self.arrived: list[tuple[_Warp, float]] = []


class _SubCore:
    """A scheduler with its pipes."""

    __slots__ = ("eligible", "issues", "last", "pipe_free", "ports", "waiting")

    def __init__(self, model: SmModel) -> None:
        self.waiting: list[tuple[float, int]] = []
        self.eligible: list[_Warp] = []
        self.pipe_free = [0.0] * PIPES
        self.ports = RegisterPorts(model)
        self.issues = 0
        self.last = -1


class _Sm:
    """The state of one SM."""

    def __init__(self, program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int) -> None:
        self.program, self.model, self.streams = program, model, blocks
        self.accounts = StallAccounts(len(program.kind) + 1)
        self.executions = Executions()
        self.supply = InstructionSupply(model, SUB_CORES)
        self.memory = MemoryPath(program, model, self.executions, SUB_CORES)
        self.sub_cores = [_SubCore(model) for _ in range(SUB_CORES)]
        self.warps: list[_Warp] = []
        self.blocks: list[_Block] = []
        self.blocks_done = 0
        self.starts: list[float] = []
        self.last_start = (resident - 1) * model.block_interval_cycles
        self.issued = 0
        self.next_sub_core = 0

    def begin_block(self, time: float) -> None:
        """Give the next block's warps to the sub-cores, in turn."""
        stream = self.streams[len(self.blocks)]
        base = self.executions.append(stream)
        starts: list[int] = stream.starts.tolist()
        count = len(starts) - 1
        for index in range(count):
            warp = _Warp(
                number=len(self.warps),
                block=len(self.blocks),
                sub_core=(self.next_sub_core + index) % SUB_CORES,
                position=base + starts[index],
                stop=base + starts[index + 1],
            )
            self.warps.append(warp)
            start = time + self.model.warp_launch_cycles * (index // SUB_CORES)
            warp.issued_at = start
            warp.issues_seen = self.sub_cores[warp.sub_core].issues
            self.schedule(warp, start, [], starts=True)
        self.blocks.append(_Block(count, time))
        self.next_sub_core = (self.next_sub_core + count) % SUB_CORES

    def schedule(self, warp: _Warp, now: float, segments: list[Segment], *, starts: bool = False) -> None:
        """Work out when a warp can issue its next instruction, and what it waits for until then."""
        program = self.program
        row = self.executions.rows[warp.position]
        line = program.fetch_line[row]
        if line != warp.fetched_line:
            warp.fetched_line = line
            ready = self.supply.fetch(warp.sub_core, line, now)
            if starts:
                ready = max(ready, now + self.model.warp_start_cycles)
            if ready > now:
                segments.append((NO_INSTRUCTIONS, ready))
                now = ready
        mask = program.wait_mask[row]
        if mask:
            latest, is_long = self._find_scoreboard(warp, mask)
            if latest > now:
                segments.append((LONG_SCOREBOARD if is_long else SHORT_SCOREBOARD, latest))
                now = latest
        constant = program.constant_line[row]
        if constant >= 0:
            ready = self.supply.read_constant(constant, now)
            if ready > now:
                segments.append((IMC_MISS, ready))
                now = ready
        warp.segments = segments
        heappush(self.sub_cores[warp.sub_core].waiting, (now, warp.number))

    @staticmethod
    def _find_scoreboard(warp: _Warp, mask: int) -> tuple[float, bool]:
        """When the last of some scoreboards is released, and whether L1TEX releases it."""
        latest, is_long = 0.0, False
        for number in range(_SCOREBOARDS):
            if mask >> number & 1 and warp.boards[number] > latest:
                latest, is_long = warp.boards[number], warp.long_boards[number]
        return latest, is_long

    def settle(self, warp: _Warp) -> None:
        """Add up what a warp waited for since it issued."""
        segments = warp.segments
        if not segments:
            return
        begin = warp.issued_at
        length = segments[-1][1] - begin
        busy = self.sub_cores[warp.sub_core].issues - warp.issues_seen
        idle = max(0.0, 1.0 - busy / length) if length > 0 else 0.0
        weight = self.executions.weights[warp.position]
        base = self.executions.rows[warp.position] * REASON_COUNT
        for reason, until in segments:
            if until > begin:
                self.accounts.add(base + reason, until - begin, weight, idle)
                begin = until
        warp.segments = []

    def add(self, warp: _Warp, reason: int, cycles: float, idle_share: float) -> None:
        """Add cycles that a warp spent in front of its next instruction."""
        position = warp.position
        self.accounts.add(
            self.executions.rows[position] * REASON_COUNT + reason,
            cycles,
            self.executions.weights[position],
            idle_share,
        )

    def issue(self, warp: _Warp, sub_core: _SubCore, time: float) -> None:
        """Issue a warp's next instruction."""
        program = self.program
        position = warp.position
        row = self.executions.rows[position]
        self.add(warp, SELECTED, 1.0, 0.0)
        sub_core.issues += 1
        sub_core.last = warp.number
        self.issued += 1
        self._execute(warp, sub_core, row, time)
        warp.issued_at = time + 1.0
        warp.issues_seen = sub_core.issues
        free = time + program.stall[row]
        if position + 1 >= warp.stop:
            self.leave(warp, row, time, free)
            return
        warp.position = position + 1
        if program.kind[row] == Kind.BARRIER:
            self.blocks[warp.block].arrived.append((warp, free))
            self.open_barrier(warp.block, time)
            return
        segments: list[Segment] = [(WAIT, free)]
        if self.executions.rows[position + 1] != row + 1:
            segments = self._jump(warp, row, time)
            free = segments[-1][1]
        self.schedule(warp, self._hold(warp, row, free, segments), segments)

    def _execute(self, warp: _Warp, sub_core: _SubCore, row: int, time: float) -> None:
        """Give an instruction to what executes it, and set its scoreboards."""
        program = self.program
        kind = program.kind[row]
        result = read = 0.0
        if kind == Kind.FIXED:
            sub_core.pipe_free[program.pipe[row]] = time + program.interval[row]
            result = time + program.latency[row]
        elif kind == Kind.ASYNC_FENCE:
            result = max(time + program.latency[row], warp.async_done)
        elif program.unit[row] >= 0:
            result, read, left = self.memory.enter(row, warp.position, warp.sub_core, time)
            warp.store_done = max(warp.store_done, left)
            if program.is_async[row]:
                warp.async_done = max(warp.async_done, result)
        visible = time + _VISIBLE_CYCLES
        for number, until in (
            (program.write_board[row], max(result, visible)),
            (program.read_board[row], max(read or result, visible)),
        ):
            if number < 0:
                continue
            if until >= warp.boards[number]:
                warp.boards[number] = until
                warp.long_boards[number] = program.is_long[row]
            if program.has_depbar:
                warp.outstanding[number].append(until)

    def _hold(self, warp: _Warp, row: int, free: float, segments: list[Segment]) -> float:
        """Until when an instruction holds its warp beyond its stall count; what for is added to the segments."""
        kind, left = self.program.kind[row], self.program.depbar_left[row]
        if kind == Kind.CONVERGE:
            free += self.model.converge_cycles
            segments.append((BRANCH_RESOLVING, free))
        elif kind == Kind.MEMBAR:
            free = max(free + self.model.membar_cycles, warp.store_done)
            segments.append((MEMBAR, free))
        elif left >= 0:
            outstanding = sorted(warp.outstanding[self.program.depbar_board[row]])
            if len(outstanding) > left and outstanding[-1 - left] > free:
                free = outstanding[-1 - left]
                segments.append((LONG_SCOREBOARD, free))
        return free

    def _jump(self, warp: _Warp, row: int, time: float) -> list[Segment]:
        """What a warp waits for that goes on elsewhere. Until it is on its way there it is counted at the row behind the jump."""
        program, model = self.program, self.model
        is_return = program.kind[row] == Kind.RETURN
        free = time + program.stall[row]
        leaves = free + (model.return_resolve_cycles if is_return else 0.0)
        weight = self.executions.weights[warp.position - 1]
        idle = self._find_idle_share(warp, time)
        base = (row + 1) * REASON_COUNT
        self.accounts.add(base + WAIT, free - time - 1.0, weight, idle)
        self.accounts.add(base + BRANCH_RESOLVING, leaves - free, weight, idle)
        warp.issued_at = leaves
        warp.fetched_line = -1
        resolved = leaves + (0.0 if is_return else model.branch_resolve_cycles)
        return [(BRANCH_RESOLVING, resolved), (NO_INSTRUCTIONS, resolved + model.jump_fetch_cycles)]

    def _find_idle_share(self, warp: _Warp, time: float) -> float:
        """Of all cycles until now, those in which a warp's scheduler issued nothing."""
        return max(0.0, 1.0 - self.sub_cores[warp.sub_core].issues / time) if time > 0 else 1.0

    def open_barrier(self, number: int, time: float) -> None:
        """Let a block's warps go on where all that are left have come."""
        block = self.blocks[number]
        if not block.arrived or len(block.arrived) < block.left:
            return
        open_at = time + self.model.barrier_open_cycles
        arrived, block.arrived = block.arrived, []
        for warp, free in arrived:
            until = max(free, open_at)
            self.schedule(warp, until, [(WAIT, free), (BARRIER, until)])

    def leave(self, warp: _Warp, row: int, time: float, free: float) -> None:
        """The end of a warp: what it stored has to leave first. Samples of that time fall on the row behind its last one."""
        resolved = max(free, time + self.model.exit_resolve_cycles)
        done = max(resolved, warp.store_done)
        weight = self.executions.weights[warp.position]
        idle = self._find_idle_share(warp, time)
        base = (row + 1) * REASON_COUNT
        begin = time + 1.0
        for reason, until in ((WAIT, free), (BRANCH_RESOLVING, resolved), (DRAIN, done)):
            if until > begin:
                self.accounts.add(base + reason, until - begin, weight, idle)
                begin = until
        block = self.blocks[warp.block]
        block.left -= 1
        block.end = max(block.end, done)
        if block.left == 0:
            self.blocks_done += 1
            model = self.model
            self.last_start = max(self.last_start + model.block_interval_cycles, block.end + model.block_launch_cycles)
            heappush(self.starts, self.last_start)
        else:
            self.open_barrier(warp.block, time)

    def step(self, number: int, time: float) -> float:
        """What a sub-core does at a time; when it has to be asked again."""
        sub_core = self.sub_cores[number]
        waiting, eligible = sub_core.waiting, sub_core.eligible
        while waiting and waiting[0][0] <= time:
            warp = self.warps[heappop(waiting)[1]]
            self.settle(warp)
            eligible.append(warp)
        soonest = waiting[0][0] if waiting else inf
        if not eligible:
            return soonest
        free, blocked, opens = self._sort_out(number, time)
        if not free:
            soonest = max(min(soonest, opens), time + 1.0)
            for warp, reason in blocked:
                self.add(warp, reason, soonest - time, 1.0)
            return soonest
        return self._dispatch(sub_core, free, blocked, time)

    def _dispatch(self, sub_core: _SubCore, free: list[_Warp], blocked: list[tuple[_Warp, int]], time: float) -> float:
        """Issue of one of the warps that can, unless its registers cannot be read in time; when to ask again."""
        chosen = _choose(free, sub_core.last)
        reads = self.program.register_reads[self.executions.rows[chosen.position]]
        is_held = not sub_core.ports.try_read(reads, chosen.number, time)
        for warp, reason in blocked:
            self.add(warp, reason, 1.0, 1.0 if is_held else 0.0)
        if is_held:
            sub_core.last = chosen.number
            for warp in free:
                self.add(warp, DISPATCH_STALL, 1.0, 1.0)
            return time + 1.0
        for warp in free:
            if warp is not chosen:
                self.add(warp, NOT_SELECTED, 1.0, 0.0)
        sub_core.eligible.remove(chosen)
        self.issue(chosen, sub_core, time)
        return time + 1.0

    def _sort_out(self, number: int, time: float) -> tuple[list[_Warp], list[tuple[_Warp, int]], float]:
        """Of the warps whose operands are there: those that can issue, the others with what they lack, and when the first of that is there."""
        sub_core, program, rows = self.sub_cores[number], self.program, self.executions.rows
        free: list[_Warp] = []
        blocked: list[tuple[_Warp, int]] = []
        opens = inf
        gates: dict[int, tuple[int, float]] = {}
        for warp in sub_core.eligible:
            row = rows[warp.position]
            gate = program.gate[row]
            found = gates.get(gate)
            if found is None:
                if program.unit[row] >= 0:
                    found = self.memory.find_room(number, row, time)
                else:
                    until = sub_core.pipe_free[program.pipe[row]]
                    found = (MATH_PIPE_THROTTLE, until) if until > time else (-1, time)
                gates[gate] = found
            if found[0] < 0:
                free.append(warp)
            else:
                blocked.append((warp, found[0]))
                opens = min(opens, found[1])
        return free, blocked, opens

    def mark(self, time: float) -> Moment:
        """What was added up until now."""
        memory = self.memory
        return Moment(
            time=time,
            blocks_done=self.blocks_done,
            all_cycles=np.array(self.accounts.all_cycles),
            idle_cycles=np.array(self.accounts.idle_cycles),
            moved=(memory.dram_bytes, memory.l2_bytes, memory.tag_cycles, memory.data_cycles, float(self.issued)),
        )


def _choose(warps: list[_Warp], last: int) -> _Warp:
    """The warp that issued last, else the youngest."""
    chosen = warps[0]
    for warp in warps:
        if warp.number == last:
            return warp
        if warp.number > chosen.number:
            chosen = warp
    return chosen


def simulate_sm(
    program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int, most_issues: int
) -> SmRun:
    """Run blocks on one SM until all have ended, in the compiled core where there is one.

    Args:
        most_issues: warp instructions to simulate at most; blocks that have begun are given up there.
    """
    found = run_compiled(program, model, blocks, resident, most_issues)
    return found if found is not None else simulate_sm_plainly(program, model, blocks, resident, most_issues)


def simulate_sm_plainly(
    program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int, most_issues: int
) -> SmRun:
    """The same as :func:`simulate_sm`, in Python."""
    sm = _Sm(program, model, blocks, resident)
    for number in range(min(resident, len(blocks))):
        sm.begin_block(number * model.block_interval_cycles)
    following = [0.0] * SUB_CORES
    moments: list[Moment] = []
    last = 0.0
    while sm.issued < most_issues:
        time = min(following)
        if sm.starts and len(sm.blocks) < len(blocks) and sm.starts[0] <= time:
            time = heappop(sm.starts)
            if sm.blocks_done >= resident and not moments:
                moments.append(sm.mark(time))
            sm.begin_block(time)
            if len(sm.blocks) == len(blocks) and moments:
                moments.append(sm.mark(time))
        elif time == inf:
            break
        else:
            last = time
            for number in range(SUB_CORES):
                if following[number] <= time:
                    following[number] = sm.step(number, time)
        _wake(sm, following, time)
    end = max([last, *(block.end for block in sm.blocks)])
    moments.append(sm.mark(end))
    accounts = sm.accounts
    return SmRun(
        moments=tuple(moments),
        dilation=accounts.weighted / accounts.plain if accounts.plain else 1.0,
        issued=sm.issued,
        is_cut=sm.blocks_done < len(blocks),
    )


def _wake(sm: _Sm, following: list[float], time: float) -> None:
    """A block that began, or a barrier that opened, may have made warps of other sub-cores ready."""
    for number, sub_core in enumerate(sm.sub_cores):
        if sub_core.waiting and sub_core.waiting[0][0] < following[number]:
            following[number] = max(sub_core.waiting[0][0], time)


_SAME = (
    "kind", "pipe", "unit", "is_lg", "throttle", "is_long", "uses_l1", "is_shared_unit", "is_async",
)  # fmt: skip
_CODES = ("write_board", "read_board", "wait_mask", "depbar_board", "depbar_left", "fetch_line")
_READS = ("first", "count", "kept")
# A row of a program as the core reads it: columns of :class:`~gpa_lsp.execution.simulator.program.SassProgram`, lines and gates numbered from 0
ROW = np.dtype(
    [
        *((name, np.float64) for name in ("interval", "latency", "stall")),
        *((name, np.int32) for name in (*_SAME, "gate", *_CODES, "constant", "far_constant")),
        *((name, np.int32, OPERANDS) for name in _READS),
    ],
    align=True,
)
MODEL = SmModel.__struct_fields__  # What the core is told of an SM, all of it as float64

_MOST_MOMENTS, _MOVED = 3, 5
_COLUMNS = {
    "rows": np.int32, "passes": np.int32, "lines": np.int32, "first_sector": np.int64, "last_sector": np.int64, "weights": np.float64,
    "sectors": np.int64, "is_private": np.bool_,
}  # fmt: skip


def run_compiled(
    program: SassProgram, model: SmModel, blocks: Sequence[BlockStream], resident: int, most_issues: int
) -> SmRun | None:
    """What :func:`~gpa_lsp.execution.simulator.streaming_multiprocessor.simulate_sm` gives; None where there is no core, or it cannot do it."""
    core = find_core()
    if core is None or not blocks:
        return None
    rows = _tabulate(program)
    figures = np.array([getattr(model, name) for name in MODEL], dtype=np.float64)
    table, starts, columns = _join_streams(blocks)
    counts = (len(rows), len(columns[0]), len(columns[6]), len(starts) - 1, len(blocks), min(resident, len(blocks)))
    sizes = np.array([*counts, most_issues, ROW.itemsize, figures.nbytes], dtype=np.int64)
    totals = np.zeros(4)
    sums = np.zeros((_MOST_MOMENTS, 2 + _MOVED))
    cycles = np.zeros((_MOST_MOMENTS, 2, (len(rows) + 1) * REASON_COUNT))
    marked = core.call("simulate_blocks", sizes, rows, figures, table, starts, *columns, totals, sums, cycles)
    if marked < 0:
        return None
    weighted, plain, issued, done = totals.tolist()
    return SmRun(
        moments=tuple(
            Moment(time=time, blocks_done=int(ended), all_cycles=every, idle_cycles=idle, moved=tuple(moved))
            for (time, ended, *moved), (every, idle) in zip(sums[:marked].tolist(), cycles, strict=False)
        ),
        dilation=weighted / plain if plain else 1.0,
        issued=int(issued),
        is_cut=done < len(blocks),
    )


def _tabulate(program: SassProgram) -> "npt.NDArray[np.void]":
    """The program as rows of :data:`ROW`."""
    table = np.zeros(len(program.kind), ROW)
    for name in ("interval", "latency", "stall", *_SAME, *_CODES):
        table[name] = getattr(program, name)
    table["gate"] = np.unique(program.gate, return_inverse=True)[1]
    for name in _READS:
        table[name] = [getattr(one, name) for one in program.register_reads]
    lines = np.array(program.constant_line, dtype=np.int64)
    table["constant"] = _number_lines(lines)
    table["far_constant"] = _number_lines(np.where(lines < 0, -1, lines // FAR_LINES))
    return table


def _number_lines(lines: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Lines numbered from 0; -1 stays what it is."""
    known, numbers = np.unique(lines, return_inverse=True)
    found: npt.NDArray[np.int64] = numbers - (1 if len(known) and known[0] < 0 else 0)
    return found


def _join_streams(
    blocks: Sequence[BlockStream],
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], list[npt.NDArray[Any]]]:
    """What blocks execute, each stream once: int64[blocks, 3] with the first warp, warps and shift of each; where warps begin; and the columns."""
    streams = {id(one.rows): one for one in blocks}
    table = np.zeros((len(blocks), 3), np.int64)
    starts, parts = [], []
    placed: dict[int, int] = {}
    executions = sectors = warps = 0
    for key, one in streams.items():
        placed[key] = warps
        starts.append(one.starts + executions)
        moved = {"first_sector": one.first_sector + sectors, "last_sector": one.last_sector + sectors}
        parts.append([moved.get(name, getattr(one, name)) for name in _COLUMNS])
        warps += len(one.starts)
        executions += len(one.rows)
        sectors += len(one.sectors)
    for number, one in enumerate(blocks):
        table[number] = placed[id(one.rows)], len(one.starts) - 1, one.shift
    columns: list[npt.NDArray[Any]] = [
        np.concatenate(column).astype(dtype, copy=False)
        for column, dtype in zip(zip(*parts, strict=True), _COLUMNS.values(), strict=True)
    ]
    return table, np.concatenate(starts).astype(np.int64, copy=False), columns
