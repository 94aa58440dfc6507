"""Which pointers a kernel's accesses of global memory go through: :func:`find_pointers`."""

from collections.abc import Iterable, Mapping

from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.code.symbolic_accesses.find import find_symbolic_accesses
from gpa_lsp.code.symbolic_accesses.forms import Form, Symbol, SymbolTable
from gpa_lsp.foundation.records import remembered

# Offset in the kernel's parameters of one that may be a pointer, or the name of a variable
Pointer = int | str


@remembered
def find_pointers(module: PtxModule, kernel: str) -> Mapping[int, tuple[Pointer, ...]]:
    """Number of an access in the kernel → the pointers that it may add its index to; accesses whose address is not known symbolically are left out.

    Several where an index is not scaled either, as in arrays of bytes: the values of the parameters tell which of them is the pointer.
    """
    found = find_symbolic_accesses(module, kernel)
    if found is None:
        return {}
    return {
        one.instruction.index: pointers
        for one in found.accesses
        if one.space is Space.GLOBAL and (pointers := _list_pointers(one.address, found.table))
    }


def _list_pointers(address: Form, table: SymbolTable) -> tuple[Pointer, ...]:
    """Terms that are not scaled; none where one of these is unknown: it may be the distance of another array."""
    alone = [table.symbols[key[0]] for key, factor in address.terms.items() if len(key) == 1 and abs(factor) == 1]
    return tuple(_name(alone)) if all(map(_is_known, alone)) else ()


def _is_known(symbol: Symbol) -> bool:
    return bool(symbol.name) or symbol.lanes is not None or symbol.is_counter


def _name(symbols: Iterable[Symbol]) -> Iterable[Pointer]:
    return (one.name if one.parameter is None else one.parameter for one in symbols if one.name)
