"""Made-up samples for real code: what a simple warp would be seen doing, one instruction after the other.

No GPU took part. Each instruction executes as often as its loops say (:data:`TURNS` turns a loop, unless the caller knows better), and each
execution leaves samples in proportion to the cycles a warp would stand at it by the control codes and round figures for latencies:

* ``selected``: one cycle; ``not_selected``: a share of one;
* ``wait``: the stall count of the instruction before, less one;
* ``long_scoreboard``, ``short_scoreboard``: what is left of the latency of the last instruction that set a scoreboard waited for, or of the
  time it takes to read its operands;
* ``lg_throttle``, ``mio_throttle``: memory instructions of one queue in a row, and extra passes that the given counters tell of;
* ``barrier`` after BAR, ``branch_resolving`` after a taken jump, ``drain`` after a store and EXIT, ``no_instructions`` at each line of code
  when the loop is larger than the instruction caches, ``math_pipe_throttle`` on FP64 where the architecture has little of it.

It is good for one thing: a profile of the right shape, so that each pair of kernels can be told apart by what the pair differs in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from gpa_lsp.code.binary.containers import find_cubins
from gpa_lsp.code.binary.model import NO_BARRIER, Flow, Instructions
from gpa_lsp.code.binary.opcodes import Access, MemorySpace, Opcode, Pipe, describe_mnemonic
from gpa_lsp.gpu.arch.model import Architecture
from gpa_lsp.gpu.arch.sections import ScoreboardKind
from gpa_lsp.kernel.join import list_unmeasured_kernels
from gpa_lsp.kernel.model import FunctionSamples, Kernel
from gpa_lsp.profile.model import Device, Metric, Module, StallSamples
from tests.control_flow.divergence_regions import list_divergence_regions
from tests.rows.builders import make_launch

TURNS = 64
"""Turns of a loop nobody knows better about."""

WARPS = 200
"""Executions of an instruction outside loops; a sample is taken of each cycle of each."""

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"

_LATENCY_CYCLES = {MemorySpace.GLOBAL: 200, MemorySpace.GENERIC: 200, MemorySpace.LOCAL: 150, MemorySpace.TEXTURE: 250,
                   MemorySpace.SHARED: 28, MemorySpace.CONSTANT: 60, MemorySpace.WARP: 24}  # fmt: skip
_OTHER_LATENCY_CYCLES = 24
_ATOMIC_CYCLES = 700
_OPERANDS_READ_CYCLES = 20
_INSTRUCTION_CACHE_BYTES = 32 << 10
_LATENCY_SHARE = 0.8
_REASONS = (
    "barrier", "branch_resolving", "drain", "lg_throttle", "long_scoreboard", "math_pipe_throttle", "mio_throttle", "no_instructions",
    "not_selected", "selected", "short_scoreboard", "imc_miss", "wait",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """Facts of a launch that the code alone does not say.

    Attributes:
        grid: blocks.
        block: threads.
        turns: of every loop.
        sectors: L2 sectors per request of global accesses, and the least that could do.
        wavefronts: passes per request of shared accesses, and the least.
        lanes: active threads of 32 in code below a divergent branch.
        imbalance: cycles the average warp stands at a barrier on top of the usual.
        executes: row and usual executions → executions, for kernels whose warps do different things.
        sm_count: of the GPU.
        metrics: aggregates of the launch, over the ones made up.
    """

    grid: tuple[int, int, int] = (4096, 1, 1)
    block: tuple[int, int, int] = (256, 1, 1)
    turns: int = TURNS
    sectors: tuple[int, int] = (4, 4)
    wavefronts: tuple[int, int] = (1, 1)
    lanes: int = 32
    imbalance: float = 0.0
    executes: Callable[[int, int], int] | None = None
    sm_count: int = 80
    metrics: tuple[tuple[str, float], ...] = ()


def make_up_kernel(path: Path, circumstances: Circumstances) -> Kernel:
    """The first kernel of a cubin as if it had been profiled."""
    (cubin,) = find_cubins(path)
    (kernel, *_), problems = list_unmeasured_kernels(cubin)
    assert not problems
    functions = tuple(_fill(function, kernel.architecture, circumstances) for function in kernel.functions)
    addresses = np.concatenate(
        [(number + 1) * 0x1000000 + function.pc_offsets for number, function in enumerate(functions)]
    ).astype(np.uint64)
    samples = StallSamples(
        addresses=addresses,
        reasons=_REASONS,
        all_samples=np.concatenate([function.all_samples for function in functions]),
        latency_samples=np.concatenate([function.latency_samples for function in functions]),
    )
    entry = functions[0].function
    reserved = 1024 if kernel.architecture.compute_capability >= (9, 0) and entry.shared_static_bytes else 0
    numbers: dict[str, float] = {
        "gpu__time_duration.sum": 1e6,
        "launch__registers_per_thread": float(entry.registers or 32),
        "launch__shared_mem_per_block_static": float(entry.shared_static_bytes - reserved),
        "launch__shared_mem_per_block_dynamic": 0.0,
        "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": 20.0,
        **dict(circumstances.metrics),
    }
    device = Device(
        name="Test GPU",
        compute_capability=kernel.architecture.compute_capability,
        sm_count=circumstances.sm_count,
        sm_clock_hz=1e9,
    )
    launch = make_launch(
        kernel.mangled_name,
        grid=circumstances.grid,
        block=circumstances.block,
        device=device,
        samples=samples,
        metrics={name: Metric(name=name, value=value) for name, value in numbers.items()},
    )
    sources = _read_sources(functions)
    module = Module(module_id=1, image=cubin.image, compute_capability=device.compute_capability, sources=sources)
    return replace(kernel, device=device, module=module, launches=(launch,), reasons=_REASONS, functions=functions)


def _read_sources(functions: tuple[FunctionSamples, ...]) -> dict[str, str]:
    """Path as compiled → text, of the fixtures' own sources, wherever they were compiled."""
    named = {
        frame.file for function in functions if function.lines for chain in function.lines.chains for frame in chain
    }
    found = {}
    for name in named:
        path = FIXTURES / "kernels" / Path(name).parent.name / Path(name).name
        if path.is_file():
            found[name] = path.read_text()
    return found


def _fill(function: FunctionSamples, architecture: Architecture, circumstances: Circumstances) -> FunctionSamples:
    assert function.instructions is not None
    walk = _Walk(function, function.instructions, architecture, circumstances)
    walk.run()
    every = np.rint(walk.cycles).astype(np.int64)
    latency = np.rint(every * _LATENCY_SHARE).astype(np.int64)
    for reason in ("selected", "not_selected"):
        latency[:, _REASONS.index(reason)] = 0
    return replace(
        function,
        all_samples=every,
        latency_samples=np.minimum(latency, every),
        executions=walk.executions * 10,
        counters=walk.count(),
    )


class _Walk:
    """One pass over the instructions in address order."""

    def __init__(
        self,
        function: FunctionSamples,
        instructions: Instructions,
        architecture: Architecture,
        circumstances: Circumstances,
    ) -> None:
        graph = function.graph
        self.instructions, self.graph, self.architecture, self.given = instructions, graph, architecture, circumstances
        count = len(instructions)
        self.cycles = np.zeros((count, len(_REASONS)))
        self.opcodes = [
            describe_mnemonic(instructions.mnemonics[index]) for index in instructions.mnemonic_index.tolist()
        ]
        depth = np.array([len(graph.loops_around(int(block))) for block in graph.block_of_instruction.tolist()])
        usual = WARPS * np.minimum(circumstances.turns ** np.minimum(depth, 2), circumstances.turns**2)
        usual = usual * graph.is_reachable[graph.block_of_instruction]
        if circumstances.executes is not None:
            usual = np.array([circumstances.executes(row, int(times)) for row, times in enumerate(usual)])
        self.executions = usual.astype(np.int64)
        self.loop_bytes = self._measure_loops()

    def _measure_loops(self) -> np.ndarray:
        """Bytes of the outermost loop around each instruction; 0 outside loops."""
        sizes = np.zeros(len(self.instructions), dtype=np.int64)
        for number, loop in enumerate(self.graph.loops):
            if loop.parent is None:
                inside = np.isin(self.graph.block_of_instruction, self.graph.blocks_of_loop(number))
                sizes[inside] = 16 * int(inside.sum())
        return sizes

    def run(self) -> None:
        control = self.instructions.control
        pending: dict[int, tuple[float, int]] = {}  # scoreboard → cycle of its release, row that set it
        clock, burst, stored = 0.0, 0, False
        for row, opcode in enumerate(self.opcodes):
            previous = row - 1
            if previous >= 0:
                self._stand(row, "wait", int(control.stall_cycles[previous]) - 1)
                clock += max(int(control.stall_cycles[previous]), 1)
                self._stand_after(row, self.opcodes[previous], stored)
            for scoreboard in range(6):
                if control.wait_mask[row] >> scoreboard & 1 and scoreboard in pending:
                    release, setter = pending.pop(scoreboard)
                    if release > clock:
                        self._stand(row, self._reason_of(setter), release - clock)
                        clock = release
            burst = burst + 1 if opcode.memory in _LATENCY_CYCLES else 0
            self._stand_in_queue(row, opcode, burst)
            self._stand(row, "selected", 1)
            self._stand(row, "not_selected", 0.3)
            if self.loop_bytes[row] > _INSTRUCTION_CACHE_BYTES and row % 8 == 0:
                self._stand(row, "no_instructions", 20)
            stored = (stored or opcode.access in (Access.STORE, Access.REDUCTION)) and opcode.flow is not Flow.EXIT
            result, operands = int(control.write_barrier[row]), int(control.read_barrier[row])
            if operands != NO_BARRIER:
                pending[operands] = (clock + min(self._latency(row, opcode), _OPERANDS_READ_CYCLES), row)
            if result != NO_BARRIER:
                pending[result] = (clock + self._latency(row, opcode), row)

    def _stand(self, row: int, reason: str, cycles: float) -> None:
        if cycles > 0:
            self.cycles[row, _REASONS.index(reason)] += cycles * self.executions[row] / WARPS

    def _stand_after(self, row: int, before: Opcode, stored: bool) -> None:
        if before.flow in (Flow.BRANCH, Flow.CALL, Flow.RETURN, Flow.BARRIER_WAIT):
            self._stand(row, "branch_resolving", 6)
        if before.flow is Flow.EXIT and stored:
            self.cycles[row, _REASONS.index("drain")] += 40
        if before.name == "BAR":
            self._stand(row, "barrier", 15 + self.given.imbalance)

    def _stand_in_queue(self, row: int, opcode: Opcode, burst: int) -> None:
        if opcode.memory in (MemorySpace.GLOBAL, MemorySpace.GENERIC, MemorySpace.LOCAL):
            self._stand(row, "lg_throttle", max(0, burst - 4) * 4 + 2 * (self.given.sectors[0] - self.given.sectors[1]))
        if opcode.memory is MemorySpace.SHARED:
            passes = self.given.wavefronts[0] - self.given.wavefronts[1]
            self._stand(row, "mio_throttle", max(0, burst - 4) * 2 + 2 * passes)
        if opcode.memory is MemorySpace.CONSTANT and opcode.access is Access.LOAD:
            self._stand(row, "mio_throttle", 4)
        if opcode.pipe is Pipe.FP64 and (self.architecture.throughput.fp64_instructions_per_cycle.value or 1) < 0.1:
            self._stand(row, "math_pipe_throttle", 32)

    def _latency(self, row: int, opcode: Opcode) -> float:
        if opcode.access in (Access.ATOMIC, Access.REDUCTION) and opcode.memory is not MemorySpace.SHARED:
            return _ATOMIC_CYCLES
        extra = 0.0
        if opcode.memory is MemorySpace.SHARED:
            extra = 2.0 * (self.given.wavefronts[0] - self.given.wavefronts[1])
        if opcode.memory in (MemorySpace.GLOBAL, MemorySpace.GENERIC):
            extra = 15.0 * (self.given.sectors[0] - self.given.sectors[1])
        if opcode.access in (Access.STORE, Access.REDUCTION):
            return 20.0 + extra
        return (
            _LATENCY_CYCLES.get(opcode.memory, _OTHER_LATENCY_CYCLES) + extra
            if opcode.memory
            else _OTHER_LATENCY_CYCLES
        )

    def _reason_of(self, setter: int) -> str:
        mnemonic = self.instructions.mnemonics[int(self.instructions.mnemonic_index[setter])]
        kind = self.architecture.find_scoreboard(mnemonic)
        return "long_scoreboard" if kind is ScoreboardKind.LONG else "short_scoreboard"

    def count(self) -> dict[str, np.ndarray]:
        """The counters Nsight Compute would have."""
        none = np.full(len(self.opcodes), -1, dtype=np.int64)
        spaces = [opcode.memory for opcode in self.opcodes]
        is_global = np.array([space in (MemorySpace.GLOBAL, MemorySpace.GENERIC) for space in spaces])
        is_shared = np.array([space is MemorySpace.SHARED for space in spaces])
        requests = self.executions * 10
        threads = requests * 32
        lanes = requests * self.given.lanes
        below = np.isin(self.graph.block_of_instruction, self._list_divergent_blocks())
        branches = np.array([opcode.flow is Flow.BRANCH for opcode in self.opcodes]) & (self.instructions.guard >= 0)
        return {
            "thread_executions": np.where(below, lanes, threads),
            "thread_executions_true": np.where(below, lanes, threads),
            "divergent_branch_targets": np.where(branches, requests if self.given.lanes < 32 else 0, -1),
            "global_sectors": np.where(is_global, requests * self.given.sectors[0], none),
            "global_sectors_ideal": np.where(is_global, requests * self.given.sectors[1], none),
            "shared_wavefronts": np.where(is_shared, requests * self.given.wavefronts[0], none),
            "shared_wavefronts_ideal": np.where(is_shared, requests * self.given.wavefronts[1], none),
        }

    def _list_divergent_blocks(self) -> list[int]:
        """Blocks between a BSSY and its meeting point, other than its own."""
        blocks = []
        for region in list_divergence_regions(self.instructions, self.graph):
            blocks.extend(range(region.set_block + 1, region.target_block))
        return blocks
