"""Benchmarks (CUDA C++; arithmetic: loops of one instruction in independent chains), the GPU they run on, and the rates they reach.

Every loop is of inline PTX, so that the compiler can neither fold nor remove it, and ends in a store that never happens. Eight chains times
eight warps per scheduler hide a latency of 32 cycles, more than any of these instructions has where it is not limited by its own rate.

Source:
    PTX ISA 8.8, "Warp-level matrix instructions: mma" for the shapes and the types of operands; CUDA Programming Guide, "Arithmetic
    Instructions". What is measured and why tensor instructions of warp groups are not: README, "Calibrating".
"""

import re

from msgspec import Struct

from gpa_lsp.gpu.device.model import MemoryLevel, OperationKind


class GpuFacts(Struct, frozen=True, kw_only=True):
    """Properties of a GPU to be measured."""

    name: str  # the device's
    compute_capability: tuple[int, int]  # (major, minor)
    sm_count: int  # streaming multiprocessors
    l2_bytes: int  # size of its L2
    free_bytes: int  # memory that can be allocated
    memory_clock_hz: float | None  # as the driver states it; None when it does not
    driver_version: str  # CUDA version the driver supports, e.g. ``13.0``.


class ArithmeticBenchmark(Struct, frozen=True, kw_only=True):
    """A loop of one instruction in independent chains."""

    kind: OperationKind  # the type of operation
    instruction: str  # what the loop is of, e.g. ``FFMA``: the opcode a listing of the compiled kernel must be full of.
    source: str  # CUDA C++
    instructions_per_turn: int  # of this opcode, per warp and turn of the loop
    ops_per_instruction: int  # operations of one warp instruction, a multiply-add counting two


class MemoryBenchmark(Struct, frozen=True, kw_only=True):
    """Reads of a working set, again and again."""

    level: MemoryLevel  # what it is meant to measure
    instruction: str  # opcode of the reads
    source: str  # CUDA C++
    bytes_per_thread_and_read: int  # width of one read
    reads_per_turn: int  # of each thread in one turn of the loop


class Timing(Struct, frozen=True, kw_only=True):
    """One run of a benchmark."""

    seconds: float  # by events on the stream
    sm_cycles: int  # that block 0 counted from its start to its end
    block_seconds: float  # the same by the GPU's global timer; 0 when it did not advance

    @property
    def sm_hz(self) -> float | None:
        """Clock of the SM; None if the timer is too coarse."""
        return self.sm_cycles / self.block_seconds if self.block_seconds > 0 and self.sm_cycles > 0 else None


class Rate(Struct, frozen=True, kw_only=True):
    """Rate of a benchmark over its repetitions."""

    per_s: float  # the best of them: a roof is what can be reached
    low_per_s: float  # the worst of them
    per_cycle: float | None  # the best per SM cycle, of the whole GPU; None when the clock was not measured
    sm_hz: float | None  # the clock of the best; None when it was not measured
    repetitions: int  # how many


class SweepPoint(Struct, frozen=True, kw_only=True):
    """One working set of a sweep."""

    working_set_bytes: int  # of one SM for L1, of the whole GPU for L2 and DRAM
    rate: Rate  # bytes per second


class Skipped(Struct, frozen=True, kw_only=True):
    """A type or level that has no benchmark on this GPU, and why."""

    what: str
    why: str


WARP_THREADS = 32
_CHAINS = 8
_TENSOR_CHAINS = 4  # Fewer, for the sake of their accumulators' registers
_STEPS = 16  # Instructions of each chain in one iteration

_SHELL = """
extern "C" __global__ void __launch_bounds__(256) benchmark(unsigned long long *out, unsigned int seed, int iterations)
{{
    unsigned long long begin_ns, end_ns;
    const long long begin = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns) :: "memory");
{declare}
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {{
#pragma unroll
        for (int step = 0; step < {steps}; ++step) {{
{body}
        }}
    }}
    unsigned int kept = 0;
{keep}
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_ns) :: "memory");
    if (kept == 0x7fedcba9u) out[4 + threadIdx.x] = kept;
    if (blockIdx.x == 0 && threadIdx.x == 0) {{ out[0] = clock64() - begin; out[1] = end_ns - begin_ns; }}
}}
"""


class _Loop(Struct, frozen=True, kw_only=True):
    """Loop of one scalar instruction; its result is every operand."""

    kind: OperationKind
    instruction: str
    ops_per_thread: int
    c_type: str
    start: str
    constraint: str
    ptx: str


_LOOPS = (
    _Loop(
        kind=OperationKind.FP64,
        instruction="DFMA",
        ops_per_thread=2,
        c_type="double",
        start="1.0 + 1e-9 * threadIdx.x",
        constraint="d",
        ptx="fma.rn.f64 %0, %0, %0, %0;",
    ),
    _Loop(
        kind=OperationKind.FP32,
        instruction="FFMA",
        ops_per_thread=2,
        c_type="float",
        start="1.0f + 1e-6f * threadIdx.x",
        constraint="f",
        ptx="fma.rn.f32 %0, %0, %0, %0;",
    ),
    _Loop(
        kind=OperationKind.FP16,
        instruction="HFMA2",
        ops_per_thread=4,  # a register holds a pair
        c_type="unsigned int",
        start="0x3c003c00u + threadIdx.x",
        constraint="r",
        ptx="fma.rn.f16x2 %0, %0, %0, %0;",
    ),
    _Loop(
        kind=OperationKind.INT32,
        instruction="IMAD",
        ops_per_thread=2,
        c_type="unsigned int",
        start="seed + threadIdx.x",
        constraint="r",
        ptx="mad.lo.u32 %0, %0, %0, %0;",
    ),
    _Loop(
        kind=OperationKind.SPECIAL,
        instruction="MUFU",
        ops_per_thread=1,
        c_type="float",
        start="0.5f + 1e-3f * threadIdx.x",
        constraint="f",
        ptx="ex2.approx.ftz.f32 %0, %0;",
    ),
)


class _Shape(Struct, frozen=True, kw_only=True):
    """A shape of ``mma.sync``, dense."""

    kind: OperationKind  # the type of operation
    since: tuple[int, int]  # compute capability that has it
    types: str  # shape and types as PTX writes them
    constraint: str  # of the accumulator's registers: ``d``, ``f`` or ``r``
    registers: tuple[int, int, int]  # of accumulator, A and B, per thread
    multiply_adds: int  # of one warp instruction
    instruction: str  # opcode it is compiled to


def _shape(kind: OperationKind, since: tuple[int, int], types: str, registers: tuple[int, int, int]) -> _Shape:
    """Shape of an ``mma`` instruction, by its PTX name."""
    rows, columns, depth = (int(size) for size in re.findall(r"[0-9]+", types.partition(".")[0]))
    accumulator = types.rpartition(".")[2]
    instruction = {"f64": "DMMA", "s32": "IMMA"}.get(accumulator, "QMMA" if "e4m3" in types else "HMMA")
    return _Shape(
        kind=kind,
        since=since,
        types=types,
        constraint={"f64": "d", "f32": "f", "s32": "r", "f16": "r"}[accumulator],
        registers=registers,
        multiply_adds=rows * columns * depth,
        instruction=instruction,
    )


# Largest first; the first that a compute capability has is taken. FP16 and FP8 accumulate in FP16, as the theoretical peaks have it: GeForce boards
# do so at twice the rate of FP32, and all others at the same.
_SHAPES = (
    _shape(OperationKind.TENSOR_FP64, (9, 0), "m16n8k8.row.col.f64.f64.f64.f64", (4, 4, 2)),
    _shape(OperationKind.TENSOR_FP64, (8, 0), "m8n8k4.row.col.f64.f64.f64.f64", (2, 1, 1)),
    _shape(OperationKind.TENSOR_TF32, (8, 0), "m16n8k8.row.col.f32.tf32.tf32.f32", (4, 4, 2)),
    _shape(OperationKind.TENSOR_FP16, (8, 0), "m16n8k16.row.col.f16.f16.f16.f16", (2, 4, 2)),
    _shape(OperationKind.TENSOR_FP16, (7, 5), "m16n8k8.row.col.f16.f16.f16.f16", (2, 2, 1)),
    _shape(OperationKind.TENSOR_BF16, (8, 0), "m16n8k16.row.col.f32.bf16.bf16.f32", (4, 4, 2)),
    _shape(OperationKind.TENSOR_FP8, (8, 9), "m16n8k32.row.col.f16.e4m3.e4m3.f16", (2, 4, 2)),
    _shape(OperationKind.TENSOR_INT8, (8, 0), "m16n8k32.row.col.s32.s8.s8.s32", (4, 4, 2)),
    _shape(OperationKind.TENSOR_INT8, (7, 5), "m8n8k16.row.col.s32.s8.s8.s32", (2, 1, 1)),
)

_PADDED_MAJOR = 12

_WARP_GROUP_MAJORS = (9, 10)  # Compute capabilities whose tensor cores only warp groups keep busy


def list_arithmetic_benchmarks(compute_capability: tuple[int, int]) -> tuple[list[ArithmeticBenchmark], list[Skipped]]:
    """Benchmarks of all types that a single warp's instruction computes, and the types without one.

    >>> found, skipped = list_arithmetic_benchmarks((8, 6))
    >>> [benchmark.instruction for benchmark in found][:5]
    ['DFMA', 'FFMA', 'HFMA2', 'IMAD', 'MUFU']
    """
    found = [_write_loop(loop) for loop in _LOOPS]
    skipped = []
    for kind in (kind for kind in OperationKind if kind.is_tensor):
        why, shape = find_obstacle(kind, compute_capability), _find_shape(kind, compute_capability)
        if why or shape is None:
            skipped.append(Skipped(what=kind.value, why=why))
        else:
            found.append(_write_tensor_loop(shape))
    return found, skipped


def find_obstacle(kind: OperationKind, compute_capability: tuple[int, int]) -> str:
    """Reason why a tensor type has no benchmark on a GPU; empty if it has one."""
    if kind is OperationKind.TENSOR_FP4:
        return "its instructions need a compiler target specific to this GPU"
    if _find_shape(kind, compute_capability) is None:
        return f"compute capability {'.'.join(map(str, compute_capability))} has no mma instruction of this type"
    if compute_capability[0] in _WARP_GROUP_MAJORS and kind is not OperationKind.TENSOR_FP64:
        return "mma of one warp does not reach the ceiling here, only warp groups do (wgmma, tcgen05); the theoretical ceiling is kept"
    if compute_capability[0] >= _PADDED_MAJOR and kind is OperationKind.TENSOR_FP64:
        return (
            "the compiler pads these instructions with thousands of others: they exist for correctness, not for speed"
        )
    return ""


def _find_shape(kind: OperationKind, compute_capability: tuple[int, int]) -> _Shape | None:
    return next((shape for shape in _SHAPES if shape.kind is kind and compute_capability >= shape.since), None)


def _write_loop(loop: _Loop) -> ArithmeticBenchmark:
    declare, body, keep = [], [], []
    for chain in range(_CHAINS):
        declare.append(f"    {loop.c_type} x{chain} = ({loop.c_type})({loop.start}) + ({loop.c_type}){chain};")
        body.append(f'            asm volatile("{loop.ptx}" : "+{loop.constraint}"(x{chain}));')
        keep.append(f"    kept += (unsigned int)x{chain};")
    return ArithmeticBenchmark(
        kind=loop.kind,
        instruction=loop.instruction,
        source=_fill(declare, body, keep),
        instructions_per_turn=_CHAINS * _STEPS,
        ops_per_instruction=loop.ops_per_thread * WARP_THREADS,
    )


def _write_tensor_loop(shape: _Shape) -> ArithmeticBenchmark:
    sums, firsts, seconds = shape.registers
    sum_type = {"d": "double", "f": "float", "r": "int"}[shape.constraint]
    type_name = "double" if shape.constraint == "d" else "unsigned int"
    declare = [f"    {type_name} a{i} = ({type_name})(seed + {i}u * threadIdx.x);" for i in range(firsts)]
    declare += [f"    {type_name} b{i} = ({type_name})(seed ^ ({i}u + threadIdx.x));" for i in range(seconds)]
    body, keep = [], []
    for chain in range(_TENSOR_CHAINS):
        accumulators = [f"x{chain}_{i}" for i in range(sums)]
        declare += [f"    {sum_type} {name} = ({sum_type})(threadIdx.x + {chain}u);" for name in accumulators]
        body.append(f"            {_write_mma(shape, accumulators)}")
        keep += [f"    kept += (unsigned int){name};" for name in accumulators]
    return ArithmeticBenchmark(
        kind=shape.kind,
        instruction=shape.instruction,
        source=_fill(declare, body, keep),
        instructions_per_turn=_TENSOR_CHAINS * _STEPS,
        ops_per_instruction=2 * shape.multiply_adds,
    )


def _write_mma(shape: _Shape, accumulators: list[str]) -> str:
    """``mma`` on accumulators that are both read and written."""
    sums, firsts, seconds = shape.registers
    numbers = [f"%{i}" for i in range(sums + firsts + seconds)]
    result = ", ".join(numbers[:sums])
    first = ", ".join(numbers[sums : sums + firsts])
    second = ", ".join(numbers[sums + firsts :])
    outputs = ", ".join(f'"+{shape.constraint}"({name})' for name in accumulators)
    operand = "d" if shape.constraint == "d" else "r"
    names = [*(f"a{i}" for i in range(firsts)), *(f"b{i}" for i in range(seconds))]
    inputs = ", ".join(f'"{operand}"({name})' for name in names)
    text = f"mma.sync.aligned.{shape.types} {{{result}}}, {{{first}}}, {{{second}}}, {{{result}}};"
    return f'asm volatile("{text}" : {outputs} : {inputs});'


def _fill(declare: list[str], body: list[str], keep: list[str]) -> str:
    return _SHELL.format(steps=_STEPS, declare="\n".join(declare), body="\n".join(body), keep="\n".join(keep))


# CUDA C++ of the memory benchmarks: reads of 16 bytes per thread, in order, of working sets that fit one level of the
# memory or not.
#
# Every word that is read is used: the compiler narrows reads of unused words. There are no writes: what a
# level can be read with is the roof that reading kernels run into, and writes and mixtures stay below it.
#
# Source:
#     CUDA Programming Guide, "Device memory accesses"; PTX ISA 8.8, "Cache operators" (``ld.global.cg`` caches in L2 and passes L1 by).

READ_BYTES = 16
SHARED_READS_PER_TURN = 64
GLOBAL_READS_PER_TURN = 16
BLOCK_THREADS = 1024

_HEAD = """
extern "C" __global__ void __launch_bounds__(1024) benchmark(unsigned long long *out, const uint4 *data, unsigned long long count, int iterations)
{
    unsigned long long begin_ns, end_ns;
    const long long begin = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin_ns) :: "memory");
    unsigned int kept = 0;
"""

_TAIL = """
    __syncthreads();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(end_ns) :: "memory");
    if (kept == 0x7fedcba9u) out[4 + threadIdx.x] = kept;
    if (blockIdx.x == 0 && threadIdx.x == 0) { out[0] = clock64() - begin; out[1] = end_ns - begin_ns; }
}
"""

_SHARED_BODY = """
    __shared__ uint4 words[1024];
    words[threadIdx.x] = make_uint4(threadIdx.x, 1, 2, 3);
    __syncthreads();
    const unsigned int at = (unsigned int)__cvta_generic_to_shared(words);
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int step = 0; step < 64; ++step) {
            unsigned int a, b, c, d;
            const unsigned int address = at + ((threadIdx.x + 32u * step) & 1023u) * 16u;
            asm volatile("ld.volatile.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(address));
            kept ^= a ^ b ^ c ^ d;
        }
    }
"""

# The place of the next read does not depend on a branch, so that sixteen of them are under way at a time. ``count`` is at least one stride.
_GLOBAL_BODY = """
    const uint4 *own = data + %(start)s;
    %(index)s at = %(first)s;
#pragma unroll 1
    for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
        for (int step = 0; step < 16; ++step) {
            unsigned int a, b, c, d;
            asm volatile("ld.global.%(cache)s.v4.u32 {%%0, %%1, %%2, %%3}, [%%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(own + at));
            kept ^= a ^ b ^ c ^ d;
            at += %(stride)s;
            at = at >= %(count)s ? at - %(count)s : at;
        }
    }
"""

_OWN_BODY = _GLOBAL_BODY % {
    "start": "(unsigned long long)blockIdx.x * count",
    "index": "unsigned int",
    "first": "threadIdx.x",
    "cache": "ca",
    "stride": "1024u",
    "count": "(unsigned int)count",
}
_COMMON_BODY = _GLOBAL_BODY % {
    "start": "0",
    "index": "unsigned long long",
    "first": "(blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x) % count",
    "cache": "cg",
    "stride": "stride",
    "count": "count",
}
_STRIDE = """
    const unsigned long long threads = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned long long stride = threads < count ? threads : threads % count;
"""


def make_shared_benchmark() -> MemoryBenchmark:
    """Every thread reads one array of shared memory over and over, 32 neighbours 32 neighbouring words: no conflicts."""
    return MemoryBenchmark(
        level=MemoryLevel.SHARED,
        instruction="LDS",
        source=_HEAD + _SHARED_BODY + _TAIL,
        bytes_per_thread_and_read=READ_BYTES,
        reads_per_turn=SHARED_READS_PER_TURN,
    )


def make_l1_benchmark() -> MemoryBenchmark:
    """Every block reads a working set of its own over and over; one block per SM."""
    return MemoryBenchmark(
        level=MemoryLevel.L1,
        instruction="LDG",
        source=_HEAD + _OWN_BODY + _TAIL,
        bytes_per_thread_and_read=READ_BYTES,
        reads_per_turn=GLOBAL_READS_PER_TURN,
    )


def make_common_benchmark() -> MemoryBenchmark:
    """All blocks together read one working set over and over, past L1, each block wandering through all of it."""
    return MemoryBenchmark(
        level=MemoryLevel.L2,
        instruction="LDG",
        source=_HEAD + _STRIDE + _COMMON_BODY + _TAIL,
        bytes_per_thread_and_read=READ_BYTES,
        reads_per_turn=GLOBAL_READS_PER_TURN,
    )


def list_l1_sets(l1_bytes: int) -> tuple[int, ...]:
    """Working sets of one SM, in bytes: from 16 KiB to twice its cache, doubling with a step between.

    >>> list_l1_sets(131072)
    (16384, 24576, 32768, 49152, 65536, 98304, 131072, 196608, 262144)
    """
    return _double(16 << 10, 2 * l1_bytes)


def list_common_sets(l2_bytes: int, free_bytes: int) -> tuple[int, ...]:
    """Working sets of the whole GPU, in bytes: from 1 MiB to sixteen times L2 (at least 512 MiB), at most half of what is free.

    >>> list_common_sets(4 << 20, 8 << 30)[0], list_common_sets(4 << 20, 8 << 30)[-1]
    (1048576, 536870912)
    """
    return _double(1 << 20, min(max(16 * l2_bytes, 512 << 20), free_bytes // 2))


def _double(first: int, last: int) -> tuple[int, ...]:
    sizes = []
    size = first
    while size <= last:
        sizes += [size, size + size // 2]
        size *= 2
    return tuple(size for size in sizes if size <= last)
