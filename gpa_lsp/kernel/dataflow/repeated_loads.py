"""Global loads that fetch again and again what a thread, or a warp, already had."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow
from gpa_lsp.code.binary.opcodes import Access, Synchronisation, describe_mnemonic
from gpa_lsp.code.binary.operands import parse_operand
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    SECTOR_BYTES,
    count_access_bytes,
    count_per_request,
    find_address,
    is_volatile,
    mark_accesses,
)
from gpa_lsp.kernel.dataflow.register_writers import RegisterWriters
from gpa_lsp.kernel.model import FunctionSamples, KernelRows

_LEAST_TURNS = 2.0
_ONE_SECTOR = 1.05


class InvariantLoad(Struct, frozen=True, kw_only=True):
    """A load in a loop from an address that the loop does not change."""

    row: int  # kernel row
    turns: float  # how often the loop goes round per entry, at least 1; infinite where executions are unknown
    is_kept_by_stores: bool  # something in the loop may change memory, or lets other threads change it, so the compiler had to load again

    @property
    def removable_ratio(self) -> float:
        """The part of its executions that need not be."""
        return 1.0 - 1.0 / self.turns


def find_uniform_loads(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n]: loads by which all threads of a warp fetch the same: one sector a request, though the threads together ask for more.

    Nothing is marked without the counters of sectors and executions.
    """
    loads = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD,))
    sectors, threads = count_per_request(kernel)
    found = np.zeros(len(kernel), dtype=np.bool_)
    for row in np.flatnonzero(loads & (sectors <= _ONE_SECTOR)).tolist():
        mnemonic = kernel.mnemonic(row)
        found[row] = threads[row] * count_access_bytes(mnemonic) > SECTOR_BYTES and not is_volatile(mnemonic)
    return found


def find_invariant_loads(kernel: KernelRows) -> Mapping[int, InvariantLoad]:
    """Row → the load, for loads whose innermost loop writes no register of their address and goes round more than once."""
    loads = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD,))
    found: dict[int, InvariantLoad] = {}
    for number, function in enumerate(kernel.functions):
        first = int(kernel.first_rows[number])
        graph = function.graph
        if graph is None or not graph.loops or function.instructions is None:
            continue
        rows = np.flatnonzero(loads[first : first + len(function.pc_offsets)])
        loops = graph.innermost_loop[graph.block_of_instruction[rows]]
        writers = RegisterWriters(function.instructions)
        for loop in find_distinct(loops[loops >= 0]).tolist():
            inside = np.isin(graph.block_of_instruction, graph.blocks_of_loop(loop))
            kept = _may_change_memory(function, inside)
            for row in rows[loops == loop].tolist():
                turns = count_turns(function, graph, loop, row)
                if turns >= _LEAST_TURNS and _is_invariant(function, writers, row, inside):
                    found[first + row] = InvariantLoad(row=first + row, turns=turns, is_kept_by_stores=kept)
    return found


def _is_invariant(function: FunctionSamples, writers: RegisterWriters, row: int, inside: npt.NDArray[np.bool_]) -> bool:
    """Whether the loop leaves the address and the guard of a load alone."""
    instructions = function.instructions
    if instructions is None or is_volatile(instructions.mnemonics[int(instructions.mnemonic_index[row])]):
        return False
    address = find_address(instructions.texts[row])
    if address is None:
        return False
    guard = int(instructions.guard[row])
    needed = (*parse_operand(address[0]).expand(2), *((guard,) if guard >= 0 else ()))
    return not writers.is_written_in(needed, inside)


def _may_change_memory(function: FunctionSamples, inside: npt.NDArray[np.bool_]) -> bool:
    """Whether a loop stores, waits for others, or calls."""
    instructions = function.instructions
    if instructions is None:
        return False
    changing = np.array([_changes_memory(mnemonic) for mnemonic in instructions.mnemonics], dtype=np.bool_)
    return bool(changing[instructions.mnemonic_index[inside]].any())


def _changes_memory(mnemonic: str) -> bool:
    opcode = describe_mnemonic(mnemonic)
    if opcode.flow in (Flow.CALL, Flow.INDIRECT_CALL) or opcode.synchronises in (
        Synchronisation.BLOCK,
        Synchronisation.FENCE,
    ):
        return True
    return opcode.memory in GLOBAL_SPACES and opcode.access in (Access.STORE, Access.ATOMIC, Access.REDUCTION)


def count_turns(function: FunctionSamples, graph: FlowGraph, loop: int, row: int) -> float:
    """Executions of an instruction per entry into a loop; infinite where executions are unknown."""
    outside = int(graph.immediate_dominator[graph.loops[loop].header])
    if outside < 0:
        return float("inf")
    entries, executions = (int(function.executions[one]) for one in (graph.last_instruction[outside], row))
    if entries < 0 or executions < 0:
        return float("inf")
    return executions / entries if entries else 0.0
