"""Description that a rewrite gives of itself, and what no table of one text can hold."""

import pytest

from gpa_lsp.diagnosis.rewrites.model import apply_edits
from tests.rewrites.notation import offer, plain, read_marked, rewrite

CODE = {
    "arithmetic": "__device__ float g(const float *x, float a, float4 v, float b, int n) {{\n  {}  //!\n}}\n",
    "loop": "__global__ void k(const float *x, float *y, float b, int n) {{\n{}\n}}\n",
    "kernel": "__global__ void k(const float *in, float* w, float *out, int n) {{ {} }}\n",
    "literal": 'from numba import cuda\nimport numpy as np\n@cuda.jit("void(float32[:])")\ndef k(x):\n    {}  #!\n',
}


SPELLING, SINGLE, ONCE = "fast_math", "strength_reduction", "fast_math reciprocal_before_loop"
UNROLL, PROMISE = "loop_unrolling unroll_loop", "code_reordering"
LOOP = "  for (int i = 0; i < n; ++i) {  //!\n    y[i] = x[i] / b;  //!\n "


@pytest.mark.parametrize(
    ("code", "statement", "advice", "title", "words"),
    [
        ("arithmetic", "a = sinf(b);", SPELLING, "Use `__sinf` for `sinf`", "within 2^-21.4 for angles from -π to π"),
        ("arithmetic", "a = sinf(b);", SPELLING, "Use `__sinf` for `sinf`", "-use_fast_math"),
        (
            *("arithmetic", "a = x[0] * 0.7 + 0.1;", SINGLE, "Write `0.7f` and `0.1f` (rounds to float)"),
            "`0.7` becomes `0.699999988`, `0.1` becomes `0.100000001`",
        ),
        ("arithmetic", "a = a * 0.5 + 0.25;", SINGLE, "Write `0.5f` and `0.25f`", ""),
        # comparing with a number a float holds changes nothing
        ("arithmetic", "if (a > 0.5) n = 1;", SINGLE, "Write `0.5f`", "The result is the same."),
        ("arithmetic", "if (a > 0.1) n = 1;", SINGLE, "Write `0.1f` (rounds to float)", ""),
        ("arithmetic", "if (a * v.x > 0.5) n = 1;", SINGLE, "Write `0.5f`", ""),
        ("literal", "x[0] = x[1] * 0.5", SINGLE, "Write `np.float32(0.5)`", ""),
        ("literal", "x[0] = x[1] * 0.1", SINGLE, "Write `np.float32(0.1)` (rounds to float)", ""),
        (
            *("loop", f"{LOOP}}}", ONCE, "Divide once before the loop and multiply by `inv_b` in `x[i] / b`"),
            "last bit",
        ),
        (
            *("loop", f"{LOOP}y[i] /= b; y[i] += n / b; }}", ONCE),
            *("Divide once before the loop and multiply by `inv_b` in 3 divisions", ""),
        ),
        ("loop", f"{LOOP}}}", UNROLL, "Put `#pragma unroll 8` before the loop", ""),
        *(
            ("loop", f"#pragma {one}\n{LOOP}}}", UNROLL, f"Replace `#pragma {one}` by `#pragma unroll 8`", "")
            for one in ("unroll 1", "unroll(1)", "nounroll")
        ),
        (
            *("loop", "float s[8];\nfor (int i = 0; i < 8; ++i)\n  s[i] = x[i];  //!\ny[0] = s[n];"),
            *("register_reuse unroll_indexing_loop", "Put `#pragma unroll` before the loop that indexes `s`", ""),
        ),
        (
            *("kernel", "out[n] = in[n] * w[n];", PROMISE),
            *(
                "Declare `w` `const __restrict__` and `in` and `out` `__restrict__`",
                "Only the author can make this promise",
            ),
        ),
        (
            *("kernel", "out[0] = in[0];", "register_reuse", "Declare the kernel `__launch_bounds__(96)`"),
            "The largest measured launch has 96 threads per block; a launch with more will fail",
        ),
    ],
)
def test_what_a_rewrite_says(code: str, statement: str, advice: str, title: str, words: str) -> None:
    optimizer, _, kind = advice.partition(" ")
    file = "k.py" if code == "literal" else "k.cu"
    facts: dict[str, object] = {"kernel": "k", "threads_per_block": 96, "unroll_copies": 8}
    (found,) = offer(optimizer, CODE[code].format(statement), file=file, kind=kind, **facts)
    assert found.title == title
    assert words in found.explanation
    is_safe = "unroll" in advice or words.startswith("The result is the same")
    assert (found.changes_results, found.is_preferred) == (not is_safe and code != "kernel", is_safe)
    assert optimizer in found.optimizers
    assert advice != ONCE or {*found.optimizers} == {"fast_math", "strength_reduction"}


HEAD = "__constant__ float table[4];\n__device__ float g(const float *x, float a, float4 v, int n, double d, const double *y) {\n"


def body(statement: str) -> str:
    return f"{HEAD}  {statement}  //!\n}}\n"


KIND = "reciprocal_before_loop"


def test_a_divisor_that_divides_itself_is_moved_as_a_whole() -> None:
    text = """
        __global__ void k(double *y, double b, int n) {
          for (int i = 0; i < n; ++i)
            y[i] /= 0.5 / sqrt(b);  //!
        }
    """
    offers = offer("fast_math", text, kind=KIND)
    assert len(offers) == 2
    outer, inner = (apply_edits(read_marked(text)[0], one.edits) for one in offers)
    assert "const double inv_divisor = 1.0 / (0.5 / sqrt(b));" in outer
    assert "y[i] *= inv_divisor;" in outer
    assert "const double inv_divisor = 1.0 / sqrt(b);" in inner
    assert "y[i] /= 0.5 * inv_divisor;" in inner


@pytest.mark.parametrize("optimizer", ["loop_unrolling", "code_reordering", "memory_transaction_reduction"])
def test_advice_it_answers(optimizer: str) -> None:
    text = "__global__ void k(const float *in, float *out) { out[0] = in[0]; }\n"
    assert len(offer(optimizer, text, kernel="k", kind="restrict_pointers")) == 1


def test_a_macro_that_mentions_a_pointer() -> None:
    text = "#define GET(i) in[i]\n__global__ void k(float *in, float *out, float *w) { out[0] = GET(0) + w[0]; }\n"
    assert "k(float *in, float *__restrict__ out, const float *__restrict__ w)" in rewrite(
        "code_reordering", text, kernel="k"
    )


def test_which_kernel() -> None:
    one = "__global__ void {}(const float *in, float *out) {{\n  out[0] = in[0];{}\n}}\n"
    text = one.format("k", "") + one.format("j", "  //!")
    assert "j(const float *__restrict__" in rewrite("code_reordering", text)
    assert "k(const float *__restrict__" in rewrite("code_reordering", text, kernel="k")
    assert offer("code_reordering", one.format("k", "")) == ()
    assert offer("code_reordering", one.format("k", "  //!").replace("global", "device")) == ()
    assert (
        offer("code_reordering", "__device__ void k(const float *in, float *out) { out[0] = in[0]; }\n", kernel="k")
        == ()
    )
    assert offer("code_reordering", "__global__ void k(const float *in, float *out);\n", kernel="k") == ()


def test_of_several_kernels_with_a_name_the_one_around_the_lines() -> None:
    one = "__global__ void k({} *in, float *out) {{\n  out[0] = in[0];{}\n}}\n"
    text = one.format("int", "") + one.format("double", "  //!")
    assert "k(int *in" in rewrite("code_reordering", text, kernel="k")
    assert "k(double *__restrict__ in" in rewrite("code_reordering", text, kernel="k")
    assert offer("code_reordering", text.replace("  //!", ""), kernel="k") == ()


def test_a_kernel_in_a_file_with_line_ends_of_windows() -> None:
    text = plain("""
        // äöü
        __global__ void k(const float *in, float *out)
        {
          out[0] = in[0];
        }
    """).replace("\n", "\r\n")
    after = rewrite("code_reordering", text, kernel="k")
    assert after == text.replace("*in", "*__restrict__ in").replace("*out", "*__restrict__ out")


def test_less_of_a_loop_inside_that_left_no_loop_of_its_own() -> None:
    text = """
        __global__ void k(float *x, int n) {
          #pragma unroll 1
          for (int i = 0; i < n; ++i) {  //!
            #pragma unroll
            for (int j = 0; j < 1024; ++j)
              x[j] = 0;
            #pragma unroll 2
            for (int j = 0; j < 1024; ++j)
              x[j] = 0;
            for (int j = 0; j < 64; ++j)
              x[j] = 0;
            for (int j = 0; j < n; ++j)
              x[j] = 0;
          }
        }
    """
    found = offer("excessive_unrolling", text, unroll_copies=8)
    assert [(one.edits[0].start.line, one.title) for one in found] == [
        (4, "Replace `#pragma unroll` by `#pragma unroll 8`"),
        (10, "Put `#pragma unroll 8` before the loop"),
    ]


NUMBA = "import numpy as np\nfrom numba import cuda, float32, void\n"


def test_the_kernel_of_the_name_wherever_the_line_is() -> None:
    text = f"{NUMBA}@cuda.jit(device=True)\ndef f(x):\n    return x / 3  #!\n@cuda.jit\ndef k(x):\n    x[0] = f(x[0])\n"
    (found,) = offer("fast_math", text, file="k.py", kernel="k")
    assert found.title == "Compile `k` with `fastmath=True`"
    assert offer("fast_math", text, file="k.py") == ()
