"""Calls of the CUDA driver, and its refusals."""

import ctypes
import struct
from enum import IntEnum
from typing import Any

import pytest

from gpa_lsp.execution.calibration.calibrate import CudaGpu
from gpa_lsp.foundation.errors import MissingToolError, ToolError


class Attribute(IntEnum):
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 1
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 2
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 3
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 4
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 5


VALUES = {1: 2_619_000, 2: 9, 3: 0, 4: 132, 5: 50 << 20}


class ScriptedDriver:
    """Answers as the driver does: an error code, then values. ``refuse`` names the call that fails."""

    CUdevice_attribute = Attribute

    def __init__(self, *, devices: int = 1, refuse: str = "") -> None:
        self.devices = devices
        self.refuse = refuse
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.next_address = 0x7000

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> tuple[Any, ...]:
            self.calls.append((name, arguments))
            if name == self.refuse:
                return (100, *self._answer(name, arguments))
            return (0, *self._answer(name, arguments))

        return call

    def _answer(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        if name == "cuMemAlloc":
            self.next_address += 0x1000
            return (self.next_address,)
        if name == "cuDeviceGetAttribute":
            return (VALUES[int(arguments[0])],)
        if name == "cuMemcpyDtoH":
            arguments[0][:16] = struct.pack("<QQ", 3_000_000, 2_000_000)
        answers: dict[str, tuple[Any, ...]] = {
            "cuDeviceGetCount": (self.devices,),
            "cuDeviceGet": (0,),
            "cuDeviceGetName": (b"A GPU\0\0\0",),
            "cuMemGetInfo": (70 << 30, 80 << 30),
            "cuDriverGetVersion": (13010,),
            "cuDevicePrimaryCtxRetain": ("context",),
            "cuEventCreate": ("event",),
            "cuEventElapsedTime": (2.5,),
            "cuModuleLoadData": ("module",),
            "cuModuleGetFunction": ("function",),
            "cuOccupancyMaxActiveBlocksPerMultiprocessor": (2,),
            "cuGetErrorName": (b"CUDA_ERROR_NO_DEVICE",),
        }
        return answers.get(name, ())


def test_facts_are_read() -> None:
    facts = CudaGpu(driver=ScriptedDriver()).facts
    assert (facts.name, facts.compute_capability, facts.sm_count) == ("A GPU", (9, 0), 132)
    assert (facts.l2_bytes, facts.free_bytes, facts.memory_clock_hz) == (50 << 20, 70 << 30, 2.619e9)
    assert facts.driver_version == "13.1"


def test_a_run_is_launched_and_timed() -> None:
    driver = ScriptedDriver()
    with CudaGpu(driver=driver) as gpu:
        kernel = gpu.load(b"cubin")
        assert gpu.count_resident_blocks(kernel, 256) == 2
        address = gpu.allocate(4096)
        timing = gpu.run(kernel, 264, 1024, (address, 256), 10)
    assert (timing.seconds, timing.sm_cycles, timing.block_seconds) == (2.5e-3, 3_000_000, 2e-3)
    assert timing.sm_hz == 1.5e9
    (launch,) = (arguments for name, arguments in driver.calls if name == "cuLaunchKernel")
    function, *sizes, (values, kinds), extra = launch
    assert (function, sizes, extra) == ("function", [264, 1, 1, 1024, 1, 1, 0, 0], 0)
    assert values == (0x8000, address, 256, 10)
    assert kinds == (ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int32)


def test_arithmetic_takes_a_seed_of_32_bits() -> None:
    driver = ScriptedDriver()
    gpu = CudaGpu(driver=driver)
    gpu.run(gpu.load(b"cubin"), 1, 256, (1,), 5)
    (launch,) = (arguments for name, arguments in driver.calls if name == "cuLaunchKernel")
    assert launch[9] == ((0x8000, 1, 5), (ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int32))


def test_everything_is_given_back() -> None:
    driver = ScriptedDriver()
    with CudaGpu(driver=driver) as gpu:
        gpu.load(b"cubin")
        gpu.allocate(1 << 20)
    names = [name for name, _ in driver.calls]
    assert names.count("cuMemFree") == names.count("cuMemAlloc") == 2
    assert names.count("cuEventDestroy") == names.count("cuEventCreate")
    assert names.count("cuModuleUnload") == 1
    assert names[-1] == "cuDevicePrimaryCtxRelease"


@pytest.mark.parametrize("refuse", ["cuInit"])
def test_no_gpu_says_what_to_do(refuse: str) -> None:
    with pytest.raises(MissingToolError, match=r"CUDA_ERROR_NO_DEVICE.*on a computer with an NVIDIA GPU"):
        CudaGpu(driver=ScriptedDriver(refuse=refuse))


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(MissingToolError, match=r"GPU number 3.*the driver lists 1"):
        CudaGpu(3, driver=ScriptedDriver())


def test_no_driver_library_says_so() -> None:
    class Absent(ScriptedDriver):
        def cuInit(self, flags: int) -> None:  # noqa: N802 - the driver's name
            raise RuntimeError("libcuda.so.1 was not found")

    with pytest.raises(MissingToolError, match="an NVIDIA driver is not installed"):
        CudaGpu(driver=Absent())


@pytest.mark.parametrize("call", ["cuModuleLoadData", "cuMemAlloc", "cuLaunchKernel", "cuEventSynchronize"])
def test_a_refusal_names_the_call_and_the_error(call: str) -> None:
    driver = ScriptedDriver()
    gpu = CudaGpu(driver=driver)
    driver.refuse = call
    with pytest.raises(ToolError, match=f"refused {call}: CUDA_ERROR_NO_DEVICE"):
        gpu.allocate(16)
        gpu.run(gpu.load(b"cubin"), 1, 256, (1,), 5)
