"""The GPU of this computer, by a driver that answers from a script."""

import builtins
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from gpa_lsp.foundation.errors import MissingToolError, ToolError
from gpa_lsp.gpu.device.find import find_attached_machine, read_attached_device
from gpa_lsp.gpu.device.model import ClockBasis, MemoryLevel, OperationKind

H200 = {
    "clock_rate": 1_980_000,
    "memory_clock_rate": 3_201_000,
    "global_memory_bus_width": 6144,
    "l2_cache_size": 62_914_560,
    "multiprocessor_count": 132,
    "compute_capability_major": 9,
    "compute_capability_minor": 0,
    "single_to_double_precision_perf_ratio": 2,
}


class Result(IntEnum):
    SUCCESS = 0
    NO_DEVICE = 100
    UNKNOWN = 999


class ScriptedDriver:
    """Answers as ``cuda.bindings.driver`` does: tuples that begin with a result."""

    def __init__(
        self,
        attributes: dict[str, int] | None = None,
        name: str = "NVIDIA H200",
        count: int = 1,
        init: Result | Exception = Result.SUCCESS,
        count_result: Result = Result.SUCCESS,
    ) -> None:
        self._attributes = H200 if attributes is None else attributes
        self._name = name
        self._count = count
        self._init = init
        self._count_result = count_result
        self.CUdevice_attribute = SimpleNamespace(
            **{f"CU_DEVICE_ATTRIBUTE_{key.upper()}": key for key in H200 if key != "l2_cache_size"}
        )

    def cuInit(self, flags: int) -> tuple[Any]:  # noqa: N802
        if isinstance(self._init, Exception):
            raise self._init
        return (self._init,)

    def cuDeviceGetCount(self) -> tuple[Any, int]:  # noqa: N802
        return self._count_result, self._count

    def cuDeviceGet(self, index: int) -> tuple[Any, str]:  # noqa: N802
        return Result.SUCCESS, f"device {index}"

    def cuDeviceGetName(self, size: int, device: str) -> tuple[Any, bytes]:  # noqa: N802
        return Result.SUCCESS, self._name.encode().ljust(size, b"\0")

    def cuDeviceGetAttribute(self, which: str, device: str) -> tuple[Any, int]:  # noqa: N802
        if which not in self._attributes:
            return Result.UNKNOWN, 0
        return Result.SUCCESS, self._attributes[which]

    def cuGetErrorName(self, result: Result) -> tuple[Any, bytes]:  # noqa: N802
        return Result.SUCCESS, f"CUDA_ERROR_{result.name}".encode()


def test_attributes_become_a_device() -> None:
    device = read_attached_device(driver=ScriptedDriver())
    assert device.name == "NVIDIA H200"
    assert (device.compute_capability, device.sm_count, device.sm_clock_hz) == ((9, 0), 132, 1.98e9)
    assert device.attributes["device__attribute_global_memory_bus_width"] == 6144
    assert "device__attribute_l2_cache_size" not in device.attributes  # these bindings do not name it


def test_a_device_becomes_a_machine() -> None:
    machine = find_attached_machine(driver=ScriptedDriver())
    assert machine.clocks.basis is ClockBasis.BOOST
    single, half = machine.find_peak(OperationKind.FP32), machine.find_peak(OperationKind.TENSOR_FP16)
    dram = machine.find_bandwidth(MemoryLevel.DRAM)
    assert single.ops_per_s == pytest.approx(66.9e12, rel=0.001)
    assert half.ops_per_s == pytest.approx(989.4e12, rel=0.001)
    assert dram.bytes_per_s == pytest.approx(4.917e12, rel=0.001)


def test_an_architecture_without_a_table_still_has_its_memory() -> None:
    attributes = {**H200, "compute_capability_major": 6}
    machine = find_attached_machine(driver=ScriptedDriver(attributes, name="Tesla P100"))
    assert machine.peaks == ()
    assert [found.level for found in machine.bandwidths] == [MemoryLevel.DRAM]


def test_a_driver_that_states_nothing_is_an_error() -> None:
    with pytest.raises(ToolError, match="reports neither clocks nor widths of NVIDIA unknown"):
        find_attached_machine(driver=ScriptedDriver({}, name="NVIDIA unknown"))


def test_the_driver_is_missing() -> None:
    with pytest.raises(MissingToolError, match="an NVIDIA driver is not installed"):
        find_attached_machine(driver=ScriptedDriver(init=RuntimeError("libcuda.so.1 not found")))


def test_the_driver_sees_no_gpu() -> None:
    with pytest.raises(MissingToolError, match=r"can use \(CUDA_ERROR_NO_DEVICE\)"):
        find_attached_machine(driver=ScriptedDriver(init=Result.NO_DEVICE))


@pytest.mark.parametrize(
    ("index", "count", "words"), [(0, 0, "lists 0"), (2, 2, "number 2 .*lists 2"), (-1, 1, "lists 1")]
)
def test_there_is_no_such_gpu(index: int, count: int, words: str) -> None:
    with pytest.raises(MissingToolError, match=words):
        find_attached_machine(index, ScriptedDriver(count=count))


def test_a_refusal_carries_the_drivers_word() -> None:
    with pytest.raises(ToolError, match="refused cuDeviceGetCount: CUDA_ERROR_UNKNOWN"):
        find_attached_machine(driver=ScriptedDriver(count_result=Result.UNKNOWN))


def test_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name.startswith("cuda"):
            raise ImportError(name)
        return original(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingToolError, match=r"cuda-python is not installed.*gpa-lsp\[cuda\]"):
        find_attached_machine()


def test_the_real_bindings_name_every_attribute_and_call_used_here() -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    for name in H200:
        assert hasattr(driver.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name.upper()}"), name
    for name in ("Init", "DeviceGetCount", "DeviceGet", "DeviceGetName", "DeviceGetAttribute", "GetErrorName"):
        assert callable(getattr(driver, f"cu{name}"))
