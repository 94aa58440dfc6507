"""One process of the program: its code, its memory and its launches, as the requests of its runtime library tell them: :class:`Session`."""

import fcntl
import logging
import mmap
import os
import struct
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace
from math import prod
from pathlib import Path

import numpy as np

from gpa_lsp.arch.lookup import find_architecture
from gpa_lsp.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.basis.errors import GpaError
from gpa_lsp.basis.lazy_dataclass import dataclass
from gpa_lsp.basis.numbers import format_count, format_count_of
from gpa_lsp.device.products import Product
from gpa_lsp.emulator.engine.arena import ARENA_BASE
from gpa_lsp.emulator.model import FAILED_ASSERTION, Budget, Fault, FaultKind
from gpa_lsp.emulator.resident import ResidentKernel, ResidentMemory
from gpa_lsp.launches.launch import LaunchDescription
from gpa_lsp.launches.model import TextureInput
from gpa_lsp.programs.images import place_image
from gpa_lsp.programs.linking import link_parts
from gpa_lsp.programs.loaded_code import FunctionFacts, LoadedModule
from gpa_lsp.programs.messages import (
    CudaError,
    DeviceFacts,
    LaunchRequest,
    MalformedMessage,
    NoteKind,
    Request,
    parse_launch,
    parse_number,
    parse_occupancy,
    parse_texture,
)
from gpa_lsp.programs.model import RunSettings
from gpa_lsp.ptx.scalar_types import ScalarType

_LOG = logging.getLogger(__name__)

_OWN_BYTES = 1 << 30
"""Of address space for what is the emulator's, and as much for gaps between allocations; memory is taken as it is touched."""
_GAPS_SHARE = 4
_SEALS = ("F_SEAL_GROW", "F_SEAL_SHRINK", "F_SEAL_SEAL")
"""The program, which has the file as well, makes it no larger and no smaller."""
_MOST_WARP_INSTRUCTIONS = 1 << 62
"""Time alone limits the launches of a program: what it makes of half a result is wrong."""
_MOST_KERNELS_KEPT = 256
_MOST_NAME_BYTES = 1 << 16
_FUNCTION = struct.Struct("<II6i")
_PLACE = struct.Struct("<QQ")
_ADDRESS_MODES = ("wrap", "clamp", "mirror", "border")
_ELEMENTS = {
    (0, 1): ScalarType.S8, (0, 2): ScalarType.S16, (0, 4): ScalarType.S32,
    (1, 1): ScalarType.U8, (1, 2): ScalarType.U16, (1, 4): ScalarType.U32,
    (2, 2): ScalarType.F16, (2, 4): ScalarType.F32,
}  # fmt: skip
"""Channel kind, as ``cudaChannelFormatKind``, and bytes → the type."""
_NOT_EMULATED = "it came to an instruction that is not emulated"
_CLUSTERS = "its blocks form clusters, which are not emulated"
_TOO_LATE = "its time was over before it began"
_DEVICE_LAUNCHES = ("__cudaCDP", "cudaLaunchDevice", "cudaGetParameterBuffer")
_OWN_RUNTIME = (
    "a library of the program has NVIDIA's runtime library linked into it, as CuPy's wheels have, so that ours cannot take its place; "
    "one that is linked with -cudart shared can run (of CuPy, that of conda-forge)"
)
_EVENT_TIMES = "times between events are those of the emulator, not of a GPU"

Answer = tuple[CudaError, bytes]


@dataclass(slots=True, kw_only=True)
class KernelTally:
    """What is known of the launches of one kernel so far; see :class:`~gpa_lsp.programs.model.KernelRuns`."""

    module: LoadedModule
    facts: FunctionFacts
    launches: int = 0
    emulated: int = 0
    skipped: int = 0
    warp_instructions: int = 0
    seconds: float = 0.0
    shapes: Counter[tuple[tuple[int, int, int], tuple[int, int, int], int]] = field(default_factory=Counter)
    faults: dict[tuple[str, int | None], Fault] = field(default_factory=dict)
    unfinished: dict[str, None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAtWork:
    """How far a launch is.

    Attributes:
        kernel: its linkage name.
        number: of the launch among those of its kernel, from 1.
        started: by the monotonic clock.
        finished: blocks that ran to their end.
        blocks: of the grid.
    """

    kernel: str
    number: int
    started: float
    finished: int
    blocks: int


class Session:
    """One process.

    Args:
        settings: of the run.
        product: the GPU it sees.
        folder: private, for its code.
        deadline: of the run, by the monotonic clock.
        watch: told of each launch before it runs, and gives what is to be told of its cost.

    Attributes:
        kernels: by module and name, in the order of their first launches.
        notes: what was not done as a GPU would do it.
        file: of device memory.
        peak_bytes: most device memory it had allocated.
        is_closed: the process is gone.
    """

    def __init__(
        self,
        settings: RunSettings,
        product: Product,
        *,
        folder: Path,
        deadline: float,
        watch: "Callable[[KernelTally, LaunchRequest, ResidentMemory], Callable[[int], None] | None] | None" = None,
    ) -> None:
        self._settings = settings
        self._product = product
        self._folder = folder
        self._deadline = deadline
        self._watch = watch
        self._arena_bytes = _round_up(2 * _OWN_BYTES + settings.memory_bytes + settings.memory_bytes // _GAPS_SHARE)
        self.file = os.memfd_create("gpa-lsp-device-memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.file, self._arena_bytes)
        fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, sum(getattr(fcntl, seal) for seal in _SEALS))
        self._mapping = mmap.mmap(
            self.file, self._arena_bytes, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0)
        )
        self.memory = ResidentMemory(np.frombuffer(self._mapping, np.uint8), _OWN_BYTES)
        self._modules: list[LoadedModule] = []
        self._functions: list[KernelTally] = []
        self._resident: dict[tuple[object, ...], ResidentKernel] = {}
        self._generation = 0
        self._running: ResidentKernel | None = None
        self._at_work: LaunchAtWork | None = None
        self.is_closed = False
        self.kernels: dict[tuple[int, str], KernelTally] = {}
        self.notes: dict[str, None] = {}
        self.peak_bytes = 0

    def end_launches(self) -> None:
        """End the launch at work, and every later one; from any thread."""
        self._deadline = time.monotonic()
        if self._running is not None:
            self._running.end()

    def describe_work(self) -> LaunchAtWork | None:
        """The launch at work; from any thread."""
        kernel, launch = self._running, self._at_work
        return None if kernel is None or launch is None else replace(launch, finished=kernel.finished_blocks)

    def close(self) -> None:
        """Give its memory back; what is known of its launches stays."""
        if self.is_closed:
            return
        self.is_closed = True
        self._resident.clear()
        self._mapping.madvise(mmap.MADV_REMOVE)
        os.close(self.file)

    def describe_device(self) -> DeviceFacts:
        """The GPU, for the program."""
        product = self._product
        rules = find_architecture(product.compute_capability).occupancy
        return DeviceFacts(
            arena_base=ARENA_BASE,
            arena_bytes=self._arena_bytes,
            client_base=ARENA_BASE + _OWN_BYTES,
            memory_bytes=self._settings.memory_bytes,
            major=product.compute_capability[0],
            minor=product.compute_capability[1],
            sm_count=product.sm_count,
            clock_khz=int(product.sm_boost_hz / 1e3),
            memory_clock_khz=int(product.memory_clock_hz / 1e3),
            bus_bits=product.memory_bus_bits,
            l2_bytes=product.l2_bytes or 0,
            shared_per_block=rules.default_shared_per_block_bytes.value,
            shared_per_block_optin=rules.max_shared_per_block_bytes.value,
            shared_per_sm=rules.shared_per_sm_bytes.value,
            registers_per_sm=rules.registers_per_sm.value,
            threads_per_sm=rules.max_threads_per_sm.value,
            blocks_per_sm=rules.max_blocks_per_sm.value,
            name=product.device_names[0] if product.device_names else product.name,
        )

    def answer(self, request: int, payload: bytes) -> Answer:
        """Do what the runtime library asks for.

        Raises:
            MalformedMessage: it is nothing that the library asks for.
        """
        answers: dict[int, Callable[[bytes], Answer]] = {
            Request.MODULE: self._load_module,
            Request.FUNCTION: self._find_function,
            Request.VARIABLE: self._find_variable,
            Request.LAUNCH: self._launch,
            Request.TEXTURE: self._add_texture,
            Request.DROP_TEXTURE: self._drop_texture,
            Request.OCCUPANCY: self._count_blocks,
            Request.NOTE: self._note,
        }
        if request not in answers:
            raise MalformedMessage(f"there is no request {request}")
        return answers[request](payload)

    def _load_module(self, payload: bytes) -> Answer:
        is_linked, content = parse_number(payload)
        try:
            if is_linked:
                content = link_parts(content, self._product.compute_capability).encode()
            path = place_image(content, self._folder)
            module = LoadedModule(path, self.memory, self._product.compute_capability)
        except GpaError as error:
            self.notes[f"no kernel of one part of the program can run: {error}"] = None
            return CudaError.NO_KERNEL_IMAGE, b""
        self._modules.append(module)
        return CudaError.SUCCESS, len(self._modules).to_bytes(4, "little")

    def _module(self, number: int) -> LoadedModule:
        if not 1 <= number <= len(self._modules):
            raise MalformedMessage(f"there is no module {number}")
        return self._modules[number - 1]

    def _find_function(self, payload: bytes) -> Answer:
        number, name = parse_number(payload)
        module = self._module(number)
        facts = module.describe(_decode(name))
        if facts is None:
            return CudaError.INVALID_DEVICE_FUNCTION, b""
        self._functions.append(
            self.kernels.setdefault((number, facts.kernel.name), KernelTally(module=module, facts=facts))
        )
        local = facts.kernel.local_bytes
        version = facts.capability[0] * 10 + facts.capability[1]
        head = _FUNCTION.pack(
            len(self._functions), len(facts.parameters), facts.registers, facts.static_shared_bytes, local, 0,
            facts.most_threads, version,
        )  # fmt: skip
        return CudaError.SUCCESS, head + b"".join(struct.pack("<II", *one) for one in facts.parameters)

    def _find_variable(self, payload: bytes) -> Answer:
        number, name = parse_number(payload)
        region = self._module(number).resident.variables.get(_decode(name))
        if region is None:
            return CudaError.INVALID_SYMBOL, b""
        return CudaError.SUCCESS, _PLACE.pack(region.base, region.size_bytes)

    def _function(self, number: int) -> KernelTally:
        if not 1 <= number <= len(self._functions):
            raise MalformedMessage(f"there is no function {number}")
        return self._functions[number - 1]

    def _launch(self, payload: bytes) -> Answer:
        request = parse_launch(payload)
        tally = self._function(request.function)
        if request.is_cooperative and self._is_too_large(tally.facts, request):
            return CudaError.COOPERATIVE_TOO_LARGE, b""
        if request.generation != self._generation:
            self._generation = request.generation
            self.memory.allocate(request.allocations)
            self.peak_bytes = max(self.peak_bytes, sum(size for _, size in request.allocations))
            self._resident.clear()
        tally.launches += 1
        tally.shapes[(request.grid, request.block, request.shared_bytes)] += 1
        limit = self._settings.launches_per_kernel
        if limit is not None and tally.launches > limit:
            tally.skipped += 1
            return CudaError.SUCCESS, b""
        left_s = self._deadline - time.monotonic()
        if left_s <= 0:
            tally.skipped += 1
            return CudaError.LAUNCH_TIMEOUT, b""
        kernel = self._find_resident(tally, request)
        kernel.limit_seconds(left_s)
        if kernel.problem is not None:
            tally.unfinished[kernel.problem] = None
            return CudaError.INVALID_CONFIGURATION, b""
        if (tally.facts.kernel.cluster_blocks or 1) > 1:
            tally.unfinished[_CLUSTERS] = None
            return CudaError.NOT_SUPPORTED, b""
        done = None if self._watch is None else self._watch(tally, request, self.memory)
        self._at_work = LaunchAtWork(
            kernel=tally.facts.kernel.name,
            number=tally.launches,
            started=time.monotonic(),
            finished=0,
            blocks=prod(request.grid),
        )
        self._running = kernel
        if time.monotonic() >= self._deadline:  # it was ended while it was made ready
            self._running = None
            tally.unfinished[_TOO_LATE] = None
            return CudaError.LAUNCH_TIMEOUT, b""
        cost = kernel.run(request.parameters)
        self._running = None
        tally.warp_instructions += cost.warp_instructions
        tally.seconds += cost.seconds
        faults = kernel.list_faults()
        for fault in faults:
            tally.faults[(fault.kind.value, fault.instruction)] = fault
        end = cost.end or next((_NOT_EMULATED for fault in faults if fault.kind is FaultKind.UNSUPPORTED), "")
        if end:
            tally.unfinished[end] = None
            self._explain(tally)
            is_late = time.monotonic() >= self._deadline
            return CudaError.LAUNCH_TIMEOUT if is_late else CudaError.LAUNCH_FAILURE, cost.printed.encode()
        tally.emulated += 1
        if done is not None:
            done(cost.warp_instructions)
        error = CudaError.SUCCESS
        if cost.trap:
            error = CudaError.ASSERT if cost.trap.startswith(FAILED_ASSERTION) else CudaError.LAUNCH_FAILURE
        return error, cost.printed.encode()

    def _is_too_large(self, facts: FunctionFacts, request: LaunchRequest) -> bool:
        """Whether the GPU has no room for all blocks of a cooperative launch at once."""
        per_sm = self._find_blocks_per_sm(facts, prod(request.block), request.shared_bytes)
        most, wanted = per_sm * self._product.sm_count, prod(request.grid)
        if wanted <= most:
            return False
        self.notes[
            f"a cooperative launch of {format_count_of(wanted, 'block')} was refused, as the GPU does: it holds {format_count(most)} of them at once"
        ] = None
        return True

    def _find_blocks_per_sm(self, facts: FunctionFacts, threads: int, shared_bytes: int) -> int:
        shape = BlockShape(
            threads=threads,
            registers_per_thread=facts.registers,
            shared_bytes=facts.static_shared_bytes + shared_bytes,
        )
        return find_occupancy(find_architecture(self._product.compute_capability), shape).blocks_per_sm

    def _explain(self, tally: KernelTally) -> None:
        """Name what a launch failed for, where its code tells."""
        if any(name.startswith(_DEVICE_LAUNCHES) for name in tally.module.resident.module.functions):
            self.notes["kernels that launch kernels (dynamic parallelism) are not emulated; the launch failed"] = None

    def _find_resident(self, tally: KernelTally, request: LaunchRequest) -> ResidentKernel:
        key = (request.function, request.grid, request.block, request.shared_bytes, request.is_cooperative)
        found = self._resident.get(key)
        if found is None:
            if len(self._resident) >= _MOST_KERNELS_KEPT:
                self._resident.clear()
            launch = LaunchDescription(
                kernel=tally.facts.kernel.name,
                block=request.block,
                grid=request.grid,
                shared_bytes=request.shared_bytes,
            )
            found = self._resident[key] = ResidentKernel(
                tally.module.resident,
                tally.facts.kernel,
                launch,
                budget=Budget(
                    seconds=self._settings.limit_s,
                    warp_instructions=_MOST_WARP_INSTRUCTIONS,
                    memory_bytes=self._settings.memory_bytes,
                ),
                checks_races=self._settings.checks_races,
                is_cooperative=request.is_cooperative,
                names=tally.facts.name_arrays(request.parameters, self.memory),
            )
        return found

    def _count_blocks(self, payload: bytes) -> Answer:
        function, threads, shared = parse_occupancy(payload)
        facts = self._function(function).facts
        if threads < 1:
            return CudaError.INVALID_VALUE, b""
        found = self._find_blocks_per_sm(facts, threads, shared)
        return CudaError.SUCCESS, found.to_bytes(4, "little")

    def _add_texture(self, payload: bytes) -> Answer:
        wanted = parse_texture(payload)
        element = _ELEMENTS.get((wanted.channel_kind, wanted.channel_bytes))
        width, height, depth = wanted.size
        if element is None or not 1 <= wanted.channels <= 4 or width < 1 or wanted.address_mode >= len(_ADDRESS_MODES):
            self.notes["a texture of a format that is not emulated"] = None
            return CudaError.NOT_SUPPORTED, b""
        shape = max(depth, 1), max(height, 1), width, wanted.channels
        source = TextureInput(
            name=f"texture {len(self.memory.textures) + 1}",
            buffer=0,
            texels=np.broadcast_to(np.zeros(1, element.natural_dtype), shape),
            element=element,
            dimensions=3 if depth and not wanted.is_layered else 2 if height else 1,
            is_linear_filter=wanted.is_linear_filter,
            address_mode=_ADDRESS_MODES[wanted.address_mode],
            is_normalized=wanted.is_normalized,
            reads_normalized=wanted.reads_normalized,
            parameter_offset_bytes=None,
        )
        self.memory.allocate_one(*wanted.held)
        handle = self.memory.add_texture(source, wanted.base, wanted.row_bytes)
        if handle is None:
            return CudaError.INVALID_VALUE, b""
        return CudaError.SUCCESS, handle.to_bytes(8, "little")

    def _drop_texture(self, payload: bytes) -> Answer:
        self.memory.drop_texture(int.from_bytes(payload[:8], "little"))
        return CudaError.SUCCESS, b""

    def _note(self, payload: bytes) -> Answer:
        kind, name = parse_number(payload)
        if kind == NoteKind.UNSUPPORTED:
            self.notes[f"{_decode(name)} is not emulated; the program was told so"] = None
        elif kind == NoteKind.EVENT_TIME:
            self.notes[_EVENT_TIMES] = None
        elif kind == NoteKind.OWN_RUNTIME:
            self.notes[_OWN_RUNTIME] = None
        return CudaError.SUCCESS, b""


def _round_up(size_bytes: int) -> int:
    return -(-size_bytes // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


def _decode(name: bytes) -> str:
    if len(name) > _MOST_NAME_BYTES:
        raise MalformedMessage("a name of more than 64 KiB")
    return name.decode("utf-8", "replace")
