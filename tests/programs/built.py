"""Programs to run, built once per change of theirs and kept in pytest's cache."""

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.included_files import find_cuda_headers
from gpa_lsp.execution.programs.library import SOURCES as RUNTIME
from gpa_lsp.execution.programs.library import build_libraries, list_headers
from gpa_lsp.execution.programs.model import ProgramRun, RunSettings
from gpa_lsp.execution.programs.run import Surroundings, run_program
from gpa_lsp.foundation.native.c_compiler import SHARED_HEADERS
from gpa_lsp.foundation.processes.search_paths import find_program
from tests.conftest import ROOT
from tests.patience import LIMIT_S

SOURCES = ROOT / "fixtures" / "programs"
SHARED_RUNTIME = ("-cudart", "shared", "-gencode", "arch=compute_80,code=compute_80")
MACHINE = "A100 PCIe 40GB"
_KEPT = ROOT / ".pytest_cache" / "d" / "programs"


@cache
def require_compiler() -> Path:
    """nvcc; skips the test where it, a host compiler or CUDA's headers are missing."""
    nvcc = find_tool("nvcc")
    if nvcc is None or not any(find_program(name) for name in ("g++", "clang++")) or not find_cuda_headers():
        pytest.skip("nvcc, a host compiler or CUDA's headers are not installed")
    return nvcc


def place_library(folder: Path) -> Path:
    """Build our runtime library, with the name that linkers look for: some installations of nvcc bring none."""
    library = build_libraries(list_headers()[0], folder)[0]
    link = folder / "libcudart.so"
    if not link.exists():
        link.symlink_to(library.name)
    return library


def build(
    source: Path, folder: Path, *options: str, has_lines: bool = True, others: tuple[Path, ...] = (), name: str = ""
) -> Path:
    """A program in a folder, of one source or several."""
    nvcc = require_compiler()
    program = folder / (name or source.stem)
    chosen = [*(("-lineinfo",) if has_lines else ()), *(options or SHARED_RUNTIME)]
    digest = hashlib.sha256(f"{nvcc.resolve()} {nvcc.stat().st_mtime} {chosen}".encode())
    for path in (*sorted(SOURCES.glob("*.h")), *_list_headers(source), source, *others):
        digest.update(path.name.encode() + path.read_bytes())
    kept = _KEPT / digest.hexdigest()
    _KEPT.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock, tempfile.TemporaryDirectory(dir=_KEPT) as work:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker compiles it, and the others wait
        if not kept.exists():
            place_library(Path(work))
            sources = [str(_keep(path, kept.with_suffix(".sources"), Path(work))) for path in (source, *others)]
            command = [str(nvcc), "-std=c++17", *chosen, *sources, "-o", f"{work}/program", f"-L{work}", f"-I{SOURCES}"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
            assert done.returncode == 0, done.stdout + done.stderr
            Path(work, "program").replace(kept)
    shutil.copy(kept, program)
    return program


def _keep(source: Path, folder: Path, work: Path) -> Path:
    """Copy a source and its headers to a folder that stays as long as its program, unless it is the project's own."""
    if source.is_relative_to(ROOT):
        return source
    folder.mkdir(exist_ok=True)
    for path in (*_list_headers(source), source):
        Path(shutil.copy(path, work)).replace(folder / path.name)  # at once: another process may be compiling it
    return folder / source.name


def _list_headers(source: Path) -> list[Path]:
    return sorted(source.parent.glob("*.h*"))


def write(folder: Path, text: str, name: str = "program.cu") -> Path:
    """A source."""
    path = folder / name
    path.write_text(text)
    return path


def run(
    program: Path | str,
    *arguments: str,
    records: Path | None = None,
    others: Path | None = None,
    folder: Path | None = None,
    **settings: object,
) -> tuple[ProgramRun, str]:
    """Run a program; returns its run and its output."""
    printed = bytearray()
    chosen = RunSettings(**{"machine": MACHINE, "limit_s": 300.0, **settings})  # type: ignore[arg-type]
    surroundings = Surroundings(folder=folder or Path(program).parent, take=printed.extend)
    found = run_program(
        [str(program), *arguments],
        chosen,
        surroundings,
        records=None if records is None else lambda: records,
        others=None if others is None else lambda: others,
    )
    return found, printed.decode()


def compile_c(source: Path, into: Path) -> Path:
    """A C program that sees the headers of the runtime library."""
    folders = [f"-I{folder}" for folder in (RUNTIME, SHARED_HEADERS[0].parent, *find_cuda_headers())]
    subprocess.run(["cc", *folders, str(source), "-o", str(into)], check=True, capture_output=True)
    return into
