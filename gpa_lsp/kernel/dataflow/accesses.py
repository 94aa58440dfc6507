"""Memory accesses of a kernel: their rows, widths and excess transfers, and those that could be saved.

Several loads (or stores) of one thread to neighbouring addresses could be one wider access; some loads fetch repeatedly a value that the thread, or
the warp, already had.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from math import inf

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Flow, Instructions, ResourceKind
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Synchronisation, describe_mnemonic
from gpa_lsp.code.binary.sass import join_halves, split_operands
from gpa_lsp.code.binary.uses import OperandKind, parse_operand
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.distinct import find_distinct
from gpa_lsp.foundation.records import ColumnRecord, remembered
from gpa_lsp.kernel.model import FunctionSamples, KernelRows

SECTOR_BYTES = 32  # The unit of transfer between caches and memory, on every architecture

WARP_THREADS = 32  # Threads of a warp, on every architecture

GLOBAL_SPACES = (MemorySpace.GLOBAL, MemorySpace.GENERIC)

_REGISTER_BYTES = 4
# Bytes of an access by modifier; without one of these it is a register wide
_BYTES = {
    "U8": 1, "S8": 1, "U16": 2, "S16": 2, "F16": 2, "64": 8, "U64": 8, "S64": 8, "F64": 8, "96": 12, "128": 16, "256": 32,
}  # fmt: skip

_VOLATILE = frozenset({"STRONG", "MMIO"})  # Modifiers of accesses that other threads may be waiting to see

# What ``__constant__`` variables of a program may hold together. Source: CUDA C++ programming guide, technical specifications.
_CONSTANT_BYTES = 64 * 1024

MOVES = (Access.LOAD, Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY)  # Accesses that move data

_OFFSET = re.compile(r"\+(-?0x[0-9a-f]+)\]\Z")


def mark_accesses(
    kernel: KernelRows, spaces: tuple[MemorySpace, ...], kinds: tuple[Access, ...]
) -> npt.NDArray[np.bool_]:
    """bool[n]: accesses of some kinds to some spaces."""
    return kernel.mark_by_opcode(lambda opcode: opcode.memory in spaces and opcode.access in kinds)


def measure_excess(actual: npt.NDArray[np.int64], ideal: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """The part of each row's transfers that the ideal would not make.

    Args:
        actual: int64[n], transfers; -1 where a row has none.
        ideal: int64[n], the least that could do; -1 where a row has none.

    Returns:
        float64[n], 0..1; 0 where a count is unknown or there is no excess.

    >>> measure_excess(np.array([32, 4, -1, 0]), np.array([4, 4, -1, 0])).tolist()
    [0.875, 0.0, 0.0, 0.0]
    """
    known = (actual > 0) & (ideal >= 0)
    share = np.zeros(len(actual))
    share[known] = np.clip((actual[known] - ideal[known]) / actual[known], 0.0, 1.0)
    return share


def count_per_request(kernel: KernelRows) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Global sectors and threads of one request, on average.

    A request is one execution by a warp; executions in which the guard held for no thread count too, which makes both smaller alike.

    Returns:
        float64[n] sectors, NaN where unknown; float64[n] threads, a whole warp where unknown.
    """
    executions = kernel.executions.astype(np.float64)
    sectors = np.full(len(kernel), np.nan)
    threads = np.full(len(kernel), float(WARP_THREADS))
    for name, column in (("global_sectors", sectors), ("thread_executions_true", threads)):
        counted = kernel.counter(name)
        if counted is not None:
            known = (counted > 0) & (executions > 0)
            column[known] = counted[known] / executions[known]
    return sectors, threads


@lru_cache(maxsize=8192)
def count_access_bytes(mnemonic: str) -> int:
    """Bytes one thread moves with one access to global, generic, shared or local memory; 0 for what accesses none of them.

    >>> [count_access_bytes(one) for one in ("LDG.E.128.CONSTANT", "STG.E.U8", "LDS", "LDSM.16.M88.4", "FADD", "CCTL.IVALL")]
    [16, 1, 4, 16, 0, 0]
    """
    opcode = describe_mnemonic(mnemonic)
    if opcode.access not in MOVES or opcode.memory not in (*GLOBAL_SPACES, MemorySpace.SHARED, MemorySpace.LOCAL):
        return 0
    numbers = [width for width in opcode.widths if isinstance(width, int)]
    if len(numbers) == len(opcode.widths) and numbers:  # matrix fragments: registers and not bits are named
        return _REGISTER_BYTES * max(numbers)
    return next((_BYTES[one] for one in mnemonic.split(".")[1:] if one in _BYTES), _REGISTER_BYTES)


def read_modifiers(mnemonic: str) -> frozenset[str]:
    """The modifiers of an opcode.

    >>> sorted(read_modifiers("LDG.E.STRONG.GPU"))
    ['E', 'GPU', 'STRONG']
    """
    return frozenset(mnemonic.split(".")[1:])


def find_address(text: str) -> tuple[str, int] | None:
    """The address an instruction names first: all of it but the constant offset, and that offset in bytes; None without an address.

    >>> find_address("@P0 LDG.E R2, desc[UR4][R2.64+-0x10]"), find_address("STG.E [R4.64], R2"), find_address("FADD R1, R2, R3")
    (('desc[UR4][R2.64]', -16), ('[R4.64]', 0), None)
    """
    body = text.partition(" ")[2] if text.startswith("@") else text
    tokens = split_operands(body.partition(" ")[2])
    token = next((one for one in tokens if parse_operand(one).kind is OperandKind.ADDRESS), None)
    if token is None:
        return None
    offset = _OFFSET.search(token)
    return (token, 0) if offset is None else (f"{token[: offset.start()]}]", int(offset[1], 16))


def is_volatile(mnemonic: str) -> bool:
    """Whether an access must happen where it is written: volatile ones, and atomic loads and stores.

    >>> is_volatile("LDG.E.STRONG.GPU"), is_volatile("LDG.E.CONSTANT")
    (True, False)
    """
    return not _VOLATILE.isdisjoint(mnemonic.split("."))


_IMMEDIATE = re.compile(r"-?0x[0-9a-f]+")
_REGISTER = re.compile(r"R(\d{1,3})(?:\.reuse)?")
_ZERO = ("RZ", "RZ.reuse")
_NEGATED_ZERO = "-RZ"


_NO_ROWS: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)


class RegisterWriters:
    """The writers of every register of one function, by instruction number, and constants that registers hold in straight code."""

    def __init__(self, instructions: Instructions) -> None:
        writes = instructions.writes
        rows = np.repeat(np.arange(len(instructions), dtype=np.int64), np.diff(writes.starts))
        order = np.argsort(writes.numbers, kind="stable")
        resources, starts = np.unique(writes.numbers[order], return_index=True)
        self._instructions = instructions
        self._rows: dict[int, npt.NDArray[np.int64]] = dict(
            zip(resources.tolist(), np.split(rows[order], starts[1:]), strict=False)
        )

    def rows_of(self, resource: int) -> npt.NDArray[np.int64]:
        """The instructions that write a resource, ascending."""
        return self._rows.get(resource, _NO_ROWS)

    def count_before(self, resource: int, row: int) -> int:
        """Number of instructions before ``row``, in address order, that write a resource: equal counts in one block mean an equal value."""
        return int(self.rows_of(resource).searchsorted(row))

    def _find_last(self, resource: int, row: int) -> int | None:
        """The last instruction before ``row``, in address order, that writes a resource."""
        count = self.count_before(resource, row)
        return int(self.rows_of(resource)[count - 1]) if count else None

    def is_written_in(self, resources: Sequence[int], inside: npt.NDArray[np.bool_]) -> bool:
        """Whether any of the resources is written by an instruction that is marked, bool[n]."""
        return any(bool(inside[self.rows_of(resource)].any()) for resource in resources)

    def find_constant(self, operand: str, row: int) -> int | None:
        """The value of an operand at an instruction; None when it is no immediate and no register that was just set to one.

        The last writer before the instruction, in address order, is taken for the one that counts: true in straight code, where compilers
        put the constants of address arithmetic.
        """
        if _IMMEDIATE.fullmatch(operand):
            return int(operand, 16)
        register = _REGISTER.fullmatch(operand)
        if register is None:
            return None
        writer = self._find_last(int(register[1]) | int(ResourceKind.REGISTER) << 8, row)
        return None if writer is None else _read_set_constant(self._instructions.texts[writer])

    def find_index_scale(self, register: int, row: int) -> int | None:
        """Bytes by which an address in a register (pair) grows with the index it was computed from: the multiplier of the address computation before
        it; None when that is not a plain multiply-add or shift-add.
        """
        writer = self._find_last(register, row)
        if writer is None:
            return None
        mnemonic, _, operands = self._instructions.texts[writer].partition(" ")
        tokens = split_operands(operands)
        name, *modifiers = mnemonic.split(".")
        if name == "IMAD" and "WIDE" in modifiers and len(tokens) >= 4:
            scale = self.find_constant(tokens[2], writer)
            return abs(scale) if scale is not None else None
        if name == "LEA" and "HI" not in modifiers:
            shift = next((token for token in reversed(tokens) if _IMMEDIATE.fullmatch(token)), None)
            return 1 << int(shift, 16) if shift is not None and 0 <= int(shift, 16) < 32 else None
        return None


def _read_set_constant(text: str) -> int | None:
    """The value an instruction sets its register to, if it does nothing else.

    >>> _read_set_constant("MOV R13, 0x10"), _read_set_constant("IMAD.MOV.U32 R3, RZ, RZ, 0x4"), _read_set_constant("MOV R1, R2")
    (16, 4, None)
    >>> _read_set_constant("HFMA2.MMA R13, -RZ, RZ, 0, 9.5367431640625e-07")
    16
    """
    mnemonic, _, operands = text.partition(" ")
    tokens = split_operands(operands)
    name, *modifiers = mnemonic.split(".")
    if name == "HFMA2" and len(tokens) == 5 and tokens[1] == _NEGATED_ZERO and tokens[2] in _ZERO:
        return join_halves(tokens[3], tokens[4])
    is_copy = name == "MOV" or (name == "IMAD" and "MOV" in modifiers)
    return int(tokens[-1], 16) if is_copy and tokens and _IMMEDIATE.fullmatch(tokens[-1]) else None


WIDEST_ACCESS_BYTES = 16  # The widest access every architecture has

_LEAST_SPREAD = 0.9  # Part of the sectors that threads so far apart request at least
# Part of the sectors that threads with a word each request; below it many threads share an address, as for a row that a warp reads together
_MOST_SHARED = 0.5


class AccessRun(Struct, frozen=True, kw_only=True):
    """Accesses of one basic block that one access could make."""

    rows: tuple[int, ...]  # kernel rows by ascending address, two or more
    bytes_each: int  # moved by a thread with each

    @property
    def merged_bytes(self) -> int:
        """Bytes that a thread would move with the one access."""
        return self.bytes_each * len(self.rows)


_Key = tuple[object, ...]


@remembered
def find_access_runs(kernel: KernelRows) -> tuple[AccessRun, ...]:
    """Global loads and stores that could be merged, by address of their first row.

    Accesses belong together when they stand in one basic block, have the same opcode, guard and base registers with the same values, and
    constant offsets one after the other. The merged address must be a multiple of the merged size in every thread: offsets must be, and the
    distance between neighbouring threads too. That distance shows in the multiplier of the address computation, or else in the sectors a request
    asks for: many when threads are far apart, few when they share addresses. Where neither is known, nothing is claimed.
    """
    candidates = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD, Access.STORE))
    sectors, lanes = count_per_request(kernel)
    runs: list[AccessRun] = []
    for number, function in enumerate(kernel.functions):
        first = int(kernel.first_rows[number])
        rows = np.flatnonzero(candidates[first : first + len(function.pc_offsets)]).tolist()
        if function.instructions is None or function.graph is None or len(rows) < 2:
            continue
        spacing = _Spacing(RegisterWriters(function.instructions), first, sectors, lanes)
        for chain in _find_chains(function, function.instructions, spacing.writers, rows):
            runs.extend(_cut(spacing, chain))
    return tuple(sorted(runs, key=lambda run: min(run.rows)))


def count_run_lengths(runs: Iterable[AccessRun]) -> Mapping[int, int]:
    """Row → number of accesses in its run; rows in no run are missing."""
    return {row: len(run.rows) for run in runs for row in run.rows}


class _Access(Struct, frozen=True):
    """One candidate: instruction number of the function, constant offset, bytes, lower register of the address."""

    row: int
    offset: int
    size: int
    base: int


def _find_chains(
    function: FunctionSamples, instructions: Instructions, writers: RegisterWriters, rows: Sequence[int]
) -> Iterable[list[_Access]]:
    """Accesses of one block and base, by offset, each right behind the one before."""
    groups: dict[_Key, dict[int, _Access]] = {}
    for row in rows:
        found = _describe(function, instructions, writers, row)
        if found is not None:
            key, access = found
            groups.setdefault(key, {}).setdefault(access.offset, access)
    for group in groups.values():
        ordered = [group[offset] for offset in sorted(group)]
        # Neighbours differ from their place in the chain by the same amount.
        numbered = groupby(enumerate(ordered), key=lambda pair: pair[1].offset - pair[0] * pair[1].size)
        for _, chain in numbered:
            members = [access for _, access in chain]
            if len(members) > 1:
                yield members


def _describe(
    function: FunctionSamples, instructions: Instructions, writers: RegisterWriters, row: int
) -> tuple[_Key, _Access] | None:
    mnemonic = instructions.mnemonics[int(instructions.mnemonic_index[row])]
    size = count_access_bytes(mnemonic)
    if function.graph is None or size * 2 > WIDEST_ACCESS_BYTES or is_volatile(mnemonic):
        return None
    address = find_address(instructions.texts[row])
    if address is None:
        return None
    registers = parse_operand(address[0]).expand(2)
    versions = tuple(writers.count_before(register, row) for register in registers)
    guard = (int(instructions.guard[row]), bool(instructions.guard_negated[row]))
    if guard[0] >= 0:
        versions += (writers.count_before(guard[0], row),)
    block = int(function.graph.block_of_instruction[row])
    general = next((register for register in registers if register < 256), -1)
    return (block, mnemonic, guard, address[0], versions), _Access(row, address[1], size, general)


class _Spacing(ColumnRecord, frozen=True):
    """Distances of the addresses of neighbouring threads, in one function."""

    writers: RegisterWriters  # for the multiplier of the address computation
    first: int  # kernel row of the function's first instruction
    sectors: npt.NDArray[np.float64]  # float64[n] over the kernel's rows, sectors per request; NaN where unknown
    lanes: npt.NDArray[np.float64]  # float64[n], threads per request; 32 where unknown

    def allows(self, access: _Access, merged_bytes: int) -> bool:
        """Whether neighbouring threads seem to be a multiple of the merged size apart."""
        scale = self.writers.find_index_scale(access.base, access.row) if access.base >= 0 else None
        if scale is not None:
            return scale % merged_bytes == 0
        row = self.first + access.row
        sectors, lanes = float(self.sectors[row]), float(self.lanes[row])
        are_apart = sectors >= _LEAST_SPREAD * lanes * min(1.0, merged_bytes / SECTOR_BYTES)
        return are_apart or sectors <= _MOST_SHARED * lanes * access.size / SECTOR_BYTES


def _cut(spacing: _Spacing, chain: Sequence[_Access]) -> Iterable[AccessRun]:
    """The widest aligned accesses a chain can be made of."""
    position = 0
    while position < len(chain) - 1:
        length = _find_length(spacing, chain[position:])
        if length > 1:
            rows = tuple(spacing.first + access.row for access in chain[position : position + length])
            yield AccessRun(rows=rows, bytes_each=chain[position].size)
        position += length


def _find_length(spacing: _Spacing, chain: Sequence[_Access]) -> int:
    """Number of accesses, from the first one on, that fit into one; 1 when it must stay alone."""
    size = chain[0].size
    length = WIDEST_ACCESS_BYTES // size
    while length > 1:
        merged = length * size
        fits = length <= len(chain) and chain[0].offset % merged == 0
        if fits and all(spacing.allows(access, merged) for access in chain[:length]):
            return length
        length //= 2
    return 1


_LEAST_TURNS = 2.0
_ONE_SECTOR = 1.05


class InvariantLoad(Struct, frozen=True, kw_only=True):
    """A load in a loop from an address that the loop does not change."""

    turns: float  # iterations of the loop per entry, at least 1; infinite where executions are unknown
    is_kept_by_stores: bool  # an instruction in the loop may change memory, or lets other threads change it, so the compiler had to load again

    @property
    def removable_ratio(self) -> float:
        """The unnecessary part of its executions."""
        return 1.0 - 1.0 / self.turns


def find_uniform_loads(kernel: KernelRows) -> npt.NDArray[np.bool_]:
    """bool[n], loads by which all threads of a warp fetch the same value: one sector a request, although their bytes together exceed a sector.

    Nothing is marked without the counters of sectors and executions.
    """
    loads = mark_accesses(kernel, GLOBAL_SPACES, (Access.LOAD,))
    sectors, threads = count_per_request(kernel)
    found = np.zeros(len(kernel), dtype=np.bool_)
    for row in np.flatnonzero(loads & (sectors <= _ONE_SECTOR)).tolist():
        mnemonic = kernel.mnemonic(row)
        found[row] = threads[row] * count_access_bytes(mnemonic) > SECTOR_BYTES and not is_volatile(mnemonic)
    return found


def fits_constant_memory(kernel: KernelRows, row: int) -> bool:
    """Whether all that a warp-uniform load ever read fits constant memory: at most one address each time it was executed."""
    read_bytes = int(kernel.executions[row]) * count_access_bytes(kernel.mnemonic(row))
    return 0 < read_bytes <= _CONSTANT_BYTES


def find_invariant_loads(kernel: KernelRows) -> Mapping[int, InvariantLoad]:
    """Row → the load, for loads whose innermost loop writes no register of their address and makes more than one iteration."""
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
                    found[first + row] = InvariantLoad(turns=turns, is_kept_by_stores=kept)
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
    """Whether a loop stores, waits for other threads, or calls."""
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
        return inf
    entries, executions = (int(function.executions[one]) for one in (graph.last_instruction[outside], row))
    if entries < 0 or executions < 0:
        return inf
    return executions / entries if entries else 0.0


def count_innermost_turns(kernel: KernelRows, row: int) -> float:
    """Iterations per entry of the innermost loop around an instruction; 1 outside of loops, and where executions are unknown."""
    function, index = kernel.function_of(row), kernel.index_of(row)
    if function.graph is None:
        return 1.0
    loop = int(function.graph.innermost_loop[function.graph.block_of_instruction[index]])
    turns = count_turns(function, function.graph, loop, index) if loop >= 0 else 1.0
    return turns if 1.0 <= turns < inf else 1.0
