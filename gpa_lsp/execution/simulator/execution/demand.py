"""Instructions whose results decide branches and addresses: :func:`find_demand`.

Most arithmetic of most kernels ends in stored values. It need not be executed to know the executed instructions, their lanes and the sectors they
touch. A backward analysis over the control flow finds the needed values: predicates, addresses, and their sources, through memory as well.
"""

import re
from collections.abc import Sequence

from msgspec import Struct

from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Flow, ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode
from gpa_lsp.execution.simulator.execution.operand_values import (
    MachineInstruction,
    find_width,
    list_address_resources,
    read_instruction,
)
from gpa_lsp.kernel.model import KernelRows

_ALWAYS = frozenset({"BSSY", "BSYNC", "BREAK", "BMOV", "BAR", "WARPSYNC", "B2R", "R2B", "LDGSTS"})
_FIRST_WORD = 1 << 12  # Words of the stack that a kernel spills to are resources like registers, behind those
_STACK = re.compile(r"\[R1(?:\+(0x[0-9a-f]+))?\]")
_STACK_POINTER = 1
_MOST_STACK_BYTES = 1 << 14
_STORING = (Access.STORE, Access.ATOMIC, Access.REDUCTION, Access.COPY)
_LOADING = (Access.LOAD, Access.ATOMIC, Access.COPY)


class Demand(Struct, frozen=True, kw_only=True):
    """Values that are needed."""

    rows: tuple[bool, ...]  # by row, whether its results are
    stored: tuple[bool, ...]  # by row, whether what it stores is


def demand_everything(rows: KernelRows) -> Demand:
    """Demand of every result: the memory is then as the kernel leaves it."""
    every = (True,) * len(rows)
    return Demand(rows=every, stored=every)


def find_demand(rows: KernelRows) -> Demand:
    """Demand of a kernel and its callees."""
    return _DemandSearch(rows).run()


def _to_bits(numbers: Sequence[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


class _DemandSearch:
    """Sets of resources are integers, bit by resource number."""

    def __init__(self, rows: KernelRows) -> None:
        self._rows = rows
        self._count = len(rows)
        self._flow: list[int] = rows.flow.tolist()
        self._reads = [_to_bits(one) for one in rows.reads.split()]
        self._writes = [_to_bits(one) for one in rows.writes.split()]
        self._guards = [0 if one < 0 else 1 << one for one in rows.guard.tolist()]
        self._literals = [
            0 if one < 0 else -one if is_negated else one
            for one, is_negated in zip(rows.guard.tolist(), rows.guard_negated.tolist(), strict=True)
        ]
        self._opcodes: list[Opcode] = [rows.opcode(row) for row in range(self._count)]
        self._addresses = [self._find_address(row) for row in range(self._count)]
        self._is_slot = [False] * self._count
        for row, words in find_stack_words(rows, self._opcodes).items():
            bits = _to_bits([_FIRST_WORD + one for one in words])
            self._is_slot[row] = True
            if self._opcodes[row].access is Access.STORE:
                self._writes[row] |= bits
            else:
                self._reads[row] |= bits
        self._following = _find_following(rows)
        calls = (Flow.CALL, Flow.INDIRECT_CALL)
        self._returned_to = frozenset(row + 1 for row in range(self._count) if self._flow[row] in calls)
        # Memory whose contents are asked for.
        self._asked: set[MemorySpace] = set()

    def _find_address(self, row: int) -> int:
        """Resources that the address of an access is made of, as bits."""
        if self._opcodes[row].memory is None:
            return 0
        instruction: MachineInstruction = read_instruction(row, self._rows.texts[row])
        found = list_address_resources(instruction)
        return self._reads[row] if found is None else _to_bits(found)

    def run(self) -> Demand:
        """Find the demand, until no further memory is needed."""
        before: list[_Asked] = [{} for _ in range(self._count)]
        while True:
            live = self._spread(before)
            asked = {
                self._opcodes[row].memory
                for row in range(self._count)
                if self._loads(row) and self._writes[row] & live[row]
            }
            new = {one for one in asked if one is not None} - self._asked
            if not new:
                break
            self._asked |= new
            if self._asked & {MemorySpace.GENERIC}:
                self._asked |= {MemorySpace.GLOBAL, MemorySpace.SHARED, MemorySpace.LOCAL}
        needed = tuple(self._is_always(row) or bool(self._writes[row] & live[row]) for row in range(self._count))
        stored = tuple(needed[row] if self._is_slot[row] else self._is_stored_asked(row) for row in range(self._count))
        return Demand(rows=needed, stored=stored)

    def _loads(self, row: int) -> bool:
        opcode = self._opcodes[row]
        return opcode.access in _LOADING and opcode.memory is not MemorySpace.CONSTANT and not self._is_slot[row]

    def _is_always(self, row: int) -> bool:
        return self._flow[row] != Flow.NONE or self._opcodes[row].name in _ALWAYS

    def _is_stored_asked(self, row: int) -> bool:
        opcode = self._opcodes[row]
        if opcode.access not in _STORING or self._is_slot[row]:
            return False
        if opcode.memory is MemorySpace.GENERIC:
            return bool(self._asked)
        return opcode.memory in self._asked or MemorySpace.GENERIC in self._asked or opcode.access is Access.COPY

    def _spread(self, before: "list[_Asked]") -> list[int]:
        """Resources needed after each row, as bits; those needed before it go into ``before``."""
        leading: list[list[int]] = [[] for _ in range(self._count)]
        for row, following in enumerate(self._following):
            for one in following:
                leading[one].append(row)
        behind: list[_Asked] = [{}] * self._count
        # Behind any return: what is asked for behind any call, as far as that is known from before.
        returned = _join([{}, *(before[row] for row in self._returned_to if row < self._count)])
        returns = [row for row in range(self._count) if self._flow[row] == Flow.RETURN]
        waiting = bytearray(b"\1" * self._count)
        row = self._count
        while (row := waiting.rfind(1, 0, row)) >= 0 or (row := waiting.rfind(1)) >= 0:
            # From the last row to the first, and again while any waits.
            waiting[row] = 0
            live = _join(self._list_behind(row, before))
            if self._flow[row] == Flow.RETURN:
                live = _join([live, returned])
            behind[row] = live
            found = self._ask(row, live)
            if found == before[row]:
                continue
            before[row] = found
            for one in leading[row]:
                waiting[one] = 1
            if row in self._returned_to:
                returned = _join([returned, found])
                for one in returns:
                    waiting[one] = 1
        return [self._find_asked(row, behind[row]) for row in range(self._count)]

    def _list_behind(self, row: int, before: "list[_Asked]") -> "list[_Asked]":
        """Demand on each way on; after a branch decided by a predicate, only where it holds, or does not."""
        ways = [before[one] for one in self._following[row]]
        literal = self._literals[row]
        if not literal or self._flow[row] != Flow.BRANCH or len(ways) != 2 or self._reads[row] != self._guards[row]:
            return ways
        return [_narrow(ways[0], literal), _narrow(ways[1], -literal)]

    def _find_asked(self, row: int, behind: "_Asked") -> int:
        """Needed results of a row, without those needed only where its predicate does not hold."""
        opposite = -self._literals[row] if self._literals[row] else None
        bits = 0
        for literal, resources in behind.items():
            if literal != opposite or self._writes[row] & self._predicate_bit(literal):
                bits |= resources
        return bits

    @staticmethod
    def _predicate_bit(literal: int) -> int:
        return 1 << abs(literal) if literal else 0

    def _ask(self, row: int, behind: "_Asked") -> "_Asked":
        """Demand before a row, given the demand after it."""
        writes, literal = self._writes[row], self._literals[row]
        if not literal and (not behind or (len(behind) == 1 and 0 in behind)):
            return self._ask_always(row, behind.get(0, 0))
        is_needed = self._is_always(row) or bool(writes & self._find_asked(row, behind))
        found = dict(behind)
        for other in list(found):
            # What is written under a predicate is written wherever it is asked for under the same one.
            if not literal or other == literal:
                found[other] &= ~writes
        for other in list(found):
            if other and writes & self._predicate_bit(other):
                found[0] = found.get(0, 0) | found.pop(other)
        reads = self._addresses[row]
        if is_needed and not (self._loads(row) and self._opcodes[row].access is Access.LOAD):
            reads |= self._reads[row] & ~self._guards[row]
        if self._is_stored_asked(row):
            reads |= self._reads[row] & ~self._guards[row]
        if reads:
            found[literal] = found.get(literal, 0) | reads
        found[0] = found.get(0, 0) | self._guards[row]
        return {one: bits for one, bits in found.items() if bits}

    def _ask_always(self, row: int, behind: int) -> "_Asked":
        """:meth:`_ask` where nothing depends on a predicate."""
        writes = self._writes[row]
        reads = self._addresses[row]
        is_needed = self._is_always(row) or bool(writes & behind)
        if is_needed and not (self._loads(row) and self._opcodes[row].access is Access.LOAD):
            reads |= self._reads[row]
        if self._is_stored_asked(row):
            reads |= self._reads[row]
        asked = behind & ~writes | reads
        return {0: asked} if asked else {}


# Resources by the predicate under which alone they are asked for: its number, negative where it is negated, 0 for always
_Asked = dict[int, int]


def _narrow(part: _Asked, literal: int) -> _Asked:
    """Restrict demand that holds always to where a predicate holds."""
    if 0 not in part:
        return part
    found = {one: bits for one, bits in part.items() if one}
    found[literal] = found.get(literal, 0) | part[0]
    return found


def _join(parts: Sequence[_Asked]) -> _Asked:
    if len(parts) == 1:
        return parts[0]
    found: _Asked = {}
    for part in parts:
        for literal, bits in part.items():
            found[literal] = found.get(literal, 0) | bits
    return found


def find_stack_words(rows: KernelRows, opcodes: Sequence[Opcode]) -> dict[int, tuple[int, ...]]:
    """Words of the stack that accesses of local memory go to, by row; nothing where not all can be told.

    They can where the stack pointer is set once, before anything branches, and local memory is reached through it alone.
    """
    count = len(rows)
    spaces = [one.memory for one in opcodes]
    if MemorySpace.LOCAL not in spaces or MemorySpace.GENERIC in spaces:
        return {}
    flow: list[int] = rows.flow.tolist()
    targets: list[int] = rows.target_row.tolist()
    straight = next((row for row in range(count) if flow[row] != Flow.NONE), count)
    straight = min([straight, *(one for one in targets if one >= 0)])
    first = next(row for row in range(count) if spaces[row] is MemorySpace.LOCAL)
    number = encode_resource(ResourceKind.REGISTER, _STACK_POINTER)
    if any(number in rows.writes.of(row) for row in range(min(straight, first), count)):
        return {}
    found: dict[int, tuple[int, ...]] = {}
    for row in range(count):
        if spaces[row] is not MemorySpace.LOCAL:
            continue
        instruction = read_instruction(row, rows.texts[row])
        place = next((match for one in instruction.operands if (match := _STACK.fullmatch(one))), None)
        offset = int(place[1] or "0x0", 16) if place else _MOST_STACK_BYTES
        width = find_width(instruction)
        if offset + width > _MOST_STACK_BYTES or opcodes[row].access not in (Access.LOAD, Access.STORE):
            return {}
        found[row] = tuple(range(offset // 4, (offset + width + 3) // 4))
    return found


def _find_following(rows: KernelRows) -> list[tuple[int, ...]]:
    """Rows that can be executed right after each, but for those behind a return."""
    count = len(rows)
    flow: list[int] = rows.flow.tolist()
    targets: list[int] = rows.target_row.tolist()
    entries = _list_entries(rows)
    found: list[tuple[int, ...]] = []
    for row in range(count):
        behind = (row + 1,) if row + 1 < count else ()
        kind = flow[row]
        is_guarded = rows.guard[row] >= 0
        if kind == Flow.BRANCH:
            found.append((targets[row], *behind) if targets[row] >= 0 else behind)
        elif kind == Flow.INDIRECT_BRANCH:
            found.append((*_find_indirect(rows, row), *behind))
        elif kind in (Flow.CALL, Flow.INDIRECT_CALL):
            # Into the callee, and past it: what it does not write is asked for all the same.
            found.append(((targets[row],) if targets[row] >= 0 else entries) + behind)
        elif kind == Flow.RETURN:
            found.append(behind if is_guarded else ())
        else:
            found.append(behind)
    return found


def _list_entries(rows: KernelRows) -> tuple[int, ...]:
    """First rows of functions, those inside of sections as well."""
    found = {int(one) for one in rows.first_rows[:-1]}
    for first, function in zip(rows.first_rows.tolist(), rows.functions, strict=False):
        if function.graph is not None:
            found |= {first + one.start_offset // INSTRUCTION_BYTES for one in function.graph.procedures}
    return tuple(sorted(one for one in found if one < len(rows)))


def _find_indirect(rows: KernelRows, row: int) -> tuple[int, ...]:
    number = int(rows.function_index[row])
    function = rows.functions[number].function
    first = int(rows.first_rows[number])
    last = int(rows.first_rows[number + 1])
    listed = None if function is None else function.indirect_branch_targets.get(int(rows.pc_offsets[row]))
    if listed:
        return tuple(first + one // INSTRUCTION_BYTES for one in listed if first + one // INSTRUCTION_BYTES < last)
    return tuple(range(first, last))
