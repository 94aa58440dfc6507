"""What instructions make of forms: :func:`compute`.

Integers are taken not to overflow. Bits are followed where they are known for each thread, and where what is unknown is a multiple of a power of
two that they stay below. Quotients by what is not known are taken to be the same for all threads of a warp, which holds but for warps that
reach into the next row; such results are approximate.
"""

from collections.abc import Callable, Sequence

import numpy as np

from gpa_lsp.code.ptx.model import PtxInstruction
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.symbolic_accesses.forms import (
    UNKNOWN_PREDICATE,
    WARP_LANES,
    ZERO,
    Atom,
    Form,
    Integers,
    Marks,
    Predicate,
    Symbol,
    SymbolKind,
    SymbolTable,
    Value,
    add,
    make_constant,
    scale,
)

_COMPARISONS: dict[str, Callable[[Integers], Marks]] = {
    "eq": lambda one: one == 0,
    "ne": lambda one: one != 0,
    "lt": lambda one: one < 0,
    "le": lambda one: one <= 0,
    "gt": lambda one: one > 0,
    "ge": lambda one: one >= 0,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_OPPOSITES = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt"}
_SIGN_SHIFTS = (31, 63)


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
        self._table = table
        self._block = -1

    def compute(self, instruction: PtxInstruction, sources: Sequence[Value], block: int) -> Value:
        """The result of an instruction that accesses no memory."""
        self._block = block
        kind = instruction.types[-1] if instruction.types else None
        if instruction.opcode in ("setp", "testp"):
            return self._compare(instruction, sources)
        if kind is ScalarType.PRED:
            return self._combine(instruction.opcode, sources)
        rule = _RULES.get(instruction.opcode)
        forms = [one for one in sources if isinstance(one, Form)]
        is_integer = all(one.is_integer or one is ScalarType.PRED for one in instruction.types) and kind is not None
        if instruction.opcode == "mov" and len(forms) == 1:
            return forms[0]
        found = rule(self, instruction, sources) if rule is not None and is_integer else None
        if found is None or not self._table.is_small(found):
            return self._table.make_opaque(sources, block=block)
        return found

    # Conditions

    def _compare(self, instruction: PtxInstruction, sources: Sequence[Value]) -> Predicate:
        words = [_UNSIGNED.get(word, word) for word in instruction.suffixes]
        comparison = words[0] if words else ""
        if comparison not in _COMPARISONS or len(sources) < 2 or not _are_forms(sources[:2]):
            uniform = self._table.make_opaque(sources, block=self._block)
            return Predicate(atoms=(Atom(comparison="ne", difference=uniform),))
        left, right = sources[0], sources[1]
        assert isinstance(left, Form) and isinstance(right, Form)
        if instruction.types and instruction.types[-1].is_float:
            difference = self._table.make_opaque((left, right), block=self._block)
        else:
            difference = add(left, right, -1)
        numbers = self._table.find_numbers(difference)
        lanes = None if numbers is None else _COMPARISONS[comparison](numbers)
        found = Predicate(atoms=(Atom(comparison=comparison, difference=difference),), lanes=lanes)
        joined = next((word for word in words[1:] if word in ("and", "or", "xor")), None)
        return found if joined is None else self._combine(joined, (found, *sources[2:]))

    def _combine(self, opcode: str, sources: Sequence[Value]) -> Predicate:
        predicates = [_as_predicate(one, self._table.threads) for one in sources]
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

    def select(self, predicate: Predicate, chosen: Form, other: Form) -> Form:
        """``chosen`` where a condition holds, else ``other``."""
        table = self._table
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
                return add(Form(terms, form.is_approximate), self._table.make_lanes(rest // number))
        if self._table.is_unresolved(form) or not self._is_row_index(form, number):
            return None
        key = (tuple(sorted(form.terms.items())), tuple(sorted(divisor.terms.items())))
        symbol = self._table.name(("quotient", key), Symbol(kind=SymbolKind.UNIFORM, block=self._block))
        return Form(symbol.terms, is_approximate=True)

    def _is_row_index(self, form: Form, divisor: int | None) -> bool:
        """Its threads lie so close that a quotient is the same for most warps."""
        if self._table.has_varying(form):
            return False
        if divisor is not None and divisor < WARP_LANES:
            return self._table.is_uniform(form)
        for key, lanes in self._table.group(form).items():
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
            is_number = all(self._table.symbols[number].lanes is not None for number in monomial)
            if is_number:
                rest[monomial] = coefficient
            elif coefficient % divisor == 0:
                multiple[monomial] = coefficient
            else:
                return None
        numbers = self._table.find_numbers(Form(rest))
        return None if numbers is None else (Form(multiple), numbers)

    def mask(self, form: Form, mask: int) -> Form | None:
        """``form & mask`` for a mask of low bits, or of high bits."""
        size = mask + 1
        if mask > 0 and size & mask == 0:
            split = self._split(form, size)
            if split is not None:
                return self._table.make_lanes(split[1] % size)
            quotient = self.divide(form, make_constant(size))
            return None if quotient is None else add(form, scale(quotient, size), -1)
        if mask < 0 and -mask & (-mask - 1) == 0:
            low = self.mask(form, -mask - 1)
            return None if low is None else add(form, low, -1)
        return None

    def join_bits(self, opcode: str, left: Form, right: Form) -> Form | None:
        """``or`` or ``xor`` of numbers, or of a number and what is a multiple of a higher power of two."""
        operation = np.bitwise_or if opcode == "or" else np.bitwise_xor
        first, second = self._table.find_numbers(left), self._table.find_numbers(right)
        if first is not None and second is not None:
            return self._table.make_lanes(operation(first, second))
        form, numbers = (left, second) if second is not None else (right, first)
        if numbers is None or numbers.min() < 0:
            return None
        size = 1 << int(numbers.max()).bit_length()
        split = self._split(form, size)
        if split is None or split[1].min() < 0:
            return None
        return add(split[0], self._table.make_lanes(operation(split[1], numbers)))


def _are_forms(values: Sequence[Value]) -> bool:
    return all(isinstance(one, Form) for one in values)


def _as_predicate(value: Value, threads: int) -> Predicate:
    if isinstance(value, Predicate):
        return value
    number = value.constant
    return UNKNOWN_PREDICATE if number is None else Predicate(lanes=np.full(threads, bool(number)))


Rule = Callable[[Arithmetic, PtxInstruction, Sequence[Value]], Form | None]


def _take(sources: Sequence[Value], count: int) -> list[Form] | None:
    forms = [one for one in sources if isinstance(one, Form)]
    return forms if len(forms) == count == len(sources) else None


def _add(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 2)
    if forms is None or "cc" in instruction.suffixes:
        return None
    return add(forms[0], forms[1], -1 if instruction.opcode == "sub" else 1)


def _multiply(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    is_sum = instruction.opcode.startswith("mad")
    forms = _take(sources, 3 if is_sum else 2)
    if forms is None:
        return None
    table = one._table
    if "hi" in instruction.suffixes:
        return None
    product = table.multiply(forms[0], forms[1])
    return product if product is None or not is_sum else add(product, forms[2])


def _shift(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 2)
    if forms is None:
        return None
    by = forms[1].constant
    table = one._table
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


def _divide(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 2)
    if forms is None:
        return None
    quotient = one.divide(forms[0], forms[1])
    if quotient is None or instruction.opcode == "div":
        return quotient
    product = one._table.multiply(quotient, forms[1])
    return None if product is None else add(forms[0], product, -1)


def _combine_bits(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 2)
    if forms is None:
        return None
    if instruction.opcode != "and":
        return one.join_bits(instruction.opcode, forms[0], forms[1])
    table = one._table
    first, second = table.find_numbers(forms[0]), table.find_numbers(forms[1])
    if first is not None and second is not None:
        return table.make_lanes(first & second)
    for form, mask in ((forms[0], forms[1].constant), (forms[1], forms[0].constant)):
        if mask is not None:
            return one.mask(form, mask)
    return None


def _limit(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    """The smaller or larger of two; of an index and a bound it is the index, but for the threads at the edge."""
    forms = _take(sources, 2)
    if forms is None:
        return None
    table = one._table
    first, second = table.find_numbers(forms[0]), table.find_numbers(forms[1])
    if first is not None and second is not None:
        return table.make_lanes((np.minimum if instruction.opcode == "min" else np.maximum)(first, second))
    if any(table.is_unresolved(form) for form in forms):
        return None
    varying = [form for form in forms if not table.is_uniform(form)]
    return Form(varying[0].terms, is_approximate=True) if len(varying) == 1 else None


def _negate(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 1)
    if forms is None:
        return None
    if instruction.opcode == "abs":
        numbers = one._table.find_numbers(forms[0])
        return None if numbers is None else one._table.make_lanes(np.abs(numbers))
    return add(make_constant(-1 if instruction.opcode == "not" else 0), forms[0], -1)


def _select(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    if len(sources) != 3 or not _are_forms(sources[:2]):
        return None
    chosen, other, condition = sources
    assert isinstance(chosen, Form) and isinstance(other, Form)
    return one.select(_as_predicate(condition, one._table.threads), chosen, other)


def _take_bits(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 3)
    start, length = (None, None) if forms is None else (forms[1].constant, forms[2].constant)
    if forms is None or start is None or length is None or not 0 <= start < 64 or not 0 < length < 64:
        return None
    shifted = one.divide(forms[0], make_constant(1 << start))
    return None if shifted is None else one.mask(shifted, (1 << length) - 1)


def _convert(one: Arithmetic, instruction: PtxInstruction, sources: Sequence[Value]) -> Form | None:
    forms = _take(sources, 1)
    return None if forms is None else forms[0]


_RULES: dict[str, Rule] = {
    "add": _add,
    "sub": _add,
    "mul": _multiply,
    "mad": _multiply,
    "mul24": _multiply,
    "mad24": _multiply,
    "shl": _shift,
    "shr": _shift,
    "div": _divide,
    "rem": _divide,
    "and": _combine_bits,
    "or": _combine_bits,
    "xor": _combine_bits,
    "min": _limit,
    "max": _limit,
    "neg": _negate,
    "not": _negate,
    "abs": _negate,
    "selp": _select,
    "bfe": _take_bits,
    "cvt": _convert,
    "cvta": _convert,
}
