"""Integers that a kernel computes, as polynomials: :class:`Form`, over the symbols of a :class:`SymbolTable`.

A symbol is a value known for each thread (*lanes*: the thread's index, or a function of it), a value that all threads of a warp share (a
parameter, the block's index, a loop's counter, a value loaded from one address), or an unknown value that differs between threads.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.symbolic_accesses.requests import WARP_LANES
from gpa_lsp.foundation.records import ColumnRecord

MOST_TERMS = 24  # Of one form; one with more is not followed
_MOST_FACTORS = 5
LARGEST = 1 << 48  # Beyond addresses; sums of what lies below it are exact

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Monomial = tuple[int, ...]  # Numbers of symbols, ascending; the empty one is that of the constant


class SymbolKind(Enum):
    """Knowledge about the values of a symbol in the threads of a warp."""

    LANES = "known for each thread"
    UNIFORM = "the same for all threads of a warp"
    VARYING = "unknown, and not the same for all threads of a warp"
    HEADER = "value of a register at the head of a loop"
    DERIVED = "uniform if its sources are"


class Form(Struct, frozen=True):
    """A sum of products."""

    terms: Mapping[Monomial, int]  # monomial → coefficient, never zero
    is_approximate: bool = False  # holds for most warps only, such as those within one row of a matrix

    @property
    def constant(self) -> int | None:
        """The number, where the form is one; else None."""
        if not self.terms:
            return 0
        return self.terms.get(()) if len(self.terms) == 1 else None

    @property
    def symbols(self) -> set[int]:
        """Numbers of all symbols in it."""
        return {symbol for monomial in self.terms for symbol in monomial}


class Atom(Struct, frozen=True, kw_only=True):
    """One comparison with zero."""

    comparison: str  # ``lt``, ``le``, ``gt``, ``ge``, ``eq`` or ``ne``
    difference: Form  # left side minus right side


class Predicate(ColumnRecord, frozen=True, kw_only=True):
    """A condition."""

    atoms: tuple[Atom, ...] = ()  # comparisons that it is made of
    lanes: Marks | None = None  # its value for each thread; None when unknown
    is_known: bool = True  # it is made of these atoms and of nothing else


UNKNOWN_PREDICATE = Predicate(is_known=False)
Value = Form | Predicate


class Symbol(ColumnRecord, frozen=True, kw_only=True):
    """One symbol."""

    kind: SymbolKind
    name: str = ""  # as a reader of the source would write it; empty when it has no name there
    parameter: int | None = None  # offset in the kernel's parameters, of one of them
    lanes: Integers | None = None  # int64[threads], of :attr:`SymbolKind.LANES`
    # it is computed from loaded data (not only selected by it), differently for the threads of a warp
    is_data: bool = False
    origin: int | None = None  # index of the instruction that loaded it; None where it was not loaded
    block: int = -1  # basic block that defines it; -1 for what holds in all of the kernel
    sources: tuple[Value, ...] = ()  # what a derived one is made of
    is_counter: bool = False  # counts the iterations of a loop from 0


ZERO = Form({})


def make_constant(value: int) -> Form:
    """A number."""
    return Form({(): value}) if value else ZERO


def add(left: Form, right: Form, factor: int = 1) -> Form:
    """``left + factor · right``."""
    terms = dict(left.terms)
    for monomial, coefficient in right.terms.items():
        value = terms.get(monomial, 0) + factor * coefficient
        if value:
            terms[monomial] = value
        else:
            terms.pop(monomial, None)
    return Form(terms, left.is_approximate or right.is_approximate)


def scale(form: Form, factor: int) -> Form:
    """``factor · form``."""
    terms = {monomial: factor * coefficient for monomial, coefficient in form.terms.items()} if factor else {}
    return Form(terms, form.is_approximate)


class SymbolTable:
    """The symbols of one kernel, and operations on forms that need them.

    Args:
    threads: number of threads whose lanes are followed, a multiple of 32.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.symbols: list[Symbol] = []
        self._named: dict[object, Form] = {}

    def add_symbol(self, symbol: Symbol) -> Form:
        """A form that is the new symbol alone."""
        self.symbols.append(symbol)
        return Form({(len(self.symbols) - 1,): 1})

    def add_varying(self, block: int = -1, *, is_data: bool = False, origin: int | None = None) -> Form:
        """A new symbol that differs between threads in an unknown way."""
        return self.add_symbol(Symbol(kind=SymbolKind.VARYING, is_data=is_data, origin=origin, block=block))

    def name(self, key: object, symbol: Symbol) -> Form:
        """The symbol of a key, added where there is none yet."""
        if key not in self._named:
            self._named[key] = self.add_symbol(symbol)
        return self._named[key]

    def make_lanes(self, values: Integers) -> Form:
        """The form of values known for each thread; lanes that differ by a factor and an offset share one symbol."""
        least = int(values.min())
        steps = values - least
        divisor = int(np.gcd.reduce(steps))
        if not divisor:
            return make_constant(least)
        steps = steps // divisor
        symbol = self.name(steps.tobytes(), Symbol(kind=SymbolKind.LANES, lanes=steps))
        return add(scale(symbol, divisor), make_constant(least))

    def make_opaque(
        self, sources: Iterable[Value], *, block: int, is_data: bool = False, origin: int | None = None
    ) -> Form:
        """A new symbol for a result that is not followed: uniform where all its sources are."""
        kept = tuple(sources)
        if any(self._is_unresolved(one) for one in kept):
            return self.add_symbol(
                Symbol(kind=SymbolKind.DERIVED, sources=kept, block=block, is_data=is_data, origin=origin)
            )
        if all(self.is_uniform(one) for one in kept):
            return self.add_symbol(Symbol(kind=SymbolKind.UNIFORM, block=block))
        data = self.find_data(kept)
        found = origin if is_data else None if data is None else data.origin
        return self.add_varying(block, is_data=is_data or data is not None, origin=found)

    def is_small(self, form: Form) -> bool:
        """Whether a form's terms are small enough to be summed for each thread."""
        if len(form.terms) > MOST_TERMS:
            return False
        for monomial, coefficient in form.terms.items():
            size = abs(coefficient)
            for number in monomial:
                lanes = self.symbols[number].lanes
                size *= 1 if lanes is None else int(lanes.max())
            if size > LARGEST:
                return False
        return True

    def find_data(self, values: Iterable[Value]) -> Symbol | None:
        """The first symbol that is computed from loaded data, differently for the threads of a warp.

        Conditions do not count: they may choose between as few as two addresses.
        """
        for value in values:
            for number in () if isinstance(value, Predicate) else sorted(value.symbols):
                symbol = self.symbols[number]
                if symbol.is_data and symbol.kind is SymbolKind.VARYING:
                    return symbol
        return None

    def is_unresolved(self, form: Form) -> bool:
        """Whether a form has symbols that are not known yet to be uniform or not."""
        kinds = (SymbolKind.HEADER, SymbolKind.DERIVED)
        return any(self.symbols[number].kind in kinds for number in form.symbols)

    def _is_unresolved(self, value: Value) -> bool:
        return any(self.is_unresolved(form) for form in _list_forms((value,)))

    def is_uniform(self, value: Value) -> bool:
        """Whether all threads of each warp have the same value."""
        if isinstance(value, Predicate):
            if value.lanes is not None:
                marks = value.lanes.reshape(-1, WARP_LANES)
                return bool((marks == marks[:, :1]).all())
            return value.is_known and all(self.is_uniform(atom.difference) for atom in value.atoms)
        kinds = {self.symbols[number].kind for number in value.symbols}
        if SymbolKind.VARYING in kinds:
            return False
        if SymbolKind.LANES not in kinds:
            return True
        for lanes in self.group(value).values():
            rows = lanes.reshape(-1, WARP_LANES)
            if (rows != rows[:, :1]).any():
                return False
        return True

    def has_varying(self, form: Form) -> bool:
        """Whether a form has unknown symbols that differ between threads."""
        return any(self.symbols[number].kind is SymbolKind.VARYING for number in form.symbols)

    def group(self, form: Form) -> dict[Monomial, Integers]:
        """The coefficient of each product of uniform symbols, for each thread: int64[threads]."""
        found: dict[Monomial, Integers] = {}
        for monomial, coefficient in form.terms.items():
            lanes = np.full(self.threads, coefficient, dtype=np.int64)
            rest = []
            for number in monomial:
                values = self.symbols[number].lanes
                if values is None:
                    rest.append(number)
                else:
                    lanes = lanes * values
            key = tuple(rest)
            found[key] = found[key] + lanes if key in found else lanes
        return {key: lanes for key, lanes in found.items() if lanes.any()}

    def ungroup(self, groups: Mapping[Monomial, Integers]) -> Form:
        """The form of coefficients as :meth:`group` gives them."""
        total = ZERO
        for monomial, lanes in groups.items():
            for own, coefficient in self.make_lanes(lanes).terms.items():
                total = add(total, Form({tuple(sorted((*own, *monomial))): coefficient}))
        return total

    def find_numbers(self, form: Form) -> Integers | None:
        """int64[threads], the value of a form for each thread; None where it is unknown."""
        kinds = {self.symbols[number].kind for number in form.symbols}
        if kinds - {SymbolKind.LANES}:
            return None
        return self.group(form).get((), np.zeros(self.threads, dtype=np.int64))

    def multiply(self, left: Form, right: Form) -> Form | None:
        """The product; None where it would become too large to follow."""
        if len(left.terms) * len(right.terms) > 2 * MOST_TERMS:
            return None
        total = Form({}, left.is_approximate or right.is_approximate)
        for first, one in left.terms.items():
            for second, other in right.terms.items():
                product = self._multiply_monomials(first, second)
                if product is None or abs(one * other) > LARGEST:
                    return None
                total = add(total, product, one * other)
        return total if len(total.terms) <= MOST_TERMS else None

    def _multiply_monomials(self, left: Monomial, right: Monomial) -> Form | None:
        """The product of two monomials; symbols with lanes are multiplied to one, of which a monomial has at most one."""
        factors = (*left, *right)
        if len(factors) > _MOST_FACTORS:
            return None
        with_lanes = [number for number in factors if self.symbols[number].lanes is not None]
        if len(with_lanes) < 2:
            return Form({tuple(sorted(factors)): 1})
        lanes = np.ones(self.threads, dtype=np.int64)
        for number in with_lanes:
            values = self.symbols[number].lanes
            assert values is not None
            if float(np.abs(lanes).max()) * float(np.abs(values).max()) > LARGEST:
                return None
            lanes = lanes * values
        rest = [number for number in factors if self.symbols[number].lanes is None]
        return self.ungroup({tuple(rest): lanes})


def _list_forms(values: Iterable[Value]) -> Iterable[Form]:
    for value in values:
        if isinstance(value, Predicate):
            yield from (atom.difference for atom in value.atoms)
        else:
            yield value


_COMPARISONS: dict[str, Callable[[Integers], Marks]] = {
    "eq": lambda one: one == 0, "ne": lambda one: one != 0, "lt": lambda one: one < 0, "le": lambda one: one <= 0,
    "gt": lambda one: one > 0, "ge": lambda one: one >= 0,
}  # fmt: skip
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPPOSITES = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_SIGN_SHIFTS = (31, 63)


# Results of instructions on forms. Integers are taken not to overflow. Bits are followed where they are known for each thread, and where the unknown
# part is a multiple of a power of two above them. Quotients by an unknown divisor are taken to be the same for all threads of a warp, which holds but
# for warps that reach into the next row; such results are approximate.


def negate(predicate: Predicate) -> Predicate:
    """The opposite condition."""
    atoms = tuple(
        Atom(comparison=_OPPOSITES[one.comparison], difference=one.difference) if len(predicate.atoms) == 1 else one
        for one in predicate.atoms
    )
    lanes = None if predicate.lanes is None else ~predicate.lanes
    return Predicate(atoms=atoms, lanes=lanes, is_known=predicate.is_known)


class Arithmetic:
    """Computes with the symbols of one table.

    Args:
        table: of the kernel.
    """

    def __init__(self, table: SymbolTable) -> None:
        self.table = table
        self._block = -1

    def compute(self, instruction: PtxInstruction, sources: Sequence[Value], block: int) -> Value:
        """The result of an instruction that accesses no memory."""
        self._block = block
        kind = instruction.types[-1] if instruction.types else None
        if instruction.opcode in ("setp", "testp"):
            return self._compare(instruction, sources)
        if kind is ScalarType.PRED:
            return self._combine(instruction.opcode, sources)
        forms = [one for one in sources if isinstance(one, Form)]
        if instruction.opcode == "mov" and len(forms) == 1:
            return forms[0]
        found = None
        if all(one.is_integer or one is ScalarType.PRED for one in instruction.types) and kind is not None:
            count, rule = _RULES.get(instruction.opcode, (0, None))
            if rule is not None and len(forms) == count == len(sources):
                found = rule(self, instruction, forms)
            elif instruction.opcode == "selp":
                found = self._choose(sources)
        if found is None or not self.table.is_small(found):
            return self.table.make_opaque(sources, block=block)
        return found

    # Conditions

    def _compare(self, instruction: PtxInstruction, sources: Sequence[Value]) -> Predicate:
        words = [_UNSIGNED.get(word, word) for word in instruction.suffixes]
        comparison = words[0] if words else ""
        left, right = sources[:2] if len(sources) > 1 else (None, None)
        if comparison not in _COMPARISONS or not isinstance(left, Form) or not isinstance(right, Form):
            uniform = self.table.make_opaque(sources, block=self._block)
            return Predicate(atoms=(Atom(comparison="ne", difference=uniform),))
        if instruction.types and instruction.types[-1].is_float:
            difference = self.table.make_opaque((left, right), block=self._block)
        else:
            difference = add(left, right, -1)
        numbers = self.table.find_numbers(difference)
        lanes = None if numbers is None else _COMPARISONS[comparison](numbers)
        found = Predicate(atoms=(Atom(comparison=comparison, difference=difference),), lanes=lanes)
        joined = next((word for word in words[1:] if word in ("and", "or", "xor")), None)
        return found if joined is None else self._combine(joined, (found, *sources[2:]))

    def _combine(self, opcode: str, sources: Sequence[Value]) -> Predicate:
        predicates = [_as_predicate(one, self.table.threads) for one in sources]
        if opcode == "mov" and len(predicates) == 1:
            return predicates[0]
        if opcode == "not" and len(predicates) == 1:
            return negate(predicates[0])
        if opcode not in ("and", "or", "xor") or len(predicates) != 2:
            return UNKNOWN_PREDICATE
        left, right = predicates
        for one, other in ((left, right), (right, left)):
            if one.lanes is not None and (one.lanes == one.lanes[0]).all():
                holds = bool(one.lanes[0])
                if opcode == "xor":
                    return negate(other) if holds else other
                return other if holds == (opcode == "and") else one
        lanes = None
        if left.lanes is not None and right.lanes is not None:
            lanes = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}[opcode](left.lanes, right.lanes)
        return Predicate(atoms=(*left.atoms, *right.atoms)[:8], lanes=lanes, is_known=left.is_known and right.is_known)

    def _choose(self, sources: Sequence[Value]) -> Form | None:
        if len(sources) != 3:
            return None
        chosen, other, condition = sources
        if not isinstance(chosen, Form) or not isinstance(other, Form):
            return None
        return self.select(_as_predicate(condition, self.table.threads), chosen, other)

    def select(self, predicate: Predicate, chosen: Form, other: Form) -> Form:
        """``chosen`` where a condition holds, else ``other``."""
        table = self.table
        if dict(chosen.terms) == dict(other.terms):
            return chosen
        difference = add(chosen, other, -1)
        if predicate.lanes is not None and not table.has_varying(difference) and not table.is_unresolved(difference):
            groups = {key: np.where(predicate.lanes, lanes, 0) for key, lanes in table.group(difference).items()}
            return add(other, table.ungroup(groups))
        return add(other, table.make_opaque((predicate, difference), block=self._block))

    def divide(self, form: Form, divisor: Form) -> Form | None:
        """The quotient, rounded down."""
        number = divisor.constant
        if number is not None:
            if number <= 0:
                return None
            split = self._split(form, number)
            if split is not None:
                multiple, rest = split
                terms = {monomial: coefficient // number for monomial, coefficient in multiple.terms.items()}
                return add(Form(terms, form.is_approximate), self.table.make_lanes(rest // number))
        if self.table.is_unresolved(form) or not self._is_row_index(form, number):
            return None
        key = (tuple(sorted(form.terms.items())), tuple(sorted(divisor.terms.items())))
        symbol = self.table.name(("quotient", key), Symbol(kind=SymbolKind.UNIFORM, block=self._block))
        return Form(symbol.terms, is_approximate=True)

    def _is_row_index(self, form: Form, divisor: int | None) -> bool:
        """Whether the threads of a warp have values so close that a quotient is the same for most warps."""
        if self.table.has_varying(form):
            return False
        if divisor is not None and divisor < WARP_LANES:
            return self.table.is_uniform(form)
        for key, lanes in self.table.group(form).items():
            rows = lanes.reshape(-1, WARP_LANES)
            reach = int((rows.max(axis=1) - rows.min(axis=1)).max())
            if reach and (key or reach >= (divisor or WARP_LANES)):
                return False
        return True

    def _split(self, form: Form, divisor: int) -> tuple[Form, Integers] | None:
        """A multiple of the divisor, and the rest, known for each thread; None where there is none."""
        multiple: dict[tuple[int, ...], int] = {}
        rest: dict[tuple[int, ...], int] = {}
        for monomial, coefficient in form.terms.items():
            is_number = all(self.table.symbols[number].lanes is not None for number in monomial)
            if is_number:
                rest[monomial] = coefficient
            elif coefficient % divisor == 0:
                multiple[monomial] = coefficient
            else:
                return None
        numbers = self.table.find_numbers(Form(rest))
        return None if numbers is None else (Form(multiple), numbers)

    def mask(self, form: Form, mask: int) -> Form | None:
        """``form & mask`` for a mask of low bits, or of high bits."""
        size = mask + 1
        if mask > 0 and size & mask == 0:
            split = self._split(form, size)
            if split is not None:
                return self.table.make_lanes(split[1] % size)
            quotient = self.divide(form, make_constant(size))
            return None if quotient is None else add(form, scale(quotient, size), -1)
        if mask < 0 and -mask & (-mask - 1) == 0:
            low = self.mask(form, -mask - 1)
            return None if low is None else add(form, low, -1)
        return None

    def join_bits(self, opcode: str, left: Form, right: Form) -> Form | None:
        """The ``or`` or ``xor`` of numbers, or of a number and a multiple of a higher power of two."""
        operation = np.bitwise_or if opcode == "or" else np.bitwise_xor
        first, second = self.table.find_numbers(left), self.table.find_numbers(right)
        if first is not None and second is not None:
            return self.table.make_lanes(operation(first, second))
        form, numbers = (left, second) if second is not None else (right, first)
        if numbers is None or numbers.min() < 0:
            return None
        size = 1 << int(numbers.max()).bit_length()
        split = self._split(form, size)
        if split is None or split[1].min() < 0:
            return None
        return add(split[0], self.table.make_lanes(operation(split[1], numbers)))


def _as_predicate(value: Value, threads: int) -> Predicate:
    if isinstance(value, Predicate):
        return value
    number = value.constant
    return UNKNOWN_PREDICATE if number is None else Predicate(lanes=np.full(threads, bool(number)))


Rule = Callable[[Arithmetic, PtxInstruction, list[Form]], Form | None]


def _add(_one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    if "cc" in instruction.suffixes:
        return None
    return add(forms[0], forms[1], -1 if instruction.opcode == "sub" else 1)


def _multiply(one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    if "hi" in instruction.suffixes:
        return None
    product = one.table.multiply(forms[0], forms[1])
    return product if product is None or len(forms) == 2 else add(product, forms[2])


def _shift(one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    by = forms[1].constant
    table = one.table
    if by is None:
        numbers, amounts = table.find_numbers(forms[0]), table.find_numbers(forms[1])
        if numbers is None or amounts is None or amounts.min() < 0 or amounts.max() > 31 or numbers.min() < 0:
            return None
        shifted = numbers << amounts if instruction.opcode == "shl" else numbers >> amounts
        return table.make_lanes(shifted)
    if not 0 <= by < 64:
        return None
    if instruction.opcode == "shl":
        return scale(forms[0], 1 << by)
    if by in _SIGN_SHIFTS and table.find_numbers(forms[0]) is None:
        return ZERO  # the sign of what compilers divide by a power of two; indexes are not negative
    return one.divide(forms[0], make_constant(1 << by))


def _divide(one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    quotient = one.divide(forms[0], forms[1])
    if quotient is None or instruction.opcode == "div":
        return quotient
    product = one.table.multiply(quotient, forms[1])
    return None if product is None else add(forms[0], product, -1)


def _combine_bits(one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    if instruction.opcode != "and":
        return one.join_bits(instruction.opcode, forms[0], forms[1])
    table = one.table
    first, second = table.find_numbers(forms[0]), table.find_numbers(forms[1])
    if first is not None and second is not None:
        return table.make_lanes(first & second)
    for form, mask in ((forms[0], forms[1].constant), (forms[1], forms[0].constant)):
        if mask is not None:
            return one.mask(form, mask)
    return None


def _limit(one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    """The smaller or larger of two; for an index and a bound it is the index, except in threads at the edge."""
    table = one.table
    first, second = table.find_numbers(forms[0]), table.find_numbers(forms[1])
    if first is not None and second is not None:
        return table.make_lanes((np.minimum if instruction.opcode == "min" else np.maximum)(first, second))
    if any(table.is_unresolved(form) for form in forms):
        return None
    varying = [form for form in forms if not table.is_uniform(form)]
    return Form(varying[0].terms, is_approximate=True) if len(varying) == 1 else None


def _negate(one: Arithmetic, instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    if instruction.opcode == "abs":
        numbers = one.table.find_numbers(forms[0])
        return None if numbers is None else one.table.make_lanes(np.abs(numbers))
    return add(make_constant(-1 if instruction.opcode == "not" else 0), forms[0], -1)


def _take_bits(one: Arithmetic, _instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    start, length = forms[1].constant, forms[2].constant
    if start is None or length is None or not 0 <= start < 64 or not 0 < length < 64:
        return None
    shifted = one.divide(forms[0], make_constant(1 << start))
    return None if shifted is None else one.mask(shifted, (1 << length) - 1)


def _convert(_one: Arithmetic, _instruction: PtxInstruction, forms: list[Form]) -> Form | None:
    return forms[0]


# Number of forms that each takes, and its rule
_RULES: dict[str, tuple[int, Rule]] = {
    **dict.fromkeys(("add", "sub"), (2, _add)),
    **dict.fromkeys(("mul", "mul24"), (2, _multiply)),
    **dict.fromkeys(("mad", "mad24"), (3, _multiply)),
    **dict.fromkeys(("shl", "shr"), (2, _shift)),
    **dict.fromkeys(("div", "rem"), (2, _divide)),
    **dict.fromkeys(("and", "or", "xor"), (2, _combine_bits)),
    **dict.fromkeys(("min", "max"), (2, _limit)),
    **dict.fromkeys(("neg", "not", "abs"), (1, _negate)),
    "bfe": (3, _take_bits),
    **dict.fromkeys(("cvt", "cvta"), (1, _convert)),
}
