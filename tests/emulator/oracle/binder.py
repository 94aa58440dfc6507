"""Instructions as steps of numpy, in place of what the core does: :class:`Binder` reads and writes their operands."""

from collections.abc import Callable

import numpy as np

from gpa_lsp.code.ptx.model import Operand, Register, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.lowering import Lowering, NotLowered
from gpa_lsp.execution.emulator.engine.fragments import Fragment, guarded_mask
from gpa_lsp.execution.emulator.engine.geometry import Value
from gpa_lsp.execution.emulator.engine.operands import Reader, UnsupportedInstruction, read_operand

Step = Callable[[Fragment], None]  # Does an instruction
Writer = Callable[[Fragment, Value], None]  # Gives lanes whose guard holds a result


class Binder:
    """The instruction that a lowering has come to.

    Args:
        lowering: it.

    Attributes:
        machine: the launch.
        instruction: the instruction.
        static: its number.
        guard: its guard.
        carry: slot of the carry flag.
        pieces: slots of parts of parameters, by variable.
    """

    def __init__(self, lowering: Lowering) -> None:
        self.machine, self.instruction = lowering.machine, lowering.instruction
        self.static, self.guard = lowering.static, lowering.instruction.guard
        self._frames = lowering.frames
        self._function = next(
            one for one in self.machine.module.functions.values() if self.instruction in one.instructions
        )
        self.carry = len(self._function.registers)
        self.pieces = lowering.frames.pieces

    @property
    def is_kernel(self) -> bool:
        """Whether the instruction is the kernel's own."""
        return self._function.is_entry

    def read(self, operand: Operand | None, kind: ScalarType) -> Reader:
        """Reader of a source, in the natural dtype of a type.

        Raises:
            NotLowered: it cannot be read.
        """
        read = self._read_address(operand) if isinstance(operand, Symbol) else self._read(operand, kind)
        dtype = kind.natural_dtype
        if isinstance(operand, Symbol) and dtype.itemsize < 8:
            return lambda fragment: read(fragment).astype(f"u{dtype.itemsize}").view(dtype)
        return lambda fragment: read(fragment).view(dtype)

    def _read(self, operand: Operand | None, kind: ScalarType) -> Reader:
        try:
            return read_operand(operand, kind, self.machine.geometry)
        except UnsupportedInstruction as error:
            raise NotLowered(str(error)) from error

    def _read_address(self, symbol: Symbol) -> Reader:
        for variable in self._function.locals:
            if variable.name == symbol.name:
                offset = variable.offset_bytes + symbol.offset_bytes
                return lambda fragment: np.uint64(fragment.frame.local_base + offset)
        address = self.machine.find_symbol(symbol.name, self._function)
        if address is None:
            raise NotLowered(f"symbol {symbol.name}")
        constant = np.uint64((address + symbol.offset_bytes) % (1 << 64))
        return lambda _: constant

    def write(self, operand: Operand | None, kind: ScalarType) -> Writer:
        """Writer of a result of a type, extended to the width of its register.

        Raises:
            NotLowered: it cannot be written.
        """
        if operand is None:
            return lambda fragment, value: None
        if not isinstance(operand, Register) or operand.selector:
            raise NotLowered("result of this kind")
        is_predicate = self._frames.dtype(operand.slot).kind == "b"
        if is_predicate != (kind is ScalarType.PRED):
            raise NotLowered("result of this kind")
        return self.write_slot(operand.slot, kind.natural_dtype)

    def write_slot(self, slot: int, natural: "np.dtype[np.generic]") -> Writer:
        """Writer of a value of a dtype to a slot."""
        dtype = self._frames.dtype(slot)

        def give(fragment: Fragment, value: Value) -> None:
            spread = np.ascontiguousarray(np.broadcast_to(value, (fragment.warps.lanes,))).view(natural)
            if dtype.itemsize != natural.itemsize:
                spread = spread.astype(f"u{dtype.itemsize}")
            old = fragment.registers[slot].view(dtype)
            fragment.registers[slot] = np.where(guarded_mask(fragment, self.guard), spread.view(dtype), old)

        return give

    def count(self, step: Step) -> Step:
        """A step that also counts the lanes whose guard holds."""
        guard, counts, static = self.guard, self.machine.guarded, self.static
        if guard is None:
            return step

        def counted(fragment: Fragment) -> None:
            counts[static] += int(np.count_nonzero(guarded_mask(fragment, guard)))
            step(fragment)

        return counted
