"""Kernel names without template arguments, types and line numbers."""

import pytest

from gpa_lsp.kernel.names import find_family


@pytest.mark.parametrize(
    ("one", "other", "file"),
    [
        ("void scale<float, 32>(float*)", "void scale<double, 64>(double*, int)", "k.cu"),
        ("saxpy(float*)", "saxpy(double*)", "k.cu"),
        ("julia_bb_4477", "julia_bb_5001", "bb.jl"),
        ("kernel<CuDeviceArray<Float32, 1, 1>>", "kernel<CuDeviceArray<Float64, 1, 1>>", "k.jl"),
        ("__main__::saxpy$241(Array<float, 1, C, mutable, aligned>)", "__main__::saxpy$7(Array<int>)", "k.py"),
    ],
)
def test_one_family(one: str, other: str, file: str) -> None:
    assert find_family(one, file) == find_family(other, file)
    assert find_family(one, file).line is None


@pytest.mark.parametrize(
    ("name", "file", "family", "line"),
    [
        ("compute_tendencies_x_279_gpu", "weather.F90", "compute_tendencies_x", 279),
        ("main_25_gpu__red", "C:\\src\\main.cpp", "main__red", 25),
        ("nvkernel_MAIN__F1L46_1_", "main.f90", "MAIN_1_", 46),
        ("nvkernel__ZN3foo3barEPdi_F1L25_2", "foo.cpp", "_ZN3foo3barEPdi2", 25),
        ("__omp_offloading_fd02_3a2bc_main_l25", "main.c", "main", 25),
        ("__omp_offloading_fd02_3a2bc__Z4stepPd_l25_1", "main.cpp", "_Z4stepPd_1", 25),
        ("conv_3_gpu", "conv.cu", "conv_3_gpu", None),
        ("conv_3_gpu", None, "conv_3_gpu", None),
        ("triton_per_fused_3_gpu", "C:\\k.PY", "triton_per_fused_3_gpu", None),
    ],
)
def test_names_that_hold_a_line(name: str, file: str | None, family: str, line: int | None) -> None:
    found = find_family(name, file)
    assert (found.name, found.line) == (family, line)


def test_different_kernels_are_different_families() -> None:
    names = ["scale<1>(float*)", "scale2<1>(float*)", "ns::scale(float*)", "step_1_gpu", "stop_1_gpu", "julia_a_1", ""]
    assert len({find_family(name, "k.F90").name for name in names}) == len(names)
