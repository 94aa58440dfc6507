"""``gpa-lsp emulate``: what it prints, writes and exits with."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.nvrtc_processes import identify_nvrtc
from tests.patience import LIMIT_S
from tests.programs.built import SOURCES, build, require_compiler

_WHOLE = """
#include <cstdio>
#include <cstdlib>
#include "factor.h"
__global__ void scale(int* a) { a[threadIdx.x] *= FACTOR; }
int main(int, char** words) {
  int value = atoi(words[1]), *a;
  cudaMalloc(&a, 128); cudaMemcpy(a, &value, 4, cudaMemcpyHostToDevice);
  scale<<<1, 32>>>(a);
  cudaMemcpy(&value, a, 4, cudaMemcpyDeviceToHost); cudaFree(a);
  std::printf("%d\\n", value);
}
"""

BEYOND = """
__global__ void shift(int* a) { int i = blockIdx.x * blockDim.x + threadIdx.x; a[i + 1] = a[i] * 3; }
int main() { int* a; cudaMalloc(&a, 4000); shift<<<4, 256>>>(a); cudaDeviceSynchronize(); return 0; }
"""


def emulate(*words: str) -> int:
    return main(["emulate", *words])


def test_a_program_that_is_well_ends_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = build(SOURCES / "symbols.cu", tmp_path)
    assert emulate("--", str(program)) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("symbols: right")
    assert "1 launch of 1 kernel" in printed or "launches of" in printed
    assert re.search(r"time +at least [\d.]+ [nµm]s predicted, limited by", printed)


def test_a_source_is_built_and_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "factor.h").write_text("#define FACTOR 3")
    (tmp_path / "scale.cu").write_text(_WHOLE)
    assert emulate("scale.cu", "7") == 0
    told = capfd.readouterr()
    assert told.err.endswith("gpa-lsp: building scale.cu with nvcc\n") and told.out.startswith("21\n")
    assert "1 block of 32" in told.out and "host     main scale.cu:9" in told.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["factor.h", "scale.cu"]


_ENDLESS = """
#include <cstdio>
__global__ void add(float* a, int stride) { a[threadIdx.x * stride] += 1; }
__global__ void turn(volatile float* a) { while (a[0] >= 0) a[threadIdx.x] = 1; }
int main() {
  float* a;
  cudaMalloc(&a, 1 << 16);
  add<<<8, 32>>>(a, 8);
  turn<<<1, 32>>>(a);
  return cudaDeviceSynchronize();
}
"""


def test_lines_are_known_of_a_program_that_is_ended(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    (tmp_path / "endless.cu").write_text(_ENDLESS)
    assert emulate("--seconds", "3", str(tmp_path / "endless.cu")) not in (0, 2)
    out = capfd.readouterr().out
    assert re.search(r"memory +\S+endless.cu:3  loads of `a`: 32 sectors per request, 4 at best", out), out
    assert "fault" not in out and re.search(r"ended +not done after", out)


_GUARDED = """
__global__ void guarded(int* a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] = i;
  if (i % 7) a[i] += 1;
}
int main() { int* a; cudaMalloc(&a, 1 << 17); guarded<<<128, 256>>>(a, 32767); return cudaDeviceSynchronize(); }
"""


def test_the_guard_of_the_last_warp_is_not_told_to_diverge(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    (tmp_path / "guarded.cu").write_text(_GUARDED)
    assert emulate(str(tmp_path / "guarded.cu")) == 0
    assert re.findall(r"diverge +\S+:(\d+)", capfd.readouterr().out) == ["5"]


_NESTED = """
#include <cstdio>
__global__ void fill(int* out) { out[threadIdx.x] = threadIdx.x + 1; }
__global__ void launch(int* out) { fill<<<1, 32>>>(out); }
int main() {
  int *out, last;
  cudaMalloc(&out, 128);
  launch<<<1, 1>>>(out);
  cudaMemcpy(&last, out + 31, 4, cudaMemcpyDeviceToHost);
  printf("%d\\n", last);
}
"""
_LAMBDAS = """
#include <cstdio>
constexpr int square(int value) { return value * value; }
template <typename Function> __global__ void apply(int* out, Function function) { *out = function(4); }
int main() {
  int *out, value = 2;
  cudaMallocManaged(&out, 4);
  apply<<<1, 1>>>(out, [=] __device__(int other) { return value * square(other); });
  cudaDeviceSynchronize();
  printf("%d\\n", *out);
}
"""


@pytest.mark.parametrize(
    ("text", "options", "printed"),
    [
        (_NESTED, " -rdc=true", "32\n"),
        (_LAMBDAS, " --extended-lambda --expt-relaxed-constexpr", "32\n"),
    ],
)
def test_a_source_gets_the_options_that_the_compiler_asks_for(
    text: str, options: str, printed: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    source = tmp_path / "asking.cu"
    source.write_text(text)
    assert emulate("--no-lines", str(source)) == 0
    told = capfd.readouterr()
    assert told.err.endswith(f"gpa-lsp: building {source} with nvcc{options}\n") and told.out.startswith(printed)
    assert "error" not in told.err


_DRIVER = """
#include <cuda.h>
#include <nvrtc.h>
#include <cstdio>
#include <vector>
int main() {
  const char* text = "extern \\"C\\" __global__ void fill(int* out) { out[threadIdx.x] = 7; }";
  const char* options[] = {"--gpu-architecture=compute_80"};
  nvrtcProgram program;
  nvrtcCreateProgram(&program, text, "fill.cu", 0, nullptr, nullptr);
  if (nvrtcCompileProgram(program, 1, options)) return 1;
  size_t size;
  nvrtcGetPTXSize(program, &size);
  std::vector<char> code(size);
  nvrtcGetPTX(program, code.data());
  CUdevice device; CUcontext context; CUmodule module; CUfunction function; CUdeviceptr out;
  cuInit(0);
  cuDeviceGet(&device, 0);
  cuDevicePrimaryCtxRetain(&context, device);
  cuCtxSetCurrent(context);
  if (cuModuleLoadData(&module, code.data()) || cuModuleGetFunction(&function, module, "fill")) return 2;
  cuMemAlloc(&out, 128);
  void* arguments[] = {&out};
  cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
  int last;
  cuMemcpyDtoH(&last, out + 124, 4);
  printf("%d\\n", last);
}
"""


def test_a_source_of_the_driver_compiles_its_kernels_when_it_runs(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    if identify_nvrtc() is None:
        pytest.skip("there is no NVRTC")
    source = tmp_path / "driver.cu"
    source.write_text(_DRIVER)
    assert emulate("--no-lines", str(source)) == 0
    out = capfd.readouterr().out
    assert out.startswith("7\n") and "fill   1 launch" in out


def test_a_library_that_cannot_be_emulated_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    require_compiler()
    source = tmp_path / "sparse.cu"
    source.write_text("#include <cusparse_absent.h>\nint main() {}")
    assert emulate(str(source)) == 2
    told = capfd.readouterr().err
    assert "cuSPARSE consists of kernels in machine code, which are not emulated" in told and "make -B" not in told


_CLUSTER = """
#include <cooperative_groups.h>
__global__ void meet() { cooperative_groups::this_cluster().sync(); }
int main() { meet<<<2, 32>>>(); }
"""


def test_a_source_whose_blocks_form_clusters_is_said_to_be_one(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    source = tmp_path / "cluster.cu"
    source.write_text(_CLUSTER)
    assert emulate("--machine", "A100 PCIe 40GB", str(source)) == 2
    told = capfd.readouterr().err
    assert "its blocks form clusters, which GPUs have from compute capability 9.0 on" in told and "make -B" not in told


def test_a_source_that_is_no_program_is_said_to_be_one_of_several(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    (tmp_path / "part.cu").write_text("__global__ void part(int* a) { a[0] = 1; }")
    assert emulate(str(tmp_path / "part.cu")) == 2
    assert 'build all of them: gpa-lsp emulate --build "make -B"' in capfd.readouterr().err


def test_faults_of_kernels_are_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate("--no-lines", "--", str(build(SOURCES / "out_of_bounds.cu", tmp_path))) == 3
    out = capsys.readouterr().out
    assert "out_of_bounds.cu:9  " in out and "element 1000 of values, which has 1000 (24 times)" in out


_FAR = """
__global__ void gather(float* a, const int* index, const float* b) { a[threadIdx.x] = b[index[threadIdx.x]]; }
__global__ void follow(float** rows, int far) { rows[threadIdx.x % 2][threadIdx.x + far] = 1; }
int main() {
  float *a, *b, **rows; int *index, host[32] = {0, 1, -1500};
  cudaMalloc(&index, sizeof host);
  cudaMalloc(&a, 4096);
  cudaMalloc(&rows, 16);
  cudaMalloc(&b, 4096);
  cudaMemcpy(index, host, sizeof host, cudaMemcpyHostToDevice);
  gather<<<1, 32>>>(a, index, b);
  float* both[] = {a, b};
  cudaMemcpy(rows, both, sizeof both, cudaMemcpyHostToDevice);
  follow<<<1, 32>>>(rows, 9000);
  return cudaDeviceSynchronize();
}
"""


def test_an_index_far_outside_belongs_to_the_array_of_its_pointer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    (tmp_path / "far.cu").write_text(_FAR)
    assert emulate(str(tmp_path / "far.cu")) == 3
    gather, follow = re.findall("fault +(.*)", capfd.readouterr().out)
    assert "6,000 bytes (1,500 elements) before b, which has 4096 bytes" in gather  # `a` ends nearer to it
    assert re.search(r"; allocated at \S*far.cu:9$", gather)
    assert (
        "byte 36,000 of " in follow and "(through the pointer at byte 0 of rows)" in follow
    )  # `index` and `rows` are nearer


_LINKED = """
struct Node { int value; float* data; Node* next; };
__global__ void walk(Node* head, int i) {
  for (Node* one = head; one; one = one->next) one->data[i + one->value] += 1;
}
__global__ void behind(Node* head) { head->next->value = 1; }
int main() {
  float *a, *b; Node* nodes;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&nodes, 2 * sizeof(Node));
  cudaMemset(a, 0, 4096);
  cudaMemset(b, 0, 4096);
  Node host[] = {{0, a, nodes + 1}, {9, b, nullptr}};
  cudaMemcpy(nodes, host, sizeof host, cudaMemcpyHostToDevice);
  walk<<<1, 1>>>(nodes, 1020);
  behind<<<1, 1>>>(nodes + 1);
  cudaDeviceSynchronize();
}
"""


def test_a_pointer_of_a_structure_is_followed_to_its_array_and_null_is_said_to_be_null(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    (tmp_path / "linked.cu").write_text(_LINKED)
    assert emulate(str(tmp_path / "linked.cu")) == 3
    load, store, behind = re.findall("fault +(.*)", capfd.readouterr().out)
    for one in (load, store):
        assert "byte 4,116 of the allocation at" in one and "(through the pointer at byte 32 of head)" in one
    assert behind.endswith("store of 4 bytes at 0x0: a null pointer")


def test_what_is_outside_of_all_arrays_is_not_written_as_the_name_of_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = tmp_path / "beyond.cu"
    source.write_text(BEYOND)
    assert emulate("--", str(build(source, tmp_path))) == 3
    assert "of `a`, memory outside of all arrays: " in capsys.readouterr().out


_BROKEN = """
import sys
from gpa_lsp.execution.traces import ask

def fail(*_, **__):
    raise ValueError("nobody expected this")

ask.list_line_facts = fail
from gpa_lsp.cli.main import main

sys.exit(main(sys.argv[1:]))
"""


def test_an_analysis_that_failed_is_no_success_and_no_traceback(tmp_path: Path) -> None:
    program = build(SOURCES / "symbols.cu", tmp_path)
    command = [sys.executable, "-c", _BROKEN, "emulate", "--", str(program)]
    environment = {name: value for name, value in os.environ.items() if name != "GPA_LSP_DEBUG"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "symbols: right" in done.stdout and "nobody expected this" in done.stdout
    assert "Traceback" not in done.stderr and "facts of lines failed" in done.stderr


FREED = """
__global__ void spread(int* rows, int** others) { rows[threadIdx.x] = threadIdx.x; others[0][threadIdx.x + 4] += 1; }
__global__ void copy(int* into, const int* from) { into[threadIdx.x] = from[threadIdx.x]; }
int main(int argc, char** argv) {
  int *x, *y, *z, **list;
  cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 8192); cudaMalloc(&list, 8);
  cudaMemcpy(list, &z, 8, cudaMemcpyHostToDevice);
  spread<<<1, 32>>>(x, list);
  cudaFree(x); cudaFree(z);
  if (argc > 1) cudaMalloc(&x, 1024);
  copy<<<1, 32>>>(y, x);
  spread<<<1, 32>>>(y, list);
  return 0;
}
"""


def test_an_access_to_memory_that_was_freed_is_said_to_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "freed.cu"
    source.write_text(FREED)
    program = build(source, tmp_path)
    assert emulate("--no-lines", "--", str(program)) == 3
    printed = " ".join(capsys.readouterr().out.split())
    assert re.search(r"copy .*in memory that was freed, byte 0 of from \(4,096 bytes at 0x\w+\) \(32 times\)", printed)
    assert re.search(r"in memory that was freed, byte 16 \(8,192 bytes at 0x\w+\) \(32 times\)", printed)


def test_memory_that_was_allocated_again_is_not_freed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "freed.cu"
    source.write_text(FREED)
    assert emulate("--no-lines", "--", str(build(source, tmp_path)), "again") == 3
    said = re.findall(r"in memory that was freed.*", capsys.readouterr().out)
    assert said and not any("of from" in one for one in said)


def test_the_programs_own_status_is_ours(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate("--", "/bin/sh", "-c", "exit 7") == 7
    assert emulate("--", "/bin/sh", "-c", "kill -9 $$") == 128 + 9
    capsys.readouterr()


def test_a_file_that_is_no_program_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert emulate("--", str(SOURCES / "checking.h")) == 2
    assert "give a built program, or a CUDA C++ source (.cu) to compile and run" in capsys.readouterr().err


def test_json_has_every_kernel_and_what_its_lines_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = build(SOURCES / "benchmark_loop.cu", tmp_path)
    into = tmp_path / "run.json"
    assert emulate("--format", "json", "-o", str(into), "--each-kernel", "2", "--", str(program), "5") == 0
    assert capsys.readouterr().out == "5 launches\nbenchmark_loop: right (0 wrong)\n"
    found = json.loads(into.read_text())
    assert (found["format"], found["machine"], found["end"]["status"]) == ("gpa-lsp/program/1", "A100 PCIe 40GB", 0)
    (kernel,) = found["kernels"]
    assert (kernel["launches"], kernel["emulated"], kernel["skipped"]) == (5, 2, 3)
    assert kernel["shapes"] == [{"grid": [16, 1, 1], "block": [256, 1, 1], "shared_bytes": 0, "launches": 5}]
    assert kernel["prediction"]["accesses"] and kernel["faults"] == []


def test_what_was_recorded_is_looked_at_by_the_command_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = build(SOURCES / "frontier_search.cu", tmp_path)
    for _ in range(2):  # a second run takes the place of the first
        assert emulate("--record", str(tmp_path / "kept"), "--no-lines", "--", str(program)) == 0
    said = [line.partition(": recorded ")[2] for line in capsys.readouterr().err.splitlines() if ": recorded " in line]
    assert len(list((tmp_path / "kept").glob("*.launch.toml"))) == len(said) // 2 >= 1
    for line in said[len(said) // 2 :]:
        words = shlex.split(line.partition(": ")[2])
        assert words[:2] == ["gpa-lsp", "predict"] and main(words[1:]) == 0
        assert "frontier_search.cu" in capsys.readouterr().out


def test_what_was_recorded_can_be_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A recording holds PTX alone, from which machine code is assembled for the GPU."""
    if find_tool("ptxas") is None:
        pytest.skip("there is no ptxas")
    source = tmp_path / "beyond.cu"
    source.write_text(BEYOND.replace("a[i + 1]", "a[i]").replace("<<<4, 256>>>", "<<<4, 128>>>"))
    kept = tmp_path / "kept"
    assert emulate("--record", str(kept), "--no-lines", "--", str(build(source, tmp_path))) == 0
    (described,) = kept.glob("*.launch.toml")
    (module,) = kept.glob("*.fatbin")
    words = ["predict", "stalls", str(module), "--launches", str(described)]
    monkeypatch.chdir(tmp_path)
    for more in ([], ["--machine", "H100 PCIe"], ["--mode", "paper"]):
        capsys.readouterr()
        assert main([*words, *more]) == 0
        assert re.search(r"^shift.* on .*[:\n] +[\d,]+ cycles", capsys.readouterr().out)
    assert main([*words, "--machine", "T4"]) == 2  # it is for newer GPUs
    monkeypatch.setattr("gpa_lsp.execution.prediction.launched_code.find_tool", lambda name: None)
    assert main(words) == 2
    assert "pip install nvidia-cuda-nvcc" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["emulate"], ["record", "-o", "recorded"], ["profile", "-o", "new.ncu-rep"]])
def test_a_report_is_no_program(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message says that it is a report, and which commands read it."""
    monkeypatch.chdir(tmp_path)
    Path("old.ncu-rep").write_bytes(b"NVR")
    assert main([*words, "old.ncu-rep"]) == 2
    told = capsys.readouterr().err
    assert "old.ncu-rep: is a report, not a program to " in told and "gpa-lsp advise and report read it" in told
