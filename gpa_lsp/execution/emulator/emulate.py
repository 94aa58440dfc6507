"""PTX + launch → what happened: :func:`emulate`."""

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.ptx.model import PtxFunction, PtxModule
from gpa_lsp.code.ptx.static_instructions import StaticInstruction, list_reachable, list_static_instructions
from gpa_lsp.execution.emulator.batches import Runner
from gpa_lsp.execution.emulator.engine.faults import FaultLog
from gpa_lsp.execution.emulator.engine.fragments import Batch
from gpa_lsp.execution.emulator.engine.launching import build_machine, collect_arrays, list_buffers
from gpa_lsp.execution.emulator.engine.machine import Machine, lay_out_shared
from gpa_lsp.execution.emulator.engine.meter import BudgetReached, Meter
from gpa_lsp.execution.emulator.engine.tracing import Tracer
from gpa_lsp.execution.emulator.model import (
    Blocks,
    Budget,
    Counts,
    Emulation,
    FaultKind,
    Sampling,
    TraceSettings,
    TraceSink,
    choose_blocks,
)
from gpa_lsp.execution.emulator.trace import Buffer, Trace, join_pieces
from gpa_lsp.execution.launches.build import build_inputs
from gpa_lsp.execution.launches.launch import LaunchDescription
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.numbers import format_count
from gpa_lsp.foundation.work_time import work_time

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
