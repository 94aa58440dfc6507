"""Facts about compiled arithmetic: the compiler's own routines, constants that give functions away, opcodes of expansions.

The facts are in ``patterns.toml``.
"""

import re
from collections.abc import Mapping
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path

import tomli
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.gpu.arch.hazards import find_longest_entry


class Family(Enum):
    """What kind of operation it is; remedies differ by it."""

    DIVISION = "division"  # Floating-point division and reciprocal
    ROOT = "root"
    FUNCTION = "function"  # A mathematical function
    INTEGER_DIVISION = "integer_division"  # Quotient, remainder or both


class Operation(Struct, frozen=True, kw_only=True):
    """A slow arithmetic operation of the source."""

    key: str  # in the table
    title: str  # as a hint names it, without an article
    family: Family  # what kind
    bits: int | None  # of the operands; None where that is not known


class Routine(Struct, frozen=True, kw_only=True):
    """One of the compiler's own routines."""

    operation: Operation  # what it is called for
    seeds: tuple[str, ...]  # mnemonics of the approximation that the inlined part begins with; empty when there is none


class Signature(Struct, frozen=True, kw_only=True):
    """An instruction that only the inlined code of one function has."""

    operation: Operation  # that function
    opcodes: tuple[str, ...]  # bare, one of them
    constant: str  # an operand, as a listing writes it
    longest_rows: int  # the function's code ends within so many instructions


class Chain(Enum):
    """A set of opcodes that expansions consist of; see the table."""

    APPROXIMATION = "approximation"
    TEST = "test"
    MOVES = "moves"
    CORRECTION = "correction"
    DOUBLE_PRECISION = "double_precision"


class ArithmeticPatterns(Struct, frozen=True, kw_only=True):
    """The table."""

    operations: Mapping[str, Operation]  # by key
    # expression for the last part of a symbol, and what it names; in order of precedence
    routines: tuple[tuple[re.Pattern[str], Routine], ...]
    signatures: tuple[Signature, ...]  # in the order of the table
    chains: Mapping[Chain, Mapping[str, str]]  # opcodes with leading modifiers, by set

    def holds(self, chain: Chain, mnemonic: str) -> bool:
        """An opcode is in a set: it or its beginning up to a dot is listed."""
        return _holds(chain, mnemonic)


@cache
def load_patterns() -> ArithmeticPatterns:
    """The facts, read once."""
    table = tomli.loads(Path(__file__).with_name("patterns.toml").read_text(encoding="utf-8"))
    operations = {
        key: Operation(key=key, title=entry["title"], family=Family(entry["family"]), bits=entry.get("bits"))
        for key, entry in table["operations"].items()
    }
    routines = tuple(
        (
            re.compile(entry["symbol"]),
            Routine(operation=operations[entry["operation"]], seeds=tuple(entry["seeds"])),
        )
        for entry in table["routines"]
    )
    signatures = tuple(
        Signature(
            operation=operations[entry["operation"]],
            opcodes=tuple(entry["opcodes"]),
            constant=entry["constant"],
            longest_rows=entry["longest_rows"],
        )
        for entry in table["signatures"]
    )
    chains = {chain: {name: name for name in table["chains"][chain.value]} for chain in Chain}
    return ArithmeticPatterns(operations=operations, routines=routines, signatures=signatures, chains=chains)


@lru_cache(maxsize=8192)
def _holds(chain: Chain, mnemonic: str) -> bool:
    return find_longest_entry(load_patterns().chains[chain], mnemonic) is not None


def recognise_routine(symbol: str) -> Routine | None:
    """Which of the compiler's routines a symbol is; None for anything else.

    >>> recognise_routine("$__internal_3_$__cuda_sm20_div_rn_f64_full").operation.title
    'FP64 division'
    >>> recognise_routine("__nv_erfinv").operation.title
    'library function erfinv'
    >>> recognise_routine("_Z6my_divdd") is None
    True
    """
    name = symbol.rpartition("$")[2].partition("@")[0]
    for pattern, routine in load_patterns().routines:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        title = routine.operation.title
        if "{name}" not in title:
            return routine
        return replace(routine, operation=replace(routine.operation, title=title.format(name=match["name"])))
    return None
