"""Whole sources by nvcc, and that nothing of a project runs with it."""

import os
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_compiled_limits, read_cubin
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompilerChoice, CompilerFlags, CompilerKind, CompileSettings
from gpa_lsp.execution.compiler.nvcc_location import find_nvcc
from gpa_lsp.foundation.errors import MissingToolError, ProblemSeverity, ToolError, UnsupportedInputError
from gpa_lsp.foundation.processes.watched_command import RunLimits, TimeLimits, run_command
from tests.collect.processes import MARK, wait_until_gone
from tests.compiler.installed import require_nvcc, require_nvrtc
from tests.patience import LIMIT_S, wait_until

needs_proc = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processor time is read from /proc")

AUTOMATIC = CompileSettings(keeps_units=False)
NVCC = CompileSettings(choice=CompilerChoice.NVCC, keeps_units=False)
WHOLE = """\
#include <cstdio>
#include <vector>
#include "beside.cuh"
template <class T> __global__ void __launch_bounds__(128, 2) scale(T* x, T by) {
  x[threadIdx.x] = beside(x[threadIdx.x]) * by;
}
int main() {
  std::vector<float> values(32);
  scale<<<1, 32>>>(values.data(), 2.0f);
  std::printf("%zu\\n", values.size());
}
"""


@pytest.fixture(autouse=True)
def nvcc() -> None:
    require_nvcc()


def write(folder: Path, text: str, name: str = "k.cu") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A program with host code, and a header beside it."""
    write(tmp_path, "template <class T> __device__ T beside(T x) { return x + T(1); }\n", "beside.cuh")
    return write(tmp_path, WHOLE)


def test_a_program_is_compiled_whole(whole: Path) -> None:
    before = set(whole.parent.iterdir())
    unit = compile_source(whole, settings=AUTOMATIC)
    assert not unit.has_failed, unit.messages
    assert (unit.kind, unit.is_host_left_out) == (CompilerKind.NVCC, False)
    assert unit.compiler.startswith("nvcc 1")
    assert f'"{whole}"' in unit.ptx
    name = "_Z5scaleIfEvPT_S0_"
    files = {frame.file for chain in read_line_table(read_cubin(unit.cubin), name).chains for frame in chain}
    assert str(whole) in files
    assert not any("gpa-lsp" in file for file in files)
    assert read_compiled_limits(read_cubin(unit.cubin))[name].most_threads == 128
    assert set(whole.parent.iterdir()) == before


def test_the_device_part_is_the_same_as_by_nvrtc(whole: Path) -> None:
    require_nvrtc()
    by_nvcc = compile_source(whole, settings=NVCC)
    by_nvrtc = compile_source(whole, settings=CompileSettings(choice=CompilerChoice.NVRTC, keeps_units=False))
    assert by_nvrtc.is_host_left_out
    assert by_nvcc.cubin is not None
    assert by_nvrtc.cubin is not None
    if by_nvcc.compiler.split()[1] == by_nvrtc.compiler.split()[1]:
        codes = [
            {name: function.code for name, function in read_cubin(one).functions.items()}
            for one in (by_nvcc.cubin, by_nvrtc.cubin)
        ]
        assert codes[0] == codes[1]


def test_unsaved_text_and_its_errors(whole: Path) -> None:
    text = WHOLE.replace("values.size()", "values.wrong()").replace("* by", "* by + missing")
    unit = compile_source(whole, text=text, settings=AUTOMATIC)
    assert unit.has_failed
    errors = [(one.path, one.line, one.column) for one in unit.messages if one.severity is ProblemSeverity.ERROR]
    lines = text.splitlines()
    assert sorted(errors) == [(whole, 5, lines[4].index("missing") + 1), (whole, 10, lines[9].index("wrong") + 1)]


def test_headers_that_are_not_there(tmp_path: Path) -> None:
    unit = compile_source(
        write(tmp_path, '#include "gone.h"\n__device__ int f = gone;\nint main() {}\n'), settings=AUTOMATIC
    )
    assert unit.has_failed
    assert (unit.messages[0].line, "gone.h" in unit.messages[0].text) == (1, True)


def test_nothing_in_flags_or_names_is_run(tmp_path: Path) -> None:
    folder = tmp_path / "a $(touch NAME) `touch NAME` ;touch NAME; \" ' & b,c"
    folder.mkdir()
    (folder / "inc").mkdir()
    write(folder / "inc", "#define DEEP 3\n", "deep.h")
    write(folder, "#define BESIDE 4\n", "beside.h")
    text = '#include <deep.h>\n#include "beside.h"\n__global__ void k(int* p) { p[0] = DEEP + BESIDE + N + sizeof(S); }\nint main() {}\n'
    source = write(folder, text)
    flags = CompilerFlags(
        directory=folder,
        includes=(folder / "inc", Path("/$(touch INCLUDE)")),
        system_includes=(Path("/`touch SYSTEM`"),),
        forced_includes=(folder / "inc/deep.h",),
        macros=("N=7", 'S="$(touch MACRO) `touch MACRO` \\" ; touch MACRO"', "F(x)=x", "-M"),
    )
    before = set(tmp_path.rglob("*"))
    unit = compile_source(source, flags=flags, settings=NVCC)
    assert not unit.has_failed, unit.messages
    assert unit.ptx is not None
    assert set(tmp_path.rglob("*")) == before
    assert not any(Path(name).exists() for name in ("NAME", "INCLUDE", "SYSTEM", "MACRO"))


def test_messages_about_headers_behind_links_name_the_headers(tmp_path: Path) -> None:
    folder = tmp_path / "in,c"
    folder.mkdir()
    header = write(folder, "int broken(;\n", "broken.h")
    flags = CompilerFlags(directory=tmp_path, includes=(folder,))
    unit = compile_source(write(tmp_path, "#include <broken.h>\nint main() {}\n"), flags=flags, settings=NVCC)
    assert unit.has_failed
    assert (unit.messages[0].path, unit.messages[0].line) == (header, 1)


def test_flags_reach_the_compiler(tmp_path: Path) -> None:
    text = (
        "#ifndef N\n#error no\n#endif\n"
        "__global__ void k(float* p) { auto f = [=] __device__ (float x) { return sinf(x); }; p[0] = f(p[1]); }\nint main() {}\n"
    )
    flags = CompilerFlags(
        directory=tmp_path,
        macros=("N=1",),
        standard="c++20",
        optimisation=("--use_fast_math", "-Xptxas=-O2"),
        language=("--extended-lambda", "-rdc=true"),
    )
    unit = compile_source(write(tmp_path, text), flags=flags, compute_capability=(9, 0), settings=NVCC)
    assert not unit.has_failed, unit.messages
    assert "sin.approx.ftz.f32" in unit.ptx
    assert unit.cubin[16:18] == b"\x01\x00"  # ET_REL: not linked


def test_an_architecture_that_is_not_known_is_refused(whole: Path) -> None:
    with pytest.raises(UnsupportedInputError, match="sm_30"):
        compile_source(whole, compute_capability=(3, 0), settings=NVCC)


def test_a_run_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    limits = RunLimits(time=TimeLimits(processor_s=0.5, clock_s=0.5), memory_limit_bytes=1 << 30)
    environment = {**os.environ, MARK: str(tmp_path)}
    command = ["/bin/sh", "-c", "sleep 3600 & sleep 3600"]
    with pytest.raises(ToolError, match="timed out after"):
        run_command("sh", command, folder=tmp_path, environment=environment, limits=limits)
    wait_until_gone(str(tmp_path))


@needs_proc
def test_a_run_that_works_is_ended_by_the_work_of_all_its_processes_and_not_by_the_clock(tmp_path: Path) -> None:
    limits = RunLimits(time=TimeLimits(processor_s=0.4, clock_s=LIMIT_S), memory_limit_bytes=1 << 30)
    busy = ["/bin/sh", "-c", "(while :; do :; done) & sleep 3600"]
    with pytest.raises(ToolError, match=r"timed out after 0\.4 s of processor time"):
        run_command("sh", busy, folder=tmp_path, environment=dict(os.environ), limits=limits)
    waits = ["/bin/sh", "-c", "sleep 1; echo done"]
    assert run_command("sh", waits, folder=tmp_path, environment=dict(os.environ), limits=limits) == (True, "done\n")


def test_a_run_can_be_cancelled_and_its_output_is_bounded(tmp_path: Path) -> None:
    asked = count(1)
    limits = RunLimits(
        time=TimeLimits.for_work(LIMIT_S), memory_limit_bytes=1 << 30, is_cancelled=lambda: next(asked) > 5
    )
    with pytest.raises(ToolError, match="cancelled") as caught:
        run_command("yes", ["/bin/sh", "-c", "yes"], folder=tmp_path, environment=dict(os.environ), limits=limits)
    assert len(caught.value.output) < 10_000


def leave_when_begun(begun: Path, folder: Path) -> str:
    """A program that runs a command without end in a folder, and is gone as soon as the command says in a file that it has begun."""
    return (
        "import os, threading, time; from pathlib import Path; from gpa_lsp.foundation.processes.watched_command import TimeLimits\n"
        "from gpa_lsp.foundation.processes.watched_command import RunLimits, run_command\n"
        "def leave():\n"
        f"    while not Path({str(begun)!r}).exists(): time.sleep(0.01)\n"
        "    os._exit(0)\n"
        "threading.Thread(target=leave).start()\n"
        f"run_command('sh', ['/bin/sh', '-c', 'touch {begun}; sleep 3600'], folder=Path({str(folder)!r}), "
        "environment=dict(os.environ), limits=RunLimits(time=TimeLimits.for_work(3600), memory_limit_bytes=1 << 30))"
    )


def test_a_run_ends_when_the_one_that_asked_dies(tmp_path: Path) -> None:
    program = leave_when_begun(tmp_path / "begun", Path("/"))
    environment = {**os.environ, MARK: str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=LIMIT_S, env=environment)
    wait_until_gone(str(tmp_path))


def test_a_temporary_folder_goes_with_the_one_that_asked(tmp_path: Path) -> None:
    folder = tmp_path / "gpa-lsp-test"
    folder.mkdir()
    (folder / "left").touch()
    subprocess.run([sys.executable, "-c", leave_when_begun(tmp_path / "begun", folder)], check=True, timeout=LIMIT_S)
    wait_until(lambda: not folder.exists(), folder)


def test_programs_that_cannot_be_started_say_so(tmp_path: Path) -> None:
    limits = RunLimits(time=TimeLimits.for_work(LIMIT_S), memory_limit_bytes=1 << 30)
    with pytest.raises(ToolError, match="cannot be started"):
        run_command("x", [str(tmp_path / "gone")], folder=tmp_path, environment={}, limits=limits)


def test_temporary_folders_are_gone_afterwards(
    whole: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    compile_source(whole, settings=NVCC)
    with pytest.raises(ToolError):
        compile_source(whole, settings=CompileSettings(choice=CompilerChoice.NVCC, limit_s=0.05, keeps_units=False))
    assert list(place.iterdir()) == []


def test_programs_of_the_workspace_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "tools").mkdir()
    for name in ("nvcc", "g++"):
        program = write(tmp_path / "tools", f"#!/bin/sh\ntouch {tmp_path}/ran\n", name)
        program.chmod(0o755)
    source = write(tmp_path, "int main() {}\n")
    monkeypatch.setenv("GPA_LSP_NVCC", str(tmp_path / "tools/nvcc"))
    assert find_nvcc(source) is None
    monkeypatch.delenv("GPA_LSP_NVCC")
    monkeypatch.setenv("PATH", f"{tmp_path}/tools{os.pathsep}{os.environ['PATH']}")
    found = find_nvcc(source)
    assert found is None or str(tmp_path) not in found.search_path
    compile_source(source, settings=AUTOMATIC)
    assert not (tmp_path / "ran").exists()


def test_without_a_host_compiler_host_code_is_left_out(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_nvrtc()
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("NVCC_CCBIN", raising=False)
    assert find_nvcc(whole) is None
    unit = compile_source(whole, settings=AUTOMATIC)
    assert unit.is_host_left_out
    assert not unit.has_failed
    assert "nvcc or the host compiler that it needs is not installed" in unit.notes[0]
    with pytest.raises(MissingToolError, match="host compiler"):
        compile_source(whole, settings=NVCC)
