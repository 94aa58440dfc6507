"""C and C++ library headers for device code: the parts that kernels use; headers for host code alone are empty.

NVRTC knows ``printf``, ``assert``, ``memcpy``, the functions of ``math.h`` and ``std::move`` by itself; the integer types, limits, constants and
the few templates that kernels take from the library are in the files here.
"""

import re
from functools import cache
from pathlib import Path

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
        path = Path(__file__).with_name(f"{file}.cuh")
        text = _CONSTANT.sub(r"#ifndef \1\n\g<0>\n#endif", path.read_text(encoding="utf-8"))
        text = f'#line 1 "{path.as_posix()}"\n{text}'
        found += [(name, text) for name in names]
    return tuple(found)
