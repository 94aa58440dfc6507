"""Limits of programs, and what remains of one that is ended."""

import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from gpa_lsp.execution.programs.messages import ANSWER_HEAD, REQUEST_HEAD, CudaError, MalformedMessage, Request
from gpa_lsp.execution.programs.model import RunSettings
from gpa_lsp.execution.programs.run import RuntimeServer
from gpa_lsp.execution.programs.session import Session
from gpa_lsp.foundation.errors import InputError
from gpa_lsp.foundation.processes.watched_command import Ending
from gpa_lsp.gpu.device.products import find_product
from tests.patience import LIMIT_S, wait_until
from tests.programs.built import SOURCES, build, compile_c, require_compiler, run, write

ENDLESS = """
#include <cstdio>
__global__ void spin(int *p) { while (atomicAdd(p, 0) == 0) {} }
int main() {
    int *p;
    cudaMalloc(&p, 4);
    cudaMemset(p, 0, 4);
    std::printf("begun\\n");
    std::fflush(stdout);
    spin<<<1, 1>>>(p);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""
_GREEDY = """
#include <cstdio>
int main() {
    int n = 0;
    void *p;
    while (cudaMalloc(&p, 1 << 20) == cudaSuccess)
        n++;
    std::printf("%d %s\\n", n, cudaGetErrorString(cudaGetLastError()));
}
"""
_BEYOND = """
#include <csignal>
#include <cstdio>
#include <cstdlib>
int main() {
    char *p;
    cudaMalloc(&p, 1 << 20);
    std::signal(SIGBUS, [](int) { std::printf("stopped\\n"); std::fflush(stdout); std::_Exit(0); });
    std::signal(SIGSEGV, [](int) { std::printf("stopped\\n"); std::fflush(stdout); std::_Exit(0); });
    for (size_t i = 0; i < (size_t)8 << 30; i += 1 << 20)
        p[i] = 1;
    std::printf("not stopped\\n");
}
"""


def test_a_kernel_without_end_ends_with_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(write(tmp_path, ENDLESS), tmp_path)
    temporary = tmp_path / "t"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    begun = time.monotonic()
    found, printed = run(program, limit_s=6.0)
    assert printed.startswith("begun") and time.monotonic() - begun < LIMIT_S
    assert found.end.ending is Ending.TIMED_OUT or found.end.status == 1
    assert found.kernels[0].emulated == 0 and found.kernels[0].unfinished
    wait_until(lambda: not list(temporary.iterdir()), "an empty folder")  # a kernel may still be compiled beside it


def test_device_memory_has_its_bound(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _GREEDY), tmp_path), memory_bytes=10 << 20)
    assert printed == "10 out of memory\n" and found.end.status == 0


def test_memory_that_was_not_allocated_is_bounded_as_well(tmp_path: Path) -> None:
    found, printed = run(build(write(tmp_path, _BEYOND), tmp_path), memory_bytes=10 << 20)
    assert printed == "stopped\n" and found.end.status == 0


def test_a_program_with_nvidias_own_runtime_is_refused_before_it_starts(tmp_path: Path) -> None:
    program = build(
        SOURCES / "symbols.cu", tmp_path, "-cudart", "static", "-gencode", "arch=compute_80,code=compute_80"
    )
    with pytest.raises(InputError, match="brings NVIDIA's runtime library") as caught:
        run(program)
    assert "-cudart shared" in (caught.value.remedy or "")


def test_machine_code_alone_is_named(tmp_path: Path) -> None:
    program = build(
        SOURCES / "symbols.cu", tmp_path, "-cudart", "shared", "-gencode", "arch=compute_80,code=sm_80", has_lines=False
    )
    found, _ = run(program)
    assert found.end.status == 1
    assert any("machine code only" in why and "--build" in why for why in found.refused)


def test_the_runtime_library_and_we_lay_messages_out_alike(tmp_path: Path) -> None:
    require_compiler()
    source = write(
        tmp_path,
        '#include "runtime.h"\n#include <stdio.h>\n'
        'int main(void) { printf("%zu %zu %zu %zu %d\\n", '
        "sizeof(struct device), sizeof(struct allocation), sizeof(struct last_words), sizeof(struct argument), REQUEST_COMPUTE); }\n",
        "sizes.c",
    )
    program = compile_c(source, tmp_path / "sizes")
    said = subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout.split()
    assert said == [
        str(struct.calcsize("<5Q13i128s4x")),
        str(struct.calcsize("<QQi4x")),
        str(struct.calcsize("<QI60s")),
        str(struct.calcsize("<qI4x16s")),
        str(int(Request.COMPUTE)),
    ]


@pytest.fixture
def server(tmp_path: Path) -> RuntimeServer:
    product = find_product("A100 PCIe 40GB")
    settings = RunSettings(machine=product.name)
    made = RuntimeServer(tmp_path, lambda: Session(settings, product, folder=tmp_path, deadline=time.monotonic() + 60))
    made.start()
    return made


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\xff" * 8,
        REQUEST_HEAD.pack(Request.HELLO, 3) + b"abc",
        REQUEST_HEAD.pack(Request.LAUNCH, 4) + b"\0" * 4,
        REQUEST_HEAD.pack(Request.LAUNCH, 68) + struct.pack("<17I", *([1] * 14), 1 << 31, 0, 0),
        REQUEST_HEAD.pack(Request.FUNCTION, 8) + struct.pack("<I4s", 9, b"name"),
        REQUEST_HEAD.pack(Request.VARIABLE, 2) + b"ab",
        REQUEST_HEAD.pack(Request.OCCUPANCY, 12) + struct.pack("<III", 3, 0, 0),
        REQUEST_HEAD.pack(Request.COMPUTE, 20) + struct.pack("<5I", 0, 0, 0, 0, 0),
        REQUEST_HEAD.pack(Request.COMPUTE, 29) + struct.pack("<5I9s", 0, 0, 0, 0, 1 << 31, b"cublasGem"),
        REQUEST_HEAD.pack(Request.COMPUTE, 29) + struct.pack("<5I9s", 1, 0, 1, 0, 0, b"cublasGem"),
        REQUEST_HEAD.pack(77, 0),
    ],
)
def test_a_hostile_client_costs_itself_only(server: RuntimeServer, request_bytes: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(server.path))
        client.sendall(request_bytes)
        client.shutdown(socket.SHUT_WR)
        while client.recv(4096):
            pass
    with socket.socket(socket.AF_UNIX) as other:  # it answers the next
        other.settimeout(30)
        other.connect(str(server.path))
        other.sendall(REQUEST_HEAD.pack(Request.HELLO, 8) + struct.pack("<II", 1, 13000))
        error, size = ANSWER_HEAD.unpack(other.recv(ANSWER_HEAD.size, socket.MSG_WAITALL))
        assert error == CudaError.SUCCESS and size == struct.calcsize("<5Q13i128s4x")
    server.close()


def test_a_launch_with_too_few_parameters_is_refused(tmp_path: Path) -> None:
    product = find_product("A100 PCIe 40GB")
    settings = RunSettings(machine=product.name)
    session = Session(settings, product, folder=tmp_path, deadline=time.process_time() + 60)
    ptx = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) { ret; }\n"
    assert session.answer(Request.MODULE, struct.pack("<I", 0) + ptx)[0] == CudaError.SUCCESS
    assert session.answer(Request.FUNCTION, struct.pack("<I", 1) + b"k")[0] == CudaError.SUCCESS
    with pytest.raises(MalformedMessage, match="4 of 8 bytes"):
        session.answer(Request.LAUNCH, struct.pack("<17I", *[1] * 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 4) + bytes(4))
    session.close()


def test_damaged_device_code_is_no_image(server: RuntimeServer) -> None:
    payload = struct.pack("<I", 0) + struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 40) + b"x" * 100
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(30)
        client.connect(str(server.path))
        client.sendall(REQUEST_HEAD.pack(Request.MODULE, len(payload)) + payload)
        error, _ = ANSWER_HEAD.unpack(client.recv(ANSWER_HEAD.size, socket.MSG_WAITALL))
        assert error == CudaError.NO_KERNEL_IMAGE
    server.close()
