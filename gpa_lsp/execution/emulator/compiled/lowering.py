"""PTX instructions → operations of the core: :class:`Lowering`."""

from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import (
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    SpecialRegister,
    Symbol,
)
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.compiled.frames import FrameLayout
from gpa_lsp.execution.emulator.engine.layout import make_constant
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.special_registers import find_special

_CLOCKS = frozenset({"clock", "clock64", "globaltimer", "clock_hi", "globaltimer_lo", "globaltimer_hi"})


# Fields of :data:`~gpa_lsp.execution.emulator.compiled.model.OPERATION`; those left out have its defaults
Operation = dict[str, Any]


class NotLowered(Exception):  # noqa: N818  (the numpy engine does it)
    """The core has no such operation."""


class Lowering:
    """Gathers the operations of one instruction.

    Args:
        machine: the launch.
        function: the kernel.
        frames: where values lie.
        codes: of operations, by name.
    """

    def __init__(self, machine: Machine, function: PtxFunction, frames: FrameLayout, codes: dict[str, int]) -> None:
        self.machine = machine
        self.frames = frames
        self._function = function
        self._codes = codes
        self._first_static = machine.first_statics[function.name]
        self._operations: list[Operation] = []
        self._after: list[Operation] = []
        self.instruction = function.instructions[0]

    def begin(self, instruction: PtxInstruction) -> None:
        """Turn to an instruction."""
        self.instruction = instruction
        self._operations, self._after = [], []
        self.frames.begin_scratch()

    def finish(self) -> list[Operation]:
        """The operations of the instruction; its guard is that of the last ones, which write registers."""
        return [*self._operations, *self._after]

    @property
    def static(self) -> int:
        """Static number of the instruction."""
        return self._first_static + self.instruction.index

    def emit(self, code: int | str, *, is_guarded: bool = True, **fields: Any) -> None:
        """Add an operation.

        Raises:
            NotLowered: there is none of the name.
        """
        self._operations.append(self._build(code, is_guarded=is_guarded, **fields))

    def _build(self, code: int | str, *, is_guarded: bool, **fields: Any) -> Operation:
        number = self._codes.get(code) if isinstance(code, str) else code
        if number is None:
            raise NotLowered
        operation = {"code": number, "instruction": self.static, "number_of_execution": self.static}
        guard = self.instruction.guard
        if guard is not None and is_guarded:
            operation |= {"guard": self._place(guard.slot), "is_negated": guard.is_negated, "counts": 1}
        return operation | fields

    def compute(
        self, name: str, results: tuple[Operand | None, ...], kinds: tuple[ScalarType, ...], **fields: Any
    ) -> None:
        """Add an operation on lanes, whose results go to registers of any width.

        Raises:
            NotLowered: the core does not know it.
        """
        places = [self._write(result, kind) for result, kind in zip(results, kinds, strict=True)]
        is_direct = not self._after
        other = places[1] if len(places) > 1 else -1
        if other >= 0 and kinds[1] is not ScalarType.PRED:
            raise NotLowered
        self.emit(
            name,
            is_guarded=is_direct,
            result=places[0],
            other_result=other,
            result_bytes=kinds[0].natural_dtype.itemsize,
            **fields,
        )

    def _write(self, operand: Operand | None, kind: ScalarType) -> int:
        if operand is None:
            return -1
        if not isinstance(operand, Register) or operand.selector:
            raise NotLowered
        have, size = self.frames.dtype(operand.slot).itemsize, kind.natural_dtype.itemsize
        if have == size:
            return self._place(operand.slot)
        if self._after or kind is ScalarType.PRED:
            raise NotLowered
        scratch = self._scratch()
        name = f"cvt_{'s' if kind.is_signed else 'u'}{8 * size}_{8 * have}"
        place = self._place(operand.slot)
        self._after.append(self._build(name, is_guarded=True, a=scratch, result=place, result_bytes=have))
        return scratch

    def read(self, operand: Operand | None, kind: ScalarType) -> int:
        """The place of a source, of the width of a type.

        Raises:
            NotLowered: it is of another kind.
        """
        match operand:
            case Register():
                if operand.selector:
                    raise NotLowered
                place = self._place(operand.slot)
                if operand.is_negated:
                    negated = self._scratch()
                    self.emit("not_pred", is_guarded=False, a=place, result=negated, result_bytes=1)
                    place = negated
                return self._fit(place, self.frames.dtype(operand.slot).itemsize, kind)
            case Immediate():
                return self.frames.constant(make_constant(operand, kind))
            case SpecialRegister():
                return self._read_special(operand, kind)
            case Symbol():
                return self._fit_constant(np.uint64(self.find_address(operand)), kind)
        raise NotLowered

    def find_address(self, symbol: Symbol) -> int:
        """The address of a symbol in its own space.

        Raises:
            NotLowered: nobody knows it.
        """
        for variable in self._function.locals:
            if variable.name == symbol.name:
                return variable.offset_bytes + symbol.offset_bytes
        address = self.machine.find_symbol(symbol.name, self._function)
        if address is None:
            raise NotLowered
        return (address + symbol.offset_bytes) % (1 << 64)

    def width(self, register: Register) -> int:
        """Bytes of a register."""
        return self.frames.dtype(register.slot).itemsize

    def place_exactly(self, operand: Operand | None, size: int) -> int:
        """The place of a register of so many bytes.

        Raises:
            NotLowered: it is none.
        """
        if not isinstance(operand, Register) or operand.selector or operand.is_negated or self.width(operand) != size:
            raise NotLowered
        return self._place(operand.slot)

    def _read_special(self, operand: SpecialRegister, kind: ScalarType) -> int:
        if operand.name in _CLOCKS:
            raise NotLowered
        found = find_special(operand, self.machine.geometry)
        if found is None:
            raise NotLowered
        if not callable(found):
            return self._fit_constant(found, kind)
        return self._fit(self.frames.column(operand.name, operand.component), 4, kind)

    def _fit_constant(self, value: Any, kind: ScalarType) -> int:
        want = np.dtype(f"u{kind.storage_dtype.itemsize}")
        return self.frames.constant(value.astype(want))

    def _fit(self, place: int, have: int, kind: ScalarType) -> int:
        want = kind.storage_dtype.itemsize
        if have == want:
            return place
        fitted = self._scratch()
        self.emit(f"cvt_u{8 * have}_{8 * want}", is_guarded=False, a=place, result=fitted, result_bytes=want)
        return fitted

    def _place(self, slot: int) -> int:
        place = self.frames.find(slot)
        if place is None:
            raise NotLowered
        return place

    def _scratch(self) -> int:
        place = self.frames.scratch()
        if place is None:
            raise NotLowered
        return place
