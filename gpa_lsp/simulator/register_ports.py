"""How a sub-core reads registers: two banks with one port each, and a cache that the compiler steers: :class:`RegisterPorts`.

An instruction of fixed latency has a few cycles behind its issue to read its operands. Where a bank cannot give them by then, because instructions
before it have theirs read, the sub-core issues nothing. The last register that was read for each place of an operand is kept, one of each bank, where
the instruction says so (``.reuse``), until another is read there; to read it again takes no port.
"""

from math import ceil

from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.rows.model import KernelRows
from gpa_lsp.simulator.execution.machine_instruction import MachineInstruction, find_roles, read_instruction
from gpa_lsp.simulator.machine import SmModel

BANKS = 2
OPERANDS = 3
"""Places of operands that registers are read for."""
_MOST_KEPT = 2
"""Registers of an operand that are kept: one of each bank."""
REGISTERS = 256
_MOST_EXTENT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterReads:
    """The registers that an instruction reads, by the place of the operand.

    Attributes:
        first: number of each operand's first register; -1 where it has none.
        count: registers that follow each other.
        kept: whether they are to be kept.
    """

    first: tuple[int, int, int] = (-1, -1, -1)
    count: tuple[int, int, int] = (0, 0, 0)
    kept: tuple[bool, bool, bool] = (False, False, False)


NO_READS = RegisterReads()


def list_register_reads(rows: KernelRows) -> list[RegisterReads]:
    """Of each row."""
    return [_read(rows, row) for row in range(len(rows))]


def _read(rows: KernelRows, row: int) -> RegisterReads:
    """What is read is known of the row; how many registers belong to an operand is seen by what follows its first one."""
    text = rows.texts[row]
    known = {one for one in rows.reads.of(row) if one < REGISTERS - 1}
    if not known:
        return NO_READS
    instruction = read_instruction(row, text)
    sources = [_number(one) for one in _list_sources(instruction)[:OPERANDS]]
    kept = _find_kept(instruction, text)
    first, count = [-1] * OPERANDS, [0] * OPERANDS
    for place, number in enumerate(sources):
        if number not in known:
            continue
        extent = 1
        while extent < _MOST_EXTENT and number + extent in known and number + extent not in sources:
            extent += 1
        first[place], count[place] = number, extent
    return RegisterReads(
        first=(first[0], first[1], first[2]), count=(count[0], count[1], count[2]), kept=(kept[0], kept[1], kept[2])
    )


def _list_sources(instruction: MachineInstruction) -> tuple[str, ...]:
    return find_roles(instruction.operands).sources


def _number(operand: str) -> int:
    """Of a register; -1 of anything else."""
    name = operand.strip("-~|!+").partition(".")[0].rstrip("|")
    return int(name[1:]) if name.startswith("R") and name[1:].isdigit() else -1


def _find_kept(instruction: MachineInstruction, text: str) -> list[bool]:
    sources = _list_sources(instruction)[:OPERANDS]
    marked = {one.strip().partition(".reuse")[0] for one in text.split(",") if ".reuse" in one}
    marked = {one.split()[-1] for one in marked if one}
    found = [one.partition(".")[0] in marked or one in marked for one in sources]
    return found + [False] * (OPERANDS - len(found))


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

    def can_read(self, reads: RegisterReads, warp: int, time: float) -> bool:
        """Whether the operands of an instruction that is issued are there in time; those that take longer have to begin at once."""
        for free, cycles in zip(self.free, self._find_cycles(reads, warp), strict=True):
            if cycles and max(free, time) + cycles > time + max(self._window, cycles):
                return False
        return True

    def read(self, reads: RegisterReads, warp: int, time: float) -> None:
        """Read the operands of an instruction that is issued."""
        for bank, cycles in enumerate(self._find_cycles(reads, warp)):
            if cycles:
                self.free[bank] = max(self.free[bank], time) + cycles
        for place in range(OPERANDS):
            self._keep(reads, place, warp)

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
