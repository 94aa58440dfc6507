"""Expansions, the code that the compiler made of one operation each: records and tests common to all, integer divisions, widened arithmetic.

The hardware has no integer division, so a reciprocal in floating point is scaled, multiplied and corrected. One reciprocal (I2F.RP of the divisor,
MUFU.RCP, F2I, one Newton step in integers) can serve several quotients and remainders, also of a loop it was moved out of. Each quotient is a high
product with the scaled reciprocal, then corrected by comparisons of the remainder with the divisor.

Widened arithmetic is what a double literal does to float code: values of single precision are widened, worked on, and narrowed again.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.code.binary.linkage_names import read_function_name
from gpa_lsp.code.binary.model import PREDICATE_KINDS
from gpa_lsp.code.binary.uses import OperandKind, parse_operand
from gpa_lsp.code.control_flow.graph import RootedGraph
from gpa_lsp.foundation.toml_tables import read_own_table
from gpa_lsp.gpu.arch.hazards import find_longest_entry
from gpa_lsp.kernel.calls import find_callee
from gpa_lsp.kernel.dataflow.value_flow import LONGEST_WINDOW, FunctionFlow
from gpa_lsp.kernel.model import KernelRows
from gpa_lsp.kernel.scopes import find_scopes


class Family(Enum):
    """Kind of operation; remedies differ by it."""

    DIVISION = "division"  # Floating-point division and reciprocal
    ROOT = "root"
    FUNCTION = "function"  # A mathematical function
    INTEGER_DIVISION = "integer_division"  # Quotient, remainder or both


FLOATING = (Family.DIVISION, Family.ROOT, Family.FUNCTION)


class Operation(Struct, frozen=True, kw_only=True):
    """A slow arithmetic operation of the source."""

    key: str  # in the table
    title: str  # as a hint names it, without an article
    family: Family
    bits: int | None  # of the operands; None where unknown


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
    """Content of the table ``expansions.toml``."""

    operations: Mapping[str, Operation]  # by key
    # expression for the last part of a symbol, and what it names; in order of precedence
    routines: tuple[tuple[re.Pattern[str], Routine], ...]
    signatures: tuple[Signature, ...]  # in the order of the table
    chains: Mapping[Chain, Mapping[str, str]]  # opcodes with leading modifiers, by set


@cache
def load_patterns() -> ArithmeticPatterns:
    """The table, read once."""
    table = read_own_table(Path(__file__).with_suffix(".toml"))
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
def is_in_chain(mnemonic: str, chain: Chain) -> bool:
    """Whether an opcode is in a set: it or its beginning up to a dot is listed."""
    return find_longest_entry(load_patterns().chains[chain], mnemonic) is not None


def recognise_routine(symbol: str) -> Routine | None:
    """The compiler's routine that a symbol names; None for any other symbol.

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


_SIGNS = "-|~!"
_ABSOLUTE = "IABS"


class Constancy(Enum):
    """Constancy of a divisor."""

    CONSTANT = "constant"  # Known when the code was compiled
    INVARIANT = "invariant"  # The same in every turn of the loop, or for the whole kernel (an argument)
    VARYING = "varying"  # Computed again each time, or unknown


class Divisor(Struct, frozen=True, kw_only=True):
    """The divisor of an operation."""

    constancy: Constancy
    text: str = ""  # a number or constant operand as the listing writes it; empty for registers


class ArithmeticSequence(Struct, frozen=True, kw_only=True):
    """The code of one operation. Rows are the kernel's."""

    operation: Operation  # what it computes
    anchor: int  # the instruction whose line is the operation's line
    # rows of the chain, its constants, and the test that decides about the slow path; ascending
    inlined: tuple[int, ...]
    call_block: tuple[int, ...] = ()  # rows that prepare the call, call, and take the result; ascending
    site: int | None = None  # row of the call; None where nothing is called
    # rows of the called routine; empty where nothing is called, or the routine is not in the profile. Several sequences can share one.
    callee: range = range(0)
    divisor: Divisor | None = None  # None where nothing is divided


def lift_rows(flow: FunctionFlow, rows: Iterable[int]) -> tuple[int, ...]:
    """Rows of a function as those of the kernel, ascending."""
    return tuple(sorted(flow.first_row + row for row in rows))


def accept(flow: FunctionFlow, chain: Chain) -> Callable[[int], bool]:
    """A test for rows whose opcode is in a set."""
    return lambda row: is_in_chain(flow.mnemonic(row), chain)


def is_constant_set_up(flow: FunctionFlow, row: int) -> bool:
    """Whether a row copies an immediate or a constant: it reads no register."""
    return is_in_chain(flow.mnemonic(row), Chain.MOVES) and not flow.reads_of[row]


def find_divisor(flow: FunctionFlow, operand: str, row: int, place: int) -> Divisor:
    """Constancy and text of a divisor.

    Args:
        operand: the divisor, as written at ``row``.
        place: row whose loops count.
    """
    text = _strip_signs(operand)
    resources = parse_operand(text).expand(1)
    if not resources:
        return Divisor(constancy=_find_constancy(text), text=text)
    loops = flow.graph.loops_around(flow.block_of[place])
    definition = flow.find_def(row, resources[-1], flow.rows_before(row))
    is_known = definition is not None and _is_only_writer(flow, resources[-1], definition, row)
    if definition is not None and is_known and _is_copied_constant(flow, definition):
        in_loop = bool(loops) and loops[0] in flow.graph.loops_around(flow.block_of[definition])
        if in_loop or not loops or flow.written_in_loop(loops[0]).isdisjoint(resources):
            return Divisor(constancy=_find_constancy(_strip_signs(flow.operands(definition)[-1])))
    if loops and flow.written_in_loop(loops[0]).isdisjoint(resources):
        return Divisor(constancy=Constancy.INVARIANT)
    return Divisor(constancy=Constancy.VARYING)


def _strip_signs(operand: str) -> str:
    return operand.lstrip(_SIGNS).rstrip("|")


def _find_constancy(text: str) -> Constancy:
    """Constancy of an operand without registers: arguments are known at the launch, all others at compile time."""
    is_argument = parse_operand(text).kind is OperandKind.INDIRECT and text.startswith("c[0x0]")
    return Constancy.INVARIANT if is_argument else Constancy.CONSTANT


def _is_copied_constant(flow: FunctionFlow, row: int) -> bool:
    """Whether a row copies an immediate or a constant, or takes the absolute value of one, as for a signed divisor."""
    return is_constant_set_up(flow, row) or (flow.opcode(row).name == _ABSOLUTE and not flow.reads_of[row])


def _is_only_writer(flow: FunctionFlow, resource: int, definition: int, row: int) -> bool:
    """Whether no row between the two writes the register; False where they are far apart."""
    between = range(definition + 1, row)
    return len(between) <= LONGEST_WINDOW and not any(resource in flow.writes_of[other] for other in between)


_SEED = {"MUFU.RCP": True}
_CONVERSIONS = ("I2F", "UI2F")
_ROUNDING_UP = "RP"  # Only divisions convert with rounding up: the reciprocal must not come out too large

_HIGH_PRODUCTS = {"IMAD.HI": True, "IMAD.WIDE": True}
_NEGATIONS = ("IADD3", "IADD", "VIADD", "IMAD", "UIADD3")
_COPIES = ("MOV", "R2UR")
_SIGN_HANDLING = ("IABS", "ISETP", "LOP3")
_LONGEST_USE = 600  # Instructions after the reciprocal in which its quotients are looked for

_SET_UP_WINDOW = 60


class _Division(Struct):
    """State of the search for one division. Values are resource numbers that hold them at the current row."""

    divisor: str  # the operand
    of_divisor: set[int]  # values that depend on the divisor alone
    of_reciprocal: set[int]  # of these, the ones made from its reciprocal
    of_quotient: set[int] = field(default_factory=set)  # quotients, remainders, and comparisons of them
    constants: set[int] = field(default_factory=set)  # constant values
    rows: set[int] = field(default_factory=set)  # instructions that belong to the division
    quotients: list[int] = field(default_factory=list)  # of these, the high products that begin a quotient, in order

    def add_of_divisor(self, writes: set[int], *, is_reciprocal: bool) -> None:
        """Note values that depend on the divisor alone."""
        self.overwrite(writes)
        self.of_divisor |= writes
        if is_reciprocal:
            self.of_reciprocal |= writes

    def overwrite(self, writes: set[int]) -> None:
        """Note that these registers hold other values now."""
        self.of_divisor -= writes
        self.of_reciprocal -= writes
        self.of_quotient -= writes
        self.constants -= writes


def find_integer_divisions(flow: FunctionFlow, rows: Sequence[int], taken: set[int]) -> list[ArithmeticSequence]:
    """The inlined divisions whose reciprocal is in some rows, one per reciprocal."""
    found = []
    for row in rows:
        if row in taken or find_longest_entry(_SEED, flow.mnemonic(row)) is None:
            continue
        sequence = _match_reciprocal(flow, row, taken)
        if sequence is not None:
            taken.update(one - flow.first_row for one in sequence.inlined)
            found.append(sequence)
    return found


def _match_reciprocal(flow: FunctionFlow, seed: int, taken: set[int]) -> ArithmeticSequence | None:
    conversion = find_conversion(flow, seed)
    if conversion is None:
        return None
    divisor = flow.operands(conversion)[-1]
    sources = {*parse_operand(divisor).expand(1), *_find_sources(flow, conversion)}
    division = _Division(
        divisor=divisor, of_divisor=sources | set(flow.writes_of[seed]), of_reciprocal=set(flow.writes_of[seed])
    )
    division.rows.update({conversion, seed})
    before = [row for row in flow.rows_before(seed) if row > conversion - _SET_UP_WINDOW]
    for row in before:
        _look_before(flow, row, division, sources)
    for row in flow.rows_after(seed, _LONGEST_USE):
        if row not in taken:
            _look_at(flow, row, division)
    if not division.quotients:
        return None
    window = [
        row for row in flow.rows_before(max(division.rows)) if row > conversion - _SET_UP_WINDOW and row not in taken
    ]
    feeders = flow.find_feeders(division.rows, window, lambda row: _is_feeder(flow, row, sources))
    first = min(division.quotients)
    return ArithmeticSequence(
        operation=load_patterns().operations["integer_division"],
        anchor=flow.first_row + first,
        inlined=lift_rows(flow, division.rows | feeders),
        divisor=find_divisor(flow, divisor, conversion, first),
    )


def _is_feeder(flow: FunctionFlow, row: int, sources: set[int]) -> bool:
    """Whether a row is a copy, handles a sign, or computes from the divisor alone."""
    if accept(flow, Chain.MOVES)(row) or flow.opcode(row).name in _SIGN_HANDLING:
        return True
    return accept(flow, Chain.CORRECTION)(row) and set(flow.reads_of[row]) <= sources


def find_conversion(flow: FunctionFlow, seed: int) -> int | None:
    """The conversion of the divisor that a reciprocal is taken of."""
    window = flow.rows_before(seed)
    for resource in flow.reads_of[seed]:
        row = flow.find_def(seed, resource, window)
        if row is not None and flow.opcode(row).name in _CONVERSIONS and _ROUNDING_UP in flow.mnemonic(row).split("."):
            return row
    return None


def _find_sources(flow: FunctionFlow, conversion: int) -> set[int]:
    """Registers of the divisor before its sign was removed."""
    window = flow.rows_before(conversion)
    found: set[int] = set()
    for resource in flow.reads_of[conversion]:
        row = flow.find_def(conversion, resource, window)
        if row is not None and flow.opcode(row).name in ("IABS", "MOV"):
            found.update(flow.reads_of[row])
    return found


def _look_before(flow: FunctionFlow, row: int, division: _Division, sources: set[int]) -> None:
    """Note values computed from the divisor before its reciprocal: its absolute value, its negative, whether it is zero."""
    reads, writes = set(flow.reads_of[row]), set(flow.writes_of[row])
    if is_constant_set_up(flow, row):
        division.constants |= writes
    elif reads and reads <= division.of_divisor - division.of_reciprocal and accept(flow, Chain.CORRECTION)(row):
        division.of_divisor |= writes
    else:
        division.of_divisor -= writes - sources - division.of_reciprocal
        division.constants -= writes


def _look_at(flow: FunctionFlow, row: int, division: _Division) -> None:
    """Take one row behind the reciprocal into the division, or note what it overwrites."""
    reads, writes = set(flow.reads_of[row]), set(flow.writes_of[row])
    if not accept(flow, Chain.CORRECTION)(row):
        division.overwrite(writes)
        return
    if is_constant_set_up(flow, row) and flow.guard_of[row] < 0:
        division.overwrite(writes)
        division.constants |= writes
        return
    values = reads - _predicates(reads) - division.constants
    guard = flow.guard_of[row]
    is_selection = guard in division.of_divisor | division.of_quotient and bool(writes & division.of_quotient)
    if values and values <= division.of_divisor and not is_selection:
        is_scaling = bool(values & division.of_reciprocal) and not division.quotients
        division.rows.update({row} if is_scaling else ())
        division.add_of_divisor(writes, is_reciprocal=is_scaling)
        return
    is_quotient = _is_quotient(flow, row, values, division)
    if is_quotient or is_selection or _is_correction(flow, row, reads, division):
        division.rows.add(row)
        division.overwrite(writes)
        division.of_quotient |= writes
        division.quotients.extend([row] if is_quotient else [])
        return
    division.overwrite(writes)


def _is_quotient(flow: FunctionFlow, row: int, values: set[int], division: _Division) -> bool:
    """Whether a row is a high product of the scaled reciprocal and another value."""
    if find_longest_entry(_HIGH_PRODUCTS, flow.mnemonic(row)) is None:
        return False
    return bool(values & division.of_reciprocal) and not values <= division.of_divisor


def _is_correction(flow: FunctionFlow, row: int, reads: set[int], division: _Division) -> bool:
    """Whether it reads a quotient or remainder, and the divisor too; or is guarded by such a comparison; or changes the sign; or copies."""
    own = reads & division.of_quotient
    if not own:
        return False
    if flow.guard_of[row] in division.of_quotient or reads & division.of_divisor:
        return True
    operands = flow.operands(row)
    if any(operand.strip("-|~") == division.divisor.strip("-|~") for operand in operands[1:]):
        return True
    values = own - _predicates(own)
    is_unary = len(values) == 1 and not (reads - _predicates(reads)) - values
    name = flow.opcode(row).name
    is_negation = name in _NEGATIONS and any(operand.startswith("-") and operand[1:2] in "RU" for operand in operands)
    is_copy = name in _COPIES or is_in_chain(flow.mnemonic(row), Chain.MOVES)
    return is_unary and (is_negation or is_copy)


def _predicates(resources: set[int]) -> set[int]:
    return {resource for resource in resources if resource >> 8 in PREDICATE_KINDS}


_CONVERSION = "F2F"
_WIDENING = ["F64", "F32"]
_NARROWING = ["F32", "F64"]  # Type modifiers of a conversion: to, from

_LONGEST_CHAIN = 40


def find_widened_arithmetic(flow: FunctionFlow, rows: Sequence[int], taken: set[int]) -> list[frozenset[int]]:
    """The chains from a widening to a narrowing with nothing but double precision arithmetic between, by their first row."""
    found = []
    for row in rows:
        if row in taken or not is_widening(flow, row):
            continue
        chain = _find_chain(flow, row)
        if chain is not None:
            taken |= chain
            found.append(chain)
    return found


def is_widening(flow: FunctionFlow, row: int) -> bool:
    """Whether a row converts a single precision value to double precision."""
    return _converts(flow, row, _WIDENING)


def _converts(flow: FunctionFlow, row: int, types: list[str]) -> bool:
    """Whether a row converts between two floating-point types, given as [to, from]."""
    name, *modifiers = flow.mnemonic(row).split(".")
    return name == _CONVERSION and [one for one in modifiers if one in types] == types


def _find_chain(flow: FunctionFlow, widening: int) -> frozenset[int] | None:
    is_double = accept(flow, Chain.DOUBLE_PRECISION)
    members = {widening}
    values = set(flow.writes_of[widening])
    for row in flow.rows_after(widening, _LONGEST_CHAIN):
        if not values:
            break
        writes = set(flow.writes_of[row])
        if values.isdisjoint(flow.reads_of[row]):
            values -= writes
            continue
        if _converts(flow, row, _NARROWING):
            members.add(row)
            return frozenset(members | _find_inputs(flow, members)) if len(members) > 2 else None
        if is_double(row):
            members.add(row)
            values |= writes
    return None


def _find_inputs(flow: FunctionFlow, members: set[int]) -> set[int]:
    window = flow.rows_before(max(members), _LONGEST_CHAIN)
    return flow.find_feeders(members, window, lambda row: is_constant_set_up(flow, row) or is_widening(flow, row))


# How the names of routines begin that the compiler adds by itself, or takes from its libraries; ``__global__`` code cannot be named so
_COMPILER_PREFIXES = ("__cuda", "__internal_", "__nv")


class CalledRoutine(Struct, frozen=True, kw_only=True):
    """A routine with at least one direct call."""

    symbol: str  # its linkage name, as the image has it
    rows: range  # of its code, what fills the section's end included
    scope: int  # number of its scope
    instructions: int  # how many of its instructions control can reach
    sites: tuple[int, ...]  # rows of the instructions that call it, ascending
    is_recursive: bool  # a chain of calls leads back to it
    is_internal: bool  # the compiler's own, for an operation without an instruction (a division, a root, a shuffle of unknown threads)
    # it has a section of its own: it was compiled apart from its callers, or may be called from elsewhere
    is_separate: bool

    @property
    def name(self) -> str:
        """Plain name, namespaces included."""
        return read_function_name(self.symbol)


def find_called_routines(kernel: KernelRows) -> tuple[CalledRoutine, ...]:
    """The routines of a kernel that are called directly and whose code is at hand, by address."""
    sites: dict[range, list[int]] = {}
    symbols: dict[range, str] = {}
    for number, function in enumerate(kernel.functions):
        for call in function.graph.calls if function.graph is not None else ():
            symbol, rows = find_callee(kernel, number, call)
            if len(rows):
                symbols[rows] = symbol
                sites.setdefault(rows, []).append(int(kernel.first_rows[number]) + call.instruction)
    ordered = sorted(symbols, key=lambda rows: rows.start)
    cyclic = _find_recursive(kernel, ordered, sites)
    return tuple(
        CalledRoutine(
            symbol=symbols[rows],
            rows=rows,
            scope=find_scopes(kernel).routine_of(rows.start),
            instructions=_count_reachable(kernel, rows),
            sites=tuple(sorted(sites[rows])),
            is_recursive=is_cyclic,
            is_internal=is_compiler_routine(symbols[rows]),
            is_separate=rows.start in kernel.first_rows,
        )
        for rows, is_cyclic in zip(ordered, cyclic, strict=True)
    )


def _find_recursive(kernel: KernelRows, ordered: list[range], sites: dict[range, list[int]]) -> list[bool]:
    """Whether each routine can call itself, directly or not."""
    routine_of = find_scopes(kernel).routine_of
    of_scope = {routine_of(rows.start): number for number, rows in enumerate(ordered)}
    successors: list[list[int]] = [[] for _ in ordered]
    for callee, rows in enumerate(ordered):
        for site in sites[rows]:
            caller = of_scope.get(routine_of(site))
            if caller is not None:
                successors[caller].append(callee)
    loops = RootedGraph(successors, range(len(successors))).find_loops()
    return [loop >= 0 for loop in loops.innermost]


def _count_reachable(kernel: KernelRows, rows: range) -> int:
    function = kernel.function_of(rows.start)
    first = kernel.index_of(rows.start)
    if function.graph is None:
        return len(rows)
    blocks = function.graph.block_of_instruction[first : first + len(rows)]
    return int(np.count_nonzero(function.graph.is_reachable[blocks]))


def is_compiler_routine(symbol: str) -> bool:
    """Whether a routine is not the kernel author's.

    >>> is_compiler_routine("$__internal_0_$__cuda_sm70_shflsync_bfly_p"), is_compiler_routine("$kernel$_Z5blendf")
    (True, False)
    """
    name = symbol.rpartition("$")[2]
    return name.startswith(_COMPILER_PREFIXES) or recognise_routine(symbol) is not None
