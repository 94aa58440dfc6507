"""Local data flow in one function: defs and readers of values, for matching small patterns of instructions.

The patterns are straight-line code of some tens of instructions, so all searches look at *windows*: the instructions that come before (or
after) one on every path, in the order of their addresses. Within a window the def of a read is exact but for loops: a register that
is written again later in a loop body is not followed around the loop.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from operator import or_

from gpa_lsp.code.binary.model import Instructions
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, describe_mnemonic
from gpa_lsp.code.binary.sass import read_operands
from gpa_lsp.code.binary.uses import parse_operand
from gpa_lsp.code.control_flow.model import FlowGraph
from gpa_lsp.foundation.records import remembered
from gpa_lsp.kernel.model import KernelRows

LONGEST_WINDOW = 400  # Instructions looked at before or after one

_LATER_READERS = 60  # Instructions after a chain in which other readers of its inputs are looked for

_MOST_CLIMBS = 64  # Dominators looked at around one instruction

_MOST_FOLLOWED = 64  # Instructions looked at in the computation of a condition
_DEEPEST = 8  # Defs that an address is followed through
_MOST_BETWEEN = 400  # Instructions between a def and its use, where other writers are looked for

# Instructions whose result depends on their operands alone; constants and special registers other than clocks do not change
_PURE = frozenset(
    {
        *("MOV", "IMAD", "IADD3", "IADD", "VIADD", "LEA", "SHF", "LOP3", "PRMT", "SEL", "I2I", "IABS", "IMNMX", "VIMNMX"),
        *("UMOV", "ULDC", "LDC", "LDCU", "UIADD3", "UIMAD", "ULEA", "ULOP3", "USHF", "USEL", "R2UR", "CS2R", "S2R", "S2UR"),
        "IADD64", "UIADD64", "MOV32I",
    }
)  # fmt: skip

_CHANGING = ("CLOCK", "GLOBALTIMER", "SR_PM", "ERRORSTATUS")


@lru_cache(maxsize=8192)
def _make_mask(resources: tuple[int, ...]) -> int:
    """Resource numbers as the bits of a number."""
    return reduce(or_, (1 << resource for resource in resources), 0)


class FunctionFlow:
    """One function section of a kernel. Rows are instruction numbers of the function; ``first_row + row`` is the kernel's row."""

    def __init__(self, kernel: KernelRows, index: int, instructions: Instructions, graph: FlowGraph) -> None:
        self.kernel = kernel  # whose function
        self.index = index  # into ``kernel.functions``
        self.first_row = int(kernel.first_rows[index])  # the kernel's row of instruction 0
        self.graph = graph  # its blocks
        self._instructions = instructions
        self.reads_of = (
            instructions.reads.split()
        )  # resource numbers that each instruction reads, its guard's included; ascending
        self.writes_of = instructions.writes.split()  # resource numbers that each instruction writes; ascending
        self.guard_of: list[int] = (
            instructions.guard.tolist()
        )  # resource number of each instruction's guard; -1 without
        self.mnemonic_of: list[int] = instructions.mnemonic_index.tolist()  # index of each instruction's mnemonic
        self.opcodes = tuple(map(describe_mnemonic, instructions.mnemonics))  # facts of each distinct mnemonic
        self.block_of: list[int] = graph.block_of_instruction.tolist()  # block of each instruction
        self.first: list[int] = graph.first_instruction.tolist()  # first instruction of each block
        self.last: list[int] = graph.last_instruction.tolist()  # last instruction of each block, inclusive
        self._procedure_of: list[int] = graph.procedure_of_block.tolist()
        self._is_reachable: list[bool] = graph.is_reachable.tolist()
        self._dominator: list[int] = graph.immediate_dominator.tolist()
        self._chains: list[int] = kernel.functions[index].chain_index.tolist()
        self._operands: dict[int, tuple[str, ...]] = {}
        self._written_in_loop: dict[int, frozenset[int]] = {}
        self._before: tuple[int, int, list[int]] = (-1, 0, [])

    def __len__(self) -> int:
        return len(self.mnemonic_of)

    @cached_property
    def _masks(self) -> tuple[list[int], list[int]]:
        """Resources that each instruction reads, and those it writes, as masks."""
        return list(map(_make_mask, self.reads_of)), list(map(_make_mask, self.writes_of))

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers."""
        return self._instructions.mnemonics[self.mnemonic_of[row]]

    def opcode(self, row: int) -> Opcode:
        """Facts of the opcode."""
        return self.opcodes[self.mnemonic_of[row]]

    def operands(self, row: int) -> tuple[str, ...]:
        """Operands as written, without reuse flags."""
        found = self._operands.get(row)
        if found is None:
            text = self._instructions.texts[row].replace(".reuse", "")
            found = self._operands[row] = read_operands(text)
        return found

    def rows_of_block(self, block: int) -> range:
        """Rows of a block."""
        return range(self.first[block], self.last[block] + 1)

    def written_in_loop(self, loop: int) -> frozenset[int]:
        """Resource numbers that some instruction of a loop writes."""
        found = self._written_in_loop.get(loop)
        if found is None:
            blocks = self.graph.blocks_of_loop(loop).tolist()
            rows = (row for block in blocks for row in self.rows_of_block(block))
            found = self._written_in_loop[loop] = frozenset(
                resource for row in rows for resource in self.writes_of[row]
            )
        return found

    def is_same_place(self, row: int, other: int) -> bool:
        """Whether two rows come from one source line, through the same inlined calls; False where a line is unknown."""
        return self._chains[row] >= 0 and self._chains[row] == self._chains[other]

    def has_place(self, row: int) -> bool:
        """Whether the row's source line is known."""
        return self._chains[row] >= 0

    def rows_before(self, row: int, limit: int = LONGEST_WINDOW) -> Sequence[int]:
        """The rows, at most ``limit``, that come before ``row`` on every path, ascending; the nearest ones."""
        known_row, known_limit, known = self._before
        if (known_row, known_limit) == (row, limit):
            return known
        found: list[int] = []
        block = self.block_of[row]
        found.extend(range(row - 1, max(self.first[block], row - limit) - 1, -1))
        for _ in range(_MOST_CLIMBS):
            block = self._dominator[block]
            if block < 0 or len(found) >= limit:
                break
            found.extend(reversed(self.rows_of_block(block)[-limit:]))
        found = sorted(found[:limit])
        # Matchers ask again and again about the same branch.
        self._before = (row, limit, found)
        return found

    def rows_after(self, row: int, limit: int = LONGEST_WINDOW) -> list[int]:
        """The rows among the next ``limit`` addresses that ``row`` comes before on every path, ascending."""
        home = self.block_of[row]
        found: list[int] = []
        start, end = row + 1, min(row + 1 + limit, len(self))
        while start < end:
            block = self.block_of[start]
            if self._procedure_of[block] != self._procedure_of[home]:
                break
            stop = min(self.last[block] + 1, end)
            if block == home or self._is_dominated(block, home):
                found.extend(range(start, stop))
            start = stop
        return found

    def _is_dominated(self, block: int, by: int) -> bool:
        if not self._is_reachable[block]:
            return False
        for _ in range(_MOST_CLIMBS + 1):
            if block in (by, -1):
                return block == by
            block = self._dominator[block]
        return block == by

    def find_def(self, row: int, resource: int, window: Sequence[int]) -> int | None:
        """The last row of a window before ``row`` that writes a resource; None when none does."""
        for other in reversed(window):
            if other < row and resource in self.writes_of[other]:
                return other
        return None

    def find_defs(self, row: int) -> list[int]:
        """Rows that compute the registers a row reads, as far as they come before it on every path."""
        window = self.rows_before(row)
        found = (self.find_def(row, resource, window) for resource in set(self.reads_of[row]))
        return [one for one in found if one is not None]

    def follow(self, seeds: Collection[int], window: Sequence[int], accepts: Callable[[int], bool]) -> list[int]:
        """The rows of a window that depend on the results of ``seeds`` through accepted rows, ascending, seeds included.

        Args:
            seeds: rows of the window, or before it.
            window: ascending.
            accepts: told a row that reads a dependent value, says whether it belongs to the chain.
        """
        found = sorted(set(seeds).difference(window))
        tainted: dict[int, set[int]] = {resource: set() for row in found for resource in self.writes_of[row]}
        for row in window:
            block = self.block_of[row]
            if row in seeds or (self._reads_any(row, block, tainted) and accepts(row)):
                found.append(row)
                tainted.update({resource: set() for resource in self.writes_of[row]})
            elif self.guard_of[row] < 0:
                for resource in self.writes_of[row]:
                    if resource in tainted:
                        tainted[resource].add(block)
        return found

    def _reads_any(self, row: int, block: int, tainted: Mapping[int, Collection[int]]) -> bool:
        """Whether a row reads a value in ``tainted``: register → the blocks that overwrite it, which hide it where they come on every path."""
        values = [tainted[resource] for resource in self.reads_of[row] if resource in tainted]
        return bool(values) and any(not any(self._is_dominated(block, by) for by in blocks) for blocks in values)

    def find_feeders(self, members: Collection[int], window: Sequence[int], accepts: Callable[[int], bool]) -> set[int]:
        """Accepted rows of a window whose results only members (and such rows) read.

        Args:
            members: rows of the chain; not empty.
            window: ascending; rows before or among the members.
            accepts: says which rows may be feeders.
        """
        inside, candidates = set(members), set(window).difference(members)
        found: set[int] = set()
        reads, writes = self._masks
        read_inside = read_outside = 0  # values that rows behind the one looked at read, as masks of resource numbers
        for row in sorted({*window, *members, *self.rows_after(max(members), _LATER_READERS)}, reverse=True):
            results = writes[row]
            if row in candidates and results & read_inside and not results & read_outside and accepts(row):
                inside.add(row)
                found.add(row)
            read_inside &= ~results
            read_outside &= ~results
            if row in inside:
                read_inside |= reads[row]
            else:
                read_outside |= reads[row]
        return found


@remembered
def build_flow(kernel: KernelRows, index: int) -> FunctionFlow | None:
    """The flow of one function, made once per kernel; None where it has no instructions."""
    function = kernel.functions[index]
    if function.instructions is None or function.graph is None or not len(function.instructions):
        return None
    return FunctionFlow(kernel, index, function.instructions, function.graph)


def is_decided_by_data(kernel: KernelRows, row: int) -> bool:
    """Whether a branch depends on a loaded value, as far as its condition is computed by rows that come before it on every path."""
    flow = build_flow(kernel, int(kernel.function_index[row]))
    waiting = set() if flow is None else {row - flow.first_row}
    seen: set[int] = set()
    while flow is not None and waiting and len(seen) < _MOST_FOLLOWED:
        one = waiting.pop()
        seen.add(one)
        made = flow.find_defs(one)
        opcodes = map(flow.opcode, made)
        if any(one.access is Access.LOAD and one.memory is not MemorySpace.CONSTANT for one in opcodes):
            return True
        waiting.update(set(made) - seen)
    return False


def is_invariant_address(flow: FunctionFlow, row: int, address: str, loop: int) -> bool:
    """Whether the registers of an address hold the same values in every iteration of a loop.

    Args:
        flow: of the function.
        row: the instruction that uses the address, in the loop.
        address: as written, e.g. ``[R2.64]``.
        loop: number of the loop.

    False where unknown: definitions under a guard, or that some paths avoid.
    """
    return all(_is_invariant(flow, row, resource, loop, 0) for resource in parse_operand(address).expand(2))


def _is_invariant(flow: FunctionFlow, row: int, resource: int, loop: int, depth: int) -> bool:
    if resource not in flow.written_in_loop(loop):
        return True
    if depth == _DEEPEST:
        return False
    window = flow.rows_before(row)
    definition = flow.find_def(row, resource, window)
    if definition is None or loop not in flow.graph.loops_around(flow.block_of[definition]):
        return False
    if flow.guard_of[definition] >= 0 or not _is_pure(flow, definition):
        return False
    if not _is_only_writer(flow, definition, row, resource, frozenset(window)):
        return False
    return all(_is_invariant(flow, definition, one, loop, depth + 1) for one in flow.reads_of[definition])


def _is_pure(flow: FunctionFlow, row: int) -> bool:
    if flow.mnemonic(row).split(".")[0] not in _PURE:
        return False
    return not any(word in operand for operand in flow.operands(row) for word in _CHANGING)


def _is_only_writer(flow: FunctionFlow, definition: int, row: int, resource: int, window: frozenset[int]) -> bool:
    """Whether no branch between also writes the resource; code is laid out in the order it runs, but for loops."""
    if row - definition > _MOST_BETWEEN or row < definition:
        return False
    return not any(resource in flow.writes_of[other] for other in range(definition + 1, row) if other not in window)
