"""Kernels of libraries at the faces: marked, behind the user's own, advised on their use, and never the user's own taken for one."""

from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.advise import advise_kernel
from gpa_lsp.diagnosis.advice.model import Category
from gpa_lsp.diagnosis.analyses.subject import Subject
from gpa_lsp.diagnosis.blame.blame import blame_kernel
from gpa_lsp.document.advice_screen import build_screens
from gpa_lsp.document.layout import read_plain
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.report.gather import AnalysedKernel, gather_report
from tests.rows.written import write_kernel

DIVIDES = """
    B-:R-:W2:-:S02  LDG.E R2, [R4.64]       # {file} | selected=20
    B2:R-:W-:-:S05  FADD R2, R2, 1          # {file} | long_scoreboard=900/800 selected=20
    B-:R-:W-:-:S05  EXIT                    # {file} | selected=20
"""
BARE = DIVIDES.replace("# {file} |", "# - |")
CUB = "/usr/local/cuda/include/cub/block/block_load.cuh:3"


def judge(text: str, name: str, **launch: float) -> AnalysedKernel:
    kernel = write_kernel(text, name=name, **launch)  # type: ignore[arg-type]
    blame = blame_kernel(kernel)
    return AnalysedKernel(kernel=kernel, blame=blame, advice=advise_kernel(Subject(kernel, blame))[0])


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("ampere_sgemm_128x64_nn", "cuBLAS"),
        ("volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "cuBLAS"),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4", "cuBLAS"),
        ("void gemmSN_NN_kernel<float, 128, 2, 4, 8, cublasGemvTensorStridedBatched<float const>>(float)", "cuBLAS"),
        ("ampere_scudnn_128x64_relu_interior_nn_v1", "cuDNN"),
        ("void cutlass::Kernel<cutlass_80_simt_sgemm_128x256_8x4_tt_align1>(T1::Params)", "CUTLASS"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", "PyTorch"),
        ("void cub::DeviceReduceKernel<cub::Policy600, float*>(float*)", "CUB"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "NCCL"),
        # a user's own names
        ("hopper_gemm_128x128(float const*, float*)", ""),
        ("sm80_gemm", ""),
        ("void dot_kernel<float>(float*, int)", ""),
        ("winograd_conv(float*)", ""),
        ("void my_fft<cublasHandle_t>(cublasHandle_t)", ""),
        ("void mine::run<cub::Sum>(float*)", ""),
    ],
)
def test_a_kernel_without_lines_is_a_librarys_only_by_a_name_that_no_user_gives(name: str, library: str) -> None:
    (kernel,) = gather_report([judge(BARE, name)]).kernels
    assert kernel.library == library


@pytest.mark.parametrize(("file", "library"), [(CUB, "CUB"), ("/home/me/k.cu:3", "")])
def test_lines_decide_whose_a_template_of_a_library_is(file: str, library: str) -> None:
    (kernel,) = gather_report([judge(DIVIDES.format(file=file), "void cub::ForEach<F>(F)")]).kernels
    assert kernel.library == library
    assert kernel.advice is not None
    speaking = [one.optimizer for one in kernel.advice.advice]
    assert ("library_use" in speaking) == bool(library)
    if library:
        assert [(one.optimizer, one.category) for one in kernel.advice.advice] == [("library_use", Category.CALLS)]
        assert {one.message for one in kernel.advice.silences} == {"the code of this CUB library kernel is not yours"}


def test_the_users_kernel_comes_first_and_the_library_is_named() -> None:
    own = judge(DIVIDES.format(file="/home/me/k.cu:3"), "mine", duration_ns=1e5)
    foreign = judge(BARE, "ampere_sgemm_128x64_nn", duration_ns=1e6)
    report = gather_report([foreign, own])
    assert [kernel.name for kernel in report.kernels] == ["mine", "ampere_sgemm_128x64_nn"]
    places = PlaceNames(None, Path("/"))
    text = "\n".join(map(read_plain, write_terminal(build_screens(report, places, max_kernels=None), indent=0)))
    assert "ampere_sgemm_128x64_nn (cuBLAS library kernel)" in text
    assert "or try a newer version of cuBLAS (gain unknown)" in text


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("step_9_gpu", "compile with -gpu=lineinfo"),
        ("__main__::axpy[abi:v1](float*)", "compile with @cuda.jit(lineinfo=True)"),
        ("_Z15julia_step_1234v", "start Julia with -g1 or -g2"),
        ("_Z4stepPf", "compile with -lineinfo"),
        ("ampere_sgemm_128x64_nn", None),
    ],
)
def test_missing_lines_are_remedied_in_the_kernels_language(name: str, remedy: str | None) -> None:
    report = gather_report([judge(BARE, name)])
    (problem,) = (one for one in report.problems if "no line table" in one.message)
    assert problem.remedy == remedy
