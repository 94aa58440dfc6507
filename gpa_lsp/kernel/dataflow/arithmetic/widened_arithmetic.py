"""Single precision values that are widened, worked on in double precision, and narrowed again: what a double literal does to float code."""

from collections.abc import Sequence

from gpa_lsp.kernel.dataflow.arithmetic.expansions import accept, is_constant_set_up
from gpa_lsp.kernel.dataflow.arithmetic.patterns import Chain
from gpa_lsp.kernel.dataflow.value_flow import FunctionFlow

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
    """The row makes a double precision value of a single precision one."""
    return _converts(flow, row, _WIDENING)


def _converts(flow: FunctionFlow, row: int, types: list[str]) -> bool:
    """The row converts between floating-point types: to, from."""
    name, *modifiers = flow.mnemonic(row).split(".")
    return name == _CONVERSION and [one for one in modifiers if one in types] == types


def _find_chain(flow: FunctionFlow, widening: int) -> frozenset[int] | None:
    is_double = accept(flow, Chain.DOUBLE_PRECISION)
    members = {widening}
    values = set(flow.writes(widening))
    for row in flow.rows_after(widening, _LONGEST_CHAIN):
        if not values:
            break
        writes = set(flow.writes(row))
        if values.isdisjoint(flow.reads(row)):
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
