"""CUDA C++ → PTX by NVRTC, once per run and source: what the truth tests run."""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpa_lsp.foundation.kept_files import KeptFiles, find_cache_folder

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
    """PTX and machine code; what another worker of the run compiled is read."""
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")
    text = path.read_text(encoding="utf-8")
    if "#include <" in text and not _find_includes():
        pytest.skip("CUDA's headers are not installed")
    options = [f"--gpu-architecture={architecture}", "-lineinfo", "-std=c++17", "-default-device", f"-I{path.parent}"]
    options += [*_find_includes(), *flags]
    headers = [(one.name, one.read_bytes()) for one in sorted(path.parent.glob("*.h*"))]
    key = hashlib.sha256(repr((nvrtc.nvrtcVersion(), str(path), options, text, headers)).encode()).hexdigest()
    kept = KeptFiles(find_cache_folder() / "compiled", limit_bytes=1 << 30)
    content = kept.load(key)
    if content is None:
        content = msgspec.msgpack.encode(_compile_text(nvrtc, path, text, options))
        kept.store(key, content)
    return msgspec.msgpack.decode(content, type=tuple[str, bytes])


def _compile_text(nvrtc: Any, path: Path, text: str, options: list[str]) -> tuple[str, bytes]:
    failed, program = nvrtc.nvrtcCreateProgram(text.encode(), str(path).encode(), 0, [], [])
    assert int(failed) == 0
    try:
        failed = nvrtc.nvrtcCompileProgram(program, len(options), [option.encode() for option in options])[0]
        assert int(failed) == 0, f"{path.name}: {_read_log(nvrtc, program)}"
        ptx = bytearray(nvrtc.nvrtcGetPTXSize(program)[1])
        assert int(nvrtc.nvrtcGetPTX(program, ptx)[0]) == 0
        cubin = bytearray(nvrtc.nvrtcGetCUBINSize(program)[1])
        assert not cubin or int(nvrtc.nvrtcGetCUBIN(program, cubin)[0]) == 0
        return ptx.rstrip(b"\0").decode(), bytes(cubin)
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _read_log(nvrtc: Any, program: object) -> str:
    log = bytearray(nvrtc.nvrtcGetProgramLogSize(program)[1])
    nvrtc.nvrtcGetProgramLog(program, log)
    return log.rstrip(b"\0 \n").decode(errors="replace")


@cache
def _find_includes() -> tuple[str, ...]:
    found = find_spec("nvidia")
    for folder in (found.submodule_search_locations or ()) if found else ():
        for headers in sorted(Path(folder).glob("*/include")):
            if (headers / "cuda_fp16.h").is_file():
                return (f"-I{headers}", f"-I{headers / 'cccl'}")
    return ()
