"""Mathematical functions that the compiler inlines whole, given away by a constant that only their code has."""

from gpa_lsp.binary.model import Flow
from gpa_lsp.binary.opcodes import Pipe
from gpa_lsp.binary.operands import parse_operand
from gpa_lsp.dataflow.arithmetic.expansions import Expansion
from gpa_lsp.dataflow.arithmetic.patterns import Signature, load_patterns
from gpa_lsp.dataflow.value_flow import FunctionFlow

_PIPES = (Pipe.ALU, Pipe.FMA, Pipe.FP16, Pipe.FP64, Pipe.XU, Pipe.UNIFORM)
_CONTROL = (Flow.BRANCH, Flow.BARRIER_SET, Flow.BARRIER_WAIT)
_SET_UP_ROWS = 24
"""Instructions before the constant that may belong to the function."""


def find_inlined_functions(flow: FunctionFlow, taken: set[int]) -> list[Expansion]:
    """The functions inlined in a section, in address order.

    With lines known, a function is what its line does from the constant on, arithmetic and branches, up to the last instruction that depends
    on the constant's; so the use of its result on the same line counts too. Without lines, it is what depends on the constant's instruction.

    Args:
        flow: of the function.
        taken: rows that belong to other operations; those found are added.
    """
    by_opcode: dict[str, list[Signature]] = {}
    for signature in load_patterns().signatures:
        for opcode in signature.opcodes:
            by_opcode.setdefault(opcode, []).append(signature)
    found = []
    for row in range(len(flow)):
        signatures = by_opcode.get(flow.opcode(row).name)
        if signatures is None or row in taken:
            continue
        operands = flow.operands(row)
        named = [one for one in signatures if one.constant in operands]
        if not named:
            continue
        rows = _find_rows(flow, row, named[0]) - taken
        taken |= rows
        found.append(Expansion(operation=named[0].operation, anchor=row, inlined=frozenset(rows)))
    return found


def _find_rows(flow: FunctionFlow, seed: int, signature: Signature) -> set[int]:
    window = [seed, *flow.rows_after(seed, signature.longest_rows)]
    dependent = flow.follow({seed}, window, lambda row: _is_arithmetic(flow, row) and _may_belong(flow, row, seed))
    rows = set(dependent)
    if flow.has_place(seed):
        between = range(seed, max(dependent) + 1)
        rows |= {row for row in between if flow.is_same_place(row, seed) and _is_body(flow, row)}
    arguments = set(parse_operand(flow.operands(seed)[1]).expand(2))
    before = [row for row in flow.rows_before(seed, _SET_UP_ROWS) if _may_belong(flow, row, seed)]
    return rows | flow.find_feeders(
        rows, before, lambda row: _is_arithmetic(flow, row) and not arguments & set(flow.writes(row))
    )


def _may_belong(flow: FunctionFlow, row: int, seed: int) -> bool:
    return not flow.has_place(seed) or flow.is_same_place(row, seed)


def _is_arithmetic(flow: FunctionFlow, row: int) -> bool:
    opcode = flow.opcode(row)
    return opcode.memory is None and opcode.pipe in _PIPES


def _is_body(flow: FunctionFlow, row: int) -> bool:
    return _is_arithmetic(flow, row) or flow.opcode(row).flow in _CONTROL
