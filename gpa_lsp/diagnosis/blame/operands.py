"""Which register connects a def and its use, and how: what names the operand of a dependency that scoreboards or stall counts found."""

from typing import NamedTuple

from gpa_lsp.code.binary.model import Instructions, ResourceLists
from gpa_lsp.diagnosis.blame.model import Dependency

NO_RESOURCE = -1  # No register connects the two


class Connection(NamedTuple):
    """How a use depends on its def."""

    dependency: Dependency  # the kind
    # the lowest resource number they share, so that the halves of a 64-bit pair or the parts of a vector are one dependency; :data:`NO_RESOURCE`
    # where they share none
    resource: int


class RegisterUses:
    """Reads and writes of a function's instructions, for many questions about pairs of them."""

    __slots__ = ("_guards", "_read_numbers", "_read_starts", "_write_numbers", "_write_starts")

    def __init__(self, instructions: Instructions) -> None:
        self._guards: list[int] = instructions.guard.tolist()
        self._read_starts, self._read_numbers = _unpack(instructions.reads)
        self._write_starts, self._write_numbers = _unpack(instructions.writes)

    def reads(self, row: int) -> list[int]:
        """Resource numbers that instruction ``row`` reads, ascending; its guard is one of them."""
        return self._read_numbers[self._read_starts[row] : self._read_starts[row + 1]]

    def writes(self, row: int) -> list[int]:
        """Resource numbers that instruction ``row`` writes, ascending."""
        return self._write_numbers[self._write_starts[row] : self._write_starts[row + 1]]

    def connect(self, def_row: int, use_row: int, *, by_result: bool = True, by_operands: bool = False) -> Connection:
        """What makes ``use_row`` wait for ``def_row``; a value that is read counts before a guard, and a guard before a register reused.

        >>> from gpa_lsp.code.binary.listing import parse_listing
        >>> uses = RegisterUses(parse_listing('''
        ...     LDG.E.64 R2, [R4.64]
        ...     STG.E.64 [R6.64], R2
        ...     @P0 IADD3 R6, R8, 0x1, RZ
        ...     BRA 0x40
        ... '''))
        >>> uses.connect(0, 1)
        Connection(dependency=<Dependency.READ_AFTER_WRITE: 1>, resource=2)
        >>> uses.connect(1, 2, by_result=False, by_operands=True)
        Connection(dependency=<Dependency.WRITE_AFTER_READ: 2>, resource=6)
        >>> uses.connect(0, 3)
        Connection(dependency=<Dependency.SCOREBOARD: 5>, resource=-1)
        """
        if by_result and (results := self.writes(def_row)):
            guard = self._guards[use_row]
            values = [number for number in self.reads(use_row) if number != guard]
            for dependency, others in (
                (Dependency.READ_AFTER_WRITE, values),
                (Dependency.GUARD, [guard]),
                (Dependency.WRITE_AFTER_WRITE, self.writes(use_row)),
            ):
                shared = _find_lowest_shared(results, others)
                if shared != NO_RESOURCE:
                    return Connection(dependency, shared)
        if by_operands:
            shared = _find_lowest_shared(self.reads(def_row), self.writes(use_row))
            if shared != NO_RESOURCE:
                return Connection(Dependency.WRITE_AFTER_READ, shared)
        return Connection(Dependency.SCOREBOARD, NO_RESOURCE)


def _unpack(lists: ResourceLists) -> tuple[list[int], list[int]]:
    return lists.starts.tolist(), lists.numbers.tolist()


def _find_lowest_shared(numbers: list[int], others: list[int]) -> int:
    """The first of ``numbers``, ascending, that is among ``others``."""
    return next((number for number in numbers if number in others), NO_RESOURCE)
