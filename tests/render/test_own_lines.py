"""Lines are named in the user's own files: headers, intrinsics and runtimes come second, and copies of a line are one line."""

import pytest

from gpa_lsp.document.advice_screen import build_screen
from gpa_lsp.document.check_view import list_notices
from gpa_lsp.document.findings import find_findings
from gpa_lsp.document.layout import read_plain
from gpa_lsp.document.places import PlaceNames
from gpa_lsp.document.terminal import write_terminal
from gpa_lsp.foundation.ownership import is_library_file
from gpa_lsp.report.kernel_lines import find_causes
from gpa_lsp.report.model import KernelReport
from tests.report_builder import build_kernel, build_report

LDG = "_Z5__ldgPKf@/usr/local/cuda/include/sm_32_intrinsics.hpp:134"
LISTING = f"""
    kernel@/src/k.cu:4                 S2R R0, SR_TID.X     ; selected=4
    {LDG} < kernel@/src/k.cu:5         LDG.E R2, [R4.64]    ; long_scoreboard=4
    kernel@/src/k.cu:6                 FMUL R2, R2, R2      ; long_scoreboard=96/90
"""


def show_cause(kernel: KernelReport) -> str:
    lines = [read_plain(line) for line in write_terminal([build_screen(kernel, "k", PlaceNames())], indent=0)]
    return next(line for line in lines if line.strip().startswith("cause"))


@pytest.mark.parametrize(
    "file",
    [
        "/usr/local/cuda-12.4/targets/x86_64-linux/include/sm_32_intrinsics.hpp",
        "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v12.4\\include\\sm_32_intrinsics.hpp",
        "D:\\tools\\CUDA\\v12.4\\include\\cuda_fp16.hpp",
        "/home/me/.local/lib/python3.12/site-packages/nvidia/cuda_runtime/include/cuda_fp16.hpp",
        "/home/me/venv/lib/python3.11/site-packages/numba/cuda/libdevice.py",
        "/usr/lib/python3/dist-packages/triton/language/standard.py",
        "/opt/nvidia/hpc_sdk/Linux_x86_64/24.1/compilers/include/acc.h",
        "/usr/include/c++/11/cmath",
        "/home/me/gcc-13/include/c++/13.2.0/cmath",
        "/home/me/.julia/packages/CUDA/DfvRa/src/device/intrinsics/math.jl",
        "/cache/build/builder-amdci4/julialang/julia-release-1-dot-10/usr/share/julia/base/int.jl",
        "int.jl",
        "/home/me/cccl/cub/cub/block/block_reduce.cuh",
        "/home/me/deps/cooperative_groups/details/helpers.h",
        "sm_32_intrinsics.hpp",
        "/tmp/__nv_nvrtc_builtin_header.h",
    ],
)
def test_headers_and_runtimes_stand_behind_the_line_that_uses_them(file: str) -> None:
    kept = file.replace(" ", "-")  # the notation's names have none
    assert is_library_file(file)
    if kept != file:
        return
    listing = LISTING.replace("/usr/local/cuda/include/sm_32_intrinsics.hpp", kept)
    kernel = build_kernel(listing, blame="2 <- 1 long_scoreboard R2 12c 3i")
    cause = show_cause(kernel)
    assert "k.cu:5 " in cause and f"(in __ldg, {file.replace(chr(92), '/').rpartition('/')[2]}:134) " in cause
    places = [str(one.place) for one in find_findings(build_report(kernel), 0.0)]
    assert places == ["/src/k.cu:6", "/src/k.cu:4", "/src/k.cu:5"]
    waits = find_causes(kernel)[("/src/k.cu", 6)].waits
    assert [(one.place.file, one.place.line) for one in waits if one.place] == [("/src/k.cu", 5)]


@pytest.mark.parametrize(
    "file",
    [
        "/home/me/project/include/util.cuh",
        "/home/me/cuda/kernels/math.cu",
        "/work/julia/int_kernel.jl",
        "/opt/project/k.cu",
        "C:\\work\\cuda\\k.cu",
        "/home/me/thrust_engine/src/k.cu",
        "/home/me/cubes/block.cuh",
        "k.cu",
        "/tmp/torchinductor_me/ab/cabcd.py",
        "/home/me/base/int.jl",
    ],
)
def test_files_of_users_are_theirs(file: str) -> None:
    assert not is_library_file(file)


def test_a_library_without_a_chain_stands_behind_the_line_that_calls_it() -> None:
    """Triton keeps only the library's own lines; the caller is estimated, as editors do it, and the place itself is related."""
    library = "/usr/lib/python3/dist-packages/triton/language/standard.py"
    listing = f"""
        /src/silu.py:3   LDG.E R2, [R4.64]   ; wait=5
        {library}:47     FMUL R3, R2, R5     ; long_scoreboard=60
        /src/silu.py:5   FMUL R2, R2, R3     ; wait=5
        /src/silu.py:6   STG.E [R6.64], R2   ; drain=30
    """
    report = build_report(build_kernel(listing, name="silu"))
    first = list_notices(report, find_findings(report))[0]
    assert first.frame is not None and (first.frame.file, first.frame.line) == ("/src/silu.py", 5)
    assert f"in {library}:47, called here (estimate)" in first.plain_text
    assert [(word, frame.file, frame.line) for word, frame, _ in first.related] == [("sampled code", library, 47)]


def test_copies_of_a_line_are_one_line() -> None:
    copies = [
        f"    f{n}@/src/m.cuh:3 < kernel@/src/k.cu:{n}   LDG.E R2, [R4.64]  ; selected=4" for n in (9, 11, 12, 13)
    ]
    rows = ["    kernel@/src/k.cu:5   LDG.E R8, [R4.64]  ; selected=4", *copies]
    listing = "\n".join([*rows, "    kernel@/src/k.cu:10   FMUL R2, R2, R8  ; long_scoreboard=200"])
    alone, shared = (f"5 <- {n} long_scoreboard={samples} R2 12c 3i" for n, samples in ((0, 60), (1, 35)))
    blame = "\n".join([alone, *(shared.replace("<- 1", f"<- {n}") for n in (1, 2, 3, 4))])
    assert "m.cuh:3 " in show_cause(build_kernel(listing, blame=blame))
