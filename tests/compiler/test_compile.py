"""Sources of device code compiled by NVRTC, in a process of its own."""

import os
import signal
from itertools import count
from pathlib import Path

import pytest

from gpa_lsp.code.binary.cubin import read_cubin
from gpa_lsp.code.binary.line_table import read_line_table
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.compiler.model import CompilerChoice, CompilerFlags, CompilerKind, CompileSettings
from gpa_lsp.execution.compiler.nvrtc_processes import PROCESSES, NvrtcProcesses
from gpa_lsp.execution.compiler.nvrtc_worker import NvrtcJob
from gpa_lsp.foundation.errors import InputError, MissingToolError, ProblemSeverity, ToolError, UnsupportedInputError
from tests.compiler.installed import require_nvrtc
from tests.patience import LIMIT_S, wait_until

NVRTC = CompileSettings(choice=CompilerChoice.NVRTC, keeps_units=False, limit_s=LIMIT_S)
SLOW = (
    b"__global__ void k(float* p) {\n"
    + b"".join(b"  p[%d] = sinf(p[%d]) / cosf(p[%d]);\n" % (n, n + 1, n + 2) for n in range(20_000))
    + b"}\n"
)


@pytest.fixture(autouse=True)
def nvrtc() -> None:
    require_nvrtc()


def write(folder: Path, text: str | bytes, name: str = "k.cu") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_ptx_and_cubin_name_the_source_and_its_headers(fixtures: Path) -> None:
    source = fixtures / "kernels/inline_chain/original.cu"
    unit = compile_source(source, compute_capability=(9, 0), settings=NVRTC)
    assert not unit.has_failed
    assert (unit.kind, unit.compute_capability, unit.source, unit.messages) == (CompilerKind.NVRTC, (9, 0), source, ())
    assert f'"{source}"' in unit.ptx
    cubin = read_cubin(unit.cubin)
    (kernel,) = cubin.functions
    chains = read_line_table(cubin, kernel).chains
    assert {Path(frame.file) for chain in chains for frame in chain} == {source, source.with_name("curves.cuh")}
    assert max(len(chain) for chain in chains) >= 3
    assert {chain[-1].file for chain in chains} == {str(source)}


@pytest.mark.parametrize("capability", [(7, 5), (8, 6), (9, 0), (12, 0)])
def test_for_several_architectures(fixtures: Path, capability: tuple[int, int]) -> None:
    unit = compile_source(
        fixtures / "kernels/shared_reduction/original.cu", compute_capability=capability, settings=NVRTC
    )
    assert f".target sm_{capability[0]}{capability[1]}" in unit.ptx
    assert read_cubin(unit.cubin).sm == capability[0] * 10 + capability[1]


def test_all_fixture_kernels_compile(fixtures: Path) -> None:
    sources = sorted(fixtures.glob("kernels/*/original.cu"))
    assert len(sources) > 20
    failed = [source for source in sources if compile_source(source, settings=NVRTC).has_failed]
    assert failed == []


def test_flags_of_the_project_are_used(tmp_path: Path) -> None:
    source = write(tmp_path, "#include <deep.cuh>\n__global__ void k(int* p) { p[0] = N + M; }\n")
    (tmp_path / "inc").mkdir()
    write(tmp_path / "inc", "#define M 40000\n", "deep.cuh")
    (tmp_path / "compile_flags.txt").write_text("-Iinc\n-DN=2\n-arch=sm_86\n")
    unit = compile_source(source, settings=NVRTC)
    assert unit.compute_capability == (8, 6)
    assert "40002" in unit.ptx


def test_unsaved_text_is_compiled_and_errors_are_at_their_places(tmp_path: Path) -> None:
    source = write(tmp_path, "__global__ void k() {}\n")
    unit = compile_source(source, text="\n\n__global__ void k(float* p) {\n  p[0] = missing;\n}\n", settings=NVRTC)
    assert unit.has_failed
    [message] = [one for one in unit.messages if one.severity is ProblemSeverity.ERROR]
    assert (message.path, message.line, message.column, message.text) == (
        source,
        4,
        10,
        'identifier "missing" is undefined',
    )


def test_templates_say_where_they_were_instantiated(tmp_path: Path) -> None:
    text = "template <class T> __device__ void f(T x) { x.go(); }\n__global__ void k() {\n  f(3);\n}\n"
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert [(one.severity, one.line) for one in unit.messages] == [
        (ProblemSeverity.ERROR, 1),
        (ProblemSeverity.NOTE, 3),
    ]


def test_assemblers_errors_are_told(tmp_path: Path) -> None:
    text = (
        "__global__ void k(float* a) { __shared__ float x[20000]; x[threadIdx.x] = 1; __syncthreads(); a[0] = x[3]; }\n"
    )
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert unit.has_failed
    assert "too much shared data" in unit.messages[0].text


def test_missing_headers_come_with_a_remedy(tmp_path: Path) -> None:
    unit = compile_source(write(tmp_path, '#include "not_there.h"\n__global__ void k() { f(); }\n'), settings=NVRTC)
    assert unit.has_failed
    assert unit.messages[0].line == 1
    assert "not_there.h" in unit.messages[0].text
    assert "compile_commands.json" in unit.messages[0].text


def test_headers_that_device_code_does_not_need_are_missed_once(tmp_path: Path) -> None:
    unit = compile_source(write(tmp_path, '#include "not_there.h"\n__global__ void k() {}\n'), settings=NVRTC)
    assert not unit.has_failed
    (warning,) = unit.messages
    assert (warning.severity, warning.line) == (ProblemSeverity.WARNING, 1)
    assert "not_there.h" in warning.text and "compile_commands.json" in warning.text
    assert "missing headers were treated as empty: not_there.h" in unit.notes


def test_headers_of_the_project_are_found_without_a_compile_command(tmp_path: Path) -> None:
    for name, text in (
        ("common/sizes.h", '#include "more.h"\n#define N MORE\n'),
        ("common/more.h", "#define MORE 7\n"),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "one").mkdir()
    source = write(tmp_path / "one", "#include <sizes.h>\n__global__ void k(int* p) { p[0] = N; }\n")
    unit = compile_source(source, settings=NVRTC)
    assert not unit.has_failed and ", 7;" in (unit.ptx or "")
    assert f"sizes.h was found in {Path('../common')}; no compile command says where it is" in unit.notes


def test_functions_of_warps_that_were_removed_are_compiled_with_a_mask(tmp_path: Path) -> None:
    text = "__global__ void k(int* p) { p[0] = __shfl_down(p[1], 4) + __ballot(p[2]); }\nint main() {}\n"
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert "shfl.sync.down" in (unit.ptx or "") and "vote.sync.ballot" in (unit.ptx or "")
    assert any("CUDA 9" in note for note in unit.notes)


def test_standard_headers_are_there_for_device_code(tmp_path: Path) -> None:
    text = """\
#include <cstdint>
#include <limits>
#include <cmath>
#include <algorithm>
#include <type_traits>
#include <cfloat>
#include <vector>
#include <cuda_fp16.h>
static_assert(sizeof(std::uint64_t) == 8 && std::is_same<int32_t, int>::value && INT8_MIN == -128, "types");
static_assert(std::numeric_limits<int>::max() == 2147483647 && std::numeric_limits<short>::lowest() == -32768, "limits");
static_assert(std::is_floating_point_v<double> && !std::is_signed_v<unsigned>, "traits");
__global__ void k(float* p, uint8_t n) { p[0] = std::max(std::sqrt(p[1]), FLT_MAX) + M_PI + std::numeric_limits<float>::infinity() + n; }
"""
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert not unit.has_failed, unit.messages


def test_host_code_is_left_out_and_said(tmp_path: Path) -> None:
    text = """\
#include <iostream>
#include <thirdparty/host_only.hpp>
template <class T> __global__ void scale(T* x, T by) { x[threadIdx.x] *= by; }
struct Report { std::string name; void print() const { std::cout << name; } };
struct Pair { int a; int sum() const { return a; } void show() { std::cout << a; } };
__global__ void uses(Pair p, int* x) { x[0] = p.sum(); }
int main() {
  float* x;
  scale<<<1, 32>>>(x, 2.0f);
  scale<double><<<1, 32>>>(nullptr, 2.0);
}
"""
    source = write(tmp_path, text)
    unit = compile_source(source, settings=NVRTC)
    assert not unit.has_failed, unit.messages
    assert unit.is_host_left_out
    cubin = read_cubin(unit.cubin)
    kernels = {name for name, function in cubin.functions.items() if function.is_entry}
    assert kernels == {"_Z5scaleIfEvPT_S0_", "_Z5scaleIdEvPT_S0_", "_Z4uses4PairPi"}
    assert {frame.line for chain in read_line_table(cubin, "_Z5scaleIfEvPT_S0_").chains for frame in chain} == {3}
    notes = " ".join(unit.notes)
    assert "host code was left out" in notes
    assert "thirdparty/host_only.hpp" in notes
    assert "lines 4, 5" in notes


def test_host_code_in_a_header_of_the_project_is_left_out(tmp_path: Path) -> None:
    header = (
        "#pragma once\n#include <chrono>\ninline double now() { return std::chrono::steady_clock::now().time_since_epoch().count(); }\n"
        "struct Timer { Timer() : start(now()) {} double start; };\n__device__ inline float twice(float x) { return 2 * x; }\n"
    )
    write(tmp_path, header, "timing.h")
    text = (
        '#include "timing.h"\n#include "./timing.h"\n#include <cstdint>\n'
        "__global__ void k(float* p, uint64_t n) { p[n] = twice(p[1]); }\nint main() {}\n"
    )
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert not unit.has_failed, unit.messages
    assert "timing.h" in " ".join(unit.notes)
    assert str(tmp_path / "timing.h") in unit.ptx
    assert os.name == "nt" or "_Z1kPfm" in unit.ptx


def test_libraries_for_the_host_are_left_out_and_parts_for_blocks_kept(tmp_path: Path) -> None:
    text = """\
#include <thrust/device_vector.h>
#include <cub/cub.cuh>
__global__ void k(int* p) {
  using Reduce = cub::BlockReduce<int, 128>;
  __shared__ typename Reduce::TempStorage storage;
  p[0] = Reduce(storage).Sum(p[threadIdx.x]);
}
int main() { thrust::device_vector<int> v(3); }
"""
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert not unit.has_failed, unit.messages


def test_errors_in_device_code_are_those_of_the_whole_text(tmp_path: Path) -> None:
    text = "#include <string>\nstruct Bad { std::string s; float x; };\n__global__ void k(Bad b, float* p) { p[0] = b.x; }\nint main() {}\n"
    unit = compile_source(write(tmp_path, text), settings=NVRTC)
    assert unit.has_failed
    assert unit.messages[0].line == 2
    assert "string" in unit.messages[0].text


def test_an_architecture_that_is_not_known_is_refused_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedInputError, match="sm_30") as caught:
        compile_source(write(tmp_path, "__global__ void k() {}"), compute_capability=(3, 0), settings=NVRTC)
    assert "sm_80" in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [
        b"__global__ void k() { /* \xe9\xff */ }\n",
        b"\xef\xbb\xbf__global__ void k() {}\n",
        b"__global__ void k() {}\r\n",
    ],
)
def test_texts_in_other_encodings_compile(tmp_path: Path, content: bytes) -> None:
    assert not compile_source(write(tmp_path, content), settings=NVRTC).has_failed


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="NUL") as caught:
        compile_source(write(tmp_path, b"int a;\n\0"), settings=NVRTC)
    assert caught.value.place == "line 2"
    with pytest.raises(InputError, match="cannot be read"):
        compile_source(tmp_path / "gone.cu", settings=NVRTC)
    with pytest.raises(InputError, match="regular file"):
        compile_source(tmp_path, settings=NVRTC)
    os.mkfifo(tmp_path / "pipe.cu")
    with pytest.raises(InputError, match="regular file"):
        compile_source(tmp_path / "pipe.cu", settings=NVRTC)


def test_a_header_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.h")
    with pytest.raises(InputError, match="not a regular file"):
        compile_source(write(tmp_path, '#include "pipe.h"\n'), settings=NVRTC)


@pytest.mark.parametrize("text", ["__global__ void k() { /* \udcff */ }", "__global__ void k() { /* \ud800 */ }"])
def test_texts_an_editor_cannot_encode_compile(tmp_path: Path, text: str) -> None:
    assert not compile_source(tmp_path / "unsaved.cu", text=text, settings=NVRTC).has_failed


def test_a_large_source_compiles_or_ends_in_time(tmp_path: Path) -> None:
    text = b"__global__ void k(int* p) { p[0] = 1; }\n" + b"// nothing but words\n" * 500_000
    assert len(text) > 10 << 20
    assert not compile_source(write(tmp_path, text), settings=NVRTC).has_failed


def test_a_compilation_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    source = write(tmp_path, SLOW)
    with pytest.raises(ToolError, match="timed out after 1 s"):
        compile_source(source, settings=CompileSettings(choice=CompilerChoice.NVRTC, limit_s=1, keeps_units=False))
    assert not compile_source(source, text="__global__ void k() {}", settings=NVRTC).has_failed


def test_a_compilation_can_be_cancelled(tmp_path: Path) -> None:
    source = write(tmp_path, SLOW)
    asked = count(1)
    with pytest.raises(ToolError, match="was cancelled"):
        compile_source(source, settings=NVRTC, is_cancelled=lambda: next(asked) > 3)


def test_a_compilation_without_memory_is_an_error_and_no_more() -> None:
    processes = NvrtcProcesses(memory_limit_bytes=600 << 20)
    try:
        answer = processes.compile(NvrtcJob(source=SLOW * 4, name="/k.cu", options=("-arch=sm_80",), limit_s=LIMIT_S))
        assert answer.error is not None
    except ToolError as error:
        assert "memory" in str(error) or "crashed" in str(error)
    finally:
        processes.pool.close()


def test_processes_that_died_are_replaced() -> None:
    processes = NvrtcProcesses()
    job = NvrtcJob(source=b"__global__ void k() {}", name="/k.cu", options=("-arch=sm_80",), limit_s=LIMIT_S)
    try:
        assert processes.compile(job).ptx is not None
        [waiting] = processes.pool._idle
        assert waiting.process_id is not None
        os.kill(waiting.process_id, signal.SIGKILL)
        wait_until(lambda: waiting.process_id is None, "it is gone")
        assert processes.compile(job).ptx is not None
    finally:
        processes.pool.close()
    assert processes.pool._idle == []


def test_without_nvrtc_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cuda").mkdir()
    write(tmp_path / "cuda", "raise ImportError('not here')\n", "__init__.py")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    processes = NvrtcProcesses()
    with pytest.raises(MissingToolError, match=r"gpa-lsp\[cuda\]"):
        processes.greet()
    monkeypatch.setattr("gpa_lsp.execution.compiler.device_part.PROCESSES", processes)
    monkeypatch.setattr("gpa_lsp.execution.compiler.nvrtc_processes.PROCESSES", processes)
    monkeypatch.setattr("gpa_lsp.execution.compiler.compile.find_nvcc", lambda *_: None)
    with pytest.raises(MissingToolError, match=r"gpa-lsp\[cuda\]"):
        compile_source(write(tmp_path, "__global__ void k() {}"))


def test_flags_that_name_nothing_change_nothing(tmp_path: Path) -> None:
    flags = CompilerFlags(
        directory=tmp_path, includes=(tmp_path / "gone",), macros=("A=$(touch here)", "-B"), standard="c++20"
    )
    unit = compile_source(write(tmp_path, "__global__ void k() {}"), flags=flags, settings=NVRTC)
    assert not unit.has_failed
    assert [path.name for path in tmp_path.iterdir()] == ["k.cu"]


def test_the_process_is_warm_after_the_first_time() -> None:
    before = PROCESSES.greet()
    assert PROCESSES.greet() is before
    assert before.version is not None
    assert 80 in before.architectures
