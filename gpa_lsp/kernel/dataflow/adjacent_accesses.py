"""Narrow accesses side by side: several loads (or stores) of one thread to neighbouring addresses, which one wider access could make."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.binary.model import Instructions
from gpa_lsp.code.binary.opcodes import Access
from gpa_lsp.code.binary.operands import parse_operand
from gpa_lsp.foundation.records import ColumnRecord
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

WIDEST_ACCESS_BYTES = 16  # The widest access every architecture has

_LEAST_SPREAD = 0.9  # Of the sectors that threads so far apart ask for at least
# Of the sectors that threads with a word each ask for: below, many threads have one address, as for a row that a warp reads together
_MOST_SHARED = 0.5


class AccessRun(Struct, frozen=True, kw_only=True):
    """Accesses of one basic block that one access could make."""

    rows: tuple[int, ...]  # kernel rows by ascending address, two or more
    bytes_each: int  # what a thread moves with each

    @property
    def merged_bytes(self) -> int:
        """What a thread would move with the one access."""
        return self.bytes_each * len(self.rows)


_Key = tuple[object, ...]


def find_access_runs(kernel: KernelRows) -> tuple[AccessRun, ...]:
    """Global loads and stores that could be merged, by address of their first row.

    Accesses belong together when they stand in one basic block, have the same opcode, guard and base registers with the same values, and
    constant offsets one after the other. The merged address must be a multiple of the merged size in every thread: offsets must be, and the
    distance between neighbouring threads too. That distance shows in the multiplier of the address computation, or else in the sectors a request
    asks for: many when threads are far apart, few when they share addresses. Where neither is known, nothing is claimed.
    """
    return kernel.once(_find_access_runs)


def _find_access_runs(kernel: KernelRows) -> tuple[AccessRun, ...]:
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


def count_run_lengths(kernel: KernelRows, runs: Iterable[AccessRun]) -> Mapping[int, int]:
    """Row → how many accesses its run has; rows in no run are missing."""
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
    """How far apart neighbouring threads access memory, in one function."""

    writers: RegisterWriters  # for the multiplier of the address computation
    first: int  # kernel row of the function's first instruction
    sectors: npt.NDArray[np.float64]  # float64[n] over the kernel's rows, sectors per request; NaN where unknown
    lanes: npt.NDArray[np.float64]  # float64[n], threads per request; 32 where unknown

    def allows(self, access: _Access, merged_bytes: int) -> bool:
        """Whether neighbouring threads stand a multiple of the merged size apart, as far as one can see."""
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
    """How many accesses from the first one on fit into one; 1 when it must stay alone."""
    size = chain[0].size
    length = WIDEST_ACCESS_BYTES // size
    while length > 1:
        merged = length * size
        fits = length <= len(chain) and chain[0].offset % merged == 0
        if fits and all(spacing.allows(access, merged) for access in chain[:length]):
            return length
        length //= 2
    return 1
