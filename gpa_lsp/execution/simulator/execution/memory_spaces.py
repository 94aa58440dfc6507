"""The memories of a launch, :class:`MemorySpaces`, its constant banks and special registers; and how they are laid out: :func:`lay_out_launch`."""

from collections.abc import Mapping
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.cubin import Symbols
from gpa_lsp.code.binary.driver_constants import DriverConstants, find_driver_constants
from gpa_lsp.code.binary.elf import ElfImage, read_elf, walk_records
from gpa_lsp.code.binary.model import INSTRUCTION_BYTES, Cubin
from gpa_lsp.code.ptx.model import PtxModule, Space
from gpa_lsp.execution.accesses.l2_traffic import place_block
from gpa_lsp.execution.emulator.engine.arena import fill_variable, find_room, make_zeros, view_bytes
from gpa_lsp.execution.emulator.engine.geometry import WARP_LANES
from gpa_lsp.execution.emulator.semantics.model import LOCAL_WINDOW, SHARED_WINDOW
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.launches.model import FIRST_ADDRESS, MOST_SPAN_BYTES, LaunchInputs
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.records import ColumnRecord

GLOBAL_BASE = FIRST_ADDRESS  # Virtual address of the first byte of global memory
WORD_STRIDE = 4 * WARP_LANES  # Bytes of local memory from a word of a lane to its next


class MemorySpace(IntEnum):
    """Memories that accesses go to."""

    GLOBAL = 0
    SHARED = 1
    LOCAL = 2


GENERIC = -1  # In place of a space: the addresses say which
DISTRIBUTED = -2  # Shared memory of the cluster's other blocks, which no address leads to here
FIRST_BANK = 3  # Number of the space of constant bank 0


Marks = npt.NDArray[np.bool_]


class FlatMemory:
    """Bytes, of which some have no known value.

    What lies outside has none; writes to it are dropped, as a launch description may give an array as smaller than it was.

    Args:
        data: uint8[n], n a multiple of 16.

    Attributes:
        data: the bytes.
        unknown: bool, by word, whether it has no known value; None while all have one.
    """

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data = data
        self.unknown: Marks | None = None

    def make_marks(self) -> None:
        """Create marks, none of them set."""
        self.unknown = np.zeros(len(self.data) // 4 + 1, np.bool_)


class MemorySpaces:
    """Global memory, shared memory of each block, local memory of each lane.

    Args:
        data: global memory, from :data:`GLOBAL_BASE` on.
        blocks: int64[w], number of each warp's block among those that run.
        shared_bytes: of a block, what lies below its first variable included.
        local_bytes: of a lane.
        banks: constants.

    Attributes:
        shared_bytes: of a block, a multiple of 16.
        local_bytes: of a lane, as well.
        shared_starts: int64[w], where the shared memory of each warp's block begins.
        memories: by the number of their space.
    """

    def __init__(
        self,
        data: npt.NDArray[np.uint8],
        blocks: npt.NDArray[np.int64],
        shared_bytes: int,
        local_bytes: int,
        banks: "ConstantBanks",
    ) -> None:
        self.shared_bytes = -(-max(shared_bytes, 16) // 16) * 16
        self.local_bytes = -(-max(local_bytes, 16) // 16) * 16
        count = int(blocks.max(initial=-1)) + 1
        self.memories = {
            int(MemorySpace.GLOBAL): FlatMemory(data),
            int(MemorySpace.SHARED): FlatMemory(np.zeros(count * self.shared_bytes, np.uint8)),
            int(MemorySpace.LOCAL): FlatMemory(np.zeros(len(blocks) * self.local_bytes * WARP_LANES, np.uint8)),
            **banks.list_memories(),
        }
        self.shared_starts = blocks * self.shared_bytes


class UnknownConstantError(LookupError):
    """A constant without a value: the driver's own, or one beyond its bank."""


class Bank(ColumnRecord, frozen=True, kw_only=True):
    """One bank."""

    data: npt.NDArray[np.uint8]  # uint8[n]
    known: npt.NDArray[np.bool_]  # bool[n], bytes that have a value


class ConstantBanks:
    """Banks by number.

    Args:
        banks: those that there are.
    """

    def __init__(self, banks: Mapping[int, Bank]) -> None:
        self._banks = dict(banks)

    def read_word(self, bank: int, offset: int) -> int:
        """Four bytes.

        Raises:
            UnknownConstantError: they have no value.
        """
        found = self._banks.get(bank)
        if found is None or offset + 4 > len(found.data) or not found.known[offset : offset + 4].all():
            raise UnknownConstantError(f"the constant c[0x{bank:x}][0x{offset:x}] has no value that is known")
        return int.from_bytes(found.data[offset : offset + 4].tobytes(), "little")

    def list_memories(self) -> dict[int, FlatMemory]:
        """Banks by the number of their space."""
        found = {}
        for number, bank in self._banks.items():
            memory = found[FIRST_BANK + number] = FlatMemory(np.ascontiguousarray(bank.data))
            memory.make_marks()
            assert memory.unknown is not None
            memory.unknown[np.flatnonzero(~bank.known) >> 2] = True
        return found


class SpecialRegisters:
    """The special registers of w warps.

    Args:
        grid: blocks of the launch.
        block: threads of a block.
        numbers: int64[w], linear index of each warp's block.
        warps: int64[w], of each within its block.
        shared_bytes: of a block.

    Attributes:
        numbers: of those whose values are known, by name; others depend on the machine and the moment.
        values: uint32[number, w, 32].
    """

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        numbers: npt.NDArray[np.int64],
        warps: npt.NDArray[np.int64],
        shared_bytes: int,
    ) -> None:
        threads = warps[:, None] * WARP_LANES + np.arange(WARP_LANES)
        lanes = np.broadcast_to(np.arange(WARP_LANES), threads.shape)
        tid, of_block = place_block(block, threads), place_block(grid, numbers[:, None])
        found: dict[str, npt.NDArray[np.int64]] = {"SR_LANEID": lanes, "SRZ": lanes * 0}
        for axis, thread, number in zip("XYZ", tid, of_block, strict=True):
            found[f"SR_TID.{axis}"] = thread
            found[f"SR_CTAID.{axis}"] = np.broadcast_to(number, threads.shape)
        found["SR_TID"] = tid[0] | tid[1] << 16 | tid[2] << 26
        one = np.ones_like(lanes, dtype=np.int64)
        found |= {
            "SR_EQMASK": one << lanes,
            "SR_LTMASK": (one << lanes) - 1,
            "SR_LEMASK": (one << lanes + 1) - 1,
            "SR_GTMASK": 0xFFFFFFFF & ~((one << lanes + 1) - 1),
            "SR_GEMASK": 0xFFFFFFFF & ~((one << lanes) - 1),
            "SR_SWINHI": one * (SHARED_WINDOW >> 32),
            "SR_LWINHI": one * (LOCAL_WINDOW >> 32),
            "SR_CgaCtaId": lanes * 0,
            "SR_CgaSize": one,
            "SR_SMEMSZ": one * shared_bytes,
            "SR_LMEMHIOFF": lanes * 0,  # which the stack may not go below
        }
        self.numbers = {name: number for number, name in enumerate(found)}
        self.values = np.stack([*found.values()]).astype(np.uint32)


_PARAMETER_BANK = 0x0A  # EIATTR_PARAM_CBANK: u32 symbol, u16 offset, u16 size of the parameters in bank 0
_INITIALISED = ".nv.global.init"
_BANK_BYTES = 1 << 16
_WORD_BYTES = 8
_DRIVER_BYTES = 0x400
_PROGRAM_BANK = 3
_CODE = ".text."
_IMMEDIATES = {
    0x38: 0,
    0x39: 32,
}  # Relocations of immediates (R_CUDA_ABS32_LO_32, R_CUDA_ABS32_HI_32), and how far below the word is


class LaunchMemory(ColumnRecord, frozen=True, kw_only=True):
    """Memory and constants of a launch's code."""

    # uint8[n], global memory from :data:`~gpa_lsp.execution.simulator.execution.memory_spaces.GLOBAL_BASE` on
    data: npt.NDArray[np.uint8]
    banks: ConstantBanks  # constants
    arrays: dict[str, int]  # name → address of the arguments' arrays
    variables: dict[str, int]  # name → address of module variables in global memory
    extents: npt.NDArray[np.int64]  # int64[k, 2], addresses at which they begin and end, by ascending beginnings
    # (function, offset of an instruction) → the immediate that is put there when the code is loaded: half of a variable's address
    immediates: dict[tuple[str, int], int]


def lay_out_launch(
    module: PtxModule, kernel: str, launch: LaunchDescription, inputs: LaunchInputs, cubin: Cubin, *, local_bytes: int
) -> LaunchMemory:
    """Lay out arrays and variables as the emulator does, and fill the constant banks."""
    end = _find_given_end(module, inputs)
    starts: list[int] = []
    for buffer in inputs.buffers:
        given = buffer.base_address
        starts.append(end if given is None else given - GLOBAL_BASE)
        end += find_room(buffer.data.nbytes) if given is None else 0
    variables: dict[str, int] = {}
    for name, one in module.variables.items():
        if one.space in (Space.GLOBAL, Space.CONST) and not one.is_texture:
            variables[name] = inputs.variable_addresses.get(name, GLOBAL_BASE + end)
            end += 0 if name in inputs.variable_addresses else find_room(max(one.size_bytes, 1))
    elf = read_elf(cubin.image, path=cubin.path)
    constants = end  # the program's, as generic addresses see them
    section = elf.find_section(f".nv.constant{_PROGRAM_BANK}")
    end += 0 if section is None else find_room(len(elf.section_bytes(section)))
    data = make_zeros(max(end, find_room(0)))
    for start, buffer in zip(starts, inputs.buffers, strict=True):
        if not buffer.is_zero:
            data[start : start + buffer.data.nbytes] = view_bytes(buffer.data)
    for name, address in variables.items():
        one, start = module.variables[name], address - GLOBAL_BASE
        fill_variable(data[start : start + one.size_bytes], one, variables.get, inputs.variables.get(name))
    for (name, offset), word in _read_function_numbers(elf, module).items():
        if name in variables and name not in inputs.variables:
            start = variables[name] - GLOBAL_BASE + offset
            data[start : start + _WORD_BYTES] = np.frombuffer(word, np.uint8)
    parameters = bytearray(inputs.parameters)
    for slot in inputs.pointers:
        pointer = GLOBAL_BASE + starts[slot.buffer] + slot.offset_bytes
        parameters[slot.parameter_offset_bytes : slot.parameter_offset_bytes + 8] = pointer.to_bytes(8, "little")
    banks = _read_banks(elf, kernel, data, module, variables)
    places = find_driver_constants(cubin.sm)
    first = _find_parameters(elf, kernel) or places.parameters
    words = _list_driver_words(places, launch, local_bytes, GLOBAL_BASE + constants)
    banks[0] = _fill_driver_bank(words, first, bytes(parameters))
    program = banks[_PROGRAM_BANK].data if _PROGRAM_BANK in banks else data[:0]
    data[constants : constants + len(program)] = program
    arrays = {one.name: GLOBAL_BASE + start for one, start in zip(inputs.buffers, starts, strict=True)}
    pieces = [(GLOBAL_BASE + start, one.data.nbytes) for one, start in zip(inputs.buffers, starts, strict=True)]
    pieces += [(address, module.variables[name].size_bytes) for name, address in variables.items()]
    pieces.append((GLOBAL_BASE + constants, len(program)))
    extents = np.array(sorted((start, start + size) for start, size in pieces), np.int64).reshape(-1, 2)
    return LaunchMemory(
        data=data,
        banks=ConstantBanks(banks),
        arrays=arrays,
        variables=variables,
        extents=extents,
        immediates=_list_immediates(elf, variables),
    )


def _find_given_end(module: PtxModule, inputs: LaunchInputs) -> int:
    """End of the arrays and variables with given addresses, in bytes; 0 where there are none.

    Raises:
        InputError: there is no such address.
    """
    given = [(one.base_address, one.data.nbytes) for one in inputs.buffers if one.base_address is not None]
    given += [(base, module.variables[name].size_bytes) for name, base in inputs.variable_addresses.items()]
    if not given:
        return 0
    end = max(base + size for base, size in given) - GLOBAL_BASE
    if min(base for base, _ in given) < GLOBAL_BASE or end > MOST_SPAN_BYTES:
        raise InputError("an array cannot lie where it is described to lie", remedy="record the launch again")
    return find_room(end)


def _read_function_numbers(elf: ElfImage, module: PtxModule) -> dict[tuple[str, int], bytes]:
    """(variable, offset) → word that stands for a function there: the assembler numbers functions whose addresses are taken."""
    wanted = {
        name: [offset for offset, symbol, _ in one.initial_symbols if symbol not in module.variables]
        for name, one in module.variables.items()
    }
    if not any(wanted.values()):
        return {}
    symbols = Symbols.of(elf)
    objects = symbols.group_by_section()
    found: dict[tuple[str, int], bytes] = {}
    for index, section in enumerate(elf.section_names):
        if not section.startswith(_INITIALISED):
            continue
        content = bytes(elf.section_bytes(index))
        for number in objects.get(index, ()):
            name, start = symbols.name(number), int(symbols.table[number]["value"])
            for offset in wanted.get(name, ()):
                word = content[start + offset : start + offset + _WORD_BYTES]
                if len(word) == _WORD_BYTES and offset + _WORD_BYTES <= module.variables[name].size_bytes:
                    found[name, offset] = word
    return found


def _list_driver_words(
    places: DriverConstants, launch: LaunchDescription, local_bytes: int, constants: int
) -> dict[int, int]:
    """Place in bank 0 → the driver's 32-bit word there.

    Args:
        constants: generic address of the program's constants.
    """
    found = {places.stack: local_bytes, places.dynamic_shared: launch.shared_bytes}
    for axis in range(3):
        found |= {places.block + 4 * axis: launch.block[axis], places.grid + 4 * axis: launch.grid[axis]}
    windows = (
        (places.shared_window, SHARED_WINDOW),
        (places.local_window, LOCAL_WINDOW),
        (places.constant_window, constants),
        *((zero, 0) for zero in places.zeros),
    )
    for place, address in windows:
        if place is not None:
            found |= {place: address & 0xFFFFFFFF, place + 4: address >> 32}
    return found


def _fill_driver_bank(words: dict[int, int], first: int, parameters: bytes) -> Bank:
    """Bank 0: the driver's words, and the parameters from a place on."""
    size = min(max(first + len(parameters), _DRIVER_BYTES), _BANK_BYTES)
    data, known = np.zeros(size, np.uint8), np.zeros(size, np.bool_)
    pieces = [(place, word.to_bytes(4, "little")) for place, word in words.items()]
    for place, given in (*pieces, (first, parameters[: size - first])):
        data[place : place + len(given)] = np.frombuffer(given, np.uint8)
        known[place : place + len(given)] = True
    return Bank(data=data, known=known)


def _find_parameters(elf: ElfImage, kernel: str) -> int | None:
    """Offset of the parameters in bank 0, as the image says; None where it does not."""
    section = elf.find_section(f".nv.info.{kernel}")
    if section is None:
        return None
    for attribute, _, payload in walk_records(elf.section_bytes(section), path=elf.path, place=elf.place(section)):
        if attribute == _PARAMETER_BANK and len(payload) >= 8:
            return int.from_bytes(payload[4:6], "little")
    return None


def _read_banks(
    elf: ElfImage, kernel: str, data: npt.NDArray[np.uint8], module: PtxModule, variables: dict[str, int]
) -> dict[int, Bank]:
    """The banks of the image: the compiler's constants (2), the program's (3), addresses of variables (4)."""
    found: dict[int, Bank] = {}
    symbols = Symbols.of(elf)
    objects = symbols.group_by_section()
    for index, name in enumerate(elf.section_names):
        head, _, owner = name.removeprefix(".nv.constant").partition(".")
        if not name.startswith(".nv.constant") or not head.isdigit() or head == "0" or owner not in ("", kernel):
            continue
        content = np.frombuffer(elf.section_bytes(index), np.uint8).copy()
        known = np.ones(len(content), np.bool_)
        for symbol in objects.get(index, ()):
            variable = module.variables.get(symbols.name(symbol))
            if variable is not None and variable.space == Space.CONST and variable.name in variables:
                source = variables[variable.name] - GLOBAL_BASE
                _overlay(content, int(symbols.table[symbol]["value"]), data[source : source + variable.size_bytes])
        for row in elf.read_relocations(index):
            _relocate(content, known, symbols, row, variables)
        found[int(head)] = Bank(data=content, known=known)
    return found


def _list_immediates(elf: ElfImage, variables: dict[str, int]) -> dict[tuple[str, int], int]:
    symbols = Symbols.of(elf)
    found = {}
    for index, section in enumerate(elf.section_names):
        if not section.startswith(_CODE):
            continue
        for row in elf.read_relocations(index):
            shift, number = _IMMEDIATES.get(int(row["type"])), int(row["symbol"])
            name = symbols.name(number) if shift is not None and number < len(symbols.table) else ""
            if name in variables and shift is not None:
                place = int(row["offset"]) // INSTRUCTION_BYTES * INSTRUCTION_BYTES
                word = variables[name] + int(row["addend"]) >> shift & 0xFFFFFFFF
                found[section.removeprefix(_CODE), place] = word
    return found


def _overlay(content: npt.NDArray[np.uint8], start: int, given: npt.NDArray[np.uint8]) -> None:
    """Copy a variable that the launch gives into constant memory."""
    size = max(min(len(given), len(content) - start), 0)
    content[start : start + size] = given[:size]


def _relocate(
    content: npt.NDArray[np.uint8],
    known: npt.NDArray[np.bool_],
    symbols: Symbols,
    row: np.void,
    variables: dict[str, int],
) -> None:
    """Fill in the address of a variable; other addresses are unknown."""
    offset, number = int(row["offset"]), int(row["symbol"])
    if offset + 8 > len(content) or number >= len(symbols.table):
        return
    name = symbols.name(number)
    if name not in variables:
        known[offset : offset + 8] = False
        return
    added = int(row["addend"]) or int.from_bytes(content[offset : offset + 8].tobytes(), "little")
    address = (variables[name] + added) % (1 << 64)
    content[offset : offset + 8] = np.frombuffer(address.to_bytes(8, "little"), np.uint8)
