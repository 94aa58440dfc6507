"""Accesses at loaded addresses, such as ``x[column[i]]``: :func:`mark_gathered`, and the number of addresses an access can have."""

import re
from math import ceil, exp, factorial, fsum, prod

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.opcodes import Access, MemorySpace
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.dataflow.accesses import (
    GLOBAL_SPACES,
    MOVES,
    WARP_THREADS,
    find_invariant_loads,
    find_uniform_loads,
    mark_accesses,
)
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow, build_flow
from gpa_lsp.kernel.model import KernelRows

_AND = "0xc0"  # Truth table of LOP3 that keeps what its first two operands have in common
_BYTE = re.compile("0x777[0-3]")  # Of PRMT: one byte of the first operand, the others zero
_REGISTER_BITS = 32

_THREAD_INDICES = ("SR_TID", "SR_LANEID")

_MOST_STEPS = 32  # Instructions of address arithmetic that are looked at for one access


def mark_gathered(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n], global accesses whose address depends on a value that the same iteration of their loop loads from global memory.

    A value that was loaded before the loop, or that each iteration loads from the same address, is the start of a row, whose elements are contiguous.
    """
    found = np.zeros(len(kernel), dtype=np.bool_)
    accesses, loads = (mark_accesses(kernel, GLOBAL_SPACES, kinds).tolist() for kinds in (MOVES, (Access.LOAD,)))
    for row in find_invariant_loads(kernel):
        loads[row] = False
    for index, function in enumerate(kernel.functions):
        flow, graph = build_flow(kernel, index), function.graph
        if flow is None or graph is None:
            continue
        loops = graph.innermost_loop[graph.block_of_instruction].tolist()
        for row in range(len(flow)):
            if accesses[flow.first_row + row]:
                found[flow.first_row + row] = _is_gathered(flow, row, loops, loads)
    return found


def _is_gathered(flow: FunctionFlow, row: int, loops: list[int], loads: list[bool]) -> bool:
    window = flow.rows_before(row)
    waiting = [(row, register) for register in _read_address(flow, row)]
    seen = set(waiting)
    for _ in range(_MOST_STEPS):
        if not waiting:
            return False
        reader, register = waiting.pop()
        made = flow.find_def(reader, register, window)
        if made is None or loops[made] != loops[row]:
            continue
        if loads[flow.first_row + made]:
            return True
        if flow.opcode(made).memory is None:
            more = {(made, one) for one in flow.reads_of[made]} - seen
            seen |= more
            waiting += sorted(more)
    return False


def find_address_operand(flow: FunctionFlow, row: int) -> str | None:
    """The operand of an access that is its address; None without one."""
    return next((one for one in flow.operands(row) if one.startswith(("[", "desc["))), None)


def _read_address(flow: FunctionFlow, row: int, registers: int = 2) -> tuple[int, ...]:
    """Resource numbers of the address of an access, as wide as so many registers; empty without one."""
    address = find_address_operand(flow, row)
    return () if address is None else tuple(parse_operand(address).expand(registers))


def depends_on_thread(kernel: KernelRows, row: int) -> bool:
    """Whether the address of an access depends on the index of the thread or its block; False beyond the search limit."""
    return any(one.startswith(("SR_TID", "SR_CTAID")) for one in find_special_registers(kernel, row)[0])


def list_address_defs(kernel: KernelRows, row: int) -> tuple[str, ...]:
    """Texts of the instructions that make the registers of an access's address; empty where the code is not known."""
    flow, code = build_flow(kernel, int(kernel.function_index[row])), kernel.function_of(row).instructions
    if flow is None or code is None:
        return ()
    own = row - flow.first_row
    made = (flow.find_def(own, one, flow.rows_before(own)) for one in _read_address(flow, own))
    return tuple(code.texts[one] for one in made if one is not None)


def find_special_registers(kernel: KernelRows, row: int) -> tuple[frozenset[str], bool]:
    """The special registers that the address of an access depends on, such as ``SR_TID.X``, and whether it depends on nothing else: on no value from
    memory, of no other maker, and of none beyond the search limit."""
    flow = build_flow(kernel, int(kernel.function_index[row]))
    if flow is None:
        return frozenset(), False
    waiting = [(row - flow.first_row, one) for one in _read_address(flow, row - flow.first_row)]
    seen = set(waiting)
    found: set[str] = set()
    is_whole = True
    for _ in range(_MOST_STEPS):
        if not waiting:
            break
        reader, register = waiting.pop()
        made = flow.find_def(reader, register, flow.rows_before(reader))
        if made is None:
            is_whole = False
            continue
        is_whole &= flow.opcode(made).memory is None
        found |= {one for one in flow.operands(made) if one.startswith("SR_")}
        more = {(made, one) for one in flow.reads_of[made]} - seen
        seen |= more
        waiting += sorted(more)
    return frozenset(found), is_whole and not waiting


@remembered
def find_block_wide_loads(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n], loads by which all threads of a block fetch the same value: of a warp by counters, of the block by their addresses."""
    found = find_uniform_loads(kernel)
    for row in np.flatnonzero(found).tolist():
        found[row] = not any(one.startswith(_THREAD_INDICES) for one in find_special_registers(kernel, row)[0])
    return found


def count_addresses(kernel: KernelRows, row: int) -> int | None:
    """Number of addresses that an access can have in a block, by the masks, narrow loads and shifts in its computation; None where unbounded."""
    flow = build_flow(kernel, int(kernel.function_index[row]))
    if flow is None:
        return None
    own = row - flow.first_row
    waiting = {(own, one) for one in _read_address(flow, own, 1) if one >> 8 == ResourceKind.REGISTER}
    bounds: dict[int, int] = {}  # row → number of values of its result
    for _ in range(_MOST_STEPS):
        if not waiting:
            return prod(bounds.values())
        reader, register = waiting.pop()
        made = flow.find_def(reader, register, flow.rows_before(reader))
        if made is None:
            return None
        values = _bound_result(flow, made)
        if values is not None:
            bounds[made] = values
            continue
        more = {(made, one) for one in flow.reads_of[made] if one >> 8 == ResourceKind.REGISTER}
        memory = flow.opcode(made).memory
        is_constant = memory is MemorySpace.CONSTANT and not more
        if (memory is not None and not is_constant) or flow.mnemonic(made).split(".")[0] in _VARYING:
            return None
        waiting |= more
    return None


def count_passes(threads: float, addresses: int) -> float:
    """Mean passes of a shared atomic whose threads pick addresses at random: the threads at the most popular bank or address.

    Mean of the maximum of Poisson counts (threads over banks each), a fair approximation from two threads on.

    >>> round(count_passes(32, 256), 1), count_passes(1, 256), count_passes(32.0, 1)
    (3.5, 1.0, 32.0)
    """
    places = min(addresses, WARP_THREADS)
    if places == 1 or threads <= 1:
        return max(1.0, threads)
    mean = threads / places
    least = [fsum(exp(-mean) * mean**one / factorial(one) for one in range(most + 1)) for most in range(WARP_THREADS)]
    return max(1.0, fsum(1 - part**places for part in least))


_MOST_PLACES = 1 << 16


def count_places(met: float, threads: float) -> int:
    """Number of places of which threads, each at one by chance, meet on some; at most 65,536, where nearly as many as there are threads.

    >>> count_places(7.88, 32), count_places(20.2, 32), count_places(1.0, 32), count_places(32.0, 32)
    (8, 32, 1, 65536)
    """
    fewer = range(max(1, ceil(met)), _MOST_PLACES)
    return next((places for places in fewer if places * (1 - (1 - 1 / places) ** threads) >= met), _MOST_PLACES)


_VARYING = frozenset({"S2R", "CS2R", "SHFL", "VOTE", "MATCH"})  # Opcodes whose results depend on the thread


def _bound_result(flow: FunctionFlow, row: int) -> int | None:
    """Number of values that an instruction's result can have for any source; None where unbounded."""
    name, *modifiers = flow.mnemonic(row).split(".")
    constants = [one for one in flow.operands(row) if one.startswith("0x")]
    if flow.opcode(row).access is Access.LOAD:
        return next((1 << bits for bits in (8, 16) if f"U{bits}" in modifiers), None)
    if name == "LOP3" and len(constants) == 2 and constants[1] == _AND:
        return 1 << int(constants[0], 16).bit_count()
    if name == "PRMT" and any(_BYTE.fullmatch(one) for one in constants):
        return 1 << 8
    if name == "SHF" and {"R", "U32", "HI"} <= set(modifiers) and len(constants) == 1:
        return 1 << max(0, _REGISTER_BITS - int(constants[0], 16))
    return None
