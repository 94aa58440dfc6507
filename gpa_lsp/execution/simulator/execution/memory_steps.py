"""Loads, stores, atomic operations, and copies to shared memory: :func:`build_memory_step`."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.execution.simulator.execution.memory_spaces import (
    ConstantBanks,
    FlatMemory,
    MemorySpace,
    MemorySpaces,
    Places,
    find_generic_space,
)
from gpa_lsp.execution.simulator.execution.operand_values import (
    RZ,
    MachineInstruction,
    UnreadOperandError,
    is_predicate,
    read_bits,
    read_predicate,
    write_predicate,
    write_register,
)
from gpa_lsp.execution.simulator.execution.warp_state import (
    WARP_LANES,
    Lanes,
    WarpState,
    list_register_resources,
    pack_lanes,
    unpack_lanes,
)
from gpa_lsp.foundation.records import ColumnRecord

Marks = npt.NDArray[np.bool_]
Bits = npt.NDArray[np.uint32]
# Executes, and gives the lanes, uint32[k], for which what it loaded is not known; None for none
MemoryStep = Callable[[WarpState, Lanes, MemorySpaces], Bits | None]

_ADDRESS = re.compile(r"(?:desc\[UR?\w+\])?\[(?P<terms>[^\]]*)\]")
_TERM = re.compile(r"(?P<file>U?R)(?P<number>\d+|Z)(?P<suffix>(?:\.\w+)*)")
SPACES = {
    "LDG": MemorySpace.GLOBAL, "STG": MemorySpace.GLOBAL, "LDS": MemorySpace.SHARED, "STS": MemorySpace.SHARED, "LDL": MemorySpace.LOCAL,
    "STL": MemorySpace.LOCAL, "LD": None, "ST": None, "ATOM": None, "ATOMG": MemorySpace.GLOBAL, "ATOMS": MemorySpace.SHARED,
    "RED": MemorySpace.GLOBAL, "REDG": MemorySpace.GLOBAL,
}  # fmt: skip
SIZES = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
AddressReader = Callable[[WarpState, Lanes], npt.NDArray[np.int64]]


class UnknownAddressError(Exception):
    """An address depends on what has no known value."""


def build_memory_step(
    instruction: MachineInstruction, banks: ConstantBanks, *, is_asked: bool = True, is_stored: bool = True
) -> MemoryStep | None:
    """What an instruction does to memory; None where it does nothing to it.

    Raises:
        UnreadOperandError: it is an access of a form that is not known.
    """
    opcode = instruction.opcode
    if opcode in ("LDG", "LDS", "LDL", "LD"):
        return _build_load(instruction, SPACES[opcode], is_asked=is_asked)
    if opcode in ("STG", "STS", "STL", "ST"):
        return _build_store(instruction, SPACES[opcode], is_stored=is_stored)
    if opcode in ("ATOM", "ATOMG", "ATOMS", "RED", "REDG"):
        return _build_atomic(instruction, SPACES[opcode], is_asked=is_asked or is_stored)
    if opcode in ("LDC", "ULDC", "LDCU"):
        return _build_constant_load(instruction, banks)
    if opcode == "LDGSTS":
        return _build_copy(instruction)
    if opcode == "LDSM":
        return _build_matrix_load(instruction)
    return None


def list_address_resources(instruction: MachineInstruction) -> list[int] | None:
    """Numbers of the registers that the addresses of an instruction are made of; None where they cannot be told from others."""
    found: list[int] = []
    for operand in instruction.operands:
        if not operand.endswith("]"):
            continue
        try:
            bracket = operand[operand.rindex("[") :]
            found += read_address(bracket, is_wide=instruction.has("E"))[1].tolist()
        except (UnreadOperandError, ValueError):
            return None
    return found


def find_width(instruction: MachineInstruction) -> int:
    """Bytes of each lane."""
    return next((SIZES[one] for one in instruction.modifiers if one in SIZES), 4)


def read_address(operand: str, *, is_wide: bool) -> tuple[AddressReader, npt.NDArray[np.int64]]:
    """The sum in brackets, and the registers it is made of."""
    terms, offset = list_terms(operand, is_wide=is_wide)
    resources: list[int] = []
    for file, number, is_pair, _ in terms:
        kind = 0 if file == "R" else 256
        resources += [kind + one for one in range(number, number + 1 + is_pair) if one < RZ]
    return _make_address(terms, offset), np.array(resources, dtype=np.int64)


Term = tuple[str, int, bool, int]  # A register's file and number, whether it is a pair, and what it is multiplied by


def list_terms(operand: str, *, is_wide: bool) -> tuple[list[Term], int]:
    """What is added up in brackets: registers, and the rest."""
    found = _ADDRESS.fullmatch(operand)
    if found is None:
        raise UnreadOperandError(operand)
    terms: list[Term] = []
    offset = 0
    for text in found["terms"].split("+"):
        term = _TERM.fullmatch(text)
        if term is None:
            offset += _read_offset(text, operand)
            continue
        number = RZ if term["number"] == "Z" else int(term["number"])
        suffixes = term["suffix"].split(".")[1:]
        scale = next((int(one[1:]) for one in suffixes if one.startswith("X")), 1)
        pair = "64" in suffixes or (is_wide and not {"U32", "32"} & set(suffixes))
        terms.append((term["file"], number, pair, scale))
    return terms, offset


def _read_offset(text: str, operand: str) -> int:
    try:
        return int(text, 16)
    except ValueError:
        raise UnreadOperandError(operand) from None


def _make_address(terms: list[Term], offset: int) -> AddressReader:
    def read(state: WarpState, lanes: Lanes) -> npt.NDArray[np.int64]:
        total = np.full((len(lanes.mask), WARP_LANES), offset, np.int64)
        for file, number, is_pair, scale in terms:
            if number == RZ:
                continue
            column = state.registers if file == "R" else state.uniform
            total += column[number][lanes.warps].astype(np.int64) * scale
            if is_pair:
                total += column[number + 1][lanes.warps].astype(np.int64) << 32
        return total

    return read


def _narrow(addresses: npt.NDArray[np.int64], space: MemorySpace | None) -> npt.NDArray[np.int64]:
    """Addresses of 32 bits wrap."""
    return addresses if space in (None, MemorySpace.GLOBAL) else addresses & 0xFFFFFFFF


def _check_address(state: WarpState, lanes: Lanes, resources: npt.NDArray[np.int64]) -> None:
    if state.has_unknown and state.find_unknown(resources, lanes).any():
        raise UnknownAddressError("its address depends on a value that is not known")


def find_operand(instruction: MachineInstruction) -> int:
    """Place of the operand that is an address; -1 without one."""
    return next((place for place, one in enumerate(instruction.operands) if one.endswith("]")), -1)


class _Access:
    """The address of an instruction, and where it goes."""

    def __init__(self, instruction: MachineInstruction, space: MemorySpace | None, place: int, width: int) -> None:
        is_wide = space in (None, MemorySpace.GLOBAL) and instruction.has("E")
        self._read, self._resources = read_address(instruction.operands[place], is_wide=is_wide)
        self._space, self.width = space, width

    def find(
        self, state: WarpState, lanes: Lanes, spaces: MemorySpaces
    ) -> tuple[MemorySpace, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Space, addresses, and places in the space's bytes."""
        _check_address(state, lanes, self._resources)
        addresses = _narrow(self._read(state, lanes), self._space)
        space = self._space
        if space is None:
            space, addresses = find_generic_space(addresses, lanes.mask)
        return space, addresses, spaces.place(space, lanes, addresses, self.width)


def _build_load(instruction: MachineInstruction, space: MemorySpace | None, *, is_asked: bool) -> MemoryStep:
    width = find_width(instruction)
    place = find_operand(instruction)
    access = _Access(instruction, space, place, width)
    target = next(one for one in instruction.operands[:place] if not is_predicate(one))
    writes = [write_register(target, word) for word in range(max(width // 4, 1))]
    sign = next((one for one in instruction.modifiers if one in ("S8", "S16")), "")

    def load(state: WarpState, lanes: Lanes, spaces: MemorySpaces) -> Bits | None:
        found, addresses, places = access.find(state, lanes, spaces)
        spaces.note(found, lanes, addresses, places, width=width, is_load=True)
        if not is_asked:
            return None
        memory, stride = spaces.memory(found), spaces.word_stride(found)
        active = places[lanes.mask]
        unknown: Bits | None = None
        for word, write in enumerate(writes):
            values = np.zeros(lanes.mask.shape, np.uint32)
            here = active + word * stride
            values[lanes.mask] = memory.read(here, min(width, 4))
            if sign:
                kind = np.int8 if sign == "S8" else np.int16
                values = values.astype(kind).astype(np.int32).view(np.uint32)
            write(state, lanes, values)
            unknown = _join_unknown(unknown, memory.find_unknown(here), lanes)
        return unknown

    return load


def _join_unknown(before: Bits | None, found: Marks | None, lanes: Lanes) -> Bits | None:
    if found is None or not found.any():
        return before
    spread = np.zeros(lanes.mask.shape, np.bool_)
    spread[lanes.mask] = found
    bits = pack_lanes(spread)
    return bits if before is None else before | bits


def _build_store(instruction: MachineInstruction, space: MemorySpace | None, *, is_stored: bool) -> MemoryStep:
    width = find_width(instruction)
    place = find_operand(instruction)
    access = _Access(instruction, space, place, width)
    source = instruction.operands[place + 1]
    reads = _read_words(source, max(width // 4, 1))
    resources = list_sources(source, max(width // 4, 1))

    def write(state: WarpState, lanes: Lanes, spaces: MemorySpaces) -> None:
        found, addresses, places = access.find(state, lanes, spaces)
        spaces.note(found, lanes, addresses, places, width=width, is_load=False)
        if not is_stored:
            return
        memory, stride = spaces.memory(found), spaces.word_stride(found)
        active = places[lanes.mask]
        unknown = _find_unknown_lanes(state, lanes, resources)
        for word, read in enumerate(reads):
            values = np.broadcast_to(read(state, lanes), lanes.mask.shape)[lanes.mask]
            memory.write(active + word * stride, values, min(width, 4))
            memory.mark(active + word * stride, unknown)

    return write


def _find_unknown_lanes(state: WarpState, lanes: Lanes, resources: npt.NDArray[np.int64]) -> Marks:
    if not state.has_unknown or not len(resources):
        return np.zeros(int(lanes.mask.sum()), np.bool_)
    spread: Marks = unpack_lanes(state.find_unknown(resources, lanes))[lanes.mask]
    return spread


_REGISTER = re.compile(r"(U?R)(\d+|Z)(?:\.\w+)*")


def _read_words(operand: str, count: int) -> list[Callable[[WarpState, Lanes], npt.NDArray[np.uint32]]]:
    found = _REGISTER.fullmatch(operand)
    if found is None:
        raise UnreadOperandError(operand)
    empty = ConstantBanks({})
    if found[2] == "Z":
        return [read_bits(f"{found[1]}Z", empty)] * count
    return [read_bits(f"{found[1]}{int(found[2]) + word}", empty) for word in range(count)]


def list_sources(operand: str, count: int) -> npt.NDArray[np.int64]:
    """Numbers of the registers that are stored."""
    found = _REGISTER.fullmatch(operand)
    if found is None or found[2] == "Z":
        return np.zeros(0, np.int64)
    numbers = list_register_resources(int(found[2]), count)
    return numbers if found[1] == "R" else numbers + 256


def _build_constant_load(instruction: MachineInstruction, banks: ConstantBanks) -> MemoryStep:
    """LDC and its uniform forms: from a bank, at an address that may have a register."""
    width = find_width(instruction)
    found = re.fullmatch(r"c\[0x([0-9a-f]+)\](\[.*\])", instruction.operands[1])
    if found is None or instruction.has("IL") or instruction.has("ISL"):
        raise UnreadOperandError(instruction.text)
    bank = int(found[1], 16)
    read, resources = read_address(found[2], is_wide=False)
    writes = [write_register(instruction.operands[0], word) for word in range(max(width // 4, 1))]
    sign = next((one for one in instruction.modifiers if one in ("S8", "S16")), "")
    is_uniform = instruction.operands[0].startswith("U")

    def load(state: WarpState, lanes: Lanes, spaces: MemorySpaces) -> Bits | None:
        _check_address(state, lanes, resources)
        offsets = read(state, lanes) & 0xFFFFFFFF
        spaces.note_constants(lanes, np.broadcast_to(offsets, lanes.mask.shape))
        data, known = banks.gather(bank, offsets, width)
        size = min(width, 4)
        for word, write in enumerate(writes):
            part = np.ascontiguousarray(data[..., word * size : (word + 1) * size]).view(
                f"<{'i' if sign else 'u'}{size}"
            )[..., 0]
            values = part.astype(np.int32 if sign else np.uint32).view(np.uint32)
            write(state, lanes, values[:, :1] if is_uniform else values)
        return pack_lanes(~known & lanes.mask)

    return load


def _build_copy(instruction: MachineInstruction) -> MemoryStep:
    """LDGSTS: from global to shared memory, zeros where its last predicate does not hold."""
    width = find_width(instruction)
    places = [place for place, one in enumerate(instruction.operands) if one.endswith("]")]
    if len(places) != 2:
        raise UnreadOperandError(instruction.text)
    to = _Access(instruction, MemorySpace.SHARED, places[0], width)
    source = _Access(instruction, MemorySpace.GLOBAL, places[1], width)
    wanted = next((read_predicate(one) for one in instruction.operands[places[1] + 1 :] if is_predicate(one)), None)

    def copy(state: WarpState, lanes: Lanes, spaces: MemorySpaces) -> None:
        fetched = lanes if wanted is None else lanes.restrict(np.broadcast_to(wanted(state, lanes), lanes.mask.shape))
        _, _, written = to.find(state, lanes, spaces)
        _, addresses, read = source.find(state, fetched, spaces)
        spaces.note(MemorySpace.GLOBAL, fetched, addresses, read, width=width, is_load=True)
        memory, shared = spaces.memory(MemorySpace.GLOBAL), spaces.memory(MemorySpace.SHARED)
        for word in range(max(width // 4, 1)):
            values = np.zeros(lanes.mask.shape, np.uint32)
            values[fetched.mask] = memory.read(read[fetched.mask] + 4 * word, 4)
            here = written[lanes.mask] + 4 * word
            shared.write(here, values[lanes.mask], 4)
            marks = memory.find_unknown(read[lanes.mask] + 4 * word) if wanted is None else None
            shared.mark(here, np.zeros(len(here), np.bool_) if marks is None else marks)

    return copy


def _build_matrix_load(instruction: MachineInstruction) -> MemoryStep:
    """LDSM: rows of 16 bytes, whose addresses lanes hold for others. What it loads is not followed further."""
    place = find_operand(instruction)
    access = _Access(instruction, MemorySpace.SHARED, place, 16)
    count = next((int(one) for one in instruction.modifiers if one in ("1", "2", "4")), 1)
    last = min(8 * count, WARP_LANES)

    def load(state: WarpState, lanes: Lanes, spaces: MemorySpaces) -> Bits:
        holders = np.zeros(lanes.mask.shape, np.bool_)
        holders[:, :last] = lanes.mask[:, :last]
        chosen = Lanes(lanes.warps, holders)
        _, addresses, places = access.find(state, chosen, spaces)
        spaces.note(MemorySpace.SHARED, chosen, addresses, places, width=16, is_load=True)
        return lanes.bits

    return load


def _build_atomic(instruction: MachineInstruction, space: MemorySpace | None, *, is_asked: bool) -> MemoryStep:

    place = find_operand(instruction)
    update = find_update(instruction)
    width = update.width
    access = _Access(instruction, space, place, width)
    target = next((one for one in instruction.operands[:place] if not is_predicate(one)), "RZ")
    words = max(width // 4, 1)
    writes = [write_register(target, word) for word in range(words)]
    sources = instruction.operands[place + 1 :]
    reads = [_read_words(one, words) for one in sources if not is_predicate(one)]
    resources = [list_sources(one, words) for one in sources if not is_predicate(one)]
    listed = np.concatenate([*resources, np.zeros(0, np.int64)])

    succeeds = None
    if update.tells_success and target == "RZ" and is_predicate(instruction.operands[0]):
        succeeds = write_predicate(instruction.operands[0])

    def execute(state: WarpState, lanes: Lanes, spaces: MemorySpaces) -> Bits | None:
        found, addresses, places = access.find(state, lanes, spaces)
        spaces.note(found, lanes, addresses, places, width=width, is_load=False, is_atomic=True)
        if not is_asked:
            return None
        memory = spaces.memory(found)
        active = places[lanes.mask]
        given = [[np.broadcast_to(read(state, lanes), lanes.mask.shape)[lanes.mask] for read in one] for one in reads]
        before = memory.find_unknown(active)
        unknown = _find_unknown_lanes(state, lanes, listed)
        old = update.apply(memory, active, given)
        if succeeds is not None:
            swapped = np.zeros(lanes.mask.shape, np.bool_)
            swapped[lanes.mask] = old[0] != 0
            succeeds(state, lanes, swapped)
        for word, write in enumerate(writes):
            values = np.zeros(lanes.mask.shape, np.uint32)
            values[lanes.mask] = old[word]
            write(state, lanes, values)
            memory.mark(active + 4 * word, unknown if before is None else unknown | before)
        return _join_unknown(None, before, lanes)

    return execute


Words = Sequence[npt.NDArray[np.uint32]]

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "ADD": lambda old, new: old + new,
    "MIN": min,
    "MAX": max,
    "AND": lambda old, new: old & new,
    "OR": lambda old, new: old | new,
    "XOR": lambda old, new: old ^ new,
    "EXCH": lambda old, new: new,
    "INC": lambda old, new: 0 if old >= new else old + 1,
    "DEC": lambda old, new: new if old == 0 or old > new else old - 1,
}


class AtomicUpdate(ColumnRecord, frozen=True, kw_only=True):
    """One kind of atomic operation."""

    dtype: "np.dtype[Any]"  # of the word in memory
    function: Callable[..., Any] | None  # old and given value → new value; None for compare and swap
    counts: bool = False  # it counts lanes and is given nothing (``POPC.INC``)
    tells_success: bool = False  # it gives back whether it swapped, not the old value (``CAST``)

    @property
    def width(self) -> int:
        """Bytes in memory."""
        return int(self.dtype.itemsize)

    def apply(self, memory: FlatMemory, places: Places, given: Sequence[Words]) -> list[npt.NDArray[np.uint32]]:
        """Do it lane after lane, and give the old words back, lower ones first."""
        count = len(places)
        words = max(self.width // 4, 1)
        olds = [np.zeros(count, np.uint32) for _ in range(words)]
        columns = [self._join(one) for one in given]
        for lane in range(count):
            here = places[lane : lane + 1]
            before = [memory.read(here + 4 * word, min(self.width, 4)) for word in range(words)]
            for word in range(words):
                olds[word][lane] = before[word][0]
            old = self._join(before)[0]
            new = self._find_new(old, [column[lane] for column in columns])
            if self.tells_success:
                for word in range(words):
                    olds[word][lane] = word == 0 and old == columns[0][lane]
            raw = np.array([new]).astype(self.dtype).view(np.uint32 if self.width >= 4 else self.dtype)
            for word in range(words):
                memory.write(here + 4 * word, raw[word : word + 1].astype(np.uint32), min(self.width, 4))
        return olds

    def _join(self, words: Words) -> npt.NDArray[Any]:
        if self.width == 8:
            joined = words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
            return joined.view(self.dtype)
        return words[0].view(self.dtype)

    def _find_new(self, old: Any, given: Sequence[Any]) -> Any:
        if self.function is None:
            return given[1] if old == given[0] else old
        if self.counts:
            return old + self.dtype.type(1)
        return self.function(old, given[0])


def find_update(instruction: MachineInstruction) -> AtomicUpdate:
    """The operation an instruction names.

    Raises:
        UnreadOperandError: one that is not known.
    """
    modifiers = instruction.modifiers
    is_wide = any(one in ("64", "U64", "S64", "F64") for one in modifiers)
    if any(one.startswith(("F16", "BF16", "128", "PACKED")) for one in modifiers):
        raise UnreadOperandError(instruction.text)
    is_float, is_signed = {"F32", "F64"} & {*modifiers}, {"S32", "S64"} & {*modifiers}
    dtype: np.dtype[Any] = np.dtype(f"<{'f' if is_float else 'i' if is_signed else 'u'}{8 if is_wide else 4}")
    if "POPC" in modifiers:
        return AtomicUpdate(dtype=dtype, function=_FUNCTIONS["ADD"], counts=True)
    if any(one in ("CAS", "CAST") for one in modifiers):
        return AtomicUpdate(dtype=dtype, function=None, tells_success="CAST" in modifiers)
    name = next((one for one in modifiers if one in _FUNCTIONS), None)
    if name is None:
        raise UnreadOperandError(instruction.text)
    return AtomicUpdate(dtype=dtype, function=_FUNCTIONS[name])
