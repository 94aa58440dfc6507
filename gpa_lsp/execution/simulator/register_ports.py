"""How a sub-core reads registers: two banks with one port each, and a cache that the compiler steers: :class:`RegisterPorts`.

An instruction of fixed latency has a few cycles behind its issue to read its operands. Where a bank cannot give them by then, because instructions
before it have theirs read, the sub-core issues nothing. The last register that was read for each place of an operand is kept, one of each bank, where
the instruction says so (``.reuse``), until another is read there; to read it again takes no port.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import ceil

from msgspec import Struct

from gpa_lsp.code.binary.opcodes import describe_mnemonic
from gpa_lsp.code.binary.operands import OperandKind, parse_operand
from gpa_lsp.code.binary.sass import read_mnemonic, read_operands
from gpa_lsp.code.binary.uses import find_roles
from gpa_lsp.execution.simulator.machine import SmModel

BANKS = 2
OPERANDS = 3  # Places of operands that registers are read for
_MOST_KEPT = 2  # Registers of an operand that are kept: one of each bank
REGISTERS = 256
_MOST_REGISTERS = 4  # Of an operand: what is wider is read while the instruction is executed
_LONE_PLACE = 1  # Of the only operand of an instruction
# Of opcodes that leave one out; the others fill them in the order of the text. Source: the reuse bits of 2,749 instructions of sm_70 to sm_120 beside
# what nvdisasm writes.
_PLACES = {"HADD2": (0, 2)}
_NO_VALUES = (OperandKind.PREDICATE, OperandKind.CONVERGENCE_BARRIER)


class RegisterReads(Struct, frozen=True, kw_only=True):
    """The registers that an instruction reads, by the place of the operand."""

    first: tuple[int, int, int] = (-1, -1, -1)  # number of each operand's first register; -1 where it has none
    count: tuple[int, int, int] = (0, 0, 0)  # registers that follow each other
    kept: tuple[bool, bool, bool] = (False, False, False)  # whether they are to be kept


NO_READS = RegisterReads()


@lru_cache(maxsize=8192)
def find_register_reads(text: str, reuse: int) -> RegisterReads:
    """The registers an instruction reads.

    >>> find_register_reads("FADD R0, |R7.reuse|, R7", 0b01)
    RegisterReads(first=(7, 7, -1), count=(1, 1, 0), kept=(True, False, False))
    """
    mnemonic, tokens = read_mnemonic(text), read_operands(text)
    roles = find_roles(mnemonic, describe_mnemonic(mnemonic), tokens)
    sources = [
        _list_registers(token, role.width)
        for token, role in zip(tokens, roles, strict=True)
        if role.is_read and parse_operand(token).kind not in _NO_VALUES
    ]
    first, count, kept = [-1] * OPERANDS, [0] * OPERANDS, [False] * OPERANDS
    for place, registers in zip(_find_places(mnemonic, len(sources)), sources, strict=False):
        if registers:
            first[place], count[place], kept[place] = registers[0], len(registers), bool(reuse >> place & 1)
    return RegisterReads(
        first=(first[0], first[1], first[2]), count=(count[0], count[1], count[2]), kept=(kept[0], kept[1], kept[2])
    )


def _list_registers(token: str, width: int) -> Sequence[int]:
    """Registers of an operand, without uniform ones."""
    return [number for number in parse_operand(token).expand(width) if number < REGISTERS][:_MOST_REGISTERS]


def _find_places(mnemonic: str, sources: int) -> Sequence[int]:
    if sources == 1:
        return (_LONE_PLACE,)
    return _PLACES.get(mnemonic.partition(".")[0], range(OPERANDS))


class RegisterPorts:
    """The ports of a sub-core.

    Args:
        model: the SM.

    Attributes:
        free: of each bank, when its port has read what was asked of it.
        kept: by place and bank, warp and register; -1 for none.
    """

    __slots__ = ("_rate", "_window", "free", "kept")

    def __init__(self, model: SmModel) -> None:
        self._window, self._rate = model.operand_window_cycles, model.bank_registers_per_cycle
        self.free = [0.0] * BANKS
        self.kept = [-1] * (OPERANDS * BANKS)

    def try_read(self, reads: RegisterReads, warp: int, time: float) -> bool:
        """Read the operands of an instruction that is to be issued, if they are there in time; those that take longer have to begin at once."""
        needed = self._find_cycles(reads, warp)
        ends = [max(free, time) + cycles for free, cycles in zip(self.free, needed, strict=True)]
        for end, cycles in zip(ends, needed, strict=True):
            if cycles and end > time + max(self._window, cycles):
                return False
        for bank, cycles in enumerate(needed):
            if cycles:
                self.free[bank] = ends[bank]
        for place in range(OPERANDS):
            self._keep(reads, place, warp)
        return True

    def _find_cycles(self, reads: RegisterReads, warp: int) -> list[int]:
        """Of each bank's port, for what the cache does not save."""
        counts = [0] * BANKS
        for place in range(OPERANDS):
            for number in range(reads.first[place], reads.first[place] + reads.count[place]):
                if self.kept[place * BANKS + (number & 1)] != warp * REGISTERS + number:
                    counts[number & 1] += 1
        return [ceil(count / self._rate) for count in counts]

    def _keep(self, reads: RegisterReads, place: int, warp: int) -> None:
        is_kept = reads.kept[place] and reads.count[place] <= _MOST_KEPT
        for number in range(reads.first[place], reads.first[place] + reads.count[place]):
            self.kept[place * BANKS + (number & 1)] = warp * REGISTERS + number if is_kept else -1
