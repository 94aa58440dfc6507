"""What loops add to registers: :func:`solve_loops`, from one walk through a function."""

from collections.abc import Mapping, Sequence

from gpa_lsp.code.symbolic_accesses.forms import (
    UNKNOWN_PREDICATE,
    ZERO,
    Atom,
    Form,
    Predicate,
    Symbol,
    SymbolKind,
    SymbolTable,
    Value,
    add,
)
from gpa_lsp.code.symbolic_accesses.regions import Regions
from gpa_lsp.code.symbolic_accesses.walk import HeaderValue

_MOST_ROUNDS = 12


class LoopSolver:
    """Finds what each iteration adds to each register that a loop changes.

    All registers are first taken to differ between the threads of a warp no more than when the loop was entered. Those of which an iteration
    shows otherwise are given up, with all that depends on them, until nothing changes.

    Args:
        table: the symbols.
        regions: of the function.
        headers: what registers hold where loops begin, outer loops first.
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
        """Loop and register → what was added since the loop was entered; None where that is not known."""
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
        """By ascending number, so that what a symbol is made of is known before it: nothing here recurses deeply."""
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
        """The iteration times the step where that is the same in all of them; else a symbol of its own."""
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
        """The same without symbols of which it is not known whether they are uniform."""
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
                product = self._table.add_symbol(Symbol(kind=SymbolKind.VARYING))
            total = add(total, product)
        return total

    def _substitute_symbol(self, number: int) -> Form:
        symbol = self._table.symbols[number]
        if symbol.kind is SymbolKind.HEADER:
            found = self._whole.get(number)
            return self._table.name(("later", number), Symbol(kind=SymbolKind.VARYING)) if found is None else found
        if symbol.kind is not SymbolKind.DERIVED:
            return Form({(number,): 1})
        found = self._derived.get(number)
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
