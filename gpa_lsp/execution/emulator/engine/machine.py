"""The launch at work, shared by all parts of an emulation: :class:`Machine`."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, PtxVariable
from gpa_lsp.code.ptx.static_instructions import StaticInstruction
from gpa_lsp.code.symbolic_accesses.find import find_pointer_loads, find_pointers
from gpa_lsp.execution.emulator.engine.arena import Arena, Region
from gpa_lsp.execution.emulator.engine.device_runtime import DeviceRuntime
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.fragments import BoundFunction
from gpa_lsp.execution.emulator.engine.geometry import Geometry
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.launches.model import TextureInput
from gpa_lsp.execution.launches.pointer_uses import find_loaded_parameters

# Address of the module's first function; the others follow every 16 bytes. They are no memory.
FUNCTION_BASE = 0x1_0000
_FUNCTION_STEP = 16
_POINTER_BYTES = 8
_MOST_PRINTED = 64 << 10  # Characters of printed text that are kept by default


def find_function_addresses(module: PtxModule) -> dict[str, int]:
    """Addresses of functions by name; they lead to no memory."""
    return {name: FUNCTION_BASE + _FUNCTION_STEP * place for place, name in enumerate(module.functions)}


class Machine:
    """One launch that is being emulated.

    Attributes:
        module: the PTX.
        kernel: the kernel.
        geometry: of the launch.
        meter: of what is used.
        faults: what went wrong.
        arena: global memory.
        tracer: None when nothing is recorded.
        instructions: all static instructions.
        first_statics: number of the first instruction of each function, by name.
        block_bases: number of the first basic block of each function, by name.
        guarded: lanes that executed each guarded instruction, by static number.
        textures: by handle.
        most_printed: characters that are kept.
        is_printing_cut: some of what the kernel printed was not kept.
        device_runtime: takes what kernels launch themselves; None where that is not emulated.
        bind: binds a function by its name.
        read_slot: gives what a register of the kernel holds for a lane, by its slot; None while no lane is at work.
    """

    def __init__(
        self,
        *,
        module: PtxModule,
        kernel: PtxFunction,
        geometry: Geometry,
        meter: Meter,
        faults: FaultLog,
        arena: Arena,
        tracer: Tracer | None,
        instructions: tuple[StaticInstruction, ...],
        shared_offsets: dict[str, int],
    ) -> None:
        self.module = module
        self.kernel = kernel
        self.geometry = geometry
        self.meter = meter
        self.faults = faults
        self.arena = arena
        arena.list_pointers = self.list_pointers
        self.tracer = tracer
        self.instructions = instructions
        self.first_statics: dict[str, int] = {}
        for instruction in instructions:
            self.first_statics.setdefault(instruction.function, instruction.index)
        self.block_bases: dict[str, int] = {}
        self.guarded = [0] * len(instructions)
        self.parameters: Region | None = None
        self.variables: dict[str, Region] = {}
        self.textures: dict[int, Texture] = {}
        self.texture_references: dict[str, int] = {}
        self.heap: Any = None
        self.device_runtime: DeviceRuntime | None = None
        self._shared_offsets = shared_offsets
        self._function_addresses = find_function_addresses(module)
        self._functions_by_address = {address: name for name, address in self._function_addresses.items()}
        self._parameter_offsets = {one.name: one.offset_bytes for one in kernel.parameters}
        self._bound: dict[str, BoundFunction] = {}
        self.bind: Callable[[Machine, str], BoundFunction] | None = None
        self.read_slot: Callable[[int, int], int] | None = None
        self._printed: list[str] = []
        self._printed_characters = 0
        self.most_printed = _MOST_PRINTED
        self.is_printing_cut = False

    def find_symbol(self, name: str, function: PtxFunction) -> int | None:
        """The address of a variable or function in its own space; None for undeclared names."""
        if name in self._shared_offsets:
            return self._shared_offsets[name]
        if name in self.variables:
            return self.variables[name].base
        if function.is_entry and name in self._parameter_offsets and self.parameters is not None:
            return self.parameters.base + self._parameter_offsets[name]
        if name in self.texture_references:
            return self.texture_references[name]
        return self._function_addresses.get(name)

    def list_pointers(self, instruction: int, lane: int) -> list[tuple[int, int | None]]:
        """Addresses that a lane may add its index to in one of the kernel's accesses, by its static number; none where that is not known.

        With each, the static number of the instruction that loaded it, if one did. Kernels that a kernel launches have other parameters:
        there nothing is known.
        """
        first = self.first_statics[self.kernel.name]
        number = instruction - first
        if self.device_runtime is not None or not 0 <= number < len(self.kernel.instructions):
            return []
        found: list[tuple[int, int | None]] = []
        for one in find_pointers(self.module, self.kernel.name).get(number, ()):
            if isinstance(one, str):
                found.extend([(self.variables[one].base, None)] if one in self.variables else [])
            else:
                found.append((self._read_parameter(one), None))
        return found or [
            (self._read_origin(slot, load, lane), None if load is None else first + load)
            for slot, load in find_pointer_loads(self.kernel, number).items()
        ]

    def _read_origin(self, slot: int, load: int | None, lane: int) -> int:
        """Address that a lane has in a register, which an instruction has loaded; 0 where it is not known."""
        place = None if load is None else find_loaded_parameters(self.kernel).get(load)
        if place is not None and place[0] in self._parameter_offsets:  # others are those of calls
            return self._read_parameter(self._parameter_offsets[place[0]] + place[1])
        return 0 if self.read_slot is None else self.read_slot(slot, lane)

    def _read_parameter(self, offset: int) -> int:
        """Eight bytes of the parameters."""
        if self.parameters is None:
            return 0
        return int.from_bytes(
            self.arena.bytes_of(self.parameters)[offset : offset + _POINTER_BYTES].tobytes(), "little"
        )

    def is_kernel_parameter(self, name: str) -> bool:
        """Whether a name is a parameter of the kernel."""
        return name in self._parameter_offsets

    def follow_heap(self) -> None:
        """Forbid accesses to what device code has freed; called after each change of the heap."""
        if self.heap is not None and self.heap.freed:
            self.arena.exclude(self.heap.region, self.heap.list_free(), self.heap.freed)

    def get_function(self, name: str) -> BoundFunction:
        """A function, bound once."""
        found = self._bound.get(name)
        if found is None:
            assert self.bind is not None
            found = self._bound[name] = self.bind(self, name)
        return found

    @property
    def bound_functions(self) -> tuple[BoundFunction, ...]:
        """All functions bound so far."""
        return tuple(self._bound.values())

    def list_called(self) -> tuple[str, ...]:
        """Functions with a body that the kernel may call, by name."""
        functions = self.module.functions
        return tuple(
            name for name in self.first_statics if functions[name].instructions and not functions[name].is_entry
        )

    def find_function(self, address: int) -> str | None:
        """The name of the function at an address; None when there is none."""
        return self._functions_by_address.get(address)

    def print_text(self, text: str) -> bool:
        """Keep what the kernel printed; False when no more is kept."""
        room = self.most_printed - self._printed_characters
        self._printed.append(text[:room])
        self._printed_characters += len(text[:room])
        self.is_printing_cut = self.is_printing_cut or len(text) > room
        return not self.is_printing_cut

    def restart_printing(self, most: int) -> None:
        """Forget the text printed, and keep at most ``most`` characters from now on."""
        self.most_printed = most
        self._printed, self._printed_characters, self.is_printing_cut = [], 0, False

    @property
    def printed(self) -> str:
        """All text printed."""
        return "".join(self._printed)


def lay_out_shared(module: PtxModule, functions: list[PtxFunction], kernel: PtxFunction) -> tuple[dict[str, int], int]:
    """Offsets of all shared variables a kernel's functions name, and the bytes of the static ones.

    The parser has laid out those of the kernel; static ones that only other functions declare come behind them.
    """
    offsets = {one.name: one.offset_bytes for one in kernel.shared}
    end = max((one.offset_bytes + one.size_bytes for one in kernel.shared if not one.is_extern), default=0)
    later: list[PtxVariable] = []
    for function in functions:
        for one in function.shared:
            if one.name in offsets:
                continue
            if one.is_extern:
                later.append(one)
                continue
            end = -(-end // one.alignment_bytes) * one.alignment_bytes
            offsets[one.name] = end
            end += one.size_bytes
    dynamic = [one for one in kernel.shared if one.is_extern] + later
    alignment = max((one.alignment_bytes for one in dynamic), default=1)
    if dynamic:
        end = -(-end // alignment) * alignment
        offsets |= {one.name: end for one in dynamic}
    return offsets, end


TEXTURE_HANDLE_BASE = 0x5_0000_0000  # Handle of the first texture; the others follow every 64. They are no addresses.
TEXTURE_HANDLE_STEP = 64


class Texture(Struct, frozen=True, kw_only=True):
    """A texture with its memory."""

    source: TextureInput  # as described
    region: Region  # of its texels in global memory
