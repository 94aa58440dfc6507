"""CUDA C++ of the memory benchmarks: reads of 16 bytes per thread, in order, of working sets that fit one level of the memory or not.

Every word that is read is used: the compiler narrows reads whose words nobody needs. There are no writes: what a level can be read with is the
roof that reading kernels run into, and writes and mixtures stay below it.

Source:
    CUDA Programming Guide, "Device memory accesses"; PTX ISA 8.8, "Cache operators" (``ld.global.cg`` caches in L2 and passes L1 by).
"""

from gpa_lsp.execution.calibration.model import MemoryBenchmark
from gpa_lsp.gpu.device.model import MemoryLevel

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


def make_common_benchmark(level: MemoryLevel) -> MemoryBenchmark:
    """All blocks together read one working set over and over, past L1, each block wandering through all of it."""
    return MemoryBenchmark(
        level=level,
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
