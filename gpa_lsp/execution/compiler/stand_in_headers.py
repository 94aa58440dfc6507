"""Headers that stand in for others.

In ``device_headers``: C and C++ library headers with the parts that kernels use; headers for host code alone are empty. NVRTC knows ``printf``,
``assert``, ``memcpy``, the functions of ``math.h`` and ``std::move`` by itself; here are the integer types, limits, constants and the few templates
that kernels take from the library.

In ``absent_headers``: those of NVIDIA's samples and libraries that sources include and that are not installed. Most are for building programs, too,
and those in ``cublas``, ``cufft`` and ``random``, where the library is not installed. Those in ``device`` have less than the real ones: kernels can
be looked at with them, and nothing is built with them.
"""

import re
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("absent_headers")  # To search behind everything else, where a program is built
RANDOM = "curand_kernel.h"
JUMPS = "curand_jumps.h"  # What it includes, as write_jumps has it
# Characteristic polynomial of a step of XORWOW over GF(2), bit i the coefficient of x**i: the shortest recurrence of its bits (Berlekamp, Massey).
_STEP = 0x100000F0E0F3C0035000621210861003000060001
_DEGREE = 160
_SEQUENCE_BITS = 67  # numbers of a sequence before the next one begins, as a power of two
_ROWS = 64  # bits of a count


@cache
def read_absent_header(name: str) -> str | None:
    """Stand-in for a header, by its name in the ``#include``, with a ``#line`` of its own path; None if there is none."""
    if not name.replace(".", "_").isidentifier():
        return None
    paths = (FOLDER / name, FOLDER / ("random" if name == RANDOM else "device") / name)
    found = next((path for path in paths if path.suffix == ".h" and path.is_file()), None)
    if found is None:
        return None
    text = found.read_text(encoding="utf-8").replace(f'#include "{JUMPS}"', write_jumps())
    return f'#line 1 "{found.as_posix()}"\n{text}'


def write_jumps() -> str:
    """C rows of XORWOW's jump polynomials: x to the number of steps, modulo the polynomial of one step, in 32-bit words.

    Row k jumps 2**k numbers, row 64 + k as many sequences.
    """
    rows, power = [], 2
    for bit in range(_SEQUENCE_BITS + _ROWS):
        if bit < _ROWS or bit >= _SEQUENCE_BITS:
            words = ", ".join(f"0x{power >> 32 * word & 0xFFFFFFFF:08x}" for word in range(_DEGREE // 32))
            rows.append(f"{{{words}}}")
        power = int(f"{power:b}", 4)  # its square has each bit in twice the place
        while power >> _DEGREE:
            power ^= _STEP << power.bit_length() - _DEGREE - 1
    return ", ".join(rows)


_CONTENTS = {
    "cstdint": ("cstdint", "stdint.h", "inttypes.h", "cinttypes", "sys/types.h"),
    "climits": ("climits", "limits.h"),
    "cfloat": ("cfloat", "float.h"),
    "cstddef": ("cstddef", "stddef.h"),
    "cmath": ("cmath", "math.h"),
    "limits": ("limits",),
    "type_traits": ("type_traits",),
    "algorithm": ("algorithm",),
    "utility": ("utility",),
    "param": ("sys/param.h",),
    "cstdlib": ("cstdlib", "stdlib.h", "cstring", "string.h", "cassert", "assert.h", "cstdio", "stdio.h"),
}
# Read as empty: none of them has anything for device code without a C++ library
HOST_HEADERS = (
    "any", "array", "atomic", "barrier", "bit", "bitset", "cctype", "cerrno", "chrono", "codecvt", "complex", "concepts", "condition_variable",
    "csignal", "cstdarg", "ctime", "ctype.h", "deque", "errno.h", "exception", "execution", "fcntl.h", "filesystem", "format", "forward_list",
    "fstream", "functional", "future", "getopt.h", "initializer_list", "iomanip", "ios", "iosfwd", "iostream", "istream", "iterator", "latch",
    "list", "locale", "locale.h", "map", "memory", "memory_resource", "mutex", "new", "numbers", "numeric", "omp.h", "optional", "ostream",
    "pthread.h", "queue", "random", "ranges", "ratio", "regex", "semaphore", "set", "setjmp.h", "shared_mutex", "signal.h", "span", "sstream",
    "stack", "stdarg.h", "stdbool.h", "stdexcept", "stop_token", "streambuf", "string", "string_view", "strings.h", "sys/mman.h", "sys/resource.h",
    "sys/stat.h", "sys/time.h", "system_error", "thread", "time.h", "tuple", "typeindex", "typeinfo", "unistd.h", "unordered_map",
    "unordered_set", "valarray", "variant", "vector", "windows.h", "cuda_profiler_api.h", "nvToolsExt.h", "nvtx3/nvToolsExt.h",
    "helper_cuda.h", "helper_functions.h", "helper_timer.h", "cusparse.h", "cusolverDn.h", "curand.h", "mpi.h", "nccl.h",
    "driver_functions.h", "cuda_gl_interop.h", "cudaGL.h", "cuda_egl_interop.h", "cudaEGL.h", "cuda_vdpau_interop.h", "cudaVDPAU.h", "cupti.h",
)  # fmt: skip

# Those that hosts' headers often bring along without being asked
LIBRARY_HEADERS = ("cstdint", "climits", "cfloat", "cstddef", "cmath", "limits", "algorithm", "utility", "cstdlib")

_DECLARED = re.compile(
    r"^#define (\w+)|^(?:typedef .*?|using ::|class |struct |__host__ .*?)(\w+)(?:;| \{|\()", re.MULTILINE
)

_CONSTANT = re.compile(r"^#define (\w+) .*[^\\\n]$", re.MULTILINE)


@cache
def list_library_names() -> frozenset[str]:
    """Names that :data:`LIBRARY_HEADERS` define."""
    texts = dict(read_device_headers())
    found = (match for name in LIBRARY_HEADERS for match in _DECLARED.finditer(texts[name]))
    return frozenset(name for match in found for name in match.groups() if name is not None)


@cache
def read_device_headers() -> tuple[tuple[str, str], ...]:
    """(name in the ``#include``, text) of every header; constants are guarded by ``#ifndef``."""
    found = [(name, "") for name in HOST_HEADERS]
    for file, names in _CONTENTS.items():
        path = Path(__file__).with_name("device_headers") / f"{file}.cuh"
        text = _CONSTANT.sub(r"#ifndef \1\n\g<0>\n#endif", path.read_text(encoding="utf-8"))
        text = f'#line 1 "{path.as_posix()}"\n{text}'
        found += [(name, text) for name in names]
    return tuple(found)
