"""Binding of one function for numpy's steps: :class:`Binder` gives operands their slots and gathers the steps of an instruction."""

from collections.abc import Callable
from typing import Any

import numpy as np

from gpa_lsp.code.ptx.model import Immediate, Operand, PtxFunction, PtxInstruction, Register, SpecialRegister, Symbol
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.emulator.engine.fragments import Fragment, Step
from gpa_lsp.execution.emulator.engine.geometry import Geometry
from gpa_lsp.execution.emulator.engine.layout import Layout, Piece, make_constant
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.values import BOOL, U32, U64, Value, select


class UnsupportedInstruction(Exception):  # noqa: N818  (it becomes a finding)
    """An instruction, or a form of one, that is not emulated."""


class Binder:
    """Binds the instructions of one function, one after the other.

    Attributes:
        machine: what all functions share.
        function: the function.
        layout: its slots.
        first_static: static number of its first instruction.
        steps: of the segment that is being built.
        instruction: the one that is being bound.
        guard: slot of its guard as a predicate that must be true; None without a guard.
    """

    def __init__(self, machine: Machine, function: PtxFunction, first_static: int) -> None:
        self.machine = machine
        self.function = function
        self.layout = Layout(function)
        self.first_static = first_static
        self.steps: list[Step] = []
        self.guard: int | None = None
        self._after: list[Step] = []
        self._stored: dict[str, dict[Piece, int]] = {}
        self._returned: dict[str, dict[Piece, int]] = {}
        self.instruction = function.instructions[0]

    @property
    def static(self) -> int:
        """Static number of the instruction."""
        return self.first_static + self.instruction.index

    def begin(self, instruction: PtxInstruction) -> None:
        """Turn to an instruction: binds its guard."""
        self.instruction = instruction
        self.guard = None
        if instruction.guard is None:
            return
        self.guard = self._negated(instruction.guard.slot) if instruction.guard.is_negated else instruction.guard.slot

    def finish(self) -> None:
        """Add the steps that follow the instruction: results are widened and selected by the guard."""
        self.steps.extend(self._after)
        self._after.clear()

    def discard(self) -> None:
        """Drop the steps that would follow the instruction."""
        self._after.clear()

    def defer(self, steps: list[Step]) -> None:
        """Add the steps that follow the instruction to another segment."""
        steps.extend(self._after)
        self._after.clear()

    def store_piece(self, variable: str, offset_bytes: int, size_bytes: int) -> int:
        """The slot of a part of an argument (or result) that is stored now."""
        slot = self.layout.piece(variable, offset_bytes, size_bytes)
        self._stored.setdefault(variable, {})[(offset_bytes, size_bytes)] = slot
        return slot

    def take_stored(self, variable: str) -> dict[Piece, int]:
        """Parts of an argument stored since the call before: those a call hands over."""
        return self._stored.pop(variable, {})

    def load_piece(self, variable: str, offset_bytes: int, size_bytes: int) -> int:
        """The slot of a part of a parameter (or of what a call returned) that is read now."""
        slot = self.layout.piece(variable, offset_bytes, size_bytes)
        if variable in self._returned:
            self._returned[variable][(offset_bytes, size_bytes)] = slot
        return slot

    def expect_returned(self, variable: str) -> dict[Piece, int]:
        """Parts of a call's result: filled as the instructions that read them are bound."""
        found = self._returned[variable] = {}
        return found

    def check(self, operand: Operand | None, kind: ScalarType) -> None:
        """Refuse a source that cannot be read as a type.

        Raises:
            UnsupportedInstruction: it is of another kind, or unknown.
        """
        match operand:
            case Register():
                if operand.selector:
                    raise UnsupportedInstruction(f"register part .{operand.selector}")
            case Immediate():
                make_constant(operand, kind)
            case SpecialRegister():
                if operand.name not in CLOCKS and find_special(operand, self.machine.geometry) is None:
                    raise UnsupportedInstruction(f"special register %{operand.name}")
            case Symbol():
                if self._find_local(operand) is None and self._find_address(operand) is None:
                    raise UnsupportedInstruction(f"symbol {operand.name}")
            case _:
                raise UnsupportedInstruction("operand of this kind")

    def check_result(self, operand: Operand | None, kind: ScalarType) -> None:
        """Refuse a destination that a result of a type cannot be written to.

        Raises:
            UnsupportedInstruction: it is no register, or one that is no predicate.
        """
        if operand is None:
            return
        if not isinstance(operand, Register) or operand.selector:
            raise UnsupportedInstruction("result of this kind")
        if kind is ScalarType.PRED and self.layout.dtypes[operand.slot] is not BOOL:
            raise UnsupportedInstruction("result of this kind")

    def read(self, operand: Operand | None, kind: ScalarType) -> int:
        """The slot of a source, of the width of a type.

        Raises:
            UnsupportedInstruction: such an operand cannot be read.
        """
        self.check(operand, kind)
        match operand:
            case Register():
                slot = self._negated(operand.slot) if operand.is_negated else operand.slot
                return self._fit(slot, kind)
            case Immediate():
                return self.layout.constant(make_constant(operand, kind))
            case SpecialRegister():
                return self._fit(self._read_special(operand), kind)
        assert isinstance(operand, Symbol)
        return self._fit(self.read_address(operand), kind)

    def write(self, operand: Operand | None, kind: ScalarType) -> int:
        """The slot that a result of a type is written to; a step after the instruction moves it to its register.

        Raises:
            UnsupportedInstruction: such an operand cannot be written.
        """
        if operand is None:
            return self.layout.add(kind.storage_dtype)
        self.check_result(operand, kind)
        assert isinstance(operand, Register)
        slot = operand.slot
        register_dtype = self.layout.dtypes[slot]
        natural = kind.natural_dtype
        fits = natural.itemsize == register_dtype.itemsize
        if fits and self.guard is None:
            return slot
        out = self.layout.add(kind.storage_dtype)
        unsigned = np.dtype(f"u{register_dtype.itemsize}")

        def widen(fragment: Fragment) -> Value:
            value = fragment.registers[out]
            value = value if value.dtype is natural else value.view(natural)
            return value if fits else value.astype(unsigned)

        guard = self.guard
        if guard is None:

            def keep(fragment: Fragment) -> None:
                fragment.registers[slot] = widen(fragment)

        else:

            def keep(fragment: Fragment) -> None:
                registers = fragment.registers
                chosen, old, new = registers[guard], registers[slot], widen(fragment)
                if chosen.ndim:
                    registers[slot] = select(chosen, new, old, register_dtype)
                elif chosen:
                    registers[slot] = new

        self._after.append(keep)
        return out

    def read_address(self, symbol: Symbol) -> int:
        """The slot of a symbol's address in its own space: uint64.

        Raises:
            UnsupportedInstruction: the symbol is unknown.
        """
        self.check(symbol, ScalarType.U64)
        offset = self._find_local(symbol)
        if offset is not None:
            return self._local_address(offset)
        address = self._find_address(symbol)
        assert address is not None
        return self.layout.constant(np.uint64(address))

    def _find_local(self, symbol: Symbol) -> int | None:
        """Offset of a variable of the function's own in local memory; None for other symbols."""
        found = (one.offset_bytes for one in self.function.locals if one.name == symbol.name)
        offset = next(found, None)
        return None if offset is None else offset + symbol.offset_bytes

    def _find_address(self, symbol: Symbol) -> int | None:
        address = self.machine.find_symbol(symbol.name, self.function)
        return None if address is None else (address + symbol.offset_bytes) % (1 << 64)

    def _local_address(self, offset_bytes: int) -> int:
        slot = self.layout.add(U64)

        def step(fragment: Fragment) -> None:
            fragment.registers[slot] = np.uint64(fragment.frame.local_base + offset_bytes)

        self.steps.append(step)
        return slot

    def _read_special(self, operand: SpecialRegister) -> int:
        found = find_special(operand, self.machine.geometry)
        if found is None:
            raise UnsupportedInstruction(f"special register %{operand.name}")
        if not callable(found):
            return self.layout.constant(found)
        read = found
        slot = self.layout.add(U32)

        def step(fragment: Fragment) -> None:
            fragment.registers[slot] = read(fragment)

        self.steps.append(step)
        return slot

    def _negated(self, source: int) -> int:
        slot = self.layout.add(BOOL)

        def step(fragment: Fragment) -> None:
            fragment.registers[slot] = np.logical_not(fragment.registers[source])

        self.steps.append(step)
        return slot

    def _fit(self, source: int, kind: ScalarType) -> int:
        """A slot whose width is that of the type: wider registers give their low bits, narrower ones are extended by zeros."""
        have = self.layout.dtypes[source]
        want = kind.storage_dtype
        if have.itemsize == want.itemsize:
            return source
        narrow, unsigned = np.dtype(f"u{have.itemsize}"), np.dtype(f"u{want.itemsize}")
        slot = self.layout.add(unsigned)

        def step(fragment: Fragment) -> None:
            value = fragment.registers[source]
            value = value if value.dtype is narrow else value.view(narrow)
            fragment.registers[slot] = value.astype(unsigned)

        self.steps.append(step)
        return slot


def read_as(fragment: Fragment, slot: int, dtype: "np.dtype[Any]") -> Value:
    """A register in a dtype of its width."""
    value = fragment.registers[slot]
    return value if value.dtype is dtype else value.view(dtype)


_COLUMNS = ("laneid", "warpid", "smid", "lanemask_eq")
# They count the warp instructions executed so far, and run faster when warps wait for them; ``%globaltimer`` takes them for nanoseconds
CLOCKS = frozenset({"clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi"})
_ZEROS = ("gridid", "cluster_ctarank", "is_explicit_cluster")
# Halves of the address of a cooperative launch's workspace, by their first bit. Source: the headers of cooperative groups in CUDA 13.0
# (``details/driver_abi.h``), which read it there.
WORKSPACE_REGISTERS = {"envreg1": 32, "envreg2": 0}
_LANE_MASKS: dict[str, Callable[[Value], Value]] = {
    "lanemask_lt": lambda bit: bit - np.uint32(1),
    "lanemask_le": lambda bit: (bit - np.uint32(1)) | bit,
    "lanemask_gt": lambda bit: ~((bit - np.uint32(1)) | bit),
    "lanemask_ge": lambda bit: ~(bit - np.uint32(1)),
}


# Reads a special register that is not the same for all lanes: uint32
Reader = Callable[[Fragment], Value]


def find_special(operand: SpecialRegister, geometry: Geometry) -> "Value | Reader | None":
    """A uniform value, or a reader of lane values; None for unknown registers and clocks.

    A cluster is one block; ``%smid`` deals the blocks out to the multiprocessors one after the other. Source: PTX ISA 9.0, section 10.
    """
    name, axis = operand.name, operand.component
    if axis == "w":
        return np.uint32(0)
    if name in ("tid", "ctaid"):
        return lambda fragment: fragment.warps.column(f"{name}.{axis}")
    if name in _COLUMNS:
        return lambda fragment: fragment.warps.column(name)
    if name in _LANE_MASKS:
        change = _LANE_MASKS[name]
        return lambda fragment: change(fragment.warps.column("lanemask_eq"))
    return _find_uniform(name, axis, geometry)


def _find_uniform(name: str, axis: str, geometry: Geometry) -> "Value | Reader | None":
    place = "xyz".index(axis) if axis in tuple("xyz") else -1
    values = {
        "ntid": geometry.block[place],
        "nctaid": geometry.grid[place],
        "clusterid": None,
        "nclusterid": geometry.grid[place],
        "cluster_ctaid": 0,
        "cluster_nctaid": 1,
        "cluster_nctarank": 1,
        "nwarpid": 64,
        "nsmid": geometry.sm_count,
        "dynamic_smem_size": geometry.dynamic_shared_bytes,
        "total_smem_size": geometry.shared_bytes,
        "aggr_smem_size": geometry.shared_bytes,
        "reserved_smem_offset_begin": geometry.shared_bytes,
        "reserved_smem_offset_end": geometry.shared_bytes,
        "reserved_smem_offset_cap": 0,
        "reserved_smem_offset_0": geometry.shared_bytes,
        "reserved_smem_offset_1": geometry.shared_bytes,
    }
    if name in WORKSPACE_REGISTERS:
        return np.uint32((geometry.workspace >> WORKSPACE_REGISTERS[name]) & 0xFFFF_FFFF)
    if name in _ZEROS or name.startswith(("envreg", "pm")):
        return np.uint64(0) if name in ("gridid",) or name.endswith("_64") else np.uint32(0)
    if name == "clusterid":
        return lambda fragment: fragment.warps.column(f"ctaid.{axis}")
    found = values.get(name)
    return None if found is None else np.uint32(found)
