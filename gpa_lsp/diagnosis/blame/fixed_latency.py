"""Causes of ``wait``: the stall count of the instruction just before, and the result that forced it.

From compute capability 7.0 on a result of fixed latency is waited for by time alone: the compiler gives the instructions between its def and
its use stall counts that add up to the latency. A ``wait`` sample sits on the instruction whose predecessor *in address order* has the stall
count: the program counter moves on to the next address when an instruction issues, also when that is a branch that will be taken (what
follows at its target is ``branch_resolving``).

Source: for the cause, "Dissecting and Modeling the Architecture of Modern GPU Cores" (MICRO 2025), stall counters. For the place, the kernels
of real reports with 100,000 samples: in the first instructions of basic blocks ``wait`` has a correlation of .89 to 1.00 with issues × (stall
count - 1) of the address before, and of -.2 to .5 with that of the predecessors in the flow graph; of 535,791 samples of all kernels 6 lie
behind an instruction that never executed.
"""

from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from gpa_lsp.code.binary.model import NO_BARRIER, ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import Pipe
from gpa_lsp.code.binary.sass import split_operands
from gpa_lsp.code.binary.uses import Operand, OperandKind, OperandTable
from gpa_lsp.code.control_flow.model import EdgeKind
from gpa_lsp.diagnosis.blame.edges import NO_RESOURCE, Causes, build_edges
from gpa_lsp.diagnosis.blame.model import WAIT, BlameEdges, Dependency
from gpa_lsp.diagnosis.blame.view import FunctionView, WorkBudget
from gpa_lsp.gpu.arch.hazards import CycleBounds, LatencyClass
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import Figure

# The largest stall count an instruction can encode: how far a cause is looked for where no table says
LONGEST_STALL_CYCLES = 15

_FACTOR_COUNT = 2  # IMAD.WIDE's first two sources are factors, the third is added


class _Pair(NamedTuple):
    """Key of the latency between two instructions."""

    writer: int  # index of the def's mnemonic
    reader: int  # index of the use's
    kind: int  # of the resource
    is_special: bool  # it is the guard of the use, or the address of a constant bank
    result_register: int = 0  # which register of the def's result, where that matters
    source_operand: int = 0  # which source of the use, where that matters
    source_register: int = 0  # which register of it


class RequiredLatencies:
    """Required distances between the instructions of one function; what was looked up is remembered.

    Attributes:
        longest_cycles: no pair needs more.
    """

    def __init__(self, view: FunctionView) -> None:
        self._view, self._architecture = view, view.architecture
        self._operands = OperandTable()
        self._is_wide = [_is_wide(view.architecture, mnemonic) for mnemonic in view.instructions.mnemonics]
        self._known: dict[_Pair, CycleBounds | None] = {}
        self.longest_cycles = _find_longest(view.architecture)

    def find(self, def_row: int, use_row: int, resource: int) -> CycleBounds | None:
        """Cycles from the issue of the def to the earliest issue of the use; None where the tables have no number, and without a table."""
        if self._architecture is None:
            return None
        pair = self._describe(def_row, use_row, resource)
        if pair not in self._known:
            self._known[pair] = self._look_up(self._architecture, pair)
        return self._known[pair]

    def _describe(self, def_row: int, use_row: int, resource: int) -> _Pair:
        writer, reader, kind = self._view.flow.mnemonic_of[def_row], self._view.flow.mnemonic_of[use_row], resource >> 8
        if kind == ResourceKind.UNIFORM_REGISTER:
            return _Pair(writer, reader, kind, self._is_bank_address(use_row, resource))
        if kind != ResourceKind.REGISTER:
            return _Pair(writer, reader, kind, resource == self._view.flow.guard_of[use_row])
        result = resource - self._view.flow.writes_of[def_row][0] if self._is_wide[writer] else 0
        source = self._place_source(use_row, resource) if self._is_wide[reader] else (0, 0)
        return _Pair(writer, reader, kind, False, result, *source)

    def _look_up(self, architecture: Architecture, pair: _Pair) -> CycleBounds | None:
        mnemonics = self._view.instructions.mnemonics
        writer, reader = mnemonics[pair.writer], mnemonics[pair.reader]
        if pair.kind == ResourceKind.REGISTER:
            return architecture.find_register_latency(
                writer,
                reader,
                result_register=pair.result_register,
                source_operand=pair.source_operand,
                source_register=pair.source_register,
            )
        if pair.kind == ResourceKind.PREDICATE:
            return architecture.find_predicate_latency(writer, reader, is_guard=pair.is_special)
        if pair.kind == ResourceKind.UNIFORM_REGISTER:
            return architecture.find_uniform_latency(writer, reader, is_bindless=pair.is_special)
        if pair.kind == ResourceKind.UNIFORM_PREDICATE:
            return architecture.find_uniform_predicate_latency(writer, reader, is_guard=pair.is_special)
        return None

    def _place_source(self, row: int, register: int) -> tuple[int, int]:
        """Source operand of an IMAD.WIDE that names a register, and which register of it; factors are tried before the addend."""
        values = [one for one in self._read_operands(row) if one.kind != OperandKind.PREDICATE][1:]
        for number, operand in enumerate(values):
            expanded = operand.expand(1 if number < _FACTOR_COUNT else 2)
            if register in expanded:
                return number, expanded.index(register)
        return 0, 0

    def _is_bank_address(self, row: int, register: int) -> bool:
        """Whether a uniform register is in the brackets of a constant operand; matrix units name descriptors that way."""
        if self._view.opcode(row).pipe == Pipe.TENSOR:
            return False
        indirect = (one for one in self._read_operands(row) if one.kind == OperandKind.INDIRECT)
        return any(register in one.expand(1) for one in indirect)

    def _read_operands(self, row: int) -> list[Operand]:
        written = self._view.instructions.texts[row].partition(self._view.mnemonic(row))[2].strip()
        return [self._operands[token] for token in split_operands(written)]


def _is_wide(architecture: Architecture | None, mnemonic: str) -> bool:
    return architecture is not None and architecture.opcodes.find_latency_class(mnemonic) is LatencyClass.IMAD_WIDE


def _find_longest(architecture: Architecture | None) -> int:
    if architecture is None:
        return LONGEST_STALL_CYCLES
    matrices = (
        architecture.register_latency,
        architecture.predicate_latency,
        architecture.uniform_latency,
        architecture.uniform_predicate_latency,
    )
    rows = [row.value for matrix in matrices for row in matrix.rows.values() if isinstance(row, Figure)]
    return max([LONGEST_STALL_CYCLES, *(cycles for row in rows for cycles in row[1] if cycles is not None)])


# Resources from here on are not waited for by time
_WITHOUT_LATENCY = encode_resource(ResourceKind.CONVERGENCE_BARRIER, 0)


class Producer(NamedTuple):
    """The def that forced a stall count."""

    row: int  # of the def
    resource: int  # what the use reads of its result; the lowest of a pair or vector
    cycles: int  # encoded, from the def's issue to the use's
    instructions: int  # from after the def up to and including the use


class _Scan(Struct):
    """A search for one use."""

    use_row: int  # the waiting instruction
    stall_cycles: int  # the stall count to explain
    limit_cycles: int  # how long before the issue of the instruction with that stall count a producer can have issued
    rank: tuple[int, int, int] = (0, 0, 0)  # how well the best one found explains it
    best: Producer | None = None  # the best one found
    guess: Producer | None = None  # the nearest def without a known latency, for want of a better one
    steps: int = 0  # instructions looked at


class _Place(Struct, order=True):
    """Place where a scan goes on: an instruction, cycles from its issue to that of the one with the stall count, resources still sought."""

    cycles: int
    instructions: int
    row: int
    sought: set[int]


class StallWindow:
    """Finds producers in one function.

    A def at ``cycles`` encoded cycles before the instruction with the stall count forces a count of (required latency - cycles). It is the
    cause when that is at least half of the stall beyond the one cycle that every issue takes, which leaves room for tables that are a cycle
    off; of several the one that asks for the most. A def behind a scoreboard (double precision, matrix units) counts only where the stall
    count really covers its latency. Ways back over block borders are taken in the order of their length, each block once, and end at calls.

    Without an architecture's table, and for pairs it has no number for, the nearest def of something the use reads is taken, provided that it
    accesses no memory, sets no scoreboard and lies no farther back than a stall count can reach. ``budget``: pays a step for each instruction looked
    at; without it nothing is found.

    Source: required latencies are those of the architecture's hazard tables. In real reports the stall count is exactly what its producer asks
    for in .78 of the ``wait`` samples that have one, and within a cycle of it in .99.
    """

    def __init__(self, view: FunctionView, budget: WorkBudget) -> None:
        graph = view.graph
        self._view, self._blocks, self._budget = view, view.blocks, budget
        self._latencies = RequiredLatencies(view)
        self._stalls: list[int] = view.stall_cycles.tolist()
        self._sets_barrier: list[bool] = (view.control.write_barrier != NO_BARRIER).tolist()
        self._is_reachable: list[bool] = graph.is_reachable.tolist()
        is_step = graph.edge_kind != EdgeKind.CALL_RETURN
        self._steps = set(zip(graph.edge_source[is_step].tolist(), graph.edge_target[is_step].tolist(), strict=True))

    def has_issuer(self, row: int) -> bool:
        """Whether an instruction issues at the address before ``row``; not so at the start of a routine behind filler."""
        if row == 0:
            return False
        before, here = self._blocks.block_of[row - 1], self._blocks.block_of[row]
        return self._is_reachable[before] or not self._is_reachable[here]

    def find_producer(self, use_row: int) -> Producer | None:
        """The producer that forced the stall count of the instruction at the address before; None when none did."""
        issuer = use_row - 1
        stall = self._stalls[issuer]
        if stall <= 1 or self._budget.is_exhausted or not self._continues(issuer):
            return None
        sought = {number for number in self._view.flow.reads_of[use_row] if number < _WITHOUT_LATENCY}
        scan = _Scan(use_row, stall, self._latencies.longest_cycles - 1 - (stall - 1) // 2)
        heap: list[_Place] = []  # shortest ways first
        place = _Place(0, 1, issuer, sought)
        if sought and self._scan_block(scan, place):
            self._push_predecessors(heap, place, scan.limit_cycles)
        seen: set[int] = set()
        while heap:
            place = heappop(heap)
            block = self._blocks.block_of[place.row]
            if block not in seen:
                seen.add(block)
                if self._scan_block(scan, place):
                    self._push_predecessors(heap, place, scan.limit_cycles)
        self._budget.spend(scan.steps)
        return scan.best or scan.guess

    def _continues(self, row: int) -> bool:
        """Whether the instruction at the next address can follow, other than by a return."""
        block = self._blocks.block_of[row]
        return row < self._blocks.last[block] or (block, block + 1) in self._steps

    def _push_predecessors(self, heap: list[_Place], place: _Place, limit: int) -> None:
        block = self._blocks.block_of[place.row]
        for predecessor in self._blocks.predecessors[block]:
            row = self._blocks.last[predecessor]
            cycles = place.cycles + self._stalls[row]
            if cycles <= limit and (predecessor, block) in self._steps:
                heappush(heap, _Place(cycles, place.instructions + 1, row, set(place.sought)))

    def _scan_block(self, scan: _Scan, place: _Place) -> bool:
        """Look from a place back to the start of its block; False when there is nothing more to find before it."""
        first = self._blocks.first[self._blocks.block_of[place.row]]
        sought, writes = place.sought, self._view.flow.writes_of
        while True:
            scan.steps += 1
            written = writes[place.row]
            if not sought.isdisjoint(written):
                for resource in written:
                    if resource in sought:
                        self._consider(scan, place, resource)
                if self._view.flow.guard_of[place.row] < 0:
                    sought.difference_update(written)
            if place.row == first or not sought:
                return bool(sought)
            place.row -= 1
            place.cycles += self._stalls[place.row]
            place.instructions += 1
            if place.cycles > scan.limit_cycles:
                return False

    def _consider(self, scan: _Scan, place: _Place, resource: int) -> None:
        bounds = self._latencies.find(place.row, scan.use_row, resource)
        if bounds is None:
            if scan.guess is None and self._may_be_guessed(scan, place):
                scan.guess = self._make_producer(scan, place, resource)
            return
        forced, surely_forced = bounds.high_cycles - place.cycles, bounds.low_cycles - place.cycles
        if forced <= 1 or 2 * (forced - 1) < scan.stall_cycles - 1:
            return
        if self._sets_barrier[place.row] and surely_forced > scan.stall_cycles:
            return
        rank = (min(forced, scan.stall_cycles), surely_forced, -place.cycles)
        if scan.best is None or rank > scan.rank:
            scan.rank, scan.best = rank, self._make_producer(scan, place, resource)

    def _may_be_guessed(self, scan: _Scan, place: _Place) -> bool:
        if self._sets_barrier[place.row] or self._view.opcode(place.row).memory is not None:
            return False
        return place.cycles + scan.stall_cycles <= LONGEST_STALL_CYCLES

    def _make_producer(self, scan: _Scan, place: _Place, resource: int) -> Producer:
        written = self._view.flow.writes_of[place.row]
        if len(written) > 1 and resource != self._view.flow.guard_of[scan.use_row]:
            reads = self._view.flow.reads_of[scan.use_row]
            resource = next(one for one in written if one >> 8 == resource >> 8 and one in reads)
        return Producer(place.row, resource, place.cycles + scan.stall_cycles, place.instructions)


def find_wait_causes(view: FunctionView, budget: WorkBudget) -> BlameEdges:
    """The causes of all ``wait`` samples, one for each instruction.

    The cause is the producer whose latency forced the stall count of the instruction at the address before; where there is none, that
    instruction itself, by its issue cost; and the sampled instruction where nothing issues before it (the first of a routine).
    """
    reason = view.reason_index(WAIT)
    if reason is None:
        return BlameEdges.from_rows()
    window = StallWindow(view, budget)
    found: list[tuple[int, ...]] = []
    for row in np.flatnonzero(view.all_samples[:, reason]).tolist():
        if not window.has_issuer(row):
            found.append((row, row, Dependency.ITSELF, NO_RESOURCE, 0, 0))
        elif (producer := window.find_producer(row)) is None:
            found.append((row, row - 1, Dependency.ISSUE, NO_RESOURCE, *view.blocks.straight(row - 1, row)))
        else:
            is_guard = producer.resource == view.flow.guard_of[row]
            dependency = Dependency.GUARD if is_guard else Dependency.READ_AFTER_WRITE
            found.append((row, producer.row, dependency, *producer[1:]))
    use_row, def_row, dependencies, resource, cycles, instructions = np.array(found, dtype=np.int64).reshape(-1, 6).T
    causes = Causes(
        use_row=use_row, def_row=def_row, share_ratio=np.ones(len(found)), cycles=cycles, instructions=instructions
    )
    return build_edges(view, reason, causes, dependencies.astype(np.uint8), resource=resource)
