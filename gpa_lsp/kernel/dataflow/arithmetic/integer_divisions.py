"""Inlined integer divisions: the hardware has none, so a reciprocal in floating point is scaled, multiplied and corrected.

One reciprocal (I2F.RP of the divisor, MUFU.RCP, F2I, one Newton step in integers) can serve several quotients and remainders, also of a loop
it was moved out of. Each quotient is a high product with the scaled reciprocal, then corrected by comparisons of the remainder with the divisor.
"""

from collections.abc import Sequence

from msgspec import Struct, field

from gpa_lsp.code.binary.model import ResourceKind
from gpa_lsp.code.binary.operands import parse_operand
from gpa_lsp.gpu.arch.hazards import find_longest_entry
from gpa_lsp.kernel.dataflow.arithmetic.expansions import Expansion, accept, find_divisor, is_constant_set_up
from gpa_lsp.kernel.dataflow.arithmetic.patterns import Chain, load_patterns
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow

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
    """What has been found so far. Values are resource numbers that hold them at the row looked at."""

    divisor: str  # the operand
    of_divisor: set[int]  # values that depend on the divisor alone
    of_reciprocal: set[int]  # of these, the ones made from its reciprocal
    of_quotient: set[int] = field(default_factory=set)  # quotients, remainders, and comparisons of them
    constants: set[int] = field(default_factory=set)  # values that depend on nothing
    rows: set[int] = field(default_factory=set)  # instructions that belong to the division
    quotients: list[int] = field(default_factory=list)  # of these, the high products that begin a quotient, in order

    def add_of_divisor(self, writes: set[int], *, is_reciprocal: bool) -> None:
        """Note values that depend on the divisor alone."""
        self.overwrite(writes)
        self.of_divisor |= writes
        if is_reciprocal:
            self.of_reciprocal |= writes

    def overwrite(self, writes: set[int]) -> None:
        """Note that these registers hold something else now."""
        self.of_divisor -= writes
        self.of_reciprocal -= writes
        self.of_quotient -= writes
        self.constants -= writes


def find_integer_divisions(flow: FunctionFlow, rows: Sequence[int], taken: set[int]) -> list[Expansion]:
    """The inlined divisions whose reciprocal is in some rows, one per reciprocal."""
    found = []
    for row in rows:
        if row in taken or find_longest_entry(_SEED, flow.mnemonic(row)) is None:
            continue
        expansion = _match_reciprocal(flow, row, taken)
        if expansion is not None:
            taken |= expansion.inlined
            found.append(expansion)
    return found


def _match_reciprocal(flow: FunctionFlow, seed: int, taken: set[int]) -> Expansion | None:
    conversion = find_conversion(flow, seed)
    if conversion is None:
        return None
    divisor = flow.operands(conversion)[-1]
    sources = {*parse_operand(divisor).expand(1), *_find_sources(flow, conversion)}
    division = _Division(
        divisor=divisor, of_divisor=sources | set(flow.writes(seed)), of_reciprocal=set(flow.writes(seed))
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
    return Expansion(
        operation=load_patterns().operations["integer_division"],
        anchor=first,
        inlined=frozenset(division.rows | feeders),
        divisor=find_divisor(flow, divisor, conversion, first),
    )


def _is_feeder(flow: FunctionFlow, row: int, sources: set[int]) -> bool:
    """Copies, signs and absolute values, and what is made of the divisor alone."""
    if accept(flow, Chain.MOVES)(row) or flow.opcode(row).name in _SIGN_HANDLING:
        return True
    return accept(flow, Chain.CORRECTION)(row) and set(flow.reads(row)) <= sources


def find_conversion(flow: FunctionFlow, seed: int) -> int | None:
    """The conversion of the divisor that a reciprocal is taken of."""
    window = flow.rows_before(seed)
    for resource in flow.reads(seed):
        row = flow.find_def(seed, resource, window)
        if row is not None and flow.opcode(row).name in _CONVERSIONS and _ROUNDING_UP in flow.mnemonic(row).split("."):
            return row
    return None


def _find_sources(flow: FunctionFlow, conversion: int) -> set[int]:
    """Registers of the divisor before its sign was taken off."""
    window = flow.rows_before(conversion)
    found: set[int] = set()
    for resource in flow.reads(conversion):
        row = flow.find_def(conversion, resource, window)
        if row is not None and flow.opcode(row).name in ("IABS", "MOV"):
            found.update(flow.reads(row))
    return found


def _look_before(flow: FunctionFlow, row: int, division: _Division, sources: set[int]) -> None:
    """Note what is made of the divisor before its reciprocal is known: its absolute value, its negative, whether it is zero."""
    reads, writes = set(flow.reads(row)), set(flow.writes(row))
    if is_constant_set_up(flow, row):
        division.constants |= writes
    elif reads and reads <= division.of_divisor - division.of_reciprocal and accept(flow, Chain.CORRECTION)(row):
        division.of_divisor |= writes
    else:
        division.of_divisor -= writes - sources - division.of_reciprocal
        division.constants -= writes


def _look_at(flow: FunctionFlow, row: int, division: _Division) -> None:
    """Take one row behind the reciprocal into the division, or note what it overwrites."""
    reads, writes = set(flow.reads(row)), set(flow.writes(row))
    if not accept(flow, Chain.CORRECTION)(row):
        division.overwrite(writes)
        return
    if is_constant_set_up(flow, row) and flow.guard(row) < 0:
        division.overwrite(writes)
        division.constants |= writes
        return
    values = reads - _predicates(reads) - division.constants
    guard = flow.guard(row)
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
    """A high product of the scaled reciprocal and something else."""
    if find_longest_entry(_HIGH_PRODUCTS, flow.mnemonic(row)) is None:
        return False
    return bool(values & division.of_reciprocal) and not values <= division.of_divisor


def _is_correction(flow: FunctionFlow, row: int, reads: set[int], division: _Division) -> bool:
    """It reads a quotient or remainder, and the divisor too; or is guarded by such a comparison; or changes the sign; or copies."""
    own = reads & division.of_quotient
    if not own:
        return False
    if flow.guard(row) in division.of_quotient or reads & division.of_divisor:
        return True
    operands = flow.operands(row)
    if any(operand.strip("-|~") == division.divisor.strip("-|~") for operand in operands[1:]):
        return True
    values = own - _predicates(own)
    is_unary = len(values) == 1 and not (reads - _predicates(reads)) - values
    name = flow.opcode(row).name
    is_negation = name in _NEGATIONS and any(operand.startswith("-") and operand[1:2] in "RU" for operand in operands)
    is_copy = name in _COPIES or load_patterns().holds(Chain.MOVES, flow.mnemonic(row))
    return is_unary and (is_negation or is_copy)


def _predicates(resources: set[int]) -> set[int]:
    kinds = (ResourceKind.PREDICATE, ResourceKind.UNIFORM_PREDICATE)
    return {resource for resource in resources if resource >> 8 in kinds}
