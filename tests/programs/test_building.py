"""Projects that are built by their own Makefiles and CMake files, none of which knows of us."""

import re
import shutil
from pathlib import Path

import pytest

from gpa_lsp.cli.main import main
from gpa_lsp.code.binary.linkage_names import demangle
from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.execution.compiler.included_files import find_cuda_headers
from gpa_lsp.execution.programs import library
from gpa_lsp.execution.programs.build import build_program, find_toolkit
from gpa_lsp.foundation.errors import InputError, ToolError
from gpa_lsp.foundation.native.c_compiler import Library, Tell, obtain_library
from gpa_lsp.foundation.processes.search_paths import find_program
from tests.patience import LIMIT_S
from tests.programs.built import MACHINE, SOURCES, require_compiler, run


def build_project(name: str, command: str, folder: Path) -> Path:
    """A copy of a project, built."""
    require_compiler()
    for tool in ("make", "cmake"):
        if tool in command and find_program(tool) is None:
            pytest.skip(f"{tool} is not installed")
    shutil.copy(SOURCES / "checking.h", folder)
    project = folder / name
    shutil.copytree(SOURCES / name, project)
    printed = bytearray()
    try:
        build_program(command, machine=MACHINE, folder=project, limit_s=LIMIT_S, take=printed.extend)
    except ToolError as error:
        raise AssertionError(printed.decode()) from error
    return project


@pytest.mark.parametrize(
    ("project", "command", "program", "kernels"),
    [
        ("several_units", "make -B -j2", "several_units", 2),
        ("cmake_project", 'sh -c "cmake -S . -B out && cmake --build out"', "out/transposes", 2),
        ("old_api", "make -B", "old_api", 2),
        ("driver_arrays", "make -B", "driver_arrays", 1),
        ("texture_references", "make -B", "texture_references", 2),
        ("relocatable_units", "make -B", "relocatable_units", 2),
        ("absent_helpers", "make -B", "absent_helpers", 3),
        ("nested_launches", "make -B", "nested_launches", 6),
        ("absent_random", "make -B", "absent_random", 6),
        ("linked_by_host", "make -B", "linked_by_host", 1),
        ("linked_by_host", 'sh -c "cmake -S . -B out && cmake --build out"', "out/linked_by_host", 1),
        ("linked_by_c", "make -B", "linked_by_c", 1),
    ],
)
def test_a_project_is_built_for_us_without_a_change(
    project: str, command: str, program: str, kernels: int, tmp_path: Path
) -> None:
    folder = build_project(project, command, tmp_path)
    found, printed = run(folder / program, records=tmp_path / "records")
    assert f"{Path(program).name}: right" in printed, printed
    assert found.end.status == 0 and not found.has_faults and not found.notes
    assert len(found.kernels) == kernels and all(one.emulated == one.launches for one in found.kernels)
    assert len({one.recorded.description for one in found.kernels if one.recorded is not None}) == kernels


@pytest.mark.parametrize(
    ("command", "program"),
    [("make -B", "computed_libraries"), ('sh -c "cmake -S . -B out && cmake --build out"', "out/computed_libraries")],
)
def test_what_libraries_of_machine_code_do_is_computed(command: str, program: str, tmp_path: Path) -> None:
    folder = build_project("computed_libraries", command, tmp_path)
    found, printed = run(folder / program)
    assert "computed_libraries: right" in printed, printed
    assert {demangle(one.mangled_name).partition("(")[0] for one in found.kernels} == {"scale", "count_inside"}
    assert all(one.emulated == one.launches for one in found.kernels)
    said = [note.partition(" does is computed on the CPU")[0] for note in found.notes[:3]]
    assert said == ["what cuBLAS", "what cuFFT", "what cuRAND"]
    assert [note.partition(" failed")[0] for note in found.notes[3:]] == [
        "cublasSaxpy", "cublasSscal", "cublasZscal", "curandGenerateUniform",
    ]  # fmt: skip


_LINKED_BY_OTHERS = """
all:
	nvcc -c reduce.cu -o reduce.o
	ar rcs libcudart_static.a
	c++ reduce.o ./libcudart_static.a -o reduce
"""
_REDUCE = """
#include <cstdio>
__global__ void count(int *out) { atomicAdd(out, 1); }
int main() {
    int *out;
    cudaMallocManaged(&out, sizeof *out);
    count<<<4, 64>>>(out);
    cudaDeviceSynchronize();
    std::printf("%d\\n", *out);
}
"""


def test_a_host_compiler_that_links_the_static_runtime_gets_the_shared_one(tmp_path: Path) -> None:
    """CMake links so if the main program is not CUDA; the archive here is empty, so that only the shared runtime can work."""
    require_compiler()
    if find_program("make") is None:
        pytest.skip("make is not installed")
    (tmp_path / "Makefile").write_text(_LINKED_BY_OTHERS)
    (tmp_path / "reduce.cu").write_text(_REDUCE)
    printed = bytearray()
    try:
        build_program("make -B", machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=printed.extend)
    except ToolError as error:
        raise AssertionError(printed.decode()) from error
    assert run(tmp_path / "reduce")[1] == "256\n"


_AT_RUN_TIME = r"""
#include <cuda.h>
#include <cuda_runtime.h>
#include <cstdio>
#include <nvrtc.h>
#include <vector>

int main() {
    const char *text = "extern \"C\" __global__ void put(int *to) { *to = 42; }", *options[] = {"--gpu-architecture=sm_80"};
    nvrtcProgram program;
    size_t bytes;
    nvrtcCreateProgram(&program, text, "put.cu", 0, nullptr, nullptr);
    if (nvrtcCompileProgram(program, 1, options) != NVRTC_SUCCESS || nvrtcGetCUBINSize(program, &bytes) != NVRTC_SUCCESS) return 1;
    std::vector<char> image(bytes);
    nvrtcGetCUBIN(program, image.data());
    int *device, found = 0;
    void *arguments[] = {&device};
    CUmodule module;
    CUfunction function;
    cudaMalloc(&device, sizeof found);
    if (cuModuleLoadData(&module, image.data()) != CUDA_SUCCESS) return 2;
    cuModuleGetFunction(&function, module, "put");
    cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr);
    cudaMemcpy(&found, device, sizeof found, cudaMemcpyDeviceToHost);
    printf("%d\n", found);
}
"""


def test_a_program_that_compiles_at_run_time_finds_the_compiler_of_a_package_and_gets_ptx(tmp_path: Path) -> None:
    if not any((folder / "nvrtc.h").is_file() for folder in find_cuda_headers()):
        pytest.skip("NVRTC has no header here")
    (tmp_path / "asks.cpp").write_text(_AT_RUN_TIME)
    command = "nvcc -o asks asks.cpp -lnvrtc -lcuda"
    build_program(command, machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=lambda piece: None)
    assert run(tmp_path / "asks")[1] == "42\n"


def test_an_nvcc_that_is_a_script_is_of_the_toolkit_that_it_starts(tmp_path: Path) -> None:
    require_compiler()
    nvcc = find_program("nvcc") or find_tool("nvcc")
    assert nvcc is not None
    script = tmp_path / "bin" / "nvcc"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {nvcc} "$@"\n')
    script.chmod(0o700)
    found = find_toolkit(script)
    assert found == find_toolkit(nvcc)
    assert (found / "bin" / "nvcc").exists()


@pytest.mark.parametrize(("command", "message"), [("", "is empty"), ('make "', "close its quotes")])
def test_a_build_command_that_is_none_is_named(command: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        build_program(command, machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=bytearray().extend)


def test_a_build_that_fails_says_so(tmp_path: Path) -> None:
    require_compiler()
    with pytest.raises(ToolError, match="the build failed: exit status 3"):
        build_program('sh -c "exit 3"', machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=bytearray().extend)


_FOR_NEWER_GPUS = """
#include <cooperative_groups.h>
#include <cstdio>
__global__ void count(int *out) { *out = cooperative_groups::this_cluster().num_blocks(); }
int main() {
    int *out;
    cudaMallocManaged(&out, sizeof *out);
    count<<<1, 1>>>(out);
    cudaDeviceSynchronize();
    std::printf("%d\\n", *out);
}
"""


def test_code_for_newer_gpus_alone_is_built_for_those(tmp_path: Path) -> None:
    require_compiler()
    (tmp_path / "count.cu").write_text(_FOR_NEWER_GPUS)
    printed = bytearray()
    build_program(
        "nvcc -arch=sm_90 count.cu -o count", machine="H100 PCIe", folder=tmp_path, limit_s=LIMIT_S, take=printed.extend
    )
    assert b"error" not in printed
    assert run(tmp_path / "count", machine="H100 PCIe")[1] == "1\n"
    found, _ = run(tmp_path / "count")
    assert any("its PTX is for compute capability 9.0 and newer" in why for why in found.refused)


def test_a_build_says_what_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_compiler()
    obtained: list[str] = []

    def obtain(wanted: Library, *, tell: Tell | None = None) -> bytes:
        obtained.append(wanted.title)
        if tell is not None:
            tell(wanted.title)
        return obtain_library(wanted)

    monkeypatch.setattr(library, "obtain_library", obtain)
    told: list[str] = []
    command = 'sh -c "echo built"'
    build_program(command, machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=bytearray().extend, tell=told.append)
    libraries = [title for title in obtained if title.endswith("for programs without a GPU")]
    assert len(libraries) >= 2, "the runtime's and the driver's"
    assert told == [*libraries, f"building: {command}"]


_ADD = """
#include <cstdio>
__global__ void add(float* x) { x[threadIdx.x] += 1.f; }
int main() {
    float *d, h[32];
    cudaMalloc(&d, 128);
    cudaMemset(d, 0, 128);
    add<<<1, 32>>>(d);
    cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost);
    std::printf("%g %g\\n", h[0], h[31]);
}
"""


def test_a_program_is_built_for_the_gpu_it_will_see(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Code for 8.0 does not run on an older GPU; what no nvcc at hand compiles for is refused by name before anything is built."""
    require_compiler()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.cu").write_text(_ADD)
    build = ("--no-lines", "--build", "nvcc add.cu -o add")
    assert main(["emulate", *build, "--machine", "T4", "--", "./add"]) == 0
    assert capfd.readouterr().out.startswith("1 1\n1 launch of 1 kernel")
    assert main(["emulate", *build, "--machine", "V100 SXM2", "--", "./add"]) in (0, 2)
    printed = capfd.readouterr()
    if "1 1\n" not in printed.out:  # this nvcc is too new for it
        assert "newer, and the V100 SXM2 has 7.0" in printed.err


def test_kernels_that_cannot_run_are_no_good_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    require_compiler()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.cu").write_text(_ADD)
    (tmp_path / "none.cu").write_text(_ADD.replace("<<<1, 32>>>", "<<<0, 32>>>"))
    build_program("nvcc add.cu -o add", machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=bytearray().extend)
    build_program("nvcc none.cu -o none", machine=MACHINE, folder=tmp_path, limit_s=LIMIT_S, take=bytearray().extend)
    capfd.readouterr()
    assert main(["emulate", "--no-lines", "--machine", "T4", "--", "./add"]) == 3
    assert re.search(r"^not run: .* its PTX is for compute capability 8.0 and newer", capfd.readouterr().out, re.M)
    assert main(["emulate", "--no-lines", "--", "./none"]) == 3
    assert re.search(r"^not run: 1 launch was cut short.*\n(.*\n)*  ended   .*grid", capfd.readouterr().out, re.M)
