"""Times of launches: what is asked of the driver between them, and what is said of the times."""

import random
from collections.abc import Iterator

import pytest

from gpa_lsp.code.ptx.parse import parse_ptx
from gpa_lsp.code.ptx.scalar_types import ScalarType
from gpa_lsp.execution.launches.launch import ArrayArgument, Generator, LaunchDescription, ScalarArgument
from gpa_lsp.execution.local_gpu import timing_worker
from gpa_lsp.execution.local_gpu.timing import Greeting, GreetJob, LaunchTiming, TimingAnswer, TimingJob, TimingSettings
from tests.gpu.timed_driver import FREE_BYTES, ILLEGAL_ADDRESS, TimedDriver

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
SCALE = (
    HEAD
    + """.visible .entry scale(.param .u64 scale_x, .param .f32 scale_a) { .reg .b64 %rd<3>; .reg .b32 %r<2>; .reg .f32 %f<3>;
ld.param.u64 %rd1, [scale_x]; ld.param.f32 %f1, [scale_a]; st.global.f32 [%rd1], %f1; ret; }"""
)
LOOK = SCALE.replace("st.global.f32 [%rd1], %f1", "ld.global.f32 %f2, [%rd1]")


@pytest.fixture(autouse=True)
def _no_gpu_is_kept() -> Iterator[None]:
    timing_worker.forget_gpu()
    yield
    timing_worker.forget_gpu()


def make_job(ptx: str = SCALE, *, count: int = 64, **settings: float) -> TimingJob:
    launch = LaunchDescription(
        kernel="scale",
        block=(32, 1, 1),
        grid=(2, 1, 1),
        arguments=(
            ArrayArgument(name="x", type=ScalarType.F32, count=count, generator=Generator.CONSTANT, value=3),
            ScalarArgument(name="a", type=ScalarType.F32, value=2),
        ),
    )
    return TimingJob(
        image=ptx.encode(),
        ptx=ptx,
        function="scale",
        launch=launch,
        settings=TimingSettings(**settings),  # type: ignore[arg-type]
        memory_bytes=1 << 32,
    )


def answer(driver: TimedDriver, job: TimingJob) -> TimingAnswer:
    found = timing_worker.do_job(job, lambda _: 0, driver)
    assert isinstance(found, TimingAnswer)
    return found


def test_the_median_of_those_behind_the_warm_ups() -> None:
    driver = TimedDriver([9.0] * 5 + [0.040, 0.042, 0.041])
    found = answer(driver, make_job(warm_ups=5, repetitions=3)).timing
    assert found is not None
    assert found.times_ns == pytest.approx((40_000, 42_000, 41_000))
    assert found.median_ns == pytest.approx(41_000)
    assert found.error_ns is None  # three are too few to say
    assert (found.gpu, found.compute_capability, found.sm_count) == ("Timed GPU", (8, 0), 108)


def test_the_kernel_gets_its_arguments() -> None:
    driver = TimedDriver()
    driver.parameter_count = 1
    answer(driver, make_job(repetitions=1))
    (address,) = driver.parameters
    assert int.from_bytes(address, "little") in driver.given


def test_inputs_are_given_again_and_l2_is_emptied_before_each_launch() -> None:
    driver = TimedDriver()
    answer(driver, make_job(warm_ups=1, repetitions=4))
    told = ("cuMemcpyHtoD", "cuMemsetD8", "cuEventRecord", "cuLaunchKernel")
    order = [one for one in driver.order if one in told]
    assert order[-20:] == ["cuMemcpyHtoD", "cuMemsetD8", "cuEventRecord", "cuLaunchKernel", "cuEventRecord"] * 4
    assert driver.calls["cuLaunchKernel"] == 5
    assert driver.grids == [(2, 1, 1, 32, 1, 1)] * 5


def test_a_kernel_that_writes_nothing_needs_its_inputs_once() -> None:
    driver = TimedDriver()
    answer(driver, make_job(LOOK, warm_ups=1, repetitions=4, is_cold=False))
    assert driver.calls["cuMemcpyHtoD"] == 1
    assert driver.calls["cuLaunchKernel"] == 5


def test_slow_launches_are_fewer() -> None:
    driver = TimedDriver([400.0])
    found = answer(driver, make_job(seconds=0.0)).timing
    assert found is not None
    assert driver.calls["cuLaunchKernel"] == 1
    assert len(found.times_ns) == 1


def test_everything_is_given_back_but_the_context() -> None:
    driver = TimedDriver()
    for _ in range(3):
        answer(driver, make_job(repetitions=2))
    assert (driver.memory, driver.modules) == ({}, {})
    assert driver.calls["cuDevicePrimaryCtxRetain"] == 1
    assert driver.calls["cuDevicePrimaryCtxRelease"] == 0


def test_a_kernel_that_fails_spends_the_process() -> None:
    found = answer(TimedDriver(ending=ILLEGAL_ADDRESS), make_job())
    assert found.timing is None
    assert found.is_spent
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in found.failure


def test_too_large_arrays_cost_the_job_alone() -> None:
    driver = TimedDriver()
    found = answer(driver, make_job(count=FREE_BYTES >> 2))
    assert found.timing is None
    assert not found.is_spent
    assert "free" in found.failure
    assert answer(driver, make_job()).timing is not None
    assert driver.memory == {}


def test_code_that_the_driver_refuses_says_so() -> None:
    found = answer(TimedDriver(refuses=b"scale"), make_job())
    assert "CUDA_ERROR_INVALID_IMAGE" in found.failure


def test_who_is_there() -> None:
    found = timing_worker.do_job(GreetJob(), lambda _: 0, TimedDriver(capability=(9, 0)))
    assert found == Greeting(name="Timed GPU", compute_capability=(9, 0))


def test_no_gpu_is_a_missing_tool() -> None:
    found = timing_worker.do_job(GreetJob(), lambda _: 0, TimedDriver(devices=0))
    assert isinstance(found, Greeting)
    assert found.missing is not None
    assert found.missing[1] == timing_worker.NEEDED_FOR


@pytest.mark.parametrize("text, expected", [
    ("st.global.f32 [%rd1], %f1;", True),
    ("st.f32 [%rd1], %f1;", True),
    ("st.shared.f32 [%rd1], %f1;", False),
    ("ld.global.f32 %f2, [%rd1];", False),
    ("red.global.add.f32 [%rd1], %f1;", True),
    ("wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%rd1], {%r1, %r1, %r1, %r1};", True),
    ("wmma.store.d.sync.aligned.row.m16n16k16.shared.f16 [%rd1], {%r1, %r1, %r1, %r1};", False),
    ("atom.shared.add.f32 %f2, [%rd1], %f1;", False),
])  # fmt: skip
def test_what_writes(text: str, *, expected: bool) -> None:
    module = parse_ptx(SCALE.replace("st.global.f32 [%rd1], %f1;", text), name="k")
    assert timing_worker.writes_memory(module.functions["scale"]) is expected


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    maker = random.Random(7)
    held = 0
    for _ in range(2_000):
        times = tuple(maker.lognormvariate(0, 0.3) for _ in range(30))
        found = LaunchTiming(times_ns=times, gpu="", compute_capability=(8, 0), sm_count=None, is_cold=True)
        assert found.error_ns is not None
        held += abs(found.median_ns - 1.0) <= 1.25 * found.error_ns  # it is not symmetric, and half of it is given
    assert held / 2_000 > 0.9
