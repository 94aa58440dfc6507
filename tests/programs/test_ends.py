"""Ends of programs and of ours leave nothing behind; programs of several processes and threads."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpa_lsp.execution.programs import library
from gpa_lsp.execution.programs.model import RunSettings
from gpa_lsp.execution.programs.run import Surroundings, run_program
from gpa_lsp.foundation.errors import InputError, MissingToolError
from gpa_lsp.foundation.native import c_compiler
from tests.patience import LIMIT_S, wait_until
from tests.programs.built import MACHINE, SOURCES, build, require_compiler, run, write
from tests.programs.test_limits import ENDLESS

_THREADS = """
#include <cstdio>
#include <thread>
#include <vector>
__global__ void add(int *p, int n, int k) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += k; }
int main() {
    const int n = 500, threads = 6;
    int wrong[threads] = {};
    std::vector<std::thread> all;
    for (int t = 0; t < threads; t++)
        all.emplace_back([t, &wrong] {
            int *p, host[n];
            cudaStream_t stream;
            cudaStreamCreate(&stream);
            cudaMalloc(&p, sizeof host);
            cudaMemset(p, 0, sizeof host);
            for (int k = 0; k < 5; k++)
                add<<<4, 128, 0, stream>>>(p, n, t);
            cudaMemcpy(host, p, sizeof host, cudaMemcpyDeviceToHost);
            for (int one : host)
                wrong[t] += one != 5 * t;
            wrong[t] += cudaGetLastError() != cudaSuccess;
            cudaFree(p);
        });
    int sum = 0;
    for (int t = 0; t < threads; t++) {
        all[t].join();
        sum += wrong[t];
    }
    std::printf("%d wrong\\n", sum);
    return sum != 0;
}
"""
_NESTED = """
#include <cstdio>
__global__ void child(int *p) {
    if (threadIdx.x == 0)
        printf("child\\n");
    if (threadIdx.x == 31)
        __trap();
}
__global__ void parent(int *p, int threads) {
    child<<<1, threads>>>(p);
    printf("parent %d %d\\n", threads, cudaGetLastError());
}
int main() {
    int *p;
    cudaMallocManaged(&p, 4);
    for (int threads : {1, 2000, 32}) {
        parent<<<1, 1>>>(p, threads);
        cudaError_t error = cudaDeviceSynchronize();
        std::printf("%s\\n", cudaGetErrorString(error));
    }
}
"""
_FORKS = """
#include <cstdio>
#include <sys/wait.h>
#include <unistd.h>
__global__ void set(int *p, int value) { *p = value; }
static int use(int value) {
    int *p, host = 0;
    cudaError_t error = cudaMalloc(&p, 4);
    if (error != cudaSuccess)
        return 100 + error;
    set<<<1, 1>>>(p, value);
    cudaMemcpy(&host, p, 4, cudaMemcpyDeviceToHost);
    return host;
}
static int in_child(int value) {
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        _exit(use(value));
    int status;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}
int main() {
    int before = in_child(11), here = use(12), after = in_child(13), again = use(14);
    std::printf("%d %d %d %d\\n", before, here, after, again);
}
"""
_STREAMS = """
#include <cstdio>
int main() {
    int n = 0;
    if (std::scanf("%d", &n) != 1)
        return 5;
    std::printf("out %d\\n", n);
    std::fprintf(stderr, "err %d\\n", n);
    return n;
}
"""


def emulate(temporary: Path, *words: str, **options: object) -> "subprocess.Popen[str]":
    """The command itself, in a process of its own."""
    environment = {**os.environ, "TMPDIR": str(temporary)}
    command = [sys.executable, "-P", "-m", "gpa_lsp", "emulate", *words]
    return subprocess.Popen(command, env=environment, text=True, **options)  # type: ignore[call-overload,no-any-return]


def list_processes(word: str) -> list[str]:
    """Processes whose command line holds a word."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if word.encode() in (folder / "cmdline").read_bytes() and int(folder.name) != os.getpid():
                found.append(folder.name)
        except OSError:
            continue
    return found


def find_processor_s(process_id: int) -> float:
    """Processor time that a process has had, in seconds."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A socket's path may be 100 bytes long, and pytest's own folders grow with each run."""
    with tempfile.TemporaryDirectory(prefix="ends", dir="/tmp") as folder:
        yield Path(folder)


def test_killed_we_leave_no_process_and_no_file(tmp_path: Path, short_folder: Path) -> None:
    program = build(write(tmp_path, ENDLESS), tmp_path, name="endless_to_be_killed")
    temporary = short_folder
    process = emulate(temporary, "--", str(program), stdout=subprocess.PIPE)
    assert process.stdout.readline() == "begun\n"
    assert list_processes(program.name) and list(temporary.iterdir())
    process.kill()
    process.wait(LIMIT_S)
    process.stdout.close()
    wait_until(lambda: not list_processes(program.name), lambda: list_processes(program.name))
    wait_until(lambda: not list(temporary.iterdir()), lambda: list(temporary.iterdir()))


def test_interrupted_we_end_the_program_and_say_what_was_seen(tmp_path: Path, short_folder: Path) -> None:
    program = build(write(tmp_path, ENDLESS), tmp_path, name="endless")
    process = emulate(short_folder, "--", str(program), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == "begun\n"
    enough_s = find_processor_s(process.pid) + 1.0
    wait_until(lambda: find_processor_s(process.pid) > enough_s, "the kernel at work")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130 and "did not end by itself: cancelled" in err
    assert "spin" in out and "ended" in out


def test_a_program_has_our_input_and_both_our_outputs(tmp_path: Path) -> None:
    program = build(write(tmp_path, _STREAMS), tmp_path)
    process = emulate(
        tmp_path, "--", str(program), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    out, err = process.communicate("7\n", timeout=LIMIT_S)
    assert (process.returncode, err) == (7, "err 7\n")
    assert out.startswith("out 7\n0 launches of 0 kernels")


def test_threads_launch_side_by_side(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _THREADS), tmp_path))
    assert printed == "0 wrong\n" and found.kernels[0].launches == 30


def test_a_fork_has_a_gpu_of_its_own_or_none(tmp_path: Path) -> None:
    """A child cannot use a context that its parent began before the fork, as on a GPU."""
    found, printed = run(build(write(tmp_path, _FORKS), tmp_path))
    assert printed == "11 12 103 14\n"
    assert sum(kernel.launches for kernel in found.kernels) == 3


def test_processes_of_a_script_have_one_session_each(tmp_path: Path) -> None:
    program = build(write(tmp_path, _THREADS), tmp_path)
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\n{program} &\n{program}\nwait\n")
    script.chmod(0o700)
    found, printed = run(script)
    assert printed == "0 wrong\n" * 2 and [one.launches for one in found.kernels] == [30, 30]


@pytest.mark.parametrize("kind", ["linked", "long"])
def test_the_folder_for_temporary_files_may_be_any(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / ("x" * 120 if kind == "long" else "real")
    folder.mkdir()
    if kind == "linked":
        link = tmp_path / "link"
        link.symlink_to(folder)
        folder = link
    program = build(write(tmp_path, _FORKS), tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    _, printed = run(program)
    assert printed == "11 12 103 14\n" and not list(folder.iterdir())


def test_the_socket_is_ours_alone(tmp_path: Path) -> None:
    require_compiler()
    script = tmp_path / "script.sh"
    script.write_text('#!/bin/sh\nstat -c %a "$(dirname "$GPA_LSP_RUNTIME_SOCKET")"\n')
    script.chmod(0o700)
    assert run(script)[1] == "700\n"


def build_with_library(folder: Path, stem: str, function: str) -> Path:
    """A program that ends with what a function gives; that of the library beside it is 77."""
    require_compiler()
    stub = write(folder, f"int {function}(void) {{ return 77; }}\n", "stub.c")
    main = write(folder, f"int {function}(void);\nint main(void) {{ return {function}(); }}\n", "main.c")
    made, program = folder / f"lib{stem}.so.13", folder / "app"
    subprocess.run(["cc", "-shared", f"-Wl,-soname,{made.name}", str(stub), "-o", str(made)], check=True)
    subprocess.run(["cc", str(main), str(made), f"-Wl,-rpath,{folder}", "-o", str(program)], check=True)
    return program


def test_libraries_of_machine_code_are_named_before_the_program_starts(tmp_path: Path) -> None:
    require_compiler()
    program = build_with_library(tmp_path, "cusparse", "cusparseCreate")
    told: list[str] = []
    found = run_program([str(program)], RunSettings(machine=MACHINE), Surroundings(folder=tmp_path, tell=told.append))
    assert told == ["kernels of cuSPARSE come as machine code, and are not emulated"]
    assert found.notes == tuple(told) and found.end.status == 77


@pytest.mark.parametrize(
    ("library", "name", "status"), [("cublas", "cuBLAS", 15), ("cufft", "cuFFT", 16), ("curand", "cuRAND", 103)]
)
def test_a_computed_library_takes_the_place_of_the_real_one_and_names_what_it_has_not(
    library: str, name: str, status: int, tmp_path: Path
) -> None:
    program = build_with_library(tmp_path, library, f"{library}Unheard")
    found, _ = run(program)
    assert found.end.status == status
    assert found.notes[0].startswith(f"what {name} does is computed on the CPU")
    assert found.notes[1:] == (f"{library}Unheard is not emulated; the program was told so",)


def test_what_goes_wrong_in_kernels_that_kernels_launch_reaches_the_program(tmp_path: Path) -> None:
    options = ("-rdc=true", "-cudart", "shared", "-gencode", "arch=compute_80,code=compute_80", "-lcudadevrt")
    found, printed = run(build(write(tmp_path, _NESTED), tmp_path, *options))
    told = [
        "parent 1 0",
        "child",
        "no error",
        "parent 2000 9",
        "no error",
        "parent 32 0",
        "child",
        "unspecified launch failure",
    ]
    assert printed.splitlines() == told
    assert sorted((one.name, one.launches) for one in found.kernels) == [("child(int*)", 2), ("parent(int*, int)", 3)]


def test_a_function_for_device_code_that_is_not_emulated_is_named(tmp_path: Path) -> None:
    text = _NESTED.replace(
        "child<<<1, threads>>>(p);", "cudaMemcpy2DAsync(p, 4, p, 4, 4, 1, cudaMemcpyDeviceToDevice, 0);"
    )
    options = ("-rdc=true", "-cudart", "shared", "-gencode", "arch=compute_80,code=compute_80", "-lcudadevrt")
    found, printed = run(build(write(tmp_path, text), tmp_path, *options))
    assert "unspecified launch failure\n" in printed
    assert any("__cudaCDP2Memcpy2DAsync" in fault.message for one in found.kernels for fault in one.faults)


_PRINTS = """
#include <cstdio>
__global__ void tell(int round) { printf("round %d thread %d of all\\n", round, blockIdx.x * blockDim.x + threadIdx.x); }
int main() {
    for (int round = 0; round < 3; round++)
        tell<<<20, 256>>>(round);
    return cudaDeviceSynchronize();
}
"""


def test_all_that_kernels_print_reaches_the_program(tmp_path: Path) -> None:
    """More than 4,096 threads, and more than 64 KiB, of one kernel."""
    found, printed = run(build(write(tmp_path, _PRINTS), tmp_path))
    expected = [f"round {number} thread {thread} of all" for number in range(3) for thread in range(5120)]
    assert printed.splitlines() == expected and not found.notes


_SIDES = """
#include <cstdio>
#include <cstdlib>
static void tell(cudaError_t error) { std::printf("%s\\n", cudaGetErrorName(error)); cudaGetLastError(); }
int main() {
    int *host = (int *)std::malloc(64), *device, *pinned, *managed, *seen;
    int *registered = (int *)aligned_alloc(4096, 4096);
    cudaMalloc(&device, 64);
    cudaMallocHost(&pinned, 64);
    cudaMallocManaged(&managed, 64);
    cudaHostRegister(registered, 4096, cudaHostRegisterMapped);
    tell(cudaMemcpy(host, device, 64, cudaMemcpyHostToDevice));
    tell(cudaMemcpy(host, host, 64, cudaMemcpyDeviceToHost));
    tell(cudaMemcpyAsync(device, host, 64, cudaMemcpyDeviceToDevice, 0));
    tell(cudaMemcpy2D(host, 16, device, 16, 16, 4, cudaMemcpyHostToDevice));
    tell(cudaMemcpy(device, host, 64, (enum cudaMemcpyKind)9));
    tell(cudaMemset(host, 0, 64));
    tell(cudaMemcpy(device, host, 64, cudaMemcpyHostToDevice));
    tell(cudaMemcpy(pinned, device, 64, cudaMemcpyDeviceToHost));
    tell(cudaMemcpy(managed, registered, 64, cudaMemcpyDeviceToDevice));
    tell(cudaMemcpy(host, device, 64, cudaMemcpyDefault));
    tell(cudaHostGetDevicePointer(&seen, registered, 0));
    tell(cudaMemset(seen, 0, 64));
    for (int *one : {host, device, pinned, managed}) {
        cudaPointerAttributes found;
        cudaPointerGetAttributes(&found, one);
        std::printf("%d ", (int)found.type);
    }
}
"""


def test_copies_say_which_side_is_the_devices(tmp_path: Path) -> None:
    _, printed = run(build(write(tmp_path, _SIDES), tmp_path))
    *told, types = printed.splitlines()
    invalid = ["cudaErrorInvalidValue"]
    assert told == [*invalid * 4, "cudaErrorInvalidMemcpyDirection", *invalid, *["cudaSuccess"] * 6]
    assert types.split() == ["0", "2", "1", "3"]  # as cudaMemoryType


_SHARED = """
#include <cstdio>
__global__ void sum(int *out) {
    extern __shared__ int values[];
    values[threadIdx.x] = 1;
    __syncthreads();
    *out = values[0] + values[blockDim.x - 1];
}
static void launch(int *out, int bytes) {
    sum<<<1, 32, bytes>>>(out);
    std::printf("%s ", cudaGetErrorName(cudaGetLastError()));
}
int main() {
    int *out;
    cudaMallocManaged(&out, 4);
    launch(out, 48 << 10);
    launch(out, 49 << 10);
    cudaFuncSetAttribute(sum, cudaFuncAttributeMaxDynamicSharedMemorySize, 96 << 10);
    launch(out, 96 << 10);
    launch(out, 97 << 10);
    std::printf("%d\\n", cudaDeviceSynchronize() == cudaSuccess ? *out : -1);
}
"""


def test_more_shared_memory_than_was_asked_for_is_refused(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _SHARED), tmp_path))
    assert printed.split() == ["cudaSuccess", "cudaErrorInvalidValue", "cudaSuccess", "cudaErrorInvalidValue", "2"]
    assert found.kernels[0].launches == 2


_ASSERTS = """
#include <cassert>
#include <cstdio>
__global__ void check(int n) { assert(threadIdx.x < n); }
int main() {
    check<<<1, 32>>>(32);
    std::printf("%s ", cudaGetErrorName(cudaDeviceSynchronize()));
    check<<<1, 32>>>(20);
    std::printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""


def test_a_failed_assertion_reaches_the_program(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _ASSERTS), tmp_path))
    assert printed == "cudaSuccess cudaErrorAssert\n"
    (fault,) = found.kernels[0].faults
    assert fault.count == 12 and fault.message.startswith("assertion 'threadIdx.x < n' failed")


def test_cooperative_launches_beyond_the_gpu_are_refused_and_named(tmp_path: Path) -> None:
    found, printed = run(build(SOURCES / "conjugate_gradient.cu", tmp_path))
    assert "right" in printed and found.kernels[0].launches == 1
    assert any(note.startswith("a cooperative launch of 1,729 blocks was refused") for note in found.notes)


def test_code_for_older_gpus_beside_newer_code_is_found(tmp_path: Path) -> None:
    newer = ("-cudart", "shared", "-gencode", "arch=compute_86,code=[sm_86,compute_86]")
    both = build(SOURCES / "symbols.cu", tmp_path, *newer, "-gencode", "arch=compute_80,code=compute_80", name="both")
    assert "symbols: right" in run(both)[1]
    found, _ = run(build(SOURCES / "symbols.cu", tmp_path, *newer, name="newer"))
    assert any("its PTX is for compute capability 8.6 and newer" in why for why in found.refused)


_STATIC_RUNTIME = """
#include <dlfcn.h>
typedef int (*Find)(const char *, void **, int, unsigned long long);
int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
    ((Find)dlsym(library, "cuGetProcAddress"))("cuGetExportTable", &found, 13000, 0);
    return 0;
}
"""


def test_a_library_with_a_runtime_of_its_own_is_named(tmp_path: Path) -> None:
    require_compiler()
    program = tmp_path / "app"
    subprocess.run(["cc", str(write(tmp_path, _STATIC_RUNTIME, "main.c")), "-o", str(program), "-ldl"], check=True)
    found, _ = run(program)
    assert [note for note in found.notes if "linked into it (nvcc's default; CuPy's wheels)" in note]


_UNKNOWN_TO_THE_DRIVER = """
#include <dlfcn.h>
#include <stdio.h>
typedef int (*Find)(const char *, void **, int, unsigned long long);
int main(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *found = library;
    int error = ((int (*)(void *))dlsym(library, "cuGraphDestroy"))(0);
    int unfound = ((Find)dlsym(library, "cuGetProcAddress"))("cuGraphDestroy", &found, 13000, 0);
    printf("%d %d %d\\n", error, unfound, found == 0);
    return 0;
}
"""


def test_a_call_of_the_driver_that_is_not_emulated_is_named(tmp_path: Path) -> None:
    """A program that is linked with it runs until then; one that asks whether it is there is told no."""
    require_compiler()
    program = tmp_path / "app"
    subprocess.run(
        ["cc", str(write(tmp_path, _UNKNOWN_TO_THE_DRIVER, "main.c")), "-o", str(program), "-ldl"], check=True
    )
    found, printed = run(program)
    assert printed == "801 500 1\n"
    assert any("cuGraphDestroy" in note and "not emulated" in note for note in found.notes)


_UNUSUAL_GRAPH = """
#include <cuda_runtime.h>
#include <stdio.h>
int main(void) {
    cudaGraph_t graph;
    size_t count = 0;
    cudaGraphCreate(&graph, 0);
    int edges = cudaGraphGetEdges(graph, NULL, NULL, NULL, &count), printed = cudaGraphDebugDotPrint(graph, "graph.dot", 0);
    printf("%d %d %d\\n", edges, printed, cudaPeekAtLastError());
}
"""


def test_a_call_of_the_runtime_that_is_not_emulated_is_named(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _UNUSUAL_GRAPH), tmp_path))
    assert printed == "801 801 801\n"
    named = [note.partition(" ")[0] for note in found.notes if "is not emulated" in note]
    assert named == ["cudaGraphGetEdges", "cudaGraphDebugDotPrint"]


def test_missing_headers_and_compilers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    monkeypatch.setenv("GPA_LSP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(c_compiler, "find_c_compiler", lambda: None)
    with pytest.raises(MissingToolError, match="install gcc or clang"):
        run("true", folder=tmp_path)
    monkeypatch.setattr(library, "list_headers", list)
    with pytest.raises(InputError, match="pip install nvidia-cuda-runtime"):
        run("true", folder=tmp_path)


def test_a_gpu_is_chosen_by_the_beginning_of_its_name(tmp_path: Path) -> None:
    require_compiler()
    found, _ = run("true", folder=tmp_path, machine="A100")
    assert found.machine == "A100 PCIe 40GB"
    assert found.notes == (
        "A100 was taken as the A100 PCIe 40GB; it could be the A100 PCIe 80GB, A100 SXM4 40GB or A100 SXM4 80GB",
    )
    with pytest.raises(InputError, match="no known GPU is named 'A1000000'"):
        run("true", folder=tmp_path, machine="A1000000")


_CLUSTERS = """
#include <cstdio>
__global__ void pair(int *out) { out[blockIdx.x] = 1; }
int main() {
    int *out;
    cudaMalloc(&out, 64 * sizeof *out);
    for (unsigned blocks : {16u, 3u, 2u}) {
        cudaLaunchAttribute cluster;
        cluster.id = cudaLaunchAttributeClusterDimension;
        cluster.val.clusterDim = {blocks, 1, 1};
        cudaLaunchConfig_t config = {};
        config.gridDim = 32, config.blockDim = 32, config.attrs = &cluster, config.numAttrs = 1;
        std::printf("%s\\n", cudaGetErrorName(cudaLaunchKernelEx(&config, pair, out)));
    }
}
"""
_NEWER = ("-cudart", "shared", "-gencode", "arch=compute_90,code=compute_90")


def test_clusters_that_a_gpu_does_not_have_are_refused_as_it_does(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _CLUSTERS), tmp_path, *_NEWER), machine="H100 PCIe")
    assert printed.split() == ["cudaErrorInvalidClusterSize", "cudaErrorInvalidClusterSize", "cudaSuccess"]
    assert found.kernels[0].unfinished == (
        "a cluster has 16 x 1 x 1 blocks; it must have 1 to 8",
        "the grid has 32 in x, which is no multiple of the 3 of a cluster",
    )
    assert not found.has_faults


def test_gpus_without_clusters_refuse_them(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _CLUSTERS), tmp_path))
    assert printed.split() == ["cudaErrorInvalidClusterSize"] * 3
    assert found.kernels[0].unfinished[-1] == "a cluster has 2 x 1 x 1 blocks; it must have 1 to 1"
