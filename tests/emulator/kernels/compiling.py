"""CUDA C++ → PTX by NVRTC, once per session and source: what the truth tests run."""

import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

SOURCES = Path(__file__).parent / "sources"

_FLAGS = re.compile(r"^// flags: (.+)$", re.MULTILINE)
_LEAST = re.compile(r"^// least: (\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A CUDA source of the tests with what its first comment says.

    Attributes:
        path: of the ``.cu``.
        flags: for the compiler, from ``// flags: …``.
        least: the smallest architecture it compiles for, e.g. 80, from ``// least: …``.
    """

    path: Path
    flags: tuple[str, ...]
    least: int


def read_source(path: Path) -> Source:
    """The directives at the top of one source."""
    text = path.read_text(encoding="utf-8")
    flags = _FLAGS.search(text)
    least = _LEAST.search(text)
    return Source(path=path, flags=tuple(flags[1].split()) if flags else (), least=int(least[1]) if least else 75)


@cache
def compile_ptx(path: Path, architecture: int, *flags: str) -> str:
    """PTX with line information; the test is skipped where NVRTC or the headers of CUDA are not installed."""
    return _compile(path, f"compute_{architecture}", flags)[0]


@cache
def compile_cubin(path: Path, architecture: int, *flags: str) -> tuple[str, bytes]:
    """The same PTX, and its machine code."""
    return _compile(path, f"sm_{architecture}", flags)


def _compile(path: Path, architecture: str, flags: tuple[str, ...]) -> tuple[str, bytes]:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    text = path.read_text(encoding="utf-8")
    if "#include <" in text and not _find_includes():
        pytest.skip("CUDA's headers are not installed")
    failed, program = nvrtc.nvrtcCreateProgram(text.encode(), str(path).encode(), 0, [], [])
    assert int(failed) == 0
    try:
        options = [
            f"--gpu-architecture={architecture}",
            "-lineinfo",
            "-std=c++17",
            "-default-device",
            f"-I{path.parent}",
            *_find_includes(),
            *flags,
        ]
        failed = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])[0]
        assert int(failed) == 0, f"{path.name}: {_read_log(nvrtc, program)}"
        ptx = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
        assert int(nvrtc.nvrtcGetPTX(program, ptx)[0]) == 0
        cubin = bytearray(nvrtc.nvrtcGetCUBINSize(program)[1])
        assert not cubin or int(nvrtc.nvrtcGetCUBIN(program, cubin)[0]) == 0
        return ptx.rstrip(b"\0").decode(), bytes(cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read_log(nvrtc: object, program: object) -> str:
    size = nvrtc.nvrtcGetProgramLogSize(program)[1]  # type: ignore[attr-defined]
    log = bytearray(size)
    nvrtc.nvrtcGetProgramLog(program, log)  # type: ignore[attr-defined]
    return log.rstrip(b"\0 \n").decode(errors="replace")


@cache
def _find_includes() -> tuple[str, ...]:
    found = find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for headers in sorted(Path(folder).glob("*/include")):
            if (headers / "cuda_fp16.h").is_file():
                return (f"-I{headers}", f"-I{headers / 'cccl'}")
    return ()
