"""Whether a value is the same in every turn of a loop, also where the compiler computes it anew in each."""

from gpa_lsp.advice.value_flow import FunctionFlow
from gpa_lsp.binary.operands import parse_operand

_DEEPEST = 8
_MOST_BETWEEN = 400

_PURE = frozenset(
    {
        *("MOV", "IMAD", "IADD3", "IADD", "VIADD", "LEA", "SHF", "LOP3", "PRMT", "SEL", "I2I", "IABS", "IMNMX", "VIMNMX"),
        *("UMOV", "ULDC", "LDC", "LDCU", "UIADD3", "UIMAD", "ULEA", "ULOP3", "USHF", "USEL", "R2UR", "CS2R", "S2R", "S2UR"),
        "IADD64", "UIADD64", "MOV32I",
    }
)  # fmt: skip
"""Instructions whose result depends on nothing but their operands; constants and special registers other than clocks stay as they are."""

_CHANGING = ("CLOCK", "GLOBALTIMER", "SR_PM", "ERRORSTATUS")


def is_invariant_address(flow: FunctionFlow, row: int, address: str, loop: int) -> bool:
    """The registers of an address hold the same in every turn of a loop.

    Args:
        flow: of the function.
        row: the instruction that uses the address, in the loop.
        address: as written, e.g. ``[R2.64]``.
        loop: number of the loop.

    False where that cannot be seen: definitions under a guard, or that some paths pass by.
    """
    return all(_is_invariant(flow, row, resource, loop, 0) for resource in parse_operand(address).expand(2))


def _is_invariant(flow: FunctionFlow, row: int, resource: int, loop: int, depth: int) -> bool:
    if resource not in flow.written_in_loop(loop):
        return True
    if depth == _DEEPEST:
        return False
    window = flow.rows_before(row)
    definition = flow.find_def(row, resource, window)
    if definition is None or loop not in flow.graph.loops_around(flow.block_of(definition)):
        return False
    if flow.guard(definition) >= 0 or not _is_pure(flow, definition):
        return False
    if not _is_only_writer(flow, definition, row, resource, frozenset(window)):
        return False
    return all(_is_invariant(flow, definition, one, loop, depth + 1) for one in flow.reads(definition))


def _is_pure(flow: FunctionFlow, row: int) -> bool:
    if flow.mnemonic(row).split(".")[0] not in _PURE:
        return False
    return not any(word in operand for operand in flow.operands(row) for word in _CHANGING)


def _is_only_writer(flow: FunctionFlow, definition: int, row: int, resource: int, window: frozenset[int]) -> bool:
    """No branch between writes it too; code is laid out in the order it runs, but for loops."""
    if row - definition > _MOST_BETWEEN or row < definition:
        return False
    return not any(resource in flow.writes(other) for other in range(definition + 1, row) if other not in window)
