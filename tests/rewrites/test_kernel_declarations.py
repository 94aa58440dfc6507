"""``__restrict__``, ``const`` and ``__launch_bounds__`` at a kernel's definition."""

import pytest

from tests.rewrites.notation import offer, plain, rewrite


def promise(text: str) -> str:
    """The first line of the text after the promise."""
    return rewrite("code_reordering", text, kernel="k").split("\n")[0]


def test_const_and_restrict_for_what_is_only_read() -> None:
    text = "__global__ void k(const float *in, float* w, float *out, int n) {\n  out[n] = in[n] * w[n];\n}\n"
    assert promise(text) == (
        "__global__ void k(const float *__restrict__ in, const float* __restrict__ w, float *__restrict__ out, int n) {"
    )
    (found,) = offer("code_reordering", text, kernel="k")
    assert found.title == "Declare `w` `const __restrict__` and `in` and `out` `__restrict__`"
    assert "Only the author can make this promise" in found.explanation
    assert not found.is_preferred


@pytest.mark.parametrize("optimizer", ["loop_unrolling", "code_reordering", "memory_transaction_reduction"])
def test_advice_it_answers(optimizer: str) -> None:
    text = "__global__ void k(const float *in, float *out) { out[0] = in[0]; }\n"
    assert len(offer(optimizer, text, kernel="k", kind="restrict_pointers")) == 1


@pytest.mark.parametrize(
    "use",
    [
        "out[0] = w[1];",
        "out[0] = *w + *(w + 1);",
        "out[0] = __ldg(w + 1) + __ldg(&w[1]);",
        "float4 v = w[0]; out[0] = v.x;",
        "if (w) out[0] = w[0] > 2;",
        "out[0] = sinf(w[0]);",
        "out[0] = read(w, 1) + value(w[1]);",
        "for (int i = 0; w[i] < 1; ++i) out[i] = 0;",
        "auto f = [=] { return w[0]; }; out[0] = f();",
    ],
)
def test_what_only_reads(use: str) -> None:
    helpers = (
        "__device__ float read(const float *p, int i) { return p[i]; }\n__device__ float value(float v) { return v; }\n"
    )
    text = f"{helpers}__global__ void k(float *w, float *out, int n) {{ {use} }}\n"
    after = rewrite("code_reordering", text, kernel="k")
    assert "k(const float *__restrict__ w, float *__restrict__ out" in after


@pytest.mark.parametrize(
    "use",
    [
        "w[0] = 1;",
        "w[0].x += 1;",
        "*w = 1;",
        "*(w + 1) = 1;",
        "w[0]++;",
        "*w++ = 1;",
        "atomicAdd(&w[0], 1);",
        "atomicAdd(w, 1);",
        "unknown(w);",
        "unknown(w[0]);",
        "write(w);",
        "change(w[0]);",
        "float *q = w; q[0] = 1;",
        "auto &r = w[0]; r = 1;",
        "w[0].reset();",
        "((int *)w)[0] = 1;",
        "*reinterpret_cast<float4 *>(w) = v;",
        "(n ? w[0] : w[1]) = 2;",
        "w += 1; w[0] = 1;",
        "std::sort(w, w + n);",
    ],
)
def test_what_may_write_gets_no_const(use: str) -> None:
    helpers = "__device__ float write(float *p) { return *p; }\n__device__ void change(float &v) { v = 1; }\n"
    text = f"{helpers}__global__ void k(float *w, float *out, int n) {{ out[0] = 1; {use} }}\n"
    after = rewrite("code_reordering", text, kernel="k")
    assert "k(float *__restrict__ w, float *__restrict__ out" in after


@pytest.mark.parametrize(
    "use",
    [
        "float *t = w; w = out; out = t;",
        "w = out + n;",
        "std::swap(w, out);",
        "exchange(w, out);",
        "float *q = n ? w : out; q[0] = 1;",
        "float *q = w; q = out; q[0] = 1;",
        "if (w == out) return;",
        "if (w + n > out) return;",
        'asm("" : : "l"(w), "l"(out));',
        "auto f = [&w, &out] { return w[0]; };",
        "s.p = w; s.q = out;",
    ],
)
def test_what_speaks_against_the_promise(use: str) -> None:
    helpers = "__device__ void exchange(float *&p, float *&q) { }\n"
    text = f"{helpers}__global__ void k(float *w, float *out, int n) {{ out[0] = w[0]; {use} }}\n"
    assert offer("code_reordering", text, kernel="k") == ()


@pytest.mark.parametrize("use", ["float *q; q = w; q[0] = 1;", "float **q = &w;", "float *&q = w;", "s.p = w;"])
def test_what_is_not_understood_of_one_pointer_leaves_the_others(use: str) -> None:
    text = f"__global__ void k(float *w, float *out, int n) {{ out[0] = w[0]; {use} }}\n"
    assert "k(float *w, float *__restrict__ out" in rewrite("code_reordering", text, kernel="k")


@pytest.mark.parametrize(
    "use",
    [
        "w += n;",
        "++w;",
        "float *q = w + n; q += 2; q[0] = 1;",
        "if (w == nullptr) return;",
        "write(w);",
        "const float *q = w;",
    ],
)
def test_what_does_not(use: str) -> None:
    text = f"__global__ void k(float *w, float *out, int n) {{ {use} out[0] = w[0]; }}\n"
    assert "__restrict__ w" in rewrite("code_reordering", text, kernel="k")


def test_launches_that_give_two_parameters_the_same_memory() -> None:
    kernel = "__global__ void k(float *w, float *out, float *z, int n) { out[0] = w[0] + z[0]; }\n"
    for call in (
        "k<<<1, 2>>>(d, d + n, e, 4);",
        "q::k<<<1, 2, 0, s>>>(&d[0], &d[0], e, 4);",
        "k<float><<<g, b>>>((float *)d, d, e, d);",
    ):
        after = rewrite("code_reordering", f"{kernel}int main() {{ {call} }}\n", kernel="k")
        assert "k(float *w, float *out, const float *__restrict__ z, int n)" in after
    for call in (
        "k<<<1, 2>>>(d, e, f, 4);",
        "k<<<1, 2>>>(nullptr, nullptr, nullptr, n);",
        "k<<<1, 2>>>(s.d, s.e, t.d, n);",
    ):
        assert "__restrict__ out" in rewrite("code_reordering", f"{kernel}int main() {{ {call} }}\n", kernel="k")


@pytest.mark.parametrize(
    "use",
    ["__threadfence();", "auto g = cooperative_groups::this_grid(); g.sync();", "cuda::atomic_ref<float> r(out[0]);"],
)
def test_blocks_that_exchange_data(use: str) -> None:
    text = f"__global__ void k(const float *in, float *out) {{ out[0] = in[0]; {use} }}\n"
    assert offer("code_reordering", text, kernel="k") == ()


@pytest.mark.parametrize(
    ("parameter", "after"),
    [
        ("float *in", "const float *__restrict__ in"),
        ("float* in", "const float* __restrict__ in"),
        ("float*in", "const float*__restrict__ in"),
        ("unsigned int *in", "const unsigned int *__restrict__ in"),
        ("float const *in", "float const *__restrict__ in"),
        ("float *const in", "const float *const __restrict__ in"),
        ("const T *in", "const T *__restrict__ in"),
        ("float *in = nullptr", "const float *__restrict__ in = nullptr"),
        ("[[maybe_unused]] float *in", "[[maybe_unused]] const float *__restrict__ in"),
        ("struct S *in", "const struct S *__restrict__ in"),
    ],
)
def test_ways_to_write_a_pointer(parameter: str, after: str) -> None:
    text = f"__global__ void k(float *__restrict__ out, {parameter}) {{ out[0] = in[0]; }}\n"
    assert promise(text) == f"__global__ void k(float *__restrict__ out, {after}) {{ out[0] = in[0]; }}"


@pytest.mark.parametrize(
    "parameter",
    [
        "volatile float *in",
        "float *__restrict__ in",
        "const float *__restrict in",
        "float **in",
        "float in[]",
        "float (*in)[4]",
        "float &in",
        "float *&in",
        "S in",
    ],
)
def test_parameters_that_get_no_promise(parameter: str) -> None:
    text = f"__global__ void k(float *__restrict__ out, {parameter}) {{ out[0] = in[0]; }}\n"
    assert offer("code_reordering", text, kernel="k") == ()


def test_one_pointer_or_no_store_has_nothing_to_overlap() -> None:
    assert offer("code_reordering", "__global__ void k(float *out, int n) { out[0] = n; }\n", kernel="k") == ()
    assert (
        offer("code_reordering", "__global__ void k(float *a, float *b) { float c = a[0] + b[0]; }\n", kernel="k") == ()
    )


BODY = "k(float *in, float *out) { out[0] = in[0]; }\n"


@pytest.mark.parametrize(
    ("text", "is_constant"),
    [
        (f"__global__ void {BODY}", True),
        (f"#include <cuda.h>\n__global__ void {BODY}", True),
        (f'#include "k.h"\n__global__ void {BODY}', False),
        (f'#include "k.h"\nstatic __global__ void {BODY}', True),
        (f'#include "k.h"\nnamespace {{ __global__ void {BODY} }}\n', True),
        (f'#include "k.h"\nnamespace q {{ __global__ void {BODY} }}\n', False),
        (f"__global__ void k(float *, float *);\n__global__ void {BODY}", False),
        (f"template <int N> __global__ void {BODY}template __global__ void k<2>(float *, float *);\n", False),
        (f"template <int N> __global__ void {BODY}", True),
        (f"__global__ void {BODY}void (*p)(float *, float *) = k;\n", False),
        (f"__global__ void {BODY}auto p = &k;\n", False),
        (f"__global__ void {BODY}void g() {{ cudaFuncSetAttribute(k, a, b); k<<<1, 2>>>(p, q); }}\n", True),
        (f"__global__ void {BODY}int kk = 1, b = kk;\n", True),
    ],
)
def test_const_only_where_nothing_else_declares_the_kernel(text: str, is_constant: bool) -> None:
    after = rewrite("code_reordering", text, kernel="k")
    assert ("k(const float *__restrict__ in, float *__restrict__ out)" in after) == is_constant
    assert "*__restrict__ in, float *__restrict__ out)" in after


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


def bound(head: str, optimizer: str = "register_reuse", **context: object) -> str:
    text = f"{head} {{ x[0] = 1; }}\n"
    return rewrite(optimizer, text, kernel="k", **({"threads_per_block": 256} | context)).removesuffix(
        " { x[0] = 1; }\n"
    )


@pytest.mark.parametrize(
    ("head", "after"),
    [
        ("__global__ void k(float *x)", "__global__ void __launch_bounds__(256) k(float *x)"),
        ("static __global__ void\nk(float *x)", "static __global__ void\n__launch_bounds__(256) k(float *x)"),
        ('extern "C" __global__ void k(float *x)', 'extern "C" __global__ void __launch_bounds__(256) k(float *x)'),
        (
            "template <class T, int N>\n__global__ void k(T *x)",
            "template <class T, int N>\n__global__ void __launch_bounds__(256) k(T *x)",
        ),
        ("__global__ void __launch_bounds__(1024) k(float *x)", "__global__ void __launch_bounds__(256) k(float *x)"),
        ("__launch_bounds__(512) __global__ void k(float *x)", "__launch_bounds__(256) __global__ void k(float *x)"),
    ],
)
def test_a_bound_for_a_kernel_that_spills(head: str, after: str) -> None:
    assert bound(head) == after


def test_bounds_of_other_kernels_are_theirs() -> None:
    other = "__global__ void __launch_bounds__(1024) other(float *x) { }\n"
    assert bound(f"{other}__global__ void k(float *x)") == f"{other}__global__ void __launch_bounds__(256) k(float *x)"


def test_a_bound_for_more_resident_blocks() -> None:
    kept = {"optimizer": "thread_increase", "min_blocks": 4}
    assert bound("__global__ void k(float *x)", **kept) == "__global__ void __launch_bounds__(256, 4) k(float *x)"
    assert bound("__global__ void __launch_bounds__(256) k(float *x)", **kept) == (
        "__global__ void __launch_bounds__(256, 4) k(float *x)"
    )


def test_what_the_bound_costs_is_said() -> None:
    (found,) = offer("register_reuse", f"__global__ void {BODY}", kernel="k", threads_per_block=96)
    assert found.title == "Declare the kernel `__launch_bounds__(96)`"
    assert "The largest measured launch has 96 threads per block; a launch with more will fail" in found.explanation
    assert not found.is_preferred


@pytest.mark.parametrize(
    "head",
    [
        "__global__ void __launch_bounds__(256) k(float *x)",
        "__global__ void __launch_bounds__(128) k(float *x)",
        "__global__ void __launch_bounds__(1024u) k(float *x)",
        "__global__ void __launch_bounds__(block_size) k(float *x)",
        "__global__ void __launch_bounds__(1024, 2) k(float *x)",
        "__global__ auto k(float *x) -> void",
        "__attribute__((used)) __global__ void k(float *x)",
        "__device__ void k(float *x)",
        "__global__ void __maxnreg__(32) k(float *x)",
        "__global__ void __launch_bounds__(1024) k(float *);\n__global__ void k(float *x)",
    ],
)
def test_no_bound(head: str) -> None:
    assert offer("register_reuse", f"{head} {{ x[0] = 1; }}\n", kernel="k", threads_per_block=256) == ()


def test_no_bound_for_occupancy_where_the_block_has_another_size() -> None:
    text = "__global__ void __launch_bounds__(512) k(float *x) { x[0] = 1; }\n"
    assert offer("thread_increase", text, kernel="k", threads_per_block=256, min_blocks=4) == ()
    text = "__global__ void __launch_bounds__(256, 2) k(float *x) { x[0] = 1; }\n"
    assert offer("thread_increase", text, kernel="k", threads_per_block=256, min_blocks=4) == ()


def test_no_bound_without_a_known_launch() -> None:
    text = "__global__ void k(float *x) { x[0] = 1; }\n"
    assert offer("register_reuse", text, kernel="k") == ()
    assert offer("thread_increase", text, kernel="k", threads_per_block=256) == ()


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
