"""CUDA C++ → cubin, by NVRTC: no toolkit, and no GPU either."""

from gpa_lsp.basis.errors import ToolError
from gpa_lsp.compiler.architectures import name_target
from gpa_lsp.compiler.nvrtc_processes import PROCESSES, TOOL
from gpa_lsp.compiler.nvrtc_worker import NvrtcJob

_LIMIT_S = 60.0
_LONGEST_LOG = 2000


def compile_source(source: str, compute_capability: tuple[int, int]) -> bytes:
    """A cubin for one compute capability.

    Raises:
        MissingToolError: NVRTC or its Python bindings are not installed.
        ToolError: NVRTC refuses; carries its log.
    """
    target = name_target(compute_capability)
    options = (f"--gpu-architecture={target}",)
    answer = PROCESSES.compile(NvrtcJob(source=source.encode(), name="benchmark.cu", options=options, limit_s=_LIMIT_S))
    if answer.cubin is None:
        log = answer.log.rstrip("\0 \n")[:_LONGEST_LOG]
        raise ToolError(TOOL, f"does not compile a benchmark for {target}: {log or answer.error}", output=log)
    return answer.cubin


def find_compiler_version() -> str:
    """NVRTC's version, e.g. ``13.0``.

    Raises:
        MissingToolError: it is not installed.
    """
    return ".".join(map(str, PROCESSES.greet().version or ()))
