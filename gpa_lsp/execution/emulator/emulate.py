"""PTX + launch → what happened: :func:`emulate`; all blocks, batch by batch: :class:`Runner`."""

from collections.abc import Callable, Mapping
from functools import cache
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule, Space
from gpa_lsp.code.ptx.static_instructions import StaticInstruction, list_reachable, list_static_instructions
from gpa_lsp.execution.emulator.compiled.calls import Calls
from gpa_lsp.execution.emulator.compiled.program import CompiledKernel, compile_kernel
from gpa_lsp.execution.emulator.compiled.scheduler import CompiledScheduler, CoreColumns, count_core_bytes
from gpa_lsp.execution.emulator.compiled.translated import TRANSLATIONS, Translation
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.fragments import Batch, BatchMemory
from gpa_lsp.execution.emulator.engine.functions import find_space
from gpa_lsp.execution.emulator.engine.launching import build_machine, collect_arrays, list_buffers
from gpa_lsp.execution.emulator.engine.machine import Machine, lay_out_shared
from gpa_lsp.execution.emulator.engine.meter import BudgetReached, Meter
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.emulator.model import (
    Blocks,
    Budget,
    Buffer,
    Counts,
    Emulation,
    FaultKind,
    Sampling,
    Trace,
    TraceSettings,
    TraceSink,
    choose_blocks,
    join_pieces,
)
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.work_time import work_time

# Lanes of a batch where what blocks find in memory depends on each other, or a trace is recorded
_BEST_LANES = 32768
# Of others: what the registers of so many lanes take stays in a cache of the second level
_BEST_CORE_LANES = 8192
_MOST_REPEATED = 4096  # Batches that the core is given at once; grids may be larger than memory
_FIRST_TRACED_LANES = 4096
_BYTES_PER_SLOT = 8
# Arrays of a fragment in addition to its live registers (temporaries, indexes, masks); all may exist twice while lanes part and meet
_SCRATCH = 24
_KEPT_BYTES = 30 << 20  # below the 32 MiB where glibc stops to learn
_SHADOW_BYTES = 33

BatchDone = Callable[[Batch], None]


class Runner:
    """Runs the chosen blocks of a launch.

    Args:
        machine: the launch.
        checks_races: whether shared memory is shadowed.
        trace_bytes: of the trace of one batch, aimed at; None when nothing is recorded.

    Attributes:
        trace_bytes: as above; it may change from batch to batch.
        compiled: the kernel as the core has it; None before the first run.
        finished: blocks of the run at work, or of the last one, that ran to their end.
    """

    def __init__(self, machine: Machine, *, checks_races: bool, trace_bytes: int | None) -> None:
        self._machine = machine
        self._unit_bytes = find_unit_bytes(machine) if checks_races else None
        self.trace_bytes = trace_bytes
        self._traced_per_block: float | None = None
        self._columns: CoreColumns | None = None
        self.compiled: CompiledKernel | None = None
        self._calls: Calls | None = None
        self._translation: Translation | None = None
        self.finished = 0

    def run(self, blocks: Blocks, done: BatchDone) -> int:
        """Run blocks in order."""
        machine = self._machine
        _keep_freed_memory()
        self.finished = 0
        self._columns = None
        try:
            self._compile()
            while self.finished < len(blocks):
                if self.finished:
                    machine.meter.check_time()  # taking the trace may have used it up
                self._run_batches(blocks, self._choose_count(), done)
        except BudgetReached as reached:
            machine.faults.add(
                reached.kind,
                str(reached),
                instruction=reached.instruction,
                block=reached.block,
                thread=reached.thread,
                is_fatal=True,
            )
        except MemoryError:
            machine.faults.add(FaultKind.MEMORY_BUDGET, "this computer is out of memory", is_fatal=True)
        self._columns = None
        return self.finished

    def _compile(self) -> tuple[CompiledKernel, Calls]:
        """Have the kernel compiled for the core, once."""
        machine = self._machine
        if self.compiled is None or self._calls is None:
            self.compiled = compile_kernel(machine)
            self._calls = Calls(self.compiled, machine)
            if machine.tracer is None:
                checks_shared = self._unit_bytes is not None and machine.geometry.shared_bytes > 0
                self._translation = TRANSLATIONS.find(self.compiled, checks_shared=checks_shared)
        return self.compiled, self._calls

    def _choose_count(self) -> int:
        """Blocks of the next batch."""
        geometry, meter = self._machine.geometry, self._machine.meter
        if geometry.workspace:
            return geometry.block_count  # they wait for each other
        of_cluster = geometry.cluster_blocks  # so do those of a cluster
        lanes = geometry.lanes_per_block
        is_plain = self.compiled is not None and not self.compiled.is_ordered and self.trace_bytes is None
        count = max(1, (_BEST_CORE_LANES if is_plain else _BEST_LANES) // lanes)
        if self.trace_bytes is not None:
            if self._traced_per_block is None:
                count = max(1, _FIRST_TRACED_LANES // lanes)
            else:
                count = min(count, max(1, int(self.trace_bytes / 2 / max(self._traced_per_block, 1.0))))
        size = self._estimate_bytes()
        return max(1, min(count, int(meter.left_bytes * 0.8 / size)) // of_cluster) * of_cluster

    def _estimate_bytes(self) -> int:
        """Bytes that a block needs: registers, shared and local memory."""
        geometry = self._machine.geometry
        kernel, calls = self._compile()
        registers = (2 * kernel.root.bound.most_live + _SCRATCH) * _BYTES_PER_SLOT * geometry.lanes_per_block
        shadow = 0 if self._unit_bytes is None else _SHADOW_BYTES * geometry.shared_stride_bytes // self._unit_bytes
        local = calls.local_bytes * geometry.lanes_per_block
        return max(1, registers + geometry.shared_stride_bytes + shadow + local)

    def _run_batches(self, chosen: Blocks, count: int, done: BatchDone) -> None:
        """Run ``count`` blocks, or those that are left; then, in the same memory, as many further batches of that size as can be repeated."""
        machine = self._machine
        meter, geometry, tracer = machine.meter, machine.geometry, machine.tracer
        blocks = self._take(chosen, count)
        held = self._estimate_bytes() * len(blocks) - geometry.shared_stride_bytes * len(blocks)
        meter.hold(held, f"registers of {len(blocks)} blocks")
        memory = BatchMemory(geometry, len(blocks), meter, machine.faults)
        batch = Batch(geometry, blocks, memory)
        _, calls = self._compile()
        warps = len(batch.root.ids)
        more = max(0, count_core_bytes(calls, warps) - held)
        meter.hold(more, f"registers of {len(blocks)} blocks")
        if self._columns is None or self._columns.warps != warps:
            self._columns = CoreColumns(calls, warps)
        try:
            with np.errstate(all="ignore"):
                scheduler = CompiledScheduler(
                    calls, batch, self._columns, self._translation, unit_bytes=self._unit_bytes
                )
                scheduler.run()
                self.finished += len(blocks)
                if scheduler.is_repeatable:
                    self._repeat(scheduler, chosen, len(blocks))
        finally:
            if tracer is not None:
                self._traced_per_block = max(tracer.held_bytes / len(blocks), 1.0)
            done(batch)
            self._machine.read_slot = None
            batch.close()
            meter.release(held + more)

    def _repeat(self, scheduler: CompiledScheduler, chosen: Blocks, count: int) -> None:
        """Run further batches of ``count`` blocks in the memory of one that has ended."""

        def note(more: int) -> None:
            self.finished += more * count

        while batches := min((len(chosen) - self.finished) // count, _MOST_REPEATED):
            self._machine.meter.check_time()
            scheduler.repeat(self._take(chosen, batches * count).reshape(batches, count), note)

    def _take(self, chosen: Blocks, count: int) -> npt.NDArray[np.uint32]:
        """The next blocks."""
        return np.asarray(chosen[self.finished : self.finished + count], dtype=np.uint32)


@cache
def _keep_freed_memory() -> None:
    """Free a large array once: glibc's allocator then keeps what is freed, where it would map each array at five times the cost."""
    np.empty(_KEPT_BYTES, np.uint8)


def find_unit_bytes(machine: Machine) -> int | None:
    """The unit in which shared memory is watched: 1 byte in kernels with accesses of less than a word, else 4.

    None for kernels that synchronise by ``mbarrier`` objects or by arriving at barriers, which the checks know nothing of.
    """
    unit = 4
    for name in machine.first_statics:
        for instruction in machine.module.functions[name].instructions:
            if instruction.opcode == "mbarrier" or (
                instruction.opcode in ("bar", "barrier")
                and "arrive" in instruction.suffixes
                and "cluster" not in instruction.suffixes
            ):
                return None
            if instruction.opcode in ("ld", "st", "atom", "red") and instruction.types:
                is_shared = find_space(instruction.suffixes) in (Space.SHARED, Space.GENERIC)
                if is_shared and instruction.types[-1].bytes < 4:
                    unit = 1
    return unit


_MOST_THREADS = 1024
_LARGEST_BLOCK = (1024, 1024, 64)
_LARGEST_GRID = (2**31 - 1, 65535, 65535)
_MOST_SHARED_BYTES = 227 << 10
_MOST_PARAMETER_BYTES = 32764
MOST_CLUSTER_BLOCKS = 16  # where the kernel allows sizes that are not portable; those have at most 8


def check_launch(kernel: PtxFunction, launch: LaunchDescription, static_shared_bytes: int) -> str | None:
    """The problem with a launch, one sentence; None when there is none.

    ``.reqntid`` counts threads: kernels compiled for 768 x 1 x 1 were measured with blocks of 32 x 24.

    The limits are those of the largest GPUs of compute capabilities 7.0 to 12.0, for any of which PTX may be compiled.

    Source: CUDA C++ Programming Guide, technical specifications per compute capability.
    """
    for name, extent, largest in (("block", launch.block, _LARGEST_BLOCK), ("grid", launch.grid, _LARGEST_GRID)):
        for axis, size, most in zip("xyz", extent, largest, strict=True):
            if not 1 <= size <= most:
                return f"the {name} has {format_count(size)} in {axis}; it must have 1 to {format_count(most)}"
    threads = prod(launch.block)
    if threads > _MOST_THREADS:
        return f"the block has {format_count(threads)} threads; at most {format_count(_MOST_THREADS)} are possible"
    if kernel.max_threads is not None and threads > kernel.max_threads:
        return f"the block has {format_count(threads)} threads; the kernel was compiled for at most {format_count(kernel.max_threads)}"
    required = kernel.required_threads
    if required is not None and threads != prod(required):
        return f"the block has {format_count(threads)} threads; the kernel was compiled for {format_count(prod(required))} only"
    problem = find_cluster_problem(kernel, launch.grid, launch.cluster)
    if problem is not None:
        return problem
    shared = static_shared_bytes + launch.shared_bytes
    if launch.shared_bytes < 0 or shared > _MOST_SHARED_BYTES:
        return f"the block needs {format_count(shared)} bytes of shared memory; at most {format_count(_MOST_SHARED_BYTES)} are possible"
    parameters = sum(one.size_bytes for one in kernel.parameters)
    if parameters > _MOST_PARAMETER_BYTES:
        return f"the kernel has {format_count(parameters)} bytes of parameters; at most {format_count(_MOST_PARAMETER_BYTES)} are possible"
    return None


def find_cluster_problem(
    kernel: PtxFunction,
    grid: tuple[int, int, int],
    cluster: tuple[int, int, int] | None,
    *,
    most_blocks: int = MOST_CLUSTER_BLOCKS,
) -> str | None:
    """The problem with the clusters of a launch, one sentence; None when there is none.

    Args:
        cluster: blocks of a cluster in x, y, z; None as the kernel was compiled for.
        most_blocks: that a cluster may have.
    """
    cluster = cluster or kernel.cluster or (1, 1, 1)
    if kernel.counts_clusters:
        return "the kernel was compiled for grids of clusters (.blocksareclusters), which are not emulated"
    if kernel.cluster not in (None, cluster):
        return f"clusters of {_name_extent(cluster)} blocks are launched; the kernel was compiled for {_name_extent(kernel.cluster)}"
    if not all(size >= 1 for size in cluster) or prod(cluster) > most_blocks:
        return f"a cluster has {_name_extent(cluster)} blocks; it must have 1 to {most_blocks}"
    for axis, blocks, size in zip("xyz", grid, cluster, strict=True):
        if blocks % size:
            return f"the grid has {format_count(blocks)} in {axis}, which is no multiple of the {size} of a cluster"
    return None


def _name_extent(extent: tuple[int, int, int]) -> str:
    return " x ".join(format_count(size) for size in extent)


def find_static_shared_bytes(module: PtxModule, kernel: PtxFunction) -> int:
    """Shared memory that a kernel and what it calls declare, without the dynamic part."""
    return lay_out_shared(module, list(list_reachable(module, kernel.name)), kernel)[1]


def count_executions(count: int, machine: Machine | None) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Executions by warps and by lanes, int64[n] each.

    Segments are counted as a whole; instructions with a guard count the lanes for which it held.

    Args:
        machine: what ran; None when nothing did.
    """
    warps = np.zeros(count, np.int64)
    lanes = np.zeros(count, np.int64)
    if machine is None:
        return warps, lanes
    for function in machine.bound_functions:
        source = machine.module.functions[function.name]
        first = machine.first_statics[function.name]
        for segment in function.segments:
            for static in segment.instructions:
                warps[static] = segment.warp_executions
                has_guard = source.instructions[static - first].guard is not None
                lanes[static] = machine.guarded[static] if has_guard else segment.lane_executions
    return warps, lanes


# Trace that a sink deals with: taking and analysing a batch of loads, atomics or branches goes at 25 to 90 MB/s on a busy core
_SINK_BYTES_PER_S = 32 << 20
# A batch may end at the deadline only, and its trace is dealt with behind that: it may take this part of the time that was left
_SINK_SHARE = 3
# Recorded of a batch however little time is left: an eighth of a second, so that the last blocks are not all cut
_LEAST_TRACED_BYTES = 4 << 20


def emulate(
    module: PtxModule,
    launch: LaunchDescription,
    *,
    budget: Budget = Budget(),  # noqa: B008  (frozen)
    sampling: Sampling = Sampling(),  # noqa: B008  (frozen)
    trace: TraceSettings | None = None,
    sink: TraceSink | None = None,
    check_races: bool = True,
    arrays: Mapping[str, npt.NDArray[Any]] | None = None,
) -> Emulation:
    """Run a kernel without a GPU.

    Errors of the kernel are faults (:class:`.model.Fault`), not exceptions; lanes go on where they can: loads out of bounds read
    zero, stores out of bounds do nothing. Blocks run in batches, in ascending order; blocks of one batch see each other's writes. Of lanes that
    store to one address with one instruction, the highest one wins; atomic operations happen in the order of blocks, warps and lanes.

    Args:
        trace: what is recorded; None for nothing.

    Raises:
        InputError: there is no such kernel, or the arguments do not fit it.
    """
    kernel = find_kernel(module, launch.kernel)
    instructions = list_static_instructions(module, kernel.name)
    run = _Emulation(module, kernel, launch, budget=budget, instructions=instructions)
    _, static_bytes = lay_out_shared(module, list(list_reachable(module, kernel.name)), kernel)
    problem = check_launch(kernel, launch, static_bytes)
    if problem is not None:
        run.faults.add(FaultKind.BAD_LAUNCH, problem, is_fatal=True)
        return run.finish()
    run.prepare(trace, sink, arrays or {}, is_checked=check_races)
    run.run(sampling)
    return run.finish()


class _Emulation:
    """One call of :func:`emulate`."""

    def __init__(
        self,
        module: PtxModule,
        kernel: PtxFunction,
        launch: LaunchDescription,
        *,
        budget: Budget,
        instructions: tuple[StaticInstruction, ...],
    ) -> None:
        self._module = module
        self._kernel = kernel
        self._launch = launch
        self._instructions = instructions
        self._meter = Meter(budget)
        self._machine: Machine | None = None
        self._runner: Runner | None = None
        self._tracer: Tracer | None = None
        self._sink: TraceSink | None = None
        self._pieces: list[Trace] = []
        self._buffers: tuple[Buffer, ...] = ()
        self._kept_bytes = 0
        self._most_traced = 0
        self._chosen: Blocks = range(0)
        self._finished = 0
        self.faults = FaultLog(instructions)

    def prepare(
        self,
        trace: TraceSettings | None,
        sink: TraceSink | None,
        arrays: Mapping[str, npt.NDArray[Any]],
        *,
        is_checked: bool,
    ) -> None:
        """Lay out memory; a budget that does not hold it is a fault."""
        budget = self._meter.budget
        inputs = build_inputs(self._module, self._kernel, self._launch, memory_limit_bytes=budget.memory_bytes)
        given_bytes = sum(one.data.nbytes for one in inputs.buffers if not one.is_zero)
        self._sink = sink
        if trace is not None:
            self._tracer = Tracer(trace, self._meter, self._instructions)
        try:
            self._meter.hold(given_bytes, "contents of the arrays")
            self._machine = build_machine(
                self._module,
                self._kernel,
                self._launch,
                inputs,
                meter=self._meter,
                faults=self.faults,
                instructions=self._instructions,
                tracer=self._tracer,
                arrays=arrays,
            )
        except BudgetReached as reached:
            self.faults.add(reached.kind, str(reached), is_fatal=True)
            return
        self._meter.release(given_bytes)
        self._buffers = list_buffers(self._machine, inputs)
        if self._tracer is not None:
            # Pieces are joined at the end, so a kept trace needs its bytes twice.
            self._most_traced = min(budget.trace_bytes, self._meter.left_bytes // (2 if sink is not None else 4))
            self._tracer.limit_bytes = self._most_traced
        trace_bytes = None if trace is None else self._most_traced
        self._runner = Runner(self._machine, checks_races=is_checked, trace_bytes=trace_bytes)
        if self._tracer is not None and sink is not None:
            self._bound_trace(self._tracer, self._runner)

    def run(self, sampling: Sampling) -> None:
        """Run the blocks that are chosen."""
        if self._runner is None or self._machine is None:
            return
        geometry = self._machine.geometry
        # Blocks that wait for each other run together, or not to their end.
        chosen = sampling if geometry.workspace == 0 else Sampling()
        self._chosen = geometry.complete_clusters(choose_blocks(geometry.block_count, chosen))
        self._finished = self._runner.run(self._chosen, self._take_batch)

    def _take_batch(self, batch: Batch) -> None:
        """Keep, or hand on, the trace of a batch."""
        tracer = self._tracer
        if tracer is None:
            return
        piece = tracer.take(batch, kernel=self._kernel.name, buffers=self._buffers)
        if not tracer.is_complete:
            is_timely = self._sink is not None and tracer.limit_bytes < self._most_traced
            short_of = "the time left" if is_timely else "the memory for it"
            self.faults.add(FaultKind.TRACE_BUDGET, f"the trace was cut off: it exceeds {short_of}")
        if self._sink is not None:
            begin = work_time()
            self._sink.add(piece)
            self._meter.sink_seconds += work_time() - begin
            if self._runner is not None:
                self._bound_trace(tracer, self._runner)
            return
        self._pieces.append(piece)
        self._kept_bytes += _count_bytes(piece)
        self._meter.held_bytes += _count_bytes(piece)
        tracer.limit_bytes = max(self._most_traced - self._kept_bytes, 0)

    def _bound_trace(self, tracer: Tracer, runner: Runner) -> None:
        """Limit the trace of the next batch to what the sink can process in the time left."""
        timely = int(self._meter.left_seconds * _SINK_BYTES_PER_S / _SINK_SHARE)
        tracer.limit_bytes = runner.trace_bytes = min(self._most_traced, max(timely, _LEAST_TRACED_BYTES))

    def finish(self) -> Emulation:
        """Results so far."""
        machine = self._machine
        counts = count_executions(len(self._instructions), machine)
        is_complete = machine is not None and self._finished == len(self._chosen)
        trace = None
        if self._tracer is not None and self._sink is None and self._pieces:
            trace = join_pieces(self._pieces)
        return Emulation(
            kernel=self._kernel.name,
            grid=self._launch.grid,
            block_threads=self._launch.block,
            instructions=self._instructions,
            counts=Counts(warp_executions=counts[0], lane_executions=counts[1]),
            executed_blocks=np.sort(np.asarray(self._chosen[: self._finished], dtype=np.uint32)),
            is_complete=is_complete,
            faults=self.faults.list_faults(),
            trace=trace,
            arrays={} if machine is None else collect_arrays(machine),
            warp_instructions=self._meter.warp_instructions,
            seconds=self._meter.seconds,
            peak_bytes=self._meter.peak_bytes,
            printed="" if machine is None else machine.printed,
            sink_seconds=self._meter.sink_seconds,
        )


def _count_bytes(piece: Trace) -> int:
    columns = (piece.accesses, piece.branches, piece.entries)
    return sum(getattr(one, name).nbytes for one in columns for name in one.__struct_fields__)


def find_kernel(module: PtxModule, name: str) -> PtxFunction:
    """The kernel of a mangled, readable or bare name (``saxpy``, without arguments, scopes and template arguments).

    Raises:
        InputError: there is none, or several; lists them.
    """
    entries = {entry.name: entry for entry in module.entries}
    if name in entries:
        return entries[name]
    readable = {mangled: demangle(mangled) for mangled in entries}
    for simplify in (_squeeze, _without_arguments, bare_name):
        found = [mangled for mangled, text in readable.items() if simplify(text) == simplify(name)]
        if len(found) == 1:
            return entries[found[0]]
        if found:
            listed = ", ".join(sorted(readable[mangled] for mangled in found))
            raise InputError(
                f"{name} is the name of {len(found)} kernels",
                path=module.name,
                remedy=f"give one of them in full: {listed}",
            )
    listed = ", ".join(sorted(readable.values())[:20]) or "none"
    raise InputError(f"no kernel {name}", path=module.name, remedy=f"its kernels are: {listed}")


def _squeeze(name: str) -> str:
    return name.replace(" ", "")


def _without_arguments(name: str) -> str:
    """A readable name without result type and arguments."""
    text = name.removeprefix("void ").strip()
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "(" and depth <= 0 and not text.startswith("(anonymous", place):
            return _squeeze(text[:place])
    return _squeeze(text)


def bare_name(name: str) -> str:
    """A readable name without arguments, template arguments and scopes.

    >>> bare_name("void outer::kernel<int, 3>(float*)")
    'kernel'
    """
    text = _without_arguments(name)
    depth, kept = 0, []
    for letter in text:
        if letter == "<":
            depth += 1
        elif letter == ">":
            depth -= 1
        elif depth <= 0:
            kept.append(letter)
    return "".join(kept).rpartition("::")[2]
