"""Integers that a kernel computes, as polynomials: :class:`Form`, over the symbols of a :class:`SymbolTable`.

A symbol is what one thread of a warp does not share with the others (*lanes*: the threads' own index, or any function of it that is known for
each thread), what all threads of a warp share (a parameter, the block's index, a loop's counter, a value loaded from one address), or what nobody
can follow.
"""

from collections.abc import Iterable, Mapping
from enum import Enum

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.foundation.records import ColumnRecord

WARP_LANES = 32
MOST_TERMS = 24  # Of one form; one with more is not followed
_MOST_FACTORS = 5
LARGEST = 1 << 48  # Beyond addresses; sums of what lies below it are exact

Integers = npt.NDArray[np.int64]
Marks = npt.NDArray[np.bool_]
Monomial = tuple[int, ...]  # Numbers of symbols, ascending; the empty one is that of the constant


class SymbolKind(Enum):
    """What is known of a symbol."""

    LANES = "known for each thread"
    UNIFORM = "the same for all threads of a warp"
    VARYING = "unknown, and not the same for all threads of a warp"
    HEADER = "what a register holds where a loop begins"
    DERIVED = "uniform if what it is made of is"


class Form(Struct, frozen=True):
    """A sum of products."""

    terms: Mapping[Monomial, int]  # monomial → coefficient, never zero
    is_approximate: bool = False  # holds for most warps only, such as those within one row of a matrix

    @property
    def constant(self) -> int | None:
        """The number that it is; None for anything else."""
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

    kind: SymbolKind  # what is known of it
    name: str = ""  # as a reader of the source would write it; empty when it has no name there
    parameter: int | None = None  # offset in the kernel's parameters, of one of them
    lanes: Integers | None = None  # int64[threads], of :attr:`SymbolKind.LANES`
    # it is computed from what was loaded from memory, not only chosen by it, differently for the threads of a warp
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
    """The symbols of one kernel, and what needs them.

    Args:
        threads: of which the lanes are followed: a multiple of 32.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.symbols: list[Symbol] = []
        self._named: dict[object, Form] = {}

    def add_symbol(self, symbol: Symbol) -> Form:
        """A form that is the new symbol alone."""
        self.symbols.append(symbol)
        return Form({(len(self.symbols) - 1,): 1})

    def name(self, key: object, symbol: Symbol) -> Form:
        """The symbol that is told by a key, made where there is none yet."""
        if key not in self._named:
            self._named[key] = self.add_symbol(symbol)
        return self._named[key]

    def make_lanes(self, values: Integers) -> Form:
        """What is known for each thread; the same lanes are the same symbol, whatever is added to them and they are multiplied with."""
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
        """The result of what is not followed: uniform where all that it is made of is."""
        kept = tuple(sources)
        if any(self._is_unresolved(one) for one in kept):
            return self.add_symbol(
                Symbol(kind=SymbolKind.DERIVED, sources=kept, block=block, is_data=is_data, origin=origin)
            )
        if all(self.is_uniform(one) for one in kept):
            return self.add_symbol(Symbol(kind=SymbolKind.UNIFORM, block=block))
        data = self.find_data(kept)
        found = origin if is_data else None if data is None else data.origin
        has_data = is_data or data is not None
        return self.add_symbol(Symbol(kind=SymbolKind.VARYING, is_data=has_data, origin=found, block=block))

    def is_small(self, form: Form) -> bool:
        """Its terms are small enough to be summed for each thread."""
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
        """The first symbol that is computed from what was loaded, differently for the threads of a warp.

        Conditions do not count: what they choose among may be as few as two addresses.
        """
        for value in values:
            for number in () if isinstance(value, Predicate) else sorted(value.symbols):
                symbol = self.symbols[number]
                if symbol.is_data and symbol.kind is SymbolKind.VARYING:
                    return symbol
        return None

    def is_unresolved(self, form: Form) -> bool:
        """It has symbols of which it is not known yet whether they are uniform."""
        kinds = (SymbolKind.HEADER, SymbolKind.DERIVED)
        return any(self.symbols[number].kind in kinds for number in form.symbols)

    def _is_unresolved(self, value: Value) -> bool:
        return any(self.is_unresolved(form) for form in _list_forms((value,)))

    def is_uniform(self, value: Value) -> bool:
        """All threads of a warp have the same."""
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
        """It has symbols that nobody can follow."""
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
        """The form of these coefficients."""
        total = ZERO
        for monomial, lanes in groups.items():
            for own, coefficient in self.make_lanes(lanes).terms.items():
                total = add(total, Form({tuple(sorted((*own, *monomial))): coefficient}))
        return total

    def find_numbers(self, form: Form) -> Integers | None:
        """int64[threads], where it is known for each thread; else None."""
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
        """At most one symbol of a monomial has lanes: two become a new one."""
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
