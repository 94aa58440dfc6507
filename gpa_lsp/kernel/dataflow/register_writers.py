"""Where each register of a function is written, and which constant it holds where that is plain to see."""

import re
import struct
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.model import Instructions, ResourceKind
from gpa_lsp.code.binary.sass import split_operands

_IMMEDIATE = re.compile(r"-?0x[0-9a-f]+")
_REGISTER = re.compile(r"R(\d{1,3})(?:\.reuse)?")
_ZERO = ("RZ", "RZ.reuse")
_NEGATED_ZERO = "-RZ"


_NO_ROWS: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)


class RegisterWriters:
    """The writers of every register of one function, by instruction number.

    Args:
        instructions: of the function.
    """

    __slots__ = ("_instructions", "_rows")

    def __init__(self, instructions: Instructions) -> None:
        writes = instructions.writes
        rows = np.repeat(np.arange(len(instructions), dtype=np.int64), np.diff(writes.starts))
        order = np.argsort(writes.numbers, kind="stable")
        resources, starts = np.unique(writes.numbers[order], return_index=True)
        self._instructions = instructions
        self._rows: dict[int, npt.NDArray[np.int64]] = dict(
            zip(resources.tolist(), np.split(rows[order], starts[1:]), strict=False)
        )

    def rows_of(self, resource: int) -> npt.NDArray[np.int64]:
        """The instructions that write a resource, ascending."""
        return self._rows.get(resource, _NO_ROWS)

    def count_before(self, resource: int, row: int) -> int:
        """How many instructions before ``row``, in address order, write a resource: equal counts in one block mean an equal value."""
        return int(self.rows_of(resource).searchsorted(row))

    def is_written_in(self, resources: Sequence[int], inside: npt.NDArray[np.bool_]) -> bool:
        """Whether any of the resources is written by a marked instruction.

        Args:
            inside: bool[n].
        """
        return any(bool(inside[self.rows_of(resource)].any()) for resource in resources)

    def find_constant(self, operand: str, row: int) -> int | None:
        """The value of an operand at an instruction; None when it is no immediate and no register that was just set to one.

        The last writer before the instruction, in address order, is taken for the one that counts: true in straight code, where compilers
        put the constants of address arithmetic.
        """
        if _IMMEDIATE.fullmatch(operand):
            return int(operand, 16)
        register = _REGISTER.fullmatch(operand)
        if register is None:
            return None
        writers = self.rows_of(int(register[1]) | int(ResourceKind.REGISTER) << 8)
        before = writers[writers < row]
        return _read_set_constant(self._instructions.texts[int(before[-1])]) if len(before) else None

    def find_index_scale(self, register: int, row: int) -> int | None:
        """By how many bytes an address in a register (pair) grows with the index it was computed from.

        Returns:
            The multiplier of the address computation before it; None when that is not a plain multiply-add or shift-add.
        """
        writers = self.rows_of(register)
        before = writers[writers < row]
        if not len(before):
            return None
        writer = int(before[-1])
        mnemonic, _, operands = self._instructions.texts[writer].partition(" ")
        tokens = split_operands(operands)
        name, *modifiers = mnemonic.split(".")
        if name == "IMAD" and "WIDE" in modifiers and len(tokens) >= 4:
            scale = self.find_constant(tokens[2], writer)
            return abs(scale) if scale is not None else None
        if name == "LEA" and "HI" not in modifiers:
            shift = next((token for token in reversed(tokens) if _IMMEDIATE.fullmatch(token)), None)
            return 1 << int(shift, 16) if shift is not None and 0 <= int(shift, 16) < 32 else None
        return None


def _read_set_constant(text: str) -> int | None:
    """The value an instruction sets its register to, if it does nothing else.

    >>> _read_set_constant("MOV R13, 0x10"), _read_set_constant("IMAD.MOV.U32 R3, RZ, RZ, 0x4"), _read_set_constant("MOV R1, R2")
    (16, 4, None)
    >>> _read_set_constant("HFMA2.MMA R13, -RZ, RZ, 0, 9.5367431640625e-07")
    16
    """
    mnemonic, _, operands = text.partition(" ")
    tokens = split_operands(operands)
    name, *modifiers = mnemonic.split(".")
    if name == "HFMA2" and len(tokens) == 5 and tokens[1] == _NEGATED_ZERO and tokens[2] in _ZERO:
        return _join_halves(tokens[3], tokens[4])
    is_copy = name == "MOV" or (name == "IMAD" and "MOV" in modifiers)
    return int(tokens[-1], 16) if is_copy and tokens and _IMMEDIATE.fullmatch(tokens[-1]) else None


def _join_halves(high: str, low: str) -> int | None:
    """The 32 bits of two 16-bit floats: how compilers load a small integer through the half-precision pipe."""
    try:
        packed = struct.pack("<ee", float(low), float(high))
    except (ValueError, OverflowError):
        return None
    return int(struct.unpack("<I", packed)[0])
