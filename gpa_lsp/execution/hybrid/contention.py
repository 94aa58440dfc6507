"""Warps of a round that contend for the units of an SM: :func:`simulate_round`.

A warp that comes to an operation locks the resource it needs, or waits until that is free (Section IV-B, Figure 2);
first come, first served, which the paper leaves open. Time goes on by the least step that any warp has named.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.execution.hybrid.operations import Resource
from gpa_lsp.foundation.machine_code.loops import compiled, part
from gpa_lsp.foundation.records import ColumnRecord


class Use(Struct, frozen=True):
    """Resource and time that an instruction of a warp takes."""

    resource: Resource  # to be locked; a barrier is none, nor are registers
    before_cycles: float  # before it needs the resource (the paper's pre-waiting latency)
    locked_cycles: float  # for which it holds it (the delay)
    after_cycles: float  # until its result is there (the post-waiting latency)
    reads: tuple[int, ...] = ()  # registers that it waits for, where warps wait for operands
    writes: tuple[int, ...] = ()  # registers of its result


class RoundUses(ColumnRecord, frozen=True, kw_only=True):
    """The uses of each warp of a round, n in all."""

    table: tuple[Use, ...]  # each kind of use once
    numbers: npt.NDArray[np.int32]  # int32[n], place in the table, one warp after the other
    starts: npt.NDArray[np.int64]  # int64[warps + 1], where those of a warp begin

    @property
    def warps(self) -> int:
        """Warps of the round."""
        return len(self.starts) - 1


_RESOURCES = tuple(Resource)
_BARRIER, _REGISTER = _RESOURCES.index(Resource.BARRIER), _RESOURCES.index(Resource.REGISTER)
_TIMES = ("before", "locked", "after")
_LISTS = ("first_read", "last_read", "first_write", "last_write")
_USE = np.dtype(
    [("resource", np.int64), *((name, np.float64) for name in _TIMES), *((name, np.int64) for name in _LISTS)]
)
_WARP = np.dtype([(name, np.int64) for name in ("place", "last", "phase")] + [("end", np.float64), ("due", np.float64)])
_BLOCK = np.dtype([("left", np.int64), ("waiting", np.int64)])
_STATE = np.dtype([("now", np.float64), ("blocks", np.int64)])
_Array = npt.NDArray[Any]
_Row = Any  # of a structured array


class _Round(NamedTuple):
    table: _Array  # _USE[kinds of use]
    registers: _Array  # int64[all reads and writes of the table]
    numbers: _Array  # as in RoundUses
    starts: _Array  # the same
    by_operands: int
    own: int  # warps of a block
    state: _Row  # _STATE
    free: _Array  # float64[resources], from when on each is free
    warps: _Array  # _WARP[warps], each with its next event: when it is due and of which phase, -1 for none
    ready: _Array  # float64[warps, registers], when what was written is there
    blocks: _Array  # _BLOCK[blocks at once]
    waiting: _Array  # int64[blocks, warps of a block], those at a barrier


def simulate_round(
    uses: RoundUses, warps_per_block: int, *, by_operands: bool = False, blocks: int | None = None
) -> float:
    """Cycles until the last warp has ended.

    Args:
        by_operands: a warp waits for the registers that it reads; else for the end of the operation before.
        blocks: to be executed one after the other in the places of those given, doing the same; None for those alone.

    >>> add = Use(Resource.ARITHMETIC, 0.0, 2.0, 0.0)
    >>> load = Use(Resource.GLOBAL, 10.0, 4.0, 10.0)
    >>> uses = RoundUses(table=(add, load), numbers=np.array([0, 1, 0, 1]), starts=np.array([0, 2, 4]))
    >>> simulate_round(uses, 2)
    30.0
    """
    places = uses.warps // warps_per_block
    table, registers = _tabulate(uses.table)
    one = _Round(
        table=table,
        registers=registers,
        numbers=uses.numbers,
        starts=uses.starts,
        by_operands=int(by_operands),
        own=warps_per_block,
        state=np.zeros(1, _STATE)[0],
        free=np.zeros(len(_RESOURCES)),
        warps=np.zeros(uses.warps, _WARP),
        ready=np.zeros((uses.warps, int(registers.max(initial=0)) + 1)),
        blocks=np.zeros(places, _BLOCK),
        waiting=np.zeros((places, warps_per_block), np.int64),
    )
    one.state["blocks"], one.warps["phase"] = blocks or places, -1
    _run(one)
    return float(one.state["now"])


def _tabulate(uses: Iterable[Use]) -> tuple[_Array, _Array]:
    """Kinds of use, and the registers that they read and write, numbered from 0."""
    registers: list[int] = []
    rows = []
    for one in uses:
        first = len(registers)
        registers += one.reads
        middle = len(registers)
        registers += one.writes
        times = one.before_cycles, one.locked_cycles, one.after_cycles
        rows.append((_RESOURCES.index(one.resource), *times, first, middle, middle, len(registers)))
    numbers = np.unique(np.array(registers, np.int64), return_inverse=True)[1]
    return np.array(rows, _USE), numbers.astype(np.int64)


@compiled
def _run(one: _Round) -> None:
    state = one.state
    for block in range(len(one.blocks)):
        _begin(one, block, 0.0)
    while True:
        number = _find_next(one)
        if number < 0:
            break
        warp, block = one.warps[number], number // one.own
        now, phase = warp.due, warp.phase
        state.now, warp.phase = now, -1
        if warp.place == warp.last:
            one.blocks[block].left -= 1
            if one.blocks[block].left > 0:
                _open_barrier(one, block, now)
            else:
                _begin(one, block, now)
            continue
        use = one.table[one.numbers[warp.place]]
        if use.resource == _BARRIER:
            warp.place += 1
            one.waiting[block, one.blocks[block].waiting] = number
            one.blocks[block].waiting += 1
            _open_barrier(one, block, now)
        elif phase == 0 and use.before > 0.0:
            warp.due, warp.phase = now + use.before, 1
        else:
            begin = max(now, one.free[use.resource])
            one.free[use.resource] = begin + use.locked
            done = begin + use.locked + use.after
            warp.place += 1
            if one.by_operands:
                for index in range(use.first_write, use.last_write):
                    one.ready[number, one.registers[index]] = done
                warp.end = max(warp.end, done)
                done = begin
            _go_on(one, number, done)


@part
def _begin(one: _Round, block: int, now: float) -> None:
    """Begin the next block in a block's place, if there is one."""
    if one.state.blocks > 0:
        one.state.blocks -= 1
        first = block * one.own
        one.blocks[block].left = 0
        for number in range(first, first + one.own):
            one.warps[number].place, one.warps[number].last = one.starts[number], one.starts[number + 1]
            one.blocks[block].left += one.starts[number + 1] > one.starts[number]
        for number in range(first, first + one.own):
            if one.warps[number].last > one.warps[number].place:
                _go_on(one, number, now)


@part
def _go_on(one: _Round, number: int, now: float) -> None:
    """Queue the next operation of a warp for when its operands are there."""
    warp, time = one.warps[number], now
    if one.by_operands:
        is_found = False
        while warp.place < warp.last and not is_found:
            use, latest = one.table[one.numbers[warp.place]], 0.0
            for index in range(use.first_read, use.last_read):
                latest = max(latest, one.ready[number, one.registers[index]])
            if use.resource == _REGISTER:
                for index in range(use.first_write, use.last_write):
                    one.ready[number, one.registers[index]] = latest
                warp.place += 1
            else:
                time, is_found = max(time, latest), True
        if not is_found:
            time = max(time, warp.end)
    warp.due, warp.phase = time, 0


@part
def _open_barrier(one: _Round, block: int, now: float) -> None:
    """Let the warps of a block go on where all that have not ended have come to the barrier."""
    held = one.blocks[block]
    if held.waiting > 0 and held.waiting == held.left:
        count = held.waiting
        held.waiting = 0
        for index in range(count):
            _go_on(one, one.waiting[block, index], now)


@part
def _find_next(one: _Round) -> int:
    """The warp whose event comes first, of equal ones the first warp; -1 where there is none."""
    first = -1
    for number in range(len(one.warps)):
        warp = one.warps[number]
        if warp.phase >= 0 and (first < 0 or warp.due < one.warps[first].due):
            first = number
    return first
