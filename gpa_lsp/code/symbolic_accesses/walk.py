"""Symbolic execution of a function's basic blocks: :class:`Walk`.

In a first walk the value of a register at the head of a loop is a symbol; :class:`LoopSolver` finds what the loop adds to it, and a second walk
uses that.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    Pair,
    PtxFunction,
    PtxInstruction,
    Register,
    SpecialRegister,
    Vector,
    list_writes,
)
from gpa_lsp.code.ptx.model import Symbol as VariableAddress
from gpa_lsp.code.symbolic_accesses.forms import (
    LARGEST,
    UNKNOWN_PREDICATE,
    ZERO,
    Arithmetic,
    Atom,
    Form,
    Marks,
    Predicate,
    Symbol,
    SymbolKind,
    SymbolTable,
    Value,
    add,
    make_constant,
    negate,
)
from gpa_lsp.code.symbolic_accesses.model import ThreadIndexes
from gpa_lsp.code.symbolic_accesses.regions import JUMPS, Regions
from gpa_lsp.foundation.records import ColumnRecord

_LOADS = frozenset({"ld", "ldu"})
_FROM_MEMORY = frozenset({"atom", "tex", "tld4", "suld", "ldmatrix", "wmma", "mma", "wgmma", "shfl", "match", "call"})
_WARP_WIDE = frozenset({"vote", "activemask", "redux"})
State = dict[int, Value]


class HeaderValue(Struct, frozen=True, kw_only=True):
    """Value of a register at the head of a loop."""

    symbol: int  # number of its symbol
    loop: int  # number of the loop
    slot: int  # of the register
    entry: Form  # its value when the loop is entered
    back: Value | None  # its value after an iteration; None when unknown


class Seen(ColumnRecord, frozen=True, kw_only=True):
    """An access or branch met in a walk."""

    index: int  # of the instruction
    block: int  # of the instruction
    active: Marks  # bool[threads], those that may reach it, as far as known for each thread
    address: Form | None = None  # of an access; None for branches
    condition: Predicate | None = None  # of a branch; None for accesses
    is_copy_target: bool = False  # it is an asynchronous copy to shared memory, and the address is the one there


class Walk:
    """One walk through a function.

    Args:
        function: a kernel.
        regions: of its blocks.
        table: its symbols.
        indexes: values of special registers.
        added: number of a loop and slot of a register → form added since the loop was entered, None where unknown; None as a whole in the
        first walk.
        parting: numbers of the loops that threads of a warp leave at different times.
    """

    def __init__(
        self,
        function: PtxFunction,
        regions: Regions,
        table: SymbolTable,
        indexes: ThreadIndexes,
        *,
        added: Mapping[tuple[int, int], Form | None] | None = None,
        parting: frozenset[int] = frozenset(),
    ) -> None:
        self._function = function
        self._regions = regions
        self._table = table
        self._indexes = indexes
        self._added = added
        self._parting = parting
        self._arithmetic = Arithmetic(table)
        self._parameters = {one.name: one for one in function.parameters}
        self._outs: dict[int, State] = {}
        self._masks: dict[tuple[int, int], Marks] = {}
        self.branches: dict[int, Predicate] = {}  # block → condition of the branch it ends in
        self.seen: list[Seen] = []
        self._headers: list[tuple[int, int, int, Form]] = []

    def go(self) -> tuple[HeaderValue, ...]:
        """Walk through all blocks; returns the values of registers at the heads of loops (first walk only)."""
        for block in self._regions.order:
            state, active = self._enter(block)
            self._go_through(block, state, active)
        found = []
        for symbol, loop, slot, entry in self._headers:
            back = self._merge(self._regions.headers[loop], slot, is_back=True)
            found.append(HeaderValue(symbol=symbol, loop=loop, slot=slot, entry=entry, back=back))
        return tuple(found)

    # Where blocks begin

    def _enter(self, block: int) -> tuple[State, Marks]:
        regions = self._regions
        before = [one for one in regions.forward[block] if one in self._outs]
        active = self._indexes.active
        if before:
            active = np.logical_or.reduce([self._masks[one, block] for one in before])
        loop = regions.loop_of_header.get(block)
        changed = frozenset[int]() if loop is None else regions.list_written(loop)
        state: State = {}
        for slot in sorted(regions.followed_in[block]):
            merged = self._merge(block, slot)
            if loop is not None and slot in changed:
                merged = self._begin_loop(loop, block, slot, merged)
            if merged is not None:
                state[slot] = merged
        return state, active

    def _merge(self, block: int, slot: int, *, is_back: bool = False) -> Value | None:
        """Value of a register where edges to a block meet: its back edges, or the others."""
        sources = (self._regions.back_edges if is_back else self._regions.forward)[block]
        values = [self._leave_loops(one, block, self._outs[one].get(slot)) for one in sources if one in self._outs]
        if not values or any(one is None for one in values):
            return None
        first = values[0]
        if all(one is first or one == first for one in values[1:]):
            return first
        if not isinstance(first, Form):
            return None
        differences: list[Value] = []
        for one in values[1:]:
            if not isinstance(one, Form):
                return None
            differences.append(add(one, first, -1))
        deciding = self._regions.list_deciding(block, is_back=is_back)
        if deciding is None:
            return None
        conditions = [self.branches.get(one, UNKNOWN_PREDICATE) for one in deciding]
        return add(first, self._table.make_opaque((*differences, *conditions), block=block))

    def _leave_loops(self, source: int, block: int, value: Value | None) -> Value | None:
        """Value of a register behind a loop that threads left at different times: unknown if the loop changes it."""
        if value is None or not self._parting:
            return value
        left = [one for one in self._regions.list_left(source, block) if one in self._parting]
        if not left or not isinstance(value, Form):
            return value
        for number in value.symbols:
            own = self._table.symbols[number]
            if any(own.block in self._regions.members[one] for one in left):
                return self._table.add_varying(block)
        return value

    def _begin_loop(self, loop: int, block: int, slot: int, entry: Value | None) -> Value | None:
        if not isinstance(entry, Form):
            return None
        if self._added is None:
            symbol = self._table.add_symbol(Symbol(kind=SymbolKind.HEADER, block=block))
            self._headers.append((next(iter(symbol.symbols)), loop, slot, entry))
            return symbol
        added = self._added.get((loop, slot))
        if added is None:
            return self._table.add_varying(block)
        return add(entry, added)

    # Through a block

    def _go_through(self, block: int, state: State, active: Marks) -> None:
        regions = self._regions
        for index in range(regions.first[block], regions.last[block] + 1):
            instruction = self._function.instructions[index]
            guard = self._read_guard(instruction, state)
            here = active
            if guard is not None and guard.lanes is not None:
                here = active & guard.lanes
            if instruction.opcode in JUMPS:
                self._end(block, instruction, guard, state, active)
                continue
            self._note_accesses(instruction, block, state, here)
            if index in regions.followed:
                self._execute(instruction, block, state, guard)
        self._outs[block] = state
        for following in regions.successors[block]:
            self._masks.setdefault((block, following), active)

    def _end(
        self, block: int, instruction: PtxInstruction, guard: Predicate | None, state: State, active: Marks
    ) -> None:
        if instruction.opcode == "brx":
            source = self._read(instruction.sources[0], state, block) if instruction.sources else UNKNOWN_PREDICATE
            found = self._table.make_opaque((source,), block=block)
            guard = Predicate(atoms=()) if self._table.is_uniform(found) else UNKNOWN_PREDICATE
        if guard is None:
            return
        self.branches[block] = guard
        self.seen.append(Seen(index=instruction.index, block=block, active=active, condition=guard))
        if guard.lanes is None or instruction.opcode == "brx":
            return
        target = None if instruction.target is None else self._regions.block_of[instruction.target]
        for following in self._regions.successors[block]:
            taken = guard.lanes if following == target else ~guard.lanes
            old = self._masks.get((block, following))
            self._masks[block, following] = active & taken if old is None else old | (active & taken)

    def _read_guard(self, instruction: PtxInstruction, state: State) -> Predicate | None:
        if instruction.guard is None:
            return None
        value = state.get(instruction.guard.slot)
        predicate = value if isinstance(value, Predicate) else UNKNOWN_PREDICATE
        return negate(predicate) if instruction.guard.is_negated else predicate

    def _note_accesses(self, instruction: PtxInstruction, block: int, state: State, active: Marks) -> None:
        addresses = [one for one in (*instruction.destinations, *instruction.sources) if isinstance(one, Address)]
        is_copy = instruction.opcode == "cp" and len(addresses) == 2
        for number, operand in enumerate(addresses):
            if self._is_parameter(instruction, operand):
                continue
            address = self._find_address(operand, state, block)
            self.seen.append(
                Seen(
                    index=instruction.index,
                    block=block,
                    active=active,
                    address=address,
                    is_copy_target=is_copy and number == 0,
                )
            )

    def _is_parameter(self, instruction: PtxInstruction, operand: Address) -> bool:
        is_named = isinstance(operand.base, VariableAddress) and operand.base.name in self._parameters
        return is_named or "param" in instruction.suffixes

    def _execute(self, instruction: PtxInstruction, block: int, state: State, guard: Predicate | None) -> None:
        slots = list_writes(instruction)
        results = self._find_results(instruction, block, state, len(slots))
        for slot, result in zip(slots, results, strict=True):
            if guard is not None:
                old = state.get(slot)
                if isinstance(result, Form) and isinstance(old, Form):
                    result = self._arithmetic.select(guard, result, old)  # noqa: PLW2901
                else:
                    state.pop(slot, None)
                    continue
            state[slot] = result

    def _find_results(self, instruction: PtxInstruction, block: int, state: State, count: int) -> Iterator[Value]:
        opcode = instruction.opcode
        if opcode in _LOADS:
            yield from self._load(instruction, block, state, count)
            return
        sources = [self._read(one, state, block) for one in instruction.sources]
        if opcode in _FROM_MEMORY or opcode in _WARP_WIDE:
            for slot in list_writes(instruction):
                yield self._find_foreign(instruction, slot, sources, block)
            return
        is_plain = len(instruction.destinations) == 1 and isinstance(instruction.destinations[0], Register)
        is_plain &= not any(isinstance(one, Vector) for one in instruction.sources)
        if is_plain:
            yield self._arithmetic.compute(instruction, sources, block)
            return
        if opcode == "setp" and count == 2:
            found = self._arithmetic.compute(instruction, sources, block)
            yield found
            yield negate(found) if isinstance(found, Predicate) else UNKNOWN_PREDICATE
            return
        for slot in list_writes(instruction):
            is_predicate = self._is_predicate(slot)
            yield UNKNOWN_PREDICATE if is_predicate else self._table.make_opaque(sources, block=block)

    def _find_foreign(self, instruction: PtxInstruction, slot: int, sources: Sequence[Value], block: int) -> Value:
        """Result of an instruction that reads from other threads or from memory."""
        if self._is_predicate(slot):
            is_all = instruction.opcode == "vote"
            return Predicate(atoms=()) if is_all else UNKNOWN_PREDICATE
        is_shuffle = instruction.opcode == "shfl"
        if instruction.opcode in _WARP_WIDE or (is_shuffle and sources and self._table.is_uniform(sources[0])):
            return self._table.add_symbol(Symbol(kind=SymbolKind.UNIFORM, block=block))
        is_data = not is_shuffle and instruction.opcode != "call"
        return self._table.add_varying(block, is_data=is_data, origin=instruction.index)

    def _is_predicate(self, slot: int) -> bool:
        return self._function.registers[slot].value == "pred"

    def _load(self, instruction: PtxInstruction, block: int, state: State, count: int) -> Iterator[Value]:
        operand = next((one for one in instruction.sources if isinstance(one, Address)), None)
        base = None if operand is None else operand.base
        parameter = self._parameters.get(base.name) if isinstance(base, VariableAddress) else None
        if operand is not None and parameter is not None and isinstance(base, VariableAddress):
            start = parameter.offset_bytes + base.offset_bytes + operand.offset_bytes
            width = instruction.types[-1].bytes if instruction.types else 1
            for number in range(count):
                offset = start + number * width
                yield self._table.name(
                    ("parameter", offset, width), Symbol(kind=SymbolKind.UNIFORM, name="?", parameter=offset)
                )
            return
        is_of_call = "param" in instruction.suffixes and not isinstance(base, Register)
        address = None if operand is None or is_of_call else self._find_address(operand, state, block)
        for _ in range(count):
            if address is None or "local" in instruction.suffixes:
                yield self._table.add_varying(block)
            else:
                yield self._make_loaded(address, instruction, block)

    def _make_loaded(self, address: Form, instruction: PtxInstruction, block: int) -> Form:
        """The loaded value: uniform for a warp that loads from one address; else data."""
        table = self._table
        if table.is_unresolved(address):
            return table.make_opaque((address,), block=block, is_data=True, origin=instruction.index)
        if table.is_uniform(address):
            return table.add_symbol(Symbol(kind=SymbolKind.UNIFORM, block=block))
        return table.add_varying(block, is_data=True, origin=instruction.index)

    # Operands

    def _find_address(self, operand: Address, state: State, block: int) -> Form:
        base: Value = make_constant(0) if operand.base is None else self._read(operand.base, state, block)
        if not isinstance(base, Form):
            base = self._table.add_varying(block)
        return add(base, make_constant(operand.offset_bytes))

    def _read(self, operand: Operand | None, state: State, block: int) -> Value:
        if isinstance(operand, Register):
            return self._read_register(operand, state, block)
        if isinstance(operand, Immediate):
            return self._read_literal(operand)
        if isinstance(operand, SpecialRegister):
            return self._indexes.read(operand)
        if isinstance(operand, VariableAddress):
            symbol = self._table.name(("variable", operand.name), Symbol(kind=SymbolKind.UNIFORM, name=operand.name))
            return add(symbol, make_constant(operand.offset_bytes))
        if isinstance(operand, Address):
            return self._find_address(operand, state, block)
        if isinstance(operand, Vector | Pair):
            parts = operand.elements if isinstance(operand, Vector) else (operand.first, operand.second)
            return self._table.make_opaque([self._read(one, state, block) for one in parts if one], block=block)
        return self._table.add_varying(block)

    def _read_literal(self, literal: Immediate) -> Form:
        """The form of a literal; numbers too large for indexes are not followed."""
        if isinstance(literal.value, float) or literal.bits is not None:
            return self._table.name("number", Symbol(kind=SymbolKind.UNIFORM))
        if abs(literal.value) > LARGEST:
            return self._table.name("large number", Symbol(kind=SymbolKind.VARYING))
        return make_constant(literal.value)

    def _read_register(self, operand: Register, state: State, block: int) -> Value:
        value = state.get(operand.slot)
        if value is None:
            if self._is_predicate(operand.slot):
                return UNKNOWN_PREDICATE
            value = state[operand.slot] = self._table.add_varying(block)
        return negate(value) if operand.is_negated and isinstance(value, Predicate) else value


_MOST_ROUNDS = 12


class LoopSolver:
    """Finds the form that each iteration adds to each register that a loop changes.

    All registers are first taken to differ between the threads of a warp no more than when the loop was entered. Those for which an iteration
    contradicts this are given up, with all that depend on them, until nothing changes.

    Args:
        table: the symbols.
        regions: of the function.
        headers: values of registers at the heads of loops, outer loops first.
    """

    def __init__(self, table: SymbolTable, regions: Regions, headers: Sequence[HeaderValue]) -> None:
        self._table = table
        self._regions = regions
        self._headers = headers
        self._bad: set[int] = set()
        self._added: dict[int, Form] = {}
        self._whole: dict[int, Form] = {}
        self._derived: dict[int, Form] = {}
        self._count = len(table.symbols)

    def solve(self) -> Mapping[tuple[int, int], Form | None]:
        """(loop, register) → form added since the loop was entered; None where unknown."""
        for _ in range(_MOST_ROUNDS):
            self._substitute_all()
            worse = [one.symbol for one in self._headers if one.symbol not in self._bad and not self._is_kept(one)]
            if not worse:
                break
            self._bad.update(worse)
        else:
            self._bad.update(one.symbol for one in self._headers)
            self._substitute_all()
        return {
            (one.loop, one.slot): None if one.symbol in self._bad else self._added[one.symbol] for one in self._headers
        }

    def find_parting(self, branches: Mapping[int, Predicate]) -> frozenset[int]:
        """Loops that threads of a warp leave at different times; after :meth:`solve`."""
        found = set()
        for loop in range(len(self._regions.headers)):
            leaving = self._regions.list_leaving(loop)
            conditions = (
                [UNKNOWN_PREDICATE] if leaving is None else [branches[one] for one in leaving if one in branches]
            )
            if not all(self._table.is_uniform(self.substitute(one)) for one in conditions):
                found.add(loop)
        return frozenset(found)

    def _substitute_all(self) -> None:
        """Substitute symbols by ascending number: the sources of a symbol come before it, so nothing recurses deeply."""
        self._whole.clear()
        self._derived.clear()
        headers = {one.symbol: one for one in self._headers}
        for number, symbol in enumerate(tuple(self._table.symbols[: self._count])):
            if symbol.kind is SymbolKind.DERIVED:
                self._derived[number] = self._resolve(number, symbol)
            elif number in headers:
                self._settle(headers[number])

    def _settle(self, one: HeaderValue) -> None:
        entry = self._substitute_form(one.entry)
        if one.symbol in self._bad:
            self._whole[one.symbol] = self._make_varying(one, entry)
            return
        added = self._added[one.symbol] = self._find_added(one)
        self._whole[one.symbol] = add(entry, added)

    def _make_varying(self, one: HeaderValue, entry: Form) -> Form:
        data = self._table.find_data([entry] if one.back is None else [entry, one.back])
        own = self._table.symbols[one.symbol]
        return self._table.name(
            ("varying", one.symbol, data is not None),
            Symbol(
                kind=SymbolKind.VARYING,
                is_data=data is not None,
                origin=None if data is None else data.origin,
                block=own.block,
            ),
        )

    def _find_added(self, one: HeaderValue) -> Form:
        """The iteration times the step where all iterations have the same step; else a symbol of its own."""
        block = self._regions.headers[one.loop]
        if isinstance(one.back, Form):
            step = add(one.back, Form({(one.symbol,): 1}), -1)
            if not step.terms:
                return ZERO
            if self._is_fixed(step, one.loop):
                counter = self._table.name(
                    ("iteration", one.loop), Symbol(kind=SymbolKind.UNIFORM, block=block, is_counter=True)
                )
                product = self._table.multiply(counter, self._substitute_form(step))
                if product is not None:
                    return product
        return self._table.name(("added", one.symbol), Symbol(kind=SymbolKind.UNIFORM, block=block))

    def _is_fixed(self, step: Form, loop: int) -> bool:
        members = self._regions.members[loop]
        return all(self._table.symbols[number].block not in members for number in step.symbols)

    def _is_kept(self, one: HeaderValue) -> bool:
        if not isinstance(one.back, Form):
            return False
        difference = add(self._substitute_form(one.back), self._whole[one.symbol], -1)
        return self._table.is_uniform(difference)

    def substitute(self, value: Value) -> Value:
        """A value without symbols that are not known to be uniform or not."""
        if isinstance(value, Predicate):
            atoms = tuple(
                Atom(comparison=one.comparison, difference=self._substitute_form(one.difference)) for one in value.atoms
            )
            return Predicate(atoms=atoms, lanes=value.lanes, is_known=value.is_known)
        return self._substitute_form(value)

    def _substitute_form(self, form: Form) -> Form:
        if not self._table.is_unresolved(form):
            return form
        total = Form({}, form.is_approximate)
        for monomial, coefficient in form.terms.items():
            product: Form | None = Form({(): coefficient})
            for number in monomial:
                factor = self._substitute_symbol(number)
                product = None if product is None else self._table.multiply(product, factor)
            if product is None:
                product = self._table.add_varying()
            total = add(total, product)
        return total

    def _substitute_symbol(self, number: int) -> Form:
        symbol = self._table.symbols[number]
        if symbol.kind not in (SymbolKind.HEADER, SymbolKind.DERIVED):
            return Form({(number,): 1})
        found = (self._whole if symbol.kind is SymbolKind.HEADER else self._derived).get(number)
        return self._table.name(("later", number), Symbol(kind=SymbolKind.VARYING)) if found is None else found

    def _resolve(self, number: int, symbol: Symbol) -> Form:
        sources = [self.substitute(one) for one in symbol.sources]
        if all(self._table.is_uniform(one) for one in sources):
            return self._table.name(("uniform", number), Symbol(kind=SymbolKind.UNIFORM, block=symbol.block))
        data = self._table.find_data(sources)
        origin = symbol.origin if symbol.is_data else None if data is None else data.origin
        has_data = symbol.is_data or data is not None
        return self._table.name(
            ("derived", number, has_data),
            Symbol(kind=SymbolKind.VARYING, is_data=has_data, origin=origin, block=symbol.block),
        )
