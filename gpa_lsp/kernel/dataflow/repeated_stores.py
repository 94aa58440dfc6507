"""Stores of a thread to an address that does not change between them: :func:`find_repeated_stores`."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Instructions
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Synchronisation, describe_mnemonic
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    RegisterWriters,
    count_turns,
    find_address,
    is_volatile,
    mark_accesses,
)
from gpa_lsp.kernel.model import FunctionSamples, KernelRows

_LEAST_REPEATS = 2.0

_SPACES = (*GLOBAL_SPACES, MemorySpace.SHARED)


class RepeatedStores(Struct, frozen=True, kw_only=True):
    """Stores each of which is overwritten by the next one."""

    stores: tuple[int, ...]  # kernel rows, in order
    loads: tuple[int, ...]  # kernel rows between them, of the same address
    first_row: int  # of the loop they are in, or of the code between the first and the last of them
    last_row: int
    repeats: float  # executions per necessary one, at least 2
    executions: int  # of all the stores

    @property
    def removable_ratio(self) -> float:
        """The unnecessary part of their executions."""
        return 1.0 - 1.0 / self.repeats


def find_repeated_stores(kernel: KernelRows) -> tuple[RepeatedStores, ...]:
    """The repeated stores of a kernel, most executions first: in an innermost loop, or else in a basic block, with no barrier between them."""
    stores, loads = (mark_accesses(kernel, _SPACES, (kind,)) for kind in (Access.STORE, Access.LOAD))
    found: list[RepeatedStores] = []
    for number, function in enumerate(kernel.functions):
        first, graph, instructions = int(kernel.first_rows[number]), function.graph, function.instructions
        if graph is None or instructions is None:
            continue
        end = first + len(function.pc_offsets)
        every = np.flatnonzero(stores[first:end] | loads[first:end])
        blocks = graph.block_of_instruction[every]
        loops = graph.innermost_loop[blocks]
        writers = RegisterWriters(instructions)
        for loop in find_distinct(loops[loops >= 0]).tolist():
            inside = np.flatnonzero(np.isin(graph.block_of_instruction, graph.blocks_of_loop(loop)))
            rows = every[loops == loop].tolist()
            groups = _group(instructions, writers, rows, inside)
            for same in groups:
                found += _build(function, first, same, inside, count_turns(function, graph, loop, same[-1]))
        known = [row - first for one in found for row in (*one.stores, *one.loads)]
        for block in find_distinct(blocks).tolist():
            rows = every[(blocks == block) & ~np.isin(every, known)].tolist()
            if not rows:
                continue
            inside = np.arange(rows[0], rows[-1] + 1)
            for same in _group(instructions, writers, rows, inside):
                # with the loads that the first store's value is made of: they wait, too
                begin = max((row + 1 for row in rows if row < same[0] and stores[first + row]), default=rows[0])
                found += _build(function, first, same, np.arange(begin, same[-1] + 1), 1.0)
    return tuple(sorted(found, key=lambda one: (-one.executions, one.first_row)))


def _group(
    instructions: Instructions,
    writers: RegisterWriters,
    rows: list[int],
    inside: npt.NDArray[np.int64],
) -> Iterator[list[int]]:
    """Accesses of one address whose registers are not written inside; none where the code synchronises with other threads."""
    marked = np.zeros(len(instructions), dtype=np.bool_)
    marked[inside] = True
    if any(_is_shared_with_others(instructions, int(row)) for row in inside):
        return
    by_address: dict[object, list[int]] = defaultdict(list)
    for row in rows:
        text, mnemonic = instructions.texts[row], _read_mnemonic(instructions, row)
        address = find_address(text)
        if address is None or is_volatile(mnemonic):
            continue
        guard, memory = int(instructions.guard[row]), describe_mnemonic(mnemonic).memory
        registers = 1 if memory is MemorySpace.SHARED else 2  # Addresses of shared memory have 32 bits
        needed = (*parse_operand(address[0]).expand(registers), *((guard,) if guard >= 0 else ()))
        if not writers.is_written_in(needed, marked):
            by_address[address, memory, guard].append(row)
    yield from by_address.values()


def _build(
    function: FunctionSamples, first: int, same: list[int], inside: npt.NDArray[np.int64], turns: float
) -> Iterator[RepeatedStores]:
    instructions = function.instructions
    assert instructions is not None
    is_store = [describe_mnemonic(_read_mnemonic(instructions, row)).access is Access.STORE for row in same]
    stores = [row for row, stored in zip(same, is_store, strict=True) if stored]
    repeats = len(stores) * turns
    executions = sum(max(0, int(function.executions[row])) for row in stores)
    if stores and _LEAST_REPEATS <= repeats < np.inf and executions:
        yield RepeatedStores(
            stores=tuple(first + row for row in stores),
            loads=tuple(first + row for row, stored in zip(same, is_store, strict=True) if not stored),
            first_row=first + int(inside[0]),
            last_row=first + int(inside[-1]),
            repeats=repeats,
            executions=executions,
        )


def _is_shared_with_others(instructions: Instructions, row: int) -> bool:
    opcode = describe_mnemonic(_read_mnemonic(instructions, row))
    return opcode.synchronises in (Synchronisation.BLOCK, Synchronisation.FENCE) or opcode.access is Access.ATOMIC


def _read_mnemonic(instructions: Instructions, row: int) -> str:
    return instructions.mnemonics[int(instructions.mnemonic_index[row])]
