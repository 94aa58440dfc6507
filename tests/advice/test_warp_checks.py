"""Findings on requests and branches from the code alone: on the lines that have them, and nowhere else."""

from functools import cache
from pathlib import Path

import pytest

from gpa_lsp.diagnosis.advice.static_model import Certainty, StaticFinding
from gpa_lsp.execution.compiler.model import CompilerChoice, CompileSettings
from gpa_lsp.execution.prediction.static_source import examine_source

FIXTURES = Path(__file__).parents[2] / "fixtures"
CHECKS = ("bank-conflicts", "divergent-branches", "uncoalesced-accesses")
EXPECTED = {
    "bank_conflict/original.cu": [("bank-conflicts", 21)],
    "branch_divergence/original.cu": [("divergent-branches", 11)],
    "strided_access/original.cu": [("uncoalesced-accesses", 15)],
}
"""Every other fixture, and every improved twin, has none of them."""
NVRTC = CompileSettings(choice=CompilerChoice.NVRTC)


def examine(path: Path, text: str | None = None) -> list[StaticFinding]:
    found = examine_source(path, text=text, compute_capability=(8, 0), settings=NVRTC)
    assert found.kernels, found.unit.messages
    assert not found.problems
    findings = [one for kernel in found.kernels for one in kernel.findings if one.check in CHECKS]
    return sorted(findings, key=lambda one: (one.line or 0, one.check, one.message))


@cache
def list_sources() -> tuple[str, ...]:
    return tuple(str(path.relative_to(FIXTURES / "kernels")) for path in sorted((FIXTURES / "kernels").glob("*/*.cu")))


@pytest.mark.parametrize("source", list_sources())
def test_fixtures_have_what_they_are_named_for(source: str) -> None:
    findings = examine(FIXTURES / "kernels" / source)
    assert [(one.check, one.line) for one in findings] == EXPECTED.get(source, [])
    for one in findings:
        assert one.message.endswith(".") and one.remedy.endswith(".")
        assert one.instructions or one.check == "divergent-branches"


def find(
    tmp_path: Path, body: str, parameters: str = "const float* in, float* out, int n, int m"
) -> list[tuple[int | None, str]]:
    """Line of the body and message of every finding."""
    path = tmp_path / "k.cu"
    path.write_text(f"__global__ void k({parameters}) {{\n{body}\n}}\n")
    return [((one.line or 0) - 1, one.message) for one in examine(path)]


THREAD = "int i = blockIdx.x * blockDim.x + threadIdx.x;"


def test_a_naive_transpose_is_found_with_its_size_as_a_symbol(tmp_path: Path) -> None:
    (line, message), = find(
        tmp_path,
        "int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "if (x < n && y < n)\n"
        "  out[x * n + y] = in[y * n + x];",
    )  # fmt: skip
    assert line == 3
    assert message == (
        "This store of `out` is strided: neighbouring threads are `n` elements apart, 32 sectors per request for `n` ≥ 8, 4 where coalesced "
        "(in blocks whose `blockDim.x` is a multiple of 32)."
    )


def test_the_shape_of_launched_blocks_counts(tmp_path: Path) -> None:
    path = tmp_path / "k.cu"
    path.write_text(
        "__global__ void k(const float* in, float* out, int n) {\n"
        "  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;\n"
        "  out[x * n + y] = in[y * n + x];\n"
        "}\n"
        "void run(const float* in, float* out, int n) { k<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(in, out, n); }\n"
    )
    (finding,) = examine(path)
    assert finding.certainty is Certainty.CERTAIN
    assert "16 sectors per request for `n` ≥ 8, 4 where coalesced (in blocks of 16 × 16)" in finding.message


STRIDED = {
    "out[i] = in[i * m];": "`m` elements apart, 32 sectors per request for `m` ≥ 8",
    "out[i] = in[i * (n + 1)];": "`n + 1` elements apart, 32 sectors per request for `n` ≥ 7",
    "out[i] = in[i * n * m];": "`n · m` elements apart, 32 sectors per request for `n · m` ≥ 8",
    "out[i] = in[i * 5];": "5 elements apart, 20 sectors per request, 4 where coalesced",
    "float s = 0; for (int j = 0; j < m; ++j) s += in[i * m + j]; out[i] = s;": "`m` elements apart, 32 sectors per request for `m` ≥ 8",
    "out[i] = in[threadIdx.x * gridDim.x + blockIdx.x];": "`gridDim.x` elements apart, 32 sectors per request for `gridDim.x` ≥ 8",
    "out[i] = in[i + 1];": "starts inside a sector: 5 sectors per request, 4 where it is aligned",
    "out[i] = in[(int)in[i]];": "is scattered, by what was loaded: up to 32 sectors per request, 4 at best",
}


@pytest.mark.parametrize("statement", STRIDED)
def test_strides_are_told_by_their_sizes(tmp_path: Path, statement: str) -> None:
    found = find(tmp_path, f"{THREAD}\nif (i < n)\n  {{ {statement} }}")
    assert [line for line, _ in found] == [3]
    assert STRIDED[statement] in found[0][1]


CLEAN = {
    "a bound": "if (i < n) out[i] = in[i];",
    "a stride of the grid": "for (; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];",
    "a stencil": "if (i > 0 && i < n - 1) out[i] = in[i - 1] + in[i] + in[i + 1];",
    "rows of warps": "out[(i / 32) * n + i % 32] = in[(i / 32) * n + threadIdx.x % 32];",
    "rows and columns of an index": "out[(i / n) * n + i % n] = in[i];",
    "one value for all": "out[i] = in[n] + in[blockIdx.x];",
    "all members of a structure": "float3 v = ((const float3*)in)[i]; out[i] = v.x + v.y + v.z;",
    "half a warp": "out[i] = threadIdx.x < 16 ? in[i] : 0.f;",
    "one thread for a warp": "float s = in[i]; for (int d = 16; d; d /= 2) s += __shfl_down_sync(~0u, s, d); if (i % 32 == 0) out[i / 32] = s;",
    "ways of whole warps": (
        "if (threadIdx.x / 32 % 2) { for (int j = 0; j < n; ++j) out[i] += j; "
        "} else { for (int j = 0; j < m; ++j) out[i] -= in[i]; }"
    ),
    "a padded tile": "__shared__ float t[32][33]; t[threadIdx.y][threadIdx.x] = in[i]; __syncthreads(); out[i] = t[threadIdx.x][threadIdx.y];",
    "a reversed row": "__shared__ float t[64]; t[threadIdx.x] = in[i]; __syncthreads(); out[i] = t[63 - threadIdx.x];",
    "a swizzled tile": (
        "__shared__ float t[32][32]; t[threadIdx.y][threadIdx.x ^ threadIdx.y] = in[i]; "
        "__syncthreads(); out[i] = t[threadIdx.x][threadIdx.x ^ threadIdx.y];"
    ),
    "a tree in shared memory": (
        "__shared__ float t[256]; t[threadIdx.x] = in[i]; for (int s = 128; s; s /= 2) { __syncthreads(); "
        "if (threadIdx.x < s) t[threadIdx.x] += t[threadIdx.x + s]; } if (!threadIdx.x) out[blockIdx.x] = t[0];"
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_said_of_sound_code(tmp_path: Path, name: str) -> None:
    assert find(tmp_path, f"{THREAD}\n{CLEAN[name]}") == []


def test_conflicts_by_strides_in_shared_memory(tmp_path: Path) -> None:
    found = find(
        tmp_path,
        "__shared__ float t[32][32]; extern __shared__ float d[];\n"
        "t[threadIdx.x][threadIdx.y] = in[threadIdx.x];\n"
        "d[2 * n * threadIdx.x] = 1.f;\n"
        "__syncthreads(); out[threadIdx.x] = t[threadIdx.y][threadIdx.x] + d[threadIdx.x];",
    )
    assert [line for line, _ in found] == [2, 3]
    assert "32 elements apart, 32 wavefronts per request, 1 without conflicts" in found[0][1]
    assert "`2 · n` elements apart, 2 to 32 wavefronts per request" in found[1][1]


@pytest.mark.parametrize(
    ("working", "is_told"),
    [
        ("threadIdx.x % 2", True),
        ("threadIdx.x % 4 == 3", True),
        ("threadIdx.x % 32 == 0", False),  # one lane works for the others
        ("threadIdx.x % 16 != 0", False),  # two lanes idle
        ("threadIdx.x / 32 % 2", False),
    ],
)
def test_lanes_that_wait_for_a_loop_of_others_are_told_of(tmp_path: Path, working: str, is_told: bool) -> None:
    found = find(
        tmp_path,
        f"int v = m; if ({working}) {{\n"
        "  for (int i = 0; v != 1; ++i)\n"
        "    v = v & 1 ? 3 * v + i : v / 2 + n;\n"
        "}\n"
        "out[blockIdx.x * blockDim.x + threadIdx.x] = v;",
    )
    assert [line for line, message in found if message.endswith(" with a loop.")] == [1] * is_told


def test_a_loop_around_a_branch_is_not_one_of_its_sides(tmp_path: Path) -> None:
    found = find(
        tmp_path,
        "for (int i = 0; i < n; ++i) {\n  if (threadIdx.x % 2)\n    atomicAdd(&out[i], in[i]);\n}",
    )
    assert not any("loop" in message for _, message in found)


def test_branches_by_remainders_are_found(tmp_path: Path) -> None:
    found = find(
        tmp_path,
        "__shared__ float t[256]; t[threadIdx.x] = in[threadIdx.x];\n"
        "for (int s = 1; s < blockDim.x; s *= 2) {\n"
        "  __syncthreads();\n"
        "  if (threadIdx.x % (2 * s) == 0)\n"
        "    t[threadIdx.x] += t[threadIdx.x + s];\n"
        "}\n"
        "out[threadIdx.x] = t[0];",
    )
    assert [line for line, message in found if "by a remainder of the thread index" in message] == [4]
