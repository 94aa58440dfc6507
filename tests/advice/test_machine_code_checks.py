"""Findings on requests and branches from machine code alone: on the lines on which PTX has them, and nowhere else."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.code.binary.cubin import read_compiled_limits, read_cubin
from gpa_lsp.code.symbolic_accesses.model import WarpPattern
from gpa_lsp.diagnosis.advice.find_statics import KernelFindings, find_static_findings
from gpa_lsp.diagnosis.advice.static_model import StaticFinding
from gpa_lsp.execution.compiler.compile import compile_source
from gpa_lsp.execution.prediction.static_source import examine_unit
from gpa_lsp.kernel.join import list_unmeasured_kernels
from tests.advice.test_warp_checks import CHECKS, CLEAN, EXPECTED, NVRTC, STRIDED, THREAD
from tests.conftest import ROOT

CUBINS = ROOT / "fixtures" / "cubins"
ARCHITECTURES = ((7, 5), (8, 0), (9, 0), (12, 0))


@cache
def list_cubins() -> tuple[str, ...]:
    return tuple(str(path.relative_to(CUBINS)) for path in sorted(CUBINS.glob("*/*.cubin")))


@pytest.mark.parametrize("name", list_cubins())
def test_fixtures_have_what_they_are_named_for(name: str) -> None:
    cubin = read_cubin((CUBINS / name).read_bytes())
    kernels, _ = list_unmeasured_kernels(cubin)
    limits = read_compiled_limits(cubin)
    folder, _, variant = Path(name).stem.rpartition("_")
    text = (ROOT / "fixtures" / "kernels" / folder / f"{variant}.cu").read_text()
    found = [
        one
        for kernel in kernels
        for one in find_static_findings(kernel, limits=limits, read_source=lambda file: text).findings
    ]
    lines = {(one.check, one.line) for one in found if one.check in CHECKS}
    assert lines <= set(EXPECTED.get(f"{folder}/{variant}.cu", []))
    if (folder, variant) in (("bank_conflict", "original"), ("strided_access", "original")):
        assert lines


def examine(tmp_path: Path, bodies: Sequence[str], capability: tuple[int, int]) -> list[KernelFindings]:
    """Kernels whose PTX nobody has, each body on the line behind its head."""
    path = tmp_path / "k.cu"
    head = "__global__ void k{}(const float* in, float* out, int n, int m) {{\n{}\n}}\n"
    path.write_text("".join(head.format(number, body) for number, body in enumerate(bodies)))
    unit = compile_source(path, compute_capability=capability, settings=NVRTC)
    found = examine_unit(replace(unit, ptx=None), path=path, text=path.read_text())
    assert len(found.kernels) == len(bodies), found.unit.messages
    return sorted(found.kernels, key=lambda one: one.place.line if one.place else 0)


def list_findings(found: KernelFindings) -> list[StaticFinding]:
    return [one for one in found.findings if one.check in CHECKS]


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_nothing_is_said_of_sound_code(tmp_path: Path, capability: tuple[int, int]) -> None:
    kernels = examine(tmp_path, [f"{THREAD} {body}" for body in CLEAN.values()], capability)
    assert {name: list_findings(one) for name, one in zip(CLEAN, kernels, strict=True) if list_findings(one)} == {}


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_strides_are_found(tmp_path: Path, capability: tuple[int, int]) -> None:
    kernels = examine(tmp_path, [f"{THREAD} if (i < n) {{ {body} }}" for body in STRIDED], capability)
    costly = {WarpPattern.STRIDED, WarpPattern.SCATTERED, WarpPattern.MISALIGNED}
    for statement, one in zip(STRIDED, kernels, strict=True):
        assert one.warps is not None, one.problems
        assert any(access.pattern in costly for access in one.warps.found.accesses), statement
        assert len({finding.line for finding in list_findings(one)}) == 1, statement


@pytest.mark.parametrize("capability", ARCHITECTURES)
def test_a_naive_transpose_is_found(tmp_path: Path, capability: tuple[int, int]) -> None:
    body = (
        "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "if (x < n && y < n)\n"
        "  out[x * n + y] = in[y * n + x];"
    )
    (kernel,) = examine(tmp_path, [body], capability)
    (finding,) = list_findings(kernel)
    assert (finding.line or 0) - 1 == 3
    assert "store of global memory is strided" in finding.message
    assert "32 sectors per request from 8 on, 4 where coalesced" in finding.message


def test_what_cannot_be_followed_is_said_to_be_unknown() -> None:
    cubin = read_cubin((CUBINS / "sm_80" / "indirect_call_original.cubin").read_bytes())
    (kernel, *_), _ = list_unmeasured_kernels(cubin)
    found = find_static_findings(kernel)
    assert found.warps is None
    assert any("is not known" in problem.message for problem in found.problems)
