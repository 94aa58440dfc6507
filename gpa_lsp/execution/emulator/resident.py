"""Device memory that outlives a launch, and kernels that run in it one launch after the other: :class:`ResidentMemory`, :class:`ResidentKernel`."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.code.ptx.static_instructions import list_reachable, list_static_instructions
from gpa_lsp.execution.emulator.emulate import Runner, check_launch
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE, Arena, Marks, Region, fill_variable, find_room
from gpa_lsp.execution.emulator.engine.device_runtime import PREFIXES, DeviceRuntime
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.functions import bind_function
from gpa_lsp.execution.emulator.engine.geometry import Geometry
from gpa_lsp.execution.emulator.engine.launching import HEAP_NAME, WORKSPACE, WORKSPACE_BYTES, Heap
from gpa_lsp.execution.emulator.engine.machine import (
    TEXTURE_HANDLE_BASE,
    TEXTURE_HANDLE_STEP,
    Machine,
    Texture,
    find_function_addresses,
    lay_out_shared,
)
from gpa_lsp.execution.emulator.engine.meter import Meter
from gpa_lsp.execution.emulator.model import Budget, DeviceError, Fault, FaultKind
from gpa_lsp.execution.launches.launch import LaunchDescription, find_cluster
from gpa_lsp.execution.launches.model import TextureInput

_LARGEST_PARAMETERS = 32 << 10
# Characters of one launch: more than a GPU keeps by default (1 MiB), little enough for a pipe
_MOST_PRINTED = 16 << 20
# For parameters of launches by device code that have not begun; memory is taken as it is touched
_LAUNCHES_BYTES = 64 << 20
# frees that faults are explained by
_MOST_FREED = 1024
_HEAP_BYTES = 8 << 20  # what CUDA gives device code without being asked


class LaunchCost(Struct, frozen=True, kw_only=True):
    """Result and cost of one launch."""

    blocks: int  # that ran to their end
    warp_instructions: int  # executed
    seconds: float  # it took
    printed: str  # what the kernel printed
    is_printing_cut: bool = False  # it printed more than is kept
    end: str = ""  # why it did not run to its end, a sentence; empty where it did
    trap: str = ""  # what a thread stopped it for, a sentence; empty where none did
    device_error: DeviceError | None = None  # what a GPU would have ended it with; None where it would not have

    @property
    def is_complete(self) -> bool:
        """Whether every block ran to its end."""
        return not self.end


class ResidentMemory:
    """Memory of a device: the emulator's own part, and a program's allocations.

    The first part is the emulator's own: parameters, the heap of device code and the variables of modules. The program's allocations follow it.

    Args:
        data: all of it, from :data:`~gpa_lsp.execution.emulator.engine.arena.ARENA_BASE` on, zeros; others may write to it, too.
        own_bytes: of the first part.

    Attributes:
        own_end: address behind the first part.
        textures: by handle.
        heap: of device code.
        parameters: where those of a launch go.
        freed: the last allocations that the program freed, newest first, without names.
        marks: of the memory that launches have touched; None, as at first, where they are not kept.
    """

    def __init__(self, data: npt.NDArray[np.uint8], own_bytes: int) -> None:
        self.data = data
        self.own_end = ARENA_BASE + own_bytes
        self._next = ARENA_BASE
        self._own: list[Region] = []
        self._allocated: dict[int, Region] = {}
        self._bases: list[int] = []
        self.freed: deque[Region] = deque(maxlen=_MOST_FREED)
        self.textures: dict[int, Texture] = {}
        self.parameters = self.place("parameters", Space.PARAM, _LARGEST_PARAMETERS, is_array=False)
        heap = self.place(HEAP_NAME, Space.GLOBAL, _HEAP_BYTES, is_array=False)
        workspace = self.place("grid workspace", Space.GLOBAL, WORKSPACE_BYTES, is_array=False)
        assert self.parameters is not None and heap is not None and workspace is not None
        self.heap = Heap(heap)
        self.workspace: Region = workspace
        self.marks: Marks | None = None
        self._textures_made = 0

    def place(
        self, name: str, space: Space, size_bytes: int, *, element_bytes: int = 1, is_array: bool = True
    ) -> Region | None:
        """A region of the emulator's own; None when there is no room for it."""
        end = self._next + find_room(size_bytes)
        if end > self.own_end:
            return None
        region = Region(
            name=name,
            space=space,
            base=self._next,
            size_bytes=size_bytes,
            element_bytes=element_bytes,
            is_array=is_array,
        )
        self._next = end
        self._own.append(region)
        return region

    @property
    def allocations(self) -> tuple[Region, ...]:
        """The program's allocations, by address."""
        return tuple(map(self._allocated.__getitem__, self._bases))

    def allocate(self, allocations: Iterable[tuple[int, int]], *, is_whole: bool = True) -> None:
        """Take over the allocations of the program and its frees.

        What lies outside the program's part of the memory is left out.
        """
        last = ARENA_BASE + len(self.data)
        before = self._allocated.copy() if is_whole else {}
        if is_whole:
            self._allocated.clear()
        for base, size in allocations:
            if not size:
                self._note_freed(self._allocated.pop(base, None))
            elif self.own_end <= base and 0 < size <= last - base:
                self._allocated[base] = Region(
                    name=f"the allocation at 0x{base:x}", space=Space.GLOBAL, base=base, size_bytes=size
                )
        for base in before.keys() - self._allocated.keys():
            self._note_freed(before[base])
        self._bases = sorted(self._allocated)

    def _note_freed(self, region: Region | None) -> None:
        if region is not None:
            self.freed.appendleft(replace(region, name=""))

    def allocate_one(self, base: int, size_bytes: int) -> None:
        """Take over one more allocation."""
        if self.find(base) is None:
            self.allocate([(base, size_bytes)], is_whole=False)

    def add_texture(self, source: TextureInput, base: int, row_bytes: int) -> int | None:
        """Make a texture of a piece of the memory.

        Returns:
            Its handle; None where no allocation holds all of it.
        """
        depth, height, width, channels = source.texels.shape
        texels = source.texels
        region = self.find(base)
        plane = row_bytes * height
        if region is None or base + plane * (depth - 1) + row_bytes * (
            height - 1
        ) + texels.itemsize * channels * width > (region.base + region.size_bytes):
            return None
        memory = self.bytes_at(base, plane * depth)
        strides = (plane, row_bytes, texels.itemsize * channels, texels.itemsize)
        seen = np.ndarray(texels.shape, texels.dtype, memory, strides=strides)
        handle = TEXTURE_HANDLE_BASE + self._textures_made * TEXTURE_HANDLE_STEP
        self._textures_made += 1
        place = replace(region, base=base, size_bytes=plane * depth)
        self.textures[handle] = Texture(source=replace(source, texels=seen), region=place)
        return handle

    def drop_texture(self, handle: int) -> None:
        """Forget a texture."""
        self.textures.pop(handle, None)

    @property
    def regions(self) -> tuple[Region, ...]:
        """All regions that may be accessed."""
        return (*self._own, *self.allocations)

    def bytes_at(self, address: int, size_bytes: int) -> npt.NDArray[np.uint8]:
        """A stretch of the memory, not copied."""
        start = address - ARENA_BASE
        return self.data[start : start + size_bytes]

    def find_freed(self, address: int) -> Region | None:
        """The freed allocation at an address; None where there is memory now, or never was any that is known."""
        if self.find(address) is not None:
            return None
        return next((one for one in self.freed if one.base <= address < one.base + one.size_bytes), None)

    def find(self, address: int) -> Region | None:
        """The allocation or variable an address lies in."""
        place = bisect_right(self._bases, address) - 1
        if place >= 0:
            region = self._allocated[self._bases[place]]
            return region if address < region.base + region.size_bytes else None
        place = bisect_right(self._own, address, key=lambda one: one.base) - 1
        if place < 0:
            return None
        own = self._own[place]
        return own if own.is_array and address < own.base + own.size_bytes else None


class ResidentModule:
    """A module with its variables in device memory.

    Args:
        module: the PTX.
        memory: where they are laid out, and filled with what they begin with.

    Attributes:
        variables: by name.
        device_runtime: takes what its kernels launch themselves; None where none does.
    """

    def __init__(self, module: PtxModule, memory: ResidentMemory) -> None:
        self.module = module
        self.memory = memory
        self.device_runtime = self._make_runtime()
        self.variables: dict[str, Region] = {}
        for name, one in module.variables.items():
            if one.space not in (Space.GLOBAL, Space.CONST) or one.is_texture:
                continue
            region = memory.place(name, one.space, max(one.size_bytes, 1), element_bytes=one.type.bytes)
            if region is None:
                continue
            self.variables[name] = region
        addresses = find_function_addresses(module) | {name: one.base for name, one in self.variables.items()}
        for name, region in self.variables.items():
            fill_variable(memory.bytes_at(region.base, region.size_bytes), module.variables[name], addresses.get)
        self._begun = {name: memory.bytes_at(one.base, one.size_bytes).copy() for name, one in self.variables.items()}

    def _make_runtime(self) -> DeviceRuntime | None:
        if not any(name.startswith(PREFIXES) for name in self.module.functions):
            return None
        room = self.memory.place("parameters of launches", Space.GLOBAL, _LAUNCHES_BYTES, is_array=False)
        if room is None:
            return None
        addresses = find_function_addresses(self.module)
        kernels = {
            addresses[one.name]: (
                one.name,
                max((parameter.offset_bytes + parameter.size_bytes for parameter in one.parameters), default=0),
            )
            for one in self.module.entries
        }
        return DeviceRuntime(kernels, Heap(room))

    def is_changed(self, name: str) -> bool:
        """Whether a variable has changed since the module was loaded."""
        region = self.variables[name]
        return not np.array_equal(self._begun[name], self.memory.bytes_at(region.base, region.size_bytes))


class ResidentKernel:
    """A kernel of one shape, bound once, launched often.

    Valid as long as the memory's allocations and textures stay; then it is made again.

    Args:
        module: it belongs to.
        kernel: the kernel.
        launch: grid, block and dynamic shared memory; its arguments are not looked at.
        budget: of each launch.
        checks_races: watch shared memory.
        is_cooperative: its blocks wait for each other.
        names: what allocations are called in messages: base → name, and bytes of an element.

    Attributes:
        problem: what is wrong with the launch, one sentence; None when nothing is.
    """

    def __init__(
        self,
        module: ResidentModule,
        kernel: PtxFunction,
        launch: LaunchDescription,
        *,
        budget: Budget,
        checks_races: bool,
        is_cooperative: bool = False,
        names: Mapping[int, tuple[str, int]] | None = None,
    ) -> None:
        self._memory = module.memory
        self._workspace = module.memory.workspace if is_cooperative else None
        self._meter = Meter(budget)
        self._budget_s = budget.seconds
        self._instructions = list_static_instructions(module.module, kernel.name)
        self.faults = FaultLog(self._instructions)
        offsets, static_bytes = lay_out_shared(module.module, list(list_reachable(module.module, kernel.name)), kernel)
        self.problem = check_launch(kernel, launch, static_bytes)
        geometry = Geometry(
            grid=launch.grid,
            block=launch.block,
            static_shared_bytes=static_bytes,
            dynamic_shared_bytes=launch.shared_bytes,
            workspace=0 if self._workspace is None else self._workspace.base,
            cluster=find_cluster(kernel, launch),
        )
        arena = Arena(self._meter, self.faults)
        regions = tuple(_name(module.memory.regions, names or {}))
        gone = {base: name for base, name in (names or {}).items() if all(base != one.base for one in regions)}
        arena.adopt(module.memory.data, regions, freed=_name(module.memory.freed, gone))
        arena.marks = module.memory.marks
        self._machine = Machine(
            module=module.module,
            kernel=kernel,
            geometry=geometry,
            meter=self._meter,
            faults=self.faults,
            arena=arena,
            tracer=None,
            instructions=self._instructions,
            shared_offsets=offsets,
        )
        self._machine.variables = module.variables
        self._machine.parameters = module.memory.parameters
        self._machine.heap = module.memory.heap
        self._machine.device_runtime = module.device_runtime
        self._machine.textures = module.memory.textures
        self._machine.bind = bind_function
        whole = range(0) if self.problem else range(geometry.block_count)
        self._blocks = geometry.complete_clusters(whole)
        self._runner = None if self.problem else Runner(self._machine, checks_races=checks_races, trace_bytes=None)

    def limit_seconds(self, seconds: float) -> None:
        """Limit the time of the next launch."""
        self._meter.budget = replace(self._meter.budget, seconds=min(seconds, self._budget_s))

    @property
    def finished_blocks(self) -> int:
        """Blocks of the launch at work that have ended; from any thread."""
        return 0 if self._runner is None else self._runner.finished

    def end(self) -> None:
        """End the launch at work, and every later one; from any thread."""
        self._meter.end()

    def run(self, parameters: bytes) -> LaunchCost:
        """Launch the kernel once, with the bytes of its parameters."""
        self._meter.restart()
        if self._runner is None:
            self.faults.add(FaultKind.BAD_LAUNCH, self.problem or "", is_fatal=True)
            return LaunchCost(blocks=0, warp_instructions=0, seconds=0.0, printed="", end=self.problem or "")
        assert self._memory.parameters is not None
        place = self._memory.bytes_at(self._memory.parameters.base, len(parameters))
        place[:] = np.frombuffer(parameters, np.uint8)
        if self._workspace is not None:
            self._memory.bytes_at(self._workspace.base, 8)[:] = np.frombuffer(WORKSPACE, np.uint8)
        self._machine.follow_heap()
        self._machine.restart_printing(_MOST_PRINTED)
        traps = self._count_traps()
        self.faults.device_error = None
        finished = self._runner.run(self._blocks, lambda batch: None)
        is_cut = finished < len(self._blocks)
        ends = [fault.message for fault in self.list_faults() if fault.kind in _ENDS] if is_cut else []
        return LaunchCost(
            blocks=finished,
            warp_instructions=self._meter.warp_instructions,
            seconds=self._meter.seconds,
            printed=self._machine.printed,
            is_printing_cut=self._machine.is_printing_cut,
            end=(ends[-1] if ends else "it did not run to its end") if is_cut else "",
            trap=self._find_trap() if self._count_traps() > traps else "",
            device_error=self.faults.device_error,
        )

    def _count_traps(self) -> int:
        return sum(fault.count for fault in self.list_faults() if fault.kind is FaultKind.TRAP)

    def _find_trap(self) -> str:
        return next(fault.message for fault in self.list_faults() if fault.kind is FaultKind.TRAP)

    def list_faults(self) -> tuple[Fault, ...]:
        """Faults of all its launches."""
        return self.faults.list_faults()


def _name(regions: Iterable[Region], names: Mapping[int, tuple[str, int]]) -> Iterator[Region]:
    for region in regions:
        named = names.get(region.base)
        yield region if named is None else replace(region, name=named[0], element_bytes=named[1])


_ENDS = frozenset({FaultKind.TIME_BUDGET, FaultKind.INSTRUCTION_BUDGET, FaultKind.MEMORY_BUDGET})
