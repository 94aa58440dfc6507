"""Which registers, predicates and convergence barriers one instruction reads and writes.

An opcode's facts (how many results, how wide each operand) and the kinds of the operands written give a *plan*: per operand, whether it is
read or written and how many registers it stands for. Plans are kept per mnemonic and shape, so most instructions cost a few look-ups.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gpa_lsp.code.binary.model import ResourceKind, encode_resource
from gpa_lsp.code.binary.opcodes import BarrierUse, MaskUse, Opcode
from gpa_lsp.code.binary.operands import Operand, OperandKind, OperandTable
from gpa_lsp.code.binary.widths import depends_on_text, expand_widths, read_mask

_WHOLE_FILES = {"PR": ResourceKind.PREDICATE, "UPR": ResourceKind.UNIFORM_PREDICATE}
_PREDICATE_COUNT = 7
_ALL_PREDICATES = (1 << _PREDICATE_COUNT) - 1


class Uses(NamedTuple):
    """Resource numbers an instruction uses, in the order of its operands, perhaps more than once; the guard is not among them."""

    reads: list[int]
    writes: list[int]


class OperandRole(NamedTuple):
    """What an instruction does to one of its operands."""

    is_read: bool  # it reads it; addresses and masks it reads from or writes to among them
    is_written: bool  # it writes it
    width: int  # registers that each register of the operand stands for, where the text does not say


_Plan = tuple[OperandRole, ...]


class UseFinder:
    """Finds uses, remembering operands and plans; meant for one pass over some functions: it grows with their texts."""

    __slots__ = ("_plans", "operands")

    def __init__(self) -> None:
        self.operands = OperandTable()
        self._plans: dict[str, _Plan] = {}

    def find(self, mnemonic: str, opcode: Opcode, tokens: Sequence[str]) -> Uses:
        """What an instruction reads and writes.

        Args:
            mnemonic: opcode with modifiers.
            opcode: its facts.
            tokens: its operands, as written.

        >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
        >>> UseFinder().find("IMAD.WIDE", describe_mnemonic("IMAD.WIDE"), ("R4", "R3", "R4", "R8"))
        Uses(reads=[3, 4, 8, 9], writes=[4, 5])
        """
        table = self.operands
        operands = [table[token] for token in tokens]
        shape = mnemonic + " " + "".join([operand[0] for operand in operands])
        plan = self._plans.get(shape)
        if plan is None:
            plan = _make_plan(mnemonic, opcode, tokens, operands)
            if not depends_on_text(opcode.widths):
                self._plans[shape] = plan
        reads: list[int] = []
        writes: list[int] = []
        for operand, (is_read, is_written, width) in zip(operands, plan, strict=True):
            if operand[1]:
                numbers = operand[2].get(width) or operand.expand(width)
                if is_read:
                    reads += numbers
                if is_written:
                    writes += numbers
        if opcode.predicate_mask is not None:
            (reads if opcode.predicate_mask == MaskUse.READ else writes).extend(_expand_mask(tokens))
        return Uses(reads, writes)

    def find_written(self, mnemonic: str, opcode: Opcode, tokens: Sequence[str]) -> tuple[bool, ...]:
        """Which operands of an instruction are its results.

        >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
        >>> UseFinder().find_written("IADD3", describe_mnemonic("IADD3"), ("R4", "P1", "R3", "R4", "RZ"))
        (True, True, False, False, False)
        """
        operands = [self.operands[token] for token in tokens]
        return tuple(role.is_written for role in _make_plan(mnemonic, opcode, tokens, operands))


def find_roles(mnemonic: str, opcode: Opcode, tokens: Sequence[str]) -> tuple[OperandRole, ...]:
    """What an instruction does to each of its operands.

    Args:
        mnemonic: opcode with modifiers.
        opcode: its facts.
        tokens: its operands, as written.

    >>> from gpa_lsp.code.binary.opcodes import describe_mnemonic
    >>> [(role.is_written, role.width) for role in find_roles("LDG.E.64", describe_mnemonic("LDG.E.64"), ("R2", "[R4.64]"))]
    [(True, 2), (False, 2)]
    """
    table = OperandTable()
    return _make_plan(mnemonic, opcode, tokens, [table[token] for token in tokens])


def _make_plan(mnemonic: str, opcode: Opcode, tokens: Sequence[str], operands: Sequence[Operand]) -> _Plan:
    widths = iter(_find_widths(mnemonic, opcode, tokens, operands))
    results_left = opcode.results
    predicates_left = opcode.predicate_results
    plan: list[OperandRole] = []
    for position, operand in enumerate(operands):
        if operand.kind == OperandKind.PREDICATE:
            plan.append(OperandRole(predicates_left <= 0, predicates_left > 0, 1))
            predicates_left -= 1
        elif operand.kind == OperandKind.CONVERGENCE_BARRIER:
            role = _find_barrier_role(opcode.barrier, position)
            plan.append(role)
            if role.is_written and not role.is_read:  # the barrier is the result
                results_left = 0
        elif results_left > 0 and operand.kind == OperandKind.REGISTER:
            plan.append(OperandRole(False, True, next(widths)))
            results_left -= 1
        else:
            plan.append(OperandRole(True, False, next(widths)))
            results_left = predicates_left = 0
    return tuple(plan)


def _find_widths(mnemonic: str, opcode: Opcode, tokens: Sequence[str], operands: Sequence[Operand]) -> tuple[int, ...]:
    """Registers per value operand; a result that the text leaves out before an address is accounted for."""
    kinds = (OperandKind.PREDICATE, OperandKind.CONVERGENCE_BARRIER)
    values = [
        (token, operand.kind) for token, operand in zip(tokens, operands, strict=True) if operand.kind not in kinds
    ]
    names = [token for token, _ in values]
    modifiers = mnemonic.split(".")[1:]
    if opcode.results and values and values[0][1] == OperandKind.ADDRESS:
        return expand_widths(opcode.widths, modifiers, ["", *names])[1:]
    return expand_widths(opcode.widths, modifiers, names)


def _find_barrier_role(use: BarrierUse | None, position: int) -> OperandRole:
    is_both = use == BarrierUse.BOTH
    is_written = is_both or use == BarrierUse.WRITE or (use == BarrierUse.POSITION and position == 0)
    return OperandRole(is_both or not is_written, is_written, 1)


def _expand_mask(tokens: Sequence[str]) -> Iterable[int]:
    """The predicates a mask names; all of them when it is in a register."""
    kind = next((_WHOLE_FILES[token] for token in tokens if token in _WHOLE_FILES), None)
    if kind is None:
        return ()
    mask = read_mask(tokens[-1], otherwise=_ALL_PREDICATES)
    return (encode_resource(kind, index) for index in range(_PREDICATE_COUNT) if mask >> index & 1)
