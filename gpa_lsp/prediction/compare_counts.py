"""Lay what was emulated over what was measured: :func:`compare_counts`.

A line of the PTX becomes any number of machine instructions, and what they did together is what the line did: loops are unrolled and functions
inlined. Of accesses that were joined to a wider one only executions are compared. Machine instructions that the PTX does not have (spills,
parameters that are copied) are counted, not compared.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.binary.embedded_ptx import EmbeddedPtx, find_ptx_lines
from gpa_lsp.binary.opcodes import Access, MemorySpace
from gpa_lsp.dataflow.accesses import count_access_bytes
from gpa_lsp.prediction.emulated_counts import EmulatedAccess, EmulatedCounts
from gpa_lsp.prediction.measured_model import ComparedAccess, CountComparison, CountPair
from gpa_lsp.ptx.model import Space
from gpa_lsp.rows.model import Kernel, KernelRows
from gpa_lsp.traces.model import AccessGroupKind

_KINDS = {
    Access.LOAD: AccessGroupKind.LOADS,
    Access.COPY: AccessGroupKind.LOADS,
    Access.STORE: AccessGroupKind.STORES,
    Access.ATOMIC: AccessGroupKind.ATOMICS,
    Access.REDUCTION: AccessGroupKind.ATOMICS,
}
_SPACES = {
    MemorySpace.GLOBAL: Space.GLOBAL,
    MemorySpace.GENERIC: Space.GENERIC,
    MemorySpace.SHARED: Space.SHARED,
    MemorySpace.LOCAL: Space.LOCAL,
}
_SECTORS = {Space.GLOBAL: "global_sectors", Space.LOCAL: "local_sectors"}

_WAVEFRONTS = {Space.SHARED: "shared_wavefronts"}
_MATRICES = ("ldmatrix", "stmatrix")
"""Accesses whose width is that of a row, and not of registers."""
_THREADS = "thread_executions_true"

_Key = tuple[int, AccessGroupKind, Space]
"""Line of the PTX section, kind and space."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _MachineAccess:
    row: int
    line: int
    kind: AccessGroupKind
    space: Space


def compare_counts(kernel: Kernel, unit: EmbeddedPtx, emulated: EmulatedCounts) -> CountComparison:
    """Each access of the PTX that became machine instructions, with both counts.

    Args:
        kernel: one launch, joined with its code.
        unit: the PTX that was emulated.
        emulated: what it did.
    """
    of_ptx: dict[_Key, list[EmulatedAccess]] = {}
    for access in emulated.accesses:
        of_ptx.setdefault((unit.kept_lines[access.text_line - 1], access.kind, access.space), []).append(access)
    rows: dict[_Key, list[int]] = {}
    added = unmapped = 0
    spaces: dict[tuple[int, AccessGroupKind], list[Space]] = {}
    for line, kind, space in of_ptx:
        spaces.setdefault((line, kind), []).append(space)
    for machine in _list_machine_accesses(kernel, unit):
        key = _find_key(machine, spaces)
        if key is not None:
            rows.setdefault(key, []).append(machine.row)
        elif machine.line:
            added += 1
        else:
            unmapped += 1
    joined = _Joined(rows=kernel.rows, factor=emulated.factor)
    return CountComparison(
        launch=kernel.launches[0].index,
        accesses=tuple(joined.compare(key, of_ptx[key], rows[key]) for key in sorted(rows, key=_order)),
        counted_blocks=emulated.counted_blocks,
        grid_blocks=emulated.grid_blocks,
        added=added,
        merged=sum(any(one.executions for one in of_ptx[key]) for key in of_ptx.keys() - rows.keys()),
        unmapped=unmapped,
    )


def _order(key: _Key) -> tuple[int, str, int]:
    line, kind, space = key
    return line, kind.value, int(space)


def _list_machine_accesses(kernel: Kernel, unit: EmbeddedPtx) -> Iterator[_MachineAccess]:
    rows = kernel.rows
    for number, function in enumerate(kernel.functions):
        if kernel.cubin is None or function.name not in kernel.cubin.functions:
            continue
        lines = find_ptx_lines(kernel.cubin, function.name, unit)
        first = int(rows.first_rows[number])
        for index, line in enumerate(lines[: len(function.pc_offsets)].tolist()):
            opcode = rows.opcode(first + index)
            if opcode.access in _KINDS and opcode.memory in _SPACES:
                yield _MachineAccess(
                    row=first + index, line=line, kind=_KINDS[opcode.access], space=_SPACES[opcode.memory]
                )


def _find_key(machine: _MachineAccess, spaces: Mapping[tuple[int, AccessGroupKind], list[Space]]) -> _Key | None:
    """The access a machine instruction was made of: on the same line, of the same kind, and to the same space where both say one."""
    of_line = spaces.get((machine.line, machine.kind), [])
    if machine.space is Space.GENERIC:
        return (machine.line, machine.kind, of_line[0]) if len(of_line) == 1 else None
    space = next((one for one in (machine.space, Space.GENERIC) if one in of_line), None)
    return None if space is None else (machine.line, machine.kind, space)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Joined:
    """Sums over rows.

    Attributes:
        rows: of the kernel.
        factor: of emulated counts.
    """

    rows: KernelRows = field(repr=False)
    factor: float

    def compare(self, key: _Key, accesses: list[EmulatedAccess], numbers: list[int]) -> ComparedAccess:
        line, kind, space = key
        place = next((place for place in map(self.rows.place, numbers) if place is not None), None)
        # Neighbouring loads become one that is wider: it does for several what this one is asked to do alone.
        widths = {count_access_bytes(self.rows.mnemonic(row)) for row in numbers}
        is_as_wide = accesses[0].text.startswith(_MATRICES) or widths <= {one.bytes_per_lane for one in accesses}
        sectors = sum(one.sectors or 0 for one in accesses)
        wavefronts = sum(one.wavefronts or 0 for one in accesses)
        counted = self.rows.executions[numbers]
        return ComparedAccess(
            ptx=accesses[0].text,
            ptx_line=line,
            file=None if place is None else place.file,
            line=None if place is None else place.line,
            kind=kind,
            space=space,
            instructions=tuple((self.rows.function_of(row).name, int(self.rows.pc_offsets[row])) for row in numbers),
            executions=CountPair(
                measured=float(counted[counted > 0].sum()),
                emulated=sum(one.executions for one in accesses) * self.factor,
            ),
            threads=self._pair(_THREADS, numbers, sum(one.threads for one in accesses)),
            sectors=self._pair(_SECTORS.get(space) if is_as_wide else None, numbers, sectors),
            wavefronts=self._pair(_WAVEFRONTS.get(space) if is_as_wide else None, numbers, wavefronts),
        )

    def _pair(self, name: str | None, numbers: list[int], emulated: int) -> CountPair | None:
        column = None if name is None else self.rows.counter(name)
        if column is None:
            return None
        known, threads = column[numbers], self.rows.counter(_THREADS)
        is_known = known >= 0
        if name != _THREADS and threads is not None:
            # No thread accesses nothing: the profiler counted neither sectors nor wavefronts of some guarded copies.
            is_known &= (known > 0) | (threads[numbers] <= 0)
        return CountPair(measured=float(known.sum()), emulated=emulated * self.factor) if is_known.all() else None
