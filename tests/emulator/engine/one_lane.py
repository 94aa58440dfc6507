"""A few PTX instructions for one lane at a time, in plain Python: the truth that random programs are held against."""

from collections.abc import Callable

from gpa_lsp.code.ptx.model import Address, Immediate, Operand, PtxFunction, PtxInstruction, Register

_WORD = 1 << 32
_OPERATIONS: dict[str, Callable[..., int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shr": lambda a, b: a >> b if b < 32 else 0,
    "mov": lambda a: a,
}
_COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "ge": lambda a, b: a >= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}


class Lane:
    """One thread.

    Args:
        function: what it runs.
        registers: values that it begins with, by slot; others are 0.
        memory: words by address; loads of others give 0.
    """

    def __init__(self, function: PtxFunction, registers: dict[int, int], memory: dict[int, int]) -> None:
        self._function = function
        self._registers = registers
        self._memory = memory

    def run(self, start: int) -> None:
        """Run from an instruction to the end."""
        place: int | None = start
        while place is not None:
            instruction = self._function.instructions[place]
            place = self._step(instruction) if self._holds(instruction) else place + 1

    def _holds(self, instruction: PtxInstruction) -> bool:
        guard = instruction.guard
        return guard is None or bool(self._registers.get(guard.slot, 0)) != guard.is_negated

    def _step(self, instruction: PtxInstruction) -> int | None:
        following = instruction.index + 1
        match instruction.opcode:
            case "ret" | "exit":
                return None
            case "bra":
                return instruction.target
            case "brx":
                return instruction.targets[self._read(instruction.sources[0])]
            case "st":
                self._memory[self._address(instruction.sources[0])] = self._read(instruction.sources[1])
                return following
        self._write(instruction.destinations[0], self._compute(instruction))
        return following

    def _compute(self, instruction: PtxInstruction) -> int:
        match instruction.opcode:
            case "ld":
                return self._memory.get(self._address(instruction.sources[0]), 0)
            case "setp":
                first, second = (self._read(one) for one in instruction.sources)
                return int(_COMPARISONS[instruction.suffixes[0]](first, second))
            case "selp":
                first, second, chosen = (self._read(one) for one in instruction.sources)
                return first if chosen else second
        return _OPERATIONS[instruction.opcode](*(self._read(one) for one in instruction.sources)) % _WORD

    def _read(self, operand: Operand) -> int:
        if isinstance(operand, Immediate):
            return int(operand.value) % _WORD
        assert isinstance(operand, Register)
        return self._registers.get(operand.slot, 0)

    def _write(self, operand: Operand, value: int) -> None:
        assert isinstance(operand, Register)
        self._registers[operand.slot] = value

    def _address(self, operand: Operand) -> int:
        assert isinstance(operand, Address)
        assert isinstance(operand.base, Register)
        return self._registers.get(operand.base.slot, 0) + operand.offset_bytes
