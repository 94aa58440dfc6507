"""CUDA C++ → cubin, by NVRTC: no toolkit, and no GPU either."""

from typing import Any

from gpa_lsp.errors import MissingToolError, ToolError

_INSTALL = "install gpa-lsp[cuda], which brings cuda-python and NVRTC"


def compile_source(source: str, compute_capability: tuple[int, int]) -> bytes:
    """A cubin for one compute capability.

    Raises:
        MissingToolError: NVRTC or its Python bindings are not installed.
        ToolError: NVRTC refuses; carries its log.
    """
    nvrtc = _load_nvrtc()
    target = f"sm_{compute_capability[0]}{compute_capability[1]}"
    program = _check(nvrtc.nvrtcCreateProgram(source.encode(), b"benchmark.cu", 0, [], []), "create a program")
    try:
        failed = nvrtc.nvrtcCompileProgram(program, 1, [f"--gpu-architecture={target}".encode()])[0]
        if failed != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = _read_log(nvrtc, program)
            raise ToolError("NVRTC", f"does not compile a benchmark for {target}: {log}", output=log)
        size: int = _check(nvrtc.nvrtcGetCUBINSize(program), "give the cubin")
        image: bytes = b" " * size
        _check(nvrtc.nvrtcGetCUBIN(program, image), "give the cubin")
        return image
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def find_compiler_version() -> str:
    """NVRTC's version, e.g. ``13.0``.

    Raises:
        MissingToolError: it is not installed.
    """
    _, major, minor = _load_nvrtc().nvrtcVersion()
    return f"{major}.{minor}"


def _load_nvrtc() -> Any:
    try:
        from cuda.bindings import nvrtc  # an optional dependency

        nvrtc.nvrtcVersion()  # the library itself is looked for at the first call
    except (ImportError, RuntimeError, OSError) as error:
        raise MissingToolError("NVRTC", needed_for="compiling the benchmarks", install=_INSTALL) from error
    return nvrtc


def _check(answer: tuple[Any, ...], what: str) -> Any:
    failed, *values = answer
    if int(failed) != 0:
        raise ToolError("NVRTC", f"could not {what}: error {int(failed)}")
    return values[0] if values else None


def _read_log(nvrtc: Any, program: Any) -> str:
    size: int = _check(nvrtc.nvrtcGetProgramLogSize(program), "give its log")
    log = b" " * size
    _check(nvrtc.nvrtcGetProgramLog(program, log), "give its log")
    return log.rstrip(b"\0 \n").decode(errors="replace")[:2000]
