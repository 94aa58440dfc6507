"""Calls that no program should make get the error that CUDA documents: of the libraries as they are, and under the compiler's sanitizers."""

import os
import re
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.execution.programs import library
from gpa_lsp.execution.record import run as recorder
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from gpa_lsp.profile.collector import run as collector
from tests.collector import built as collected
from tests.patience import in_bounded_time
from tests.programs.built import require_compiler, run

HOSTILE = Path(__file__).parent / "hostile"
SANITIZERS = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-omit-frame-pointer")


@cache
def has_sanitizers() -> bool:
    """Whether the compiler brings the libraries of its sanitizers."""
    command = ["cc", *SANITIZERS, "-shared", "-fPIC", "-x", "c", "-o", "/dev/null", "-"]
    return subprocess.run(command, input=b"int x;", capture_output=True, check=False).returncode == 0


@pytest.fixture(params=["plain", "sanitized"])
def sanitizers(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Libraries as they are, or with sanitizers, whose findings end a program with exit status 99."""
    require_compiler()
    if request.param == "plain":
        return
    if not has_sanitizers():
        pytest.skip(f"{find_c_compiler()} has no sanitizers")
    flags = (*(flag for flag in library.FLAGS if flag != "-O2"), *SANITIZERS)
    monkeypatch.setattr(library, "FLAGS", flags)
    monkeypatch.setattr(recorder, "_FLAGS", flags)
    monkeypatch.setattr(collector, "_FLAGS", (*flags, "-fno-strict-aliasing"))
    # The libraries are preloaded in front of the sanitizer's own, and what a program does not give back is not ours to judge.
    monkeypatch.setenv(
        "ASAN_OPTIONS", "verify_asan_link_order=0:detect_leaks=0:exitcode=99:allocator_may_return_null=1"
    )
    monkeypatch.setenv("UBSAN_OPTIONS", "print_stacktrace=1:halt_on_error=1:exitcode=99")


def build_hostile(source: Path, folder: Path, *others: str) -> Path:
    """A program of C that is linked with the libraries that programs run on."""
    headers = library.list_headers()[0]
    libraries = [*library.build_libraries(headers, folder)]
    include = [f"-I{path}" for path in (headers.folder, *others)]
    for one in library.HOST_LIBRARIES if source.stem == "libraries" else ():
        libraries.append(library.build_host_library(one, headers, folder / f"lib{one.stem}.so.13"))
        include += [f"-I{path}" for path in library.place_host_headers(one, folder / "include")]
    program = folder / source.stem
    subprocess.run(["cc", "-w", *include, str(source), "-o", str(program), *map(str, libraries)], check=True)
    return program


@pytest.fixture(scope="module")
def build_once(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Builds a program by its name, for all tests that run it with the libraries as they are."""
    require_compiler()
    return cache(lambda name: build_hostile(HOSTILE / f"{name}.c", tmp_path_factory.mktemp(name)))


@pytest.mark.parametrize("name", ["sizes", "handles", "driver", "libraries"])
def test_each_call_gives_the_error_that_is_due(name: str, tmp_path: Path, sanitizers: None) -> None:
    found, printed = run(build_hostile(HOSTILE / f"{name}.c", tmp_path))
    assert found.end.status == 0, printed
    assert printed.splitlines()[-1].startswith("0 of ")


def test_memory_that_the_host_sees_is_its_own_as_well(tmp_path: Path, sanitizers: None) -> None:
    found, printed = run(build_hostile(HOSTILE / "host_memory.c", tmp_path))
    assert found.end.status == 0 and printed.startswith("0 of "), printed


@pytest.mark.parametrize(
    ("kernel", "place", "told"),
    [
        ("store", "0", "0 700 700 700"),  # a null pointer
        ("load", "0", "0 700 700 700"),
        ("store", "0x40000000d", "0 700 700 700"),  # 16 GiB behind an array
        ("load", "0x100000000", "0 700 700 700"),
        ("store", "4096d", "0 0 0 0"),  # right behind an array, where a GPU has memory as well
        ("store", "-4d", "0 0 0 0"),
        ("store", "-0x20000000d", "0 700 700 700"),
        ("store", "2d", "0 716 716 716"),
        ("beyond", "0", "0 0 0 0"),
        ("beyond", "2", "0 716 716 716"),
        ("beyond", "256", "0 0 0 0"),  # shared memory comes in larger pieces
        ("beyond", "0x100000", "0 719 719 719"),
        ("stop", "0", "0 719 719 719"),
    ],
)
def test_a_program_is_told_what_a_gpu_ends_its_kernel_for(
    kernel: str, place: str, told: str, build_once: Callable[[str], Path]
) -> None:
    found, printed = run(build_once("device_errors"), kernel, place)
    assert printed == f"{told}\n"
    assert found.has_faults == (printed != "0 0 0 0\n" or place not in "0")
    assert bool(found.notes) == ("700" in told or "716" in told or place == "0x100000")


_FAULT = r"signal 11 \(SIGSEGV, segmentation fault\)"
_DEVICE = r"accessed device memory \(0x7\w+\), which only kernels and copies such as cudaMemcpy can"


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("write", 139, rf"{_FAULT}: its host code {_DEVICE}"),
        ("read", 139, rf"{_DEVICE}; the last function of CUDA that it called was cudaMalloc"),
        ("thread", 139, _DEVICE),
        ("freed", 139, r"accessed device memory .* called was cudaFree"),
        ("null", 139, rf"by {_FAULT}: its host code accessed 0x8, where it has no memory"),
        ("at once", 139, rf"the program was ended by {_FAULT}$"),
        ("abort", 134, r"by signal 6 \(SIGABRT, aborted\); the last function of CUDA that it called was cudaMalloc"),
        ("kill", 139, rf"by {_FAULT}"),
        ("handler", 11, None),
    ],
)
def test_a_program_that_a_signal_ends_is_said_to_be(
    how: str, status: int, said: str | None, build_once: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["emulate", "--no-lines", "--", str(build_once("crash")), how]) == status
    printed = capsys.readouterr()
    assert ("own handler" in printed.out) == (how == "handler")
    assert "ended by" not in printed.err if said is None else re.search(said, printed.err, re.MULTILINE)


def test_very_many_allocations_cost_no_more_than_their_number(tmp_path: Path) -> None:
    """Lookups in the runtime library and the emulator do not scan all allocations."""
    require_compiler()
    program = build_hostile(HOSTILE / "allocations.c", tmp_path)
    with in_bounded_time():
        found, printed = run(program)
    assert found.end.status == 0 and printed.startswith("0 of "), printed
    assert found.kernels[0].emulated == 20 and not found.has_faults


def test_the_recorder_passes_hostile_calls_on(tmp_path: Path, sanitizers: None) -> None:
    """A library before the driver: the errors are the driver's, and what is written down is no more than is there."""
    program = build_hostile(HOSTILE / "driver.c", tmp_path)
    kept = tmp_path / "kept"
    kept.mkdir()
    (tmp_path / "private").mkdir()
    library_path = recorder.build_recorder(tmp_path / library.DRIVER_NAME, tmp_path / "private")
    started = f'{recorder.FOLDER_VARIABLE}={kept} LD_PRELOAD="{library_path} $LD_PRELOAD" exec {program}'
    found, printed = run("/bin/sh", "-c", started, folder=tmp_path)
    assert found.end.status == 0 and printed.splitlines()[-1].startswith("0 of "), printed
    assert len(list(kept.glob("image-*.bin"))) == 1 and len(list(kept.glob("launch-*.raw"))) == 1


def test_the_collector_is_clean_under_sanitizers(
    tmp_path: Path, sanitizers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "built"
    folder.mkdir()
    installed = collected.require_cupti()
    collected._build_into(folder, installed)
    cupti = collector.Cupti(headers=installed.headers, library=folder / "libcupti.so.13")
    made = collected.Built(
        folder=folder, cupti=cupti, collector=folder / collector.NAME, application=folder / "application"
    )
    monkeypatch.setattr(collected, "build", lambda: made)
    preloaded = subprocess.run(["cc", "-print-file-name=libasan.so"], check=True, capture_output=True, text=True).stdout
    is_sanitized = bool(os.environ.get("ASAN_OPTIONS"))
    found = collected.run(tmp_path, variables={"LD_PRELOAD": preloaded.strip()} if is_sanitized else None)
    assert found.status == 0 and not found.complaints, found.output
    assert len(found.process.launches) == 4
