"""PTX instructions → operations of the core: :class:`Lowering`."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from gpa_lsp.code.ptx.blocks import PtxBlocks
from gpa_lsp.code.ptx.model import (
    Address,
    Immediate,
    Operand,
    PtxFunction,
    PtxInstruction,
    Register,
    SpecialRegister,
    Symbol,
)
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.code.ptx.static_instructions import AccessKind
from gpa_lsp.code.symbolic_accesses.find import list_loaded_pointers
from gpa_lsp.execution.emulator.compiled.lane_operations import OPERATIONS, LaneFunction, list_steps
from gpa_lsp.execution.emulator.compiled.model import LANES, LOAD, MOST_FUNCTIONS, NOT_ZERO, STORE
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction
from gpa_lsp.execution.emulator.engine.functions import find_space
from gpa_lsp.execution.emulator.engine.geometry import Geometry, Value
from gpa_lsp.execution.emulator.engine.layout import Lives, Piece, make_constant
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.operands import find_special
from gpa_lsp.execution.emulator.model import FaultKind
from gpa_lsp.execution.emulator.semantics.model import LONGEST_VECTOR, Meaning, flatten


class Report(Struct, frozen=True):
    """Report of lanes where a number is 0 that must not be."""

    kind: FaultKind  # what it is
    describe: "str | Callable[[int], str]"  # its message, or gives it for a number of 64 bits that lanes have


# Fields of :data:`~gpa_lsp.execution.emulator.compiled.model.OPERATION`; those left out have its defaults
Operation = dict[str, Any]


class NotLowered(Exception):  # noqa: N818  (it becomes a finding)
    """An instruction, or a form of one, that is not emulated; its text is the reason, if any."""


class Constants:
    """Values that all warps share, of the kernel and of all functions."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._places: dict[bytes, int] = {}
        self._bytes = 0

    def keep(self, raw: bytes) -> int:
        """The place of some bytes, complemented."""
        found = self._places.get(raw)
        if found is None:
            found = self._places[raw] = ~self._bytes
            padded = raw.ljust(-(-len(raw) // _ALIGNMENT) * _ALIGNMENT, b"\0")
            self._parts.append(padded)
            self._bytes += len(padded)
        return found

    def build(self) -> npt.NDArray[np.uint8]:
        """All of them, as the core reads them."""
        return np.frombuffer(b"".join(self._parts).ljust(_SCRATCH_BYTES, b"\0"), np.uint8)


class FrameLayout:
    """Places of values in a frame.

    Registers that live within one basic block share their places with others; those that may be read before they are written hold zeros.

    Args:
        function: the kernel, or a function that it calls.
        bound: the same, bound.
        blocks: of the function.
        lives: how long its registers live.
        constants: where values go that never change.

    Attributes:
        columns: special registers that stay the same for each lane, name and axis → place.
        frame_bytes: of a frame.
        pieces: slots of parts of parameters, by variable.
        zeroed: bytes of it that are zeros before a warp begins; what is behind them is written before it is read.
    """

    def __init__(
        self, function: PtxFunction, bound: BoundFunction, blocks: PtxBlocks, lives: Lives, constants: Constants
    ) -> None:
        self._bound = bound
        self._constants = constants
        self.pieces = bound.pieces
        self._places: dict[int, int] = {}
        self.columns: dict[tuple[str, str], int] = {}
        self._scratch = 0
        self.frame_bytes = _SCRATCH * _SCRATCH_BYTES
        registers = len(function.registers)
        wide = {slot for slots in blocks.live_in for slot in slots}
        for segment in bound.segments:
            wide.update(slot for slot in segment.live_in if slot >= registers)
        wide.add(registers)  # the carry flag
        self._local = _find_local(blocks, lives) - wide
        self._pointers = list_loaded_pointers(function)
        wide.update(slot for slots in (*lives.written, *lives.dead_after) for slot in slots if slot not in self._local)
        for slot in sorted(wide):
            self._places[slot] = self._take(bound.dtypes[slot].itemsize)
        self.zeroed = slice(_SCRATCH * _SCRATCH_BYTES, self.frame_bytes)
        self._place_local(blocks, lives)

    def _take(self, itemsize: int) -> int:
        place = self.frame_bytes
        self.frame_bytes += -(-itemsize * LANES // _ALIGNMENT) * _ALIGNMENT
        return place

    def _place_local(self, blocks: PtxBlocks, lives: Lives) -> None:
        """Place registers that live in one block, reusing the places of dead ones, but those of loaded pointers: a fault names what they lead to."""
        free: dict[int, list[int]] = {}
        for first, last in zip(blocks.first, blocks.last, strict=True):
            ends = {slot: index for index in range(first, last + 1) for slot in lives.dead_after[index]}
            for index in range(first, last + 1):
                for slot in lives.written[index]:
                    if slot not in self._places:
                        size = self._bound.dtypes[slot].itemsize
                        self._places[slot] = free[size].pop() if free.get(size) else self._take(size)
                for slot in lives.dead_after[index]:
                    if slot in self._local and ends[slot] == index and slot not in self._pointers:
                        free.setdefault(self._bound.dtypes[slot].itemsize, []).append(self._places[slot])

    def find(self, slot: int) -> int | None:
        """The place of a slot; None where it has none beyond its instruction."""
        return self._places.get(slot)

    def constant(self, value: Value) -> int:
        """The place of a constant, complemented."""
        return self._constants.keep(value.tobytes() * LANES)

    def numbers(self, values: npt.NDArray[np.uint64]) -> int:
        """The place of one number for each lane, complemented."""
        return self._constants.keep(values.astype(np.uint64).tobytes())

    def table(self, numbers: list[int]) -> int:
        """The place of numbers of 32 bits among the constants, complemented."""
        return self._constants.keep(np.array(numbers, np.int32).tobytes())

    def column(self, name: str, axis: str) -> int:
        """The place of a special register that stays the same for each lane: uint32."""
        key = (name, axis)
        if key not in self.columns:
            self.columns[key] = self._take(4)
        return self.columns[key]

    def begin_scratch(self) -> None:
        """All scratch is free again."""
        self._scratch = 0

    def scratch(self) -> int | None:
        """A place for one instruction; None where none is left."""
        if self._scratch == _SCRATCH:
            return None
        self._scratch += 1
        return (self._scratch - 1) * _SCRATCH_BYTES

    def dtype(self, slot: int) -> "np.dtype[Any]":
        """Type of the values in a slot."""
        return self._bound.dtypes[slot]


class Lowering:
    """Gathers the operations of one instruction.

    Args:
        machine: the launch.
        function: the kernel, or a function that it calls.
        frames: where values lie.
        root: where those of the kernel lie, among them special registers.
    """

    def __init__(self, machine: Machine, function: PtxFunction, frames: FrameLayout, root: FrameLayout) -> None:
        self.machine = machine
        self.frames = frames
        self._root = root
        self._carry = len(function.registers)
        self._function = function
        self.first_static = machine.first_statics[function.name]
        self._operations: list[Operation] = []
        self._after: list[Operation] = []
        self.instruction = function.instructions[0]
        self._guard = self.instruction.guard

    def begin(self, instruction: PtxInstruction) -> None:
        """Turn to an instruction."""
        self.instruction = instruction
        self._guard = instruction.guard
        self._operations, self._after = [], []
        self.frames.begin_scratch()

    def begin_call(self, static: int) -> None:
        """Turn to the call with a static number, without its guard: only lanes that call come here."""
        self.begin(self._function.instructions[static - self.first_static])
        self._guard = None

    def finish(self) -> list[Operation]:
        """The operations of the instruction; the first guarded one counts the lanes whose guard holds."""
        operations = [*self._operations, *self._after]
        for one in [one for one in operations if one.get("counts")][1:]:
            one["counts"] = 0
        return operations

    @property
    def is_kernel(self) -> bool:
        """Whether the instructions are the kernel's own."""
        return self._function.is_entry

    @property
    def static(self) -> int:
        """Static number of the instruction."""
        return self.first_static + self.instruction.index

    def emit(self, code: int | LaneFunction, *, is_guarded: bool = True, **fields: Any) -> None:
        """Add an operation.

        Raises:
            NotLowered: there are too many functions of lanes.
        """
        self._operations.append(self._build(code, is_guarded=is_guarded, **fields))

    def number(self, function: LaneFunction) -> int:
        """The number of a function of lanes.

        Raises:
            NotLowered: there are too many.
        """
        found = OPERATIONS.number(function)
        if found == MOST_FUNCTIONS:
            raise NotLowered
        return found

    def _build(self, code: int | LaneFunction, *, is_guarded: bool, **fields: Any) -> Operation:
        operation: Operation = {"instruction": self.static}
        if isinstance(code, LaneFunction):
            operation["exchanges"] = int(code.exchanges)
            code = self.number(code)
        guard = self._guard
        if guard is not None and is_guarded:
            operation |= {"guard": self._place(guard.slot), "is_negated": guard.is_negated, "counts": 1}
        return {**operation, "code": code, **fields}

    def compute(self, bits: int, value: str, *, exchanges: bool = False, **operands: int) -> int:
        """The place of what an expression gives, for this instruction.

        Raises:
            NotLowered: there is no room for it.
        """
        place = self.take_scratch()
        function = LaneFunction(bits, value, "", exchanges)
        self.emit(function, is_guarded=False, result=place, result_bytes=bits // 8, **operands)
        return place

    def describe_access(self, operand: Operand, kind: ScalarType, elements: int) -> dict[str, Any]:
        """Fields that loads, stores and atomic operations share: address, space and size.

        Raises:
            NotLowered: such an address is not known.
        """
        if not isinstance(operand, Address):
            raise NotLowered("address of this kind")
        if elements > LONGEST_VECTOR:
            raise NotLowered("vector of this length")
        words = self.instruction.suffixes
        offset, width = 0, 8
        if isinstance(operand.base, Register):
            width = self.width(operand.base)
            if width not in _ADDRESS_BYTES:
                raise NotLowered("address in a register of this width")
            place, offset = self.place_exactly(operand.base, width), operand.offset_bytes
            if not -_MOST_OFFSET <= offset < _MOST_OFFSET:
                raise NotLowered
        elif isinstance(operand.base, Symbol):
            place = self.read(
                Symbol(operand.base.name, operand.base.offset_bytes + operand.offset_bytes), ScalarType.U64
            )
        else:
            place = self.read(Immediate(operand.offset_bytes % (1 << 64)), ScalarType.U64)
        return {
            "a": place,
            "literal": offset,
            "address_bytes": width,
            "space": int(find_space(words)),
            "elements": elements,
            "element_bytes": kind.natural_dtype.itemsize,
            "is_strong": not _STRONG.isdisjoint(words),
        }

    def load(self, fields: dict[str, Any], places: list[int], **more: Any) -> None:
        """Load elements to places as wide as they are."""
        self.emit(LOAD, **{"register_bytes": fields["element_bytes"], **fields, "places": pad(places), **more})

    def store(self, fields: dict[str, Any], places: list[int], **more: Any) -> None:
        """Store elements."""
        fields = {"register_bytes": fields["element_bytes"], **fields, "kind": int(AccessKind.STORE)}
        self.emit(STORE, **{**fields, "places": pad(places), **more})

    def check(self, place: int, report: Report, *, element_bytes: int = 1, of: int = 0) -> None:
        """Report lanes where the number at a place is 0.

        Args:
            of: place of the numbers that the message depends on.
        """
        self.emit(NOT_ZERO, a=place, element_bytes=element_bytes, b=of, report=report)

    def narrow(self, holds: int) -> dict[str, int]:
        """The guard of lanes that hold a predicate, by its place, and the instruction's guard."""
        guard = self._guard
        if guard is not None:
            own = "u8(b(u8) == 0)" if guard.is_negated else "b(u8)"
            holds = self.compute(8, f"a(u8) & {own}", a=holds, b=self._place(guard.slot))
        return {"guard": holds}

    def apply(self, meaning: Meaning) -> None:
        """Add the operations of a meaning: its steps, then its results, which go to registers of any width.

        Raises:
            NotLowered: an operand is of another kind, or there are too many.
        """
        operands = flatten(self.instruction.sources)
        results = flatten(self.instruction.destinations)
        if len(operands) != len(meaning.sources) or len(results) != len(meaning.results):
            raise NotLowered
        steps = list_steps(meaning)
        used = {one for step in steps for one in step.operands}
        places = {
            name: self.read(operand, kind)
            for name, operand, kind in zip("abcde", operands, meaning.sources, strict=False)
            if name in used
        }
        if "k" in used or meaning.carry:
            places["k"] = self._place(self._carry)
        if meaning.divides and not (
            isinstance(operands[1], Immediate) and make_constant(operands[1], meaning.sources[1])
        ):
            report = Report(FaultKind.DIVISION_BY_ZERO, "the divisor is 0; the quotient is not defined")
            self.check(places["b"], report, element_bytes=meaning.sources[1].bytes)
        held = []
        for number, step in enumerate(steps):
            place, is_result = -1, step.result[0] == "r"
            if is_result:
                at = int(step.result[1:])
                place = self._write(results[at], meaning.results[at])
                # What is read later is not written before
                if place >= 0 and any(places[one] == place for rest in steps[number + 1 :] for one in rest.operands):
                    held.append((step.function.bits, self.take_scratch(), place))
                    place = held[-1][1]
            else:
                place = places[step.result] = self.take_scratch()
            other = step.other_result
            fields = {to: places[one] for to, one in zip("abc", step.operands, strict=False)}
            self.emit(
                step.function,
                is_guarded=is_result,
                result=place,
                result_bytes=step.function.bits // 8,
                other_result=places["k"] if other == "k" else self._write(results[1], ScalarType.PRED) if other else -1,
                **fields,
            )
        for bits, scratch, place in held:
            self._extend(resize(bits // 8, bits // 8), scratch, place)

    def _extend(self, function: LaneFunction, scratch: int, place: int) -> None:
        """Move a result to its register at last."""
        bytes_ = function.bits // 8
        self._after.append(self._build(function, is_guarded=True, a=scratch, result=place, result_bytes=bytes_))

    def _write(self, operand: Operand | None, kind: ScalarType) -> int:
        if operand is None:
            return -1
        if not isinstance(operand, Register) or operand.selector:
            raise NotLowered("result of this kind")
        have, size = self.frames.dtype(operand.slot).itemsize, kind.natural_dtype.itemsize
        if have == size:
            return self._place(operand.slot)
        if kind is ScalarType.PRED:
            raise NotLowered("result of this kind")
        scratch = self.take_scratch()
        self._extend(resize(size, have, is_signed=kind.is_signed), scratch, self._place(operand.slot))
        return scratch

    def read(self, operand: Operand | None, kind: ScalarType) -> int:
        """The place of a source, of the width of a type.

        Raises:
            NotLowered: it is of another kind.
        """
        match operand:
            case Register():
                if operand.selector:
                    raise NotLowered(f"register part .{operand.selector}")
                place = self._place(operand.slot)
                if operand.is_negated:
                    negated = self.take_scratch()
                    self.emit(
                        LaneFunction(8, "u8(a(u8) == 0)"), is_guarded=False, a=place, result=negated, result_bytes=1
                    )
                    place = negated
                return self._fit(place, self.frames.dtype(operand.slot).itemsize, kind)
            case Immediate():
                return self.frames.constant(make_constant(operand, kind))
            case SpecialRegister():
                return self._read_special(operand, kind)
            case Symbol():
                return self._read_address(operand, kind)
        raise NotLowered("operand of this kind")

    def _read_address(self, symbol: Symbol, kind: ScalarType) -> int:
        """The place of the address of a symbol in its own space."""
        for variable in self._function.locals:
            if variable.name != symbol.name:
                continue
            offset = variable.offset_bytes + symbol.offset_bytes
            if self._function.is_entry:
                return self._fit_constant(np.uint64(offset), kind)
            place = self.take_scratch()
            self.emit(_LOCAL, is_guarded=False, literal=offset, result=place, result_bytes=8)
            return self._fit(place, 8, kind)
        address = self.machine.find_symbol(symbol.name, self._function)
        if address is None:
            raise NotLowered(f"symbol {symbol.name}")
        return self._fit_constant(np.uint64((address + symbol.offset_bytes) % (1 << 64)), kind)

    def find_piece(self, symbol: Symbol, offset_bytes: int, size_bytes: int) -> int:
        """The place of a part of a parameter of a function."""
        return self._place(self.frames.pieces[symbol.name][symbol.offset_bytes + offset_bytes, size_bytes])

    def move(self, source: int, result: int, size_bytes: int) -> None:
        """Copy a value."""
        self.emit(resize(size_bytes, size_bytes), a=source, result=result, result_bytes=size_bytes)

    def give(self, source: int, result: Operand | None, kind: ScalarType) -> None:
        """Put a value of a type into a register.

        Raises:
            NotLowered: it is none.
        """
        size = kind.natural_dtype.itemsize
        place = self._write(result, kind)
        self.emit(resize(size, size), is_guarded=not self._after, a=source, result=place, result_bytes=size)

    def assemble(self, parts: dict[Piece, int], piece: Piece) -> int:
        """The place of a part of a parameter, put together from the parts that were written; bytes never written are zero.

        Args:
            parts: their places.
        """
        offset, size = piece
        if piece in parts:
            return parts[piece]
        whole, moved = self.take_scratch(), self.take_scratch()
        self.move(self.frames.constant(np.uint64(0)), whole, 8)
        for (start, length), place in parts.items():
            if start + length <= offset or start >= offset + size:
                continue
            if length < 8:
                self.emit(resize(length, 8), a=place, result=moved, result_bytes=8)
            distance = 8 * (start - offset)
            shifted = f"b(u64) {'<<' if distance >= 0 else '>>'} {abs(distance)}"
            taken = moved if length < 8 else place
            self.emit(LaneFunction(64, f"a(u64) | {shifted}"), a=whole, b=taken, result=whole, result_bytes=8)
        if size == 8:
            return whole
        self.emit(resize(8, size), a=whole, result=moved, result_bytes=size)
        return moved

    def width(self, register: Register) -> int:
        """Bytes of a register."""
        return self.frames.dtype(register.slot).itemsize

    def place_exactly(self, operand: Operand | None, size: int) -> int:
        """The place of a register of so many bytes.

        Raises:
            NotLowered: it is none.
        """
        if not isinstance(operand, Register) or operand.selector or operand.is_negated or self.width(operand) != size:
            raise NotLowered("register of this kind")
        return self._place(operand.slot)

    def _read_special(self, operand: SpecialRegister, kind: ScalarType) -> int:
        clock = CLOCKS.get(operand.name)
        if clock is not None:
            place = self.take_scratch()
            self.emit(clock, is_guarded=False, result=place, result_bytes=clock.bits // 8)
            return self._fit(place, clock.bits // 8, kind)
        found = find_special(operand, self.machine.geometry)
        if found is None:
            raise NotLowered(f"special register %{operand.name}")
        if not callable(found):
            return self._fit_constant(found, kind)
        column = self._root.column(operand.name, operand.component)
        if self.frames is self._root:
            return self._fit(column, 4, kind)
        place = self.take_scratch()
        self.emit(_COLUMN, is_guarded=False, literal=column, result=place, result_bytes=4)
        return self._fit(place, 4, kind)

    def _fit_constant(self, value: Any, kind: ScalarType) -> int:
        want = np.dtype(f"u{kind.storage_dtype.itemsize}")
        return self.frames.constant(value.astype(want))

    def _fit(self, place: int, have: int, kind: ScalarType) -> int:
        want = kind.storage_dtype.itemsize
        if have == want:
            return place
        fitted = self.take_scratch()
        self.emit(resize(have, want), is_guarded=False, a=place, result=fitted, result_bytes=want)
        return fitted

    def _place(self, slot: int) -> int:
        place = self.frames.find(slot)
        if place is None:
            raise NotLowered
        return place

    def take_scratch(self) -> int:
        """A place for this instruction.

        Raises:
            NotLowered: none is left.
        """
        place = self.frames.scratch()
        if place is None:
            raise NotLowered("too many operands")
        return place


def reserve_columns(root: FrameLayout, functions: Iterable[PtxFunction], geometry: Geometry) -> None:
    """Give places to the special registers that functions read, products of warp groups as well."""
    for function in functions:
        for instruction in function.instructions:
            for operand in flatten(instruction.sources):
                if isinstance(operand, SpecialRegister) and callable(find_special(operand, geometry)):
                    root.column(operand.name, operand.component)
            if instruction.opcode == "wgmma":
                root.column(RANKS.name, RANKS.component)
            if instruction.opcode in ("getctarank", "isspacep"):
                root.column(OWN_RANK.name, OWN_RANK.component)


def pad(places: list[int]) -> list[int]:
    """Places of an operation, none for those left out."""
    return places + [-1] * (2 * LONGEST_VECTOR - len(places))


def resize(size_bytes: int, result_bytes: int, *, is_signed: bool = False) -> LaneFunction:
    """Integers as ones of another size, cut off or extended, or the same."""
    value, bits = f"a({'s' if is_signed else 'u'}{8 * size_bytes})", 8 * result_bytes
    return LaneFunction(bits, value if size_bytes == result_bytes else f"u{bits}({value})")


_ADDRESS_BYTES = (4, 8)
_MOST_OFFSET = 1 << 62
_STRONG = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
RANKS = SpecialRegister("warpid", "")
OWN_RANK = SpecialRegister("cluster_ctarank", "")
_CLOCK = LaneFunction(64, "all_lanes(read_clock(machine))", "", True)
_CLOCK_LOW = LaneFunction(32, "all_lanes(u32(read_clock(machine)))", "", True)
_CLOCK_HIGH = LaneFunction(32, "all_lanes(u32(read_clock(machine) >> 32))", "", True)
CLOCKS = {
    "clock64": _CLOCK, "clock": _CLOCK_LOW, "clock_hi": _CLOCK_HIGH,
    "globaltimer": _CLOCK, "globaltimer_lo": _CLOCK_LOW, "globaltimer_hi": _CLOCK_HIGH,
}  # fmt: skip
# Special registers, which lie among the kernel's, and addresses of the memory of a call of its own
_COLUMN = LaneFunction(32, "lanes(view(frame - machine.base + literal, u32))", "", True)
_LOCAL = LaneFunction(64, "all_lanes(u64(machine.segments[machine.segment].local_base + literal))", "", True)
_SCRATCH = 16
_SCRATCH_BYTES = 8 * LANES
_ALIGNMENT = 32


def _find_local(blocks: PtxBlocks, lives: Lives) -> set[int]:
    """Slots that only instructions of one block use."""
    owners: dict[int, int] = {}
    for block, (first, last) in enumerate(zip(blocks.first, blocks.last, strict=True)):
        for index in range(first, last + 1):
            for slot in (*lives.written[index], *lives.dead_after[index]):
                owners[slot] = block if owners.get(slot, block) == block else -1
    return {slot for slot, block in owners.items() if block >= 0}
