"""Fixture programs, built once per run of the tests."""

import subprocess
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.binary.tool_location import find_tool
from gpa_lsp.compiler.header_folders import find_cuda_headers
from gpa_lsp.processes.search_paths import find_program
from gpa_lsp.programs.library import build_library, read_headers
from gpa_lsp.programs.model import ProgramRun, RunSettings
from gpa_lsp.programs.run import run_program

SOURCES = Path(__file__).parents[2] / "fixtures" / "programs"
_LIMIT_S = 300


@cache
def require_compiler() -> Path:
    """nvcc; skips the test where it, a host compiler or CUDA's headers are missing."""
    nvcc = find_tool("nvcc")
    if nvcc is None or not any(find_program(name) for name in ("g++", "clang++")) or not find_cuda_headers():
        pytest.skip("nvcc, a host compiler or CUDA's headers are not installed")
    return nvcc


def build(source: Path, folder: Path, *options: str, has_lines: bool = True) -> Path:
    """A program, linked with the shared runtime library; the link is against ours, as some installations of nvcc bring none."""
    nvcc = require_compiler()
    headers = next(found for folder in find_cuda_headers() if (found := read_headers(folder)) is not None)
    library = build_library(headers, folder)
    link = folder / "libcudart.so"
    if not link.exists():
        link.symlink_to(library.name)
    program = folder / source.stem
    chosen = options or ("-cudart", "shared", "-gencode", "arch=compute_80,code=compute_80")
    command = [str(nvcc), "-std=c++17", *(("-lineinfo",) if has_lines else ()), *chosen, str(source), "-o", str(program), f"-L{folder}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return program


def run(program: Path, *arguments: str, records: Path | None = None, **settings: object) -> tuple[ProgramRun, str]:
    """What a program did, and what it printed."""
    printed = bytearray()
    chosen = RunSettings(**{"machine": "A100 PCIe 40GB", "limit_s": 300.0, **settings})  # type: ignore[arg-type]
    found = run_program(
        [str(program), *arguments], chosen, folder=program.parent, take=printed.extend, records=records
    )
    return found, printed.decode()
