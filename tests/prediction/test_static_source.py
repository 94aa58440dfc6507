"""Findings about sources: small kernels compiled with NVRTC, each with and without what a check looks for."""

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.code.binary.tool_location import find_tool
from gpa_lsp.diagnosis.advice.static_model import Certainty, StaticFinding
from gpa_lsp.diagnosis.analyses.static.model import BlockOrigin
from gpa_lsp.execution.compiler.model import CompilerChoice, CompilerFlags, CompileSettings
from gpa_lsp.execution.prediction.static_source import SourceStatics, choose_compute_capability, examine_source
from gpa_lsp.foundation.errors import InputError, ProblemSeverity

pytest.importorskip("cuda.bindings.nvrtc", reason="needs NVRTC (the extra [cuda])")

PTXAS = find_tool("ptxas")
NVRTC = CompileSettings(choice=CompilerChoice.NVRTC)
FIXTURES = Path(__file__).parents[2] / "fixtures" / "kernels"

KERNELS = """\
__global__ void atomics(const int* x, int* total, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        if (x[i] > 3)
            atomicAdd(total, 1);
}
__global__ void spread_atomics(const int* x, int* total, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        atomicAdd(total + x[i], 1);
}
__global__ void compared(const float* x, float* out)
{
    const float v = x[threadIdx.x];
    out[threadIdx.x] = v > 0.1 ? v : 0.0f;
    if (v * 2.3 < 0.7)
        out[threadIdx.x] = 1.0f;
}
__global__ void compared_as_float(const float* x, float* out)
{
    const float v = x[threadIdx.x];
    out[threadIdx.x] = v > 0.1f ? v : 0.0f;
}
__global__ void meant_doubles(const double* x, double* out, const float* f, int n)
{
    double sum = 0.0;
    const double scale = f[0];
    for (int i = 0; i < n; ++i)
        sum += x[i] * 0.1 + scale;
    out[threadIdx.x] = sum > 0.1 ? sum : scale;
}
__global__ void converted(const int* x, float* out, int n)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += (float)x[i];
    out[threadIdx.x] = sum;
}
__global__ void converted_once(const float* x, float* out, int n)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        sum += x[i];
    out[threadIdx.x] = sum + (float)n;
}
__global__ void reloaded(float* x, const float* factor, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = x[i] * factor[n];
}
__global__ void loaded_once(float* __restrict__ x, const float* __restrict__ factor, int n)
{
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        x[i] = x[i] * factor[n];
}
__device__ void fill(int* table, int n)
{
    for (int i = 0; i < n; ++i)
        table[i] = i * i;
}
__global__ void inlined_array(int* out, int n)
{
    int squares[32], others[8];
    fill(squares, n);
    for (int i = 0; i < 8; ++i)
        others[i] = out[i];
    out[threadIdx.x] = squares[n & 31] + others[n & 7];
}
template <typename T> __global__ void divided(T* x, T divisor)
{
    x[threadIdx.x] = x[threadIdx.x] / divisor;
}
template __global__ void divided<long long>(long long*, long long);
template __global__ void divided<float>(float*, float);
"""


def find_line(words: str) -> int:
    """Number of the first line of the kernels with some words."""
    return 1 + next(number for number, line in enumerate(KERNELS.split("\n")) if words in line)


@cache
def examine(architecture: tuple[int, int]) -> SourceStatics:
    found = examine_source(Path("/made/up/kernels.cu"), text=KERNELS, compute_capability=architecture, settings=NVRTC)
    assert [message.text for message in found.unit.messages if message.severity is ProblemSeverity.ERROR] == []
    assert found.problems == ()
    return found


def select(kernel: str, check: str | None = None, architecture: tuple[int, int] = (8, 0)) -> list[StaticFinding]:
    found = [one for one in examine(architecture).kernels if f"{len(kernel)}{kernel}" in one.statics.mangled_name]
    assert found
    return [one for item in found for one in item.findings if check is None or one.check == check]


@pytest.mark.parametrize("architecture", [(7, 5), (8, 0), (9, 0), (12, 0)])
def test_kernels_with_and_without(architecture: tuple[int, int]) -> None:
    def lines(kernel: str, check: str) -> list[int | None]:
        return sorted(one.line or 0 for one in select(kernel, check, architecture))

    assert lines("atomics", "repeated-atomics") == [find_line("atomicAdd(total, 1);")]
    assert lines("spread_atomics", "repeated-atomics") == []
    assert lines("compared", "double-constants") == [find_line("v > 0.1 ?"), find_line("v * 2.3 < 0.7")]
    assert lines("compared_as_float", "double-constants") == []
    assert lines("meant_doubles", "double-constants") == []
    assert lines("reloaded", "repeated-loads") == [find_line("x[i] = x[i] * factor[n];")]
    assert lines("loaded_once", "repeated-loads") == []
    assert lines("inlined_array", "local-arrays") == [find_line("int squares[32], others[8];")] * 2
    assert lines("converted_once", "conversions") == []


def test_conversions_count_where_their_unit_is_narrow() -> None:
    (finding,) = select("converted", "conversions")
    assert (finding.line, finding.loop_depth) == (find_line("sum += (float)x[i];"), 1)
    assert "1/4 of the FP32 rate" in finding.message


def test_names_of_arrays_come_through_inlined_calls() -> None:
    messages = [one.message for one in select("inlined_array", "local-arrays")]
    assert [str(message).split()[0] for message in sorted(messages)] == ["`others`", "`squares`"]
    assert all("its index is unknown at compile time" in message for message in messages)


def test_comparisons_are_likely_and_name_the_literals() -> None:
    first, second = sorted(select("compared", "double-constants"), key=lambda one: one.line or 0)
    assert first.remedy == "Write `0.1f`." and second.remedy == "Write `2.3f`, `0.7f`."
    assert {first.certainty, second.certainty} == {Certainty.LIKELY}


def test_instantiations_of_a_template_have_their_own_findings() -> None:
    checks = {one.check for one in select("divided")}
    assert checks == {"integer-divisions", "accurate-arithmetic"}
    (wide,) = select("divided", "integer-divisions")
    assert "INT64 division" in wide.message and "Use 32-bit integers" in wide.remedy
    assert {one.line for one in select("divided")} == {find_line("/ divisor;")}


@pytest.mark.oracle
@pytest.mark.skipif(PTXAS is None, reason="needs ptxas (pip install nvidia-cuda-nvcc)")
def test_spilled_bytes_agree_with_the_assembler(tmp_path: Path) -> None:
    """ptxas counts the bytes of its spill instructions; ours are marked one by one."""
    found = examine_source(FIXTURES / "register_spill" / "original.cu", compute_capability=(8, 0), settings=NVRTC)
    assert PTXAS is not None and found.unit.ptx is not None
    text = tmp_path / "kernel.ptx"
    text.write_text(found.unit.ptx, encoding="utf-8")
    command = [PTXAS, "-v", "-lineinfo", "-arch=sm_80", text, "-o", tmp_path / "kernel.cubin"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    counts = re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores[^$]*Used (\d+) registers", said)
    assert counts is not None, said
    frame, stores, registers = map(int, counts.groups())
    (kernel,) = found.kernels
    assert kernel.statics.local_bytes == frame
    assert kernel.statics.registers == registers
    counted = [one.message.rpartition("(")[2] for one in kernel.findings if one.check == "spills"]
    assert 4 * sum(int(words.split(" store")[0]) for words in counted) == stores > 0


def test_blocks_come_from_launches_in_the_source_and_its_description(tmp_path: Path) -> None:
    source = tmp_path / "scale.cu"
    source.write_text(
        "__global__ void scale(float* x) { x[threadIdx.x] *= 2.0f; }\n"
        "void launch(float* x) { scale<<<10, 192>>>(x); }\n"
    )
    (kernel,) = examine_source(source, settings=NVRTC).kernels
    assert kernel.statics.block is not None
    assert (kernel.statics.block.threads, kernel.statics.block.origin) == (192, BlockOrigin.SOURCE)
    assert kernel.statics.block.line == 2
    assert kernel.place is not None and (kernel.place.file, kernel.place.line) == (str(source), 1)
    (tmp_path / "scale.launch.toml").write_text(
        '[[launch]]\nkernel = "scale"\ngrid = 1\nblock = [16, 6]\nshared_bytes = 1024\n'
        'arguments = [{ name = "x", type = "float", count = 96 }]\n'
    )
    (described,) = examine_source(source, settings=NVRTC).kernels
    assert described.statics.block is not None
    assert (described.statics.block.threads, described.statics.block.origin) == (96, BlockOrigin.DESCRIPTION)
    (tmp_path / "scale.launch.toml").write_text("this is no TOML")
    (kernel,) = examine_source(source, settings=NVRTC).kernels
    assert kernel.statics.block is not None and kernel.statics.block.origin is BlockOrigin.SOURCE


def test_an_unsaved_text_counts_and_the_file_need_not_exist() -> None:
    found = examine_source(Path("/made/up/k.cu"), text="\n\n__global__ void k(int* x) { *x = 1; }", settings=NVRTC)
    (kernel,) = found.kernels
    assert kernel.place is not None and (kernel.place.file, kernel.place.line) == ("/made/up/k.cu", 3)


def test_a_source_with_errors_has_messages_and_no_kernels() -> None:
    found = examine_source(Path("/made/up/k.cu"), text="__global__ void k(int* x) {\n    *x = y;\n}", settings=NVRTC)
    assert found.unit.has_failed and found.kernels == ()
    (error,) = [message for message in found.unit.messages if message.severity is ProblemSeverity.ERROR]
    assert (error.line, error.path) == (2, Path("/made/up/k.cu"))


def test_a_source_without_kernels_is_no_error() -> None:
    found = examine_source(Path("/made/up/k.cu"), text="int unused;\n", settings=NVRTC)
    assert (found.kernels, found.problems) == ((), ())


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        examine_source(tmp_path / "none.cu", settings=NVRTC)
    with pytest.raises(InputError, match="NUL"):
        examine_source(tmp_path / "k.cu", text="int a;\0", settings=NVRTC)


def test_only_wanted_kernels() -> None:
    found = examine_source(Path("/made/up/kernels.cu"), text=KERNELS, kernel="converted_once", settings=NVRTC)
    assert [one.statics.mangled_name for one in found.kernels] == ["_Z14converted_oncePKfPfi"]


def test_the_newest_architecture_with_a_table_is_compiled_for() -> None:
    def choose(*asked: tuple[int, int]) -> tuple[int, int]:
        return choose_compute_capability(CompilerFlags(directory=Path("/"), compute_capabilities=asked))

    assert choose_compute_capability(None) == (8, 0)
    assert choose() == (8, 0)
    assert choose((7, 5), (8, 6)) == (8, 6)
    assert choose((7, 5), (8, 0), (19, 9)) == (8, 0)
    assert choose((19, 9)) == (19, 9)
