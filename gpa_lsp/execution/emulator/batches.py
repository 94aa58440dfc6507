"""All blocks of a launch, batch by batch: :class:`Runner`."""

from collections.abc import Callable
from functools import cache

import numpy as np
import numpy.typing as npt

from gpa_lsp.code.ptx.model import Space
from gpa_lsp.execution.emulator.compiled.calls import Calls
from gpa_lsp.execution.emulator.compiled.program import CompiledKernel, compile_kernel
from gpa_lsp.execution.emulator.compiled.scheduler import CompiledScheduler, CoreColumns, count_core_bytes
from gpa_lsp.execution.emulator.compiled.translated import TRANSLATIONS, Translation
from gpa_lsp.execution.emulator.engine.fragments import Batch, BatchMemory
from gpa_lsp.execution.emulator.engine.functions import find_space
from gpa_lsp.execution.emulator.engine.machine import Machine
from gpa_lsp.execution.emulator.engine.meter import BudgetReached
from gpa_lsp.execution.emulator.model import Blocks, FaultKind

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
