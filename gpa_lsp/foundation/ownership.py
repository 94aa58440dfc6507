"""The owner and the language of a line's or a kernel's code: asked by everything that names a line, or says what to change.

A library's file is told by its path, as on the machine that compiled it: folders into which systems, toolkits and package managers install, and
trees of well-known header libraries, wherever they lie. Of files whose path says nothing (Julia's Base, a bare header name) the name decides.
A library's kernel is told by its namespace, by the spelling of its name, or by lines that all lie in library files. What fits no pattern is
unknown and never called a library.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from functools import lru_cache

from gpa_lsp.foundation.locations import Frame, InlineChain, SourceLine

_FOLDERS = re.compile(
    r"^/usr/(?:include|lib\d*|libexec|share)/|^/usr/local/(?:include|lib\d*|share|cuda[^/]*)/|^/lib\d*/"  # systems
    r"|^/opt/(?:nvidia|cuda|intel|rocm|hpc|local|homebrew)[^/]*/|^/(?:nix/store|gnu/store|snap)/|/spack/opt/"
    r"|^[a-z]:/(?:program files|windows kits)"
    r"|/(?:site|dist)-packages/|/lib/python\d[^/]*/|/(?:envs/[^/]+|mini(?:conda|forge)[^/]*|anaconda[^/]*)/include/"  # Python's
    r"|/nvidia gpu computing toolkit/|/cuda(?:[-_/]?v?\d[^/]*)/(?:[^/]+/)*include/|/targets/[^/]+-(?:linux|qnx)[^/]*/include/"  # toolkits
    r"|/(?:cuda_runtime|cuda_nvcc|cuda_cccl|cu\d+)/include/|/nvhpc/|/hpc_sdk/|/c\+\+/(?:v1/|\d+(?:\.\d+)*/)|/gcc/[^/]+/\d+[^/]*/include/"
    r"|/\.julia/(?:packages|artifacts|juliaup|compiled)/|/share/julia/|/julialang/|/julia-\d[^/]*/"  # Julia's
    r"|/\.(?:cargo/registry|rustup|triton|conan2?|nuget)/|/vcpkg/(?:installed|packages)/"
    r"|(?:^|/)(?:cub/(?:agent|block|device|grid|iterator|thread|util|warp|detail)|thrust/(?:system|detail|iterator|mr|random|async))[^/]*[/.]"
    r"|(?:^|/)(?:cooperative_groups|cuda/std|libcudacxx|cutlass/include|include/(?:cutlass|cute|cccl|cuda)|aten/src|c10/cuda)/"
)
# Headers and modules that are told by their name alone; Julia's Base is compiled with relative paths.
_NAMES = re.compile(
    r"(?:.*/include/(?:crt/)?)?(?:sm_\d\d_\w+|device_(?:functions|double_functions|atomic_functions|types)"
    r"|(?:math|vector|texture|surface)\w*_functions|texture_fetch_functions|math_constants"
    r"|cuda_(?:fp\d+|bf16|pipeline|awbarrier|device_runtime|texture)\w*|mma|cooperative_groups\w*"
    r"|curand\w*|crt_\w+|__clang_cuda_\w+|libdevice\w*)\.(?:hpp|h|cuh|bc)|(?:.*/)?__nv_nvrtc_builtin_header\.h"
    r"|(?:boot|essentials|float|int|promotion|range|number|operators|bool|pointer|tuple|ntuple|abstractarray|array|subarray|multidimensional"
    r"|indices|iterators|reinterpretarray|broadcast|checked|intfuncs|floatfuncs|fastmath|rounding|refvalue|some|reduce|gcutils|cartesian"
    r"|llvmcall|base|Base|Core|sysimg|special/\w+)\.jl"
)

# Headers of ours in place of those that are not installed.
_STAND_INS = re.compile(
    r"/gpa_lsp/execution/compiler/(?:device_headers|absent_headers)/(?:[^/]+/)*([^/]+)$", re.IGNORECASE
)

# Namespace that a library's kernels are in → the library.
_NAMESPACES = {
    "at|c10|caffe2|at_cuda_detail|torch": "PyTorch",
    "thrust": "Thrust",
    "cub": "CUB",
    "cutlass|cute": "CUTLASS",
    r"cudnn\w*|cask_cudnn\w*": "cuDNN",
    r"cublas\w*|cask_cublas\w*": "cuBLAS",
    "cufft": "cuFFT",
    "cusparse": "cuSPARSE",
    "cusolver": "cuSOLVER",
    "curand": "cuRAND",
    "cutensor": "cuTENSOR",
    r"nccl\w*": "NCCL",
    "flash|flash_attn|flashinfer": "FlashAttention",
    "vllm": "vLLM",
    r"tensorrt_llm|trt|cask\w*": "TensorRT",
    "xla|tensorflow": "TensorFlow",
    "mxnet": "MXNet",
    "onnxruntime": "ONNX Runtime",
    "raft|cuml": "cuML",
    "rmm|cudf": "cuDF",
    "nvjpeg": "nvJPEG",
    "npp": "NPP",
    "cuco": "cuCollections",
}
# Spelling of kernels that come without source → the library. Names that a user may have given as well count only with what theirs lack: no
# parameters (generated code), a tile, or a parameter type of the library.
_SPELLINGS = {
    r"(?:ampere|volta|turing|maxwell|pascal|kepler|hopper|blackwell|sm\d\d)_\w*cudnn\w*_\d+x\d+\w*": "cuDNN",
    r"(?:ampere|volta|turing|maxwell|pascal|kepler|hopper|blackwell|sm\d\d)_\w*gemm\w*_\d+x\d+\w*": "cuBLAS",
    r"sm\d\d_xmma_(?:fprop|dgrad|wgrad|conv)\w+|cudnn_\w+": "cuDNN",
    r"sm\d\d_xmma_gemm\w+|nvjet_\w+": "cuBLAS",
    r"cutlass_\d\d_\w+": "CUTLASS",
    r"(?:void )?\w+<.*\bcublas\w*(?:Params|Tensor)\w*.*": "cuBLAS",
    r"(?:void )?(?:regular|vector|composite_\w+)_fft<.*": "cuFFT",
    r"(?:void )?(?:implicit|explicit)_convolve_\w*gemm<.*|(?:void )?(?:nchwToNhwc|nhwcToNchw)Kernel<.*": "cuDNN",
    r"ncclKernel_\w+(?:\(.*)?|ncclDevKernel_\w+(?:\(.*)?": "NCCL",
    r"(?:void )?(?:generate_seed_pseudo|gen_sequenced)<.*\b(?:curand|rng_config).*": "cuRAND",
    r"(?:void )?csrm[vm]\w*<.*\bcusparse.*": "cuSPARSE",
}
_MAKERS = (
    *(
        (re.compile(rf"(?:void )?(?:{namespace})::.*", re.DOTALL), library)
        for namespace, library in _NAMESPACES.items()
    ),
    *((re.compile(spelling, re.DOTALL), library) for spelling, library in _SPELLINGS.items()),
)
# Folder of a library in the path of one of its files.
_PACKAGE = re.compile(r"/(?:site|dist)-packages/([^/]+)/|/packages/([^/]+)/|(?:^|/)(cutlass|cute|cub|thrust)/")
_TREES = {"cutlass": "CUTLASS", "cute": "CUTLASS", "cub": "CUB", "thrust": "Thrust", "torch": "PyTorch"}

# Name of a library of which only its files are known, and not whose they are.
THIRD_PARTY = "third-party"

_COLLAPSING = re.compile(r"_\d+_gpu(?:__\w+)?$|^__omp_offloading_")


class Language(StrEnum):
    """The language of a kernel."""

    CUDA = "CUDA C++"
    TRITON = "Triton"
    NUMBA = "Numba"
    JULIA = "Julia"
    FORTRAN = "Fortran"
    UNKNOWN = "unknown"


LINE_REMEDIES = {
    Language.CUDA: "compile with -lineinfo",
    Language.TRITON: "unset TRITON_DISABLE_LINE_INFO: Triton writes lines by default",
    Language.NUMBA: "compile with @cuda.jit(lineinfo=True)",
    Language.JULIA: "start Julia with -g1 or -g2",
    Language.FORTRAN: "compile with -gpu=lineinfo",
    Language.UNKNOWN: "compile with line information: nvcc -lineinfo, nvfortran -gpu=lineinfo, Numba's lineinfo=True, Julia's -g1",
}


@lru_cache(maxsize=4096)
def shorten_library_path(file: str) -> str:
    """The name of a library's file; the path of any other.

    >>> shorten_library_path("/usr/local/cuda/include/sm_32_intrinsics.hpp"), shorten_library_path("/home/me/k.cu")
    ('sm_32_intrinsics.hpp', '/home/me/k.cu')
    """
    return re.split(r"[/\\\\]", file)[-1] if is_library_file(file) else file


def is_library_file(file: str) -> bool:
    """Whether a file belongs to a library, a toolkit or a language's runtime.

    >>> [is_library_file(one) for one in ("/usr/local/cuda/include/sm_32_intrinsics.hpp", "C:\\\\work\\\\k.cu", "int.jl", "/home/me/k/int.jl")]
    [True, False, True, False]
    >>> is_library_file("/tmp/__nv_nvrtc_builtin_header.h")
    True
    """
    path = file.replace("\\", "/")
    return (
        name_stand_in(path) != "" or _FOLDERS.search(path.casefold()) is not None or _NAMES.fullmatch(path) is not None
    )


def name_stand_in(file: str) -> str:
    """The header that a file of ours stands in place of; empty where it is none of these files.

    >>> name_stand_in("/x/gpa_lsp/execution/compiler/absent_headers/random/curand_kernel.h"), name_stand_in("/usr/include/curand_kernel.h")
    ('curand_kernel.h', '')
    """
    found = _STAND_INS.search(file.replace("\\", "/"))
    return "" if found is None else found[1].removesuffix(".cuh")


def describe_stand_in(chain: InlineChain | None) -> str:
    """The words ``in our stand-in for curand_kernel.h``, where an instruction is of such a file; else empty."""
    name = next((name for frame in reversed(chain or ()) if (name := name_stand_in(frame.file))), "")
    return name and f"in our stand-in for {name}"


def choose_frame(chain: InlineChain, is_shown: Callable[[str], bool] | None = None) -> Frame:
    """The frame of an inline chain by which its instruction is named: the innermost line of the user's own.

    Where all of it is a library's, its innermost line; frames without a line stand for nothing.

    Args:
        chain: of the instruction.
        is_shown: whether the reader has a file, as compiled, before them; of the lines in question, one in such a file goes first.

    >>> ldg, step, kernel = (Frame(file=file, line=9) for file in ("sm_32_intrinsics.hpp", "m.h", "k.cu"))
    >>> choose_frame((ldg, step, kernel)).file, choose_frame((ldg, step, kernel), {"k.cu", ldg.file}.__contains__).file
    ('m.h', 'k.cu')
    """
    placed = [frame for frame in chain if frame.line] or chain
    own = [frame for frame in placed if not is_library_file(frame.file)] or placed
    return own[0] if is_shown is None else next((frame for frame in own if is_shown(frame.file)), own[0])


def find_frame_in(chain: InlineChain | None, is_shown: Callable[[str], bool]) -> Frame | None:
    """The line by which an instruction is named among those in some files, as in one document; None where it has none there.

    >>> ldg, kernel = Frame(file="sm_32_intrinsics.hpp", line=134), Frame(file="k.cu", line=5)
    >>> [find_frame_in((ldg, kernel), {file}.__contains__) for file in ("k.cu", "m.h")] == [kernel, None]
    True
    """
    shown = tuple(frame for frame in chain or () if frame.line and is_shown(frame.file))
    return choose_frame(shown) if shown else None


def choose_other_frame(own: InlineChain, other: InlineChain) -> Frame:
    """The frame to name an instruction by, seen from another one: the outermost in which the two differ, else its innermost; none in a library
    where the user's own line is known.

    Two calls of one inlined function on two lines are told apart by those lines; two places inside one such call by the lines inside it.

    >>> inner, outer = Frame(file="m.h", line=9), Frame(file="k.cu", line=5)
    >>> choose_other_frame((inner, outer), (Frame(file="m.h", line=3), outer)).line
    3
    >>> choose_other_frame((inner, outer), (inner, Frame(file="k.cu", line=4))).line
    4
    """
    common = 0
    for one, another in zip(reversed(own), reversed(other), strict=False):
        if one != another:
            break
        common += 1
    apart = len(other) - 1 - common if common < len(other) else 0
    return choose_frame(other) if is_library_file(other[apart].file) else other[apart]


def find_represented(chains: Iterable[InlineChain]) -> frozenset[SourceLine]:
    """The lines of libraries that lines of the user's own stand for: all the code of them is inlined there.

    >>> ldg, kernel = Frame(file="sm_32_intrinsics.hpp", line=134), Frame(file="k.cu", line=5)
    >>> [str(line) for line in find_represented([(ldg, kernel), (kernel,)])], find_represented([(ldg, kernel), (ldg,)])
    (['sm_32_intrinsics.hpp:134'], frozenset())
    """
    inside: set[SourceLine] = set()
    alone: set[SourceLine] = set()
    for chain in chains:
        lines = alone if is_library_file(choose_frame(chain).file) else inside
        lines.update(frame.source_line for frame in chain if is_library_file(frame.file))
    return frozenset(inside - alone)


def find_library_frame(chain: InlineChain) -> Frame | None:
    """The library's line inside the user's that an instruction was compiled from; None where it is the user's own."""
    inner = next((frame for frame in chain if frame.line), None)
    return None if inner is None or inner is choose_frame(chain) or not is_library_file(inner.file) else inner


@lru_cache(maxsize=4096)
def find_library(name: str, files: frozenset[str]) -> str:
    """Library that a kernel belongs to; empty for the user's own and for one of which nothing is known.

    A template of a library that the user compiles is the user's where one of its lines is, as that of a lambda.

    Args:
        name: readable.
        files: of all its lines; empty where it has none.

    >>> find_library("ampere_sgemm_128x64_nn", frozenset()), find_library("ampere_sgemm_128x64(float*)", frozenset())
    ('cuBLAS', '')
    >>> find_library("void cub::Sum<F>(F)", frozenset()), find_library("void cub::Sum<F>(F)", frozenset({"/home/me/k.cu"}))
    ('CUB', '')
    """
    if any(not is_library_file(file) for file in files):
        return ""
    named = next((library for pattern, library in _MAKERS if pattern.fullmatch(name)), "")
    return named or (_name_package(files) if files else "")


def _name_package(files: Iterable[str]) -> str:
    """Library that most of some files of libraries are from."""
    found = (_PACKAGE.search(file.replace("\\", "/")) for file in sorted(files))
    counts = Counter(next(filter(None, one.groups())) for one in found if one is not None)
    folder = counts.most_common(1)[0][0] if counts else THIRD_PARTY
    return _TREES.get(folder, folder)


def has_collapsed_loops(name: str) -> bool:
    """Whether a kernel was made of loops, by OpenACC, OpenMP or CUDA Fortran, so that several of them may be one index.

    >>> has_collapsed_loops("step_9_gpu"), has_collapsed_loops("step_9_gpu(float*)")
    (True, False)
    """
    return _COLLAPSING.search(name) is not None


def find_language(name: str, mangled_name: str, files: Iterable[str]) -> Language:
    """The language of a kernel, by its files, else by how its compiler spells names; a name alone tells CUDA C++ only where it is mangled as C++.

    >>> find_language("axpy", "_ZN8__main__4axpyE", ()), find_language("step_9_gpu", "step_9_gpu", ("/a/k.F90",)), find_language("k", "k", ())
    (<Language.NUMBA: 'Numba'>, <Language.FORTRAN: 'Fortran'>, <Language.UNKNOWN: 'unknown'>)
    """
    suffixes = {file.replace("\\", "/").rpartition("/")[2].rpartition(".")[2].casefold() for file in files}
    is_numba = "__main__::" in name or "cudapy" in name or re.match(r"_ZN8__main__|_ZN6cudapy", mangled_name)
    if is_numba or (re.search(r"\[abi:|B2v\d", name + mangled_name) and not suffixes - {"py"}):
        return Language.NUMBA
    if suffixes & {"py"}:
        return Language.NUMBA if mangled_name.startswith("_ZN") else Language.TRITON
    if suffixes & {"jl"} or re.match(r"_Z\d+(?:julia|gpu|ptxcall)_|julia_", mangled_name) or "CuDeviceArray" in name:
        return Language.JULIA
    if any(re.fullmatch(r"f|for|ftn|f\d\d|cuf", one) for one in suffixes) or has_collapsed_loops(name):
        return Language.FORTRAN
    if suffixes & {"cu", "cuh", "cpp", "cc", "cxx", "hpp", "hxx", "h"} or mangled_name.startswith("_Z"):
        return Language.CUDA
    return Language.UNKNOWN
