"""Labels of branches and tables, and what indirect calls can reach, once a whole body was read."""

from dataclasses import replace

from gpa_lsp.basis.errors import InputError
from gpa_lsp.ptx.instructions import InstructionReader, Waiting
from gpa_lsp.ptx.scopes import Scope

MOST_TARGETS = 5_000_000
"""Of all jumps through tables of one function together."""


def resolve_targets(reader: InstructionReader) -> None:
    """Fill in the targets of all branches and indirect calls that were read.

    Raises:
        InputError: a label stands nowhere, or at the end of the function; its place is filled in.
    """
    resolver = _Resolver(reader)
    for waiting in reader.waiting:
        try:
            resolver.resolve(waiting)
        except InputError as error:
            error.place = error.place or f"line {waiting.line}"
            raise
    reader.waiting.clear()


class _Resolver:
    """Tables and prototypes are looked at once, however many instructions name them."""

    def __init__(self, reader: InstructionReader) -> None:
        self._reader = reader
        self._tables: dict[tuple[int, str], tuple[int, ...]] = {}
        self._targets_left = MOST_TARGETS

    def resolve(self, waiting: Waiting) -> None:
        instructions = self._reader.instructions
        instruction = instructions[waiting.place]
        if instruction.call is not None:
            possible = self._find_possible(waiting)
            instructions[waiting.place] = replace(instruction, call=replace(instruction.call, possible=possible))
        elif instruction.opcode == "bra":
            instructions[waiting.place] = replace(instruction, target=self._find(waiting.label, waiting.scope))
        else:
            instructions[waiting.place] = replace(instruction, targets=self._find_table(waiting))

    def _find(self, label: str, scope: Scope) -> int:
        target = scope.find_label(label)
        if target is None:
            raise InputError(f"there is no label {label[:60]!r} in scope", remedy="check that the PTX is complete")
        if target >= len(self._reader.instructions):
            raise InputError(f"no instruction follows the label {label[:60]!r}", remedy="end the function with ret")
        return target

    def _find_table(self, waiting: Waiting) -> tuple[int, ...]:
        table = waiting.scope.find_table(waiting.label)
        if table is None:
            raise InputError(
                f"there is no .branchtargets {waiting.label[:60]!r} in scope", remedy="check that the PTX is complete"
            )
        home, labels = table
        key = (id(home), waiting.label)
        if key not in self._tables:
            self._tables[key] = tuple(self._find(label, home) for label in labels)
        targets = self._tables[key]
        self._targets_left -= len(targets)
        if self._targets_left < 0:
            raise InputError(
                f"jumps through tables have more than {MOST_TARGETS} targets", remedy="no compiler writes that many"
            )
        return targets

    def _find_possible(self, waiting: Waiting) -> tuple[str, ...]:
        if not waiting.label:
            return ()
        table = waiting.scope.find_table(waiting.label)
        if table is not None:
            return table[1]
        signature = waiting.scope.find_prototype(waiting.label)
        if signature is None:
            raise InputError(
                f"there is no prototype {waiting.label[:60]!r} in scope", remedy="check that the PTX is complete"
            )
        possible = self._reader.possible
        if signature not in possible:
            possible[signature] = tuple(name for name, one in self._reader.signatures.items() if one == signature)
        return possible[signature]
