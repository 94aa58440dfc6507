"""The made-up driver and CUPTI, an application for them, and the collector: built once per change, and run."""

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.foundation.errors import MissingToolError
from gpa_lsp.foundation.processes.search_paths import find_program
from gpa_lsp.profile.collector.records import CollectedProcess, read_processes
from gpa_lsp.profile.collector.run import SOURCES, CollectorSettings, Cupti, build_library, find_cupti, make_environment
from tests.conftest import ROOT
from tests.patience import LIMIT_S

FAKES = Path(__file__).parent / "fakes"
CUBIN = ROOT / "fixtures" / "containers" / "built" / "shared_reduction_nvrtc12.sm_70.cubin"
KERNEL = "_Z16shared_reductionPKiPiS1_"
SAMPLES_OF_AN_INSTRUCTION = 11
_KEPT = ROOT / ".pytest_cache" / "d" / "collector"


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Programs and libraries that the tests run.

    Attributes:
        folder: with all of it.
        cupti: headers that are installed, and the made-up library.
        collector: what is injected.
        application: a program.
    """

    folder: Path
    cupti: Cupti
    collector: Path
    application: Path


@cache
def require_cupti() -> Cupti:
    """The installed headers; skips the test where they, or a C compiler, are missing."""
    if sys.platform != "linux" or not any(find_program(name) for name in ("cc", "gcc", "clang")):
        pytest.skip("needs Linux and a C compiler")
    try:
        return find_cupti()
    except MissingToolError as error:
        pytest.skip(str(error))


@cache
def build() -> Built:
    """Build all of them, kept in pytest's cache by a digest of the sources."""
    installed = require_cupti()
    digest = hashlib.sha256(repr(installed.headers).encode())
    for path in (*sorted(SOURCES.glob("*.[ch]")), *sorted(FAKES.glob("*.[ch]")), Path(__file__)):
        digest.update(path.name.encode() + path.read_bytes())
    kept = _KEPT / digest.hexdigest()
    if not kept.exists():
        _KEPT.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=_KEPT) as name:
            _build_into(Path(name), installed)
            shutil.copytree(name, f"{name}.whole")
            Path(f"{name}.whole").rename(kept) if not kept.exists() else shutil.rmtree(f"{name}.whole")
    cupti = Cupti(headers=installed.headers, library=kept / "libcupti.so.13")
    return Built(folder=kept, cupti=cupti, collector=kept / "gpa_lsp_collector.so", application=kept / "application")


def _build_into(folder: Path, installed: Cupti) -> None:
    headers = [f"-I{one}" for one in installed.headers]
    shared = ["-fPIC", "-shared", "-pthread"]
    _compile([*shared, *headers, str(FAKES / "driver.c"), "-Wl,-soname,libcuda.so.1", "-ldl"], folder / "libcuda.so.1")
    driver = [f"-L{folder}", "-l:libcuda.so.1"]
    _compile(
        [*shared, *headers, str(FAKES / "cupti.c"), "-Wl,-soname,libcupti.so.13", *driver], folder / "libcupti.so.13"
    )
    _compile(["-pthread", *headers, str(FAKES / "application.c"), *driver], folder / "application")
    _compile([*shared, str(FAKES / "killer.c"), "-ldl"], folder / "killer.so")
    build_library(installed, folder)


def _compile(arguments: Sequence[str], target: Path) -> None:
    compiler = next(found for name in ("cc", "gcc", "clang") if (found := find_program(name)) is not None)
    command = [str(compiler), "-g", "-O1", "-Wall", *arguments, "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Outcome of the application.

    Attributes:
        status: its exit status; minus the signal that ended it.
        output: what it printed.
        complaints: of the driver and CUPTI.
        folder: with the rows.
        processes: what they say.
    """

    status: int
    output: str
    complaints: tuple[str, ...]
    folder: Path
    processes: tuple[CollectedProcess, ...]

    @property
    def process(self) -> CollectedProcess:
        """The only one."""
        (process,) = self.processes
        return process


def make_variables(built: Built, folder: Path, fake: str = "") -> dict[str, str]:
    """The environment of a program that finds the made-up driver."""
    return {
        **os.environ,
        "LD_LIBRARY_PATH": str(built.folder),
        "FAKE_CUDA": fake,
        "FAKE_CUDA_LOG": str(folder / "complaints"),
        "GPA_LSP_CUPTI": str(built.folder / "libcupti.so.13"),
    }


def run(
    folder: Path,
    *words: str,
    fake: str = "",
    launches: int = 4,
    settings: CollectorSettings | None = None,
    variables: Mapping[str, str] | None = None,
    command: Sequence[str] | None = None,
) -> Run:
    """Run the application with the collector in it.

    Args:
        folder: for rows and complaints.
        words: what the application does beside launching.
        fake: settings of the made-up libraries.
        launches: how many.
        settings: of the collector.
        variables: of the environment, beside ours.
        command: another program.
    """
    built = build()
    rows = folder / "rows"
    rows.mkdir(exist_ok=True)
    environment = make_environment(
        settings or CollectorSettings(), built.cupti, built.collector, rows, make_variables(built, folder, fake)
    )
    done = subprocess.run(
        command or [str(built.application), str(CUBIN), KERNEL, str(launches), *words],
        env={**environment, **(variables or {})},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    log = folder / "complaints"
    complaints = tuple(log.read_text().splitlines()) if log.exists() else ()
    return Run(
        status=done.returncode,
        output=done.stdout + done.stderr,
        complaints=complaints,
        folder=rows,
        processes=tuple(read_processes(rows)),
    )
