"""One process of a program: its code, memory and launches, and the answers to its requests: :class:`Session`."""

import fcntl
import mmap
import os
import struct
import time
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from math import prod
from pathlib import Path

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from gpa_lsp.execution.emulator.emulate import MOST_CLUSTER_BLOCKS, find_cluster_problem
from gpa_lsp.execution.emulator.engine.arena import ARENA_BASE, CHUNK_BYTES, WORD_BYTES, Marks, make_zeros
from gpa_lsp.execution.emulator.engine.device_runtime import DeviceLaunch, Work
from gpa_lsp.execution.emulator.model import FAILED_ASSERTION, Budget, DeviceError, Fault, FaultKind
from gpa_lsp.execution.emulator.resident import LaunchCost, ResidentKernel, ResidentMemory
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.execution.programs.allocations import AllocationLedger
from gpa_lsp.execution.programs.call_paths import place_addresses, read_mappings
from gpa_lsp.execution.programs.computing import compute
from gpa_lsp.execution.programs.library_calls import Refusal
from gpa_lsp.execution.programs.loaded_code import FunctionFacts, LoadedModule, link_parts, place_image
from gpa_lsp.execution.programs.messages import (
    EVENTS_BYTES,
    LAST_WORDS_BYTES,
    ComputeRequest,
    CudaError,
    DeviceFacts,
    LastWords,
    LaunchRequest,
    MalformedMessage,
    NoteKind,
    Request,
    parse_compute,
    parse_last_words,
    parse_launch,
    parse_number,
    parse_occupancy,
    parse_path,
    parse_texture,
    take_events,
)
from gpa_lsp.execution.programs.model import RunSettings
from gpa_lsp.foundation.errors import GpaError
from gpa_lsp.foundation.numbers import format_count, format_count_of
from gpa_lsp.gpu.arch.lookup import find_architecture
from gpa_lsp.gpu.arch.occupancy import BlockShape, find_occupancy
from gpa_lsp.gpu.device.products import Product
from gpa_lsp.profile.collector.records import CollectedPath

# of address space for what is the emulator's, and as much for gaps between allocations; memory is taken as it is touched
_OWN_BYTES = 1 << 30
_GAPS_SHARE = 4
# The program, which has the file as well, makes it no larger and no smaller
_SEALS = ("F_SEAL_GROW", "F_SEAL_SHRINK", "F_SEAL_SEAL")
# Time alone limits the launches of a program: what it makes of half a result is wrong
_MOST_WARP_INSTRUCTIONS = 1 << 62
_MOST_KERNELS_KEPT = 256
_MOST_PATHS = 1 << 14
_MOST_FRAMES = 64
_MOST_NAME_BYTES = 1 << 16
_FUNCTION = struct.Struct("<II6i")
_PLACE = struct.Struct("<QQ")
_DEVICE_ERRORS = {
    DeviceError.ILLEGAL_ADDRESS: CudaError.ILLEGAL_ADDRESS,
    DeviceError.MISALIGNED_ADDRESS: CudaError.MISALIGNED_ADDRESS,
    DeviceError.INVALID_PC: CudaError.INVALID_PC,
    DeviceError.LAUNCH_FAILURE: CudaError.LAUNCH_FAILURE,
}
_NOT_EMULATED = "it came to an instruction that is not emulated"
_TOO_LATE = "its time was over before it began"
# Kernels that wait for each other, as on GPUs that let them. Source: CUDA C++ programming guide 11, synchronization depth.
_DEEPEST = 24
_TOO_DEEP = f"kernels waited for kernels that they launched more than {_DEEPEST} deep; those did not run"
_TOO_LONG = "a launch printed more than 16 MiB; the rest was left out"
_TOO_MANY = "kernels launched more kernels at once than there is room for; those did not run"
_OWN_RUNTIME = (
    "a program or a library that was run has NVIDIA's runtime library linked into it (nvcc's default; CuPy's wheels), so that ours cannot take "
    "its place; built with -cudart shared, or by --build, it can run (of CuPy, that of conda-forge)"
)
_EVENT_TIMES = "times between events are those of the emulator, not of a GPU"

Answer = tuple[CudaError, bytes]


class KernelTally(Struct, kw_only=True):
    """Running totals of one kernel's launches; see :class:`~gpa_lsp.execution.programs.model.KernelRuns`."""

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
    paths: Counter[int] = field(default_factory=Counter)  # launches by number of the host's path


class LaunchAtWork(Struct, frozen=True, kw_only=True):
    """Progress of a launch."""

    kernel: str  # its linkage name
    number: int  # of the launch among those of its kernel, from 1
    started: float  # by the monotonic clock
    finished: int  # blocks that ran to their end
    blocks: int  # of the grid


class Session:
    """One process.

    Args:
        settings: of the run.
        product: the GPU it sees.
        folder: private, for its code.
        deadline: of the run, by this process' processor time.
        watch: told of each launch before it runs, and gives what is to be told of its cost.

    Attributes:
        kernels: by module and name, in the order of their first launches.
        notes: what was not done as a GPU would do it.
        refused: why kernels could not be launched at all, a sentence each.
        file: of device memory.
        peak_bytes: most device memory it had allocated.
        is_closed: the process is gone.
        last_words: of the process, once it is gone.
        ledger: of its allocations.
        process: its number, as it says; 0 before.
        paths: call paths of the host, by number.
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
        self._part_bytes = _round_up(_OWN_BYTES + settings.memory_bytes + settings.memory_bytes // _GAPS_SHARE)
        self._arena_bytes = _OWN_BYTES + 2 * self._part_bytes
        self.file = os.memfd_create("gpa-lsp-device-memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        file_bytes = self._arena_bytes + LAST_WORDS_BYTES + EVENTS_BYTES
        os.ftruncate(self.file, file_bytes)
        fcntl.fcntl(self.file, fcntl.F_ADD_SEALS, sum(getattr(fcntl, seal) for seal in _SEALS))
        self._mapping = mmap.mmap(self.file, file_bytes, flags=mmap.MAP_SHARED | getattr(mmap, "MAP_NORESERVE", 0))
        content = np.frombuffer(self._mapping, np.uint8)
        self.memory = ResidentMemory(content[: self._arena_bytes], _OWN_BYTES)
        marks = Marks(make_zeros(self._arena_bytes // WORD_BYTES), make_zeros(self._arena_bytes // CHUNK_BYTES))
        self.memory.marks = marks if settings.follows_memory else None
        host_base = ARENA_BASE + _OWN_BYTES + self._part_bytes
        self.ledger = AllocationLedger(marks, host_base, is_followed=settings.follows_memory)
        self._events = content[self._arena_bytes + LAST_WORDS_BYTES :]
        self.process = 0
        self.paths: dict[int, CollectedPath] = {}
        self._modules: list[LoadedModule] = []
        self._functions: list[KernelTally] = []
        self._numbers: dict[tuple[int, str], int] = {}
        self._resident: dict[tuple[object, ...], ResidentKernel] = {}
        self._generation = 0
        self._at_work: list[tuple[ResidentKernel, LaunchAtWork]] = []
        self._awaited_error = CudaError.SUCCESS
        self.is_closed = False
        self.last_words: LastWords | None = None
        self.kernels: dict[tuple[int, str], KernelTally] = {}
        self.notes: dict[str, None] = {}
        self.refused: dict[str, None] = {}
        self.peak_bytes = 0

    def end_launches(self) -> None:
        """End the launch at work, and every later one; from any thread."""
        self._deadline = time.process_time()
        for kernel, _ in tuple(self._at_work):
            kernel.end()

    def describe_work(self) -> LaunchAtWork | None:
        """Progress of the running launch, the outermost of nested ones; from any thread."""
        return next((replace(one, finished=kernel.finished_blocks) for kernel, one in tuple(self._at_work)), None)

    def close(self) -> None:
        """Release its memory; what is known of its launches stays."""
        if self.is_closed:
            return
        self.is_closed = True
        self._resident.clear()
        with suppress(MalformedMessage):
            self.ledger.take(take_events(self._events))
        self.ledger.finish()
        self.memory.marks = None
        self.last_words = parse_last_words(self._mapping[self._arena_bytes :])
        self._mapping.madvise(mmap.MADV_REMOVE)
        os.close(self.file)

    def describe_device(self) -> DeviceFacts:
        """Device properties, as the program sees them."""
        product = self._product
        rules = find_architecture(product.compute_capability).occupancy
        return DeviceFacts(
            arena_base=ARENA_BASE,
            arena_bytes=self._arena_bytes,
            client_base=ARENA_BASE + _OWN_BYTES,
            host_base=ARENA_BASE + _OWN_BYTES + self._part_bytes,
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

    def describe_place(self, address: int) -> str:
        """Clause about an address that host code could not access."""
        if not ARENA_BASE <= address < ARENA_BASE + self._arena_bytes:
            return f"0x{address:x}, where it has no memory"
        region = self.memory.find(address)
        where = "" if region is None else f", byte {format_count(address - region.base)} of {region.name}"
        if self.memory.find_freed(address) is not None:
            where = ", which was freed"
        return f"device memory (0x{address:x}{where}), which only kernels and copies such as cudaMemcpy can"

    def answer(self, request: int, payload: bytes) -> Answer:
        """Answer a request of the runtime library.

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
            Request.EVENTS: self._take_events,
            Request.PATH: self._take_path,
            Request.COMPUTE: self._compute,
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
            self.refused[f"no kernel of one part of the program can run: {error}"] = None
            return CudaError.NO_KERNEL_IMAGE, b""
        self._modules.append(module)
        if module.resident.device_runtime is not None:
            module.resident.device_runtime.run_queued = lambda: self._finish_awaited(module)
        return CudaError.SUCCESS, len(self._modules).to_bytes(4, "little")

    def _module(self, number: int) -> LoadedModule:
        if not 1 <= number <= len(self._modules):
            raise MalformedMessage(f"there is no module {number}")
        return self._modules[number - 1]

    def _find_function(self, payload: bytes) -> Answer:
        number, name = parse_number(payload)
        function = self._number_function(self._module(number), _decode(name))
        if function is None:
            return CudaError.INVALID_DEVICE_FUNCTION, b""
        tally = self._function(function)
        facts, parameters = tally.facts, tally.facts.kernel.parameters
        major, minor = tally.module.unit.compute_capability
        head = _FUNCTION.pack(
            function, len(parameters), facts.registers, facts.static_shared_bytes, facts.kernel.local_bytes, 0,
            facts.most_threads, major * 10 + minor,
        )  # fmt: skip
        places = (struct.pack("<II", one.offset_bytes, one.size_bytes) for one in parameters)
        return CudaError.SUCCESS, head + b"".join(places)

    def _number_function(self, module: LoadedModule, name: str) -> int | None:
        """The number of a kernel, from 1; None where the module has none of this name."""
        key = (self._modules.index(module) + 1, name)
        if key not in self._numbers:
            facts = module.describe(name)
            if facts is None:
                return None
            self._functions.append(self.kernels.setdefault(key, KernelTally(module=module, facts=facts)))
            self._numbers[key] = len(self._functions)
        return self._numbers[key]

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
        self.ledger.take(take_events(self._events))
        request = parse_launch(payload)
        tally = self._function(request.function)
        end = max((one.offset_bytes + one.size_bytes for one in tally.facts.kernel.parameters), default=0)
        if len(request.parameters) < end:
            raise MalformedMessage(f"a launch with {len(request.parameters)} of {end} bytes of parameters")
        if request.is_cooperative and self._is_too_large(tally.facts, request):
            return CudaError.COOPERATIVE_TOO_LARGE, b""
        self._take_allocations(request)
        error, printed = self._launch_one(tally, request)
        if tally.module.resident.device_runtime is not None:
            error, more = self._finish_queued(tally.module, tally.module.resident.device_runtime.take_all(), error)
            printed += more
        return error, printed.encode()

    def _take_allocations(self, request: LaunchRequest | ComputeRequest) -> None:
        """Apply allocations and releases since the last request."""
        if request.generation != self._generation:
            self._generation = request.generation
            self.memory.allocate(request.allocations, is_whole=request.is_whole)
            self.peak_bytes = max(self.peak_bytes, sum(one.size_bytes for one in self.memory.allocations))
            self._resident.clear()

    def _compute(self, payload: bytes) -> Answer:
        self.ledger.take(take_events(self._events))
        request = parse_compute(payload)
        self._take_allocations(request)
        error, answer, refusal = compute(
            request, self.memory, self.ledger, lambda: time.process_time() >= self._deadline
        )
        if refusal is Refusal.UNREACHABLE:
            self._note(NoteKind.OUT_OF_REACH.to_bytes(4, "little") + request.function.encode())
        return error, answer

    def _finish_queued(self, module: LoadedModule, works: list[Work], error: CudaError) -> tuple[CudaError, str]:
        """Run what kernels have launched, depth first and in order; stop at an error."""
        runtime, printed = module.resident.device_runtime, ""
        assert runtime is not None
        waiting = deque(works)
        while waiting and error is CudaError.SUCCESS:
            work = waiting.popleft()
            if not isinstance(work, DeviceLaunch):
                work()
                continue
            number = self._number_function(module, work.kernel)
            if number is None:
                return CudaError.INVALID_DEVICE_FUNCTION, printed
            request = LaunchRequest(
                function=number,
                grid=work.grid,
                block=work.block,
                shared_bytes=work.shared_bytes,
                is_cooperative=False,
                generation=self._generation,
                allocations=(),
                is_whole=False,
                parameters=work.parameters,
            )
            error, text = self._launch_one(self._function(number), request)
            printed += text
            waiting.extendleft(reversed(runtime.take_all()))
        if runtime.refused:
            self.notes[_TOO_MANY] = None
            return CudaError.LAUNCH_FAILURE, printed
        return error, printed

    def _finish_awaited(self, module: LoadedModule) -> str:
        """Run launches that a running kernel waits for; gives what they printed."""
        runtime, parameters = module.resident.device_runtime, self.memory.parameters
        assert runtime is not None and parameters is not None
        works, tails = runtime.take_queued()
        if works and len(self._at_work) >= _DEEPEST:
            self.notes[_TOO_DEEP] = None
            self._awaited_error, works = CudaError.LAUNCH_FAILURE, []
        place = self.memory.bytes_at(parameters.base, parameters.size_bytes)
        kept = place.copy()  # those of the kernel that waits
        error, printed = self._finish_queued(module, works, self._awaited_error)
        place[:] = kept
        runtime.give_back(tails)
        self._awaited_error = error
        return printed

    def _launch_one(self, tally: KernelTally, request: LaunchRequest) -> tuple[CudaError, str]:
        """Run one launch, without its own nested launches; gives what it printed."""
        tally.launches += 1
        tally.paths[self.ledger.launch_path] += 1
        tally.shapes[(request.grid, request.block, request.shared_bytes)] += 1
        limit = self._settings.launches_per_kernel
        if limit is not None and tally.launches > limit:
            tally.skipped += 1
            return CudaError.SUCCESS, ""
        left_s = self._deadline - time.process_time()
        if left_s <= 0:
            tally.skipped += 1
            return CudaError.LAUNCH_TIMEOUT, ""
        kernel = self._find_resident(tally, request)
        kernel.limit_seconds(left_s)
        wrong = find_cluster_problem(
            tally.facts.kernel, request.grid, request.cluster, most_blocks=self._find_most_clustered(request)
        )
        if wrong is not None or kernel.problem is not None:
            tally.unfinished[wrong or kernel.problem or ""] = None
            return CudaError.INVALID_CONFIGURATION if wrong is None else CudaError.INVALID_CLUSTER_SIZE, ""
        done = None if self._watch is None else self._watch(tally, request, self.memory)
        work = LaunchAtWork(
            kernel=tally.facts.kernel.name,
            number=tally.launches,
            started=time.monotonic(),
            finished=0,
            blocks=prod(request.grid),
        )
        self._at_work.append((kernel, work))
        if time.process_time() >= self._deadline:  # it was ended while it was made ready
            self._at_work.pop()
            tally.unfinished[_TOO_LATE] = None
            return CudaError.LAUNCH_TIMEOUT, ""
        self._awaited_error = CudaError.SUCCESS
        cost = kernel.run(request.parameters)
        self._at_work.pop()
        self.ledger.end_launch(
            tally.facts.kernel.name, lambda: tally.facts.name_arrays(request.parameters, self.memory)
        )
        return self._judge(tally, kernel, cost, done)

    def _judge(
        self, tally: KernelTally, kernel: ResidentKernel, cost: LaunchCost, done: Callable[[int], None] | None
    ) -> tuple[CudaError, str]:
        """Record the outcome of a launch; gives the program's error code and what was printed."""
        tally.warp_instructions += cost.warp_instructions
        tally.seconds += cost.seconds
        if cost.is_printing_cut:
            self.notes[_TOO_LONG] = None
        faults = kernel.list_faults()
        for fault in faults:
            tally.faults[(fault.kind.value, fault.instruction)] = fault
        end = cost.end or next((_NOT_EMULATED for fault in faults if fault.kind is FaultKind.UNSUPPORTED), "")
        if end:
            tally.unfinished[end] = None
            is_late = time.process_time() >= self._deadline
            return CudaError.LAUNCH_TIMEOUT if is_late else CudaError.LAUNCH_FAILURE, cost.printed
        tally.emulated += 1
        if done is not None:
            done(cost.warp_instructions)
        error, self._awaited_error = self._awaited_error, CudaError.SUCCESS
        if cost.device_error is not None:
            error = _DEVICE_ERRORS[cost.device_error]
            self.notes[
                f"a kernel did what a GPU ends it for, and the program was told so: {cost.device_error.value}"
            ] = None
        if cost.trap:
            error = CudaError.ASSERT if cost.trap.startswith(FAILED_ASSERTION) else CudaError.LAUNCH_FAILURE
        return error, cost.printed

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

    def _find_most_clustered(self, request: LaunchRequest) -> int:
        """Blocks that a cluster may have."""
        portable = find_architecture(self._product.compute_capability).occupancy.max_cluster_blocks.value
        return MOST_CLUSTER_BLOCKS if request.has_large_clusters and portable > 1 else portable

    def _find_blocks_per_sm(self, facts: FunctionFacts, threads: int, shared_bytes: int) -> int:
        shape = BlockShape(
            threads=threads, registers_per_thread=facts.registers, shared_bytes=facts.static_shared_bytes + shared_bytes
        )
        return find_occupancy(find_architecture(self._product.compute_capability), shape).blocks_per_sm

    def _find_resident(self, tally: KernelTally, request: LaunchRequest) -> ResidentKernel:
        launch = LaunchDescription(
            kernel=tally.facts.kernel.name,
            block=request.block,
            grid=request.grid,
            shared_bytes=request.shared_bytes,
            cluster=request.cluster,
        )
        key = (request.function, launch, request.is_cooperative)
        found = self._resident.get(key)
        if found is None or any(kernel is found for kernel, _ in self._at_work):
            if len(self._resident) >= _MOST_KERNELS_KEPT:
                self._resident.clear()
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
        return CudaError.SUCCESS, self._find_blocks_per_sm(facts, threads, shared).to_bytes(4, "little")

    def _add_texture(self, payload: bytes) -> Answer:
        wanted = parse_texture(payload, f"texture {len(self.memory.textures) + 1}")
        if wanted.texture is None:
            self.notes["a texture of a format that is not emulated"] = None
            return CudaError.NOT_SUPPORTED, b""
        self.ledger.take(take_events(self._events))
        self.ledger.hide(wanted.base)
        self.memory.allocate_one(*wanted.held)
        handle = self.memory.add_texture(wanted.texture, wanted.base, wanted.row_bytes)
        if handle is None:
            return CudaError.INVALID_VALUE, b""
        return CudaError.SUCCESS, handle.to_bytes(8, "little")

    def _drop_texture(self, payload: bytes) -> Answer:
        self.memory.drop_texture(int.from_bytes(payload[:8], "little"))
        return CudaError.SUCCESS, b""

    def _take_events(self, payload: bytes) -> Answer:
        del payload
        self.ledger.take(take_events(self._events))
        return CudaError.SUCCESS, b""

    def _take_path(self, payload: bytes) -> Answer:
        number, addresses = parse_path(payload)
        if len(self.paths) < _MOST_PATHS:
            mappings = read_mappings(Path(f"/proc/{self.process}/maps"))
            self.paths[number] = CollectedPath(native=place_addresses(mappings, addresses[:_MOST_FRAMES]))
        return CudaError.SUCCESS, b""

    def _note(self, payload: bytes) -> Answer:
        kind, name = parse_number(payload)
        if kind == NoteKind.UNSUPPORTED:
            self.notes[f"{_name_function(name)} is not emulated; the program was told so"] = None
        elif kind == NoteKind.EVENT_TIME:
            self.notes[_EVENT_TIMES] = None
        elif kind == NoteKind.OWN_RUNTIME:
            self.notes[_OWN_RUNTIME] = None
        elif kind == NoteKind.OUT_OF_REACH:
            self.notes[
                f"{_name_function(name)} failed: it was given memory that the device does not have, or too little of it"
            ] = None
        return CudaError.SUCCESS, b""


def _round_up(size_bytes: int) -> int:
    return -(-size_bytes // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY


def _name_function(name: bytes) -> str:
    """Name as in sources: cuBLAS's header renames what it declares."""
    return _decode(name).removesuffix("_v2")


def _decode(name: bytes) -> str:
    if len(name) > _MOST_NAME_BYTES:
        raise MalformedMessage("a name of more than 64 KiB")
    return name.decode("utf-8", "replace")
