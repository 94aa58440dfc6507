"""What the matchers of arithmetic patterns find in one function: an :class:`Expansion`, the code that the compiler made of one operation."""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from gpa_lsp.code.binary.operands import OperandKind, parse_operand
from gpa_lsp.kernel.dataflow.arithmetic.patterns import Chain, Operation, load_patterns
from gpa_lsp.kernel.dataflow.value_flow import LONGEST_WINDOW, FunctionFlow

_SIGNS = "-|~!"
_ABSOLUTE = "IABS"


class Constancy(Enum):
    """How often a divisor changes."""

    CONSTANT = "constant"  # Known when the code was compiled
    INVARIANT = "invariant"  # The same in every turn of the loop, or for the whole kernel (an argument)
    VARYING = "varying"  # Computed again each time, or not known


class Divisor(Struct, frozen=True, kw_only=True):
    """What an operation divides by."""

    constancy: Constancy  # how often it changes
    text: str = ""  # a number or constant operand as the listing writes it; empty for registers


class Expansion(Struct, frozen=True, kw_only=True):
    """The code of one operation in one function. Rows are instruction numbers of the function."""

    operation: Operation  # what it computes
    anchor: int  # the instruction whose line is the operation's line
    inlined: frozenset[int]  # rows of the chain, its constants, and the test that decides about the slow path
    call_block: frozenset[int] = frozenset()  # rows that prepare the call, call, and take the result
    site: int | None = None  # the call; None where nothing is called
    divisor: Divisor | None = None  # None where nothing is divided

    @property
    def rows(self) -> frozenset[int]:
        """All rows in the function."""
        return self.inlined | self.call_block


def accept(flow: FunctionFlow, chain: Chain) -> Callable[[int], bool]:
    """A test for rows whose opcode is in a set."""
    patterns = load_patterns()
    return lambda row: patterns.holds(chain, flow.mnemonic(row))


def is_constant_set_up(flow: FunctionFlow, row: int) -> bool:
    """A copy of an immediate or a constant: it reads no register."""
    return load_patterns().holds(Chain.MOVES, flow.mnemonic(row)) and not flow.reads(row)


def find_divisor(flow: FunctionFlow, operand: str, row: int, place: int) -> Divisor:
    """What is known of a divisor."""
    text = _strip_signs(operand)
    resources = parse_operand(text).expand(1)
    if not resources:
        return Divisor(constancy=_find_constancy(text), text=text)
    loops = flow.graph.loops_around(flow.block_of(place))
    definition = flow.find_def(row, resources[-1], flow.rows_before(row))
    is_known = definition is not None and _is_only_writer(flow, resources[-1], definition, row)
    if definition is not None and is_known and _is_copied_constant(flow, definition):
        in_loop = bool(loops) and loops[0] in flow.graph.loops_around(flow.block_of(definition))
        if in_loop or not loops or flow.written_in_loop(loops[0]).isdisjoint(resources):
            return Divisor(constancy=_find_constancy(_strip_signs(flow.operands(definition)[-1])))
    if loops and flow.written_in_loop(loops[0]).isdisjoint(resources):
        return Divisor(constancy=Constancy.INVARIANT)
    return Divisor(constancy=Constancy.VARYING)


def _strip_signs(operand: str) -> str:
    return operand.lstrip(_SIGNS).rstrip("|")


def _find_constancy(text: str) -> Constancy:
    """Of an operand without registers: arguments are known at the launch, everything else when the code is compiled."""
    is_argument = parse_operand(text).kind is OperandKind.INDIRECT and text.startswith("c[0x0]")
    return Constancy.INVARIANT if is_argument else Constancy.CONSTANT


def _is_copied_constant(flow: FunctionFlow, row: int) -> bool:
    """A copy of an immediate or a constant, or the absolute value of one, which is how signed divisors begin."""
    return is_constant_set_up(flow, row) or (flow.opcode(row).name == _ABSOLUTE and not flow.reads(row))


def _is_only_writer(flow: FunctionFlow, resource: int, definition: int, row: int) -> bool:
    """Nothing between the two writes the register, on whichever path; not looked at where they are far apart."""
    between = range(definition + 1, row)
    return len(between) <= LONGEST_WINDOW and not any(resource in flow.writes(other) for other in between)
