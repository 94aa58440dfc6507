"""Host code told from device code, and templates as the host launches them."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpa_lsp.code.sources.trees import read_tree
from gpa_lsp.execution.compiler.host_code import blank_out, find_host_code
from gpa_lsp.execution.compiler.launches import find_instantiations

KEPT = """\
#include <cstdio>
__constant__ float table[3];
const int N = 4;
constexpr int twice(int x) { return 2 * x; }
struct P { int n; P(int k) : n(k) {} int get() const { return n; } };
#define HD __host__ __device__
HD float both(float x) { return x; }
MY_DEVICE_INLINE float maybe(float x) { return x; }
template <class T> __global__ void k(T* x) { x[0] = N; }
template __global__ void k<int>(int*);
extern "C" __global__ void plain(int* p);
namespace n { __device__ int inner(int a) { return a; } enum Kind { A, B }; }
typedef unsigned int word;
using real = float;
texture<float, 1> old;
"""
BLANKED = """\
static int counter = 0;
std::vector<int> numbers;
void declared(int);
extern "C" int exported(int a) { return a; }
template <class T> void run(T* p) { k<T><<<1, 2>>>(p); }
namespace n { void host() {} }
inline float helper(float x) { return x; }
int main(int argc, char** argv) {
  run<float>(nullptr);
}
TEST(suite, name) { run<int>(0); }
"""


def test_device_code_stays_where_it_is_and_host_code_becomes_blanks() -> None:
    found = find_host_code((KEPT + BLANKED).encode())
    assert found.has_host
    left = blank_out(found.content, found.spans).decode()
    assert left.startswith(KEPT)
    rest = left[len(KEPT) :]
    assert rest.replace("namespace n {", "").replace("}", "").strip() == ""
    assert [len(line) for line in left.splitlines()] == [len(line) for line in (KEPT + BLANKED).splitlines()]


def test_a_text_of_device_code_alone_has_no_host_code() -> None:
    found = find_host_code(KEPT.encode())
    assert not found.has_host


def test_marks_may_be_macros_of_a_header() -> None:
    text = b"MINE float f(float x) { return x; }\n"
    known = find_host_code(text, [b"#define MINE static __device__ __forceinline__\n"])
    assert not known.has_host


def test_letters_beyond_ascii_move_nothing() -> None:
    text = "/* é → ü */ int main() { /* ß */ }\n__global__ void k() {} // é\n".encode() + b"\xff\xfe int x() {}\n"
    found = find_host_code(text)
    left = blank_out(found.content, found.spans)
    assert len(left) == len(text)
    assert "/* é → ü */".encode() in left
    assert b"main" not in left
    assert b"__global__ void k() {} // \xc3\xa9" in left


@given(st.text(alphabet="{}()<>;,#\"'\\/*\n __global__ void int template class k x =\u00e9", max_size=400))
def test_any_text_keeps_its_lines_and_columns(text: str) -> None:
    content = text.encode()
    found = find_host_code(content)
    if found is not None:
        left = blank_out(content, found.spans)
        assert len(left) == len(content)
        assert [len(line) for line in left.split(b"\n")] == [len(line) for line in content.split(b"\n")]


KERNELS = """\
template <class T> __global__ void one(T* x, const T* y, int n) {}
template <typename T, int B = 32> __global__ void two(T* x) {}
template <int B> __global__ void three(float* x) {}
template <class T> struct Box { T v; };
template <class T> __global__ void four(Box<T> b, T scale) {}
template <class Op> __global__ void five(float* x, Op op) {}
"""


@pytest.mark.parametrize(
    ("host", "expressions"),
    [
        ("void f() { one<double><<<1, 2>>>(p, q, 3); }", ["one<double>"]),
        ("void f(float* p, const float* q) { one<<<g, b>>>(p, q, 3); }", ["one<float>"]),
        ("double* p; void f() { one<<<g, b>>>(p, p, 3); }", ["one<double>"]),
        ("void f() { int *a, *b; cudaMalloc(&a, 4); one<<<1, 1, 0, s>>>(a + 4, b, 3); }", ["one<int>"]),
        ("void f() { const int B = 128; three<B><<<1, B>>>(p); }", ["three<(128)>"]),
        ("template <class T> void run(T* p) { two<T, 64><<<1, 2>>>(p); } void f() { run<float>(a); run<double>(b); }",
         ["two<float, 64>", "two<double, 64>"]),
        ("void f(unsigned char* p) { two<<<1, 2>>>(p); }", ["two<unsigned char>"]),
        ("void f(Box<half> b, half s) { four<<<1, 1>>>(b, s); }", ["four<half>"]),
        ("void f() { thrust::device_vector<float> v; two<<<1, 1>>>(thrust::raw_pointer_cast(v.data())); }", ["two<float>"]),
        ("void f() { two<<<1, 1>>>((short*)p); two<<<1, 1>>>(static_cast<long*>(p)); }", ["two<short>", "two<long>"]),
        ("void f() { auto p = g(); two<<<1, 1>>>(p); }", []),
        ("void f() { five<<<1, 1>>>(p, [] __device__(int a) { return a; }); }", []),
        ("void f() { missing<<<1, 1>>>(p); plain<<<1, 1>>>(); }", []),
        ("template <class T> void run(T* p) { two<T><<<1, 2>>>(p); }", []),
    ],
)  # fmt: skip
def test_templates_are_instantiated_as_they_are_launched(host: str, expressions: list[str]) -> None:
    tree = read_tree("k.cu", KERNELS + host)
    assert tree is not None
    assert list(find_instantiations(tree).expressions) == expressions


def test_templates_that_are_never_launched_are_named() -> None:
    tree = read_tree(
        "k.cu", KERNELS + "template __global__ void two<int, 4>(int*); void f(float* p) { one<<<1, 2>>>(p, p, 3); }"
    )
    assert tree is not None
    assert find_instantiations(tree).untold == ("five", "four", "three")


def test_fixture_kernels_have_no_host_code(fixtures: Path) -> None:
    sources = sorted(fixtures.glob("kernels/*/*.cu"))
    assert len(sources) > 40
    for source in sources:
        found = find_host_code(source.read_bytes())
        assert not found.has_host, source
