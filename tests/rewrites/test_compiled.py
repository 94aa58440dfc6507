"""The compiler's word: rewritten CUDA C++ compiles, and does what the rewrite is for. Runs where nvcc is on the path."""

import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from gpa_lsp.diagnosis.rewrites.find import find_rewrites
from gpa_lsp.diagnosis.rewrites.model import Rewrite, RewriteContext, apply_edits
from tests.fixtures_manifest.manifest import FIXTURES
from tests.patience import LIMIT_S
from tests.rewrites.notation import plain
from tests.rewrites.test_properties import list_optimizers

NVCC = shutil.which("nvcc")
CONTEXT = RewriteContext(optimizer="", unroll_copies=4, threads_per_block=128, min_blocks=2)
MOST_STEPS = 120
LINES_AT_ONCE = 10
"""Few enough that no rewrite is left off for there being too many."""

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(
        NVCC is None, reason="nvcc is not on the path, so nobody can say whether rewritten kernels compile"
    ),
]

SAMPLE = plain("""
    // A kernel or function for each kind of rewrite, with the shapes a rewrite might stumble over. äöü 🚀
    #include <cmath>
    #define TAPS 8
    constexpr int rows = 4;
    __constant__ float table[4];
    static const float rate = 3.0f;

    __device__ float helper(const float *p, int i) { return p[i]; }
    __device__ __noinline__ float precise(float a, float b) { return sinf(a) / b + std::exp(a) + powf(a, 1.5f) + log(b); }
    __host__ __device__ float both(float a, float b) { return a / b / 3.0f; }

    template <typename T, int N>
    __global__ void generic(T *in, T* out, const float4 *v, int n)
    {
    \tfor (int i = 0; i < N; ++i)
    \t\tfor (int j = 0; j < n; ++j)
    \t\t\tout[i] += in[j] * T(2);
      if (n) for (int i = 0; i < n; ++i) out[i] = in[i];
      out[n] = v[n].x * 0.5 + v[n].y / 7.0f + 1.0f / sqrtf(v[n].z);
    }
    template __global__ void generic<float, 4>(float *, float *, const float4 *, int);

    static __global__ void
    spread(float *in, float *out, float *weights, float scale, int n, double wide)
    {
      float state[TAPS], sum = 0, *step = in + 1;
      for (int k = 0; k < TAPS; ++k) state[k] = *step++;
    #pragma unroll 1
      for (int i = 0; i < n; ++i) {
        sum += state[i % TAPS] / scale + weights[i] / (scale + 1.0f) / n;
        out[i] /= scale;
        wide = wide / 3.0 + (double)weights[i] / wide;
        auto f = [=](float x) { return x * 0.25; };
        sum += (float)f(sum) + helper(weights, i) + __ldg(weights + 1);
      }
      do { sum = sum * 0.5 - .25 + 1e-3; } while (sum > 0.75);
      if (sum < 0.1 && n > 2) sum = max(sum, 0.0) + table[1] * 2.;
      else
        while (--n > 0) sum = fmaf(sum, rate, sum / rate);
      switch (n) {
      case 1:
        for (int i = 0; i < n; ++i) sum -= i;
        break;
      default: sum = fabs(sum * 0x1p-2);
      }
      float sine, cosine;
      sincosf(sum, &sine, &cosine);
      out[0] = sum + sine * cosine + precise(sum, scale) + both(sum, scale) + wide;
    }

    extern "C" __global__ void bounded(const float *__restrict__ in, float *out, float *const more)
    {
      for (auto *p = in; p < in + rows; ++p)
        out[0] += *p / 5.0f;
      more[0] = tan(in[0]) + exp10f(in[1]) + log2(in[2]) + log10f(in[3]);
    }

    void launch(float *d, float *e) {
      spread<<<1, 128>>>(d, e, d + 64, 2.0f, 3, 4.0);
      bounded<<<1, 128>>>(d, e, e + 1);
    }
""")


def compile_source(text: str, directory: Path) -> None:
    """Compiles a text; the compiler's own words fail the test."""
    source = directory / "k.cu"
    source.write_text(text, encoding="utf-8")
    command = [NVCC or "", "-arch=sm_80", "-cubin", "-o", str(directory / "k.cubin"), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\n{text}"


def rewrite_all(file: str, text: str, kernels: tuple[str, ...]) -> tuple[str, Counter[str]]:
    """The text after rewrite upon rewrite until none is offered, and how many of each kind; the rarest kind goes first."""
    used: Counter[str] = Counter()
    for _ in range(MOST_STEPS):
        offers = list_offers(file, text, kernels)
        if not offers:
            return text, used
        chosen = min(offers, key=lambda one: used[one.name])
        text = apply_edits(text, chosen.edits)
        used[chosen.name] += 1
    raise AssertionError(f"still offered after {MOST_STEPS} rewrites: {used}")


def list_offers(file: str, text: str, kernels: tuple[str, ...]) -> list[Rewrite]:
    lines = range(1, text.count("\n") + 2)
    parts = [lines[start : start + LINES_AT_ONCE] for start in range(0, len(lines), LINES_AT_ONCE)]
    contexts = [replace(CONTEXT, optimizer=one, kernel=kernel) for one in list_optimizers() for kernel in kernels]
    return [one for context in contexts for part in parts for one in find_rewrites(file, text, part, context)]


def test_every_kind_compiles(tmp_path: Path) -> None:
    text, used = rewrite_all("k.cu", SAMPLE, ("generic", "spread", "bounded"))
    assert set(used) >= {
        "fast_division", "fast_functions", "launch_bounds", "reciprocal_before_loop", "reciprocal_of_literal", "reciprocal_root",
        "restrict_pointers", "single_precision_literals", "unroll_indexing_loop", "unroll_loop",
    }  # fmt: skip
    compile_source(text, tmp_path)


@pytest.mark.parametrize(
    "pattern", ["double_constant", "math_functions", "local_array", "register_spill", "huge_body", "tensor_core"]
)
def test_rewritten_fixture_kernels_compile(pattern: str, tmp_path: Path) -> None:
    path = FIXTURES / "kernels" / pattern / "original.cu"
    text, used = rewrite_all(path.name, path.read_text(encoding="utf-8"), (pattern,))
    assert used
    compile_source(text, tmp_path)
