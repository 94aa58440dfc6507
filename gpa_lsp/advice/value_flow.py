"""Where values of one function come from and go to, close by: what matching small patterns of instructions needs.

The patterns are straight-line code of some tens of instructions, so everything here looks at *windows*: the instructions that come before (or
after) one on every path, in the order of their addresses. Within a window, which write a read sees is exact but for loops: a register that
is written again later in a loop body is not followed round the loop.
"""

from collections.abc import Callable, Collection, Mapping, Sequence

from gpa_lsp.advice.subject import Subject
from gpa_lsp.binary.model import Instructions, ResourceLists
from gpa_lsp.binary.opcodes import Opcode
from gpa_lsp.binary.sass import instruction_at
from gpa_lsp.program.model import FlowGraph

LONGEST_WINDOW = 400
"""Instructions looked at before or after one."""

_LATER_READERS = 60
"""Instructions after a chain in which other readers of its inputs are looked for."""

_MOST_CLIMBS = 64
"""Dominators looked at around one instruction."""


class FunctionFlow:
    """One function section of a subject. Rows are instruction numbers of the function; ``first_row + row`` is the subject's row.

    Attributes:
        subject: whose function.
        index: into ``subject.kernel.functions``.
        first_row: the subject's row of instruction 0.
        graph: its blocks.
    """

    def __init__(self, subject: Subject, index: int, instructions: Instructions, graph: FlowGraph) -> None:
        self.subject = subject
        self.index = index
        self.first_row = int(subject.first_rows[index])
        self.graph = graph
        self._instructions = instructions
        self._reads, self._read_starts = _unpack(instructions.reads)
        self._writes, self._write_starts = _unpack(instructions.writes)
        self._mnemonic_index: list[int] = instructions.mnemonic_index.tolist()
        self._block_of: list[int] = graph.block_of_instruction.tolist()
        self._chains: list[int] = subject.kernel.functions[index].chain_index.tolist()
        self._operands: dict[int, tuple[str, ...]] = {}
        self._written_in_loop: dict[int, frozenset[int]] = {}
        self._before: tuple[int, int, list[int]] = (-1, 0, [])

    def __len__(self) -> int:
        return len(self._mnemonic_index)

    def mnemonic(self, row: int) -> str:
        """Opcode with modifiers."""
        return self._instructions.mnemonics[self._mnemonic_index[row]]

    def opcode(self, row: int) -> Opcode:
        """Facts of the opcode."""
        return self.subject.opcode(self.first_row + row)

    def reads(self, row: int) -> Sequence[int]:
        """Resource numbers read, the guard's included."""
        return self._reads[self._read_starts[row] : self._read_starts[row + 1]]

    def writes(self, row: int) -> Sequence[int]:
        """Resource numbers written."""
        return self._writes[self._write_starts[row] : self._write_starts[row + 1]]

    def guard(self, row: int) -> int:
        """Resource number of the guard; -1 without one."""
        return int(self._instructions.guard[row])

    def operands(self, row: int) -> tuple[str, ...]:
        """Operands as written, without reuse flags."""
        found = self._operands.get(row)
        if found is None:
            written = instruction_at(self._instructions, row).operands
            found = self._operands[row] = tuple(operand.replace(".reuse", "") for operand in written)
        return found

    def block_of(self, row: int) -> int:
        """Its block."""
        return self._block_of[row]

    def rows_of_block(self, block: int) -> range:
        """Rows of a block."""
        return range(int(self.graph.first_instruction[block]), int(self.graph.last_instruction[block]) + 1)

    def written_in_loop(self, loop: int) -> frozenset[int]:
        """Resource numbers that some instruction of a loop writes."""
        found = self._written_in_loop.get(loop)
        if found is None:
            blocks = self.graph.blocks_of_loop(loop).tolist()
            rows = (row for block in blocks for row in self.rows_of_block(block))
            found = self._written_in_loop[loop] = frozenset(resource for row in rows for resource in self.writes(row))
        return found

    def is_same_place(self, row: int, other: int) -> bool:
        """Both come from one source line, through the same inlined calls; False where a line is not known."""
        return self._chains[row] >= 0 and self._chains[row] == self._chains[other]

    def has_place(self, row: int) -> bool:
        """A source line is known."""
        return self._chains[row] >= 0

    def rows_before(self, row: int, limit: int = LONGEST_WINDOW) -> Sequence[int]:
        """Up to ``limit`` rows that come before ``row`` on every path, ascending; the nearest ones."""
        known_row, known_limit, known = self._before
        if (known_row, known_limit) == (row, limit):
            return known
        found: list[int] = []
        block = self._block_of[row]
        start = int(self.graph.first_instruction[block])
        found.extend(range(row - 1, max(start, row - limit) - 1, -1))
        for _ in range(_MOST_CLIMBS):
            block = int(self.graph.immediate_dominator[block])
            if block < 0 or len(found) >= limit:
                break
            found.extend(reversed(self.rows_of_block(block)[-limit:]))
        found = sorted(found[:limit])
        # Matchers ask again and again about the same branch.
        self._before = (row, limit, found)
        return found

    def rows_after(self, row: int, limit: int = LONGEST_WINDOW) -> list[int]:
        """The rows among the next ``limit`` addresses that ``row`` comes before on every path, ascending."""
        home = self._block_of[row]
        known = {home: True}
        procedure = int(self.graph.procedure_of_block[home])
        found: list[int] = []
        for other in range(row + 1, min(row + 1 + limit, len(self))):
            block = self._block_of[other]
            if int(self.graph.procedure_of_block[block]) != procedure:
                break
            if block not in known:
                known[block] = self._is_dominated(block, home)
            if known[block]:
                found.append(other)
        return found

    def _is_dominated(self, block: int, by: int) -> bool:
        for climbed, dominator in enumerate(self.graph.dominators_of(block)):
            if dominator == by:
                return True
            if climbed > _MOST_CLIMBS:
                return False
        return False

    def find_def(self, row: int, resource: int, window: Sequence[int]) -> int | None:
        """The last row of a window before ``row`` that writes a resource; None when none does."""
        for other in reversed(window):
            if other < row and resource in self.writes(other):
                return other
        return None

    def follow(self, seeds: Collection[int], window: Sequence[int], accepts: Callable[[int], bool]) -> list[int]:
        """The rows of a window that depend on the results of ``seeds`` through accepted rows, ascending, seeds included.

        Args:
            seeds: rows of the window, or before it.
            window: ascending.
            accepts: told a row that reads a dependent value, says whether it belongs to the chain.
        """
        found = sorted(set(seeds).difference(window))
        tainted: dict[int, set[int]] = {resource: set() for row in found for resource in self.writes(row)}
        for row in window:
            block = self._block_of[row]
            if row in seeds or (self._reads_any(row, block, tainted) and accepts(row)):
                found.append(row)
                tainted.update({resource: set() for resource in self.writes(row)})
            elif self.guard(row) < 0:
                for resource in self.writes(row):
                    if resource in tainted:
                        tainted[resource].add(block)
        return found

    def _reads_any(self, row: int, block: int, tainted: Mapping[int, Collection[int]]) -> bool:
        """A row reads one of some values; each comes with the blocks that overwrite it, which hides it where they come on every path."""
        return any(
            resource in tainted and not any(self._is_dominated(block, by) for by in tainted[resource])
            for resource in self.reads(row)
        )

    def find_feeders(self, members: Collection[int], window: Sequence[int], accepts: Callable[[int], bool]) -> set[int]:
        """Accepted rows of a window whose results only members (and such rows) read.

        Args:
            members: rows of the chain; not empty.
            window: ascending; rows before or among the members.
            accepts: says which rows may be feeders.
        """
        inside = set(members)
        readers = self._find_readers(sorted({*window, *members, *self.rows_after(max(members), _LATER_READERS)}))
        found: set[int] = set()
        for row in reversed(window):
            users = readers.get(row)
            if row not in inside and users and users <= inside and accepts(row):
                inside.add(row)
                found.add(row)
        return found

    def _find_readers(self, rows: Sequence[int]) -> dict[int, set[int]]:
        """Row → the rows that read its results, in address order."""
        writer: dict[int, int] = {}
        readers: dict[int, set[int]] = {}
        for row in rows:
            for resource in self.reads(row):
                if resource in writer:
                    readers.setdefault(writer[resource], set()).add(row)
            for resource in self.writes(row):
                writer[resource] = row
        return readers


_LAST: list[tuple[Subject, dict[int, FunctionFlow | None]]] = []
"""The last subject and its flows: whoever matches patterns asks for the same ones, one after the other."""


def build_flow(subject: Subject, index: int) -> FunctionFlow | None:
    """The flow of one function; None where it has no instructions."""
    last = _LAST[0] if _LAST else None
    if last is None or last[0] is not subject:
        last = (subject, {})
        _LAST[:] = [last]
    flows = last[1]
    if index not in flows:
        flows[index] = _build_flow(subject, index)
    return flows[index]


def _build_flow(subject: Subject, index: int) -> FunctionFlow | None:
    function = subject.kernel.functions[index]
    if function.instructions is None or function.graph is None or not len(function.instructions):
        return None
    return FunctionFlow(subject, index, function.instructions, function.graph)


def _unpack(lists: ResourceLists) -> tuple[list[int], list[int]]:
    return lists.numbers.tolist(), lists.starts.tolist()
