"""Recordings tell where the host launched, and where it allocated arrays and what was copied to them; the driver is a made-up one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpa_lsp.execution.launches.launch import ArrayArgument
from gpa_lsp.execution.launches.read_launches import read_launches
from gpa_lsp.execution.programs.library import compile_host_blocks, list_headers
from gpa_lsp.execution.record.describe import describe_launches
from gpa_lsp.execution.record.run import FOLDER_VARIABLE, build_recorder
from gpa_lsp.foundation.native.c_compiler import find_c_compiler
from tests.patience import LIMIT_S

_PTX = """.version 7.0
.target sm_75
.address_size 64
.visible .entry scale(.param .u64 into, .param .u64 from, .param .u64 both, .param .u64 rest) {
    .reg .b64 %rd<5>; .reg .f32 %f<3>;
    ld.param.u64 %rd1, [into]; ld.param.u64 %rd2, [from]; ld.param.u64 %rd3, [both];
    ld.global.f32 %f1, [%rd2]; st.global.f32 [%rd1], %f1; st.global.f32 [%rd3], %f1; ret;
}
"""
# Lines are those of the program that the test names
_PROGRAM = """\
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#define CALL(name, ...) ((int (*)(__VA_ARGS__))dlsym(cuda, name))
static void *cuda;
static uint64_t allocate(size_t size) {
    uint64_t base = 0;
    CALL("cuMemAlloc_v2", uint64_t *, size_t)(&base, size);
    return base;
}
static float *read_input(size_t size) {
    float *numbers = malloc(size);
    numbers[0] = 1;
    return numbers;
}
static void send(uint64_t to, const void *from, size_t size) {
    CALL("cuMemcpyHtoD_v2", uint64_t, const void *, size_t)(to, from, size);
}
static void solve(void *function, void **arguments) {
    CALL("cuLaunchKernel", void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **)
    (function, 1, 1, 1, 4, 1, 1, 0, NULL, arguments, NULL);
}
int main(int count, char **words) {
    static char image[4096];
    void *module, *function, *pinned, *unused;
    FILE *code = fopen(words[count - 1], "r");
    fread(image, 1, sizeof image - 1, code);
    cuda = dlopen("libcuda.so.1", RTLD_NOW);
    uint64_t into = allocate(4096), gone = allocate(4096);
    CALL("cuMemFree_v2", uint64_t)(gone);
    uint64_t from = allocate(8192);
    uint64_t both = allocate(4096), rest = 0;
    float *input = read_input(8192);
    send(from, input, 8192);
    send(from, input + 64, 4096);
    CALL("cuMemAllocHost_v2", void **, size_t)(&pinned, 4096);
    send(both, (char *)pinned + 256, 1024);
    unused = calloc(4, 1024);
    CALL("cuMemcpyDtoHAsync_v2", void *, uint64_t, size_t, void *)(unused, both, 4096, NULL);
    CALL("cuModuleLoadData", void **, const void *)(&module, image);
    CALL("cuModuleGetFunction", void **, void *, const char *)(&function, module, "scale");
    void *arguments[] = {&into, &from, &both, &rest};
    solve(function, arguments);
    return 0;
}
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The recorder before the driver of this file, and what follows ``malloc``."""
    headers = [one for one in list_headers() if (one.folder / "cuda.h").is_file()]
    compiler = find_c_compiler()
    if not sys.platform.startswith("linux") or not headers or compiler is None:
        pytest.skip("not Linux, or CUDA's headers or a C compiler are not installed")
    folder = tmp_path_factory.mktemp("sites")
    driver = folder / "driver.so"
    source = Path(__file__).parent / "fakes" / "memory_driver.c"
    subprocess.run([compiler, "-fPIC", "-shared", f"-I{headers[0].folder}", source, "-o", driver], check=True)
    (folder / "recorder").mkdir()
    return build_recorder(driver, folder / "recorder"), compile_host_blocks(folder / "recorder")


def test_a_recording_says_where_its_arrays_and_their_counterparts_on_the_host_were_allocated(
    libraries: tuple[Path, Path], tmp_path: Path
) -> None:
    raw, code, source = tmp_path / "raw", tmp_path / "scale.ptx", tmp_path / "solver.c"
    raw.mkdir()
    code.write_text(_PTX)
    source.write_text(_PROGRAM)
    compiler = find_c_compiler()
    assert compiler is not None
    subprocess.run([compiler, "-g", "-O0", source, "-o", tmp_path / "solver", "-ldl"], check=True)
    environment = dict(os.environ) | {FOLDER_VARIABLE: str(raw), "LD_PRELOAD": " ".join(map(str, libraries))}
    done = subprocess.run(
        [tmp_path / "solver", code], env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    (recorded,) = describe_launches(raw, raw, tmp_path / "out")
    assert recorded.description is not None
    text = recorded.description.read_text()
    lines = _PROGRAM.splitlines()

    def find(part: str) -> int:
        return next(number for number, line in enumerate(lines, 1) if part in line)

    def place(*parts: str) -> str:
        return " from ".join(f"solver.c:{find(part)}" for part in parts)

    launched = place('CALL("cuLaunchKernel"', "solve(function, arguments);")
    assert f", recorded on a GPU, at {launched}." in text
    said = [line.partition("  # ")[2] for line in text.splitlines() if line.startswith("  {")]
    inside = 'CALL("cuMemAlloc_v2"'
    copied = "copied to or from what is allocated at"
    assert said == [
        f"allocated at {place(inside, 'into = allocate')}",
        f"allocated at {place(inside, 'from = allocate')}; {copied} {place('malloc(size)', 'read_input(8192)')}",
        f"allocated at {place(inside, 'both = allocate')}; {copied} {place('cuMemAllocHost_v2')} and {place('calloc(4')}",
        "",
    ]
    (launch,) = read_launches(recorded.description)
    assert [one.count for one in launch.arguments if isinstance(one, ArrayArgument)] == [1024, 2048, 1024]
